r"""Fits of votes whose judges differ in reliability and in bias for the first answer.

Judge g sees :math:`a_g d + h_g` in place of d. Log reliabilities :math:`\log a_g` and biases
:math:`h_g` are normal around 0 with unknown scales :math:`\tau`, whose squares have scaled inverse
chi-squared priors. Scores, coefficients and thresholds maximise the marginal density, in which the
effects of judges are integrated out: its gradient is that of the joint density, averaged over the
effects that the votes leave open (Fisher's identity), by Gauss-Hermite quadrature around their
modes [1]_. The joint density by itself would have scores too far apart, the more so the fewer votes
a judge has [2]_. The scales are those at which

.. math:: \tau^2 = \frac{\nu s^2 + \sum_g (E[u_g^2] + v_g)}{\nu + n}

with the squares of the effects :math:`u_g` of n judges by the same quadrature, and what the
uncertainty of the other parameters adds to their variance, :math:`v_g`. The curvature in the other
parameters is that of the joint density with the effects of judges eliminated, but along the common
factor of what judges scale, where it is that of the marginal density. Draws have scales as
uncertain as votes and prior leave them.

References
----------
.. [1] J. C. Pinheiro and D. M. Bates. Approximations to the log-likelihood function in the
   nonlinear mixed-effects model. Journal of Computational and Graphical Statistics 4 (1995).
   https://doi.org/10.1080/10618600.1995.10474663
.. [2] N. E. Breslow and X. Lin. Bias correction in generalised linear mixed models with a single
   component of dispersion. Biometrika 82 (1995). https://doi.org/10.1093/biomet/82.1.81
.. [3] L. Tierney and J. B. Kadane. Accurate approximations for posterior moments and marginal
   densities. Journal of the American Statistical Association 81 (1986).
   https://doi.org/10.1080/01621459.1986.10478240
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles, Labels
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit, anchored, constrained_steps
from bayesrank.inference.fits.newton import Optimum, maximise
from bayesrank.inference.fits.pair_counts import name_parameters
from bayesrank.inference.fits.pair_rows import (
    PairRows,
    no_estimate_of_votes,
    pair_rows,
    start_of_votes,
)
from bayesrank.inference.fits.pairs import Array, displace
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms, VoteModel

# Degrees of freedom of the scales of judges, as of the scales of questions.
DF = 2.0
# Accuracy of the scales of judges, and of the parameters at them.
_TOLERANCE, _MOST_ROUNDS = 1e-7, 200
# Steps towards the maximum of the marginal density must shrink to this share of those before.
_SHRINKING = 0.9
# Share of their scale by which parameters are moved for a slope.
_STEP = 1e-3
# Nodes along each effect of a judge: within .4 percent of 9 nodes at ten votes of a judge.
_NODES = 5


@dataclass(frozen=True)
class Joint:
    """A quadratic expansion of the joint log-density, and what is left without the judges.

    `gradient`, of shape (p,), and `matrix`, (p, p), minus the second derivatives, are those in
    scores, coefficients and thresholds, of which `held`, (p, 1), is held. `own`, (2, judge), and
    `blocks`, (judge, 2, 2), are those in the effects of judges, `cross`, (p, 2, judge), the mixed.
    """

    gradient: Array
    own: Array
    matrix: Array
    blocks: Array
    cross: Array
    held: Array

    @cached_property
    def solved(self) -> Array:
        """What the blocks make of the mixed derivatives, of shape (judge, 2, p)."""
        return np.linalg.solve(self.blocks, self.cross.transpose(2, 1, 0))

    @cached_property
    def schur(self) -> Array:
        """Minus the second derivatives with the effects of judges eliminated, (p, p)."""
        p = len(self.gradient)
        return self.matrix - self.cross.transpose(0, 2, 1).reshape(p, -1) @ self.solved.reshape(
            -1, p
        )

    def step(self) -> Array | None:
        """Return Newton's step, in the effects of judges too; None if not all curve downwards."""
        own, matrix = self.own.T, anchored(self.schur, self.held)
        right = self.gradient - np.einsum("nkp,nk->p", self.solved, own)
        try:
            np.linalg.cholesky(self.blocks)
            np.linalg.cholesky(matrix)
            found = np.linalg.solve(matrix, right)
            effects = np.linalg.solve(self.blocks, own[:, :, np.newaxis])[:, :, 0]
        except np.linalg.LinAlgError:
            return None
        return np.append(found, (effects - self.solved @ found).T)

    def spread(self) -> Array:
        """Return what the other parameters add to the variances of the effects, (2, judge)."""
        spread = self.solved @ np.linalg.inv(anchored(self.schur, self.held))
        return np.einsum("nkp,nkp->kn", spread, self.solved)

    def drawn(self, moves: Array) -> Array:
        """Draw deviations of effects of judges given those of the others, (draw, 2, judge)."""
        rng = np.random.default_rng(len(self.blocks))
        roots = np.linalg.cholesky(np.linalg.inv(self.blocks))
        normals = rng.standard_normal((*moves.shape[:-1], len(self.blocks), 2))
        found = np.einsum("nkl,...nl->...nk", roots, normals)
        found -= np.einsum("nkp,...p->...nk", self.solved, moves)
        return found.swapaxes(-1, -2)


class Nodes(NamedTuple):
    """Effects that the votes leave open: of shape (node, 2, judge), with weights, (node, judge)."""

    effects: Array
    weight: Array


@dataclass(frozen=True)
class RatedRows(PairRows):
    """The penalised log-likelihood of votes of judges, joint with the effects of the judges.

    The free coordinates are those of votes, whose information is that with the effects eliminated.
    Points may have the effects behind them: log reliabilities, then biases.

    Attributes
    ----------
    judge : numpy.ndarray of int and shape (vote,)
        Who judged.
    effects : numpy.ndarray of shape (2, judge)
        Log reliabilities and biases at points without any.
    effect_precision : numpy.ndarray of shape (2,)
        Of their normal distributions.
    tilt : numpy.ndarray of shape (p,)
        What is added to the gradient, so that it is that of the marginal density at the maximum.
    nodes : Nodes, optional
        Effects of judges to average over.
    secant : numpy.ndarray of shape (p, p)
        What is added to the information without the judges.
    """

    judge: NDArray[np.integer[Any]] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    effects: Array = field(default_factory=lambda: np.zeros((2, 0)))
    effect_precision: Array = field(default_factory=lambda: np.ones(2))
    tilt: Array | float = 0.0
    nodes: Nodes | None = None
    secant: Array | float = 0.0

    def of_judges(self, point: Array) -> Array:
        """Return the effects of judges at a point of shape (p,) or longer."""
        own = point[self.size + len(self.mean) :]
        return own.reshape(self.effects.shape) if len(own) else self.effects

    def predictors(self, point: Array, some: Rows) -> tuple[Array, Array, Array]:
        """Return what the judges see of the differences of votes."""
        ahead, level, shared = super().predictors(point, some)
        log_reliability, bias = self.of_judges(point)[:, self.judge[some]]
        return np.exp(log_reliability) * ahead + bias, level, shared

    def terms(self, point: Array, some: Rows) -> Terms:
        """Return the derivatives of votes in the differences before the judges see them."""
        slope, bend = super().terms(point, some)
        reliability = np.exp(self.of_judges(point)[0, self.judge[some]])
        slope[0] *= reliability
        bend[0] *= reliability
        bend[:, 0] *= reliability
        return Terms(slope, bend)

    def value(self, point: Array) -> float:
        """Return the joint log-density at one point, of shape (1, p)."""
        penalty = (self.effect_precision @ self.of_judges(point[0]) ** 2).sum()
        leaning = (point[0, : self.size + len(self.mean)] * self.tilt).sum()
        return super().value(point) + float(leaning - 0.5 * penalty)

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient, and a function for the negative Hessian without the judges."""
        joint = self.joint(point[0])
        gradient = np.append(joint.gradient, joint.own)[np.newaxis, : point.shape[1]]
        return gradient, lambda: (joint.schur + self.secant)[np.newaxis]

    def newton(self, point: Array) -> Array:
        """Return the Newton step of all, halved until the density rises, of shape (1, p).

        Where it curves upwards, without the second derivatives of what the judges see.
        """
        for exact in (True, False):
            step = self.joint(point[0], exact=exact).step()
            if step is not None:
                return self.shortened(point, step[np.newaxis])
        return np.zeros(point.shape)

    def joint(self, point: Array, *, exact: bool = True) -> Joint:
        """Expand the joint log-density at a point of shape (p,) or longer.

        Without `exact` as far as it is never negative: without the second derivatives of what the
        judges see.
        """
        gradient, information = super().expand(point[np.newaxis])
        effects, p = self.of_judges(point), gradient.shape[1]
        n = effects.shape[1]
        own, blocks = np.zeros((2, n)), np.zeros((n, 2, 2))
        cross = np.zeros((p, 2, n))
        for some in self.blocks:
            self._add_judges(point, some, own, blocks, cross, exact=exact)
        own -= self.effect_precision[:, np.newaxis] * effects
        blocks += np.diag(self.effect_precision)
        held = self.held_rows(gradient)[0]
        return Joint(gradient[0] + self.tilt, own, information()[0], blocks, cross, held)

    def slope(self, point: Array, some: Rows) -> Array:
        """Return the first derivatives of a block of votes, averaged over the nodes."""
        if self.nodes is None:
            return self.terms(point, some).slope
        ahead, level, shared = super().predictors(point, some)
        judge, total = self.judge[some], np.zeros(())
        for (log_reliability, bias), weight in zip(*self.nodes, strict=True):
            reliability = np.exp(log_reliability)[judge]
            seen = reliability * ahead + bias[judge]
            slope = self.likelihood.slope(some, seen, level, shared)
            slope[0] *= reliability
            total = total + weight[judge] * slope
        return total

    def averaged(self, point: Array, joint: Joint) -> "RatedRows":
        """Return the problem with nodes around the modes of the effects, and tilted by them."""
        roots = np.linalg.cholesky(np.linalg.inv(joint.blocks))
        one, weight = np.polynomial.hermite.hermgauss(_NODES)
        places = np.stack(np.meshgrid(one, one), axis=-1).reshape(-1, 2)
        moves = np.sqrt(2.0) * np.einsum("nij,kj->kin", roots, places)
        effects = self.of_judges(point) + moves
        logs = (np.log(np.outer(weight, weight).ravel()) + (places**2).sum(axis=1))[:, np.newaxis]
        logs = logs - 0.5 * np.einsum("i,kin->kn", self.effect_precision, effects**2)
        for some in self.blocks:
            ahead, level, shared = super().predictors(point, some)
            judge = self.judge[some]
            for row, (log_reliability, bias) in zip(logs, effects, strict=True):
                seen = np.exp(log_reliability)[judge] * ahead + bias[judge]
                value = self.likelihood.value(some, seen, level, shared)
                row += np.bincount(judge, value, len(row))
        logs -= logs.max(axis=0)
        found = replace(self, nodes=Nodes(effects, np.exp(logs) / np.exp(logs).sum(axis=0)))
        return replace(found, tilt=found.averaged_gradient(point) - self.told(point).gradient)

    def averaged_gradient(self, point: Array) -> Array:
        """Return the gradient of what votes tell, averaged over the nodes, of shape (p,)."""
        size = self.size
        found = np.zeros(size + len(self.mean))
        for some in self.blocks:
            slopes, others = self.slopes(point, some)
            for side, slope in zip((self.data.first, self.data.second), slopes, strict=True):
                found[:size] += np.bincount(side[some], slope, size)
            found[size:] += others.sum(axis=0)
        return found

    def _add_judges(
        self, point: Array, some: Rows, own: Array, blocks: Array, cross: Array, *, exact: bool
    ) -> None:
        """Add what a block of votes tells of the effects of judges."""
        n, size = own.shape[1], self.size
        judge, x = self.judge[some], self.design[some]
        (slope, *_), bends = super().terms(point, some)
        bend, mixed = bends[0, 0], bends[0, len(bends) - self.n_shared :]
        log_reliability, bias = self.of_judges(point)[:, judge]
        reliability = np.exp(log_reliability)
        lead = self.predictors(point, some)[0] - bias
        twist = slope if exact else np.zeros(len(lead))

        def by_judge(values: Array) -> Array:
            return np.bincount(judge, values, n)

        own += [by_judge(slope * lead), by_judge(slope)]
        both = by_judge(bend * lead)
        blocks += np.array(
            [[by_judge(bend * lead**2 - twist * lead), both], [both, by_judge(bend)]]
        ).T
        weights = (bend * lead - twist) * reliability, bend * reliability
        sides = (self.data.first[some], 1.0), (self.data.second[some], -1.0)
        for k, (weight, scale) in enumerate(zip(weights, (lead, 1.0), strict=True)):
            for side, sign in sides:
                cell = side.astype(np.int64) * n + judge
                cross[:size, k] += sign * np.bincount(cell, weight, size * n).reshape(size, n)
            for row, column in enumerate((*(weight * x.T), *(scale * mixed)), size):
                cross[row, k] += by_judge(column)


def fit_rated_rows(
    likelihood: VoteModel,
    data: Battles,
    design: Design,
    judges: Labels,
    *,
    scale: float,
    **priors: Any,
) -> Fit:
    """Fit votes of judges who differ in reliability and in bias.

    As :func:`~bayesrank.inference.fits.pair_rows.fit_pair_rows`, with `judges`, who judged each
    vote, and `scale`, the typical size of a log reliability and of a bias. ``parameters`` also has
    ``reliability`` and ``position_bias`` of shape (judge,).
    """
    n = len(judges.names)
    rows = pair_rows(likelihood, data, design, **priors)
    problem = rows.extended(
        RatedRows,
        judge=judges.codes,
        effects=np.zeros((2, n)),
        effect_precision=np.full(2, scale**-2.0),
    )
    start = np.append(start_of_votes(rows, data), problem.effects)
    try:
        problem, optimum = _averaged(*_with_scales(problem, start[np.newaxis], scale), scale)
    except np.linalg.LinAlgError as error:
        if rows.prior.precision.all():
            raise
        raise no_estimate_of_votes() from error
    p = rows.size + len(rows.mean)
    problem = replace(problem, effects=problem.of_judges(optimum.point[0]))
    optimum = replace(optimum, point=optimum.point[:, :p])
    unpack = partial(
        _unpack,
        others=partial(
            name_parameters, size=rows.size, n_effects=design.shape[1], names=rows.likelihood.names
        ),
        expansion=problem.joint(optimum.point[0]),
        point=optimum.point[0],
        effects=problem.effects,
    )
    along = np.where(np.arange(p) < rows.size + design.shape[1], optimum.point[0], 0.0)
    beyond = _mean_beyond_mode(problem, optimum.point[0], along)
    by_scale = np.zeros((2, p))
    if problem.nodes is not None:
        problem = replace(problem, secant=_secant(problem, optimum.point[0], along))
        by_scale = _Scales.of(problem, optimum.point[0], scale).moves()

    def moved(free: Array, deviations: Array) -> Array:
        normals = np.random.default_rng(p).standard_normal((*deviations.shape[:-1], 2))
        deviations = deviations + beyond + normals @ by_scale
        return displace(free, deviations, positive=rows.likelihood.positive)

    return problem.fit_at(optimum, unpack=unpack, displace=moved, rows=problem.without_priors)


def _mean_beyond_mode(problem: RatedRows, point: Array, along: Array) -> Array:
    r"""Return how far draws are centred beyond the maximum, along the scale of what judges scale.

    Log reliabilities know scores and coefficients, which `along` holds, up to a common factor, in
    which they are uncertain together. Their mean is beyond their mode by
    :math:`-\frac{1}{2} \sigma^2 \frac{d}{ds} \log |H|` along it [3]_, with the curvature H.
    """
    joint = problem.joint(point)
    precision = along @ joint.schur @ along
    if precision <= 0.0:
        return np.zeros(len(point))
    effects = (
        problem.effects
        - _STEP * np.array([[1.0], [-1.0]])[:, :, np.newaxis] * (joint.solved @ along).T
    )
    sizes = []
    for sign, there in zip((1.0, -1.0), effects, strict=True):
        here = replace(problem, effects=there).joint(point + sign * _STEP * along)
        matrix, held = anchored(here.schur, here.held), here.held[:, 0]
        sizes.append(np.linalg.slogdet(matrix)[1] - np.log(held @ matrix @ held))
    return -0.25 / _STEP * (sizes[0] - sizes[1]) / precision * along


def _secant(problem: RatedRows, point: Array, along: Array) -> Array:
    """Return the update of rank one by which the curvature along a direction is the marginal one.

    Judges who may be more reliable than thought bend the marginal density less than their
    elimination says, along the factor that all of them share.
    """
    joint = problem.joint(point)

    def slope(sign: float) -> Array:
        there = point + sign * _STEP * along
        return problem.averaged(there, joint).joint(there).gradient

    missed = (slope(-1.0) - slope(1.0)) / (2.0 * _STEP) - joint.schur @ along
    size = missed @ along
    reach = missed @ constrained_steps(joint.schur, joint.held, missed[np.newaxis])[0]
    if size == 0.0 or reach / size <= -1.0:
        return np.zeros_like(joint.schur)
    return np.outer(missed, missed) / size


class _Scales(NamedTuple):
    r"""How the marginal density varies with the logarithms of the scales of judges.

    By Fisher's identity it rises by :math:`\sum_g E[u_g^2] / \tau^2 - n`, and so do its
    derivatives, by covariances with the squares of effects over what the votes leave open.

    Attributes
    ----------
    slope : numpy.ndarray of shape (2,)
        Its first derivatives, with the prior.
    information : numpy.ndarray of shape (2, 2)
        Minus the second ones, where the other parameters follow.
    follow : numpy.ndarray of shape (2, p)
        How the maximum in the other parameters follows.
    """

    slope: Array
    information: Array
    follow: Array

    @classmethod
    def of(cls, problem: RatedRows, point: Array, scale: float) -> "_Scales":
        """Expand the marginal density, whose nodes the problem has, at its maximum."""
        joint, nodes = problem.joint(point), cast("Nodes", problem.nodes)
        precision = problem.effect_precision[:, np.newaxis]
        squares = precision * nodes.effects**2  # of shape (node, 2, judge)
        mean = np.einsum("nkg,ng->kg", squares, nodes.weight)
        leaning = nodes.weight[:, np.newaxis] * (squares - mean)
        rises = [
            replace(problem, nodes=Nodes(nodes.effects, weight)).averaged_gradient(point)
            for weight in leaning.swapaxes(0, 1)
        ]
        known = joint.schur + problem.secant
        follow = constrained_steps(known, joint.held, np.array(rises))
        prior = DF * scale**2 * precision[:, 0]
        total = (mean + precision * joint.spread()).sum(axis=1) + prior
        information = np.diag(2.0 * total) - follow @ np.array(rises).T
        information -= np.einsum("nkg,nlg->kl", leaning, squares)
        return cls(total - mean.shape[1] - DF, information, follow)

    def moves(self) -> Array:
        """Return how the maximum moves with independent standard normals, of shape (2, p)."""
        return np.linalg.cholesky(np.linalg.inv(self.information)).T @ self.follow


def _with_scales(problem: RatedRows, point: Array, scale: float) -> tuple[RatedRows, Optimum]:
    """Maximise with the scales of the judges where they belong: a fixed point, accelerated."""
    n, n_steps = problem.effects.shape[1], 0
    logs = -0.5 * np.log(problem.effect_precision)
    history: list[tuple[Array, Array]] = []
    while True:
        problem = replace(problem, effect_precision=np.exp(-2.0 * logs))
        optimum = maximise(problem, point)
        point, n_steps = optimum.point, n_steps + int(optimum.iterations[0])
        optimum = replace(optimum, iterations=np.array([n_steps]))
        if not optimum.converged[0]:
            return problem, optimum
        effects, joint = problem.of_judges(point[0]), problem.joint(point[0])
        inner = np.einsum("nkk->kn", np.linalg.inv(joint.blocks))
        squares = (effects**2 + inner + joint.spread()).sum(axis=1)
        update = 0.5 * np.log((DF * scale**2 + squares) / (DF + n))
        if np.abs(update - logs).max() < _TOLERANCE:
            return problem, optimum
        history.append((logs, update))
        if len(history) == _MOST_ROUNDS:
            return problem, replace(optimum, converged=np.array([False]))
        logs = _accelerated(history)


def _averaged(joint_mode: RatedRows, optimum: Optimum, scale: float) -> tuple[RatedRows, Optimum]:
    """Move from the maximum of the joint density to that of the marginal one, and its scales.

    Judges may have too few votes for a quadrature around their modes, so that steps do not shrink;
    then it stays where it is.
    """
    problem, reached, last = joint_mode, optimum, np.inf
    while reached.converged[0]:
        point = reached.point
        joint = problem.joint(point[0])
        found = problem.averaged(point[0], joint)
        matrix = anchored(joint.schur, joint.held)
        scales = _Scales.of(found, point[0], scale)
        try:
            np.linalg.cholesky(scales.information)
        except np.linalg.LinAlgError:
            break
        further = np.linalg.solve(scales.information, scales.slope)
        ahead = np.abs(np.linalg.solve(matrix, found.tilt - problem.tilt)).max()
        ahead = max(ahead, np.abs(further).max())
        if ahead < _TOLERANCE:
            n_steps = reached.iterations + optimum.iterations
            return found, replace(reached, iterations=n_steps)
        if not ahead < _SHRINKING * last:
            break
        precision = found.effect_precision * np.exp(-2.0 * further)
        problem, last = replace(found, effect_precision=precision), ahead
        reached = maximise(problem, point)
    return joint_mode, optimum


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


def _unpack(
    free: Array, *, others: Any, expansion: Joint, point: Array, effects: Array
) -> dict[str, Array]:
    """Name the parameters; draws have effects of judges drawn given the other parameters."""
    found = effects + expansion.drawn(free - point) if free.ndim > 1 else effects
    return others(free) | {
        "log_reliability": found[..., 0, :],
        "reliability": np.exp(found[..., 0, :]),
        "position_bias": found[..., 1, :],
    }
