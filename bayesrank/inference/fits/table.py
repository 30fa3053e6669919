"""Point estimates of the methods that have a Newton kernel, without importing PyMC.

Two functions per row of the catalog, all called alike with the options of the row's factory:
``fit(data, prior, **options)``, where None means that the kernel does not cover the case, which
then goes to the compiled graph of the factory; and ``require(data, method=NAME, **options)``, which
raises NoFiniteEstimate where the maximum-likelihood estimate does not exist.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles, with_covariates
from bayesrank.inference.fits import pairs
from bayesrank.inference.fits.existence import check_tie_model, check_wins
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.luce import (
    fit_bradley_terry_luce,
    fit_davidson_luce,
    with_set_sizes,
)
from bayesrank.inference.fits.pair_counts import fit_pairs
from bayesrank.inference.fits.pairs import PairLikelihood, TiePolicy
from bayesrank.inference.fits.vote_fits import fit_pair_rows
from bayesrank.inference.fits.winner_sets import set_statistics
from bayesrank.options import AtLeastOne, Count, Rows
from bayesrank.priors import Flat, Prior, PriorLike, as_prior
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons, Events

Array = NDArray[np.float64]


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
    # Without a prior nothing places the scores, so they are centred all the same.
    if not (centred or isinstance(prior, Flat)):
        return None
    likelihood = pairs.bradley_terry(ties=ties)
    if not order_effect:
        return fit_comparisons(likelihood, data, prior, **formula)
    # The factory says what is wrong with a formula beside it; its prior on the effect is no part
    # of a likelihood, which a flat prior on the scores may ask for.
    others = formula.get("formula") is not None or isinstance(prior, Flat)
    if others or not isinstance(data, Battles):
        return None
    fit = fit_comparisons(likelihood, data, prior, formula="1")
    return None if fit is None else _with_order_effect(fit)


def _with_order_effect(fit: Fit) -> Fit:
    """Call the coefficient of the position as the factory does."""

    def unpack(free: Array) -> dict[str, Array]:
        named = fit.unpack(free)
        effect = named.pop("effect")
        return {**named, "order_effect": effect[..., 0]}

    parameters = {name: value for name, value in unpack(fit.free).items() if name != "score"}
    return replace(fit, parameters=parameters, unpack=unpack)


def davidson(
    data: Comparisons, prior: Prior, *, tie_prior: PriorLike = "normal(0, 2)", **formula: Any
) -> Fit | None:
    """Fit Davidson's model with normal or flat priors."""
    return fit_comparisons(pairs.davidson(), data, prior, tie_prior, **formula)


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
    return fit_comparisons(likelihood, data, prior, threshold_prior, **formula)


def fit_comparisons(
    likelihood: PairLikelihood,
    data: Comparisons,
    prior: Prior,
    tie_prior: PriorLike = "flat",
    *,
    formula: str | None = None,
    covariate_prior: PriorLike = "normal(0, 1)",
) -> Fit | None:
    """Fit a likelihood of comparisons with normal or flat priors."""
    if likelihood.ties == "outcome" and not data.totals.any():
        return None  # the factory says what is wrong
    scores, ties = prior.quadratic(), as_prior(tie_prior).quadratic()
    if scores is None or ties is None or (likelihood.lowest_tie == 0.0 and ties[0] != 0.0):
        return None
    if formula is not None:
        priors = normal_priors(prior, covariate_prior, tie_prior=tie_prior)
        battles = with_covariates(data)
        design = battles.design(formula)
        return None if priors is None else fit_pair_rows(likelihood, battles, design, **priors)
    return fit_pairs(
        likelihood,
        data.wins,
        data.ties,
        prior_mean=scores[0],
        prior_precision=scores[1],
        tie_mean=float(ties[0]),
        tie_precision=ties[1],
    )


def normal_priors(
    prior: Prior, covariate_prior: PriorLike, **shared: PriorLike
) -> dict[str, Any] | None:
    """Return the priors of :func:`~bayesrank.inference.fits.pair_rows.pair_rows`.

    Those on scores, coefficients and shared parameters; None unless all are normal or flat.
    """
    scores, effects = prior.quadratic(), as_prior(covariate_prior, "covariate_prior").quadratic()
    others = [as_prior(each, name).quadratic() for name, each in shared.items()]
    known = [each for each in others if each is not None]
    if scores is None or effects is None or len(known) < len(others):
        return None
    return {
        "prior_mean": scores[0],
        "prior_precision": scores[1],
        "effect_mean": float(effects[0]),
        "effect_precision": effects[1],
        "shared_mean": np.array([float(mean) for mean, _ in known]),
        "shared_precision": np.array([precision for _, precision in known]),
    }


def thurstone_mosteller(
    data: Comparisons, prior: Prior, *, ties: TiePolicy = "ignore", **formula: Any
) -> Fit | None:
    """Fit Thurstone-Mosteller with a normal or flat prior."""
    return fit_comparisons(pairs.thurstone_mosteller(ties=ties), data, prior, **formula)


def plackett_luce(data: Comparisons | Ballots, prior: Prior) -> Fit | None:
    """Fit Plackett-Luce to comparisons, which is Bradley-Terry; rankings have no kernel."""
    return None if isinstance(data, Ballots) else bradley_terry(data, prior)


def bradley_terry_luce(
    data: Responses | Events, prior: Prior, *, rows: Rows = "merged"
) -> Fit | None:
    """Fit Bradley-Terry-Luce with a normal or flat prior."""
    events, quadratic = _events(data), prior.quadratic()
    if quadratic is None or (isinstance(prior, Flat) and not len(events.right)):
        return None  # the factory says what is wrong
    mean, precision = quadratic
    return fit_bradley_terry_luce(
        events.right,
        events.wrong,
        events.multiplicity,
        prior_mean=mean,
        prior_precision=precision,
    )


def davidson_luce(
    data: Responses | Events,
    prior: Prior,
    *,
    max_tie_order: Count | None = None,
    rows: Rows = "merged",
) -> Fit | None:
    """Fit Davidson-Luce with a normal or flat prior where all systems take part in all events."""
    events, quadratic = _events(data), prior.quadratic()
    common = len(events.right) > 0 and bool((events.right | events.wrong).all())
    if quadratic is None or not common:
        return None
    shares, n_sets = set_statistics(events.right, events.multiplicity)
    if max_tie_order is not None and not np.flatnonzero(n_sets)[-1] < max_tie_order <= len(n_sets):
        return None  # the factory says what is wrong
    mean, precision = quadratic
    fit = fit_davidson_luce(shares, n_sets, prior_mean=mean, prior_precision=precision)
    if isinstance(data, Responses):
        fit = replace(fit, without=partial(_davidson_luce_without, data, mean, precision))
    return with_set_sizes(fit, n_sets)


def _davidson_luce_without(
    data: Responses, mean: Array, precision: float, left_out: NDArray[np.bool_]
) -> Array:
    """Return scores without some questions, for many such sets; see :class:`Fit`."""
    right = (data.outcomes == 1).transpose(1, 2, 0)
    told = data.observed.all(axis=0) & right.any(axis=-1) & ~right.all(axis=-1)
    shares, n_sets = set_statistics(right, told.astype(np.float64))
    kept = 1.0 - left_out
    # A prior that weighed as much against fewer questions would pull harder.
    weight = kept[:, data.trials.any(axis=0)].mean(axis=1)
    fit = fit_davidson_luce(
        kept @ shares, kept @ n_sets, prior_mean=mean, prior_precision=precision * weight
    )
    return np.where(fit.converged[:, np.newaxis], fit.score, np.nan)


def require_wins(
    data: Comparisons | Ballots | Responses | Events,
    *,
    method: str,
    ties: TiePolicy = "ignore",
    **_: Any,
) -> None:
    """Raise unless chains of wins, or of better places, connect everybody in both directions."""
    if isinstance(data, Comparisons):
        wins = data.wins + data.ties / 2 if ties == "half" else data.wins
    elif isinstance(data, Ballots):
        # A system on no ballot is ranked above and below nobody.
        wins = (data.grades[:, np.newaxis] > data.grades[np.newaxis]).any(axis=-1)
    else:
        events = _events(data)
        wins = events.right.T.astype(np.float64) @ events.wrong
    check_wins(wins, systems=data.systems, method=method)


def require_davidson(data: Comparisons, *, method: str, **_: Any) -> None:
    """Raise where the likelihood rises for ever along some direction."""
    check_tie_model(data.wins, data.ties, systems=data.systems, method=method, share=0.5)


def require_rao_kupper(
    data: Comparisons, *, method: str, tie_strength: AtLeastOne | None = None, **_: Any
) -> None:
    """Raise where the likelihood rises for ever along some direction."""
    if tie_strength is None:
        check_tie_model(data.wins, data.ties, systems=data.systems, method=method, share=1.0)
    else:
        ties = data.ties if tie_strength > 1.0 else 0.0
        check_wins(data.wins, ties, systems=data.systems, method=method)


def _events(data: Responses | Events) -> Events:
    return data if isinstance(data, Events) else data.events
