r"""Log-likelihoods by unit of variation, for the calibration of models of responses.

One function per row of the catalog: ``model(data, **options)`` with the options of the row's
factory returns a :class:`CellModel` or an :class:`EventModel`. They know the parameters by name,
as kernels and factories report them, with a leading axis of points: ``score`` of shape
(point, system), ``difficulty`` of shape (point, question) and so on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import logistic
from bayesrank.responses import Responses
from bayesrank.time_axis import check_time_axis

Array = NDArray[np.float64]
Named = Mapping[str, Array]

# Parameters that belong to a question. In another sample of questions there are others.
QUESTION_PARAMETERS = frozenset(
    {"difficulty", "discrimination", "guessing", "intercept", "loading"}
)


@dataclass(frozen=True)
class Scaling:
    """A mean over questions that is held, and so sets the origin or the unit of the scores.

    Another sample of questions has another mean.

    Attributes
    ----------
    of : callable
        The quantity whose mean is held, of shape (point, question), NaN or infinite for questions
        that were left out.
    lowered : callable
        Parameters with the quantity of all questions lower by some amount.
    """

    of: Callable[[Named], Array]
    lowered: Callable[[Named, float], Named]

    def shares(self, named: Named) -> Array:
        """Return what each question adds to the mean, of shape (question,), at a single point."""
        values = self.of(named)[0]
        kept = np.isfinite(values)
        return np.where(kept, values, 0.0) / max(int(kept.sum()), 1)


@dataclass(frozen=True)
class CellModel:
    """Independent answers, with log-odds for every system and question.

    Attributes
    ----------
    data : Responses
        Binary outcomes.
    predictor : callable
        Log-odds of right answers from named parameters, of shape (point, system, question), or
        (point, system, question, trial); infinite or NaN for questions that were left out.
    scaling : Scaling, optional
        What sets the origin or the unit of the scores, if not the systems.
    mean_of : callable, optional
        Shares of each question in scores that are means over questions, (question, system).
    """

    data: Responses
    predictor: Callable[[Named], Array]
    scaling: Scaling | None = None
    mean_of: Callable[[Named], Array] | None = None

    def log_odds(self, named: Named) -> Array:
        """Return log-odds, 0 for questions that were left out."""
        found = self.predictor(named)
        return np.where(np.isfinite(found), found, 0.0)

    def leaning(self, at: Named) -> Callable[[Named], Array]:
        """Return a function with the slopes of the log-likelihoods of questions, (point, question).

        They are log-odds weighted by residuals, which take no logarithms.
        """
        residual, _ = self._moments(at)
        axes = "lm,plm->pm" if residual.ndim == 2 else "lmn,plmn->pm"
        return lambda named: np.einsum(axes, residual, self.log_odds(named))

    def bend(self, at: Named, up: Named, down: Named) -> Array:
        """Return expected minus second derivatives along half the way between two points."""
        noise = self._moments(at)[1].ravel()
        rise = (self.log_odds(up) - self.log_odds(down)).reshape(-1, noise.size) / 2.0
        return np.einsum("pi,i,pi->p", rise, noise, rise)

    def pull(self, at: Named, amount: float) -> Callable[[Named], Array]:
        """Return a function with the slopes of what lowering the scaled mean adds, (point,)."""
        scaling = self.scaling
        residual, noise = self._moments(at)
        if scaling is None:
            return lambda named: np.zeros(len(named["score"]))

        def rise(named: Named) -> Array:
            ends = (scaling.lowered(named, side * amount) for side in (1.0, -1.0))
            up, down = (self.log_odds(end).reshape(-1, residual.size) for end in ends)
            return (up - down) / (2.0 * amount)

        bent = noise.ravel() * rise(at)[0]
        return lambda named: (
            rise(named) @ residual.ravel() - self.log_odds(named).reshape(-1, residual.size) @ bent
        )

    def _moments(self, at: Named) -> tuple[Array, Array]:
        """Return residuals and variances of the numbers right at a point, by cell or by trial."""
        logit = self.log_odds(at)[0]
        right, trials = self._counts(logit.ndim)
        chance = logistic(logit)
        return right - trials * chance, trials * chance * (1.0 - chance)

    def _counts(self, ndim: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return right answers and trials by cell, or by trial where log-odds change with it."""
        if ndim == 2:
            return self.data.binary_counts
        return self.data.outcomes == 1, self.data.observed

    def direct(self, named: Named) -> Array:
        """Return what a question adds to scores that are means over questions themselves."""
        return np.zeros((1, 1)) if self.mean_of is None else np.nan_to_num(self.mean_of(named))


@dataclass(frozen=True)
class EventModel:
    """Events of one question and trial each, with right and wrong systems.

    Attributes
    ----------
    data : Responses
        Binary outcomes.
    log_chance : callable
        Log-likelihoods of events from named parameters and the right and wrong systems, both of
        shape (event, system); of shape (point, event).
    """

    data: Responses
    log_chance: Callable[[Named, NDArray[np.bool_], NDArray[np.bool_]], Array]

    @cached_property
    def _events(self) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where events are among questions and trials, and who was right and wrong."""
        columns = self.data.outcomes.reshape(len(self.data.systems), -1).T
        right, wrong = columns == 1, columns == 0
        (where,) = np.nonzero(right.any(axis=1) & wrong.any(axis=1))
        return where, right[where], wrong[where]

    def by_trial(self, named: Named) -> Array:
        """Return log-likelihoods of shape (point, question, trial)."""
        where, right, wrong = self._events
        n_points, (_, n_questions, n_trials) = len(named["score"]), self.data.shape
        found = np.zeros((n_points, n_questions * n_trials))
        found[:, where] = self.log_chance(named, right, wrong)
        return found.reshape(n_points, n_questions, n_trials)

    def leaning(self, _: Named) -> Callable[[Named], Array]:
        """Return the log-likelihoods of questions, (point, question), by parameters."""
        return lambda named: self.by_trial(named).sum(axis=-1)

    def bend(self, at: Named, up: Named, down: Named) -> Array:
        """Return minus second differences of the log-likelihood."""
        middle, one, other = (self.by_trial(named).sum(axis=(1, 2)) for named in (at, up, down))
        return 2.0 * middle - one - other


type UnitModel = CellModel | EventModel


def rasch(data: Responses, **_: Any) -> CellModel:
    """Return the Rasch model."""
    return CellModel(data, _rasch_log_odds, _DIFFICULTY)


def rasch_mml(data: Responses, *, ability_mean: float | None = None, **_: Any) -> CellModel:
    """Return the Rasch model; with a known mean ability scores are relative to that.

    What questions have of their own is then the intercept: no answer tells where that mean is.
    """
    if ability_mean is None:
        return CellModel(data, _rasch_log_odds, _DIFFICULTY)
    return CellModel(data, _relative_log_odds)


def irt_2pl(data: Responses, *, centred: bool = True, **_: Any) -> CellModel:
    """Return the 2PL model."""
    return CellModel(data, _lines, _LOG_SLOPE if centred else _DIFFICULTY)


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

    return CellModel(data, log_odds, _LOG_SLOPE if centred else _DIFFICULTY)


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
        return CellModel(data, _rasch_log_odds, _DIFFICULTY)
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

    return CellModel(data, log_odds, _DIFFICULTY)


def mirt(data: Responses, *, score: str = "mean_slope", **_: Any) -> CellModel:
    """Return the multidimensional model."""

    def slopes(named: Named) -> Array:
        return np.einsum("plk,pmk->plm", named["ability"], named["loading"])

    def mean_slope(named: Named) -> Array:
        each = slopes(named)[0].T
        return (each - np.nanmean(each, axis=0)) / np.isfinite(each[:, 0]).sum()

    return CellModel(
        data,
        lambda named: slopes(named) + named["intercept"][:, np.newaxis],
        mean_of=mean_slope if score == "mean_slope" else None,
    )


def hierarchical_binomial(data: Responses, **_: Any) -> CellModel:
    """Return the model of systems over benchmarks."""
    groups = data.groups or ("all",) * data.shape[1]
    place = {name: position for position, name in enumerate(dict.fromkeys(groups))}
    benchmark = np.array([place[name] for name in groups])

    def log_odds(named: Named) -> Array:
        ability = named["score"][..., np.newaxis]
        if "benchmark_ability" in named:
            ability = named["benchmark_ability"][..., benchmark]
        return ability + named["intercept"][:, np.newaxis]

    return CellModel(data, log_odds)


def bradley_terry_luce(data: Responses, **_: Any) -> EventModel:
    """Return the composite likelihood of right systems, each chosen among all that were wrong."""
    from bayesrank.inference.fits.luce import log_choices

    return EventModel(data, lambda named, right, wrong: log_choices(named["score"], right, wrong))


def davidson_luce(data: Responses, **_: Any) -> EventModel:
    """Return the Davidson-Luce model, given the sizes where all systems took part in all events.

    Sizes and scores are independent then. Else the prevalences of the sizes are needed by name.
    """
    from bayesrank.inference.fits.luce import log_sets
    from bayesrank.inference.fits.winner_sets import winner_sets

    def log_chance(named: Named, right: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Array:
        score, size = named["score"], right.sum(axis=1)
        sizes, position = np.unique(size, return_inverse=True)
        sets, member_of = np.unique(right | wrong, axis=0, return_inverse=True)
        shares = right / size[:, np.newaxis]
        if len(sets) == 1 and sets.all():
            return log_sets(
                score, shares[np.newaxis], np.eye(len(sizes))[np.newaxis, position], sizes
            )
        found = score @ shares.T
        prevalence = np.log(named["tie_prevalence"])
        found += prevalence[:, position]
        for number, members in enumerate(sets):
            events = member_of == number
            possible = sizes < members.sum()
            log_sums = winner_sets(score[:, members], sizes[possible]).log_normaliser
            total = np.logaddexp.reduce(prevalence[:, possible] + log_sums, axis=1)
            found[:, events] -= total[:, np.newaxis]
        return found

    return EventModel(data, log_chance)


def _rasch_log_odds(named: Named) -> Array:
    return named["score"][:, :, np.newaxis] - named["difficulty"][:, np.newaxis]


def _relative_log_odds(named: Named) -> Array:
    return named["contrast"][:, :, np.newaxis] + named["intercept"][:, np.newaxis]


def _lines(named: Named) -> Array:
    with np.errstate(invalid="ignore"):  # questions that were left out
        return named["discrimination"][:, np.newaxis] * _rasch_log_odds(named)


def _easier(named: Named, amount: float) -> Named:
    return {**named, "difficulty": named["difficulty"] - amount}


def _flatter(named: Named, amount: float) -> Named:
    """Lower log discriminations, and keep the log-odds of a system with score 0."""
    factor = np.exp(-amount)
    return {
        **named,
        "discrimination": named["discrimination"] * factor,
        "difficulty": named["difficulty"] / factor,
    }


_DIFFICULTY = Scaling(lambda named: named["difficulty"], _easier)
_LOG_SLOPE = Scaling(lambda named: np.log(named["discrimination"]), _flatter)
