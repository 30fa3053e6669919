"""Derivatives of 2PL and 3PL log-likelihoods per system and question, and their sums."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.items import ItemCounts
from bayesrank.inference.fits.log_odds import logistic, softplus
from bayesrank.inference.fits.penalty import Array

# Log-odds x below which a parameter that still falls is sent to the floor, and the floor itself.
_FALLING = -8.0
FLOOR = -23.0
_TINY = 1e-300


@dataclass(frozen=True)
class Guessing:
    """How the lower asymptote is treated.

    Attributes
    ----------
    fixed : float or None, default 0
        A known guessing probability (0 for 2PL), or None to estimate one per question.
    upper : float, default 0.5
        Upper limit of estimated guessing probabilities.
    penalty : float, default 0
        Weight of the sum of squared logits of guessing over its limit.

    Raises
    ------
    ValueError
        If a probability is out of range.
    """

    fixed: float | None = 0.0
    upper: float = 0.5
    penalty: float = 0.0

    def __post_init__(self) -> None:
        if self.fixed is not None and not 0.0 <= self.fixed < 1.0:
            raise ValueError(f"guessing must be at least 0 and below 1; got {self.fixed!r}")
        if not 0.0 < self.upper <= 1.0:
            raise ValueError(f"guessing_upper must be above 0 and at most 1; got {self.upper!r}")

    @property
    def absent(self) -> bool:
        """Whether there is no guessing at all."""
        return self.fixed == 0.0

    def probability(self, logit: Array | None, shape: tuple[int, ...]) -> Array:
        """Return guessing probabilities, from their logits unless they are fixed."""
        if logit is None:
            return np.full(shape, self.fixed)
        return self.upper * logistic(logit)


NO_GUESSING = Guessing()


def loglik(data: ItemCounts, guessing: Guessing, x: Array, logit: Array | None) -> Array:
    """Return the log-likelihood of log-odds x, of shape (resample,).

    Parameters
    ----------
    data : ItemCounts
        Weighted counts.
    guessing : Guessing
        How guessing is treated.
    x : numpy.ndarray of shape (resample, system, question)
        Log-odds of being right without a guess.
    logit : numpy.ndarray of shape (resample, question), or None
        Logits of guessing where it is estimated.

    Returns
    -------
    numpy.ndarray of shape (resample,)
    """
    right, trials = data.right, data.trials
    total = trials * softplus(x)
    if guessing.absent:
        return (right * x - total).sum(axis=(-1, -2))
    guess = guessing.probability(logit, data.weights.shape)
    # P = (c + e^x) / (1 + e^x) and 1 - P = (1 - c) / (1 + e^x).
    with np.errstate(divide="ignore"):
        gained = right * np.logaddexp(np.log(guess)[:, None, :], x)
    missed = (trials - right) * np.log1p(-guess)[:, None, :]
    return (gained + missed - total).sum(axis=(-1, -2))


def positive_definite(blocks: Array) -> NDArray[np.bool_]:
    """Say which symmetric blocks are positive definite.

    Parameters
    ----------
    blocks : numpy.ndarray of shape (resample, k, k, group)
        The blocks, k up to 3.

    Returns
    -------
    numpy.ndarray of bool and shape (resample, group)
    """
    first = blocks[:, 0, 0]
    if blocks.shape[1] == 1:
        return first > 0.0
    second = first * blocks[:, 1, 1] - blocks[:, 0, 1] ** 2
    definite = (first > 0.0) & (second > 0.0)
    if blocks.shape[1] == 2:
        return definite
    a, b, c = blocks[:, 0, 2], blocks[:, 1, 2], blocks[:, 2, 2]
    third = c * second - a * (a * blocks[:, 1, 1] - b * blocks[:, 0, 1])
    third += b * (a * blocks[:, 0, 1] - b * first)
    return definite & (third > 0.0)


@dataclass(frozen=True)
class ItemCells:
    """Everything the derivatives at one point are summed from.

    Arrays are of shape (resample, system, question) unless said otherwise.

    Attributes
    ----------
    data : ItemCounts
        Weighted counts.
    ability : numpy.ndarray of shape (resample, system)
        Abilities.
    slope, stretch, guess : numpy.ndarray of shape (resample, question)
        Discriminations, the derivatives of x by the offset (1 + a) or the intercept (1), and
        guessing probabilities.
    guessing : Guessing
        How guessing is treated.
    lean : numpy.ndarray
        a (theta + e), or a theta with intercepts: the derivative of x by log a.
    x : numpy.ndarray
        a theta + (1 + a) e, or a theta with the intercept added.
    chance : numpy.ndarray
        sigma(x).
    total, ratio : numpy.ndarray
        The probability P and k / P; neither is used without guessing.
    pull : numpy.ndarray
        Derivative of the log-likelihood by x.
    """

    data: ItemCounts
    ability: Array
    slope: Array
    stretch: Array
    guess: Array
    guessing: Guessing
    lean: Array
    x: Array
    chance: Array
    total: Array
    ratio: Array
    pull: Array

    @classmethod
    def at(
        cls,
        data: ItemCounts,
        guessing: Guessing,
        ability: Array,
        offset: Array,
        log_slope: Array,
        logit: Array | None,
    ) -> Self:
        """Evaluate the cells at a point whose difficulties are given by offsets."""
        slope = np.exp(log_slope)
        lean = (ability[:, :, None] + offset[:, None, :]) * slope[:, None, :]
        x = lean + offset[:, None, :]
        return cls._from_log_odds(data, guessing, ability, slope, 1.0 + slope, lean, x, logit)

    @classmethod
    def at_intercepts(
        cls,
        data: ItemCounts,
        guessing: Guessing,
        ability: Array,
        intercept: Array,
        log_slope: Array,
        logit: Array | None,
    ) -> Self:
        """Evaluate the cells at a point of intercepts -a b, which the derivatives are by."""
        slope = np.exp(log_slope)
        lean = ability[:, :, None] * slope[:, None, :]
        x, stretch = lean + intercept[:, None, :], np.ones_like(slope)
        return cls._from_log_odds(data, guessing, ability, slope, stretch, lean, x, logit)

    @classmethod
    def _from_log_odds(
        cls,
        data: ItemCounts,
        guessing: Guessing,
        ability: Array,
        slope: Array,
        stretch: Array,
        lean: Array,
        x: Array,
        logit: Array | None,
    ) -> Self:
        chance = logistic(x)
        guess = guessing.probability(logit, slope.shape)
        first = (data, ability, slope, stretch, guess, guessing, lean, x, chance)
        if guessing.absent:
            return cls(*first, chance, data.right, data.right - data.trials * chance)
        floor = guess[:, None, :]
        total = np.maximum(floor + (1.0 - floor) * chance, _TINY)
        ratio = data.right / total
        return cls(*first, total, ratio, chance * (ratio - data.trials))

    def gradient(self) -> list[Array]:
        """Return the derivatives by abilities, difficulties, log slopes and guessing logits."""
        parts = [
            (self.pull @ self.slope[:, :, None])[:, :, 0],
            self.stretch * self.pull.sum(axis=-2),
            (self.pull * self.lean).sum(axis=-2),
        ]
        if self.guessing.fixed is None:
            parts.append(self._bend_of_guess()[0] * self._pull_of_guess())
        return parts

    def curvature(self, exact: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """Return the negative Hessian of the log-likelihood, in part its expectation.

        Parameters
        ----------
        exact : numpy.ndarray of bool and shape (resample, question)
            For which questions the observed counts enter; elsewhere their expectations do.

        Returns
        -------
        tuple of numpy.ndarray
            Diagonal of the abilities, blocks of the questions and border, as
            :class:`~bayesrank.inference.fits.arrow.Arrow` takes them.
        """
        weight = self._weight(exact)
        pull = self.pull * exact[:, None, :]
        bend = weight * self.lean - pull
        batch, n_systems, n_questions = weight.shape
        k = 3 if self.guessing.fixed is None else 2
        border = np.empty((batch, n_systems, k, n_questions))
        blocks = np.empty((batch, k, k, n_questions))
        np.multiply((self.slope * self.stretch)[:, None, :], weight, out=border[:, :, 0])
        np.multiply(self.slope[:, None, :], bend, out=border[:, :, 1])
        diagonal = (weight @ (self.slope**2)[:, :, None])[:, :, 0]
        blocks[:, 0, 0] = self.stretch**2 * weight.sum(axis=-2)
        mixed = self.stretch * (weight * self.lean).sum(axis=-2)
        mixed -= (self.stretch - 1.0) * pull.sum(axis=-2)
        blocks[:, 0, 1] = blocks[:, 1, 0] = mixed
        blocks[:, 1, 1] = (bend * self.lean).sum(axis=-2)
        if self.guessing.fixed is None:
            self._add_guessing(border, blocks, exact)
        return diagonal, blocks, border

    def held(self, gradient: Array) -> NDArray[np.bool_]:
        """Say which abilities and offsets fall for ever, of shape (resample, p)."""
        n_systems, n_questions = self.x.shape[-2:]
        unasked = self.data.trials <= 0.0
        highest = np.where(unasked, -np.inf, self.x)
        held = np.zeros(gradient.shape, dtype=bool)
        questions = slice(n_systems, n_systems + n_questions)
        for side, axis in ((slice(0, n_systems), -1), (questions, -2)):
            top = highest.max(axis=axis)
            held[:, side] = (top < _FALLING) & (gradient[:, side] < 0.0) | (top <= FLOOR)
        held[:, questions] &= ~self.data.left_out
        return held

    def _weight(self, exact: NDArray[np.bool_]) -> Array:
        """Return minus the second derivative of the log-likelihood by x."""
        spread = self.chance * (1.0 - self.chance)
        if self.guessing.absent:
            return self.data.trials * spread
        floor = self.guess[:, None, :]
        # The expected ratio k / P is the number of trials.
        ratio = np.where(exact[:, None, :], self.ratio, self.data.trials)
        return spread * (self.data.trials - ratio * floor / self.total)

    def _bend_of_guess(self) -> tuple[Array, Array]:
        """Return the first and second derivative of guessing by its logit."""
        share = self.guess / self.guessing.upper
        first = self.guess * (1.0 - share)
        return first, first * (1.0 - 2.0 * share)

    def _pull_of_guess(self) -> Array:
        """Return the derivative of the log-likelihood by the guessing probabilities."""
        missed = (self.data.trials - self.data.right).sum(axis=-2)
        gained = ((1.0 - self.chance) * self.ratio).sum(axis=-2)
        return gained - missed / (1.0 - self.guess)

    def _add_guessing(self, border: Array, blocks: Array, exact: NDArray[np.bool_]) -> None:
        """Write the rows of the guessing logits."""
        first, second = self._bend_of_guess()
        # With expected counts k / P is n and (n - k) / (1 - c) is n (1 - sigma).
        ratio = np.where(exact[:, None, :], self.ratio, self.data.trials)
        wrong = 1.0 - self.chance
        missed = np.where(
            exact,
            (self.data.trials - self.data.right).sum(axis=-2) / (1.0 - self.guess),
            (self.data.trials * wrong).sum(axis=-2),
        )
        share = ratio / self.total
        mixed = self.chance * wrong * share
        sharp = (wrong**2 * share).sum(axis=-2) + missed / (1.0 - self.guess)
        np.multiply((self.slope * first)[:, None, :], mixed, out=border[:, :, 2])
        blocks[:, 0, 2] = blocks[:, 2, 0] = self.stretch * first * mixed.sum(axis=-2)
        blocks[:, 1, 2] = blocks[:, 2, 1] = first * (mixed * self.lean).sum(axis=-2)
        blocks[:, 2, 2] = first**2 * sharp - second * exact * self._pull_of_guess()
