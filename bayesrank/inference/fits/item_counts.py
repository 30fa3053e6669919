"""Counts of right answers: starting points, and merging of questions with equal answers."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.counting import distinct_columns
from bayesrank.inference.fits.bordered import joined
from bayesrank.inference.fits.item_likelihoods import Rasch
from bayesrank.inference.fits.newton import CACHE_CELLS, Array, Optimum
from bayesrank.inference.fits.symmetry import is_higher, maximise_past_saddles, strongest_axes
from bayesrank.inference.fits.two_sided import TwoSided
from bayesrank.log_odds import smoothed_log_odds
from bayesrank.priors import POOLED_DF

# Abilities are clear if they explain this multiple of the variance of the strongest other
# dimension.
_CLEAR = 4.0
# Number of the strongest other dimensions that are starting points.
_DIMENSIONS = 3


@dataclass(frozen=True)
class ItemCounts:
    """Counts per system and question, flattened over resamples.

    `right` and `trials` are of shape (resample, system, question), 0 in questions that are left
    out; `by_question` and `asked`, (resample, question), are their sums. `left_out`, of that shape,
    are questions that carry no information, and `limit`, (..., question), is their difficulty:
    minus infinity if everybody was right, infinity if everybody was wrong, NaN if nobody was asked;
    0 for the others, and None where all are kept. `lead` is the shape of the resample axes.
    """

    right: Array
    trials: Array
    by_question: Array
    asked: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    @cached_property
    def by_system(self) -> Array:
        """Number right over questions, of shape (resample, system)."""
        return self.right.sum(axis=-1)

    @cached_property
    def played(self) -> Array:
        """Number of trials over questions, of shape (resample, system)."""
        return self.trials.sum(axis=-1)


def item_counts(correct: ArrayLike, trials: ArrayLike, *, drop: bool) -> ItemCounts:
    """Flatten counts of shape (..., system, question), and leave out questions without information.

    With `drop`, those are all that every system answers alike, else those that nobody was asked.
    """
    right, total = np.asarray(correct, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    shape = right.shape
    if total.shape != shape:
        shape = np.broadcast_shapes(shape, total.shape)
        right, total = np.broadcast_to(right, shape), np.broadcast_to(total, shape)
    lead = shape[:-2]
    right, total = right.reshape(-1, *shape[-2:]), total.reshape(-1, *shape[-2:])
    by_question, asked = right.sum(axis=-2), total.sum(axis=-2)
    none_wrong, none_right = (total - right).sum(axis=-2) <= 0.0, by_question <= 0.0
    left_out = none_wrong | none_right if drop else none_wrong & none_right
    limit = None
    if left_out.any():
        limit = np.where(none_right, np.inf, -np.inf)
        limit[none_wrong & none_right] = np.nan
        limit[~left_out] = 0.0
        limit = limit.reshape(*lead, -1)
        keep = ~left_out
        right, total = right * keep[:, None, :], total * keep[:, None, :]
        by_question, asked = by_question * keep, asked * keep
    return ItemCounts(right, total, by_question, asked, left_out, limit, lead)


def counted(data: ItemCounts) -> Rasch:
    """Return the Rasch likelihood of counts over trials."""
    return Rasch(data.by_system[..., np.newaxis], data.by_question, data.trials[:, :, np.newaxis])


def limited(difficulty: Array, limit: Array | None) -> Array:
    """Return difficulties, those of questions that were left out at their limits."""
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out."""
    return values if limit is None else np.where(limit == 0.0, values, np.nan)


def shrunk_log_odds(successes: Array, trials: Array) -> Array:
    """Return smoothed log-odds of counts, (resample, n), shrunk as the hierarchical prior would.

    Its variance is what is left of their spread beyond that of their errors.
    """
    log_odds, n = smoothed_log_odds(successes, trials), successes.shape[-1]
    mean = log_odds.sum(axis=-1, keepdims=True) / n
    deviation, chance = log_odds - mean, (successes + 0.5) / (trials + 1.0)
    # The variance of log-odds is 1 / (n p q).
    noise = 1.0 / (chance * (1.0 - chance) * np.maximum(trials, 1.0))
    beyond = np.maximum((deviation * deviation - noise).sum(axis=-1, keepdims=True), 0.0)
    variance = (POOLED_DF + beyond) / (POOLED_DF + n - 1.0)
    return mean + deviation * (variance / (variance + noise))


def stretched(ability: Array, difficulty: Array, weights: Array) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Both are stretched by how much the other side spreads: log-odds of systems, and minus those of
    questions, which are centred here with `weights`, (resample, question).

    References
    ----------
    .. [1] L. Cohen. Approximate expressions for parameter estimates in the Rasch model. British
       Journal of Mathematical and Statistical Psychology 32 (1979).
       https://doi.org/10.1111/j.2044-8317.1979.tb00756.x
    """
    centre = (difficulty * weights).sum(axis=-1) / weights.sum(axis=-1)
    difficulty = difficulty - centre[:, None]
    spread, other = _variance(ability), _variance(difficulty)
    both = np.concatenate([other, spread], axis=-1)
    factors = np.sqrt((1.0 + both / 2.89) / np.maximum(1.0 - spread * other / 8.35, 0.25))
    return ability * factors[:, :1], difficulty * factors[:, 1:]


def _variance(values: Array) -> Array:
    return np.vecdot(values, values)[:, np.newaxis] / values.shape[-1]


@dataclass(frozen=True)
class Merged[Problem: TwoSided[Any]]:
    """A problem and the same with its like questions merged; `place` is where each question is."""

    whole: Problem
    reduced: Problem
    place: NDArray[np.intp]

    def point(self, point: Array) -> Array:
        """Return points of the merged questions."""
        u, v = self.whole.split(point)
        merged = np.empty((len(u), *self.reduced.likelihood.shape[2:]))
        merged[:, self.place] = v
        return joined(u, merged)

    def spread(self, optimum: Optimum) -> Optimum:
        """Return an optimum of merged questions as one of the questions one by one."""
        u, v = self.reduced.split(optimum.point)
        return optimum.at(joined(u, v[:, self.place]))

    def maximise(self, start: Array) -> Optimum:
        """Maximise from a point of the questions one by one."""
        if self.reduced is self.whole:
            return self.whole.maximise(start)
        return self.spread(self.reduced.maximise(self.point(start)))


def merged_questions[Problem: TwoSided[Any]](problem: Problem) -> Merged[Problem]:
    """Merge the questions of one table that are answered alike, if that saves time.

    Where merged ones may have other maxima, see :func:`told_apart`, only if that leaves a half.
    A small table with one maximum or several constraints is fitted as it is, and there must be as
    many questions left as constraints.
    """
    likelihood, n_held = problem.likelihood, len(problem.hold_v[0])
    # Several tables are fitted at a time, see `newton`.
    large = 2 * problem.cells > CACHE_CELLS or (n_held <= 1 and not likelihood.concave)
    if problem.size == 1 and large and likelihood.answers is not None:
        first, place = distinct_columns(likelihood.answers)
        if n_held <= len(first) <= len(place) * (1.0 if likelihood.concave else 0.5):
            return merged_kinds(problem, place)
    return Merged(problem, problem, np.arange(likelihood.shape[2]))


def merged_kinds[Problem: TwoSided[Any]](
    problem: Problem, place: NDArray[np.intp]
) -> Merged[Problem]:
    """Merge questions of the same kind, of one table where these are answered alike."""
    _, first, sizes = np.unique(place, return_index=True, return_counts=True)
    counts, mean = sizes.astype(np.float64), np.asarray(problem.questions.mean)
    rows = np.moveaxis(problem.hold_v[0], 1, 0)
    held = np.zeros((len(counts), *rows.shape[1:]))
    np.add.at(held, place, rows)
    hold_v = np.moveaxis(held, 0, 1)
    if len(hold_v) > 1:  # orthogonal again
        hold_v = np.linalg.qr(hold_v.reshape(len(hold_v), -1).T)[0].T.reshape(hold_v.shape)
    reduced = replace(
        problem,
        likelihood=problem.likelihood.merged(first, counts),
        questions=replace(
            problem.questions, mean=mean[first] if mean.ndim > 1 else mean, counts=counts
        ),
        pooled=problem.pooled and replace(problem.pooled, counts=counts),
        hold_v=hold_v[np.newaxis],
    )
    return Merged(problem, reduced, place)


def told_apart[Problem: TwoSided[Any]](
    merged: Merged[Problem], optimum: Optimum, max_iterations: int
) -> Optimum:
    """Maximise further if separate like questions fit better: one of each such kind at a time.

    An optimum of merged questions may be a saddle point of the questions one by one. Returns where
    it ended, of the questions one by one.
    """
    place = merged.place
    while np.bincount(place).max() > 1 and optimum.converged[0]:
        point = merged.spread(optimum).point
        if merged.whole.definite(point)[0]:
            break
        lowest = np.linalg.eigvalsh(merged.reduced.blocks(optimum.point).vv[0])[:, 0]
        kind = int(np.where(np.bincount(place) > 1, lowest, np.inf).argmin())
        place = place.copy()
        place[np.flatnonzero(place == kind)[:1]] = len(lowest)
        some = merged_kinds(merged.whole, place)
        start = some.point(point)
        found = maximise_past_saddles(some.reduced, start, max_iterations=max_iterations)
        levels = some.reduced.value(found.point), merged.reduced.value(optimum.point)
        if not is_higher(*(float(level[0]) for level in levels)):
            break
        merged, optimum = some, found
    return merged.spread(optimum)


def other_abilities(data: ItemCounts, size: int) -> dict[int, Array]:
    """Return changes of points of that size, (start, size), for resamples that need more starts.

    Their abilities in the Rasch model say less of the answers than a second dimension does: other
    maxima are above either end of such dimensions.
    """
    rates = smoothed_log_odds(data.right, data.trials) * (data.trials > 0.0)
    rest = rates - rates.mean(axis=-1, keepdims=True)
    rest -= rest.mean(axis=-2, keepdims=True)
    rest *= ~data.left_out[:, np.newaxis]
    shares, directions = np.linalg.eigh(rest @ rest.swapaxes(1, 2))
    # Not along the abilities, whose scale is that of their prior.
    spread = smoothed_log_odds(data.by_system, data.played)
    n_systems = spread.shape[-1]
    signal = spread.var(axis=-1) * n_systems * (~data.left_out).sum(axis=-1)
    others = {}
    for row in np.flatnonzero(signal < _CLEAR * shares[:, -1]):
        strong = strongest_axes(shares[row, ::-1], directions[row, :, ::-1], _DIMENSIONS)
        # Along and against the strongest dimensions, and between any two.
        first, second = np.triu_indices(len(strong), 1)
        if len(strong) > _DIMENSIONS:
            first = second = first[:0]
        pairs = [strong[first] + sign * strong[second] for sign in (1.0, -1.0)]
        ways = np.concatenate([strong, *pairs])
        ways = np.concatenate([ways, -ways])
        ways *= np.sqrt(n_systems / (ways**2).sum(axis=-1, keepdims=True))
        others[int(row)] = np.pad(ways, ((0, 0), (0, size - n_systems)))
    return others
