"""The table of methods, one row each, with best-practice defaults.

Its rows are in :mod:`bayesrank.catalog_rankers` and :mod:`bayesrank.catalog_likelihoods`, the
published configurations in :mod:`bayesrank.presets`.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from bayesrank.catalog_likelihoods import LIKELIHOODS
from bayesrank.catalog_rankers import RANKERS
from bayesrank.errors import InputError
from bayesrank.method import Method, Preset
from bayesrank.presets import PRESETS

__all__ = ["METHODS", "PRESETS", "find_method"]

METHODS: Mapping[str, Method] = MappingProxyType(
    {row.name: row for row in (*RANKERS, *LIKELIHOODS)}
)


def find_method(name: str) -> tuple[Method, Preset | None]:
    """Look up a method or a published configuration.

    Parameters
    ----------
    name : str
        A name in `PRESETS` or in `METHODS`, in this order.

    Returns
    -------
    Method
        The row of the catalog.
    Preset or None
        The published configuration, where `name` is one.

    Raises
    ------
    ValueError
        If there is no such name; the message says which come close.

    Examples
    --------
    >>> row, preset = find_method("bradley_terry_map")
    >>> row.name, preset.backend
    ('bradley_terry', 'map')
    """
    if isinstance(name, str):
        if name in PRESETS:
            preset = PRESETS[name]
            return METHODS[preset.method], preset
        if name in METHODS:
            return METHODS[name], None
    message = f"method must be the name of a method or of a published configuration; got {name!r}"
    close = get_close_matches(str(name), {**METHODS, **PRESETS})
    if close:
        raise InputError(f"{message} (did you mean {' or '.join(close)}?)")
    raise InputError(
        message,
        in_python="METHODS and PRESETS hold them",
        in_shell="`bayesrank methods` lists them",
    )
