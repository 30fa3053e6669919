"""The bootstrap back end: posteriors of methods without a likelihood, from resampled data.

Smooth functions of the data are drawn with Dirichlet weights, over the trials of each question for
the benchmark target, over questions for the population target and over battles, and are moved along
their own quantiles by the bias that resamples of the observed units show. Scores that jump (voting,
ratings) are computed on whole data sets drawn anew and recentred on the point estimate: they
estimate the expected score of a new data set of the same design. Every resample has the prior unit
(:mod:`bayesrank.inference.resample.prior_unit`) among the observed ones.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayesrank.battles import Battles
from bayesrank.inference.labels import split_scores
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.resample.bca import iterated_factor, median_place, move, spread_steps
from bayesrank.inference.resample.clusters import clusters_of, warn_of_few_groups
from bayesrank.inference.resample.leave_out import without_clusters
from bayesrank.inference.resample.prior_unit import extreme_data
from bayesrank.inference.resample.weights import (
    resample,
    resample_twice,
    widening_for_single_trials,
)
from bayesrank.inference.run import N_CHAINS, Data, Estimate, Run
from bayesrank.method import load_function
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]
ScoreOf = Callable[[tuple[Any, ...]], Array]

# Data sets that are resampled once more, two from each: they tell a standard deviation to 3 %.
_RESAMPLED_AGAIN = 500


def bootstrap(run: Run) -> Estimate:
    """Estimate a score on the data and draw it from resampled data.

    Parameters
    ----------
    run : Run
        With a method of the NumPy layer.

    Returns
    -------
    Estimate

    Raises
    ------
    DataError
        If the data do not vary over the units of the target.
    """
    ranker, options = load_function(run.method.function), run.ranker_options
    point = point_arguments(run.data, run.method.data)
    score, parameters = split_scores(ranker(*point, **options))
    if run.draws == 0:
        return Estimate(score, None, point=parameters)
    if run.target == "population":
        warn_of_few_groups(cast("Responses", run.data))

    def score_of(arguments: tuple[Any, ...]) -> Array:
        return split_scores(ranker(*arguments, **options))[0]

    draws, observed = _draw(run, score_of)
    alike = _alike(run.data)
    if run.method.smooth:
        shift = median_place(score, draws) + median_place(score, observed)
        factor = _factor(run, draws, score_of)
        draws = move(draws, shift=alike @ shift, factor=alike @ factor)
    else:
        step, ends = _step(run, len(score)), (-math.inf, math.inf)
        if run.method.kind != "rating" and isinstance(run.data, Responses):
            ends = _ends(run.data, run.method.data, score_of, draws)
        factor = np.full(len(score), _t_factor(run))
        if run.method.kind == "sum" and run.target == "benchmark":
            factor = iterated_factor(draws, _draw_again(run, score_of))
        deviations = alike @ factor * (draws - alike @ draws.mean(axis=(0, 1)))
        draws = spread_steps(score + deviations, step=step, ends=ends)
    return Estimate(score, draws, point=parameters)


def _alike(data: Data) -> Array:
    """Return what averages over systems with the same answers, which stay tied, (system, system).

    What is measured from draws has noise that would tell them apart.
    """
    if not isinstance(data, Responses):
        return np.eye(len(data.systems))
    kinds = np.unique(np.nan_to_num(data.values, nan=-1.0), axis=0, return_inverse=True)[1].ravel()
    same = (kinds[:, np.newaxis] == kinds).astype(np.float64)
    return same / same.sum(axis=1, keepdims=True)


def _draw(run: Run, score_of: ScoreOf) -> tuple[Array, Array]:
    """Return the scores of resampled data, of shape (chain, draw, system).

    First with the prior unit among the observed ones; of a smooth score, further ones without it.
    """
    data = cast("Responses | Comparisons", run.data)  # point_arguments refuses ballots

    def draw_chain(seed: np.random.SeedSequence, prior: bool = True) -> Array:
        batches = resample(
            data,
            run.method.data,
            target=run.target,
            smooth=run.method.smooth,
            size=run.draws,
            rng=np.random.default_rng(seed),
            unit=run.unit,
            prior=prior,
        )
        return np.concatenate([score_of(batch) for batch in batches])

    # NumPy's generators and most of its arithmetic release the interpreter, so chains run side by
    # side; each has its own seed, so the draws do not depend on how many threads there are. The
    # matrices are small: threads of BLAS within these threads would wait longer than they work.
    workers = min(N_CHAINS, os.cpu_count() or 1)
    *seeds, last = run.seed.spawn(N_CHAINS + 1)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        chains = pool.map(draw_chain, seeds)
        observed = pool.submit(draw_chain, last, prior=False) if run.method.smooth else None
        draws = np.stack(list(chains))
    return draws, draws[:0] if observed is None else observed.result()[np.newaxis]


def _draw_again(run: Run, score_of: ScoreOf) -> Array:
    """Return scores of data resampled from resampled data, of shape (2, pair, system)."""
    rng = np.random.default_rng(run.seed.spawn(1)[0])
    batches = resample_twice(
        cast("Responses", run.data), run.method.data, size=_RESAMPLED_AGAIN, rng=rng
    )
    return np.concatenate([[score_of(one) for one in pair] for pair in batches], axis=1)


def _factor(run: Run, draws: Array, score_of: ScoreOf) -> Array:
    """Return how much wider than its draws the distribution of a smooth score is.

    Cells of one trial show no noise. Where the answers to a question decide how much it counts, few
    may decide, and weights that are drawn at random hardly ever leave one out: the spread is at
    least that of the jackknife.
    """
    spread = draws.std(axis=(0, 1))
    if not isinstance(run.data, Responses):
        return np.ones_like(spread)
    if run.target == "benchmark":
        return widening_for_single_trials(run.data)
    if not run.method.weighs_questions:
        return np.ones_like(spread)
    table = without_clusters(run.data, run.method.data, score_of)
    wanted = math.sqrt(table.widening) * table.standard_errors
    return np.maximum(np.divide(wanted, spread, out=np.ones_like(spread), where=spread > 0.0), 1.0)


def _t_factor(run: Run) -> float:
    """Return the factor for deviations over n units drawn with replacement.

    The variance of their mean is (n - 1) / n of what it should be, and that of Student's t is
    (n - 1) / (n - 3) of it. The trials of a stream are few too, but of many questions; other trials
    are drawn from shares that allow for it.
    """
    if run.target == "population":
        n = int(clusters_of(cast("Responses", run.data)).max()) + 1
        return math.sqrt(n / max(n - 3, 1))
    if run.method.kind != "rating":
        return 1.0
    if isinstance(run.data, Battles):
        n = run.data.units[run.unit]
        return math.sqrt(n / max(n - 3, 1))
    n = cast("Responses", run.data).shape[2]
    return math.sqrt(n / (n - 1))


def _ends(data: Responses, kind: str, score_of: ScoreOf, draws: Array) -> tuple[float, float]:
    """Return the least and the largest score that a system has on these questions.

    By the draws and by the data of the best and of the worst system: what one may have all may.
    """
    found = [float(score_of(point_arguments(one, kind))[0]) for one in extreme_data(data)]
    return min(*found, float(draws.min())), max(*found, float(draws.max()))


def _step(run: Run, n_systems: int) -> float:
    """Return the step between two values of a score, 0 for scores that take any."""
    step = run.method.step
    return load_function(step)(run.ranker_options, n_systems) if isinstance(step, str) else step
