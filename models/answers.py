"""A distribution of whole runs: right and wrong answers of one system to all questions."""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesrank.models.answer_chances import answer_chances


def observe_answers(
    name: str,
    ability: Any,
    difficulty: Any,
    answers: NDArray[np.int8],
    *,
    dims: tuple[str, str],
) -> Any:
    r"""Observe runs whose answers are right with logit(P) = ability - difficulty.

    .. math:: \log p(y \mid \theta, b) = \theta \sum_m y_m - \sum_m y_m b_m
        - \sum_m \log(1 + e^{\theta - b_m})

    A run is one observation, so that its log-probability needs one ability, (run,), and three sums.
    `answers`, (run, question), are 1 for right, 0 for wrong, and -1 for a question that was not
    asked, which adds nothing and is drawn as 0. `dims` are those of runs and questions.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> with pm.Model(coords={"run": [0], "question": ["a", "b"]}) as model:
    ...     ability, difficulty = pm.Normal("ability", shape=1), np.zeros(2)
    ...     runs = observe_answers(
    ...         "runs", ability, difficulty, np.array([[1, 0]]), dims=("run", "question")
    ...     )
    >>> float(model.compile_logp(vars=[runs])({"ability": np.zeros(1)}).round(4))
    -1.3863
    """
    asked = answers >= 0
    right = pm.Data(f"{name}_observed", np.where(asked, answers, 0).astype(np.float64), dims=dims)
    parameters = [ability, pt.as_tensor(difficulty)]
    if not asked.all():
        parameters.append(pm.Data(f"{name}_asked", asked.astype(np.float64), dims=dims))
    return pm.CustomDist(
        name,
        *parameters,
        logp=_logp,
        dist=_dist,
        signature=f"{','.join(['()', *['(m)'] * (len(parameters) - 1)])}->(m)",
        class_name="Answers",
        observed=right,
        dims=dims,
    )


def _logp(value: Any, ability: Any, difficulty: Any, asked: Any = None) -> Any:
    if ability.ndim != 1 or difficulty.ndim != 1:
        gap = ability[..., np.newaxis] - difficulty
        cells = value * gap - pt.softplus(gap)
        return (cells if asked is None else asked * cells).sum(-1)
    mask = pt.zeros((0, 0)) if asked is None else asked.T
    logs, _, _ = answer_chances(ability, -difficulty, mask)
    return value.sum(-1) * ability - value @ difficulty - logs


def _dist(ability: Any, difficulty: Any, *rest: Any) -> Any:
    *asked, _ = rest  # the size is that of the abilities
    draw = pm.Bernoulli.dist(logit_p=ability[..., np.newaxis] - difficulty).astype("float64")
    return draw * asked[0] if asked else draw
