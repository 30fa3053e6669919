"""What a factory says when it is given anything but data, or an option has a wrong value."""

from collections.abc import Callable
from functools import wraps

import pymc as pm

from bayesrank.errors import DataError
from bayesrank.options import check_options


def checks_data[**P](factory: Callable[P, pm.Model]) -> Callable[P, pm.Model]:
    """Make a factory raise DataError where its first argument is not of the annotated type.

    Options are checked by :mod:`bayesrank.options`.

    Parameters
    ----------
    factory : callable
        Takes data of a type, or of one of several, and returns a model.

    Returns
    -------
    callable

    Examples
    --------
    >>> from bayesrank import Responses
    >>> @checks_data
    ... def empty(responses: Responses) -> pm.Model:
    ...     return pm.Model()
    >>> empty([[0, 1]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bayesrank.errors.DataError: responses must be Responses for empty; got list: build them with ...
    """
    name, kinds = next(iter(factory.__annotations__.items()))
    known = " or ".join(kind.__name__ for kind in getattr(kinds, "__args__", (kinds,)))

    @wraps(factory)
    def checked(*args: P.args, **kwargs: P.kwargs) -> pm.Model:
        given = args[0] if args else kwargs.get(name)
        if not isinstance(given, kinds):
            whole = "Responses(outcomes)"
            remedy = whole if "Responses" in known else f"{whole}.comparisons"
            raise DataError(
                f"{name} must be {known} for {factory.__name__}; got {type(given).__name__}: "
                f"build them with {remedy}"
            )
        check_options(factory, kwargs)
        return factory(*args, **kwargs)

    return checked
