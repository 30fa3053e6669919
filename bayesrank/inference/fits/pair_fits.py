r"""Fits of paired comparisons under normal priors: by counts of pairs, by votes and by state.

Counts of pairs suffice without covariates. Where votes have covariates or grades, the objective is
that of :mod:`bayesrank.inference.fits.pair_rows`. Where scores differ between states, which are
groups of battles or periods, a vote on i and j in state s has its likelihood at

.. math:: d = \theta_{si} - \theta_{sj} + x^\top \beta

and scores change in steps along a tree of states
(:class:`bayesrank.inference.fits.zero_sum.StateTree`). The
scale of the steps maximises the marginal likelihood times its prior, with all else integrated out
by Laplace's method; draws go over a grid of scales [1]_.

References
----------
.. [1] H. Rue, S. Martino and N. Chopin. Approximate Bayesian inference for latent Gaussian models
   by using integrated nested Laplace approximations. Journal of the Royal Statistical Society,
   Series B 71 (2009). https://doi.org/10.1111/j.1467-9868.2008.00700.x
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.battles import Battles
from bayesrank.connectivity import strongly_connected
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import Array, maximise
from bayesrank.inference.fits.pair_rows import PairRows, pair_rows
from bayesrank.inference.fits.pairs import PairLikelihood, displace, net
from bayesrank.inference.fits.vote_likelihoods import PairedResults, VoteModel, bind
from bayesrank.inference.fits.zero_sum import (
    BlockTree,
    NormalScores,
    StateTree,
    ZeroSumScores,
    diagonals,
    first_scores,
    fit_scores,
)
from bayesrank.priors import FLAT, NormalPrior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

# Log-odds that no finite estimate reaches on fewer than millions of comparisons; beyond them the
# curvature is checked.
_FAR = 15.0
# Scales of steps, in logits, between which one is sought: no more, and as far as logits go.
_SCALES = (1e-3, 10.0)
# Of the logarithm of a scale, by which the search ends.
_NEAR = 0.02
# Points of the grid of scales lie a standard deviation apart, until the density has fallen by this.
_FALL = 4.0
_MOST_POINTS = 6
_STEP = 0.1


@dataclass(frozen=True)
class PairCounts(ZeroSumScores):
    """The penalised log-likelihood of tables of results.

    Free coordinates: the scores, then the tie parameter where it is estimated. Without any ties, or
    with nothing else, the tie parameter is held at the end of its range. `won`, and `tied`, half
    the ties where they count, are of shape (resample, system, opponent).
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
            pull = self.tie_prior.precision * (point[:, size] - self.tie_prior.mean)
            gradient[:, size] -= np.where(likelihood.at_end(point[:, size]), 0.0, pull)
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
    opponent), where leading axes are resamples. Prior means of the zero-sum scores are of shape
    (system,).
    """
    won, tied = likelihood.sides(wins, ties)
    of_scores = NormalScores.of(prior, won.shape[-1])
    return PairCounts(of_scores, likelihood, won, tied, tie_prior)


def fit_pairs(
    likelihood: PairLikelihood, wins: ArrayLike, ties: ArrayLike = 0.0, **priors: Any
) -> Fit:
    """Fit a model of paired comparisons with the normal priors of :func:`pair_counts`.

    Free coordinates are the scores, which sum to zero, then the tie parameter where it is
    estimated; ``parameters["tie_strength"]`` is its exponential.
    """
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


def fit_pair_rows(
    likelihood: PairLikelihood | VoteModel, data: Comparisons, design: Design, **priors: Any
) -> Fit:
    """Fit a model of votes by Newton's method; without covariates equal votes are merged.

    Priors are those of :func:`~bayesrank.inference.fits.pair_rows.pair_rows`.
    """
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
            prior=NormalPrior(problem.prior.mean[:n], problem.prior.precision),
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
    grid, width = _over_scales(problem, start, step_sd, step_precision)
    best = max(grid, key=lambda each: each.density)
    scale = np.exp(best.log_scale)
    final = replace(problem, step_sd=scale)

    def unpack(free: Array) -> dict[str, Array]:
        named = problem.unpack(free)
        scores = named.pop("score").reshape(*free.shape[:-1], tree.n_states, problem.width)
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
