"""The sensitivity of the scores to their prior.

The standard deviation of the prior is doubled, and the score is fitted again. For a normal prior
and likelihood, a move of d posterior standard deviations means that the prior shifts the score by
4 d / 3 of them. The limit is a move of 1/4, where a 95 % interval covers the score without the
prior in 93.7 %.

The limit of power-scaling in ArviZ, a sensitivity of 0.05, is equivalent: it is reached at a move
of 0.26, or where the posterior is 0.8 times as wide as the prior. For a result with the log-prior
of its draws the verdict is that of ``az.psense_summary``, so that the two agree.

References
----------
.. [1] N. Kallioinen, T. Paananen, P.-C. Buerkner and A. Vehtari. Detecting and diagnosing prior and
   likelihood sensitivity with power-scaling. Statistics and Computing 34 (2024).
   https://doi.org/10.1007/s11222-023-10366-5
"""

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import METHODS
from bayesrank.checking.rebuild import rebuilt
from bayesrank.checking.verdicts import Finding
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.method import LIKELIHOOD_BACKENDS, Method, load_function
from bayesrank.printable import listing
from bayesrank.priors import (
    Cauchy,
    Empirical,
    Flat,
    Laplace,
    Normal,
    Prior,
    as_dirichlet,
    parse_prior,
)
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

Array = NDArray[np.float64]
Data = Responses | Comparisons | Ballots

# Posterior standard deviations by which a score moves when the prior is made twice as wide.
LARGE_MOVE = 0.25

# With at least this ratio of posterior to prior width, the posterior hardly differs from the prior.
LARGE_WIDTH = 0.8

# Sensitivity to power-scaling that counts as such, the default of psense_summary.
SENSITIVE = 0.05

# Families whose scores are log-odds, as their priors are.
LOG_ODDS = frozenset({"paired", "luce", "item response"})

# Smaller differences, relative to the largest score, are rounding errors.
_ROUNDING = 1e-9

# The parameter that is the width of a prior.
_WIDTHS = {Normal: "sigma", Laplace: "b", Cauchy: "beta", Empirical: "sigma"}

# Remaining share of the pseudo-trials of a Dirichlet prior. Their number is a precision, so the
# prior is then twice as wide.
_FEWER_PSEUDO_TRIALS = 0.25


def check_prior_share(result: xr.DataTree, data: Data | None) -> Iterator[Finding]:
    """Yield the findings on the sensitivity of the scores to the prior.

    Without `data` the counts in the result are enough for most methods.
    """
    row, score = METHODS.get(result.attrs["method"]), result["posterior"].to_dataset()["score"]
    if score.sizes["chain"] * score.sizes["draw"] == 1:
        return
    reason = _has_no_prior(result, row)
    if reason is not None:
        yield Finding("identification", "does not apply", reason, name="prior")
        return
    sd = score.std(("chain", "draw")).values
    systems = [str(name) for name in score["system"].values]
    moves = None
    if row is not None:
        moves = _moves(result, row, data if data is not None else rebuilt(result))
    spread = sd > _ROUNDING * np.abs(score.values).max()
    if not spread.any():
        yield Finding(
            "identification",
            "not measured",
            "The draws of the scores do not vary, so the sensitivity to the prior is unknown.",
            name="prior",
        )
        return
    if moves is not None:
        moves = np.divide(np.abs(moves), sd, out=np.zeros_like(sd), where=spread)
    widths = _widths(result, score)
    scaling = None
    if {"log_prior", "log_likelihood"} <= set(result.children):
        scaling = scaling_sensitivity(result, "prior")
    if scaling is not None:
        yield _by_power_scaling(systems, scaling, moves)
    elif moves is not None:
        yield _by_refit(systems, moves, widths)
    else:
        yield Finding(
            "identification",
            "not measured",
            "The scores were not fitted again with a prior twice as wide: the result does not hold "
            "the data that this needs. Check it together with the data.",
            name="prior",
        )


def _has_no_prior(result: xr.DataTree, row: Method | None) -> str | None:
    """Return why there is no prior whose width could be changed, or None if there is one."""
    attrs = result.attrs
    if row is not None and row.data == "evidence":
        return None
    if attrs["backend"] not in LIKELIHOOD_BACKENDS:
        return "The score is a statistic of the data, without a prior on it."
    if attrs["prior"] in ("none", str(Flat())):
        return "The scores have no prior of a given width."
    return None


def _moves(result: xr.DataTree, row: Method, data: Data | None) -> Array | None:
    """Return how far the scores move when the prior is twice as wide, None without a refit.

    For draws of nuts these are the moves of the posterior mode.
    """
    from bayesrank.ranking import point_estimate  # imports this package through its results

    if data is None:
        return None
    options = _method_options(result, row)
    if row.data == "evidence" and isinstance(data, Responses):
        return _dirichlet_moves(row, data, options, result.attrs["prior"])
    try:
        prior = parse_prior(result.attrs["prior"])
        wider = _widened(prior)
        if wider is None:
            return None
        backend = "map" if result.attrs["backend"] == "nuts" else result.attrs["backend"]
        settings = {"backend": backend, **options}
        before, after = (point_estimate(data, row, prior=one, **settings) for one in (prior, wider))
    except (ValueError, TypeError):  # a prior or an option that text cannot hold
        return None
    return after - before


def _method_options(result: xr.DataTree, row: Method) -> dict[str, Any]:
    options = json.loads(result.attrs["options"])
    return {name: value for name, value in options.items() if name in row.options}


def _dirichlet_moves(row: Method, data: Responses, options: dict[str, Any], prior: str) -> Array:
    """Return the moves of the posterior mean with a quarter of the pseudo-trials."""
    function, arguments = load_function(row.function), point_arguments(data, row.data)
    counts = as_dirichlet(prior).of_categories(data.n_categories)
    before, after = (
        function(*arguments, prior=share * counts, **options)
        for share in (1.0, _FEWER_PSEUDO_TRIALS)
    )
    return after - before


def _widened(prior: Prior) -> Prior | None:
    """Return a prior twice as wide, None for one without a width."""
    if not isinstance(prior, Normal | Laplace | Cauchy | Empirical):
        return None
    name = _WIDTHS[type(prior)]
    return replace(prior, **{name: 2.0 * getattr(prior, name)})


def _widths(result: xr.DataTree, score: xr.DataArray) -> Array | None:
    """Return the widths of the posterior as shares of those of the prior, if both are in logits."""
    if result.attrs["family"] not in LOG_ODDS:
        return None
    try:
        quadratic = parse_prior(result.attrs["prior"]).quadratic()
    except ValueError:
        return None
    if quadratic is None or quadratic[1] <= 0.0:
        return None
    prior_sd = float(quadratic[1]) ** -0.5
    if np.allclose(score.sum("system"), 0.0, atol=1e-6 * prior_sd):
        # Scores that sum to zero have lost one direction of their prior.
        prior_sd *= (1.0 - 1.0 / score.sizes["system"]) ** 0.5
    return score.std(("chain", "draw")).values / max(prior_sd, 1e-300)


def scaling_sensitivity(result: xr.DataTree, group: Literal["prior", "likelihood"]) -> Array | None:
    """Return the sensitivity of the scores to power-scaling the prior or the likelihood.

    Of shape (system,), as by ``az.psense_summary``; None if the group has the same density in all
    draws, as a flat prior has.
    """
    from arviz_stats.psense import psense  # slow to import

    try:
        with warnings.catch_warnings():
            # The check of sampling reports few draws.
            warnings.filterwarnings("ignore", "Number of tail draws", UserWarning)
            found = psense(result, var_names=["score"], group=group)["score"]
    except ValueError:
        return None
    return found.to_numpy().astype(np.float64)


def _by_power_scaling(systems: list[str], scaling: Array, moves: Array | None) -> Finding:
    numbers: dict[str, Any] = {
        "sensitivity": dict(zip(systems, scaling.tolist(), strict=True)),
        "limit": SENSITIVE,
    }
    if moves is not None:
        numbers["moves"] = dict(zip(systems, moves.tolist(), strict=True))
    sensitive = scaling >= SENSITIVE
    worst = int(scaling.argmax())
    sentence = (
        f"sensitivity to power-scaling the prior {scaling[worst]:.3f} for {systems[worst]}, "
        f"limit {SENSITIVE}, as in az.psense_summary"
    )
    if not sensitive.any():
        sentence = f"The data identify all scores (largest {sentence})."
        return Finding("identification", "good", sentence, numbers, "prior")
    return Finding(
        "identification", "doubtful", _pulled(systems, sensitive, sentence), numbers, "prior"
    )


def _by_refit(systems: list[str], moves: Array, widths: Array | None) -> Finding:
    numbers: dict[str, Any] = {
        "moves": dict(zip(systems, moves.tolist(), strict=True)),
        "limit": LARGE_MOVE,
    }
    if widths is not None:
        by_system = dict(zip(systems, widths.tolist(), strict=True))
        numbers |= {"widths": by_system, "width_limit": LARGE_WIDTH}
        worst = int(widths.argmax())
        if widths[worst] >= LARGE_WIDTH:
            sentence = (
                f"The posterior of the score of {systems[worst]} is {widths[worst]:.2f} times as "
                f"wide as the prior (limit {LARGE_WIDTH}): the rank depends mainly on the prior. "
                "Gather more data."
            )
            return Finding("identification", "doubtful", sentence, numbers, "prior")
    worst = int(moves.argmax())
    sentence = (
        f"with a prior twice as wide, the score of {systems[worst]} moves by {moves[worst]:.2f} "
        f"posterior standard deviations, limit {LARGE_MOVE}"
    )
    large = moves >= LARGE_MOVE
    if not large.any():
        sentence = f"The data identify all scores ({sentence}, and no other by more)."
        return Finding("identification", "good", sentence, numbers, "prior")
    return Finding(
        "identification", "doubtful", _pulled(systems, large, sentence), numbers, "prior"
    )


def _pulled(systems: list[str], chosen: NDArray[np.bool_], sentence: str) -> str:
    names = [name for name, one in zip(systems, chosen, strict=True) if one]
    return (
        f"{len(names)} of {len(systems)} scores depend on the prior ({listing(names)}; "
        f"{sentence}). "
        "Compare the ranking under other priors, or gather more data."
    )
