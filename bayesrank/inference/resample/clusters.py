"""Which questions vary together: the units of the population target."""

import warnings

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import CalibrationWarning
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# With fewer units their spread is hardly known, and no small-sample correction can help.
FEW_UNITS = 5

# Below this many units the spread over them is rough.
SOME_UNITS = 10

# Weights of a smaller concentration would underflow to zero, all of them.
LEAST_CONCENTRATION = 0.02


def concentration_of_few(n: NDArray[np.integer]) -> Array:
    """Return the concentration of Dirichlet weights of n units, with Student's t for few."""
    return np.maximum((n - 4) / np.maximum(n, 1), LEAST_CONCENTRATION)


def clusters_of(data: Responses) -> NDArray[np.intp]:
    """Return the cluster of every question.

    The groups of the data are the clusters, for questions of a benchmark, topic or document are
    alike. Fewer than five groups say nothing about how groups vary; then, as without groups, every
    question is a cluster of its own.

    Parameters
    ----------
    data : Responses
        The data.

    Returns
    -------
    numpy.ndarray of int and shape (question,)
        Clusters are numbered from 0.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> outcomes = np.zeros((2, 6, 1), dtype=int)
    >>> clusters_of(Responses(outcomes, groups=list("aabcde"))).tolist()
    [0, 0, 1, 2, 3, 4]
    >>> clusters_of(Responses(outcomes)).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    if data.groups is not None:
        _, clusters = np.unique(np.array(data.groups), return_inverse=True)
        if clusters.max() + 1 >= FEW_UNITS:
            return clusters.astype(np.intp)
    return np.arange(len(data.questions))


def warn_of_few_groups(data: Responses) -> None:
    """Warn where the groups are too few to show how scores vary over groups.

    Parameters
    ----------
    data : Responses
        The data.

    Warns
    -----
    CalibrationWarning
        If there are two, three or four groups.
    """
    n_groups = 1 if data.groups is None else len(set(data.groups))
    if 1 < n_groups < FEW_UNITS:
        warnings.warn(
            f"{n_groups} groups of questions say little about how scores vary over groups: "
            "intervals for target='population' take the questions as independent, and may be too "
            "narrow for questions of other groups",
            CalibrationWarning,
            stacklevel=4,
        )


def sums_over_clusters(by_question: Array, data: Responses) -> Array:
    """Sum rows over the questions of each cluster.

    Parameters
    ----------
    by_question : numpy.ndarray of shape (question, ...)
        One row for each question.
    data : Responses
        The data.

    Returns
    -------
    numpy.ndarray of shape (cluster, ...)
        Of clusters with a question that somebody was asked: others are no units of the sample.
    """
    asked = data.trials.any(axis=0)
    clusters = np.unique(clusters_of(data)[asked], return_inverse=True)[1]
    sums = np.zeros((int(clusters.max()) + 1, *by_question.shape[1:]))
    np.add.at(sums, clusters, by_question[asked])
    return sums
