r"""Fits of votes whose judges differ in reliability and in bias for the first answer.

Judge g sees :math:`a_g d + h_g` in place of d. Log reliabilities :math:`\log a_g` and biases
:math:`h_g` are normal around 0. They are coordinates of the joint density. At its maximum scores
are too far apart, and more so with fewer votes per judge [1]_. Scores, coefficients and thresholds
therefore maximise the marginal density. Its gradient is that of the joint density, averaged over
the posterior of the effects (Fisher's identity), by Gauss-Hermite quadrature around their modes
[3]_. The squares of the scales :math:`\tau` have scaled inverse chi-squared priors, and they are
those at which

.. math:: \tau^2 = \frac{\nu s^2 + \sum_g (E[u_g^2] + v_g)}{\nu + n}

with the squares of the effects :math:`u_g` of n judges by the quadrature, and what the uncertainty
of the other parameters adds to their variance, :math:`v_g`. The curvature in the other parameters
is that of the joint density with the effects of judges eliminated, except along the common factor
of what judges scale, where it is that of the marginal density. Draws include the uncertainty of
the scales.

References
----------
.. [1] N. E. Breslow and X. Lin. Bias correction in generalised linear mixed models with a single
   component of dispersion. Biometrika 82 (1995). https://doi.org/10.1093/biomet/82.1.81
.. [2] L. Tierney and J. B. Kadane. Accurate approximations for posterior moments and marginal
   densities. Journal of the American Statistical Association 81 (1986).
   https://doi.org/10.1080/01621459.1986.10478240
.. [3] J. C. Pinheiro and D. M. Bates. Approximations to the log-likelihood function in the
   nonlinear mixed-effects model. Journal of Computational and Graphical Statistics 4 (1995).
   https://doi.org/10.1080/10618600.1995.10474663
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles, Labels
from bayesrank.formula import Design
from bayesrank.inference.fits.existence import no_estimate_of_votes
from bayesrank.inference.fits.fit import Fit, constrained_steps
from bayesrank.inference.fits.newton import Array, Optimum, maximise
from bayesrank.inference.fits.pair_fits import start_of_votes
from bayesrank.inference.fits.pair_rows import BlockTree, PairRows, StateTree, pair_rows
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms, VoteModel, bind
from bayesrank.log_odds import finite_exp
from bayesrank.vote_rows import VoteRows

# Nodes along each effect of a judge. With scales near 1 it takes 15 for the curvature to half a
# percent; many votes, of scales that are well known, have as many as can be evaluated at once.
_NODES, _EVALUATIONS = (5, 15), 4e6
# Votes at nodes that are evaluated together: their arrays stay in the cache of a processor.
_BATCH = 2**13
# Degrees of freedom of the scales of judges, as of the scales of questions.
DF = 2.0
# Accuracy of the scales of judges, and of the parameters at them.
_TOLERANCE, _MOST_ROUNDS = 1e-7, 200
# Steps towards the maximum of the marginal density must shrink to this share of those before.
_SHRINKING = 0.9
# Share of their scale by which parameters are moved for a slope.
_STEP = 1e-3


@dataclass(frozen=True)
class Joint:
    """A quadratic expansion of the joint log-density, and the complement without the judges.

    `gradient`, (p,), and `matrix`, (p, p), minus the second derivatives, are those in scores,
    coefficients and thresholds, of which `held`, (p, 1), is held. `own`, (2, judge), and `blocks`,
    (judge, 2, 2), are those in the effects of judges, `cross`, (p, 2, judge), the mixed.
    """

    gradient: Array
    own: Array
    matrix: Array
    blocks: Array
    cross: Array
    held: Array

    @cached_property
    def tree(self) -> BlockTree:
        """The negative Hessian, of which the effects of judges are eliminated."""
        judges = StateTree(np.full(len(self.blocks), -1))  # roots
        border = self.cross.transpose(2, 1, 0)
        none = np.zeros(len(self.blocks))
        return BlockTree.factor(judges, none, self.blocks, border, self.matrix, self.held)

    @cached_property
    def roots(self) -> Array:
        """The Cholesky factors of the covariances of effects, given the others, (judge, 2, 2)."""
        return np.linalg.cholesky(self.tree.inverse)

    def step(self) -> Array:
        """Return Newton's step, in the effects of judges too; LinAlgError if not upwards."""
        found = self.tree.solve(np.append(self.own.T, self.gradient)[np.newaxis])[0]
        effects, others = np.split(found, [self.own.size])
        return np.append(others, effects.reshape(-1, 2).T)

    def spread(self) -> Array:
        """Return the part of variances of effects due to the other parameters, (2, judge)."""
        spread = self.tree.solved @ np.linalg.inv(self.tree.corner)
        return np.einsum("nkp,nkp->kn", spread, self.tree.solved)

    def drawn(self, moves: Array, rng: np.random.Generator) -> Array:
        """Draw deviations of effects of judges given those of the others, (draw, 2, judge)."""
        normals = rng.standard_normal((len(moves), len(self.blocks), 2))
        return self.tree.given(self.roots @ normals.transpose(1, 2, 0), moves.T).T


class Nodes(NamedTuple):
    """Posterior of the effects at nodes, of shape (node, 2, judge), with weights, (node, judge).

    `rises`, (2, p), are the derivatives of the gradient of the marginal density, at the point of
    the nodes, by the logarithms of the scales of judges.
    """

    effects: Array
    weight: Array
    rises: Array


def names_of(effects: Array) -> dict[str, Array]:
    """Name effects of judges, of shape (..., 2, judge)."""
    log_reliability, bias = effects[..., 0, :], effects[..., 1, :]
    return {
        "log_reliability": log_reliability,
        "reliability": finite_exp(log_reliability),
        "position_bias": bias,
    }


@dataclass(frozen=True, kw_only=True)
class RatedRows(PairRows):
    """The penalised log-likelihood of votes of judges, joint with the effects of the judges.

    The information is that with the effects eliminated. Points may have the effects behind them:
    log reliabilities, then biases; at others they are `effects`, (2, judge), normal with
    `effect_precision`, (2,). `judge`, (vote,), says who judged. `tilt`, (p,), added to the
    gradient, makes it that of the marginal density at the maximum; `secant`, (p, p), is added to
    the information; `nodes` are effects to average over.
    """

    judge: NDArray[np.integer[Any]]
    effects: Array
    effect_precision: Array
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

    def unpack(self, free: Array) -> dict[str, Array]:
        """Name the effects of judges, too."""
        return super().unpack(free) | names_of(self.effects)

    def value(self, point: Array) -> float:
        """Return the joint log-density at one point, of shape (1, p)."""
        penalty = (self.effect_precision @ self.of_judges(point[0]) ** 2).sum()
        leaning = (point[0, : self.size + len(self.mean)] * self.tilt).sum()
        # Reliabilities overflow where a step is far too long, and it is halved then.
        with np.errstate(over="ignore", invalid="ignore"):
            return super().value(point) + float(leaning - 0.5 * penalty)

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient, and a function for the negative Hessian without the judges."""
        joint = self.joint(point[0])
        gradient = np.append(joint.gradient, joint.own)[np.newaxis, : point.shape[1]]
        return gradient, lambda: (joint.tree.schur + self.secant)[np.newaxis]

    def damped_step(self, point: Array, damping: float) -> Array:
        """Return a Newton step of all; a damped one leaves out how what judges see bends."""
        return self.joint(point[0], exact=damping == 0.0).step()[np.newaxis]

    def joint(self, point: Array, *, exact: bool = True) -> Joint:
        """Expand the joint log-density at a point of shape (p,) or longer.

        If not `exact`, without the second derivatives of what the judges see: concave.
        """
        gradient, information = super().expand(point[np.newaxis])
        effects, p = self.of_judges(point), gradient.shape[1]
        n = effects.shape[1]
        own = -self.effect_precision[:, np.newaxis] * effects
        blocks = np.tile(np.diag(self.effect_precision), (n, 1, 1))
        held, cross = self.held_rows(gradient)[0], np.zeros((p, 2, n))
        found = Joint(gradient[0] + self.tilt, own, information()[0], blocks, cross, held)
        for some in self.blocks:
            self._add_judges(point, some, found, exact=exact)
        return found

    def slope(self, point: Array, some: Rows) -> Array:
        """Return the first derivatives of a block of votes, averaged over the nodes."""
        if self.nodes is None:
            return self.terms(point, some).slope
        weights = self.nodes.weight[np.newaxis]
        return self._averaged_slopes(point, some, self.nodes.effects, weights)[0]

    def _averaged_slopes(self, point: Array, some: Rows, nodes: Array, weights: Array) -> Array:
        """Return first derivatives of votes under weights of nodes, of shape (k, node, judge)."""
        total, judge = np.zeros(()), self.judge[some]
        for there, at, reliability in self._at_nodes(point, some, nodes):
            slope = self.likelihood.slope(*at)
            slope[0] *= reliability.ravel()
            slope = slope.reshape(len(slope), *reliability.shape)
            total = total + np.einsum("knv,pnv->kpv", weights[:, there][:, :, judge], slope)
        return total

    def _at_nodes(
        self, point: Array, some: Rows, nodes: Array
    ) -> Iterator[tuple[slice, tuple[Rows, Array, Array, Array], Array]]:
        """Yield batches of nodes, (node, 2, judge), of a block of votes.

        With each come the arguments of the likelihood at all of its nodes, one node after the
        other, and the reliabilities, of shape (node, vote).
        """
        ahead, level, shared = super().predictors(point, some)
        rows, judge = np.arange(len(self.judge))[some], self.judge[some]
        for start in range(0, len(nodes), size := max(_BATCH // len(rows), 1)):
            there = slice(start, start + size)
            log_reliability, bias = nodes[there].swapaxes(0, 1)[:, :, judge]
            reliability = np.exp(log_reliability)
            seen = reliability * ahead + bias
            flat = (
                np.tile(rows, len(seen)),
                seen.ravel(),
                np.broadcast_to(level, seen.shape).ravel(),
            )
            yield there, (*flat, shared), reliability

    def averaged(self, point: Array, joint: Joint) -> "RatedRows":
        """Return the problem with nodes around the modes of the effects, and tilted by them."""
        n_nodes = int(np.clip(np.sqrt(_EVALUATIONS / len(self.judge)), *_NODES))
        one, weight = np.polynomial.hermite.hermgauss(n_nodes)
        places = np.stack(np.meshgrid(one, one), axis=-1).reshape(-1, 2)
        moves = np.sqrt(2.0) * np.einsum("nij,kj->kin", joint.roots, places)
        effects = self.of_judges(point) + moves
        logs = (np.log(np.outer(weight, weight).ravel()) + (places**2).sum(axis=1))[:, np.newaxis]
        logs = logs - 0.5 * np.einsum("i,kin->kn", self.effect_precision, effects**2)
        for some in self.blocks:
            for there, at, reliability in self._at_nodes(point, some, effects):
                value = self.likelihood.value(*at).reshape(reliability.shape)
                for row, each in zip(logs[there], value, strict=True):
                    row += np.bincount(self.judge[some], each, len(row))
        weight = np.exp(logs - logs.max(axis=0))
        weight /= weight.sum(axis=0)
        # How the weights change with the logarithms of the scales of effects.
        squares = self.squares(effects)
        leaning = weight[:, np.newaxis] * (squares - np.einsum("nkg,ng->kg", squares, weight))
        weights = np.stack([weight, *leaning.swapaxes(0, 1)])
        told = np.zeros((3, self.size + len(self.mean)))
        for some in self.blocks:
            slopes = self._averaged_slopes(point, some, effects, weights)
            told += [self.summed(slope, some) for slope in slopes]
        nodes = Nodes(effects, weight, told[1:])
        return replace(self, nodes=nodes, tilt=told[0] - self.told(point).gradient)

    def squares(self, effects: Array) -> Array:
        """Return the squares of effects, (node, 2, judge), in units of their scales."""
        return self.effect_precision[:, np.newaxis] * effects**2

    def _add_judges(self, point: Array, some: Rows, joint: Joint, *, exact: bool) -> None:
        """Add what a block of votes tells of the effects of judges."""
        n, size, cross = len(joint.blocks), self.size, joint.cross
        judge, x = self.judge[some], self.design[some]
        (slope, *_), bends = super().terms(point, some)
        bend, mixed = bends[0, 0], bends[0, len(bends) - self.n_shared :]
        log_reliability, bias = self.of_judges(point)[:, judge]
        reliability = np.exp(log_reliability)
        lead = self.predictors(point, some)[0] - bias
        twist = slope if exact else np.zeros(len(lead))

        def by_judge(values: Array) -> Array:
            return np.bincount(judge, values, n)

        joint.own[:] += [by_judge(slope * lead), by_judge(slope)]
        both = by_judge(bend * lead)
        joint.blocks[:] += np.array(
            [[by_judge(bend * lead**2 - twist * lead), both], [both, by_judge(bend)]]
        ).T
        weights = (bend * lead - twist) * reliability, bend * reliability
        sides = (self.votes.first[some], 1.0), (self.votes.second[some], -1.0)
        for k, (weight, scale) in enumerate(zip(weights, (lead, 1.0), strict=True)):
            for side, sign in sides:
                cell = side.astype(np.int64) * n + judge
                cross[:size, k] += sign * np.bincount(cell, weight, size * n).reshape(size, n)
            for row, column in enumerate((*(weight * x.T), *(scale * mixed)), size):
                cross[row, k] += by_judge(column)


@dataclass(frozen=True, kw_only=True)
class RatedFit(Fit):
    """A fit of votes of judges, whose draws have scales and effects of judges drawn, too.

    Draws are centred `beyond` the optimum, (p,), and move by `by_scale`, (2, p), with the scales.
    """

    joint: Joint
    effects: Array
    beyond: Array
    by_scale: Array

    def moved(self, deviations: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Draw scales and effects of judges, too; see :meth:`Fit.moved`."""
        by_scale = rng.standard_normal((len(deviations), 2)) @ self.by_scale
        free = self.displace(self.free, deviations + self.beyond + by_scale)
        effects = self.effects + self.joint.drawn(free - self.free, rng)
        return self.unpack(free) | names_of(effects)


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

    As :func:`~bayesrank.inference.fits.pair_fits.fit_pair_rows`, with `judges`, who judged each
    vote, and `scale`, the typical size of a log reliability and of a bias.
    """
    effects, precision = np.zeros((2, len(judges.names))), np.full(2, scale**-2.0)
    votes = VoteRows.of(data)
    merged, like = votes.alike(judges.codes, *design.columns)
    kind = partial(RatedRows, judge=judges.codes[like], effects=effects, effect_precision=precision)
    problem = cast(
        "RatedRows", pair_rows(likelihood, merged, design.keep(like), kind=kind, **priors)
    )
    start = np.append(start_of_votes(problem, data), effects)
    try:
        problem, optimum = _averaged(*_with_scales(problem, start[np.newaxis], scale), scale)
    except np.linalg.LinAlgError as error:
        if problem.prior.precision:
            raise
        raise no_estimate_of_votes() from error
    size, p = problem.size + design.shape[1], problem.size + len(problem.mean)
    problem = replace(problem, effects=problem.of_judges(optimum.point[0]))
    optimum = replace(optimum, point=optimum.point[:, :p])
    problem.require_estimate(optimum)
    along = np.where(np.arange(p) < size, optimum.point[0], 0.0)
    expansion = problem.joint(optimum.point[0])
    beyond = _mean_beyond_mode(problem, optimum.point[0], along)
    by_scale = np.zeros((2, p))
    if problem.nodes is not None:
        secant = _secant(problem, optimum.point[0], along)
        # With few votes the marginal curvature of the scales may not be positive.
        for candidate in (replace(problem, secant=secant), problem):
            with suppress(np.linalg.LinAlgError):
                by_scale = _Scales.of(candidate, optimum.point[0], scale).moves()
                problem = candidate
                break

    def vote_by_vote() -> PairRows:
        rows = replace(problem.without_priors(), likelihood=bind(likelihood, votes), design=design)
        return replace(rows, judge=judges.codes)

    return problem.fit_at(
        optimum,
        RatedFit,
        rows=vote_by_vote,
        joint=expansion,
        effects=problem.effects,
        beyond=beyond,
        by_scale=by_scale,
    )


def _mean_beyond_mode(problem: RatedRows, point: Array, along: Array) -> Array:
    r"""Return how far draws are centred beyond the maximum, along the scale of what judges scale.

    Log reliabilities know scores and coefficients, which `along` holds, up to a common factor, in
    which they are uncertain together. Their mean is beyond their mode by
    :math:`-\frac{1}{2} \sigma^2 \frac{d}{ds} \log |H|` along it [2]_, with the curvature H. That
    first term of an expansion tells nothing where few votes make it larger than :math:`\sigma`,
    and is reduced to at most half of that.
    """
    joint = problem.joint(point)
    precision = along @ joint.tree.schur @ along
    if precision <= 0.0:
        return np.zeros(len(point))
    effects = (
        problem.effects
        - _STEP * np.array([[1.0], [-1.0]])[:, :, np.newaxis] * (joint.tree.solved @ along).T
    )
    sizes = []
    for sign, there in zip((1.0, -1.0), effects, strict=True):
        here = replace(problem, effects=there).joint(point + sign * _STEP * along)
        matrix, held = here.tree.corner, here.held[:, 0]
        sizes.append(np.linalg.slogdet(matrix)[1] - np.log(held @ matrix @ held))
    shift = -0.25 / _STEP * (sizes[0] - sizes[1]) / precision
    return shift / (1.0 + precision * shift**2) * along


def _secant(problem: RatedRows, point: Array, along: Array) -> Array:
    """Return the update of rank one by which the curvature along a direction is the marginal one.

    Judges who may be more reliable than thought bend it less than their elimination says.
    """
    joint = problem.joint(point)

    def slope(sign: float) -> Array:
        there = point + sign * _STEP * along
        return problem.averaged(there, joint).joint(there).gradient

    missed = (slope(-1.0) - slope(1.0)) / (2.0 * _STEP) - joint.tree.schur @ along
    size = missed @ along
    reach = missed @ constrained_steps(joint.tree.schur, joint.held, missed[np.newaxis])[0]
    if size == 0.0 or reach / size <= -1.0:
        return np.zeros_like(joint.tree.schur)
    return np.outer(missed, missed) / size


class _Scales(NamedTuple):
    r"""How the marginal density varies with the logarithms of the scales of judges.

    By Fisher's identity it rises by :math:`\sum_g E[u_g^2] / \tau^2 - n`, and so do its
    derivatives, by covariances with the squares of effects over what the votes leave open. `slope`,
    (2,), has its first derivatives, with the prior, `information`, (2, 2), minus the second ones,
    where the maximum in the other parameters follows by `follow`, (2, p).
    """

    slope: Array
    information: Array
    follow: Array

    @classmethod
    def of(cls, problem: RatedRows, point: Array, scale: float) -> "_Scales":
        """Expand the marginal density, whose nodes the problem has, at its maximum."""
        joint, nodes = problem.joint(point), cast("Nodes", problem.nodes)
        precision = problem.effect_precision[:, np.newaxis]
        squares = problem.squares(nodes.effects)
        mean = np.einsum("nkg,ng->kg", squares, nodes.weight)
        leaning = nodes.weight[:, np.newaxis] * (squares - mean)
        known = joint.tree.schur + problem.secant
        follow = constrained_steps(known, joint.held, nodes.rises)
        prior = DF * scale**2 * precision[:, 0]
        total = (mean + precision * joint.spread()).sum(axis=1) + prior
        information = np.diag(2.0 * total) - follow @ nodes.rises.T
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
        inner = np.einsum("nkk->kn", joint.tree.inverse)
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
        scales = _Scales.of(found, point[0], scale)
        try:
            np.linalg.cholesky(scales.information)
        except np.linalg.LinAlgError:
            break
        further = np.linalg.solve(scales.information, scales.slope)
        ahead = np.abs(np.linalg.solve(joint.tree.corner, found.tilt - problem.tilt)).max()
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
    # Only contractions are extrapolated, by a limited factor.
    usable = np.isfinite(rate) & (rate > 0.0) & (rate < 0.95)
    factor = np.where(usable, 1.0 / (1.0 - np.where(usable, rate, 0.0)), 1.0)
    return logs + np.clip(factor * (update - logs), -2.0, 2.0)
