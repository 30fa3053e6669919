"""Names of the dimensions of the parameters that methods estimate besides their scores."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons
from bayesrank.vote_rows import VoteRows

# Dims by parameter, without its number where there are several; one that is not named here is a
# single number.
_DIMS = {
    "ability": ("system",),
    "above_bar": ("system",),
    "competency": ("system",),
    "contrast": ("system",),
    "coordinate": ("system",),
    "deviation": ("direction",),
    "difficulty": ("question",),
    "effect": ("covariate",),
    "gap": ("grade",),
    "threshold": ("grade",),
    "discrimination": ("question",),
    "guessing": ("question",),
    "guessing_logit": ("question",),
    "increment": ("system", "step"),
    "intercept": ("question",),
    "loading": ("question",),
    "log_reliability": ("rater",),
    "position_bias": ("rater",),
    "log_discrimination": ("question",),
    "rating_deviation": ("system",),
    "reliability": ("rater",),
    "slope": ("system",),
    "strength": ("system",),
    "trajectory": ("system", "trial"),
    "group_score": ("system", "group"),
    "history": ("system", "period"),
    "size_probability": ("size",),
    "tie_prevalence": ("size",),
}

# Parameters whose logarithm is the free variable of the factory. It stands beside them, since
# PyMC would draw what is missing from its prior when it predicts from a result.
_FREE_LOGARITHMS = ("tie_strength",)


@lru_cache(maxsize=16)
def label_index(dim: str, labels: tuple[str, ...]) -> xr.IndexVariable:
    """Return labels as the coordinate of a dim; making an index takes longer than most datasets."""
    return xr.IndexVariable(dim, list(labels))


def label_parameters(
    values: Mapping[str, Any],
    data: Responses | Comparisons | Ballots,
    leading: tuple[str, ...] = (),
    *,
    named: Mapping[str, tuple[str, ...]] | None = None,
) -> xr.Dataset:
    """Label arrays of parameters.

    Parameters
    ----------
    values : mapping of str to array_like
        Parameters by name.
    data : Responses, Comparisons or Ballots
        Gives the labels of systems and questions.
    leading : tuple of str
        Dims before those of the parameter, such as ``("chain", "draw")``.
    named : mapping of str to tuple of str, optional
        Labels of further dims, such as ``covariate``.

    Returns
    -------
    xarray.Dataset
    """
    with np.errstate(divide="ignore"):  # a tie strength of zero
        logarithms = {f"log_{n}": np.log(values[n]) for n in _FREE_LOGARITHMS if n in values}
    values = {**values, **logarithms}
    variables = {
        name: (_dims(name, np.ndim(v), leading), np.asarray(v)) for name, v in values.items()
    }
    sizes = {dim: n for dims, v in variables.values() for dim, n in zip(dims, v.shape, strict=True)}
    labels = {
        "system": data.systems,
        "question": getattr(data, "questions", ()),
        **(named or {}),
    }
    coords: dict[str, Any] = {
        dim: label_index(dim, names) for dim, names in labels.items() if dim in sizes
    }
    if "size" in sizes and not isinstance(data, Comparisons):
        coords["size"] = np.unique(data.events.right.sum(axis=1))
    if "grade" in sizes and not isinstance(data, Ballots):
        votes = data if isinstance(data, Comparisons) else data.comparisons
        coords["grade"] = VoteRows.of(votes).coords["grade"]
    # Numbers begin at 1; a step leads to the trial of its number.
    coords |= {
        dim: np.arange(first, first + sizes[dim])
        for dim, first in (("trial", 1), ("step", 2), ("factor", 1), ("direction", 1))
        if dim in sizes
    }
    coords |= {dim: np.arange(sizes[dim]) for dim in leading if dim in sizes}
    return xr.Dataset(variables, coords)


def _dims(name: str, ndim: int, leading: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dims of a parameter, a last one for factors where there is one more axis."""
    dims = (*leading, *_DIMS.get(name.rstrip("_0123456789"), ()))
    return dims if len(dims) == ndim else (*dims, "factor")


def split_scores(result: Any) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Split what a NumPy ranker returned into scores and its other fields.

    Parameters
    ----------
    result : numpy.ndarray, or named tuple
        Scores, or a named tuple whose first field is the score.

    Returns
    -------
    score : numpy.ndarray of shape (..., system)
    parameters : dict of str to numpy.ndarray
        By name; empty for a plain array.
    """
    if isinstance(result, np.ndarray):
        return result, {}
    score, *others = result
    return score, dict(zip(result._fields[1:], others, strict=True))
