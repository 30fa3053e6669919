r"""Fits of votes whose judges differ in reliability and in bias for the first answer.

Judge g sees :math:`a_g d + h_g` in place of d. Log reliabilities :math:`\log a_g` and biases
:math:`h_g` are normal around 0 with unknown scales :math:`\tau`, whose squares have scaled inverse
chi-squared priors. Scores, coefficients and thresholds
maximise the joint density of all given the scales; the scales are those at which

.. math:: \tau^2 = \frac{\nu s^2 + \sum_g (u_g^2 + v_g)}{\nu + n}

with the effects :math:`u_g` of n judges at the maximum and their variances :math:`v_g` by its
curvature: about where the Laplace approximation of their marginal likelihood is highest [1]_. The
curvature in the other parameters is that with the effects of judges eliminated.

References
----------
.. [1] N. E. Breslow and D. G. Clayton. Approximate inference in generalized linear mixed models.
   Journal of the American Statistical Association 88 (1993).
   https://doi.org/10.1080/01621459.1993.10594284
"""

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles, Labels
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit, anchored
from bayesrank.inference.fits.newton import GRADIENT_TOLERANCE, Optimum
from bayesrank.inference.fits.pair_rows import (
    Names,
    PairRows,
    displace,
    name_votes,
    pair_rows,
    start_of_votes,
)
from bayesrank.inference.fits.pairs import Array
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms, VoteModel
from bayesrank.inference.fits.zero_sum import NormalScores

# Degrees of freedom of the scales of judges, as of the scales of questions.
DF = 2.0
_LAST_STEP, _MOST_STEPS, _MOST_HALVINGS = 1e-9, 100, 40
# Accuracy of the scales of judges.
_SCALE_TOLERANCE, _MOST_ROUNDS = 1e-7, 200


class Joint(NamedTuple):
    """A quadratic expansion of the joint log-density.

    Attributes
    ----------
    gradient : numpy.ndarray of shape (p,)
        In scores, coefficients and thresholds.
    own : numpy.ndarray of shape (2, judge)
        In the effects of judges.
    matrix : numpy.ndarray of shape (p, p)
        Minus the second derivatives in the former.
    blocks : numpy.ndarray of shape (judge, 2, 2)
        Minus those in the effects of each judge.
    cross : numpy.ndarray of shape (p, 2, judge)
        Minus the mixed ones.
    """

    gradient: Array
    own: Array
    matrix: Array
    blocks: Array
    cross: Array

    def eliminated(self, held: Array) -> "Eliminated":
        """Eliminate the effects of judges."""
        columns = np.ascontiguousarray(self.cross.transpose(2, 1, 0))
        solved = np.linalg.solve(self.blocks, columns)
        p = len(self.gradient)
        schur = anchored(self.matrix, held) - columns.reshape(-1, p).T @ solved.reshape(-1, p)
        return Eliminated(self, solved, schur)


class Eliminated(NamedTuple):
    """An expansion with the effects of judges eliminated.

    Attributes
    ----------
    joint : Joint
        The expansion.
    solved : numpy.ndarray of shape (judge, 2, p)
        What the blocks make of the mixed derivatives.
    schur : numpy.ndarray of shape (p, p)
        Minus the second derivatives in the other parameters that are left, anchored along what is
        held.
    """

    joint: Joint
    solved: Array
    schur: Array

    def step(self) -> tuple[Array, Array]:
        """Return Newton's step in the other parameters and in the effects of judges."""
        own = self.joint.own.T
        right = self.joint.gradient - np.einsum("nkp,nk->p", self.solved, own)
        found = np.linalg.solve(self.schur, right)
        effects = np.linalg.solve(self.joint.blocks, own[:, :, np.newaxis])[:, :, 0]
        return found, (effects - self.solved @ found).T

    def variances(self) -> Array:
        """Return the variances of the effects of judges, of shape (2, judge)."""
        inner = np.linalg.inv(self.joint.blocks)
        spread = self.solved @ np.linalg.inv(self.schur)
        through = np.einsum("nkp,nkp->kn", spread, self.solved)
        return np.einsum("nkk->kn", inner) + through


@dataclass(frozen=True)
class RatedRows(PairRows):
    """The penalised log-likelihood of votes of judges, whose effects are at hand.

    Attributes
    ----------
    judge : numpy.ndarray of int and shape (vote,)
        Who judged.
    effects : numpy.ndarray of shape (2, judge)
        Log reliabilities and biases.
    precision : numpy.ndarray of shape (2,)
        Of their normal distributions.
    """

    judge: NDArray[np.integer[Any]] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    effects: Array = field(default_factory=lambda: np.zeros((2, 0)))
    precision: Array = field(default_factory=lambda: np.ones(2))

    def predictors(self, point: Array, some: Rows) -> tuple[Array, Array, Array]:
        """Return what the judges see of the differences of votes."""
        ahead, level, shared = super().predictors(point, some)
        log_reliability, bias = self.effects[:, self.judge[some]]
        return np.exp(log_reliability) * ahead + bias, level, shared

    def terms(self, point: Array, some: Rows) -> Terms:
        """Return the derivatives of votes in the differences before the judges see them."""
        seen = super().terms(point, some)
        reliability = np.exp(self.effects[0, self.judge[some]])
        return seen._replace(
            slope=reliability * seen.slope,
            bend=reliability**2 * seen.bend,
            mixed=reliability[:, np.newaxis] * seen.mixed,
        )

    def value(self, point: Array) -> float:
        """Return the joint log-density at one point, of shape (1, p)."""
        penalty = (self.precision[:, np.newaxis] * self.effects**2).sum()
        return super().value(point) - 0.5 * float(penalty)

    def joint(self, point: Array, *, exact: bool = True) -> Joint:
        """Expand the joint log-density at a point of shape (p,).

        Without `exact` as far as it is never negative: without the second derivatives of what the
        judges see.
        """
        gradient, information = self.expand(point[np.newaxis])
        n, p = self.effects.shape[1], len(point)
        own, blocks = np.zeros((2, n)), np.zeros((n, 2, 2))
        cross = np.zeros((p, 2, n))
        for some in self.blocks:
            self._add_judges(point, some, own, blocks, cross, exact=exact)
        own -= self.precision[:, np.newaxis] * self.effects
        blocks += np.diag(self.precision)
        return Joint(gradient[0], own, information()[0], blocks, cross)

    def _add_judges(
        self, point: Array, some: Rows, own: Array, blocks: Array, cross: Array, *, exact: bool
    ) -> None:
        """Add what a block of votes tells of the effects of judges."""
        n, size = own.shape[1], self.size
        judge, x = self.judge[some], self.design[some]
        seen = PairRows.terms(self, point, some)
        reliability = np.exp(self.effects[0, judge])
        lead = self.predictors(point, some)[0] - self.effects[1, judge]
        twist = seen.slope if exact else np.zeros(len(lead))

        def by_judge(values: Array) -> Array:
            return np.bincount(judge, values, n)

        own += [by_judge(seen.slope * lead), by_judge(seen.slope)]
        blocks[:, 0, 0] += by_judge(seen.bend * lead**2 - twist * lead)
        both = by_judge(seen.bend * lead)
        blocks[:, 0, 1] += both
        blocks[:, 1, 0] += both
        blocks[:, 1, 1] += by_judge(seen.bend)
        weights = (seen.bend * lead * reliability - twist * reliability, seen.bend * reliability)
        sides = (self.data.first[some], 1.0), (self.data.second[some], -1.0)
        for k, (weight, scale) in enumerate(zip(weights, (lead, None), strict=True)):
            for side, sign in sides:
                cell = side.astype(np.int64) * n + judge
                cross[:size, k] += sign * np.bincount(cell, weight, size * n).reshape(size, n)
            shared = seen.mixed if scale is None else seen.mixed * scale[:, np.newaxis]
            for row, column in enumerate(np.hstack([x * weight[:, np.newaxis], shared]).T):
                cross[size + row, k] += by_judge(column)

    def information(self, point: Array) -> Array:
        """Return the negative Hessian with the effects of judges eliminated, (1, p, p)."""
        held = self.held_rows(point)[0]
        matrix = self.joint(point[0]).eliminated(held).schur
        # Without what anchored the sum of the scores.
        own = self.expand(point)[1]()[0]
        return (matrix - anchored(own, held) + own)[np.newaxis]

    def moved(self, point: Array, *, exact: bool) -> "tuple[Array, RatedRows, float] | None":
        """Return where a Newton step leads, and how far it goes; None where it leads nowhere."""
        expansion = self.joint(point, exact=exact)
        if not _all_positive(expansion.blocks):
            return None
        found = expansion.eliminated(self.held_rows(point[np.newaxis])[0])
        try:
            np.linalg.cholesky(found.schur)
        except np.linalg.LinAlgError:
            return None
        step, effects = found.step()
        far = max(np.abs(step).max(), np.abs(effects).max())
        now, last = self.value(point[np.newaxis]), len(step) - self.n_shared
        bounded = self.likelihood.positive & (step[last:] < 0.0)
        room = 0.5 * point[last:][bounded] / -step[last:][bounded]
        share = min(1.0, room.min(initial=1.0))
        for _ in range(_MOST_HALVINGS):
            there = point + share * step
            problem = replace(self, effects=self.effects + share * effects)
            if far < _LAST_STEP or problem.value(there[np.newaxis]) >= now:
                return there, problem, share * far
            share *= 0.5
        return None

    def climb(self, point: Array) -> "tuple[Array, RatedRows, bool, int]":
        """Maximise the joint density given the scales of the judges."""
        problem = self
        for number in range(1, _MOST_STEPS + 1):
            moved = problem.moved(point, exact=True) or problem.moved(point, exact=False)
            if moved is None:
                return point, problem, False, number
            point, problem, far = moved
            if far < _LAST_STEP:
                return point, problem, True, number
        return point, problem, False, _MOST_STEPS


def fit_rated_rows(
    likelihood: VoteModel,
    data: Battles,
    design: Design,
    judges: Labels,
    names: Names,
    *,
    scale: float,
    **priors: Any,
) -> Fit:
    """Fit votes of judges who differ in reliability and in bias.

    Parameters
    ----------
    likelihood : VoteModel
        Of one vote.
    data : Battles
        The votes.
    design : Design
        Their covariates.
    judges : Labels
        Who judged each vote.
    names : callable
        As in :func:`~bayesrank.inference.fits.pair_rows.fit_votes`.
    scale : float
        Typical size of a log reliability and of a bias.
    **priors
        As in :func:`~bayesrank.inference.fits.pair_rows.pair_rows`.

    Returns
    -------
    Fit
        Free coordinates: those of :class:`~bayesrank.inference.fits.pair_rows.PairRows`.
        ``parameters`` also has ``reliability`` and ``position_bias`` of shape (judge,).
    """
    n = len(judges.names)
    rows = pair_rows(likelihood, data, design, **priors)
    problem = RatedRows(
        **{each.name: getattr(rows, each.name) for each in fields(rows)},
        judge=judges.codes,
        effects=np.zeros((2, n)),
        precision=np.full(2, scale**-2.0),
    )
    point, problem, converged, steps = _with_scales(problem, start_of_votes(rows, data), scale)
    norm = _gradient_norm(problem, point)
    optimum = Optimum(
        point[np.newaxis],
        np.array([converged and norm <= GRADIENT_TOLERANCE]),
        np.array([steps]),
        np.array([norm]),
    )
    held = problem.held_rows(optimum.point)[0]
    unpack = partial(
        _unpack,
        others=partial(name_votes, size=rows.size, n_effects=design.shape[1], names=names),
        expansion=problem.joint(point).eliminated(held),
        point=point,
        effects=problem.effects,
    )
    flat = NormalScores.of(0.0, 0.0, (), rows.size)
    alone = replace(
        problem, prior=flat, effect_precision=0.0, shared_precision=np.zeros(rows.n_shared)
    )
    exists = rows.prior.precision > 0.0
    if not exists.all():
        exists = ~problem.is_flat(optimum.point)
    moved = partial(displace, positive=rows.likelihood.positive)
    return Fit.at(problem, optimum, (), unpack, exists=exists, displace=moved, rows=lambda: alone)


def _with_scales(
    problem: RatedRows, point: Array, scale: float
) -> tuple[Array, RatedRows, bool, int]:
    """Climb with the scales of the judges where they belong: a fixed point, accelerated."""
    n, total = problem.effects.shape[1], 0
    logs = _logs_of(problem)
    history: list[tuple[Array, Array]] = []
    for _ in range(_MOST_ROUNDS):
        problem = replace(problem, precision=np.exp(-2.0 * logs))
        point, problem, converged, steps = problem.climb(point)
        total += steps
        if not converged:
            return point, problem, False, total
        held = problem.held_rows(point[np.newaxis])[0]
        variances = problem.joint(point).eliminated(held).variances()
        squares = (problem.effects**2 + variances).sum(axis=1)
        update = 0.5 * np.log((DF * scale**2 + squares) / (DF + n))
        if np.abs(update - logs).max() < _SCALE_TOLERANCE:
            return point, problem, True, total
        history.append((logs, update))
        logs = _accelerated(history)
    return point, problem, False, total


def _logs_of(problem: RatedRows) -> Array:
    return -0.5 * np.log(problem.precision)


def _accelerated(history: list[tuple[Array, Array]]) -> Array:
    """Return the next point of a fixed-point iteration, each coordinate by its secant."""
    logs, update = history[-1]
    if len(history) < 2:
        return update
    before, updated = history[-2]
    moved = logs - before
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (update - updated) / moved
    # Contractions alone are extrapolated, and not too far.
    usable = np.isfinite(rate) & (rate > 0.0) & (rate < 0.95)
    factor = np.where(usable, 1.0 / (1.0 - np.where(usable, rate, 0.0)), 1.0)
    return logs + np.clip(factor * (update - logs), -2.0, 2.0)


def _gradient_norm(problem: RatedRows, point: Array) -> float:
    """Return the largest component of the gradient, over the count scale."""
    found = problem.joint(point)
    largest = max(np.abs(found.gradient).max(), np.abs(found.own).max())
    return float(largest / problem.scale(point)[0])


def _all_positive(blocks: Array) -> bool:
    determinant = blocks[:, 0, 0] * blocks[:, 1, 1] - blocks[:, 0, 1] ** 2
    return bool((blocks[:, 0, 0] > 0.0).all() and (determinant > 0.0).all())


def _unpack(
    free: Array, *, others: Any, expansion: Eliminated, point: Array, effects: Array
) -> dict[str, Array]:
    """Name the parameters; draws have effects of judges drawn given the other parameters."""
    named = others(free)
    found = effects
    if free.ndim > 1:
        found = effects + _drawn_effects(free - point, expansion)
    return named | {
        "log_reliability": found[..., 0, :],
        "reliability": np.exp(found[..., 0, :]),
        "position_bias": found[..., 1, :],
    }


def _drawn_effects(moves: Array, expansion: Eliminated) -> Array:
    """Return deviations of the effects of judges given those of the others, (draw, 2, judge)."""
    blocks = expansion.joint.blocks
    rng = np.random.default_rng(len(blocks))
    roots = np.linalg.cholesky(np.linalg.inv(blocks))
    normals = rng.standard_normal((*moves.shape[:-1], len(blocks), 2))
    found = np.einsum("nkl,...nl->...nk", roots, normals)
    found -= np.einsum("nkp,...p->...nk", expansion.solved, moves)
    return found.swapaxes(-1, -2)
