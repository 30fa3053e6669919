"""The effect of greedy runs on a ranking, and their agreement with the sampled trials."""

import os
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.methods.bayes import bayes
from bayesrank.responses import Responses, count_categories
from bayesrank.results.agreement import kendall_tau_b, spearman
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.adaptive import (
    adaptive_greedy,
    condition_worths,
    greedy_outcomes,
    power_prior,
)
from bayesrank.studies.execution import Workers, fingerprint, run_tasks
from bayesrank.studies.references import gold_ranks, nan_mean
from bayesrank.studies.subsets import (
    Resample,
    check_resample,
    check_trial_counts,
    plan_draws,
    take_draw,
)
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]

#: Ways to use greedy outcomes that :func:`greedy_effect` compares with the uniform prior.
PRIORS = ("uniform", "greedy", "adaptive", "power")


def greedy_alignment(
    data: Responses | ArrayLike, prior_outcomes: ArrayLike | None = None
) -> xr.Dataset:
    """Compare the order by greedy runs with the order by sampled trials.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Sampled trials.
    prior_outcomes : array_like, optional
        Greedy outcomes, of a shape that :class:`bayesrank.Responses` takes; those of the data by
        default.

    Returns
    -------
    xarray.Dataset
        ``tau`` (Kendall's tau-b, the greedy-sampling alignment) and ``spearman``. Over system:
        ``greedy`` and ``sampled`` mean worth, their ``rank`` (average ranks, over condition), the
        ``displacement`` (greedy minus sampled rank: positive where greedy underrates) and the
        ``difference`` of the mean worths.

    Raises
    ------
    DataError
        If there are no greedy outcomes.

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> round(float(greedy_alignment(load_olympiad("BrUMO'25"))["tau"]), 3)
    0.768
    """
    data = as_responses(data, "to study trials and questions")
    if prior_outcomes is not None:
        data = _with_prior(data, prior_outcomes)
    sampled_worths, greedy_worths = condition_worths(data)
    sampled = _overall(sampled_worths)
    greedy = _overall(greedy_worths)
    ranks = np.stack([rank_scores(worth, method="average") for worth in (greedy, sampled)])
    return xr.Dataset(
        {
            "tau": ((), kendall_tau_b(*ranks)),
            "spearman": ((), spearman(*ranks)),
            "greedy": ("system", greedy),
            "sampled": ("system", sampled),
            "rank": (("condition", "system"), ranks),
            "displacement": ("system", ranks[0] - ranks[1]),
            "difference": ("system", greedy - sampled),
        },
        coords={"system": list(data.systems), "condition": ["greedy", "sampled"]},
        attrs={"study": "greedy_alignment"},
    )


def greedy_effect(
    data: Responses | ArrayLike,
    *,
    n: int = 1,
    draws: int = 50,
    resample: Resample = "subset",
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Measure the effect of greedy outcomes in the prior on the ranking from a few trials.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Sampled trials with greedy outcomes of every system.
    n : int, default 1
        Trials per draw.
    draws : int, default 50
        Paired draws.
    resample, random_seed, workers, checkpoint, progress
        As in :func:`bayesrank.studies.stability`.

    Returns
    -------
    xarray.Dataset
        Over prior (uniform; greedy, in which a greedy outcome counts as a trial; adaptive, from
        :func:`adaptive_greedy`; power, from :func:`power_prior`) and draw: ``tau`` with the gold
        standard. Over prior: ``tau_mean``, ``tau_sd``, ``tau_min``, ``tau_max``, ``change`` of the
        mean from the uniform prior with its standard error ``change_se``, ``sd_reduction``.
        ``alignment``, between greedy runs and all trials.

    Raises
    ------
    DataError
        If there are no greedy outcomes.
    ValueError
        If an option is invalid.

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> study = greedy_effect(load_olympiad("BrUMO'25"), draws=5)
    >>> study["prior"].values.tolist()
    ['uniform', 'greedy', 'adaptive', 'power']
    """
    data = as_responses(data, "to study trials and questions")
    check_resample(resample)
    count = check_trial_counts(data, n, resample)[0]
    draws = check_integer(draws, "draws", least=2)
    plan = plan_draws(data, count, draws, resample, random_seed)
    alignment = float(greedy_alignment(data)["tau"])
    results = run_tasks(
        partial(_one_draw, data, count, resample),
        plan,
        name="greedy_effect",
        random_seed=random_seed,
        workers=workers,
        checkpoint=checkpoint,
        settings={"key": fingerprint(data.fingerprint, count, plan, resample)},
        progress=progress,
    )
    scores = np.stack([result["score"] for result in results], axis=1)
    tau = kendall_tau_b(rank_scores(scores), gold_ranks(data))
    dataset = xr.Dataset(
        {"tau": (("prior", "draw"), tau), "alignment": ((), alignment)},
        coords={"prior": list(PRIORS)},
        attrs={"study": "greedy_effect", "n": count, "random_seed": random_seed},
    )
    change = dataset["tau"] - dataset["tau"].sel(prior="uniform", drop=True)
    dataset["tau_mean"] = dataset["tau"].mean("draw")
    dataset["tau_sd"] = dataset["tau"].std("draw", ddof=1)
    dataset["tau_min"], dataset["tau_max"] = dataset["tau"].min("draw"), dataset["tau"].max("draw")
    dataset["change"] = change.mean("draw")
    dataset["change_se"] = change.std("draw", ddof=1) / np.sqrt(draws)
    dataset["sd_reduction"] = 1.0 - dataset["tau_sd"] / dataset["tau_sd"].sel(
        prior="uniform", drop=True
    )
    return dataset


def prior_data_conflict(data: Responses | ArrayLike) -> xr.Dataset:
    r"""Test whether sampled trials agree with the predictions from greedy runs.

    The first test is the check of the prior of ``bayes`` with ``use_prior_outcomes=True`` [1]_: is
    the number of right answers of a system unlikely under the predictive distribution given its
    greedy outcomes and a uniform prior, the Beta-binomial of every question? It also rejects where
    the uniform prior is wrong: a system with the probability 0.9 of a right answer to every
    question, greedy or sampled, is expected to have 63 % after one greedy outcome each. The second
    test is about changes of rankings: does the difference of greedy and sampled accuracies vary
    over systems by more than the noise of the trials? Use it to decide whether to use greedy runs.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Binary outcomes with greedy outcomes of every system.

    Returns
    -------
    xarray.Dataset
        Over system: ``p_value`` (two-sided, exact) and ``expected`` and ``observed`` right answers.
        ``p_any``, the smallest one times the number of systems; ``p_between``, of the test of equal
        differences, with its statistic ``ratio`` (observed variance over that of noise); NaN
        if a system has fewer than two questions, or if there is no noise.

    Raises
    ------
    DataError
        If outcomes are not binary or greedy outcomes are missing.

    References
    ----------
    .. [1] M. Evans and H. Moshonov. Checking for prior-data conflict. Bayesian Analysis 1 (2006).
       https://doi.org/10.1214/06-BA129

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> study = prior_data_conflict(load_olympiad("BrUMO'25"))
    >>> bool(study["p_between"] < 0.01)
    True
    """
    data = as_responses(data, "to study trials and questions")
    sampled, greedy = condition_worths(data)
    right, trials = data.binary_counts
    earlier = count_categories(greedy_outcomes(data), 2)
    shapes = earlier[..., 1] + 1.0, earlier[..., 0] + 1.0
    mean = shapes[0] / (shapes[0] + shapes[1])
    observed = right.sum(axis=1)
    p_values = [
        _two_sided(_total_distribution(a, b, n), int(total))
        for a, b, n, total in zip(*shapes, trials, observed, strict=True)
    ]
    ratio, p_between = _test_between(sampled, greedy)
    return xr.Dataset(
        {
            "p_value": ("system", p_values),
            "expected": ("system", (mean * trials).sum(axis=1)),
            "observed": ("system", observed),
            "p_any": ((), min(1.0, len(p_values) * min(p_values))),
            "ratio": ((), ratio),
            "p_between": ((), p_between),
        },
        coords={"system": list(data.systems)},
        attrs={"study": "prior_data_conflict"},
    )


def _one_draw(
    data: Responses,
    count: int,
    resample: Resample,
    trials: NDArray[np.intp] | None,
    seed: np.random.SeedSequence,
) -> dict[str, Any]:
    """Score one draw of trials under every prior, in the order of `PRIORS`."""
    few = take_draw(data, count, resample, trials, seed)
    earlier = count_categories(greedy_outcomes(few), few.n_categories)
    adaptive = adaptive_greedy(few)
    power = power_prior(few, n_weights=21)
    greedy = bayes(few.counts, few.category_weights, earlier, use_prior_outcomes=True)
    uniform = adaptive["uniform"].values
    return {"score": [uniform, greedy, adaptive["score"].values, power["score"].values]}


def _with_prior(data: Responses, prior_outcomes: ArrayLike) -> Responses:
    return Responses(
        data.values,
        systems=data.systems,
        questions=data.questions,
        **data.declared,
        prior_outcomes=prior_outcomes,
        paired=data.paired,
    )


def _overall(worths: FloatArray) -> FloatArray:
    """Average worths over trials, then over questions with any."""
    mean = nan_mean(nan_mean(worths))
    if np.isnan(mean).any():
        raise DataError("every system must have sampled and greedy outcomes; got one without")
    return mean


def _total_distribution(
    a: FloatArray, b: FloatArray, trials: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the distribution of a sum of Beta-binomial variables, by their transforms."""
    from scipy.special import betaln, gammaln  # importing this package should not cost SciPy

    size = int(trials.sum()) + 1
    length = 1 << (size - 1).bit_length()
    k = np.arange(int(trials.max()) + 1)
    inside = k <= trials[:, None]
    left = np.where(inside, trials[:, None] - k, 0)
    choose = gammaln(trials[:, None] + 1) - gammaln(k + 1) - gammaln(left + 1)
    log_mass = choose + betaln(k + a[:, None], left + b[:, None]) - betaln(a, b)[:, None]
    mass = np.where(inside, np.exp(log_mass), 0.0)
    transform = np.fft.rfft(mass, length, axis=1).prod(axis=0)
    return np.maximum(np.fft.irfft(transform, length)[:size], 0.0)


def _two_sided(mass: FloatArray, total: int) -> float:
    tail = min(mass[: total + 1].sum(), mass[total:].sum())
    return float(min(1.0, 2.0 * tail))


def _test_between(sampled: FloatArray, greedy: FloatArray) -> tuple[float, float]:
    """Test that greedy minus sampled mean worth varies over systems only by noise."""
    from scipy.special import gammaincc  # importing this package should not cost SciPy

    n_sampled, n_greedy = (np.count_nonzero(~np.isnan(x), axis=-1) for x in (sampled, greedy))
    both = (n_sampled > 0) & (n_greedy > 0)
    cells, before = (np.where(both, nan_mean(worths), np.nan) for worths in (sampled, greedy))
    # Cells also differ by interactions of questions and conditions, so their variance within a
    # system overestimates the noise of trials: the test is conservative.
    gaps = before - cells
    questions = both.sum(axis=1)
    noise = np.nanvar(gaps, axis=1) * questions / np.maximum(questions - 1, 1) / questions
    difference = np.nanmean(gaps, axis=1)
    if questions.min() < 2 or not noise.any():
        return np.nan, np.nan
    ratio = difference.var(ddof=1) / noise.mean()
    freedom = len(difference) - 1
    return float(ratio), float(gammaincc(freedom / 2, freedom * ratio / 2))
