"""Who answered right and who wrong, together: the events that choice models are fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import distinct_columns
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
    first, kinds = distinct_columns(keys)
    multiplicity = np.bincount(kinds, minlength=len(first))
    return Events(frozen(right.T[first]), frozen(wrong.T[first]), frozen(multiplicity), systems)
