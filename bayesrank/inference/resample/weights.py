"""Resampled arguments of the NumPy rankers, in batches of bounded memory.

Dirichlet weights with concentration c per unit give the mean of n units the variance
``s2 / (n c + 1)``, where s2 is their mean squared deviation. The unbiased variance of a mean,
``s2 / (n - 1)``, therefore needs c = (n - 2) / n; the usual c = 1 is too narrow by
(n - 1) / (n + 1). Over questions, of which there may be few, c = (n - 4) / n adds the widening of
Student's t. Where c would not be positive it is small: the weight falls on one unit at random, with
98 % of the standard deviation wanted.

Samples of whole questions may be drawn with one more question beside the observed ones, one of them
with its systems shuffled, which is half a question won and half a question lost for every pair.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.counting import (
    compare_cells,
    compare_trials,
    compare_trials_by_question,
    count_categories,
)
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import (
    cell_arguments,
    point_arguments,
)
from bayesrank.inference.resample.battle_units import draw_units
from bayesrank.inference.resample.clusters import (
    LEAST_CONCENTRATION,
    clusters_of,
    concentration_of_few,
)
from bayesrank.inference.resample.data_sets import redraw, redraw_twice
from bayesrank.responses import Responses
from bayesrank.units import has_repeated_trials
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]
Arguments = tuple[Any, ...]
Draw = Callable[[int], Arguments]

# Doubles per batch and array: 32 MB.
BATCH_SIZE = 2**22

# Next to no weight: without the only question that links two systems there is no score at all.
LEAST_WEIGHT = 1e-6


def resample(
    data: Responses | Comparisons,
    kind: str,
    *,
    target: str,
    smooth: bool,
    size: int,
    rng: np.random.Generator,
    shuffled: float = 0.0,
    of_each: int = 0,
    unit: str = "battle",
) -> Iterator[Arguments]:
    """Yield batches of resampled arguments, each with a leading axis of resamples.

    Parameters
    ----------
    data : Responses or Comparisons
        The data as they are.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`.
    target : {"benchmark", "population", "battles"}
        Whether trials, questions or battles are resampled.
    smooth : bool
        Whether fractional weights may be used; else whole data sets are drawn.
    size : int
        Number of resamples in all.
    rng : numpy.random.Generator
        Source of randomness.
    shuffled : float, default 0.0
        How many questions with their systems shuffled stand beside the observed ones where whole
        data sets are drawn for the population target.
    of_each : int, default 0
        How many whole data sets to draw, one after another, from each of `size` populations that
        questions may come from (the Bayesian bootstrap); 0 to draw `size` data sets from the
        observed questions.
    unit : {"battle", "prompt", "judge"}, default "battle"
        What is independent of what, where the data are battles.

    Yields
    ------
    tuple
        Positional arguments of the ranker.

    Raises
    ------
    DataError
        If there are too few units to show any variation.
    """
    if isinstance(data, Battles) and (kind == "log" or not data.rows_are_units(unit)):
        draw, per_resample = draw_units(data, kind, unit, smooth=smooth, rng=rng)
    else:
        draw, per_resample = _plan(data, kind, target, smooth, shuffled, of_each, rng)
    step = max(1, BATCH_SIZE // (per_resample * max(of_each, 1)))
    for start in range(0, size, step):
        yield draw(min(step, size - start))


def _plan(
    data: Responses | Comparisons,
    kind: str,
    target: str,
    smooth: bool,
    shuffled: float,
    of_each: int,
    rng: np.random.Generator,
) -> tuple[Draw, int]:
    """Return what draws a batch of a given size, and the doubles that one resample takes."""
    if isinstance(data, Comparisons):
        battles = _weighted_battles if smooth else _redrawn_battles
        return lambda n: battles(data, n, rng), data.wins.size
    n_systems, n_questions, n_trials = data.shape
    if target == "population":
        per_resample = per_sample_of_questions(data)
        if smooth:
            draw = question_arguments(data, kind, rng)
            return lambda n: draw(question_weights(data, n, rng)), per_resample
        clusters, asked = question_clusters(data), data
        n_clusters = int(clusters.max()) + 1
        chances = np.ones(n_clusters)
        if shuffled:
            # The copies are clusters of their own, drawn together as often as so many questions.
            asked = _with_shuffled(data, clusters, rng)
            clusters = np.concatenate([clusters, clusters + n_clusters])
            chances = np.append(chances, shuffled / n_clusters * chances)
            per_resample *= 2
        draw = question_arguments(asked, kind, rng)

        def draws(n: int) -> NDArray[np.int64]:
            if not of_each:
                return _question_draws(clusters, chances, n_questions, size=n, rng=rng)
            likely = np.tile(chances, (n, 1))
            gammas = _cluster_gammas(n_clusters, n, rng)
            likely[:, :n_clusters] = gammas / gammas.mean(axis=1, keepdims=True)
            likely = np.repeat(likely, of_each, axis=0)
            return _question_draws(clusters, likely, n_questions, size=len(likely), rng=rng)

        return lambda n: draw(draws(n)), per_resample
    require_two_trials(data)
    if kind == "stream":
        return lambda n: (data.stream, _trial_order(data, n, rng)), n_questions * n_trials
    if not smooth:
        return lambda n: redraw(data, kind, n, rng), _per_redrawn(data)
    if data.paired or data.scores is not None:
        values = n_systems * (data.n_categories if data.scores is None else 1)
        weights = n_trials if data.paired else n_systems * n_trials
        size = n_questions * max(values, weights)
        return lambda n: trial_arguments(data, kind, draw_trial_weights(data, n, rng)), size
    return lambda n: _weighted_cells(data, kind, n, rng), data.counts.size


def resample_twice(
    data: Responses, kind: str, *, size: int, rng: np.random.Generator
) -> Iterator[tuple[Arguments, Arguments]]:
    """Yield batches of arguments of data sets drawn from resamples over trials, two from each.

    Parameters are those of :func:`resample`, as for scores that jump.
    """
    step = max(1, BATCH_SIZE // _per_redrawn(data))
    for start in range(0, size, step):
        yield redraw_twice(data, kind, min(step, size - start), rng)


def _per_redrawn(data: Responses) -> int:
    """Return the doubles that one data set takes whose cells are drawn anew."""
    return data.counts.size if data.scores is None else data.scores.size


def require_two_trials(data: Responses) -> None:
    """Raise DataError if most observed cells have one trial, whose noise cannot be seen."""
    if not has_repeated_trials(data):
        single = np.count_nonzero(data.trials == 1)
        raise DataError(
            "trials must be two or more in most cells for target='benchmark'; got one in "
            f"{single} of {np.count_nonzero(data.trials)} observed cells: use target='population'"
        )


def widening_for_single_trials(data: Responses) -> FloatArray:
    """Return factors of deviations that see no noise in cells with one trial.

    The noise of a trial is taken to be the same in all cells of a system, so that the mean of a
    cell has a variance in proportion to 1 / n.

    Parameters
    ----------
    data : Responses
        With two trials or more in most observed cells.

    Returns
    -------
    numpy.ndarray of shape (system,)
        At least 1; that of all systems for one that has no cell with two trials.

    Examples
    --------
    >>> widening_for_single_trials(Responses([[[0, 1], [1, 1], [1, -1]], 3 * [[0, 1]]])).round(3)
    array([1.414, 1.   ])
    """
    share = np.where(data.trials > 0, 1.0 / np.maximum(data.trials, 1), 0.0)
    seen = np.where(data.trials > 1, share, 0.0).sum(axis=1)
    ratio = share.sum(axis=1) / np.where(seen > 0.0, seen, 1.0)
    return np.sqrt(np.where(seen > 0.0, ratio, share.sum() / seen.sum()))


def question_clusters(data: Responses | Comparisons) -> NDArray[np.intp]:
    """Return the clusters of the questions, or raise DataError if they cannot vary."""
    if isinstance(data, Comparisons) or data.shape[1] < 2:
        raise DataError(
            "questions must be two or more for target='population'; got "
            f"{'battles' if isinstance(data, Comparisons) else 1}: use target='benchmark' with "
            "two or more trials, or draws=0 for the estimate only"
        )
    return clusters_of(data)


def question_weights(
    data: Responses | Comparisons, size: int, rng: np.random.Generator
) -> FloatArray:
    """Draw Dirichlet weights of questions with mean 1, of shape (size, question).

    Questions of a cluster share a weight.

    Raises
    ------
    DataError
        If there is only one question, or none.
    """
    clusters = question_clusters(data)
    gammas = _cluster_gammas(int(clusters.max()) + 1, size, rng)[:, clusters]
    gammas = np.maximum(gammas, LEAST_WEIGHT * gammas.mean(axis=1, keepdims=True))
    return gammas / gammas.mean(axis=1, keepdims=True)


def _cluster_gammas(n_clusters: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw what Dirichlet weights of clusters are in proportion to, of shape (size, cluster)."""
    concentration = concentration_of_few(np.array(n_clusters))
    return rng.standard_gamma(concentration, (size, n_clusters))


def per_sample_of_questions(data: Responses) -> int:
    """Return the doubles that one sample of questions takes."""
    n_systems, n_questions, n_trials = data.shape
    return max(n_systems**2, n_questions * n_trials)


def _with_shuffled(
    data: Responses, clusters: NDArray[np.intp], rng: np.random.Generator
) -> Responses:
    """Return data with a copy of every question after them, in which systems are shuffled.

    Questions of a cluster are shuffled alike.
    """
    n_clusters = int(clusters.max()) + 1
    order = rng.permuted(np.tile(np.arange(len(data.systems)), (n_clusters, 1)), axis=1)
    shuffled = np.take_along_axis(data.values, order[clusters].T[..., np.newaxis], axis=0)
    return Responses(
        np.concatenate([data.values, shuffled], axis=1),
        systems=data.systems,
        **data.declared,
        paired=data.paired,
    )


def _question_draws(
    clusters: NDArray[np.intp],
    chances: FloatArray,
    n_drawn: int,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw whole clusters of questions with replacement, as how often each question is drawn.

    Of shape (size, question), given the cluster of each question and the chances of the clusters,
    the same for all or of shape (size, cluster).
    """
    chances = np.broadcast_to(chances, (size, chances.shape[-1]))
    chances = chances / chances.sum(axis=-1, keepdims=True)
    if chances.shape[-1] == len(clusters):
        return rng.multinomial(n_drawn, chances)[:, clusters]
    members = [np.flatnonzero(clusters == cluster) for cluster in range(chances.shape[-1])]
    drawn = np.zeros((size, len(clusters)), dtype=np.int64)
    for row, likely in zip(drawn, chances, strict=True):
        # Until there are enough questions; the last cluster is cut to what is missing.
        missing = n_drawn
        while missing:
            cluster = rng.choice(len(likely), p=likely)
            questions = rng.permutation(members[cluster])[:missing]
            row[questions] += 1
            missing -= len(questions)
    return drawn


def question_arguments(
    data: Responses, kind: str, rng: np.random.Generator
) -> Callable[[NDArray[Any]], Arguments]:
    """Return what turns weights of questions, of shape (resample, question), into arguments."""
    if kind == "pairs":
        by_question = np.stack(question_pairs(data), axis=1)
        flat = by_question.reshape(len(by_question), -1)
        shape = by_question.shape[1:]
        return lambda weights: tuple((weights @ flat).reshape(-1, *shape).swapaxes(0, 1))
    if kind == "stream":
        return lambda weights: (data.stream, _question_order(data, weights, rng))
    point = point_arguments(data, kind)
    return lambda weights: (*point, weights)


def _question_order(
    data: Responses, drawn: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Order the questions drawn at random, alike in all trials, of shape (resample, event).

    Ratings may remember little but the end of a stream, where another sample has any question.
    """
    n_questions, n_trials = data.shape[1:]
    questions = np.repeat(np.tile(np.arange(n_questions), len(drawn)), drawn.ravel())
    questions = rng.permuted(questions.reshape(len(drawn), -1), axis=1)
    starts = n_questions * np.arange(n_trials)[:, np.newaxis]
    return (starts + questions[:, np.newaxis]).reshape(len(drawn), -1)


def question_pairs(data: Responses) -> tuple[FloatArray, FloatArray]:
    """Return wins and ties on each question, both of shape (question, system, opponent)."""
    if data.paired:
        return compare_trials_by_question(data.levels)
    return compare_cells(_level_counts(data.levels).swapaxes(0, 1)[:, :, np.newaxis])


def _level_counts(levels: NDArray[np.int8]) -> NDArray[np.int64]:
    return count_categories(levels, int(levels.max(initial=1)) + 1)


def _trial_concentration(n: NDArray[np.int64]) -> FloatArray:
    return np.maximum((n - 2) / np.maximum(n, 1), LEAST_CONCENTRATION)


def trial_arguments(data: Responses, kind: str, gammas: FloatArray) -> Arguments:
    """Return the arguments for weighted trials.

    Parameters
    ----------
    data : Responses
        The data as they are.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`; not a stream.
    gammas : numpy.ndarray of shape (resample, question, trial) or (resample, ..., trial)
        Weights on any scale, of trials that all systems share or of (system, question, trial).
    """
    if kind == "pairs":
        return compare_trials(data.levels, gammas / gammas.mean(axis=-1, keepdims=True))
    if data.scores is not None:
        worth = [np.nan_to_num(data.scores)]
    else:
        worth = [(data.outcomes == c).astype(float) for c in range(1, data.n_categories)]
    total = _weighted_sum(gammas, data.observed.astype(float))
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = [_weighted_sum(gammas, part) / total for part in worth]
    if data.scores is not None:
        return shares[0], *point_arguments(data, kind)[1:]
    return cell_arguments(data, kind, np.stack([1.0 - sum(shares), *shares], axis=-1))


def draw_trial_weights(data: Responses, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw a Gamma variable for each trial of a question, and of each system unless paired."""
    # Systems with fewer trials of a question than others set its concentration, so that no
    # interval is too narrow.
    fewest = np.where(data.trials > 0, data.trials, data.shape[2]).min(axis=0)
    concentration = _trial_concentration(fewest)[:, np.newaxis]
    shape = (size, *data.shape[1:])
    return rng.standard_gamma(concentration, shape if data.paired else (size, *data.shape))


def _weighted_sum(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Sum values (system, question, trial) over trials with weights of each resample."""
    if weights.ndim == 4:
        return np.einsum("blmn,lmn->blm", weights, values)
    by_question = weights.swapaxes(0, 1) @ values.transpose(1, 2, 0)
    return by_question.transpose(1, 2, 0)


def _weighted_cells(data: Responses, kind: str, size: int, rng: np.random.Generator) -> Arguments:
    """Weight the trials of every cell on its own."""
    counts = _level_counts(data.levels) if kind == "pairs" else data.counts
    concentration = _trial_concentration(data.trials)
    gammas = rng.standard_gamma(concentration[..., np.newaxis] * counts, (size, *counts.shape))
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = gammas / gammas.sum(axis=-1, keepdims=True)
    if kind == "pairs":
        counted = np.nan_to_num(shares) * data.trials[..., np.newaxis]
        return compare_cells(counted, data.trials)
    return cell_arguments(data, kind, shares)


def _trial_order(data: Responses, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the trials of each question with replacement, of shape (resample, event)."""
    n_questions, n_trials = data.shape[1:]
    trials = rng.integers(0, n_trials, (size, n_trials, n_questions))
    return (trials * n_questions + np.arange(n_questions)).reshape(size, -1)


def _weighted_battles(data: Comparisons, size: int, rng: np.random.Generator) -> Arguments:
    """Weight battles by the Bayesian bootstrap: equal battles add up to one Gamma variable."""
    _require_battles(data)
    wins = rng.standard_gamma(data.wins, (size, *data.wins.shape))
    ties = np.triu(rng.standard_gamma(data.ties, (size, *data.ties.shape)))
    total = wins.sum(axis=(1, 2), keepdims=True) + ties.sum(axis=(1, 2), keepdims=True)
    scale = (data.wins.sum() + data.ties.sum() / 2) / total
    return scale * wins, scale * (ties + ties.swapaxes(1, 2))


def _redrawn_battles(data: Comparisons, size: int, rng: np.random.Generator) -> Arguments:
    """Draw how often each outcome of each pair occurs in a new set of about as many battles."""
    _require_battles(data)
    ties = np.triu(rng.poisson(data.ties, (size, *data.ties.shape)))
    wins = rng.poisson(data.wins, (size, *data.wins.shape))
    return wins.astype(np.float64), (ties + ties.swapaxes(1, 2)).astype(np.float64)


def _require_battles(data: Comparisons) -> None:
    if not data.totals.any():
        raise DataError("comparisons must hold one at least for target='battles'; got none")
