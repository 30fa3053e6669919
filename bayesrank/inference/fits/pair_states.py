r"""Fits of paired comparisons whose scores differ between states: groups of battles, or periods.

A vote on i and j in state s has its likelihood at

.. math:: d = \theta_{si} - \theta_{sj} + x^\top \beta

and scores step along a tree of states (:mod:`bayesrank.inference.fits.state_tree`). The scale of
the steps maximises the marginal likelihood times its prior, with all else integrated out by
Laplace's method; draws go over a grid of scales [1]_.

References
----------
.. [1] H. Rue, S. Martino and N. Chopin. Approximate Bayesian inference for latent Gaussian models
   by using integrated nested Laplace approximations. Journal of the Royal Statistical Society,
   Series B 71 (2009). https://doi.org/10.1111/j.1467-9868.2008.00700.x
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit, zero_sum
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_counts import fit_pairs
from bayesrank.inference.fits.pair_rows import PairRows, Sums, pair_rows
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.state_tree import BlockTree, StateTree
from bayesrank.inference.fits.vote_likelihoods import TwoSided
from bayesrank.inference.fits.zero_sum import NormalScores
from bayesrank.vote_rows import VoteRows

# Scales of steps, in logits, between which one is sought: no more, and as far as logits go.
_SCALES = (1e-3, 10.0)
# Of the logarithm of a scale, by which the search ends.
_NEAR = 0.02
# Points of the grid of scales lie a standard deviation apart, until the density has fallen by this.
_FALL = 4.0
_MOST_POINTS = 6
_STEP = 0.1


@dataclass(frozen=True)
class StateRows(PairRows):
    """The penalised log-likelihood of votes in states.

    The scores of all states stand one after another: that of system i in state s has the number
    s n + i, and so do the systems of a vote.

    Attributes
    ----------
    tree : StateTree
        The states.
    step_precision : numpy.ndarray of shape (state,)
        Of the steps; zeros for the likelihood alone.
    root_mean : numpy.ndarray of shape (system,)
        Prior mean of the scores of the root.
    """

    tree: StateTree
    step_precision: Array
    root_mean: Array

    @property
    def width(self) -> int:
        """Number of systems."""
        return self.size // self.tree.n_states

    def scale(self, point: Array) -> Array:
        """Return the largest number of votes on a score, plus the precision of its steps."""
        steps = np.diag(self.tree.matrix(self.step_precision)).max()
        return np.array([self._largest_count + steps])

    def _steps(self, point: Array) -> Array:
        """Return how far each state is from its parent, of shape (state, system)."""
        scores = point[0, : self.size].reshape(self.tree.n_states, -1)
        before = scores[self.tree.parent]
        before[0] = self.root_mean
        return scores - before

    def value(self, point: Array) -> float:
        """Return the objective at one point, of shape (1, p)."""
        squares = (self._steps(point) ** 2).sum(axis=1)
        return super().value(point) - 0.5 * float(self.step_precision @ squares)

    def _gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (p,)."""
        gradient, pull = self.sums(point[0]).gradient.copy(), self._steps(point)
        pull *= self.step_precision[:, np.newaxis]
        slopes = gradient[: self.size].reshape(self.tree.n_states, -1)
        slopes -= pull
        np.add.at(slopes, self.tree.parent[1:], pull[1:])
        return gradient

    def _blocks(self, sums: Sums) -> Array:
        """Return the information of the likelihood on the scores of each state."""
        pairs = sums.pairs.reshape(self.tree.n_states, self.width, self.width)
        blocks = pairs + pairs.swapaxes(1, 2)
        np.einsum("sii->si", blocks)[...] += sums.diagonal.reshape(-1, self.width)
        return blocks

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        sums, n = self.sums(point[0]), self.width

        def information() -> Array:
            steps = np.kron(self.tree.matrix(self.step_precision), np.eye(n))
            for state, block in enumerate(self._blocks(sums)):
                place = slice(state * n, (state + 1) * n)
                steps[place, place] += block
            return np.block([[steps, sums.cross], [sums.cross.T, sums.corner]])[np.newaxis]

        return self._gradient(point)[np.newaxis], information

    def factored(self, point: Array) -> BlockTree:
        """Return the factored negative Hessian."""
        sums = self.sums(point[0])
        border = sums.cross.reshape(self.tree.n_states, self.width, -1)
        return BlockTree.factor(
            self.tree, self.step_precision, self._blocks(sums), border, sums.corner
        )

    def newton(self, point: Array) -> Array:
        """Return the Newton step, halved until the objective rises, of shape (resample, p)."""
        gradient, size = self._gradient(point), self.size
        slopes = gradient[:size].reshape(self.tree.n_states, -1)
        scores, shared = self.factored(point).solve(slopes, gradient[size:])
        return self.shortened(point, np.append(scores, shared)[np.newaxis])

    def held_rows(self, point: Array) -> Array:
        """Return that the scores of each state have a sum, of shape (resample, p, state)."""
        places = [slice(at, at + self.width) for at in range(0, self.size, self.width)]
        return zero_sum(point.shape[-1], *places)[np.newaxis]

    def at_scale(self, scale: float) -> "StateRows":
        """Return the problem with another scale of steps."""
        return replace(self, step_precision=self.tree.precisions(scale, self.step_precision[0]))

    def vote_by_vote(self, likelihood: PairLikelihood, votes: VoteRows, design: Design) -> PairRows:
        """Return the likelihood of votes that are not merged, without priors."""
        flat = replace(self.without_priors(), step_precision=np.zeros_like(self.step_precision))
        return replace(flat, likelihood=TwoSided(likelihood, votes), data=votes, design=design)


class _At(NamedTuple):
    """A fit at one scale of the steps: its logarithm, the log-density, the point and curvature."""

    log_scale: float
    density: float
    point: Array
    tree: BlockTree


@dataclass(frozen=True)
class StateFit(Fit):
    """A fit of votes in states, whose draws go over scales of the steps.

    Attributes
    ----------
    grid : tuple of _At
        Fits at scales of the steps.
    width : float
        How far apart their logarithms are; 0 for one fixed scale.
    step : str
        What the scale is called.
    """

    grid: tuple[_At, ...] = ()
    width: float = 0.0
    step: str = "step_sd"

    def draw(self, n_draws: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw scales, then from the Gaussian at each; see :meth:`Fit.draw`."""
        return self._over_grid(n_draws, rng, lambda each, rows: each.tree.draw(len(rows), rng))

    def move(self, gradients: Array) -> dict[str, Array]:
        """Return the parameters one Newton step away from where they are at drawn scales.

        See :meth:`Fit.move`.
        """

        def step(each: _At, rows: NDArray[np.intp]) -> tuple[Array, Array]:
            states, n = each.tree.border.shape[:2]
            some, size = gradients[rows].T, states * n
            scores, shared = each.tree.solve(some[:size].reshape(states, n, -1), some[size:])
            return np.moveaxis(scores, -1, 0), shared.T

        return self._over_grid(len(gradients), np.random.default_rng(len(gradients)), step)

    def _over_grid(
        self,
        n_draws: int,
        rng: np.random.Generator,
        moved: Callable[[_At, NDArray[np.intp]], tuple[Array, Array]],
    ) -> dict[str, Array]:
        """Draw scales, and return the parameters moved from the fit at each.

        `moved` returns how far scores, of shape (row, state, system), and the other coordinates
        move in some of the draws.
        """
        which, scales = self._scales(n_draws, rng)
        free = np.empty((n_draws, len(self.free)))
        for number, each in enumerate(self.grid):
            (rows,) = np.nonzero(which == number)
            if len(rows):
                scores, shared = moved(each, rows)
                moves = np.hstack([scores.reshape(len(rows), -1), shared])
                free[rows] = self.displace(each.point, moves)
        return {**self.unpack(free), self.step: scales}

    def _scales(
        self, n_draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.integer[Any]], Array]:
        """Draw points of the grid, and scales around them."""
        densities = np.array([each.density for each in self.grid])
        weights = np.exp(densities - densities.max())
        which = rng.choice(len(weights), n_draws, p=weights / weights.sum())
        centres = np.array([each.log_scale for each in self.grid])[which]
        return which, np.exp(centres + self.width * (rng.random(n_draws) - 0.5))


def fit_states(
    likelihood: PairLikelihood,
    data: Battles,
    state: NDArray[np.integer[Any]],
    tree: StateTree,
    unpack: Callable[[Array], dict[str, Array]],
    *,
    design: Design,
    step: str,
    step_sd: float | None = None,
    step_precision: float = 0.0,
    prior_mean: Array | float = 0.0,
    prior_precision: float = 1.0,
    shared_mean: float = 0.0,
    shared_precision: float = 0.0,
    **effect_prior: float,
) -> Fit:
    """Fit scores that step along a tree of states; see the module.

    `state` is that of each battle. `unpack` names points of shape (..., p): the scores of all
    states, the coefficients, then the tie parameter where it is estimated. The scale of the steps,
    called `step`, is `step_sd` or, without it, estimated under a half-normal prior of precision
    `step_precision`, 0 for a flat one. The prior is that on the scores of the root; other priors
    are those of :func:`~bayesrank.inference.fits.pair_rows.pair_rows`.
    """
    votes, n, n_states = VoteRows.of(data), len(data.systems), tree.n_states
    at = state.astype(np.int64) * n
    votes = replace(votes, first=at + votes.first, second=at + votes.second)
    k = design.shape[1]
    merged = votes if k else _merged(votes, n * n_states)
    ties = {"shared_mean": shared_mean, "shared_precision": shared_precision}
    some = design if k else Design.empty(len(merged.first))
    means = np.broadcast_to(np.asarray(prior_mean, dtype=float), n)
    problem = pair_rows(likelihood, merged, some, **ties, **effect_prior).extended(
        StateRows,
        prior=NormalScores(np.zeros((1, n_states * n)), np.zeros(1)),
        tree=tree,
        step_precision=tree.precisions(1.0, prior_precision),
        root_mean=means - means.mean(),
    )
    pooled = fit_pairs(
        likelihood,
        data.wins,
        data.ties,
        prior_precision=prior_precision,
        tie_mean=shared_mean,
        tie_precision=shared_precision,
    )
    start = np.concatenate([np.tile(pooled.score, n_states), np.zeros(k), pooled.free[n:]])
    grid, width = _over_scales(problem, start, step_sd, step_precision)
    best = max(grid, key=lambda each: each.density)
    scale = np.exp(best.log_scale)
    final = problem.at_scale(scale)

    def named(free: Array) -> dict[str, Array]:
        return {**unpack(free), step: np.full(free.shape[:-1], scale)}

    return final.fit_at(
        maximise(final, best.point[np.newaxis]),
        StateFit,
        unpack=named,
        exists=True,
        rows=partial(final.vote_by_vote, likelihood, votes, design),
        grid=grid,
        width=width,
        step=step,
    )


def _merged(votes: VoteRows, size: int) -> VoteRows:
    """Return one row for all votes on the same two of many scores with the same winner."""
    turned = votes.first > votes.second
    low, high = np.where(turned, (votes.second, votes.first), (votes.first, votes.second))
    outcome = np.where(turned, -1, 1) * np.sign(votes.outcome)
    cells, number = np.unique((low * size + high) * 3 + outcome + 1, return_inverse=True)
    weight = np.bincount(number, votes.weight)
    cells, weight = cells[weight > 0.0], weight[weight > 0.0]
    pair, outcome = np.divmod(cells, 3)
    bad = np.zeros(len(cells), dtype=np.bool_)
    return VoteRows(votes.systems, *np.divmod(pair, size), outcome - 1, bad, weight)


def _over_scales(
    problem: StateRows, start: Array, step_sd: float | None, step_precision: float
) -> tuple[tuple[_At, ...], float]:
    """Fit at the best scale of the steps and around it, or at the given one."""
    n = problem.width
    last = [start]

    def at(log_scale: float) -> _At:
        scale = float(np.exp(log_scale))
        here = problem.at_scale(scale)
        point = maximise(here, last[0][np.newaxis]).point
        last[0], tree = point[0], here.factored(point)
        steps = np.linalg.slogdet(problem.tree.matrix(here.step_precision))[1]
        density = here.value(point) + 0.5 * ((n - 1) * steps - tree.log_determinant)
        # The prior of the scale, and that its logarithm is what varies.
        density += log_scale - 0.5 * step_precision * scale**2
        return _At(log_scale, float(density), point[0], tree)

    if step_sd is not None:
        return (at(float(np.log(step_sd))),), 0.0
    from scipy.optimize import minimize_scalar  # other fits of pairs do not need SciPy

    found: Any = minimize_scalar(
        lambda u: -at(u).density,
        bounds=np.log(_SCALES),
        method="bounded",
        options={"xatol": _NEAR},
    )
    best = at(float(found.x))
    sides = [at(best.log_scale + sign * _STEP).density for sign in (-1.0, 1.0)]
    bend = (2.0 * best.density - sum(sides)) / _STEP**2
    width = min(1.0, max(bend, 1e-12) ** -0.5)
    grid = [best]
    for sign in (-1.0, 1.0):
        last[0] = best.point
        for number in range(1, _MOST_POINTS + 1):
            each = at(best.log_scale + sign * number * width)
            grid.append(each)
            if each.density < best.density - _FALL:
                break
    return tuple(grid), width
