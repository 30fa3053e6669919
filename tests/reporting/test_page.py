"""The report as a file: self-contained, complete, and safe with any name."""

import base64
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import Ballots, Comparisons, Responses, rank
from bayesrank.by_group import rank_by_group
from bayesrank.reporting.details import check_section
from bayesrank.reporting.page import name_results, report

NASTY = '<script>alert("x")</script> & $y_1$ \N{SNOWMAN}'
SYSTEMS = [NASTY, "b", "c"]
DATA = Responses(
    [[[1, 1, 1], [1, 1, 0]], [[1, 1, 1], [0, 1, 0]], [[1, 1, 1], [0, 0, -1]]],
    systems=SYSTEMS,
    groups=["algebra", "geometry"],
)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Structure(HTMLParser):
    """Collects identifiers and addresses, and checks that elements close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.identifiers: list[str] = []
        self.addresses: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.scripts += tag == "script"
        for name, value in attrs:
            if name == "id":
                self.identifiers.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results() -> dict[str, xr.DataTree]:
    return {
        "bayes": rank(DATA, "bayes", random_seed=1),
        "borda": rank(DATA, "borda", random_seed=1),
    }


@pytest.fixture(scope="module")
def text(results: dict[str, xr.DataTree], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = report(results, tmp_path_factory.mktemp("report") / "report.html", title="A & B")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def structure(text: str) -> Structure:
    parser = Structure()
    parser.feed(text)
    return parser


def test_elements_close_and_identifiers_are_unique(structure: Structure) -> None:
    assert structure.open == []
    assert len(structure.identifiers) == len(set(structure.identifiers))


def test_only_references_point_outside(structure: Structure) -> None:
    outside = [a for a in structure.addresses if not a.startswith(("#", "data:"))]
    assert outside
    assert all(address.startswith("https://doi.org/") for address in outside)


def test_links_inside_have_a_target(structure: Structure) -> None:
    inside = {a[1:] for a in structure.addresses if a.startswith("#")}
    assert inside <= set(structure.identifiers)


def test_names_are_text_and_nothing_else(structure: Structure, text: str) -> None:
    assert structure.scripts == 1
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;" in text


@pytest.mark.parametrize(
    "section",
    [
        "leaderboard",
        "questions",
        "groups",
        "superiority",
        "probabilities",
        "agreement",
        "data",
        "checks",
        "methods",
    ],
)
def test_everything_is_there(text: str, section: str) -> None:
    assert f'<section id="{section}"' in text
    assert f'<li><a href="#{section}">' in text


def test_numbers_stay_with_their_percent_sign(text: str) -> None:
    (lead,) = re.findall(r'<p class="lead">(.*)</p>', text)
    assert "95\N{NO-BREAK SPACE}%" in lead
    assert not re.search(r"\d %", text)


def test_it_says_what_the_data_lack(text: str) -> None:
    assert "1 of 2 (50.0\N{NO-BREAK SPACE}%; the same outcome of every system)" in text
    assert "17 of 18 possible" in text


@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
@pytest.mark.parametrize(
    ("n_questions", "said"),
    [
        (4, "Not yet: first resolve the bad findings for it."),
        (8, "With caution: read the warnings for it."),
    ],
)
def test_what_is_bad_is_not_to_be_used_before_it_is_repaired(n_questions: int, said: str) -> None:
    outcomes = np.random.default_rng(0).integers(0, 2, size=(3, n_questions, 1))
    section = check_section({"it": rank(outcomes, "avg", random_seed=1)}, {}, None)
    assert section.text[0] == said
    assert section.text[1] == "Not measured: variation between runs."


def test_it_says_how_it_was_computed(text: str, results: dict[str, xr.DataTree]) -> None:
    assert results["bayes"].attrs["fingerprint"] in text
    assert re.search(r"bayesrank \d+\.\d+", text)
    assert "10.48550/arXiv.2510.04265" in text
    assert "@article{borda1781memoire" in text


def test_the_leaderboard_is_by_the_lower_bound(text: str) -> None:
    table = text[text.index('id="leaderboard-table"') :]
    first_cells = re.findall(r'<tr>\s*<td class="number" data-key="(\d+)"', table)
    assert first_cells[:3] == ["1", "2", "3"]
    headers = re.findall(r'<th scope="col"[^>]*>([^<]+)<', table)[:4]
    assert headers == ["lcb rank", "system", "lcb 5%", "score"]


def test_downloads_hold_the_leaderboard(text: str) -> None:
    (address,) = re.findall(r'download="leaderboard.csv" href="data:[^,]*,([^"]*)"', text)[:1]
    lines = base64.b64decode(address).decode().splitlines()
    assert lines[0].startswith("rank,system,score,observed_mean,n_outcomes")
    assert len(lines) == 4


def test_each_text_of_the_tooltips_is_in_the_page_once(text: str) -> None:
    attributes = re.findall(r'data-cells="([^"]*)"', text)
    assert len(attributes) == 3  # questions, pairs and ranks, for both widths
    for found in map(json.loads, map(html.unescape, attributes)):
        assert sorted(set(found["texts"])) == found["texts"]
        assert np.shape(found["values"]) == (len(found["rows"]), len(found["columns"]))


def test_figures_are_named_and_described(text: str) -> None:
    figures = re.findall(r"<svg viewBox.*?</svg>", text, flags=re.DOTALL)
    assert len(figures) == 2 * 4  # for wide and for narrow screens
    for figure in figures:
        tree = ElementTree.fromstring(figure)  # noqa: S314 our own file
        named = (tree.get("aria-labelledby") or "").split()
        found = {each.get("id"): each.text for each in list(tree)[:2]}
        assert tree.get("role") == "img"
        assert list(found) == named
        assert all(found.values())


def test_the_same_results_give_the_same_page(
    text: str, results: dict[str, xr.DataTree], tmp_path: Path
) -> None:
    again = report(results, tmp_path / "again.html", title="A & B")
    assert again.read_text(encoding="utf-8") == text


def test_a_point_estimate_alone_is_reported_as_such(tmp_path: Path) -> None:
    text = report(rank(DATA, "avg", draws=0), tmp_path / "r.html").read_text(encoding="utf-8")
    assert "the order has an unknown uncertainty" in text
    assert '<section id="superiority"' not in text
    assert '<section id="agreement"' not in text


@pytest.mark.parametrize("method", ["plackett_luce", "bradley_terry_luce", "davidson_luce"])
def test_ballots_can_be_reported(tmp_path: Path, method: str) -> None:
    ballots = Ballots.from_rankings([["a", "b", "c"], ["b", "a"], ["c", "a", "b"]])
    result = rank(ballots, method, backend="map", random_seed=1)
    text = report(result, tmp_path / "r.html", data=ballots).read_text(encoding="utf-8")
    assert "<dt>ballots</dt><dd>3</dd>" in text
    assert "<dt>systems on a ballot</dt><dd>2 to 3</dd>" in text
    assert '<section id="questions"' not in text


def test_probits_of_battles_are_reported_without_elo(tmp_path: Path) -> None:
    battles = Comparisons([[0, 6, 7], [2, 0, 5], [1, 3, 0]], systems=["x", "y", "z"])
    result = rank(battles, "thurstone_mosteller", random_seed=1)
    text = report(result, tmp_path / "r.html").read_text(encoding="utf-8")
    headers = re.findall(r'<th scope="col"[^>]*>([^<]+)<', text)
    assert "win rate" in headers
    assert "Elo" not in headers


def test_battles_can_be_reported(tmp_path: Path) -> None:
    battles = Comparisons([[0, 6, 7], [2, 0, 5], [1, 3, 0]], systems=["x", "y", "z"])
    result = rank(battles, "bradley_terry", random_seed=1)
    text = report(result, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<dt>battles</dt><dd>24</dd>" in text
    assert '<section id="battles"' in text
    headers = re.findall(r'<th scope="col"[^>]*>([^<]+)<', text)
    assert headers[5:7] == ["Elo", "win rate"]


def test_what_is_known_of_battles_is_said_where_they_are_given(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "model_a": list("xyzxyz"),
            "model_b": list("yzxzxy"),
            "winner": ["a", "b", "tie", "a", "b", "a"],
            "judge": list("uvwstr"),
            "time": range(6),
        }
    )
    result = rank(table, unit="battle", random_seed=1)
    text = report(result, tmp_path / "r.html", data=table).read_text(encoding="utf-8")
    for fact in (
        "<dt>judges</dt><dd>6</dd>",
        "<dt>from, to</dt><dd>1970-01-01, 1970-01-01</dd>",
        "<dt>intervals by</dt><dd>battle</dd>",
    ):
        assert fact in text
    assert re.search(r"<bdi>unit</bdi></th>\s*<td[^>]*>battle</td>", text)


@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
def test_groups_have_intervals_where_the_data_are_known(tmp_path: Path) -> None:
    data = Responses([[1, 1, 0, 1], [0, 1, 0, 0]], systems=["b", "c"], groups=list("xyxy"))
    grades = Responses(
        [[0.9, 0.8, 0.3, 1.0], [0.2, 0.7, 0.1, 0.0]], systems=["b", "c"], groups=list("xyxy")
    )
    shown = {}
    for name, outcomes, method, given in (
        ("counts", data, "bayes", None),
        ("grades", grades, None, None),
        ("all", grades, None, grades),
    ):
        path = report(rank(outcomes, method, random_seed=1), tmp_path / "r.html", data=given)
        text = path.read_text(encoding="utf-8")
        table = text.partition('id="groups-table"')[2]
        cells = re.findall(r'<td class="number" data-key="([\d.]+)">([^<]+)</td>', table)[:2]
        assert [float(mean) for mean, _ in cells] == pytest.approx(
            [0.5, 1.0] if name == "counts" else [0.6, 0.9]
        )
        shown[name] = [cell for _, cell in cells]
    assert shown["grades"] == ["0.600", "0.900"]
    for cell in (*shown["counts"], *shown["all"]):
        low, high = map(float, re.findall(r"[\d.]+", cell)[1:])
        assert low < high
    assert "the intervals of such groups may be too narrow" in text


def test_scores_by_group_are_those_of_rankings_by_group(tmp_path):
    chances = np.array([[[0.3]], [[0.5]], [[0.8]]])
    outcomes = (np.random.default_rng(0).random((3, 60, 8)) < chances).astype(int)
    data = Responses(outcomes, groups=["x", "y"] * 30)
    text = report(rank(data, random_seed=1), tmp_path / "r.html", data=data).read_text("utf-8")
    table = text.partition('id="groups-table"')[2]
    for tree in rank_by_group(data).values():
        ends = (tree["ranking"][f"score_{end}"].values.max() for end in ("lower", "upper"))
        assert "[{:.3f}, {:.3f}]".format(*ends) in table


def test_scores_of_a_small_group_have_fewer_decimals(tmp_path: Path) -> None:
    outcomes = np.random.default_rng(0).integers(0, 2, size=(3, 408, 3))
    data = Responses(outcomes, groups=["large"] * 400 + ["small"] * 8)
    text = report(rank(data, random_seed=1), tmp_path / "r.html", data=data).read_text("utf-8")
    table = text.partition('id="groups-table"')[2]
    cells = re.findall(r'<td class="number" data-key="[\d.]+">([^<]+)</td>', table)[:2]
    assert [len(cell.split()[0].partition(".")[2]) for cell in cells] == [3, 2]


@pytest.mark.parametrize(
    ("outcomes", "absent"),
    [
        ([[[1, 0], [0, 0]]], ("questions", "superiority", "probabilities")),
        ([[[0, 0], [0, 0]], [[0, 0], [0, 0]]], ("questions",)),
    ],
    ids=["one system", "all wrong"],
)
def test_comparisons_need_something_to_compare(outcomes, absent, tmp_path: Path) -> None:
    page = report(rank(outcomes, "bayes", random_seed=1), tmp_path / "r.html")
    named = set(re.findall(r'<section id="([\w-]+)"', page.read_text(encoding="utf-8")))
    known = {"questions", "superiority", "probabilities", "data"}
    assert named & known == known.difference(absent)


def test_one_system_has_no_ranks(tmp_path: Path) -> None:
    page = report(rank([[[1, 0], [0, 0]]], random_seed=1), tmp_path / "r.html")
    text = page.read_text(encoding="utf-8")
    headers = re.findall(r'<th scope="col"[^>]*>([^<]+)<', text)[:6]
    assert headers[:2] == ["system", "lcb 5%"]
    assert not {"lcb rank", "95% ranks", "joint ranks", "Pr(best)"} & set(headers)
    assert "Sorted by" not in text
    assert "same outcome of every system" not in text


def test_downloads_hold_no_formula(tmp_path: Path) -> None:
    data = Responses([[[1, 0]], [[0, 0]]], systems=["=SUM(A1)", "b"])
    text = report(rank(data, random_seed=1), tmp_path / "r.html").read_text(encoding="utf-8")
    (address,) = re.findall(r'download="leaderboard.csv" href="data:[^,]*,([^"]*)"', text)[:1]
    assert base64.b64decode(address).decode().splitlines()[1].startswith("1,'=SUM(A1),")


def test_numbers_of_further_columns_are_rounded(
    results: dict[str, xr.DataTree], tmp_path: Path
) -> None:
    columns = pd.DataFrame({"cost": [1.23456789, 0.0123456, 41.5]}, index=SYSTEMS)
    page = report(results["bayes"], tmp_path / "r.html", columns=columns)
    text = page.read_text(encoding="utf-8")
    assert {"1.2346", "0.0123", "41.5000"} <= set(re.findall(r">([\d.]+)</td>", text))


def test_further_columns_have_a_pareto_figure_each(
    results: dict[str, xr.DataTree], tmp_path: Path
) -> None:
    columns = pd.DataFrame({"cost": [3.0, 1.0], "licence": ["open", "closed"]}, index=["b", "c"])
    page = report(results["bayes"], tmp_path / "r.html", columns=columns)
    text = page.read_text(encoding="utf-8")
    assert text.count('id="pareto-figure-') == text.count('id="pareto-figure-1-')
    assert "Without further columns: " in text
    with pytest.raises(ValueError, match="columns must have systems of the result as its index"):
        report(results["bayes"], tmp_path / "r.html", columns=columns.set_axis(["x", "y"]))


def test_results_from_other_data_are_a_history(tmp_path: Path) -> None:
    old = rank(DATA.select(systems=["b", "c"]), "bayes", random_seed=1)
    new = rank(DATA, "bayes", random_seed=1)
    old.attrs["created_at"] = "2020-01-02T03:04:05+00:00"
    text = report({"new": new, "old": old}, tmp_path / "r.html").read_text(encoding="utf-8")
    history = text[text.index('<section id="history"') :]
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)<', history)[:3] == ["system", "old", "new"]
    assert '<section id="agreement"' not in text
    assert new.attrs["fingerprint"] in text
    assert old.attrs["fingerprint"] not in text


def test_methods_that_failed_and_advice_are_in_words(
    results: dict[str, xr.DataTree], tmp_path: Path
) -> None:
    failed = {"mle": "no finite estimate exists: use backend='map'"}
    text = report(results["bayes"], tmp_path / "r.html", failed=failed).read_text(encoding="utf-8")
    assert "mle gave no result: no finite estimate exists: use setting “backend” to “map”" in text


def test_prior_sensitivity_has_a_section(results: dict[str, xr.DataTree], tmp_path: Path) -> None:
    study = xr.Dataset(
        {"rank": (("prior", "system"), [[1, 2, 3], [1, 3, 2]])},
        {"prior": ["normal(0, 1)", "flat"], "system": SYSTEMS},
        attrs={"verdict": "One pair turns."},
    )
    page = report(results, tmp_path / "r.html", prior_sensitivity=study)
    text = page.read_text(encoding="utf-8")
    assert '<section id="sensitivity"' in text
    assert "One pair turns." in text


def test_nothing_is_left_when_writing_fails(
    results: dict[str, xr.DataTree], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="path must be in an existing folder"):
        report(results, tmp_path / "absent" / "r.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        report(results, tmp_path / "folder")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_results_of_one_method_are_told_apart(results: dict[str, xr.DataTree]) -> None:
    bayes = results["bayes"]
    assert list(name_results([bayes, bayes, bayes])) == [
        "bayes",
        "bayes (exact)",
        "bayes (exact) 2",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "results must hold one result"),
        ({"x": xr.DataTree()}, "have a group 'ranking'"),
        (None, r"what rank\(\) returned; got NoneType"),
        ("result.nc", r"what rank\(\) returned; got str"),
        ([3], r"what rank\(\) returned; got int"),
    ],
)
def test_what_is_no_result_is_refused(given: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        report(given, tmp_path / "r.html")  # type: ignore[arg-type]


def test_columns_that_are_no_table_are_refused(tmp_path):
    result = rank([[[1, 1]], [[0, 0]]], "avg", random_seed=1, draws=20)
    with pytest.raises(ValueError, match=r"columns must be a pandas\.DataFrame; got int"):
        report(result, tmp_path / "r.html", columns=3)
