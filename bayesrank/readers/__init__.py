"""Readers of evaluation logs, one module per format; the formats are the rows of ``READERS``.

``read_responses`` turns a file, a folder or a list of them into
:class:`~bayesrank.responses.Responses`; ``read_table`` stops one step earlier, at a pandas table
that can be looked at and changed. ``read_battles`` gives
:class:`~bayesrank.battles.Battles`, and ``read_data`` whichever of the two the files hold.
"""

from bayesrank.readers.log_table import LogTable
from bayesrank.readers.reading import read_battles, read_data, read_responses, read_table
from bayesrank.readers.table import READERS, Reader

__all__ = [
    "READERS",
    "LogTable",
    "Reader",
    "read_battles",
    "read_data",
    "read_responses",
    "read_table",
]
