"""Item response models as rows of one engine: their designs, priors and what they hold."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.bordered import joined
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_likelihoods import Lines, Rasch
from bayesrank.inference.fits.like_questions import merged_questions
from bayesrank.inference.fits.log_odds import (
    NO_GUESSING,
    Guessing,
    finite_exp,
    logistic,
    shrunk_log_odds,
    smoothed_log_odds,
    stretched,
)
from bayesrank.inference.fits.penalty import Array, Pooled, Quadratic
from bayesrank.inference.fits.saddles import strongest_axes
from bayesrank.inference.fits.two_sided import TwoSided
from bayesrank.priors import LEVEL_SD

Named = dict[str, Array]


class NormalPrior(NamedTuple):
    """A normal prior on a parameter of the questions."""

    mean: float = 0.0
    precision: float = 1.0


_STANDARD = NormalPrior()
# Abilities are clear if they explain so many times the variance of the strongest other dimension.
_CLEAR = 4.0
_DIMENSIONS = 3


@dataclass(frozen=True)
class ItemCounts:
    """Counts per system and question, flattened over resamples.

    `right` and `trials` are of shape (resample, system, question), 0 in questions that are left
    out; `by_question` and `asked`, (resample, question), are their sums. `left_out`, of that shape,
    are questions that carry no information, and `limit`, (..., question), is their difficulty:
    minus infinity if everybody was right, infinity if everybody was wrong, NaN if nobody was asked;
    0 for the others, and None where all are kept. `lead` is the shape of the resample axes.
    """

    right: Array
    trials: Array
    by_question: Array
    asked: Array
    left_out: NDArray[np.bool_]
    limit: Array | None
    lead: tuple[int, ...]

    @cached_property
    def by_system(self) -> Array:
        """Number right over questions, of shape (resample, system)."""
        return self.right.sum(axis=-1)

    @cached_property
    def played(self) -> Array:
        """Number of trials over questions, of shape (resample, system)."""
        return self.trials.sum(axis=-1)


def item_counts(correct: ArrayLike, trials: ArrayLike, *, drop: bool) -> ItemCounts:
    """Flatten counts of shape (..., system, question), and leave out questions without information.

    With `drop`, those are all that every system answers alike, else those that nobody was asked.
    """
    right, total = np.asarray(correct, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    shape = right.shape
    if total.shape != shape:
        shape = np.broadcast_shapes(shape, total.shape)
        right, total = np.broadcast_to(right, shape), np.broadcast_to(total, shape)
    lead = shape[:-2]
    right, total = right.reshape(-1, *shape[-2:]), total.reshape(-1, *shape[-2:])
    by_question, asked = right.sum(axis=-2), total.sum(axis=-2)
    none_wrong, none_right = (total - right).sum(axis=-2) <= 0.0, by_question <= 0.0
    left_out = none_wrong | none_right if drop else none_wrong & none_right
    limit = None
    if left_out.any():
        limit = np.where(none_right, np.inf, -np.inf)
        limit[none_wrong & none_right] = np.nan
        limit[~left_out] = 0.0
        limit = limit.reshape(*lead, -1)
        keep = ~left_out
        right, total = right * keep[:, None, :], total * keep[:, None, :]
        by_question, asked = by_question * keep, asked * keep
    return ItemCounts(right, total, by_question, asked, left_out, limit, lead)


def counted(data: ItemCounts) -> Rasch:
    """Return the Rasch likelihood of counts over trials."""
    return Rasch(data.by_system[..., np.newaxis], data.by_question, data.trials[:, :, np.newaxis])


def limited(difficulty: Array, limit: Array | None) -> Array:
    """Return difficulties, those of questions that were left out at their limits."""
    return difficulty if limit is None else np.where(limit == 0.0, difficulty, limit)


def known(values: Array, limit: Array | None) -> Array:
    """Return other parameters of the questions, NaN for those that were left out."""
    return values if limit is None else np.where(limit == 0.0, values, np.nan)


def pooled_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 1.0,
    slope_prior: NormalPrior | None = None,
    guessing: Guessing = NO_GUESSING,
    guess_prior: NormalPrior = _STANDARD,
    level: float = 0.0,
    level_sd: float = LEVEL_SD,
) -> tuple[TwoSided[Any], ItemCounts]:
    r"""Build the log-posterior of Rasch, 2PL or 3PL data whose parameters all have priors.

    With :math:`x_{lm} = a_m \theta_l + d_m` and c the chance of guessing, P = c + (1 - c)
    sigma(x). Abilities and log discriminations sum to zero.

    Counts are of shape (..., system, question), 0 trials where a cell is missing. Abilities have a
    normal prior of `ability_mean`, broadcastable to (system,), of which only differences matter,
    and `ability_precision`, positive. Without `slope_prior` log discriminations are 0; where they
    differ there is guessing, with `guess_prior` on its logits. `level` and `level_sd` are the prior
    mean and standard deviation of the mean intercept. Points hold abilities, intercepts, log
    discriminations where they differ and guessing logits where they are estimated.
    """
    data = item_counts(correct, trials, drop=False)
    n_systems, n_questions = data.right.shape[1:]
    mean = np.zeros(n_systems) + np.asarray(ability_mean, dtype=np.float64)
    priors = [NormalPrior(0.0, 0.0)]
    if slope_prior is None:
        likelihood = counted(data)
    else:
        likelihood = Lines(data.right, data.trials, guessing)
        priors += [slope_prior, *([guess_prior] if guessing.fixed is None else [])]
    means, precisions = zip(*priors, strict=True)
    hold_v = np.zeros((1, int(slope_prior is not None), n_questions, len(priors)))
    hold_v[:, :, :, 1:2] = 1.0
    problem = TwoSided(
        likelihood,
        Quadratic(np.array([[ability_precision]]), (mean - mean.sum() / n_systems)[:, np.newaxis]),
        Quadratic(np.eye(len(priors)) * precisions, np.array(means)),
        Pooled(0, level, level_sd),
        np.ones((1, n_systems, 1)),
        hold_v,
        len(data.right),
    )
    return problem, data


def fit_pooled_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    derive: Callable[[Named], Named] = dict,
    gradients: Callable[[], Array] | None = None,
    **priors: Any,
) -> Fit:
    """Find the mode of an item response model whose parameters all have priors.

    It is the one above the first approximation of the Rasch model; with informative priors there is
    no other.

    Arguments are those of :func:`pooled_items`. Free coordinates: those of the objective. ``score``
    is the ability; ``parameters``: ``intercept``, and where they are free ``log_discrimination``
    and ``guessing_logit``, with what follows from them. `derive` turns these by name into those of
    the fit, whose scores rise by `gradients` with the free coordinates.

    References
    ----------
    .. [1] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_pooled_items(right, np.full((3, 3), 8.0))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    problem, data = pooled_items(correct, trials, **priors)
    n_systems, _, _, kinds = problem.likelihood.shape
    rows, guessing = data.trials, None
    if isinstance(problem.likelihood, Lines):
        # Only where questions differ in more than difficulty does it matter which were right.
        rows, guessing = np.concatenate([data.right, rows], axis=-1), problem.likelihood.guessing
    optimum = merged_questions(problem).maximise(_first_point(problem, data))
    u, v = problem.split(optimum.point)
    totals = data.by_system + problem.systems.precision[0, 0] * np.asarray(problem.systems.mean).T
    u = settle_ties(u[..., 0], totals, rows=rows)[..., np.newaxis]
    optimum = optimum.at(joined(u, v))
    return Fit.at(
        problem,
        optimum,
        data.lead,
        lambda free: derive(_unpack(n_systems, kinds, guessing, free)),
        blocks=problem.blocks,
        gradients=gradients or (lambda: np.eye(n_systems, optimum.point.shape[1])),
    )


def _first_point(problem: TwoSided[Any], data: ItemCounts) -> Array:
    """Begin at about the Rasch model, with one step of Fisher scoring for each discrimination.

    Guessing begins at its prior mean.
    """
    by_system, by_question = _beyond_guessing(problem, data)
    ability, difficulty = stretched(
        smoothed_log_odds(by_system, data.played), -shrunk_log_odds(by_question, data.asked), None
    )
    level = ability.sum(axis=-1, keepdims=True) / ability.shape[-1]
    v = np.zeros((len(ability), *problem.likelihood.shape[2:])) + problem.questions.mean
    u, v[..., 0] = (ability - level)[..., np.newaxis], level - difficulty
    if v.shape[2] > 1:
        found = problem.likelihood.expand(u, v, np.zeros(v.shape[:2], dtype=bool))
        log_slope = found.gv[..., 1] / (found.vv[..., 1, 1] + problem.questions.precision[1, 1])
        v[..., 1] = log_slope - log_slope.mean(axis=-1, keepdims=True)
    return joined(u, v)


def _beyond_guessing(problem: TwoSided[Any], data: ItemCounts) -> tuple[Array, Array]:
    """Return numbers right of systems and of questions, corrected for guessing.

    Its chance is the prior mean, or the lowest rate of a system where that is less.
    """
    guess, likelihood = None, problem.likelihood
    if isinstance(likelihood, Lines):
        guess = likelihood.guessing.probability(np.asarray(problem.questions.mean)[-1:])
    if guess is None:
        return data.by_system, data.by_question
    rates = np.ones_like(data.right)
    np.divide(data.right, data.trials, out=rates, where=data.trials > 0.0)
    chance = np.minimum(rates.min(axis=1, keepdims=True), guess)
    right = (data.right - chance * data.trials) / (1.0 - chance)
    return right.sum(axis=2), right.sum(axis=1)


def _unpack(n_systems: int, kinds: int, guessing: Guessing | None, free: Array) -> Named:
    """Name the parameters at free coordinates of shape (..., p)."""
    of_questions = free[..., n_systems:].reshape(*free.shape[:-1], kinds, -1)
    intercept = of_questions[..., 0, :]
    named = {"score": free[..., :n_systems], "intercept": intercept}
    if guessing is None:
        return named
    named |= named_lines(guessing, of_questions[..., 1, :], of_questions[..., -1, :])
    return named | {"difficulty": -intercept / named["discrimination"]}


def named_lines(guessing: Guessing, log_slope: Array, logit: Array) -> Named:
    """Name discriminations, and guessing where it is estimated, by their free coordinates."""
    named = {"log_discrimination": log_slope, "discrimination": finite_exp(log_slope)}
    if guessing.fixed is None:
        named |= {"guessing_logit": logit, "guessing": guessing.upper * logistic(logit)}
    return named


def other_abilities(data: ItemCounts, size: int) -> dict[int, Array]:
    """Return changes of points of that size, (start, size), for resamples that need more starts.

    Those whose abilities in the Rasch model say less of the answers than a second dimension does:
    other maxima are above either end of such dimensions.
    """
    rates = smoothed_log_odds(data.right, data.trials) * (data.trials > 0.0)
    rest = rates - rates.mean(axis=-1, keepdims=True)
    rest -= rest.mean(axis=-2, keepdims=True)
    rest *= ~data.left_out[:, np.newaxis]
    shares, directions = np.linalg.eigh(rest @ rest.swapaxes(1, 2))
    # Not by the abilities, whose scale is that of their prior.
    spread = smoothed_log_odds(data.by_system, data.played)
    n_systems = spread.shape[-1]
    signal = spread.var(axis=-1) * n_systems * (~data.left_out).sum(axis=-1)
    others = {}
    for row in np.flatnonzero(signal < _CLEAR * shares[:, -1]):
        strong = strongest_axes(shares[row, ::-1], directions[row, :, ::-1], _DIMENSIONS)
        # Along and against the strongest dimensions, and between any two.
        first, second = np.triu_indices(len(strong), 1)
        if len(strong) > _DIMENSIONS:
            first = second = first[:0]
        pairs = [strong[first] + sign * strong[second] for sign in (1.0, -1.0)]
        ways = np.concatenate([strong, *pairs])
        ways = np.concatenate([ways, -ways])
        ways *= np.sqrt(n_systems / (ways**2).sum(axis=-1, keepdims=True))
        others[int(row)] = np.pad(ways, ((0, 0), (0, size - n_systems)))
    return others
