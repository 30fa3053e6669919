"""Check the intervals: how they were computed, and their measured coverage."""

import json
from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.catalog import METHODS
from bayesrank.checking.coverage import judge_coverage
from bayesrank.checking.design import Design
from bayesrank.checking.verdicts import Finding
from bayesrank.inference.resample.units import SOME_UNITS, effective_number
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from bayesrank.printable import listing
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

# Smaller differences, relative to the largest score, are rounding errors.
_ROUNDING = 1e-9


def check_calibration(
    result: xr.DataTree,
    design: Design,
    data: Responses | Comparisons | Ballots | None,
    *,
    dependent: bool,
    pulled: bool,
) -> Iterator[Finding]:
    """Yield the findings on the intervals of a result and their coverage.

    `dependent` says whether the check of runs found dependent trials, `pulled` whether the check of
    the prior found scores that depend on it.
    """
    if "lcb" not in result["ranking"]:
        yield Finding("calibration", "not measured", "There are no intervals.", name="intervals")
        return
    method = METHODS.get(result.attrs["method"])
    broken = [*_zero_width(result, method), *_outside(result)]
    yield from broken
    naive = _naive(result)
    found = [naive] if naive is not None else list(_few_units(result, method, data))
    if found:
        yield from found
    elif method is None:
        yield Finding(
            "calibration",
            "not measured",
            f"The coverage of the intervals was not measured for "
            f"{result.attrs['method']}, a method of your own.",
            name="coverage",
        )
    elif not broken:
        yield judge_coverage(result, method, design, dependent=dependent, pulled=pulled)


def _zero_width(result: xr.DataTree, method: Method | None) -> Iterator[Finding]:
    ranking = result["ranking"].to_dataset()
    lower, upper = ranking["score_lower"].values, ranking["score_upper"].values
    tight = upper - lower <= _rounding(ranking)
    if method is not None and method.kind == "share":  # the largest is 100 % by definition
        tight &= ranking["score"].values < ranking["score"].values.max()
    if tight.any():
        names = ranking["system"].values[tight].astype(str).tolist()
        yield Finding(
            "calibration",
            "bad",
            f"The interval of {listing(names)} has no width, as if its score were known exactly. "
            "Gather more data, or use another method.",
            {"systems": names},
            "zero width",
        )


def _outside(result: xr.DataTree) -> Iterator[Finding]:
    if json.loads(result.attrs["options"]).get("quantile") is not None:
        return  # a score that is a quantile of the posterior may lie outside by definition
    ranking = result["ranking"].to_dataset()
    lower, upper, score = (ranking[f"score{end}"].values for end in ("_lower", "_upper", ""))
    rounding = _rounding(ranking)
    out = (score < lower - rounding) | (score > upper + rounding)
    if out.any():
        names = ranking["system"].values[out].astype(str).tolist()
        first = int(np.flatnonzero(out)[0])
        yield Finding(
            "calibration",
            "bad",
            f"The score of {listing(names)} lies outside its own interval ({names[0]}: "
            f"{score[first]:.4g}, interval {lower[first]:.4g} to {upper[first]:.4g}): the two do "
            "not describe the same quantity. Do not report them together.",
            {"systems": names},
            "outside",
        )


def _rounding(ranking: xr.Dataset) -> NDArray[np.float64]:
    ends = np.stack([ranking[f"score{end}"].values for end in ("_lower", "_upper", "")])
    return np.full(ends.shape[1], _ROUNDING * max(float(np.abs(ends).max()), 1e-300))


def _naive(result: xr.DataTree) -> Finding | None:
    attrs, method = result.attrs, METHODS.get(result.attrs["method"])
    likelihood = attrs["backend"] in LIKELIHOOD_BACKENDS
    if method is None or not likelihood or attrs["calibration"] != "none":
        return None
    if attrs["target"] == "population" and result["constant_data"].sizes.get("question") == 1:
        return None  # draws over a single question cannot be calibrated: it is too few
    if method.composite and attrs["target"] != "battles":
        return Finding(
            "calibration",
            "bad",
            f"{method.name} counts each answer once per opponent, and its draws are not "
            "calibrated: intervals are far too narrow, bounds are too high, and pairs are reported "
            "as resolved that are not. Leave calibration at its default.",
            name="not calibrated",
        )
    if attrs["target"] == "population":
        return Finding(
            "calibration",
            "bad",
            "The draws describe only these questions, and are not calibrated for "
            "target='population': intervals are too narrow. Leave calibration at its default.",
            name="not calibrated",
        )
    if method.empirical:
        return Finding(
            "calibration",
            "doubtful",
            f"A part of the prior of {method.name} is estimated from the data, and its draws are "
            "not calibrated: intervals ignore the error of this part. Leave calibration at its "
            "default.",
            name="not calibrated",
        )
    return None


def _few_units(
    result: xr.DataTree, method: Method | None, data: Responses | Comparisons | Ballots | None
) -> Iterator[Finding]:
    """Yield a finding for each kind of units of which there are too few."""
    constant = result["constant_data"].to_dataset() if "constant_data" in result else xr.Dataset()
    target, kinds = result.attrs["target"], result.attrs.get("unit", "trial").split(",")
    if isinstance(data, Battles):
        # A likelihood does not estimate how battles vary.
        for kind in sorted(data.units.keys() & {*kinds} - {"battle"}):
            yield from _too_few(data.units[kind], f"{kind}s")
    if "trials" not in constant:
        return
    trials = constant["trials"].values
    if "run" in kinds:
        yield from _too_few(int(trials.max(initial=0)), "runs")
    if target == "population":
        if "question_group" in constant:
            sizes = np.unique(constant["question_group"].values, return_counts=True)[1]
            n_groups = len(sizes)
            if 1 < n_groups < FEW_UNITS:
                yield Finding(
                    "calibration",
                    "doubtful",
                    f"{n_groups} groups are too few to estimate how scores vary over groups: the "
                    "intervals take the questions as independent, and hold only for these groups.",
                    {"groups": n_groups, "limit": FEW_UNITS},
                    "few groups",
                )
                return
            if n_groups >= FEW_UNITS:
                n_units = round(effective_number(sizes))
                few = f"{n_groups} groups of unequal size count as {n_units} and are"
                yield from _too_few(
                    n_units, "groups of questions", few if n_units < n_groups else ""
                )
                return
        yield from _too_few(int((trials > 0).any(axis=0).sum()), "questions")
    modelled = method is not None and method.spread is not None  # not estimated from the trials
    if target == "benchmark" and kinds == ["trial"] and not modelled:
        n_cells, n_few = int((trials > 0).sum()), int(((trials > 0) & (trials < 3)).sum())
        if n_few and result.attrs["calibration"] == "sandwich":
            yield Finding(
                "calibration",
                "doubtful",
                f"{n_few:,} of {n_cells:,} cells of a system and a question have fewer than three "
                "trials, too few to estimate how trials vary. Run more trials.",
                {"cells": n_few, "limit": 0},
                "few trials",
            )


def _too_few(n_units: int, units: str, few: str = "") -> Iterator[Finding]:
    """Yield a finding if there are too few units to estimate a variance."""
    if n_units < SOME_UNITS:
        one = f"{n_units} {units.removesuffix('s')} is"
        few = few or (one if n_units == 1 else f"{n_units} {units} are")
        benchmark = ", or describe only these questions with target='benchmark'"
        or_else = benchmark if "questions" in units else ""
        yield Finding(
            "calibration",
            "bad" if n_units < FEW_UNITS else "doubtful",
            f"{few} too few to estimate how scores vary over {units}. Gather more{or_else}.",
            {"units": n_units, "limit": SOME_UNITS},
            "few units",
        )
