r"""Likelihoods of paired comparisons, each stated once as a pointwise function, and their fits.

A likelihood is a function of the difference of two scores and perhaps of a tie parameter c that all
pairs share,

.. math:: \ell = \sum_{i \ne j} f(W_{ij}, T_{ij} / 2;\ \theta_i - \theta_j,\ c).

The fit to tables of results under normal priors and the gradients for other counts that the
sandwich needs follow from it and its derivatives. There is one function per
method, which takes the options of the factory that concern the likelihood.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.fit import (
    Fit,
    ZeroSumScores,
    diagonals,
    first_scores,
    fit_scores,
    zero_sum,
)
from bayesrank.inference.fits.newton import Array, step_length
from bayesrank.log_odds import finite_exp, softplus
from bayesrank.priors import FLAT, NormalPrior
from bayesrank.validation import AtLeastOne

TiePolicy = Literal["ignore", "half"]
# A tie parameter of each resample, or a fixed one.
Tie = Array | float
# Log-odds that no finite estimate reaches on fewer than millions of comparisons; beyond them the
# curvature is checked.
_FAR = 15.0
# exp of a difference of two scores within this bound neither overflows nor underflows.
_LARGEST_SCORE = 300.0
_LARGEST_THRESHOLD = 100.0


@dataclass(frozen=True)
class PairLikelihood:
    """A concave log-likelihood of paired results, pointwise in a difference of scores."""

    # They see a pair from one side: functions of the wins of one system over the other, half their
    # ties, how far its score is ahead, and the tie parameter, arrays that broadcast. Derivatives
    # are the slope in the difference of the scores, minus the second derivative; where a tie
    # parameter is estimated also the slope in it, and minus the mixed and the second.
    value: Callable[[Array, Array, Array, Tie], Array]
    derivatives: Callable[[Array, Array, Array, Tie], tuple[Array, ...]]
    # Whether a tie is dropped, counts as half a win for both, or is an outcome of its own.
    ties: Literal["ignore", "half", "outcome"] = "outcome"
    # A fixed tie parameter.
    log_tie: float | None = None
    # Where a tie parameter is estimated: returns from the share of ties by what to multiply
    # log-odds of a point for scores to begin with, and the tie parameter to begin with.
    start: Callable[[Array], tuple[Array, Array]] | None = None
    # Its value without any tie; with nothing but ties it is infinite.
    lowest_tie: float = -np.inf
    # The share of a Newton step that is safe, given the point, the step and which pairs have met;
    # for likelihoods that are not log-linear.
    safe_share: Callable[[Array, Array, NDArray[np.bool_]], Array] | None = None
    # How many scores make up a logit, about.
    unit: float = 1.0

    def sides(self, wins: ArrayLike, ties: ArrayLike) -> tuple[Array, Array]:
        """Return wins, and half the ties: (resample, system, opponent), 0 where they do not count.

        A ValueError says that a fixed tie parameter leaves no room for ties.
        """
        won = np.asarray(wins, dtype=np.float64)
        tables = won.reshape(-1, *won.shape[-2:])
        if self.ties == "ignore":
            return tables, np.zeros((len(tables), 1, 1))
        tied = np.asarray(ties, dtype=np.float64)
        if tied.shape != won.shape:
            tied = np.broadcast_to(tied, won.shape)
        tied = 0.5 * tied.reshape(tables.shape)
        if self.ties == "half":
            return tables + tied, np.zeros((len(tables), 1, 1))
        if self.log_tie == 0.0 and tied.any():
            raise ValueError(
                "tie_strength must be greater than 1 when the comparisons contain ties; got 1"
            )
        return tables, tied

    def arguments(self, point: Array, size: int) -> tuple[Array, Tie]:
        """Return by how much each system is ahead of each other, and the tie parameter."""
        scores = np.minimum(np.maximum(point[:, :size], -_LARGEST_SCORE), _LARGEST_SCORE)
        ahead = scores[:, :, np.newaxis] - scores[:, np.newaxis, :]
        if self.start is None:
            return ahead, self.log_tie or 0.0
        return ahead, point[:, -1:, np.newaxis]

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the tie parameter must be positive, of shape (1,); none where it is not free."""
        return np.full(int(self.start is not None), self.lowest_tie == 0.0)

    def at_end(self, tie: Array) -> NDArray[np.bool_]:
        """Say where a tie parameter is at an end of its range, where it is held."""
        return (tie == self.lowest_tie) | np.isinf(tie)

    def begin(self, share: Array, *, proper: bool) -> tuple[Array, Array]:
        """Return what `start` does; a proper prior keeps the tie parameter, a column, finite."""
        if self.start is None:
            return np.ones_like(share), np.zeros((len(share), 0))
        if proper:
            share = np.clip(share, 0.0 if np.isfinite(self.lowest_tie) else 0.01, 0.99)
        with np.errstate(divide="ignore"):  # no ties, or nothing else
            factor, tie = self.start(share)
        return factor, tie[:, np.newaxis]

    def names(self, score: Array, tie: Array) -> dict[str, Array]:
        """Name the tie strength, where there is one, for a parameter of shape (..., 0 or 1)."""
        if tie.shape[-1]:
            tie = tie[..., 0]
            # Infinite where there are no ties, or nothing else, not because draws are far.
            edge = np.isinf(tie)
            return {"tie_strength": np.where(edge, np.maximum(tie, 0.0), finite_exp(tie))}
        if self.log_tie is None:
            return {}
        return {"tie_strength": np.full(score.shape[:-1], np.exp(self.log_tie))}

    def slopes(self, point: Array, derivatives: tuple[Array, ...]) -> Array:
        """Return the gradient, of shape (resample, p), from the derivatives of pairs."""
        scores = net(derivatives[0])
        if self.start is None:
            return scores
        tie = np.where(self.at_end(point[:, -1]), 0.0, derivatives[2].sum(axis=(-1, -2)))
        return np.concatenate([scores, tie[:, np.newaxis]], axis=-1)

    def gradient(self, point: Array, wins: Array, ties: Array) -> Array:
        """Return gradients at one point, (resample, p), for (resample, system, opponent) counts."""
        won, tied = self.sides(wins, ties)
        arguments = self.arguments(point[np.newaxis], won.shape[-1])
        return self.slopes(point[np.newaxis], self.derivatives(won, tied, *arguments))


def displace(free: Array, deviations: Array, *, positive: NDArray[np.bool_]) -> Array:
    """Move a point; the last coordinates, where positive, in proportion, which keeps them so."""
    moved = free + deviations
    for column in free.shape[-1] - len(positive) + np.flatnonzero(positive):
        inside = inner_threshold(free[..., column])
        moved[..., column] = free[..., column] * finite_exp(deviations[..., column] / inside)
    return moved


def net(slopes: Array) -> Array:
    """Return derivatives in the scores from derivatives in differences, of both sides of pairs."""
    return np.add.reduce(slopes - slopes.swapaxes(-1, -2), axis=-1)


def bradley_terry(*, ties: TiePolicy = "ignore", **_: Any) -> PairLikelihood:
    """Return the Bradley-Terry likelihood, P(i beats j) = sigma(theta_i - theta_j)."""
    return PairLikelihood(_logistic_value, _logistic_derivatives, ties=ties)


def _logistic_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    return -won * softplus(-ahead)


def _logistic_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, Array]:
    win = np.exp(ahead)
    loss = 1.0 / (1.0 + win)
    win *= loss
    slope = won * loss
    return slope, slope * win


def davidson(**_: Any) -> PairLikelihood:
    """Return Davidson's likelihood, in which P(tie) is proportional to nu sqrt(pi_i pi_j)."""
    return PairLikelihood(_davidson_value, _davidson_derivatives, start=_davidson_start)


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


def rao_kupper(*, tie_strength: AtLeastOne | None = None, **_: Any) -> PairLikelihood:
    r"""Return the Rao-Kupper likelihood, P(i beats j) = pi_i / (pi_i + kappa pi_j).

    The tie parameter is :math:`c = \log\kappa \ge 0`. A tie has probability :math:`(e^{2c} - 1) P(i
    \text{ beats } j) P(j \text{ beats } i)`.
    """
    if tie_strength is None:
        return PairLikelihood(
            _threshold_value,
            _threshold_derivatives,
            start=lambda share: (np.ones_like(share), np.log1p(share) - np.log1p(-share)),
            lowest_tie=0.0,
            safe_share=_safe_threshold,
        )
    log_tie = float(np.log(tie_strength))
    return PairLikelihood(_threshold_value, _threshold_derivatives, log_tie=log_tie)


def _threshold_value(won: Array, tied: Array, ahead: Array, tie: Tie) -> Array:
    inside = inner_threshold(tie)
    with np.errstate(invalid="ignore"):  # nothing but ties: c is infinite
        ties = tied * (2.0 * inside + np.log(-np.expm1(-2.0 * inside)))
        return ties - (won + 2.0 * tied) * softplus(tie - ahead)


def _threshold_derivatives(won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, ...]:
    fixed = isinstance(tie, float)
    bounded = min(tie, _LARGEST_THRESHOLD) if fixed else np.minimum(tie, _LARGEST_THRESHOLD)
    behind = np.exp(bounded - ahead)
    win = 1.0 / (1.0 + behind)
    behind *= win
    not_lost = won + tied
    not_lost += tied
    slope = not_lost * behind
    curvature = slope * win
    if fixed:
        return slope, curvature
    inside = inner_threshold(tie)
    bend = np.sinh(np.minimum(inside, _LARGEST_THRESHOLD)) ** -2.0
    tie_slope = tied * (2.0 / -np.expm1(-2.0 * inside)) - slope
    return slope, curvature, tie_slope, -curvature, curvature + bend * tied


def _safe_threshold(point: Array, step: Array, met: NDArray[np.bool_]) -> Array:
    """Halve c at most, and go no further than the curvature in it is known."""
    inside, change = inner_threshold(point[:, -1]), step[:, -1]
    share = 0.5 * inside / np.maximum(-change, 0.5 * inside)
    # log(e^{2c} - 1) has |third| = 2 coth(c) |second|.
    return share * step_length(2.0 / np.tanh(0.5 * inside) * np.abs(change) * share)


def inner_threshold(tie: Tie) -> Array:
    """Return Rao-Kupper's c, and 1 where it is at an end of its range."""
    return np.where((tie == 0.0) | np.isinf(tie), 1.0, tie)


def thurstone_mosteller(*, ties: TiePolicy = "ignore", **_: Any) -> PairLikelihood:
    """Return the Thurstone-Mosteller likelihood, P(i beats j) = Phi(theta_i - theta_j)."""
    return PairLikelihood(
        _probit_value, _probit_derivatives, ties=ties, safe_share=_safe_probit, unit=0.6
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


def _safe_probit(point: Array, step: Array, met: NDArray[np.bool_]) -> Array:
    """Go no further than the curvature is known: |third| is at most (1/2 + |d|) |second|."""
    far, move = (
        (met * np.abs(each[:, :, np.newaxis] - each[:, np.newaxis])).max(axis=(-1, -2))
        for each in (point, step)
    )
    share = np.ones(len(move))
    # The length of the step determines the size of d. The odd iterates are safe.
    for _ in range(5):
        share = step_length(move * (0.5 + far + share * move))
    return share


@dataclass(frozen=True)
class PairCounts(ZeroSumScores):
    """The penalised log-likelihood of tables of results.

    Free coordinates: the scores, then the tie parameter where it is estimated; without any ties, or
    with nothing else, it is held at the end of its range. `won`, and `tied`, half the ties where
    they count, are of shape (resample, system, opponent).
    """

    likelihood: PairLikelihood
    won: Array
    tied: Array
    tie_prior: NormalPrior
    by_resample = "won", "tied"

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.size**2

    @cached_property
    def one_side(self) -> Array:
        """Points of each against each, half of one for a tie that counts."""
        return self.won + self.tied

    @cached_property
    def played(self) -> Array:
        """Comparisons of each system, of shape (resample, system)."""
        return self.points + np.add.reduce(self.one_side, axis=-2)

    @cached_property
    def points(self) -> Array:
        """Points of each system, of shape (resample, system)."""
        return np.add.reduce(self.one_side, axis=-1)

    def scale(self, point: Array) -> Array:
        """Return the largest number of comparisons of a system, plus the prior's precision."""
        return np.maximum.reduce(self.played, axis=-1) + self.prior.precision

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        arguments = self.likelihood.arguments(point, self.size)
        each = self.likelihood.value(self.won, self.tied, *arguments)
        # Nothing but ties: all of them are certain.
        return np.where(np.isposinf(point[:, -1]), 0.0, each.sum(axis=(-1, -2)))

    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        likelihood, size = self.likelihood, self.size
        arguments = likelihood.arguments(point, size)
        found = likelihood.derivatives(self.won, self.tied, *arguments)
        gradient = likelihood.slopes(point, found)
        if self.prior.precision:
            scores = gradient[:, :size]
            scores += self.prior.gradient(point[:, :size])
        if self.tie_prior.precision and likelihood.start is not None:
            pull = self.tie_prior.gradient(point[:, size])
            gradient[:, size] += np.where(likelihood.at_end(point[:, size]), 0.0, pull)
        return gradient, lambda: self._information(point, found)

    def _information(self, point: Array, derivatives: tuple[Array, ...]) -> Array:
        size, p = self.size, point.shape[-1]
        matrix = np.empty((len(point), p, p))
        scores = matrix[:, :size, :size]
        np.add(derivatives[1], derivatives[1].swapaxes(1, 2), out=scores)
        np.negative(scores, out=scores)
        diagonal = diagonals(matrix)
        own = diagonal[:, :size]
        own += self.prior.precision - np.add.reduce(scores, axis=-1)
        if p > size:
            held = self.likelihood.at_end(point[:, size])
            cross = np.where(held[:, np.newaxis], 0.0, net(derivatives[3]))
            matrix[:, :size, size] = matrix[:, size, :size] = cross
            bend = derivatives[4].sum(axis=(-1, -2)) + self.tie_prior.precision
            diagonal[:, size] = np.where(held, 1.0, bend)
        return matrix

    def newton(self, point: Array) -> Array:
        """Return the Newton step, or its share that is safe, of shape (resample, p)."""
        step, safe_share = super().newton(point), self.likelihood.safe_share
        if safe_share is not None:
            met = self.one_side + self.one_side.transpose(0, 2, 1) > 0.0
            step *= safe_share(point, step, met)[:, np.newaxis]
        return step

    def exists(self, point: Array) -> NDArray[np.bool_]:
        """Say where the optimum is finite without a prior, of shape (resample,)."""
        found = strongly_connected(self.one_side > 0.0)
        if point.shape[-1] == self.size:
            return found
        found &= ~np.isposinf(point[:, -1])
        # Far out on a ridge that rises to infinity the gradient and even the Newton step fall below
        # any tolerance; only the curvature detects it.
        finite = np.where(np.isfinite(point), point, 0.0)
        far = np.ptp(finite[:, : self.size], axis=-1) + np.abs(finite[:, -1]) > _FAR
        if (rows := np.flatnonzero(found & far)).size:
            found[rows] = ~self.take(rows).is_flat(point[rows])
        return found


def pair_counts(
    likelihood: PairLikelihood,
    wins: ArrayLike,
    ties: ArrayLike = 0.0,
    *,
    prior: NormalPrior = FLAT,
    tie_prior: NormalPrior = FLAT,
) -> PairCounts:
    """Build the log-posterior of paired comparisons under normal priors.

    For ``wins[..., i, j]``, how often i beat j, and symmetric ties, both of shape (..., system,
    opponent), where leading axes are resamples.
    """
    won, tied = likelihood.sides(wins, ties)
    return PairCounts(zero_sum(prior, won.shape[-1]), likelihood, won, tied, tie_prior)


def fit_pairs(
    likelihood: PairLikelihood, wins: ArrayLike, ties: ArrayLike = 0.0, **priors: Any
) -> Fit:
    """Fit a model of paired comparisons with the normal priors of :func:`pair_counts`."""
    problem = pair_counts(likelihood, wins, ties, **priors)

    def unpack(free: Array) -> dict[str, Array]:
        score = free[..., : problem.size]
        return {"score": score} | likelihood.names(score, free[..., problem.size :])

    return fit_scores(
        problem,
        _start_of(problem),
        np.shape(wins)[:-2],
        exists=problem.exists,
        unpack=unpack,
        displace=partial(displace, positive=likelihood.positive),
    )


def _start_of(problem: PairCounts) -> Array:
    """Return where to begin, of shape (resample, p)."""
    likelihood, points, played = problem.likelihood, problem.points, problem.played
    if likelihood.start is None:
        if likelihood.log_tie is not None:
            # A narrow threshold: scores are those of not having lost.
            tied = problem.tied.sum(axis=-1)
            points, played = points + tied, played + 2.0 * tied
        scores = first_scores(points, played)
        # Odds are against the others, whose mean is further away than that of all. What grows with
        # the spread is fitted to simulated data, and saves a step in ten.
        spread = np.vecdot(scores, scores)[:, np.newaxis] / problem.size
        return scores * (likelihood.unit * (1.0 - 1.0 / problem.size) * (1.0 + spread / 60.0))
    n_ties, n_sides = 2.0 * problem.tied.sum(axis=(-1, -2)), played.sum(axis=-1)
    share = n_ties / np.where(n_sides > 0.0, n_sides, 1.0)
    factor, tie = likelihood.begin(share, proper=problem.tie_prior.precision > 0.0)
    return np.concatenate([first_scores(points, played) * factor[:, np.newaxis], tie], axis=1)
