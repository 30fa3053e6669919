"""Summaries of responses: numbers of outcomes, missing outcomes, questions without information."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.design import possible_trials

if TYPE_CHECKING:
    import xarray as xr

    from bayesrank.responses import Responses

# Grades are means of trials: those of equal outcomes are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class DataSummary:
    """The observed and the missing outcomes of systems on questions.

    Attributes
    ----------
    systems, questions : tuple of str
        Labels.
    trials : numpy.ndarray of shape (system, question)
        Observed outcomes.
    dead : tuple of str
        Questions on which all outcomes of all systems are the same: they have no information on
        the order of the systems.
    unseen : tuple of str
        Questions without any outcome.
    """

    systems: tuple[str, ...]
    questions: tuple[str, ...]
    trials: NDArray[np.int64]
    dead: tuple[str, ...]
    unseen: tuple[str, ...]

    @property
    def n_empty(self) -> int:
        """Cells, a system and a question, without any outcome."""
        return int(np.count_nonzero(self.trials == 0))

    @property
    def n_short(self) -> int:
        """Cells with some outcomes, but fewer than are possible."""
        return int(np.count_nonzero((self.trials > 0) & (self._lacking > 0)))

    @property
    def _lacking(self) -> NDArray[np.int64]:
        return possible_trials(self.trials) - self.trials

    def facts(self) -> dict[str, str]:
        """Return the summary as text by subject, without counts of missing outcomes if complete."""
        fewest, most = int(self.trials.min()), int(self.trials.max())
        n_cells, total = self.trials.size, int(self.trials.sum())
        possible = total + int(self._lacking.sum())
        facts = {
            "systems": f"{len(self.systems):,}",
            "questions": f"{len(self.questions):,}",
            "trials of a system on a question": str(most)
            if fewest == most
            else f"{fewest} to {most}",
            "outcomes": f"{total:,} of {possible:,} possible",
        }
        if total < possible:
            facts["empty cells"] = _share(
                self.n_empty, n_cells, "a system has no outcome on a question"
            )
            facts["incomplete cells"] = _share(self.n_short, n_cells, "fewer trials than possible")
        if len(self.systems) > 1:
            facts["questions without differences"] = _share(
                len(self.dead), len(self.questions), "the same outcome of every system"
            )
        if self.unseen:
            facts["unanswered questions"] = _share(
                len(self.unseen), len(self.questions), "no outcome at all"
            )
        return facts

    def missing_by_system(self) -> dict[str, int]:
        """Return the missing outcomes of each system, most first."""
        lacking = self._lacking.sum(axis=1)
        order = np.argsort(-lacking, kind="stable")
        return {self.systems[i]: int(lacking[i]) for i in order if lacking[i]}


def summarize_responses(data: "Responses") -> DataSummary:
    """Summarise responses.

    Parameters
    ----------
    data : Responses
        What was read.

    Returns
    -------
    DataSummary

    Examples
    --------
    >>> from bayesrank import Responses
    >>> summary = summarize_responses(Responses([[[1, 1], [1, -1]], [[1, 1], [0, 0]]]))
    >>> summary.dead, summary.n_short
    (('question 1',), 1)
    """
    fractional = data.scores is not None
    varied = _grades_vary(data.grades) if fractional else _categories_vary(data.counts)
    return _summary(data.systems, data.questions, np.asarray(data.trials), varied)


def summarize_result(result: "xr.DataTree") -> DataSummary | None:
    """Summarise the data of a result.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    DataSummary or None
        None for battles, which have no questions.
    """
    if "constant_data" not in result.children or "trials" not in result["constant_data"]:
        return None
    observed = result["observed_data"].to_dataset()
    trials = result["constant_data"].to_dataset()["trials"]
    unasked = json.loads(result.attrs.get("unasked", "[]"))
    if "grades" in observed:
        varied = _grades_vary(observed["grades"].values)
    else:
        varied = _categories_vary(observed["counts"].values)
    systems, questions = (tuple(trials[d].values.astype(str)) for d in ("system", "question"))
    none = np.zeros((len(systems), len(unasked)), dtype=np.int64)
    return _summary(
        systems,
        (*questions, *unasked),
        np.concatenate([trials.values, none], axis=1),
        np.append(varied, none.any(axis=0)),
    )


def _summary(
    systems: tuple[str, ...],
    questions: tuple[str, ...],
    trials: NDArray[np.int64],
    varied: NDArray[np.bool_],
) -> DataSummary:
    seen = trials.any(axis=0)
    names = np.array(questions)
    return DataSummary(
        systems,
        questions,
        trials,
        dead=tuple(names[seen & ~varied].tolist()) if len(systems) > 1 else (),
        unseen=tuple(names[~seen].tolist()),
    )


def _categories_vary(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether a question has outcomes of several categories."""
    return np.count_nonzero(counts.sum(axis=0), axis=-1) > 1


def _grades_vary(grades: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether a question has several grades."""
    low = np.where(np.isnan(grades), np.inf, grades).min(axis=0)
    high = np.where(np.isnan(grades), -np.inf, grades).max(axis=0)
    return high - low > _ROUNDING


def _share(n: int, total: int, meaning: str) -> str:
    return f"{n:,} of {total:,}" + (f" ({100 * n / total:.1f} %; {meaning})" if n else "")
