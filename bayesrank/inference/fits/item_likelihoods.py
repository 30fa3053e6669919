r"""Likelihoods of right answers, each a function of log-odds and its derivatives, and their sums.

The log-odds of system l in trial t on question m are those of a line,

.. math:: x_{ltm} = e^{\alpha_m} (D u_l)_t + d_m,

for a design D of the trials, with :math:`\alpha = 0` where all questions discriminate alike, and a
chance of :math:`c_m = u\,\sigma(g_m)` to be right by guessing; or those of several abilities,
:math:`x_{lm} = u_l^\top a_m + d_m`.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import logistic, softplus
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.two_sided import Expansion

_TINY = 1e-300
# exp of a difference within twice this bound neither overflows nor underflows.
_LARGEST = 300.0
_NONE = np.zeros(0)


@dataclass(frozen=True)
class Guessing:
    """How the lower asymptote is treated.

    Attributes
    ----------
    fixed : float or None, default 0
        A known guessing probability (0 for 2PL), or None to estimate one per question.
    upper : float, default 0.5
        Upper limit of estimated guessing probabilities.

    Raises
    ------
    ValueError
        If a probability is out of range.
    """

    fixed: float | None = 0.0
    upper: float = 0.5

    def __post_init__(self) -> None:
        if self.fixed is not None and not 0.0 <= self.fixed < 1.0:
            raise ValueError(f"guessing must be at least 0 and below 1; got {self.fixed!r}")
        if not 0.0 < self.upper <= 1.0:
            raise ValueError(f"guessing_upper must be above 0 and at most 1; got {self.upper!r}")

    def probability(self, logit: Array) -> Array | float | None:
        """Return guessing probabilities from their logits, or the known one; None for 0."""
        return self.upper * logistic(logit) if self.fixed is None else self.fixed or None


NO_GUESSING = Guessing()


def loglik(right: Array, trials: Array, x: Array, guess: Array | float | None = None) -> Array:
    """Return binomial log-likelihoods of log-odds without a guess, up to a constant.

    Parameters
    ----------
    right, trials : numpy.ndarray
        Numbers right and numbers of trials.
    x : numpy.ndarray
        Log-odds of being right without a guess.
    guess : numpy.ndarray or float, optional
        Chance of being right by a guess, above 0; none by default.

    Returns
    -------
    numpy.ndarray
    """
    if guess is None:
        return right * x - trials * softplus(x)
    # P = (c + e^x) / (1 + e^x) and 1 - P = (1 - c) / (1 + e^x).
    gained = right * np.logaddexp(np.log(guess), x)
    return gained + (trials - right) * np.log1p(-guess) - trials * softplus(x)


class Slopes(NamedTuple):
    """Derivatives of :func:`loglik`.

    Attributes
    ----------
    pull, weight : numpy.ndarray
        The first, and minus the second, by the log-odds.
    by_guess, mixed, sharp : numpy.ndarray
        The first by the chance of guessing, minus the second by both, and minus the second by the
        chance of guessing; empty without guessing.
    """

    pull: Array
    weight: Array
    by_guess: Array = _NONE
    mixed: Array = _NONE
    sharp: Array = _NONE


def slopes(
    right: Array,
    trials: Array,
    x: Array,
    guess: Array | float | None = None,
    exact: NDArray[np.bool_] | None = None,
) -> Slopes:
    """Return the derivatives of :func:`loglik`.

    Parameters
    ----------
    right, trials, x, guess
        As in :func:`loglik`.
    exact : numpy.ndarray of bool, optional
        Where the second derivatives are of the counts observed; elsewhere they are of their
        expectations. Everywhere by default.

    Returns
    -------
    Slopes
    """
    chance = logistic(x)
    wrong = 1.0 - chance
    spread = chance * wrong
    if guess is None:
        return Slopes(right - trials * chance, trials * spread)
    total = np.maximum(guess + (1.0 - guess) * chance, _TINY)
    ratio, missed = right / total, (trials - right) / (1.0 - guess)
    pull, by_guess = chance * (ratio - trials), wrong * ratio - missed
    if exact is not None:
        ratio, missed = np.where(exact, ratio, trials), np.where(exact, missed, trials * wrong)
    share = ratio / total
    weight = spread * (trials - share * guess)
    return Slopes(pull, weight, by_guess, spread * share, wrong**2 * share + missed / (1.0 - guess))


@dataclass(frozen=True)
class Lines:
    """Answers whose log-odds are lines, as :class:`~bayesrank.inference.fits.two_sided.Cells`.

    A system has coordinates u; a question its intercept d, its log discrimination where those
    differ, and its guessing logit where it is estimated.

    Attributes
    ----------
    right, trials : numpy.ndarray of shape (resample, system, trial, question)
        Numbers right and numbers of trials; counts over trials have one on that axis.
    design : numpy.ndarray of shape (trial, coordinate), or None
        D; None for one coordinate per trial.
    sloped : bool
        Whether questions differ in discrimination.
    guessing : Guessing
        How guessing is treated.
    offset : bool
        Whether the coordinate of a question's difficulty is d / (1 + a) for its discrimination a.
    """

    right: Array
    trials: Array
    design: Array | None = None
    sloped: bool = False
    guessing: Guessing = NO_GUESSING
    offset: bool = False

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_trials, n_questions = self.right.shape
        width = n_trials if self.design is None else self.design.shape[1]
        return n_systems, width, n_questions, 1 + self.sloped + (self.guessing.fixed is None)

    @property
    def size(self) -> int:
        """Number of cells per resample."""
        return self.right[0].size

    @property
    def curved(self) -> bool:
        """Whether blocks of questions may be indefinite."""
        return not self.concave

    @cached_property
    def by_trial(self) -> Array:
        """Number right over questions, of shape (resample, system, trial)."""
        return _over_questions(self.right)

    @cached_property
    def by_question(self) -> Array:
        """Number right over systems and trials, of shape (resample, question)."""
        return self.right.sum(axis=(1, 2))

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the answers of some resamples."""
        return replace(self, right=self.right[index], trials=self.trials[index])

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        asked = self.trials.sum(axis=(1, 2)).max(axis=-1)
        played = self.trials.sum(axis=2)
        by_system = played @ np.exp(v[..., 1:2]) if self.sloped else played.sum(axis=-1)
        return np.maximum(by_system.reshape(len(asked), -1).max(axis=-1), asked)

    @property
    def concave(self) -> bool:
        """Whether log-odds are linear in both sides, and certain to be right by knowledge alone."""
        return not self.sloped and self.guessing.fixed == 0.0

    def reach(self, u: Array, v: Array) -> Array:
        """Return how far steps move any log-odds at most, of shape (resample,)."""
        states, easy = self._states(u), v[..., 0]
        up = states.max(axis=(1, 2)) + easy.max(axis=1)
        return np.maximum(up, -states.min(axis=(1, 2)) - easy.min(axis=1))

    def value(self, u: Array, v: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        if self.concave:
            return self._value_alike(u, v)
        *_, x, guess = self.log_odds(u, v)
        return loglik(self.right, self.trials, x, guess).sum(axis=(1, 2, 3))

    def expand(self, u: Array, v: Array, exact: NDArray[np.bool_] | None = None) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        if self.concave:
            return self._expand_alike(u, v)
        slope, lean, x, guess = self.log_odds(u, v)
        by_cell = None if exact is None else exact[:, np.newaxis, np.newaxis]
        found = slopes(self.right, self.trials, x, guess, by_cell)
        (n_systems, width, n_questions, kinds), batch = self.shape, len(u)
        gv, vv = np.empty((batch, n_questions, kinds)), np.empty((batch, n_questions, kinds, kinds))
        uv = np.empty((batch, n_systems, width, n_questions, kinds))
        weight, curved = found.weight, found.pull if by_cell is None else found.pull * by_cell
        stretch = 1.0 + slope[:, 0, 0] if self.offset else 1.0
        gv[..., 0] = stretch * found.pull.sum(axis=(1, 2))
        vv[..., 0, 0] = stretch**2 * weight.sum(axis=(1, 2))
        uv[..., 0] = self._by_coordinate(weight * slope * _over_answers(stretch))
        if self.sloped:
            bend = weight * lean - curved
            mixed = stretch * (weight * lean).sum(axis=(1, 2))
            mixed -= (stretch - 1.0) * curved.sum(axis=(1, 2))
            gv[..., 1] = (found.pull * lean).sum(axis=(1, 2))
            vv[..., 0, 1] = vv[..., 1, 0] = mixed
            vv[..., 1, 1] = (bend * lean).sum(axis=(1, 2))
            uv[..., 1] = self._by_coordinate(bend * slope)
        if self.guessing.fixed is None:
            share = logistic(v[..., -1])
            first = self.guessing.upper * share * (1.0 - share)
            second = first * (1.0 - 2.0 * share)
            by_guess = found.by_guess.sum(axis=(1, 2))
            gv[..., -1] = first * by_guess
            vv[..., 0, -1] = vv[..., -1, 0] = stretch * first * found.mixed.sum(axis=(1, 2))
            if self.sloped:
                mixed = (found.mixed * lean).sum(axis=(1, 2))
                vv[..., 1, -1] = vv[..., -1, 1] = first * mixed
            curved = by_guess if exact is None else by_guess * exact
            vv[..., -1, -1] = first**2 * found.sharp.sum(axis=(1, 2)) - second * curved
            uv[..., -1] = self._by_coordinate(found.mixed * (slope * _over_answers(first)))
        by_trial = (found.pull * slope).sum(axis=-1), (weight * slope**2).sum(axis=-1)
        return Expansion(*self._of_systems(*by_trial), gv, vv, uv)

    def log_odds(self, u: Array, v: Array) -> tuple[Any, Array, Array, Array | float | None]:
        """Return discriminations, derivatives by their logarithms, log-odds, chances of guessing.

        All with the axes of the answers.
        """
        states = self._states(u)
        easy = _over_answers(v[..., 0])
        slope = np.exp(_over_answers(v[..., 1])) if self.sloped else 1.0
        lean = (states[..., np.newaxis] + easy * self.offset) * slope
        guess = self.guessing.probability(v[..., -1])
        if isinstance(guess, np.ndarray):
            guess = _over_answers(guess)
        return slope, lean, lean + easy, guess

    def _value_alike(self, u: Array, v: Array) -> Array:
        """Return the log-likelihood where questions differ in difficulty alone."""
        states, easy = self._states(u), v[..., 0]
        total = _odds(states, easy)
        np.log1p(total, out=total)
        total *= self.trials
        linear = (self.by_trial * states).sum(axis=(1, 2)) + (self.by_question * easy).sum(axis=1)
        return linear - total.sum(axis=(1, 2, 3))

    def _expand_alike(self, u: Array, v: Array) -> Expansion:
        """Return gradient and negative Hessian where questions differ in difficulty alone."""
        weight = _odds(-self._states(u), -v[..., 0])
        share = weight + 1.0
        np.reciprocal(share, out=share)
        weight *= share
        share *= self.trials
        weight *= share
        by_question = self.by_question - _over_trials(share)
        by_trial = self.by_trial - _over_questions(share)
        of_systems = self._of_systems(by_trial, _over_questions(weight))
        vv = _over_trials(weight)[..., np.newaxis, np.newaxis]
        uv = self._by_coordinate(weight)[..., np.newaxis]
        return Expansion(*of_systems, by_question[..., np.newaxis], vv, uv)

    def _states(self, u: Array) -> Array:
        """Return abilities in every trial, of shape (resample, system, trial)."""
        return u if self.design is None else u @ self.design.T

    def _of_systems(self, pull: Array, weight: Array) -> tuple[Array, Array]:
        """Return gradients and blocks of systems from sums over questions."""
        if self.design is None:
            return pull, weight[..., np.newaxis] * np.eye(weight.shape[-1])
        if self.design.shape == (1, 1):
            return pull, weight[..., np.newaxis]
        return pull @ self.design, self.design.T @ (weight[..., np.newaxis] * self.design)

    def _by_coordinate(self, values: Array) -> Array:
        """Return sums over trials, of shape (resample, system, coordinate, question)."""
        if self.design is None or self.design.shape == (1, 1):
            return values
        return self.design.T @ values


@dataclass(frozen=True)
class Factors:
    """Answers whose log-odds are those of several abilities; parameters are loadings, then d.

    Attributes
    ----------
    right, trials : numpy.ndarray of shape (resample, system, question)
        Numbers right and numbers of trials.
    n_factors : int
        Number of abilities.
    """

    right: Array
    trials: Array
    n_factors: int
    concave: bool = field(default=False, init=False)
    curved: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_questions = self.right.shape
        return n_systems, self.n_factors, n_questions, self.n_factors + 1

    @property
    def size(self) -> int:
        """Number of cells per resample."""
        return self.right[0].size

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the answers of some resamples."""
        return replace(self, right=self.right[index], trials=self.trials[index])

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        return np.maximum(*(self.trials.sum(axis=axis).max(axis=-1) for axis in (1, 2)))

    def reach(self, u: Array, v: Array) -> Array:
        """Return that steps move log-odds as far as the point decides, of shape (resample,)."""
        return np.full(len(u), np.inf)

    def value(self, u: Array, v: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        return loglik(self.right, self.trials, _inner(u, v)).sum(axis=(1, 2))

    def expand(self, u: Array, v: Array, exact: NDArray[np.bool_] | None = None) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        found = slopes(self.right, self.trials, _inner(u, v))
        pull, weight = found.pull, found.weight
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


def _over_questions(values: Array) -> Array:
    """Return sums over questions; NumPy's own loop over short rows takes thrice the time."""
    return values @ np.ones(values.shape[-1])


def _over_trials(values: Array) -> Array:
    """Return sums over systems and trials, of shape (resample, question)."""
    rows = values.reshape(len(values), -1, values.shape[-1])
    return np.ones(rows.shape[1]) @ rows


def _over_answers(values: Any) -> Any:
    """Return what questions have, of shape (resample, question), with the axes of answers."""
    return values[:, np.newaxis, np.newaxis] if isinstance(values, np.ndarray) else values
