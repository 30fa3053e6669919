"""How a ranking depends on the worth of the categories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrank.design import part_with_outcomes
from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.results.ranks import ROUNDING, rank_range, rank_scores
from bayesrank.validation import check_integer, checked_seed, numeric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

Box = tuple[Sequence[float], Sequence[float]]


def weight_sensitivity(
    data: Responses | ArrayLike,
    *,
    box: Box | None = None,
    draws: int = 10_000,
    random_seed: int | None = 0,
) -> pd.DataFrame:
    """Tabulate the ranks of systems over a region of category weights.

    A score is the posterior mean under a uniform prior (``bayes``), which is linear in the weights.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Categories of all systems; those without an outcome are left out.
    box : pair of sequences of float, optional
        Lowest and highest weight of each category; weights are uniform between them and
        independent. By default weights are uniform on the simplex: positive, with sum 1.
    draws : int, default 10000
        Number of draws of the weights.
    random_seed : int, optional
        Same seed, same weights; 0 by default.

    Returns
    -------
    pandas.DataFrame
        One row per system: ``system``, ``rank`` (with the weights of the data; absent if there
        are none), ``rank_best``, ``rank_worst`` and ``rank_mean`` over the region, and
        ``share_first``, the proportion of weights that rank it first.

    Raises
    ------
    DataError
        If the box does not have the stated form.

    Examples
    --------
    >>> outcomes = [[[0, 2, 2]], [[1, 1, 2]]]
    >>> data = Responses(outcomes, systems=["bold", "careful"], categories=3)
    >>> weight_sensitivity(data, box=([0, 0, 1], [0, 1, 1]))[["system", "share_first"]].round(1)
        system  share_first
    0     bold          0.5
    1  careful          0.5
    """
    data = part_with_outcomes(as_responses(data, "to weigh categories"))
    shares = _category_shares(data)
    low, high = _check_box(box, data.n_categories)
    check_integer(draws, "draws")
    rng = np.random.default_rng(checked_seed(random_seed))
    if box is None:
        weights = rng.dirichlet(np.ones(data.n_categories), draws)
    else:
        weights = rng.uniform(low, high, (draws, data.n_categories))
    # einsum adds categories in one order for every system, so equal systems tie exactly.
    first, last = rank_range(np.einsum("dc,lc->dl", weights, shares))
    alone = np.where(first == 1, 1.0 / last, 0.0)
    table = pd.DataFrame(
        {
            "system": data.systems,
            "rank_best": first.min(axis=0),
            "rank_worst": last.max(axis=0),
            "rank_mean": (first + last).mean(axis=0) / 2,
            "share_first": alone.mean(axis=0),
        }
    )
    if data.weights is not None:
        table.insert(1, "rank", rank_scores(np.einsum("c,lc->l", data.weights, shares)))
    return table


def order_stability(data: Responses | ArrayLike, *, box: Box) -> pd.DataFrame:
    """Report the pairs of systems whose order no weights of a box reverse.

    The difference of two scores is linear in the weights, so its extremes over a box are at
    corners, and are exact. Over the whole simplex every pair of different systems has weights that
    reverse it, because each category may have all the weight.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Categories of all systems; those without an outcome are left out.
    box : pair of sequences of float
        Lowest and highest weight of each category.

    Returns
    -------
    pandas.DataFrame
        One row per pair: ``system``, ``opponent``, ``difference_lowest`` and
        ``difference_highest`` of their scores over the box, and ``stable``, whether the two
        have the same sign.

    Raises
    ------
    DataError
        If the box does not have the stated form.

    Examples
    --------
    >>> data = Responses([[[0, 2, 2]], [[0, 1, 2]]], systems=["a", "b"], categories=3)
    >>> order_stability(data, box=([0, 0, 1], [0, 0.5, 1]))["stable"].tolist()
    [True]
    """
    data = part_with_outcomes(as_responses(data, "to weigh categories"))
    shares = _category_shares(data)
    low, high = _check_box(box, data.n_categories)
    first, second = np.triu_indices(len(shares), 1)
    slope = shares[first] - shares[second]
    lowest = np.minimum(slope * low, slope * high).sum(axis=1)
    highest = np.maximum(slope * low, slope * high).sum(axis=1)
    # Shares are means over questions; in another order of the questions they round differently.
    rounding = ROUNDING * np.abs([low, high]).max()
    names = np.array(data.systems)
    return pd.DataFrame(
        {
            "system": names[first],
            "opponent": names[second],
            "difference_lowest": lowest,
            "difference_highest": highest,
            "stable": (lowest > rounding) | (highest < -rounding),
        }
    )


def plot_weight_sensitivity(table: pd.DataFrame) -> "Figure":
    """Draw the ranks of each system over a region of weights.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`weight_sensitivity`.

    Returns
    -------
    matplotlib.figure.Figure
        A line per system from its best to its worst rank, with a mark at the mean; best on top.
    """
    from bayesrank.reporting.figures.canvas import label_rows, rank_along, row_size, take_axes
    from bayesrank.reporting.figures.finish import finish
    from bayesrank.reporting.figures.palette import BLUE, ORANGE

    ordered = table.sort_values("rank_mean", kind="stable")
    labels = ordered["system"].astype(str).to_list()
    rows = range(len(labels))
    _, axes = take_axes(None, *row_size(labels))
    label_rows(axes, labels)
    ends = ordered["rank_best"], ordered["rank_worst"]
    axes.hlines(rows, *ends, color=BLUE, label="range")
    axes.plot(ordered["rank_mean"], rows, "o", color=BLUE, label="mean over weights")
    if "rank" in ordered:
        axes.plot(ordered["rank"], rows, "|", color=ORANGE, label="stated weights", ms=10)
    rank_along(axes, *ends)
    axes.set_xlabel("rank over the region of weights")
    return finish(axes)


def _category_shares(data: Responses) -> FloatArray:
    """Return posterior mean proportions of the categories, averaged over questions."""
    shapes = data.counts + 1.0
    return (shapes / shapes.sum(axis=-1, keepdims=True)).mean(axis=1)


def _check_box(box: Box | None, n_categories: int) -> tuple[FloatArray, FloatArray]:
    if box is None:
        return np.zeros(n_categories), np.ones(n_categories)
    ends = numeric(box, "box")
    finite = np.isfinite(ends).all()
    if ends.shape != (2, n_categories) or not finite or (ends[0] > ends[1]).any():
        raise DataError(
            f"box must be two sequences of {n_categories} weights, lowest <= highest; got {box!r}"
        )
    return ends[0], ends[1]
