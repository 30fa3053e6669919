"""Questions as voters: how often each system's grade beats each other system's.

Votes are counted exactly. Grades are compared after rounding to 12 decimals, so that equal averages
of categories are equal. Weights are rounded to multiples of a power of two, so that every sum
of weights is exact in double precision, in any order. Tied majorities are then tied
exactly, and labels of the systems do not matter.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.results.ranks import rank_range
from bayesrank.validation import check_choice

FloatArray = NDArray[np.float64]
TiePolicy = Literal["ignore", "half"]

_GRADE_DECIMALS = 12
# Weights keep 40 bits relative to their sum (1e-12); the other 12 bits of a double leave room for
# half votes and for sums over a thousand systems.
_WEIGHT_BITS = 40
# Comparisons held at once: 32 MB.
COMPARISONS_AT_ONCE = 2**25
# From this number of comparisons on, compiled code saves more time than its loading takes.
_MANY_COMPARISONS = 2**26
# float32 holds every whole number up to here.
_EXACT_IN_FLOAT32 = 2**24


def rounded_grades(grades: FloatArray) -> FloatArray:
    """Round grades so that equal averages of decimal category weights are equal floats."""
    return np.round(np.asarray(grades, dtype=np.float64), _GRADE_DECIMALS)


def exact_weights(weights: FloatArray | None, n_questions: int) -> FloatArray:
    """Round weights to multiples of a power of two, so that sums of them are exact.

    Parameters
    ----------
    weights : numpy.ndarray of shape (..., question) or None
        Non-negative weights; None means 1 each. Whole numbers come back unchanged.
    n_questions : int
        Number of questions.

    Returns
    -------
    numpy.ndarray of shape (..., question)

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or all weights of a resample are zero.

    Examples
    --------
    >>> w = exact_weights(np.array([0.1, 0.2, 0.3]), 3)
    >>> bool(w[0] + w[1] + w[2] == w[2] + w[1] + w[0])
    True
    """
    if weights is None:
        return np.ones(n_questions)
    values = np.asarray(weights, dtype=np.float64)
    total = values.sum(axis=-1, keepdims=True)
    if not (np.isfinite(total).all() and (values >= 0.0).all() and (total > 0.0).all()):
        raise ValueError(
            "weights must be finite and non-negative with a positive sum; "
            f"got a smallest weight of {values.min()} and a smallest sum of {total.min()}"
        )
    quantum = np.exp2(np.ceil(np.log2(total)) - _WEIGHT_BITS)
    return np.rint(values / quantum) * quantum


def preference_counts(grades: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Count the questions on which each system's grade is higher than each other system's.

    .. math:: C_{ij} = \sum_m w_m \, [g_{im} > g_{jm}]

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; NaN where a cell was not observed, which casts no vote.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.

    Returns
    -------
    numpy.ndarray of shape (..., system, opponent)
        Exact sums with a zero diagonal.

    Examples
    --------
    >>> preference_counts(np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.5]]))
    array([[0., 1.],
           [1., 0.]])
    """
    values = rounded_grades(grades)
    n_systems, n_questions = values.shape[-2:]
    w = exact_weights(weights, n_questions)
    if values.ndim == 2:
        # Sums of few whole weights are exact in float32 too, which is twice as fast. The order of
        # additions in a BLAS product does not matter: the sums are exact.
        few = (w == np.rint(w)).all() and w.sum(axis=-1).max() < _EXACT_IN_FLOAT32
        w = w.astype(np.float32 if few else np.float64)
        counts = np.empty((*w.shape[:-1], n_systems, n_systems))
        for some in batches(n_systems, n_systems * n_questions):
            above = values[some, np.newaxis] > values
            flat = above.reshape(-1, n_questions).astype(w.dtype)
            counts[..., some, :] = (w @ flat.T).reshape(*w.shape[:-1], -1, n_systems)
        return counts
    batch = np.broadcast_shapes(values.shape[:-2], w.shape[:-1])
    values = np.broadcast_to(values, (*batch, n_systems, n_questions))
    values = values.reshape(-1, n_systems, n_questions)
    # Weights that all resamples share have no leading axis; without weights votes are only counted.
    if w.ndim > 1:
        w = np.broadcast_to(w, (*batch, n_questions)).reshape(-1, n_questions)
    counts = np.zeros((values.shape[0], n_systems, n_systems))
    if weights is None and values.size * n_systems > _MANY_COMPARISONS:
        # Imported here, since Numba takes longer to load than most votes to count.
        from bayesrank.methods.preference_kernels import count_preferences

        count_preferences(np.ascontiguousarray(values), counts)
        return counts.reshape(*batch, n_systems, n_systems)
    for rows in batches(math.prod(batch), n_systems**2 * n_questions, COMPARISONS_AT_ONCE):
        counts[rows] = _count_block(
            values[rows], None if weights is None else w if w.ndim == 1 else w[rows]
        )
    return counts.reshape(*batch, n_systems, n_systems)


def won_and_lost(
    grades: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Sum the preferences of each system over its opponents, and theirs over it.

    Parameters
    ----------
    grades, weights
        As in :func:`preference_counts`.

    Returns
    -------
    won, lost : numpy.ndarray of shape (..., system)
        Exact sums of the rows and of the columns of the counts.

    Examples
    --------
    >>> won_and_lost(np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.5]]))
    (array([1., 1.]), array([1., 1.]))
    """
    values = rounded_grades(grades)
    if values.ndim > 2:
        counts = preference_counts(grades, weights)
        return counts.sum(axis=-1), counts.sum(axis=-2)
    # Grades that all resamples share have one order on each question, last where missing.
    missing = np.isnan(values)
    first, last = rank_range(np.where(missing, -np.inf, values).T, tol=0.0)
    below = (~missing).sum(axis=0)[:, np.newaxis] - last
    w = exact_weights(weights, values.shape[1])
    return w @ np.where(missing.T, 0, below), w @ np.where(missing.T, 0, first - 1)


def _count_block(grades: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Count the preferences of one block of resamples, in memory at once."""
    size, n_systems, n_questions = grades.shape
    # Eight comparisons, one byte each, form one word, whose set bits are counted in one step.
    words = -(-n_questions // 8)
    above = np.zeros((size, n_systems, n_systems, 8 * words), dtype=bool)
    np.greater(grades[:, :, None, :], grades[:, None, :, :], out=above[..., :n_questions])
    if weights is None:
        return np.bitwise_count(above.view(np.uint64)).sum(axis=-1, dtype=np.float64)
    above = above[..., :n_questions]
    # einsum converts the comparisons in pieces; a product would copy them at eight times the size.
    return np.einsum("bijq,q->bij" if weights.ndim == 1 else "bijq,bq->bij", above, weights)


def observed_together(grades: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Count the questions that both systems of a pair answered.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; NaN where a cell was not observed.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.

    Returns
    -------
    numpy.ndarray of shape (..., system, opponent)
        Exact sums; broadcast, and so read-only, where every cell is observed.

    Examples
    --------
    >>> observed_together(np.array([[1.0, 0.5], [np.nan, 0.5]]))
    array([[2., 1.],
           [1., 1.]])
    """
    observed = ~np.isnan(np.asarray(grades, dtype=np.float64))
    n_systems, n_questions = observed.shape[-2:]
    w = exact_weights(weights, n_questions)
    batch = np.broadcast_shapes(observed.shape[:-2], w.shape[:-1])
    if observed.all():
        return np.broadcast_to(w.sum(axis=-1)[..., None, None], (*batch, n_systems, n_systems))
    seen = observed.astype(np.float64)
    return np.matmul(seen * w[..., None, :], np.swapaxes(seen, -1, -2))


def pairwise_votes(
    grades: FloatArray, weights: FloatArray | None = None, *, tie_policy: TiePolicy = "half"
) -> FloatArray:
    r"""Count the votes for each system over each other one, with a rule for equal grades.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; NaN where a cell was not observed.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    tie_policy : {"half", "ignore"}, default "half"
        Whether equal grades give half a vote to either side or none.

    Returns
    -------
    numpy.ndarray of shape (..., system, opponent)
        Exact sums with a zero diagonal.

    Raises
    ------
    ValueError
        If `tie_policy` is unknown.

    Examples
    --------
    >>> pairwise_votes(np.array([[1.0, 0.5], [0.5, 0.5]]))
    array([[0. , 1.5],
           [0.5, 0. ]])
    """
    check_choice("tie_policy", tie_policy, TiePolicy)
    votes = preference_counts(grades, weights)
    if tie_policy == "half":
        # Half of the common questions, shifted towards the winner: (n + C_ij - C_ji) / 2.
        votes = (observed_together(grades, weights) + votes - np.swapaxes(votes, -1, -2)) / 2.0
        diagonal = np.arange(votes.shape[-1])
        votes[..., diagonal, diagonal] = 0.0
    return votes
