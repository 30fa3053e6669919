"""Draws of a model's variables as labelled data sets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray


def label(
    model: pm.Model, values: Mapping[str, NDArray[Any]], sample_dims: Mapping[str, int]
) -> xr.Dataset:
    """Put a model's dims and coords on the values of its variables.

    Parameters
    ----------
    model : pymc.Model
        The model that names the dims.
    values : mapping of str to numpy.ndarray
        Per variable an array of shape (sample, ...), its samples in C order of `sample_dims`.
    sample_dims : mapping of str to int
        Names and lengths of the leading dims; empty for a single point without them, whose arrays
        then have one sample.

    Returns
    -------
    xarray.Dataset
        A variable without dims gets ``<name>_dim_0`` and so on, as PyMC names them.
    """
    lengths = tuple(sample_dims.values())
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {}
    coords: dict[str, Any] = {name: np.arange(n) for name, n in sample_dims.items()}
    for name, array in values.items():
        shape = array.shape[1:]
        declared = model.named_vars_to_dims.get(name) or (None,) * len(shape)
        dims = tuple(d or f"{name}_dim_{axis}" for axis, d in enumerate(declared))
        variables[name] = ((*sample_dims, *dims), array.reshape((*lengths, *shape)))
        for dim, length in zip(dims, shape, strict=True):
            labels = model.coords.get(dim)
            coords[dim] = np.arange(length) if labels is None else list(labels)
    return xr.Dataset(variables, coords=coords)
