"""Check the draws: their number, and whether the sampler converged to the posterior."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from bayesrank.checking.verdicts import Finding, Verdict

# Above these limits the draws are not from the posterior.
_WORST_RHAT = 1.05
_WORST_DIVERGING = 0.01

# With this many independent draws, the 5 % quantile has an error of a tenth of its sd.
_FEW_DRAWS = 400


def check_sampling(result: xr.DataTree) -> Iterator[Finding]:
    """Yield the findings on the draws of a result."""
    score = result["posterior"]["score"]
    n_draws = score.sizes["chain"] * score.sizes["draw"]
    if n_draws == 1:
        yield Finding(
            "sampling",
            "not measured",
            "There are no draws: the result is only an estimate.",
            name="draws",
        )
        return
    if result.attrs["backend"] == "nuts":
        yield from _check_chains(result)
        return
    if n_draws < _FEW_DRAWS:
        yield Finding(
            "sampling",
            "doubtful",
            f"With {n_draws} draws the ends of intervals are noisy. Draw {_FEW_DRAWS} or more: "
            f"draws={-(-_FEW_DRAWS // score.sizes['chain'])} for each chain.",
            {"draws": n_draws, "limit": _FEW_DRAWS},
            "draws",
        )
        return
    yield Finding(
        "sampling",
        "good",
        f"The {n_draws} draws are independent of one another.",
        {"draws": n_draws},
        "draws",
    )


def _check_chains(result: xr.DataTree) -> Iterator[Finding]:
    from arviz_stats.sampling_diagnostics import ess, rhat  # slow to import

    from bayesrank.inference.backends.nuts import SMALLEST_ESS_PER_CHAIN, diagnose

    posterior = result["posterior"].to_dataset()
    stats = result["sample_stats"].to_dataset() if "sample_stats" in result else None
    complaints = diagnose(posterior, stats)
    score = posterior[["score"]]
    worst_rhat = float(np.nanmax(rhat(score)["score"].values))
    diverging = 0.0
    if stats is not None and "diverging" in stats:  # not every sampler has this statistic
        diverging = float(stats["diverging"].mean())
    verdict: Verdict = "doubtful"
    if worst_rhat > _WORST_RHAT or diverging > _WORST_DIVERGING:
        verdict = "bad"
    numbers = {"rhat": worst_rhat, "diverging": diverging}
    for complaint in complaints:
        yield Finding("sampling", verdict, complaint, numbers, "chains")
    tail = float(np.nanmin(ess(score, method="tail")["score"].values))
    needed = SMALLEST_ESS_PER_CHAIN * posterior.sizes["chain"]
    if tail < needed:
        yield Finding(
            "sampling",
            "doubtful",
            f"The tail effective sample size of a score is {int(tail)}, below {needed}: bounds and "
            "interval ends are noisy; draw more.",
            {"tail_ess": tail, "limit": needed},
            "chains",
        )
    elif not complaints:
        yield Finding(
            "sampling",
            "good",
            f"The chains agree (R-hat of scores at most {worst_rhat:.3f}), none diverged, and "
            f"the effective sample size in the tails is at least {tail:.0f}.",
            {**numbers, "tail_ess": tail},
            "chains",
        )
