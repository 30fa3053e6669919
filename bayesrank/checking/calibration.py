"""Whether the intervals hold what they promise, by what they were made of."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from bayesrank.catalog import METHODS
from bayesrank.checking.verdicts import Finding
from bayesrank.inference.clusters import FEW_UNITS
from bayesrank.method import LIKELIHOOD_BACKENDS

# Below this many units the spread over them is rough; below FEW_UNITS it is hardly known.
_SOME_UNITS = 10


def check_calibration(result: xr.DataTree) -> Iterator[Finding]:
    """Yield what there is to say on the coverage of the intervals of a result.

    Parameters
    ----------
    result : xarray.DataTree
        A result.

    Yields
    ------
    Finding
    """
    if "lcb" not in result["ranking"]:
        yield Finding("calibration", "unknown", "There are no intervals to be calibrated.")
        return
    naive = _naive(result)
    if naive is not None:
        yield naive
        return
    few = _few_units(result)
    if few is not None:
        yield few
        return
    yield Finding("calibration", "good", _praise(result))


def _naive(result: xr.DataTree) -> Finding | None:
    attrs, method = result.attrs, METHODS.get(result.attrs["method"])
    likelihood = attrs["backend"] in LIKELIHOOD_BACKENDS
    if method is None or not likelihood or attrs["calibration"] != "none":
        return None
    if method.composite and attrs["target"] != "battles":
        return Finding(
            "calibration",
            "bad",
            f"{method.name} counts each answer once per opponent, and its draws are not "
            "calibrated: intervals are far too narrow, bounds too high, and orders seem resolved "
            "that are not; leave calibration at its default.",
        )
    if attrs["target"] == "population":
        return Finding(
            "calibration",
            "bad",
            "The draws are for these questions alone, and not calibrated for "
            "target='population': intervals are too narrow; leave calibration at its default.",
        )
    if method.empirical:
        return Finding(
            "calibration",
            "doubtful",
            f"A part of the prior of {method.name} comes from the data, and its draws are not "
            "calibrated: intervals leave out how much that part varies; leave calibration at its "
            "default.",
        )
    return None


def _few_units(result: xr.DataTree) -> Finding | None:
    constant = result["constant_data"].to_dataset() if "constant_data" in result else xr.Dataset()
    if result.attrs["target"] == "population" and "trials" in constant:
        n_units = int((constant["trials"] > 0).any("system").sum())
        what = "questions"
        if "question_group" in constant:
            n_groups = len(np.unique(constant["question_group"].values))
            if 1 < n_groups < FEW_UNITS:
                return Finding(
                    "calibration",
                    "doubtful",
                    f"{n_groups} groups say little about how scores vary over them: the intervals "
                    "take the questions as independent, and hold for these groups alone.",
                )
            if n_groups >= FEW_UNITS:
                n_units, what = n_groups, "groups of questions"
        if n_units < _SOME_UNITS:
            return Finding(
                "calibration",
                "bad" if n_units < FEW_UNITS else "doubtful",
                f"{n_units} {what} say little about how scores vary over them: gather more, or "
                "speak of these questions alone (target='benchmark').",
            )
    if result.attrs["target"] == "benchmark" and "trials" in constant:
        trials = constant["trials"].values
        if trials[trials > 0].min(initial=3) < 3 and result.attrs["calibration"] == "sandwich":
            return Finding(
                "calibration",
                "doubtful",
                "Two trials per question show little of their own noise: gather more.",
            )
    return None


def _praise(result: xr.DataTree) -> str:
    attrs = result.attrs
    units = {
        "benchmark": "trials of these questions",
        "population": "questions of the same kind",
        "battles": "battles",
    }[attrs["target"]]
    if attrs["calibration"] == "sandwich":
        return f"The draws have the spread that the data show over {units}."
    if attrs["backend"] == "bootstrap" or attrs["target"] == "population":
        return f"The draws come from resampled {units}."
    if attrs["backend"] == "exact":
        return (
            "The draws are of the exact posterior: intervals hold on average over truths from its "
            "uniform prior, and lean towards it where trials are few."
        )
    return (
        f"The draws are those of the likelihood for {units}, which hold as far as the model fits; "
        "calibration='sandwich' needs less of it."
    )
