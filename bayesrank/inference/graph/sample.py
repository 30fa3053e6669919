"""Sample the posterior of any PyMC model with NUTS, by default on the engine's compiled code.

Examples
--------
>>> import pymc as pm
>>> from bayesrank.inference.graph.sample import sample
>>> with pm.Model() as model:
...     p = pm.Beta("p", 2, 2)
...     y = pm.Binomial("y", n=10, p=p, observed=7)
>>> groups = sample(model, draws=500, chains=4, random_seed=1)
>>> sorted(groups)
['posterior', 'sample_stats']
>>> round(float(groups["posterior"]["p"].mean()), 1)
0.6
"""

import os
import time
import warnings
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.graph.bound_model import Array, BoundModel, bind_model
from bayesrank.inference.graph.diagnostics import diagnose
from bayesrank.inference.graph.labelled import label
from bayesrank.options import Count, NutsSampler, Probability, checks_options
from bayesrank.progress import in_notebook
from bayesrank.validation import checked_seed

# The statistics of ArviZ's schema that all samplers give: their type, and the samplers' own names.
STATISTICS: dict[str, tuple[type, tuple[str, ...]]] = {
    "acceptance_rate": (float, ("acceptance_rate", "mean_tree_accept")),
    "diverging": (bool, ("diverging",)),
    "energy": (float, ("energy",)),
    "lp": (float, ("lp", "logp")),
    "n_steps": (int, ("n_steps",)),
    "step_size": (float, ("step_size",)),
    "tree_depth": (int, ("tree_depth", "depth")),
}

# Starting points are tried until the log-probability is finite, as PyMC does.
LARGEST_NUMBER_OF_STARTS = 20

# Seconds from which on chains gain more from running at the same time than they lose by waiting for
# one another in Python, which takes them some 20 microseconds per evaluation.
LONG_EVALUATION = 1.2e-4

# Tuning draws of models with many parameters. The scales of all of them are estimated from these
# draws, and nutpie's own 400 leave some so far off that R-hat shows it: 1.010 for 1700 parameters,
# where 1000 give 1.006.
MANY_PARAMETERS, LONG_TUNING = 500, 1000


@checks_options
def sample(
    model: pm.Model,
    *,
    draws: Count = 1000,
    tune: Count | None = None,
    chains: Count = 4,
    random_seed: int | None = None,
    nuts_sampler: NutsSampler = "compiled",
    target_accept: Probability = 0.8,
    low_rank: bool = False,
    cores: Count | None = None,
    progressbar: bool | None = None,
) -> dict[str, xr.Dataset]:
    """Draw from the posterior of a model with NUTS.

    The default samples the engine's compiled code through nutpie, so that a second data set of
    the same structure needs no compilation. The other samplers are those of ``pm.sample``. All
    return the same groups, variables and statistics.

    Parameters
    ----------
    model : pymc.Model
        The model; for "compiled" its free variables must be continuous.
    draws : int, default 1000
        Draws kept per chain.
    random_seed : int, optional
        Same seed, same draws.
    chains, tune, nuts_sampler, target_accept, low_rank, cores, progressbar
        As in :func:`bayesrank.inference.backends.nuts.nuts`; `low_rank` is False by default.

    Returns
    -------
    dict of str to xarray.Dataset
        ``posterior``: free variables and deterministics with dims chain, draw and the model's.
        ``sample_stats``: acceptance_rate, diverging, energy, lp, n_steps, step_size, tree_depth.

    Warns
    -----
    ConvergenceWarning
        If R-hat, the effective sample size or divergent transitions give reason for doubt.

    Raises
    ------
    ValueError
        If an argument is out of range or the model has discrete free variables.
    """
    checked_seed(random_seed)
    options: dict[str, Any] = {
        "draws": draws,
        "chains": chains,
        "target_accept": target_accept,
    }
    if tune is not None:
        options["tune"] = tune
    if nuts_sampler == "compiled":
        if progressbar is None:
            progressbar = in_notebook()
        # nutpie wants a number where PyMC takes None for a new one every time.
        seed = int(np.random.default_rng().integers(2**31)) if random_seed is None else random_seed
        if low_rank:
            options["adaptation"] = "low_rank"
        groups = _sample_compiled(model, options, seed, cores, progressbar)
    elif low_rank:
        raise ValueError(f"low_rank must be False for nuts_sampler {nuts_sampler!r}; got True")
    else:
        shown = bool(progressbar)
        groups = _sample_pymc(model, options, random_seed, cores, shown, nuts_sampler)
    groups["sample_stats"].attrs["sampler"] = nuts_sampler
    complaints = diagnose(
        groups["posterior"],
        groups["sample_stats"],
        var_names=[v.name for v in model.free_RVs if v.name in groups["posterior"]],
    )
    if complaints:
        warnings.warn(" ".join(complaints), ConvergenceWarning, stacklevel=2)
    return groups


def _sample_compiled(
    model: pm.Model, options: dict[str, Any], seed: int, cores: int | None, progressbar: bool
) -> dict[str, xr.Dataset]:
    import nutpie  # more than a second of start-up that the other back ends spare
    from nutpie.compiled_pyfunc import from_pyfunc

    bound = bind_model(model, "nuts")
    if "tune" not in options and bound.size > MANY_PARAMETERS:
        options = options | {"tune": LONG_TUNING}
    cores = cores or _choose_cores(bound, options["chains"])
    if cores > 1:
        bound = bound.in_parallel()
    sampler_model = from_pyfunc(
        bound.size,
        lambda: bound.logp_and_gradient,
        lambda *_: _flat_draw,
        [np.dtype(np.float64)],
        [(bound.size,)],
        ["x"],
        make_initial_point_fn=lambda seed: _jittered_start(bound, seed),
    )
    tree = nutpie.sample(
        sampler_model,
        seed=seed,
        cores=cores,
        progress_bar=progressbar,
        save_warmup=False,
        **options,
    )
    x = tree["posterior"]["x"].values
    n_chains, n_draws, size = x.shape
    values = bound.named(x.reshape(n_chains * n_draws, size))
    posterior = label(model, values, {"chain": n_chains, "draw": n_draws})
    return {
        "posterior": posterior,
        "sample_stats": _level_statistics(tree["sample_stats"].to_dataset()),
    }


def _sample_pymc(
    model: pm.Model,
    options: dict[str, Any],
    random_seed: int | None,
    cores: int | None,
    progressbar: bool,
    nuts_sampler: Any,
) -> dict[str, xr.Dataset]:
    tree = pm.sample(
        model=model,
        random_seed=random_seed,
        cores=cores,
        progressbar=progressbar,
        quiet=not progressbar,
        nuts_sampler=nuts_sampler,
        compute_convergence_checks=False,
        **options,
    )
    drawn = tree["posterior"].to_dataset()
    sizes = {"chain": drawn.sizes["chain"], "draw": drawn.sizes["draw"]}
    values = {
        v.name: drawn[v.name].values.reshape(-1, *drawn[v.name].shape[2:])
        for v in [*model.free_RVs, *model.deterministics]
    }
    return {
        "posterior": label(model, values, sizes),
        "sample_stats": _level_statistics(tree["sample_stats"].to_dataset()),
    }


def _choose_cores(bound: BoundModel, chains: int) -> int:
    """Return how many chains to run at a time: one, or all that fit if evaluations take long."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        bound.logp_and_gradient(bound.start)
        seconds.append(time.perf_counter() - start)
    return min(chains, os.cpu_count() or 1) if min(seconds) > LONG_EVALUATION else 1


def _flat_draw(x: Array) -> dict[str, Array]:
    return {"x": x}


def _jittered_start(bound: BoundModel, seed: int) -> Array:
    """Return the model's starting point, moved by up to one unit, where the density is finite."""
    rng = np.random.default_rng(seed)
    for _ in range(LARGEST_NUMBER_OF_STARTS):
        x = bound.start + rng.uniform(-1.0, 1.0, bound.size)
        value, gradient = bound.logp_and_gradient(x)
        if np.isfinite(value) and np.isfinite(gradient).all():
            return x
    return bound.start


def _level_statistics(statistics: xr.Dataset) -> xr.Dataset:
    """Keep the statistics that all samplers share, under one name each."""
    found = {
        name: next((statistics[a] for a in aliases if a in statistics), None)
        for name, (_, aliases) in STATISTICS.items()
    }
    return xr.Dataset(
        {
            name: (("chain", "draw"), array.values.astype(STATISTICS[name][0]))
            for name, array in found.items()
            if array is not None
        },
        coords={dim: np.arange(statistics.sizes[dim]) for dim in ("chain", "draw")},
    )
