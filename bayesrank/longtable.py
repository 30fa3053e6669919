"""Long tables, one row per outcome, to arrays and back; and labelled arrays."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.cells import arrange, place_rows
from bayesrank.columns import COLUMNS, Source, check_settings
from bayesrank.errors import DataError
from bayesrank.outcomes import DECLARATIONS
from bayesrank.standard_table import melt, standardize
from bayesrank.table_settings import other_columns

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.responses import Responses

logger = logging.getLogger("bayesrank")

# Where a table keeps what its rows cannot say: pandas.DataFrame.attrs[ATTRIBUTE].
ATTRIBUTE = "bayesrank"


def read_long(
    frame: "pd.DataFrame",
    columns: Mapping[str, str | None] | None = None,
    *,
    wide: bool = False,
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Arrange a long table as outcomes with NaN for what has no row.

    Parameters
    ----------
    frame : pandas.DataFrame
        As in :meth:`bayesrank.Responses.from_long`.
    columns : mapping of str to str, optional
        Columns that the caller named, and under ``split_by`` and ``pool`` those of settings.
    wide : bool, default False
        Whether every system has a column.

    Returns
    -------
    outcomes : numpy.ndarray of shape (system, question, trial)
    labels : dict
        Keywords ``systems``, ``questions`` and, where there is a column, ``groups`` and
        ``paired``; further keywords of :class:`bayesrank.Responses` where :func:`write_long` has
        kept them.

    Raises
    ------
    DataError
        If a column is absent, a label is missing, or a (system, question, trial) occurs twice.
    """
    if not hasattr(frame, "columns"):
        raise DataError(f"frame must be a pandas.DataFrame; got {type(frame).__name__}")
    source, kept = Source("frame"), frame.attrs.get(ATTRIBUTE, {})
    chosen: Mapping[str, str | None] = dict.fromkeys(COLUMNS) | dict(columns or {})
    check_settings(chosen, [frame])
    if wide:
        frame, chosen = melt(frame, chosen, source)
    read = place_rows(
        standardize(frame, chosen, source), source, chosen, partial(other_columns, frame, chosen)
    )
    for note in read.notes:
        logger.info(note)
    cells, labels = arrange(read.frame)
    if read.paired:
        labels["paired"] = True
    return cells, labels | _kept(kept, labels) | dict(read.declared)


def read_dataarray(data: "xr.DataArray") -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the outcomes of a labelled array, and its labels.

    Parameters
    ----------
    data : xarray.DataArray
        As in :meth:`bayesrank.Responses.from_dataarray`.

    Returns
    -------
    outcomes : numpy.ndarray of shape (system, question, trial) or (system, question)
    labels : dict
        Keywords ``systems`` and ``questions`` where there are coordinates.

    Raises
    ------
    DataError
        If the dims are others.
    """
    if not hasattr(data, "dims"):
        raise DataError(f"data must be an xarray.DataArray; got {type(data).__name__}")
    wanted = [dim for dim in ("system", "question", "trial") if dim in data.dims]
    if set(data.dims) != set(wanted) or wanted[:2] != ["system", "question"]:
        raise DataError(
            f"data must have dims system, question and optionally trial; got {tuple(data.dims)}"
        )
    dims = {"systems": "system", "questions": "question"}
    labels = {
        keyword: data.coords[dim].values.tolist()
        for keyword, dim in dims.items()
        if dim in data.coords
    }
    return data.transpose(*wanted).values, labels


def write_long(data: "Responses") -> "pd.DataFrame":
    """Return responses as a long table, see :meth:`bayesrank.Responses.to_long`."""
    import pandas as pd

    index = pd.MultiIndex.from_product(
        [data.systems, data.questions, range(data.shape[2])], names=["system", "question", "trial"]
    )
    outcome = np.where(data.observed, data.values, np.nan).ravel()
    table = pd.DataFrame({"outcome": outcome}, index=index).reset_index()
    if data.groups is not None:
        table["group"] = np.repeat(np.tile(data.groups, len(data.systems)), data.shape[2])
    table.attrs[ATTRIBUTE] = {
        "systems": list(data.systems),
        "questions": list(data.questions),
        "paired": data.paired,
        **{name: _plain(each) for name, each in data.declared.items()},
        "prior_outcomes": _plain(data.prior_outcomes),
    }
    return table


def _plain(value: Any) -> Any:
    """Return arrays and tuples as lists, since Parquet keeps attributes as JSON."""
    return np.asarray(value).tolist() if np.iterable(value) else value


def _kept(attributes: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords in the attributes of a table, for the labels that it still has."""
    known = {"paired", *DECLARATIONS}
    kept = {name: attributes[name] for name in known if name in attributes}
    prior = attributes.get("prior_outcomes")
    if prior is None:
        return kept
    places = []
    for name in ("systems", "questions"):
        known = {label: place for place, label in enumerate(attributes[name])}
        if not set(named[name]) <= set(known):
            return kept  # renamed since, so that nothing says whose they are
        places.append([known[label] for label in named[name]])
    # Without systems, they are shared by all.
    earlier = np.asarray(prior)
    chosen = earlier[np.newaxis, places[1]] if earlier.ndim == 2 else earlier[np.ix_(*places)]
    return kept | {"prior_outcomes": chosen}
