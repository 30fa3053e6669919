r"""Log-likelihoods by unit of variation, for the calibration of models of responses.

One function per row of the catalog: ``model(data, **options)`` with the options of the row's
factory returns a :class:`CellModel` or an :class:`EventModel`. They know the parameters by name,
as kernels and factories report them, with a leading axis of points: ``score`` of shape
(point, system), ``difficulty`` of shape (point, question) and so on.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.calibrate.cells_and_events import CellModel, EventModel, Named, Scaling
from bayesrank.responses import Responses
from bayesrank.time_axis import check_time_axis


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

    def log_odds(named: Named) -> NDArray[np.float64]:
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

    def log_odds(named: Named) -> NDArray[np.float64]:
        if variant == "growth":
            states = named["ability"][..., np.newaxis] + named["slope"][..., np.newaxis] * centred
        else:
            states = named["trajectory"]
        return states[:, :, np.newaxis] - named["difficulty"][:, np.newaxis, :, np.newaxis]

    return CellModel(data, log_odds, _DIFFICULTY)


def mirt(data: Responses, *, score: str = "mean_slope", **_: Any) -> CellModel:
    """Return the multidimensional model."""

    def slopes(named: Named) -> NDArray[np.float64]:
        return np.einsum("plk,pmk->plm", named["ability"], named["loading"])

    def mean_slope(named: Named) -> NDArray[np.float64]:
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
    place = {name: position for position, name in enumerate(dict.fromkeys(groups))}
    benchmark = np.array([place[name] for name in groups])

    def log_odds(named: Named) -> NDArray[np.float64]:
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
    from bayesrank.inference.fits.luce import log_sets, winner_sets

    def log_chance(
        named: Named, right: NDArray[np.bool_], wrong: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
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


def _rasch_log_odds(named: Named) -> NDArray[np.float64]:
    return named["score"][:, :, np.newaxis] - named["difficulty"][:, np.newaxis]


def _relative_log_odds(named: Named) -> NDArray[np.float64]:
    return named["contrast"][:, :, np.newaxis] + named["intercept"][:, np.newaxis]


def _lines(named: Named) -> NDArray[np.float64]:
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
