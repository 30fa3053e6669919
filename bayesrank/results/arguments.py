"""Checks of arguments that are studies."""

from typing import Any

import xarray as xr


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
