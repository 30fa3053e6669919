"""Systems without any outcome, which no method can rank."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons


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


def part_with_outcomes[Data: Responses | Comparisons | Ballots](data: Data) -> Data:
    """Return the data of the systems that have an outcome.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        What is to be ranked.

    Returns
    -------
    Responses, Comparisons or Ballots
        The data as they are where all systems have an outcome, or none has one.

    Examples
    --------
    >>> part_with_outcomes(Responses([[1, 0], [-1, -1]])).systems
    ('system 1',)
    """
    seen = with_outcomes(data)
    if seen.all() or not seen.any():
        return data
    return _part(data, np.flatnonzero(seen))


def _part(data: Any, places: NDArray[np.intp]) -> Any:
    systems = tuple(data.systems[place] for place in places)
    if isinstance(data, Responses):
        return data.select(systems=systems)
    if isinstance(data, Battles):
        # Rows of other systems weigh nothing.
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
