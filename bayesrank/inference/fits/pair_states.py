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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_rows import PairRows, pair_rows
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.state_tree import BlockTree, StateTree
from bayesrank.inference.fits.vote_fits import start_of_votes
from bayesrank.inference.fits.vote_likelihoods import bind
from bayesrank.vote_rows import VoteRows

# Scales of steps, in logits, between which one is sought: no more, and as far as logits go.
_SCALES = (1e-3, 10.0)
# Of the logarithm of a scale, by which the search ends.
_NEAR = 0.02
# Points of the grid of scales lie a standard deviation apart, until the density has fallen by this.
_FALL = 4.0
_MOST_POINTS = 6
_STEP = 0.1


class _At(NamedTuple):
    """A fit at one scale of the steps: its logarithm, the log-density, the point and curvature."""

    log_scale: float
    density: float
    point: Array
    tree: BlockTree


@dataclass(frozen=True)
class StateFit(Fit):
    """A fit of votes in states, whose draws go over scales of the steps.

    `grid` are fits at scales whose logarithms are `width` apart, 0 for one fixed scale; `step` is
    what the scale is called.
    """

    grid: tuple[_At, ...] = ()
    width: float = 0.0
    step: str = "step_sd"

    def draw(self, n_draws: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw scales, then from the Gaussian at each; see :meth:`Fit.draw`."""
        return self._over_grid(n_draws, rng, lambda each, rows: each.tree.draw(len(rows), rng))

    def move(self, gradients: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Return the parameters one Newton step away at drawn scales; see :meth:`Fit.move`."""
        return self._over_grid(
            len(gradients), rng, lambda each, rows: each.tree.solve(gradients[rows])
        )

    def _over_grid(
        self,
        n_draws: int,
        rng: np.random.Generator,
        moved: Callable[[_At, NDArray[np.intp]], Array],
    ) -> dict[str, Array]:
        """Draw scales, and move coordinates, (row, p), from the fit at each."""
        densities = np.array([each.density for each in self.grid])
        weights = np.exp(densities - densities.max())
        which = rng.choice(len(weights), n_draws, p=weights / weights.sum())
        centres = np.array([each.log_scale for each in self.grid])[which]
        scales = np.exp(centres + self.width * (rng.random(n_draws) - 0.5))
        free = np.empty((n_draws, len(self.free)))
        for number, each in enumerate(self.grid):
            (rows,) = np.nonzero(which == number)
            if len(rows):
                moves, (n_states, n, _) = moved(each, rows), each.tree.border.shape
                scores = moves[:, : n_states * n].reshape(-1, n_states, n)
                scores -= scores.mean(axis=2, keepdims=True)
                free[rows] = self.displace(each.point, moves)
        return {**self.unpack(free), self.step: scales}


def fit_states(
    likelihood: PairLikelihood,
    data: Battles,
    state: NDArray[np.integer[Any]],
    tree: StateTree,
    by_state: Callable[[Array], dict[str, Array]],
    *,
    design: Design,
    step: str,
    step_sd: float | None = None,
    step_precision: float = 0.0,
    **priors: Any,
) -> Fit:
    """Fit scores that step along a tree of states; see the module.

    `state` is that of each battle. `by_state` names scores of shape (..., state, system). The scale
    of the steps, called `step`, is `step_sd` or, without it, estimated under a half-normal prior of
    precision `step_precision`, 0 for a flat one. Other priors are those of
    :func:`~bayesrank.inference.fits.pair_rows.pair_rows`, the one on scores a proper one.
    """
    votes, n, k = VoteRows.of(data), len(data.systems), design.shape[1]
    at = state.astype(np.int64) * n
    votes = replace(votes, first=at + votes.first, second=at + votes.second)
    merged, some = votes, design
    if not k:
        merged = replace(
            votes, outcome=np.sign(votes.outcome), both_bad=np.zeros_like(votes.both_bad)
        )
        merged = merged.merged(n * tree.n_states)
        some = Design.empty(len(merged.first))
    problem = pair_rows(likelihood, merged, some, tree=tree, **priors)
    start = start_of_votes(problem, data)
    grid, width = _over_scales(problem, start, step_sd, step_precision)
    best = max(grid, key=lambda each: each.density)
    scale = np.exp(best.log_scale)
    final = replace(problem, step_sd=scale)

    def unpack(free: Array) -> dict[str, Array]:
        named = problem.unpack(free)
        scores = named.pop("score").reshape(*free.shape[:-1], tree.n_states, n)
        return by_state(scores) | named | {step: np.full(free.shape[:-1], scale)}

    def vote_by_vote() -> PairRows:
        return replace(final.without_priors(), likelihood=bind(likelihood, votes), design=design)

    return final.fit_at(
        maximise(final, best.point[np.newaxis]),
        StateFit,
        unpack=unpack,
        rows=vote_by_vote,
        grid=grid,
        width=width,
        step=step,
    )


def _over_scales(
    problem: PairRows, start: Array, step_sd: float | None, prior_precision: float
) -> tuple[tuple[_At, ...], float]:
    """Fit at the best scale of the steps and around it, or at the given one."""
    last = [start]

    def at(log_scale: float) -> _At:
        scale = float(np.exp(log_scale))
        here = replace(problem, step_sd=scale)
        point = maximise(here, last[0][np.newaxis]).point
        last[0], tree = point[0], here.factored(point)
        matrix = here.tree.matrix(here.step_precision)
        # What makes the sums of scores regular, which are held.
        anchors = np.diag(matrix) + here.told(point[0]).diagonal.reshape(len(matrix), -1).mean(1)
        steps, sums = np.linalg.slogdet([matrix, matrix + np.diag(anchors)])[1]
        density = (here.width - 1) * steps + sums - tree.log_determinant
        density = here.value(point) + 0.5 * density
        # The prior of the scale, and that its logarithm is what varies.
        density += log_scale - 0.5 * prior_precision * scale**2
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
