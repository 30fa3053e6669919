"""Schemes as records and files."""

from pathlib import Path

import pytest

from bayesrank.rubrics import SCHEMES, SIGNALS, Rule, Scheme, Threshold, read_schemes

RULES = (Rule("yes", "is_correct"),)


def test_every_shipped_scheme_reads_known_signals_only():
    for scheme in SCHEMES.values():
        assert set(scheme.signals) <= set(SIGNALS), scheme.name
        assert scheme.title
        assert scheme.source


def test_published_weights():
    assert SCHEMES["verifier_only"].weights == (0.0, 0.0, 0.1, 1.0)
    assert SCHEMES["difficulty_adjusted"].weights == (0.0, 0.5, 0.75, 1.0)
    assert SCHEMES["input_output_profile"].weights is None


def test_a_scheme_is_read_from_a_file(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        [predicates]
        long = "token_ratio > limit"
        [schemes.brief]
        categories = ["wrong", "long", "brief"]
        rules = [
            { category = "wrong", when = "not is_correct" },
            { category = "long", when = "long" },
        ]
        otherwise = "brief"
        weights = [0, 0.5, 1]
        thresholds.limit = { signal = "token_ratio", percentile = 90, where = "is_correct" }
        """
    )
    scheme = read_schemes(path)["brief"]
    assert scheme.thresholds["limit"] == Threshold("token_ratio", 90, "group", "is_correct")
    assert scheme.signals == ("is_correct", "token_ratio")
    assert scheme.weights == (0.0, 0.5, 1.0)


def test_schemes_of_a_file_share_predicates_and_thresholds(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        [predicates]
        long = "token_ratio > limit"
        surprising = "prompt_bpt > odd"
        [thresholds]
        limit = { signal = "token_ratio", percentile = 90 }
        odd = { signal = "prompt_bpt", percentile = 50, by = "global" }
        [schemes.length]
        categories = ["short", "long"]
        by = "system"
        rules = [{ category = "long", when = "long" }]
        otherwise = "short"
        [schemes.both]
        categories = ["neither", "long", "surprising"]
        by = "system"
        thresholds.limit = { signal = "token_ratio", percentile = 80 }
        rules = [
            { category = "long", when = "long" },
            { category = "surprising", when = "surprising" },
        ]
        otherwise = "neither"
        """
    )
    schemes = read_schemes(path)
    # What a scheme does not use is none of its own.
    assert schemes["length"].thresholds == {"limit": Threshold("token_ratio", 90, "system")}
    assert list(schemes["length"].predicates) == ["long"]
    assert schemes["both"].thresholds == {
        "limit": Threshold("token_ratio", 80, "system"),
        "odd": Threshold("prompt_bpt", 50, "global"),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[scheme.a]", "keys of the file must be among predicates, thresholds, schemes; got"),
        ("[thresholds]\nlimit = { percent = 90 }", "keys of limit must be among signal"),
        ("[predicates]\nlong = 'len(x)'", "predicate must consist of names"),
        ("[schemes.a]\ncategories = ['x', 'y']", "rules must be given for the scheme a"),
        ("[schemes.a]\nlabels = ['x', 'y']", "keys of a must be among categories"),
        (
            "[schemes.a]\ncategories = ['x', 'y']\nrules = [{ category = 'x' }]",
            "a rule of a must have the keys category, when; got no 'when'",
        ),
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, content: str, message: str):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_schemes(path)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"categories": ("yes",)}, "categories of s must be two or more different labels"),
        ({"categories": ("no", "maybe")}, "must name one of its categories no, maybe; got 'yes'"),
        ({"rules": ()}, "rules of s must be one or more; got none"),
        ({"weights": (1.0,)}, "weights of s must be 2 finite numbers"),
        ({"otherwise": "perhaps"}, "must name one of its categories yes, no; got 'perhaps'"),
        ({"predicates": {"a": "b", "b": "not a"}}, "must not refer to themselves; got a -> b -> a"),
    ],
)
def test_records_that_contradict_themselves_are_refused(record, message: str):
    fields = {"name": "s", "categories": ("yes", "no"), "rules": RULES, **record}
    with pytest.raises(ValueError, match=message):
        Scheme(**fields)


def test_thresholds_out_of_range_are_refused():
    with pytest.raises(ValueError, match="percentile must be between 0 and 100; got 101"):
        Threshold("x", 101)
    with pytest.raises(ValueError, match="by must be one of global, system, group; got 'all'"):
        Threshold("x", 50, by="all")  # type: ignore[arg-type]
