"""What was observed and what is missing, counted by hand."""

import numpy as np
import pytest

from bayesrank import Battles, Comparisons, Responses, rank
from bayesrank.reporting.battle_summary import battle_facts
from bayesrank.reporting.data_summary import summarize_responses, summarize_result

RAGGED = Responses(
    [
        [[1, 1], [1, 0], [-1, -1], [-1, -1]],
        [[1, 1], [0, -1], [0, 1], [-1, -1]],
    ],
    systems=["a", "b"],
    questions=["dead", "live", "half", "unseen"],
)


def test_cells_and_questions_are_counted() -> None:
    summary = summarize_responses(RAGGED)
    assert summary.dead == ("dead",)
    assert summary.unseen == ("unseen",)
    assert (summary.n_empty, summary.n_short) == (3, 1)
    assert summary.missing_by_system() == {"a": 4, "b": 3}


def test_questions_with_fewer_trials_of_all_systems_are_complete() -> None:
    trials = np.ones((2, 3, 8), dtype=int)
    trials[:, :2, 1:] = -1
    facts = summarize_responses(Responses(trials)).facts()
    assert facts["outcomes"] == "20 of 20 possible"
    assert facts["trials of a system on a question"] == "1 to 8"
    assert "incomplete cells" not in facts
    trials[0, 2, 5:] = -1
    summary = summarize_responses(Responses(trials))
    assert summary.facts()["outcomes"] == "17 of 20 possible"
    assert summary.missing_by_system() == {"system 1": 3}
    # Of one system alone nobody knows which trials there were.
    assert summarize_responses(Responses(trials[:1])).facts()["outcomes"] == "7 of 15 possible"


def test_facts_are_sentences_for_people() -> None:
    facts = summarize_responses(RAGGED).facts()
    assert facts["outcomes"] == "9 of 16 possible"
    assert facts["trials of a system on a question"] == "0 to 2"
    assert (
        facts["questions without differences"]
        == "1 of 4 (25.0 %; the same outcome of every system)"
    )
    assert facts["unanswered questions"].startswith("1 of 4")


def test_long_numbers_are_separated() -> None:
    facts = summarize_responses(Responses(np.ones((1, 1200, 1), int))).facts()
    assert (facts["questions"], facts["outcomes"]) == ("1,200", "1,200 of 1,200 possible")


def test_holes_are_counted_where_there_are_some() -> None:
    facts = summarize_responses(Responses([[[1, 0]], [[0, 1]]])).facts()
    assert facts["outcomes"] == "4 of 4 possible"
    assert not {"empty cells", "incomplete cells", "unanswered questions"} & set(facts)
    ragged = summarize_responses(Responses([[[1, 0]], [[0, -1]]])).facts()
    assert ragged["empty cells"] == "0 of 2"
    assert ragged["incomplete cells"].startswith("1 of 2 (50.0 %")


@pytest.mark.parametrize("method", ["avg", "borda", "bradley_terry"])
def test_a_result_tells_the_same_as_its_data(method: str) -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.integers(0, 2, (3, 6, 4))
    outcomes[:, 0], outcomes[0, 1, 2:], outcomes[1, 2] = 1, -1, -1
    data = Responses(outcomes)
    ours, theirs = summarize_responses(data), summarize_result(rank(data, method, draws=0))
    assert theirs is not None
    assert theirs.facts() == ours.facts()
    assert theirs.dead == ours.dead == ("question 1",)


def test_fractional_scores_have_dead_questions_too() -> None:
    data = Responses([[0.5, 0.25], [0.5, 0.75]])
    assert summarize_responses(data).dead == ("question 1",)
    summary = summarize_result(rank(data, "avg", draws=0))
    assert summary is not None
    assert summary.dead == ("question 1",)


def test_battles_have_no_questions() -> None:
    assert summarize_result(rank(Comparisons([[0, 3], [1, 0]]), "bradley_terry", draws=0)) is None


def test_votes_for_neither_count_by_their_weight() -> None:
    data = Battles(["a", "a"], ["b", "b"], ["first", "both_bad"], weight=[1, 3])
    facts = battle_facts(data)
    assert facts["ties"] == facts["both bad"] == "3 of 4 (75.0 %)"
    light = Battles(["a", "a"], ["b", "b"], ["first", "both_bad"], weight=[0.1, 0.3])
    assert battle_facts(light)["both bad"] == "0.3 of 0.4 (75.0 %)"
