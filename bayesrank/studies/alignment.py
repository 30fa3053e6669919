"""Alignment: agreement of estimated difficulties with human judgements."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.results.ranks import tie_groups

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("rater", "first", "second", "harder")
_CHOICES = {"first": 1, "second": -1, "skip": 0}


def alignment(
    difficulty: "Mapping[str, float] | xr.DataArray", judgements: "pd.DataFrame"
) -> xr.Dataset:
    """Compare difficulties with judgements of which of two questions is harder.

    Parameters
    ----------
    difficulty : mapping, or xarray.DataArray with dim question
        Difficulty of each question; higher is harder.
    judgements : pandas.DataFrame
        One row per judgement: ``rater``, the questions ``first`` and ``second``, and ``harder``,
        which is "first", "second" or "skip". A rater judges a pair at most once.

    Returns
    -------
    xarray.Dataset
        Over rater: ``agreement``, the share of judgements, without skips, that agree with the
        difficulties (equal difficulties count half), ``kappa``, Cohen's kappa of the judgements of
        a rater and the difficulties [1]_, without pairs of equal difficulties, ``n_judged`` and
        ``n_skipped``. ``rater_kappa`` (rater, other_rater) is the kappa of two raters on the pairs
        that both judged, the same in both orders. Each pair counts in both orders of its
        questions, since neither comes first: agreement by chance is one half.
        For the majority of raters, without pairs that have none: ``consensus_agreement``,
        ``consensus_kappa``, ``n_consensus`` and ``n_without_consensus``.

    Raises
    ------
    DataError
        If the table does not have the stated form, or a question has no difficulty.

    References
    ----------
    .. [1] J. Cohen. A coefficient of agreement for nominal scales. Educational and Psychological
       Measurement 20 (1960). https://doi.org/10.1177/001316446002000104

    Examples
    --------
    >>> import pandas as pd
    >>> judged = pd.DataFrame(
    ...     {"rater": ["a", "b"], "first": "q1", "second": "q2", "harder": ["first", "skip"]}
    ... )
    >>> alignment({"q1": 2.0, "q2": 1.0}, judged)["agreement"].values
    array([ 1., nan])
    """
    choices, raters, pairs = _read(judgements)
    levels = _levels(difficulty)
    questions = list(dict.fromkeys(question for pair in pairs for question in pair))
    for question in questions:
        if np.isnan(levels.get(question, np.nan)):
            raise DataError(
                f"difficulty must be given for every question; got none for {question!r}"
            )
    # 1 for the hardest; equal up to rounding is equal, as in ranks, and so are two infinite ones.
    place = dict(zip(questions, tie_groups([levels[q] for q in questions]), strict=True))
    estimated = np.sign([float(place[second] - place[first]) for first, second in pairs])
    votes = np.sign(np.nansum(choices, axis=0))
    consensus = np.where(votes == 0, np.nan, votes)
    judged = ~np.isnan(choices) & (choices != 0)
    per_rater = [_agreement(_spoken(row), estimated) for row in choices]
    whole = _agreement(consensus, estimated)
    kappas = [[_kappa(_spoken(one), _spoken(two)) for two in choices] for one in choices]
    return xr.Dataset(
        {
            "agreement": ("rater", [share for share, _ in per_rater]),
            "kappa": ("rater", [kappa for _, kappa in per_rater]),
            "n_judged": ("rater", judged.sum(axis=1)),
            "n_skipped": ("rater", (choices == 0).sum(axis=1)),
            "rater_kappa": (("rater", "other_rater"), np.array(kappas)),
            "consensus_agreement": ((), whole[0]),
            "consensus_kappa": ((), whole[1]),
            "n_consensus": ((), int((votes != 0).sum())),
            "n_without_consensus": ((), int((votes == 0).sum())),
        },
        coords={"rater": raters, "other_rater": raters},
        attrs={"study": "alignment"},
    )


def _read(
    judgements: "pd.DataFrame",
) -> tuple[NDArray[np.float64], list[str], list[tuple[str, str]]]:
    """Return choices (rater, pair), 1 for the first question, NaN for no judgement."""
    absent = [column for column in _COLUMNS if column not in judgements.columns]
    if absent or not len(judgements):
        raise DataError(
            f"judgements must have rows with columns {', '.join(_COLUMNS)}; got "
            f"{list(judgements.columns)} and {len(judgements)} rows"
        )
    raters = list(dict.fromkeys(str(rater) for rater in judgements["rater"]))
    places: dict[tuple[str, str], int] = {}
    entries: dict[tuple[int, int], float] = {}
    for rater, first, second, harder in judgements[list(_COLUMNS)].itertuples(index=False):
        if harder not in _CHOICES:
            raise DataError(f"harder must be one of {', '.join(_CHOICES)}; got {harder!r}")
        # A pair has one place, for both orders of its questions.
        turned = str(second) < str(first)
        pair = (str(second), str(first)) if turned else (str(first), str(second))
        key = (raters.index(str(rater)), places.setdefault(pair, len(places)))
        if key in entries or pair[0] == pair[1]:
            raise DataError(
                f"judgements must be one per rater and pair of questions; got {pair} of {rater!r}"
            )
        entries[key] = -_CHOICES[harder] if turned else _CHOICES[harder]
    choices = np.full((len(raters), len(places)), np.nan)
    for key, choice in entries.items():
        choices[key] = choice
    return choices, raters, list(places)


def _levels(difficulty: "Mapping[str, float] | xr.DataArray") -> dict[str, float]:
    if isinstance(difficulty, xr.DataArray):
        labels = difficulty["question"].values.tolist()
        return dict(zip(map(str, labels), difficulty.values.tolist(), strict=True))
    return {str(question): float(value) for question, value in difficulty.items()}


def _spoken(choices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return choices with skips as missing."""
    return np.where(choices == 0, np.nan, choices)


def _agreement(choices: NDArray[np.float64], estimated: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of equal signs, ties of the estimate counting half, and Cohen's kappa."""
    there = ~np.isnan(choices)
    if not there.any():
        return np.nan, np.nan
    products = choices[there] * estimated[there]
    return float((products + 1).mean() / 2), _kappa(choices, _spoken(estimated))


def _kappa(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Cohen's kappa of two signs, over the pairs with both, each in both orders."""
    there = ~np.isnan(x) & ~np.isnan(y)
    # Both margins are one half, so that (p - 1/2) / (1 - 1/2) is 2 p - 1, the mean product.
    return float((x[there] * y[there]).mean()) if there.any() else np.nan
