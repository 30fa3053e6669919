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

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit, zero_sum
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_counts import fit_pairs
from bayesrank.inference.fits.pair_rows import PairRows, displace
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
    precisions : numpy.ndarray of shape (state,)
        Of the steps; zeros for the likelihood alone.
    root_mean : numpy.ndarray of shape (system,)
        Prior mean of the scores of the root.
    """

    tree: StateTree
    precisions: Array
    root_mean: Array

    @property
    def width(self) -> int:
        """Number of systems."""
        return self.size // self.tree.n_states

    def scale(self, point: Array) -> Array:
        """Return the largest number of votes on a score, plus the precision of its steps."""
        steps = np.diag(self.tree.matrix(self.precisions)).max()
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
        return super().value(point) - 0.5 * float(self.precisions @ squares)

    def _parts(self, point: Array) -> tuple[Array, Array, Array, Array]:
        """Return gradient, blocks of the information of the likelihood, border and corner."""
        key = point.tobytes()
        if key not in self._last_parts:
            sums, n, n_states = self.sums(point[0]), self.width, self.tree.n_states
            pairs = sums.pairs.reshape(n_states, n, n)
            blocks = pairs + pairs.swapaxes(1, 2)
            np.einsum("sii->si", blocks)[...] += sums.diagonal.reshape(n_states, n)
            pull = self.precisions[:, np.newaxis] * self._steps(point)
            slopes = sums.gradient[: self.size].reshape(n_states, n)
            slopes -= pull
            np.add.at(slopes, self.tree.parent[1:], pull[1:])
            border = sums.cross.reshape(n_states, n, -1)
            self._last_parts.clear()
            self._last_parts[key] = sums.gradient, blocks, border, sums.corner
        return self._last_parts[key]

    @cached_property
    def _last_parts(self) -> dict[bytes, tuple[Array, Array, Array, Array]]:
        return {}

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        gradient, blocks, border, corner = self._parts(point)

        def information() -> Array:
            n, cross = self.width, border.reshape(self.size, -1)
            steps = np.kron(self.tree.matrix(self.precisions), np.eye(n))
            for state, block in enumerate(blocks):
                place = slice(state * n, (state + 1) * n)
                steps[place, place] += block
            return np.block([[steps, cross], [cross.T, corner]])[np.newaxis]

        return gradient[np.newaxis].copy(), information

    def factored(self, point: Array) -> BlockTree:
        """Return the factored negative Hessian."""
        _, blocks, border, corner = self._parts(point)
        return BlockTree.factor(self.tree, self.precisions, blocks, border, corner)

    def newton(self, point: Array) -> Array:
        """Return the Newton step, halved until the objective rises, of shape (resample, p)."""
        gradient, size = self._parts(point)[0], self.size
        slopes = gradient[:size].reshape(self.tree.n_states, -1)
        scores, shared = self.factored(point).solve(slopes, gradient[size:])
        return self.shortened(point, np.append(scores.ravel(), shared)[np.newaxis])

    def held_rows(self, point: Array) -> Array:
        """Return that the scores of each state have a sum, of shape (resample, p, state)."""
        places = [slice(at, at + self.width) for at in range(0, self.size, self.width)]
        return zero_sum(point.shape[-1], *places)[np.newaxis]

    def at_scale(self, scale: float) -> "StateRows":
        """Return the problem with another scale of steps."""
        precisions = self.tree.precisions(scale, self.precisions[0])
        return replace(self, precisions=precisions)


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
        which, scales = self._scales(n_draws, rng)
        free = np.empty((n_draws, len(self.free)))
        for number, each in enumerate(self.grid):
            (rows,) = np.nonzero(which == number)
            if len(rows):
                scores, shared = each.tree.draw(len(rows), rng)
                moves = np.hstack([scores.reshape(len(rows), -1), shared])
                free[rows] = self.displace(each.point, moves)
        return {**self.unpack(free), self.step: scales}

    def move(self, gradients: Array) -> dict[str, Array]:
        """Return the parameters one Newton step away, with scales as they are drawn; see `Fit`."""
        _, scales = self._scales(len(gradients), np.random.default_rng(len(gradients)))
        return {**super().move(gradients), self.step: scales}

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
    tie_mean: float = 0.0,
    tie_precision: float = 0.0,
    effect_mean: float = 0.0,
    effect_precision: float = 0.0,
) -> StateFit:
    """Fit scores that step along a tree of states.

    Parameters
    ----------
    likelihood : PairLikelihood
        Of one battle.
    data : Battles
        The battles.
    state : numpy.ndarray of int and shape (battle,)
        The state of each.
    tree : StateTree
        How the scores step.
    unpack : callable
        Names points of shape (..., p): the scores of all states, the coefficients, then the tie
        parameter where it is estimated.
    design : Design
        Covariates of battles.
    step : str
        What the scale of the steps is called.
    step_sd : float, optional
        The scale of the steps; estimated by default.
    step_precision : float, default 0
        Half-normal prior on it; 0 is flat.
    prior_mean, prior_precision
        Normal prior on the scores of the root.
    tie_mean, tie_precision, effect_mean, effect_precision
        Normal priors on the tie parameter and on the coefficients.

    Returns
    -------
    StateFit
        With the likelihood of single rows as ``rows``.
    """
    votes = state_votes(data, state)
    n, n_states, k = len(data.systems), tree.n_states, design.shape[1]
    means = np.broadcast_to(np.asarray(prior_mean, dtype=float), n)
    nothing = NormalScores(np.zeros((1, n_states * n)), np.zeros(1))
    shared = [np.full(int(likelihood.start is not None), at) for at in (tie_mean, tie_precision)]

    def rows(votes: VoteRows, design: Design, precisions: Array) -> StateRows:
        bound = TwoSided(likelihood, votes)
        priors = (effect_mean, effect_precision, shared[0], shared[1])
        steps = (tree, precisions, means - means.mean())
        return StateRows(nothing, bound, votes, design, *priors, *steps)

    merged = votes if k else _merged(votes, n, n_states)
    problem = rows(merged, design if k else Design.empty(len(merged.first)), np.ones(n_states))
    problem = replace(problem, precisions=tree.precisions(1.0, prior_precision))
    pooled = fit_pairs(
        likelihood,
        data.wins,
        data.ties,
        prior_precision=prior_precision,
        tie_mean=tie_mean,
        tie_precision=tie_precision,
    )
    start = np.concatenate([np.tile(pooled.score, n_states), np.zeros(k), pooled.free[n:]])
    grid, width = _over_scales(problem, start, step_sd, step_precision)
    best = max(grid, key=lambda each: each.density)
    final = problem.at_scale(np.exp(best.log_scale))
    optimum = maximise(final, best.point[np.newaxis])
    scale = np.exp(best.log_scale)

    def named(free: Array) -> dict[str, Array]:
        return {**unpack(free), step: np.full(free.shape[:-1], scale)}

    alone = replace(final, precisions=np.zeros(n_states), effect_precision=0.0)
    alone = replace(alone, shared_precision=np.zeros_like(alone.shared_precision))
    single = partial(_single, alone, likelihood, votes, design)
    return StateFit.at(
        final,
        optimum,
        (),
        named,
        displace=partial(displace, positive=final.likelihood.positive),
        rows=single,
        grid=grid,
        width=width,
        step=step,
    )


def _single(
    alone: StateRows, likelihood: PairLikelihood, votes: VoteRows, design: Design
) -> StateRows:
    """Return the likelihood without priors, vote by vote."""
    return replace(alone, likelihood=TwoSided(likelihood, votes), data=votes, design=design)


def state_votes(data: Battles, state: NDArray[np.integer[Any]]) -> VoteRows:
    """Return votes on systems as they are in a state, numbered state by state."""
    votes = VoteRows.of(data)
    at = state.astype(np.int64) * len(data.systems)
    return replace(votes, first=at + votes.first, second=at + votes.second)


def _merged(votes: VoteRows, n: int, n_states: int) -> VoteRows:
    """Return one row for all equal votes of a state."""
    parts, order = [], np.argsort(votes.first // n, kind="stable")
    ends = np.searchsorted(votes.first[order] // n, np.arange(n_states + 1))
    for state, (low, high) in enumerate(itertools.pairwise(ends)):
        rows = order[low:high]
        part = VoteRows(
            votes.systems,
            votes.first[rows] - state * n,
            votes.second[rows] - state * n,
            np.sign(votes.outcome[rows]),
            np.zeros(len(rows), dtype=np.bool_),
            votes.weight[rows],
        ).merged()
        parts.append((part.first + state * n, part.second + state * n, part.outcome, part.weight))
    first, second, outcome, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    return VoteRows(
        votes.systems, first, second, outcome, np.zeros(len(first), dtype=np.bool_), weight
    )


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
        steps = np.linalg.slogdet(problem.tree.matrix(here.precisions))[1]
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
