"""Long tables, one row per outcome, to arrays and back; and labelled arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.outcomes import DECLARATIONS
from bayesrank.validation import numeric

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.responses import Responses

# Where a table keeps what its rows cannot say: pandas.DataFrame.attrs[ATTRIBUTE].
ATTRIBUTE = "bayesrank"


def read_long(frame: "pd.DataFrame") -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Arrange a long table as outcomes with NaN for what has no row.

    Parameters
    ----------
    frame : pandas.DataFrame
        As in :meth:`bayesrank.Responses.from_long`.

    Returns
    -------
    outcomes : numpy.ndarray of shape (system, question, trial)
    labels : dict
        Keywords ``systems``, ``questions`` and, where there is a column, ``groups``; further
        keywords of :class:`bayesrank.Responses` where :func:`write_long` has kept them.

    Raises
    ------
    DataError
        If a column is absent, a label is missing, or a (system, question, trial) occurs twice.
    """
    if not hasattr(frame, "columns"):
        raise DataError(f"frame must be a pandas.DataFrame; got {type(frame).__name__}")
    table = frame.rename(columns={"model": "system"}) if "system" not in frame else frame
    for column in ("system", "question", "outcome"):
        if column not in table:
            names = ", ".join(map(str, frame.columns)) or "none"
            raise DataError(f"frame must have a column {column!r}; got {names}")
    if table.empty:
        raise DataError("frame must have at least one row; got none")
    if "trial" not in table:
        order = table.groupby(["system", "question"], sort=False).cumcount()
        table = table.assign(trial=order)
    columns = ["system", "question", "trial"]
    for column in [*columns, *(["group"] if "group" in table else [])]:
        blank = np.count_nonzero(table[column].isna())
        if blank:
            raise DataError(f"{column} must be given in every row; got {blank} blanks")
    repeated = table.duplicated(columns).to_numpy()
    if repeated.any():
        where = ", ".join(map(str, table.loc[repeated, columns].iloc[0]))
        raise DataError(
            "frame must have one row per system, question and trial; got "
            f"{np.count_nonzero(repeated)} repeated rows, for example {where}"
        )
    index, labels = [], []
    for column in columns:
        numeric_trials = column == "trial" and table[column].dtype.kind in "iuf"
        codes, found = table[column].factorize(sort=numeric_trials)
        index.append(codes)
        labels.append(found.tolist())
    cells = np.full([len(found) for found in labels], np.nan)
    # As objects, so that None and pandas' own NA become NaN whatever the column's type.
    outcomes = table["outcome"].astype(object).to_numpy(na_value=np.nan)
    cells[tuple(index)] = numeric(outcomes, "outcome")
    named: dict[str, Any] = {"systems": labels[0], "questions": labels[1]}
    if "group" in table:
        named["groups"] = _question_groups(table, labels[1])
    return cells, named | _kept(frame.attrs.get(ATTRIBUTE, {}), named)


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
    """Lay responses out as a long table, from which :func:`read_long` restores them.

    Parameters
    ----------
    data : Responses
        Outcomes.

    Returns
    -------
    pandas.DataFrame
        Columns system, question, trial, outcome and, where there are groups, group; one row per
        system, question and trial, missing ones included as NaN. What no row can say (what the
        outcomes are, prior outcomes, pairing) is in ``attrs``, which Parquet keeps and CSV does
        not.
    """
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


def _question_groups(table: "pd.DataFrame", questions: list[Any]) -> list[str]:
    pairs = table.drop_duplicates(["question", "group"])
    twice = pairs["question"].duplicated()
    if twice.any():
        raise DataError(
            "group must be the same for all rows of a question; got several for "
            f"{pairs.loc[twice, 'question'].iloc[0]!r}"
        )
    return [str(group) for group in pairs.set_index("question")["group"].loc[questions]]
