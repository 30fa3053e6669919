"""The nuts back end: draws from the posterior of a factory's model."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.backends.optimum import (
    build_model,
    factory_data,
    resolve_prior,
    single_observations,
)
from bayesrank.inference.calibrate.sandwich import Calibration, calibrate, choose_calibration
from bayesrank.inference.exchangeable import tie_exchangeable
from bayesrank.inference.graph.densities import log_densities
from bayesrank.inference.run import N_CHAINS, Estimate, Run
from bayesrank.validation import check_between_0_and_1

if TYPE_CHECKING:
    import pymc as pm

    from bayesrank.inference.graph.fit import ModelFit
    from bayesrank.inference.graph.sample import NutsSampler

# Doubles of log-likelihood kept by default: 160 MB. Larger ones are computed on request.
_LARGEST_LOG_LIKELIHOOD = 2e7


def nuts(
    run: Run,
    *,
    tune: int | None = None,
    nuts_sampler: "NutsSampler" = "compiled",
    target_accept: float = 0.8,
    low_rank: bool | None = None,
    cores: int | None = None,
    progressbar: bool | None = None,
    calibration: Calibration | None = None,
    log_likelihood: bool | None = None,
) -> Estimate:
    """Sample the posterior of the method's model; the point estimate is the posterior mean.

    A method with an option ``quantile`` is scored by that quantile of the posterior instead.

    Parameters
    ----------
    run : Run
        With back end ``nuts``.
    tune, nuts_sampler, target_accept, cores, progressbar
        As in :func:`bayesrank.inference.graph.sample.sample`.
    low_rank : bool, optional
        As there; by default for the methods whose posterior asks for it.
    calibration : {"sandwich", "none"}, optional
        Whether the draws of the scores are given the sandwich covariance; see
        :func:`bayesrank.inference.calibrate.sandwich.choose_calibration` for the default.
    log_likelihood : bool, optional
        Whether to add the groups ``log_likelihood`` and ``log_prior``, which ``az.loo`` and
        ``az.psense_summary`` read. By default they are added unless they are very large.

    Returns
    -------
    Estimate
    """
    from bayesrank.inference.graph.sample import sample  # imports PyMC

    quantile = run.options.get("quantile")
    if quantile is not None:
        check_between_0_and_1(quantile, "quantile")
    calibration = choose_calibration(run, calibration)
    data, prior = factory_data(run), resolve_prior(run)
    model = build_model(run, data, prior)
    groups = sample(
        model,
        draws=run.draws,
        tune=tune,
        chains=N_CHAINS,
        random_seed=int(run.seed.generate_state(1)[0]),
        nuts_sampler=nuts_sampler,
        target_accept=target_accept,
        low_rank=low_rank if low_rank is not None else _asks_for_low_rank(run, nuts_sampler),
        cores=cores,
        progressbar=progressbar,
    )
    posterior = groups.pop("posterior")
    if log_likelihood is not False:
        single = single_observations(run, data, prior, model)
        n_units = sum(_n_units(single, variable) for variable in single.observed_RVs)
        if log_likelihood or run.size * n_units <= _LARGEST_LOG_LIKELIHOOD:
            groups |= log_densities(single, posterior)
    score = posterior["score"]
    point = (
        score.mean(("chain", "draw"))
        if quantile is None
        else score.quantile(quantile, ("chain", "draw"))
    )
    estimate = Estimate(
        tie_exchangeable(point.values, run.data),
        score.transpose("chain", "draw", "system").values,
        posterior.drop_vars("score"),
        posterior.drop_vars("score").mean(("chain", "draw")),
        groups,
    )
    if calibration == "none":
        return estimate
    return calibrate(run, estimate, data, prior, find_mode=lambda: _fit_mode(model))


def _fit_mode(model: "pm.Model") -> "ModelFit":
    from bayesrank.inference.graph.fit import fit

    with warnings.catch_warnings():
        # The calibration says itself what a fit that did not converge means for it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(model, "map")


def _n_units(model: "pm.Model", variable: Any) -> int:
    """Return the number of observations that a variable holds: rows, where a row is one."""
    shape = model.rvs_to_values[variable].shape.eval(mode="FAST_COMPILE")
    return int(np.prod(shape[: len(shape) - variable.owner.op.ndim_supp]))


def _asks_for_low_rank(run: Run, nuts_sampler: str) -> bool:
    return run.method.correlated and nuts_sampler == "compiled"
