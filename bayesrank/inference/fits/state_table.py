"""Point estimates of the methods whose scores differ between states, without importing PyMC.

One function per row of the catalog, called as those of :mod:`bayesrank.inference.fits.table`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from bayesrank.battle_states import Period, States, groups_of, periods_of
from bayesrank.battles import Battles
from bayesrank.inference.fits import pairs, table
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.pair_states import fit_states
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.state_tree import StateTree
from bayesrank.options import Positive
from bayesrank.priors import Prior, PriorLike, as_prior
from bayesrank.views import Comparisons

Likelihood = Literal["davidson", "bradley_terry", "rao_kupper"]

_LIKELIHOODS: dict[str, Callable[[], PairLikelihood]] = {
    "davidson": pairs.davidson,
    "bradley_terry": pairs.bradley_terry,
    "rao_kupper": pairs.rao_kupper,
}


def likelihood_of(*, likelihood: Likelihood = "davidson", **_: Any) -> PairLikelihood:
    """Return the likelihood of one battle."""
    return _LIKELIHOODS[likelihood]()


def hierarchical_comparisons(
    data: Comparisons,
    prior: Prior,
    *,
    likelihood: Likelihood = "davidson",
    group_sd: Positive | None = None,
    group_prior: PriorLike = "normal(0, 0.5)",
    tie_prior: PriorLike = "normal(0, 2)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit abilities by group with normal priors."""
    further = {"tie_prior": tie_prior, "formula": formula, "covariate_prior": covariate_prior}
    if not isinstance(data, Battles):
        return _plain(data, prior, likelihood, further)
    states = groups_of(data)
    tree = StateTree.star(len(states.names))
    shifted = States(states.codes + 1, states.names)
    unpack = partial(_by_group, n=len(data.systems), n_groups=len(states.names))
    return _fit(
        data, prior, shifted, tree, unpack, likelihood, "group_sd", group_sd, group_prior, **further
    )


def dynamic_comparisons(
    data: Comparisons,
    prior: Prior,
    *,
    period: Period = "month",
    likelihood: Likelihood = "davidson",
    walk_sd: Positive | None = None,
    walk_prior: PriorLike = "normal(0, 0.5)",
    tie_prior: PriorLike = "normal(0, 2)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit abilities over time with normal priors."""
    further = {"tie_prior": tie_prior, "formula": formula, "covariate_prior": covariate_prior}
    if not isinstance(data, Battles):
        return _plain(data, prior, likelihood, further)
    states = periods_of(data, period)
    tree = StateTree.chain(np.ones(len(states.names) - 1))
    unpack = partial(_over_time, n=len(data.systems), n_periods=len(states.names))
    if len(states.names) == 1:
        walk_sd = walk_sd or 1.0  # nothing steps
    return _fit(
        data, prior, states, tree, unpack, likelihood, "walk_sd", walk_sd, walk_prior, **further
    )


def _plain(
    data: Comparisons, prior: Prior, likelihood: Likelihood, further: dict[str, Any]
) -> Fit | None:
    """Fit counts, which know neither groups nor times."""
    ties = further.pop("tie_prior")
    if likelihood in ("davidson", "rao_kupper"):
        further["tie_prior" if likelihood == "davidson" else "threshold_prior"] = ties
    return getattr(table, likelihood)(data, prior, **further)


def _fit(
    data: Battles,
    prior: Prior,
    states: States,
    tree: StateTree,
    unpack: Callable[..., dict[str, Array]],
    likelihood: Likelihood,
    step: str,
    step_sd: float | None,
    step_prior: PriorLike,
    *,
    tie_prior: PriorLike,
    formula: str | None,
    covariate_prior: PriorLike,
) -> Fit | None:
    """Fit a likelihood of battles whose priors are all normal, None for others."""
    told = data.wins if likelihood == "bradley_terry" else data.totals
    if not told.any():
        return None  # the factory says what is wrong
    priors = table.normal_priors(prior, covariate_prior, tie_prior=tie_prior)
    steps = as_prior(step_prior).quadratic()
    if priors is None or priors["prior_precision"] == 0.0 or steps is None or steps[0] != 0.0:
        return None
    if likelihood == "rao_kupper" and priors["shared_mean"].any():
        return None
    # One tie parameter at most.
    priors |= {name: float(priors[name][0]) for name in ("shared_mean", "shared_precision")}
    bound, design = likelihood_of(likelihood=likelihood), data.design(formula)
    n_effects, has_tie = design.shape[1], bound.start is not None
    return fit_states(
        bound,
        data,
        states.codes,
        tree,
        partial(unpack, n_effects=n_effects, has_tie=has_tie),
        design=design,
        step=step,
        step_sd=step_sd,
        step_precision=steps[1],
        **priors,
    )


def _by_group(
    free: Array, *, n: int, n_groups: int, n_effects: int, has_tie: bool
) -> dict[str, Array]:
    """Name the mean score over groups, those of the groups, and the other parameters."""
    scores, others = _split(free, n, n_groups + 1, n_effects, has_tie)
    by_group = scores[..., 1:, :]
    return {"score": by_group.mean(axis=-2), "group_score": by_group.swapaxes(-1, -2)} | others


def _over_time(
    free: Array, *, n: int, n_periods: int, n_effects: int, has_tie: bool
) -> dict[str, Array]:
    """Name the score of the last period, those of all, and the other parameters."""
    scores, others = _split(free, n, n_periods, n_effects, has_tie)
    return {"score": scores[..., -1, :], "history": scores.swapaxes(-1, -2)} | others


def _split(
    free: Array, n: int, n_states: int, n_effects: int, has_tie: bool
) -> tuple[Array, dict[str, Array]]:
    size = n * n_states
    others = {"effect": free[..., size : size + n_effects]} if n_effects else {}
    if has_tie:
        others["tie_strength"] = np.exp(free[..., -1])
    return free[..., :size].reshape(*free.shape[:-1], n_states, n), others
