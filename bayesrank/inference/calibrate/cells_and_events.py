"""Log-likelihoods of cells and of events, as they change where the parameters move.

Log-odds of a cell depend on the parameters of its system and of its question. So slopes by these,
from two evaluations for each kind of parameter, tell the slope along any direction, and sums over
cells are products of matrices: how many directions there are costs next to nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import logistic
from bayesrank.inference.resample.arguments import batches
from bayesrank.responses import Responses

Array = NDArray[np.float64]
Named = Mapping[str, Array]

# Parameters that belong to a question. In another sample of questions there are others.
QUESTION_PARAMETERS = frozenset(
    {"difficulty", "discrimination", "guessing", "intercept", "loading"}
)

# Largest move of a parameter for a slope: its error is of the order of the square, and that of
# rounding of the inverse.
_STEP = 1e-4

# Move of a mean over questions, for a second difference.
_SHIFT = 1e-3

# Part of a standard deviation over which a curvature is taken.
_TENTH = 0.1


@dataclass(frozen=True)
class Moves:
    """Moves of the parameters from a point."""

    # Maps free coordinates of shape (point, p) to parameters by name, with a leading axis.
    unpack: Callable[[Array], Named]
    # (p,): where they begin.
    point: Array
    # (direction, p): where they go.
    directions: Array

    @cached_property
    def at(self) -> Named:
        """The parameters at the point, each with a leading axis of length one."""
        return self.unpack(self.point[np.newaxis])

    @cached_property
    def rates(self) -> Named:
        """How fast the parameters move, each of shape (direction, ...)."""
        blocks = []
        for up, down, step in self.ends(len(self.point)):
            with np.errstate(invalid="ignore"):  # questions that were left out stay where they are
                rises = {name: np.nan_to_num(up[name] - down[name]) for name in up}
            blocks.append({n: (x.T / (2.0 * step)).T for n, x in rises.items()})
        return {name: np.concatenate([block[name] for block in blocks]) for name in self.at}

    def ends(self, size: int, length: float | None = None) -> Iterator[tuple[Named, Named, Array]]:
        """Yield the parameters on both sides of the point, for blocks of directions, and how far.

        As far as suits a slope if no `length` is given; `size` is how many doubles the caller needs
        for a direction.
        """
        for some in batches(len(self.directions), max(size, len(self.point))):
            block = self.directions[some]
            largest = np.maximum(np.abs(block).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
            far = _STEP / largest if length is None else np.full(len(block), length)
            moves = far[:, np.newaxis] * block
            yield self.unpack(self.point + moves), self.unpack(self.point - moves), far


class _Slope(NamedTuple):
    """The slope of a function of cells by one kind of parameter, and how this moves."""

    of_question: bool
    rate: Array  # (direction, system or question)
    by_cell: Array  # (system, question), or with trials


@dataclass(frozen=True)
class Scaling:
    """A mean over questions that is held, and so sets the origin or the unit of the scores.

    Another sample of questions has another mean.
    """

    # The quantity whose mean is held, (point, question), NaN or infinite where left out.
    of: Callable[[Named], Array]
    # Parameters with the quantity of all questions lower by some amount.
    lowered: Callable[[Named, float], Named]

    def shares(self, named: Named) -> Array:
        """Return what each question adds to the mean, of shape (question,), at a single point."""
        values = self.of(named)[0]
        kept = np.isfinite(values)
        return np.where(kept, values, 0.0) / max(int(kept.sum()), 1)


@dataclass(frozen=True)
class CellModel:
    """Independent right or wrong answers, with log-odds for every system and question."""

    data: Responses
    # Log-odds of right answers from named parameters, (point, system, question) or with trials, of
    # which each depends on the parameters of its system and of its question; infinite or NaN for
    # questions that were left out.
    predictor: Callable[[Named], Array]
    # What sets the origin or the unit of the scores, if not the systems.
    scaling: Scaling | None = None
    # Shares of each question in scores that are means over questions, (question, system).
    mean_of: Callable[[Named], Array] | None = None

    def log_odds(self, named: Named) -> Array:
        """Return log-odds, 0 for questions that were left out."""
        found = self.predictor(named)
        return np.where(np.isfinite(found), found, 0.0)

    def by_question(self, moves: Moves) -> Array:
        """Return what questions add to the scores that move so, of shape (question, direction).

        The parameters of a question go with it: in another sample of questions there are others. So
        each question enters with its likelihood at its own best parameters, and with the means over
        questions to which scores are relative, or which they are.
        """
        found = self.sums(self._moments(moves.at)[0], moves, same_questions=False)
        found = (found if found.ndim == 2 else found.sum(axis=-1)).T
        if self.mean_of is not None:
            found = found + np.nan_to_num(self.mean_of(moves.at))
        if self.scaling is not None:
            # How scores follow when the mean that is held is another.
            found += np.outer(self.scaling.shares(moves.at), self._pull(self.scaling, moves))
        return found

    def bend(self, moves: Moves) -> Array:
        """Return expected minus second derivatives of the log-likelihood, of shape (direction,)."""
        return np.diag(self.products(self._moments(moves.at)[1], moves)).copy()

    def sums(
        self, weights: Array, moves: Moves, *, over: str = "system", same_questions: bool = True
    ) -> Array:
        """Sum slopes of log-odds over systems or questions, by weights (system, question, ...)."""
        slopes = self._slopes(self.log_odds, moves, same_questions=same_questions)
        return _sums(weights, slopes, len(moves.directions), over)

    def products(self, weights: Array, moves: Moves) -> Array:
        """Sum products of slopes of log-odds over cells, of shape (direction, direction)."""
        found = np.zeros((len(moves.directions),) * 2)
        slopes = self._slopes(self.log_odds, moves)
        for position, one in enumerate(slopes):
            for other in slopes[: position + 1]:
                both = _weighted(weights, one.by_cell * other.by_cell)
                both = both if both.ndim == 2 else both.sum(axis=-1)
                if one.of_question == other.of_question:
                    each = (one.rate * both.sum(axis=0 if one.of_question else 1)) @ other.rate.T
                else:
                    each = one.rate @ (both.T if one.of_question else both) @ other.rate.T
                found += each if one is other else each + each.T
        return found

    def _pull(self, scaling: Scaling, moves: Moves) -> Array:
        """Return slopes of what lowering the scaled mean adds, of shape (direction,)."""

        def rise(named: Named) -> Array:
            ends = (scaling.lowered(named, side * _SHIFT) for side in (1.0, -1.0))
            up, down = (self.log_odds(end) for end in ends)
            return (up - down) / (2.0 * _SHIFT)

        residual, noise = self._moments(moves.at)
        bent = self.sums(noise * rise(moves.at)[0], moves)
        risen = _sums(residual, self._slopes(rise, moves), len(moves.directions))
        return (risen - bent).reshape(len(bent), -1).sum(axis=1)

    def _moments(self, at: Named) -> tuple[Array, Array]:
        """Return residuals and variances of the numbers right at a point, by cell or by trial."""
        logit, data = self.log_odds(at)[0], self.data
        by_cell = logit.ndim == 2
        right, trials = data.binary_counts if by_cell else (data.outcomes == 1, data.observed)
        chance = logistic(logit)
        return right - trials * chance, trials * chance * (1.0 - chance)

    def _slopes(
        self, function: Callable[[Named], Array], moves: Moves, *, same_questions: bool = True
    ) -> list[_Slope]:
        """Return the slopes of a function of cells by each kind of parameter that moves."""
        found, rates = [], moves.rates.values()
        largest = max(1.0, *(float(np.abs(rate).max(initial=0.0)) for rate in rates))
        for name, rate in moves.rates.items():
            of_question = name in QUESTION_PARAMETERS
            # Single numbers are no parameters of a predictor, but of a prior.
            if rate.ndim == 1 or (of_question and not same_questions):
                continue
            size = self.data.shape[1 if of_question else 0]
            for place in np.ndindex(rate.shape[2:]):
                along = rate[(..., *place)]
                if along.shape[1] != size:
                    continue  # no parameter of a predictor, but what one is made of
                # As far as the free coordinates would move it: what is positive stays so.
                far = _STEP / largest * np.abs(along).max(axis=0, initial=0.0)
                up, down = (
                    function({**moves.at, name: _moved(moves.at[name], place, side)})[0]
                    for side in (far, -far)
                )
                shape = [1] * up.ndim
                shape[1 if of_question else 0] = size
                width = 2.0 * far.reshape(shape)
                slope = np.divide(up - down, width, out=np.zeros_like(up), where=width > 0.0)
                if slope.any():
                    found.append(_Slope(of_question, along, slope))
        return found


@dataclass(frozen=True)
class EventModel:
    """Events of one question and trial each, with right and wrong systems."""

    data: Responses
    # Log-likelihoods (point, event) of events from named parameters and the right and wrong
    # systems, both (event, system).
    log_chance: Callable[[Named, NDArray[np.bool_], NDArray[np.bool_]], Array]

    def by_trial(self, moves: Moves) -> Array:
        """Return slopes of the log-likelihoods of events, of shape (question, trial, direction)."""
        slopes = [
            (self._chances(up) - self._chances(down)) / (2.0 * step[:, np.newaxis])
            for up, down, step in moves.ends(self.data.outcomes.size)
        ]
        found = np.zeros((*self.data.shape[1:], len(moves.directions)))
        found.reshape(-1, len(moves.directions))[self._events[0]] = np.concatenate(slopes).T
        return found

    def bend(self, moves: Moves) -> Array:
        """Return minus second differences of the log-likelihood, of shape (direction,)."""
        middle, found = self._chances(moves.at).sum(), []
        for up, down, _ in moves.ends(self.data.outcomes.size, _TENTH):
            one, other = (self._chances(end).sum(axis=1) for end in (up, down))
            found.append((2.0 * middle - one - other) / _TENTH**2)
        return np.concatenate(found)

    def _chances(self, named: Named) -> Array:
        return self.log_chance(named, *self._events[1:])

    @cached_property
    def _events(self) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where events are among questions and trials, and who was right and wrong."""
        columns = self.data.outcomes.reshape(len(self.data.systems), -1).T
        right, wrong = columns == 1, columns == 0
        (where,) = np.nonzero(right.any(axis=1) & wrong.any(axis=1))
        return where, right[where], wrong[where]


type UnitModel = CellModel | EventModel


def _moved(values: Array, place: tuple[int, ...], by: Array) -> Array:
    """Return parameters of shape (1, row, ...) with those of one place elsewhere."""
    moved = values.copy()
    moved[(..., *place)] += by
    return moved


def _weighted(weights: Array, values: Array) -> Array:
    """Return products of weights and values, of which either may be the same for all trials."""
    if values.ndim < weights.ndim:
        values = values[..., np.newaxis]
    return (weights if values.ndim == weights.ndim else weights[..., np.newaxis]) * values


def _sums(weights: Array, slopes: list[_Slope], size: int, over: str = "system") -> Array:
    """Sum slopes over systems or questions by weights, of shape (direction, other side, ...)."""
    axis = 0 if over == "system" else 1
    found = np.zeros((size, weights.shape[1 - axis], *weights.shape[2:]))
    for slope in slopes:
        weighted = _weighted(weights, slope.by_cell)
        if slope.of_question == (over == "system"):
            total = weighted.sum(axis=axis)
            found += slope.rate.reshape(*slope.rate.shape, *(1,) * (total.ndim - 1)) * total
        else:
            found += np.tensordot(slope.rate, weighted, axes=(1, axis))
    return found
