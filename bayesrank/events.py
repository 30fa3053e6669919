"""Who answered right and who wrong, together: the events that choice models are fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.validation import frozen


@dataclass(frozen=True, eq=False)
class Events:
    """Distinct sets of right and wrong systems, each with how often it occurred.

    Parameters
    ----------
    right, wrong : numpy.ndarray of bool and shape (event, system)
        Who answered right and who answered wrong; a system in neither was not observed. Events in
        which nobody was right or nobody was wrong carry no information and are left out.
    multiplicity : numpy.ndarray of int and shape (event,)
        Number of (question, trial) pairs with these sets.
    systems : tuple of str
        Labels.
    """

    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    multiplicity: NDArray[np.int64]
    systems: tuple[str, ...]


def deduplicate_events(outcomes: NDArray[np.int8], systems: tuple[str, ...]) -> Events:
    """Collect the distinct (right, wrong) sets over questions and trials.

    Parameters
    ----------
    outcomes : numpy.ndarray of int8 and shape (system, question, trial)
        0, 1, or -1 for missing.
    systems : tuple of str
        Labels.

    Returns
    -------
    Events
    """
    columns = outcomes.reshape(len(outcomes), -1)
    right, wrong = columns == 1, columns == 0
    informative = right.any(axis=0) & wrong.any(axis=0)
    right, wrong = right[:, informative], wrong[:, informative]
    # Without missing trials, who was right says who was wrong.
    keys = right if columns.min() >= 0 else np.concatenate([right, wrong])
    index, multiplicity = _distinct_columns(keys)
    return Events(frozen(right.T[index]), frozen(wrong.T[index]), frozen(multiplicity), systems)


def _distinct_columns(flags: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return where each distinct column first occurs, in ascending order, and how often it does.

    Sorting words of 64 flags is much faster than ``numpy.unique`` with an axis.
    """
    packed = np.packbits(flags, axis=0)
    words = np.zeros((flags.shape[1], -(-len(packed) // 8) * 8), dtype=np.uint8)
    words[:, : len(packed)] = packed.T
    keys = words.view(">u8").astype(np.uint64)  # words sort as their flags do, the first leading
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    return order[starts], np.diff(starts, append=len(order))
