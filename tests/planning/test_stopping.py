"""Stopping: the stated error is kept, whenever one looks."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import Comparisons, Responses, datasets, rank
from bayesrank.catalog import default_method
from bayesrank.planning import plan_pairs, plan_widths, should_stop, suggest
from bayesrank.planning.goals import Goal, critical_pairs
from bayesrank.planning.stopping import decide
from bayesrank.reporting.wording import headline
from bayesrank.results.summary import summarize_draws, summarize_point, summarize_resolution

CLEAR = np.repeat([[[1] * 40], [[0] * 40]], 6, axis=1)


def test_clear_data_stop_and_unclear_data_do_not():
    data = Responses(CLEAR, systems=["good", "bad"])
    decision = should_stop(data)
    assert (decision.stop, decision.answer) == (True, ("good",))
    assert decision.error < 1e-3
    even = should_stop(Responses([[[1, 0]], [[0, 1]]]))
    assert not even.stop
    assert even.error == pytest.approx(0.5, abs=0.03)


def test_answers_of_the_goals():
    middle = np.tile([1, 0], 20)[None, None].repeat(6, axis=1)
    outcomes = np.concatenate([CLEAR, middle])
    data = Responses(outcomes, systems=["good", "bad", "middling"])
    assert should_stop(data, goal="full").answer == ("good", "middling", "bad")
    assert set(should_stop(data, goal="top_k", k=2).answer) == {"good", "middling"}


def test_the_same_data_give_the_same_decision():
    data = Responses([[[1, 0, 1]], [[0, 1, 0]], [[1, 1, 0]]])
    assert should_stop(data) == should_stop(data)


def test_error_must_be_a_probability():
    with pytest.raises(ValueError, match="error must be between 0 and 1; got 0"):
        should_stop(Responses(CLEAR), error=0)


def test_critical_pairs():
    mean = np.array([0.1, 0.9, 0.5])
    assert [p.tolist() for p in critical_pairs(mean, 0)] == [[1, 2], [2, 0]]
    assert [p.tolist() for p in critical_pairs(mean, 1)] == [[1, 1], [2, 0]]
    assert [p.tolist() for p in critical_pairs(mean, 2)] == [[1, 2], [0, 0]]


def test_no_more_trials_are_needed_when_every_deciding_pair_is_resolved():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        chance = rng.random((4, 1, 1))
        data = Responses((rng.random((4, 10, int(rng.integers(1, 40)))) < chance).astype(int))
        for goal, k in (("best", None), ("top_k", 2), ("full", None)):
            decision = should_stop(data, goal=goal, k=k, error=0.1)  # type: ignore[arg-type]
            pairs = plan_pairs(data, goal=goal, k=k, error=0.1)  # type: ignore[arg-type]
            assert decision.stop == (decision.joint_error <= 0.1)
            assert decision.stop == pairs["resolved"].all()
            assert decision.stop == (pairs["further_trials_needed"] == 0).all()
            assert 0 <= decision.error <= decision.joint_error


def test_stopping_agrees_with_the_headline():
    verdicts = set()
    for seed in range(0, 20, 2):
        rng = np.random.default_rng(seed)
        chance = np.array([0.8, 0.6, 0.5])[:, None, None]
        data = Responses((rng.random((3, 10, 1 + 3 * seed)) < chance).astype(int))
        result = rank(data, default_method(data))
        stop = should_stop(data).stop
        assert stop == ("is resolved from every other system" in headline(result))
        verdicts.add(stop)
    assert verdicts == {True, False}


def test_the_error_is_the_chance_of_the_answer_with_ties_broken_at_random():
    # Draws by system; the point estimates have the order a, b, c, d.
    draws = np.array([[4, 3, 2, 1], [4, 4, 2, 1], [3, 4, 2, 1], [4, 3, 3, 3]], dtype=float)
    score = np.array([4.0, 3.5, 2.5, 1.0])
    tree = tree_of(draws, score)
    assert decide(tree, 1).error == pytest.approx(1 - (1 + 1 / 2 + 0 + 1) / 4)
    assert decide(tree, 2).error == pytest.approx(1 - (1 + 1 + 1 + 1 / 3) / 4)
    assert decide(tree, 0).error == pytest.approx(1 - (1 + 1 / 2 + 0 + 1 / 6) / 4)


def tree_of(draws: np.ndarray, score: np.ndarray) -> xr.DataTree:
    systems = tuple("abcd")
    ranking = xr.merge(
        [
            summarize_point(score, systems),
            summarize_draws(draws, systems, ci_prob=0.95, lcb=0.05),
            summarize_resolution(score, draws, systems, ci_prob=0.95),
        ],
        combine_attrs="no_conflicts",
    )
    posterior = xr.Dataset({"score": (("chain", "draw", "system"), draws[np.newaxis])})
    return xr.DataTree.from_dict({"ranking": ranking, "posterior": posterior})


def test_battles_are_stopped_too():
    battles = Comparisons([[0, 40, 40], [5, 0, 30], [5, 5, 0]], systems=["a", "b", "c"])
    decision = should_stop(battles, goal="full")
    assert decision.stop
    assert decision.answer == ("a", "b", "c")


def stopped_runs(n_runs: int, goal: Goal, looks: list[int]) -> np.ndarray:
    """Look after some numbers of trials until nothing more is needed at 10 %.

    Return whether runs were stopped, whether the answer was wrong, and the stated error.
    """
    outcome = np.empty((n_runs, 3))
    for run in range(n_runs):
        rng = np.random.default_rng([9, run])
        p = 1 / (1 + np.exp(rng.normal(size=6) - rng.normal(size=(5, 1))))
        outcomes = (rng.random((5, 6, looks[-1])) < p[..., None]).astype(int)
        systems = np.arange(5).tolist()
        tried = (Responses(outcomes[..., :n_trials], systems=systems) for n_trials in looks)
        decisions = (should_stop(data, goal=goal, error=0.10) for data in tried)
        decision = next(each for n, each in enumerate(decisions, 1) if each.stop or n == len(looks))
        chosen = [int(name) for name in decision.answer]
        rest = np.delete(p.mean(axis=1), chosen).max(initial=0.0)
        truth = p.mean(axis=1)[chosen]
        wrong = truth.min() < rest or (np.diff(truth) > 0).any()
        outcome[run] = decision.stop, wrong, decision.error
    return outcome


def test_the_stated_error_holds_whenever_one_looks():
    stopped, wrong, stated = stopped_runs(40, "best", [2, 8, 32]).T
    assert stopped.mean() > 0.2
    assert wrong[stopped > 0].mean() <= 0.10
    # Whether stopped or not, answers are wrong about as often as stated.
    assert wrong.mean() == pytest.approx(stated.mean(), abs=0.15)  # three standard errors


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["best", "full"])
def test_the_stated_error_holds_whenever_one_looks_at_length(goal: Goal):
    looks = sorted({int(n) for n in 2 * 1.15 ** np.arange(31)})
    stopped, wrong, stated = stopped_runs(150, goal, looks).T
    assert wrong[stopped > 0].mean() <= 0.10
    assert wrong.mean() == pytest.approx(stated.mean(), abs=0.09)  # three standard errors


def test_all_plans_leave_out_a_system_without_outcomes():
    part = np.random.default_rng(0).integers(0, 2, (3, 20, 3))
    data = Responses(np.concatenate([part, np.full((1, 20, 3), -1)]), systems=["a", "b", "c", "d"])
    plans = [should_stop, plan_pairs, lambda some: plan_widths(some, 0.1)]
    for plan in plans:
        with pytest.warns(UserWarning, match="the plan leaves out systems without any outcome: d"):
            found = plan(data)
        expected = plan(Responses(part, systems=["a", "b", "c"]))
        if isinstance(expected, pd.DataFrame):
            assert set(found.loc[:, "system"]) == set(expected.loc[:, "system"])
        else:
            assert set(found.answer) < {"a", "b", "c"}


@pytest.mark.slow
def test_stopping_on_suggested_trials_keeps_the_error():
    p = datasets.load_olympiad("AIME'24").grades[:6]
    wrong = []
    for run in range(40):
        rng = np.random.default_rng([8, run])
        outcomes = (rng.random((*p.shape, 200)) < p[..., None]).astype(np.int8)
        trials = np.full(p.shape, 2)
        while True:
            seen = np.where(np.arange(200) < trials[..., None], outcomes, -1)
            data = Responses(seen, systems=range(len(p)), questions=range(p.shape[1]))
            decision = should_stop(data, error=0.10)
            if decision.stop or trials.sum() > 3000:
                break
            for row in suggest(data, 40, max_trials=200).itertuples():
                trials[int(str(row.system)), int(str(row.question))] += row.trials
        wrong.append(int(decision.answer[0]) != p.mean(axis=1).argmax())
    assert np.mean(wrong) <= 0.10
