r"""Distributions of choices by strength: rankings, and contests against common rivals.

In both a system is chosen in proportion to its strength :math:`\pi_i = e^{\theta_i}`.
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none

from bayesrank.models.luce_contests import log_contests

# Systems e^-700 times as strong as the others of a row would underflow to a strength of zero.
_LEAST_STRENGTH = np.finfo(np.float64).tiny


def ranking_choices(name: str, *, score: Any, seen: Any, observed: Any, dims: Sequence[str]) -> Any:
    r"""Rank the systems of each ballot by repeated choice of the best of the remaining systems.

    .. math:: \log p = \sum_{k < K} \Bigl(\theta_{o_k} - \log \sum_{l \ge k} \pi_{o_l}\Bigr)

    with :math:`o_k` the system in place k of K. `seen`, (ballot, system), says which systems are on
    each ballot; `observed`, of that shape, are places from 1 for the best, 0 for the others.
    """
    return pm.CustomDist(
        name,
        score,
        seen,
        logp=_ranking_logp,
        dist=_ranking_dist,
        signature="(l),(l)->(l)",
        class_name="RankingChoices",
        observed=observed,
        dims=dims,
    )


def luce_contests(
    name: str,
    *,
    score: Any,
    contestants: Any,
    rivals: Any,
    repeats: Any,
    observed: Any,
    dims: Sequence[str],
) -> Any:
    r"""Choose the winners of contests in which several systems meet the same rivals.

    In an event, each contestant i meets only all rivals :math:`V`, in r contests; the
    winner of a contest is chosen by strength. With :math:`x_l` the number of contests that l won,

    .. math:: \log p = \sum_l x_l \theta_l
        - r \sum_i \log\Bigl(\pi_i + \sum_{j \in V} \pi_j\Bigr) + \text{const}

    `contestants` and `rivals`, (event, system), mark the systems that are; a system may be neither.
    `repeats`, (event,), are r, and `observed`, (event, system), are the contests won.
    """
    return pm.CustomDist(
        name,
        score,
        contestants,
        rivals,
        repeats,
        logp=_contests_logp,
        dist=_contests_dist,
        signature="(l),(l),(l),()->(l)",
        class_name="LuceContests",
        observed=observed,
        dims=dims,
    )


def full_size(size: Any, like: Any) -> Any:
    """Return the shape of a draw: that of data (row, system), or `size` and an axis of systems."""
    return like.shape if rv_size_is_none(size) else pt.concatenate([size, like.shape[-1:]])


def _ranking_logp(value: Any, score: Any, seen: Any) -> Any:
    order = pt.argsort(pt.switch(seen, value, np.inf), axis=-1)
    held = pt.arange(value.shape[-1]) < seen.sum(-1, keepdims=True)
    places = pt.take_along_axis(value, order, axis=-1)
    possible = pt.all(pt.eq(places, pt.switch(held, pt.arange(value.shape[-1]) + 1, 0)), axis=-1)
    ordered = score[order]
    ordered = pt.switch(held, ordered - pt.switch(held, ordered, -np.inf).max(-1, keepdims=True), 0)
    strength = pt.switch(held, pt.exp(ordered), 0.0)
    left: Any = pt.cumsum(strength[..., ::-1], axis=-1)
    left = left[..., ::-1]
    terms = ordered - pt.log(pt.switch(held, pt.maximum(left, _LEAST_STRENGTH), 1.0))
    return pt.switch(possible, terms.sum(-1), -np.inf)


def _ranking_dist(score: Any, seen: Any, size: Any) -> Any:
    # The best is the system with the shortest exponential waiting time, with its strength as rate.
    waiting = pt.log(pm.Exponential.dist(1.0, size=full_size(size, seen))) - score
    order = pt.argsort(pt.switch(seen, waiting, np.inf), axis=-1)
    places = pt.argsort(order, axis=-1) + 1
    return pt.switch(seen, places, 0).astype("float64")


def _contests_logp(value: Any, score: Any, contestants: Any, rivals: Any, repeats: Any) -> Any:
    n = pt.switch(contestants, repeats[..., np.newaxis], 0.0)
    won, taken = pt.switch(contestants, value, 0.0), pt.switch(rivals, value, 0.0)
    lost = n - won
    possible = (
        pt.all((value >= 0.0) & (lost >= 0.0), axis=-1)
        & pt.all(pt.eq(won + taken, value), axis=-1)
        & pt.isclose(value.sum(-1), n.sum(-1))
    )
    # Which contests a contestant lost, and the rival of each.
    ways = (pt.gammaln(n + 1.0) - pt.gammaln(won + 1.0) - pt.gammaln(lost + 1.0)).sum(-1)
    ways += pt.gammaln(lost.sum(-1) + 1.0) - pt.gammaln(taken + 1.0).sum(-1)
    fits = log_contests(score, value, contestants, rivals, repeats)
    return fits + pt.switch(possible, ways, -np.inf)


def _contests_dist(score: Any, contestants: Any, rivals: Any, repeats: Any, size: Any) -> Any:
    among_rivals = pt.switch(rivals, score, -np.inf)
    against = pt.logsumexp(among_rivals, axis=-1, keepdims=True)
    n = pt.switch(contestants, repeats[..., np.newaxis], 0.0).astype("int64")
    full = None if rv_size_is_none(size) else full_size(size, n)
    won = pm.Binomial.dist(n=n, logit_p=score - against, size=full)
    taken = pm.Multinomial.dist(n=(n - won).sum(-1), p=pt.exp(among_rivals - against))
    return (won + taken).astype("float64")
