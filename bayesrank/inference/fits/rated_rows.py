r"""The density of votes whose judges differ in reliability and in bias for the first answer.

Judge g sees :math:`a_g d + h_g` in place of d. Log reliabilities :math:`\log a_g` and biases
:math:`h_g` are normal around 0. Either they are coordinates, or they are integrated out: the
gradient of the marginal density is that of the joint one, averaged over the effects that the votes
leave open (Fisher's identity), by Gauss-Hermite quadrature around their modes [1]_.

References
----------
.. [1] J. C. Pinheiro and D. M. Bates. Approximations to the log-likelihood function in the
   nonlinear mixed-effects model. Journal of Computational and Graphical Statistics 4 (1995).
   https://doi.org/10.1080/10618600.1995.10474663
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import finite_exp
from bayesrank.inference.fits.pair_rows import PairRows
from bayesrank.inference.fits.pairs import Array
from bayesrank.inference.fits.state_tree import BlockTree, StateTree
from bayesrank.inference.fits.vote_likelihoods import Rows, Terms

# Nodes along each effect of a judge. With scales near 1 it takes 15 for the curvature to half a
# percent; many votes, of scales that are well known, have as many as can be evaluated at once.
_NODES, _EVALUATIONS = (5, 15), 4e6


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
    def tree(self) -> BlockTree:
        """The negative Hessian, of which the effects of judges are eliminated."""
        judges, border = StateTree.apart(len(self.blocks)), self.cross.transpose(2, 1, 0)
        none = np.zeros(len(self.blocks))
        return BlockTree.factor(judges, none, self.blocks, border, self.matrix, self.held)

    @cached_property
    def roots(self) -> Array:
        """The Cholesky factors of the covariances of effects, given the others, (judge, 2, 2)."""
        return np.linalg.cholesky(self.tree.inverse)

    def step(self) -> Array:
        """Return Newton's step, in the effects of judges too; LinAlgError if not upwards."""
        found, size = (
            self.tree.solve(np.append(self.own.T, self.gradient)[np.newaxis]),
            self.own.size,
        )
        return np.append(found[0, size:], found[0, :size].reshape(-1, 2).T)

    def spread(self) -> Array:
        """Return what the other parameters add to the variances of the effects, (2, judge)."""
        spread = self.tree.solved @ np.linalg.inv(self.tree.corner)
        return np.einsum("nkp,nkp->kn", spread, self.tree.solved)

    def drawn(self, moves: Array, rng: np.random.Generator) -> Array:
        """Draw deviations of effects of judges given those of the others, (draw, 2, judge)."""
        normals = rng.standard_normal((len(moves), len(self.blocks), 2))
        return self.tree.given(self.roots @ normals.transpose(1, 2, 0), moves.T).T


class Nodes(NamedTuple):
    """Effects that the votes leave open: of shape (node, 2, judge), with weights, (node, judge)."""

    effects: Array
    weight: Array


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

    The free coordinates are those of votes, whose information is that with the effects eliminated.
    Points may have the effects behind them: log reliabilities, then biases; at others they are
    `effects`, of shape (2, judge), normal with `effect_precision`, (2,). `judge`, (vote,), says who
    judged. `tilt`, (p,), added to the gradient, makes it that of the marginal density at the
    maximum; `secant`, (p, p), is added to the information; `nodes` are effects to average over.
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
        return self._seen(self.of_judges(point), ahead, some)[0], level, shared

    def _seen(self, effects: Array, ahead: Array, some: Rows) -> tuple[Array, Array]:
        """Return what judges of effects (2, judge) see of differences, and their reliabilities."""
        (log_reliability, bias), judge = effects, self.judge[some]
        reliability = np.exp(log_reliability)[judge]
        return reliability * ahead + bias[judge], reliability

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
        total = np.zeros(())
        for effects, weight in zip(*self.nodes, strict=True):
            seen, reliability = self._seen(effects, ahead, some)
            slope = self.likelihood.slope(some, seen, level, shared)
            slope[0] *= reliability
            total = total + weight[self.judge[some]] * slope
        return total

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
            ahead, level, shared = super().predictors(point, some)
            for row, each in zip(logs, effects, strict=True):
                value = self.likelihood.value(some, self._seen(each, ahead, some)[0], level, shared)
                row += np.bincount(self.judge[some], value, len(row))
        logs -= logs.max(axis=0)
        found = replace(self, nodes=Nodes(effects, np.exp(logs) / np.exp(logs).sum(axis=0)))
        return replace(found, tilt=found.averaged_gradient(point) - self.told(point).gradient)

    def averaged_gradient(self, point: Array) -> Array:
        """Return the gradient of what votes tell, averaged over the nodes, of shape (p,)."""
        size = self.size
        found = np.zeros(size + len(self.mean))
        for some in self.blocks:
            slopes, others = self.slopes(point, some)
            for side, slope in zip((self.votes.first, self.votes.second), slopes, strict=True):
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
        sides = (self.votes.first[some], 1.0), (self.votes.second[some], -1.0)
        for k, (weight, scale) in enumerate(zip(weights, (lead, 1.0), strict=True)):
            for side, sign in sides:
                cell = side.astype(np.int64) * n + judge
                cross[:size, k] += sign * np.bincount(cell, weight, size * n).reshape(size, n)
            for row, column in enumerate((*(weight * x.T), *(scale * mixed)), size):
                cross[row, k] += by_judge(column)
