"""Systems that the data do not tell apart, which no posterior tells apart either."""

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.run import Data
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]


def tie_exchangeable(score: Array, data: Data) -> Array:
    """Give exchangeable systems the mean of their scores.

    For estimates by simulation, whose expectations are equal. Two systems are exchangeable if the
    data stay the same when they trade names: the same answers, or the same results against all
    others and each other.

    Parameters
    ----------
    score : numpy.ndarray of shape (system,)
        Estimates that are off their expectations by the noise of the simulation.
    data : Responses, Comparisons or Ballots
        What they are estimated from.

    Returns
    -------
    numpy.ndarray of shape (system,)

    Examples
    --------
    >>> tie_exchangeable(np.array([0.1, 0.2, 0.4]), Comparisons([[0, 2, 1], [2, 0, 1], [3, 3, 0]]))
    array([0.15, 0.15, 0.4 ])
    """
    groups = _groups(data)
    return (np.bincount(groups, score) / np.bincount(groups))[groups]


def _groups(data: Data) -> NDArray[np.intp]:
    """Return the number of the group of each system."""
    if not isinstance(data, Comparisons):
        rows = data.values if isinstance(data, Responses) else data.grades
        filled = np.nan_to_num(rows.reshape(len(rows), -1).astype(float), nan=np.inf)
        return np.unique(filled, axis=0, return_inverse=True)[1].ravel()
    groups = np.arange(len(data.systems))
    for system in groups:
        for other in np.flatnonzero(groups[:system] == np.arange(system)):
            traded = np.arange(len(groups))
            traded[[system, other]] = other, system
            if all(
                np.array_equal(table[np.ix_(traded, traded)], table)
                for table in (data.wins, data.ties)
            ):
                groups[system] = other
                break
    return np.unique(groups, return_inverse=True)[1]
