r"""Fits of votes whose judges differ in reliability and in bias, with the scales of these effects.

Scores, coefficients and thresholds maximise the marginal density of
:mod:`bayesrank.inference.fits.rated_rows`. The joint density by itself would have scores too far
apart, the more so the fewer votes a judge has [1]_. The squares of the scales :math:`\tau` have
scaled inverse chi-squared priors, and they are those at which

.. math:: \tau^2 = \frac{\nu s^2 + \sum_g (E[u_g^2] + v_g)}{\nu + n}

with the squares of the effects :math:`u_g` of n judges by the quadrature, and what the uncertainty
of the other parameters adds to their variance, :math:`v_g`. The curvature in the other parameters
is that of the joint density with the effects of judges eliminated, but along the common factor of
what judges scale, where it is that of the marginal density. Draws have scales as uncertain as votes
and prior leave them.

References
----------
.. [1] N. E. Breslow and X. Lin. Bias correction in generalised linear mixed models with a single
   component of dispersion. Biometrika 82 (1995). https://doi.org/10.1093/biomet/82.1.81
.. [2] L. Tierney and J. B. Kadane. Accurate approximations for posterior moments and marginal
   densities. Journal of the American Statistical Association 81 (1986).
   https://doi.org/10.1080/01621459.1986.10478240
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from bayesrank.battles import Battles, Labels
from bayesrank.formula import Design
from bayesrank.inference.fits.existence import no_estimate_of_votes
from bayesrank.inference.fits.fit import Fit, constrained_steps
from bayesrank.inference.fits.newton import Optimum, maximise
from bayesrank.inference.fits.pair_rows import pair_rows
from bayesrank.inference.fits.pairs import Array
from bayesrank.inference.fits.rated_rows import Joint, Nodes, RatedRows, names_of
from bayesrank.inference.fits.vote_fits import start_of_votes
from bayesrank.inference.fits.vote_likelihoods import VoteModel

# Degrees of freedom of the scales of judges, as of the scales of questions.
DF = 2.0
# Accuracy of the scales of judges, and of the parameters at them.
_TOLERANCE, _MOST_ROUNDS = 1e-7, 200
# Steps towards the maximum of the marginal density must shrink to this share of those before.
_SHRINKING = 0.9
# Share of their scale by which parameters are moved for a slope.
_STEP = 1e-3


@dataclass(frozen=True, kw_only=True)
class RatedFit(Fit):
    """A fit of votes of judges, whose draws have scales and effects of judges drawn, too.

    `joint` expands the joint density at the optimum, where judges have `effects`, of shape (2,
    judge). Draws are centred `beyond` it, (p,), and move by `by_scale`, (2, p), with the scales.
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

    As :func:`~bayesrank.inference.fits.vote_fits.fit_pair_rows`, with `judges`, who judged each
    vote, and `scale`, the typical size of a log reliability and of a bias. ``parameters`` also has
    ``reliability`` and ``position_bias`` of shape (judge,).
    """
    effects, precision = np.zeros((2, len(judges.names))), np.full(2, scale**-2.0)
    kind = partial(RatedRows, judge=judges.codes, effects=effects, effect_precision=precision)
    problem = cast("RatedRows", pair_rows(likelihood, data, design, kind=kind, **priors))
    start = np.append(start_of_votes(problem, data), effects)
    try:
        problem, optimum = _averaged(*_with_scales(problem, start[np.newaxis], scale), scale)
    except np.linalg.LinAlgError as error:
        if problem.prior.precision.all():
            raise
        raise no_estimate_of_votes() from error
    size, p = problem.size + design.shape[1], problem.size + len(problem.mean)
    problem = replace(problem, effects=problem.of_judges(optimum.point[0]))
    optimum = replace(optimum, point=optimum.point[:, :p])
    problem.require_estimate(optimum.point)
    along = np.where(np.arange(p) < size, optimum.point[0], 0.0)
    expansion = problem.joint(optimum.point[0])
    beyond = _mean_beyond_mode(problem, optimum.point[0], along)
    by_scale = np.zeros((2, p))
    if problem.nodes is not None:
        secant = _secant(problem, optimum.point[0], along)
        # With few votes the marginal curvature may leave the scales without any.
        for candidate in (replace(problem, secant=secant), problem):
            with suppress(np.linalg.LinAlgError):
                by_scale = _Scales.of(candidate, optimum.point[0], scale).moves()
                problem = candidate
                break
    return problem.fit_at(
        optimum,
        RatedFit,
        rows=problem.without_priors,
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
        squares = precision * nodes.effects**2  # of shape (node, 2, judge)
        mean = np.einsum("nkg,ng->kg", squares, nodes.weight)
        leaning = nodes.weight[:, np.newaxis] * (squares - mean)
        rises = [
            replace(problem, nodes=Nodes(nodes.effects, weight)).averaged_gradient(point)
            for weight in leaning.swapaxes(0, 1)
        ]
        known = joint.tree.schur + problem.secant
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
    # Contractions alone are extrapolated, and not too far.
    usable = np.isfinite(rate) & (rate > 0.0) & (rate < 0.95)
    factor = np.where(usable, 1.0 / (1.0 - np.where(usable, rate, 0.0)), 1.0)
    return logs + np.clip(factor * (update - logs), -2.0, 2.0)
