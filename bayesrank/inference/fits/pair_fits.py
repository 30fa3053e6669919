r"""Fits of votes under normal priors, with covariates or grades, and in states.

The objective is that of :mod:`bayesrank.inference.fits.pair_rows`. Where scores differ between
states, which are groups of battles or periods, a vote on i and j in state s has its likelihood at

.. math:: d = \theta_{si} - \theta_{sj} + x^\top \beta

and scores change in steps along a tree of states. The scale of the steps maximises the marginal
likelihood times its prior, with all else integrated out by Laplace's method; draws go over a grid
of scales [1]_.

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
from bayesrank.inference.fits.fit import Fit, first_scores
from bayesrank.inference.fits.newton import Array, maximise
from bayesrank.inference.fits.pair_rows import BlockTree, PairRows, StateTree, pair_rows
from bayesrank.inference.fits.pairs import PairLikelihood, fit_pairs
from bayesrank.inference.fits.vote_likelihoods import PairedResults, VoteModel, bind
from bayesrank.priors import NormalPrior, Prior, PriorLike, as_prior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

# Scales of steps, in logits, between which one is sought: no more, and as far as logits go.
_SCALES = (1e-3, 10.0)
# Of the logarithm of a scale, by which the search ends.
_NEAR = 0.02
# Points of the grid of scales lie a standard deviation apart, until the density has fallen by this.
_FALL = 4.0
_MOST_POINTS = 6
_STEP = 0.1


def normal_priors(
    prior: Prior, covariate_prior: PriorLike, **shared: PriorLike
) -> dict[str, Any] | None:
    """Return the priors of :func:`pair_rows`; None unless all of them are normal or flat."""
    scores, effects = prior.quadratic(), as_prior(covariate_prior, "covariate_prior").quadratic()
    others = [as_prior(each, name).quadratic() for name, each in shared.items()]
    known = [each for each in others if each is not None]
    if scores is None or effects is None or len(known) < len(others):
        return None
    shared_prior = NormalPrior(*np.array(known).reshape(-1, 2).T)
    return {"prior": scores, "effect_prior": effects, "shared_prior": shared_prior}


def fit_pair_rows(
    likelihood: PairLikelihood | VoteModel, data: Comparisons, design: Design, **priors: Any
) -> Fit:
    """Fit a model of votes by Newton's method; without covariates equal votes are merged."""
    votes = VoteRows.of(data)
    if not design.shape[1]:
        votes = votes.merged()
        design = Design.empty(len(votes.first))
    problem = pair_rows(likelihood, votes, design, **priors)
    optimum = maximise(problem, start_of_votes(problem, data)[np.newaxis])
    if not design.shape[1]:
        return problem.fit_at(optimum)
    return problem.fit_at(optimum, rows=problem.without_priors)


def start_of_votes(problem: PairRows, data: Comparisons) -> Array:
    """Return where to begin: by points and shares; with covariates at the fit of the counts."""
    likelihood, n, n_effects = problem.likelihood, problem.width, problem.design.shape[1]
    points, played = (data.wins + 0.5 * data.ties).sum(axis=1), data.totals.sum(axis=1)
    scores = first_scores(points[np.newaxis], played[np.newaxis])[0]
    shared = likelihood.start(proper=bool(problem.precision[n_effects:].any()))
    if isinstance(likelihood, PairedResults) and n_effects:
        pooled = fit_pairs(
            likelihood.likelihood,
            data.wins,
            data.ties,
            prior=NormalPrior(np.asarray(problem.prior.mean)[:n], problem.prior.precision),
            # Not used without a tie parameter, which is the last one.
            tie_prior=NormalPrior(problem.mean[-1], problem.precision[-1]),
        )
        if pooled.converged:
            scores, shared = pooled.score, pooled.free[n:]
    return np.concatenate([np.tile(scores, problem.tree.n_states), np.zeros(n_effects), shared])


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
    prior: Prior,
    state: NDArray[np.integer[Any]],
    tree: StateTree,
    by_state: Callable[[Array], dict[str, Array]],
    step: tuple[str, float | None, PriorLike],
    *,
    tie_prior: PriorLike = "normal(0, 2)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit scores that step along a tree of states; see the module. None if a prior is not normal.

    `state` is that of each battle. `by_state` names scores of shape (..., state, system). `step` is
    what the scale of the steps is called, and the scale or, without it, its half-normal or flat
    prior.
    """
    told = data.wins if likelihood.ties == "ignore" else data.totals
    if not told.any():
        return None  # the factory raises the error
    name, step_sd, step_prior = step
    priors = normal_priors(prior, covariate_prior, tie_prior=tie_prior)
    steps = as_prior(step_prior).quadratic()
    if priors is None or priors["prior"].precision == 0.0 or steps is None or steps.mean != 0.0:
        return None
    if likelihood.lowest_tie == 0.0 and np.any(priors["shared_prior"].mean):
        return None
    design = data.design(formula)
    votes = VoteRows.of(data).in_states(state, range(tree.n_states))
    merged, some = votes, design
    if not design.shape[1]:
        merged = replace(
            votes, outcome=np.sign(votes.outcome), both_bad=np.zeros_like(votes.both_bad)
        )
        merged = merged.merged()
        some = Design.empty(len(merged.first))
    problem = pair_rows(likelihood, merged, some, tree=tree, **priors)
    start = start_of_votes(problem, data)
    grid, width = _over_scales(problem, start, step_sd, steps.precision)
    best = max(grid, key=lambda each: each.density)
    scale = np.exp(best.log_scale)
    final = replace(problem, step_sd=scale)

    def unpack(free: Array) -> dict[str, Array]:
        named = problem.unpack(free)
        scores = named.pop("score").reshape(*free.shape[:-1], tree.n_states, problem.width)
        return by_state(scores) | named | {name: np.full(free.shape[:-1], scale)}

    def vote_by_vote() -> PairRows:
        return replace(final.without_priors(), likelihood=bind(likelihood, votes), design=design)

    return final.fit_at(
        maximise(final, best.point[np.newaxis]),
        StateFit,
        unpack=unpack,
        rows=vote_by_vote,
        grid=grid,
        width=width,
        step=name,
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
        matrix = here.state_precision
        # Makes the curvature regular along the sums of scores, which are fixed.
        anchors = np.diag(matrix) + here.told(point[0]).diagonal.reshape(len(matrix), -1).mean(1)
        steps, sums = np.linalg.slogdet([matrix, matrix + np.diag(anchors)])[1]
        density = (here.width - 1) * steps + sums - tree.log_determinant
        density = here.value(point) + 0.5 * density
        # The prior of the scale, and the Jacobian of its logarithm.
        density += log_scale - 0.5 * prior_precision * scale**2
        return _At(log_scale, float(density), point[0], tree)

    if step_sd is not None:
        return (at(float(np.log(step_sd))),), 0.0
    from scipy.optimize import minimize_scalar  # other fits of pairs do not need SciPy

    found: Any = minimize_scalar(
        lambda u: -at(u).density, bounds=np.log(_SCALES), method="bounded", options={"xatol": _NEAR}
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
