"""The bootstrap back end: posteriors of methods without a likelihood, from resampled data.

docs/uncertainty.md describes the draws of smooth scores and of discontinuous scores (voting,
ratings). Percentages of the largest are corrected for the bias of a maximum. Draws of counts
(majorities, levels, points) get a uniform deviation over the step between two counts, so that
counts that do not vary have intervals. A score that does not vary with the prior unit either is
certain, such as the value of a game (`nash`).

Left out, because the coverage of 20 to 60 simulated data sets changed little: shifts and
accelerations of BCa intervals (1.2 points at most), and a double bootstrap of `borda` and
`win_rate` (1.9).
"""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.inference.fits.fit import symmetric_root
from bayesrank.inference.fits.symmetry import exchange_alike
from bayesrank.inference.resample.arguments import Arguments, Array, ScoreOf, point_arguments
from bayesrank.inference.resample.corrections import jackknife_corrected, with_pseudo_unit
from bayesrank.inference.resample.units import (
    ROUNDING,
    clusters_of,
    equal_units,
    warn_of_few_groups,
    warn_of_few_units,
)
from bayesrank.inference.resample.weights import resample, widening_for_fewer_trials
from bayesrank.inference.run import N_CHAINS, Data, Estimate, Run, draw_chains, split_scores
from bayesrank.method import load_function
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

# Units with many answers or votes each, as questions have many trials.
_WHOLE_UNITS = frozenset({"run", "judge", "prompt"})

# Data sets from each population of questions: their mean score is a draw of winning votes. Two are
# the fewest whose mean can lie between a victory and a defeat. The noise of the mean widens the
# draws, which compensates for majorities that few data sets reverse. With ten, coverage was 2 %
# lower.
_OF_EACH = 2

# Matches that ratings play for all draws, which takes about ten seconds, as with 100 systems and
# 2,000 events; further draws are smoothed copies. From 400 streams the quantiles of 2,000 draws are
# as exact as from 2,000 streams: the spread is known to 1 / sqrt(2 * 400).
_MOST_MATCHES = 2e10
# Streams of matches in each chain, at least.
_LEAST_STREAMS = 25


def bootstrap(run: Run) -> Estimate:
    """Estimate a score of the NumPy layer on the data and draw it from resampled data.

    DataError if the data do not vary over the units of the target.
    """
    run = replace(run, data=_of_single_battles(run))
    ranker, options = load_function(run.method.function), run.ranker_options
    point = point_arguments(run.data, run.method.data)
    score, parameters = split_scores(ranker(*point, **options))
    if run.draws == 0:
        return Estimate(score, None, point=parameters)
    over_questions = run.target == "population"
    if over_questions:
        warn_of_few_groups(run.responses)
    elif run.unit in _WHOLE_UNITS:
        warn_of_few_units(len(_unit_sizes(run)), run.unit)
    kind, step = run.method.kind, _step(run, len(score))
    # One more question may reverse a close majority, but hardly changes a sum. Ratings depend on
    # the order of the answers, and are not sums over questions.
    turns = step > 0.0 and kind == "majority"
    adds_up = not turns and kind != "rating"

    # Percentages of the largest are drawn as shares of the sum, which vary smoothly.
    centre = score / score.sum() if kind == "share" else score

    def score_of(arguments: Arguments) -> Array:
        scores = split_scores(ranker(*arguments, **options))[0]
        return scores / scores.sum(axis=-1, keepdims=True) if kind == "share" else scores

    draws = _recentre(run, centre, _draw(run, score_of, turns=turns))
    if adds_up and (isinstance(run.data, Comparisons) or not _has_pseudo_counts(run)):
        draws = jackknife_corrected(run, draws, score_of)
    if run.method.weighs_questions:
        # Twice the bias of the draws: it is also the bias of the estimate around the truth.
        draws = draws + 2.0 * (centre - draws.mean(axis=(0, 1)))
    rng = np.random.default_rng(run.seed.spawn(1)[0])
    draws = with_pseudo_unit(run, draws, score_of, rng)
    draws = _with_copies(draws, run.draws, rng)
    if step:
        draws = draws + step * _steps(draws.shape, rng)
    if isinstance(run.data, Responses):
        draws = exchange_alike(draws, run.data, rng)
    if kind == "share":
        draws = scale_to_largest(draws)
    return Estimate(score, _within_range(run, draws), point=parameters)


def _of_single_battles(run: Run) -> Data:
    """Return the data, in which independent battles are a row each, or counts if these suffice."""
    data = run.data
    if not isinstance(data, Battles) or not data.rows_are_units(run.unit):
        return data
    if run.method.data == "log":
        return data.single_votes()
    return Comparisons(data.wins, data.ties, systems=data.systems)


def _step(run: Run, n_systems: int) -> float:
    """Return the step between two values of the score, 0 for continuous scores."""
    step = run.method.step
    if isinstance(step, str):
        n_questions = run.data.shape[1] if isinstance(run.data, Responses) else 0
        step = load_function(step)(run.ranker_options, n_systems, n_questions)
    return cast("float", step)


def _is_mean_of_samples(run: Run) -> bool:
    # Winning votes are discontinuous: a majority of one vote adds all its votes to the score.
    return run.target == "population" and run.options.get("variant") == "winning_votes"


def _draw(run: Run, score_of: ScoreOf, *, turns: bool) -> Array:
    """Return draws of the scores, of shape (chain, draw, system)."""
    data = cast("Responses | Comparisons", run.data)  # point_arguments refuses ballots
    size = _n_resamples(run)

    def draw_chain(seed: np.random.SeedSequence) -> Array:
        batches = resample(
            data,
            run.method.data,
            target=run.target,
            smooth=run.method.smooth,
            size=size,
            rng=np.random.default_rng(seed),
            turns=turns,
            of_each=_OF_EACH if _is_mean_of_samples(run) else 0,
            unit=run.unit,
        )
        scores = np.concatenate([score_of(batch) for batch in batches])
        return scores.reshape(size, -1, scores.shape[-1]).mean(axis=1)

    return draw_chains(run.seed, draw_chain)


def _n_resamples(run: Run) -> int:
    """Return how many resamples each chain has; the scores of large streams are costly."""
    if run.method.kind != "rating" or not isinstance(run.data, Responses):
        return run.draws
    n_systems, n_questions, n_trials = run.data.shape
    n_matches = n_questions * n_trials * n_systems * (n_systems - 1) / 2
    affordable = math.ceil(_MOST_MATCHES / (N_CHAINS * max(n_matches, 1.0)))
    return min(run.draws, max(affordable, _LEAST_STREAMS))


def _with_copies(draws: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Return `n_draws` in each chain, (chain, draw, system), of which some are smoothed copies.

    The shrunken smoothed bootstrap (Silverman and Young 1987), with Scott's bandwidth.
    """
    if draws.shape[1] == n_draws:
        return draws
    mean = draws.mean(axis=(0, 1))
    deviations = (draws - mean).reshape(-1, draws.shape[-1])
    width = len(deviations) ** -0.2
    copies = draws[:, np.arange(n_draws) % draws.shape[1]] - mean
    normals = rng.standard_normal((*copies.shape[:2], len(deviations)))
    noise = normals @ deviations / math.sqrt(len(deviations) - 1)
    return mean + math.sqrt(1.0 - width * width) * copies + width * noise


def _recentre(run: Run, score: Array, draws: Array) -> Array:
    """Return draws with the spread of independent units; discontinuous ones around the estimate."""
    mean = draws.mean(axis=(0, 1))
    if run.method.smooth:
        if run.target == "benchmark":
            widening = widening_for_fewer_trials(run.responses, run.method.data, run.unit)
            draws = mean + widening * (draws - mean)
        whole = run.target == "population" or run.unit in _WHOLE_UNITS
        # The truth is outside the scores of all n units with probability 2^(1 - n), 6 % for five.
        few = whole and len(_unit_sizes(run)) <= FEW_UNITS
        return normal_like(draws, np.random.default_rng(run.seed)) if few else draws
    if not _is_mean_of_samples(run):
        draws = score + _widening(run) * (draws - mean)
    if run.method.kind != "rating":
        return draws
    # The mean rating has a skewed distribution: the truth is the estimate minus its error (the
    # basic bootstrap; Davison and Hinkley 1997, section 5.2, doi:10.1017/CBO9780511802843).
    level = draws.mean(axis=-1, keepdims=True)
    return draws - 2.0 * (level - level.mean())


def normal_like(draws: Array, rng: np.random.Generator) -> Array:
    """Return normal draws with the mean and the covariance of draws.

    Weighted means of few units lie between the scores of the units, where the truth need not be.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    mean = flat.mean(axis=0)
    size = np.abs(flat - mean).max() or 1.0  # squares of large worths overflow
    root = symmetric_root(np.atleast_2d(np.cov((flat - mean) / size, rowvar=False)))
    return mean + rng.standard_normal(draws.shape) @ root * size


def _steps(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return deviations (chain, draw, system) over a step, evenly from -1/2 to 1/2, with mean 0.

    The expected score lies between two values of the score, and may do so in another place for
    each of several systems with equal counts.
    """
    size = math.prod(shape[:-1])
    evenly = (np.arange(size) + 0.5) / size - 0.5
    return rng.permuted(np.tile(evenly, (shape[-1], 1)), axis=1).T.reshape(shape)


def _widening(run: Run) -> float:
    """Return the factor for deviations over n units drawn with replacement.

    The variance of their mean is (n - 1) / n of that of independent units; for few units Student's
    t adds the factor (n - 1) / (n - 3). The trials of a stream do not need it, since each has many
    questions; trials that are right or wrong are drawn from shares with a pseudo-count.
    """
    if _has_pseudo_counts(run):
        return 1.0
    n = equal_units(_unit_sizes(run))
    of_trials = run.target != "population" and run.unit == "trial"
    return math.sqrt(n / (n - 1 if of_trials else max(n - 3, 1)))


def _has_pseudo_counts(run: Run) -> bool:
    """Return whether cells are drawn with a pseudo-count, so that single answers vary."""
    has_grades = isinstance(run.data, Responses) and run.data.scores is not None
    weighted = run.method.smooth or run.method.kind == "rating" or has_grades
    return not weighted and run.target != "population" and run.unit not in _WHOLE_UNITS


def _unit_sizes(run: Run) -> NDArray[Any]:
    """Return the sizes of the units that vary, of the system with the fewest."""
    if isinstance(run.data, Battles):
        return run.data.unit_sizes(run.unit)
    if run.target == "population":
        return np.bincount(clusters_of(run.responses))
    if run.unit == "run":
        return np.ones(run.responses.observed.any(axis=1).sum(axis=1).min())
    return np.ones(run.responses.shape[2])


def scale_to_largest(draws: Array) -> Array:
    """Return draws of positive shares as percentages of the largest, corrected for its bias.

    The maximum of several estimates is biased upwards, and the maximum of their draws again by the
    mean of the maximum minus the maximum of the means. The correction moves systems far below the
    largest up by both biases, systems near it by less, so that they keep their order.
    """
    draws = np.maximum(draws, ROUNDING)
    largest = draws.max(axis=-1, keepdims=True)
    gap = np.log(largest / draws)
    bias = 2.0 * math.log(largest.mean() / draws.mean(axis=(0, 1)).max())
    if bias > ROUNDING:
        gap += bias * np.expm1(-gap / bias)
    return 100.0 * np.exp(-gap)


def _within_range(run: Run, draws: Array) -> Array:
    """Return draws clipped to the range of the score, which widened draws may leave."""
    data, n_systems = run.data, draws.shape[-1]
    if not run.method.range:
        return draws
    n_questions, worths = 0, np.array([0.0, 1.0])
    if isinstance(data, Responses):
        n_questions = data.shape[1]
        # Scores on a scale are shares of it until the result is built.
        worths = worths if data.scores is not None else data.category_weights
    is_margin = run.options.get("score_type") == "advantage_vs_equilibrium"
    longest = math.sqrt(1.0 - 1.0 / n_systems)  # of a vector of norm one and sum zero
    # Across a cut between neighbours in the order the flows are one at most, and so is their gap.
    is_binary = run.options.get("pairwise_stat", "binary") == "binary"
    highest = (n_systems - 1) / 2 if is_binary else math.inf
    ends = {
        "grades": (worths.min(), worths.max()),
        "payoffs": (-1 if is_margin else 0, 1),
        "shares": (0, 1),
        "unit vector": (-longest, longest),
        "potentials": (-highest, highest),
        "levels": (1, n_systems),
        "rounds": (0, n_systems - 1),
        "balance": (1 - n_systems, n_systems - 1),
        "points": (0, n_questions * (n_systems - 1)),
        "losses": (-n_questions, 0),
    }
    return np.clip(draws, *ends[run.method.range])
