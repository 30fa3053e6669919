r"""Paired comparisons: likelihoods as pointwise functions, and one Newton's method for them all.

A likelihood is stated once, as a function of the difference of two scores and perhaps of a tie
parameter c that all pairs share,

.. math:: \ell = \sum_{i \ne j} f(W_{ij}, T_{ij} / 2;\ \theta_i - \theta_j,\ c),

with its derivatives: a :class:`PairLikelihood`. The fit under normal priors, the curvature at the
optimum, and the gradients for other counts that the sandwich needs all follow from it. There is one
function per method, :func:`bradley_terry` to :func:`rao_kupper`; it takes the options of the
factory that concern the likelihood, and returns it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.laplace import anchored, zero_sum
from bayesrank.inference.fits.log_odds import softplus
from bayesrank.inference.fits.newton import (
    ConcaveProblem,
    Optimum,
    maximise,
    smoothed_log_odds,
    solve_zero_sum,
    step_length,
)
from bayesrank.inference.fits.penalty import Array, ScorePenalty, checked_precision

TiePolicy = Literal["ignore", "half"]
# A tie parameter of each resample, or a fixed one.
Tie = Array | np.float64

# exp of a difference of two scores within this bound neither overflows nor underflows.
_LARGEST_SCORE = 300.0
_LARGEST_THRESHOLD = 100.0
# Log-odds that no finite estimate reaches on fewer than millions of comparisons; beyond them the
# curvature is looked at, and its smallest eigenvalue must be this share of the counts.
_FAR = 15.0
_FLAT = 1e-12
# Weights with which a sum of fractions is the same only where all of them are.
_IRRATIONAL = (2.0**0.5, 3.0**0.5)


@dataclass(frozen=True)
class PairLikelihood:
    """A concave log-likelihood of paired results, pointwise in a difference of scores.

    `value` and `derivatives` see a pair from one side. They are called with the wins of one system
    over the other, half their ties, how far its score is ahead, and the tie parameter: arrays that
    broadcast.

    Attributes
    ----------
    value : callable
        Returns the log-likelihood.
    derivatives : callable
        Returns the slope in the difference of the scores and minus the second derivative; where a
        tie parameter is estimated also the slope in it, minus the mixed derivative, and minus the
        second derivative.
    ties : {"ignore", "half", "outcome"}
        Whether a tie is dropped, counts as half a win for both, or is an outcome of its own.
    log_tie : float, optional
        A fixed tie parameter.
    start : callable, optional
        Returns from the share of ties by what to multiply log-odds of a point for scores to begin
        with, and the tie parameter to begin with; given where that is estimated.
    lowest_tie : float, default -inf
        Its value without any tie; with nothing but ties it is infinite.
    safe_share : callable, optional
        ``safe_share(problem, point, step)``: the factor that makes a Newton step safe, where its
        reach (see :mod:`bayesrank.inference.fits.newton`) does not tell.
    points_suffice : bool, default True
        Whether the data enter through points (half of one for a tie) and numbers of comparisons.
    unit : float, default 1
        How many scores make up a logit, about.
    """

    value: Callable[[Array, Array, Array, Tie], Array]
    derivatives: Callable[[Array, Array, Array, Tie], tuple[Array, ...]]
    ties: Literal["ignore", "half", "outcome"] = "outcome"
    log_tie: float | None = None
    start: Callable[[Array], tuple[Array, Array]] | None = None
    lowest_tie: float = -np.inf
    safe_share: "Callable[[PairCounts, Array, Array], Array] | None" = None
    points_suffice: bool = True
    unit: float = 1.0

    def gradient(self, point: Array, wins: Array, ties: Array) -> Array:
        """Return gradients of the log-likelihood at one point, for many counts.

        Parameters
        ----------
        point : numpy.ndarray of shape (p,)
            The scores, then the tie parameter where it is estimated.
        wins, ties : numpy.ndarray of shape (resample, system, opponent)
            Counts.

        Returns
        -------
        numpy.ndarray of shape (resample, p)
        """
        return PairCounts.of(self, wins, ties).gradient(point[np.newaxis])


def bradley_terry(*, ties: TiePolicy = "ignore", **_: Any) -> PairLikelihood:
    """Return the Bradley-Terry likelihood, P(i beats j) = sigma(theta_i - theta_j)."""
    return PairLikelihood(_logistic_value, _logistic_derivatives, ties=_checked(ties))


def _checked(ties: TiePolicy) -> TiePolicy:
    if ties not in ("ignore", "half"):
        raise ValueError(f"ties must be 'ignore' or 'half'; got {ties!r}")
    return ties


def _logistic_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    return -won * softplus(-ahead)


def _logistic_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, Array]:
    odds = np.exp(-ahead)
    win = 1.0 / (1.0 + odds)
    odds *= win
    slope = won * odds
    return slope, slope * win


def davidson(**_: Any) -> PairLikelihood:
    r"""Return Davidson's likelihood, in which P(tie) is proportional to nu sqrt(pi_i pi_j).

    The tie parameter is :math:`\log\nu`.
    """
    return PairLikelihood(
        _davidson_value,
        _davidson_derivatives,
        start=_davidson_start,
    )


def _davidson_start(share: Array) -> tuple[Array, Array]:
    decided = 1.0 - share
    # Half a point more for every tie moves the scores less.
    return 1.0 / np.maximum(decided, 0.01), np.log(2.0 * share) - np.log(decided)


def _davidson_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    half = 0.5 * np.abs(ahead)
    # log(2 cosh(d / 2) + nu) from its largest term outwards.
    total = np.logaddexp(half + np.log1p(np.exp(-2.0 * half)), tie)
    with np.errstate(invalid="ignore"):  # no ties, or nothing else: log nu is infinite
        return won * (0.5 * ahead - total) + np.where(tied > 0.0, tied * (tie - total), 0.0)


def _davidson_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, ...]:
    win = np.exp(0.5 * ahead)
    loss = 1.0 / win
    sides = win + loss
    with np.errstate(over="ignore"):
        draw = 1.0 / (1.0 + np.exp(-tie) * sides)
    decided = 1.0 - draw
    share = decided / sides
    win *= share
    loss *= share
    half_lead = 0.5 * (win - loss)
    half = 0.5 * draw
    count = won + tied
    mixed = count * draw
    # Products of small numbers rather than differences of large ones.
    slope = won * (loss + half) - tied * half_lead
    tie_slope = tied * decided - won * draw
    bend = mixed * decided
    mixed *= half_lead
    count *= win
    count *= loss
    return slope, count + 0.25 * bend, tie_slope, -mixed, bend


def rao_kupper(*, tie_strength: float | None = None, **_: Any) -> PairLikelihood:
    r"""Return the Rao-Kupper likelihood, P(i beats j) = pi_i / (pi_i + kappa pi_j).

    The tie parameter is :math:`c = \log\kappa \ge 0`. A tie has probability
    :math:`(e^{2c} - 1) P(i \text{ beats } j) P(j \text{ beats } i)`.
    """
    if tie_strength is None:
        return PairLikelihood(
            _threshold_value,
            _threshold_derivatives,
            start=lambda share: (np.ones_like(share), np.log1p(share) - np.log1p(-share)),
            lowest_tie=0.0,
            safe_share=_safe_threshold,
            points_suffice=False,
        )
    if not 1.0 <= tie_strength < np.inf:
        raise ValueError(f"tie_strength must be finite and at least 1; got {tie_strength!r}")
    return PairLikelihood(
        _threshold_value,
        _threshold_derivatives,
        log_tie=float(np.log(tie_strength)),
        points_suffice=False,
    )


def _threshold_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    inside = np.where(tie == 0.0, 1.0, tie)  # where there are no ties
    with np.errstate(invalid="ignore"):  # nothing but ties: c is infinite
        ties = tied * (2.0 * inside + np.log(-np.expm1(-2.0 * inside)))
        return ties - (won + 2.0 * tied) * softplus(tie - ahead)


def _threshold_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, ...]:
    behind = np.exp(np.minimum(tie, _LARGEST_THRESHOLD) - ahead)
    win = 1.0 / (1.0 + behind)
    behind *= win
    not_lost = won + tied
    not_lost += tied
    slope = not_lost * behind
    curvature = slope * win
    if not tie.ndim:
        return slope, curvature
    inside = np.where(tie == 0.0, 1.0, tie)
    bend = np.sinh(np.minimum(inside, _LARGEST_THRESHOLD)) ** -2.0
    tie_slope = tied * (2.0 / -np.expm1(-2.0 * inside)) - slope
    return slope, curvature, tie_slope, -curvature, curvature + bend * tied


def _safe_threshold(problem: "PairCounts", point: Array, step: Array) -> Array:
    """Halve c at most, and go no further than the curvature in it is known."""
    log_kappa, move = point[:, -1], step[:, -1]
    inside = np.where((log_kappa == 0.0) | np.isinf(log_kappa), 1.0, log_kappa)
    share = 0.5 * inside / np.maximum(-move, 0.5 * inside)
    # log(e^{2c} - 1) has |third| = 2 coth(c) |second|.
    return share * step_length(2.0 / np.tanh(0.5 * inside) * np.abs(move) * share)


def thurstone_mosteller(*, ties: TiePolicy = "ignore", **_: Any) -> PairLikelihood:
    """Return the Thurstone-Mosteller likelihood, P(i beats j) = Phi(theta_i - theta_j)."""
    return PairLikelihood(
        _probit_value,
        _probit_derivatives,
        ties=_checked(ties),
        safe_share=_safe_probit,
        points_suffice=False,
        unit=0.6,
    )


def _probit_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    from scipy.special import log_ndtr  # other fits of pairs do not need SciPy

    return won * log_ndtr(ahead)


def _probit_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, Array]:
    from scipy.special import erfcx

    # The inverse Mills ratio phi / Phi.
    ratio = (2.0 / np.pi) ** 0.5 / erfcx(ahead * -(0.5**0.5))
    slope = won * ratio
    return slope, slope * (ratio + ahead)


def _safe_probit(problem: "PairCounts", point: Array, step: Array) -> Array:
    """Go no further than the curvature is known: |third| is at most (1/2 + |d|) |second|."""
    met = problem.n_pairs > 0.0
    largest = [
        np.where(met, np.abs(each[:, :, np.newaxis] - each[:, np.newaxis, :]), 0.0).max((-1, -2))
        for each in (point, step)
    ]
    ahead, move = largest
    share = np.ones(len(move))
    # How far the step goes decides how large d becomes. The odd ones of these are safe.
    for _ in range(5):
        share = step_length(move * (0.5 + ahead + share * move))
    return share


@dataclass(frozen=True)
class PairCounts:
    """The penalised log-likelihood of tables of results.

    Free coordinates: the scores, then the tie parameter where it is estimated. Without any ties, or
    with nothing else, the tie parameter is held at the end of its range.

    Attributes
    ----------
    likelihood : PairLikelihood
        Of one side of a pair.
    won, tied : numpy.ndarray of shape (resample, system, opponent)
        Wins, and half the ties; a single 0 where these do not count.
    penalty : ScorePenalty
        Normal prior on the scores.
    tie_mean, tie_precision : float
        Normal prior on the tie parameter; precision 0 for a flat one.
    """

    likelihood: PairLikelihood
    won: Array
    tied: Array
    penalty: ScorePenalty
    tie_mean: float = 0.0
    tie_precision: float = 0.0

    @classmethod
    def of(
        cls,
        likelihood: PairLikelihood,
        wins: ArrayLike,
        ties: ArrayLike,
        *,
        prior_mean: ArrayLike = 0.0,
        prior_precision: ArrayLike = 0.0,
        tie_mean: float = 0.0,
        tie_precision: float = 0.0,
    ) -> Self:
        """Check and flatten what :func:`fit_pairs` is given; see there."""
        won, tied = np.asarray(wins, dtype=np.float64), 0.5 * np.asarray(ties, dtype=np.float64)
        if won.shape != tied.shape:
            won, tied = np.broadcast_arrays(won, tied)
        lead, size = won.shape[:-2], won.shape[-1]
        if likelihood.log_tie == 0.0 and tied.any():
            raise ValueError(
                "tie_strength must be greater than 1 when the comparisons contain ties; got 1"
            )
        if likelihood.ties == "half":
            won = won + tied
        checked_precision("tie_precision", tie_precision)
        penalty = ScorePenalty.broadcast(prior_mean, prior_precision, lead, size)
        won, tied = won.reshape(-1, size, size), tied.reshape(-1, size, size)
        if likelihood.ties != "outcome":
            tied = np.zeros((1, 1, 1))
        return cls(likelihood, won, tied, penalty, tie_mean, tie_precision)

    @property
    def size(self) -> int:
        """Number of systems."""
        return self.won.shape[-1]

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.size**2

    @cached_property
    def n_pairs(self) -> Array:
        """Comparisons per pair, of shape (resample, system, opponent)."""
        one_side = self.won + self.tied
        return one_side + one_side.transpose(0, 2, 1)

    @cached_property
    def played(self) -> Array:
        """Comparisons of each system, of shape (resample, system)."""
        return self.n_pairs.sum(axis=-1)

    @cached_property
    def points(self) -> Array:
        """Points of each system, half of one for a tie that counts, of shape (resample, system)."""
        return (self.won + self.tied).sum(axis=-1)

    @property
    def scale(self) -> Array:
        """Largest number of comparisons of a system, plus the prior's precision."""
        return self.played.max(axis=-1) + self.penalty.precision

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        tied = self.tied if self.tied.size == 1 else self.tied[index]
        return replace(self, won=self.won[index], tied=tied, penalty=self.penalty.take(index))

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        each = self.likelihood.value(self.won, self.tied, *self._arguments(point))
        # Nothing but ties: all of them are certain.
        return np.where(np.isposinf(point[:, -1]), 0.0, each.sum(axis=(-1, -2)))

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        return self._gradient(point, self._derivatives(point))

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        return self._information(point, self._derivatives(point))

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        derivatives = self._derivatives(point)
        gradient = self._gradient(point, derivatives)
        matrix = self._information(point, derivatives)
        step = solve_zero_sum(matrix, gradient, self.size, self.penalty.precision)
        if self.likelihood.safe_share is not None:
            step *= self.likelihood.safe_share(self, point, step)[:, np.newaxis]
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two outcomes at most."""
        scores = step[:, : self.size]
        return scores.max(axis=-1) - scores.min(axis=-1) + np.abs(step[:, self.size :]).sum(axis=-1)

    def _arguments(self, point: Array) -> tuple[Array, Tie]:
        """Return by how much each system is ahead of each other, and the tie parameter."""
        scores = np.minimum(np.maximum(point[:, : self.size], -_LARGEST_SCORE), _LARGEST_SCORE)
        ahead = scores[:, :, np.newaxis] - scores[:, np.newaxis, :]
        if point.shape[-1] > self.size:
            return ahead, point[:, -1:, np.newaxis]
        return ahead, np.float64(self.likelihood.log_tie or 0.0)

    def _derivatives(self, point: Array) -> tuple[Array, ...]:
        return self.likelihood.derivatives(self.won, self.tied, *self._arguments(point))

    def _gradient(self, point: Array, derivatives: tuple[Array, ...]) -> Array:
        slopes = _net(derivatives[0]) - self.penalty.gradient(point[:, : self.size])
        if point.shape[-1] == self.size:
            return slopes
        tie, held = point[:, -1], self._held(point)
        slope = derivatives[2].sum(axis=(-1, -2))
        if self.tie_precision:
            slope -= self.tie_precision * (np.where(held, 0.0, tie) - self.tie_mean)
        return np.concatenate([slopes, np.where(held, 0.0, slope)[:, np.newaxis]], axis=-1)

    def _information(self, point: Array, derivatives: tuple[Array, ...]) -> Array:
        size, p = self.size, point.shape[-1]
        curvature = derivatives[1] + derivatives[1].transpose(0, 2, 1)
        matrix = np.empty((len(curvature), p, p))
        np.negative(curvature, out=matrix[:, :size, :size])
        diagonal = np.einsum("bii->bi", matrix)
        diagonal[:, :size] += curvature.sum(axis=-1) + self.penalty.precision[:, np.newaxis]
        if p > size:
            held = self._held(point)
            cross = np.where(held[:, np.newaxis], 0.0, _net(derivatives[3]))
            matrix[:, :size, size] = matrix[:, size, :size] = cross
            bend = derivatives[4].sum(axis=(-1, -2)) + self.tie_precision
            diagonal[:, size] = np.where(held, 1.0, bend)
        return matrix

    def _held(self, point: Array) -> NDArray[np.bool_]:
        """Say where the tie parameter is at an end of its range."""
        return (point[:, -1] == self.likelihood.lowest_tie) | np.isinf(point[:, -1])


def _net(slopes: Array) -> Array:
    """Return derivatives in the scores from derivatives in differences, of both sides of pairs."""
    return slopes.sum(axis=-1) - slopes.sum(axis=-2)


def fit_pairs(
    likelihood: PairLikelihood,
    wins: ArrayLike,
    ties: ArrayLike = 0.0,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_mean: float = 0.0,
    tie_precision: float = 0.0,
) -> Fit:
    """Fit a model of paired comparisons with normal priors, by Newton's method.

    Parameters
    ----------
    likelihood : PairLikelihood
        Of one pair, for example :func:`bradley_terry`.
    wins : array_like of shape (..., system, opponent)
        ``wins[..., i, j]``: how often i beat j. Leading axes are resamples.
    ties : array_like of shape (..., system, opponent), default 0
        Symmetric tie counts.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.
    tie_mean, tie_precision : float, default 0
        Normal prior on the tie parameter, as far as its range goes; a precision of 0 is flat.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero, then the tie parameter where it is
        estimated. ``parameters["tie_strength"]`` is its exponential.

    Raises
    ------
    ValueError
        If a precision is negative, or a fixed tie strength leaves no room for ties.

    Examples
    --------
    >>> fit = fit_pairs(bradley_terry(), [[0.0, 3.0], [1.0, 0.0]])
    >>> bool(np.isclose(fit.score[0] - fit.score[1], np.log(3.0)))
    True
    """
    problem = PairCounts.of(
        likelihood,
        wins,
        ties,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        tie_mean=tie_mean,
        tie_precision=tie_precision,
    )
    lead = np.shape(wins)[:-2] or np.shape(ties)[:-2]
    optimum = maximise(problem, _start(problem))
    points, n_pairs, pull = problem.points, problem.n_pairs, problem.penalty.pull()
    if likelihood.points_suffice:
        totals, tables = points + pull, n_pairs
    else:
        totals = points + _IRRATIONAL[0] * pull
        tables = n_pairs + _IRRATIONAL[0] * problem.won + _IRRATIONAL[1] * problem.tied
    scores = settle_ties(optimum.point[:, : problem.size], totals, tables)
    return paired_fit(
        problem,
        optimum,
        scores,
        lead,
        exists=_exists(problem, optimum.point),
        log_tie=likelihood.log_tie,
        displace=np.add if likelihood.lowest_tie != 0.0 else _displace_threshold,
    )


def _start(problem: PairCounts) -> Array:
    """Return where to begin, of shape (resample, p)."""
    likelihood, points, played = problem.likelihood, problem.points, problem.played
    ties = 2.0 * problem.tied.sum(axis=-1) if likelihood.ties == "outcome" else 0.0
    if likelihood.log_tie is not None:
        # A narrow threshold: scores are those of not having lost.
        points, played = points + 0.5 * ties, played + ties
    scores = first_scores(points, played)
    if likelihood.start is None:
        return scores * (likelihood.unit * _strength_of_log_odds(scores))
    n_sides = played.sum(axis=-1)
    share = np.sum(ties, axis=-1) / np.where(n_sides > 0.0, n_sides, 1.0)
    if problem.tie_precision:
        # A proper prior keeps the parameter from every infinite end.
        share = np.clip(share, 0.0 if np.isfinite(likelihood.lowest_tie) else 0.01, 0.99)
    with np.errstate(divide="ignore"):  # no ties, or nothing else
        factor, tie = likelihood.start(share)
    return np.column_stack([scores * factor[:, np.newaxis], tie])


def _strength_of_log_odds(log_odds: Array) -> Array:
    """Return by what to multiply the log-odds of all comparisons for Bradley-Terry scores.

    The odds of a system are those against the others, whose mean strength is further away than the
    mean of all. The share that grows with the spread is fitted to simulated data; together they
    save a step of Newton's method.
    """
    size = log_odds.shape[-1]
    spread = (log_odds**2).sum(axis=-1, keepdims=True) / size
    return (1.0 - 1.0 / size) * (1.0 + spread / 60.0)


def _exists(problem: PairCounts, point: Array) -> NDArray[np.bool_]:
    """Say where the optimum is finite, of shape (resample,)."""
    exists = problem.penalty.precision > 0.0
    if exists.all():
        return exists
    found = strongly_connected(problem.won + problem.tied > 0.0)
    if point.shape[-1] > problem.size:
        found &= ~np.isposinf(point[:, -1]) & ~_runs_away(problem, point)
    return exists | found


def _runs_away(problem: PairCounts, point: Array) -> NDArray[np.bool_]:
    """Say which points lie on a ridge that rises to infinity rather than at a maximum.

    Far out on such a ridge the gradient and even the Newton step fall below any tolerance; what
    gives it away is a curvature of no significance against the counts.
    """
    size = problem.size
    finite = np.where(np.isfinite(point), point, 0.0)
    far = np.ptp(finite[:, :size], axis=-1) + np.abs(finite[:, size]) > _FAR
    away = np.zeros(len(point), dtype=bool)
    rows = np.flatnonzero(far)
    if rows.size:
        some = problem.take(rows)
        matrix = anchored(some.information(point[rows]), zero_sum(size + 1, slice(0, size)))
        away[rows] = np.linalg.eigvalsh(matrix)[:, 0] < _FLAT * some.scale
    return away


def _displace_threshold(free: Array, deviations: Array) -> Array:
    """Move log kappa in proportion, which agrees to first order and keeps kappa above 1."""
    moved = free + deviations
    log_kappa = free[..., -1]
    inside = np.where((log_kappa == 0.0) | np.isinf(log_kappa), 1.0, log_kappa)
    moved[..., -1] = log_kappa * np.exp(deviations[..., -1] / inside)
    return moved


def first_scores(points: Array, played: Array) -> Array:
    """Return zero-sum scores to begin with: smoothed log-odds of a point.

    Parameters
    ----------
    points, played : numpy.ndarray of shape (resample, system)
        Points won and comparisons played by each system.

    Returns
    -------
    numpy.ndarray of shape (resample, system)
    """
    return _centred(smoothed_log_odds(points, played))


class PairedProblem(ConcaveProblem, Protocol):
    """An objective over zero-sum scores and at most one tie parameter."""

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...


def paired_fit(
    problem: PairedProblem,
    optimum: Optimum,
    scores: Array,
    lead: tuple[int, ...],
    *,
    exists: NDArray[np.bool_],
    log_tie: float | None = None,
    displace: Callable[[Array, Array], Array] = np.add,
) -> Fit:
    """Centre the scores and describe the optimum.

    Parameters
    ----------
    problem : PairedProblem
        The objective.
    optimum : Optimum
        Its maximum.
    scores : numpy.ndarray of shape (resample, system)
        The scores at the optimum, with ties settled.
    lead : tuple of int
        Shape of the resample axes.
    exists : numpy.ndarray of bool and shape (resample,)
        False where the data have no finite optimum.
    log_tie : float, optional
        A fixed tie parameter on the log scale, to be reported where it is not a coordinate.
    displace : callable, default numpy.add
        As in :class:`~bayesrank.inference.fits.fit.Fit`.

    Returns
    -------
    Fit
    """
    size = scores.shape[-1]
    point = optimum.point
    point[:, :size] = _centred(scores)
    free = point.reshape(*lead, -1)
    unpack = partial(_unpack, size=size, log_tie=log_tie)
    named = unpack(free)
    return Fit(
        score=named.pop("score"),
        parameters=named,
        converged=(optimum.converged & exists).reshape(lead),
        iterations=optimum.iterations.reshape(lead),
        gradient_norm=optimum.gradient_norm.reshape(lead),
        free=free,
        unpack=unpack,
        log_likelihood=lambda: problem.loglik(point).reshape(lead),
        curvature=partial(_curvature, problem, point, lead, size),
        displace=displace,
    )


def _unpack(free: Array, *, size: int, log_tie: float | None) -> dict[str, Array]:
    """Name the scores, and the tie strength where the model has one."""
    named = {"score": free[..., :size]}
    if free.shape[-1] > size:
        named["tie_strength"] = np.exp(free[..., size])
    elif log_tie is not None:
        named["tie_strength"] = np.full(free.shape[:-1], np.exp(log_tie))
    return named


def _curvature(
    problem: PairedProblem, point: Array, lead: tuple[int, ...], size: int
) -> tuple[Array, Array]:
    p = point.shape[-1]
    return problem.information(point).reshape(*lead, p, p), zero_sum(p, slice(0, size))


def _centred(scores: Array) -> Array:
    return scores - scores.sum(axis=-1, keepdims=True) / scores.shape[-1]
