r"""Counts of right answers, their likelihoods, and approximations to begin with.

The log-odds of system l on question m, in trial t, are

.. math:: x_{ltm} = (D u_l)_t + d_m

for a design D of the trials; or :math:`x_{lm} = e^{\alpha_m} u_l + d_m`, with a chance of
:math:`c_m = u\,\sigma(g_m)` to be right by guessing; or, with several abilities,
:math:`x_{lm} = u_l^\top a_m + d_m`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.newton import Array
from bayesrank.inference.fits.two_sided import Cells, Exact, Expansion
from bayesrank.log_odds import logistic, smoothed_log_odds
from bayesrank.priors import POOLED_DF

# exp of a difference within twice this bound neither overflows nor underflows.
_LARGEST = 300.0
_TINY = 1e-300


@dataclass(frozen=True)
class Guessing:
    """The chance of guessing: known (0 for 2PL), or None for one per question, up to `upper`."""

    fixed: float | None = 0.0
    upper: float = 0.5

    def probability(self, logit: Array) -> Array | float | None:
        """Return guessing probabilities from their logits, or the known one; None for 0."""
        return self.upper * logistic(logit) if self.fixed is None else self.fixed or None


NO_GUESSING = Guessing()


@dataclass(frozen=True)
class Rasch(Cells):
    """Answers to questions that differ only in difficulty, by systems that may change over trials.

    `by_trial`, (resample, system, trial), and `by_question`, (resample, question), are numbers
    right; counts over trials have one on that axis. `trials` broadcast to (resample, system, trial,
    question). `design` is D, of shape (trial, coordinate); by default a system has one coordinate
    per trial.
    """

    by_trial: Array
    by_question: Array
    trials: Array
    design: Array | None = None
    concave: ClassVar[bool] = True

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
        rows = self.trials.reshape(len(self.trials), -1, self.trials.shape[-1])
        return (self.by_trial[0].size // rows.shape[1]) * rows.sum(axis=1)

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the answers of some resamples."""
        return type(self)(
            self.by_trial[index], self.by_question[index], self.trials[index], self.design
        )

    @property
    def answers(self) -> Array | None:
        """Data that identify kinds of questions, (row, question); None if sums do not suffice."""
        trials = self.trials[0].reshape(-1, self.trials.shape[-1])
        if (trials != trials[:1]).any():
            return None
        return np.concatenate([self.by_question[:1], trials[:1]])

    def merged(self, first: NDArray[np.intp], counts: Array) -> Self:
        """Return the answers to the first question of each kind, weighted by its size."""
        trials = self.trials[:, :1, :1]  # as many in all cells of a question
        return replace(
            self,
            by_question=counts * self.by_question[:, first],
            trials=counts * trials[..., first],
        )

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        each = self.trials.reshape(*self.trials.shape[:2], -1).sum(axis=2)
        played = each.max(axis=1) * (self.by_trial.shape[2] // self.trials.shape[2])
        return np.maximum(played, self.asked.max(axis=1))

    def reach(self, u: Array, v: Array) -> Array:
        """Return the largest change of any log-odds by a step, of shape (resample,)."""
        states, easy = self._states(u), v[..., 0]
        up = states.max(axis=(1, 2)) + easy.max(axis=1)
        return np.maximum(up, -states.min(axis=(1, 2)) - easy.min(axis=1))

    def expand(
        self, u: Array, v: Array, exact: Exact = None, *, with_value: bool = False
    ) -> Expansion:
        """Return the gradient and the negative Hessian, which no answers enter."""
        states, easy, size = self._states(u), v[..., 0], len(u)
        cells, value = np.empty((2, *states.shape, easy.shape[-1])), None
        expected, variance = cells[0], cells[1]  # numbers right: at first odds, and 1 more
        np.multiply(*_odds(states, easy), out=expected)
        np.add(expected, 1.0, out=variance)
        if with_value:
            value = np.vecdot(self.by_trial.reshape(size, -1), states.reshape(size, -1))
            value += np.vecdot(self.by_question, easy)
            value -= np.add.reduce((np.log(variance) * self.trials).reshape(size, -1), axis=1)
        np.reciprocal(variance, out=variance)
        expected *= variance
        expected *= self.trials
        variance *= expected
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
class _Counts(Cells):
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

    @property
    def answers(self) -> Array:
        """Data that identify kinds of questions, of shape (row, question)."""
        return np.concatenate([self.right[0], self.trials[0]])

    def merged(self, first: NDArray[np.intp], counts: Array) -> Self:
        """Return the answers to the first question of each kind, weighted by its size."""
        right, trials = (counts * table[..., first] for table in (self.right, self.trials))
        return replace(self, right=right, trials=trials)


@dataclass(frozen=True)
class Lines(_Counts):
    """Answers whose log-odds are linear in one ability, with or without guessing.

    With `offset` the coordinate of the difficulty of a question is d / (1 + a) for its slope a.
    """

    guessing: Guessing = NO_GUESSING
    offset: bool = False
    curved: ClassVar[bool] = True

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
        self, u: Array, v: Array, exact: Exact = None, *, with_value: bool = False
    ) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        slope, lean, x, guess = self.log_odds(u, v)
        by_cell = None if exact is None else exact[:, np.newaxis]
        (n_systems, _, n_questions, kinds), batch = self.shape, len(u)
        of_cells = 2 if guess is None else 5
        # Derivatives of the cells, then those by the log-odds times `lean`, and two.
        mixed = min(of_cells, 3)
        cells = np.empty((of_cells + mixed + 2, batch, n_systems, n_questions))
        found, leaning = cells[:of_cells], cells[of_cells:-2]
        value = binomial(
            self.right, self.trials, x, guess, by_cell, found=found, with_value=with_value
        )
        np.multiply(found[:mixed], lean, out=leaning)
        pull, weight = found[0], found[1]
        told = pull if by_cell is None else pull * by_cell
        bend = np.subtract(leaning[1], told, out=cells[-2])
        np.multiply(bend, lean, out=cells[-1])
        sums = np.ones(n_systems) @ cells  # NumPy's own take longer
        by_kind, by_lean = sums[:of_cells], sums[of_cells:]
        # With the axes of kinds first in memory.
        gv, vv = np.empty((kinds, batch, n_questions)), np.empty((kinds, kinds, batch, n_questions))
        uv = np.empty((kinds, batch, n_systems, n_questions))
        gv[0], gv[1], vv[0, 0], vv[1, 1] = by_kind[0], by_lean[0], by_kind[1], sums[-1]
        np.multiply(weight, slope, out=uv[0])
        np.multiply(bend, slope, out=uv[1])
        crossed, stretch = by_lean[1], 1.0
        if self.offset:
            steep = slope[:, 0]
            stretch = 1.0 + steep
            crossed = crossed + steep * sums[-2]
            gv[0] *= stretch
            vv[0, 0] *= stretch * stretch
            uv[0] *= stretch[:, np.newaxis]
        vv[0, 1] = vv[1, 0] = crossed
        if isinstance(guess, np.ndarray):  # it is estimated
            share = guess[:, 0] / self.guessing.upper
            first = guess[:, 0] * (1.0 - share)
            second, by_guess = first * (1.0 - 2.0 * share), by_kind[3]
            gv[2] = first * by_guess
            if exact is not None:
                by_guess = by_guess * exact
            vv[0, 2] = vv[2, 0] = first * stretch * by_kind[2]
            vv[1, 2] = vv[2, 1] = first * by_lean[2]
            vv[2, 2] = first * first * by_kind[4] - second * by_guess
            np.multiply(found[2], slope * first[:, np.newaxis], out=uv[2])
        gu = pull @ slope.swapaxes(1, 2)
        uu = (weight @ (slope * slope).swapaxes(1, 2))[..., np.newaxis]
        beside = uv.transpose(1, 2, 3, 0)[:, :, np.newaxis]
        return Expansion(gu, uu, gv.transpose(1, 2, 0), vv.transpose(2, 3, 0, 1), beside, value)

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

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Numbers of systems, their coordinates, questions and their parameters."""
        _, n_systems, n_questions = self.right.shape
        return n_systems, self.n_factors, n_questions, self.n_factors + 1

    def scale(self, v: Array) -> Array:
        """Return the largest number of answers behind a parameter, of shape (resample,)."""
        return np.maximum(*(self.trials.sum(axis=axis).max(axis=-1) for axis in (1, 2)))

    def expand(
        self, u: Array, v: Array, exact: Exact = None, *, with_value: bool = False
    ) -> Expansion:
        """Return the gradient and the negative Hessian; see :class:`Cells`."""
        found, loading = np.empty((2, *self.right.shape)), v[..., :-1]
        x = u @ loading.swapaxes(1, 2) + v[:, np.newaxis, :, -1]
        value = binomial(self.right, self.trials, x, found=found, with_value=with_value)
        pull, weight = found[0], found[1]
        batch, n_systems, a = u.shape
        n_questions, b = v.shape[1:]
        lines = np.concatenate([u, np.ones((batch, n_systems, 1))], axis=-1)
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


def binomial(
    right: Array,
    trials: Array,
    x: Array,
    guess: Array | float | None = None,
    exact: NDArray[np.bool_] | None = None,
    *,
    found: Array,
    with_value: bool = False,
) -> Array | None:
    """Find derivatives of binomial log-likelihoods; return their sum, up to constants, if asked.

    `guess` is the chance of being right by a guess, above 0, or None. `found`, (kind, resample,
    system, question), gets the first derivative by the log-odds and minus the second; and with a
    guess minus the second by both, the first by its chance, and minus the second by that. `exact`
    says where the second ones are of the counts observed, everywhere by default, and not of their
    expectations.
    """
    pull, weight = found[0], found[1]
    odds = np.abs(x)
    np.negative(odds, out=odds)
    np.exp(odds, out=odds)
    sides = odds + 1.0
    value = np.maximum(x, 0.0) + np.log(sides) if with_value else None
    np.reciprocal(sides, out=sides)
    chance = np.minimum(x, 0.0)  # faster than a choice between them by the sign of x
    np.exp(chance, out=chance)
    chance *= sides
    odds *= sides  # the smaller of both chances, with all its digits
    spread = sides * odds
    if guess is None:
        if value is not None:
            value = right * x - trials * value
        np.multiply(trials, chance, out=pull)
        np.subtract(right, pull, out=pull)
        np.multiply(trials, spread, out=weight)
        return _totals(value)
    wrong, total = np.exp(-np.maximum(x, 0.0)), (1.0 - guess) * chance
    wrong *= sides
    total += guess
    np.maximum(total, _TINY, out=total)
    ratio, missed = right / total, trials - right
    if value is not None:
        value = right * np.log(total) + missed * (np.log1p(-guess) - value)
    missed /= 1.0 - guess
    mixed, by_guess, sharp = found[2], found[3], found[4]
    np.subtract(ratio, trials, out=pull)
    pull *= chance
    np.multiply(wrong, ratio, out=by_guess)
    by_guess -= missed
    if exact is not None:
        ratio, missed = np.where(exact, ratio, trials), np.where(exact, missed, trials * wrong)
    share = np.divide(ratio, total, out=total)
    np.multiply(spread, share, out=mixed)
    np.subtract(trials, share * guess, out=weight)
    weight *= spread
    np.multiply(wrong, wrong, out=sharp)
    sharp *= share
    missed /= 1.0 - guess
    sharp += missed
    return _totals(value)


def _totals(value: Array | None) -> Array | None:
    """Return sums over systems and questions."""
    return None if value is None else np.add.reduce(value.reshape(len(value), -1), axis=1)


def _squares(rows: Array) -> Array:
    """Return the products of all columns with all, of shape (resample, row, k k)."""
    products = rows[..., np.newaxis] * rows[..., np.newaxis, :]
    return products.reshape(*rows.shape[:2], -1)


def _odds(states: Array, easy: Array) -> tuple[Array, Array]:
    """Return two factors of the odds, with the axes of answers: one exponential per parameter."""
    by_state, by_question = (
        np.exp(np.minimum(np.maximum(values, -_LARGEST), _LARGEST)) for values in (states, easy)
    )
    return by_state[..., np.newaxis], by_question[:, np.newaxis, np.newaxis]


@dataclass(frozen=True)
class ItemCounts:
    """Counts per system and question, flattened over resamples.

    `right` and `trials` are of shape (resample, system, question), 0 in questions that are left
    out; `by_question` and `asked`, (resample, question), are their sums. `left_out`, of that shape,
    are questions that carry no information, and `limit`, (..., question), is their difficulty:
    minus infinity if everybody was right, infinity if everybody was wrong, NaN if nobody was asked;
    0 for the others, and None where all are kept. `lead` is the shape of the resample axes.
    """

    right: Array
    trials: Array
    by_question: Array
    asked: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    @cached_property
    def by_system(self) -> Array:
        """Number right over questions, of shape (resample, system)."""
        return self.right.sum(axis=-1)

    @cached_property
    def played(self) -> Array:
        """Number of trials over questions, of shape (resample, system)."""
        return self.trials.sum(axis=-1)


def item_counts(correct: ArrayLike, trials: ArrayLike, *, drop: bool) -> ItemCounts:
    """Flatten counts of shape (..., system, question), and leave out questions without information.

    With `drop`, those are all that every system answers alike, else those that nobody was asked.
    """
    tables = (np.asarray(table, dtype=np.float64) for table in (correct, trials))
    right, total = np.broadcast_arrays(*tables)
    lead, shape = right.shape[:-2], (-1, *right.shape[-2:])
    right, total = right.reshape(shape), total.reshape(shape)
    by_question, asked = right.sum(axis=-2), total.sum(axis=-2)
    none_wrong, none_right = (total - right).sum(axis=-2) <= 0.0, by_question <= 0.0
    left_out = none_wrong | none_right if drop else none_wrong & none_right
    limit = None
    if left_out.any():
        keep = ~left_out
        limit = np.select([keep, ~none_right, ~none_wrong], [0.0, -np.inf, np.inf], np.nan)
        limit = limit.reshape(*lead, -1)
        right, total = right * keep[:, None, :], total * keep[:, None, :]
        by_question, asked = by_question * keep, asked * keep
    return ItemCounts(right, total, by_question, asked, left_out, limit, lead)


def counted(data: ItemCounts) -> Rasch:
    """Return the Rasch likelihood of counts over trials."""
    return Rasch(data.by_system[..., np.newaxis], data.by_question, data.trials[:, :, np.newaxis])


def limited(difficulty: Array, limit: Array | None) -> Array:
    """Return difficulties, those of questions that were left out at their limits."""
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out."""
    return values if limit is None else np.where(limit == 0.0, values, np.nan)


def shrunk_log_odds(successes: Array, trials: Array) -> Array:
    """Return smoothed log-odds of counts, (resample, n), shrunk as the hierarchical prior would.

    Its variance is what is left of their spread beyond that of their errors.
    """
    log_odds, n = smoothed_log_odds(successes, trials), successes.shape[-1]
    mean = log_odds.sum(axis=-1, keepdims=True) / n
    deviation, chance = log_odds - mean, (successes + 0.5) / (trials + 1.0)
    # The variance of log-odds is 1 / (n p q).
    noise = 1.0 / (chance * (1.0 - chance) * np.maximum(trials, 1.0))
    beyond = np.maximum((deviation * deviation - noise).sum(axis=-1, keepdims=True), 0.0)
    variance = (POOLED_DF + beyond) / (POOLED_DF + n - 1.0)
    return mean + deviation * (variance / (variance + noise))


def stretched(ability: Array, difficulty: Array, weights: Array) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Both are stretched by how much the other side spreads: log-odds of systems, and minus those of
    questions, which are centred here with `weights`, (resample, question).

    References
    ----------
    .. [1] L. Cohen. Approximate expressions for parameter estimates in the Rasch model. British
       Journal of Mathematical and Statistical Psychology 32 (1979).
       https://doi.org/10.1111/j.2044-8317.1979.tb00756.x
    """
    centre = (difficulty * weights).sum(axis=-1) / weights.sum(axis=-1)
    difficulty = difficulty - centre[:, None]
    spread, other = _variance(ability), _variance(difficulty)
    both = np.concatenate([other, spread], axis=-1)
    factors = np.sqrt((1.0 + both / 2.89) / np.maximum(1.0 - spread * other / 8.35, 0.25))
    return ability * factors[:, :1], difficulty * factors[:, 1:]


def _variance(values: Array) -> Array:
    return np.vecdot(values, values)[:, np.newaxis] / values.shape[-1]
