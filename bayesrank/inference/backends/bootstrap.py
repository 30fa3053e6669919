"""The bootstrap back end: posteriors of methods without a likelihood, from resampled data.

docs/uncertainty.md says how smooth scores, scores that jump (voting, ratings) and percentages of
the largest are drawn. Scores that count (majorities, levels, points) are also spread evenly over
the step between two counts, which leaves the order of different counts that do not vary as it is.
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
from bayesrank.inference.fits.exact_ties import exchange_alike
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.resample.bca import (
    correct_bias,
    iterate,
    scale,
    scale_to_largest,
    show_leverage,
)
from bayesrank.inference.resample.clusters import clusters_of, warn_of_few_groups
from bayesrank.inference.resample.leave_out import without_clusters
from bayesrank.inference.resample.pseudo_unit import loosen
from bayesrank.inference.resample.trials import (
    redraw_twice,
    runs_of,
    widening_for_single_trials,
)
from bayesrank.inference.resample.weights import resample
from bayesrank.inference.run import N_CHAINS, Estimate, Run, split_scores
from bayesrank.method import load_function
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]
ScoreOf = Callable[[tuple[Any, ...]], Array]

# Data sets whose mean score stands for the expected one of a population: draws are wider by the
# noise of that mean, which makes up for the little that they learn of rare turns. The fewest of
# which a mean lies between a victory and a defeat.
_OF_EACH = 2

# Data sets that are resampled once more, two from each: they tell a standard deviation to 3 %.
_RESAMPLED_AGAIN = 500


def bootstrap(run: Run) -> Estimate:
    """Estimate a score of the NumPy layer on the data and draw it from resampled data.

    DataError if the data do not vary over the units of the target.
    """
    ranker, options = load_function(run.method.function), run.ranker_options
    point = point_arguments(run.data, run.method.data)
    score, parameters = split_scores(ranker(*point, **options))
    if run.draws == 0:
        return Estimate(score, None, point=parameters)
    data = cast("Responses | Comparisons", run.data)  # point_arguments refuses ballots
    if run.target == "population" and isinstance(data, Responses):
        warn_of_few_groups(data)
    kind, step = run.method.kind, _step(run, len(score))
    # Another question may turn a majority where few decide; sums hardly notice. Ratings do not add
    # up over questions: they hang on the order of the answers.
    turns = step > 0.0 and kind == "majority"
    adds_up = not turns and kind != "rating"

    def score_of(arguments: tuple[Any, ...]) -> Array:
        scores = split_scores(ranker(*arguments, **options))[0]
        # What varies like other scores are the shares that the systems have of all together.
        return scores / scores.sum(axis=-1, keepdims=True) if kind == "share" else scores

    draws = _recentre(run, score, _draw(run, score_of, turns=turns, adds_up=adds_up))
    if run.target == "population" and isinstance(data, Responses) and adds_up:
        table = without_clusters(data, run.method.data, score_of, run.size)
        draws = show_leverage(draws, table, always=run.method.weighs_questions)
    if kind == "smooth":
        draws = correct_bias(score, draws)
    rng = np.random.default_rng(run.seed.spawn(1)[0])
    draws = draws + step * _steps(draws.shape, rng) if step else loosen(run, draws, score_of, rng)
    if isinstance(data, Responses):
        draws = exchange_alike(draws, data, rng)
    if kind == "share":
        draws = scale_to_largest(score / score.sum(), draws)
    # What widens draws knows no range.
    return Estimate(score, _within_range(run, draws), point=parameters)


def _step(run: Run, n_systems: int) -> float:
    """Return the step between two values of the score, 0 for scores that take any."""
    step = run.method.step
    if isinstance(step, str):
        step = load_function(step)(run.ranker_options, n_systems)
    return cast("float", step)


def _leaps(run: Run) -> bool:
    """Return whether one vote is most of the score, as with winning votes over a population."""
    return run.target == "population" and run.options.get("variant") == "winning_votes"


def _draw(run: Run, score_of: ScoreOf, *, turns: bool, adds_up: bool) -> Array:
    """Return draws of the scores, of shape (chain, draw, system)."""
    data = cast("Responses | Comparisons", run.data)

    def draw_chain(seed: np.random.SeedSequence) -> Array:
        batches = resample(
            data,
            run.method.data,
            target=run.target,
            smooth=run.method.smooth,
            size=run.draws,
            rng=np.random.default_rng(seed),
            shuffled=turns,
            of_each=_OF_EACH if _leaps(run) else 0,
            unit=run.unit,
        )
        scores = np.concatenate([score_of(batch) for batch in batches])
        return scores.reshape(run.draws, -1, scores.shape[-1]).mean(axis=1)

    def draw_again(seed: np.random.SeedSequence) -> Array:
        rng, kind = np.random.default_rng(seed), run.method.data
        batches = redraw_twice(cast("Responses", data), kind, size=_RESAMPLED_AGAIN, rng=rng)
        return np.concatenate([[score_of(one) for one in pair] for pair in batches], axis=1)

    # NumPy's generators and most of its arithmetic release the interpreter, so chains run side by
    # side; each has its own seed, so the draws do not depend on how many threads there are. The
    # matrices are small: threads of BLAS within these threads would wait longer than they work.
    workers = min(N_CHAINS, os.cpu_count() or 1)
    # Whole runs have all kinds of questions, most of which lie beside no jump.
    jumps = not run.method.smooth and run.target == "benchmark" and run.unit == "trial"
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        chains = pool.map(draw_chain, run.seed.spawn(N_CHAINS))
        again = pool.submit(draw_again, run.seed.spawn(1)[0]) if adds_up and jumps else None
        draws = np.stack(list(chains))
    return draws if again is None else iterate(draws, again.result())


def _recentre(run: Run, score: Array, draws: Array) -> Array:
    """Return draws with the spread of independent units, around the estimate if they jump."""
    if run.method.smooth:
        if run.unit == "trial" and run.target == "benchmark":
            draws = scale(draws, widening_for_single_trials(cast("Responses", run.data)))
        return draws
    if not _leaps(run):
        draws = score + _widening(run) * (draws - draws.mean(axis=(0, 1)))
    return _reflect_level(draws) if run.method.kind == "rating" else draws


def _reflect_level(draws: Array) -> Array:
    """Return draws with the deviations of the level that all systems share turned around.

    Ratings rise and fall together with the order of the questions, by amounts that may be skewed.
    The truth is the estimate less its error (the basic bootstrap; Davison and Hinkley 1997, section
    5.2, doi:10.1017/CBO9780511802843). Differences do not change.
    """
    level = draws.mean(axis=-1, keepdims=True)
    return draws - 2.0 * (level - level.mean())


def _steps(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return deviations (chain, draw, system) over a step, evenly from -1/2 to 1/2, with mean 0.

    An expected score lies between the values that a score can take. Where few of the resamples, or
    none, have another value, it may still be off this one by a part of a step. Every system has
    deviations of its own: equal counts are no sign of equal expectations.
    """
    size = math.prod(shape[:-1])
    evenly = (np.arange(size) + 0.5) / size - 0.5
    return rng.permuted(np.tile(evenly, (shape[-1], 1)), axis=1).T.reshape(shape)


def _widening(run: Run) -> float:
    """Return the factor for deviations over n units drawn with replacement.

    The variance of their mean is (n - 1) / n of what it should be; over few units Student's t adds
    (n - 1) / (n - 3). The trials of a stream are few too, but of many questions; other trials are
    drawn from shares that allow for it.
    """
    if run.target == "population":
        n = int(clusters_of(cast("Responses", run.data)).max()) + 1
    elif run.unit == "run":
        n = int(runs_of(cast("Responses", run.data)).sum(axis=1).min())
    elif run.method.kind != "rating":
        return 1.0
    elif isinstance(run.data, Battles):
        n = run.data.units[run.unit]
    else:
        n = cast("Responses", run.data).shape[2]
        return math.sqrt(n / (n - 1))
    return math.sqrt(n / max(n - 3, 1))


def _within_range(run: Run, draws: Array) -> Array:
    """Return draws that end where the score does by its definition; no truth is outside."""
    n_systems, name = draws.shape[-1], run.method.range
    if not name:
        return draws
    if name == "grades":
        data = cast("Responses", run.data)
        # Scores on a scale are shares of it until the result is built.
        worths = np.array([0.0, 1.0]) if data.scores is not None else data.category_weights
        return np.clip(draws, worths.min(), worths.max())
    is_margin = run.options.get("score_type") == "advantage_vs_equilibrium"
    longest = math.sqrt(1.0 - 1.0 / n_systems)  # of a vector of norm one and sum zero
    n_questions = run.data.shape[1] if isinstance(run.data, Responses) else 0
    ends = {
        "payoffs": (-1 if is_margin else 0, 1),
        "shares": (0, 1),
        "unit vector": (-longest, longest),
        "levels": (1, n_systems),
        "rounds": (0, n_systems - 1),
        "balance": (1 - n_systems, n_systems - 1),
        "points": (0, n_questions * (n_systems - 1)),
        "losses": (-n_questions, 0),
    }
    return np.clip(draws, *ends[name])
