"""Responses from tables and labelled arrays, and back: methods of :class:`bayesrank.Responses`."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrank.columns import Source, as_frame, check_settings, split_and_pooled
from bayesrank.errors import DataError
from bayesrank.longtable import arrange, place_rows, standardize
from bayesrank.outcomes import DECLARATIONS
from bayesrank.table_settings import other_columns
from bayesrank.wide_tables import melt

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.responses import Responses

logger = logging.getLogger("bayesrank")

# Where a table keeps what its rows cannot say: pandas.DataFrame.attrs[ATTRIBUTE].
ATTRIBUTE = "bayesrank"


def from_dataarray(cls: "type[Responses]", data: "xr.DataArray", **options: Any) -> "Responses":
    """Build responses from a labelled array.

    Parameters
    ----------
    data : xarray.DataArray
        With dims ``system``, ``question`` and, optionally, ``trial``, in any order; labels are
        read from its coordinates.
    **options
        Further keywords of :class:`Responses`.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        If the dims are not these.
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
    return cls(data.transpose(*wanted).values, **{**labels, **options})


def from_long(
    cls: "type[Responses]",
    frame: "pd.DataFrame",
    *,
    system: str | None = None,
    question: str | None = None,
    trial: str | None = None,
    outcome: str | None = None,
    group: str | None = None,
    wide: bool = False,
    split_by: str | Iterable[str] = (),
    pool: str | Iterable[str] = (),
    paired: bool | None = None,
    **options: Any,
) -> "Responses":
    """Build responses from a long table with one row per outcome.

    The same table as a file gives the same responses by :func:`bayesrank.read_responses`.

    Parameters
    ----------
    frame : pandas.DataFrame
        Or a Series, or a table of another library with a method ``to_pandas``. With columns, or
        names in its index, for the system, the question, the outcome and, optionally, the trial and
        the group, under any of the names of :data:`bayesrank.columns.NAMES`. Without a trial
        column, the rows of a cell are its trials in order of appearance. Combinations that have no
        row, and NaN outcomes, are missing. Where ids of questions start anew in each group, the
        group is part of the question.
    system, question, trial, outcome, group : str, optional
        Columns with other names; several that make up the system, the question or the trial are
        separated by commas. ``question="row"`` numbers the questions of every system by the order
        of its rows, and ``group="none"`` leaves groups out.
    wide : bool, default False
        Whether every system has a column, as in :func:`bayesrank.read_responses`.
    split_by, pool : str or iterable of str, optional
        Columns of settings, such as ``temperature``: rows of a system and question that differ
        in one of them are systems of their own, with the setting in their names. Those to
        `pool` do not distinguish systems; those to `split_by` always do.
    paired : bool, optional
        As in :class:`Responses`. By default what :meth:`to_long` has kept, else whether the
        trial column is called run or seed: rows of a log are usually independent epochs.
    **options
        Further keywords of :class:`Responses`, such as `weights` and `scale`.

    Returns
    -------
    Responses
        Systems, questions and trials in order of first appearance; trials sorted when they
        are numbers.

    Raises
    ------
    DataError
        If a column is absent or ambiguous, a label is missing, or a (system, question, trial)
        occurs twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrank import Responses
    >>> rows = [("a", 1, "pass"), ("a", 2, "fail"), ("b", 1, "pass"), ("b", 2, "pass")]
    >>> frame = pd.DataFrame(rows, columns=["model_name", "task_id", "verdict"])
    >>> Responses.from_long(frame, outcome="verdict")
    Responses(2 systems, 2 questions, 1 trial)
    """
    split, pooled = split_and_pooled(split_by, pool)
    frame = as_frame(frame, wide=wide)
    chosen: Mapping[str, str | None] = {
        "system": system,
        "question": question,
        "trial": trial,
        "outcome": outcome,
        "group": group,
        "split_by": ",".join(split) or None,
        "pool": ",".join(pooled) or None,
    }
    source, kept = Source("frame"), frame.attrs.get(ATTRIBUTE, {})
    check_settings(chosen, [frame])
    if wide:
        frame, chosen = melt(frame, chosen, source)
    read = place_rows(
        standardize(frame, chosen, source), source, chosen, partial(other_columns, frame, chosen)
    )
    for note in read.notes:
        logger.info(note)
    for caution in read.cautions:
        logger.warning(caution)
    cells, labels = arrange(read.frame)
    labels = {"paired": read.paired, **labels, **_kept(kept, labels), **read.declared}
    if not DECLARATIONS.isdisjoint(options):
        labels = {name: each for name, each in labels.items() if name not in DECLARATIONS}
    if paired is not None:
        labels["paired"] = paired
    return cls(cells, **{**labels, **options})


def to_long(self: "Responses") -> "pd.DataFrame":
    """Return the outcomes as a long table, from which :meth:`from_long` restores them.

    Returns
    -------
    pandas.DataFrame
        Columns system, question, trial, outcome and, where there are groups, group; one row
        per system, question and trial, missing ones included as NaN. What no row can say (what
        the outcomes are, prior outcomes, pairing) is in ``attrs``, which Parquet keeps and CSV
        does not.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> data = Responses([[[1, 0], [1, -1]]], systems=["a"])
    >>> data.to_long()["outcome"].tolist()
    [1.0, 0.0, 1.0, nan]
    >>> Responses.from_long(data.to_long()).fingerprint == data.fingerprint
    True
    """
    import pandas as pd

    index = pd.MultiIndex.from_product(
        [self.systems, self.questions, range(self.shape[2])], names=["system", "question", "trial"]
    )
    outcome = np.where(self.observed, self.values, np.nan).ravel()
    table = pd.DataFrame({"outcome": outcome}, index=index).reset_index()
    if self.groups is not None:
        table["group"] = np.repeat(np.tile(self.groups, len(self.systems)), self.shape[2])
    table.attrs[ATTRIBUTE] = {
        "systems": list(self.systems),
        "questions": list(self.questions),
        "paired": self.paired,
        **{name: _plain(each) for name, each in self.declared.items()},
        "prior_outcomes": _plain(self.prior_outcomes),
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
