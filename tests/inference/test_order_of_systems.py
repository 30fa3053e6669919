"""Estimates do not depend on the order of systems and questions, even where maxima are flat."""

import warnings

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.errors import ConvergenceWarning

PUBLISHED = {"centred": False, "difficulty_prior": "flat", "discrimination_prior": "flat"}
# Right answers to each question: of one trial, and of three.
FLAT = [[0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 0]]
NEARLY_FLAT = [[0, 0, 0, 0, 1, 0, 0], [2, 3, 3, 2, 3, 0, 1], [0, 0, 3, 2, 2, 1, 2]]


def of_counts(right: list[list[int]], n_trials: int) -> np.ndarray:
    """Return outcomes of shape (system, question, trial) with so many right answers."""
    return (np.arange(n_trials) < np.array(right)[..., np.newaxis]).astype(int)


@pytest.mark.parametrize(
    ("method", "backend", "right", "n_trials", "options"),
    [
        ("irt_3pl", "mle", NEARLY_FLAT, 3, {"centred": False}),
        ("irt_2pl_mml", "mml", FLAT, 1, {"reg_discrimination": 0.0}),
    ],
)
def test_the_order_of_systems_and_questions_moves_no_score(
    method, backend, right, n_trials, options
):
    outcomes, rng = of_counts(right, n_trials), np.random.default_rng(0)
    scores = []
    for _ in range(6):
        systems, questions = (rng.permutation(size) for size in outcomes.shape[:2])
        data = Responses(
            outcomes[systems][:, questions],
            systems=[f"s{place}" for place in systems],
            questions=[f"q{place}" for place in questions],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = rank(data, method, backend=backend, draws=0, **options)
        scores.append(result["ranking"]["score"].to_series().sort_index())
    np.testing.assert_allclose(scores, scores[:1] * len(scores), rtol=1e-9, atol=1e-9)


def test_systems_with_the_same_answers_and_other_prior_outcomes_differ():
    rng = np.random.default_rng(0)
    outcomes, earlier = rng.integers(0, 2, (4, 6, 3)), rng.integers(0, 2, (4, 6, 2))
    outcomes[3] = outcomes[0]
    earlier[0], earlier[3] = 1, 0
    data = Responses(outcomes, prior_outcomes=earlier)
    for method in ("irt_2pl", "irt_3pl"):
        options = PUBLISHED | ({"guessing_prior": "flat"} if method == "irt_3pl" else {})
        result = rank(data, method, backend="map", prior="empirical", draws=0, **options)
        score = result["ranking"]["score"].values
        assert score[0] > score[3] + 1.0


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(("method", "seed"), [("irt_2pl", 2), ("irt_3pl", 5)])
def test_orders_lead_to_the_same_of_several_maxima(method, seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 6), rng.integers(5, 9), rng.integers(2, 4)
    outcomes = (rng.random(shape) < rng.uniform(0.25, 0.75, (*shape[:2], 1))).astype(int)
    systems, questions = (rng.permutation(size) for size in shape[:2])
    one, other = (
        rank(outcomes[rows][:, columns], method, backend="mle", draws=0)["ranking"]["score"].values
        for rows, columns in ((slice(None), slice(None)), (systems, questions))
    )
    np.testing.assert_allclose(one[systems], other, rtol=1e-9, atol=1e-9)


def test_draws_over_questions_do_not_depend_on_their_order():
    rng = np.random.default_rng(5)
    outcomes = (rng.random((4, 8, 2)) < 0.5).astype(int)
    outcomes[:, 2] = 1  # of no influence
    names = [f"s{place}" for place in range(4)], [f"q{place}" for place in range(8)]
    results = []
    for rows, columns in ((np.arange(4), np.arange(8)), (rng.permutation(4), rng.permutation(8))):
        data = Responses(
            outcomes[rows][:, columns],
            systems=[names[0][place] for place in rows],
            questions=[names[1][place] for place in columns],
        )
        options = {"prior": "laplace(0, 1)", "target": "population", "draws": 100}
        results.append(rank(data, "irt_2pl", backend="map", random_seed=1, **options))
    one, other = (result["posterior"]["score"].sel(system=names[0]) for result in results)
    np.testing.assert_allclose(
        one.std(("chain", "draw")), other.std(("chain", "draw")), rtol=1e-6, atol=1e-9
    )
    one, other = (result["point_estimate"]["difficulty"] for result in results)
    np.testing.assert_allclose(one.sel(question=names[1]), other.sel(question=names[1]), atol=1e-9)
