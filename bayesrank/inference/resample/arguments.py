"""The arrays that a NumPy ranker is called with, from the data as they are or as they might be.

What a row of the catalog calls its data decides the positional arguments of its function:

============== =================================================================================
data           positional arguments
============== =================================================================================
grades         mean worth per cell (system, question), NaN where unobserved
grouped grades the same, and the group of each question (question,) or None
binary         right answers and trials, both (system, question)
counts         trials per category (system, question, category) and the worth of each category
evidence       the same, and counts of earlier outcomes or None
pairs          wins and ties, both (system, opponent)
stream         outcomes in the order of play (trial, question, system)
log            battles in the order of play, a :class:`bayesrank.methods.battle_ratings.Log`
============== =================================================================================

Functions of grades, grouped grades, binary, counts and evidence also take weights (question,), how
often a question counts; functions of a stream take the order of its events, those of a log how
often each battle is played.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.counting import prior_counts
from bayesrank.errors import DataError
from bayesrank.inference.resample.battle_units import log_of
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

# Doubles per batch and array: 32 MB.
BATCH_SIZE = 2**22


def batches(size: int, doubles: int) -> Iterator[slice]:
    """Yield slices of `size` items, of which each takes so many doubles, of bounded memory."""
    step = max(1, BATCH_SIZE // max(doubles, 1))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def point_arguments(data: Responses | Comparisons | Ballots, kind: str) -> tuple[Any, ...]:
    """Return the positional arguments for the data as they are; DataError if they lack them."""
    if kind == "pairs" and not isinstance(data, Ballots):
        comparisons = data if isinstance(data, Comparisons) else data.comparisons
        return comparisons.wins, comparisons.ties
    if kind == "log" and isinstance(data, Battles):
        return (log_of(data),)
    if not isinstance(data, Responses):
        hint = ", which only methods on pairs can rank" if isinstance(data, Comparisons) else ""
        got = f"{type(data).__name__.lower()}{hint}"
        raise DataError(f"data must be responses for a method that reads {kind}; got {got}")
    if kind == "grades":
        return (data.grades,)
    if kind == "grouped grades":
        return data.grades, None if data.groups is None else np.array(data.groups)
    if kind == "binary":
        return data.binary_counts
    if kind == "counts":
        return data.counts, data.category_weights
    if kind == "evidence":
        return data.counts, data.category_weights, prior_counts(data)
    return (data.stream,)


def cell_arguments(data: Responses, kind: str, shares: NDArray[np.float64]) -> tuple[Any, ...]:
    """Return the positional arguments for other shares of the categories in the cells.

    The shares are of shape (resample, system, question, category), NaN where unobserved; the
    arguments have a leading axis of resamples. Not for pairs and streams.
    """
    if kind in ("grades", "grouped grades"):
        return shares @ data.category_weights, *point_arguments(data, kind)[1:]
    counts = np.nan_to_num(shares) * data.trials[..., np.newaxis]
    if kind == "binary":
        point_arguments(data, kind)  # raises unless outcomes are right or wrong
        return counts[..., 1], np.broadcast_to(data.trials, counts.shape[:-1])
    return counts, *point_arguments(data, kind)[1:]
