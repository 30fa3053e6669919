"""Battles: one row per vote between two systems, with prompt, judge, group, time and covariates."""

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.battle_tables import read_table, read_times
from bayesrank.columns import as_frame
from bayesrank.errors import DataError
from bayesrank.formula import Design, design_of
from bayesrank.responses import Responses
from bayesrank.validation import check_choice, frozen, label_texts, numeric
from bayesrank.views import Comparisons
from bayesrank.winners import (
    Votes,
    count_outcomes,
    encode,
    encode_sides,
    in_order_of_appearance,
    read_winners,
    vote_weights,
)

if TYPE_CHECKING:
    import pandas as pd

BattleUnit = Literal["battle", "prompt", "judge"]

_LABELS = ("group", "prompt", "judge", "vote")

# With fewer units the spread is too uncertain for any small-sample correction.
FEW_UNITS = 5


@dataclass(frozen=True, eq=False)
class Labels:
    """A label for each battle: its prompt, its judge, its group.

    Attributes
    ----------
    codes : numpy.ndarray of int and shape (battle,)
        Number of the label.
    names : tuple of str
        The labels, in the order in which they first appear.
    """

    codes: NDArray[np.int32]
    names: tuple[str, ...]

    @property
    def n_named(self) -> int:
        """Number of labels but the empty one."""
        return sum(map(bool, self.names))


class Battles(Comparisons):
    """Votes between pairs of systems, one row each: the log of an arena.

    They are :class:`~bayesrank.views.Comparisons` with a row for each vote: `wins` and `ties` count
    the votes; the rows have their order, units and covariates.

    Parameters
    ----------
    first, second : sequence of str
        The two systems of each battle, in the order in which they were shown.
    winner : sequence of hashable
        Who won, by name, by side, by grade or by share, see
        :func:`bayesrank.winners.read_winners`.
    systems : sequence of str, optional
        Order of the systems; order of first appearance in time by default.
    weight : array_like of shape (battle,), optional
        How much each battle counts; 1 by default.
    time : array_like of shape (battle,), optional
        When it was, in seconds since 1970 or as dates. Battles are put in this order.
    group, prompt, judge, vote : sequence of hashable, optional
        The category or language of the battle, its prompt, and who judged it: a user, an annotator
        or a model. Rows with the same `vote` are one of them, such as the two games of a judgment
        with the sides swapped.
    covariates : mapping of str to array_like of shape (battle,), optional
        Differences between the first and the second answer, such as of their lengths.

    Attributes
    ----------
    first, second : numpy.ndarray of int and shape (battle,)
        Numbers of the systems.
    outcome : numpy.ndarray of int8 and shape (battle,)
        2 where the first system was much better, 1 where it won, 0 for a tie, -1 where the second
        won, -2 where it was much better.
    both_bad : numpy.ndarray of bool and shape (battle,), or None
        Ties in which neither was good enough.
    weight, time, group, prompt, judge, vote, covariates
        As given, None where there are none. A battle won in part (a preference of 0.7) has a row
        for each of its results, with their shares as weights and one `vote`.

    Raises
    ------
    DataError
        If lengths differ, a system meets itself, or a winner is unknown or ambiguous.

    Examples
    --------
    >>> log = Battles(["a", "a"], ["b", "c"], ["model_a", "tie"], judge=["u1", "u2"])
    >>> log
    Battles(2 battles, 3 systems, 2 judges)
    >>> log.wins[0]
    array([0., 1., 0.])
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    outcome: NDArray[np.int8]
    both_bad: NDArray[np.bool_] | None
    weight: NDArray[np.float64] | None
    time: NDArray[np.float64] | None
    group: Labels | None
    prompt: Labels | None
    judge: Labels | None
    vote: Labels | None
    covariates: Mapping[str, NDArray[np.float64]]

    def __init__(
        self,
        first: Any,
        second: Any,
        winner: Any,
        *,
        systems: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
        time: ArrayLike | None = None,
        group: Any = None,
        prompt: Any = None,
        judge: Any = None,
        vote: Any = None,
        covariates: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        left, right, names = encode_sides(first, second, systems)
        votes = winner if isinstance(winner, Votes) else read_winners(winner, left, right, names)
        n = len(left)
        labelled = {"group": group, "prompt": prompt, "judge": judge, "vote": vote}
        if vote is None and votes.share is not None:
            labelled["vote"] = range(n)
        labels = {name: _labels(values, name, n) for name, values in labelled.items()}
        given = covariates or {}
        called = zip(label_texts(given, "covariates"), given.values(), strict=True)
        columns = {name: _column(values, name, n) for name, values in called}
        times = None if time is None else _column(_seconds(time), "time", n)
        rows = _order(votes.row, times)
        weights = vote_weights(weight, n, votes)
        by_row = slice(None) if votes.row is None else votes.row
        left, right = _take(left[by_row], rows), _take(right[by_row], rows)
        if systems is None and rows is not None:
            left, right, names = in_order_of_appearance(left, right, names)
        outcome, kept = _take(votes.outcome, rows), _take(weights, rows)
        self.__dict__.update(
            first=frozen(left),
            second=frozen(right),
            outcome=frozen(outcome),
            both_bad=_take(votes.both_bad, rows),
            weight=kept,
            time=None if times is None else _take(times[by_row], rows),
            covariates=MappingProxyType(
                {name: frozen(_take(v[by_row], rows)) for name, v in columns.items()}
            ),
        )
        for name, each in labels.items():
            self.__dict__[name] = (
                None
                if each is None
                else Labels(frozen(_take(each.codes[by_row], rows)), each.names)
            )
        self._count(names)

    @classmethod
    def from_frame(
        cls, frame: "pd.DataFrame", *, systems: Sequence[Hashable] | None = None
    ) -> "Battles":
        """Build battles from a table, in one of the layouts that arenas and judges publish.

        Parameters
        ----------
        frame : pandas.DataFrame
            Columns as in :func:`bayesrank.read_battles`.
        systems : sequence of str, optional
            Order of the systems; order of first appearance in time by default.

        Returns
        -------
        Battles

        Raises
        ------
        DataError
            If the columns are those of no known layout, or hold what they should not.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"model_a": ["x"], "model_b": ["y"], "wins_a": [7], "wins_b": [3]})
        >>> Battles.from_frame(frame).wins
        array([[0., 7.],
               [3., 0.]])
        """
        return cls(**read_table(as_frame(frame)), systems=systems)

    @classmethod
    def from_responses(cls, data: Responses) -> "Battles":
        """Let questions vote on every pair of systems.

        Parameters
        ----------
        data : Responses
            Outcomes of questions.

        Returns
        -------
        Battles
            A row for each pair, question and result, with the number of comparisons as its weight,
            so that wins and ties are those of ``data.comparisons``. Questions are the prompts.

        Examples
        --------
        >>> Battles.from_responses(Responses([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))
        Battles(9 battles, 3 systems, 3 prompts)
        """
        wins, ties = data.compare_by_question()
        first, second = np.triu_indices(len(data.systems), 1)
        numbers = np.stack([wins[:, first, second], wins[:, second, first], ties[:, first, second]])
        result, question, pair = np.nonzero(numbers)
        order = np.lexsort((pair, question))
        result, question, pair = result[order], question[order], pair[order]
        systems, questions = np.array(data.systems), np.array(data.questions)
        return cls(
            systems[first[pair]],
            systems[second[pair]],
            np.array(["first", "second", "tie"])[result],
            systems=data.systems,
            weight=numbers[result, question, pair],
            prompt=questions[question],
            group=None if data.groups is None else np.array(data.groups)[question],
        )

    def take(self, rows: NDArray[np.intp], systems: tuple[str, ...] | None = None) -> "Battles":
        """Return some of the rows.

        Parameters
        ----------
        rows : numpy.ndarray of int
            Which ones; those of a vote should be together.
        systems : tuple of str, optional
            The systems of the part, which hold both sides of all its rows; all by default.

        Returns
        -------
        Battles
        """
        part = Battles.__new__(Battles)
        kept = {name: getattr(self, name)[rows] for name in ("first", "second", "outcome")}
        for name in ("both_bad", "weight", "time"):
            kept[name] = _take(getattr(self, name), rows)
        covariates = {name: values[rows] for name, values in self.covariates.items()}
        labels = {name: _some(getattr(self, name), rows) for name in _LABELS}
        if systems is not None:
            place = np.array(
                [systems.index(name) if name in systems else -1 for name in self.systems]
            )
            kept |= {
                side: frozen(place.astype(np.int32)[kept[side]]) for side in ("first", "second")
            }
        part.__dict__.update(kept | labels, covariates=MappingProxyType(covariates))
        part._count(systems or self.systems)
        return part

    def single_votes(self) -> "Battles":
        """Return a row for each vote: rows with an integer weight, such as 7 wins, are repeated.

        Where a weight is a fraction, or rows share a vote, rows stay as they are, without those of
        no weight.

        Returns
        -------
        Battles
        """
        if self.weight is None:
            return self
        times = self.repeats
        if times is None:
            return self.take(np.flatnonzero(self.weight))
        votes = self.take(np.repeat(np.arange(len(times)), times))
        votes.__dict__.update(weight=None)
        votes._count(self.systems)
        return votes

    def _count(self, systems: tuple[str, ...]) -> None:
        """Count the rows."""
        first_wins, second_wins, ties = count_outcomes(
            self.first, self.second, self.outcome, self.weight, len(systems)
        )
        super().__init__(
            first_wins + second_wins,
            ties + ties.T,
            systems=systems,
            first_wins=first_wins,
            second_wins=second_wins,
            first_ties=ties,
        )

    def __repr__(self) -> str:
        said = [
            f"{self.n_battles:,} battle{'s' * (self.n_battles != 1)}",
            f"{len(self.systems)} systems",
        ]
        for name in ("prompt", "judge", "group"):
            labels = getattr(self, name)
            if labels is not None:
                n = labels.n_named
                said.append(f"{n:,} {name}{'s' * (n != 1)}")
        return f"Battles({', '.join(said)})"

    @property
    def n_battles(self) -> int:
        """Number of votes; a row with an integer weight, such as 7 wins, is as many votes."""
        if self.vote is not None or self.weight is None:
            return len(self.first) if self.vote is None else len(self.vote.names)
        total = self.weight.sum()
        return round(total) or int(total > 0.0)

    def design(self, formula: str | None) -> Design:
        """Return the covariates of a formula, battle by battle.

        Parameters
        ----------
        formula : str or None
            Of the covariates, ``position`` (one for every battle), ``group`` and ``time``; see
            :func:`bayesrank.formula.design_of`. None for no covariate.

        Returns
        -------
        Design

        Raises
        ------
        DataError
            If the formula names what the battles do not have, or its values are not finite.
        """
        if formula is None:
            return Design.empty(len(self.first))
        if not isinstance(formula, str):
            raise DataError(f"formula must be a str such as 'length + markdown'; got {formula!r}")
        last = self.__dict__.setdefault("_last_design", {})
        if formula in last:
            return last[formula]
        variables: dict[str, Any] = dict(self.covariates)
        if self.time is not None:
            variables.setdefault("time", self.time)
        if self.group is not None:
            import pandas as pd

            group = pd.Categorical.from_codes(self.group.codes, list(self.group.names))
            # Sorted, so that the reference does not depend on the order of the rows.
            variables.setdefault("group", group.reorder_categories(sorted(self.group.names)))
        last.clear()
        last[formula] = design_of(formula, variables, len(self.first), self.weight)
        return last[formula]

    @cached_property
    def units(self) -> Mapping[str, int]:
        """Number of units by kind, the coarsest first: the independent units for intervals.

        Battles are last, whatever weights make of their number: each lies within a judge and a
        prompt.
        """
        known = {name: getattr(self, name) for name in ("judge", "prompt")}
        found = {name: len(each.names) for name, each in known.items() if each is not None}
        return dict(sorted(found.items(), key=lambda each: each[1])) | {"battle": self.n_battles}

    def default_unit(self, *, crossed: bool) -> str:
        """Return the kind with the fewest units, but at least five: fewer do not show a spread.

        If two kinds may be `crossed`, both of them, joined by a comma, unless one lies within the
        other, such as prompts that one judge saw each.

        Parameters
        ----------
        crossed : bool
            Whether two kinds of units may vary at once.

        Returns
        -------
        str
        """
        enough = [name for name, number in self.units.items() if number >= FEW_UNITS]
        kinds = [name for name in enough if name != "battle"]
        if crossed and len(kinds) == 2:
            both = np.stack([self.unit_codes(kind) for kind in kinds], axis=1)
            if len(np.unique(both, axis=0)) > max(self.units[kind] for kind in kinds):
                return ",".join(sorted(kinds))
        return next(iter(enough), "battle")

    @property
    def repeats(self) -> NDArray[np.int64] | None:
        """Number of votes of each row, such as 7 wins; None for fractions and shared votes."""
        if self.vote is not None:
            return None
        weight = np.ones(len(self.first)) if self.weight is None else self.weight
        times = weight.astype(np.int64)
        return times if np.array_equal(times, weight) else None

    def rows_are_units(self, unit: str) -> bool:
        """Return whether every row is independent of the others."""
        return unit == "battle" and self.vote is None

    def unit_codes(self, unit: str) -> NDArray[np.integer[Any]]:
        """Return the unit that each row belongs to, numbered from 0 without gaps.

        Parameters
        ----------
        unit : {"battle", "prompt", "judge"}
            What is independent of what.

        Returns
        -------
        numpy.ndarray of int and shape (battle,)

        Raises
        ------
        DataError
            If the battles do not say what it is.
        """
        check_choice("unit", unit, BattleUnit)
        labels = self.vote if unit == "battle" else getattr(self, unit)
        if labels is not None:
            return labels.codes
        if unit != "battle":
            raise DataError(
                f"unit must be one of {', '.join(self.units)}; got {unit!r}, which the battles do "
                "not name"
            )
        return np.arange(len(self.first))

    def unit_sizes(self, unit: str) -> NDArray[Any]:
        """Return the number of battles in each unit.

        Parameters
        ----------
        unit : {"battle", "prompt", "judge"}
            As in :meth:`unit_codes`.

        Returns
        -------
        numpy.ndarray of shape (unit,)
        """
        if self.rows_are_units(unit):
            return np.ones(self.n_battles)
        return np.bincount(self.unit_codes(unit), self.weight)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the rows and labels."""
        digest = hashlib.sha256(repr(self.systems).encode())
        for name, part in self._parts():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def _parts(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for name in ("first", "second", "outcome", "both_bad", "weight", "time"):
            if getattr(self, name) is not None:
                yield name, getattr(self, name)
        for name in _LABELS:
            if getattr(self, name) is not None:
                yield name, getattr(self, name).codes
        yield from self.covariates.items()


def with_covariates(data: object) -> Battles:
    """Return battles, whose rows a model with covariates needs, or raise DataError."""
    if isinstance(data, Battles):
        return data
    raise DataError(
        "formula must be None for counts of comparisons, which have no covariates; got one",
        in_python="rank Battles",
        in_shell="rank a log with one battle per row",
    )


def _labels(values: Any, name: str, n_battles: int) -> Labels | None:
    if values is None:
        return None
    codes, names = encode(values, name)
    if len(codes) != n_battles:
        raise DataError(f"{name} must have one label per battle, {n_battles}; got {len(codes)}")
    return Labels(codes, names)


def _some(labels: Labels | None, rows: NDArray[np.intp]) -> Labels | None:
    """Return the labels of some rows, without labels that no row has."""
    if labels is None:
        return None
    found, codes = np.unique(labels.codes[rows], return_inverse=True)
    return Labels(frozen(codes.astype(np.int32)), tuple(labels.names[code] for code in found))


def _column(values: ArrayLike, name: str, n_battles: int) -> NDArray[np.float64]:
    column = numeric(values, name)
    if column.shape != (n_battles,):
        raise DataError(f"{name} must be one finite number per battle; got {column.shape}")
    if not np.isfinite(column).all():
        wrong = column[~np.isfinite(column)][0]
        raise DataError(f"{name} must be one finite number per battle; got {wrong}")
    return column


def _seconds(time: Any) -> NDArray[np.float64]:
    """Return times as numbers, dates as the seconds since 1970."""
    try:
        return numeric(time, "time")
    except DataError:
        import pandas as pd  # 0.3 s, which numbers should not take

        return read_times(pd.Series(time), "the battles")


def _order(
    row: NDArray[np.intp] | None, times: NDArray[np.float64] | None
) -> NDArray[np.intp] | None:
    """Return the order of time of the rows, None where they are in it."""
    if times is None:
        return None
    when = times if row is None else times[row]
    return None if (np.diff(when) >= 0.0).all() else np.argsort(when, kind="stable")


def _take(values: Any, rows: NDArray[np.intp] | None) -> Any:
    """Return values in another order of the rows."""
    if values is None or rows is None:
        return values
    return values[rows]
