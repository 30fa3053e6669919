"""Formulas of covariates of battles: their terms, and the columns of the design by blocks of rows.

Sums of names are read here. All else, such as interactions, functions and splines, is the language
of `formulae`, which is an extra.

References
----------
.. [1] G. N. Wilkinson and C. E. Rogers. Symbolic description of factorial models for analysis of
   variance. Journal of the Royal Statistical Society, Series C 22 (1973).
   https://doi.org/10.2307/2346786
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.validation import frozen

Array = NDArray[np.float64]
Variables = Mapping[str, NDArray[Any]]

# The advantage of being shown first: one for every battle.
POSITION = "position"
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Design:
    """Covariates of battles, each in its standard deviations, put together by blocks of rows.

    They are not centred: where the two answers do not differ, a covariate has no effect.

    Attributes
    ----------
    terms : tuple of str
        Names of the covariates.
    columns : tuple of numpy.ndarray of shape (battle,)
        Their values.
    scales : tuple of float
        Their standard deviations, 1 for what does not vary.
    n_rows : int
        Number of battles.
    """

    terms: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    scales: tuple[float, ...]
    n_rows: int

    @classmethod
    def of(cls, columns: Variables, n_rows: int, weight: Array | None = None) -> "Design":
        """Measure the spread of columns, over battles of a weight.

        Raises
        ------
        DataError
            If a column holds what is no finite number, or two columns do not vary.
        """
        scales, constant = [], None
        for name, values in columns.items():
            spread = _spread(values, weight)
            if not np.isfinite(spread):
                raise DataError(f"formula must give finite numbers; got others for {name!r}")
            if spread == 0.0:
                if constant is not None or not values.any():
                    raise DataError(
                        f"formula must have covariates that vary over battles, beside one "
                        f"{POSITION}; got one value of {name!r}"
                    )
                constant = name
            scales.append(spread or 1.0)
        return cls(tuple(columns), tuple(columns.values()), tuple(scales), n_rows)

    @classmethod
    def empty(cls, n_rows: int) -> "Design":
        """Return the design without covariates."""
        return cls((), (), (), n_rows)

    def keep(self, rows: NDArray[Any]) -> "Design":
        """Return the design of some rows, in the same units."""
        kept = tuple(values[rows] for values in self.columns)
        return replace(self, columns=kept, n_rows=len(np.arange(self.n_rows)[rows]))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of battles and of covariates."""
        return self.n_rows, len(self.terms)

    def __getitem__(self, rows: Any) -> Array:
        """Return some rows, of shape (row, covariate)."""
        block = isinstance(rows, slice) and rows.stop is not None
        key = (rows.start, rows.stop, rows.step) if block else None
        # Models ask for a block several times in a row.
        last = self.__dict__.setdefault("_last", {}) if block else {}
        if key not in last:
            last.clear()
            last[key] = self._rows(rows)
        return last[key]

    def _rows(self, rows: Any) -> Array:
        if not self.columns:
            return np.zeros((len(np.empty(self.n_rows, dtype=np.bool_)[rows]), 0))
        parts = [values[rows] for values in self.columns]
        found = np.empty((len(parts), len(parts[0])))
        for place, (values, scale) in enumerate(zip(parts, self.scales, strict=True)):
            np.divide(values, scale, out=found[place])
        return frozen(found.T)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows."""
        return np.asarray(self[:], dtype=dtype)


def _spread(values: NDArray[Any], weight: Array | None) -> float:
    """Return the standard deviation of values with frequency weights."""
    if weight is None or not weight.any():
        return float(values.std())
    there = weight > 0.0
    some = values[there].astype(np.float64)
    if np.ptp(some) == 0.0:
        return 0.0
    return float(np.cov(some, aweights=weight[there], ddof=0) ** 0.5)


def read_sum(formula: str) -> tuple[str, ...] | None:
    """Return the terms of a sum of names, None for a formula of another form.

    As in all formulas the intercept, here the advantage of being shown first, is a term unless 0 or
    -1 takes it out.

    Parameters
    ----------
    formula : str
        Names joined by ``+``, with 0, 1 or -1.

    Examples
    --------
    >>> read_sum("length + bold")
    ('position', 'length', 'bold')
    >>> read_sum("0 + length"), read_sum("length:group")
    (('length',), None)
    """
    terms = [term.strip() for term in re.sub(r"-\s*1\b", "+ 0", formula).split("+")]
    if not all(term in ("0", "1") or _NAME.fullmatch(term) for term in terms):
        return None
    names = tuple(dict.fromkeys(term for term in terms if term not in ("0", "1")))
    return names if "0" in terms else tuple(dict.fromkeys((POSITION, *names)))


def design_of(
    formula: str, variables: Variables, n_rows: int, weight: Array | None = None
) -> Design:
    """Return the covariates of a formula.

    Parameters
    ----------
    formula : str
        Such as ``"length + bold"``, ``"0 + length"`` or ``"length:group"``.
    variables : mapping of str to numpy.ndarray of shape (battle,)
        What formulas may name, beside the position.
    n_rows : int
        Number of battles.
    weight : numpy.ndarray of shape (battle,), optional
        How many battles each stands for; one by default.

    Returns
    -------
    Design

    Raises
    ------
    DataError
        If the formula names what is not there, has no terms, or cannot be read.

    Examples
    --------
    >>> design_of("1 + length", {"length": np.array([2.0, -2.0])}, 2)[:]
    array([[ 1.,  1.],
           [ 1., -1.]])
    """
    known = {POSITION: np.broadcast_to(1.0, n_rows), **variables}
    terms = read_sum(str(formula))
    if terms is None or any(_is_text(known.get(name)) for name in terms):
        columns = _columns_of_formulae(str(formula), known)
    else:
        _refuse_unknown(terms, known)
        columns = {name: known[name] for name in terms}
    if not columns:
        raise DataError(f"formula must have a term; got {formula!r}: use None for no covariates")
    return Design.of(columns, n_rows, weight)


def _is_text(values: NDArray[Any] | None) -> bool:
    return values is not None and values.dtype.kind not in "fiub"


def _refuse_unknown(names: Any, known: Variables) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DataError(f"formula must name some of {', '.join(known)}; got {unknown[0]!r}")


def _columns_of_formulae(formula: str, known: Variables) -> dict[str, NDArray[Any]]:
    """Let formulae read a formula and return its columns by name."""
    if find_spec("formulae") is None:
        raise DataError(
            f"formula must be a sum of names without the package formulae; got {formula!r}: "
            "install it with `pip install 'bayesrank[formula]'`"
        )
    import pandas as pd
    from formulae import design_matrices, model_description
    from formulae.parser import ParseError
    from formulae.scanner import ScanError

    try:
        named = model_description(formula).var_names
        _refuse_unknown(sorted(named), known)
        frame = pd.DataFrame({name: known[name] for name in named or {POSITION}})
        with np.errstate(all="ignore"):  # what is not finite is refused with the name of its column
            parts = design_matrices(formula, frame, env=0)
    except DataError:
        raise
    except (ParseError, ScanError, ValueError, KeyError, NameError, TypeError) as error:
        raise DataError(
            f"formula must be one that formulae reads; got {formula!r}: {error}"
        ) from error
    if parts.response is not None or parts.group is not None:
        raise DataError(
            "formula must hold covariates without an outcome and without group effects; got "
            f"{formula!r}"
        )
    if parts.common is None:
        return {}
    names = parts.common.as_dataframe().columns
    matrix = np.asarray(parts.common.design_matrix, dtype=np.float64)
    return {
        POSITION if name == "Intercept" else str(name): column
        for name, column in zip(names, matrix.T, strict=True)
    }
