"""Comparison of two systems under a metric, and ranks with their uncertainty."""

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.design import part_with_outcomes
from bayesrank.evaluation.averages import AverageDistribution, average_distribution
from bayesrank.evaluation.battles import compare_battles
from bayesrank.evaluation.metrics import Metric, parse_metrics
from bayesrank.evaluation.posteriors import metric_scores
from bayesrank.evaluation.ranked import metric_weights, ranked_result, worth_range
from bayesrank.evaluation.scores import Scores
from bayesrank.evaluation.table import (
    check_prior_weight,
    evaluate,
    evaluated_data,
    prior_evidence,
    require_outcomes,
    responses_of,
)
from bayesrank.evaluation.tree import evaluation_tree
from bayesrank.responses import Responses
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.leaderboard import ranking_of
from bayesrank.results.ranks import adjacent_z_ranks, joint_rank_sets, rank_scores, resolved_pairs
from bayesrank.validation import check_between_0_and_1, check_number
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FloatArray = NDArray[np.float64]
RankRule = Literal["joint", "adjacent_z"]

# Draws per chain for joint decisions, if a posterior has no draws.
_DRAWS = 2500


def compare(
    data: "Responses | Comparisons | ArrayLike",
    metric: str | None = None,
    *,
    prior_weight: float = 0.0,
    ci_prob: float = 0.95,
    random_seed: int | None = None,
) -> pd.DataFrame:
    r"""Tabulate the difference of every two systems under a metric.

    For the accuracy, which is the default, and for unbiased metrics of k trials the draws are those
    of :func:`bayesrank.rank`, and the numbers those of
    :func:`bayesrank.results.decisions.pairwise_decisions`.

    For ``bayes`` and metrics with ``estimator="posterior_mean"``, posteriors of different systems
    are independent. So the difference of two averages over questions is a sum of independent terms,
    and its distribution is exact, as in :func:`evaluate`. The table also has the rule of [1]_:
    :math:`z = (\mu_i - \mu_j) / \sqrt{\sigma_i^2 + \sigma_j^2}` and the ranking confidence
    :math:`\rho = \Phi(z)`.

    Parameters
    ----------
    data : Responses, Battles, Comparisons, pandas.DataFrame or array_like
        Categories of two systems or more; or battles, as for
        :func:`bayesrank.evaluation.battles.compare_battles`.
    metric : str, optional
        The accuracy by default, for battles the default model. As in :func:`evaluate`; not the
        posterior mean of ``max_at_k`` with three categories or more.
    prior_weight : float, default 0
        As in :func:`evaluate`.
    ci_prob : float, default 0.95
        Probability of the interval of each pair, and joint probability with which all resolved
        orders hold.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the better system first: ``system``, ``opponent``, ``difference`` of the
        scores, ``difference_lower`` and ``difference_upper`` (quantiles), ``z``, ``rho``,
        ``superiority`` (the probability that the first is better) and ``resolved``, a joint
        decision for all pairs (:func:`bayesrank.results.ranks.resolved_pairs`). ``attrs["target"]``
        has the target by metric.

    Raises
    ------
    ValueError
        If there is only one system, or an argument is invalid.
    DataError
        If the data do not have what the metric needs.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), section 2.7. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> data = Responses([[[1, 1, 1]], [[0, 1, 0]]], systems=["a", "b"])
    >>> compare(data, "bayes")[["system", "opponent", "difference", "superiority"]].round(3)
      system opponent  difference  superiority
    0      a        b         0.4        0.929
    """
    known = evaluated_data(data)
    if isinstance(known, Comparisons):
        if prior_weight:
            raise ValueError(f"prior_weight must be 0 for battles; got {prior_weight!r}")
        return compare_battles(known, metric, ci_prob=ci_prob, random_seed=random_seed)
    responses = part_with_outcomes(known)
    wanted = _one_metric(metric or DEFAULT_METHOD)
    require_outcomes(wanted, responses)
    if len(responses.systems) < 2:
        raise ValueError(f"data must have two systems or more; got {len(responses.systems)}")
    check_between_0_and_1(ci_prob, "ci_prob")
    low, high = worth_range(wanted, responses)
    if low == high:
        got = metric_weights(wanted, responses).tolist()
        raise ValueError(f"weights must differ to compare systems; got {got}")
    check_prior_weight(responses, prior_weight)
    if wanted.ranked:
        result = ranked_result(wanted, responses, ci_prob=ci_prob, random_seed=random_seed)
        table = pairwise_decisions(result).rename(columns={"confidence": "rho"})
        table = table.drop(columns="intervals_overlap")
        table.attrs.update(target={wanted.label: result.attrs["target"]}, ci_prob=ci_prob)
        return table
    draws = _joint_draws(responses, wanted.label, prior_weight, random_seed)
    prior = prior_evidence(responses, prior_weight)
    table = _compare_exactly(wanted, responses, prior, draws, ci_prob)
    table.attrs.update(target={wanted.label: "benchmark"}, ci_prob=ci_prob)
    return table


def _compare_exactly(
    metric: Metric, data: Responses, prior: FloatArray, draws: FloatArray, ci_prob: float
) -> pd.DataFrame:
    """Tabulate differences by convolution; ``resolved`` comes from draws of all systems."""
    weights = metric_weights(metric, data)
    scores = [
        _scores_or_raise(metric, counts, before, weights)
        for counts, before in zip(data.counts.astype(np.float64), prior, strict=True)
    ]
    own = [average_distribution(each) for each in scores]
    mean = np.array([each.mean for each in own])
    sd = np.array([each.sd for each in own])
    order = np.argsort(-mean, kind="stable")
    first, second = np.triu_indices(len(order), 1)
    first, second = order[first], order[second]
    tails = np.array([0.5 - ci_prob / 2, 0.5 + ci_prob / 2])
    bounds, superiority = np.empty((len(first), 2)), np.empty(len(first))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        gap = _difference(scores[i], scores[j])
        bounds[pair] = gap.quantiles(tails)
        superiority[pair] = 1.0 - gap.probability_below(np.zeros(1))[0]
    names = np.array(data.systems)
    difference = mean[first] - mean[second]
    z = _standardized(difference, np.hypot(sd[first], sd[second]))
    return pd.DataFrame(
        {
            "system": names[first],
            "opponent": names[second],
            "difference": difference,
            "difference_lower": bounds[:, 0],
            "difference_upper": bounds[:, 1],
            "z": z,
            "rho": _normal_probability(z),
            "superiority": superiority,
            "resolved": resolved_pairs(mean, draws, ci_prob=ci_prob)[first, second],
        }
    )


def _joint_draws(
    data: Responses, metric: str, prior_weight: float, random_seed: int | None
) -> FloatArray:
    tree = evaluation_tree(
        data, metric, prior_weight=prior_weight, draws=_DRAWS, random_seed=random_seed
    )
    return tree["posterior"].to_dataset()["score"].values.reshape(-1, len(data.systems))


def rank_with_intervals(
    data: "Responses | ArrayLike",
    metric: str = DEFAULT_METHOD,
    *,
    rule: RankRule = "joint",
    prior_weight: float = 0.0,
    ci_prob: float = 0.95,
    z: float = 1.645,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Rank systems by a metric, with the uncertainty of the ranks.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Categories of two systems or more.
    metric : str
        The accuracy by default. As in :func:`evaluate`.
    rule : {"joint", "adjacent_z"}, default "joint"
        ``"joint"``: sets of ranks that hold all true ranks together with probability `ci_prob`.
        ``"adjacent_z"``: the rule of [1]_, by which neighbours with a z-statistic below `z` share a
        rank. It chains: the first and the last system of a shared rank may be far apart.
    prior_weight : float, default 0
        As in :func:`evaluate`.
    ci_prob : float, default 0.95
        Probability of the intervals of the scores, and joint probability of the sets of ranks.
    z : float, default 1.645
        The z-statistic from which on ``"adjacent_z"`` separates neighbours.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per system, best first: ``rank``, ``system``, ``mean``, ``sd``, ``lower``,
        ``upper``; and ``rank_lower`` and ``rank_upper`` by the joint rule, or ``shared_rank``
        (dense) by the other.

    Raises
    ------
    ValueError
        If an argument is not one that can be used.
    DataError
        If the data do not have what the metric needs.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), section 2.7. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> data = Responses([[[1, 1, 1, 1]] * 9, [[0, 0, 0, 1]] * 9, [[0, 0, 1, 0]] * 9])
    >>> rank_with_intervals(data)[["rank", "system", "rank_lower", "rank_upper"]]
       rank    system  rank_lower  rank_upper
    0     1  system 1           1           1
    1     2  system 2           2           3
    2     2  system 3           2           3
    """
    if rule not in ("joint", "adjacent_z"):
        raise ValueError(f"rule must be 'joint' or 'adjacent_z'; got {rule!r}")
    check_number(z, "z", above=0)
    responses = part_with_outcomes(responses_of(data))
    wanted = _one_metric(metric)
    settings = {"prior_weight": prior_weight, "random_seed": random_seed}
    table = evaluate(responses, wanted.label, ci_prob=ci_prob, **settings)
    score = table["score" if wanted.ranked else "mean"].to_numpy()
    table.insert(0, "rank", rank_scores(score))
    if rule == "adjacent_z":
        table["shared_rank"] = adjacent_z_ranks(table["mean"], table["sd"], z=z)
    else:
        if wanted.ranked:
            result = ranked_result(wanted, responses, ci_prob=ci_prob, random_seed=random_seed)
            resolved = ranking_of(result)["resolved"].values
        else:
            draws = _joint_draws(responses, wanted.label, **settings)
            resolved = resolved_pairs(score, draws, ci_prob=ci_prob)
        table["rank_lower"], table["rank_upper"] = joint_rank_sets(resolved)
    table = table.drop(columns=["metric", "score"])
    return table.sort_values("rank", kind="stable", ignore_index=True)


def _one_metric(metric: str) -> Metric:
    parsed = parse_metrics(metric) if isinstance(metric, str) else ()
    if len(parsed) != 1:
        raise ValueError(f"metric must be one name; got {metric!r}")
    return parsed[0]


def _scores_or_raise(
    metric: Metric, counts: FloatArray, prior: FloatArray, weights: FloatArray
) -> Scores:
    scores = metric_scores(metric, counts, prior, weights)
    if scores is None:
        raise ValueError(
            f"metric must have an exact posterior, which {metric.name} has for two categories "
            f"only; got {len(weights)} categories: compare draws of evaluation_tree() instead"
        )
    return scores


def _difference(first: Scores, second: Scores) -> AverageDistribution:
    """Return the distribution of the difference of two averages.

    It is an average over the questions of both. The scales of the second are negative, and the
    scales of each are corrected for its own number of questions.
    """
    sizes = len(first.scale), len(second.scale)
    both = sum(sizes)
    signed = dataclasses.replace(
        first,
        density=lambda u: np.concatenate([first.density(u), second.density(u)]),
        sharpness=max(first.sharpness, second.sharpness),
        scale=np.concatenate([first.scale / sizes[0], -second.scale / sizes[1]]) * both,
        shift=np.concatenate([first.shift / sizes[0], -second.shift / sizes[1]]) * both,
    )
    return average_distribution(signed)


def _standardized(difference: FloatArray, sd: FloatArray) -> FloatArray:
    z = np.divide(difference, sd, out=np.full_like(sd, np.inf), where=sd > 0)
    return np.where(difference == 0.0, 0.0, z)


def _normal_probability(z: FloatArray) -> FloatArray:
    from scipy.special import ndtr  # slow to import

    return ndtr(z)
