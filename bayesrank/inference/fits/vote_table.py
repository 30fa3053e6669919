"""Point estimates of the methods that read votes, grades and states among them, without PyMC.

Two functions per row of the catalog, called as those of :mod:`bayesrank.inference.fits.table`.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.battle_states import Period, groups_of, periods_of
from bayesrank.battles import Battles, with_covariates
from bayesrank.connectivity import strongly_connected
from bayesrank.formula import Design
from bayesrank.inference.fits import pairs, table, vote_likelihoods
from bayesrank.inference.fits.existence import (
    check_grades,
    check_tie_model,
    check_wins,
    no_estimate,
)
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.pair_states import fit_states
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.raters import fit_rated_rows
from bayesrank.inference.fits.state_tree import StateTree
from bayesrank.inference.fits.vote_fits import fit_pair_rows
from bayesrank.inference.fits.vote_likelihoods import CumulativeLogit
from bayesrank.options import Positive, Raters
from bayesrank.priors import Prior, PriorLike, as_prior
from bayesrank.views import Comparisons
from bayesrank.vote_rows import BOTH_BAD, RESULTS, TIE, VoteRows, raters_of

Likelihood = Literal["davidson", "bradley_terry", "rao_kupper"]


def cumulative_logit(
    data: Comparisons,
    prior: Prior,
    *,
    threshold_prior: PriorLike = "normal(0, 2)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
    raters: Raters | None = None,
    rater_scale: Positive = 0.5,
) -> Fit | None:
    """Fit Agresti's cumulative logits with normal or flat priors."""
    priors = table.normal_priors(prior, covariate_prior, threshold_prior=threshold_prior)
    if priors is None or priors["shared_mean"].any():
        if raters is None:
            return None
        raise ValueError(
            f"prior and other priors must be normal or flat for raters={raters!r}; got {prior}: "
            "use backend='nuts'"
        )
    if not data.totals.any():
        return None  # the factory says what is wrong
    likelihood = vote_likelihoods.cumulative_logit()
    if raters is not None:
        judges, battles = raters_of(data, raters), with_covariates(data)
        design = battles.design(formula or "1")
        return fit_rated_rows(likelihood, battles, design, judges, scale=rater_scale, **priors)
    return fit_pair_rows(likelihood, data, _design(data, formula), **priors)


def davidson_outside(
    data: Comparisons,
    prior: Prior,
    *,
    tie_prior: PriorLike = "normal(0, 2)",
    bar_prior: PriorLike = "normal(0, 2)",
    slope_prior: PriorLike = "normal(1, 0.5)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit Davidson's model with an outside option with normal or flat priors."""
    votes = VoteRows.of(data)
    shared = {"tie_prior": tie_prior} if TIE in votes.options else {}
    if BOTH_BAD in votes.options:
        shared |= {"bar_prior": bar_prior, "slope_prior": slope_prior}
    priors = table.normal_priors(prior, covariate_prior, **shared)
    if priors is None or not data.totals.any():
        return None
    likelihood = vote_likelihoods.davidson_outside()
    return fit_pair_rows(likelihood, data, _design(data, formula), **priors)


def require_cumulative_logit(data: Comparisons, **_: Any) -> None:
    """Raise where the likelihood rises for ever along some direction."""
    votes = VoteRows.of(data).merged()
    if not data.wins.any():
        check_wins(data.wins, systems=data.systems, method="cumulative_logit")
    if not strongly_connected(data.wins > 0.0):
        # A grade says something in both directions, as a tie does.
        check_wins(data.wins, data.totals, systems=data.systems, method="cumulative_logit")
        likelihood = CumulativeLogit(votes)
        check_grades(
            votes.first,
            votes.second,
            likelihood.ends,
            systems=data.systems,
            method="cumulative_logit",
        )


def require_davidson_outside(data: Comparisons, **_: Any) -> None:
    """Raise where the likelihood of the other votes than both bad rises for ever."""
    name, votes = "davidson_outside", VoteRows.of(data)
    if BOTH_BAD in votes.options and len(data.systems) < 3:
        raise no_estimate(name, "how votes for neither depend on the level needs three systems")
    if TIE not in votes.options:
        check_wins(data.wins, systems=data.systems, method=name)
        return
    tied = votes.seen & (votes.results == RESULTS.index(TIE))
    ties = np.zeros_like(data.ties)
    ties[votes.first[tied], votes.second[tied]] = 1.0
    check_tie_model(data.wins, ties + ties.T, systems=data.systems, method=name, share=0.5)


def _design(data: Comparisons, formula: str | None) -> Design:
    """Return the covariates of the battles; none where none are asked for."""
    return Design.empty(0) if formula is None else with_covariates(data).design(formula)


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
    step = "group_sd", group_sd, group_prior
    return _fit(data, prior, states.codes + 1, tree, _by_group, bound, step, **further)


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
    tree = StateTree.chain(len(states.names))
    # Nothing steps in one period.
    step = "walk_sd", walk_sd or (1.0 if len(states.names) == 1 else None), walk_prior
    return _fit(data, prior, states.codes, tree, _over_time, bound, step, **further)


def _fit(
    data: Battles,
    prior: Prior,
    state: NDArray[np.integer[Any]],
    tree: StateTree,
    by_state: Callable[[Array], dict[str, Array]],
    bound: PairLikelihood,
    step: tuple[str, float | None, PriorLike],
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
    name, step_sd, step_prior = step
    steps = as_prior(step_prior).quadratic()
    if priors is None or priors["prior_precision"] == 0.0 or steps is None or steps[0] != 0.0:
        return None
    if bound.lowest_tie == 0.0 and priors["shared_mean"].any():
        return None
    return fit_states(
        bound,
        data,
        state,
        tree,
        by_state,
        design=data.design(formula),
        step=name,
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
