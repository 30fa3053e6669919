"""What follows from outcomes: how many there are, what they are worth, who wins against whom."""

import hashlib
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import (
    compare_cells,
    compare_trials,
    compare_trials_by_question,
    count_categories,
    count_observed,
)
from bayesrank.errors import DataError
from bayesrank.events import Events, deduplicate_events
from bayesrank.scale import UNIT, Scale
from bayesrank.validation import MISSING, frozen
from bayesrank.views import Ballots, Comparisons

Pairing = Literal["paired", "all"]


class ResponseViews:
    """Counts, grades and comparisons of outcomes that were checked, computed once each.

    :class:`bayesrank.Responses` adds how they come about.
    """

    _values: NDArray[np.int8] | NDArray[np.float64]
    _n_categories: int
    systems: tuple[str, ...]
    questions: tuple[str, ...]
    weights: NDArray[np.float64] | None
    scale: Scale | None
    groups: tuple[str, ...] | None
    prior_outcomes: NDArray[np.int8] | None
    paired: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of systems, questions and trials."""
        return self._values.shape

    @property
    def values(self) -> NDArray[np.int8] | NDArray[np.float64]:
        """Outcomes as they were given: `outcomes`, or scores in units with NaN where missing."""
        return self._values

    @property
    def outcomes(self) -> NDArray[np.int8]:
        """Categories of shape (system, question, trial), -1 where the trial is missing."""
        if self.scale is not None:
            raise DataError(
                f"outcomes must be categories here; got scores {self.scale}",
                in_python="turn them into categories with categorize(edges=...)",
                in_shell="turn them into categories with edges=(e1, ...)",
            )
        return self._values.view(np.int8)

    @cached_property
    def scores(self) -> NDArray[np.float64] | None:
        """Scores as shares of their scale, in [0, 1], NaN where missing; None for categories."""
        if self.scale is None:
            return None
        scores = self._values.view(np.float64)
        return scores if self.scale == UNIT else frozen(self.scale.shares(scores))

    @property
    def declared(self) -> dict[str, Any]:
        """Keywords of :class:`Responses` that say what the outcomes are."""
        categorical = self.scale is None and self.weights is None
        return {
            "weights": self.weights,
            "scale": self.scale,
            "categories": self._n_categories if categorical else None,
        }

    def in_units(self, grades: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return grades in the units of the outcomes: of the scale, or of the weights.

        Parameters
        ----------
        grades : numpy.ndarray
            Like `grades`, or means of them.

        Returns
        -------
        numpy.ndarray

        Examples
        --------
        >>> from bayesrank import Responses
        >>> data = Responses([[9, 10]], scale=(1, 10))
        >>> data.in_units(data.grades.mean())
        np.float64(9.5)
        """
        return grades if self.scale in (None, UNIT) else self.scale.units(grades)

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Whether each (system, question, trial) was observed."""
        if self.scores is not None:
            return frozen(~np.isnan(self.scores))
        return frozen(self._values != MISSING)

    @cached_property
    def n_missing(self) -> int:
        """Number of missing (system, question, trial) outcomes."""
        return int(self.observed.size - np.count_nonzero(self.observed))

    @cached_property
    def trials(self) -> NDArray[np.int64]:
        """Number of observed trials of each (system, question)."""
        if self.scores is None:
            return frozen(count_observed(self.outcomes))
        return frozen(np.count_nonzero(self.observed, axis=-1))

    @property
    def n_categories(self) -> int:
        """Number of categories, at least two."""
        _ = self.outcomes  # raises for scores
        return self._n_categories

    @property
    def is_binary(self) -> bool:
        """Whether outcomes are wrong and right worth 0 and 1."""
        return (
            self.scores is None
            and self.n_categories == 2
            and self.weights is not None
            and self.weights.tolist() == [0.0, 1.0]
        )

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of trials in each category, of shape (system, question, category)."""
        return frozen(count_categories(self.outcomes, self.n_categories))

    @property
    def category_weights(self) -> NDArray[np.float64]:
        """Worth of each category; an error for more than two categories without weights."""
        if self.weights is None:
            raise DataError(
                "weights must be given for outcomes with more than two categories; "
                f"got None for {self.n_categories} categories: weights=(w0, w1, ...)"
            )
        return self.weights

    @cached_property
    def levels(self) -> NDArray[np.int8]:
        """Outcomes as levels 0, 1, ... that are compared: higher is better, -1 is missing.

        The levels are the categories in the order of their worth; categories of equal worth share
        a level.
        """
        if self.is_binary:
            return self.outcomes
        level = self.category_levels
        if np.array_equal(level, np.arange(len(level))):
            return self.outcomes
        return frozen(np.where(self.observed, level[self.outcomes], MISSING).astype(np.int8))

    @cached_property
    def category_levels(self) -> NDArray[np.int64]:
        """Level of each category, see `levels`."""
        if self.weights is None:
            return frozen(np.arange(self.n_categories))
        return frozen(np.unique(self.weights, return_inverse=True)[1])

    @cached_property
    def level_counts(self) -> NDArray[np.int64]:
        """Number of trials at each level, of shape (system, question, level); see `levels`."""
        return frozen(count_categories(self.levels, int(self.levels.max(initial=1)) + 1))

    @cached_property
    def grades(self) -> NDArray[np.float64]:
        """Mean worth of the trials of each (system, question), NaN where there is none."""
        with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN of an unobserved cell
            if self.scores is not None:
                return frozen(np.nansum(self.scores, axis=-1) / self.trials)
            if self.is_binary:
                return frozen(self.counts[..., 1] / self.trials)
            return frozen(self.counts @ self.category_weights / self.trials)

    @cached_property
    def binary_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Right answers and observed trials, both of shape (system, question)."""
        self._require_binary("counts of right answers")
        return frozen(self.counts[..., 1].copy()), self.trials

    @property
    def prior_sets(self) -> NDArray[np.int8] | None:
        """Earlier outcomes of shape (system or 1, question, d): one set where systems share it."""
        earlier = self.prior_outcomes
        return earlier if earlier is None or earlier.ndim == 3 else earlier[np.newaxis]

    @cached_property
    def comparisons(self) -> Comparisons:
        """Wins and ties between systems, by the pairing that `paired` says."""
        return self.compare("paired" if self.paired else "all")

    def compare(self, pairing: Pairing) -> Comparisons:
        """Count wins and ties between systems.

        Parameters
        ----------
        pairing : {"paired", "all"}
            Compare trial t of one system with trial t of the other, or average over all
            cross-trial pairs of a question, with as many comparisons as the shorter side has
            trials.

        Returns
        -------
        Comparisons
        """
        if pairing not in ("paired", "all"):
            raise DataError(f"pairing must be 'paired' or 'all'; got {pairing!r}")
        if pairing == "paired":
            wins, ties = compare_trials(self.levels)
        else:
            wins, ties = compare_cells(self.level_counts)
        return Comparisons.of_counts(wins, ties, self.systems)

    def compare_by_question(
        self, some: slice = slice(None)
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Count wins and ties on each of some questions, by the pairing that `paired` says.

        Parameters
        ----------
        some : slice, optional
            Which questions; all by default.

        Returns
        -------
        wins, ties : numpy.ndarray of shape (question, system, opponent)
        """
        if self.paired:
            return compare_trials_by_question(self.levels[:, some])
        return compare_cells(self.level_counts[:, some].swapaxes(0, 1)[:, :, np.newaxis])

    @cached_property
    def ballots(self) -> Ballots:
        """Questions as voters: the grade that each gives to every system."""
        return Ballots(self.grades, self.systems)

    @cached_property
    def events(self) -> Events:
        """Sets of right and wrong systems per (question, trial), deduplicated."""
        self._require_binary("events")
        return deduplicate_events(self.outcomes, self.systems)

    @cached_property
    def stream(self) -> NDArray[np.int8]:
        """Outcomes in the order of play, of shape (trial, question, system)."""
        self._require_binary("stream")
        return frozen(np.ascontiguousarray(self.outcomes.transpose(2, 1, 0)))

    def _require_binary(self, what: str) -> None:
        if not self.is_binary:
            raise DataError(
                f"outcomes must be right or wrong (0 and 1, worth 0 and 1) for {what}; got "
                f"{self.n_categories} categories with weights "
                f"{None if self.weights is None else self.weights.tolist()}"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the outcomes and everything that can change a ranking."""
        digest = hashlib.sha256()
        for part in (self._values, self.weights, self.prior_outcomes):
            if part is not None:
                digest.update(f"{part.dtype}{part.shape}".encode())
                digest.update(np.ascontiguousarray(part).tobytes())
        labels = (self.systems, self.questions, self.groups, self.paired)
        if self.scale not in (None, UNIT):
            labels = (*labels, tuple(self.scale))
        digest.update(repr(labels).encode())
        return digest.hexdigest()
