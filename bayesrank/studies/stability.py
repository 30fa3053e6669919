"""Stability: how well few trials give the ranking that many would."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError
from bayesrank.ranking import point_estimate
from bayesrank.responses import Responses
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.execution import Workers, fingerprint, run_tasks
from bayesrank.studies.scoring import (
    PUBLISHED,
    check_methods,
    find_row,
    needs_second_trial,
    score_rank,
)
from bayesrank.studies.subsets import Resample, check_resample, check_trial_counts, draw_trials

FloatArray = NDArray[np.float64]
Reference = Literal["gold", "self"]


def stability(
    data: Responses,
    methods: str | Sequence[str] | None = None,
    *,
    n: int | Sequence[int] = 1,
    draws: int = 80,
    resample: Resample = "subset",
    reference: "Reference | ArrayLike" = "gold",
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Compare rankings from a few trials with a reference, by Kendall's tau-b.

    All methods see the same drawn trials. A maximum-likelihood estimate that does not exist for
    some trials is ranked as the limit of the posterior mode under an ever wider normal prior, and
    is counted.

    Parameters
    ----------
    data : Responses
        All trials.
    methods : str or sequence of str, optional
        The 72 published configurations by default, without those that lack what they need: a second
        trial in the smallest of `n`, greedy runs in the data.
    n : int or sequence of int, default 1
        Numbers of trials to draw.
    draws : int, default 80
        How often.
    resample : {"subset", "columns", "rows"}, default "subset"
        Different trials, trials with replacement, or trials with replacement for each question
        apart.
    reference : {"gold", "self"} or array_like of shape (system,), default "gold"
        The order by ``bayes`` from all trials, each method's own ranking from all trials, or ranks.
    random_seed : int, default 0
        Same seed, same result.
    workers : int or distributed.Client, default 1
        Processes, -1 for one per core, or the client of a Dask cluster.
    checkpoint : path-like, optional
        Folder where finished draws are kept, from which a study that was stopped goes on.
    progress : bool, optional
        Whether to show a progress bar; on a terminal and in a notebook by default.

    Returns
    -------
    xarray.Dataset
        Over dims method, n_trials and draw: ``tau``, and ``finite``, whether a finite estimate
        existed. Over method and n_trials: ``tau_mean``, ``tau_sd``, ``draws_infinite`` and
        ``draws_undefined`` (a ranking that is one group of ties has no tau, and a method that
        cannot rank has none). ``group`` names, per method, the first method with the same rankings
        in all draws.

    Raises
    ------
    ValueError
        If an argument is not one that can be used.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> simulated = simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)
    >>> study = stability(Responses(simulated["outcomes"]), ["avg", "borda"], draws=5)
    >>> dict(study["tau"].sizes)
    {'method': 2, 'n_trials': 1, 'draw': 5}
    """
    check_resample(resample)
    counts = check_trial_counts(data, n, resample)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be an integer of at least 1; got {draws!r}")
    names = choose_methods(data, methods, smallest=min(counts))
    target = _reference_ranks(data, names, reference, random_seed)
    results = run_tasks(
        partial(_one_draw, data, names, resample),
        [count for count in counts for _ in range(draws)],
        name="stability",
        random_seed=random_seed,
        workers=workers,
        checkpoint=checkpoint,
        settings={"key": fingerprint(data.fingerprint, names, counts, draws, resample)},
        progress=progress,
    )
    shape = (len(counts), int(draws), len(names))
    ranks = np.stack([result["rank"] for result in results]).reshape(*shape, -1)
    finite = np.stack([result["finite"] for result in results]).reshape(shape)
    tau = tau_or_nan(ranks, target)
    dataset = summarise(tau.transpose(2, 0, 1), finite.transpose(2, 0, 1), names, counts)
    groups = groups_of_equals(ranks.transpose(2, 0, 1, 3).reshape(len(names), -1), names)
    dataset["group"] = ("method", groups)
    described = reference if isinstance(reference, str) else "given"
    return dataset.assign_attrs(
        study="stability", reference=described, resample=resample, random_seed=random_seed
    )


def collapse(study: xr.Dataset) -> xr.Dataset:
    """Keep one method of each group whose rankings are the same.

    Parameters
    ----------
    study : xarray.Dataset
        What :func:`stability` or :func:`bayesrank.studies.consensus` returned.

    Returns
    -------
    xarray.Dataset
        The first method of each group, with ``members``, the names of all, and ``size``.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)["outcomes"])
    >>> study = stability(data, ["avg", "bayes", "borda"], draws=5)
    >>> collapse(study)["members"].values.tolist()
    ['avg, bayes, borda']
    """
    names, groups = study["method"].values, study["group"].values
    kept = [name for name, group in zip(names, groups, strict=True) if name == group]
    members = [[str(name) for name in names[groups == group]] for group in kept]
    collapsed = study.sel({"method": kept})  # a keyword would be its way of matching
    if "other_method" in study.dims:
        collapsed = collapsed.sel({"other_method": kept})
    return collapsed.assign(
        members=("method", [", ".join(group) for group in members]),
        size=("method", [len(group) for group in members]),
    )


def choose_methods(
    data: Responses, methods: str | Sequence[str] | None, *, smallest: int
) -> tuple[str, ...]:
    """Return the methods of a study, by default the published ones that these data allow.

    Raises
    ------
    ValueError
        If a method is not known, or needs more trials than the smallest number.
    DataError
        If there is no method that the data allow.
    """
    few = draw_trials(data, smallest, "columns", np.random.default_rng(0))
    if methods is not None:
        names = check_methods(methods)
        for name in names:
            if needs_second_trial(few, name):
                raise ValueError(f"n must be at least 2 for the method {name!r}; got {smallest}")
        return names
    has_greedy = data.prior_outcomes is not None
    names = tuple(
        name
        for name in PUBLISHED
        if not needs_second_trial(few, name)
        and (has_greedy or not find_row(name)[2].get("use_prior_outcomes"))
        and (data.is_binary or find_row(name)[0].data in ("grades", "counts", "evidence", "pairs"))
    )
    if not names:
        raise DataError("data must allow at least one published configuration; got none that fits")
    return names


def gold_ranks(data: Responses) -> FloatArray:
    """Rank systems by ``bayes`` with a uniform prior on all trials, the gold standard."""
    return np.asarray(rank_scores(point_estimate(data, "bayes")), dtype=np.float64)


def tau_or_nan(ranks: FloatArray, reference: FloatArray) -> FloatArray:
    """Return tau-b, NaN where a method could not rank."""
    missing = np.isnan(ranks).any(axis=-1)
    return np.where(missing, np.nan, kendall_tau_b(np.nan_to_num(ranks), reference))


def groups_of_equals(rankings: FloatArray, names: Sequence[str]) -> list[str]:
    """Return for each method the first one with the same rankings, of shape (method, ...)."""
    first: dict[bytes, str] = {}
    return [
        first.setdefault(np.ascontiguousarray(row).tobytes(), name)
        for row, name in zip(rankings, names, strict=True)
    ]


def summarise(
    tau: FloatArray, finite: NDArray[np.bool_], names: Sequence[str], counts: Sequence[int]
) -> xr.Dataset:
    """Label taus of shape (method, n_trials, draw), and average them."""
    dims = ("method", "n_trials", "draw")
    dataset = xr.Dataset(
        {"tau": (dims, tau), "finite": (dims, finite)},
        coords={"method": list(names), "n_trials": list(counts)},
    )
    dataset["tau_mean"] = dataset["tau"].mean("draw")
    dataset["tau_sd"] = dataset["tau"].std("draw", ddof=min(1, tau.shape[-1] - 1))
    dataset["draws_infinite"] = (~dataset["finite"]).sum("draw")
    dataset["draws_undefined"] = dataset["tau"].isnull().sum("draw")
    return dataset


def _one_draw(
    data: Responses,
    names: Sequence[str],
    resample: Resample,
    count: int,
    seed: np.random.SeedSequence,
) -> dict[str, Any]:
    """Rank one draw of trials by every method."""
    drawn = draw_trials(data, count, resample, np.random.default_rng(seed))
    method_seed = int(seed.generate_state(1)[0])
    scored = [score_rank(drawn, name, random_seed=method_seed) for name in names]
    return {"rank": [one.rank for one in scored], "finite": [one.finite for one in scored]}


def _reference_ranks(
    data: Responses, names: Sequence[str], reference: Any, random_seed: int
) -> FloatArray:
    """Return ranks to compare with, of shape (system,) or (method, system)."""
    if isinstance(reference, str):
        if reference == "gold":
            return gold_ranks(data)
        if reference == "self":
            own = [score_rank(data, name, random_seed=random_seed).rank for name in names]
            return np.stack(own)
        raise ValueError(f"reference must be 'gold', 'self' or ranks; got {reference!r}")
    ranks = np.asarray(reference, dtype=np.float64)
    if ranks.shape != (len(data.systems),) or not np.isfinite(ranks).all():
        raise ValueError(
            f"reference must hold one rank for each of {len(data.systems)} systems; got "
            f"{reference!r}"
        )
    return ranks
