"""Point estimates of the methods of comparisons, events and votes, without importing PyMC.

There is one function per row of the catalog, with the options of the row's factory:
``fit(data, prior, **options)``. It returns None if the kernel does not cover the case; the compiled
graph of the factory is then used. If no maximum-likelihood estimate exists, the functions
``require_*`` of :mod:`bayesrank.inference.fits.existence` raise an error.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.battle_states import Period, groups_of, periods_of
from bayesrank.battles import Battles, with_covariates
from bayesrank.formula import Design
from bayesrank.inference.fits import pairs, vote_likelihoods
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.luce import (
    fit_bradley_terry_luce,
    fit_davidson_luce,
    set_statistics,
    with_set_sizes,
)
from bayesrank.inference.fits.newton import Array
from bayesrank.inference.fits.pair_fits import fit_pair_rows, fit_states, normal_priors
from bayesrank.inference.fits.pair_rows import StateTree
from bayesrank.inference.fits.pairs import PairLikelihood, TiePolicy, fit_pairs
from bayesrank.inference.fits.raters import fit_rated_rows
from bayesrank.priors import Flat, NormalPrior, Prior, PriorLike, as_prior
from bayesrank.responses import Responses
from bayesrank.validation import AtLeastOne, Count, Positive, Raters, Rows
from bayesrank.views import Ballots, Comparisons, Events
from bayesrank.vote_rows import BOTH_BAD, TIE, VoteRows, raters_of

Likelihood = Literal["davidson", "bradley_terry", "rao_kupper"]
_TINY = 1e-300


def bradley_terry(
    data: Comparisons,
    prior: Prior,
    *,
    ties: TiePolicy = "ignore",
    centred: bool = True,
    order_effect: bool = False,
    **formula: Any,
) -> Fit | None:
    """Fit Bradley-Terry with a normal or flat prior on centred scores."""
    # Without a prior the data do not identify the mean of the scores, so they are centred anyway.
    if not (centred or isinstance(prior, Flat)):
        return None
    likelihood = pairs.bradley_terry(ties=ties)
    if not order_effect:
        return fit_comparisons(likelihood, data, prior, **formula)
    # The factory raises the error for a formula together with an order effect. Its prior on the
    # effect is not part of the likelihood that a flat prior on the scores asks for.
    others = formula.get("formula") is not None or isinstance(prior, Flat)
    if others or not isinstance(data, Battles):
        return None
    fit = fit_comparisons(likelihood, data, prior, formula="1")
    return None if fit is None else _with_order_effect(fit)


def _with_order_effect(fit: Fit) -> Fit:
    """Rename the coefficient of the position as in the factory."""

    def unpack(free: Array) -> dict[str, Array]:
        named = fit.unpack(free)
        effect = named.pop("effect")
        return {**named, "order_effect": effect[..., 0]}

    parameters = {name: value for name, value in unpack(fit.free).items() if name != "score"}
    return replace(fit, parameters=parameters, unpack=unpack)


def davidson(data: Comparisons, prior: Prior, **others: Any) -> Fit | None:
    """Fit Davidson's model with normal or flat priors."""
    return fit_comparisons(pairs.davidson(), data, prior, **others)


def rao_kupper(
    data: Comparisons,
    prior: Prior,
    *,
    tie_strength: AtLeastOne | None = None,
    threshold_prior: PriorLike = "normal(0, 2)",
    **formula: Any,
) -> Fit | None:
    """Fit Rao-Kupper with a normal or flat prior on the scores and on the log threshold."""
    likelihood = pairs.rao_kupper(tie_strength=tie_strength)
    return fit_comparisons(likelihood, data, prior, tie_prior=threshold_prior, **formula)


def fit_comparisons(
    likelihood: PairLikelihood,
    data: Comparisons,
    prior: Prior,
    *,
    tie_prior: PriorLike = "normal(0, 2)",
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit a likelihood of comparisons, with or without ties, under normal or flat priors."""
    if likelihood.ties == "outcome" and not data.totals.any():
        return None  # the factory raises the error
    scores, ties = prior.quadratic(), as_prior(tie_prior).quadratic()
    if scores is None or ties is None or (likelihood.lowest_tie == 0.0 and ties.mean != 0.0):
        return None
    if formula is not None:
        priors = normal_priors(prior, covariate_prior, tie_prior=tie_prior)
        design = _design(data, formula)
        return None if priors is None else fit_pair_rows(likelihood, data, design, **priors)
    return fit_pairs(likelihood, data.wins, data.ties, prior=scores, tie_prior=ties)


def thurstone_mosteller(
    data: Comparisons, prior: Prior, *, ties: TiePolicy = "ignore", **formula: Any
) -> Fit | None:
    """Fit Thurstone-Mosteller with a normal or flat prior."""
    return fit_comparisons(pairs.thurstone_mosteller(ties=ties), data, prior, **formula)


def plackett_luce(data: Comparisons | Ballots, prior: Prior) -> Fit | None:
    """Fit Plackett-Luce to comparisons, where it is Bradley-Terry; rankings have no kernel."""
    return None if isinstance(data, Ballots) else bradley_terry(data, prior)


def bradley_terry_luce(
    data: Responses | Events, prior: Prior, *, rows: Rows = "merged"
) -> Fit | None:
    """Fit Bradley-Terry-Luce with a normal or flat prior."""
    events, scores = _events(data), prior.quadratic()
    if scores is None or (isinstance(prior, Flat) and not len(events.right)):
        return None  # the factory raises the error
    return fit_bradley_terry_luce(events.right, events.wrong, events.multiplicity, scores)


def davidson_luce(
    data: Responses | Events,
    prior: Prior,
    *,
    max_tie_order: Count | None = None,
    rows: Rows = "merged",
) -> Fit | None:
    """Fit Davidson-Luce with a normal or flat prior if all systems take part in all events."""
    events, scores = _events(data), prior.quadratic()
    common = len(events.right) > 0 and bool((events.right | events.wrong).all())
    if scores is None or not common:
        return None
    shares, n_sets = set_statistics(events.right, events.multiplicity)
    if max_tie_order is not None and not np.flatnonzero(n_sets)[-1] < max_tie_order <= len(n_sets):
        return None  # the factory raises the error
    fit = fit_davidson_luce(shares, n_sets, scores)
    if isinstance(data, Responses):
        fit = replace(fit, without=partial(_davidson_luce_without, data, scores))
    return with_set_sizes(fit, n_sets)


def _davidson_luce_without(
    data: Responses, prior: NormalPrior, left_out: NDArray[np.bool_]
) -> Array:
    """Return the scores without each of several sets of questions; see :class:`Fit`."""
    right = (data.outcomes == 1).transpose(1, 2, 0)
    told = data.observed.all(axis=0) & right.any(axis=-1) & ~right.all(axis=-1)
    shares, n_sets = set_statistics(right, told.astype(np.float64))
    kept = 1.0 - left_out
    # With the whole prior the scores would shrink more, because there are fewer questions.
    kept /= np.maximum(kept[:, data.trials.any(axis=0)].mean(axis=1, keepdims=True), _TINY)
    fit = fit_davidson_luce(kept @ shares, kept @ n_sets, prior)
    found = fit.converged & kept.any(axis=1)
    return np.where(found[:, np.newaxis], fit.score, np.nan)


def _events(data: Responses | Events) -> Events:
    return data if isinstance(data, Events) else data.events


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
    priors = normal_priors(prior, covariate_prior, threshold_prior=threshold_prior)
    if priors is None or np.any(priors["shared_prior"].mean):
        if raters is None:
            return None
        raise ValueError(
            f"prior and other priors must be normal or flat for raters={raters!r}; got {prior}: "
            "use backend='nuts'"
        )
    if not data.totals.any():
        return None  # the factory raises the error
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
    priors = normal_priors(prior, covariate_prior, **shared)
    if priors is None or not data.totals.any():
        return None
    likelihood = vote_likelihoods.davidson_outside()
    return fit_pair_rows(likelihood, data, _design(data, formula), **priors)


def _design(data: Comparisons, formula: str | None) -> Design:
    """Return the covariates of the battles; no covariates without a formula."""
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
    **others: Any,
) -> Fit | None:
    """Fit abilities by group with normal priors."""
    bound = likelihood_of(likelihood=likelihood)
    if not isinstance(data, Battles):
        return fit_comparisons(bound, data, prior, **others)
    states = groups_of(data)
    tree = StateTree.star(len(states.names))
    step = "group_sd", group_sd, group_prior
    return fit_states(bound, data, prior, states.codes + 1, tree, _by_group, step, **others)


def dynamic_comparisons(
    data: Comparisons,
    prior: Prior,
    *,
    period: Period = "month",
    likelihood: Likelihood = "davidson",
    walk_sd: Positive | None = None,
    walk_prior: PriorLike = "normal(0, 0.5)",
    **others: Any,
) -> Fit | None:
    """Fit abilities over time with normal priors."""
    bound = likelihood_of(likelihood=likelihood)
    if not isinstance(data, Battles):
        return fit_comparisons(bound, data, prior, **others)
    states = periods_of(data, period)
    tree = StateTree.chain(len(states.names))
    # A single period has no steps.
    step = "walk_sd", walk_sd or (1.0 if len(states.names) == 1 else None), walk_prior
    return fit_states(bound, data, prior, states.codes, tree, _over_time, step, **others)


def _by_group(scores: Array) -> dict[str, Array]:
    """Name scores of shape (..., group, system); the first group is the root, which is left out."""
    by_group = scores[..., 1:, :]
    return {"score": by_group.mean(axis=-2), "group_score": by_group.swapaxes(-1, -2)}


def _over_time(scores: Array) -> dict[str, Array]:
    """Name scores of shape (..., period, system): the last period, and the history of all."""
    return {"score": scores[..., -1, :], "history": scores.swapaxes(-1, -2)}
