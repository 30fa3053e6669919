"""Tables of what a result says about the best systems and about pairs of them."""

import numpy as np
import pandas as pd
import xarray as xr


def prob_top_k(result: xr.DataTree, k: int) -> pd.Series:
    """Return the probability that each system is among the best k.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned with draws.
    k : int
        How many are best, from 1 to the number of systems.

    Returns
    -------
    pandas.Series
        By system, in the order of the data.

    Raises
    ------
    ValueError
        If k is out of range or the result has no draws.
    """
    ranking = result["ranking"].to_dataset()
    if "rank_probability" not in ranking:
        raise ValueError("result must have draws for prob_top_k; got a point estimate alone")
    if not 1 <= k <= ranking.sizes["position"]:
        raise ValueError(f"k must be from 1 to {ranking.sizes['position']}; got {k}")
    top = ranking["rank_probability"].isel(position=slice(k)).sum("position")
    return top.to_series().rename("prob_top_k")


def pairwise_decisions(result: xr.DataTree, *, ci_prob: float = 0.95) -> pd.DataFrame:
    """Tabulate what is known of the difference of every two systems.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned with draws.
    ci_prob : float, default 0.95
        Probability of the intervals; an order is resolved if the better system is superior with
        this probability.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the better system first: ``difference`` of the scores with its interval,
        ``z`` (difference over its standard deviation), ``confidence`` (the ranking confidence
        rho, the normal probability of z), ``superiority``, ``resolved``, and
        ``intervals_overlap``, the cruder rule by which the systems' own intervals are compared.

    Raises
    ------
    ValueError
        If the result has no draws.
    """
    from scipy.special import ndtr  # most readers of results do not need SciPy

    ranking = result["ranking"].to_dataset()
    if "superiority" not in ranking:
        raise ValueError("result must have draws for decisions; got a point estimate alone")
    names = ranking["system"].values
    order = np.argsort(ranking["rank"].values, kind="stable")
    draws = result["posterior"]["score"].stack(sample=("chain", "draw")).values[order]
    score = ranking["score"].values[order]
    first, second = np.triu_indices(len(order), 1)
    gaps = draws[first] - draws[second]
    tails = (0.5 - ci_prob / 2, 0.5 + ci_prob / 2)
    lower, upper = np.quantile(gaps, tails, axis=1)
    own_lower, own_upper = np.quantile(draws, tails, axis=1)
    sd = gaps.std(axis=1)
    difference = score[first] - score[second]
    z = np.divide(difference, sd, out=np.full_like(sd, np.inf), where=sd > 0)
    z = np.where(difference == 0, 0.0, z)
    superiority = ranking["superiority"].values[np.ix_(order, order)][first, second]
    return pd.DataFrame(
        {
            "system": names[order][first],
            "opponent": names[order][second],
            "difference": difference,
            "difference_lower": lower,
            "difference_upper": upper,
            "z": z,
            "confidence": ndtr(z),
            "superiority": superiority,
            # Of equal scores neither is the better one, however skewed their draws.
            "resolved": (superiority >= ci_prob) & (difference > 0),
            "intervals_overlap": own_lower[first] <= own_upper[second],
        }
    )
