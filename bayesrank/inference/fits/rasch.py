"""Rasch models without a prior on single questions, of abilities that may change over trials."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.exact_ties import interchangeable, merge_noise
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_likelihoods import Rasch
from bayesrank.inference.fits.item_models import Named, merged_questions
from bayesrank.inference.fits.items import ItemCounts, item_counts, limited
from bayesrank.inference.fits.newton import Optimum
from bayesrank.inference.fits.penalty import Array, Pooled, Quadratic, checked_precision
from bayesrank.inference.fits.starts import smoothed_log_odds, stretched
from bayesrank.inference.fits.two_sided import TwoSided, joined

_ALL = slice(None)


def rasch_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
) -> tuple[TwoSided[Rasch], ItemCounts]:
    """Build the objective that :func:`fit_rasch` maximises; see there.

    Parameters
    ----------
    correct, trials, ability_mean, ability_precision
        As in :func:`fit_rasch`.

    Returns
    -------
    tuple of TwoSided and ItemCounts
        The objective, whose points hold abilities and minus the difficulties; and the data.
    """
    checked_precision("ability_precision", ability_precision)
    data = item_counts(correct, trials, drop=True)
    mean = np.broadcast_to(np.asarray(ability_mean, dtype=np.float64), data.right.shape[1])
    systems = Quadratic(np.array([[ability_precision]]), mean[:, np.newaxis])
    return of_difficulties(Rasch.of(data.right, data.trials), systems, data), data


def of_difficulties(
    likelihood: Rasch, systems: Quadratic, data: ItemCounts, pooled: Pooled | None = None
) -> TwoSided[Rasch]:
    """Build an objective whose mean difficulty, of the questions that are kept, is held at 0.

    Parameters
    ----------
    likelihood : Rasch
        The answers.
    systems : Quadratic
        Prior of the systems.
    data : ItemCounts
        Counts of the answers.
    pooled : Pooled, optional
        A hierarchical prior on the difficulties.

    Returns
    -------
    TwoSided of Rasch
    """
    n_systems, width, _, _ = likelihood.shape
    # Where no question is kept any level will do.
    held = np.where(data.left_out.all(axis=-1, keepdims=True), 1.0, ~data.left_out)
    if pooled is not None:
        held = np.ones_like(held)
    return TwoSided(
        likelihood,
        systems,
        Quadratic(np.zeros((1, 1))),
        pooled,
        np.zeros((0, n_systems, width)),
        held[:, np.newaxis, :, np.newaxis],
        len(data.right),
    )


def fit_rasch(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
) -> Fit:
    r"""Fit the Rasch model, P(l is right on m) = sigma(theta_l - b_m).

    The mean difficulty of the questions that are kept is 0.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing. Questions
        that every system answers alike are left out.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of a normal prior on the (uncentred) abilities.
    ability_precision : float, default 0
        Precision of that prior; 0 for maximum likelihood.

    Returns
    -------
    Fit
        Free coordinates: abilities, then difficulties. ``parameters["difficulty"]`` is minus
        infinity for a question that nobody got wrong, infinity for one that nobody got right and
        NaN for one that nobody was asked.

    Raises
    ------
    ValueError
        If the precision is negative.

    References
    ----------
    .. [1] G. Rasch. Probabilistic Models for Some Intelligence and Attainment Tests. Danish
       Institute for Educational Research (1960).

    Examples
    --------
    >>> fit = fit_rasch([[3.0, 1.0], [2.0, 3.0], [1.0, 1.0]], 4.0)
    >>> bool(fit.score[1] > fit.score[0] > fit.score[2])
    True
    """
    problem, data = rasch_items(
        correct, trials, ability_mean=ability_mean, ability_precision=ability_precision
    )
    n_systems, limit = data.right.shape[1], data.limit

    def unpack(free: Array) -> Named:
        difficulty = limited(free[..., n_systems:], limit)
        return {"score": free[..., :n_systems], "difficulty": difficulty}

    return fit_difficulties(problem, data, unpack)


def fit_difficulties(
    problem: TwoSided[Rasch],
    data: ItemCounts,
    unpack: Callable[[Array], Named],
    order: NDArray[np.intp] | slice = _ALL,
) -> Fit:
    """Fit an objective of :func:`of_difficulties`.

    Parameters
    ----------
    problem : TwoSided of Rasch
        The objective.
    data : ItemCounts
        Counts of its answers.
    unpack : callable
        As in :class:`Fit`, from coordinates of systems in `order`, and difficulties.
    order : numpy.ndarray of intp, optional
        Where free coordinates are in a point; as they are by default.

    Returns
    -------
    Fit
    """
    optimum = _maximum(problem, data)
    exists = np.ones(problem.size, dtype=bool)
    if problem.pooled is None and not problem.systems.precision.any(axis=-1).all():
        exists = linked_both_ways(data.right > 0.0, data.right < data.trials)
    n_questions = problem.likelihood.shape[2]
    signs = np.ones(optimum.point.shape[-1])
    signs[-n_questions:] = -1.0  # difficulties

    def along(rows: Array) -> Array:
        return (rows * signs)[..., order]

    fit = Fit.at(problem, optimum, data.lead, unpack, exists=exists, along=along)
    flat = fit.score.reshape(problem.size, -1)
    merged = merge_noise(flat)
    return fit if merged is flat else replace(fit, score=merged.reshape(fit.score.shape))


def _maximum(problem: TwoSided[Rasch], data: ItemCounts) -> Optimum:
    """Climb from about the Rasch model of the counts, with like questions merged."""
    reduced, place = merged_questions(problem)
    ability, difficulty = stretched(
        smoothed_log_odds(data.by_system, data.played),
        -smoothed_log_odds(reduced.likelihood.by_question, reduced.likelihood.asked),
        reduced.hold_v[:, 0, :, 0],
    )
    u = np.repeat(ability[..., np.newaxis], problem.likelihood.shape[1], axis=-1)
    if problem.likelihood.design is not None:
        u[..., 1] = np.asarray(problem.systems.mean)[:, 1]  # slopes
    optimum = reduced.maximise(joined(u, -difficulty[..., np.newaxis]))
    u, v = reduced.split(optimum.point)
    same = _alike(problem)
    if same is not None:
        u = np.take_along_axis(u, same[..., np.newaxis], axis=1)
    return replace(optimum, point=joined(u, v[:, place]))


def _alike(problem: TwoSided[Rasch]) -> NDArray[np.intp] | None:
    """Return, for each system, the first system that the data cannot tell from it."""
    answers, prior = problem.likelihood, problem.systems
    sums = answers.by_trial if answers.design is None else answers.by_trial @ answers.design
    sums = sums + np.broadcast_to(prior.mean, sums.shape[1:]) @ prior.precision
    rows = sums
    if answers.trials.shape[1] > 1:
        rows = np.concatenate([sums, answers.trials.reshape(*sums.shape[:2], -1)], axis=-1)
    return interchangeable(sums.sum(axis=-1), rows=rows)
