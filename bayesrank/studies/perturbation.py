"""Perturbation: what the removal of systems or benchmarks does to scores and difficulties."""

from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.inference.labels import split_scores
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.method import load_function
from bayesrank.ranking import point_estimate
from bayesrank.responses import Responses
from bayesrank.results.agreement import kendall_tau_b, pearson, spearman
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.configurations import check_methods, find_row, read_method
from bayesrank.studies.subsets import select

FloatArray = NDArray[np.float64]
Remove = Literal["models", "groups"]

MEASURES = ("spearman", "pearson", "kendall")


def perturbation(
    data: Responses,
    method: str = "rankllm",
    *,
    remove: Remove = "models",
    k: int = 1,
    draws: int = 100,
    random_seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Remove systems or groups of questions and compare what is left with the estimates before.

    Parameters
    ----------
    data : Responses
        All trials; with `groups` for ``remove="groups"``.
    method : str, default "rankllm"
        Any method. Difficulties are compared where it estimates them without a likelihood.
    remove : {"models", "groups"}, default "models"
        Remove systems, or benchmarks with all their questions.
    k : int, default 1
        How many to remove at a time.
    draws : int, default 100
        Number of removals, drawn at random; all of them, once each, where k is 1.
    random_seed : int, default 0
        Same seed, same removals.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        Over removal and measure (spearman, pearson, kendall): ``competency``, the correlation of
        the scores of systems that are left, and ``difficulty``, that of the difficulties of
        questions that are left (NaN without such). ``competency_mean`` and ``difficulty_mean`` over
        measure. ``removed`` names who was removed.

    Raises
    ------
    ValueError
        If an argument is not one that can be used, or too much would be removed.
    DataError
        If the data have no groups to remove.

    References
    ----------
    .. [1] RankLLM: Weighted ranking of LLMs by quantifying question difficulty.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.rasch_tensor(6, 40, 4)["outcomes"])
    >>> perturbation(data)["competency_mean"].sel(measure="spearman").item() > 0.9
    True
    """
    check_methods(method)
    units = _units(data, remove)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(units) - 2:
        raise ValueError(f"k must be from 1 to {len(units) - 2} of {len(units)}; got {k!r}")
    rng = np.random.default_rng(random_seed)
    if k == 1:
        removals = [np.array([unit]) for unit in range(len(units))]
    else:
        removals = [np.sort(rng.choice(len(units), k, replace=False)) for _ in range(draws)]
    before = competency_and_difficulty(data, method, **options)
    competency, difficulty = [], []
    for removed in removals:
        kept = _keep(data, remove, units, removed)
        after = competency_and_difficulty(_selected(data, remove, kept), method, **options)
        of_systems, of_questions = (
            (kept, slice(None)) if remove == "models" else (slice(None), kept)
        )
        competency.append(_correlations(before[0][of_systems], after[0]))
        difficulty.append(
            np.full(len(MEASURES), np.nan)
            if before[1] is None or after[1] is None
            else _correlations(before[1][of_questions], after[1])
        )
    names = [", ".join(units[unit] for unit in removed) for removed in removals]
    dims = ("removal", "measure")
    dataset = xr.Dataset(
        {
            "competency": (dims, np.stack(competency)),
            "difficulty": (dims, np.stack(difficulty)),
            "removed": ("removal", names),
        },
        coords={"measure": list(MEASURES)},
        attrs={"study": "perturbation", "method": method, "remove": remove, "k": int(k)},
    )
    for name in ("competency", "difficulty"):
        dataset[f"{name}_mean"] = dataset[name].mean("removal")
    return dataset


def difficulty_leave_one_out(
    data: Responses, method: str = "rankllm", **options: Any
) -> xr.Dataset:
    """Estimate difficulties without each system in turn and predict where it fails.

    Parameters
    ----------
    data : Responses
        All trials.
    method : str, default "rankllm"
        A method that estimates difficulties without a likelihood.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        Over system, the one that is left out: ``difficulty`` (system, question) from the others,
        its correlations with the difficulties from all, ``stability`` (system, measure), and with
        the mean worth that the system left out fails to reach, ``prediction`` (system, measure).

    Raises
    ------
    ValueError
        If the method estimates no difficulties.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.rasch_tensor(6, 40, 4)["outcomes"])
    >>> difficulty_leave_one_out(data)["prediction"].sel(measure="spearman").min().item() > 0
    True
    """
    check_methods(method)
    _, overall = competency_and_difficulty(data, method, **options)
    if overall is None:
        raise ValueError(f"method must estimate difficulties; got {method!r}")
    n_systems = len(data.systems)
    if n_systems < 3:
        raise ValueError(f"data must have three systems or more to leave one out; got {n_systems}")
    without, stability, prediction = [], [], []
    for left_out in range(n_systems):
        kept = np.delete(np.arange(n_systems), left_out)
        _, estimate = competency_and_difficulty(select(data, systems=kept), method, **options)
        difficulty = np.asarray(estimate)
        without.append(difficulty)
        stability.append(_correlations(overall, difficulty))
        grades = data.grades[left_out]
        seen = ~np.isnan(grades)
        prediction.append(_correlations(-grades[seen], difficulty[seen]))
    return xr.Dataset(
        {
            "difficulty": (("system", "question"), np.stack(without)),
            "stability": (("system", "measure"), np.stack(stability)),
            "prediction": (("system", "measure"), np.stack(prediction)),
        },
        coords={
            "system": list(data.systems),
            "question": list(data.questions),
            "measure": list(MEASURES),
        },
        attrs={"study": "difficulty_leave_one_out", "method": method},
    )


def competency_and_difficulty(
    data: Responses, method: str, **options: Any
) -> tuple[FloatArray, FloatArray | None]:
    """Return scores of systems, and difficulties of questions where the method has them."""
    row, backend, preset_options = find_row(method)
    if row.kernel is not None or row.factory is not None or "bootstrap" not in row.backends:
        name, keywords = read_method(method)
        return point_estimate(data, name, **{"backend": backend, **keywords, **options}), None
    ranker = load_function(row.function)
    arguments = point_arguments(data, row.data)
    score, parameters = split_scores(ranker(*arguments, **{**preset_options, **options}))
    difficulty = parameters.get("difficulty")
    return score, None if difficulty is None else np.asarray(difficulty)


def _units(data: Responses, remove: str) -> list[str]:
    if remove not in ("models", "groups"):
        raise ValueError(f"remove must be 'models' or 'groups'; got {remove!r}")
    if remove == "models":
        return list(data.systems)
    if data.groups is None:
        raise DataError("groups must be given to remove groups of questions; got None")
    return list(dict.fromkeys(data.groups))


def _keep(
    data: Responses, remove: str, units: list[str], removed: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return positions of the systems, or of the questions, that are left."""
    gone = {units[unit] for unit in removed}
    labels = data.systems if remove == "models" else data.groups or ()
    return np.flatnonzero([label not in gone for label in labels])


def _selected(data: Responses, remove: str, kept: NDArray[np.int64]) -> Responses:
    return select(data, systems=kept) if remove == "models" else select(data, questions=kept)


def _correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the measures between two sets of values, which may be infinite at the ends."""
    ranks = [np.asarray(rank_scores(-values, method="average")) for values in (x, y)]
    finite = np.isfinite(x) & np.isfinite(y)
    linear = pearson(x[finite], y[finite]) if finite.sum() > 1 else np.nan
    return np.array([spearman(*ranks), linear, kendall_tau_b(*ranks)], dtype=np.float64)
