r"""Bradley-Terry-Luce composite likelihood by Newton's method.

Every system i in the winner set U of an event is a choice out of itself and the losers V,

.. math:: \ell = \sum_k c_k \sum_{i \in U_k} \log
   \frac{\pi_i}{\pi_i + \sum_{j \in V_k} \pi_j}, \qquad \pi = e^{\theta},

with :math:`c_k` the multiplicity of event k.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.log_odds import softplus
from bayesrank.inference.fits.newton import maximise, solve_zero_sum
from bayesrank.inference.fits.pairs import first_scores, paired_fit
from bayesrank.inference.fits.penalty import Array, ScorePenalty


@dataclass(frozen=True)
class SetChoices:
    """Penalised composite log-likelihood of winner and loser sets.

    Free coordinates: the scores.

    Attributes
    ----------
    won, lost : numpy.ndarray of shape (event, system)
        1 for the systems in U, and in V.
    weights : numpy.ndarray of shape (resample, event)
        Multiplicity of each event.
    penalty : ScorePenalty
        Normal prior on the scores.
    """

    won: Array
    lost: Array
    weights: Array
    penalty: ScorePenalty

    @property
    def scale(self) -> Array:
        """Largest number of choices that a system takes part in, plus the prior's precision."""
        each = self.weights @ self.won + (self.weights * self.won.sum(axis=-1)) @ self.lost
        return each.max(axis=-1) + self.penalty.precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return max(self.won.size, 1)

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(self, weights=self.weights[index], penalty=self.penalty.take(index))

    def loglik(self, point: Array) -> Array:
        """Return the composite log-likelihood, of shape (resample,)."""
        top = point.max(axis=-1, keepdims=True)
        strength = np.exp(point - top)
        against = strength @ self.lost.T
        # log(pi_i + sum of the losers), from its larger part.
        with np.errstate(divide="ignore"):
            behind = np.log(against)[:, :, None] - (point - top)[:, None, :]
        lost = (self.won * softplus(behind)).sum(axis=-1)
        return -(self.weights * lost).sum(axis=-1)

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        return self.loglik(point) - self.penalty.value(point)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, system)."""
        return self._derivatives(point)[0]

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, system, system)."""
        _, diagonal, strength, sharp = self._derivatives(point)
        return self._information(diagonal, strength, sharp)

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, system)."""
        gradient, diagonal, strength, sharp = self._derivatives(point)
        matrix = self._information(diagonal, strength, sharp)
        return solve_zero_sum(matrix, gradient, point.shape[-1], self.penalty.precision)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two choices at most."""
        return step.max(axis=-1) - step.min(axis=-1)

    def _derivatives(self, point: Array) -> tuple[Array, Array, Array, Array]:
        """Return the gradient, expected choices, strengths and c U / (pi + losers)^2."""
        strength = np.exp(point - point.max(axis=-1, keepdims=True))
        total = (strength @ self.lost.T)[:, :, None] + strength[:, None, :]
        share = self.weights[:, :, None] * self.won
        share /= total
        total = np.divide(share, total, out=total)
        expected = share.sum(axis=1) + share.sum(axis=-1) @ self.lost
        expected *= strength
        gradient = self.weights @ self.won - expected - self.penalty.gradient(point)
        return gradient, expected, strength, total

    def _information(self, diagonal: Array, strength: Array, sharp: Array) -> Array:
        """Sum diag(p) - p p' over all choices; overwrites `sharp`."""
        own = sharp.sum(axis=1)
        # p p' has parts winner x loser, its transpose, and loser x loser: half of the last with
        # the first make one product, which is then symmetrised.
        sharp += (0.5 * sharp.sum(axis=-1))[:, :, None] * self.lost
        half = sharp.transpose(0, 2, 1) @ self.lost
        matrix = half + half.transpose(0, 2, 1)
        n_systems = strength.shape[-1]
        along = matrix.reshape(len(matrix), -1)[:, :: n_systems + 1]
        along += own
        matrix *= -strength[:, :, None] * strength[:, None, :]
        along += diagonal + self.penalty.precision[:, None]
        return matrix


def bradley_terry_luce_problem(
    won: ArrayLike,
    lost: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> SetChoices:
    """Build the objective that :func:`fit_bradley_terry_luce` maximises; see there.

    Parameters
    ----------
    won, lost, weights, prior_mean, prior_precision
        As in :func:`fit_bradley_terry_luce`.

    Returns
    -------
    SetChoices
        The free coordinates are the scores.
    """
    winners, losers = np.asarray(won, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    multiplicity = np.ones(len(winners)) if weights is None else np.asarray(weights, np.float64)
    lead = multiplicity.shape[:-1]
    informative = winners.any(axis=-1) & losers.any(axis=-1)
    penalty = ScorePenalty.broadcast(prior_mean, prior_precision, lead, winners.shape[-1])
    counts = multiplicity.reshape(math.prod(lead), len(winners))
    if not informative.all():
        winners, losers, counts = winners[informative], losers[informative], counts[:, informative]
    return SetChoices(winners, losers, counts, penalty)


def fit_bradley_terry_luce(
    won: ArrayLike,
    lost: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> Fit:
    """Fit the Bradley-Terry-Luce model to winner and loser sets.

    Parameters
    ----------
    won, lost : array_like of shape (event, system)
        1 for the systems in the winner set, and in the loser set, of each event; a system in
        neither took no part. Events without winners or without losers carry no information.
    weights : array_like of shape (..., event), optional
        Multiplicity of each event; leading axes are resamples. 1 by default.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero.

    Raises
    ------
    ValueError
        If `prior_precision` is negative.

    References
    ----------
    .. [1] R. D. Luce. Individual Choice Behavior: A Theoretical Analysis. Wiley (1959).

    Examples
    --------
    >>> won = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0]]
    >>> fit = fit_bradley_terry_luce(won, 1 - np.array(won))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    problem = bradley_terry_luce_problem(
        won, lost, weights, prior_mean=prior_mean, prior_precision=prior_precision
    )
    lead = () if weights is None else np.shape(weights)[:-1]
    each = problem.weights
    points = (each * problem.lost.sum(axis=-1)) @ problem.won
    lost_points = (each * problem.won.sum(axis=-1)) @ problem.lost
    optimum = maximise(problem, first_scores(points, points + lost_points))
    # Systems with the same results in every event; other ties are left to the resolution.
    columns = np.concatenate([problem.won, problem.lost]).T
    rows = np.broadcast_to(columns, (len(each), *columns.shape))
    scores = settle_ties(optimum.point, points + problem.penalty.pull(), rows=rows)
    exists = problem.penalty.precision > 0.0
    if not exists.all():
        wins = (problem.won.T * each[:, None, :]) @ problem.lost
        exists = exists | strongly_connected(wins > 0.0)
    return paired_fit(problem, optimum, scores, lead, exists=exists)
