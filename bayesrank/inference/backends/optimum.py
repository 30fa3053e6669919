"""The mle and map back ends: an optimum and Gaussian draws around it."""

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bayesrank.counting import order_of_counts
from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.calibrate.sandwich import calibrate, choose_calibration, sandwich_draws
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import Array
from bayesrank.inference.fits.symmetry import Exchangeable
from bayesrank.inference.run import N_CHAINS, Data, Estimate, Run, by_chain, label_parameters
from bayesrank.log_odds import finite_exp
from bayesrank.method import load_function
from bayesrank.priors import Flat
from bayesrank.responses import Responses
from bayesrank.validation import Calibration

if TYPE_CHECKING:
    from bayesrank.inference.graph.fit import ModelFit

# Scores are log-odds and the like, of the order of 1.
_ROUNDING = 1e-12

# Families whose factories derive a strength, the exponential of the score.
STRENGTH_FAMILIES = frozenset({"paired", "luce"})


def optimize(
    run: Run, *, calibration: Calibration | None = None, log_likelihood: bool = False
) -> Estimate:
    """Maximise the likelihood or the posterior density, and draw from a Gaussian around it.

    It uses a structured kernel if the method has one that covers the prior and the options,
    else the compiled graph of the factory.

    Parameters
    ----------
    run : Run
        With back end ``mle`` or ``map``.
    calibration : {"sandwich", "none"}, optional
        Whether the Gaussian has the sandwich covariance or that of the curvature (Laplace); see
        :func:`bayesrank.inference.calibrate.sandwich.choose_calibration` for the default.
    log_likelihood : bool, default False
        Whether to add the groups ``log_likelihood`` and ``log_prior`` of the draws, which
        ``az.loo`` and ``az.psense_summary`` read. This imports PyMC.

    Raises
    ------
    NoFiniteEstimate
        If the maximum-likelihood estimate does not exist.

    Warns
    -----
    ConvergenceWarning
        If the optimiser did not converge.
    """
    calibration = choose_calibration(run, calibration)
    data, prior = run.factory_data, run.factory_prior
    if isinstance(prior, Flat) and run.method.existence is not None:
        load_function(run.method.existence)(data, method=run.method.name, **run.options)
    if run.raters is not None and log_likelihood:
        raise ValueError(
            "log_likelihood must be False for raters, whose effects the fit integrates out; got "
            "True: use backend='nuts'"
        )
    # The kernels do not have all variables of the graph, which the densities need.
    if run.method.kernel is not None and not log_likelihood:
        fit = load_function(run.method.kernel)(data, prior, **run.options)
        if fit is not None:
            return from_kernel(run, fit, calibration)
    estimate, fit = _from_graph(run, log_likelihood)
    if calibration == "none":
        return estimate
    return calibrate(run, estimate, lambda: fit)


def from_kernel(run: Run, fit: Fit, calibration: Calibration) -> Estimate:
    """Turn a kernel's fit into an estimate with draws around it.

    Warns ConvergenceWarning if the fit, which is not batched, did not converge.
    """
    if not bool(fit.converged):
        warnings.warn(
            f"the {run.backend} fit of {run.method.name} did not converge: largest gradient "
            f"{float(fit.gradient_norm):.3g} of the count scale after {int(fit.iterations)} "
            "iterations",
            ConvergenceWarning,
            stacklevel=2,
        )
    with_strength = run.method.family in STRENGTH_FAMILIES
    strength = {"strength": finite_exp(fit.score)} if with_strength else {}
    point = fit.parameters | strength
    groups = {"sample_stats": partial(_statistics, fit)}
    if run.draws == 0:
        return Estimate(fit.score, None, point=point, groups=groups)
    if run.method.spread is not None:
        model_based = calibration == "none"
        scores = load_function(run.method.spread)(run, fit, model_based=model_based)
        drawn = {"score": scores}
    elif calibration == "sandwich":
        drawn = sandwich_draws(run, fit)
    else:
        drawn = fit.draw(run.size, np.random.default_rng(run.seed))
    chains = {name: by_chain(values) for name, values in drawn.items()}
    scores = chains.pop("score")
    if with_strength:
        chains["strength"] = finite_exp(scores)
    parameters = label_parameters(chains, run.data, ("chain", "draw"), named=run.labels)
    return Estimate(fit.score, scores, parameters, point, groups, calibration)


def _statistics(fit: Fit) -> dict[str, bool | int | float]:
    return {
        "converged": bool(fit.converged),
        "iterations": int(fit.iterations),
        "gradient_norm": float(fit.gradient_norm),
        "maximum_loglik": float(fit.loglik),
    }


def _from_graph(run: Run, log_likelihood: bool) -> "tuple[Estimate, ModelFit]":
    from bayesrank.inference.graph.fit import fit as fit_graph  # imports PyMC
    from bayesrank.inference.graph.fit import log_densities

    model = _in_canonical_order(run).build_model()
    fit = fit_graph(model, "mle" if run.backend == "mle" else "map")
    stats = {
        "converged": fit.converged,
        "iterations": fit.iterations,
        "gradient_norm": fit.gradient_norm,
    }
    groups: dict[str, Any] = {"sample_stats": stats}
    point = _ordered_as(run.data, fit.point)
    score, point = point["score"].values, point.drop_vars("score")
    alike = _exchangeable(run)
    score = alike.mean(score[np.newaxis])[0]
    # If all scores are zero, sums leave only rounding errors, which must not count as differences.
    score = np.where(np.abs(score) < _ROUNDING, 0.0, score)
    if run.draws == 0:
        return Estimate(score, None, point=point, groups=groups), fit
    seed = int(run.seed.generate_state(1)[0])
    drawn = fit.draws(draws=run.draws, chains=N_CHAINS, random_seed=seed)
    drawn = _ordered_as(run.data, drawn)
    if log_likelihood:
        groups |= log_densities(run.build_single_model(), drawn)
    scores = drawn["score"].transpose("chain", "draw", "system").values
    flat = {"score": scores.reshape(-1, len(score))}
    scores = alike.exchange(flat, np.random.default_rng(seed))["score"].reshape(scores.shape)
    return Estimate(score, scores, drawn.drop_vars("score"), point, groups), fit


def _in_canonical_order(run: Run) -> Run:
    """Return a run on the same data in an order that does not depend on the given one.

    Rounding decides which of several maxima an optimiser reaches. Models that depend on more than
    numbers of right answers stay as they are.
    """
    if (counts := _sufficient_counts(run)) is None or np.ptp(counts[2]):
        return run
    data = run.responses
    systems, questions = order_of_counts(counts[0][0], counts[1][0])
    named = {
        "systems": [data.systems[place] for place in systems],
        "questions": [data.questions[place] for place in questions],
    }
    return replace(run, data=data.select(**named))


def _ordered_as(data: Data, found: xr.Dataset) -> xr.Dataset:
    """Return a dataset with systems and questions in the order of the data."""
    labels = {"system": data.systems, "question": getattr(data, "questions", ())}
    known = {dim: set(found[dim].values) for dim in labels if dim in found.coords}
    return found.sel({dim: [one for one in labels[dim] if one in known[dim]] for dim in known})


def _exchangeable(run: Run) -> Exchangeable:
    """Return the exchangeable systems, and questions, if the model is one of counts; else none."""
    counts = _sufficient_counts(run)
    return Exchangeable({}) if counts is None else Exchangeable.of(*counts)


def _sufficient_counts(run: Run) -> tuple[Array, Array, Array] | None:
    """Return right answers, trials and kinds of systems by the prior, for an item response model.

    Counts are of shape (1, system, question). None for other models, and where the likelihood or
    the prior depends on more than numbers of right answers: on the order of trials, on groups of
    questions or on earlier outcomes.
    """
    data, method = run.factory_data, run.method
    in_order = "assume_time_axis" in method.options
    if not isinstance(data, Responses) or method.family != "item response" or in_order:
        return None
    if data.groups is not None or data.prior_outcomes is not None:
        return None
    right, trials = (counts[np.newaxis].astype(float) for counts in data.binary_counts)
    prior, n_systems = run.factory_prior, len(data.systems)
    kinds = np.zeros(n_systems) if prior is None else prior.kinds(n_systems)
    return right, trials, kinds
