"""Log-likelihood by observation and log-prior by parameter, for every draw."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    import pymc as pm


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
