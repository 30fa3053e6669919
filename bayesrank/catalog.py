"""The table of methods, one row each, with best-practice defaults.

Its rows are in :mod:`bayesrank.catalog_rankers` and :mod:`bayesrank.catalog_likelihoods`, the
published configurations in :mod:`bayesrank.presets`.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from bayesrank.catalog_likelihoods import LIKELIHOODS
from bayesrank.catalog_rankers import RANKERS
from bayesrank.errors import InputError
from bayesrank.method import Method, Preset
from bayesrank.presets import PRESETS
from bayesrank.views import Ballots, Comparisons

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "MODELS_OF_BATTLES",
    "PRESETS",
    "default_method",
    "find_method",
    "method_with",
]

# The default method for responses.
DEFAULT_METHOD = "standardized_accuracy"

METHODS: Mapping[str, Method] = MappingProxyType(
    {row.name: row for row in (*RANKERS, *LIKELIHOODS)}
)


# Models of battles that an option can choose: the first with the option has priority.
MODELS_OF_BATTLES = (
    "davidson",
    "cumulative_logit",
    "hierarchical_comparisons",
    "dynamic_comparisons",
)


def default_method(data: Any, *, by_group: bool = False, options: Collection[str] = ()) -> str:
    """Return the default method for data.

    Parameters
    ----------
    data : Responses, Comparisons, Ballots, or what responses can be built from
        What is to be ranked.
    by_group : bool, default False
        Whether each group of battles is to be ranked as well, from one posterior.
    options : collection of str, optional
        Names of options that the method should have.

    Returns
    -------
    str
        Standardised accuracy for responses; for battles a model of ties where there are ties, else
        Bradley-Terry, both with a prior, so that the estimate exists; Plackett-Luce for rankings.
        Where that has not all of the options, the method that :func:`method_with` finds, if any.

    Examples
    --------
    >>> default_method(Comparisons([[0, 2], [1, 0]]))
    'bradley_terry_map'
    >>> default_method(Comparisons([[0, 2], [1, 0]]), options=["raters"])
    'cumulative_logit'
    """
    usual = _usual_method(data, by_group=by_group)
    if set(options) <= set(find_method(usual)[0].all_options):
        return usual
    return method_with(options, MODELS_OF_BATTLES if isinstance(data, Comparisons) else ()) or usual


def method_with(options: Collection[str], preferred: Sequence[str] = ()) -> str | None:
    """Return the method that has all of some options: a preferred one, or the only one.

    Parameters
    ----------
    options : collection of str
        Their names.
    preferred : sequence of str, optional
        Methods in the order in which they are tried.

    Returns
    -------
    str or None
        None where none has them, or several that are not preferred.

    Examples
    --------
    >>> method_with(["raters"]), method_with(["period"]), method_with(["period"], ["glicko"])
    ('cumulative_logit', None, 'glicko')
    """
    having = [name for name, row in METHODS.items() if set(options) <= set(row.all_options)]
    found = next((name for name in preferred if name in having), None)
    return having[0] if found is None and len(having) == 1 else found


def _usual_method(data: Any, *, by_group: bool) -> str:
    """Return the method of some kind of data."""
    if isinstance(data, Ballots):
        return "plackett_luce_map"
    if by_group and getattr(data, "group", None) is not None:
        return "hierarchical_comparisons"
    if isinstance(data, Comparisons):
        return "davidson" if data.ties.any() else "bradley_terry_map"
    return DEFAULT_METHOD


def find_method(name: str, argument: str = "method") -> tuple[Method, Preset | None]:
    """Look up a method or a published configuration.

    Parameters
    ----------
    name : str
        A name in `PRESETS` or in `METHODS`, in this order.
    argument : str, default "method"
        The argument that has the name, for the message.

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
    message = (
        f"{argument} must be the name of a method or of a published configuration; got {name!r}"
    )
    close = get_close_matches(str(name), {**METHODS, **PRESETS})
    if close:
        raise InputError(f"{message} (did you mean {' or '.join(close)}?)")
    raise InputError(
        message,
        in_python="METHODS and PRESETS hold them",
        in_shell="`bayesrank methods` lists them",
    )
