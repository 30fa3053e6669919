"""Messages of the package in the language of the command line."""

import re
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from bayesrank import METHODS, Responses, rank
from bayesrank.commands.cli import main
from bayesrank.commands.flag_messages import Flag, flags_of, in_flags
from bayesrank.commands.flags import backend_flags, method_flags, own_flags
from bayesrank.errors import DataError, InputError
from bayesrank.ranking import BACKENDS

Run = Callable[..., Result]

RANK = flags_of(main.commands["rank"].params)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lcb must be between 0 and 1; got 2", "--lcb must be between 0 and 1; got 2"),
        ("random_seed must be None or an integer", "--seed must be left out or an integer"),
        ("format must be one of npz; got 'x'", "--input-format must be one of npz; got 'x'"),
        ("backend of bayes must be exact", "--backend of bayes must be exact"),
        ("paths must exist; got 'target=1'", "INPUT must exist; got 'target=1'"),
        ("data must hold two; got 1", "INPUT must hold two; got 1"),
        ("path must end in .nc; got 'x'", "--output must end in .nc; got 'x'"),
        ("use target='benchmark'", "use --target benchmark"),
        ('use backend="map", whose prior', "use --backend map, whose prior"),
        ("with target='population'; or draws=0.", "with --target population; or --draws 0."),
        ("pass scale=(low, high) for scores", "pass --scale LOW,HIGH for scores"),
        ("pass scale=(0, 100) for scores", "pass --scale 0.0,100.0 for scores"),
        ("(pass task=...)", "(pass --task NAME)"),
        ("for ci_prob = 0.9; got", "for --ci-prob 0.9; got"),
        ("0 < ci_prob <= 1", "0 < --ci-prob <= 1"),
        ("prior='normal(0, 2)'", "--prior 'normal(0, 2)'"),
        # Words that only look like options, and what somebody typed.
        ("the target is met with k = 4", "the target is met with k = 4"),
        ("metrics must be among f(task=1, draws=2)", "metrics must be among f(task=1, draws=2)"),
        ("got 'draws=3' and \"prior=1\"", "got 'draws=3' and \"prior=1\""),
        ("some.draws=3", "some.draws=3"),
        ("prior_outcomes must be given", "R0 in an .npz archive must be given"),
    ],
)
def test_arguments_become_flags(text: str, said: str) -> None:
    assert in_flags(text, RANK).replace("0,100", "0.0,100.0") == said


def test_truth_values_are_flags_alone() -> None:
    flags = flags_of(method_flags(METHODS["bayes"]))
    assert in_flags("set use_prior_outcomes=True", flags) == "set --use-prior-outcomes"
    assert in_flags("set use_prior_outcomes=False", flags) == "set --no-use-prior-outcomes"


@given(st.text())
def test_messages_without_flags_stay_as_they_are(text: str) -> None:
    assert in_flags(text, {}).replace("R0 in an .npz archive", "prior_outcomes") == text


@given(st.sampled_from(sorted(RANK)), st.integers(-99, 99))
def test_every_option_is_named_by_its_flag(name: str, value: int) -> None:
    flag = RANK[name].name
    said = in_flags(f"{name} must be 1; got {value}: use {name}={value}", RANK)
    assert said == f"{flag} must be 1; got {value}: use {flag} {value}"


def test_options_of_the_command_come_before_those_of_a_method() -> None:
    """Words for `weights` of hodge_rank are checked by its flag before it runs."""
    taken = own_flags(main.commands["rank"])
    params = [*main.commands["rank"].params, *method_flags(METHODS["hodge_rank"], taken=taken)]
    assert flags_of(params)["weights"] == Flag("--weights", value="W0,W1,...")


def test_an_error_may_have_a_remedy_for_each_surface() -> None:
    error = DataError("x must be 1; got 2", in_python="call f()", in_shell="pass x=1")
    assert str(error) == "x must be 1; got 2: call f()"
    assert error.in_shell == "x must be 1; got 2: pass x=1"
    assert InputError("x must be 1").in_shell == "x must be 1"
    with pytest.raises(ValueError, match="x must be 1"):
        raise error


# Back ends


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_options_of_a_back_end_are_flags(run: Run, backend: str) -> None:
    import inspect

    parameters = inspect.signature(BACKENDS[backend]).parameters.values()
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    flags = backend_flags(backend, taken=own_flags(main.commands["rank"]))
    assert [flag.opts[0] for flag in flags] == [f"--{name.replace('_', '-')}" for name in names]
    name = next(
        name
        for name, row in METHODS.items()
        if backend in row.backends and row.options.keys().isdisjoint(names)
    )
    shown = run("rank", "--method", name, "--backend", backend, "--help").stdout
    for flag in flags:
        assert flag.opts[0] in shown
    assert (f"Options of the back end {backend}" in shown) == bool(names)
    # The word none would be a calibration, and the default depends on the method.
    assert not any("[default: none]" in (f.help or "") for f in flags if "--calibration" in f.opts)


def test_options_of_a_back_end_reach_it(run: Run, log: Path) -> None:
    given = ("rank", log, "--method", "davidson", "--seed", 1)
    calibrated = run(*given).stdout
    assert run(*given, "--calibration", "none").stdout != calibrated
    assert run(*given, "--calibration", "sandwich").stdout == calibrated
    refused = run(*given, "--calibration", "maybe", code=2).stderr
    assert "--calibration must be one of sandwich, none; got 'maybe'" in refused


def test_unknown_options_list_those_of_the_back_end(run: Run, log: Path) -> None:
    given = ("rank", log, "--method", "davidson", "--backend", "nuts")
    refused = run(*given, "--tunes", 3, code=2).stderr
    for flag in ("--tie-prior", "--tune", "--nuts-sampler", "--calibration"):
        assert flag in refused
    known = "tie_prior, formula, covariate_prior"
    message = f"among: {known}, calibration, log_likelihood; got 'foo'"
    with pytest.raises(ValueError, match=message):
        rank([[1, 0], [0, 1]], "davidson", foo=1)
    message = f"among: {known}, chains, tune, .*; got 'foo'"
    with pytest.raises(ValueError, match=message):
        rank([[1, 0], [0, 1]], "davidson", backend="nuts", foo=1)


# Names of options


def _refusals() -> list[tuple[str, str, str, object]]:
    """Return options with a value that none of their kind can have, by method and back end."""
    rows = []
    for row in METHODS.values():
        for name, parameter in row.options.items():
            kind = parameter.annotation
            if kind.startswith("Literal") or "PriorLike" in kind or name in ("ties", "tie_policy"):
                value: object = "nonsense"
            elif name == "quantile":
                value = 2.0
            else:
                continue
            rows += [(row.name, backend, name, value) for backend in row.backends]
    return rows


@pytest.mark.parametrize(("method", "backend", "option", "value"), _refusals())
def test_errors_name_the_option_as_the_method_does(method, backend, option, value) -> None:
    rng = np.random.default_rng(1)
    data = Responses(rng.integers(0, 2, (4, 8, 4)), groups=list("aabbccdd"))
    options = {**METHODS[method].example, option: value}
    with pytest.raises(ValueError, match=rf"^{option} must be ") as caught:
        rank(data, method, backend=backend, draws=10, random_seed=1, **options)
    other = "tie_policy" if option == "ties" else "ties"
    assert not re.search(rf"\b{other}\b", str(caught.value))


# What a user of the command line reads


PYTHON = re.compile(
    r"read_\w+|from_long|from_battles|categorize|Responses\(|DataError|ValueError|None"
    r"|METHODS|PRESETS|point_estimate|\b[a-z_]+=(?!=)"
)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "runs.npz"
    np.savez(path, R=[[[1, 1], [1, 0]], [[0, 0], [0, 1]], [[0, 0], [1, 0]]])
    return path


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,winner\na,b,a\nb,c,tie\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rank", "ARCHIVE", "--method", "bayes", "--use-prior-outcomes"), "R0 in an .npz"),
        (("rank", "ARCHIVE", "--method", "avg", "--prior", 2), "--prior must be left out"),
        (("rank", "ARCHIVE", "--method", "davidson", "--backend", "mle", "--prior", 2),
         "use --backend map"),
        (("rank", "ARCHIVE", "--method", "davidson", "--backend", "mle", "--tie-prior", 1),
         "--tie-prior must be 'flat' for --backend mle"),
        (("rank", "ARCHIVE", "--method", "rasch", "--difficulty-prior", -1), "--difficulty-prior"),
        (("rank", "ARCHIVE", "--method", "rasch_mml", "--quantile", 2), "--quantile must be"),
        (("rank", "ARCHIVE", "--method", "pass_at_k", "--k", 5), "--k must be"),
        (("rank", "ARCHIVE", "--task", "x"), "--task must be left out"),
        (("rank", "ARCHIVE", "--method", "xyz"), "`bayesrank methods` lists them"),
        (("rank", "ARCHIVE", "--weights", "0"), "--weights must be two or more"),
        (("rank", "ARCHIVE", "--scale", "2,1"), "--scale must be two finite numbers"),
        (("rank", "ARCHIVE", "--scale", "0,1", "--method", "rasch"), "--edges E1,..."),
        (("rank", "ARCHIVE", "--edges", "0.5"), "--edges must be left out for categories"),
        (("rank", "BATTLES", "--scale", "0,1", "--method", "davidson"), "--scale must be left out"),
        (("rank", "BATTLES", "--method", "avg"), "INPUT must be"),
        (("rank", "BATTLES", "--method", "davidson", "--target", "benchmark"), "--target must be"),
        (("rank", "ARCHIVE", "--method", "bradley_terry", "--order-effect", "--draws", 0),
         "rank battles"),
        (("evaluate", "ARCHIVE", "--metrics", "bayes(weights=(0,1,2))"), "--metrics must give"),
        (("evaluate", "ARCHIVE", "--prior-weight", 1), "R0 in an .npz archive"),
        (("evaluate", "ARCHIVE", "--scale", "0,1", "--metrics", "bayes"), "with --edges E1,..."),
        (("evaluate", "ARCHIVE", "--scale", "0,1", "--metrics", "bayes", "--pairs"),
         "with --edges E1,..."),
        (("plan", "ARCHIVE", "--goal", "top_k"), "--top must be"),
        (("plan", "ARCHIVE", "--error", 2), "--error must be"),
        (("check", "ARCHIVE", "--method", "nonsense"), "`bayesrank methods` lists them"),
        (("report", "ARCHIVE", "--methods", "elo(foo=1)", "-o", "x.html"), "options of elo must"),
        (("show", "absent.nc"), "RESULT must exist"),
        (("cite", "nonsense"), "METHOD must be the name"),
    ],
)  # fmt: skip
def test_errors_speak_in_flags(
    run: Run, archive: Path, battles: Path, arguments: tuple[object, ...], said: str
) -> None:
    files = {"ARCHIVE": archive, "BATTLES": battles}
    given = [files.get(str(each), each) for each in arguments]
    error = run(*given, code=2).stderr.splitlines()[-1]
    assert error.startswith("Error: ")
    assert said in error
    typed = {str(each) for each in arguments} | {"got None"}
    for word in typed:
        error = error.replace(word, "")
    assert not PYTHON.search(error), error


def test_the_table_of_methods_speaks_in_flags(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "scores.csv"
    rows = [
        f"{name},q{m},{m / 8 + shift}" for name, shift in (("a", 0), ("b", 0.1)) for m in range(6)
    ]
    log.write_text("\n".join(["model,question,score", *rows]))
    printed = run("check", log).stdout
    assert "turn them into categories with --edges E1,..." in printed
    assert not PYTHON.search(printed)


def test_remedies_of_another_command_name_it(run: Run, log: Path, tmp_path: Path) -> None:
    rows = log.read_text().splitlines()
    one = [rows[0], *(row for row in rows[1:] if ",q0,0," in row)]
    log.write_text("\n".join(one))
    page = tmp_path / "page.html"
    error = run("report", log, "--methods", "avg", "-o", page, code=2).stderr.splitlines()[-1]
    assert "bayesrank rank --target benchmark" in error


@pytest.mark.filterwarnings("default::bayesrank.errors.CalibrationWarning")
def test_warnings_speak_in_flags(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "few.npz", R=rng.integers(0, 2, (3, 4, 3)))
    stderr = run("rank", tmp_path / "few.npz", "--method", "rasch", "--target", "population").stderr
    (warning,) = [line for line in stderr.splitlines() if line.startswith("Warning: ")]
    assert "intervals for other questions may be too narrow" in warning
    assert not PYTHON.search(stderr), stderr


def test_commands_name_what_they_are_given() -> None:
    flags = flags_of(main.commands["cite"].params)
    assert flags["method"].name == "METHOD"
    assert flags_of([click.Argument(["paths"], metavar="[INPUT]...")])["data"].name == "INPUT"


def test_values_of_python_have_the_words_of_files():
    assert in_flags("scale must be numbers; got None", {}) == "scale must be numbers; got none"
    assert in_flags("resolved must be 0 or 1; got True in a", {}).endswith("; got true in a")
    assert in_flags("name must be short; got Nonesuch", {}).endswith("; got Nonesuch")


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("rubric", "none.csv"), "ATTEMPTS must exist"),
        (("check", "log.csv", "--method", "nope"), "--method must be the name of a method"),
        (("study", "log.csv", "--methods", "avg", "--n", "9"), "--n must be integers from 1 to 2"),
        (("methods", "nope"), "NAME must be the name of a method"),
    ],
)
def test_messages_name_the_arguments_of_the_command_that_runs(
    run, tmp_path, monkeypatch, arguments, start
):
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{q},{t},{q % 2}" for name in "ab" for q in range(4) for t in (0, 1)]
    (tmp_path / "log.csv").write_text("\n".join(["model,question,trial,score", *rows, ""]))
    assert f"Error: {start}" in run(*arguments, code=2).stderr
