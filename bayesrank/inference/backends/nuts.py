"""The nuts back end: draws from the posterior of a factory's model."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.calibrate.sandwich import calibrate, choose_calibration
from bayesrank.inference.fits.symmetry import tie_exchangeable
from bayesrank.inference.run import N_CHAINS, Estimate, Run
from bayesrank.validation import Calibration, Count, NutsSampler, Probability

if TYPE_CHECKING:
    import pymc as pm

    from bayesrank.inference.graph.fit import ModelFit

# Doubles of log-likelihood kept by default: 160 MB. Larger ones are computed on request.
_LARGEST_LOG_LIKELIHOOD = 2e7

# Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221:
# R-hat below 1.01 and an effective sample size of at least 100 per chain.
LARGEST_RHAT = 1.01
SMALLEST_ESS_PER_CHAIN = 100


def nuts(
    run: Run,
    *,
    chains: Count = N_CHAINS,
    tune: Count | None = None,
    nuts_sampler: NutsSampler = "compiled",
    target_accept: Probability = 0.8,
    low_rank: bool | None = None,
    cores: Count | None = None,
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
    chains : int, default 4
        Independent chains, each with the requested number of draws.
    tune : int, optional
        Draws spent per chain on tuning; by default the sampler's own number (1000, or 400 with
        nutpie's adaptation), but 1000 for "compiled" where parameters are many (500).
    nuts_sampler : {"compiled", "pymc", "nutpie", "numpyro", "blackjax"}, default "compiled"
        The sampler: nutpie on compiled code that data sets share, or a sampler of ``pm.sample``.
    target_accept : float, default 0.8
        Average acceptance rate to tune the step size for; higher for difficult posteriors.
    low_rank : bool, optional
        Adapt to the strongest correlations of the posterior, not only to its scales; for
        "compiled" only. By default for the methods whose parameters are strongly correlated.
    cores : int, optional
        Chains at a time. By default PyMC's choice, but for "compiled" one, since its chains wait
        for one another in Python, unless an evaluation takes long (0.12 ms).
    progressbar : bool, optional
        Show the progress; by default in a notebook. For the samplers of PyMC, which need ipywidgets
        in a notebook, the default is not to show it.
    calibration : {"sandwich", "none"}, optional
        Whether the draws of the scores get the sandwich covariance; see
        :func:`bayesrank.inference.calibrate.sandwich.choose_calibration` for the default.
    log_likelihood : bool, optional
        Whether to add the groups ``log_likelihood`` and ``log_prior``, which ``az.loo`` and
        ``az.psense_summary`` read. By default they are added unless they are very large.

    Warns
    -----
    ConvergenceWarning
        If R-hat, the effective sample size or divergent transitions show a fault of the draws.
    """
    from bayesrank.inference.graph.fit import log_densities, sample  # imports PyMC

    calibration = choose_calibration(run, calibration)
    if low_rank is None:
        low_rank = run.method.correlated and nuts_sampler == "compiled"
    model = run.build_model()
    groups = sample(
        model,
        draws=run.draws,
        tune=tune,
        chains=chains,
        random_seed=int(run.seed.generate_state(1)[0]),
        nuts_sampler=nuts_sampler,
        target_accept=target_accept,
        low_rank=low_rank,
        cores=cores,
        progressbar=progressbar,
    )
    posterior = groups.pop("posterior")
    sampled = [v.name for v in model.free_RVs if v.name in posterior]
    complaints = diagnose(posterior, groups["sample_stats"], var_names=sampled)
    if complaints:
        warnings.warn(" ".join(complaints), ConvergenceWarning, stacklevel=2)
    if log_likelihood is not False:
        single = run.build_single_model()
        n_units = sum(_n_units(single, variable) for variable in single.observed_RVs)
        if log_likelihood or run.draws * chains * n_units <= _LARGEST_LOG_LIKELIHOOD:
            groups |= log_densities(single, posterior)
    score, parameters = posterior["score"], posterior.drop_vars("score")
    every = ("chain", "draw")
    point = score.mean(every) if run.quantile is None else score.quantile(run.quantile, every)
    estimate = Estimate(
        _with_ties(run, point.values),
        score.transpose("chain", "draw", "system").values,
        parameters,
        parameters.mean(every),
        groups,
    )
    if calibration == "none":
        return estimate
    return calibrate(run, estimate, lambda: _fit_mode(model))


def _with_ties(run: Run, score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores in which exchangeable systems tie."""
    # Covariates, raters, groups and periods of battles tell systems with equal counts apart.
    if run.labels:
        return score
    prior = run.factory_prior
    return tie_exchangeable(score, run.data, None if prior is None else prior.kinds(len(score)))


def _fit_mode(model: "pm.Model") -> "ModelFit":
    from bayesrank.inference.graph.fit import fit

    with warnings.catch_warnings():
        # The calibration has its own warning for a fit that did not converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(model, "map")


def _n_units(model: "pm.Model", variable: Any) -> int:
    """Return the number of observations of a variable: rows, if each row is one observation."""
    shape = model.rvs_to_values[variable].shape.eval(mode="FAST_COMPILE")
    return int(np.prod(shape[: len(shape) - variable.owner.op.ndim_supp]))


def diagnose(
    posterior: xr.Dataset,
    sample_stats: xr.Dataset | None = None,
    *,
    var_names: Sequence[str] | None = None,
) -> list[str]:
    """Return a sentence for each fault of a sampler's draws.

    There is no fault if R-hat is below 1.01, the bulk effective sample size at least 100 per chain,
    and no transition of `sample_stats` diverged. If `var_names` is given, only these variables are
    examined. Constant elements are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from bayesrank.inference.backends.nuts import diagnose
    >>> noise = np.random.default_rng(0).normal(size=(4, 500))
    >>> diagnose(xr.Dataset({"mu": (("chain", "draw"), noise)}))
    []
    >>> stuck = noise + np.arange(4)[:, np.newaxis]
    >>> for sentence in diagnose(xr.Dataset({"mu": (("chain", "draw"), stuck)})):
    ...     print(sentence.partition(":")[0])
    R-hat of mu is 1.537, not below 1.01
    The bulk effective sample size of mu is 7, below 400
    """
    # This import takes a second, so it happens only if there are draws.
    from arviz_base import dataset_to_dataarray
    from arviz_stats.sampling_diagnostics import ess, rhat

    sample_dims = ["chain", "draw"]
    draws = posterior if var_names is None else posterior[list(var_names)]
    draws = draws.transpose(*draws.dims)  # labels would be wrong where their orders differ
    elements = dataset_to_dataarray(draws, sample_dims=sample_dims, add_coords=False)
    elements = elements[..., (elements.max(sample_dims) > elements.min(sample_dims)).values]
    n_chains = posterior.sizes["chain"]
    sentences: list[str] = []
    if sample_stats is not None and "diverging" in sample_stats:
        diverging = int(sample_stats["diverging"].sum())
        if diverging:
            sentences.append(
                f"{diverging} of {sample_stats['diverging'].size} transitions diverged: the draws "
                "miss a part of the posterior; reparametrise, or raise target_accept."
            )
    if not elements.sizes["label"]:
        return sentences
    if n_chains > 1:
        values = rhat(elements)
        worst = values[values.argmax("label")]
        if worst >= LARGEST_RHAT:
            sentences.append(
                f"R-hat of {worst['label'].item()} is {worst.item():.4g}, not below "
                f"{LARGEST_RHAT}: the chains have not mixed; draw more or simplify the model."
            )
    values = ess(elements, method="bulk")
    worst = values[values.argmin("label")]
    needed = SMALLEST_ESS_PER_CHAIN * n_chains
    if worst < needed:
        sentences.append(
            f"The bulk effective sample size of {worst['label'].item()} is {int(worst)}, "
            f"below {needed}: draw more."
        )
    return sentences
