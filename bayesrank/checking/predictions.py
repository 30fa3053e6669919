"""Predictive checks: data replicated from a result, and their differences from the data.

References
----------
.. [1] A. Gelman, X.-L. Meng and H. Stern. Posterior predictive assessment of model fitness via
   realized discrepancies. Statistica Sinica 6 (1996).
   https://www3.stat.sinica.edu.tw/statistica/oldpdf/A6n41.pdf
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import METHODS
from bayesrank.log_odds import logistic
from bayesrank.method import load_function
from bayesrank.responses import Responses
from bayesrank.results.win_rates import point_tie, stated_likelihood, win_chances

Array = NDArray[np.float64]

# Groups of questions by difficulty.
_N_BINS = 5

_TINY = 1e-12
_ROUNDING = 1e-9


class Discrepancy(NamedTuple):
    """How the data compare with replicated ones.

    `probability` is the share of draws in which replicated data are further from the model than
    the data, `where` says where the data are furthest from it.
    """

    probability: float
    where: str


# What models of pairs have beside strengths, grades and ties, and what no count of wins shows:
# effects of covariates and of the order, and scores by group or period.
_FURTHER = frozenset({"effect", "order_effect", "group_score", "history"})


class PairMisfit(NamedTuple):
    """How far win rates are from those of a model of pairs.

    `share` is the root mean squared difference over pairs beyond chance; `first` and `second` are
    the pair with the largest difference in standard errors, of which `observed` and `expected` are
    the shares of decisive comparisons that the first won.
    """

    share: float
    first: str
    second: str
    observed: float
    expected: float


def answer_log_odds(result: xr.DataTree, data: Responses, named: Mapping[str, Array]) -> Array:
    """Return log-odds of right answers under draws of an item model, named parameters (draw, ...).

    Of shape (draw, system, question) or (draw, system, question, trial); NaN for questions without
    parameters.
    """
    method = METHODS[result.attrs["method"]]
    known = {
        name: value
        for name, value in json.loads(result.attrs["options"]).items()
        if name in method.options
    }
    model = load_function(method.gradient or "")(data, **known)
    return model.predictor(named)


def accuracy_by_difficulty(
    log_odds: Array, data: Responses, rng: np.random.Generator
) -> Discrepancy:
    """Compare the accuracy of each system by the difficulty of the questions.

    Log-odds are those of :func:`answer_log_odds`; questions where they are not finite are left out.
    """
    correct, trials = data.binary_counts
    chance = logistic(log_odds)
    if chance.ndim == 4:
        weight = data.observed / np.maximum(trials, 1)[..., np.newaxis]
        spread = (trials * (weight * chance * (1 - chance)).sum(axis=-1)).astype(float)
        chance = (weight * chance).sum(axis=-1)
    else:
        spread = trials * chance * (1.0 - chance)
    kept = np.isfinite(log_odds).all(axis=(0, *range(3, log_odds.ndim))).all(axis=0)
    chance, spread = chance[..., kept], spread[..., kept]
    correct, trials = correct[:, kept], trials[:, kept]
    # Bins of difficulties in each draw; bins of observed rates, or of estimates from them, would
    # select on noise.
    places = chance.mean(axis=1).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    n_questions, n_bins = chance.shape[2], min(_N_BINS, chance.shape[2])
    bins = (places * n_bins // n_questions)[..., np.newaxis] == np.arange(n_bins)
    bins = bins.astype(np.float64)
    drawn, variance = rng.binomial(trials, chance), spread @ bins
    gaps, replicated = (
        _interaction((each - trials * chance) @ bins, variance) for each in (correct, drawn)
    )
    worse = float(((replicated**2).sum(axis=(1, 2)) >= (gaps**2).sum(axis=(1, 2))).mean())
    gaps = np.abs(gaps.mean(axis=0))
    system, part = np.unravel_index(int(gaps.argmax()), gaps.shape)
    level = ("hardest", "hard", "middling", "easy", "easiest")[part * 4 // max(n_bins - 1, 1)]
    return Discrepancy(worse, f"{data.systems[system]} on the {level} questions")


def _interaction(deviation: Array, variance: Array) -> Array:
    """Return deviations in standard deviations, without common effects of rows and of columns.

    Errors of abilities and of difficulties, which priors pull towards their means, have such
    effects. Both arrays are (draw, row, column).
    """
    scale = variance + _TINY
    by_system, by_bin = scale.sum(axis=2, keepdims=True), scale.sum(axis=1)
    share = scale / by_system
    information = by_bin[:, np.newaxis] * np.eye(scale.shape[2]) - share.mT @ scale
    left = deviation - share * deviation.sum(axis=2, keepdims=True)
    effect = np.linalg.pinv(information, hermitian=True) @ left.sum(axis=1)[..., np.newaxis]
    left -= scale * (effect.mT - share @ effect)
    # What is left of tables with common effects only is rounding.
    return np.where(np.abs(left) > _ROUNDING * np.abs(deviation).max(), left, 0.0) / np.sqrt(scale)


def win_matrix(log_odds: Array, data: Responses, rng: np.random.Generator) -> Discrepancy:
    """Compare how often each system was right and another one wrong in the same trial.

    This detects systems whose right answers fall on the same trials more often than the model
    predicts. What trials in another order would give is subtracted, which does not depend on the
    chances. Trial t must be the same run for all systems.
    """
    kept = np.isfinite(log_odds).reshape(*log_odds.shape[:3], -1).all(axis=(0, 1, 3))
    observed = data.observed.astype(float) * kept[:, np.newaxis]
    chance = np.nan_to_num(logistic(log_odds), nan=0.5)
    if chance.ndim == 3:
        chance = chance[..., np.newaxis]

    def beyond(right: Array) -> Array:
        mean = right.sum(axis=-1, keepdims=True) / np.maximum(data.trials, 1)[..., np.newaxis]
        expected = _wins(mean * observed, observed)
        return (_wins(right, observed) - expected) / np.sqrt(np.maximum(expected, 1.0))

    gaps = beyond(observed * (data.outcomes == 1))
    replicated = (beyond(observed * (rng.random(observed.shape) < p)) for p in chance)
    worse = np.mean([(each**2).sum() >= (gaps**2).sum() for each in replicated])
    first, second = np.unravel_index(int(np.abs(gaps).argmax()), gaps.shape)
    return Discrepancy(float(worse), f"{data.systems[first]} against {data.systems[second]}")


def pair_misfit(result: xr.DataTree) -> PairMisfit | None:
    """Compare win rates with those of a model of pairs.

    None for models with more than strengths and ties.
    """
    options = json.loads(result.attrs["options"])
    groups = (name for name in ("posterior", "point_estimate") if name in result.children)
    if any(not _FURTHER.isdisjoint(result[name].data_vars) for name in groups):
        return None
    observed = result["observed_data"].to_dataset()
    wins = observed["wins"].transpose("system", "opponent").values.astype(float)
    if options.get("ties") == "half":
        wins = wins + observed["ties"].values / 2
    names = observed["system"].values
    score = result["ranking"].to_dataset()["score"].sel(system=names).values
    gap = score[:, np.newaxis] - score
    decisive = wins + wins.T
    likelihood = stated_likelihood(result)
    rate, tied = win_chances(likelihood, gap, point_tie(result, likelihood))
    expected = (rate - tied / 2) / (1 - tied)
    first, second = np.nonzero(np.triu(decisive, 1) > 0)
    if not len(first):
        return None
    n, p = decisive[first, second], expected[first, second]
    share = wins[first, second] / n
    chance = p * (1 - p) / n
    excess = (n * ((share - p) ** 2 - chance)).sum() / n.sum()
    worst = int((np.abs(share - p) / np.sqrt(chance + _TINY)).argmax())
    i, j = int(first[worst]), int(second[worst])
    if share[worst] < 0.5:
        return PairMisfit(
            float(np.sqrt(max(excess, 0.0))),
            str(names[j]),
            str(names[i]),
            1 - share[worst],
            1 - p[worst],
        )
    return PairMisfit(
        float(np.sqrt(max(excess, 0.0))), str(names[i]), str(names[j]), share[worst], p[worst]
    )


def _wins(right: Array, observed: Array) -> Array:
    """Sum right against wrong over questions and trials, of shape (system, opponent)."""
    flat = right.reshape(len(right), -1)
    return flat @ (observed.reshape(len(observed), -1) - flat).T * (1.0 - np.eye(len(right)))
