"""What the paired kernels share: starting points, and the way from an optimum to a fit."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.laplace import anchored, zero_sum
from bayesrank.inference.fits.newton import ConcaveProblem, Optimum, smoothed_log_odds
from bayesrank.inference.fits.penalty import Array

# Log-odds that no finite estimate reaches on fewer than millions of comparisons; beyond them the
# curvature is looked at, and its smallest eigenvalue must be this share of the counts.
_FAR = 15.0
_FLAT = 1e-12


class PairedProblem(ConcaveProblem, Protocol):
    """An objective over zero-sum scores and at most one tie parameter."""

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...


def first_scores(
    points: Array, played: Array, start: ArrayLike | None, lead: tuple[int, ...]
) -> Array:
    """Return zero-sum scores to begin with: those given, or smoothed log-odds of a point.

    Parameters
    ----------
    points, played : numpy.ndarray of shape (resample, system)
        Points won and comparisons played by each system.
    start : array_like, broadcastable to (..., system), or None
        Scores to begin with.
    lead : tuple of int
        Shape of the resample axes of `start`.

    Returns
    -------
    numpy.ndarray of shape (resample, system)
    """
    if start is None:
        scores = smoothed_log_odds(points, played)
    else:
        size = points.shape[-1]
        scores = np.broadcast_to(np.asarray(start, dtype=np.float64), (*lead, size))
        scores = scores.reshape(-1, size)
    return _centred(scores)


def tie_share(n_ties: Array, n_comparisons: Array) -> Array:
    """Return the share of ties among comparisons, 0 where there are none.

    Parameters
    ----------
    n_ties, n_comparisons : numpy.ndarray of shape (resample,)
        Counts.

    Returns
    -------
    numpy.ndarray of shape (resample,)
    """
    return n_ties / np.where(n_comparisons > 0.0, n_comparisons, 1.0)


def paired_fit(
    problem: PairedProblem,
    optimum: Optimum,
    scores: Array,
    lead: tuple[int, ...],
    *,
    exists: NDArray[np.bool_],
    log_tie: float | None = None,
    displace: Callable[[Array, Array], Array] = np.add,
) -> Fit:
    """Centre the scores and describe the optimum.

    Parameters
    ----------
    problem : PairedProblem
        The objective.
    optimum : Optimum
        Its maximum.
    scores : numpy.ndarray of shape (resample, system)
        The scores at the optimum, with ties settled.
    lead : tuple of int
        Shape of the resample axes.
    exists : numpy.ndarray of bool and shape (resample,)
        False where the data have no finite optimum.
    log_tie : float, optional
        A fixed tie parameter on the log scale, to be reported where it is not a coordinate.
    displace : callable, default numpy.add
        As in :class:`~bayesrank.inference.fits.fit.Fit`.

    Returns
    -------
    Fit
    """
    size = scores.shape[-1]
    point = optimum.point
    point[:, :size] = _centred(scores)
    free = point.reshape(*lead, -1)
    unpack = partial(unpack_pairs, size=size, log_tie=log_tie)
    named = unpack(free)
    return Fit(
        score=named.pop("score"),
        parameters=named,
        converged=(optimum.converged & exists).reshape(lead),
        iterations=optimum.iterations.reshape(lead),
        gradient_norm=optimum.gradient_norm.reshape(lead),
        free=free,
        unpack=unpack,
        log_likelihood=partial(_log_likelihood, problem, point, lead),
        curvature=partial(_curvature, problem, point, lead, size),
        displace=displace,
    )


def unpack_pairs(free: Array, *, size: int, log_tie: float | None = None) -> dict[str, Array]:
    """Name the free coordinates of a paired model.

    Parameters
    ----------
    free : numpy.ndarray of shape (..., p)
        The scores, then the log of the tie parameter where it is estimated.
    size : int
        Number of systems.
    log_tie : float, optional
        The log of a fixed tie parameter.

    Returns
    -------
    dict of str to numpy.ndarray
        ``score``, and ``tie_strength`` where the model has one.
    """
    named = {"score": free[..., :size]}
    if free.shape[-1] > size:
        named["tie_strength"] = np.exp(free[..., size])
    elif log_tie is not None:
        named["tie_strength"] = np.full(free.shape[:-1], np.exp(log_tie))
    return named


def _log_likelihood(problem: PairedProblem, point: Array, lead: tuple[int, ...]) -> Array:
    return problem.loglik(point).reshape(lead)


def _curvature(
    problem: PairedProblem, point: Array, lead: tuple[int, ...], size: int
) -> tuple[Array, Array]:
    p = point.shape[-1]
    return problem.information(point).reshape(*lead, p, p), zero_sum(p, slice(0, size))


def runs_away(problem: PairedProblem, point: Array) -> NDArray[np.bool_]:
    """Say which points lie on a ridge that rises to infinity rather than at a maximum.

    Far out on such a ridge the gradient and even the Newton step fall below any tolerance; what
    gives it away is a curvature of no significance against the counts.

    Parameters
    ----------
    problem : PairedProblem
        The objective, without prior on the scores.
    point : numpy.ndarray of shape (resample, p)
        Where the iterations ended: scores, then the tie parameter.

    Returns
    -------
    numpy.ndarray of bool and shape (resample,)
    """
    size = point.shape[-1] - 1
    finite = np.where(np.isfinite(point), point, 0.0)
    far = np.ptp(finite[:, :size], axis=-1) + np.abs(finite[:, size]) > _FAR
    away = np.zeros(len(point), dtype=bool)
    rows = np.flatnonzero(far)
    if rows.size:
        some = problem.take(rows)
        matrix = anchored(some.information(point[rows]), zero_sum(size + 1, slice(0, size)))
        away[rows] = np.linalg.eigvalsh(matrix)[:, 0] < _FLAT * some.scale
    return away


def _centred(scores: Array) -> Array:
    return scores - scores.sum(axis=-1, keepdims=True) / scores.shape[-1]
