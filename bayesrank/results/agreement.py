"""Comparison of rankings: a table of all measures, and matrices of them.

Every function takes ranks of shape (..., system), 1 for the best; leading axes are batches of
rankings and broadcast, so one ranking is compared with thousands in one call. Only the order
counts, for any kind of ranks; only :func:`pearson` uses the values, and is the measure for
scores. The correlation with a ranking in which all systems are tied is NaN.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.results.aligned import read_pair
from bayesrank.results.correlations import (
    icc1,
    kendall_tau_a,
    kendall_tau_b,
    pearson,
    spearman,
    weighted_tau,
)
from bayesrank.results.overlap import (
    footrule,
    max_displacement,
    mean_displacement,
    median_displacement,
    rank_biased_overlap,
    top_k_overlap,
)
from bayesrank.validation import check_between_0_and_1

if TYPE_CHECKING:
    from bayesrank.results.aligned import Ranking

FloatArray = NDArray[np.float64]

#: Measures of two rankings without further options, by name.
MEASURES: Mapping[str, Callable[[ArrayLike, ArrayLike], FloatArray]] = MappingProxyType(
    {
        "kendall_tau_b": kendall_tau_b,
        "kendall_tau_a": kendall_tau_a,
        "spearman": spearman,
        "weighted_tau": weighted_tau,
        "pearson": pearson,
        "rank_biased_overlap": rank_biased_overlap,
        "footrule": footrule,
        "icc1": icc1,
        "mean_displacement": mean_displacement,
        "median_displacement": median_displacement,
        "max_displacement": max_displacement,
    }
)


def compare_rankings(
    x: "Ranking | ArrayLike",
    y: "Ranking | ArrayLike",
    *,
    k: int | None = None,
    p: float = 0.9,
    ci_prob: float = 0.95,
) -> dict[str, FloatArray]:
    """Compare rankings by every measure.

    Parameters
    ----------
    x, y : array_like of shape (..., system), or xarray.DataTree
        Ranks, 1 for the best; or results of :func:`bayesrank.rank`. Results, and ranks labelled by
        system, are matched by the names of the systems.
    k : int, optional
        Depth of the top-k overlap; left out by default.
    p : float, default 0.9
        Persistence of the rank-biased overlap.
    ci_prob : float, default 0.95
        Probability of the intervals, where `x` or `y` is a result with draws.

    Returns
    -------
    dict of str to numpy.ndarray of shape (...)
        The measures of `MEASURES`, and ``top_k_overlap`` if `k` is given. Where there are draws,
        also the mean of every measure over them and its equal-tailed interval, as
        ``kendall_tau_b_mean``, ``kendall_tau_b_lower`` and ``kendall_tau_b_upper``. Draws of two
        results are paired at random, so that both uncertainties count; ranks do not vary. So pass
        ranks and the result of a gold standard for the agreement of these ranks with the true order
        of the standard. It is mostly lower than the agreement with the estimate of this order.

    Raises
    ------
    ValueError
        If a ranking is empty or not finite, the systems differ, or a number is out of range.

    Examples
    --------
    >>> float(compare_rankings([1, 2, 3, 4], [2, 1, 3, 4], k=2)["top_k_overlap"])
    1.0

    >>> from bayesrank import rank
    >>> gold = rank([[[1, 1, 1], [1, 1, 0]], [[0, 1, 0], [0, 0, 1]]], "avg", random_seed=1)
    >>> agreement = compare_rankings([1, 2], gold)
    >>> float(agreement["kendall_tau_b"]), bool(agreement["kendall_tau_b_mean"] < 1.0)
    (1.0, True)
    """
    check_between_0_and_1(ci_prob, "ci_prob")
    (x_ranks, x_draws), (y_ranks, y_draws) = read_pair(x, y)
    _check_pair(x_ranks, y_ranks)
    compared = _measures(x_ranks, y_ranks, k, p)
    if x_draws is None and y_draws is None:
        return compared
    varied = _vary(x_ranks, x_draws, y_ranks, y_draws, k, p)
    for name, values in varied.items():
        for end, summary in zip(("mean", "lower", "upper"), _summary(values, ci_prob), strict=True):
            compared[f"{name}_{end}"] = summary
    return compared


def _vary(
    x: FloatArray,
    x_draws: FloatArray | None,
    y: FloatArray,
    y_draws: FloatArray | None,
    k: int | None,
    p: float,
) -> dict[str, FloatArray]:
    """Return the measures over the draws, on the last axis."""
    if x_draws is not None and y_draws is not None:
        n_draws = min(len(x_draws), len(y_draws))
        # Draws of two results with the same seed would be dependent.
        y_draws = np.random.default_rng(0).permutation(y_draws)[:n_draws]
        x_draws = x_draws[:n_draws]
    n_draws = max(0 if draws is None else len(draws) for draws in (x_draws, y_draws))
    parts = []
    for some in batches(n_draws, max(x.size, y.size) * x.shape[-1]):
        # Ranks do not vary, only the draws on the other side.
        one, two = (
            ranks[..., np.newaxis, :] if draws is None else draws[some]
            for ranks, draws in ((x, x_draws), (y, y_draws))
        )
        parts.append(_measures(one, two, k, p))
    return {name: np.concatenate([part[name] for part in parts], axis=-1) for name in parts[0]}


def _summary(values: FloatArray, ci_prob: float) -> FloatArray:
    """Return mean and equal-tailed interval over the last axis; NaN where all is undefined."""
    found = np.full((3, *values.shape[:-1]), np.nan)
    for place in np.ndindex(values.shape[:-1]):
        defined = values[place][~np.isnan(values[place])]
        if len(defined):
            tails = np.quantile(defined, (0.5 - ci_prob / 2, 0.5 + ci_prob / 2))
            found[(slice(None), *place)] = [defined.mean(), *tails]
    return found


def _measures(x: ArrayLike, y: ArrayLike, k: int | None, p: float) -> dict[str, FloatArray]:
    values = {name: measure(x, y) for name, measure in MEASURES.items()}
    values["rank_biased_overlap"] = rank_biased_overlap(x, y, p=p)
    if k is not None:
        values["top_k_overlap"] = top_k_overlap(x, y, k=k)
    return values


def _check_pair(x: FloatArray, y: FloatArray) -> None:
    for name, ranks in (("x", x), ("y", y)):
        _check_ranks(name, ranks)
    if x.shape[-1:] != y.shape[-1:]:
        raise ValueError(f"x and y must rank the same systems; got {x.shape[-1]} and {y.shape[-1]}")


def _check_ranks(name: str, ranks: FloatArray) -> None:
    if not ranks.shape[-1:] or not ranks.shape[-1]:
        raise ValueError(f"{name} must rank one system or more; got shape {ranks.shape}")
    if not np.isfinite(ranks).all():
        raise ValueError(f"{name} must hold finite ranks; got {ranks[~np.isfinite(ranks)].flat[0]}")


def agreement_matrix(rankings: ArrayLike, *, measure: str = "kendall_tau_b") -> FloatArray:
    """Compare every ranking with every other one.

    Parameters
    ----------
    rankings : array_like of shape (..., ranking, system)
        Ranks, 1 for the best.
    measure : str, default "kendall_tau_b"
        A name in `MEASURES`.

    Returns
    -------
    numpy.ndarray of shape (..., ranking, ranking)

    Raises
    ------
    ValueError
        If `measure` is unknown, or the rankings are empty or not finite.

    Examples
    --------
    >>> agreement_matrix([[1, 2, 3], [3, 2, 1]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}")
    ranks = np.atleast_2d(np.asarray(rankings, dtype=np.float64))
    _check_ranks("rankings", ranks)
    return MEASURES[measure](ranks[..., :, None, :], ranks[..., None, :, :])
