"""Win rates of battles with intervals: the metrics of an arena."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesrank.catalog import default_method, find_method
from bayesrank.design import part_with_outcomes
from bayesrank.entrance import as_comparisons
from bayesrank.evaluation.metrics import metric_labels
from bayesrank.evaluation.table import Evaluation
from bayesrank.method import read_call
from bayesrank.ranking import rank
from bayesrank.results.leaderboard import result_draws
from bayesrank.results.summary import summarize_evidence
from bayesrank.results.win_rates import average_win_rates, expected_win_rates
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

AVERAGE = "average_win_rate"
# The default metrics.
BATTLE_METRICS = ("win_rate", "win_rate(ties_count='half')", AVERAGE)


def evaluate_battles(
    data: "Comparisons | ArrayLike",
    metrics: str | Sequence[str] = BATTLE_METRICS,
    *,
    ci_prob: float = 0.95,
    random_seed: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Evaluate each system by its win rates, or by other methods that rank battles.

    Parameters
    ----------
    data : Battles, Comparisons or pandas.DataFrame
        The battles.
    metrics : str or sequence of str
        Names of methods, with options in parentheses, and ``average_win_rate``: the expected share
        of wins under the default model, ties as half, if a system met all others equally
        often. By default this metric, and the observed win rates with ties as losses and as half.
    ci_prob : float, default 0.95
        Probability of the equal-tailed intervals.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.
    **settings
        Further keywords of :func:`bayesrank.rank`, such as `unit`.

    Returns
    -------
    pandas.DataFrame
        As :func:`bayesrank.evaluate`; the observed mean is the win rate with ties as half. A system
        without a battle has no numbers. ``attrs["unit"]`` has the independent units by metric.

    Raises
    ------
    ValueError
        If a name is not that of a method.
    DataError
        If a method cannot rank battles.

    Examples
    --------
    >>> from bayesrank import Battles
    >>> log = Battles(list("aabc") * 3, list("bcca") * 3, ["a", "tie", "b", "a"] * 3)
    >>> evaluate_battles(log, "win_rate").round(2)[["system", "metric", "score"]]
      system    metric  score
    0      a  win_rate   0.67
    1      b  win_rate   0.50
    2      c  win_rate   0.00
    """
    data = as_comparisons(data, "to evaluate battles")
    calls = {label: read_call(label, "metrics") for label in metric_labels(metrics)}
    for name, options in calls.values():
        if name != AVERAGE:
            find_method(name, "metrics")
        elif options:
            raise ValueError(f"options of {AVERAGE} must be none; got {min(options)!r}")
    settings = {**settings, "ci_prob": ci_prob, "random_seed": random_seed}
    everyone = pd.Index(data.systems, name="system")
    data = part_with_outcomes(data)
    observed = summarize_evidence(data, ci_prob=ci_prob)["observed_mean"].values
    tables, units = [], {}
    for label, (name, options) in calls.items():
        if name == AVERAGE:
            result = rank(data, default_method(data), **settings)
            table = average_win_rates(result).rename(
                columns={
                    "win_rate": "score",
                    "win_rate_lower": "lower",
                    "win_rate_upper": "upper",
                }
            )
        else:
            result = rank(data, name, **settings, **options)
            table = _of_scores(result)
        units[label] = result.attrs["unit"]
        table = table.assign(observed_mean=observed).set_index("system").reindex(everyone)
        tables.append(table.reset_index().assign(metric=label, place=range(len(everyone))))
    stacked = pd.concat(tables, ignore_index=True).sort_values("place", kind="stable")
    columns = ["system", "metric", "score", "observed_mean", "mean", "sd", "lower", "upper"]
    stacked = Evaluation(stacked.reindex(columns=columns).reset_index(drop=True))
    stacked.attrs.update(
        unit=units, target=dict.fromkeys(calls, "battles"), ci_prob=ci_prob, empty="no battle"
    )
    return stacked


def compare_battles(
    data: "Comparisons | ArrayLike",
    method: str | None = None,
    *,
    ci_prob: float = 0.95,
    **settings: Any,
) -> pd.DataFrame:
    """Tabulate the expected win rates of every two systems under a model.

    Parameters
    ----------
    data : Battles, Comparisons or pandas.DataFrame
        The battles.
    method : str, optional
        A model of paired comparisons; the default of :func:`bayesrank.rank` by default.
    ci_prob : float, default 0.95
        Probability of the intervals, and joint probability with which all resolved orders hold.
    **settings
        Further keywords of :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        As :func:`bayesrank.results.win_rates.expected_win_rates`, and ``resolved``, a joint
        decision for all pairs.
    """
    data = as_comparisons(data, "to compare win rates")
    result = rank(data, method or default_method(data), ci_prob=ci_prob, **settings)
    table = expected_win_rates(result)
    resolved = result["ranking"]["resolved"].to_pandas()
    pairs = zip(table["system"], table["opponent"], strict=True)
    table["resolved"] = [bool(resolved.loc[pair]) for pair in pairs]
    name, unit = result.attrs["method"], result.attrs["unit"]
    table.attrs.update(unit={name: unit}, target={name: "battles"}, ci_prob=ci_prob)
    return table


def _of_scores(result: "xr.DataTree") -> pd.DataFrame:
    """Return score, moments and interval of each system from a result of rank()."""
    ranking, draws = result["ranking"].to_dataset(), result_draws(result)
    return pd.DataFrame(
        {
            "system": ranking["system"].values.astype(str),
            "score": ranking["score"].values,
            "mean": draws.mean(axis=0),
            "sd": draws.std(axis=0),
            "lower": ranking["score_lower"].values,
            "upper": ranking["score_upper"].values,
        }
    )
