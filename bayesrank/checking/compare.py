"""Compare likelihood rankers by how well they predict left-out observations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd
import xarray as xr

from bayesrank.catalog import METHODS
from bayesrank.results.leaderboard import require_counts, require_results

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

Unit = Literal["cell", "question"]

_REMEDY = "rank with log_likelihood=True, or with backend='nuts'"


def compare(results: Mapping[str, xr.DataTree], *, unit: Unit = "cell") -> pd.DataFrame:
    """Compare results by leave-one-out cross-validation.

    The left-out unit determines the question. For item models on a benchmark it is a cell, the
    answers of a system to a question: how well is the next cell predicted? For a population of
    questions it is a question with all its answers. For models of changing abilities it is a run,
    all answers of a system in a trial. For battles it is a pair of systems: how well do the other
    pairs predict the battles of this pair? Constants that
    differ between models of the same answers (binomial coefficients) are removed.

    Parameters
    ----------
    results : mapping of str to xarray.DataTree
        Two or more results of :func:`bayesrank.rank` on the same data, by name, with the group
        ``log_likelihood``.
    unit : {"cell", "question"}, default "cell"
        The left-out unit, for models of answers.

    Returns
    -------
    pandas.DataFrame
        As ``arviz.compare``, not rounded: the expected log predictive density of each, its
        difference from the best and the standard error of that difference.

    Raises
    ------
    ValueError
        If there are fewer than two results or observations, or they do not describe the same
        observations. Reasons are other data, a composite likelihood (which counts answers more than
        once and is no predictive distribution), questions that one of them left out, or other
        events, such as only decisive battles against all battles. You can still compare rankings by
        :func:`bayesrank.results.agreement.compare_rankings`.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman and J. Gabry. Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC. Statistics and Computing 27 (2017).
       https://doi.org/10.1007/s11222-016-9696-4
    """
    from arviz_stats.loo import compare as compare_elpd  # slow to import
    from arviz_stats.loo import loo

    require_results(results)
    for result in results.values():
        require_counts(result)
    if len(results) < 2:
        raise ValueError(f"results must be two or more; got {len(results)}")
    if unit not in ("cell", "question"):
        raise ValueError(f"unit must be 'cell' or 'question'; got {unit!r}")
    prints = {result.attrs["fingerprint"] for result in results.values()}
    if len(prints) > 1:
        raise ValueError("results must be of the same data; got different ones")
    units = {name: _units(name, result, unit) for name, result in results.items()}
    first, *others = units.values()
    if first.sizes["unit"] < 2:
        raise ValueError("results must describe two observations or more; got one")
    for name, found in units.items():
        if any(not np.array_equal(found["unit"], one["unit"]) for one in others):
            sizes = {key: one.sizes["unit"] for key, one in units.items()}
            raise ValueError(
                f"results must describe the same observations; got {sizes} of them, {name} has "
                f"{first['unit'].values[:1]} first: flat priors leave out questions that all "
                "systems answered alike"
            )
    _check_same_events(results)
    trees = {
        name: xr.DataTree.from_dict(
            {
                "posterior": results[name]["posterior"].to_dataset(),
                "log_likelihood": xr.Dataset({"observed": found}),
            }
        )
        for name, found in units.items()
    }
    left_out = {name: cast("ELPDData", loo(tree, pointwise=True)) for name, tree in trees.items()}
    # Stacking takes exponentials, which underflow for a pair of systems with a thousand battles.
    # Only differences between models matter, so the highest value of each unit is subtracted.
    highest = np.max([each.elpd_i.values for each in left_out.values()], axis=0)
    for each in left_out.values():
        each.elpd_i = each.elpd_i - highest
    # By default each is rounded by its own error, and the order may contradict the ranks.
    return compare_elpd(left_out, round_to="none")


def _check_same_events(results: Mapping[str, xr.DataTree]) -> None:
    """Raise unless the likelihoods have the same observed variables, with the same values."""
    (first, one), *others = ((name, _observed(result)) for name, result in results.items())
    for name, other in others:
        if _are_same(one, other):
            continue
        what = f"{_describe(one)} for {first} and {_describe(other)} for {name}"
        if _describe(one) == _describe(other):
            what = f"{_describe(one)} with other values for {name} than for {first}"
        raise ValueError(
            f"results must describe the same observed events; got {what}{_ties(results[name])}: "
            "compare models of the same events, or their rankings with compare_rankings"
        )


def _observed(result: xr.DataTree) -> dict[str, tuple[str, str]]:
    """Return shape and digest of each observed variable; empty where an old result has none."""
    density = result["log_likelihood"].to_dataset()
    return {
        str(name): (
            str(variable.attrs.get("observed_shape", "")),
            str(variable.attrs.get("observed_sha256", "")),
        )
        for name, variable in density.data_vars.items()
    }


def _are_same(one: Mapping[str, tuple[str, str]], other: Mapping[str, tuple[str, str]]) -> bool:
    if one.keys() != other.keys():
        return False
    known = all(digest for found in (one, other) for _, digest in found.values())
    return one == other or not known


def _describe(observed: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(
        f"{name!r} ({shape} values)" if shape else repr(name)
        for name, (shape, _) in observed.items()
    )


def _ties(result: xr.DataTree) -> str:
    """Return how many of the battles are ties, in words: not every model describes ties."""
    data = result["observed_data"].to_dataset()
    if "ties" not in data:
        return ""
    wins, ties = float(data["wins"].sum()), float(data["ties"].sum()) / 2.0
    return (
        f" (of {wins:,g} decisive battles and {ties:,g} ties, models with ties describe both, "
        "models without them the decisive ones, and none describes ties as half wins)"
    )


def _units(name: str, result: xr.DataTree, unit: Unit) -> xr.DataArray:
    """Return log-likelihoods by exchangeable unit, with dims chain, draw and unit."""
    if "log_likelihood" not in result:
        raise ValueError(f"results must have a log-likelihood; got none for {name}: {_REMEDY}")
    method = METHODS.get(result.attrs["method"])  # None for one of the caller's own
    battles = result.attrs["target"] == "battles"
    if method is not None and method.composite and not battles and method.name != "davidson_luce":
        raise ValueError(
            f"results must have likelihoods of the data; got {name}, whose composite likelihood "
            "counts answers once per opponent and is no predictive distribution"
        )
    density = result["log_likelihood"].to_dataset()
    if "correct" in density:
        cells = density["correct"] - _log_coefficients(result, density["correct"])
        return _by_unit(cells, result, unit)
    (values,) = density.data_vars.values() if len(density.data_vars) == 1 else (None,)
    if values is None or values.ndim != 3:
        raise ValueError(
            f"results must have one observed variable for each observation; got "
            f"{', '.join(str(one) for one in density.data_vars)} for {name}"
        )
    (dim,) = (one for one in values.dims if one not in ("chain", "draw"))
    return values.rename({dim: "unit"})


def _by_unit(cells: xr.DataArray, result: xr.DataTree, unit: Unit) -> xr.DataArray:
    """Sum cells, whose labels are system and question, over the left-out units."""
    if unit == "question":
        counts = result["observed_data"]["counts"].stack(cell=("system", "question"))
        named = {f"{system} | {question}": question for system, question in counts["cell"].values}
        question = [named[str(label)] for label in cells["cell"].values]
        return cells.assign_coords(unit=("cell", question)).groupby("unit").sum("cell")
    return cells.sortby("cell").rename(cell="unit")


def _log_coefficients(result: xr.DataTree, cells: xr.DataArray) -> xr.DataArray:
    from scipy.special import gammaln

    counts = result["observed_data"]["counts"].stack(cell=("system", "question"))
    names = [f"{system} | {question}" for system, question in counts["cell"].values]
    wrong, right = (counts.isel(category=k).values.astype(float) for k in (0, 1))
    total = gammaln(wrong + right + 1.0) - gammaln(wrong + 1.0) - gammaln(right + 1.0)
    table = xr.DataArray(total, dims="cell", coords={"cell": names})
    return table.sel(cell=cells["cell"].values)
