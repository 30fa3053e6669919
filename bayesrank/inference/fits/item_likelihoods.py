r"""Likelihoods of right answers: log-odds of systems on questions, and sums over the answers.

The log-odds of system l on question m, in trial t, are

.. math:: x_{ltm} = (D u_l)_t + d_m

for a design D of the trials; or :math:`x_{lm} = e^{\alpha_m} u_l + d_m`, with a chance of
:math:`c_m = u\,\sigma(g_m)` to be right by guessing; or, with several abilities,
:math:`x_{lm} = u_l^\top a_m + d_m`.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import (
    NO_GUESSING,
    Guessing,
    slopes,
)
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.two_sided import Expansion

# exp of a difference within twice this bound neither overflows nor underflows.
_LARGEST = 300.0


@dataclass(frozen=True)
class Rasch:
    """Answers to questions that differ in difficulty alone, of systems that may change over trials.

    A system has coordinates u; a question its intercept d. `by_trial`, (resample, system, trial),
    and `by_question`, (resample, question), are numbers right; counts over trials have one on that
    axis. `trials`, numbers of trials, broadcast to (resample, system, trial, question). `design` is
    D, of shape (trial, coordinate); by default a system has one coordinate per trial.
    """

    by_trial: Array
    by_question: Array
    trials: Array
    design: Array | None = None
    concave: bool = field(default=True, init=False)
    curved: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_trials = self.by_trial.shape
        width = n_trials if self.design is None else self.design.shape[1]
        return n_systems, width, self.by_question.shape[1], 1

    @property
    def size(self) -> int:
        """Number of cells per resample."""
        return self.by_trial[0].size * self.by_question.shape[1]

    @cached_property
    def asked(self) -> Array:
        """Number of trials of each question, of shape (resample, question)."""
        many = self.by_trial[0].size // self.trials[0, ..., 0].size
        return many * _over_trials(self.trials)

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the answers of some resamples."""
        return type(self)(
            self.by_trial[index], self.by_question[index], self.trials[index], self.design
        )

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        each = self.trials.reshape(*self.trials.shape[:2], -1).sum(axis=2)
        played = each.max(axis=1) * (self.by_trial.shape[2] // self.trials.shape[2])
        return np.maximum(played, self.asked.max(axis=1))

    def reach(self, u: Array, v: Array) -> Array:
        """Return how far steps move any log-odds at most, of shape (resample,)."""
        states, easy = self._states(u), v[..., 0]
        up = states.max(axis=(1, 2)) + easy.max(axis=1)
        return np.maximum(up, -states.min(axis=(1, 2)) - easy.min(axis=1))

    def expand(
        self,
        u: Array,
        v: Array,
        exact: NDArray[np.bool_] | None = None,
        *,
        with_value: bool = False,
    ) -> Expansion:
        """Return the gradient and the negative Hessian, which no answers enter."""
        states, easy, size = self._states(u), v[..., 0], len(u)
        odds = _odds(states, easy)
        wrong, value = odds + 1.0, None
        if with_value:
            value = np.vecdot(self.by_trial.reshape(size, -1), states.reshape(size, -1))
            value += np.vecdot(self.by_question, easy)
            value -= np.add.reduce((np.log(wrong) * self.trials).reshape(size, -1), axis=1)
        np.reciprocal(wrong, out=wrong)
        odds *= wrong
        cells = np.empty((2, *odds.shape))  # numbers right that are expected, and their variances
        expected, variance = cells[0], cells[1]
        np.multiply(odds, self.trials, out=expected)
        np.multiply(expected, wrong, out=variance)
        # Sums as products, since NumPy's own take longer.
        over_trials, over_questions = self._ones
        by_state = (cells.reshape(-1, easy.shape[-1]) @ over_questions).reshape(2, *states.shape)
        by_question = over_trials @ cells.reshape(2 * size, -1, easy.shape[-1])
        gv = self.by_question - by_question[:size]
        vv = by_question[size:, :, np.newaxis, np.newaxis]
        uv = variance if self.design is None else self.design.T @ variance
        of_systems = self._of_systems(self.by_trial - by_state[0], by_state[1])
        return Expansion(*of_systems, gv[..., np.newaxis], vv, uv[..., np.newaxis], value)

    @cached_property
    def _ones(self) -> tuple[Array, Array]:
        """Ones for every trial of a system, and for every question."""
        return np.ones(self.by_trial[0].size), np.ones(self.by_question.shape[1])

    def _states(self, u: Array) -> Array:
        """Return abilities in every trial, of shape (resample, system, trial)."""
        return u if self.design is None else u @ self.design.T

    def _of_systems(self, pull: Array, weight: Array) -> tuple[Array, Array]:
        """Return gradients and blocks of systems from sums over questions."""
        if self.design is None:
            if weight.shape[2] == 1:
                return pull, weight[..., np.newaxis]
            blocks = np.zeros((*weight.shape, weight.shape[2]))
            np.einsum("blss->bls", blocks)[...] = weight
            return pull, blocks
        return pull @ self.design, self.design.T @ (weight[..., np.newaxis] * self.design)


@dataclass(frozen=True)
class _Counts:
    """Numbers right and numbers of trials, of shape (resample, system, question)."""

    right: Array
    trials: Array

    @property
    def size(self) -> int:
        """Number of cells per resample."""
        return self.right[0].size

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the answers of some resamples."""
        return replace(self, right=self.right[index], trials=self.trials[index])

    def reach(self, u: Array, v: Array) -> Array:
        """Return that steps move log-odds as far as the point decides, of shape (resample,)."""
        return np.full(len(u), np.inf)


@dataclass(frozen=True)
class Lines(_Counts):
    """Answers whose log-odds are lines in one ability, and perhaps guesses.

    A question has its intercept d, its log discrimination, and its guessing logit where that is
    estimated. With `offset` the coordinate of its difficulty is d / (1 + a) for its slope a.
    """

    guessing: Guessing = NO_GUESSING
    offset: bool = False
    concave: bool = field(default=False, init=False)
    curved: bool = field(default=True, init=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_questions = self.right.shape
        return n_systems, 1, n_questions, 2 + (self.guessing.fixed is None)

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        played = (self.trials @ np.exp(v[..., 1:2])).max(axis=(1, 2))
        return np.maximum(played, self.trials.sum(axis=1).max(axis=-1))

    def expand(
        self,
        u: Array,
        v: Array,
        exact: NDArray[np.bool_] | None = None,
        *,
        with_value: bool = False,
    ) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        slope, lean, x, guess = self.log_odds(u, v)
        by_cell = None if exact is None else exact[:, np.newaxis]
        (n_systems, _, n_questions, kinds), batch = self.shape, len(u)
        of_cells = 2 if guess is None else 5
        # Derivatives by the log-odds and the chance of guessing, with those times `lean`, and two.
        cells = np.empty((2 * of_cells + 2, batch, n_systems, n_questions))
        found, leaning = cells[:of_cells], cells[of_cells:-2]
        value = slopes(
            self.right, self.trials, x, guess, by_cell, found=found, with_value=with_value
        )
        np.multiply(found, lean, out=leaning)
        pull, weight = found[0], found[1]
        told = pull if by_cell is None else pull * by_cell
        bend = np.subtract(leaning[1], told, out=cells[-2])
        np.multiply(bend, lean, out=cells[-1])
        sums = np.ones(n_systems) @ cells  # NumPy's own take longer
        by_kind, by_lean = sums[:of_cells], sums[of_cells:]
        gv, vv = np.empty((batch, n_questions, kinds)), np.empty((batch, n_questions, kinds, kinds))
        uv = np.empty((batch, n_systems, 1, n_questions, kinds))
        gv[..., 0], gv[..., 1] = by_kind[0], by_lean[0]
        vv[..., 0, 0], vv[..., 1, 1] = by_kind[1], sums[-1]
        mixed = by_lean[1]
        uv[:, :, 0, :, 0], uv[:, :, 0, :, 1] = weight * slope, bend * slope
        stretch: Array | float = 1.0
        if self.offset:
            stretch = 1.0 + slope[:, 0]
            mixed = mixed + slope[:, 0] * sums[-2]
            gv[..., 0] *= stretch
            vv[..., 0, 0] *= stretch * stretch
            uv[:, :, 0, :, 0] *= stretch[:, np.newaxis]
        vv[..., 0, 1] = vv[..., 1, 0] = mixed
        if isinstance(guess, np.ndarray):  # it is estimated
            first = guess[:, 0] * (1.0 - guess[:, 0] / self.guessing.upper)
            second = first * (1.0 - 2.0 * guess[:, 0] / self.guessing.upper)
            by_guess = by_kind[2]
            gv[..., 2] = first * by_guess
            if exact is not None:
                by_guess = by_guess * exact
            vv[..., 0, 2] = vv[..., 2, 0] = first * stretch * by_kind[3]
            vv[..., 1, 2] = vv[..., 2, 1] = first * by_lean[3]
            vv[..., 2, 2] = first * first * by_kind[4] - second * by_guess
            uv[:, :, 0, :, 2] = found[3] * (slope * first[:, np.newaxis])
        gu = pull @ slope.swapaxes(1, 2)
        uu = (weight @ (slope * slope).swapaxes(1, 2))[..., np.newaxis]
        return Expansion(gu, uu, gv, vv, uv, value)

    def log_odds(self, u: Array, v: Array) -> tuple[Array, Array, Array, Array | float | None]:
        """Return discriminations, derivatives by their logarithms, log-odds, chances of guessing.

        All with the axes of the answers, of which that of the systems may be of length 1.
        """
        easy, slope = v[:, np.newaxis, :, 0], np.exp(v[:, np.newaxis, :, 1])
        lean = (u + easy) * slope if self.offset else u * slope
        return slope, lean, lean + easy, self.guessing.probability(v[:, np.newaxis, :, -1])


@dataclass(frozen=True)
class Factors(_Counts):
    """Answers whose log-odds are those of several abilities; parameters are loadings, then d."""

    n_factors: int
    concave: bool = field(default=False, init=False)
    curved: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_questions = self.right.shape
        return n_systems, self.n_factors, n_questions, self.n_factors + 1

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        return np.maximum(*(self.trials.sum(axis=axis).max(axis=-1) for axis in (1, 2)))

    def expand(
        self,
        u: Array,
        v: Array,
        exact: NDArray[np.bool_] | None = None,
        *,
        with_value: bool = False,
    ) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        found = np.empty((2, *self.right.shape))
        value = slopes(self.right, self.trials, _inner(u, v), found=found, with_value=with_value)
        pull, weight = found[0], found[1]
        batch, n_systems, a = u.shape
        n_questions, b = v.shape[1:]
        loading, lines = v[..., :-1], np.concatenate([u, np.ones((batch, n_systems, 1))], axis=-1)
        uu = weight @ _squares(loading)
        vv = weight.swapaxes(1, 2) @ _squares(lines)
        uv = weight[:, :, np.newaxis] * loading.swapaxes(1, 2)[:, np.newaxis]
        uv = uv[..., np.newaxis] * lines[:, :, np.newaxis, np.newaxis]
        each = np.arange(a)
        uv[:, :, each, :, each] -= pull
        return Expansion(
            pull @ loading,
            uu.reshape(batch, n_systems, a, a),
            pull.swapaxes(1, 2) @ lines,
            vv.reshape(batch, n_questions, b, b),
            uv,
            value,
        )


def _inner(u: Array, v: Array) -> Array:
    """Return log-odds of abilities against loadings."""
    return u @ v[..., :-1].swapaxes(1, 2) + v[:, np.newaxis, :, -1]


def _squares(rows: Array) -> Array:
    """Return the products of all columns with all, of shape (resample, row, k k)."""
    products = rows[..., np.newaxis] * rows[..., np.newaxis, :]
    return products.reshape(*rows.shape[:2], -1)


def _odds(states: Array, easy: Array) -> Array:
    """Return exp of their sums, with the axes of answers: one exponential per parameter."""
    by_state, by_question = (
        np.exp(np.minimum(np.maximum(values, -_LARGEST), _LARGEST)) for values in (states, easy)
    )
    return by_state[..., np.newaxis] * by_question[:, np.newaxis, np.newaxis]


def _over_trials(values: Array) -> Array:
    """Return sums over systems and trials, of shape (resample, question)."""
    rows = values.reshape(len(values), -1, values.shape[-1])
    return np.ones(rows.shape[1]) @ rows
