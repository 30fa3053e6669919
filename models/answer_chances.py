r"""Chances of all answers of many runs, and the log normalisers of their likelihood, in one pass.

The likelihood of runs of right and wrong answers needs :math:`\sum_m \log(1 + e^{\theta_r + e_m})`
for every run, and its gradient the chances :math:`p_{mr} = \sigma(\theta_r + e_m)`. The exponential
of a sum is a product of exponentials, and a sum of logarithms is the logarithm of a product. So one
exponential per run and per question and about one logarithm per run are enough for all cells.
"""

# PyTensor generates its functions, with annotations that say None.
# pyright: reportPrivateImportUsage=false

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply

from bayesrank.models.array_ops import REORDER_SUMS, ArrayOp

Array = NDArray[np.float64]

# Runs per round: their temporary arrays stay in the fastest cache.
_BLOCK = 512
# Factors are multiplied until their product could pass this bound.
_LARGEST_PRODUCT = 1e300


@njit(cache=True, fastmath=REORDER_SUMS, error_model="numpy")
def answer_arrays(
    ability: Array, easiness: Array, asked: Array
) -> tuple[Array, Array, Array]:  # pragma: no cover - compiled
    """Return the results of :func:`answer_chances`."""
    n_runs, n_questions = len(ability), len(easiness)
    every = asked.shape[0] == 0
    base, odds = np.exp(ability), np.exp(easiness)
    logs, expected = np.zeros(n_runs), np.zeros(n_runs)
    chances = np.empty((n_questions, n_runs))
    product = np.empty(_BLOCK)
    for start in range(0, n_runs, _BLOCK):
        n = min(_BLOCK, n_runs - start)
        stop = start + n
        own, total, right = base[start:stop], logs[start:stop], expected[start:stop]
        largest = own.max()
        product[:n] = 1.0
        bound = 1.0
        for m in range(n_questions):
            factor = 1.0 + largest * odds[m]
            if not bound * factor < _LARGEST_PRODUCT:
                for i in range(n):
                    total[i] += np.log(product[i])
                product[:n] = 1.0
                bound = 1.0
            bound *= factor
            chance = chances[m, start:stop]
            if every:
                for i in range(n):
                    x = own[i] * odds[m]
                    chance[i] = x / (1.0 + x)
                    right[i] += chance[i]
                    product[i] *= 1.0 + x
            else:
                for i in range(n):
                    x = own[i] * odds[m] * asked[m, start + i]
                    chance[i] = x / (1.0 + x)
                    right[i] += chance[i]
                    product[i] *= 1.0 + x
        for i in range(n):
            total[i] += np.log(product[i])
    return logs, expected, chances


class AnswerChances(ArrayOp):
    """Log normalisers of runs, sums of their chances, and the chances themselves."""

    function = answer_arrays
    # The mask has dims of its own, since it is empty where every question was asked.
    gufunc_signature = "(r),(m),(a,b)->(r),(r),(m,r)"
    dtypes = ("float64", "float64", "float64")

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Declare the mask as not differentiable."""
        return [[True] * 3, [True] * 3, [False] * 3]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Return the gradients with respect to abilities and easiness."""
        _, expected, chances = outputs
        by_log, by_expected, by_chance = (
            None if isinstance(by.type, DisconnectedType) else by for by in cotangents
        )
        for_ability, for_easiness = [], []
        if by_log is not None:
            for_ability.append(by_log * expected)
            for_easiness.append(chances @ by_log)
        moved = [by for by in (by_expected, by_chance) if by is not None]
        if moved:
            change = chances * (1.0 - chances) * sum(moved)
            for_ability.append(change.sum(axis=0))
            for_easiness.append(change.sum(axis=1))
        return [sum(for_ability), sum(for_easiness), disconnected_type()]


_ANSWER_CHANCES = AnswerChances()


def answer_chances(ability: Any, easiness: Any, asked: Any) -> tuple[Any, Any, Any]:
    r"""Return log normalisers of runs, sums of their chances, and the chances.

    :math:`\sum_m \log(1 + e^{\theta_r + e_m})`, (run,), :math:`\sum_m p_{mr}`, (run,), and
    :math:`p_{mr}`, (question, run). The abilities :math:`\theta`, (run,), are below
    700, where an exponential overflows; the easiness e, (question,), is minus the difficulty.
    `asked`, (question, run), is 1 where a question was asked, and 0 where not, which adds nothing;
    of shape (0, 0) if all were asked.

    Examples
    --------
    >>> import numpy as np
    >>> logs, expected, chances = answer_chances(np.zeros(1), np.zeros(2), np.zeros((0, 0)))
    >>> expected.eval(mode="FAST_COMPILE")
    array([1.])
    """
    outputs: Any = _ANSWER_CHANCES(ability, easiness, asked)
    logs, expected, chances = outputs
    return logs, expected, chances
