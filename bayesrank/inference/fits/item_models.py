"""Rasch, 2PL, 3PL and factor models, and Rasch models of abilities that change over trials.

Questions have the hierarchical prior on their intercepts, except in the published Rasch models.
The models are those of the factories, such as :func:`bayesrank.models.mirt` and
:func:`bayesrank.models.dynamic_irt`, whose docstrings have the formulas. Growth and random walks
are a design of the trials and a quadratic prior on the coordinates of a system.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.bordered import joined
from bayesrank.inference.fits.fit import Fit, merge_noise
from bayesrank.inference.fits.item_likelihoods import (
    NO_GUESSING,
    Factors,
    Guessing,
    ItemCounts,
    Lines,
    Rasch,
    counted,
    item_counts,
    limited,
    shrunk_log_odds,
    stretched,
)
from bayesrank.inference.fits.newton import Array
from bayesrank.inference.fits.symmetry import Exchangeable, merged_questions
from bayesrank.inference.fits.two_sided import Pooled, Quadratic, TwoSided
from bayesrank.log_odds import finite_exp, logistic, smoothed_log_odds
from bayesrank.models.factor_reference import FactorReference, Score, factor_reference
from bayesrank.priors import FLAT, LEVEL_SD, NormalPrior
from bayesrank.time_axis import ANCHOR, ScoreTarget

Named = dict[str, Array]
# Abilities are log-odds, of the order of 1.
_NO_ABILITY = 1e-12
# Smaller differences of scores are rounding and the error of the fit.
_SAME_SCORE = 1e-6
_STANDARD = NormalPrior(0.0, 1.0)
Trials = tuple[TwoSided[Rasch], ItemCounts]


def pooled_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    prior: NormalPrior = _STANDARD,
    slope_prior: NormalPrior | None = None,
    guessing: Guessing = NO_GUESSING,
    guess_prior: NormalPrior = _STANDARD,
    level: float = 0.0,
    level_sd: float = LEVEL_SD,
) -> tuple[TwoSided[Any], ItemCounts]:
    r"""Build the log-posterior of Rasch, 2PL or 3PL data whose parameters all have priors.

    With :math:`x_{lm} = a_m \theta_l + d_m` and c the chance of guessing, P = c + (1 - c) sigma(x).
    Abilities and log discriminations sum to zero.

    Counts are of shape (..., system, question), 0 trials where a cell is missing. Of the means of
    the proper prior of abilities only differences matter. Without `slope_prior` log discriminations
    are 0; where they differ there is guessing, with `guess_prior` on its logits. `level` and
    `level_sd` are those of the prior on the mean intercept. Points hold abilities, intercepts, log
    discriminations where they differ and guessing logits where they are estimated.
    """
    data = item_counts(correct, trials, drop=False)
    n_systems, n_questions = data.right.shape[1:]
    priors = [NormalPrior()]
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
        Quadratic.of_abilities(prior, n_systems, centred=True),
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
    no other. Arguments are those of :func:`pooled_items`. ``score`` is the ability; `derive` turns
    parameters by name into those of the fit, whose scores rise by `gradients` with the free
    coordinates.
    """
    problem, data = pooled_items(correct, trials, **priors)
    n_systems = data.right.shape[1]
    optimum = merged_questions(problem).maximise(_first_point(problem, data))
    u, v = problem.split(optimum.point)
    optimum = optimum.at(joined(merge_noise(u[..., 0])[..., np.newaxis], v))
    return Fit.at(
        problem,
        optimum,
        data.lead,
        lambda free: derive(_unpack(problem, free)),
        blocks=problem.blocks,
        gradients=gradients or (lambda: np.eye(n_systems, optimum.point.shape[1])),
    )


def _first_point(problem: TwoSided[Any], data: ItemCounts) -> Array:
    """Begin at about the Rasch model, with one step of Fisher scoring for each discrimination."""
    by_system = smoothed_log_odds(data.by_system, data.played)
    by_question = shrunk_log_odds(data.by_question, data.asked)
    ability, difficulty = stretched(by_system, -by_question, np.ones_like(by_question))
    level = ability.sum(axis=-1, keepdims=True) / ability.shape[-1]
    v = np.zeros((len(ability), *problem.likelihood.shape[2:])) + problem.questions.mean
    u, v[..., 0] = (ability - level)[..., np.newaxis], level - difficulty
    if v.shape[2] > 1:
        found = problem.likelihood.expand(u, v, np.zeros(v.shape[:2], dtype=bool))
        log_slope = found.gv[..., 1] / (found.vv[..., 1, 1] + problem.questions.precision[1, 1])
        v[..., 1] = log_slope - log_slope.mean(axis=-1, keepdims=True)
    return joined(u, v)


def _unpack(problem: TwoSided[Any], free: Array) -> Named:
    """Name the parameters at free coordinates of shape (..., p)."""
    u, v = problem.split(free)
    named = {"score": u[..., 0], "intercept": v[..., 0]}
    if isinstance(problem.likelihood, Lines):
        named |= named_lines(problem.likelihood.guessing, v)
        named["difficulty"] = -named["intercept"] / named["discrimination"]
    return named


def named_lines(guessing: Guessing, v: Array) -> Named:
    """Name discriminations, and guessing where it is estimated, by coordinates of questions."""
    named = {"log_discrimination": v[..., 1], "discrimination": finite_exp(v[..., 1])}
    if guessing.fixed is None:
        chance = guessing.upper * logistic(v[..., 2])
        named |= {"guessing_logit": v[..., 2], "guessing": chance}
    return named


def mirt_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    n_factors: int = 2,
    prior: NormalPrior = _STANDARD,
    loading_precision: float = 0.3**-2,
) -> tuple[TwoSided[Factors], FactorReference]:
    """Build the objective of the model of :func:`bayesrank.models.mirt`, for one table.

    There are fewer factors than systems and than questions. The prior on abilities is that of
    :func:`pooled_items`. Points hold the abilities in each factor, the loadings of each factor and
    the intercepts. Also returns where the loadings are, roughly.
    """
    right, total = (np.asarray(table, dtype=np.float64) for table in (correct, trials))
    n_systems, n_questions = right.shape
    reference = factor_reference(right, total, n_factors)
    each = np.arange(n_factors)
    hold_u = np.zeros((n_factors, n_systems, n_factors))
    hold_u[each, :, each] = 1.0
    # Orthonormal rows that span the reference as the data weight it, for each factor.
    hold_v = np.zeros((n_factors, n_factors, n_questions, n_factors + 1))
    hold_v[each, :, :, each] = np.linalg.qr(reference.held)[0].T
    problem = TwoSided(
        Factors(right[np.newaxis], total[np.newaxis], n_factors),
        Quadratic.of_abilities(prior, n_systems, n_factors, centred=True),
        Quadratic(
            np.diag([loading_precision] * n_factors + [0.0]),
            np.column_stack([reference.loading, np.zeros(n_questions)]),
        ),
        Pooled(n_factors),
        hold_u,
        hold_v.reshape(1, -1, n_questions, n_factors + 1),
    )
    return problem, reference


def fit_mirt(model: tuple[TwoSided[Factors], FactorReference], score: Score = "mean_slope") -> Fit:
    """Fit the model that :func:`mirt_problem` builds, with a score of the factory."""
    problem, reference = model
    cells = problem.likelihood
    optimum = merged_questions(problem).maximise(_first_factors(cells, reference))
    # If all abilities are zero, sums have rounding errors, which are not factors.
    ability, v = problem.split(optimum.point)
    ability[np.abs(ability) < _NO_ABILITY] = 0.0
    unpack = partial(_named_factors, problem, reference, score)
    fit = Fit.at(problem, optimum, (), unpack, blocks=problem.blocks)
    if score == "mean_slope":
        fit = replace(fit, gradients=lambda: _gradients(ability, v))
    scores = merge_noise(fit.score[np.newaxis])
    # One of several equally high maxima separates exchangeable systems.
    alike = Exchangeable.of(cells.right, cells.trials, np.asarray(problem.systems.mean)[:, 0])
    mean = alike.mean(scores)
    if np.abs(mean - scores).max() > _SAME_SCORE:
        fit = replace(
            fit, exchange=lambda drawn, rng: drawn | alike.exchange({"score": drawn["score"]}, rng)
        )
    return replace(fit, score=mean[0])


def _gradients(u: Array, v: Array) -> Array:
    """Return how the products of abilities and mean loadings rise with a point, (system, p)."""
    _, n_systems, n_factors = u.shape
    n_questions = v.shape[1]
    of_abilities = np.zeros((n_systems, n_systems, n_factors))
    each = np.arange(n_systems)
    of_abilities[each, each] = v[0, :, :-1].mean(axis=0)
    of_questions = np.zeros((n_systems, n_questions, n_factors + 1))
    of_questions[..., :-1] = u[0, :, np.newaxis] / n_questions
    return joined(of_abilities, of_questions)


def _first_factors(cells: Factors, reference: FactorReference) -> Array:
    """Begin at the reference, with the abilities that explain smoothed log-odds best."""
    right, trials, loading = cells.right[0], cells.trials[0], reference.loading
    intercept = smoothed_log_odds(right.sum(axis=0), trials.sum(axis=0))
    rest = (smoothed_log_odds(right, trials) - intercept) * (trials > 0.0)
    ability = np.linalg.solve(loading.T @ loading + np.eye(cells.n_factors), loading.T @ rest.T).T
    questions = np.column_stack([loading, intercept])
    return joined((ability - ability.mean(axis=0))[np.newaxis], questions[np.newaxis])


def _named_factors(
    problem: TwoSided[Factors], reference: FactorReference, score: Score, free: Array
) -> Named:
    """Name the parameters at free coordinates of shape (..., p) as the factory does."""
    ability, v = problem.split(free)
    loading, intercept = v[..., :-1], v[..., -1]
    deviation = reference.along(np.swapaxes(loading - reference.loading, -1, -2))
    abilities, slopes = _triangular(ability, loading, reference.anchors)
    if score == "mean_slope":
        value = np.einsum("...lk,...k->...l", ability, loading.mean(axis=-2))
    else:
        products = np.swapaxes(slopes, -1, -2)
        origin = np.linalg.solve(products @ slopes, products @ intercept[..., np.newaxis])
        value = np.sqrt(((abilities + np.swapaxes(origin, -1, -2)) ** 2).sum(axis=-1))
    each = range(ability.shape[-1])
    return (
        {"score": value}
        | {f"coordinate_{k + 1}": ability[..., k] for k in each}
        | {"intercept": intercept}
        | {f"deviation_{k + 1}": deviation[..., k, :] for k in each}
        | {"ability": abilities, "loading": slopes}
    )


def _triangular(ability: Array, loading: Array, anchors: NDArray[np.intp]) -> tuple[Array, Array]:
    """Describe the same factors by uncorrelated abilities and triangular loadings."""
    root = _cholesky(np.swapaxes(ability, -1, -2) @ ability / ability.shape[-2])
    loading = loading @ root
    rows = loading[..., anchors, :]
    # With rows = triangle Q, rotating by Q' makes them the triangle.
    triangle = _cholesky(rows @ np.swapaxes(rows, -1, -2))
    rotation = np.swapaxes(np.linalg.solve(triangle, rows), -1, -2)
    whitened = np.swapaxes(np.linalg.solve(root, np.swapaxes(ability, -1, -2)), -1, -2)
    return whitened @ rotation, loading @ rotation


def _cholesky(matrices: Array) -> Array:
    """Return triangular roots, NaN where abilities or loadings are of lower rank."""
    has_root = np.linalg.matrix_rank(matrices, hermitian=True) == matrices.shape[-1]
    roots = np.full_like(matrices, np.nan)
    roots[has_root] = np.linalg.cholesky(matrices[has_root])
    return roots


def rasch_items(
    correct: ArrayLike, trials: ArrayLike, *, prior: NormalPrior = FLAT
) -> tuple[TwoSided[Rasch], ItemCounts]:
    """Build the objective of the Rasch model, whose points hold abilities and minus difficulties.

    Counts are of shape (..., system, question), real-valued, 0 trials where a cell is missing;
    questions that every system answers alike are left out. Abilities are not centred.
    """
    data = item_counts(correct, trials, drop=True)
    systems = Quadratic.of_abilities(prior, data.right.shape[1])
    return of_difficulties(counted(data), systems, data), data


def of_difficulties(
    likelihood: Rasch, systems: Quadratic, data: ItemCounts, pooled: Pooled | None = None
) -> TwoSided[Rasch]:
    """Build an objective whose mean difficulty, of the questions that are kept, is held at 0.

    `data` are the counts of the answers; `pooled` is a hierarchical prior on the difficulties.
    """
    n_systems, width, _, _ = likelihood.shape
    # If no question is kept, any level works.
    every = data.left_out.all(axis=-1, keepdims=True) | (pooled is not None)
    held = np.where(every, 1.0, ~data.left_out)
    return TwoSided(
        likelihood,
        systems,
        Quadratic(np.zeros((1, 1))),
        pooled,
        np.zeros((0, n_systems, width)),
        held[:, np.newaxis, :, np.newaxis],
        len(data.right),
    )


def fit_rasch(correct: ArrayLike, trials: ArrayLike, **priors: Any) -> Fit:
    """Fit the Rasch model, P(l is right on m) = sigma(theta_l - b_m): growth over a single trial.

    Arguments are those of :func:`rasch_items`; see :func:`fit_trials`.

    References
    ----------
    .. [1] G. Rasch. Probabilistic Models for Some Intelligence and Attainment Tests. Danish
       Institute for Educational Research (1960).
    """
    return fit_trials(rasch_items(correct, trials, **priors))


def growth(
    outcomes: ArrayLike,
    times: Array,
    *,
    slope_prior: NormalPrior,
    prior: NormalPrior = FLAT,
    pooled: bool = False,
) -> Trials:
    """Build the objective of latent growth.

    Outcomes are of shape (..., system, question, trial), 1 for right, 0 for wrong, negative where a
    response is missing; times, (trial,), as :func:`~bayesrank.time_axis.check_time_axis` returns
    them. The precision of `slope_prior` is twice the weight of a penalty on squared slopes; `prior`
    is on abilities at the first trial. With `pooled` difficulties have the hierarchical prior, else
    questions that every system answers alike in all trials are left out. Points hold abilities
    averaged over the trials, slopes and minus the difficulties.

    References
    ----------
    .. [1] C. Wang and S. W. Nydick. On longitudinal item response theory models: a didactic.
       Journal of Educational and Behavioral Statistics 45 (2020).
       https://doi.org/10.3102/1076998619882026
    """
    centred = times - times.mean()
    design = np.stack([np.ones_like(centred), centred], axis=1)
    precision = prior.precision * np.outer(design[0], design[0])
    precision[1, 1] += slope_prior.precision
    mean = np.zeros(np.shape(outcomes)[-3]) + prior.mean
    slope = np.full_like(mean, slope_prior.mean)
    systems = Quadratic(precision, np.stack([mean - centred[0] * slope, slope], axis=1))
    return _trials(outcomes, design, systems, pooled=pooled)


def walk(
    outcomes: ArrayLike, times: Array, *, state_reg: float = 1.0, prior: NormalPrior = FLAT
) -> Trials:
    r"""Build the objective of random walks, whose maximum is always finite.

    `state_reg` is the weight :math:`\rho` of the sum of squared steps over their times: that of a
    Gaussian walk of variance :math:`1 / (2 \rho)` over the whole span. Other arguments are those of
    :func:`growth`. Points hold the first states of all systems, their second, ..., and minus the
    difficulties.
    """
    steps = np.diff(np.eye(times.size), axis=0)
    precision = steps.T @ (steps * (2.0 * state_reg / np.diff(times))[:, np.newaxis])
    # The anchor and the prior, two normal densities of the first state, make one.
    first = 2.0 * ANCHOR + prior.precision
    precision[0, 0] += first
    mean = np.zeros(np.shape(outcomes)[-3]) + np.asarray(prior.mean) * (prior.precision / first)
    return _trials(outcomes, None, Quadratic(precision, mean[:, np.newaxis]), pooled=False)


def fit_trials(model: Trials, score_target: ScoreTarget = "final") -> Fit:
    """Fit the Rasch model, growth or random walks, from about the Rasch model of the counts.

    The score is the ability at the last trial, at the first, its mean over trials, or the last less
    the first. Free coordinates: those of the objective. ``parameters``: ``difficulty``, of mean 0,
    minus infinity for questions that nobody got wrong, infinity for those that nobody got right and
    NaN for those that nobody was asked; over several trials also ``ability``, the mean over the
    trials, with ``slope``, or ``trajectory`` of shape (..., system, trial) and its ``increment``.
    """
    problem, data = model
    width = problem.likelihood.shape[1]
    design = problem.likelihood.design
    n_trials = problem.likelihood.by_trial.shape[2]
    first, last = np.eye(n_trials)[[0, -1]]
    mean = np.full(n_trials, 1.0 / n_trials)
    targets = {"initial": first, "final": last, "mean": mean, "gain": last - first}
    target = targets[score_target] if design is None else targets[score_target] @ design

    def unpack(free: Array) -> Named:
        u, v = problem.split(free)
        if design is not None:
            named = {"ability": u[..., 0], "slope": u[..., 1]}
        elif width > 1:
            named = {"ability": u.mean(axis=-1), "trajectory": u, "increment": np.diff(u, axis=-1)}
        else:
            named = {}
        named["difficulty"] = limited(-v[..., 0], data.limit)
        if problem.pooled:
            level = named["ability"].mean(axis=-1, keepdims=True)
            named["contrast"] = named["ability"] - level
            named["intercept"] = level - named["difficulty"]
        return {"score": u @ target, **named}

    ability, difficulty = stretched(
        smoothed_log_odds(data.by_system, data.played),
        -smoothed_log_odds(data.by_question, data.asked),
        problem.hold_v[:, 0, :, 0],
    )
    u = np.repeat(ability[..., np.newaxis], width, axis=-1)
    if design is not None:
        u[..., 1] = np.asarray(problem.systems.mean)[:, 1]  # slopes
    optimum = merged_questions(problem).maximise(joined(u, -difficulty[..., np.newaxis]))
    exists = np.ones(problem.size, dtype=bool)
    if problem.pooled is None and not problem.systems.precision.any(axis=-1).all():
        exists = linked_both_ways(data.right > 0.0, data.right < data.trials)
    fit = Fit.at(problem, optimum, data.lead, unpack, exists=exists, blocks=problem.blocks)
    flat = fit.score.reshape(problem.size, -1)
    merged = merge_noise(flat)
    return fit if merged is flat else replace(fit, score=merged.reshape(fit.score.shape))


def _trials(
    outcomes: ArrayLike, design: Array | None, systems: Quadratic, *, pooled: bool
) -> Trials:
    """Build an objective of ordered trials, whose questions differ only in difficulty."""
    values = np.asarray(outcomes)
    right, observed = values > 0, values >= 0
    data = item_counts(right.sum(axis=-1), observed.sum(axis=-1), drop=not pooled)
    n_systems, n_questions, n_trials = values.shape[-3:]
    by_trial = (right & ~data.left_out.reshape(*data.lead, 1, n_questions, 1)).sum(axis=-2)
    kept = (~data.left_out).astype(np.float64)[:, np.newaxis, np.newaxis]
    if observed.all():
        trials = kept
    else:
        cells = (-1, n_systems, n_trials, n_questions)
        trials = kept * observed.swapaxes(-1, -2).reshape(cells)
    likelihood = Rasch(
        by_trial.reshape(-1, n_systems, n_trials).astype(np.float64),
        data.by_question,
        trials,
        design,
    )
    if pooled:  # questions without answers are at their prior mean
        data = replace(data, limit=None)
    return of_difficulties(likelihood, systems, data, Pooled() if pooled else None), data
