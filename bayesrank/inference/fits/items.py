"""Counts of right answers, as the item response models take them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.penalty import Array


@dataclass(frozen=True)
class ItemCounts:
    """Counts per system and question, flattened over resamples.

    Attributes
    ----------
    right, trials : numpy.ndarray of shape (resample, system, question)
        Number right and number of trials; 0 in questions that are left out.
    by_question, asked : numpy.ndarray of shape (resample, question)
        Number right and number of trials over systems.
    left_out : numpy.ndarray of bool and shape (resample, question)
        Questions that carry no information.
    limit : numpy.ndarray of shape (..., question), or None
        Difficulty of a question that is left out: minus infinity if everybody was right, infinity
        if everybody was wrong, NaN if nobody was asked; 0 elsewhere. None where all are kept.
    lead : tuple of int
        Shape of the resample axes.
    """

    right: Array
    trials: Array
    by_question: Array
    asked: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    @property
    def by_system(self) -> Array:
        """Number right over questions, of shape (resample, system)."""
        return self.right.sum(axis=-1)

    @property
    def played(self) -> Array:
        """Number of trials over questions, of shape (resample, system)."""
        return self.trials.sum(axis=-1)


def item_counts(correct: ArrayLike, trials: ArrayLike, *, drop: bool) -> ItemCounts:
    """Flatten the resamples and leave out questions without information.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials.
    drop : bool
        Whether questions that every system answers alike are left out.

    Returns
    -------
    ItemCounts
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
    """Return difficulties with those of questions that were left out at their limits.

    Parameters
    ----------
    difficulty : numpy.ndarray of shape (..., question)
        Difficulties of the questions that were kept.
    limit : numpy.ndarray of shape (..., question), or None
        Limits, 0 for the questions that were kept; None when all were.

    Returns
    -------
    numpy.ndarray of shape (..., question)
    """
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out.

    Parameters
    ----------
    values : numpy.ndarray of shape (..., question)
        Parameters of the questions that were kept.
    limit : numpy.ndarray of shape (..., question), or None
        Limits as in :func:`limited`.

    Returns
    -------
    numpy.ndarray of shape (..., question)
    """
    return values if limit is None else np.where(limit == 0.0, values, np.nan)
