"""The covariance of scores over questions from estimates that leave some out."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.clusters import clusters_of
from bayesrank.inference.estimate import Run
from bayesrank.inference.influence import spread_of_sums
from bayesrank.method import load_function
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# More clusters are joined at random into so many: each part costs a fit.
_MOST_PARTS = 50


def jackknife_covariance(run: Run) -> Array:
    """Return the covariance of a kernel's scores by the delete-a-group jackknife.

    Parameters
    ----------
    run : Run
        With responses and a method that has a kernel without a prior.

    Returns
    -------
    numpy.ndarray of shape (system, system)
        With the widening of Student's t for few clusters.

    References
    ----------
    .. [1] P. S. Kott. The delete-a-group jackknife. Journal of Official Statistics 17 (2001).
    """
    data = cast("Responses", run.data)  # likelihoods of responses alone come here
    fit = load_function(run.method.kernel or "")
    parts = _parts(data)
    scores = [
        fit(_without(data, parts == part), **run.options).score for part in range(parts.max() + 1)
    ]
    n = len(scores)
    # Leaving out one of n parts moves a mean by 1 / (n - 1) of what the part differs from it.
    return spread_of_sums((n - 1) / n * np.stack(scores))


def _parts(data: Responses) -> NDArray[np.intp]:
    """Return the part of every question, -1 for those that nobody was asked."""
    asked = data.trials.any(axis=0)
    parts = np.full(len(asked), -1)
    parts[asked] = np.unique(clusters_of(data)[asked], return_inverse=True)[1]
    n_parts = int(parts.max()) + 1
    if n_parts > _MOST_PARTS:
        joined = np.random.default_rng(0).permutation(n_parts) % _MOST_PARTS
        parts[asked] = joined[parts[asked]]
    return parts


def _without(data: Responses, left_out: NDArray[np.bool_]) -> Responses:
    names = [name for name, gone in zip(data.questions, left_out, strict=True) if not gone]
    return Responses(data.outcomes[:, ~left_out], systems=data.systems, questions=names)
