"""Checks of arguments: a result, several results, a study or responses."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.views import Comparisons


def require_result(result: Any) -> None:
    """Raise unless a tree is a result of :func:`bayesrank.rank`."""
    if not isinstance(result, xr.DataTree):
        raise ValueError(f"result must be what rank() returned; got {type(result).__name__}")
    if "ranking" not in result.children:
        groups = ", ".join(result.children) or "none"
        raise ValueError(f"result must have a group 'ranking'; got groups {groups}")


def require_results(results: Any) -> None:
    """Raise unless the argument is a mapping of names to results."""
    if not isinstance(results, Mapping) or isinstance(results, xr.DataTree):
        raise ValueError(f"results must be a mapping of names; got {type(results).__name__}")
    for result in results.values():
        require_result(result)


def require_counts(result: xr.DataTree) -> None:
    """Raise where the data of a PyMC model have taken the place of those that were ranked."""
    observed = result.children.get("observed_data")
    if observed is not None and "system" not in observed.coords:
        names = ", ".join(map(str, observed.data_vars))
        raise ValueError(
            f"result must have the data that rank() kept in it; got {names} of a PyMC model in "
            "their place: keep predictive draws in a tree of their own"
        )


def study_name(study: Any) -> str:
    """Return the study of a dataset, or the type of another object."""
    if isinstance(study, xr.Dataset):
        return str(study.attrs.get("study", "another dataset"))
    return type(study).__name__


def require_study(study: Any, kind: str, *variables: str) -> None:
    """Raise unless a dataset has the variables of a study.

    Parameters
    ----------
    study : object
        The argument of the caller.
    kind : str
        Function of :mod:`bayesrank.studies` that returns such studies.
    *variables : str
        Required variables and coordinates.

    Raises
    ------
    ValueError
        If it is another object or another study.
    """
    if not (isinstance(study, xr.Dataset) and all(name in study for name in variables)):
        raise ValueError(f"study must be what studies.{kind} returned; got {study_name(study)}")


def require_responses(data: Any, purpose: str) -> None:
    """Raise unless data are responses, which a purpose requires."""
    if not isinstance(data, Responses):
        raise DataError(f"data must be responses {purpose}; got {type(data).__name__.lower()}")


def require_comparisons(data: Any, purpose: str) -> None:
    """Raise unless data are battles or comparisons, which a purpose requires."""
    if not isinstance(data, Comparisons):
        raise DataError(f"data must be battles {purpose}; got {type(data).__name__.lower()}")
