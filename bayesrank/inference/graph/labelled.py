"""Values of a model's variables, and of its densities, as labelled data sets."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pymc as pm


def label(
    model: "pm.Model", values: Mapping[str, NDArray[Any]], sample_dims: Mapping[str, int]
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


def log_densities(model: "pm.Model", posterior: xr.Dataset) -> dict[str, xr.Dataset]:
    """Compute the log-likelihood of every observation and the log-prior of every parameter.

    Parameters
    ----------
    model : pymc.Model
        The model that was sampled.
    posterior : xarray.Dataset
        Its draws.

    Returns
    -------
    dict of str to xarray.Dataset
        Groups ``log_likelihood`` and ``log_prior``. Variables of the first have the attributes
        ``observed_shape`` and ``observed_sha256``, by which models of the same observations are
        known.
    """
    from pymc.stats import compute_log_likelihood, compute_log_prior

    tree = xr.DataTree.from_dict({"posterior": posterior})
    options = {"model": model, "extend_inferencedata": True, "progressbar": False}
    compute_log_likelihood(tree, **options)
    compute_log_prior(tree, **options)
    groups = {name: tree[name].to_dataset() for name in ("log_likelihood", "log_prior")}
    for variable in model.observed_RVs:
        values = np.asarray(model.rvs_to_values[variable].eval(mode="FAST_COMPILE"), dtype=float)
        groups["log_likelihood"][variable.name].attrs |= {
            "observed_shape": " x ".join(str(size) for size in values.shape),
            "observed_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        }
    return groups
