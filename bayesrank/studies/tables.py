"""The tables of "Ranking reasoning LLMs under test-time scaling", on any data, in one call.

References
----------
.. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026).
   https://doi.org/10.48550/arXiv.2603.10960
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.results.same_rankings import collapse, group_members
from bayesrank.studies.adaptive import condition_worths, sampled_worths
from bayesrank.studies.consensus import consensus
from bayesrank.studies.execution import Workers
from bayesrank.studies.greedy import greedy_effect
from bayesrank.studies.pools import model_pools
from bayesrank.studies.references import nan_mean
from bayesrank.studies.stability import stability
from bayesrank.studies.subsets import check_trial_counts, select
from bayesrank.validation import check_integer

# Name of all questions together, next to the benchmarks.
POOLED = "pooled"


def published_tables(
    data: Responses | ArrayLike,
    methods: str | Sequence[str] | None = None,
    *,
    n: int | Sequence[int] = 1,
    draws: int = 80,
    pools: int = 1000,
    sizes: Sequence[int] = (5, 10, 15),
    by: Literal["benchmark"] | None = None,
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> dict[str, pd.DataFrame]:
    """Make the published tables of a comparison of methods for your own data.

    Their form is that of [1]_.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials; with greedy outcomes (`prior_outcomes`) for the table on greedy priors.
    methods : str or sequence of str, optional
        Names with options, as in :func:`bayesrank.studies.stability`; by default the 72 published
        configurations, without those that the data do not allow. Pools have only the defaults of
        :func:`bayesrank.studies.model_pools` among them.
    n : int or sequence of int, default 1
        Numbers of trials to draw; pools and greedy priors take the smallest.
    draws : int, default 80
        Draws of trials.
    pools : int, default 1000
        Number of pools of each size; 0 leaves that table out.
    sizes : sequence of int, default (5, 10, 15)
        Sizes of the pools; sizes that need more systems are left out.
    by : {"benchmark"}, optional
        Make every table for each of the `groups` of the data as well; rows are named in a column.
    random_seed, workers, checkpoint, progress
        As in :func:`bayesrank.studies.stability`.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``accuracy``: mean worth of a trial of each system over trials, its sd, least and largest,
        and that of the greedy runs. ``summary``: the number of methods with the order of the gold
        standard from all trials, their mean tau-b with it, and the best methods from a few trials,
        by agreement with it and with themselves. ``agreement``: that of each method with the gold
        standard and with the other methods, from all trials. ``stability`` from a few trials: mean,
        sd, least and largest tau-b with the gold standard (``tau_``) and with the ranking of the
        method from all trials (``self_``). ``pools``; and ``greedy``, if there are greedy outcomes
        of every system.
        Methods with the same rankings share a row. Intervals ``tau_true_`` allow for the
        uncertainty of the gold standard.

    Raises
    ------
    ValueError
        If an argument is invalid.
    DataError
        If there are no groups for ``by="benchmark"``.

    References
    ----------
    .. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026).
       https://doi.org/10.48550/arXiv.2603.10960

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.biased_coins([0.9, 0.7, 0.5, 0.3], n_trials=10)["outcomes"])
    >>> tables = published_tables(data, ["avg", "borda"], draws=4, sizes=[3], pools=4)
    >>> list(tables)
    ['accuracy', 'summary', 'agreement', 'stability', 'pools']
    """
    data = as_responses(data, "to study trials and questions")
    check_integer(pools, "pools", least=0)
    check_integer(draws, "draws", least=1)
    made: dict[str, list[pd.DataFrame]] = {}
    for name, part in _parts(data, by).items():
        shared = {"random_seed": random_seed, "workers": workers, "progress": progress}
        folder = None if checkpoint is None else Path(checkpoint)
        if folder is not None and by is not None:
            folder /= name.replace(os.sep, "-")
        tables = _tables_of(part, methods, n, draws, int(pools), sizes, folder, shared)
        for table, rows in tables.items():
            if by is not None:
                rows.insert(0, by, name)
            made.setdefault(table, []).append(rows)
    return {table: pd.concat(parts, ignore_index=True) for table, parts in made.items()}


def write_tables(tables: Mapping[str, pd.DataFrame], folder: str | os.PathLike[str]) -> list[Path]:
    """Write tables as CSV files, each atomically.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        What :func:`published_tables` returned.
    folder : path-like
        Folder of the files; created if absent.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in tables.items():
        partial = target / f".{name}.partial"
        table.to_csv(partial, index=False)
        files.append(partial.replace(target / f"{name}.csv"))
    return files


def _parts(data: Responses, by: str | None) -> dict[str, Responses]:
    """Return the data, preceded by the data of each benchmark if requested."""
    if by is None:
        return {POOLED: data}
    if by != "benchmark":
        raise ValueError(f"by must be 'benchmark' or None; got {by!r}")
    if data.groups is None:
        raise DataError("groups must be given for by='benchmark'; got None")
    labels = np.array(data.groups)
    names = list(dict.fromkeys(data.groups))
    parts = {name: select(data, questions=np.flatnonzero(labels == name)) for name in names}
    return parts if len(parts) == 1 else {**parts, POOLED: data}


def _tables_of(
    data: Responses,
    methods: str | Sequence[str] | None,
    n: int | Sequence[int],
    draws: int,
    pools: int,
    sizes: Sequence[int],
    checkpoint: Path | None,
    shared: Mapping[str, Any],
) -> dict[str, pd.DataFrame]:
    """Make the tables of one set of questions."""

    def settings(name: str) -> dict[str, Any]:
        return {**shared, "checkpoint": None if checkpoint is None else checkpoint / name}

    counts = check_trial_counts(data, n, "subset")
    everything = consensus(data, methods, **settings("consensus"))
    accuracy, agreement = _accuracy_table(data), _agreement_table(everything)
    if data.trials.max() == min(counts):
        return {"accuracy": accuracy, "agreement": agreement}
    references: Any = ["gold", "self"]
    few = stability(
        data, methods, n=counts, draws=draws, reference=references, **settings("stability")
    )
    tables = {
        "accuracy": accuracy,
        "summary": _summary_table(everything, few),
        "agreement": agreement,
        "stability": _stability_table(few),
    }
    fitting = [size for size in sizes if size < len(data.systems)]
    if fitting and pools:
        drawn = model_pools(
            data,
            methods,
            sizes=fitting,
            pools=pools,
            n=min(counts),
            draws=draws,
            **settings("pools"),
        )
        tables["pools"] = _pools_table(drawn)
    if _has_greedy(data):
        effect = greedy_effect(data, n=min(counts), draws=max(draws, 2), **settings("greedy"))
        tables["greedy"] = _greedy_table(effect)
    return tables


def _summary_table(everything: xr.Dataset, few: xr.Dataset) -> pd.DataFrame:
    tau = everything["tau_gold"].values
    rows = []
    for place, count in enumerate(few["n_trials"].values):
        row: dict[str, Any] = {
            "n_trials": int(count),
            "n_methods": int(np.count_nonzero(~np.isnan(tau))),
            "tau_gold_mean": float(nan_mean(tau)),
            "gold_order": int((tau == 1.0).sum()),
        }
        for reference in ("gold", "self"):
            study = few.sel(reference=reference).isel(n_trials=place)
            best = int(np.nan_to_num(study["tau_mean"].values, nan=-2.0).argmax())
            known = np.isfinite(study["tau_mean"].values[best])
            row[f"best_{reference}"] = str(few["method"].values[best]) if known else "none"
            row[f"best_{reference}_mean"] = float(study["tau_mean"][best])
            row[f"best_{reference}_sd"] = float(study["tau_sd"][best])
        rows.append(row)
    return pd.DataFrame(rows)


def _accuracy_table(data: Responses) -> pd.DataFrame:
    """Describe the mean worth of a trial of each system, and of its greedy runs."""
    by_trial = data.in_units(nan_mean(sampled_worths(data), axis=1))
    spread = [np.nanstd(row, ddof=1) if np.isfinite(row).sum() > 1 else np.nan for row in by_trial]
    table = pd.DataFrame(
        {
            "system": list(data.systems),
            "mean": nan_mean(by_trial, axis=1),
            "sd": spread,
            "min": np.nanmin(by_trial, axis=1),
            "max": np.nanmax(by_trial, axis=1),
        }
    )
    table.attrs["empty"] = {"sd": "one trial"}
    if _has_greedy(data):
        _, greedy = condition_worths(data)
        greedy = data.in_units(nan_mean(greedy.reshape(len(table), -1), axis=1))
        table.insert(1, "greedy", greedy)
    return table


def _has_greedy(data: Responses) -> bool:
    return data.prior_outcomes is not None and data.prior_outcomes.ndim == 3


def _agreement_table(study: xr.Dataset) -> pd.DataFrame:
    one_each = collapse(study)
    return _sorted(
        {
            **_names(one_each),
            "tau_gold": one_each["tau_gold"].values,
            "tau_true_lower": one_each["tau_true_lower"].values,
            "tau_true_upper": one_each["tau_true_upper"].values,
            # The average over all other methods, equal ones included, as published.
            "tau_others": one_each["tau_mean"].values,
            "finite": one_each["finite"].values,
        }
    )


def _stability_table(study: xr.Dataset) -> pd.DataFrame:
    one_each = collapse(study)
    gold, own = (one_each.sel(reference=name) for name in ("gold", "self"))
    tables = []
    for place, count in enumerate(one_each["n_trials"].values):
        columns: dict[str, Any] = _names(one_each)
        for prefix, compared in (("tau", gold), ("self", own)):
            for statistic in ("mean", "sd", "min", "max"):
                values = compared[f"tau_{statistic}"].isel(n_trials=place).values
                columns[f"{prefix}_{statistic}"] = values
        for name in ("tau_true_lower", "tau_true_upper", "draws_infinite", "draws_undefined"):
            columns[name] = gold[name].isel(n_trials=place).values
        table = _sorted(columns)
        table.insert(0, "n_trials", int(count))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _pools_table(study: xr.Dataset) -> pd.DataFrame:
    members = group_members(study)
    one_each = study.sel({"method": list(members)})
    columns: dict[str, Any] = {
        "methods": [", ".join(names) for names in members.values()],
        "n_methods": [len(names) for names in members.values()],
    }
    for size in one_each["size"].values:
        of_size = one_each.sel({"size": size})
        for statistic in ("tau_mean", "tau_sd", "win_share"):
            columns[f"{statistic}_{size}"] = of_size[statistic].values
    return _sorted(columns)


def _greedy_table(study: xr.Dataset) -> pd.DataFrame:
    statistics = ("tau_mean", "tau_sd", "tau_min", "tau_max", "change", "change_se", "sd_reduction")
    columns = {"prior": study["prior"].values, **{name: study[name].values for name in statistics}}
    return pd.DataFrame(columns).assign(alignment=float(study["alignment"]))


def _names(one_each: xr.Dataset) -> dict[str, Any]:
    return {"methods": one_each["members"].values, "n_methods": one_each["size"].values}


def _sorted(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Order rows by the first tau, best first, ties by name."""
    table = pd.DataFrame(dict(columns))
    tau = next(name for name in table.columns if name.startswith("tau"))
    order = np.lexsort((table["methods"], -table[tau].round(12)))
    return table.iloc[order].reset_index(drop=True)
