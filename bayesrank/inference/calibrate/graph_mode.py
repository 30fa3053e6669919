"""The optimum of a factory's graph, as calibration takes it."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.calibrate.cells_and_events import QUESTION_PARAMETERS
from bayesrank.inference.calibrate.influence import Mode
from bayesrank.inference.fits.fit import constrained_steps
from bayesrank.inference.graph.fit import ModelFit
from bayesrank.responses import Responses

Array = NDArray[np.float64]


def graph_mode(fit: ModelFit, data: Responses) -> Mode:
    """Describe the optimum of a graph by the parameters of the data.

    Parameters
    ----------
    fit : ModelFit
        The optimum.
    data : Responses
        The data, with questions that the model may have left out; their parameters are NaN.

    Returns
    -------
    Mode
    """
    kept = np.isin(data.questions, fit.model.coords.get("question") or data.questions)

    def unpack(points: Array) -> dict[str, Array]:
        named: dict[str, Array] = fit.bound.named(points)
        return {name: _spread_out(name, values, kept) for name, values in named.items()}

    return Mode(
        point=fit.x,
        steps=partial(constrained_steps, -fit.hessian, np.zeros((len(fit.x), 0))),
        unpack=unpack,
    )


def _spread_out(name: str, values: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Put parameters of questions where the questions are among all, NaN elsewhere."""
    if name not in QUESTION_PARAMETERS or kept.all():
        return values
    spread = np.full((len(values), len(kept), *values.shape[2:]), np.nan)
    spread[:, kept] = values
    return spread
