"""Results on disk: JSON lines, one per finished piece, that a killed run leaves whole."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Files of a folder of results.
COVERAGE, SBC = "coverage.jsonl", "sbc.jsonl"

type Row = Mapping[str, Any]


class Store:
    """A file of finished pieces, each found by its key and its chunk.

    Parameters
    ----------
    path : pathlib.Path
        The file; it is made with the first row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[Any, ...], Row] = {}
        if not path.exists():
            return
        whole = 0
        with path.open("rb") as file:
            for line in file:
                # The last line is cut short if the run was killed while it was written.
                if not line.endswith(b"\n"):
                    break
                self._keep(json.loads(line))
                whole += len(line)
        if whole < path.stat().st_size:
            os.truncate(path, whole)

    def _keep(self, row: Row) -> None:
        self.rows[(*row["key"], row["chunk"])] = row

    def add(self, *rows: Row) -> None:
        """Write rows; a later one of the same key and chunk takes its place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(map(_line, rows))
            file.flush()
            os.fsync(file.fileno())
        for row in rows:
            self._keep(row)

    def has(self, key: tuple[str, ...], chunk: int) -> bool:
        """Return whether a chunk is there, on its own or merged into the first."""
        first = self.rows.get((*key, 0))
        return (*key, chunk) in self.rows or (first is not None and chunk < _n_chunks(first))

    def merge(self) -> None:
        """Add to the first chunk of every key the sums of those that follow without a gap.

        Thousands of chunks would make a file too large to be kept with the code.
        """
        for *key, first in [one for one in self.rows if one[-1] == 0]:
            total = dict(self.rows[(*key, first)])
            while (row := self.rows.pop((*key, _n_chunks(total)), None)) is not None:
                total = _sum(total, row)
            self.rows[(*key, first)] = total
        draft = self.path.with_suffix(".part")
        draft.write_text("".join(map(_line, self.rows.values())), encoding="utf-8")
        os.replace(draft, self.path)


def _line(row: Row) -> str:
    return json.dumps(row) + "\n"


def _n_chunks(first: Row) -> int:
    return first.get("chunks", 1)


def _sum(total: Row, row: Row) -> dict[str, Any]:
    """Add the next chunk to a sum of chunks; the time stays that of the first."""
    covered = dict(total["covered"])
    for name, sums in row["covered"].items():
        # Shares of systems: rounding keeps the lines short and loses nothing.
        before = covered.get(name, (0.0, 0.0))
        covered[name] = [round(a + b, 9) for a, b in zip(before, sums, strict=True)]
    return {
        **total,
        "chunks": _n_chunks(total) + 1,
        "simulations": total["simulations"] + row["simulations"],
        "undefined": total["undefined"] + row["undefined"],
        "error": total["error"] or row["error"],
        "covered": covered,
    }
