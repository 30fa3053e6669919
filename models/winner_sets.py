r"""Distributions of sets of winners: first the number of winners, then the set.

A set of t winners has the geometric mean of its strengths as weight; see
:mod:`bayesrank.models.symmetric_polynomials`.
"""

# PyTensor generates most of its functions, with annotations that say None.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform

from bayesrank.models.choices import full_size
from bayesrank.models.symmetric_polynomials import draw_subsets, log_symmetric


class StickBreaking(Transform):
    r"""Probabilities as the log-odds of each against all later ones.

    Under a Dirichlet prior and multinomial counts these log-odds are independent a posteriori,
    for any counts. Zeros mean equal probabilities.
    """

    name = "sticks"  # an underscore would break the name that PyMC makes of it
    ndim_supp = 1

    def forward(self, value: Any, *inputs: Any) -> Any:
        """Return log-odds of shape (..., size - 1)."""
        probability: Any = pt.as_tensor(value)
        after: Any = pt.cumsum(probability[..., :0:-1], axis=-1)
        after = after[..., ::-1]
        return pt.log(probability[..., :-1]) - pt.log(after) + _log_number_after(after)

    def backward(self, value: Any, *inputs: Any) -> Any:
        """Return probabilities of shape (..., size)."""
        odds = value - _log_number_after(value)
        left = pt.cumsum(-pt.softplus(odds), axis=-1)
        first = pt.zeros_like(value[..., :1])
        before = pt.concatenate([first, left], axis=-1)
        taken = pt.concatenate([-pt.softplus(-odds), first], axis=-1)
        return pt.exp(before + taken)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Return the logarithm of the determinant of :meth:`backward`."""
        odds = value - _log_number_after(value)
        left = pt.cumsum(-pt.softplus(odds), axis=-1)
        return (left - pt.softplus(-odds)).sum(-1)


def _log_number_after(odds: Any) -> Any:
    return pt.log(pt.arange(odds.shape[-1], 0, -1).astype("float64"))


class SizedSets:
    r"""Chances of each number of winners, and summed weights of their sets, by comparison set.

    With prevalences :math:`\delta_t`, the chance of t winners among the members of S is
    proportional to :math:`\delta_t e_t(S)`. The prevalences follow from the chances in an event in
    which the members of all sets take part, whose logarithms are `log_probability`, (size,).
    `members`, (set, system), are the comparison sets.

    `log_chance`, (set, size), are the logarithms of the chances, minus infinity for sizes that
    leave no member without a win; `log_sum`, of that shape, those of :math:`e_t(S)`; and
    `prevalence`, (size,), is relative to that of the first size.
    """

    def __init__(
        self, score: Any, *, sizes: Any, members: Any, log_probability: Any, n_sets: int
    ) -> None:
        self.score, self.sizes, self.members = score, sizes, members
        if n_sets == 1:
            self.log_sum = log_symmetric(score, members, sizes)
            self.log_chance = log_probability[np.newaxis, :]
            log_prevalence = log_probability - self.log_sum[0]
        else:
            union = pt.any(members, axis=0, keepdims=True)
            log_sums = log_symmetric(score, pt.concatenate([union, members]), sizes)
            self.log_sum = log_sums[1:]
            log_prevalence = log_probability - log_sums[0]
            possible = pt.lt(sizes, members.sum(axis=1, keepdims=True))
            weight = pt.switch(possible, log_prevalence + self.log_sum, -np.inf)
            self.log_chance = weight - pt.logsumexp(weight, axis=1, keepdims=True)
        self.prevalence = pt.exp(log_prevalence - log_prevalence[0])


def winner_sets(
    name: str,
    *,
    score: Any,
    members: Any,
    log_chance: Any,
    log_sum: Any,
    sizes: Any,
    observed: Any,
    dims: Sequence[str],
) -> Any:
    r"""Choose the winners of each event: first their number, then the set.

    A set :math:`U` of t winners has probability
    :math:`c_t \exp(\sum_{i \in U} \theta_i / t) / e_t`, with :math:`e_t` the sum of the
    exponentials over all sets of t members. `members`, (event, system), take part; `log_chance` and
    `log_sum`, (event, size), are the logarithms of :math:`c_t` and :math:`e_t` for each of the
    `sizes`; `observed`, (event, system), is 1 for winners, 0 for the others.
    """
    return pm.CustomDist(
        name,
        score,
        members,
        log_chance,
        log_sum,
        sizes,
        logp=_sets_logp,
        dist=_sets_dist,
        signature="(l),(l),(t),(t),(t)->(l)",
        class_name="WinnerSets",
        observed=observed,
        dims=dims,
    )


def winner_counts(
    name: str,
    *,
    score: Any,
    members: Any,
    size: Any,
    n_events: Any,
    log_sum: Any,
    observed: Any,
    dims: Sequence[str],
) -> Any:
    """Count how often each system is among the winners of events of one size.

    The log-probability is that of the events, without the number of ways in which events give the
    same counts. A row is of `n_events` events with `size` winners out of the same `members`, (row,
    system); `log_sum`, (row,), is as in :func:`winner_sets`. The counts `observed`, (row, system),
    add up to the size times the number of events.
    """
    return pm.CustomDist(
        name,
        score,
        members,
        size,
        n_events,
        log_sum,
        logp=_counts_logp,
        dist=_counts_dist,
        signature="(l),(l),(),(),()->(l)",
        class_name="WinnerCounts",
        observed=observed,
        dims=dims,
    )


def _sets_logp(
    value: Any, score: Any, members: Any, log_chance: Any, log_sum: Any, sizes: Any
) -> Any:
    n_winners = value.sum(-1, keepdims=True)
    of_size = pt.eq(n_winners, sizes)
    possible = pt.all(pt.eq(value, 0.0) | (pt.eq(value, 1.0) & members), axis=-1)
    # A row is first divided by its size, which is data, so that it needs one product with scores.
    shares = value / pt.maximum(n_winners, 1.0)
    weight = pt.switch(of_size, log_chance - log_sum, 0.0).sum(-1)
    fits = (shares * score).sum(-1) + weight
    return pt.switch(possible & pt.any(of_size, axis=-1), fits, -np.inf)


def _sets_dist(
    score: Any, members: Any, log_chance: Any, log_sum: Any, sizes: Any, size: Any
) -> Any:
    full = full_size(size, members)
    chosen = sizes[pm.Categorical.dist(p=pt.exp(log_chance), size=full[:-1])]
    return draw_subsets(pm.Uniform.dist(size=full), score, members, chosen)


def _counts_logp(
    value: Any, score: Any, members: Any, size: Any, n_events: Any, log_sum: Any
) -> Any:
    shares = value / size[..., np.newaxis]
    n = n_events[..., np.newaxis]
    possible = pt.all(pt.ge(value, 0.0) & pt.le(value, pt.switch(members, n, 0)), axis=-1)
    possible = possible & pt.isclose(value.sum(-1), n_events * size)
    return pt.switch(possible, (shares * score).sum(-1) - n_events * log_sum, -np.inf)


def _counts_dist(
    score: Any, members: Any, size: Any, n_events: Any, log_sum: Any, shape: Any
) -> Any:
    row = pt.repeat(pt.arange(n_events.shape[0]), n_events)
    uniforms = pm.Uniform.dist(size=(row.shape[0], members.shape[-1]))
    drawn = draw_subsets(uniforms, score, members[row], size[row])
    return pt.zeros(members.shape)[row].inc(drawn)
