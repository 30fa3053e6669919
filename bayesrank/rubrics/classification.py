"""Apply a scheme to a long table of signals, one row per attempt."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.rubrics.attempts import is_greedy, signal_values, standard_columns
from bayesrank.rubrics.library import find_schemes
from bayesrank.rubrics.predicates import holds, parse_predicate
from bayesrank.rubrics.schemes import Scheme, Scope, Threshold
from bayesrank.validation import check_choice

FloatArray = NDArray[np.float64]


def classify(table: pd.DataFrame, scheme: str | Scheme, *, by: Scope | None = None) -> pd.Series:
    """Return the category of every attempt.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per attempt, a column per signal; ``system`` (or ``model``) and ``group`` (or
        ``benchmark`` or ``dataset``) if thresholds are computed by system or group. A table without
        groups is one group. Truth values are booleans or 0 and 1. Rows where a column ``greedy`` is
        1 are greedy runs: they get a category, but percentiles do not count them.
    scheme : str or Scheme
        The name of a shipped scheme, or a scheme.
    by : {"global", "system", "group"}, optional
        The attempts for each threshold, instead of the choice of the scheme.

    Returns
    -------
    pandas.Series of int
        Position of the category among those of the scheme, with the index of the table.

    Raises
    ------
    DataError
        If a signal is absent or missing in a row, if no rule holds for an attempt and the scheme
        has no ``otherwise``, if several rules of an exclusive scheme hold for an attempt, or if the
        category depends on a percentile over no attempts.
    ValueError
        If no shipped scheme has that name, or `by` is another word.

    Examples
    --------
    >>> attempts = pd.DataFrame({"has_box": [1, 0, 1], "is_correct": [1, 1, 0]})
    >>> classify(attempts, "format_compliance").tolist()
    [3, 2, 1]
    """
    (scheme,) = find_schemes(scheme)
    attempts = standard_columns(table)
    values = _Values(attempts, scheme, by, absent=-np.inf)
    category = _assign(table, scheme, values)
    if values.without_cut:
        # In some group no attempt counts for a percentile, for example without a right answer. This
        # matters only if a value is compared with it: then the results for both signs differ.
        other = _assign(table, scheme, _Values(attempts, scheme, by, absent=np.inf))
        if (differs := other != category).any():
            row = table.index[int(np.flatnonzero(differs)[0])]
            raise DataError(
                f"{' and '.join(values.without_cut)} must hold for an attempt of every group that "
                f"{scheme.name} takes a percentile in; got none where row {row!r} needs it"
            )
    return pd.Series(category, index=table.index, name=scheme.name)


def _assign(table: pd.DataFrame, scheme: Scheme, values: "_Values") -> NDArray[np.int64]:
    """Return the category of every row: that of the first rule that holds."""
    category = np.full(len(table), -1)
    first = np.full(len(table), -1)
    for number, rule in enumerate(scheme.rules):
        hit = values.where(rule.when)
        if scheme.exclusive and (twice := hit & (category >= 0)).any():
            row = int(np.flatnonzero(twice)[0])
            raise DataError(
                f"rules of the exclusive scheme {scheme.name} must not overlap; got "
                f"{scheme.rules[first[row]].when!r} and {rule.when!r} in {twice.sum()} attempts, "
                f"the first in row {table.index[row]!r}"
            )
        new = hit & (category < 0)
        category[new] = scheme.categories.index(rule.category)
        first[new] = number
    rest = category < 0
    if rest.any():
        if scheme.otherwise is None:
            row = table.index[int(np.flatnonzero(rest)[0])]
            raise DataError(
                f"a rule of {scheme.name} must hold for every attempt, since it has no otherwise; "
                f"got none in {rest.sum()} attempts, the first in row {row!r}"
            )
        category[rest] = scheme.categories.index(scheme.otherwise)
    return category


def rubric_responses(
    table: pd.DataFrame,
    scheme: str | Scheme,
    *,
    weights: Sequence[float] | None = None,
    by: Scope | None = None,
    **options: Any,
) -> Responses:
    """Turn a table of signals into responses with the categories of a scheme.

    Every method that takes categories can rank them.

    Parameters
    ----------
    table : pandas.DataFrame
        As in :func:`classify`, with the columns of :meth:`bayesrank.Responses.from_long` except
        the outcome: ``system``, ``question`` and, optionally, ``trial`` and ``group``. Greedy runs
        become the prior outcomes.
    scheme : str or Scheme
        The name of a shipped scheme, or a scheme.
    weights : sequence of float, optional
        Worth of each category; those of the scheme by default.
    by : {"global", "system", "group"}, optional
        As in :func:`classify`.
    **options
        Further keywords of :meth:`bayesrank.Responses.from_long`.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        As in :func:`classify`, or if neither the scheme nor the call states weights.
    ValueError
        If no shipped scheme has that name.

    Examples
    --------
    >>> attempts = pd.DataFrame({
    ...     "system": ["a", "a", "b"], "question": [1, 1, 1],
    ...     "has_box": [1, 0, 1], "is_correct": [1, 1, 0],
    ... })
    >>> rubric_responses(attempts, "format_compliance").grades
    array([[0.75],
           [0.5 ]])
    """
    (scheme,) = find_schemes(scheme)
    worth = scheme.weights if weights is None else tuple(weights)
    if worth is None:
        raise DataError(
            f"weights must be given for the scheme {scheme.name}, which states none; got None for "
            f"the categories {', '.join(scheme.categories)}"
        )
    if len(worth) != len(scheme.categories):
        raise DataError(
            f"weights must be {len(scheme.categories)} numbers, one for each of "
            f"{', '.join(scheme.categories)}; got {len(worth)} for the scheme {scheme.name}"
        )
    columns = ["system", "question", "trial", "group"]
    attempts = standard_columns(table)
    frame = attempts[[column for column in columns if column in attempts]]
    frame = frame.assign(outcome=classify(attempts, scheme, by=by))
    greedy = is_greedy(attempts)
    sampled = frame.loc[~greedy]
    if greedy.any():
        options.setdefault("prior_outcomes", _prior_outcomes(sampled, frame.loc[greedy]))
    return Responses.from_long(sampled, weights=worth, **options)


def _prior_outcomes(sampled: pd.DataFrame, greedy: pd.DataFrame) -> NDArray[np.int64]:
    """Arrange greedy runs as (system, question, run), -1 where there is none."""
    places, sizes = [], []
    for column in ("system", "question"):
        if column not in sampled:
            raise DataError(f"table must have a column {column!r}; got none")
        known = pd.Index(sampled[column].unique())  # the order of the responses
        place = known.get_indexer(pd.Index(greedy[column]))
        if (place < 0).any():
            unknown = greedy[column].iloc[int(np.argmin(place))]
            raise DataError(
                f"{column} of a greedy run must have attempts that are not greedy; got {unknown!r}"
            )
        places.append(place)
        sizes.append(len(known))
    run = greedy.groupby(["system", "question"], sort=False).cumcount().to_numpy()
    outcomes = np.full((*sizes, run.max() + 1), -1)
    outcomes[(*places, run)] = greedy["outcome"].to_numpy()
    return outcomes


class _Values:
    """Values of names in predicates, of shape (row,), each computed once.

    A percentile over no attempts has the value `absent`; ``without_cut`` has the conditions that no
    attempt satisfies.
    """

    def __init__(
        self, table: pd.DataFrame, scheme: Scheme, by: Scope | None, *, absent: float
    ) -> None:
        if by is not None:
            check_choice("by", by, Scope)
        self._table, self._scheme, self._by, self._absent = table, scheme, by, absent
        self.without_cut: list[str] = []
        self._known: dict[str, NDArray[Any]] = {}

    def where(self, text: str) -> NDArray[np.bool_]:
        """Return in which rows a predicate holds."""
        return holds(parse_predicate(text), self._lookup, len(self._table), text)

    def _lookup(self, name: str) -> NDArray[Any]:
        if name not in self._known:
            if name in self._scheme.thresholds:
                self._known[name] = self._percentile(self._scheme.thresholds[name])
            elif name in self._scheme.predicates:
                self._known[name] = self.where(self._scheme.predicates[name])
            else:
                self._known[name] = self._signal(name)
        return self._known[name]

    def _signal(self, name: str) -> FloatArray:
        if name not in self._table:
            raise DataError(
                f"table must have a column {name!r} for the scheme {self._scheme.name}; "
                f"got {', '.join(map(str, self._table.columns))}"
            )
        return signal_values(self._table, name)

    def _percentile(self, threshold: Threshold) -> FloatArray:
        """Return the percentile that each row is compared with."""
        values = self._lookup(threshold.signal)
        counted = ~is_greedy(self._table)
        if threshold.where:
            counted &= self.where(threshold.where)
        cut = np.full(len(values), np.nan)
        for rows in self._rows_by(self._by or threshold.by):
            inside = values[rows[counted[rows]]]
            if len(inside):
                cut[rows] = np.percentile(inside, threshold.percentile)
        if np.isnan(cut).any():
            self.without_cut.append(repr(threshold.where))
        return np.where(np.isnan(cut), self._absent, cut)

    def _rows_by(self, scope: str) -> list[NDArray[np.intp]]:
        """Return the rows of each system or group."""
        if scope == "global" or (scope == "group" and "group" not in self._table):
            return [np.arange(len(self._table))]
        if scope not in self._table:
            raise DataError(f"table must have a column {scope!r} for thresholds by {scope}")
        codes, found = self._table[scope].factorize()
        if (codes < 0).any():
            raise DataError(f"{scope} must be given in every row; got {(codes < 0).sum()} blanks")
        order = np.argsort(codes, kind="stable")
        return np.split(order, np.searchsorted(codes[order], np.arange(1, len(found))))
