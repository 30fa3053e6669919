"""Covariates of battles: differences between the two answers, such as of length and of markdown."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.outcomes import with_points

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bayesrank")

# How columns of the two answers end.
SUFFIXES = (("_a", "_b"), ("_1", "_2"))
# The column in which arenas keep the style of both answers, and what they count there.
METADATA = "conv_metadata"
_STYLE = {
    "length": "sum_assistant_{}_tokens",
    "headers": "header_count_{}",
    "lists": "list_count_{}",
    "bold": "bold_count_{}",
}
# No covariates, whatever they hold.
_OTHERS = ("model", "player", "system", "generator", "winner", "wins", "conversation", "response")


def covariate_columns(frame: "pd.DataFrame", taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Find pairs of columns with a number for each answer, as :func:`paired_names` does."""
    return {
        stem: pair
        for stem, pair in paired_names(frame.columns, taken).items()
        if is_complete(stem, *(as_numbers(frame[name]) for name in pair))
    }


def is_complete(stem: str, one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Return whether two columns of numbers have no hole; say which pairs have some."""
    lacking = np.count_nonzero(~(np.isfinite(one) & np.isfinite(other)))
    if lacking > 0 and are_numbers(one) and are_numbers(other):
        logger.info(
            f"{stem} is left out: it is missing on a side of {lacking:,} of {len(one):,} battles"
        )
    return not lacking


def are_numbers(values: NDArray[np.float64]) -> bool:
    """Return whether most entries of a column are numbers."""
    return bool(2 * np.count_nonzero(np.isfinite(values)) > len(values))


def paired_names(names: Collection[str], taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Find pairs of names, but those `taken`, that end like the two answers, by what they share.

    Examples
    --------
    >>> paired_names(["length_a", "length_b", "model_a", "model_b", "turn"], ())
    {'length': ('length_a', 'length_b')}
    """
    found = {}
    for name in names:
        for one, other in SUFFIXES:
            stem, partner = name.removesuffix(one), name.removesuffix(one) + other
            known = name in taken or partner in taken or stem in _OTHERS
            if name.endswith(one) and stem and partner in names and not known:
                found[stem] = (name, partner)
    return found


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as numbers, NaN for what is none."""
    import pandas as pd

    values = pd.Series(column)
    if values.dtype.kind in "biuf":
        return values.to_numpy(np.dtype(np.float64), na_value=np.nan)
    codes, found = values.factorize()
    texts = pd.Series(with_points(found.tolist()), dtype=object)
    numbers = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
    return np.append(numbers, np.nan)[codes]


def differences(
    frame: "pd.DataFrame", pairs: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield covariates by name.

    Pairs of columns give plain differences. What arenas count of the style of answers gives
    relative ones, (a - b) / (a + b), as they control for style.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table of battles.
    pairs : mapping
        What :func:`covariate_columns` returned.

    Yields
    ------
    name : str
    values : numpy.ndarray of shape (battle,)

    References
    ----------
    .. [1] T. Li, A. Angelopoulos and W.-L. Chiang. Does style matter? Disentangling style and
       substance in Chatbot Arena (2024). https://blog.lmarena.ai/blog/2024/style-control/
    """
    for name, (one, other) in pairs.items():
        yield name, as_numbers(frame[one]) - as_numbers(frame[other])
    flat = _flat_metadata(frame)
    for name, pattern in _STYLE.items():
        totals = [_total(flat, pattern.format(side)) for side in "ab"]
        if totals[0] is not None and totals[1] is not None:
            total = totals[0] + totals[1]
            yield name, (totals[0] - totals[1]) / np.where(total > 0.0, total, 1.0)


def _flat_metadata(frame: "pd.DataFrame") -> "Mapping[str, Any]":
    """Return what is known of the style of answers, by names with dots."""
    import pandas as pd

    start = f"{METADATA}."
    flat = {name.removeprefix(start): frame[name] for name in frame if name.startswith(start)}
    records: list[Any] = frame[METADATA].tolist() if METADATA in frame else []
    if records and all(isinstance(each, Mapping) for each in records):
        flat |= {str(name): column for name, column in pd.json_normalize(records).items()}
    return flat


def _total(flat: "Mapping[str, Any]", name: str) -> NDArray[np.float64] | None:
    """Add up a number, or the numbers below a name, None where there are none."""
    parts = [
        as_numbers(column)
        for each, column in flat.items()
        if each == name or each.startswith(f"{name}.")
    ]
    return np.nan_to_num(np.sum(parts, axis=0)) if parts else None
