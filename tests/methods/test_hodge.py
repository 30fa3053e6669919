"""HodgeRank against least squares on the edges and triangles of the graph."""

from itertools import combinations

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.methods.hodge import hodge_rank


def decompose(weight: np.ndarray, flow: np.ndarray):
    """Return the potential and the three shares by projections in the space of edges."""
    size = len(weight)
    edges = [(i, j) for i, j in combinations(range(size), 2) if weight[i, j] > 0]
    place = {edge: k for k, edge in enumerate(edges)}
    root = np.sqrt([weight[edge] for edge in edges])
    gradient = np.zeros((len(edges), size))
    for k, (i, j) in enumerate(edges):
        gradient[k, [i, j]] = -1, 1
    triangles = [
        (i, j, k)
        for i, j, k in combinations(range(size), 3)
        if {(i, j), (j, k), (i, k)} <= place.keys()
    ]
    curl = np.zeros((len(triangles), len(edges)))
    for row, (i, j, k) in enumerate(triangles):
        curl[row, [place[i, j], place[j, k], place[i, k]]] = 1, 1, -1
    scaled = root * np.array([flow[edge] for edge in edges])
    potential = np.linalg.lstsq(root[:, None] * gradient, scaled, rcond=1e-12)[0]
    explained = root[:, None] * gradient @ potential
    around = curl.T / root[:, None]
    circling = around @ np.linalg.lstsq(around, scaled - explained, rcond=1e-10)[0]
    rest = scaled - explained - circling
    return potential, [(part @ part) / (scaled @ scaled) for part in (explained, circling, rest)]


def random_counts(seed: int, *, size: int = 7, density: float = 0.5):
    rng = np.random.default_rng(seed)
    met = np.triu(rng.random((size, size)) < density, 1)
    met = met | met.T
    ties = np.triu(rng.integers(0, 3, (size, size)), 1) * met
    return rng.integers(1, 6, (size, size)) * met * 1.0, (ties + ties.T) * 1.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("weights", ["total", "decisive", "uniform"])
def test_score_and_shares_equal_projections(seed: int, weights: str):
    wins, ties = random_counts(seed)
    decisive, total = wins + wins.T, wins + wins.T + ties
    weight = {"total": total, "decisive": decisive, "uniform": (total > 0) * 1.0}[weights]
    flow = (wins.T - wins) / np.where(total > 0, total, 1)
    potential, shares = decompose(weight, flow)
    result = hodge_rank(wins, ties, weights=weights)
    np.testing.assert_allclose(result.score, potential, atol=1e-12)
    np.testing.assert_allclose([float(share) for share in result[1:]], shares, atol=1e-12)


def test_random_graphs_have_harmonic_flows_among_them():
    shares = [float(hodge_rank(*random_counts(seed)).harmonic_share) for seed in range(20)]
    assert 2 <= np.count_nonzero(shares) <= 18


@pytest.mark.parametrize("weights", ["total", "decisive", "uniform"])
def test_complete_data_give_centred_accuracy(weights: str):
    right = (np.random.default_rng(0).random((6, 50)) < 0.6).astype(float)
    wins = right @ (1 - right).T
    ties = (50 - wins - wins.T) * (1 - np.eye(6))
    result = hodge_rank(wins, ties, weights=weights)
    np.testing.assert_allclose(result.score, right.mean(axis=1) - right.mean(), atol=1e-14)
    np.testing.assert_allclose(result.gradient_share, 1.0, atol=1e-12)
    assert result.curl_share == result.harmonic_share == 0.0


def test_a_triangle_is_all_curl():
    wins = np.array([[0, 2, 0], [0, 0, 2], [2, 0, 0]])
    result = hodge_rank(wins, np.zeros((3, 3)))
    np.testing.assert_array_equal(result.score, 0.0)
    assert [float(share) for share in result[1:]] == [0.0, 1.0, 0.0]


def test_a_square_without_diagonals_is_all_harmonic():
    wins = np.roll(np.eye(4), 1, axis=1)
    result = hodge_rank(wins, np.zeros((4, 4)))
    np.testing.assert_array_equal(result.score, 0.0)
    np.testing.assert_allclose([float(share) for share in result[1:]], [0, 0, 1], atol=1e-12)


def test_a_flow_of_nothing_counts_as_a_gradient():
    result = hodge_rank(np.zeros((2, 3, 3)), np.ones((3, 3)) - np.eye(3))
    np.testing.assert_array_equal(result.gradient_share, [1, 1])
    np.testing.assert_array_equal(result.curl_share + result.harmonic_share, [0, 0])


def test_parts_that_never_met_are_centred_each():
    wins = np.zeros((4, 4))
    wins[0, 1], wins[2, 3] = 2, 1
    wins[3, 2] = 1
    wins[2, 3] = 3
    np.testing.assert_allclose(
        hodge_rank(wins, np.zeros((4, 4))).score, [0.5, -0.5, 0.25, -0.25], atol=1e-15
    )


def test_log_odds_count_ties_for_both_or_for_half():
    wins, ties = np.array([[0, 6], [2, 0]]), np.array([[0, 4], [4, 0]])
    both = np.log((12 - 2 + 0.5) / (12 - 6 + 0.5)) / 2
    half = np.log((6 + 2 + 0.5) / (2 + 2 + 0.5)) / 2
    score = hodge_rank(wins, ties, pairwise_stat="log_odds").score
    np.testing.assert_allclose(score, [both, -both], rtol=1e-14)
    score = hodge_rank(wins, ties, pairwise_stat="tie_split_log_odds").score
    np.testing.assert_allclose(score, [half, -half], rtol=1e-14)


def test_batches_over_different_graphs_have_their_own_shares():
    wins, ties = (np.stack(counts) for counts in zip(*map(random_counts, range(8)), strict=True))
    batch = hodge_rank(wins, ties)
    for number in range(8):
        alone = hodge_rank(wins[number], ties[number])
        for together, single in zip(batch, alone, strict=True):
            np.testing.assert_allclose(together[number], single, atol=1e-13)


@pytest.mark.parametrize("weak", [1e-8, 1e-16, 1e-25])
def test_weak_links_between_strong_groups_are_not_lost_in_rounding(weak: float) -> None:
    # Two pairs of systems, and one weak comparison that the second of each took part in.
    wins = np.zeros((4, 4))
    wins[0, 1], wins[1, 0], wins[2, 3] = 3.0, 1.0, 2.0
    wins[1, 3], wins[3, 1] = weak, 3.0 * weak
    along = np.array([0.0, -0.5, 1.0, 0.0])
    expected = along - along.mean()
    np.testing.assert_allclose(hodge_rank(wins, np.zeros((4, 4))).score, expected, atol=1e-12)
    both = hodge_rank(np.stack([wins, wins.T]), np.zeros((2, 4, 4))).score
    np.testing.assert_allclose(both, [expected, -expected], atol=1e-12)


def test_cycles_of_next_to_no_weight_have_no_share():
    # What resamples of eight systems with half of their outcomes gave.
    data = Responses(
        [
            [[1, -1], [1, 1], [-1, 1], [-1, 1]],
            [[-1, -1], [-1, -1], [0, 0], [0, -1]],
            [[0, 0], [0, -1], [0, -1], [0, 0]],
            [[1, 1], [-1, 1], [-1, -1], [-1, -1]],
            [[-1, 0], [0, 0], [0, 0], [0, -1]],
            [[0, 0], [0, 0], [0, -1], [0, 1]],
            [[-1, 0], [1, 1], [-1, -1], [1, 1]],
            [[0, 0], [0, 0], [-1, 0], [0, 0]],
        ]
    )
    result = rank(data, "hodge_rank", weights="decisive", target="benchmark", random_seed=1)
    assert np.isfinite(result["posterior"]["score"]).all()
