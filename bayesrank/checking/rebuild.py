"""Rebuild the data of a result from its counts."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import METHODS
from bayesrank.method import Method
from bayesrank.responses import Responses
from bayesrank.views import Comparisons


def rebuilt(result: xr.DataTree) -> Responses | Comparisons | None:
    """Return data with the sufficient statistics of a result; trials are in any order.

    None if the method needs more than the result holds: the order of trials, or which systems were
    right in the same trial.
    """
    row = METHODS.get(result.attrs["method"])
    if row is None or "observed_data" not in result.children:
        return None
    observed = result["observed_data"].to_dataset()
    constant = result["constant_data"].to_dataset() if "constant_data" in result else xr.Dataset()
    if "wins" in observed:
        return _comparisons(observed, constant)
    if "counts" not in observed or "category_weights" not in constant or not _reads_counts(row):
        return None
    counts = observed["counts"].transpose("system", "question", "category").values
    groups = constant["question_group"].values.tolist() if "question_group" in constant else None
    earlier = constant["prior_counts"].values if "prior_counts" in constant else None
    return Responses(
        _outcomes(counts),
        systems=observed["system"].values.tolist(),
        questions=observed["question"].values.tolist(),
        weights=constant["category_weights"].values,
        groups=groups,
        prior_outcomes=None if earlier is None else _outcomes(earlier),
    )


def _reads_counts(row: Method) -> bool:
    """Return whether a method needs only the counts of the cells."""
    if row.data == "responses":  # luce models need the sets of right systems in each trial
        return row.family == "item response" and "assume_time_axis" not in row.options
    return row.data not in ("pairs", "comparisons", "stream")


def _outcomes(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return outcomes with given counts by category, sorted within a cell."""
    ends = np.cumsum(counts, axis=-1)[..., np.newaxis, :]
    trials = np.arange(max(int(ends.max()), 1))[:, np.newaxis]
    category = (trials >= ends).sum(axis=-1)
    return np.where(category < counts.shape[-1], category, -1)


def _comparisons(observed: xr.Dataset, constant: xr.Dataset) -> Comparisons:
    dims = ("system", "opponent")
    ordered = {
        name: constant[name].transpose(*dims).values
        for name in ("first_wins", "second_wins", "first_ties")
        if name in constant
    }
    wins, ties = (observed[name].transpose(*dims).values for name in ("wins", "ties"))
    return Comparisons(wins, ties, systems=observed["system"].values.tolist(), **ordered)
