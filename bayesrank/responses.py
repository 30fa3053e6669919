"""The validated data of an evaluation: outcomes by system, question and trial.

Every ranker starts from a :class:`Responses` or from the :class:`~bayesrank.views.Comparisons` of
a set of battles. All checks on data happen here, once; what comes out is read-only.
"""

import hashlib
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank import combining, conversions
from bayesrank.batches import batches
from bayesrank.counting import (
    compare_cells,
    compare_trials,
    compare_trials_by_question,
)
from bayesrank.display import to_html
from bayesrank.errors import DataError
from bayesrank.events import Events, deduplicate_events
from bayesrank.outcomes import (
    outcome_array,
    refuse,
    validate_outcomes,
    validate_prior_outcomes,
)
from bayesrank.scale import UNIT, Scale
from bayesrank.validation import MISSING, frozen, label_systems, unique_labels, validate_groups
from bayesrank.views import Ballots, Comparisons

if TYPE_CHECKING:
    pass

Pairing = Literal["paired", "all"]

# Outcomes turned into float32 at a time, which is 1 MB.
_COUNTED_AT_ONCE = 2**18


class Responses:
    """Outcomes of systems on questions over repeated trials.

    Parameters
    ----------
    outcomes : array_like of shape (system, question, trial) or (system, question)
        Booleans or 0 and 1 for wrong and right; fractions in [0, 1], which are scores; scores on
        the `scale` that is named; or categories 0..C whose `weights` or number are given. NaN is a
        missing trial, and -1 among whole numbers, unless it lies on the scale. A two-dimensional
        array is one trial.
    systems, questions : sequence of str, optional
        Unique labels; numbered from 1 by default.
    weights : array_like of shape (category,), optional
        Worth of each category; (0, 1) by default for binary outcomes.
    scale : (float, float), optional
        Outcomes are scores, such as ratings and percentages: the lowest and the highest there can
        be. Scores, intervals and observed means are shown in these units.
    categories : int, optional
        Number of categories without a worth, 0 the worst. Methods that need weights raise for
        more than two.
    groups : sequence of str, one per question, optional
        Benchmark or topic of each question.
    prior_outcomes : array_like, optional
        Earlier outcomes `R0`, such as greedy decodings, of the same categories, -1 for missing: of
        shape (question, d) or (1, question, d) where all systems share them, else (system,
        question, d) or, for one each, (system, question). Methods use them only on request.
    paired : bool, default True
        Whether trial t is the same run (seed, prompt variant, instance) for all systems. If not,
        comparisons are averaged over all cross-trial pairs.

    Raises
    ------
    DataError
        If an argument is invalid; the message names it.

    Examples
    --------
    >>> data = Responses([[[1, 1], [0, 1]], [[0, 1], [0, 0]]], systems=["a", "b"])
    >>> data
    Responses(2 systems, 2 questions, 2 trials)
    >>> data.grades
    array([[1. , 0.5],
           [0.5, 0. ]])
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

    def __init__(
        self,
        outcomes: ArrayLike,
        *,
        systems: Sequence[Hashable] | None = None,
        questions: Sequence[Hashable] | None = None,
        weights: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        categories: int | None = None,
        groups: Sequence[Hashable] | None = None,
        prior_outcomes: ArrayLike | None = None,
        paired: bool = True,
    ) -> None:
        if not isinstance(paired, bool | np.bool_):
            raise DataError(f"paired must be True or False; got {paired!r}")
        array = outcome_array(outcomes)
        n_systems, n_questions, _ = array.shape
        named = label_systems(systems, n_systems)
        asked = unique_labels(questions, n_questions, "questions", "question")
        found = validate_outcomes(
            array,
            weights=weights,
            scale=scale,
            categories=categories,
            where=lambda i, j: f"system {named[i]!r}, question {asked[j]!r}",
        )
        if found.scale not in (None, UNIT):
            refuse({"prior_outcomes": prior_outcomes}, "must be None for scores on a scale")
        self.__dict__.update(
            _values=found.values,
            systems=named,
            questions=asked,
            weights=found.weights,
            scale=found.scale,
            _n_categories=found.n_categories,
            groups=validate_groups(groups, n_questions),
            prior_outcomes=validate_prior_outcomes(
                prior_outcomes, n_systems, n_questions, found.n_categories
            ),
            paired=bool(paired),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Responses is immutable; {name} cannot be set")

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{size:,} {name}{'s' * (size != 1)}"
            for size, name in zip(self.shape, ("system", "question", "trial"), strict=True)
        )
        scale = "" if self.scale in (None, UNIT) else f", scores {self.scale}"
        n_missing = self.n_missing
        missing = f", {n_missing:,} outcome{'s' * (n_missing != 1)} missing" if n_missing else ""
        return f"Responses({sizes}{scale}{missing})"

    def _repr_html_(self) -> str | None:
        return to_html("responses_html", self)

    # Responses from tables and labelled arrays, and back.
    from_dataarray = classmethod(conversions.from_dataarray)
    from_long = classmethod(conversions.from_long)
    to_long = conversions.to_long

    # Parts of responses, and responses of parts.
    categorize = combining.categorize
    select = combining.select
    concat = classmethod(combining.concat)
    append_trials = combining.append_trials
    rename = combining.rename

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

        Raises
        ------
        DataError
            If `pairing` is another word.
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
        self._require_binary("choices among systems")
        return deduplicate_events(self.outcomes, self.systems)

    @cached_property
    def stream(self) -> NDArray[np.int8]:
        """Outcomes in the order of play, of shape (trial, question, system)."""
        self._require_binary("games in the order of play")
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


def count_categories(outcomes: NDArray[np.int8], n_categories: int) -> NDArray[np.int64]:
    """Count the trials in each category, of shape (system, question, category)."""
    counts = np.empty((*outcomes.shape[:-1], n_categories), dtype=np.int64)
    counts[..., 0] = count_observed(outcomes)
    for category in range(1, n_categories):
        counts[..., category] = _count_equal(outcomes, category)
        counts[..., 0] -= counts[..., category]
    return counts


def count_observed(outcomes: NDArray[np.int8]) -> NDArray[np.int64]:
    """Count the trials that are not missing, of shape (system, question)."""
    n_trials = outcomes.shape[-1]
    if outcomes.min(initial=0) != MISSING:
        return np.full(outcomes.shape[:-1], n_trials)
    return n_trials - _count_equal(outcomes, MISSING)


def _count_equal(outcomes: NDArray[np.int8], category: int) -> NDArray[np.int64]:
    """Count the trials in one category, of shape (system, question)."""
    n_trials = outcomes.shape[-1]
    if n_trials > _COUNTED_AT_ONCE:
        return np.count_nonzero(outcomes == category, axis=-1)
    # A product with ones, exact here, is several times faster than a sum along a short last axis.
    rows, ones = outcomes.reshape(-1, n_trials), np.ones(n_trials, dtype=np.float32)
    counts = np.empty(len(rows), dtype=np.int64)
    for block in batches(len(rows), n_trials, _COUNTED_AT_ONCE):
        counts[block] = (rows[block] == category).astype(np.float32) @ ones
    return counts.reshape(outcomes.shape[:-1])


def prior_counts(data: Responses) -> NDArray[np.int64] | None:
    """Return counts of earlier outcomes, of shape (system or 1, question, category), or None."""
    sets = data.prior_sets
    return None if sets is None else count_categories(sets, data.n_categories)
