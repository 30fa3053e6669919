"""Loops over parts of arrays, so that temporary arrays have a bounded size."""

from collections.abc import Iterator

# Numbers in one temporary array: 32 MB of doubles.
AT_ONCE = 2**22


def batches(size: int, of_each: int, at_once: int | None = None) -> Iterator[slice]:
    """Yield slices of items in turn, each of at least one item.

    Parameters
    ----------
    size : int
        Number of items.
    of_each : int
        Numbers that an item takes in the largest temporary array.
    at_once : int, optional
        Numbers that a batch may take; `AT_ONCE` by default.

    Examples
    --------
    >>> [(part.start, part.stop) for part in batches(5, of_each=3, at_once=6)]
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, (at_once or AT_ONCE) // max(of_each, 1))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
