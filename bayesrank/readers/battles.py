"""Reader of battles, as arenas and judges publish them: two systems and the winner."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.battle_tables import (
    COVARIATE,
    KNOWN,
    battle_arguments,
    battle_column,
    is_battle_table,
    standardize,
)
from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.readers.arrow_tables import is_text, read_arrow
from bayesrank.readers.json_files import LIST, json_columns, parse_json_lines, read_json_table
from bayesrank.readers.naming import saved_again, say_alike, say_copies
from bayesrank.readers.opening import damage_named, json_head, open_log, plain_suffix, starts_like
from bayesrank.readers.table_files import (
    BINARY,
    LINES,
    TEXT,
    refuse_cut_off,
    refuse_repeats,
    text_layout,
)
from bayesrank.style import METADATA, SUFFIXES, are_numbers, as_numbers, is_complete, paired_names

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

logger = logging.getLogger("bayesrank")

FORMATS = (*TEXT, *BINARY, *LINES, ".json")

# Endings of columns that may hold a number for each of the two answers.
_PAIRED = tuple(ending for pair in SUFFIXES for ending in pair)

# Names of the fields of a JSON file.
_NAMES = re.compile(r'(?="([\w\s-]+)"\s*:)')

# Rows that show which columns hold numbers.
_PEEK = 100


def is_json_of_battles(path: Path) -> bool:
    """Return whether records have fields for two systems and a winner."""
    try:
        head = json_head(path).decode("utf-8-sig", errors="replace")
    except DataError:  # damaged; the reader of tables raises the error
        return False
    # The first records, or as much of them as there is.
    records = plain_suffix(path) in LINES or head.lstrip()[:1] == "["
    return is_battle_table(_NAMES.findall(head) if records else json_columns(head))


def read_battle_files(paths: Sequence[Path]) -> Battles:
    """Read tables of battles and put them below one another.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Tables.

    Returns
    -------
    Battles

    Raises
    ------
    DataError
        If a table is damaged or lacks a column, or a winner is unknown.
    """
    import pandas as pd  # 0.3 s, only when a table is read

    read = {path: standardize(_parse(path), path.name) for path in paths}
    copies = saved_again(read)
    for note in say_copies(copies):
        logger.info(note)
    tables = [table for path, table in read.items() if path not in copies]
    if len(tables) == 1:
        return Battles(**battle_arguments(tables[0]))
    for number, table in enumerate(tables):
        if "vote" in table:
            table["vote"] = [(number, vote) for vote in table["vote"]]
        elif any("vote" in each for each in tables):
            table["vote"] = [(number, row) for row in range(len(table))]
    common = set.intersection(*(set(table.columns) for table in tables)) | {"weight"}
    rows = pd.concat(tables, ignore_index=True)
    partial = [name.removeprefix(COVARIATE) for name in rows if name not in common]
    if partial:
        logger.info(f"Only some of the tables have {' and '.join(partial)}: left out")
    if "weight" in rows:
        rows["weight"] = rows["weight"].fillna(1.0)
    files = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    told = sorted(name for name in common.intersection(rows) if name != "vote")
    texts = rows.reindex(columns=told).astype(str)
    for caution in say_alike(texts, files, [path for path in read if path not in copies]):
        logger.warning(caution)
    return Battles(**battle_arguments(rows.drop(columns=list(set(rows.columns) - common))))


def _parse(path: Path) -> "pd.DataFrame":
    """Read the columns that matter; battles come with whole conversations."""
    import pandas as pd

    suffix = plain_suffix(path)
    with damage_named(path):
        if suffix in TEXT:
            return _read_csv(path)
        if suffix in BINARY:
            return _read_arrow(path)
        if suffix in LINES or starts_like(path, LIST):
            return pd.DataFrame.from_records(list(_records(path)))
        return read_json_table(path, lambda name: True)


def _read_csv(path: Path) -> "pd.DataFrame":
    import pandas as pd

    layout = text_layout(path)
    refuse_repeats((name for name in map(battle_column, layout.names) if name in KNOWN), path)
    refuse_cut_off(path, layout)
    with open_log(path) as file:
        head = pd.read_csv(file, nrows=_PEEK, **layout.settings)
    wanted = [name for name in head if _matters(str(name), head[name])]
    if not is_battle_table(wanted):
        return head  # the error names all columns
    with open_log(path) as file:
        return pd.read_csv(file, usecols=wanted, **layout.settings)


def _matters(name: str, column: "pd.Series") -> bool:
    """Return whether a column may be a part of a layout, or a covariate."""
    name = battle_column(name)
    if name in KNOWN or name == METADATA:
        return True
    return name.endswith(_PAIRED) and are_numbers(as_numbers(column))


def _read_arrow(path: Path) -> "pd.DataFrame":
    """Read one column after another, texts as numbers of their values and pairs as differences.

    That takes a tenth of the memory.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import types

    def read(*names: str) -> pa.Table:
        return read_arrow(path, lambda field: field.name in names)[0]

    wanted, numbers = {}, {}
    for field in read_arrow(path, lambda field: False)[1]:
        plain = battle_column(field.name)
        if plain in KNOWN or plain == METADATA:
            wanted[field.name] = _encoded(read(field.name)[field.name])
        elif types.is_floating(field.type) or types.is_integer(field.type):
            numbers[plain] = field.name
    table = pa.table(wanted)
    while any(types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    wanted.clear()
    table = pa.table({name: _encoded(table[name]) for name in table.column_names})
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    covariates = {}
    for stem, pair in paired_names(numbers, KNOWN).items():
        sides = read(*(numbers[name] for name in pair))
        one, other = (as_numbers(sides[numbers[name]].to_pandas()) for name in pair)
        if is_complete(stem, one, other):
            covariates[f"{COVARIATE}{stem}"] = one - other
    return pd.DataFrame({**frame, **covariates}, copy=False) if covariates else frame


def _encoded(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return texts as numbers of their values, anything else as it is."""
    return column.dictionary_encode() if is_text(column.type) else column


def _records(path: Path) -> Iterator[dict[str, object]]:
    for record in parse_json_lines(path):
        known = is_battle_table(record)  # else the error names all fields
        yield {name: each for name, each in record.items() if not known or _is_kept(name, each)}


def _is_kept(name: str, value: object) -> bool:
    """Return whether a field may be a part of a layout, or a covariate."""
    name = battle_column(name)
    number = isinstance(value, int | float)
    return name in KNOWN or name == METADATA or (name.endswith(_PAIRED) and number)
