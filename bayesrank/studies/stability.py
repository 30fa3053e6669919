"""Stability: how well a few trials reproduce the ranking of all trials."""

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
from bayesrank.studies.references import (
    Reference,
    gold_orders,
    groups_of_equals,
    reference_ranks,
    tau_or_nan,
    true_agreement,
)
from bayesrank.studies.scoring import score_rank
from bayesrank.studies.subsets import (
    Resample,
    check_resample,
    check_trial_counts,
    fewest_trials,
    plan_draws,
    take_draw,
)
from bayesrank.validation import check_between_0_and_1, check_integer

FloatArray = NDArray[np.float64]


def stability(
    data: Responses | ArrayLike,
    methods: str | Sequence[str] | None = None,
    *,
    n: int | Sequence[int] = 1,
    draws: int = 80,
    resample: Resample = "subset",
    reference: "Reference | Sequence[Reference] | ArrayLike" = "gold",
    ci_prob: float = 0.95,
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Compare rankings from a few trials with a reference, by Kendall's tau-b.

    All methods see the same drawn trials. If a maximum-likelihood estimate does not exist for
    some trials, the ranking is the limit of posterior modes under increasingly wide normal priors,
    and the draw is counted.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials.
    methods : str or sequence of str, optional
        Names of methods or published configurations, with options in parentheses:
        ``"pass_at_k(k=4)"``, ``"g_pass_at_k_tau(k=8, tau=0.5)"``,
        ``"bradley_terry(backend='map', prior=0.5)"``. By default the 72 published configurations,
        without those that lack what they need: a second trial in the smallest of `n`, greedy runs
        in the data.
    n : int or sequence of int, default 1
        Numbers of trials to draw.
    draws : int, default 80
        Number of draws.
    resample : {"subset", "columns", "rows"}, default "subset"
        Different trials, trials with replacement, or trials with replacement separately for each
        question. Different trials come from random permutations of all trials, so that with
        ``n=1`` and as many draws as trials, each trial is used once, for any seed.
    reference : {"gold", "self"}, sequence of both, or array_like, default "gold"
        The order by ``bayes`` from all trials, each method's own ranking from all trials, or ranks
        of shape (system,). Several names add the dim ``reference``.
    ci_prob : float, default 0.95
        Probability of the interval of ``tau_true``.
    random_seed : int, default 0
        Same seed, same result.
    workers : int or distributed.Client, default 1
        Processes, -1 for one per core, or the client of a Dask cluster.
    checkpoint : path-like, optional
        Folder for finished draws, from which a stopped study continues.
    progress : bool, optional
        Whether to show a progress bar; on a terminal and in a notebook by default.

    Returns
    -------
    xarray.Dataset
        Over dims method, n_trials and draw: ``tau``, ``rank`` (also over system), and ``finite``,
        whether a finite estimate existed. Over method and n_trials: ``tau_mean``, ``tau_sd``,
        ``tau_min`` and ``tau_max``, ``draws_infinite`` and ``draws_undefined`` (a ranking that is
        one group of ties has no tau, and a method that cannot rank has none). For the gold
        standard, which is an estimate itself: ``tau_true``, the expected mean tau with the true
        order, and its interval from ``tau_true_lower`` to ``tau_true_upper``; NaN for
        other references. ``group`` has, per method, the first method with the same rankings in
        all draws (and from all trials, if these are a reference).

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> simulated = simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)
    >>> study = stability(Responses(simulated["outcomes"]), ["avg", "pass_at_k(k=2)"], n=2, draws=5)
    >>> dict(study["tau"].sizes)
    {'method': 2, 'n_trials': 1, 'draw': 5}
    """
    data = as_responses(data, "to study trials and questions")
    check_resample(resample)
    check_between_0_and_1(ci_prob, "ci_prob")
    counts = check_trial_counts(data, n, resample)
    draws = check_integer(draws, "draws")
    names = choose_methods(data, methods, n=fewest_trials(data, min(counts), resample))
    targets = _targets(data, names, reference, random_seed)
    plan = {count: plan_draws(data, count, draws, resample, random_seed) for count in counts}
    tasks = [(count, trials) for count in counts for trials in plan[count]]
    results = run_tasks(
        partial(_one_draw, data, names, resample),
        tasks,
        name="stability",
        random_seed=random_seed,
        workers=workers,
        checkpoint=checkpoint,
        settings={"key": fingerprint(data.fingerprint, names, tasks, resample)},
        progress=progress,
    )
    shape = (len(counts), draws, len(names))
    ranks = np.stack([result["rank"] for result in results]).reshape(*shape, -1)
    ranks = ranks.transpose(2, 0, 1, 3)
    finite = np.stack([result["finite"] for result in results]).reshape(shape).transpose(2, 0, 1)
    dataset = _compare(data, ranks, targets, ci_prob)
    dims = ("method", "n_trials", "draw")
    dataset["rank"] = ((*dims, "system"), ranks)
    dataset["finite"] = (dims, finite)
    dataset["draws_infinite"] = (~dataset["finite"]).sum("draw")
    rankings = ranks.reshape(len(names), -1)
    if "self" in targets:
        rankings = np.concatenate([rankings, targets["self"]], axis=1)
    dataset["group"] = ("method", groups_of_equals(rankings, names))
    dataset = dataset.assign_coords(
        method=list(names), n_trials=counts, system=list(data.systems), reference=list(targets)
    ).assign_attrs(study="stability", resample=resample, random_seed=random_seed)
    several = not isinstance(reference, str) and "given" not in targets
    return dataset if several else dataset.isel(reference=0)


def _targets(
    data: Responses, names: Sequence[str], reference: Any, random_seed: int
) -> dict[str, FloatArray]:
    """Return the ranks to compare with, by the name of the reference."""
    if isinstance(reference, str):
        wanted: list[Any] = [reference]
    elif all(isinstance(one, str) for one in reference) and len(reference) > 0:
        wanted = list(dict.fromkeys(reference))
    else:
        return {"given": reference_ranks(data, names, reference, random_seed)}
    return {name: reference_ranks(data, names, name, random_seed) for name in wanted}


def _one_draw(
    data: Responses,
    names: Sequence[str],
    resample: Resample,
    task: tuple[int, NDArray[np.intp] | None],
    seed: np.random.SeedSequence,
) -> dict[str, Any]:
    """Rank one draw of trials by every method."""
    drawn = take_draw(data, task[0], resample, task[1], seed)
    method_seed = int(seed.generate_state(1)[0])
    scored = [score_rank(drawn, name, random_seed=method_seed) for name in names]
    return {"rank": [one.rank for one in scored], "finite": [one.finite for one in scored]}


def _compare(
    data: Responses, ranks: FloatArray, targets: Mapping[str, FloatArray], ci_prob: float
) -> xr.Dataset:
    """Compare ranks of shape (method, n_trials, draw, system) with every reference."""
    by_method = [
        target if target.ndim == 1 else target[:, np.newaxis, np.newaxis]
        for target in targets.values()
    ]
    tau = np.stack([tau_or_nan(ranks, target) for target in by_method])
    dataset = xr.Dataset({"tau": (("reference", "method", "n_trials", "draw"), tau)})
    taus = dataset["tau"]
    dataset["tau_mean"] = taus.mean("draw")
    dataset["tau_sd"] = taus.std("draw", ddof=min(1, tau.shape[-1] - 1))
    dataset["tau_min"], dataset["tau_max"] = taus.min("draw"), taus.max("draw")
    dataset["draws_undefined"] = taus.isnull().sum("draw")
    true = np.full((3, *tau.shape[:-1]), np.nan)
    if "gold" in targets:
        orders = gold_orders(data)
        true[:, list(targets).index("gold")] = true_agreement(ranks, orders, ci_prob)
    for name, values in zip(("tau_true", "tau_true_lower", "tau_true_upper"), true, strict=True):
        dataset[name] = (("reference", "method", "n_trials"), values)
    return dataset
