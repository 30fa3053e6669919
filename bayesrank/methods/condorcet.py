"""Condorcet methods with a polynomial algorithm: minimax, Schulze and ranked pairs."""

from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.methods.partial_orders import Precedence, level_scores, score_by_component
from bayesrank.methods.preferences import COMPARISONS_AT_ONCE, TiePolicy, pairwise_votes
from bayesrank.validation import checks_options

FloatArray = NDArray[np.float64]
MinimaxVariant = Literal["margin", "winning_votes"]
VictoryStrength = Literal["margin", "winning_votes"]

# From this number on, compiled code saves more time than its loading takes.
_MANY_VICTORIES = 30_000


@checks_options
def minimax(
    grades: FloatArray,
    weights: FloatArray | None = None,
    *,
    variant: MinimaxVariant = "margin",
    tie_policy: TiePolicy = "half",
) -> FloatArray:
    r"""Score systems by minus their worst pairwise defeat.

    .. math::

        s_i = -\max_{j : P_{ji} > P_{ij}} (P_{ji} - P_{ij}) \quad \text{or} \quad
        -\max_{j : P_{ji} > P_{ij}} P_{ji}

    by margin or by winning votes, and 0 for a system without a defeat; :math:`P_{ij}` is the number
    of questions on which the grade of i is higher than that of j, plus the share of equal grades
    under `tie_policy`.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; a question counts for a pair when both answered it, NaN otherwise.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    variant : {"margin", "winning_votes"}, default "margin"
        How large a defeat is.
    tie_policy : {"half", "ignore"}, default "half"
        Whether equal grades give half a vote to either side or none. Margins are the same.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        At most 0; higher is better.

    Raises
    ------
    ValueError
        If `variant` or `tie_policy` is unknown.

    References
    ----------
    .. [1] P. B. Simpson. On defining areas of voter choice: Professor Tullock on stable voting. The
       Quarterly Journal of Economics 83 (1969). https://doi.org/10.2307/1880533

    Examples
    --------
    >>> minimax(np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0]]))
    array([ 0., -1., -1.])
    """
    votes = pairwise_votes(grades, weights, tie_policy=tie_policy)
    against = np.swapaxes(votes, -1, -2)
    margin = against - votes
    defeat = margin if variant == "margin" else against
    worst = np.where(margin > 0.0, defeat, 0.0).max(axis=-1)
    return 0.0 - worst  # not -worst, which turns 0 into -0


def schulze(
    grades: FloatArray, weights: FloatArray | None = None, *, tie_policy: TiePolicy = "half"
) -> FloatArray:
    r"""Score systems by the level they reach in the order of strongest paths.

    A path is as strong as the weakest of its victories :math:`P_{ij} > P_{ji}`, measured in winning
    votes, and i precedes j when the strongest path from i to j is stronger than the one back.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; a question counts for a pair when both answered it, NaN otherwise.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    tie_policy : {"half", "ignore"}, default "half"
        Whether equal grades give half a vote to either side or none. With "half", on complete
        data, winning votes order victories as margins do.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        L for the systems that none precedes, then L - 1, and so on; higher is better.

    Raises
    ------
    ValueError
        If `tie_policy` is unknown.

    References
    ----------
    .. [1] M. Schulze. A new monotonic, clone-independent, reversal symmetric, and
       Condorcet-consistent single-winner election method. Social Choice and Welfare 36 (2011).
       https://doi.org/10.1007/s00355-010-0475-4

    Examples
    --------
    >>> schulze(np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0]]))
    array([3., 2., 1.])
    """
    votes = pairwise_votes(grades, weights, tie_policy=tie_policy)
    n_systems = votes.shape[-1]
    flat = votes.reshape(-1, n_systems, n_systems)
    scores = np.empty(flat.shape[:-1])
    for rows in batches(len(flat), 16 * n_systems**2, COMPARISONS_AT_ONCE):
        # With the batch last every step runs over contiguous memory.
        block = flat[rows].transpose(1, 2, 0)
        path = np.where(block > block.swapaxes(0, 1), block, 0.0)
        for middle in range(n_systems):
            np.maximum(path, np.minimum(path[:, middle, None], path[None, middle]), out=path)
        scores[rows] = level_scores((path > path.swapaxes(0, 1)).transpose(2, 0, 1))
    return scores.reshape(votes.shape[:-1])


@checks_options
def ranked_pairs(
    grades: FloatArray,
    weights: FloatArray | None = None,
    *,
    strength: VictoryStrength = "margin",
    tie_policy: TiePolicy = "half",
) -> FloatArray:
    r"""Score systems by the level they reach when victories are locked in from the strongest down.

    Victories of equal strength are locked together: each victory that is on no directed cycle of
    the victories locked before and of its own group. So the result does not depend on the labels of
    the systems, as it would with ties broken by label.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; a question counts for a pair when both answered it, NaN otherwise.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    strength : {"margin", "winning_votes"}, default "margin"
        Whether the victory of i over j is as strong as :math:`P_{ij} - P_{ji}` or as
        :math:`P_{ij}`.
    tie_policy : {"half", "ignore"}, default "half"
        Whether equal grades give half a vote to either side or none. Margins are the same.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        L for the systems that none precedes, then L - 1, and so on; higher is better.

    Raises
    ------
    ValueError
        If `strength` or `tie_policy` is unknown.

    References
    ----------
    .. [1] T. N. Tideman. Independence of clones as a criterion for voting rules. Social Choice and
       Welfare 4 (1987). https://doi.org/10.1007/BF00433944

    Examples
    --------
    >>> ranked_pairs(np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0]]))
    array([3., 2., 1.])
    """
    votes = pairwise_votes(grades, weights, tie_policy=tie_policy)
    margin = votes - np.swapaxes(votes, -1, -2)
    size = margin if strength == "margin" else votes
    victories = np.where(margin > 0.0, size, 0.0)
    if np.count_nonzero(victories) > _MANY_VICTORIES:
        return score_compiled(victories)
    return score_by_component(victories, _lock_victories)


def score_compiled(strength: FloatArray) -> FloatArray:
    """Score systems of many elections by ranked pairs, from the strengths of their victories."""
    # Imported here, since Numba takes longer to load than most elections to compute.
    from bayesrank.methods.order_kernels import levels_by_locking

    n_systems = strength.shape[-1]
    levels = levels_by_locking(strength.reshape(-1, n_systems, n_systems))
    return (n_systems - levels).astype(np.float64).reshape(strength.shape[:-1])


def _lock_victories(strength: FloatArray) -> Precedence:
    """Lock the victories in and return everything that each system then precedes."""
    victories = sorted(
        (-strength[winner, loser], int(winner), int(loser))
        for winner, loser in zip(*np.nonzero(strength), strict=True)
    )
    reach = [0] * len(strength)
    for _, group in groupby(victories, key=lambda victory: victory[0]):
        pairs = [(winner, loser) for _, winner, loser in group]
        together = _with_edges(reach, pairs)
        on_no_cycle = [(i, j) for i, j in pairs if not together[j] >> i & 1]
        reach = together if len(on_no_cycle) == len(pairs) else _with_edges(reach, on_no_cycle)
    return reach


def _with_edges(reach: Precedence, edges: list[tuple[int, int]]) -> Precedence:
    """Return the reachability of a graph after adding edges."""
    reach = list(reach)
    for start, end in edges:
        if not reach[start] >> end & 1:
            beyond = reach[end] | 1 << end
            for node, seen in enumerate(reach):
                if node == start or seen >> start & 1:
                    reach[node] = seen | beyond
    return reach
