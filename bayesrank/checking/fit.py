"""Whether a model could have made the data: predictive checks."""

from collections.abc import Iterator, Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import METHODS
from bayesrank.checking.predictions import (
    Discrepancy,
    accuracy_by_difficulty,
    answer_log_odds,
    pair_misfit,
    win_matrix,
)
from bayesrank.checking.verdicts import Finding, Verdict
from bayesrank.errors import DataError
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]

# Draws that data are replicated from.
_N_DRAWS = 100

# Predictive probabilities of a worse misfit.
_BAD, _DOUBTFUL = 0.01, 0.05

# Root mean squared misfit of win rates, as shares: a model of pairs that is off by more is at best
# a summary.
_BAD_SHARE, _DOUBTFUL_SHARE = 0.10, 0.05


def check_fit(
    result: xr.DataTree, data: Responses | Comparisons | None, *, random_seed: int | None
) -> Iterator[Finding]:
    """Yield what predictive checks say.

    Parameters
    ----------
    result : xarray.DataTree
        A result.
    data : Responses or Comparisons, optional
        What was ranked.
    random_seed : int, optional
        Of the replicated data.

    Yields
    ------
    Finding
    """
    method = METHODS.get(result.attrs["method"])
    if method is None or result.attrs["backend"] not in LIKELIHOOD_BACKENDS:
        yield Finding("fit", "good", "The score is a statistic of the data: there is no model.")
        return
    if method.data == "comparisons":
        yield from _check_pairs(result)
        return
    if method.family != "item response":
        yield Finding(
            "fit", "unknown", f"{method.name} states no distribution of answers to replicate."
        )
        return
    ranked = data if isinstance(data, Responses) else _rebuilt(result)
    if ranked is None:
        yield Finding("fit", "unknown", "The result does not hold single trials: give the data.")
        return
    rng = np.random.default_rng(random_seed)
    named = _some_draws(result, ranked)
    try:
        log_odds = answer_log_odds(result, ranked, named)
    except (KeyError, DataError):
        yield Finding("fit", "unknown", "The result does not hold the parameters of its model.")
        return
    yield _judge(accuracy_by_difficulty(log_odds, ranked, rng), "accuracy by difficulty")
    if isinstance(data, Responses) and data.paired:
        yield _judge(win_matrix(log_odds, ranked, rng), "wins and losses in the same trials")


def _check_pairs(result: xr.DataTree) -> Iterator[Finding]:
    misfit = pair_misfit(result)
    if misfit is None:
        yield Finding("fit", "unknown", "The model has effects that the win matrix does not hold.")
        return
    verdict: Verdict = "good"
    if misfit.share > _DOUBTFUL_SHARE:
        verdict = "bad" if misfit.share > _BAD_SHARE else "doubtful"
    points = f"{100 * misfit.share:.1f}"
    excess = "no more than chance explains" if points == "0.0" else f"{points} points beyond chance"
    sentence = (
        f"Win rates differ from the model's by {excess} "
        f"(root mean square over pairs), most for {misfit.first} against {misfit.second} "
        f"({100 * misfit.observed:.0f} % of decisive comparisons, {100 * misfit.expected:.0f} % "
        "by the model)"
    )
    remedy = "." if verdict == "good" else ": no single scale of strength orders these systems."
    yield Finding("fit", verdict, sentence + remedy)


def _judge(found: Discrepancy, what: str) -> Finding:
    verdict: Verdict = "good"
    if found.probability < _DOUBTFUL:
        verdict = "bad" if found.probability < _BAD else "doubtful"
    if verdict == "good":
        return Finding(
            "fit",
            "good",
            f"Replicated data look like the data in their {what} (predictive probability "
            f"{found.probability:.2f}).",
        )
    return Finding(
        "fit",
        verdict,
        f"Replicated data do not show the {what} of the data (predictive probability "
        f"{found.probability:.2f}; most for {found.where}): the model misses something; "
        "calibration='sandwich' keeps the intervals honest, or try a richer model.",
    )


def _rebuilt(result: xr.DataTree) -> Responses | None:
    """Return responses with the counts of a result, whose trials are in any order."""
    observed = result["observed_data"].to_dataset()
    if "counts" not in observed or observed.sizes["category"] != 2:
        return None
    if result.attrs["method"] == "dynamic_irt":
        return None
    counts = observed["counts"].transpose("system", "question", "category").values.astype(int)
    trials = np.arange(counts.sum(axis=-1).max())
    right, total = counts[..., 1, np.newaxis], counts.sum(axis=-1)[..., np.newaxis]
    outcomes = np.where(trials < right, 1, np.where(trials < total, 0, -1))
    constant = result["constant_data"].to_dataset()
    groups = constant["question_group"].values.tolist() if "question_group" in constant else None
    return Responses(
        outcomes,
        systems=observed["system"].values.tolist(),
        questions=observed["question"].values.tolist(),
        groups=groups,
    )


def _some_draws(result: xr.DataTree, data: Responses) -> Mapping[str, Array]:
    """Return parameters of some draws, of shape (draw, ...), with all questions of the data."""
    posterior = result["posterior"].to_dataset().stack(sample=("chain", "draw"))
    step = max(1, posterior.sizes["sample"] // _N_DRAWS)
    chosen = posterior.isel(sample=slice(0, None, step)).transpose("sample", ...)
    if "question" in chosen.dims:
        chosen = chosen.reindex(question=list(data.questions))
    return {str(name): variable.values for name, variable in chosen.data_vars.items()}
