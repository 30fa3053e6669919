"""The covariance of scores over questions from estimates that leave some out."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.clusters import clusters_of
from bayesrank.inference.influence import spread_of_sums
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# More clusters are joined at random into so many: each part costs a fit.
_MOST_PARTS = 50


def jackknife_covariance(
    scores_without: Callable[[NDArray[np.bool_]], Array], data: Responses
) -> Array | None:
    """Return the covariance of a fit's scores by the delete-a-group jackknife.

    Parameters
    ----------
    scores_without : callable
        Scores of fits that leave questions out, see :class:`bayesrank.inference.kernels.fit.Fit`.
    data : Responses
        What was fitted.

    Returns
    -------
    numpy.ndarray of shape (system, system)
        With the widening of Student's t for few clusters; None where some questions cannot be
        spared for an estimate.

    References
    ----------
    .. [1] P. S. Kott. The delete-a-group jackknife. Journal of Official Statistics 17 (2001).
    """
    parts = _parts(data)
    n = int(parts.max()) + 1
    scores = scores_without(parts == np.arange(n)[:, np.newaxis])
    # Leaving out one of n parts moves a mean by 1 / (n - 1) of what the part differs from it.
    return spread_of_sums((n - 1) / n * scores) if np.isfinite(scores).all() else None


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
