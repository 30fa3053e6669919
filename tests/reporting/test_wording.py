"""Sentences of the report, for each way in which a ranking may come out."""

import numpy as np
import pytest
import xarray as xr

from bayesrank import METHODS, Responses
from bayesrank.reporting.capabilities import capability
from bayesrank.reporting.citations import bibtex, reference_link, reference_text
from bayesrank.reporting.wording import headline, settings


def test_a_resolved_leader_is_named(three: xr.DataTree) -> None:
    assert headline(three) == (
        "high leads and is resolved from every other system at 95 % in a joint decision for all "
        "pairs; Pr(best) = 0.87."
    )


def test_no_winner_is_declared_where_the_order_is_open(make_result) -> None:
    assert headline(make_result([0.5, 0.45, 0.1], ["a", "b", "c"])) == (
        "a leads, but no winner should be declared: it is not resolved from b at 95 % in a joint "
        "decision for all pairs; Pr(best) = 0.87."
    )
    in_order = headline(make_result([0.44, 0.45, 0.5], ["c", "b", "a"]))
    assert "it is not resolved from b and c at 95 %" in in_order
    many = headline(make_result([0.5, 0.45, 0.44, 0.43, 0.42], list("abcde")))
    assert "it is not resolved from 4 systems at 95 %" in many


def test_a_leader_resolved_from_its_neighbour_alone_has_not_won(make_result) -> None:
    tree = make_result([0.9, 0.5, 0.1], ["a", "b", "c"])
    ranking = tree["ranking"].to_dataset()
    ranking["resolved"][0, 2] = False
    tree["ranking"] = ranking
    assert "no winner should be declared: it is not resolved from c at" in headline(tree)


def test_one_system_has_no_rival(make_result) -> None:
    assert headline(make_result([0.5], ["a"])) == "a is the only system."


def test_ties_at_the_top_share_the_lead(make_result) -> None:
    assert headline(make_result([0.5, 0.5, 0.1], ["a", "b", "c"])) == (
        "a and b lead with equal scores: no winner should be declared; Pr(best) = 0.87."
    )


def test_systems_that_share_the_lead_differ_in_how_probable_it_is(make_result) -> None:
    tree = make_result([0.5, 0.5, 0.1], ["a", "b", "c"])
    tree["ranking"]["prob_best"].values[:2] = 0.144, 0.171
    assert headline(tree).endswith("no winner should be declared; Pr(best) = 0.14 to 0.17.")


def test_equal_scores_have_no_leader(make_result) -> None:
    assert headline(make_result([0.5, 0.5], ["a", "b"])) == "All systems have the same score."


def test_a_point_estimate_is_not_sure_of_itself(make_result) -> None:
    sentence = headline(make_result([0.5, 0.1], ["a", "b"], draws=False))
    assert sentence == "a leads. Without draws, Pr(best) is unknown."


def test_settings_leave_out_what_is_none(three: xr.DataTree) -> None:
    facts = settings(three)
    assert "prior" not in facts
    assert facts["draws"] == "none, only the point estimate"
    assert facts["target"].startswith("benchmark: the ranking is for these questions")


def test_every_citation_can_be_read_and_is_given_once() -> None:
    keys = [key for row in METHODS.values() for key in row.citations]
    for key in keys:
        text = reference_text(key)
        assert not set("\\{}$") & set(text), text
        assert text.endswith((".", "?"))
    assert bibtex([*keys, *keys]) == bibtex(keys)
    assert reference_link("bradley1952rank") == "https://doi.org/10.1093/biomet/39.3-4.324"
    assert reference_link("borda1781memoire") is None


def test_what_can_run_depends_on_the_outcomes() -> None:
    fractions, graded = Responses([[0.5, 0.25]]), Responses([[[0, 1, 2]]], weights=[0, 0.5, 1])
    assert not capability(METHODS["avg"], fractions).reason
    assert not capability(METHODS["bayes"], graded).reason
    for data in (fractions, graded):
        assert capability(METHODS["elo"], data).reason.startswith("outcomes must be")


def test_what_to_mind_is_said() -> None:
    one_trial = Responses([[1, 1], [0, 1]])
    note = capability(METHODS["g_pass_at_k_tau"], one_trial).note
    assert note.startswith("needs --k (at most 1), --tau")
    assert "no finite maximum-likelihood" in capability(METHODS["bradley_terry"], one_trial).note
    assert "not for other trials" in capability(METHODS["avg"], one_trial).note


def compiled_first(name: str) -> bool:
    """Return whether a method has no kernel, so that its graph compiles for seconds."""
    row = METHODS[name]
    return set(row.backends) <= {"map", "nuts", "mml"} and row.kernel is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if compiled_first(name) else name
        for name in METHODS
    ],
)
def test_what_is_said_to_run_runs(name: str) -> None:
    """No method is promised that then refuses the data, and none refused that would run."""
    from bayesrank import point_estimate
    from bayesrank.errors import DataError

    row = METHODS[name]
    outcomes = np.random.default_rng(1).integers(0, 2, (3, 4, 5))
    for data in (
        Responses(outcomes),
        Responses(outcomes + outcomes[::-1], weights=[0, 0.5, 1]),
        Responses(outcomes.mean(axis=2, keepdims=True)),
    ):
        try:
            point_estimate(data, name, backend=row.backends[0], **row.example)
        except DataError:
            assert capability(row, data).reason
        else:
            assert not capability(row, data).reason
