"""Resampled arguments of the NumPy rankers, in batches of bounded memory.

Dirichlet weights with concentration c per unit give the mean of n units the variance
``s2 / (n c + 1)``, where s2 is their mean squared deviation. The unbiased variance of a mean,
``s2 / (n - 1)``, therefore needs c = (n - 2) / n; the usual c = 1 is too narrow by
(n - 1) / (n + 1). Where c would not be positive it is small: the weight falls on one unit at
random, with 98 % of the standard deviation wanted. The prior unit (:mod:`.prior_unit`) has the
concentration of an observed one; it makes draws over few units wider.
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
    Arguments,
    cell_arguments,
    has_repeated_trials,
    point_arguments,
)
from bayesrank.inference.resample.battle_units import draw_units
from bayesrank.inference.resample.clusters import clusters_of
from bayesrank.inference.resample.data_sets import redraw, redraw_twice
from bayesrank.inference.resample.prior_unit import (
    LEAST_WEIGHT,
    N_PRIOR,
    extremes,
    prior_battles,
    prior_trials,
    with_prior_questions,
    with_prior_trials,
)
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]
Draw = Callable[[int], Arguments]

# Doubles per batch and array: 32 MB.
BATCH_SIZE = 2**22

# Weights that underflow to zero are equal.
_TINY = 1e-200

# Smaller ones would underflow to weights that are all zero.
_LEAST_CONCENTRATION = 0.02


def resample(
    data: Responses | Comparisons,
    kind: str,
    *,
    target: str,
    smooth: bool,
    size: int,
    rng: np.random.Generator,
    unit: str = "battle",
    prior: bool = False,
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
    unit : {"battle", "prompt", "judge"}, default "battle"
        What is independent of what, where the data are battles.
    prior : bool, default False
        Whether the prior unit is among those that are resampled.

    Yields
    ------
    tuple
        Positional arguments of the ranker.

    Raises
    ------
    DataError
        If there are too few units to show any variation.
    """
    if isinstance(data, Comparisons):
        draw, per_resample = _battle_plan(data, kind, unit, smooth, prior, rng)
    elif target == "population":
        draw = _question_plan(data, kind, smooth, prior, rng)
        per_resample = per_sample_of_questions(data)
    else:
        require_two_trials(data)
        draw, per_resample = _trial_plan(data, kind, smooth, prior, rng)
    step = max(1, BATCH_SIZE // per_resample)
    for start in range(0, size, step):
        yield draw(min(step, size - start))


def _battle_plan(
    data: Comparisons, kind: str, unit: str, smooth: bool, prior: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return what draws a batch of a given size, and the doubles that one resample takes."""
    if isinstance(data, Battles) and (kind == "log" or not data.rows_are_units(unit)):
        return draw_units(data, kind, unit, smooth=smooth, prior=prior, rng=rng)
    battles = _weighted_battles if smooth else _redrawn_battles
    return lambda n: battles(data, n, prior, rng), data.wins.size


def _question_plan(
    data: Responses, kind: str, smooth: bool, prior: bool, rng: np.random.Generator
) -> Draw:
    clusters = question_clusters(data)
    asked = with_prior_questions(data, rng) if prior else data
    draw = question_arguments(asked, kind, rng)
    n_prior = len(asked.questions) - len(clusters)
    if smooth:
        return lambda n: draw(question_weights(data, n, rng, n_prior=n_prior))
    # Each further question is a cluster of its own; all together are drawn as often as one.
    n_clusters, n_questions = int(clusters.max()) + 1, len(clusters)
    chances = np.ones(n_clusters + n_prior)
    chances[n_clusters:] = n_questions / n_clusters / max(n_prior, 1)
    clusters = np.concatenate([clusters, n_clusters + np.arange(n_prior)])
    return lambda n: draw(_question_draws(clusters, chances, n_questions, size=n, rng=rng))


def _trial_plan(
    data: Responses, kind: str, smooth: bool, prior: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    n_systems, n_questions, n_trials = data.shape
    if kind == "stream":
        asked = with_prior_trials(data, rng) if prior else data
        order = _trial_order
        return lambda n: (asked.stream, order(data, n, prior, rng)), n_questions * n_trials
    if not smooth:
        return lambda n: redraw(data, kind, n, rng), _per_redrawn(data)
    if data.paired or data.scores is not None:
        values = n_systems * (data.n_categories if data.scores is None else 1)
        weights = n_trials if data.paired else n_systems * n_trials
        size = n_questions * max(values, weights)
        return lambda n: _weighted_trials(data, kind, n, prior, rng), size
    return lambda n: _weighted_cells(data, kind, n, prior, rng), data.counts.size


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
    data: Responses | Comparisons, size: int, rng: np.random.Generator, *, n_prior: int = 0
) -> FloatArray:
    """Draw Dirichlet weights of questions, of shape (size, question), that add up to their number.

    Questions of a cluster share a weight. Of `n_prior` further questions after them, one has the
    weight of a cluster.

    Raises
    ------
    DataError
        If there is only one question, or none.
    """
    clusters = question_clusters(data)
    n_clusters, n_questions = int(clusters.max()) + 1, len(clusters)
    concentration = float(_concentration(np.array(n_clusters)))
    gammas = rng.standard_gamma(concentration, (size, n_clusters))[:, clusters]
    weights = np.maximum(gammas, LEAST_WEIGHT * gammas.mean(axis=1, keepdims=True))
    if n_prior:
        further = np.zeros((size, n_prior))
        chosen = np.arange(size), rng.integers(n_prior, size=size)
        further[chosen] = n_questions / n_clusters * rng.standard_gamma(concentration, size)
        weights = np.concatenate([weights, further], axis=1)
    return n_questions * weights / weights.sum(axis=1, keepdims=True)


def per_sample_of_questions(data: Responses) -> int:
    """Return the doubles that one sample of questions takes."""
    n_systems, n_questions, n_trials = data.shape
    return max(n_systems**2, n_questions * n_trials)


def _question_draws(
    clusters: NDArray[np.intp],
    chances: FloatArray,
    n_drawn: int,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw whole clusters of questions with replacement, as how often each question is drawn.

    Of shape (size, question), given the cluster of each question and chances of the clusters.
    """
    likely = chances / chances.sum()
    if len(likely) == len(clusters):
        return rng.multinomial(n_drawn, likely, size)[:, clusters]
    members = [np.flatnonzero(clusters == cluster) for cluster in range(len(likely))]
    drawn = np.zeros((size, len(clusters)), dtype=np.int64)
    for row in drawn:
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


def _concentration(n: NDArray[np.int64]) -> FloatArray:
    return np.maximum((n - 2) / np.maximum(n, 1), _LEAST_CONCENTRATION)


def _weighted_trials(
    data: Responses, kind: str, size: int, prior: bool, rng: np.random.Generator
) -> Arguments:
    """Weight the trials that all systems share, or fractional scores."""
    gammas, concentration = draw_trial_weights(data, size, rng)
    further = prior_trials(data, concentration, size, rng) if prior else None
    if kind == "pairs":
        return _weighted_pairs(data, gammas, further)
    if data.scores is not None:
        worth = [np.nan_to_num(data.scores)]
    else:
        worth = [(data.outcomes == c).astype(float) for c in range(1, data.n_categories)]
    total = _weighted_sum(gammas, data.observed.astype(float))
    parts = [_weighted_sum(gammas, part) for part in worth]
    if further is not None:
        best, weights = further
        total = total + weights
        outcome = np.where(best, *reversed(extremes(data)))[:, :, np.newaxis]
        values = (
            [outcome]
            if data.scale is not None
            else [outcome == c for c in range(1, data.n_categories)]
        )
        parts = [part + weights * value for part, value in zip(parts, values, strict=True)]
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = [part / total for part in parts]
    if data.scores is not None:
        return shares[0], *point_arguments(data, kind)[1:]
    return cell_arguments(data, kind, np.stack([1.0 - sum(shares), *shares], axis=-1))


def _weighted_pairs(
    data: Responses, gammas: FloatArray, further: tuple[NDArray[np.bool_], FloatArray] | None
) -> Arguments:
    """Compare weighted trials; all systems have the prior one on the same question."""
    if further is None:
        return compare_trials(data.levels, gammas / gammas.mean(axis=-1, keepdims=True))
    best, weights = further
    weights = weights if gammas.ndim == 4 else weights.mean(axis=1)
    scale = (gammas.sum(axis=-1) + weights) / data.shape[2]
    wins, ties = compare_trials(data.levels, gammas / scale[..., np.newaxis])
    weight = (weights / scale).reshape(len(best), -1, data.shape[1]).sum(axis=-1).mean(axis=-1)
    won = best[:, :, np.newaxis] & ~best[:, np.newaxis]
    tied = best[:, :, np.newaxis] == best[:, np.newaxis]
    tied[:, *np.diag_indices(len(data.systems))] = False
    weight = weight[:, np.newaxis, np.newaxis]
    return wins + weight * won, ties + weight * tied


def draw_trial_weights(
    data: Responses, size: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw a Gamma variable for each trial of a question, and of each system unless paired.

    Also returns their concentration, of shape (question,).
    """
    # Systems with fewer trials of a question than others set its concentration, so that no
    # interval is too narrow.
    fewest = np.where(data.trials > 0, data.trials, data.shape[2]).min(axis=0)
    concentration = _concentration(fewest)
    shape = data.shape[1:] if data.paired else data.shape
    gammas = rng.standard_gamma(concentration[:, np.newaxis], (size, *shape)) + _TINY
    return np.maximum(gammas, LEAST_WEIGHT * gammas.mean(axis=-1, keepdims=True)), concentration


def _weighted_sum(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Sum values (system, question, trial) over trials with weights of each resample."""
    if weights.ndim == 4:
        return np.einsum("blmn,lmn->blm", weights, values)
    by_question = weights.swapaxes(0, 1) @ values.transpose(1, 2, 0)
    return by_question.transpose(1, 2, 0)


def _weighted_cells(
    data: Responses, kind: str, size: int, prior: bool, rng: np.random.Generator
) -> Arguments:
    """Weight the trials of every cell on its own."""
    counts = _level_counts(data.levels) if kind == "pairs" else data.counts
    concentration = _concentration(data.trials)
    gammas = rng.standard_gamma(concentration[..., np.newaxis] * counts, (size, *counts.shape))
    least = LEAST_WEIGHT * gammas.mean(axis=-1, keepdims=True) + _TINY
    gammas = np.where(counts > 0, np.maximum(gammas, least), 0.0)
    if prior:
        best, weights = prior_trials(data, concentration, size, rng)
        ends = (0, counts.shape[-1] - 1) if kind == "pairs" else extremes(data)
        category = np.where(best, ends[1], ends[0])[:, :, np.newaxis, np.newaxis]
        gammas += weights[..., np.newaxis] * (category == np.arange(counts.shape[-1]))
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = gammas / gammas.sum(axis=-1, keepdims=True)
    if kind == "pairs":
        counted = np.nan_to_num(shares) * data.trials[..., np.newaxis]
        return compare_cells(counted, data.trials)
    return cell_arguments(data, kind, shares)


def _trial_order(
    data: Responses, size: int, prior: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the trials of each question with replacement, of shape (resample, event)."""
    n_questions, n_trials = data.shape[1:]
    trials = rng.integers(0, n_trials, (size, n_trials, n_questions))
    if prior:
        further = n_trials + rng.integers(N_PRIOR, size=(size, 1, 1))
        trials = np.where(rng.random(trials.shape) * trials[0].size < 1.0, further, trials)
    return (trials * n_questions + np.arange(n_questions)).reshape(size, -1)


def _weighted_battles(
    data: Comparisons, size: int, prior: bool, rng: np.random.Generator
) -> Arguments:
    """Weight battles by the Bayesian bootstrap: equal battles add up to one Gamma variable."""
    _require_battles(data)
    wins = rng.standard_gamma(data.wins, (size, *data.wins.shape))
    if prior:
        wins += prior_battles(data, size, rng)
    ties = np.triu(rng.standard_gamma(data.ties, (size, *data.ties.shape)))
    total = wins.sum(axis=(1, 2), keepdims=True) + ties.sum(axis=(1, 2), keepdims=True)
    scale = (data.wins.sum() + data.ties.sum() / 2) / total
    return scale * wins, scale * (ties + ties.swapaxes(1, 2))


def _redrawn_battles(
    data: Comparisons, size: int, prior: bool, rng: np.random.Generator
) -> Arguments:
    """Draw how often each outcome of each pair occurs in a new set of about as many battles."""
    _require_battles(data)
    ties = np.triu(rng.poisson(data.ties, (size, *data.ties.shape)))
    expected = data.wins + (prior_battles(data, size, rng) if prior else np.zeros((size, 1, 1)))
    wins = rng.poisson(expected)
    return wins.astype(np.float64), (ties + ties.swapaxes(1, 2)).astype(np.float64)


def _require_battles(data: Comparisons) -> None:
    if not data.totals.any():
        raise DataError("comparisons must hold one at least for target='battles'; got none")
