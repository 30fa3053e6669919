"""What the kernels of ordered trials share: their data, and the way from an optimum to a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.exact_ties import merge_noise
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.log_odds import softplus
from bayesrank.inference.fits.newton import Optimum, smoothed_log_odds
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.rasch import stretched

# exp of a difference within twice this bound neither overflows nor underflows.
_LARGEST = 300.0


@dataclass(frozen=True)
class TrialCounts:
    """Responses to questions in ordered trials, reduced to what the likelihood needs.

    Attributes
    ----------
    by_trial : numpy.ndarray of shape (resample, system, trial)
        Weighted number right over questions.
    by_question : numpy.ndarray of shape (resample, question)
        Weighted number right over systems and trials.
    asked : numpy.ndarray of shape (resample, question)
        Weighted number of responses over systems and trials.
    responses : numpy.ndarray of shape (resample, system)
        Weighted number of responses over questions and trials.
    answered : numpy.ndarray of shape (1 or resample, system, trial, question), or None
        1 where there is a response, else 0; None where there always is one.
    weights : numpy.ndarray of shape (resample, question)
        Multiplicity of each question, 0 where it is left out.
    left_out : numpy.ndarray of bool and shape (resample, question)
        Questions that carry no information: always right, always wrong, or without weight.
    limit : numpy.ndarray of shape (resample, question), or None
        Difficulty of the questions that are left out, as in
        :class:`~bayesrank.inference.fits.items.ItemCounts`.
    lead : tuple of int
        Shape of the resample axes.
    """

    by_trial: Array
    by_question: Array
    asked: Array
    responses: Array
    answered: Array | None
    weights: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of systems, trials and questions."""
        return (*self.by_trial.shape[1:], self.by_question.shape[-1])

    @property
    def scale(self) -> Array:
        """Largest number of responses behind a parameter, of shape (resample,)."""
        return np.maximum(self.responses.max(axis=-1), self.asked.max(axis=-1))

    @property
    def held(self) -> Array:
        """The vector whose product with the difficulties is 0, of shape (resample, question)."""
        # Where nothing is kept any level will do.
        return np.where(self.left_out.all(axis=-1, keepdims=True), 1.0, self.weights)

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the counts of some resamples."""
        answered = self.answered
        if answered is not None and len(answered) > 1:
            answered = answered[index]
        return replace(
            self,
            by_trial=self.by_trial[index],
            by_question=self.by_question[index],
            asked=self.asked[index],
            responses=self.responses[index],
            answered=answered,
            weights=self.weights[index],
            left_out=self.left_out[index],
            limit=None if self.limit is None else self.limit[index],
        )

    def merged(self) -> tuple[Self, NDArray[np.intp]] | None:
        """Merge the questions whose difficulties must be equal.

        Where all systems answered all questions in all trials, these are the questions with the
        same number right; they become one of added weight.

        Returns
        -------
        tuple of TrialCounts and numpy.ndarray of intp and shape (question,), or None
            The counts, and the place of each question among the merged ones (any for those that
            are left out); None where there is nothing to merge, or more than one resample.
        """
        if len(self.by_question) != 1 or self.answered is not None or self.left_out.all():
            return None
        kept = np.flatnonzero(~self.left_out[0])
        right = self.by_question[0, kept] / self.weights[0, kept]
        distinct, place = np.unique(right, return_inverse=True)
        if distinct.size == self.left_out.size:
            return None
        columns = (self.by_question, self.asked, self.weights)
        by_question, asked, weights = (
            np.bincount(place, column[0, kept])[np.newaxis] for column in columns
        )
        everywhere = np.zeros(self.left_out.size, dtype=np.intp)
        everywhere[kept] = place
        merged = replace(
            self,
            by_question=by_question,
            asked=asked,
            weights=weights,
            left_out=np.zeros(weights.shape, dtype=bool),
            limit=None,
        )
        return merged, everywhere

    def loglik(self, states: Array, difficulty: Array) -> Array:
        """Return the log-likelihood, of shape (resample,).

        Parameters
        ----------
        states : numpy.ndarray of shape (resample, system, trial)
            Abilities.
        difficulty : numpy.ndarray of shape (resample, question)
            Difficulties.

        Returns
        -------
        numpy.ndarray of shape (resample,)
        """
        gaps = states[..., np.newaxis] - difficulty[:, np.newaxis, np.newaxis]
        total = softplus(gaps)
        if self.answered is not None:
            total *= self.answered
        linear = (self.by_trial * states).sum(axis=(-1, -2))
        linear -= (self.by_question * difficulty).sum(axis=-1)
        return linear - (total.sum(axis=(1, 2)) * self.weights).sum(axis=-1)

    def derivatives(self, states: Array, difficulty: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of the log-likelihood.

        Parameters
        ----------
        states : numpy.ndarray of shape (resample, system, trial)
            Abilities.
        difficulty : numpy.ndarray of shape (resample, question)
            Difficulties.

        Returns
        -------
        for_states : numpy.ndarray of shape (resample, system, trial)
        for_difficulty : numpy.ndarray of shape (resample, question)
            The gradient.
        spread : numpy.ndarray of shape (resample, system, trial, question)
            p (1 - p) per response, without weights.
        """
        hard = np.exp(np.minimum(np.maximum(difficulty, -_LARGEST), _LARGEST))
        odds = np.exp(-np.minimum(np.maximum(states, -_LARGEST), _LARGEST))
        # One exponential per parameter instead of one per response.
        spread = odds[..., np.newaxis] * hard[:, np.newaxis, np.newaxis]
        share = spread + 1.0
        np.reciprocal(share, out=share)
        spread *= share
        if self.answered is not None:
            share *= self.answered
        spread *= share
        for_states = self.by_trial - self.over_questions(share)
        for_difficulty = self.over_trials(share) - self.by_question
        return for_states, for_difficulty, spread

    def over_questions(self, values: Array) -> Array:
        """Return weighted sums over questions, of shape (resample, system, trial)."""
        batch, n_systems, n_trials, n_questions = values.shape
        flat = values.reshape(batch, -1, n_questions) @ self.weights[:, :, np.newaxis]
        return flat.reshape(batch, n_systems, n_trials)

    def over_trials(self, values: Array) -> Array:
        """Return weighted sums over systems and trials, of shape (resample, question)."""
        batch, n_questions = len(values), values.shape[-1]
        return self.weights * values.reshape(batch, -1, n_questions).sum(axis=1)

    def system_rows(self, statistics: Sequence[Array]) -> Array:
        """Return everything that tells systems apart, side by side.

        Parameters
        ----------
        statistics : sequence of numpy.ndarray of shape (resample, system, column)
            Sufficient statistics; the pattern of missing responses is added to them.

        Returns
        -------
        numpy.ndarray of shape (resample, system, column)
        """
        if self.answered is None:
            return np.concatenate(statistics, axis=-1)
        batch, n_systems = self.responses.shape
        pattern = self.answered.reshape(len(self.answered), n_systems, -1)
        pattern = np.broadcast_to(pattern, (batch, *pattern.shape[1:]))
        return np.concatenate([*statistics, pattern], axis=-1)

    def first_point(self) -> tuple[Array, Array]:
        """Return abilities and difficulties to begin iterations with.

        Returns
        -------
        tuple of numpy.ndarray of shapes (resample, system) and (resample, question)
        """
        ability = smoothed_log_odds(self.by_trial.sum(axis=-1), self.responses)
        difficulty = -smoothed_log_odds(self.by_question, self.asked)
        return stretched(ability, difficulty, self.weights)


def trial_counts(
    outcomes: ArrayLike, weights: ArrayLike | None, *, drop: bool = True
) -> TrialCounts:
    """Count right answers, flatten the resamples and leave out questions without information.

    Parameters
    ----------
    outcomes : array_like of shape (..., system, question, trial)
        1 for right, 0 for wrong, negative where a response is missing.
    weights : array_like of shape (..., question), or None
        Multiplicity of each question; None is 1.
    drop : bool, default True
        Whether questions that carry no information are left out.

    Returns
    -------
    TrialCounts

    Raises
    ------
    ValueError
        If `outcomes` lack an axis.
    """
    values = np.asarray(outcomes)
    if values.ndim < 3:
        raise ValueError(
            f"outcomes must be of shape (..., system, question, trial); got {values.shape}"
        )
    n_systems, n_questions, n_trials = values.shape[-3:]
    multiplicity = np.ones(n_questions) if weights is None else np.asarray(weights, np.float64)
    lead = np.broadcast_shapes(values.shape[:-3], multiplicity.shape[:-1])
    multiplicity = np.broadcast_to(multiplicity, (*lead, n_questions)).reshape(-1, n_questions)
    if values.ndim > 3:
        values = np.broadcast_to(values, (*lead, *values.shape[-3:]))
    values = values.reshape(-1, n_systems, n_questions, n_trials)
    missing = values < 0
    answered = None
    n_asked = np.full((1, n_questions), float(n_systems * n_trials))
    if missing.any():
        answered = np.ascontiguousarray((~missing).transpose(0, 1, 3, 2), dtype=np.float64)
        n_asked = answered.sum(axis=(1, 2))
        values = np.where(missing, 0, values)
    right = values.astype(np.float64)
    n_right = right.sum(axis=1).sum(axis=-1)
    none_right = n_right * multiplicity <= 0.0
    none_wrong = (n_asked - n_right) * multiplicity <= 0.0
    left_out, limit = (none_right | none_wrong) & drop, None
    if left_out.any():
        limit = np.where(none_right, np.inf, -np.inf)
        limit[none_wrong & none_right] = np.nan
        limit[~left_out] = 0.0
        multiplicity = np.where(left_out, 0.0, multiplicity)
    if answered is None:
        total = multiplicity.sum(axis=-1, keepdims=True)
        responses = np.broadcast_to(n_trials * total, (len(total), n_systems))
    else:
        responses = (answered.sum(axis=2) @ multiplicity[:, :, np.newaxis])[:, :, 0]
    return TrialCounts(
        by_trial=(multiplicity[:, np.newaxis, np.newaxis] @ right)[:, :, 0],
        by_question=multiplicity * n_right,
        asked=multiplicity * n_asked,
        responses=responses,
        answered=answered,
        weights=multiplicity,
        left_out=left_out,
        limit=limit,
        lead=lead,
    )


def linked(outcomes: ArrayLike, counts: TrialCounts) -> NDArray[np.bool_]:
    """Say where chains of right and wrong answers lead from every system to every other.

    Parameters
    ----------
    outcomes : array_like of shape (..., system, question, trial)
        As in :func:`trial_counts`.
    counts : TrialCounts
        What :func:`trial_counts` made of them.

    Returns
    -------
    numpy.ndarray of bool and shape (resample,)
        True where the Rasch model has a finite maximum-likelihood estimate.
    """
    values = np.asarray(outcomes)
    right, wrong = (values > 0).any(axis=-1), (values == 0).any(axis=-1)
    n_systems, _, n_questions = counts.shape
    kept = ~counts.left_out.reshape(*counts.lead, 1, n_questions)
    flat = (-1, n_systems, n_questions)
    return linked_both_ways((right & kept).reshape(flat), (wrong & kept).reshape(flat))


class TrialProblem(Protocol):
    """An objective over the abilities of systems in trials and, last, difficulties."""

    @property
    def counts(self) -> TrialCounts:
        """The data."""
        ...

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...

    def constraint(self, point: Array) -> Array:
        """Return the vector held at zero, of shape (resample, p)."""
        ...


def trial_fit(
    problem: TrialProblem,
    optimum: Optimum,
    *,
    exists: NDArray[np.bool_],
    unpack: Callable[..., dict[str, Array]],
) -> Fit:
    """Describe the optimum of a kernel of ordered trials.

    Parameters
    ----------
    problem : TrialProblem
        The objective.
    optimum : Optimum
        Its maximum.
    exists : numpy.ndarray of bool and shape (resample,)
        False where the data have no finite optimum.
    unpack : callable
        Names the free coordinates, given ``limit``, the difficulties of the questions that were
        left out, of shape (..., question).

    Returns
    -------
    Fit
    """
    counts, point = problem.counts, optimum.point
    lead = counts.lead
    free = point.reshape(*lead, -1)
    limit = None if counts.limit is None else counts.limit.reshape(*lead, -1)
    unpack = partial(unpack, limit=limit)
    named = unpack(free)
    scores = named.pop("score")
    flat = merge_noise(scores.reshape(-1, scores.shape[-1]))
    return Fit(
        score=flat.reshape(scores.shape),
        parameters=named,
        converged=(optimum.converged & exists).reshape(lead),
        iterations=optimum.iterations.reshape(lead),
        gradient_norm=optimum.gradient_norm.reshape(lead),
        free=free,
        unpack=unpack,
        log_likelihood=partial(_log_likelihood, problem, point),
        curvature=partial(_curvature, problem, point),
    )


def _log_likelihood(problem: TrialProblem, point: Array) -> Array:
    return problem.loglik(point).reshape(problem.counts.lead)


def _curvature(problem: TrialProblem, point: Array) -> tuple[Array, Array]:
    lead, p = problem.counts.lead, point.shape[-1]
    held = problem.constraint(point).reshape(*lead, p, 1)
    return problem.information(point).reshape(*lead, p, p), held
