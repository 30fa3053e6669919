"""Sizes of winner sets: their counts, and their probabilities beside a fit of the scores."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.winner_sets import winner_sets
from bayesrank.responses import Responses
from bayesrank.views import Events

Array = NDArray[np.float64]


def have_common_set(events: Events) -> bool:
    """Return whether all systems took part in every event, of which there is one at least."""
    return len(events.right) > 0 and bool((events.right | events.wrong).all())


def set_statistics(events: Events) -> tuple[Array, Array]:
    """Summarise winner sets out of one common comparison set.

    Parameters
    ----------
    events : Events
        The events.

    Returns
    -------
    shares : numpy.ndarray of shape (system,)
        For each system the sum of one over the size of the winner sets that contain it.
    n_sets : numpy.ndarray of shape (system - 1,)
        Number of winner sets of size 1, 2, ...

    Examples
    --------
    >>> from bayesrank import Responses
    >>> shares, n_sets = set_statistics(Responses([[[1, 1]], [[0, 1]], [[0, 0]]]).events)
    >>> shares.tolist(), n_sets.tolist()
    ([1.5, 0.5, 0.0], [1.0, 1.0])
    """
    size = events.right.sum(axis=1)
    shares = (events.multiplicity / size) @ events.right
    n_sets = np.bincount(size, weights=events.multiplicity, minlength=events.right.shape[1])
    return shares, n_sets[1:]


def question_set_statistics(data: Responses) -> tuple[Array, Array]:
    """Summarise the winner sets of each question, out of one common comparison set.

    Parameters
    ----------
    data : Responses
        Right or wrong answers.

    Returns
    -------
    shares : numpy.ndarray of shape (question, system)
        As :func:`set_statistics`, of the trials of a question.
    n_sets : numpy.ndarray of shape (question, system - 1)
        Likewise.

    Examples
    --------
    >>> data = Responses([[[1, 1], [1, 1]], [[0, 1], [0, 1]], [[0, 0], [0, 1]]])
    >>> shares, n_sets = question_set_statistics(data)
    >>> shares.tolist(), n_sets.tolist()
    ([[1.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]])
    """
    right = data.outcomes == 1
    n_systems, n_questions, _ = right.shape
    size = np.where(data.observed.all(axis=0), right.sum(axis=0), 0)
    # A set of all systems says as little as an empty one.
    size[size == n_systems] = 0
    shares = np.divide(1.0, size, out=np.zeros(size.shape), where=size > 0)
    place = np.arange(n_questions)[:, np.newaxis] * n_systems + size
    n_sets = np.bincount(place.ravel(), minlength=n_questions * n_systems)
    by_size = n_sets.reshape(n_questions, n_systems).astype(np.float64)
    return np.einsum("lmn,mn->ml", right, shares), by_size[:, 1:]


def with_set_sizes(fit: Fit, n_sets: Array) -> Fit:
    """Add the probabilities of the sizes to a fit of Davidson-Luce scores.

    Sizes and scores are independent given the data. The free coordinates of the sizes are the
    log-odds of each against all larger ones, in which the sizes are independent too.

    Parameters
    ----------
    fit : Fit
        Of the scores, not batched, with parameter ``tie_prevalence`` of shape (system - 1,).
    n_sets : numpy.ndarray of shape (system - 1,)
        Number of winner sets of size 1, 2, ...

    Returns
    -------
    Fit
        With parameters ``size_probability`` and ``tie_prevalence`` of shape (size,), over the
        sizes that occur; a size alone has no probability to estimate. The prevalences are
        relative to that of the smallest size, and not part of the draws.
    """
    sizes = np.flatnonzero(n_sets) + 1
    counts = n_sets[sizes - 1]
    prevalence = fit.parameters["tie_prevalence"][sizes - 1]
    if sizes[0] > 1:
        log_normaliser = winner_sets(fit.score[np.newaxis], sizes).log_normaliser[0]
        log_prevalence = np.log(counts) - log_normaliser
        prevalence = np.exp(log_prevalence - log_prevalence[0])
    if len(sizes) == 1:
        return replace(fit, parameters={"tie_prevalence": prevalence})
    larger = np.cumsum(counts[::-1])[::-1][1:]
    smaller = counts[:-1]
    return replace(
        fit,
        parameters={"size_probability": counts / counts.sum(), "tie_prevalence": prevalence},
        free=np.concatenate([fit.free, np.log(smaller / larger)]),
        unpack=_unpack(len(fit.score)),
        curvature=lambda: _curvature(fit, smaller * larger / (smaller + larger)),
    )


def _unpack(n_systems: int) -> Callable[[Array], dict[str, Array]]:
    def unpack(free: Array) -> dict[str, Array]:
        odds = np.exp(free[..., n_systems:])
        left = np.cumprod(1.0 / (1.0 + odds), axis=-1)
        first = np.ones_like(odds[..., :1])
        before = np.concatenate([first, left], axis=-1)
        taken = np.concatenate([odds / (1.0 + odds), first], axis=-1)
        return {"score": free[..., :n_systems], "size_probability": before * taken}

    return unpack


def _curvature(fit: Fit, of_sizes: Array) -> tuple[Array, Array]:
    information, constraints = fit.curvature()
    n_scores, n_sizes = len(information), len(of_sizes)
    both = np.zeros((n_scores + n_sizes,) * 2)
    both[:n_scores, :n_scores] = information
    both[n_scores:, n_scores:] = np.diag(of_sizes)
    return both, np.vstack([constraints, np.zeros((n_sizes, constraints.shape[-1]))])
