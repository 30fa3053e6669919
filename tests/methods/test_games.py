"""Nash equilibria of symmetric games, unique or not."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bayesrank.methods import games
from bayesrank.methods.games import equilibrium, nash
from bayesrank.ranking import rank
from bayesrank.results.ranks import rank_scores

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def antisymmetric(upper: np.ndarray) -> np.ndarray:
    upper = np.triu(upper, 1)
    return upper - np.swapaxes(upper, -1, -2)


def entropy(mixture: np.ndarray) -> float:
    positive = mixture[mixture > 0]
    return float(-(positive * np.log(positive)).sum())


def assert_optimal(payoffs: np.ndarray, mixtures: np.ndarray) -> None:
    np.testing.assert_allclose(mixtures.sum(axis=-1), 1.0, rtol=1e-13)
    assert (mixtures >= 0).all()
    assert (payoffs @ mixtures[..., None]).max() < 1e-13


def test_rock_paper_scissors_is_mixed_evenly():
    np.testing.assert_allclose(equilibrium(ROCK_PAPER_SCISSORS), np.full(3, 1 / 3), rtol=1e-14)


def test_a_weighted_cycle_has_the_textbook_mixture():
    # Against payoffs a, b, c around the cycle each pure choice is mixed like the opposite payoff.
    a, b, c = 0.2, 0.5, 0.9
    payoffs = antisymmetric(np.array([[0, a, -c], [0, 0, b], [0, 0, 0]]))
    expected = np.array([b, c, a]) / (a + b + c)
    np.testing.assert_allclose(equilibrium(payoffs), expected, rtol=1e-13)


def test_a_system_that_beats_all_is_played_alone():
    payoffs = antisymmetric(np.array([[0, 0.1, 0.2], [0, 0, -0.9], [0, 0, 0]]))
    np.testing.assert_array_equal(equilibrium(payoffs), [1, 0, 0])


def test_the_best_accuracies_share_the_mixture():
    accuracy = np.array([0.5, 0.7, 0.2, 0.7])
    np.testing.assert_array_equal(
        equilibrium(accuracy[:, None] - accuracy), np.array([0, 0.5, 0, 0.5])
    )


@pytest.mark.parametrize("size", [4, 9, 20])
def test_random_games_are_solved(size: int):
    payoffs = antisymmetric(np.random.default_rng(size).uniform(-1, 1, (50, size, size)))
    assert_optimal(payoffs, equilibrium(payoffs))


@pytest.mark.parametrize("seed", range(10))
def test_of_several_solutions_the_one_of_largest_entropy_is_taken(seed: int):
    size = 6
    payoffs = antisymmetric(np.random.default_rng(seed).integers(-1, 2, (size, size)) / 2)
    mixture = equilibrium(payoffs)
    assert_optimal(payoffs, mixture)
    found = minimize(
        lambda x: float((np.maximum(x, 1e-300) * np.log(np.maximum(x, 1e-300))).sum()),
        np.full(size, 1 / size),
        bounds=[(0, 1)] * size,
        constraints=[
            {"type": "eq", "fun": lambda x: x.sum() - 1},
            {"type": "ineq", "fun": lambda x: -payoffs @ x},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    np.testing.assert_allclose(entropy(mixture), -found.fun, atol=1e-6)


def test_systems_that_no_solution_plays_get_exactly_nothing():
    payoffs = np.zeros((4, 4))
    payoffs[:3, :3] = ROCK_PAPER_SCISSORS / 2
    payoffs[3, :3], payoffs[:3, 3] = -0.25, 0.25
    assert equilibrium(payoffs)[3] == 0.0


@pytest.mark.parametrize("noise", [1e-15, 1e-13])
def test_rounding_does_not_choose_among_solutions(noise: float):
    rng = np.random.default_rng(0)
    exact = antisymmetric(rng.integers(-1, 2, (40, 6, 6)) / 2)
    noisy = exact + antisymmetric(noise * rng.standard_normal(exact.shape))
    np.testing.assert_allclose(equilibrium(noisy), equilibrium(exact), atol=1e-9)


def test_a_twin_shares_its_systems_probability():
    payoffs = np.zeros((4, 4))
    payoffs[:3, :3] = ROCK_PAPER_SCISSORS / 2
    payoffs[3], payoffs[:, 3] = payoffs[0], payoffs[:, 0]
    payoffs[3, 3] = payoffs[0, 0]
    expected = np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6])
    np.testing.assert_allclose(equilibrium(payoffs), expected, rtol=1e-10)


def test_the_linear_programme_agrees_with_the_central_path():
    payoffs = antisymmetric(np.random.default_rng(5).uniform(-1, 1, (8, 8)))
    direct = games._linear_programme(payoffs)
    np.testing.assert_allclose(direct, equilibrium(payoffs), atol=1e-9)


def test_games_finer_than_a_central_path_are_still_solved():
    # A cycle of margins of 1e-9 decides between three systems that otherwise tie.
    payoffs = np.zeros((4, 4))
    payoffs[:3, :3] = 1e-9 * ROCK_PAPER_SCISSORS
    payoffs[:3, 3], payoffs[3, :3] = 0.5, -0.5
    mixture = equilibrium(payoffs)
    assert mixture[3] == 0.0
    assert (payoffs @ mixture).max() < 1e-9


def test_scores_are_shares_or_margins_against_the_mixture():
    wins = np.array([[0, 3, 1, 4], [1, 0, 3, 4], [3, 1, 0, 4], [0, 0, 0, 0]])
    none = np.zeros((4, 4))
    np.testing.assert_allclose(nash(wins, none), [0.5, 0.5, 0.5, 0.0], atol=1e-15)
    margins = nash(wins, none, score_type="advantage_vs_equilibrium")
    np.testing.assert_array_equal(margins[:3], 0.0)
    np.testing.assert_allclose(margins[3], -1.0)


@pytest.mark.parametrize("size", [3, 4, 6])
@pytest.mark.parametrize("margin", [1e-13, 1e-11, 1e-10, 1e-9, 3e-9])
def test_labels_change_nothing_for_margins_near_rounding(margin: float, size: int):
    rng = np.random.default_rng(size)
    for spread in (0.0, 0.1):
        strength = spread * rng.normal(size=size)
        noise = margin * rng.uniform(-1, 1, (size, size))
        payoffs = strength[:, None] - strength[None, :] + noise - noise.T
        wins = (1 + payoffs) / 2 * 1000 * (1 - np.eye(size))
        ties = np.zeros_like(wins)
        order = rng.permutation(size)
        scores = nash(wins, ties)
        relabelled = nash(wins[np.ix_(order, order)], ties)
        np.testing.assert_allclose(relabelled, scores[order], rtol=0.0, atol=1e-10)
        np.testing.assert_array_equal(rank_scores(relabelled), rank_scores(scores)[order])


def test_solutions_that_touch_a_bound_up_to_rounding_are_found():
    # As resampled ragged data leave them: a few payoffs of 1e-7 beside large ones.
    first = antisymmetric(
        np.array(
            [
                [0, 2.7283e-7, 2.7283e-7, 0, 0],
                [0, 0, 0.18551, 0.45928, -7.4605e-7],
                [0, 0, 0, -0.08144, -7.4605e-7],
                [0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0],
            ]
        )
    )
    second = antisymmetric(
        np.array(
            [
                [0, -0.7269, 0, 0, 0],
                [0, 0, -0.0011, 0.9999, 0.0657],
                [0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0],
            ]
        )
    )
    for payoffs in (first, second, np.stack([first, second])):
        assert_optimal(payoffs, equilibrium(payoffs))


@pytest.mark.parametrize("seed", range(8))
def test_ragged_data_are_resampled_without_errors(seed):
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 2, (9, 5, 3))
    outcomes[np.arange(3) >= rng.integers(0, 4, (9, 5, 1))] = -1
    for target in ("population", "benchmark"):
        ranking = rank(outcomes, "nash", draws=25, target=target, random_seed=seed)["ranking"]
        assert np.isfinite(ranking["score_lower"]).all()


def test_entropy_rises_beside_a_bound_that_swamps_all_other_curvature():
    # Payoffs of a game whose only deciding question has next to no weight.
    start = np.array([2.7068865006569977e-06, 0.3347096592001355, 0.6652876339133639])
    free = np.linalg.svd(np.ones((1, 3)))[2][1:].T
    bounds = np.array(
        [
            [-0.0, 0.49352423932312295, 0.49352417519370684],
            [-0.008597402815248012, 2.565607557514227e-07, 3.848411007645325e-07],
            [0.987213824218129, 1.0, 1.0],
            [-0.0, 0.3304425959977655, 0.4935239219558577],
        ]
    )
    found = games._newton_on_entropy(start, free, bounds)
    assert found.sum() == pytest.approx(1.0)
    assert (bounds @ found).min() >= -1e-12
    # All but the first share evenly; the second bound holds this one.
    np.testing.assert_allclose(found[1:], 0.5, atol=1e-4)
    assert found @ np.log(found) < start @ np.log(start)
