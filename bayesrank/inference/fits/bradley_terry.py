"""Bradley-Terry by Newton's method."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.logistic_pairs import LogisticPairs, fit_logistic
from bayesrank.inference.fits.penalty import ScorePenalty

TiePolicy = Literal["ignore", "half"]


def fit_bradley_terry(
    wins: ArrayLike,
    tied: ArrayLike | None = None,
    *,
    ties: TiePolicy = "ignore",
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    start: ArrayLike | None = None,
) -> Fit:
    r"""Fit the Bradley-Terry model, P(i beats j) = sigma(theta_i - theta_j).

    Plackett-Luce on decisive pairs has the same maximiser.

    Parameters
    ----------
    wins : array_like of shape (..., system, opponent)
        ``wins[..., i, j]``: how often i beat j.
    tied : array_like of shape (..., system, opponent), optional
        Symmetric tie counts, used with ``ties="half"``.
    ties : {"ignore", "half"}, default "ignore"
        Whether a tie is dropped or counts as half a win for both.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.
    start : array_like, broadcastable to (..., system), optional
        Where to begin, for example the fit of the full data.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero.

    Raises
    ------
    ValueError
        If `ties` is unknown or `prior_precision` is negative.

    References
    ----------
    .. [1] R. A. Bradley and M. E. Terry. Rank analysis of incomplete block designs: I. The method
       of paired comparisons. Biometrika 39 (1952). https://doi.org/10.1093/biomet/39.3-4.324

    Examples
    --------
    >>> fit = fit_bradley_terry([[0.0, 3.0], [1.0, 0.0]])
    >>> bool(np.isclose(fit.score[0] - fit.score[1], np.log(3.0)))
    True
    """
    problem = bradley_terry_problem(
        wins,
        tied,
        ties=ties,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
    )
    return fit_logistic(problem, np.shape(wins)[:-2], start)


def bradley_terry_problem(
    wins: ArrayLike,
    tied: ArrayLike | None = None,
    *,
    ties: TiePolicy = "ignore",
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> LogisticPairs:
    """Build the objective that :func:`fit_bradley_terry` maximises; see there.

    Parameters
    ----------
    wins, tied, ties, prior_mean, prior_precision
        As in :func:`fit_bradley_terry`.

    Returns
    -------
    LogisticPairs
        The free coordinates are the scores.
    """
    if ties not in ("ignore", "half"):
        raise ValueError(f"ties must be 'ignore' or 'half'; got {ties!r}")
    counts = np.asarray(wins, dtype=np.float64)
    if tied is not None and ties == "half":
        counts = counts + 0.5 * np.asarray(tied, dtype=np.float64)
    size = counts.shape[-1]
    penalty = ScorePenalty.broadcast(prior_mean, prior_precision, counts.shape[:-2], size)
    flat = counts.reshape(-1, size, size)
    return LogisticPairs(flat, penalty)
