"""Consensus: how far methods agree with each other and with the gold standard."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from bayesrank.entrance import as_responses
from bayesrank.responses import Responses
from bayesrank.results.agreement import agreement_matrix
from bayesrank.studies.configurations import choose_methods
from bayesrank.studies.execution import Workers, fingerprint, run_tasks
from bayesrank.studies.references import (
    gold_orders,
    gold_ranks,
    groups_of_equals,
    nan_mean,
    tau_or_nan,
    true_agreement,
)
from bayesrank.studies.scoring import score_rank
from bayesrank.studies.subsets import fewest_trials
from bayesrank.validation import check_between_0_and_1


def consensus(
    data: Responses | ArrayLike,
    methods: str | Sequence[str] | None = None,
    *,
    ci_prob: float = 0.95,
    random_seed: int = 0,
    workers: Workers = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Rank the data by every method and compare the rankings by Kendall's tau-b.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials.
    methods : str or sequence of str, optional
        Names, with options in parentheses, as in :func:`bayesrank.studies.stability`; the 72
        published configurations by default, without those that the data do not allow.
    ci_prob : float, default 0.95
        Probability of the interval of ``tau_true``.
    random_seed, workers, checkpoint, progress
        As in :func:`bayesrank.studies.stability`.

    Returns
    -------
    xarray.Dataset
        ``rank`` (method, system), ``tau`` (method, other_method), ``tau_gold`` (method), with the
        order by ``bayes``, ``tau_true`` (method), the expected tau with the true order,
        its interval ``tau_true_lower`` and ``tau_true_upper``, ``tau_mean``
        (method), the average with all other methods, ``finite`` (method), and ``group`` (method),
        the first method with the same ranking.

    Raises
    ------
    ValueError
        If a method is not known.

    Examples
    --------
    >>> from bayesrank.studies import simulate
    >>> simulated = simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)
    >>> study = consensus(Responses(simulated["outcomes"]), ["avg", "borda", "pagerank"])
    >>> study["tau_gold"].values
    array([1., 1., 1.])
    """
    data = as_responses(data, "to study trials and questions")
    check_between_0_and_1(ci_prob, "ci_prob")
    fewest = fewest_trials(data, data.shape[2], "subset")
    names = choose_methods(data, methods, n=fewest, argument="trials")
    results = run_tasks(
        partial(_one_method, data),
        names,
        name="consensus",
        random_seed=random_seed,
        workers=workers,
        checkpoint=checkpoint,
        settings={"key": fingerprint(data.fingerprint, names)},
        progress=progress,
    )
    ranks = np.stack([result["rank"] for result in results])
    unranked = np.isnan(ranks).any(axis=1)
    tau = agreement_matrix(np.nan_to_num(ranks))
    tau[unranked] = tau[:, unranked] = np.nan
    others = np.where(np.eye(len(names), dtype=bool), np.nan, tau)
    true, lower, upper = true_agreement(ranks[:, np.newaxis], gold_orders(data), ci_prob)
    return xr.Dataset(
        {
            "rank": (("method", "system"), ranks),
            "tau": (("method", "other_method"), tau),
            "tau_gold": ("method", tau_or_nan(ranks, gold_ranks(data))),
            "tau_true": ("method", true),
            "tau_true_lower": ("method", lower),
            "tau_true_upper": ("method", upper),
            "tau_mean": ("method", nan_mean(others)),
            "finite": ("method", [bool(result["finite"]) for result in results]),
            "group": ("method", groups_of_equals(ranks, names)),
        },
        coords={
            "method": list(names),
            "other_method": list(names),
            "system": list(data.systems),
        },
        attrs={"study": "consensus", "random_seed": random_seed},
    )


def _one_method(data: Responses, name: str, seed: np.random.SeedSequence) -> dict[str, Any]:
    scored = score_rank(data, name, random_seed=int(seed.generate_state(1)[0]))
    return {"rank": scored.rank, "finite": scored.finite}
