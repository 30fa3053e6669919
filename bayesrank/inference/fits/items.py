"""What the item response kernels share: their data, and the way from an optimum to a fit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import Optimum
from bayesrank.inference.fits.penalty import Array


@dataclass(frozen=True)
class ItemCounts:
    """Weighted counts per system and question, flattened over resamples.

    Attributes
    ----------
    right, trials : numpy.ndarray of shape (resample, system, question)
        Number right and number of trials, times the weight of the question; 0 in questions that
        are left out.
    by_system : numpy.ndarray of shape (resample, system)
        Number right over questions.
    played : numpy.ndarray of shape (resample, system)
        Number of trials over questions.
    by_question : numpy.ndarray of shape (resample, question)
        Number right over systems.
    asked : numpy.ndarray of shape (resample, question)
        Number of trials over systems.
    weights : numpy.ndarray of shape (resample, question)
        Multiplicity of each question, 0 where it is left out.
    left_out : numpy.ndarray of bool and shape (resample, question)
        Questions that carry no information.
    limit : numpy.ndarray of shape (resample, question), or None
        Difficulty of a question that is left out: minus infinity if everybody was right, infinity
        if everybody was wrong, NaN if nobody was asked; 0 elsewhere. None where all are kept.
    lead : tuple of int
        Shape of the resample axes.
    """

    right: Array
    trials: Array
    by_system: Array
    played: Array
    by_question: Array
    asked: Array
    weights: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the counts of some resamples."""
        return replace(
            self,
            right=self.right[index],
            trials=self.trials[index],
            by_system=self.by_system[index],
            played=self.played[index],
            by_question=self.by_question[index],
            asked=self.asked[index],
            weights=self.weights[index],
            left_out=self.left_out[index],
            limit=None if self.limit is None else self.limit[index],
        )

    def merge(self, questions: NDArray[np.intp], counts: Array) -> Self:
        """Return the counts of some questions, each as many times as others are like it."""
        return replace(
            self,
            right=self.right[..., questions] * counts,
            trials=self.trials[..., questions] * counts,
            by_question=self.by_question[:, questions] * counts,
            asked=self.asked[:, questions] * counts,
            weights=self.weights[:, questions] * counts,
            left_out=self.left_out[:, questions],
            limit=None if self.limit is None else self.limit[:, questions],
        )


def item_counts(
    correct: ArrayLike, trials: ArrayLike, weights: ArrayLike | None, *, drop: bool
) -> ItemCounts:
    """Weight the counts, flatten the resamples and leave out questions without information.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials.
    weights : array_like of shape (..., question), or None
        Multiplicity of each question; None is 1.
    drop : bool
        Whether questions that every system answers alike are left out.

    Returns
    -------
    ItemCounts
    """
    right, total = np.asarray(correct, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    n_questions = right.shape[-1]
    multiplicity = None
    if weights is not None:
        multiplicity = np.asarray(weights, dtype=np.float64)
        right, total = right * multiplicity[..., None, :], total * multiplicity[..., None, :]
    shape = right.shape
    if total.shape != shape:
        shape = np.broadcast_shapes(shape, total.shape)
        right, total = np.broadcast_to(right, shape), np.broadcast_to(total, shape)
    lead = shape[:-2]
    right, total = right.reshape(-1, *shape[-2:]), total.reshape(-1, *shape[-2:])
    if multiplicity is None:
        multiplicity = np.ones((len(right), n_questions))
    elif multiplicity.shape != (len(right), n_questions):
        multiplicity = np.broadcast_to(multiplicity, (*lead, n_questions))
        multiplicity = multiplicity.reshape(-1, n_questions)
    by_question, asked = right.sum(axis=-2), (total - right).sum(axis=-2)
    none_wrong, none_right = asked <= 0.0, by_question <= 0.0
    asked += by_question
    left_out = none_wrong | none_right if drop else none_wrong & none_right
    limit = None
    if left_out.any():
        limit = np.where(none_right, np.inf, -np.inf)
        limit[none_wrong & none_right] = np.nan
        limit[~left_out] = 0.0
        keep = ~left_out
        right, total = right * keep[:, None, :], total * keep[:, None, :]
        multiplicity, by_question, asked = multiplicity * keep, by_question * keep, asked * keep
    by_system, played = right.sum(axis=-1), total.sum(axis=-1)
    return ItemCounts(
        right, total, by_system, played, by_question, asked, multiplicity, left_out, limit, lead
    )


class ItemProblem(Protocol):
    """An objective over abilities and question parameters, difficulties first among them."""

    @property
    def data(self) -> ItemCounts:
        """The counts."""
        ...

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...

    def constraint(self, point: Array) -> Array:
        """Return the gradient of what is held at zero, of shape (resample, p)."""
        ...


def item_fit(
    problem: ItemProblem,
    optimum: Optimum,
    scores: Array,
    *,
    exists: NDArray[np.bool_],
    unpack: Callable[..., dict[str, Array]],
    displace: Callable[[Array, Array], Array] = np.add,
) -> Fit:
    """Report the questions that were left out and describe the optimum.

    Parameters
    ----------
    problem : ItemProblem
        The objective; its free coordinates begin with the abilities.
    optimum : Optimum
        Its maximum.
    scores : numpy.ndarray of shape (resample, system)
        The abilities at the optimum, with ties settled.
    exists : numpy.ndarray of bool and shape (resample,)
        False where the data have no finite optimum.
    unpack : callable
        Names the free coordinates, given ``limit``, the difficulties of questions that were left
        out, of shape (..., question).
    displace : callable, default numpy.add
        As in :class:`~bayesrank.inference.fits.fit.Fit`.

    Returns
    -------
    Fit
    """
    data, point = problem.data, optimum.point
    lead = data.lead
    point[:, : scores.shape[-1]] = scores
    free = point.reshape(*lead, -1)
    limit = None if data.limit is None else data.limit.reshape(*lead, -1)
    unpack = partial(unpack, limit=limit)
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
        curvature=partial(_curvature, problem, point, lead),
        displace=displace,
    )


def limited(difficulty: Array, limit: Array | None) -> Array:
    """Return difficulties with those of questions that were left out at their limits.

    Parameters
    ----------
    difficulty : numpy.ndarray of shape (..., question)
        Difficulties of the questions that were kept.
    limit : numpy.ndarray of shape (..., question), or None
        Limits, 0 for the questions that were kept; None when all were.

    Returns
    -------
    numpy.ndarray of shape (..., question)
    """
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out.

    Parameters
    ----------
    values : numpy.ndarray of shape (..., question)
        Parameters of the questions that were kept.
    limit : numpy.ndarray of shape (..., question), or None
        Limits as in :func:`limited`.

    Returns
    -------
    numpy.ndarray of shape (..., question)
    """
    return values if limit is None else np.where(limit == 0.0, values, np.nan)


def _log_likelihood(problem: ItemProblem, point: Array, lead: tuple[int, ...]) -> Array:
    return problem.loglik(point).reshape(lead)


def _curvature(problem: ItemProblem, point: Array, lead: tuple[int, ...]) -> tuple[Array, Array]:
    p = point.shape[-1]
    held = problem.constraint(point).reshape(*lead, p, 1)
    return problem.information(point).reshape(*lead, p, p), held
