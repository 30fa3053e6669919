"""Tables as Parquet and Feather, which declare their size before they are read."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.errors import DamagedFileError
from bayesrank.readers.opening import EXPANSION, SMALL, damage_named, plain_suffix

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# A row holds an outcome, which takes a bit unless outcomes say nothing.
ROWS_PER_BYTE = 8
FEW_ROWS = 1_000_000

# Name that pandas gives to an index without a name, in these files.
_UNNAMED_INDEX = re.compile(r"__index_level_(\d+)__")


def read_arrow_frame(path: Path, needed: Callable[[str], bool], *, text: bool) -> "pd.DataFrame":
    """Read a Parquet or Feather file as a frame; columns that are not needed are blank.

    An index without a name that numbers the rows is left out.
    """
    import pandas as pd

    table, schema = read_arrow(path, lambda field: needed(_as_in_text(field.name)))
    # Each column of the table goes when it has become one of the frame. What pandas calls an index
    # in its metadata is a column.
    frame = table.to_pandas(
        strings_to_categorical=not text,
        split_blocks=True,
        self_destruct=True,
        ignore_metadata=True,
    )
    del table
    blank = pd.Categorical.from_codes(np.full(len(frame), -1, dtype=np.int8), categories=[])
    frame = frame.assign(**{name: blank for name in schema.names if name not in frame})
    numbers = [each.name for each in schema if not is_text(each.type)]
    index = list(filter(_UNNAMED_INDEX.fullmatch, numbers))
    return frame.drop(columns=index).rename(columns=_as_in_text)


def _as_in_text(name: str) -> str:
    """Return what pandas calls a column of a text, whose name may be blank."""
    return _UNNAMED_INDEX.sub(r"Unnamed: \1", name)


def read_arrow(path: Path, needed: "Callable[[pa.Field], bool]") -> "tuple[pa.Table, pa.Schema]":
    """Read the columns of a Parquet or Feather file that are needed, after a look at its size.

    Parameters
    ----------
    path : pathlib.Path
        File.
    needed : callable
        Whether a column is needed, by its field.

    Returns
    -------
    table : pyarrow.Table
    schema : pyarrow.Schema
        Of all columns.

    Raises
    ------
    DamagedFileError
        If the file is damaged, or announces more than it can hold.
    """
    import pyarrow as pa
    from pyarrow import feather, parquet

    with damage_named(path, pa.ArrowException), path.open("rb") as file:
        if plain_suffix(path) != ".parquet":
            reader = pa.ipc.open_file(file)
            schema = reader.schema
            batches = range(reader.num_record_batches)
            _check_size(path, sum(reader.get_batch(i).num_rows for i in batches), 0)
            columns = [field.name for field in schema if needed(field)]
            table = feather.read_table(path, columns=columns, memory_map=False)
            return _with_texts(table), schema
        source = parquet.ParquetFile(file)
        metadata, schema = source.metadata, source.schema_arrow
        parts = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        _check_size(path, metadata.num_rows, sum(parts))
        kept = [field for field in schema if needed(field)]
        columns = [field.name for field in kept]
        texts = [field.name for field in kept if is_text(field.type)]
    # A native file: threads may still read after an error, and one of Python would be closed.
    with (
        damage_named(path, pa.ArrowException),
        parquet.ParquetFile(str(path), read_dictionary=texts) as whole,
    ):
        return _with_texts(whole.read(columns=columns)), schema


def _with_texts(table: "pa.Table") -> "pa.Table":
    """Return a table with text in place of the bytes that some tools store without a type.

    Those that are no UTF-8, such as images, stay as they are.
    """
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            try:
                texts = table.column(place).cast(pa.large_string())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, field.name, texts)
    return table


def is_text(kind: "pa.DataType") -> bool:
    """Return whether values of an Arrow type are strings."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _check_size(path: Path, n_rows: int, n_bytes: int) -> None:
    """Raise if a file declares more data than it can contain."""
    size = path.stat().st_size
    if n_rows > max(FEW_ROWS, ROWS_PER_BYTE * size) or n_bytes > max(SMALL, EXPANSION * size):
        raise DamagedFileError(
            f"paths must hold what they announce; got {n_rows} rows in {size} bytes of "
            f"{path.name}: the file may be damaged, copy it again or leave it out"
        )
