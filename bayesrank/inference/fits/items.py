"""Counts of right answers, as the item response models take them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.log_odds import smoothed_log_odds
from bayesrank.inference.fits.penalty import Array
from bayesrank.priors import POOLED_DF

_TINY = 1e-300


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


def limited(difficulty: Array, limit: Array | None) -> Array:
    """Return difficulties, those of questions that were left out at their limits."""
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out."""
    return values if limit is None else np.where(limit == 0.0, values, np.nan)


def shrunk_log_odds(successes: Array, trials: Array) -> Array:
    """Return smoothed log-odds of counts, (resample, n), shrunk as the hierarchical prior would.

    Its variance is what is left of their spread beyond that of their errors.

    Examples
    --------
    >>> shrunk_log_odds(np.array([[1.0, 9.0]]), np.full((1, 2), 10.0)).round(2)
    array([[-1.36,  1.36]])
    """
    log_odds = smoothed_log_odds(successes, trials)
    n = log_odds.shape[-1]
    mean = log_odds.sum(axis=-1, keepdims=True) / n
    deviation = log_odds - mean
    # The variance of log-odds is 1 / (n p q).
    noise = (trials + 1.0) ** 2 / ((successes + 0.5) * (trials - successes + 0.5))
    noise /= np.maximum(trials, 1.0)
    beyond = np.maximum((deviation * deviation - noise).sum(axis=-1, keepdims=True), 0.0)
    variance = (POOLED_DF + beyond) / (POOLED_DF + n - 1.0)
    return mean + deviation * (variance / (variance + noise))


def stretched(ability: Array, difficulty: Array, weights: Array | None) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Both are stretched by how much the other side spreads: log-odds of systems, (resample, system),
    and minus those of questions, (resample, question), centred here with `weights` of that shape.

    References
    ----------
    .. [1] L. Cohen. Approximate expressions for parameter estimates in the Rasch model. British
       Journal of Mathematical and Statistical Psychology 32 (1979).
       https://doi.org/10.1111/j.2044-8317.1979.tb00756.x
    """
    if weights is None:
        centre = difficulty.sum(axis=-1) / difficulty.shape[-1]
    else:
        total = np.maximum(weights.sum(axis=-1), _TINY)
        centre = (difficulty * weights).sum(axis=-1) / total
    difficulty = difficulty - centre[:, None]
    spread, other = _variance(ability), _variance(difficulty)
    both = np.concatenate([other, spread], axis=-1)
    factors = np.sqrt((1.0 + both / 2.89) / np.maximum(1.0 - spread * other / 8.35, 0.25))
    return ability * factors[:, :1], difficulty * factors[:, 1:]


def _variance(values: Array) -> Array:
    return np.einsum("bi,bi->b", values, values)[:, np.newaxis] / values.shape[-1]
