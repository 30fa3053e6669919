"""Votes with their grades, one row each or equal ones merged: what models of votes read."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles, Labels
from bayesrank.errors import DataError
from bayesrank.validation import frozen
from bayesrank.views import Comparisons

# What the outcomes of battles are called, seen from the first system.
_GRADES = {0: "tie", 1: "better", 2: "much better", -1: "worse", -2: "much worse"}

# What a vote says, seen from the first system.
BOTH_BAD, TIE, WON = "both bad", "tie", ("win", "loss")
RESULTS = (*WON, TIE, BOTH_BAD)

# Cells of a table in which votes are counted without sorting them: 64 MB.
_LARGEST_TABLE = 1 << 23


def grade_name(outcome: int) -> str:
    """Return what an outcome is called.

    Examples
    --------
    >>> grade_name(-2), grade_name(3)
    ('much worse', 'better (3)')
    """
    word = "better" if outcome > 0 else "worse"
    return _GRADES.get(outcome, f"{word} ({abs(outcome)})")


@dataclass(frozen=True)
class VoteRows:
    """Votes on pairs of systems.

    Attributes
    ----------
    systems : tuple of str
        Labels.
    first, second : numpy.ndarray of int and shape (vote,)
        The systems.
    outcome : numpy.ndarray of int8 and shape (vote,)
        By how many grades the first was better; 0 for a tie.
    both_bad : numpy.ndarray of bool and shape (vote,)
        Ties in which neither was good enough.
    weight : numpy.ndarray of shape (vote,)
        How much each counts.
    """

    systems: tuple[str, ...]
    first: NDArray[np.integer[Any]]
    second: NDArray[np.integer[Any]]
    outcome: NDArray[np.int8]
    both_bad: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, data: Comparisons) -> "VoteRows":
        """Take the rows of battles, which keep their order, or the results of pairs of counts."""
        if isinstance(data, Battles):
            n = len(data.first)
            bad = np.zeros(n, dtype=bool) if data.both_bad is None else data.both_bad
            weight = np.ones(n) if data.weight is None else data.weight
            return cls(data.systems, data.first, data.second, data.outcome, bad, weight)
        first, second = data.pairs
        counts = [data.wins[first, second], data.wins[second, first], data.ties[first, second]]
        outcome = np.repeat(np.array([1, -1, 0], dtype=np.int8), len(first))
        weight = np.concatenate(counts)
        seen = weight > 0.0
        sides = np.tile(first, 3)[seen], np.tile(second, 3)[seen]
        bad = np.zeros(int(seen.sum()), dtype=bool)
        return cls(data.systems, *sides, outcome[seen], bad, weight[seen])

    def in_states(self, state: NDArray[np.integer[Any]], names: Iterable[object]) -> "VoteRows":
        """Return votes on systems as they are in a state, numbered state by state.

        `state`, (vote,), is the number of that of each vote; `names` are what states are called.
        """
        at = state.astype(np.int64) * len(self.systems)
        labels = tuple(f"{system} ({name})" for name in names for system in self.systems)
        return replace(self, systems=labels, first=at + self.first, second=at + self.second)

    def merged(self) -> "VoteRows":
        """Return one row for all equal votes, the system with the lower number first."""
        size, most = len(self.systems), int(np.abs(self.outcome).max(initial=0))
        turned = self.first > self.second
        low, high = np.where(turned, (self.second, self.first), (self.first, self.second))
        outcome = np.where(turned, -self.outcome, self.outcome).astype(np.int64)
        code = np.where(self.both_bad, 2 * most + 1, outcome + most)
        n_codes = 2 * most + 2
        cell = (low.astype(np.int64) * size + high) * n_codes + code
        kinds, n_kinds = None, size**2 * n_codes
        if n_kinds > _LARGEST_TABLE:
            kinds, cell = np.unique(cell, return_inverse=True)
            n_kinds = len(kinds)
        weight = np.bincount(cell, self.weight, n_kinds)
        cell = np.flatnonzero(weight)
        pair, code = np.divmod(cell if kinds is None else kinds[cell], n_codes)
        bad = code == 2 * most + 1
        outcome = np.where(bad, 0, code - most).astype(np.int8)
        return VoteRows(self.systems, *np.divmod(pair, size), outcome, bad, weight[cell])

    def alike(self, *columns: NDArray[Any]) -> tuple["VoteRows", NDArray[np.intp]]:
        """Return one row for all votes that are alike in columns, too, and which vote it is like.

        Columns are of shape (vote,). Sides keep their order.
        """
        keys = (*columns, self.both_bad, self.outcome, self.second, self.first)
        order = np.lexsort(keys)
        first = np.ones(len(order), dtype=bool)
        first[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
        weight = np.add.reduceat(self.weight[order], np.flatnonzero(first))
        like = order[first]
        sides = self.first[like], self.second[like]
        return VoteRows(self.systems, *sides, self.outcome[like], self.both_bad[like], weight), like

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which votes count, of shape (vote,)."""
        return frozen(self.weight > 0.0)

    @cached_property
    def scale(self) -> tuple[int, ...]:
        """The outcomes that models of grades distinguish, from the worst for the first system.

        Those that were given, and with each grade the same one the other way round; ties alone are
        distinguished from wins, of which there are none.
        """
        grades = np.unique(np.abs(self.outcome[self.seen]).astype(int))
        grades = grades if grades.any() else np.arange(2)
        return tuple(sorted({*grades.tolist(), *(-grades).tolist()}))

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of the results on the scale, and of the grades with a threshold above 0."""
        names = [grade_name(outcome) for outcome in self.scale]
        n_thresholds = max((len(names) - 1) // 2, 0)
        return {"result": names, "grade": names[len(names) - n_thresholds :]}

    @cached_property
    def places(self) -> NDArray[np.intp]:
        """Where on the scale each vote is, of shape (vote,)."""
        found = np.searchsorted(self.scale, self.outcome)
        return frozen(np.minimum(found, max(len(self.scale) - 1, 0)))

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The results that models of votes for neither distinguish: ties and both bad if seen."""
        found = np.bincount(self.results, self.seen, len(RESULTS)) > 0.0
        return tuple(name for name, seen in zip(RESULTS, found, strict=True) if seen or name in WON)

    @cached_property
    def results(self) -> NDArray[np.intp]:
        """The result of each vote, a number in :data:`RESULTS`, of shape (vote,)."""
        found = np.where(self.outcome > 0, 0, np.where(self.outcome < 0, 1, 2))
        return frozen(np.where(self.both_bad, RESULTS.index(BOTH_BAD), found))


def raters_of(data: object, kind: str) -> Labels:
    """Return the judges or the prompts of battles; there must be at least two.

    Raises
    ------
    DataError
        If the data do not name them, or only one.
    """
    labels = getattr(data, kind, None)
    if labels is None:
        raise DataError(
            f"raters must be named by the battles; got {kind!r} for data without a {kind}",
            in_python=f"build Battles with {kind}=, or use raters=None",
            in_shell=f"rank a log with a column {kind}, or leave --raters out",
        )
    if len(labels.names) < 2:
        raise DataError(f"raters must be two or more; got one {kind}")
    return labels
