"""Pools: comparison of methods on random subsets of the systems."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_responses
from bayesrank.responses import Responses
from bayesrank.studies.configurations import choose_methods
from bayesrank.studies.execution import Workers, fingerprint, run_tasks
from bayesrank.studies.references import Reference, groups_of_equals, nan_mean, tau_or_nan
from bayesrank.studies.scoring import Batch, score_rank, scores_at_once
from bayesrank.studies.subsets import (
    Resample,
    check_resample,
    check_trial_counts,
    fewest_trials,
    plan_draws,
    select,
    take_draw,
)
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]

# Pools per task: enough to amortise the preparation of draws, few enough for frequent checkpoints.
_BLOCK = 100
# Means of the same taus in another order differ by rounding errors.
_ROUNDING = 1e-9


def model_pools(
    data: Responses | ArrayLike,
    methods: str | Sequence[str] | None = None,
    *,
    sizes: Sequence[int] = (5, 10, 15),
    pools: int | Sequence[int] = 1000,
    n: int | None = 1,
    draws: int = 80,
    resample: Resample = "subset",
    reference: Reference = "self",
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Compare rankings of random pools of systems, from a few trials, with those from all trials.

    Every pool is ranked from every draw of trials, and its agreement is the mean over the draws
    [1]_, section 3.3.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials of all systems.
    methods : str or sequence of str, optional
        As in :func:`bayesrank.studies.stability`. By default the published configurations
        that score many data sets in one call. Fits of likelihoods to thousands of pools take hours,
        so they run only for methods that you name.
    sizes : sequence of int, default (5, 10, 15)
        Numbers of systems per pool, drawn without replacement; each below the number of systems.
    pools : int or sequence of int, default 1000
        Number of pools, of each size.
    n : int, optional
        Trials per draw, 1 by default; None takes all, in one draw.
    draws : int, default 80
        Draws of trials, the same for all pools.
    resample : {"subset", "columns", "rows"}, default "subset"
        How trials are drawn, as in :func:`bayesrank.studies.stability`.
    reference : {"self", "gold"}, default "self"
        The ranking of the pool from all trials by the method itself, or by ``bayes``.
    random_seed, workers, checkpoint, progress
        As in :func:`bayesrank.studies.stability`.

    Returns
    -------
    xarray.Dataset
        Over method, size and pool: ``tau``, the mean over the draws (NaN beyond the number of
        pools of a size, and if every ranking is one group of ties), and ``finite``, whether all
        estimates are finite. Over method and size: ``tau_mean`` and ``tau_sd`` over the pools,
        ``win_share``, the share of pools where no other method has a higher tau, and
        ``pools_infinite``. Methods that tie for the highest tau share the pool; methods with the
        same tau in all pools count as one, and ``group`` names the first of them. ``members``
        (size, pool, system) is whether a system is in a pool.

    Raises
    ------
    ValueError
        If an argument is invalid.

    References
    ----------
    .. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026).
       https://doi.org/10.48550/arXiv.2603.10960

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.biased_coins([0.9, 0.7, 0.5, 0.3], n_trials=10)["outcomes"])
    >>> study = model_pools(data, ["avg", "borda"], sizes=[2, 3], pools=4, draws=10)
    >>> dict(study["tau"].sizes)
    {'method': 2, 'size': 2, 'pool': 4}
    """
    data = as_responses(data, "to study trials and questions")
    check_resample(resample)
    if reference not in ("self", "gold"):
        raise ValueError(f"reference must be 'self' or 'gold'; got {reference!r}")
    n_pools = _check_sizes(data, sizes, pools)
    draws = check_integer(draws, "draws")
    if n is None:
        n, draws, resample = data.shape[2], 1, "subset"
    count = check_trial_counts(data, n, resample)[0]
    plan = plan_draws(data, count, draws, resample, random_seed)
    # The plan itself has spawn keys (0, n).
    seeds = np.random.SeedSequence(random_seed, spawn_key=(0, 0)).spawn(draws)
    names = choose_methods(data, methods, n=fewest_trials(data, count, resample))
    if methods is None:
        names = tuple(name for name in names if scores_at_once(name))
    tasks = [
        (int(size), min(_BLOCK, many - start))
        for size, many in zip(sizes, n_pools, strict=True)
        for start in range(0, many, _BLOCK)
    ]
    results = run_tasks(
        partial(
            _some_pools,
            data,
            names,
            count,
            resample,
            list(zip(plan, seeds, strict=True)),
            reference,
        ),
        tasks,
        name="model_pools",
        random_seed=random_seed,
        workers=workers,
        checkpoint=checkpoint,
        settings={"key": fingerprint(data.fingerprint, names, tasks, plan, resample, reference)},
        progress=progress,
    )
    dataset = _label(data, names, sizes, n_pools, results)
    return dataset.assign_attrs(reference=reference, random_seed=random_seed)


def _check_sizes(data: Responses, sizes: Sequence[int], pools: int | Sequence[int]) -> list[int]:
    """Return the number of pools of each size."""
    n_systems = len(data.systems)
    if n_systems < 3:
        raise ValueError(f"data must have three systems or more for pools of some; got {n_systems}")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise ValueError(f"sizes must be integers; got {size!r}")
        if not 2 <= size < n_systems:
            raise ValueError(f"sizes must be from 2 to {n_systems - 1}; got {size}")
    if isinstance(pools, int | np.integer):
        numbers = [int(pools)] * len(sizes)
    else:
        numbers = [int(number) for number in pools]
    if not numbers or len(numbers) != len(sizes) or min(numbers) < 1:
        raise ValueError(f"pools must be one number of at least 1 per size; got {pools!r}")
    return numbers


def _some_pools(
    data: Responses,
    names: Sequence[str],
    count: int,
    resample: Resample,
    plan: Sequence[tuple[NDArray[np.intp] | None, np.random.SeedSequence]],
    reference: Reference,
    task: tuple[int, int],
    seed: np.random.SeedSequence,
) -> dict[str, Any]:
    """Draw pools of one size and rank each from every draw of trials by every method."""
    size, number = task
    rng = np.random.default_rng(seed)
    everyone = np.tile(np.arange(len(data.systems)), (number, 1))
    pools = np.sort(rng.permuted(everyone, axis=1)[:, :size])
    few = [take_draw(data, count, resample, trials, own) for trials, own in plan]
    batch, whole = Batch(few), Batch([data])
    method_seed = int(seed.generate_state(1)[0])
    gold, _ = whole.rank("bayes" if data.scores is None else "avg", pools)
    tau, finite = [], []
    for name in names:
        ranks, existed = _rank_pools(batch, few, name, pools, method_seed)
        target = gold
        if reference == "self":
            target, _ = _rank_pools(whole, [data], name, pools, method_seed)
        tau.append(nan_mean(tau_or_nan(ranks, target)))
        finite.append(existed)
    return {"tau": tau, "finite": finite, "systems": pools}


def _rank_pools(
    batch: Batch, samples: Sequence[Responses], name: str, pools: NDArray[np.intp], seed: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return ranks (pool, sample, member), and whether every estimate of a pool was finite."""
    if scores_at_once(name):
        ranks, finite = batch.rank(name, pools)
        return ranks, finite.all(axis=1)
    scored = [
        [score_rank(select(sample, systems=pool), name, random_seed=seed) for sample in samples]
        for pool in pools
    ]
    ranks = np.array([[one.rank for one in row] for row in scored])
    return ranks, np.array([all(one.finite for one in row) for row in scored])


def _label(
    data: Responses,
    names: Sequence[str],
    sizes: Sequence[int],
    n_pools: Sequence[int],
    results: Sequence[Mapping[str, NDArray[Any]]],
) -> xr.Dataset:
    """Label the results of the tasks, pool by pool."""
    shape = (len(names), len(n_pools), max(n_pools))
    tau, finite = np.full(shape, np.nan), np.ones(shape, dtype=bool)
    members = np.zeros((*shape[1:], len(data.systems)), dtype=bool)
    places = [(row, pool) for row, many in enumerate(n_pools) for pool in range(many)]
    for name, target in (("tau", tau), ("finite", finite)):
        values = np.concatenate([result[name] for result in results], axis=1)
        for (row, pool), column in zip(places, values.T, strict=True):
            target[:, row, pool] = column
    drawn = [systems for result in results for systems in result["systems"]]
    for (row, pool), systems in zip(places, drawn, strict=True):
        members[row, pool, systems] = True
    dims = ("method", "size", "pool")
    dataset = xr.Dataset(
        {
            "tau": (dims, tau),
            "finite": (dims, finite),
            "members": (("size", "pool", "system"), members),
            "win_share": (("method", "size"), _win_shares(tau)),
            "group": ("method", groups_of_equals(np.nan_to_num(tau, nan=-2.0).round(9), names)),
        },
        coords={"method": list(names), "size": list(sizes), "system": list(data.systems)},
        attrs={"study": "model_pools"},
    )
    dataset["tau_mean"] = dataset["tau"].mean("pool")
    dataset["tau_sd"] = dataset["tau"].std("pool", ddof=min(1, max(n_pools) - 1))
    dataset["pools_infinite"] = (~dataset["finite"]).sum("pool")
    return dataset


def _win_shares(tau: FloatArray) -> FloatArray:
    """Return the share of pools that each method wins, from tau (method, size, pool)."""
    flat = np.nan_to_num(tau, nan=-2.0).reshape(len(tau), -1).round(9)
    distinct, group = np.unique(flat, axis=0, return_inverse=True)
    taus = distinct.reshape(-1, *tau.shape[1:])
    first = (taus >= taus.max(axis=0) - _ROUNDING) & (taus > -2.0)
    decided = first.any(axis=0)
    shares = np.where(decided, first, 0.0) / np.maximum(first.sum(axis=0), 1)
    return shares.sum(axis=-1)[group.ravel()] / np.maximum(decided.sum(axis=-1), 1)
