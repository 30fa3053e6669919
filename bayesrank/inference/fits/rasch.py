r"""The Rasch model by Newton's method, batched over resamples.

With :math:`k_{lm}` right out of :math:`n_{lm}` and :math:`w_m` the multiplicity of question m,

.. math::

   \ell = \sum_{lm} w_m \bigl(k_{lm} (\theta_l - b_m) - n_{lm} \log(1 + e^{\theta_l - b_m})\bigr),

a Bradley-Terry model between systems and questions. One side is held: the weighted mean difficulty
at 0 (abilities are then uncentred), or the mean ability.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.arrow import Arrow
from bayesrank.inference.fits.bipartite import solve_bipartite, solve_one_bipartite
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.items import ItemCounts, item_counts, item_fit, limited
from bayesrank.inference.fits.log_odds import softplus
from bayesrank.inference.fits.newton import maximise, smoothed_log_odds
from bayesrank.inference.fits.penalty import Array, checked_precision, flattened

ZeroSum = Literal["difficulty", "ability"]
# exp of a difference within twice this bound neither overflows nor underflows.
_LARGEST = 300.0
_TINY = 1e-300


@dataclass(frozen=True)
class RaschItems:
    """Penalised log-likelihood of the Rasch model.

    Free coordinates: abilities, then difficulties.

    Attributes
    ----------
    data : ItemCounts
        Weighted counts.
    ability_mean : numpy.ndarray of shape (resample, system)
        Means of a normal prior on the abilities.
    ability_precision, difficulty_precision : numpy.ndarray of shape (resample,)
        Precisions of the normal priors; difficulties have mean 0. 0 for none.
    zero_sum : {"difficulty", "ability"}
        Which side sums to zero.
    has_ability_prior, has_difficulty_prior : bool
        Whether any of those precisions is positive.
    """

    data: ItemCounts
    ability_mean: Array
    ability_precision: Array
    difficulty_precision: Array
    zero_sum: ZeroSum
    has_ability_prior: bool
    has_difficulty_prior: bool

    @property
    def scale(self) -> Array:
        """Largest number of responses behind a parameter, plus the prior's precision."""
        by_system = self.data.played.max(axis=-1)
        return np.maximum(by_system, self.data.asked.max(axis=-1)) + self.ability_precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.data.trials.shape[-1] * self.data.trials.shape[-2]

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            data=self.data.take(index),
            ability_mean=self.ability_mean[index],
            ability_precision=self.ability_precision[index],
            difficulty_precision=self.difficulty_precision[index],
        )

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ability, difficulty = self._split(point)
        gap = ability[:, :, None] - difficulty[:, None, :]
        total = (self.data.trials * softplus(gap)).sum(axis=(-1, -2))
        by_system = (self.data.by_system * ability).sum(axis=-1)
        return by_system - (self.data.by_question * difficulty).sum(axis=-1) - total

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        ability, difficulty = self._split(point)
        penalty = self.ability_precision * ((ability - self.ability_mean) ** 2).sum(axis=-1)
        weighted = self.data.weights * difficulty**2
        penalty = penalty + self.difficulty_precision * weighted.sum(axis=-1)
        return self.loglik(point) - 0.5 * penalty

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        return np.concatenate(self._derivatives(point)[0], axis=-1)

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        curvature = self._derivatives(point)[1]
        ability, difficulty = self._diagonals(curvature)
        return Arrow(ability, difficulty[:, None, None], -curvature[:, :, None]).dense()

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        if len(point) == 1 and self._is_simple():
            return self._newton_of_one(point)
        gradients, curvature = self._derivatives(point)
        diagonals = self._diagonals(curvature)
        sides = solve_bipartite(diagonals, curvature, gradients, self._held())
        return np.concatenate(sides, axis=-1)

    def _is_simple(self) -> bool:
        """Return whether :meth:`_newton_of_one` covers the priors and the constraint."""
        if self.has_difficulty_prior:
            return False
        n_systems, n_questions = self.data.trials.shape[-2:]
        held = self.zero_sum == "difficulty" and n_systems <= n_questions
        return held or not self.has_ability_prior

    def _newton_of_one(self, point: Array) -> Array:
        """Return the Newton step of a single fit.

        Matrices without an axis of resamples take two thirds of the time.
        """
        data = self.data
        ability, difficulty = self._split(np.minimum(np.maximum(point, -_LARGEST), _LARGEST))
        ratio = np.multiply.outer(np.exp(-ability[0]), np.exp(difficulty[0]))
        share = 1.0 / (1.0 + ratio)
        expected = data.trials[0] * share
        ratio *= share
        ratio *= expected
        for_ability = data.by_system[0] - expected.sum(axis=-1)
        curvature, held = ratio.sum(axis=-1), None
        if self.has_ability_prior:
            held, precision = data.weights[0], self.ability_precision[0]
            for_ability -= precision * (point[0, : len(curvature)] - self.ability_mean[0])
            curvature += precision
        gradients = for_ability, expected.sum(axis=0) - data.by_question[0]
        diagonals = np.maximum(curvature, _TINY), np.maximum(ratio.sum(axis=0), _TINY)
        return np.concatenate(solve_one_bipartite(diagonals, ratio, gradients, held))[np.newaxis]

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of right and wrong at most."""
        ability, difficulty = self._split(step)
        up = ability.max(axis=-1) - difficulty.min(axis=-1)
        return np.maximum(up, difficulty.max(axis=-1) - ability.min(axis=-1))

    def constraint(self, point: Array) -> Array:
        """Return the vector held at zero, of shape (resample, p)."""
        n_systems = self.data.trials.shape[-2]
        held = np.zeros(point.shape)
        if self.zero_sum == "ability":
            held[:, :n_systems] = 1.0
        else:
            held[:, n_systems:] = self.data.weights
        return held

    def _split(self, point: Array) -> tuple[Array, Array]:
        n_systems = self.ability_mean.shape[-1]
        return point[:, :n_systems], point[:, n_systems:]

    def _derivatives(self, point: Array) -> tuple[tuple[Array, Array], Array]:
        """Return the gradients of both sides and n p (1 - p)."""
        ability, difficulty = self._split(point)
        # One exponential per parameter instead of one per cell.
        hard = np.exp(np.minimum(np.maximum(difficulty, -_LARGEST), _LARGEST))
        odds = np.exp(-np.minimum(np.maximum(ability, -_LARGEST), _LARGEST))
        ratio = odds[:, :, None] * hard[:, None, :]
        share = 1.0 / (1.0 + ratio)
        expected = self.data.trials * share
        ratio *= share
        ratio *= expected
        for_ability = self.data.by_system - expected.sum(axis=-1)
        for_difficulty = expected.sum(axis=-2) - self.data.by_question
        if self.has_ability_prior:
            for_ability -= self.ability_precision[:, None] * (ability - self.ability_mean)
        if self.has_difficulty_prior:
            for_difficulty -= self._difficulty_precisions() * difficulty
        return (for_ability, for_difficulty), ratio

    def _diagonals(self, curvature: Array) -> tuple[Array, Array]:
        ability, difficulty = curvature.sum(axis=-1), curvature.sum(axis=-2)
        if self.has_ability_prior:
            ability += self.ability_precision[:, None]
        if self.has_difficulty_prior:
            difficulty += self._difficulty_precisions()
        # Parameters without data and prior have no gradient either, and stay where they are.
        return np.maximum(ability, _TINY), np.maximum(difficulty, _TINY)

    def _difficulty_precisions(self) -> Array:
        """Return the precision of each difficulty: a question asked twice has two of them."""
        return self.difficulty_precision[:, None] * self.data.weights

    def _held(self) -> tuple[Array | None, Array | None] | None:
        """Return the constraint as the Newton system needs it."""
        if not (self.has_ability_prior or self.has_difficulty_prior):
            return None  # whatever the level, it is set at the end
        if self.zero_sum == "ability":
            return np.ones_like(self.data.by_system), None
        return None, self.data.weights

    def level(self, point: Array) -> None:
        """Shift both sides together, in place, until the constraint holds."""
        ability, difficulty = self._split(point)
        if self.zero_sum == "ability":
            mean = ability.sum(axis=-1, keepdims=True) / ability.shape[-1]
        else:
            weights = self.data.weights
            total = np.maximum(weights.sum(axis=-1, keepdims=True), _TINY)
            mean = (difficulty * weights).sum(axis=-1, keepdims=True) / total
        point -= mean


def rasch_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    difficulty_precision: ArrayLike = 0.0,
    zero_sum: ZeroSum = "difficulty",
) -> RaschItems:
    """Build the objective that :func:`fit_rasch` maximises; see there.

    Parameters
    ----------
    correct, trials, weights, ability_mean, ability_precision, difficulty_precision, zero_sum
        As in :func:`fit_rasch`.

    Returns
    -------
    RaschItems
        The free coordinates are the abilities, then the difficulties.
    """
    if zero_sum not in ("difficulty", "ability"):
        raise ValueError(f"zero_sum must be 'difficulty' or 'ability'; got {zero_sum!r}")
    for_difficulty = checked_precision("difficulty_precision", difficulty_precision)
    for_ability = checked_precision("ability_precision", ability_precision)
    data = item_counts(correct, trials, weights, drop=not for_difficulty.any())
    lead, (n_systems, _) = data.lead, data.trials.shape[-2:]
    means = np.asarray(ability_mean, dtype=np.float64)
    return RaschItems(
        data,
        flattened(means, (*lead, n_systems)).reshape(-1, n_systems),
        flattened(for_ability, lead),
        flattened(for_difficulty, lead),
        zero_sum,
        bool(for_ability.any()),
        bool(for_difficulty.any()),
    )


def fit_rasch(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    difficulty_precision: ArrayLike = 0.0,
    zero_sum: ZeroSum = "difficulty",
    start: ArrayLike | None = None,
) -> Fit:
    r"""Fit the Rasch model, P(l is right on m) = sigma(theta_l - b_m).

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    ability_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the abilities.
    ability_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 for maximum likelihood.
    difficulty_precision : array_like, broadcastable to (...), default 0
        Precision of a normal prior on the difficulties with mean 0; 0 for none. Without it the
        questions that every system answers alike are left out, with an infinite difficulty.
    zero_sum : {"difficulty", "ability"}, default "difficulty"
        Which side sums to zero: with "difficulty" the (weighted) mean difficulty of the questions
        kept is 0 and a prior holds uncentred abilities, with "ability" they are centred.
    start : array_like, broadcastable to (..., system), optional
        Where the abilities begin.

    Returns
    -------
    Fit
        Free coordinates: abilities, then difficulties. ``parameters["difficulty"]`` is minus
        infinity for a question that nobody got wrong, infinity for one that nobody got right and
        NaN for one without weight.

    Raises
    ------
    ValueError
        If an option is unknown or a precision negative.

    References
    ----------
    .. [1] G. Rasch. Probabilistic Models for Some Intelligence and Attainment Tests. Danish
       Institute for Educational Research (1960).

    Examples
    --------
    >>> fit = fit_rasch([[3.0, 1.0], [2.0, 3.0], [1.0, 1.0]], 4.0)
    >>> bool(fit.score[1] > fit.score[0] > fit.score[2])
    True
    """
    problem = rasch_problem(
        correct,
        trials,
        weights,
        ability_mean=ability_mean,
        ability_precision=ability_precision,
        difficulty_precision=difficulty_precision,
        zero_sum=zero_sum,
    )
    data = problem.data
    optimum = maximise(problem, _first_point(problem, start), constraint=problem.constraint)
    if not (problem.has_ability_prior or problem.has_difficulty_prior):
        problem.level(optimum.point)
    exists = problem.ability_precision > 0.0
    if not exists.all():
        exists = exists | linked_both_ways(data.right > 0.0, data.right < data.trials)
    n_systems = data.by_system.shape[-1]
    totals = data.by_system + problem.ability_precision[:, None] * problem.ability_mean
    scores = settle_ties(optimum.point[:, :n_systems], totals, rows=data.trials)
    return item_fit(problem, optimum, scores, exists=exists, unpack=partial(_unpack, n_systems))


def _first_point(problem: RaschItems, start: ArrayLike | None) -> Array:
    """Begin at smoothed log-odds, stretched by how much the other side spreads."""
    data = problem.data
    n_systems = data.by_system.shape[-1]
    ability = smoothed_log_odds(data.by_system, data.played)
    difficulty = -smoothed_log_odds(data.by_question, data.asked)
    if problem.zero_sum == "ability":
        difficulty, ability = stretched(-difficulty, -ability, None)
        ability, difficulty = -ability, -difficulty
    else:
        ability, difficulty = stretched(ability, difficulty, data.weights)
    if start is not None:
        given = np.broadcast_to(np.asarray(start, dtype=np.float64), (*data.lead, n_systems))
        ability = given.reshape(-1, n_systems)
    return np.concatenate([ability, difficulty], axis=-1)


def stretched(ability: Array, difficulty: Array, weights: Array | None) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Parameters
    ----------
    ability : numpy.ndarray of shape (resample, system)
        Log-odds of each system.
    difficulty : numpy.ndarray of shape (resample, question)
        Minus the log-odds of each question; centred here.
    weights : numpy.ndarray of shape (resample, question), or None
        Weights of the questions in the centre; None for equal ones.

    Returns
    -------
    tuple of numpy.ndarray
        Both stretched by how much the other side spreads.

    References
    ----------
    .. [1] L. Cohen. Approximate expressions for parameter estimates in the Rasch model. British
       Journal of Mathematical and Statistical Psychology 32 (1979).
       https://doi.org/10.1111/j.2044-8317.1979.tb00756.x
    """
    if weights is None:
        centre = difficulty.sum(axis=-1) / difficulty.shape[-1]
    else:
        total = np.maximum(weights.sum(axis=-1), _TINY)
        centre = (difficulty * weights).sum(axis=-1) / total
    difficulty = difficulty - centre[:, None]
    spread, other = _variance(ability), _variance(difficulty)
    both = np.concatenate([other, spread], axis=-1)
    factors = np.sqrt((1.0 + both / 2.89) / np.maximum(1.0 - spread * other / 8.35, 0.25))
    return ability * factors[:, :1], difficulty * factors[:, 1:]


def _variance(values: Array) -> Array:
    return np.einsum("bi,bi->b", values, values)[:, np.newaxis] / values.shape[-1]


def _unpack(n_systems: int, free: Array, *, limit: Array | None) -> dict[str, Array]:
    difficulty = limited(free[..., n_systems:], limit)
    return {"score": free[..., :n_systems], "difficulty": difficulty}
