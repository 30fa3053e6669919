"""Majority judgment: compare systems by their median grades, then by grades around the median."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.methods.preferences import exact_weights, rounded_grades
from bayesrank.validation import checks_options

FloatArray = NDArray[np.float64]
TieBreak = Literal["majority_value", "majority_gauge"]

# Equal weights have equal shares, but their distances from one half have rounding errors.
_SHARE_DECIMALS = 12


@checks_options
def majority_judgment(
    grades: FloatArray,
    weights: FloatArray | None = None,
    *,
    tie_break: TieBreak = "majority_value",
) -> FloatArray:
    """Score systems by their lower median grade over questions, ties broken around the median.

    With "majority_value" ties of medians are broken by removing one median grade of each system and
    comparing the next medians, until they differ. This goes through the grades of a system from the
    middle outwards, the lower of two at the same distance first. Systems with different numbers of
    questions are compared at equal shares of their grades. With "majority_gauge"
    a system has more grades above its median than below it (a plus) or not (a minus): plus beats
    minus, a larger share above beats a smaller among pluses, and a smaller share below beats a
    larger among minuses.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; NaN where a cell was not observed, which is left out.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    tie_break : {"majority_value", "majority_gauge"}, default "majority_value"
        How equal medians are compared.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        L for the best group of equal systems, then L - 1, and so on; higher is better. A system
        without an observed question of positive weight comes last.

    Raises
    ------
    ValueError
        If `tie_break` is unknown.

    References
    ----------
    .. [1] M. Balinski and R. Laraki. A theory of measuring, electing, and ranking. Proceedings of
       the National Academy of Sciences 104 (2007). https://doi.org/10.1073/pnas.0702634104

    Examples
    --------
    >>> majority_judgment(np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0]]))
    array([2., 3., 1.])
    """
    values = rounded_grades(grades)
    n_systems, n_questions = values.shape[-2:]
    w = exact_weights(weights, n_questions)
    batch = np.broadcast_shapes(values.shape[:-2], w.shape[:-1])
    w = np.broadcast_to(w, (*batch, n_questions)).reshape(-1, n_questions)
    shared = values.ndim == 2  # by all resamples
    if not shared:
        values = np.broadcast_to(values, (*batch, n_systems, n_questions))
        values = values.reshape(-1, n_systems, n_questions)
    levels = np.unique(values[~np.isnan(values)])
    compare = _by_majority_value if tie_break == "majority_value" else _by_majority_gauge
    group = np.empty((len(w), n_systems))
    for part in batches(len(w), n_systems * min(n_questions, max(levels.size, 1))):
        ascending, share = _distribution(values if shared else values[part], w[part], levels)
        judged = share[..., -1:] > 0.0
        ascending = np.where(judged, ascending, -np.inf)
        share /= np.where(judged, share[..., -1:], 1.0)
        group[part] = compare(ascending, share)
    return (n_systems - group).reshape(*batch, n_systems)


def _distribution(
    values: FloatArray, weights: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return each system's grades from the lowest on, and the weight up to each of them.

    Values have the shape (system, question) or (batch, system, question), weights (batch,
    question). If there are fewer different grades, `levels`, than questions, they replace the
    questions.
    """
    if 0 < levels.size < values.shape[-1]:
        up_to = np.stack([_weight_up_to(one, values, weights) for one in levels], axis=-1)
        return np.broadcast_to(levels, up_to.shape), up_to
    order = np.argsort(values, axis=-1)  # NaN goes last
    ascending = np.take_along_axis(values, order, axis=-1)
    own = np.where(np.isnan(values), 0.0, weights[:, np.newaxis])
    up_to = np.cumsum(np.take_along_axis(own, np.broadcast_to(order, own.shape), axis=-1), axis=-1)
    ascending = np.where(np.isnan(ascending), -np.inf, ascending)
    return np.broadcast_to(ascending, up_to.shape), up_to


def _weight_up_to(grade: float, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weight of the questions with at most this grade, (batch, system)."""
    up_to = (values <= grade).astype(np.float64)  # not NaN
    if values.ndim == 2:
        return weights @ up_to.T
    return np.matmul(up_to, weights[..., np.newaxis])[..., 0]


def _regroup(group: NDArray[np.int64], *keys: FloatArray) -> NDArray[np.int64]:
    """Split groups, 0 for the best, by keys (higher is better), the first key first."""
    order = np.lexsort([-key for key in reversed(keys)] + [group], axis=-1)
    new = np.zeros(group.shape, dtype=bool)
    for key in (group, *keys):
        ordered = np.take_along_axis(key, order, axis=-1)
        new[..., 1:] |= ordered[..., 1:] != ordered[..., :-1]
    split = np.empty_like(group)
    np.put_along_axis(split, order, np.cumsum(new, axis=-1), axis=-1)
    return split


def _grade_at(ascending: FloatArray, n_below: NDArray[np.int64]) -> FloatArray:
    """Return the grade that follows the given number of lower ones."""
    last = ascending.shape[-1] - 1
    place = np.minimum(n_below, last)[..., None]
    return np.take_along_axis(ascending, place, axis=-1)[..., 0]


def _by_majority_value(ascending: FloatArray, share: FloatArray) -> NDArray[np.int64]:
    """Compare grades at growing distance from the middle, first below it and then above."""
    group = np.zeros(share.shape[:-1], dtype=np.int64)
    n_systems = group.shape[-1]
    # Distances from one half at which the grade of some system changes.
    steps = np.round(np.abs(share[..., :-1] - 0.5), _SHARE_DECIMALS)
    steps = np.where(ascending[..., 1:] != ascending[..., :-1], steps, 0.5).reshape(len(share), -1)
    distance = np.zeros((len(share), 1))
    open_rows = np.arange(len(share))
    while open_rows.size:
        a, c, d = ascending[open_rows], share[open_rows], distance[open_rows]
        step = steps[open_rows]
        after = step.min(axis=1, keepdims=True, initial=0.5, where=step > d)
        middle = ((d + after) / 2.0)[:, :, None]
        lower = _grade_at(a, (c < 0.5 - middle).sum(axis=-1))
        upper = _grade_at(a, (c < 0.5 + middle).sum(axis=-1))
        group[open_rows] = _regroup(group[open_rows], lower, upper)
        distance[open_rows] = after
        undecided = group[open_rows].max(axis=1) < n_systems - 1
        open_rows = open_rows[undecided & (after[:, 0] < 0.5)]
    return group


def _by_majority_gauge(ascending: FloatArray, share: FloatArray) -> NDArray[np.int64]:
    """Compare medians, then the shares of grades above and below them."""
    shares = np.round(share, _SHARE_DECIMALS)
    median = _grade_at(ascending, (shares < 0.5).sum(axis=-1))
    weight = np.diff(share, axis=-1, prepend=0.0)
    above = np.where(ascending > median[..., None], weight, 0.0).sum(axis=-1)
    below = np.where(ascending < median[..., None], weight, 0.0).sum(axis=-1)
    above, below = np.round(above, _SHARE_DECIMALS), np.round(below, _SHARE_DECIMALS)
    plus = above > below
    gauge = np.where(plus, above, -below)
    group = np.zeros(median.shape, dtype=np.int64)
    return _regroup(group, median, plus.astype(np.float64), gauge)
