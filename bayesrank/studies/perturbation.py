"""Perturbation: the effect of removing systems or benchmarks on scores and difficulties."""

import warnings
from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.design import asked_questions
from bayesrank.entrance import as_responses
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.method import read_call
from bayesrank.ranking import estimate_point
from bayesrank.responses import Responses
from bayesrank.results.agreement import kendall_tau_b, pearson, spearman
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.subsets import select
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]
Remove = Literal["systems", "groups"]

MEASURES = ("spearman", "pearson", "kendall")


def perturbation(
    data: Responses | ArrayLike,
    method: str = "rankllm",
    *,
    remove: Remove = "systems",
    k: int | Sequence[int] = 1,
    draws: int = 100,
    random_seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Remove systems or groups of questions and compare the estimates before and after.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials; with `groups` for ``remove="groups"``.
    method : str, default "rankllm"
        Any method, with its options in parentheses or as keywords.
    remove : {"systems", "groups"}, default "systems"
        Remove systems, or benchmarks with all their questions.
    k : int or sequence of int, default 1
        Numbers to remove at a time.
    draws : int, default 100
        Number of random removals for each `k`; all possible ones, once each, if k is 1 or
        if there are at most this many.
    random_seed : int, default 0
        Same seed, same removals.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        Over removal and measure (spearman, pearson, kendall): ``competency``, the correlation of
        the scores of the remaining systems, and ``difficulty``, that of the difficulties of the
        remaining questions; NaN if the method estimates no difficulties, has no finite
        estimate after the removal, or ties all systems or questions. Over removal: ``removed`` has
        the removed names, ``n_removed`` their number, ``questions_removed`` the number of questions
        removed with them. Over k and measure, for ``competency`` and ``difficulty``: the mean
        (``_mean``), the standard deviation over removals (``_sd``; NaN for a single one) and 1
        minus the smallest value (``_max_drop``). ``n_compared`` (k) counts the removals whose
        ``competency`` is not NaN.

    Raises
    ------
    ValueError
        If an argument is invalid, or too much would be removed.
    DataError
        If the data have no groups to remove.
    NoFiniteEstimate
        If a maximum-likelihood estimate from all the data does not exist.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.rasch_tensor(6, 40, 4)["outcomes"])
    >>> study = perturbation(data, k=[1, 2, 3])
    >>> bool((study["competency_mean"].sel(measure="spearman") > 0.9).all())
    True
    """
    data = as_responses(data, "to study trials and questions")
    units = _units(data, remove)
    if len(units) < 3:
        raise ValueError(f"data must have three {remove} or more to remove one; got {len(units)}")
    removals = _removals(len(units), k, draws, random_seed)
    competency, difficulty = competency_and_difficulty(data, method, **options)
    compared, questions_left = [], []
    for removed in removals:
        kept = _keep(data, remove, units, removed)
        left = _selected(data, remove, kept)
        after = _estimate_left(left, method, **options)
        of_systems, of_questions = (
            (kept, slice(None)) if remove == "systems" else (slice(None), kept)
        )
        compared.append(
            [
                correlations(competency[of_systems], after[0]),
                correlations(difficulty[of_questions], after[1]),
            ]
        )
        questions_left.append(left.shape[1])
    names = [", ".join(units[unit] for unit in removed) for removed in removals]
    dims, table = ("removal", "measure"), np.array(compared)
    dataset = xr.Dataset(
        {
            "competency": (dims, table[:, 0]),
            "difficulty": (dims, table[:, 1]),
            "removed": ("removal", names),
            "n_removed": ("removal", [len(removed) for removed in removals]),
            "questions_removed": ("removal", data.shape[1] - np.array(questions_left)),
        },
        coords={"measure": list(MEASURES)},
        attrs={"study": "perturbation", "method": method, "remove": remove},
    )
    return dataset.assign(_summaries(dataset))


def _removals(
    n_units: int, k: int | Sequence[int], draws: int, random_seed: int
) -> list[NDArray[np.intp]]:
    """Return the positions of the removed systems or groups, for every k in turn."""
    counts = [k] if isinstance(k, int | np.integer) else list(k)
    for count in counts:
        integer = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not integer or not 1 <= count <= n_units - 2:
            raise ValueError(f"k must be from 1 to {n_units - 2} of {n_units}; got {count!r}")
    if not counts or len(set(counts)) < len(counts):
        raise ValueError(f"k must be one number or more, each once; got {k!r}")
    check_integer(draws, "draws")
    removals: list[NDArray[np.intp]] = []
    for count in counts:
        if count == 1 or comb(n_units, count) <= draws:
            removals += map(np.array, combinations(range(n_units), count))
        else:  # the seed depends on k, so the removals of one k do not depend on other values
            rng = np.random.default_rng([random_seed, count])
            removals += [np.sort(rng.choice(n_units, count, replace=False)) for _ in range(draws)]
    return removals


def _summaries(dataset: xr.Dataset) -> dict[str, xr.DataArray]:
    """Summarise the correlations of each number of removed units."""
    made = {}
    for name in ("competency", "difficulty"):
        grouped = dataset[name].groupby(dataset["n_removed"].rename("k"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the sd of one removal is NaN
            made[f"{name}_sd"] = grouped.std(ddof=1)
        made[f"{name}_mean"] = grouped.mean()
        made[f"{name}_max_drop"] = 1.0 - grouped.min()
        if name == "competency":
            made["n_compared"] = grouped.count().max("measure")
    return made


def difficulty_leave_one_out(
    data: Responses | ArrayLike, method: str = "rankllm", **options: Any
) -> xr.Dataset:
    """Estimate difficulties without each system in turn and predict where it fails.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials.
    method : str, default "rankllm"
        A method that estimates difficulties, with its options in parentheses or as keywords.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        Over system, the one that is left out: ``difficulty`` (system, question) from the others,
        its correlations with the difficulties from all, ``stability`` (system, measure), and with
        the shortfall in mean worth of the left-out system, ``prediction`` (system, measure).
        NaN if the method has no finite estimate without a system.

    Raises
    ------
    ValueError
        If the method estimates no difficulties, or there are fewer than three systems.
    NoFiniteEstimate
        If a maximum-likelihood estimate from all the data does not exist.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> data = Responses(simulate.rasch_tensor(6, 40, 4)["outcomes"])
    >>> difficulty_leave_one_out(data)["prediction"].sel(measure="spearman").min().item() > 0
    True
    """
    data = as_responses(data, "to study trials and questions")
    n_systems = len(data.systems)
    if n_systems < 3:
        raise ValueError(f"data must have three systems or more to leave one out; got {n_systems}")
    overall = estimate_difficulty(data, method, **options)
    without, stability, prediction = [], [], []
    for left_out in range(n_systems):
        kept = np.delete(np.arange(n_systems), left_out)
        _, difficulty = _estimate_left(select(data, systems=kept), method, **options)
        without.append(difficulty)
        stability.append(correlations(overall, difficulty))
        grades = data.grades[left_out]
        seen = ~np.isnan(grades)
        prediction.append(correlations(-grades[seen], difficulty[seen]))
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
) -> tuple[FloatArray, FloatArray]:
    """Return scores of systems and difficulties of questions, NaN where the method has none."""
    name, keywords = read_call(method, "method")
    score, parameters = estimate_point(data, name, **{**keywords, **options})
    found: Any = parameters.get("difficulty", np.nan)
    if "loading" in parameters:  # several dimensions, without one difficulty
        length = np.linalg.norm(parameters["loading"], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -parameters["intercept"] / length
    difficulty = np.full(data.shape[1], np.nan)
    difficulty[asked_questions(data)] = found
    return score, difficulty


def estimate_difficulty(data: Responses, method: str, **options: Any) -> FloatArray:
    """Return difficulties of questions; ValueError where the method estimates none."""
    difficulty = competency_and_difficulty(data, method, **options)[1]
    if np.isnan(difficulty).all():
        raise ValueError(f"method must estimate difficulties; got {method!r}")
    return difficulty


def _estimate_left(data: Responses, method: str, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Return scores and difficulties, NaN where there is no finite estimate."""
    try:
        return competency_and_difficulty(data, method, **options)
    except NoFiniteEstimate:
        return np.full(data.shape[0], np.nan), np.full(data.shape[1], np.nan)


def _units(data: Responses, remove: str) -> list[str]:
    if remove not in ("systems", "groups"):
        raise ValueError(f"remove must be 'systems' or 'groups'; got {remove!r}")
    if remove == "systems":
        return list(data.systems)
    if data.groups is None:
        raise DataError("groups must be given to remove groups of questions; got None")
    return list(dict.fromkeys(data.groups))


def _keep(
    data: Responses, remove: str, units: list[str], removed: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return positions of the remaining systems, or of the remaining questions."""
    gone = {units[unit] for unit in removed}
    labels = data.systems if remove == "systems" else data.groups or ()
    return np.flatnonzero([label not in gone for label in labels])


def _selected(data: Responses, remove: str, kept: NDArray[np.intp]) -> Responses:
    return select(data, systems=kept) if remove == "systems" else select(data, questions=kept)


def correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the measures between two sets of values, infinite at the ends or NaN if missing."""
    found = ~np.isnan(x) & ~np.isnan(y)
    if found.sum() < 2:
        return np.full(len(MEASURES), np.nan)
    x, y = x[found], y[found]
    ranks = [np.asarray(rank_scores(-values, method="average")) for values in (x, y)]
    finite = np.isfinite(x) & np.isfinite(y)
    linear = pearson(x[finite], y[finite]) if finite.sum() > 1 else np.nan
    return np.array([spearman(*ranks), linear, kendall_tau_b(*ranks)], dtype=np.float64)
