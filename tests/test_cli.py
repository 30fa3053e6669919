"""The command line, from arguments to what is printed, written and returned."""

import csv
import inspect
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import Result

from bayesrank import METHODS, PRESETS, leaderboard, rank
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.commands.cli import main
from bayesrank.commands.flags import method_flags, own_flags, parameter_type
from bayesrank.reporting.citations import reference_text
from bayesrank.results.leaderboard import COLUMNS, POINT_COLUMNS
from bayesrank.results.storage import load

Run = Callable[..., Result]


def test_rank_prints_a_leaderboard(run: Run, log: Path) -> None:
    lines = run("rank", log, "--seed", 1).stdout.splitlines()
    assert lines[0] == f"{DEFAULT_METHOD} (back end mml, target benchmark, 6 questions each)"
    assert lines[1].split("  ")[0] == "rank"
    ranks = [line.split()[:2] for line in lines[2:5]]
    assert ranks == [["1", "good"], ["2", "fair"], ["3", "bad"]]


def test_rank_is_the_function_rank(run: Run, log: Path) -> None:
    """The command adds nothing to, and takes nothing from, the function of the same name."""
    from bayesrank import read_responses

    printed = run(
        *("rank", log, "--method", "avg", "--target", "population", "--draws", 50, "--seed", 3),
        *("--ci-prob", 0.8, "--lcb", 0.1, "--format", "json"),
    )
    expected = leaderboard(
        rank(
            read_responses(log),
            "avg",
            target="population",
            draws=50,
            random_seed=3,
            ci_prob=0.8,
            lcb=0.1,
        )
    )
    assert json.loads(printed.stdout) == expected.to_dict(orient="records")


def test_rank_has_the_defaults_of_the_function(run: Run) -> None:
    parameters = inspect.signature(rank).parameters
    (command,) = [each for name, each in main.commands.items() if name == "rank"]
    for option in command.params:
        if option.name in ("ci_prob", "lcb"):
            assert option.default == parameters[option.name].default


def test_json_is_a_list_of_rows(run: Run, log: Path) -> None:
    rows = json.loads(run("rank", log, "--format", "json").stdout)
    assert [row["system"] for row in rows] == ["good", "fair", "bad"]
    assert tuple(rows[0]) == COLUMNS
    assert isinstance(rows[0]["rank"], int)


def test_csv_has_the_same_numbers_as_json(run: Run, log: Path) -> None:
    options = ("rank", log, "--seed", 1, "--format")
    rows = list(csv.DictReader(io.StringIO(run(*options, "csv").stdout)))
    for row, expected in zip(rows, json.loads(run(*options, "json").stdout), strict=True):
        assert row["system"] == expected["system"]
        assert float(row["lcb"]) == expected["lcb"]


def test_chosen_columns_without_a_legend_end_the_output(run: Run, log: Path) -> None:
    printed = run("rank", log, "--seed", 1, "--columns", "system,score")
    assert "" not in (printed.stdout + printed.stderr).splitlines()


def test_markdown_has_the_columns_of_the_table(run: Run, log: Path) -> None:
    text, _, note = run("rank", log, "--seed", 1, "--format", "markdown").stdout.partition("\n\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    header, _, *table = run("rank", log, "--seed", 1).stdout.splitlines()
    assert cells[0][:3] == ["rank", "system", "score"]
    # The number of questions that all systems have is in the line above the table.
    place = cells[0].index("questions")
    assert {row.pop(place) for row in cells[2:]} == {"6"}
    assert "6 questions each" in header
    assert [" ".join(row) for row in cells[2:]] == [" ".join(row.split()) for row in table]
    assert not note


def test_shrunk_scores_say_so(run: Run, log: Path) -> None:
    for options in ((), ("--format", "markdown")):
        printed = run("rank", log, "--method", "bayes", "--seed", 1, *options).stdout
        assert "The score is shrunk towards 0.5" in printed


def test_draws_0_prints_the_point_estimate_alone(run: Run, log: Path) -> None:
    rows = json.loads(run("rank", log, "--draws", 0, "--format", "json").stdout)
    assert [tuple(row) for row in rows] == 3 * [POINT_COLUMNS]


def test_messages_go_to_stderr(run: Run, log: Path) -> None:
    result = run("rank", log, "--format", "json")
    assert "1 of 90 outcomes missing" in result.stderr
    json.loads(result.stdout)


@pytest.mark.parametrize("tie_policy", ["half", "ignore"])
def test_options_of_the_method_are_flags(run: Run, log: Path, tie_policy: str) -> None:
    from bayesrank import read_responses

    printed = run(
        *("rank", log, "--method=rank_centrality", "--tie-policy", tie_policy),
        *("--smoothing", 0.5, "--draws", 0, "--format", "json"),
    )
    tree = rank(
        read_responses(log), "rank_centrality", tie_policy=tie_policy, smoothing=0.5, draws=0
    )
    assert json.loads(printed.stdout) == leaderboard(tree).to_dict(orient="records")


def test_preset_options_can_be_overridden(run: Run, log: Path) -> None:
    options = ("rank", log, "--draws", 0, "--format", "json", "--method")
    fixed, changed = (
        json.loads(run(*options, *method).stdout)
        for method in (("pass_at_k_2",), ("pass_at_k_2", "--k", 1))
    )
    assert fixed[0]["score"] > changed[0]["score"] == pytest.approx(0.6)


def test_help_shows_the_options_of_the_method(run: Run) -> None:
    shown = run("rank", "--method", "rank_centrality", "--help").stdout
    assert "Options of rank_centrality:" in shown
    assert "--tie-policy" in shown
    assert "[default: half]" in " ".join(shown.split())  # wherever the line ends
    assert "--tie-policy" not in run("rank", "--help").stdout


def test_help_shows_what_a_preset_fixes(run: Run) -> None:
    assert "[required]" in run("rank", "--method", "pass_at_k", "--help").stdout
    assert "[default: 2]" in run("rank", "--method", "pass_at_k_2", "--help").stdout


@pytest.mark.parametrize("name", METHODS)
def test_every_option_is_a_flag_that_no_other_hides(name: str) -> None:
    taken = {flag for option in main.commands["rank"].params for flag in option.opts}
    flags = [option.opts[0] for option in method_flags(METHODS[name], taken=taken)]
    # One that a flag of the command would hide is called by the method too.
    words = [option.replace("_", "-") for option in METHODS[name].all_options]
    prefix = name.replace("_", "-")
    assert flags == [f"--{prefix}-{w}" if f"--{w}" in taken else f"--{w}" for w in words]
    assert not taken.intersection(flags)


@pytest.mark.parametrize("name", METHODS | PRESETS)
def test_everything_is_said_about_every_method(run: Run, name: str) -> None:
    row = METHODS[PRESETS[name].method if name in PRESETS else name]
    shown = run("methods", name).stdout
    assert shown.startswith(f"{name}: {row.title}")
    flags = method_flags(row, taken=own_flags(main.commands["rank"]))
    for flag, parameter in zip(flags, row.all_options.values(), strict=True):
        line = next(line for line in shown.splitlines() if line.startswith(flag.opts[0]))
        assert len(line.split()) > 2, f"the docstring must describe {parameter}"
    for key in row.citations:
        assert reference_text(key) in shown


def test_methods_lists_the_catalog(run: Run) -> None:
    lines = run("methods").stdout.splitlines()
    # "their mean grade over questions" ends the sentence that the header begins.
    assert lines[0].endswith("ranks systems by")
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    left_out = "Columns left out: family, back ends.\n"  # the command has no --format
    assert run("methods").stderr == left_out
    lines = run("methods", "--presets").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(PRESETS)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", "3", 3),
        ("float", "-0.5", -0.5),
        ("float | None", "none", None),
        ("float | None", "2", 2.0),
        ("str | None", "none", None),
        ("Literal['half', 'ignore']", "half", "half"),
        ("TiePolicy", "half", "half"),
        ("Sequence[float]", "0,0.5,1", (0.0, 0.5, 1.0)),
        ("Sequence[float] | None", "1", (1.0,)),
    ],
)
def test_flags_are_parsed_by_annotation(annotation: str, text: str, value: object) -> None:
    kind = parameter_type(annotation)
    assert kind is not None
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("annotation", "text"),
    [("int", "1.5"), ("int | None", "no"), ("Sequence[float]", "1;2"), ("Literal['a']", "b")],
)
def test_flags_refuse_what_their_annotation_does_not_admit(annotation: str, text: str) -> None:
    kind = parameter_type(annotation)
    assert kind is not None
    with pytest.raises(click.BadParameter, match=text):
        kind.convert(text, None, None)


def test_functions_are_no_flags() -> None:
    assert parameter_type("Callable[[float], float] | None") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "brda"], "Error: --method must be the name of a method"),
        (["--method", "pass_at_k"], "Error: --k must be given for pass_at_k"),
        (["--method", "pass_at_k", "--k", "9"], "Error: --k must be"),
        (["--method", "rank_centrality", "--tie-policy", "x"], "Error: --tie-policy must be"),
        (
            ["--method", "bayes", "--backend", "guess"],
            "Error: --backend of bayes must be one of exact, nuts; got 'guess'",
        ),
        (["--method", "bradley_terry_map", "--prior", "norml(0,1)"], "Error: --prior must be"),
        (["--lcb", "1.5"], "Error: --lcb must be between 0 and 1; got 1.5"),
        (["--draws", "-1"], "Error: --draws must be"),
        (["--task", "x"], "Error: --task must be left out"),
        (["--input-format", "x"], "Error: --input-format must be one of"),
        (["-o", "nowhere/result.nc"], "Error: nowhere: the folder of --output must exist"),
        (["-o", "result.txt"], "Error: --output must end in .nc or .zarr; got 'result.txt'"),
    ],
)
def test_errors_are_one_line(run: Run, log: Path, options: list[str], message: str) -> None:
    result = run("rank", log, *options, code=2)
    assert result.stderr.splitlines()[-1].startswith(message)
    assert sum(line.startswith("Error") for line in result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)


def test_unknown_options_list_the_known_ones(run: Run, log: Path) -> None:
    result = run("rank", log, "--method", "rank_centrality", "--ties", "half", code=2)
    assert "of rank_centrality (--tie-policy, --smoothing, --teleport); got --ties" in (
        result.stderr
    )


def test_a_command_without_input_says_so(run: Run) -> None:
    assert "Error: Missing argument 'INPUT...'" in run("rank", code=2).stderr


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x00\x01\x02"])
@pytest.mark.parametrize("name", ["log.npz", "log.csv", "log.eval", "log.json", "log.parquet"])
def test_damaged_files_are_errors(run: Run, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    result = run("rank", tmp_path / name, code=2)
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


def test_absent_files_are_errors(run: Run, tmp_path: Path) -> None:
    assert "nothing.npz" in run("rank", tmp_path / "nothing.npz", code=2).stderr
    assert "nothing.nc" in run("show", tmp_path / "nothing.nc", code=2).stderr


@pytest.mark.parametrize("name", ["result.nc", "result.zarr"])
def test_saved_results_show_the_same_table(run: Run, log: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ranked = run("rank", log, "-o", path)
    assert f"Wrote {path}" in ranked.stderr
    assert run("show", path).stdout == ranked.stdout
    assert run("show", path, "--format", "csv").stdout.count("\n") == 4
    np.testing.assert_array_equal(load(path)["ranking"]["rank"], [3, 1, 2])


def test_failing_to_write_keeps_the_old_file(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "result.nc")

    path = tmp_path / "result.nc"
    path.write_text("old")
    monkeypatch.setattr("xarray.DataTree.to_netcdf", fail)
    result = run("rank", log, "-o", path, code=2)
    assert f"Error: {path}: No space left on device" in result.stderr
    assert "good" in result.stdout
    assert path.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log.csv", "result.nc"]


def test_warnings_are_one_line(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from bayesrank.errors import ConvergenceWarning

    def warn_and_rank(*arguments: object, **options: object) -> object:
        warnings.simplefilter("always")
        warnings.warn("R-hat is high", ConvergenceWarning, stacklevel=2)
        return rank(*arguments, **options)

    monkeypatch.setattr("bayesrank.ranking.rank", warn_and_rank)
    result = run("rank", log)
    assert "Warning: R-hat is high" in result.stderr.splitlines()


def test_demo_writes_the_result_and_the_figures(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--output", tmp_path / "new" / "demo")
    names = ["leaderboard.png", "olympiad.nc", "superiority.png"]
    folder = tmp_path / "new" / "demo"
    assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        assert str(folder / name) in result.stdout
    table = result.stdout.splitlines()
    assert len([line for line in table if line.strip().split(" ")[0].isdigit()]) == 20
    assert len(leaderboard(load(folder / "olympiad.nc"))) == 20


def test_warmup_runs_the_back_ends_of_a_method(run: Run) -> None:
    shown = run("warmup", "borda", "pass_at_k_2")
    assert shown.stdout == "borda (bootstrap) is ready\npass_at_k (exact) is ready\n"


def assert_imports_nothing_slow(commands: list[list[str]]) -> None:
    """Run commands in a fresh interpreter and fail at the first that imports a slow module."""
    code = """
import json, sys
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.commands.cli import main
for arguments in json.loads(sys.argv[1]):
    main(arguments, standalone_mode=False)
    for name in ("pymc", "arviz", "matplotlib", "scipy.stats", "nutpie"):
        if name in sys.modules:
            sys.exit(f"{' '.join(arguments)} imports {name}")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_slow() -> None:
    assert_imports_nothing_slow([["--help"], ["--version"], ["methods"], ["rank", "--help"]])


def test_numpy_methods_import_nothing_slow(log: Path) -> None:
    commands = []
    for name, row in METHODS.items():
        if row.backends[0] in ("bootstrap", "exact"):
            command = ["rank", str(log), "--method", name, "--draws", "20"]
            for option, value in row.example.items():
                command += [f"--{option.replace('_', '-')}", str(value).strip("()")]
            commands.append(command)
    assert_imports_nothing_slow(commands)


def test_command_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bayesrank", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bayesrank, version ")


def test_interrupted_pipe_is_quiet(log: Path) -> None:
    """`bayesrank rank ... | head -1` must not end in a traceback."""
    command = f"{sys.executable} -m bayesrank methods --presets | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


class TestRealLogs:
    """Logs that the evaluation tools wrote themselves."""

    def ranks(self, run: Run, *arguments: object) -> dict[str, int]:
        rows = json.loads(run("rank", *arguments, "--format", "json").stdout)
        return {row["system"]: row["rank"] for row in rows}

    def test_inspect(self, run: Run, shared: Path) -> None:
        folder = shared / "logs" / "inspect"
        assert "arithmetic, toy_mc" in run("rank", folder, code=2).stderr
        ranks = self.ranks(run, folder, "--task", "arithmetic", "--scorer", "match")
        assert [name.split("/")[1] for name in ranks] == [
            "alpha-large",
            "beta-medium",
            "gamma-small",
        ]

    def test_lm_evaluation_harness(self, run: Run, shared: Path) -> None:
        folder = shared / "logs" / "lmeval" / "mock"
        assert "tiny_gen, tiny_mc" in run("rank", folder, code=2).stderr
        assert len(self.ranks(run, folder, "--task", "tiny_gen", "--filter", "take_first")) == 3

    def test_swe_bench(self, run: Run, shared: Path) -> None:
        files = sorted((shared / "logs" / "swebench").glob("*.json"))
        assert list(self.ranks(run, *files).values()) == [1, 2, 3]

    def test_ragged_archive(self, run: Run, shared: Path) -> None:
        path = shared / "data" / "misguided_attention_ragged.npz"
        ranks = self.ranks(run, path, "--weights", "0,0.5,1")
        assert len(ranks) == 59
        refused = run("rank", path, code=2).stderr
        assert "pass --scale LOW,HIGH" in refused
        assert "--weights W0,W1,..." in refused
