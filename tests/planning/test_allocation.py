"""Suggested trials: where they go, and how many they save."""

import numpy as np
import pytest

from bayesrank import Responses, datasets
from bayesrank.planning import suggest
from bayesrank.planning.allocation import PairState, allocate
from bayesrank.planning.crossed import CrossedPosterior


def share_of_trials(goal: str, k: int | None = None) -> np.ndarray:
    """Suggest 24 trials for systems with accuracies 0.9, 0.9, 0.5, 0.5, 0.1; return by system."""
    rng = np.random.default_rng(0)
    p = np.array([0.9, 0.9, 0.5, 0.5, 0.1])[:, None, None]
    data = Responses((rng.random((5, 8, 6)) < p).astype(int))
    table = suggest(data, 24, goal=goal, k=k)  # type: ignore[arg-type]
    assert table["trials"].sum() == 24
    counts = table.groupby("system")["trials"].sum()
    return counts.reindex(data.systems, fill_value=0).to_numpy()


def test_trials_go_to_what_decides():
    best = share_of_trials("best")
    assert best[:2].sum() == 24
    top = share_of_trials("top_k", 3)
    assert top[2:4].sum() >= 20
    full = share_of_trials("full")
    assert full[4] == 0


def test_without_data_every_system_gets_trials():
    extra = allocate(np.zeros((4, 6)), np.zeros((4, 6)), 16)
    assert extra.sum(axis=1).min() >= 1
    assert extra.max() <= 2


def test_a_system_without_trials_gets_the_first():
    outcomes = np.ones((3, 4, 2), dtype=int)
    outcomes[1, :2], outcomes[2] = 0, -1
    assert suggest(Responses(outcomes), 4)["system"].unique().tolist() == ["system 3"]


def test_trials_that_explain_nothing_are_worth_nothing():
    totals, trials = np.array([[3.0, 2.0], [2.0, 2.0], [0.0, 1.0]]), np.full((3, 2), 4.0)
    first, second = np.array([0, 0]), np.array([1, 2])
    gap, variance = np.array([0.1, 0.5]), np.array([0.02, 0.02])
    # Nothing is left to learn of the first pair, so trials go to the second.
    known = PairState(first, second, gap, variance, np.array([1e-12, 1.0]))
    assert allocate(totals, trials, 4, present=known)[1].sum() == 0
    open_pair = PairState(first, second, gap, variance, np.array([1.0, 1.0]))
    assert allocate(totals, trials, 4, present=open_pair)[2].sum() == 0


def test_bound_on_trials_of_a_cell():
    trials = np.array([[2.0, 1.0], [2.0, 2.0]])
    extra = allocate(trials / 2, trials, 3, max_trials=3)
    assert (trials + extra).max() <= 3
    with pytest.raises(ValueError, match="budget must be at most the 5 trials"):
        allocate(trials / 2, trials, 6, max_trials=3)


def test_worths_count_on_their_own_scale():
    outcomes = np.array([[[0, 2], [1, 2]], [[0, 0], [1, 0]], [[2, 2], [1, 2]]])
    plain = suggest(Responses(outcomes, weights=(0, 0.5, 1)), 5)
    scaled = suggest(Responses(outcomes, weights=(-3, 1, 5)), 5)
    assert plain.equals(scaled)


def test_arguments_that_do_not_fit_are_refused():
    data = Responses([[[1, 0]], [[0, 1]]])
    with pytest.raises(ValueError, match="goal must be one of best, top_k, full; got 'first'"):
        suggest(data, 3, goal="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be from 1 to 1 for the goal 'top_k'; got None"):
        suggest(data, 3, goal="top_k")
    with pytest.raises(ValueError, match="k must be None for the goal 'best'; got 1"):
        suggest(data, 3, k=1)
    with pytest.raises(ValueError, match="budget must be an integer of at least 0; got -1"):
        suggest(data, -1)
    with pytest.raises(ValueError, match="data must have two systems or more"):
        suggest(Responses([[[1, 0]]]), 3)


def accuracies() -> np.ndarray:
    return datasets.load_olympiad("AIME'24").grades


def adaptive_errors(n_runs: int, budget: int) -> np.ndarray:
    """Return the share of wrong best systems after every 20 suggested trials."""
    wrong = np.zeros((n_runs, budget // 20))
    for run in range(n_runs):
        rng = np.random.default_rng([6, run])
        p = rng.permutation(accuracies(), axis=1)
        totals, trials = np.zeros(p.shape), np.zeros(p.shape)
        for step in range(wrong.shape[1]):
            extra = allocate(totals, trials, 20)
            totals += rng.binomial(extra, p)
            trials += extra
            best = CrossedPosterior(totals, trials).mean.argmax()
            wrong[run, step] = best != p.mean(axis=1).argmax()
    return wrong.mean(axis=0)


def uniform_errors(n_runs: int, budget: int) -> np.ndarray:
    """Do the same with every system tried on one more question at a time, and best by accuracy."""
    wrong = np.zeros(budget // 20)
    for run in range(n_runs):
        rng = np.random.default_rng([7, run])
        p = accuracies()
        n_rounds = -(-budget // p.size)
        order = np.concatenate([rng.permutation(p.shape[1]) for _ in range(n_rounds)])
        right = np.cumsum(rng.random((20, len(order))) < p[:, order], axis=1)[:, : len(wrong)]
        tied = right == right.max(axis=0)
        wrong += 1 - tied[p.mean(axis=1).argmax()] / tied.sum(axis=0)
    return wrong / n_runs


def trials_to(error: float, curve: np.ndarray) -> int:
    """Return the trials after which a curve stays at an error or below."""
    above = np.flatnonzero(curve > error)
    return 20 * (int(above[-1]) + 2) if above.size else 20


def test_suggested_trials_find_the_best_sooner():
    # At 240 trials uniform allocation errs in almost half of the cases.
    assert adaptive_errors(12, 320)[-1] <= 0.34 < uniform_errors(500, 240)[-1]


@pytest.mark.slow
def test_suggested_trials_save_a_third_at_equal_error():
    adaptive, uniform = adaptive_errors(200, 600), uniform_errors(4000, 1200)
    for error in (0.05, 0.10):
        assert trials_to(error, adaptive) <= 0.7 * trials_to(error, uniform)
