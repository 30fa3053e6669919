"""The design of data: what has an outcome, the target, and the independent units.

Systems without an outcome cannot be ranked, and questions without one say nothing of any system.
Intervals have a target, and treat the units of one kind, or of two crossed kinds, as independent.
"""

import hashlib
import warnings
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError, TargetWarning
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

type UnitLike = str | Sequence[str]

# Units of responses: none named, one kind, or two that cross, in the order of the alphabet.
_OF_RESPONSES = [(), ("question",), ("run",), ("trial",)]
_OF_RESPONSES += [("question", "run"), ("question", "trial")]

# Number of data sets that are remembered, the latest ones.
_MOST = 16


class _Seen(NamedTuple):
    """Data that were ranked: the number of their trials, a digest of them, and the target."""

    n_trials: int
    digest: bytes
    target: str


_seen: dict[tuple[tuple[str, ...], tuple[str, ...]], _Seen] = {}


def with_outcomes(data: Responses | Comparisons | Ballots) -> NDArray[np.bool_]:
    """Return which systems have an outcome: a trial, a battle or a place on a ballot.

    Examples
    --------
    >>> with_outcomes(Responses([[1, 0], [-1, -1]]))
    array([ True, False])
    """
    if isinstance(data, Responses):
        return data.trials.any(axis=1)
    if isinstance(data, Comparisons):
        return data.totals.any(axis=1)
    return ~np.isnan(data.grades).all(axis=1)


def asked_questions(data: Responses) -> NDArray[np.bool_]:
    """Return which questions have an outcome of some system, or an earlier one.

    Examples
    --------
    >>> asked_questions(Responses([[1, -1, 0], [1, -1, -1]]))
    array([ True, False,  True])
    """
    asked = data.trials.any(axis=0)
    return asked if data.prior_sets is None else asked | (data.prior_sets >= 0).any(axis=(0, 2))


def possible_trials(trials: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return how many trials a system can have on each question: the most that one has.

    If there is one system, or if none has the question, the most on any question.

    Parameters
    ----------
    trials : numpy.ndarray of int and shape (system, question)
        Observed outcomes.

    Returns
    -------
    numpy.ndarray of int and shape (question,)

    Examples
    --------
    >>> possible_trials(np.array([[1, 8, 0], [1, 7, 0]]))
    array([1, 8, 8])
    >>> possible_trials(np.array([[1, 8, 0]]))
    array([8, 8, 8])
    """
    most = trials.max(axis=0)
    return np.where((most > 0) & (len(trials) > 1), most, trials.max())


def part_with_outcomes[Data: Responses | Comparisons | Ballots](data: Data) -> Data:
    """Return the data of the systems and the questions that have an outcome.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        What is to be ranked.

    Returns
    -------
    Responses, Comparisons or Ballots
        The data as they are where all systems and questions have an outcome, or no system has one.

    Examples
    --------
    >>> part = part_with_outcomes(Responses([[1, 0, -1], [-1, -1, -1]]))
    >>> part.systems, part.questions
    (('system 1',), ('question 1', 'question 2'))
    """
    if isinstance(data, Responses) and data.trials.min() > 0:
        return data  # most data, of which this takes a fifth of the time of what follows
    seen = with_outcomes(data)
    asked = asked_questions(data) if isinstance(data, Responses) else seen
    if (seen.all() and asked.all()) or not seen.any():
        return data
    return _part(data, np.flatnonzero(seen))


def _part(data: Any, places: NDArray[np.intp]) -> Any:
    systems = tuple(data.systems[place] for place in places)
    if isinstance(data, Responses):
        asked = compress(data.questions, asked_questions(data))
        return data.select(systems=systems, questions=asked)
    if isinstance(data, Battles):
        # Rows of other systems have weight zero.
        rows = np.isin(data.first, places) & np.isin(data.second, places)
        return data.take(np.flatnonzero(rows), systems)
    if isinstance(data, Ballots):
        return Ballots(data.grades[places], systems)
    square = np.ix_(places, places)
    names = ("first_wins", "second_wins", "first_ties")
    ordered = {name: getattr(data, name) for name in names}
    return Comparisons(
        data.wins[square],
        data.ties[square],
        systems=systems,
        **{name: None if each is None else each[square] for name, each in ordered.items()},
    )


def choose_unit(
    data: Responses | Comparisons | Ballots,
    row: Method,
    backend: str,
    target: str | None,
    unit: UnitLike | None,
) -> tuple[str, str | None]:
    """Return the unit of a run and the target that it implies.

    Parameters
    ----------
    data : Responses, Battles, Comparisons or Ballots
        What is ranked.
    row : Method
        Row of the catalog.
    backend : str
        One of its back ends.
    target : str, optional
        The target asked for.
    unit : str or sequence of str, optional
        The kinds asked for; in a string two are joined by a comma.

    Returns
    -------
    unit : str
        ``trial`` or ``run`` of responses, ``ballot`` of ballots; of battles ``battle``, ``prompt``
        or ``judge``, or ``judge,prompt``.
    target : str or None
        ``population`` where questions are among the kinds, else as it was.

    Raises
    ------
    ValueError
        If the data or the method do not have the unit, or one only.
    """
    kinds = _kinds(unit)
    if isinstance(data, Responses):
        return _of_responses(data, row, backend, target, kinds)
    if isinstance(data, Battles):
        return _of_battles(data, row, backend, kinds), target
    only = "ballot" if isinstance(data, Ballots) else "battle"
    if kinds not in ((), (only,)):
        raise ValueError(
            f"unit must be {only!r} for {type(data).__name__.lower()}; got {_said(kinds)}"
        )
    return only, target


def _kinds(unit: UnitLike | None) -> tuple[str, ...]:
    if unit is None:
        return ()
    names = unit.split(",") if isinstance(unit, str) else unit
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"unit must be text, or a sequence of it; got {unit!r}")
    return tuple(sorted({name.strip() for name in names}))


def _said(kinds: Sequence[str]) -> str:
    return repr(",".join(kinds))


def _of_battles(data: Battles, row: Method, backend: str, kinds: tuple[str, ...]) -> str:
    for kind in kinds:
        data.unit_codes(kind)  # raises an error for units that the battles do not name
        if kind != "battle" and data.units[kind] < 2:
            raise DataError(f"battles must have two {kind}s or more for unit={kind!r}; got one")
    crosses = backend in LIKELIHOOD_BACKENDS and row.can_be_calibrated
    if not kinds:
        return data.default_unit(crossed=crosses)
    if len(kinds) == 1:
        return kinds[0]
    if kinds != ("judge", "prompt"):
        crossed = " or 'judge,prompt'" if {"judge", "prompt"} <= set(data.units) else ""
        raise ValueError(
            f"unit must be one of {', '.join(data.units)}{crossed}; got {_said(kinds)}: "
            "battles lie within prompts and judges"
        )
    if not crosses:
        raise ValueError(
            f"unit must be one of {', '.join(data.units)} for {row.name}; got {_said(kinds)}, two "
            "kinds that only likelihoods can cross: rank by davidson or bradley_terry_map"
        )
    return ",".join(kinds)


def _of_responses(
    data: Responses, row: Method, backend: str, target: str | None, kinds: tuple[str, ...]
) -> tuple[str, str | None]:
    if kinds not in _OF_RESPONSES:
        raise ValueError(
            "unit must be 'trial', 'run' or 'question', or 'run,question' for runs and questions "
            f"that both vary; got {_said(kinds)}"
        )
    if "question" in kinds:
        if target == "benchmark":
            raise ValueError(
                f"unit must be 'trial' or 'run' for target='benchmark'; got {_said(kinds)}, where "
                "questions vary: use target='population'"
            )
        target = "population"
    if "run" not in kinds:
        return "trial", target
    crossed = row.spread is not None or (backend in LIKELIHOOD_BACKENDS and row.can_be_calibrated)
    if not crossed and (backend != "bootstrap" or row.data == "stream"):
        raise ValueError(
            f"unit must be 'trial' for {row.name} with backend {backend!r}; got {_said(kinds)}, "
            "which is for resampled scores that do not follow the order of play, for likelihoods "
            "that can be calibrated and for standardized_accuracy"
        )
    if not crossed:
        if target == "population":
            raise ValueError(
                f"unit must be 'trial' or 'run' for {row.name}; got {_said(kinds)} with "
                "target='population', two kinds of units that only likelihoods and "
                "standardized_accuracy can cross: use target='benchmark'"
            )
        target = "benchmark"
    if data.trials.max(initial=0) < 2:
        raise DataError(
            "unit must be 'trial' for data with one trial of each question, which show no "
            f"variation of runs; got {_said(kinds)}"
        )
    return "run", target


def choose_target(
    data: Responses | Comparisons | Ballots, row: Method, backend: str, target: str | None
) -> str:
    """Return the target of a run; by default it follows the design."""
    if not isinstance(data, Responses):
        if target not in (None, "battles"):
            kind = type(data).__name__.lower()
            raise ValueError(f"target must be 'battles' for {kind}; got {target!r}")
        return "battles"
    if target not in (None, "benchmark", "population"):
        raise ValueError(
            f"target must be 'benchmark' or 'population' for responses; got {target!r}"
        )
    if backend in LIKELIHOOD_BACKENDS and not row.can_be_calibrated:
        # No calibration of these draws for other questions exists.
        if target == "population":
            raise ValueError(
                f"target must be 'benchmark' for {row.name} with backend {backend!r}; got "
                "'population'"
            )
        return "benchmark"
    if target is None:
        return "benchmark" if has_repeated_trials(data) else "population"
    return target


def has_repeated_trials(data: Responses) -> bool:
    """Return whether most observed cells have two trials or more, and so show noise."""
    return bool(2 * (data.trials >= 2).sum() > (data.trials > 0).sum())


def announce_change(data: Responses, target: str) -> None:
    """Warn if trials were added to earlier data and this changes their default target.

    TargetWarning says that the intervals of the two rankings answer different questions.
    """
    key = data.systems, data.questions
    before = _seen.pop(key, None)
    grew = (
        before is not None
        and before.n_trials < data.shape[2]
        and before.digest == _digest(data, before.n_trials)
    )
    if before is not None and grew and before.target != target:
        warnings.warn(
            f"target is {target!r} with the trials that were added; it was {before.target!r} "
            "before, so the intervals have another meaning: pass "
            f"target={before.target!r} to compare the two rankings",
            TargetWarning,
            stacklevel=4,
        )
    _seen[key] = _Seen(data.shape[2], _digest(data, data.shape[2]), target)
    if len(_seen) > _MOST:
        del _seen[next(iter(_seen))]


def forget() -> None:
    """Forget all data that were ranked."""
    _seen.clear()


def _digest(data: Responses, n_trials: int) -> bytes:
    values = data.outcomes if data.scores is None else data.scores
    return hashlib.sha256(np.ascontiguousarray(values[..., :n_trials]).tobytes()).digest()
