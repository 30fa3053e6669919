"""Point estimates of the methods whose scores differ between states, without importing PyMC.

One function per row of the catalog, called as those of :mod:`bayesrank.inference.fits.table`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from bayesrank.battle_states import Period, States, groups_of, periods_of
from bayesrank.battles import Battles
from bayesrank.inference.fits import pairs, table
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.pair_counts import name_parameters
from bayesrank.inference.fits.pair_states import fit_states
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.state_tree import StateTree
from bayesrank.options import Positive
from bayesrank.priors import Prior, PriorLike, as_prior
from bayesrank.views import Comparisons

Likelihood = Literal["davidson", "bradley_terry", "rao_kupper"]


def likelihood_of(*, likelihood: Likelihood = "davidson", **_: Any) -> PairLikelihood:
    """Return the likelihood of one battle."""
    return getattr(pairs, likelihood)()


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
    bound = likelihood_of(likelihood=likelihood)
    further = {"tie_prior": tie_prior, "formula": formula, "covariate_prior": covariate_prior}
    if not isinstance(data, Battles):
        return table.fit_comparisons(bound, data, prior, **further)
    states = groups_of(data)
    tree = StateTree.star(len(states.names))
    shifted = States(states.codes + 1, states.names)
    return _fit(
        data, prior, shifted, tree, _by_group, bound, "group_sd", group_sd, group_prior, **further
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
    bound = likelihood_of(likelihood=likelihood)
    further = {"tie_prior": tie_prior, "formula": formula, "covariate_prior": covariate_prior}
    if not isinstance(data, Battles):
        return table.fit_comparisons(bound, data, prior, **further)
    states = periods_of(data, period)
    tree = StateTree.chain(np.ones(len(states.names) - 1))
    if len(states.names) == 1:
        walk_sd = walk_sd or 1.0  # nothing steps
    return _fit(
        data, prior, states, tree, _over_time, bound, "walk_sd", walk_sd, walk_prior, **further
    )


def _fit(
    data: Battles,
    prior: Prior,
    states: States,
    tree: StateTree,
    by_state: Callable[[Array], dict[str, Array]],
    bound: PairLikelihood,
    step: str,
    step_sd: float | None,
    step_prior: PriorLike,
    *,
    tie_prior: PriorLike,
    formula: str | None,
    covariate_prior: PriorLike,
) -> Fit | None:
    """Fit a likelihood of battles whose priors are all normal, None for others."""
    told = data.wins if bound.ties == "ignore" else data.totals
    if not told.any():
        return None  # the factory says what is wrong
    priors = table.normal_priors(prior, covariate_prior, tie_prior=tie_prior)
    steps = as_prior(step_prior).quadratic()
    if priors is None or priors["prior_precision"] == 0.0 or steps is None or steps[0] != 0.0:
        return None
    if bound.lowest_tie == 0.0 and priors["shared_mean"].any():
        return None
    # One tie parameter at most.
    priors |= {name: float(priors[name][0]) for name in ("shared_mean", "shared_precision")}
    design = data.design(formula)
    shape = tree.n_states, len(data.systems)
    named = partial(
        name_parameters, size=math.prod(shape), n_effects=design.shape[1], names=bound.names
    )

    def unpack(free: Array) -> dict[str, Array]:
        others = named(free)
        return by_state(others.pop("score").reshape(*free.shape[:-1], *shape)) | others

    return fit_states(
        bound,
        data,
        states.codes,
        tree,
        unpack,
        design=design,
        step=step,
        step_sd=step_sd,
        step_precision=steps[1],
        **priors,
    )


def _by_group(scores: Array) -> dict[str, Array]:
    """Name scores of shape (..., group, system), first those of all: their mean over groups too."""
    by_group = scores[..., 1:, :]
    return {"score": by_group.mean(axis=-2), "group_score": by_group.swapaxes(-1, -2)}


def _over_time(scores: Array) -> dict[str, Array]:
    """Name scores of shape (..., period, system): those of the last period and of all."""
    return {"score": scores[..., -1, :], "history": scores.swapaxes(-1, -2)}
