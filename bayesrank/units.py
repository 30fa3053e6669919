"""What intervals take as independent of what: one kind of units, or two that cross."""

from collections.abc import Sequence
from itertools import combinations

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

type UnitLike = str | Sequence[str]


def choose_unit(
    data: Responses | Comparisons | Ballots,
    row: Method,
    backend: str,
    target: str | None,
    unit: UnitLike | None,
) -> tuple[str, str | None]:
    """Return the unit of a run and what it says of the target.

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
        data.unit_codes(kind)  # raises for what they do not name
        if kind != "battle" and data.units[kind] < 2:
            raise DataError(f"battles must have two {kind}s or more for unit={kind!r}; got one")
    if len(kinds) < 2:
        return kinds[0] if kinds else data.coarsest_unit
    if kinds != ("judge", "prompt"):
        crossed = " or 'judge,prompt'" if {"judge", "prompt"} <= set(data.units) else ""
        raise ValueError(
            f"unit must be one of {', '.join(data.units)}{crossed}; got {_said(kinds)}: "
            "battles lie within prompts and judges"
        )
    if not (backend in LIKELIHOOD_BACKENDS and row.can_be_calibrated):
        raise ValueError(
            f"unit must be one of {', '.join(data.units)} for {row.name}; got {_said(kinds)}, two "
            "kinds that only likelihoods can cross: rank by davidson or bradley_terry_map"
        )
    return ",".join(kinds)


def _of_responses(
    data: Responses, row: Method, backend: str, target: str | None, kinds: tuple[str, ...]
) -> tuple[str, str | None]:
    known = ("trial", "run", "question")
    possible = [(), *((kind,) for kind in known)]
    possible += [tuple(sorted(pair)) for pair in combinations(known, 2) if "question" in pair]
    if kinds not in possible:
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
