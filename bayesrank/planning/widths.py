"""How many trials are needed until the interval of every score has the required width."""

import json

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.catalog import default_method, find_method
from bayesrank.entrance import as_responses
from bayesrank.methods.bayes import dirichlet_shapes
from bayesrank.planning.forecast import forecast
from bayesrank.planning.goals import worth_scale
from bayesrank.planning.stopping import part_to_plan
from bayesrank.ranking import rank
from bayesrank.responses import Responses, prior_counts
from bayesrank.results.leaderboard import ranking_of, result_draws
from bayesrank.validation import check_integer, check_number, power_of_two


def plan_widths(
    data: Responses | ArrayLike,
    width: float,
    *,
    method: str | None = None,
    ci_prob: float = 0.95,
    further: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Tabulate the width of the interval of each score, and the trials that would narrow it.

    The protocol of [1]_ runs trials until every interval has at most this width. The forecast
    shrinks the width like the standard deviation of the score, by the part of its variance that
    trials explain (:mod:`bayesrank.planning.forecast`).

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes so far. A system without any is left out, with a warning.
    width : float
        Required width, from the lower to the upper end, in the units of the scores.
    method : str, optional
        Method whose scores are mean grades, such as ``bayes``, the method of [1]_; the default
        method of :func:`bayesrank.rank` by default.
    ci_prob : float, default 0.95
        Probability of the intervals.
    further : int, optional
        Also forecast the widths after this number of further trials per question.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per system, the widest interval first: ``system``, ``score``, ``lower``, ``upper``,
        ``width``, ``trials`` (mean number per question so far) and ``reached``; ``width_then``
        if `further` is given; and ``further_trials_needed``, the additional trials per question: 0
        if and only if the width is reached, infinite if trials on these questions cannot reach it.
        ``attrs["target"]`` is the target.

    Raises
    ------
    DataError
        If the outcomes have no worth.
    ValueError
        If an argument is invalid.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025). https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> data = Responses([[[1, 0, 1, 1]] * 10, [[1, 1, 1, 1]] * 10], systems=["a", "b"])
    >>> plan_widths(data, 0.2, method="bayes")[["system", "reached", "further_trials_needed"]]
      system  reached  further_trials_needed
    0      a    False                    2.0
    1      b     True                    0.0
    """
    data = as_responses(data, "to plan trials of questions")
    check_number(width, "width", above=0)
    if further is not None:
        check_integer(further, "further", least=0)
    data = part_to_plan(data)
    worth_scale(data)
    name = default_method(data) if method is None else method
    if not find_method(name)[0].graded:
        raise ValueError(f"method must be one whose scores are mean grades; got {name!r}")
    result = rank(data, name, ci_prob=ci_prob, random_seed=random_seed)
    ranking, draws = ranking_of(result), result_draws(result)
    lower, upper = ranking["score_lower"].values, ranking["score_upper"].values
    unit = power_of_two(draws)
    own = np.arange(len(data.systems))
    # Twice the variance is the variance of the difference of two such scores.
    spread = unit * np.sqrt(2.0) * (draws / unit).std(axis=0)
    ahead = forecast(
        data,
        own,
        own,
        spread,
        target=result.attrs["target"],
        pseudo_trials=_pseudo_trials(data, result),
    )
    now = upper - lower
    reached = now <= width
    needed = ahead.trials_until(np.minimum(width / np.maximum(now, width), 1.0))
    table = pd.DataFrame(
        {
            "system": data.systems,
            "score": ranking["score"].values,
            "lower": lower,
            "upper": upper,
            "width": now,
            "trials": data.trials.mean(axis=1),
            "reached": reached,
        }
    )
    if further is not None:
        table["width_then"] = now * ahead.remaining(float(further))
    table["further_trials_needed"] = np.where(reached, 0.0, needed)
    table = table.sort_values("width", ascending=False, kind="stable", ignore_index=True)
    table.attrs.update(target=result.attrs["target"], ci_prob=ci_prob)
    return table


def _pseudo_trials(data: Responses, result: xr.DataTree) -> NDArray[np.float64] | float:
    """Return the trials that the Dirichlet prior of a result counts as.

    The mean of p (1 - p) does not change with further trials in expectation. With n trials and s
    pseudo-trials, the posterior variance is this mean over n + s.
    """
    if result.attrs["shrunk"] != "yes":
        return 0.0
    greedy = json.loads(result.attrs["options"]).get("use_prior_outcomes", False)
    shapes = dirichlet_shapes(
        np.zeros(data.counts.shape),
        prior_counts(data),
        prior=result.attrs["prior"],
        use_prior_outcomes=greedy,
    )
    return shapes.sum(axis=-1)
