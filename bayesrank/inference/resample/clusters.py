"""Units of a sample: which questions vary together, and how units are weighted."""

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

# Next to no weight: without the only question that links two systems there is no score at all.
LEAST_WEIGHT = 1e-6

# Dirichlet weights of a smaller concentration would underflow to zero, all of them.
_LEAST_CONCENTRATION = 0.02


def concentration(n: NDArray[np.integer] | int, lost: int) -> Array:
    """Return the concentration of Dirichlet weights of n units (docs/uncertainty.md).

    For the unbiased variance 2 are lost, for that of Student's t as well 4.
    """
    return np.maximum((n - lost) / np.maximum(n, 1), _LEAST_CONCENTRATION)


def unit_weights(n_units: int, size: int, rng: np.random.Generator) -> Array:
    """Draw Dirichlet weights of units with mean 1, of shape (size, unit)."""
    gammas = rng.standard_gamma(concentration(n_units, 4), (size, n_units))
    return gammas / gammas.mean(axis=1, keepdims=True)


def clusters_of(data: Responses) -> NDArray[np.intp]:
    """Return the cluster of every question, numbered from 0: its group, if there are enough."""
    if data.groups is not None:
        _, clusters = np.unique(np.array(data.groups), return_inverse=True)
        if clusters.max() + 1 >= FEW_UNITS:
            return clusters.astype(np.intp)
    return np.arange(len(data.questions))


def warn_of_few_groups(data: Responses) -> None:
    """Warn where there are two groups or more, but too few to show how scores vary over them."""
    n_groups = 1 if data.groups is None else len(set(data.groups))
    if 1 < n_groups < FEW_UNITS:
        warnings.warn(
            f"{n_groups} groups of questions say little about how scores vary over groups: "
            "intervals for target='population' take the questions as independent, and may be too "
            "narrow for questions of other groups",
            CalibrationWarning,
            stacklevel=4,
        )


def asked_clusters(data: Responses) -> NDArray[np.intp]:
    """Return the cluster of every question that somebody was asked, numbered from 0, else -1.

    Clusters without such a question are no units of the sample.
    """
    asked = data.trials.any(axis=0)
    clusters = np.full(len(asked), -1)
    clusters[asked] = np.unique(clusters_of(data)[asked], return_inverse=True)[1]
    return clusters


def sums_over_clusters(by_question: Array, clusters: NDArray[np.intp]) -> Array:
    """Sum rows (question, ...) over the questions of each cluster, (cluster, ...), -1 for none."""
    sums = np.zeros((int(clusters.max()) + 1, *by_question.shape[1:]))
    np.add.at(sums, clusters[clusters >= 0], by_question[clusters >= 0])
    return sums
