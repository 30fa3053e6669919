"""The design of the data: which systems were asked which questions, or met in which battles."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.design import possible_trials

# Grades are means of outcomes: those of equal outcomes are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """The observations of every system, without the outcomes themselves.

    Attributes
    ----------
    systems : tuple of str
        Labels.
    unit : str
        Kind of observation: outcome, battle or ballot.
    sizes : numpy.ndarray of shape (system,)
        Number of observations of each system.
    varied : numpy.ndarray of shape (system,)
        Whether they differ from one another.
    met : numpy.ndarray of shape (system, system)
        Whether two systems were ever observed on one question, in one battle or on one ballot.
    trials : numpy.ndarray of shape (system, question), or None
        Number of trials; None if there are no questions.
    binary : bool
        Whether outcomes are right or wrong, worth 1 and 0.
    """

    systems: tuple[str, ...]
    unit: str
    sizes: NDArray[np.float64]
    varied: NDArray[np.bool_]
    met: NDArray[np.bool_]
    trials: NDArray[np.int64] | None = None
    binary: bool = False

    @property
    def missing(self) -> float:
        """Share of the possible outcomes (:func:`bayesrank.design.possible_trials`) missing."""
        if self.trials is None:
            return 0.0
        possible = len(self.trials) * possible_trials(self.trials).sum()
        return 1.0 - float(self.trials.sum() / possible)

    def names(self, chosen: NDArray[np.bool_]) -> list[str]:
        """Return the labels of some systems."""
        return [name for name, one in zip(self.systems, chosen, strict=True) if one]


def design_of(observed: xr.Dataset, constant: xr.Dataset) -> Design:
    """Read the design from the groups of a result; the constant data may be empty."""
    systems = tuple(str(name) for name in observed["system"].values)
    if "trials" in constant:
        return _of_outcomes(systems, observed, constant)
    if "wins" in observed:
        return _of_battles(systems, observed)
    grades = observed["grades"].transpose("system", "ballot").values
    seen = np.isfinite(grades)
    first = grades == np.where(seen, grades, -np.inf).max(axis=0)
    last = grades == np.where(seen, grades, np.inf).min(axis=0)
    varied = ~((first | ~seen).all(axis=1) | (last | ~seen).all(axis=1))
    return Design(systems, "ballot", seen.sum(axis=1).astype(float), varied, _met(seen))


def _of_outcomes(systems: tuple[str, ...], observed: xr.Dataset, constant: xr.Dataset) -> Design:
    trials = constant["trials"].transpose("system", "question").values
    binary = False
    if "counts" in observed:
        counts = observed["counts"].transpose("system", "question", "category").values
        varied = np.count_nonzero(counts.sum(axis=1), axis=-1) > 1
        worth = constant["category_weights"].values if "category_weights" in constant else None
        binary = worth is not None and worth.tolist() == [0.0, 1.0]
    else:
        grades = observed["grades"].transpose("system", "question").values
        low = np.where(np.isnan(grades), np.inf, grades).min(axis=1)
        varied = np.nan_to_num(grades, nan=-np.inf).max(axis=1) - low > _ROUNDING
    sizes = trials.sum(axis=1).astype(float)
    return Design(systems, "outcome", sizes, varied, _met(trials > 0), trials, binary)


def _of_battles(systems: tuple[str, ...], observed: xr.Dataset) -> Design:
    wins, ties = (
        observed[name].transpose("system", "opponent").values for name in ("wins", "ties")
    )
    battles = wins + wins.T + ties
    kinds = np.stack([wins.sum(axis=1), wins.sum(axis=0), ties.sum(axis=1)]) > 0
    return Design(
        systems,
        "battle",
        battles.sum(axis=1),
        np.count_nonzero(kinds, axis=0) > 1,
        battles + np.eye(len(systems)) > 0,
    )


def _met(seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    table = seen.astype(np.float32)  # products of whole numbers are slow
    return table @ table.T > 0


def count_parts(met: NDArray[np.bool_]) -> int:
    """Return the number of connected parts of a graph, a symmetric table (system, system).

    Examples
    --------
    >>> count_parts(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool))
    2
    """
    reached = met | np.eye(len(met), dtype=bool)
    for _ in range(max(len(met) - 1, 1).bit_length()):
        reached = reached @ reached
    return len(np.unique(reached, axis=0))
