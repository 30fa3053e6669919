r"""Log-likelihoods of responses by unit of variation, and their slopes along directions.

One function per row of the catalog: ``model(data, **options)`` with the options of the row's
factory returns a :class:`CellModel` or an :class:`EventModel`. Parameters have the names that
kernels and factories give them, and a leading axis of points: ``score`` has the shape
(point, system), ``difficulty`` (point, question) and so on.

Log-odds of a cell depend on the parameters of its system and of its question. So two evaluations
for each kind of parameter give the slope along any direction. Sums over cells are matrix products,
and the time hardly depends on the number of directions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.inference.fits.item_likelihoods import binomial
from bayesrank.responses import Responses
from bayesrank.time_axis import check_time_axis

Array = NDArray[np.float64]
Named = Mapping[str, Array]

# Parameters that belong to a question. In another sample of questions there are others.
QUESTION_PARAMETERS = frozenset(
    {"difficulty", "discrimination", "guessing", "intercept", "loading"}
)

# Largest step of a parameter for a slope. The error of the difference is of the order of its
# square, the error of rounding of the order of its inverse.
STEP = 1e-4

# Move of a mean over questions, for a second difference: its square is the error.
_SHIFT = 1e-3

# Part of a standard deviation over which a curvature is taken: its square is the error.
_TENTH = 0.1


@dataclass(frozen=True)
class Moves:
    """The directions along which parameters move from a point, and how fast."""

    # Maps free coordinates of shape (point, p) to parameters by name, with a leading axis.
    unpack: Callable[[Array], Named]
    # (p,)
    point: Array
    # (direction, p)
    directions: Array

    @cached_property
    def at(self) -> Named:
        """The parameters at the point, each with a leading axis of length one."""
        return self.unpack(self.point[np.newaxis])

    @cached_property
    def rates(self) -> Named:
        """Derivatives of the parameters along the directions, each of shape (direction, ...)."""
        blocks = [{name: values[:0] for name, values in self.at.items()}]  # a single system
        for up, down, step in self.ends(len(self.point)):
            with np.errstate(invalid="ignore"):  # questions that were left out do not move
                rises = {name: np.nan_to_num(up[name] - down[name]) for name in up}
            blocks.append({n: (x.T / (2.0 * step)).T for n, x in rises.items()})
        return {name: np.concatenate([block[name] for block in blocks]) for name in self.at}

    def ends(self, size: int, length: float | None = None) -> Iterator[tuple[Named, Named, Array]]:
        """Yield the parameters on both sides of the point, for blocks of directions, and the steps.

        Steps are of the given `length`, or by default of the length for a slope; `size` is the
        number of doubles that the caller needs for a direction.
        """
        for some in batches(len(self.directions), max(size, len(self.point))):
            block = self.directions[some]
            largest = np.maximum(np.abs(block).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
            far = STEP / largest if length is None else np.full(len(block), length)
            moves = far[:, np.newaxis] * block
            yield self.unpack(self.point + moves), self.unpack(self.point - moves), far


@dataclass(frozen=True)
class CellSlopes:
    """Slopes of a function of cells (system l, question m, trial n) along directions s.

    In sums over cells each is the subscript of an axis.
    """

    size: int
    # For each kind of parameter: the axes of its rates beside that of directions, l, m or lm; the
    # rates; and slopes by it, of shape (l, m, n), with one trial where all are equal.
    kinds: Sequence[tuple[str, Array, Array | float]]

    @classmethod
    def of_scores(cls, kinds: Iterable[tuple[str, Array, Array]]) -> Self:
        """Return those of the scores of a :class:`~bayesrank.inference.fits.marginal.MarginalFit`.

        Directions are those of the scores.
        """
        found = [(axis, rate, by_cell[..., np.newaxis]) for axis, rate, by_cell in kinds]
        return cls(len(found[0][1]), found)

    def sums(self, weights: Array, kept: str = "m") -> Array:
        """Sum over systems or questions by weights (l, m, n), of shape (direction, kept, n)."""
        found = np.zeros((self.size, weights.shape["lm".index(kept)], weights.shape[2]))
        for kind, rate, by_cell in self.kinds:
            weighted = weights * by_cell
            found += np.einsum(f"s{kind},lmn->s{kept}n", rate, weighted, optimize=True)
        return found

    def products(self, weights: Array) -> Array:
        """Sum products of slopes by weights over cells, of shape (direction, direction)."""
        found = np.zeros((self.size, self.size))
        for (kind, rate, by_cell), (other, beside, by) in product(self.kinds, repeat=2):
            both = (weights * (by_cell * by)).sum(axis=-1)
            found += np.einsum(f"s{kind},lm,t{other}->st", rate, both, beside, optimize=True)
        return found


@dataclass(frozen=True)
class CellModel:
    """Independent right or wrong answers, with log-odds for every system and question."""

    data: Responses
    # Returns log-odds of right answers from named parameters, (point, system, question) or with
    # trials. Each depends on the parameters of its system and of its question; infinite or NaN for
    # questions that were left out.
    predictor: Callable[[Named], Array]
    # The parameter whose mean over questions is fixed, if this fixes the origin of the scores, or
    # their scale (the mean log discrimination). The mean differs between samples of questions.
    fixed: Literal["difficulty", "discrimination"] | None = None
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
        """Return the contributions of questions to the scores, of shape (question, direction).

        Another sample of questions has other question parameters. So each question contributes its
        likelihood at its own best parameters. It also contributes its term of a mean over questions
        that fixes the origin of the scores, or of scores that are such means.
        """
        slopes = self.slopes(moves, same_questions=False)
        found = slopes.sums(self._moments(moves.at)[0]).sum(axis=-1).T
        if self.mean_of is not None:
            found = found + np.nan_to_num(self.mean_of(moves.at))
        if self.fixed is not None:
            values = moves.at[self.fixed][0]
            values = np.log(values) if self.fixed == "discrimination" else values
            kept = np.isfinite(values)
            shares = np.where(kept, values, 0.0) / max(int(kept.sum()), 1)
            found += np.outer(shares, self._slope_by_mean(moves))
        return found

    def information(self, moves: Moves) -> Array:
        """Return the expected information along each direction, of shape (direction,)."""
        return np.diag(self.slopes(moves).products(self._moments(moves.at)[1])).copy()

    def _slope_by_mean(self, moves: Moves) -> Array:
        """Return slopes of the scores as the fixed mean falls, of shape (direction,)."""

        def lowered(named: Named, amount: float) -> Array:
            if self.fixed == "difficulty":
                return self.log_odds({**named, "difficulty": named["difficulty"] - amount})
            # The log-odds of a system with score 0 do not change.
            slope, difficulty = named["discrimination"], named["difficulty"]
            factor = np.exp(-amount)
            return self.log_odds(
                {**named, "discrimination": slope * factor, "difficulty": difficulty / factor}
            )

        def rise(named: Named) -> Array:
            return (lowered(named, _SHIFT) - lowered(named, -_SHIFT)) / (2.0 * _SHIFT)

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
        return moments(right, trials, logit)

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
            # Others are parameters of a prior, or only a part of another parameter.
            sized = rate.shape[1:2] == self.data.shape[of_question : of_question + 1]
            if not sized or (of_question and not same_questions):
                continue
            for place in np.ndindex(rate.shape[2:]):
                along = rate[(..., *place)]
                # Steps of the length of those of the free coordinates, so that no sign changes.
                far = STEP / largest * np.abs(along).max(axis=0, initial=0.0)
                up, down = (np.array(moves.at[name]) for _ in range(2))
                up[(..., *place)] += far
                down[(..., *place)] -= far
                up, down = (function({**moves.at, name: end})[0] for end in (up, down))
                width = 2.0 * np.expand_dims(far, (0, 2) if of_question else (1, 2))
                slope = np.divide(up - down, width, out=np.zeros_like(up), where=width > 0.0)
                if slope.any():
                    found.append(("lm"[of_question], along, slope))
        return CellSlopes(len(moves.directions), found)


@dataclass(frozen=True)
class EventModel:
    """Events of one question and trial each, with right and wrong systems."""

    data: Responses
    # From the right and the wrong systems of events, both (event, system), returns a function of
    # named parameters for their log-likelihoods, (point, event).
    log_chance: Callable[[NDArray[np.bool_], NDArray[np.bool_]], Callable[[Named], Array]]

    def by_trial(self, moves: Moves) -> Array:
        """Return slopes of the log-likelihoods of events, of shape (question, trial, direction)."""
        slopes = [
            (self._chances(up) - self._chances(down)) / (2.0 * step[:, np.newaxis])
            for up, down, step in moves.ends(self.data.outcomes.size)
        ]
        found = np.zeros((*self.data.shape[1:], len(moves.directions)))
        found.reshape(-1, len(moves.directions))[self._where] = np.concatenate(slopes).T
        return found

    def information(self, moves: Moves) -> Array:
        """Return the observed information along each direction, of shape (direction,)."""
        middle, found = self._chances(moves.at).sum(), []
        for up, down, _ in moves.ends(self.data.outcomes.size, _TENTH):
            one, other = (self._chances(end).sum(axis=1) for end in (up, down))
            found.append((2.0 * middle - one - other) / _TENTH**2)
        return np.concatenate(found)

    @cached_property
    def _columns(self) -> NDArray[np.int8]:
        return self.data.outcomes.reshape(len(self.data.systems), -1).T

    @cached_property
    def _where(self) -> NDArray[np.intp]:
        """Places of events among questions and trials."""
        both = (self._columns == 1).any(axis=1) & (self._columns == 0).any(axis=1)
        return np.flatnonzero(both)

    @cached_property
    def _chances(self) -> Callable[[Named], Array]:
        events = self._columns[self._where]
        return self.log_chance(events == 1, events == 0)


type UnitModel = CellModel | EventModel


def moments(right: NDArray[Any], trials: NDArray[Any], logit: Array) -> tuple[Array, Array]:
    """Return the residuals of numbers right under their log-odds, and their variances."""
    found = np.empty((2, *logit.shape))
    binomial(right.astype(float), trials.astype(float), logit, found=found)
    return found[0], found[1]


def rasch(data: Responses, *, ability_mean: float | None = None, **_: Any) -> CellModel:
    """Return the Rasch model; with a known mean ability scores are relative to this mean.

    The parameter of a question is then its intercept, since answers do not identify the mean.
    """
    if ability_mean is None:
        return CellModel(data, _rasch_log_odds, "difficulty")
    return CellModel(data, lambda named: _sums(named["contrast"], named["intercept"]))


def irt_2pl(data: Responses, *, centred: bool = True, **_: Any) -> CellModel:
    """Return the 2PL model."""
    return CellModel(data, _lines, "discrimination" if centred else "difficulty")


def irt_2pl_mml(data: Responses, **_: Any) -> CellModel:
    """Return the 2PL model of standardised abilities."""
    return CellModel(data, _lines)


def irt_3pl(
    data: Responses, *, centred: bool = True, guessing: float | None = None, **_: Any
) -> CellModel:
    """Return the 3PL model."""

    def log_odds(named: Named) -> Array:
        known = _lines(named)
        chance = np.asarray(named["guessing"][:, np.newaxis] if guessing is None else guessing)
        with np.errstate(divide="ignore", invalid="ignore"):  # no guessing; left-out questions
            return np.logaddexp(np.log(chance), known) - np.log1p(-chance)

    return CellModel(data, log_odds, "discrimination" if centred else "difficulty")


def dynamic_irt(
    data: Responses,
    *,
    variant: str = "growth",
    time_points: Any = None,
    score_target: str = "final",
    **_: Any,
) -> CellModel:
    """Return the model of abilities that change from trial to trial."""
    n_trials = data.shape[2]
    if variant == "linear" or n_trials == 1:
        return CellModel(data, _rasch_log_odds, "difficulty")
    times = check_time_axis(
        n_trials,
        variant=variant,
        assume_time_axis=True,
        time_points=time_points,
        score_target=score_target,
    )
    centred = times - times.mean()

    def log_odds(named: Named) -> Array:
        if variant == "growth":
            states = named["ability"][..., np.newaxis] + named["slope"][..., np.newaxis] * centred
        else:
            states = named["trajectory"]
        return states[:, :, np.newaxis] - named["difficulty"][:, np.newaxis, :, np.newaxis]

    return CellModel(data, log_odds, "difficulty")


def mirt(data: Responses, *, score: str = "mean_slope", **_: Any) -> CellModel:
    """Return the multidimensional model."""

    def slopes(named: Named) -> Array:
        return np.einsum("plk,pmk->plm", named["ability"], named["loading"])

    def mean_slope(named: Named) -> Array:
        each = slopes(named)[0].T
        n_kept = max(int(np.isfinite(each[:, 0]).sum()), 1)  # some, or all, may be left out
        return (each - np.nansum(each, axis=0) / n_kept) / n_kept

    return CellModel(
        data,
        lambda named: slopes(named) + named["intercept"][:, np.newaxis],
        mean_of=mean_slope if score == "mean_slope" else None,
    )


def hierarchical_binomial(data: Responses, **_: Any) -> CellModel:
    """Return the model of systems over benchmarks."""
    groups = data.groups or ("all",) * data.shape[1]
    names = list(dict.fromkeys(groups))
    benchmark = [names.index(name) for name in groups]

    def log_odds(named: Named) -> Array:
        if "benchmark_ability" not in named:
            return _sums(named["score"], named["intercept"])
        return named["benchmark_ability"][..., benchmark] + named["intercept"][:, np.newaxis]

    return CellModel(data, log_odds)


def bradley_terry_luce(data: Responses, **_: Any) -> EventModel:
    """Return the composite likelihood of right systems, each chosen among all that were wrong."""
    from bayesrank.inference.fits.luce import log_choices

    return EventModel(
        data, lambda right, wrong: lambda named: log_choices(named["score"], right, wrong)
    )


def davidson_luce(data: Responses, **_: Any) -> EventModel:
    """Return the Davidson-Luce model, given the sizes if all systems took part in all events.

    Sizes and scores are then independent. Otherwise the named parameters need the prevalences of
    the sizes.
    """
    from bayesrank.inference.fits.luce import log_sets, winner_sets

    def log_chance(right: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Callable[[Named], Array]:
        size = right.sum(axis=1)
        sizes, position = np.unique(size, return_inverse=True)
        sets, member_of = np.unique(right | wrong, axis=0, return_inverse=True)
        shares = right / size[:, np.newaxis]
        of_sizes = np.eye(len(sizes))[np.newaxis, position]

        def common(named: Named) -> Array:
            return log_sets(named["score"], shares[np.newaxis], of_sizes, sizes)

        def several(named: Named) -> Array:
            score, prevalence = named["score"], np.log(named["tie_prevalence"])
            found = score @ shares.T + prevalence[:, position]
            for number, members in enumerate(sets):
                events = member_of == number
                possible = sizes < members.sum()
                log_sums = winner_sets(score[:, members], sizes[possible]).log_normaliser
                total = np.logaddexp.reduce(prevalence[:, possible] + log_sums, axis=1)
                found[:, events] -= total[:, np.newaxis]
            return found

        return common if len(sets) == 1 and sets.all() else several

    return EventModel(data, log_chance)


def _sums(of_systems: Array, of_questions: Array) -> Array:
    return of_systems[..., np.newaxis] + of_questions[:, np.newaxis]


def _rasch_log_odds(named: Named) -> Array:
    return _sums(named["score"], -named["difficulty"])


def _lines(named: Named) -> Array:
    with np.errstate(invalid="ignore"):  # questions that were left out
        return named["discrimination"][:, np.newaxis] * _rasch_log_odds(named)
