"""Progress of long computations: a line on a terminal, a bar in a notebook.

In notebooks rich, and so PyMC, can only draw with ipywidgets, which is a dependency of neither. The
bar here only replaces its own output, which every notebook can do.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from html import escape

# Seconds between two updates.
_INTERVAL = 0.1


def in_notebook() -> bool:
    """Return whether what is displayed is shown in a notebook.

    Examples
    --------
    >>> in_notebook()
    False
    """
    # Code that runs in IPython has already imported it; other code should not.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Shells on a terminal have no kernel.
    return getattr(shell, "kernel", None) is not None


def track[Item](
    items: Iterable[Item], *, name: str, total: int, shown: bool | None = None
) -> Iterator[Item]:
    """Yield items and show how many have passed; a bar that moves vanishes with the last.

    By default it is shown on a terminal and in a notebook. True leaves a line of the end in a file.

    Examples
    --------
    >>> list(track([1, 2], name="counting", total=2, shown=False))
    [1, 2]
    """
    wanted = shown is not False and total > 0
    if wanted and in_notebook():
        yield from _track_in_notebook(items, name, total)
        return
    if not wanted or not (shown or sys.stderr.isatty()):
        yield from items
        return
    from rich.console import Console  # without a display it need not be loaded
    from rich.progress import track as track_on_terminal

    console = Console(stderr=True)
    yield from track_on_terminal(
        items, description=name, total=total, console=console, transient=console.is_terminal
    )


def _track_in_notebook[Item](items: Iterable[Item], name: str, total: int) -> Iterator[Item]:
    from IPython.display import HTML, DisplayHandle  # there, since this is a notebook

    start = shown_at = time.monotonic()
    handle = DisplayHandle()
    handle.display(HTML(_bar(name, 0, total, 0.0)))
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - shown_at >= _INTERVAL:
            handle.update(HTML(_bar(name, done, total, now - start)))
            shown_at = now
    handle.update(HTML(""))


def _bar(name: str, done: int, total: int, elapsed: float) -> str:
    left = f", {elapsed * (total - done) / done:.0f} s left" if done else ""
    text = f"{name}: {done:,} of {total:,}{left}"
    return (
        f'<label>{escape(text)} <progress max="{total}" value="{done}" '
        f'style="vertical-align: middle"></progress></label>'
    )
