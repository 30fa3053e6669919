"""The validated data of an evaluation: outcomes by system, question and trial.

Every ranker starts from a :class:`Responses` or from the :class:`~bayesrank.views.Comparisons` of
a set of battles. All checks on data happen here, once; what comes out is read-only.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.columns import split_and_pooled
from bayesrank.combining import append, choose, join, renamed
from bayesrank.display import to_html
from bayesrank.errors import DataError
from bayesrank.longtable import read_dataarray, read_long, write_long
from bayesrank.outcomes import (
    DECLARATIONS,
    cut,
    outcome_array,
    refuse,
    validate_outcomes,
    validate_prior_outcomes,
)
from bayesrank.response_views import ResponseViews
from bayesrank.scale import UNIT
from bayesrank.validation import MISSING, label_systems, unique_labels, validate_groups

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Responses(ResponseViews):
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
        Outcomes are categories, worth so much each. Defaults to (0, 1) for binary outcomes.
    scale : (float, float), optional
        Outcomes are scores, such as ratings and percentages: the lowest and the highest there can
        be. Scores, intervals and observed means are shown in these units.
    categories : int, optional
        Outcomes are so many categories without a worth, 0 the worst. Methods that need weights
        raise for more than two.
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
        If an argument does not have the stated form; the message names it.

    Examples
    --------
    >>> data = Responses([[[1, 1], [0, 1]], [[0, 1], [0, 0]]], systems=["a", "b"])
    >>> data
    Responses(2 systems, 2 questions, 2 trials)
    >>> data.grades
    array([[1. , 0.5],
           [0.5, 0. ]])
    """

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
            f"{size} {name}{'s' * (size != 1)}"
            for size, name in zip(self.shape, ("system", "question", "trial"), strict=True)
        )
        scale = "" if self.scale in (None, UNIT) else f", scores {self.scale}"
        missing = f", {self.n_missing} outcomes missing" if self.n_missing else ""
        return f"Responses({sizes}{scale}{missing})"

    def _repr_html_(self) -> str | None:
        return to_html("responses_html", self)

    @classmethod
    def from_dataarray(cls, data: "xr.DataArray", **options: Any) -> "Responses":
        """Build responses from a labelled array.

        Parameters
        ----------
        data : xarray.DataArray
            With dims ``system``, ``question`` and, optionally, ``trial``, in any order; labels are
            read from its coordinates.
        **options
            Further keywords of :class:`Responses`.

        Returns
        -------
        Responses

        Raises
        ------
        DataError
            If the dims are not these.
        """
        outcomes, labels = read_dataarray(data)
        return cls(outcomes, **{**labels, **options})

    @classmethod
    def from_long(
        cls,
        frame: "pd.DataFrame",
        *,
        system: str | None = None,
        question: str | None = None,
        trial: str | None = None,
        outcome: str | None = None,
        group: str | None = None,
        wide: bool = False,
        split_by: str | Iterable[str] = (),
        pool: str | Iterable[str] = (),
        paired: bool | None = None,
        **options: Any,
    ) -> "Responses":
        """Build responses from a long table with one row per outcome.

        The same table as a file gives the same responses by :func:`bayesrank.read_responses`.

        Parameters
        ----------
        frame : pandas.DataFrame
            With columns for the system, the question, the outcome and, optionally, the trial and
            the group, under any of the names of :data:`bayesrank.columns.NAMES`. Without a trial
            column, the rows of a cell are its trials in order of appearance. Combinations that have
            no row, and NaN outcomes, are missing. Where ids of questions start anew in each group,
            the group is part of the question.
        system, question, trial, outcome, group : str, optional
            Columns with other names; several that make up the system or the question are separated
            by commas, and ``group="none"`` leaves groups out.
        wide : bool, default False
            Whether every system has a column, as in :func:`bayesrank.read_responses`.
        split_by, pool : str or iterable of str, optional
            Columns of settings, such as ``temperature``: rows of a system and question that differ
            in one of them are systems of their own, with the setting in their names. Those to
            `pool` do not tell systems apart; those to `split_by` do in any case.
        paired : bool, optional
            As in :class:`Responses`. By default what :meth:`to_long` has kept, else whether the
            trial column is called run or seed: rows of a log are usually independent epochs.
        **options
            Further keywords of :class:`Responses`, such as `weights` and `scale`.

        Returns
        -------
        Responses
            Systems, questions and trials in order of first appearance; trials sorted when they
            are numbers.

        Raises
        ------
        DataError
            If a column is absent or ambiguous, a label is missing, or a (system, question, trial)
            occurs twice.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [("a", 1, "pass"), ("a", 2, "fail"), ("b", 1, "pass"), ("b", 2, "pass")]
        >>> frame = pd.DataFrame(rows, columns=["model_name", "task_id", "verdict"])
        >>> Responses.from_long(frame, outcome="verdict")
        Responses(2 systems, 2 questions, 1 trial)
        """
        split, pooled = split_and_pooled(split_by, pool)
        columns = {
            "system": system,
            "question": question,
            "trial": trial,
            "outcome": outcome,
            "group": group,
            "split_by": ",".join(split) or None,
            "pool": ",".join(pooled) or None,
        }
        cells, labels = read_long(frame, columns, wide=wide)
        kept = labels.pop("paired", False)
        if not DECLARATIONS.isdisjoint(options):
            labels = {name: each for name, each in labels.items() if name not in DECLARATIONS}
        return cls(cells, paired=kept if paired is None else paired, **{**labels, **options})

    def to_long(self) -> "pd.DataFrame":
        """Return the outcomes as a long table, from which :meth:`from_long` restores them.

        Returns
        -------
        pandas.DataFrame
            Columns system, question, trial, outcome and, where there are groups, group; one row
            per system, question and trial, missing ones included as NaN. What no row can say (what
            the outcomes are, prior outcomes, pairing) is in ``attrs``, which Parquet keeps and CSV
            does not.

        Examples
        --------
        >>> data = Responses([[[1, 0], [1, -1]]], systems=["a"])
        >>> data.to_long()["outcome"].tolist()
        [1.0, 0.0, 1.0, nan]
        >>> Responses.from_long(data.to_long()).fingerprint == data.fingerprint
        True
        """
        return write_long(self)

    def categorize(self, edges: ArrayLike, *, weights: ArrayLike | None = None) -> "Responses":
        """Turn scores into ordered categories.

        Parameters
        ----------
        edges : array_like of shape (category - 1,)
            Increasing lower bounds of categories 1, 2, ... in the units of the scores; a score
            equal to an edge belongs to the category above it.
        weights : array_like of shape (category,), optional
            Worth of each category; (0, 1) by default for one edge.

        Returns
        -------
        Responses

        Raises
        ------
        DataError
            If the outcomes are categories already, or the edges are not increasing numbers.

        Examples
        --------
        >>> Responses([[0.2, 0.7]]).categorize([0.5]).outcomes[0, :, 0]
        array([0, 1], dtype=int8)
        """
        if self.scores is None:
            raise DataError("edges must be None for categories; got outcomes that are no scores")
        earlier = self.prior_sets
        outcomes = cut(self.values, self.observed, edges)
        # The categories are declared by their edges.
        number = np.size(edges) + 1 if weights is None else None
        return Responses(
            outcomes,
            systems=self.systems,
            questions=self.questions,
            weights=weights,
            categories=number,
            groups=self.groups,
            # Earlier outcomes 0 and 1 are the scores 0 and 1.
            prior_outcomes=None if earlier is None else cut(earlier, earlier != MISSING, edges),
            paired=self.paired,
        )

    def select(
        self,
        *,
        systems: Iterable[str] | str | None = None,
        questions: Iterable[str] | str | None = None,
        groups: Iterable[str] | str | None = None,
        trials: ArrayLike | slice | None = None,
    ) -> "Responses":
        """Keep some systems, questions or trials, in the order in which they are named.

        Parameters
        ----------
        systems, questions, groups : str or iterable of str, optional
            Labels, or patterns such as ``"gpt-*"``; all by default.
        trials : slice or array_like of int, optional
            Positions of trials.

        Returns
        -------
        Responses

        Raises
        ------
        DataError
            If a label is unknown, or nothing is left.

        Examples
        --------
        >>> data = Responses([[1, 0], [1, 1]], systems=["a", "b"], groups=["x", "y"])
        >>> data.select(systems="b", groups=["y"]).outcomes.tolist()
        [[[1]]]
        """
        return Responses(**choose(self, systems, questions, groups, trials))

    @classmethod
    def concat(cls, parts: "Iterable[Responses]") -> "Responses":
        """Join responses of different systems or questions.

        Parameters
        ----------
        parts : iterable of Responses
            Outcomes of one kind. Systems and questions are joined by their labels, trials by their
            positions; what no part has is missing.

        Returns
        -------
        Responses
            Paired if all parts are.

        Raises
        ------
        DataError
            If two parts have an outcome in the same place, or differ in what outcomes are.

        Examples
        --------
        >>> one = Responses([[1, 0]], systems=["a"])
        >>> Responses.concat([one, one.rename(systems={"a": "b"})])
        Responses(2 systems, 2 questions, 1 trial)
        """
        return cls(**join(list(parts)))

    def append_trials(self, other: "Responses") -> "Responses":
        """Put the trials of other responses behind those at hand.

        Parameters
        ----------
        other : Responses
            Outcomes of one kind; of systems and questions that one side lacks, its trials are
            missing.

        Returns
        -------
        Responses
            Paired if both are.

        Raises
        ------
        DataError
            If they differ in what outcomes are.

        Examples
        --------
        >>> Responses([[1, 0]]).append_trials(Responses([[0, 0]])).outcomes.tolist()
        [[[1, 0], [0, 0]]]
        """
        return Responses(**append(self, other))

    def rename(
        self,
        *,
        systems: Mapping[str, str] | Callable[[str], str] | None = None,
        questions: Mapping[str, str] | Callable[[str], str] | None = None,
        groups: Mapping[str, str] | Callable[[str], str] | None = None,
    ) -> "Responses":
        """Give systems, questions or groups other labels.

        Parameters
        ----------
        systems, questions, groups : mapping of str to str or callable, optional
            New labels by the old ones, which stay where there is none. Groups may become one,
            systems and questions may not.

        Returns
        -------
        Responses

        Raises
        ------
        DataError
            If a label that is renamed is unknown, or two would become one.

        Examples
        --------
        >>> Responses([[1], [0]], systems=["a", "b"]).rename(systems={"b": "c"}).systems
        ('a', 'c')
        """
        return Responses(**renamed(self, systems, questions, groups))
