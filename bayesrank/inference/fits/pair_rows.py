r"""Fits of paired comparisons vote by vote, with covariates, under normal priors.

A vote on i and j with covariates x has a likelihood
(:mod:`bayesrank.inference.fits.vote_likelihoods`) at

.. math:: d = \theta_i - \theta_j + x^\top \beta

and perhaps at the mean level :math:`m = (\theta_i + \theta_j) / 2`. One pass over the rows gives
its derivatives; sums over pairs give those of the scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.battles import Battles
from bayesrank.connectivity import strongly_connected
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit, anchored, constrained_steps
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_counts import pair_counts, start_of
from bayesrank.inference.fits.pairs import Array, PairLikelihood, inner_threshold
from bayesrank.inference.fits.penalty import checked_precision
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms, VoteLikelihood, VoteModel, bind
from bayesrank.inference.fits.zero_sum import NormalScores, ZeroSumScores, centred, first_scores
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

if TYPE_CHECKING:
    from scipy.sparse import csc_array

type Unpack = Callable[[Array], dict[str, Array]]
type Names = Callable[[Array, Array], dict[str, Array]]

# Rows whose derivatives are held at once, in a core's own cache.
_BLOCK = 1 << 15
# A step this short is Newton's own, without a look at what it gains.
_SHORT = 0.1
_MOST_HALVINGS = 40
# Shares of the mean curvature that are added, one after another, until all curvature is positive.
_DAMPING = (0.0, *(10.0**power for power in range(-8, 4)))


@dataclass(frozen=True)
class PairRows(ZeroSumScores):
    """The penalised log-likelihood of votes with covariates: one resample.

    Free coordinates: the scores, the coefficients of the covariates, then the parameters that all
    votes share.

    Attributes
    ----------
    likelihood : VoteLikelihood
        Of the votes.
    data : Battles or VoteRows
        The systems of each vote.
    design : Design
        Covariates.
    effect_mean, effect_precision : float
        Normal prior on the coefficients.
    shared_mean, shared_precision : numpy.ndarray of shape (shared,)
        Normal priors on the shared parameters.
    """

    likelihood: VoteLikelihood
    data: Battles | VoteRows
    design: Design
    effect_mean: float
    effect_precision: float
    shared_mean: Array
    shared_precision: Array

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return len(self.data.first)

    @property
    def blocks(self) -> list[slice]:
        """The blocks of votes."""
        return [slice(start, start + _BLOCK) for start in range(0, self.cells, _BLOCK)]

    @property
    def n_shared(self) -> int:
        """Number of parameters that all votes share."""
        return len(self.shared_mean)

    @cached_property
    def _largest_count(self) -> float:
        one, other = (
            np.bincount(side, self.data.weight, self.size)
            for side in (self.data.first, self.data.second)
        )
        return float((one + other).max())

    def scale(self, point: Array) -> Array:
        """Return the largest number of votes on a system, plus the prior's precision."""
        return self._largest_count + self.prior.precision

    def split(self, point: Array) -> tuple[Array, Array, Array]:
        """Split a point of shape (p,) into scores, coefficients and shared parameters."""
        last = len(point) - self.n_shared
        return point[: self.size], point[self.size : last], point[last:]

    def predictors(self, point: Array, some: Rows) -> tuple[Array, Array, Array]:
        """Return d and m of a block of votes, and the shared parameters."""
        score, effects, shared = self.split(point)
        one, other = score[self.data.first[some]], score[self.data.second[some]]
        level = 0.5 * (one + other) if self.likelihood.has_level else np.zeros(1)
        return one - other + self.design[some] @ effects, level, shared

    def terms(self, point: Array, some: Rows) -> Terms:
        """Return the derivatives of a block of votes at a point of shape (p,)."""
        return self.likelihood.terms(some, *self.predictors(point, some))

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        each = (
            self.likelihood.value(some, *self.predictors(point[0], some)).sum()
            for some in self.blocks
        )
        return np.array([sum(each)])

    def value(self, point: Array) -> float:
        """Return the objective at one point, of shape (1, p)."""
        score, effects, shared = self.split(point[0])
        penalty = self.prior.precision[0] * ((score - self.prior.mean[0]) ** 2).sum()
        penalty += self.effect_precision * ((effects - self.effect_mean) ** 2).sum()
        gaps = np.where(self.likelihood.held(shared), 0.0, shared - self.shared_mean)
        penalty += (self.shared_precision * gaps**2).sum()
        return float(self.loglik(point)[0]) - 0.5 * float(penalty)

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        # Gradient and information are asked for one after the other at the optimum.
        key = point.tobytes()
        if key not in self._last:
            self._last.clear()
            self._last[key] = self._expand(point)
        gradient, matrix = self._last[key]
        return gradient[np.newaxis].copy(), lambda: matrix[np.newaxis].copy()

    @cached_property
    def _last(self) -> dict[bytes, tuple[Array, Array]]:
        """The last expansion, by its point."""
        return {}

    def _expand(self, point: Array) -> tuple[Array, Array]:
        sums, size = self.sums(point[0]), self.size
        gradient, p = sums.gradient, len(sums.gradient)
        matrix = np.zeros((p, p))
        pairs = sums.pairs.reshape(size, size)
        matrix[:size, :size] = pairs + pairs.T + np.diag(sums.diagonal)
        matrix[:size, size:], matrix[size:, :size] = sums.cross, sums.cross.T
        matrix[size:, size:] = sums.corner
        if self.likelihood.has_level:  # scores sum to zero, whatever the level would gain
            gradient[:size] -= gradient[:size].mean()
        gradient[:size] += self.prior.gradient(point[:, :size])[0]
        np.einsum("ii->i", matrix)[:size] += self.prior.precision[0]
        return gradient, matrix

    def sums(self, point: Array) -> "Sums":
        """Add up what votes tell, and what the priors do on all but the scores."""
        _, effects, shared = self.split(point)
        sums = Sums.zero(self.size, len(point) - self.size, self.width)
        for some in self.blocks:
            self._add(self.terms(point, some), some, sums)
        last, held = len(effects), self.likelihood.held(shared)
        slopes, diagonal = sums.gradient[self.size :], np.einsum("ii->i", sums.corner)
        slopes[:last] -= self.effect_precision * (effects - self.effect_mean)
        diagonal[:last] += self.effect_precision
        slopes[last:] -= self.shared_precision * np.where(held, 0.0, shared - self.shared_mean)
        diagonal[last:] += np.where(held, 1.0, self.shared_precision)
        return sums

    @property
    def width(self) -> int:
        """How many scores may meet one score."""
        return self.size

    def _add(self, terms: Terms, some: Rows, sums: "Sums") -> None:
        """Add what a block of votes tells."""
        first, second, x = self.data.first[some], self.data.second[some], self.design[some]
        size, level = self.size, terms.level
        weighted = terms.bend[:, np.newaxis] * x
        # What goes to the first system and off the second; and half to each of them.
        lead = terms.slope if level is None else level.with_ahead
        found = _incidence(first, second, (1.0, -1.0), size) @ np.column_stack(
            [terms.slope, lead, weighted, terms.mixed]
        )
        shares = [2.0 * terms.bend]
        if level is not None:
            leading = level.with_ahead[:, np.newaxis] * x
            shares += [0.5 * level.bend, level.slope, leading, level.mixed]
        halves = _incidence(first, second, (0.5, 0.5), size) @ np.column_stack(shares)
        sums.diagonal += halves[:, 0]
        across = -terms.bend
        if level is not None:
            sums.diagonal += halves[:, 1] + found[:, 1]
            sums.gradient[:size] += halves[:, 2]
            sums.cross += halves[:, 3:]
            across += 0.25 * level.bend
        sums.gradient[:size] += found[:, 0]
        sums.cross += found[:, 2:]
        np.add.at(sums.pairs, first.astype(np.int64) * self.width + second % self.width, across)
        k = x.shape[1]
        sums.gradient[size : size + k] += terms.slope @ x
        sums.gradient[size + k :] += terms.shared_slope.sum(axis=0)
        mixed = x.T @ terms.mixed
        sums.corner[:k, :k] += x.T @ weighted
        sums.corner[:k, k:] += mixed
        sums.corner[k:, :k] += mixed.T
        sums.corner[k:, k:] += terms.corner

    def newton(self, point: Array) -> Array:
        """Return the Newton step, halved until the objective rises, of shape (resample, p)."""
        gradient, information = self.expand(point)
        step = ascent_step(information()[0], self.held_rows(point)[0], gradient[0])[np.newaxis]
        return self.shortened(point, step)

    def shortened(self, point: Array, step: Array) -> Array:
        """Return a step, of shape (1, p), halved until the objective rises."""
        last = step.shape[1] - self.n_shared
        bounded = self.likelihood.positive & (step[0, last:] < 0.0)
        if bounded.any():
            room = 0.5 * point[0, last:][bounded] / -step[0, last:][bounded]
            step *= min(1.0, room.min())
        if not np.abs(step).max() > _SHORT:
            return step
        now = self.value(point)
        for _ in range(_MOST_HALVINGS):
            if self.value(point + step) > now:  # false for NaN
                break
            step *= 0.5
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return nothing: steps are safe already."""
        return np.zeros(len(step))


@dataclass
class Sums:
    """What votes add up to at a point: the gradient, and the information in its parts.

    Attributes
    ----------
    gradient : numpy.ndarray of shape (p,)
        Of the scores, then of the other parameters.
    diagonal : numpy.ndarray of shape (score,)
        Information of each score.
    pairs : numpy.ndarray of shape (score * width,)
        That across the scores of the first and the second system, only in this order.
    cross : numpy.ndarray of shape (score, other)
        That across scores and others.
    corner : numpy.ndarray of shape (other, other)
        That of the others.
    """

    gradient: Array
    diagonal: Array
    pairs: Array
    cross: Array
    corner: Array

    @classmethod
    def zero(cls, size: int, n_others: int, width: int) -> "Sums":
        """Return sums of nothing."""
        return cls(
            np.zeros(size + n_others),
            np.zeros(size),
            np.zeros(size * width),
            np.zeros((size, n_others)),
            np.zeros((n_others, n_others)),
        )


def side_slopes(terms: Terms) -> tuple[Array, Array]:
    """Return the derivatives of votes in the scores of their first and of their second system."""
    if terms.level is None:
        return terms.slope, -terms.slope
    half = 0.5 * terms.level.slope
    return half + terms.slope, half - terms.slope


def _incidence(
    first: NDArray[np.integer[Any]],
    second: NDArray[np.integer[Any]],
    values: tuple[float, float],
    size: int,
) -> "csc_array":
    """Return the matrix that adds multiples of rows to both their systems, (system, vote)."""
    from scipy.sparse import csc_array  # other fits of pairs do not need SciPy

    n = len(first)
    places = np.stack([first, second], axis=1).ravel()
    return csc_array((np.tile(values, n), places, 2 * np.arange(n + 1)), shape=(size, n))


def ascent_step(matrix: Array, held: Array, gradient: Array) -> Array:
    """Return Newton's step along what is not held, damped until it leads upwards.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (p, p)
        Negative Hessian.
    held : numpy.ndarray of shape (p, constraint)
        Directions that are held.
    gradient : numpy.ndarray of shape (p,)
        The gradient.

    Returns
    -------
    numpy.ndarray of shape (p,)
        NaN where nothing damps the matrix enough.
    """
    size = np.abs(np.diag(matrix)).mean()
    for damping in _DAMPING:
        damped = matrix + damping * size * np.eye(len(matrix)) if damping else matrix
        try:
            np.linalg.cholesky(anchored(damped, held))
        except np.linalg.LinAlgError:
            continue
        return constrained_steps(damped, held, gradient[np.newaxis])[0]
    return np.full(len(gradient), np.nan)


def pair_rows(
    likelihood: PairLikelihood | VoteModel,
    data: Battles | VoteRows,
    design: Design,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: float = 0.0,
    effect_mean: float = 0.0,
    effect_precision: float = 0.0,
    shared_mean: ArrayLike = 0.0,
    shared_precision: ArrayLike = 0.0,
) -> PairRows:
    """Build the log-posterior of votes with covariates under normal priors.

    Parameters
    ----------
    likelihood : PairLikelihood or VoteModel
        Of one vote.
    data : Battles or VoteRows
        The votes.
    design : Design
        Their covariates; there may be none.
    prior_mean, prior_precision
        Normal prior on the scores; a precision of 0 is flat.
    effect_mean, effect_precision
        That on the coefficients.
    shared_mean, shared_precision
        Those on the shared parameters, broadcastable to (shared,).

    Returns
    -------
    PairRows

    Raises
    ------
    ValueError
        If a precision is negative.
    """
    checked_precision("effect_precision", effect_precision)
    checked_precision("shared_precision", shared_precision)
    prior = NormalScores.of(prior_mean, prior_precision, (), len(data.systems))
    votes = data if isinstance(data, VoteRows) else VoteRows.of(data)
    bound = bind(likelihood, votes)
    k = len(bound.positive)
    shared = [np.broadcast_to(each, k).astype(float) for each in (shared_mean, shared_precision)]
    return PairRows(prior, bound, data, design, effect_mean, effect_precision, *shared)


def fit_pair_rows(likelihood: PairLikelihood, data: Battles, design: Design, **priors: Any) -> Fit:
    """Fit a model of paired comparisons with covariates, by Newton's method.

    Parameters
    ----------
    likelihood, data, design, **priors
        As in :func:`pair_rows`.

    Returns
    -------
    Fit
        Free coordinates: those of :class:`PairRows`. ``parameters["effect"]`` has the coefficients
        of the covariates, of shape (covariate,), ``parameters["tie_strength"]`` as of the pairs.

    Examples
    --------
    >>> from bayesrank.inference.fits.pairs import bradley_terry
    >>> data = Battles(["a", "a", "b", "b"], ["b", "b", "a", "a"], [1, 1, 0, 1])
    >>> fit = fit_pair_rows(bradley_terry(), data, data.design("1"), effect_precision=1.0,
    ...     prior_precision=1.0)
    >>> bool(fit.parameters["effect"][0] > 0.0)
    True
    """
    problem = pair_rows(likelihood, data, design, **priors)
    size, k = problem.size, design.shape[1]
    precision = float(problem.shared_precision.sum())
    start = start_of(pair_counts(likelihood, data.wins, data.ties, tie_precision=precision))[0]
    met = data.wins + (0.5 * data.ties if likelihood.ties != "ignore" else 0.0)
    return climb(
        problem,
        np.concatenate([start[:size], np.zeros(k), start[size:]]),
        partial(_unpack, size=size, n_effects=k, log_tie=likelihood.log_tie),
        connected=lambda: bool(strongly_connected(met[np.newaxis] > 0.0)[0]),
    )


def fit_votes(
    likelihood: VoteModel,
    data: Comparisons,
    design: Design,
    names: Names,
    **priors: Any,
) -> Fit:
    """Fit a model of votes, of which equal ones are merged where there are no covariates.

    Parameters
    ----------
    likelihood : VoteModel
        Of one vote.
    data : Comparisons
        Battles, or counts.
    design : Design
        Covariates of battles; there may be none.
    names : callable
        Names the shared parameters, of shape (..., shared), given the scores.
    **priors
        As in :func:`pair_rows`.

    Returns
    -------
    Fit
        Free coordinates: those of :class:`PairRows`. ``parameters["effect"]`` has the coefficients
        of the covariates where there are some.
    """
    votes, k = VoteRows.of(data), design.shape[1]
    if not k:
        votes = votes.merged()
        design = Design.empty(len(votes.first))
    problem = pair_rows(likelihood, votes, design, **priors)
    start = start_of_votes(problem, data)
    unpack = partial(name_votes, size=problem.size, n_effects=k, names=names)
    return climb(problem, start, unpack)


def start_of_votes(problem: PairRows, data: Comparisons) -> Array:
    """Return where to begin: by the points of systems and the shares of results."""
    points, played = (data.wins + 0.5 * data.ties).sum(axis=1), data.totals.sum(axis=1)
    scores = first_scores(points[np.newaxis], played[np.newaxis])[0]
    return np.concatenate([scores, np.zeros(problem.design.shape[1]), problem.likelihood.start()])


def climb(
    problem: PairRows,
    start: Array,
    unpack: Unpack,
    *,
    connected: Callable[[], bool] = lambda: True,
) -> Fit:
    """Maximise the objective of votes from a point of shape (p,)."""
    optimum = maximise(problem, start[np.newaxis])
    optimum.point[:, : problem.size] = centred(optimum.point[:, : problem.size])
    exists = problem.prior.precision > 0.0
    if not exists.all():
        exists = connected() & ~problem.is_flat(optimum.point)
    moved = partial(displace, positive=problem.likelihood.positive)
    return Fit.at(problem, optimum, (), unpack, exists=exists, displace=moved)


def displace(free: Array, deviations: Array, *, positive: NDArray[np.bool_]) -> Array:
    """Move positive coordinates in proportion, which agrees to first order and keeps them so."""
    moved = free + deviations
    last = free.shape[-1] - len(positive)
    for column in last + np.flatnonzero(positive):
        inside = inner_threshold(free[..., column])
        moved[..., column] = free[..., column] * np.exp(deviations[..., column] / inside)
    return moved


def name_votes(free: Array, *, size: int, n_effects: int, names: Names) -> dict[str, Array]:
    """Name the scores, the coefficients, where there are some, and the shared parameters."""
    named = {"score": free[..., :size]}
    if n_effects:
        named["effect"] = free[..., size : size + n_effects]
    return named | names(named["score"], free[..., size + n_effects :])


def _unpack(free: Array, *, size: int, n_effects: int, log_tie: float | None) -> dict[str, Array]:
    """Name the scores, the coefficients, and the tie strength where the model has one."""
    named = {"score": free[..., :size], "effect": free[..., size : size + n_effects]}
    if free.shape[-1] > size + n_effects:
        named["tie_strength"] = np.exp(free[..., -1])
    elif log_tie is not None:
        named["tie_strength"] = np.full(free.shape[:-1], np.exp(log_tie))
    return named
