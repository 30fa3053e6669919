"""Check by predictive checks whether the model could have generated the data."""

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
from bayesrank.checking.rebuild import rebuilt
from bayesrank.checking.verdicts import Finding, Verdict
from bayesrank.errors import DataError
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from bayesrank.responses import Responses
from bayesrank.results.numbers import probability_text
from bayesrank.views import Ballots, Comparisons

Array = NDArray[np.float64]

# Draws from which data are replicated.
_N_DRAWS = 100

# Predictive probabilities of a worse misfit.
_BAD, _DOUBTFUL = 0.01, 0.05

# Root mean squared misfit of win rates, as shares: with more, a model of pairs is only a summary.
_BAD_SHARE, _DOUBTFUL_SHARE = 0.10, 0.05


def check_fit(
    result: xr.DataTree,
    data: Responses | Comparisons | Ballots | None,
    *,
    random_seed: int | None,
) -> Iterator[Finding]:
    """Yield the findings of predictive checks; the seed is that of replicated data."""
    method = METHODS.get(result.attrs["method"])
    reason = _has_no_check(result, method)
    if method is None or reason is not None:
        yield Finding("fit", "does not apply", reason or "", name="fit")
        return
    if method.data == "comparisons":
        yield from _check_pairs(result)
        return
    ranked = data if isinstance(data, Responses) else rebuilt(result)
    if not isinstance(ranked, Responses):
        yield Finding(
            "fit",
            "not measured",
            "The result does not hold single trials: check it together with the data.",
            name="fit",
        )
        return
    rng = np.random.default_rng(random_seed)
    named = _parameters(result, ranked)
    try:
        log_odds = answer_log_odds(result, ranked, named)
    except (KeyError, DataError):
        yield Finding(
            "fit",
            "not measured",
            "The result does not hold the parameters of its model.",
            name="fit",
        )
        return
    if not np.isfinite(log_odds).any():
        yield Finding("fit", "not measured", "The model left out every question.", name="fit")
        return
    calibration = result.attrs["calibration"]
    yield _judge(
        accuracy_by_difficulty(log_odds, ranked, rng), "accuracy by difficulty", calibration
    )
    if isinstance(data, Responses) and data.paired and data.shape[2] > 1:
        found = win_matrix(log_odds, ranked, rng)
        yield _judge(found, "wins and losses in the same trials", calibration)


def _has_no_check(result: xr.DataTree, method: Method | None) -> str | None:
    """Return why there is no predictive check, or None if there is one."""
    if result.attrs["backend"] not in LIKELIHOOD_BACKENDS:
        return "The score is a statistic of the data: there is no model whose fit could be checked."
    if method is None:
        return f"There is no predictive check for {result.attrs['method']}, a method of your own."
    if method.data == "comparisons" and "wins" not in result["observed_data"]:
        return f"There is no predictive check of {method.name} for rankings of several systems."
    if method.gradient and (method.data == "comparisons" or method.family == "item response"):
        return None
    return f"There is no predictive check for the likelihood of {method.name}."


def _check_pairs(result: xr.DataTree) -> Iterator[Finding]:
    misfit = pair_misfit(result)
    if misfit is None:
        yield Finding(
            "fit",
            "not measured",
            "The model has effects, groups or periods that the win matrix does not contain.",
            name="win rates",
        )
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
    numbers = {
        "misfit": misfit.share,
        "pair": [misfit.first, misfit.second],
        "observed": float(misfit.observed),
        "expected": float(misfit.expected),
    }
    yield Finding("fit", verdict, sentence + remedy, numbers, "win rates")


def _judge(found: Discrepancy, what: str, calibration: str) -> Finding:
    verdict: Verdict = "good"
    numbers = {"probability": found.probability, "where": found.where, "limit": _DOUBTFUL}
    if found.probability < _DOUBTFUL:
        verdict = "bad" if found.probability < _BAD else "doubtful"
    if verdict == "good":
        return Finding(
            "fit",
            "good",
            f"Replicated data look like the data in their {what} (predictive probability "
            f"{probability_text(found.probability)}).",
            numbers,
            what,
        )
    remedy = (
        "The intervals do not need a model that fits (calibration='sandwich'); for the scores, "
        "compare a richer model."
        if calibration == "sandwich"
        else "Use calibration='sandwich', whose intervals do not need a model that fits, or a "
        "richer model."
    )
    return Finding(
        "fit",
        verdict,
        f"Replicated data differ from the data in their {what} (predictive probability "
        f"{probability_text(found.probability)}; most for {found.where}): the model does not fit. "
        f"{remedy}",
        numbers,
        what,
    )


def _parameters(result: xr.DataTree, data: Responses) -> Mapping[str, Array]:
    """Return parameters to replicate data from, of shape (draw, ...), for all questions.

    They are draws of a sampler, or else copies of the estimate. Draws around a mode have the spread
    of the scores, but not that of hundreds of questions with a few answers each. Data replicated
    from them would differ from the data even if the model is true.
    """
    draws = result["posterior"].to_dataset().stack(sample=("chain", "draw"))
    if result.attrs["backend"] == "nuts" or "point_estimate" not in result:
        step = max(1, draws.sizes["sample"] // _N_DRAWS)
        chosen = draws.isel(sample=slice(0, None, step))
    else:
        estimate = result["point_estimate"].to_dataset()
        score = result["ranking"].to_dataset()["score"].sel(system=draws["system"].values)
        chosen = estimate.assign(score=score).expand_dims(sample=_N_DRAWS)
    chosen = chosen.transpose("sample", ...)
    if "question" in chosen.dims:
        chosen = chosen.reindex(question=list(data.questions))
    return {str(name): variable.values for name, variable in chosen.data_vars.items()}
