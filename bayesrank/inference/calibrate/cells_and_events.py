"""Log-likelihoods of cells and of events, as they change where the parameters move.

Log-odds of a cell depend on the parameters of its system and of its question. So slopes by these,
from two evaluations for each kind of parameter, tell the slope along any direction, and sums over
cells are products of matrices: how many directions there are costs next to nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import batches
from bayesrank.log_odds import logistic
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


@dataclass(frozen=True)
class CellSlopes:
    """Slopes of a function of cells along directions, by the kinds of parameters that move."""

    size: int
    # Of each kind whether it belongs to questions, how fast it moves, (direction, system or
    # question), and slopes by it, (system, question, trial), with one trial where all are alike.
    kinds: list[tuple[bool, Array, Array]]

    def sums(self, weights: Array, over: str = "system") -> Array:
        """Sum by weights (system, question, trial), of shape (direction, other side, trial)."""
        axis = 0 if over == "system" else 1
        found = np.zeros((self.size, weights.shape[1 - axis], weights.shape[2]))
        for of_question, rate, by_cell in self.kinds:
            weighted = weights * by_cell
            if of_question == (over == "system"):
                found += rate[..., np.newaxis] * weighted.sum(axis=axis)
            else:
                found += np.tensordot(rate, weighted, axes=(1, axis))
        return found

    def products(self, weights: Array) -> Array:
        """Sum products of slopes by weights over cells, of shape (direction, direction)."""
        found = np.zeros((self.size, self.size))
        for position, (of_question, rate, by_cell) in enumerate(self.kinds):
            for other_of_question, other, beside in self.kinds[: position + 1]:
                both = (weights * (by_cell * beside)).sum(axis=-1)
                if of_question == other_of_question:
                    each = (rate * both.sum(axis=0 if of_question else 1)) @ other.T
                else:
                    each = rate @ (both.T if of_question else both) @ other.T
                found += each if other is rate else each + each.T
        return found


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
        """Return log-odds (point, system, question, trial), with one trial if all are alike.

        They are 0 for questions that were left out.
        """
        found = self.predictor(named)
        found = found[..., np.newaxis] if found.ndim == 3 else found
        return np.where(np.isfinite(found), found, 0.0)

    def by_question(self, moves: Moves) -> Array:
        """Return what questions add to the scores that move so, of shape (question, direction).

        The parameters of a question go with it: in another sample of questions there are others. So
        each question enters with its likelihood at its own best parameters, and with the means over
        questions to which scores are relative, or which they are.
        """
        slopes = self.slopes(moves, same_questions=False)
        found = slopes.sums(self._moments(moves.at)[0]).sum(axis=-1).T
        if self.mean_of is not None:
            found = found + np.nan_to_num(self.mean_of(moves.at))
        if self.scaling is not None:
            # How scores follow when the mean that is held is another.
            found += np.outer(self.scaling.shares(moves.at), self._pull(self.scaling, moves))
        return found

    def bend(self, moves: Moves) -> Array:
        """Return expected minus second derivatives of the log-likelihood, of shape (direction,)."""
        return np.diag(self.slopes(moves).products(self._moments(moves.at)[1])).copy()

    def _pull(self, scaling: Scaling, moves: Moves) -> Array:
        """Return slopes of what lowering the scaled mean adds, of shape (direction,)."""

        def rise(named: Named) -> Array:
            ends = (scaling.lowered(named, side * _SHIFT) for side in (1.0, -1.0))
            up, down = (self.log_odds(end) for end in ends)
            return (up - down) / (2.0 * _SHIFT)

        residual, noise = self._moments(moves.at)
        bent = self.slopes(moves).sums(noise * rise(moves.at)[0])
        risen = self.slopes(moves, rise).sums(residual)
        return (risen - bent).reshape(len(bent), -1).sum(axis=1)

    def _moments(self, at: Named) -> tuple[Array, Array]:
        """Return residuals and variances of the numbers right at a point, by cell or by trial."""
        logit, data = self.log_odds(at)[0], self.data
        right, trials = (counts[..., np.newaxis] for counts in data.binary_counts)
        if logit.shape[-1] > 1:
            right, trials = data.outcomes == 1, data.observed
        chance = logistic(logit)
        return right - trials * chance, trials * chance * (1.0 - chance)

    def slopes(
        self,
        moves: Moves,
        function: Callable[[Named], Array] | None = None,
        *,
        same_questions: bool = True,
    ) -> CellSlopes:
        """Return the slopes of log-odds, or of another function of cells."""
        function = self.log_odds if function is None else function
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
                width = 2.0 * np.expand_dims(far, (0, 2) if of_question else (1, 2))
                slope = np.divide(up - down, width, out=np.zeros_like(up), where=width > 0.0)
                if slope.any():
                    found.append((of_question, along, slope))
        return CellSlopes(len(moves.directions), found)


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
