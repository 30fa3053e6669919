r"""The penalised log-likelihood of paired comparisons vote by vote, with covariates, and its fit.

A vote on i and j with covariates x has a likelihood
(:mod:`bayesrank.inference.fits.vote_likelihoods`) at

.. math:: d = \theta_i - \theta_j + x^\top \beta

and perhaps at the mean level :math:`m = (\theta_i + \theta_j) / 2`. One pass over the rows gives
its derivatives; sums over pairs give those of the scores.
"""

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import NoFiniteEstimate
from bayesrank.formula import Design
from bayesrank.inference.fits.exact_ties import merge_noise
from bayesrank.inference.fits.existence import REMEDY
from bayesrank.inference.fits.fit import Fit, anchored, constrained_steps
from bayesrank.inference.fits.newton import Optimum, maximise
from bayesrank.inference.fits.pair_counts import fit_pairs, name_parameters
from bayesrank.inference.fits.pairs import Array, PairLikelihood, displace
from bayesrank.inference.fits.penalty import checked_precision
from bayesrank.inference.fits.vote_likelihoods import (
    Rows,
    Terms,
    TwoSided,
    VoteLikelihood,
    VoteModel,
    bind,
)
from bayesrank.inference.fits.zero_sum import NormalScores, ZeroSumScores, first_scores
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows

# Rows whose derivatives are held at once, in a core's own cache.
_BLOCK = 1 << 15
# A step this short is Newton's own, without a look at what it gains.
_SHORT = 0.1
_MOST_HALVINGS = 40
# Shares of the mean curvature that are added, one after another, until all curvature is positive.
_DAMPING = (0.0, *(10.0**power for power in range(-8, 4)))


@dataclass(frozen=True)
class PairRows(ZeroSumScores):
    """The penalised log-likelihood of votes with covariates: one resample.

    Free coordinates: the scores, the coefficients of the covariates, then the parameters that all
    votes share.

    Attributes
    ----------
    likelihood : VoteLikelihood
        Of the votes.
    data : VoteRows
        The systems of each vote.
    design : Design
        Covariates.
    mean, precision : numpy.ndarray of shape (other,)
        Normal priors on the coordinates other than scores.
    """

    likelihood: VoteLikelihood
    data: VoteRows
    design: Design
    mean: Array
    precision: Array

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return max(len(self.data.first), 1)

    @property
    def blocks(self) -> list[slice]:
        """The blocks of votes."""
        n_votes = len(self.data.first)
        return [slice(start, start + _BLOCK) for start in range(0, n_votes, _BLOCK)]

    @property
    def n_shared(self) -> int:
        """Number of parameters that all votes share."""
        return len(self.likelihood.positive)

    @property
    def width(self) -> int:
        """How many scores may meet one score."""
        return self.size

    @cached_property
    def _largest_count(self) -> float:
        sides = np.concatenate([self.data.first, self.data.second])
        return float(np.bincount(sides, np.tile(self.data.weight, 2), self.size).max())

    def scale(self, point: Array) -> Array:
        """Return the largest number of votes on a system, plus the prior's precision."""
        return self._largest_count + self.prior.precision

    def split(self, point: Array) -> tuple[Array, Array, Array]:
        """Split a point of shape (p,) into scores, coefficients and shared parameters."""
        first = self.size + self.design.shape[1]
        return point[: self.size], point[self.size : first], point[first : first + self.n_shared]

    def predictors(self, point: Array, some: Rows) -> tuple[Array, Array, Array]:
        """Return d and m of a block of votes, and the shared parameters."""
        score, effects, shared = self.split(point)
        one, other = score[self.data.first[some]], score[self.data.second[some]]
        level = 0.5 * (one + other) if self.likelihood.has_level else np.zeros(1)
        return one - other + self.design[some] @ effects, level, shared

    def terms(self, point: Array, some: Rows) -> Terms:
        """Return the derivatives of a block of votes at a point of shape (p,)."""
        return self.likelihood.terms(some, *self.predictors(point, some))

    def slope(self, point: Array, some: Rows) -> Array:
        """Return the first derivatives of a block of votes, as in :class:`Terms`."""
        return self.likelihood.slope(some, *self.predictors(point, some))

    def slopes(self, point: Array, some: Rows) -> tuple[tuple[Array, Array], Array]:
        """Return derivatives of votes in the scores of both sides, and in the other coordinates."""
        slope = self.slope(point, some)
        n = len(slope) - self.n_shared
        half = 0.5 * slope[1:n].sum(axis=0)
        others = np.column_stack([slope[0][:, np.newaxis] * self.design[some], slope[n:].T])
        return (half + slope[0], half - slope[0]), others

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        at = point[0]
        each = (
            self.likelihood.value(some, *self.predictors(at, some)).sum() for some in self.blocks
        )
        return np.array([sum(each)])

    def value(self, point: Array) -> float:
        """Return the objective at one point, of shape (1, p)."""
        scores, (_, gaps) = self.split(point[0])[0], self._others(point[0])
        penalty = self.prior.precision[0] * ((scores - self.prior.mean[0]) ** 2).sum()
        return float(self.loglik(point)[0] - 0.5 * (penalty + (self.precision * gaps**2).sum()))

    def _others(self, point: Array) -> tuple[NDArray[np.bool_], Array]:
        """Return which other coordinates are held, and how far they are from their prior means."""
        _, effects, shared = self.split(point)
        held = np.append(np.zeros(len(effects), dtype=bool), self.likelihood.held(shared))
        return held, np.where(held, 0.0, np.append(effects, shared) - self.mean)

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        sums, size = self.sums(point[0]), self.size
        gradient = sums.gradient.copy()
        if self.likelihood.has_level:  # scores sum to zero, whatever the level would gain
            gradient[:size] -= gradient[:size].mean()
        gradient[:size] += self.prior.gradient(point[:, :size])[0]

        def information() -> Array:
            pairs = sums.pairs.reshape(size, size)
            scores = pairs + pairs.T + np.diag(sums.diagonal + self.prior.precision[0])
            return np.block([[scores, sums.cross], [sums.cross.T, sums.corner]])[np.newaxis]

        return gradient[np.newaxis], information

    def sums(self, point: Array) -> "Sums":
        """Add up what votes tell, and what the priors do on all but the scores."""
        told, (held, gaps) = self.told(point), self._others(point)
        gradient, corner = told.gradient.copy(), told.corner.copy()
        gradient[self.size :] -= self.precision * gaps
        np.einsum("ii->i", corner)[:] += np.where(held, 1.0, self.precision)
        return told._replace(gradient=gradient, corner=corner)

    def told(self, point: Array) -> "Sums":
        """Add up what votes tell."""
        # Gradient and information are asked for one after the other at the optimum.
        key = point.tobytes()
        if key not in self._last:
            size, k = self.size, len(self.mean)
            shapes = size + k, size, size * self.width, (size, k), (k, k)
            sums = Sums(*(np.zeros(shape) for shape in shapes))
            for some in self.blocks:
                self._add(self.terms(point, some), some, sums)
            self._last.clear()
            self._last[key] = sums
        return self._last[key]

    @cached_property
    def _last(self) -> dict[bytes, "Sums"]:
        """What votes told last, by the point."""
        return {}

    def _add(self, terms: Terms, some: Rows, sums: "Sums") -> None:
        """Add what a block of votes tells."""
        first, second = (side[some].astype(np.intp) for side in (self.data.first, self.data.second))
        (slope, bend), size, x = terms, self.size, self.design[some].T
        k, n = len(x), len(slope) - self.n_shared  # covariates; predictors: d, and perhaps m
        ahead, mixed = bend[0, 0], bend[:n, n:]
        weighted = ahead * x
        # Both systems move d one way and the other, and m by half each.
        for (one, other), own, through, beside in zip(
            ((1.0, -1.0), (0.5, 0.5)), slope[:n], bend[0], mixed, strict=False
        ):
            for place, values in enumerate((own, *(through * x), *beside), -1):
                found = one * np.bincount(first, values, size)
                found += other * np.bincount(second, values, size)
                into = sums.gradient[:size] if place < 0 else sums.cross[:, place]
                into += found
        level = 0.25 * bend[n - 1, n - 1] if n > 1 else 0.0
        twist = bend[0, n - 1] if n > 1 else 0.0
        sums.diagonal[:] += np.bincount(first, ahead + level + twist, size)
        sums.diagonal[:] += np.bincount(second, ahead + level - twist, size)
        np.add.at(sums.pairs, first * self.width + second % self.width, level - ahead)
        sums.gradient[size:] += np.append(x @ slope[0], slope[n:].sum(axis=1))
        sums.corner[:k, :k] += weighted @ x.T
        sums.corner[:k, k:] += x @ mixed[0].T
        sums.corner[k:, :k] += mixed[0] @ x.T
        sums.corner[k:, k:] += bend[n:, n:].sum(axis=2)

    def step_of_effects(self, point: Array) -> Array:
        """Return Newton's step of the coefficients by themselves, by a part of the votes, (p,).

        It is none where it is long.
        """
        n_votes, k = self.design.shape
        some = slice(None, None, max(1, n_votes // _BLOCK))
        slope, bend = self.terms(point, some)
        x, here = self.design[some], slice(self.size, self.size + k)
        information = x.T @ (bend[0, 0][:, np.newaxis] * x) + np.diag(self.precision[:k])
        step = np.zeros(len(point))
        with suppress(np.linalg.LinAlgError):
            step[here] = np.linalg.solve(information, x.T @ slope[0])
        return step if np.abs(step).max() < 1.0 else np.zeros(len(point))

    def newton(self, point: Array) -> Array:
        """Return the Newton step, halved until the objective rises, of shape (resample, p)."""
        gradient, information = self.expand(point)
        step = ascent_step(information()[0], self.held_rows(point)[0], gradient[0])[np.newaxis]
        return self.shortened(point, step)

    def shortened(self, point: Array, step: Array) -> Array:
        """Return a step, of shape (1, p), halved until the objective rises."""
        shared, change = self.split(point[0])[2], self.split(step[0])[2]
        falling = self.likelihood.positive & (change < 0.0)
        step = step * (0.5 * shared[falling] / -change[falling]).min(initial=1.0)
        if not np.abs(step).max() > _SHORT:
            return step
        now = self.value(point)
        for _ in range(_MOST_HALVINGS):
            if self.value(point + step) > now:  # false for NaN
                break
            step *= 0.5
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return nothing: steps are safe already."""
        return np.zeros(len(step))

    def extended[Kind: PairRows](self, kind: type[Kind], **others: Any) -> Kind:
        """Return a problem of another kind, which has further attributes."""
        given = {each.name: getattr(self, each.name) for each in fields(PairRows)}
        return kind(**(given | others))

    def without_priors(self) -> "PairRows":
        """Return the log-likelihood by itself."""
        flat = NormalScores(np.zeros_like(self.prior.mean), np.zeros(1))
        found = replace(self, prior=flat, precision=np.zeros_like(self.precision))
        vars(found)["_last"] = self._last  # of the same votes
        return found

    def fit_at(self, optimum: Optimum, kind: type[Fit] = Fit, **others: Any) -> Fit:
        """Describe an optimum, by a fit of some kind with other attributes as in :class:`Fit`.

        Scores that differ by the noise of the fit become equal, and zeros positive.
        """
        optimum.point[:, : self.size] = merge_noise(optimum.point[:, : self.size]) + 0.0
        given: dict[str, Any] = {
            "unpack": partial(
                name_parameters,
                size=self.size,
                n_effects=self.design.shape[1],
                names=self.likelihood.names,
            ),
            "displace": partial(displace, positive=self.likelihood.positive),
        }
        flat = "exists" not in others and not self.prior.precision.all()
        if flat and self.is_flat(optimum.point).any():
            raise no_estimate_of_votes()
        return kind.at(self, optimum, (), **(given | others))


def no_estimate_of_votes() -> NoFiniteEstimate:
    """Return the error of votes whose likelihood rises for ever."""
    return NoFiniteEstimate(
        "votes must bound scores and the coefficients of covariates for a finite "
        "maximum-likelihood estimate; got some that can grow for ever without lowering "
        f"the likelihood: {REMEDY}"
    )


class Sums(NamedTuple):
    """What votes add up to at a point: the gradient, and the information in its parts.

    `gradient` is of shape (p,). `diagonal`, (score,), is the information of each score; `pairs`,
    (score * width,), that across the scores of first and second systems, only in this order;
    `cross`, (score, other), that across scores and others, and `corner` that of the others.
    """

    gradient: Array
    diagonal: Array
    pairs: Array
    cross: Array
    corner: Array


def ascent_step(matrix: Array, held: Array, gradient: Array) -> Array:
    """Return Newton's step along what is not held, damped until it leads upwards.

    For a negative Hessian of shape (p, p), directions that are held, (p, constraint), and a
    gradient, (p,); 0 where nothing damps the matrix enough.
    """
    size = np.abs(np.diag(matrix)).mean()
    for damping in _DAMPING:
        damped = matrix + damping * size * np.eye(len(matrix)) if damping else matrix
        try:
            np.linalg.cholesky(anchored(damped, held))
            return constrained_steps(damped, held, gradient[np.newaxis])[0]
        except np.linalg.LinAlgError:
            continue
    return np.zeros(len(gradient))


def pair_rows(
    likelihood: PairLikelihood | VoteModel,
    data: Comparisons | VoteRows,
    design: Design,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: float = 0.0,
    effect_mean: float = 0.0,
    effect_precision: float = 0.0,
    shared_mean: ArrayLike = 0.0,
    shared_precision: ArrayLike = 0.0,
) -> PairRows:
    """Build the log-posterior of votes with covariates under normal priors.

    They are those on scores, on coefficients of covariates, of which there may be none, and on
    shared parameters, broadcastable to (shared,). A precision of 0 is flat, a ValueError says that
    one is negative.
    """
    checked_precision("effect_precision", effect_precision)
    checked_precision("shared_precision", shared_precision)
    votes = data if isinstance(data, VoteRows) else VoteRows.of(data)
    prior = NormalScores.of(prior_mean, prior_precision, (), len(votes.systems))
    bound = bind(likelihood, votes)
    sizes = design.shape[1], len(bound.positive)
    mean, precision = (
        np.concatenate([np.broadcast_to(each, n) for each, n in zip(both, sizes, strict=True)])
        for both in ((effect_mean, shared_mean), (effect_precision, shared_precision))
    )
    return PairRows(prior, bound, votes, design, mean, precision)


def fit_pair_rows(
    likelihood: PairLikelihood | VoteModel, data: Comparisons, design: Design, **priors: Any
) -> Fit:
    """Fit a model of votes with the priors of :func:`pair_rows`, by Newton's method.

    Without covariates equal votes are merged. Free coordinates are those of :class:`PairRows`;
    ``parameters["effect"]`` has the coefficients of the covariates, where there are some.

    Examples
    --------
    >>> from bayesrank import Battles
    >>> from bayesrank.inference.fits.pairs import bradley_terry
    >>> data = Battles(["a", "a", "b", "b"], ["b", "b", "a", "a"], [1, 1, 0, 1])
    >>> fit = fit_pair_rows(bradley_terry(), data, data.design("1"), effect_precision=1.0,
    ...     prior_precision=1.0)
    >>> bool(fit.parameters["effect"][0] > 0.0)
    True
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
    """Return where to begin: at the fit without covariates where the counts of pairs give it.

    Else by the points of systems and the shares of results.
    """
    likelihood, n_effects = problem.likelihood, problem.design.shape[1]
    if n_effects and isinstance(likelihood, TwoSided):
        ties = {
            "tie_mean": problem.mean[n_effects:],
            "tie_precision": problem.precision[n_effects:],
        }
        prior = {"prior_mean": problem.prior.mean[0], "prior_precision": problem.prior.precision[0]}
        each = {name: value[0] for name, value in ties.items() if len(value)}
        pooled = fit_pairs(likelihood.likelihood, data.wins, data.ties, **prior, **each)
        if pooled.converged:
            found = np.insert(pooled.free, problem.size, np.zeros(n_effects))
            return found + problem.step_of_effects(found)
    points, played = (data.wins + 0.5 * data.ties).sum(axis=1), data.totals.sum(axis=1)
    scores = first_scores(points[np.newaxis], played[np.newaxis])
    shared = likelihood.start(proper=bool(problem.precision[n_effects:].any()))
    return np.concatenate([scores[0], np.zeros(n_effects), shared])
