"""What notebooks show of an object, without the object knowing the layer that draws it."""

from importlib import import_module
from typing import Any

# Imported where a notebook asks: nothing else needs the templates and tables of reports.
_NOTEBOOK = "bayesrank.reporting.notebook"


def to_html(function: str, shown: Any) -> str | None:
    """Return an object as HTML.

    Parameters
    ----------
    function : str
        Name in :mod:`bayesrank.reporting.notebook`.
    shown : object
        What that function takes.

    Returns
    -------
    str or None
        None where the function leaves the object to its plain form.
    """
    return getattr(import_module(_NOTEBOOK), function)(shown)
