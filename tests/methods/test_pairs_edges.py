"""What every ranker of paired comparisons does with relabelled, tied, cyclic and sparse data."""

from functools import partial

import numpy as np
import pytest

from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.methods.eigen import serial_rank, spectral
from bayesrank.methods.games import nash
from bayesrank.methods.graph import alpharank, pagerank, rank_centrality
from bayesrank.methods.hodge import hodge_rank
from bayesrank.results.ranks import rank_scores

METHODS = {
    "pagerank": pagerank,
    "pagerank retained": partial(pagerank, transition="retained"),
    "spectral": spectral,
    "spectral constant": partial(spectral, diagonal="constant"),
    "spectral smoothed": partial(spectral, diagonal="constant", smoothing=1.0),
    "alpharank": alpharank,
    "alpharank strong": partial(alpharank, alpha=50.0),
    "nash": nash,
    "nash advantage": partial(nash, score_type="advantage_vs_equilibrium"),
    "nash equilibrium": partial(nash, score_type="equilibrium"),
    "rank_centrality": rank_centrality,
    "rank_centrality ignore smoothed": partial(rank_centrality, tie_policy="ignore", smoothing=0.5),
    "rank_centrality ignore teleport": partial(rank_centrality, tie_policy="ignore", teleport=0.1),
    "serial_rank": serial_rank,
    "serial_rank sign": partial(serial_rank, comparison="sign"),
} | {
    f"hodge_rank {stat} {weights}": partial(hodge_rank, pairwise_stat=stat, weights=weights)
    for stat in ("binary", "log_odds", "tie_split_log_odds")
    for weights in ("total", "decisive", "uniform")
}


@pytest.fixture(params=METHODS, ids=str)
def method(request: pytest.FixtureRequest):
    """Return a ranker as a function from wins and ties to scores."""

    def scores(wins, ties):
        result = METHODS[request.param](wins, ties)
        return getattr(result, "score", result)

    return scores


def count(outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return wins and ties of outcomes (..., system, question, trial), -1 for missing."""
    flat = outcomes.reshape(*outcomes.shape[:-2], -1)
    right, wrong = (flat == 1).astype(float), (flat == 0).astype(float)
    wins = right @ np.swapaxes(wrong, -1, -2)
    ties = right @ np.swapaxes(right, -1, -2) + wrong @ np.swapaxes(wrong, -1, -2)
    return wins, ties * (1 - np.eye(outcomes.shape[-3]))


def random_counts(seed: int, *, n_systems: int = 6, missing: float = 0.0, complete: bool = True):
    rng = np.random.default_rng(seed)
    if complete:
        outcomes = rng.integers(0, 2, (20, n_systems, 5, 3))
        outcomes[rng.random(outcomes.shape) < missing] = -1
        return count(outcomes)
    present = np.triu(rng.random((20, n_systems, n_systems)) < 0.7, 1)
    present = present | np.swapaxes(present, -1, -2)
    ties = np.triu(rng.integers(0, 3, present.shape), 1) * present
    return rng.integers(0, 4, present.shape) * present * 1.0, (ties + np.swapaxes(ties, -1, -2))


DATA = {
    "complete": random_counts(1),
    "missing cells": random_counts(2, missing=0.4),
    "pairs never compared": random_counts(3, complete=False),
    "two systems": random_counts(4, n_systems=2),
}


@pytest.mark.parametrize("data", DATA)
def test_labels_change_nothing(method, data: str):
    wins, ties = DATA[data]
    order = np.random.default_rng(0).permutation(wins.shape[-1])
    scores = method(wins, ties)
    relabelled = method(wins[:, order][:, :, order], ties[:, order][:, :, order])
    np.testing.assert_allclose(relabelled, scores[:, order], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(rank_scores(relabelled), rank_scores(scores)[:, order])


@pytest.mark.parametrize("data", DATA)
def test_a_batch_is_its_members(method, data: str):
    wins, ties = DATA[data]
    assert np.isfinite(method(wins, ties)).all()
    one_by_one = [method(w, t) for w, t in zip(wins, ties, strict=True)]
    np.testing.assert_allclose(method(wins, ties), one_by_one, rtol=1e-12, atol=1e-13)
    stacked = wins.reshape(4, 5, *wins.shape[1:])
    shared = method(stacked, ties[0])
    assert shared.shape == stacked.shape[:-1]
    np.testing.assert_array_equal(shared[2, 3], method(stacked, ties[:1, None])[2, 3])


@pytest.mark.parametrize("data", DATA)
def test_identical_systems_tie(method, data: str):
    wins, ties = DATA[data]
    # The twin of a system meets the same opponents; the two of them tie with each other.
    order = np.r_[0 : wins.shape[-1], 0]
    doubled = [counts[:, order][:, :, order] for counts in (wins, ties)]
    twins = [np.ix_(range(20), [0, len(order) - 1], [0, len(order) - 1])]
    doubled[0][twins[0]] = 0.0
    doubled[1][twins[0]] = 9.0 * (1 - np.eye(2))
    scores = method(*doubled)
    ranks = rank_scores(scores)
    np.testing.assert_array_equal(ranks[:, 0], ranks[:, -1])


def test_input_is_left_alone(method):
    wins, ties = DATA["missing cells"]
    copies = wins.copy(), ties.copy()
    wins.flags.writeable = ties.flags.writeable = False
    method(wins, ties)
    np.testing.assert_array_equal(wins, copies[0])
    np.testing.assert_array_equal(ties, copies[1])


def outcomes(*rows: str) -> np.ndarray:
    """Return outcomes of one trial, a row of digits per system."""
    return np.array([[int(digit) for digit in row] for row in rows])[..., None]


@pytest.mark.parametrize(
    "tied",
    [
        outcomes("111", "111", "111"),
        outcomes("000", "000", "000"),
        outcomes("101", "101", "101"),
        outcomes("1", "1"),
        outcomes("10", "01"),
        outcomes("100", "010", "001"),
        outcomes("110110", "011011", "101101"),
    ],
    ids=["all right", "all wrong", "all alike", "one question", "even", "cyclic", "even cycle"],
)
def test_systems_without_a_difference_tie(method, tied: np.ndarray):
    assert rank_scores(method(*count(tied))).tolist() == [1] * len(tied)


@pytest.mark.parametrize("size", [3, 5])
def test_a_cycle_ties(method, size: int):
    wins = np.zeros((size, size))
    for step in range(1, (size + 1) // 2):
        wins[np.arange(size), (np.arange(size) + step) % size] = 3.0
    assert rank_scores(method(wins + 1 - np.eye(size), np.zeros_like(wins))).tolist() == [1] * size


def test_one_system_alone(method):
    assert rank_scores(method(np.zeros((1, 1)), np.zeros((1, 1)))).tolist() == [1]


def test_nothing_compared_ties(method):
    assert rank_scores(method(np.zeros((3, 3)), np.zeros((3, 3)))).tolist() == [1, 1, 1]


def test_perfect_and_hopeless_systems_are_first_and_last(method):
    ranks = rank_scores(method(*count(outcomes("1111", "1100", "1010", "0000"))))
    assert ranks[0] == 1
    assert ranks[1] == ranks[2]
    assert (ranks[3] >= ranks).all()


def test_a_single_question_separates_right_from_wrong(method):
    ranks = rank_scores(method(*count(outcomes("1", "0", "1"))))
    assert ranks.tolist() == [1, 3, 1]


def test_identical_systems_may_be_told_apart_from_a_third(method):
    ranks = rank_scores(method(*count(outcomes("110", "110", "001"))))
    assert ranks[0] == ranks[1] == 1


@pytest.mark.parametrize(
    ("wins", "ties", "message"),
    [
        ([[0, 1, 2]], [[0, 0, 0]], "wins must have shape"),
        ([[0.0, -1.0], [0.0, 0.0]], np.zeros((2, 2)), "wins must hold finite counts >= 0; got -1"),
        ([[0, np.nan], [0, 0]], np.zeros((2, 2)), "wins must hold finite counts >= 0; got nan"),
        ([[0, np.inf], [0, 0]], np.zeros((2, 2)), "wins must hold finite counts >= 0; got inf"),
        (np.zeros((2, 2)), [[0, 1], [0, 0]], "ties must be symmetric"),
        (np.zeros((2, 2)), np.zeros((3, 3)), "ties must have the shape of wins"),
    ],
)
def test_bad_counts_are_named(method, wins, ties, message: str):
    with pytest.raises(DataError, match=message):
        method(wins, ties)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(pagerank, damping=1.0), "damping must be in"),
        (partial(pagerank, transition="sticky"), "transition must be one of normalized, retained"),
        (partial(pagerank, teleport=[1.0]), "teleport must hold 2 numbers"),
        (partial(pagerank, teleport=["x", 1.0]), "teleport must be numbers"),
        (partial(alpharank, alpha=-1.0), "alpha must be a finite number >= 0; got -1"),
        (
            partial(alpharank, population_size=1),
            "population_size must be an integer of at least 2; got 1",
        ),
        (partial(rank_centrality, tie_policy="split"), "tie_policy must be one of ignore, half"),
        (partial(rank_centrality, smoothing=-0.5), "smoothing must be a finite number >= 0"),
        (partial(rank_centrality, teleport=1.0), "teleport must be in"),
        (partial(spectral, diagonal="zero"), "diagonal must be one of row_sums, constant"),
        (partial(spectral, smoothing=np.inf), "smoothing must be a finite number"),
        (partial(serial_rank, comparison="rank"), "comparison must be one of prob_diff, sign"),
        (partial(nash, score_type="value"), "score_type must be one of vs_equilibrium"),
        (partial(hodge_rank, pairwise_stat="odds"), "pairwise_stat must be one of binary"),
        (partial(hodge_rank, weights="none"), "weights must be one of total"),
        (partial(hodge_rank, epsilon=0.0), "epsilon must be a finite number > 0; got 0"),
    ],
)
def test_bad_options_are_named(call, message: str):
    with pytest.raises(ValueError, match=message):
        call([[0, 1], [1, 0]], np.zeros((2, 2)))


def test_reducible_data_name_the_systems_and_the_remedy():
    wins = np.array([[0, 2, 1, 1], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 2, 0]])
    with pytest.raises(NoFiniteEstimate, match=r"got systems 2, 3 .* smoothing= or teleport="):
        rank_centrality(wins, np.zeros((4, 4)), tie_policy="ignore")
    # Within a batch one reducible member is enough.
    batch = np.stack([wins + 1.0 - np.eye(4), wins])
    with pytest.raises(NoFiniteEstimate):
        rank_centrality(batch, np.zeros((4, 4)), tie_policy="ignore")
