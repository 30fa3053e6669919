"""RankLLM, which rates systems and questions by each other, and its two baselines."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.errors import DataError
from bayesrank.methods.markov import stationary_distribution
from bayesrank.validation import Positive, UnitInterval, checks_options

# Products of systems are formed for blocks of questions of at most this many numbers.
_BLOCK_ELEMENTS = 4_000_000
# Sums over questions have rounding errors of about 1e-13 of their size; smaller values are zero.
_ROUNDING = 1e-12
# A jump of this probability makes the limit of undamped walks unique; it changes scores by less
# than rounding errors.
_RARE_JUMP = 1e-15
_MAX_ITERATIONS = 1000
_EASIER_THAN_RANKED = -1.0
_HARDER_THAN_RANKED = 101.0


class RankLLM(NamedTuple):
    """Competency of systems and difficulty of questions, both scaled to at most 100."""

    score: NDArray[np.float64]
    competency: NDArray[np.float64]
    difficulty: NDArray[np.float64]
    iterations: NDArray[np.int64]


class SimpleRank(NamedTuple):
    """Minus the errors of systems, and the number of systems that fail each question."""

    score: NDArray[np.float64]
    difficulty: NDArray[np.float64]


class _Walk(NamedTuple):
    """One round of updates, as a walk from systems to the questions they fail and back."""

    solved: NDArray[np.bool_]  # (..., question), by any system
    failed: NDArray[np.bool_]  # (..., question), by any system
    wrong: NDArray[np.float64]  # (..., system, question), zero where not observed
    multiplicity: NDArray[np.float64]  # (..., question), zero for dropped questions
    n_kept: NDArray[np.float64]  # (...), questions kept
    per_failure: NDArray[np.float64]  # (..., system), one over the questions failed, or zero
    moves: NDArray[np.float64]  # (..., to system, from system), columns sum to one
    entry: NDArray[np.float64]  # (..., system), moves from a question chosen uniformly


def _as_grades(
    grades: ArrayLike, weights: ArrayLike | None, name: str = "weights"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check grades and question weights and return both as floats."""
    graded = np.asarray(grades, dtype=np.float64)
    if graded.ndim < 2 or 0 in graded.shape:
        raise DataError(f"grades must have shape (..., system, question); got {graded.shape}")
    low, high = graded.min(), graded.max()
    if np.isnan(low):  # some cell was not observed
        low, high = np.fmin.reduce(graded, axis=None), np.fmax.reduce(graded, axis=None)
    if low < 0 or high > 1:
        raise DataError(
            f"grades must be in [0, 1]; got {low if low < 0 else high}: categories need weights in "
            "[0, 1]"
        )
    if weights is None:
        return graded, np.ones(graded.shape[-1])
    multiplicity = np.asarray(weights, dtype=np.float64)
    if multiplicity.ndim < 1 or multiplicity.shape[-1] != graded.shape[-1]:
        raise DataError(
            f"{name} must have shape (..., {graded.shape[-1]}), one per question; "
            f"got shape {multiplicity.shape}"
        )
    low, high = multiplicity.min(), multiplicity.max()
    if not (low >= 0 and high < np.inf):
        raise DataError(f"{name} must be finite and >= 0; got {low if low < 0 else high}")
    return graded, multiplicity


@checks_options
def rankllm(
    grades: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    damping: UnitInterval = 0.85,
    tol: Positive = 1e-12,
) -> RankLLM:
    r"""Score systems by RankLLM, which gives more weight to questions that few systems solve.

    With grades :math:`A`, a question gets its difficulty from the competency of the systems that
    fail it, and a system gets its competency from the difficulty of the questions it solves:

    .. math::
        \pi_Q \leftarrow \alpha \, P_{M \to Q}^\top \pi_M + (1 - \alpha) / Q, \qquad
        \pi_M \leftarrow \alpha \, P_{Q \to M}^\top \pi_Q + (1 - \alpha) / M,

    where row l of :math:`P_{M \to Q}` is 1 - A of system l, normalised over the questions, and row
    m of :math:`P_{Q \to M}` is A of question m, normalised over the systems. The fixed point is
    solved for directly; `iterations` is the number of rounds of updates from a uniform start.

    Parameters
    ----------
    grades : array_like of shape (..., system, question)
        Grades in [0, 1], for several trials the share solved; NaN where not observed.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question, one by default; leading axes are resamples.
    damping : float, default 0.85
        The share :math:`\alpha`, in [0, 1], that follows the grades and not the uniform
        distribution.
    tol : float, default 1e-12
        The rounds end when :math:`\pi_Q` and :math:`\pi_M` together change by less, in sum.

    Returns
    -------
    RankLLM
        ``score`` of shape (..., system), :math:`100 \, \pi_M / \max \pi_M`; ``competency``,
        :math:`\pi_M`; ``difficulty`` of shape (..., question), :math:`100 \, \pi_Q / \max \pi_Q`,
        and -1 for questions that every system solves, 101 for questions that none solves, NaN for
        questions that no system was asked; ``iterations`` of shape (...), at most 1000.

    Raises
    ------
    DataError
        If a grade is outside [0, 1] or a weight is negative or not finite.
    ValueError
        If an option is out of range.

    Notes
    -----
    Questions that all systems solve, or none, have no information on the order and are dropped
    before the updates. A system that solves every remaining question passes its competency to all
    of them equally; a system that solves none receives only the uniform share. Without any
    remaining question all systems tie.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    Two systems solve two questions each, and no other system solves one of these:

    >>> ranking = rankllm([[1, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ranking.score.round(2)
    array([ 65.53, 100.  ,  51.6 ])
    >>> ranking.difficulty.round(2)
    array([ 34.2 , 100.  ,  92.31])
    """
    graded, multiplicity = _as_grades(grades, weights)
    walk = _walk(graded, multiplicity)
    size = graded.shape[-2]
    batch = walk.entry.shape[:-1]
    # Two half rounds make one walk among systems. It continues with probability damping^2, or else
    # restarts, at a question or at a system.
    enter = damping * (1.0 - damping) * walk.entry + (1.0 - damping) / size
    rates = damping**2 * np.swapaxes(walk.moves, -1, -2) + enter[..., None, :] + _RARE_JUMP / size
    competency = stationary_distribution(np.broadcast_to(rates, (*batch, size, size)))
    competency = np.where(walk.n_kept[..., None] > 0, competency, 1.0 / size)
    return RankLLM(
        100.0 * (competency / competency.max(axis=-1, keepdims=True)),
        competency,
        _difficulty(walk, competency, damping),
        _count_iterations(walk, damping, tol),
    )


def _walk(graded: NDArray[np.float64], multiplicity: NDArray[np.float64]) -> _Walk:
    """Compute the moves among systems of one round of updates."""
    right, wrong = graded, 1.0 - graded
    solved = right.sum(axis=-2)
    asked: NDArray[np.intp] | int = graded.shape[-2]
    if np.isnan(solved).any():
        asked = (~np.isnan(graded)).sum(axis=-2)
        right, wrong = np.nan_to_num(right), np.nan_to_num(wrong)
        solved = right.sum(axis=-2)
    failed_by_any = solved < asked
    kept = (solved > 0) & failed_by_any
    multiplicity = multiplicity * kept
    n_kept = multiplicity.sum(axis=-1)
    failed = _over_questions(wrong, multiplicity)
    # A question distributes its mass among the systems in proportion to their grades.
    share = multiplicity * np.divide(1.0, solved, out=np.zeros_like(solved), where=kept)
    received = _over_questions(right, share)
    joint = _joint_sums(right, wrong, share)
    joint = np.where(joint > _ROUNDING * received[..., None], joint, 0.0)
    per_question = 1.0 / np.where(n_kept > 0, n_kept, 1.0)[..., None]
    fails = failed > _ROUNDING * n_kept[..., None]
    per_failure = np.divide(1.0, failed, out=np.zeros_like(failed), where=fails)
    entry = received * per_question
    # A system without failures distributes its mass equally over all questions.
    moves = np.where(fails[..., None, :], joint * per_failure[..., None, :], entry[..., :, None])
    return _Walk(solved > 0, failed_by_any, wrong, multiplicity, n_kept, per_failure, moves, entry)


def _over_questions(
    table: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum a table of shape (..., system, question) over questions with weights (..., question)."""
    if table.ndim == 2:
        return weights @ table.T
    return (table @ weights[..., None])[..., 0]


def _joint_sums(
    right: NDArray[np.float64], wrong: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum ``right[i] * wrong[j] * share`` over questions, for all pairs of systems."""
    if right.ndim > 2 or share.ndim == 1:
        return (right * share[..., None, :]) @ np.swapaxes(wrong, -1, -2)
    # Many weights for one table of grades: the products once, then one matrix product for all.
    size, n_questions = right.shape
    total = np.zeros((*share.shape[:-1], size * size))
    for part in batches(n_questions, size * size, _BLOCK_ELEMENTS):
        products = right[:, None, part] * wrong[None, :, part]
        total += share[..., part] @ products.reshape(size * size, -1).T
    return total.reshape(*share.shape[:-1], size, size)


def _to_questions(walk: _Walk, mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pass the mass of systems to the questions that they fail, per copy of each question."""
    each = mass * walk.per_failure
    passed = (
        each @ walk.wrong if walk.wrong.ndim == 2 else (each[..., None, :] @ walk.wrong)[..., 0, :]
    )
    alike = np.where(walk.per_failure > 0, 0.0, mass).sum(axis=-1)
    return passed + (alike / np.where(walk.n_kept > 0, walk.n_kept, 1.0))[..., None]


def _difficulty(
    walk: _Walk, competency: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Return difficulties on the scale to 100, and beyond it those of dropped questions."""
    uniform = (1.0 - damping) / np.where(walk.n_kept > 0, walk.n_kept, 1.0)
    fed = damping * _to_questions(walk, competency) + uniform[..., None]
    kept = walk.solved & walk.failed
    largest = np.where(kept, fed, 0.0).max(axis=-1, keepdims=True)
    difficulty = 100.0 * (fed / np.where(largest > 0, largest, 1.0))
    dropped = np.where(
        walk.failed, _HARDER_THAN_RANKED, np.where(walk.solved, _EASIER_THAN_RANKED, np.nan)
    )
    return np.where(kept, difficulty, dropped)


def changes_by_round(
    grades: ArrayLike, *, damping: UnitInterval = 0.85, tol: Positive = 1e-12
) -> NDArray[np.float64]:
    """Return the summed change of both distributions in each round of updates of :func:`rankllm`.

    Parameters
    ----------
    grades : array_like of shape (system, question)
        Grades in [0, 1]; NaN where not observed.
    damping : float, default 0.85
        The share, in [0, 1], that follows the grades.
    tol : float, default 1e-12
        The last round is the first that moves them by less; the 1000th at most.

    Returns
    -------
    numpy.ndarray of shape (round,)
        Empty if no question has information on the order.

    Examples
    --------
    >>> changes_by_round([[1, 1, 0], [1, 0, 1], [0, 1, 0]], tol=0.1).round(3)
    array([0.687, 0.584, 0.352, 0.216, 0.133, 0.082])
    """
    walk = _walk(*_as_grades(grades, None))
    found: list[float] = []
    for each in islice(_rounds(walk, damping), _MAX_ITERATIONS if walk.n_kept > 0 else 0):
        found.append(float(each.systems + each.questions()))
        if found[-1] < tol:
            break
    return np.array(found)


class _Round(NamedTuple):
    """The changes in a round of updates, summed over systems and over questions."""

    systems: NDArray[np.float64]
    questions_at_most: NDArray[np.float64] | float
    questions: Callable[[], NDArray[np.float64]]


def _rounds(walk: _Walk, damping: float) -> Iterator[_Round]:
    """Yield the rounds of updates from a uniform start, without end."""
    size = walk.entry.shape[-1]
    enter = damping * (1.0 - damping) * walk.entry + (1.0 - damping) / size
    system = np.full(enter.shape, 1.0 / size)
    # Against the uniform start of the questions, which the first round replaces.
    fed, before = system, 1.0 / np.where(walk.n_kept > 0, walk.n_kept, 1.0)[..., None]
    fed_change: NDArray[np.float64] | float = np.inf

    while True:

        def questions(fed: NDArray[np.float64] = fed, before: Any = before) -> NDArray[np.float64]:
            changed = damping * (_to_questions(walk, fed) - before)
            return (walk.multiplicity * np.abs(changed)).sum(axis=-1)

        following = damping**2 * (walk.moves @ system[..., None])[..., 0] + enter
        fed, before, system = following - system, 0.0, following
        moved = np.abs(fed).sum(axis=-1)
        yield _Round(moved, fed_change, questions)
        # The change of the questions is at most that of the systems that they depend on.
        fed_change = damping * moved


def _count_iterations(walk: _Walk, damping: float, tol: float) -> NDArray[np.int64]:
    """Count the rounds from a uniform start until the summed change is below a tolerance."""
    counted = np.where(walk.n_kept > 0, _MAX_ITERATIONS, 0)
    for number, each in enumerate(islice(_rounds(walk, damping), _MAX_ITERATIONS - 1), 1):
        running = counted == _MAX_ITERATIONS
        if not running.any():
            break
        done = running & (each.systems + each.questions_at_most < tol)
        # The sum over questions is computed only if its bound does not decide.
        if (running & ~done & (each.systems < tol)).any():
            done |= running & (each.systems + each.questions() < tol)
        counted[done] = number
    return counted


def simple_rank(grades: ArrayLike, weights: ArrayLike | None = None) -> SimpleRank:
    r"""Score systems by the questions they get wrong, and questions by the systems that fail them.

    With grades :math:`g_{lm}` the score of system l is :math:`-\sum_m (1 - g_{lm})`, and the
    difficulty of question m is :math:`\sum_l (1 - g_{lm})`.

    Parameters
    ----------
    grades : array_like of shape (..., system, question)
        Grades in [0, 1]; NaN where not observed.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question, one by default; leading axes are resamples.

    Returns
    -------
    SimpleRank
        ``score`` of shape (..., system), minus the number of errors; higher is better.
        ``difficulty`` of shape (..., question), the number of systems that fail, for several trials
        the sum of their error rates; higher is harder. With missing cells, both are extrapolated to
        all questions or systems at the observed rate; a system without any cell counts as all
        wrong, and a question that no system was asked has the difficulty NaN.

    Raises
    ------
    DataError
        If a grade is outside [0, 1] or a weight is negative or not finite.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> ranking = simple_rank([[1, 1, 0], [1, 0, 0]])
    >>> ranking.score, ranking.difficulty
    (array([-1., -2.]), array([0., 1., 2.]))
    """
    graded, multiplicity = _as_grades(grades, weights)
    error, seen = np.nan_to_num(1.0 - graded), (~np.isnan(graded)).astype(np.float64)
    total = multiplicity.sum(axis=-1)[..., None]
    wrong, asked = _over_questions(error, multiplicity), _over_questions(seen, multiplicity)
    failing, systems = error.sum(axis=-2), seen.sum(axis=-2)
    return SimpleRank(
        0.0 - _at_the_rate(wrong, asked, total, np.ones_like(wrong)),
        _at_the_rate(failing, systems, graded.shape[-2], np.full_like(failing, np.nan)),
    )


def _at_the_rate(
    errors: NDArray[np.float64],
    asked: NDArray[np.float64],
    total: NDArray[np.float64] | int,
    unasked: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the expected errors in a total, at the observed rate, or at `unasked` without any."""
    rate = np.divide(errors, asked, out=unasked, where=asked > 0)
    return np.where(asked == total, errors, rate * total)


def difficulty_weighted_accuracy(
    grades: ArrayLike,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    group_weights: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""Score systems by accuracy, each data set weighted by its mean error rate.

    .. math:: s_l = \sum_d (1 - \bar a_d) \, a_{ld} / \sum_d (1 - \bar a_d)

    where :math:`a_{ld}` is the accuracy of system l on data set d and :math:`\bar a_d` its mean
    over systems.

    Parameters
    ----------
    grades : array_like of shape (..., system, question)
        Grades in [0, 1]; NaN where not observed.
    groups : array_like of shape (question,), optional
        The data set of each question; one for all by default.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question, one by default; leading axes are resamples.
    group_weights : array_like of shape (..., question), optional
        Multiplicity of the data set of each question, whose mean counts; one by default.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Weighted mean accuracy over the data sets a system was asked; higher is better. Plain mean
        over data sets where all are solved by all.

    Raises
    ------
    DataError
        If a grade is outside [0, 1], a weight is negative or not finite, or `groups` has another
        length than the questions.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> difficulty_weighted_accuracy([[1, 1, 0], [1, 0, 1]], ["easy", "easy", "hard"])
    array([0.33333333, 0.83333333])
    """
    graded, multiplicity = _as_grades(grades, weights)
    names = np.zeros(graded.shape[-1]) if groups is None else np.asarray(groups)
    if names.shape != (graded.shape[-1],):
        raise DataError(
            f"groups must hold one name per question, {graded.shape[-1]} in all; "
            f"got shape {names.shape}"
        )
    index = np.unique(names, return_inverse=True)[1]
    member = np.arange(index.max() + 1)[:, None] == index
    by_group = (multiplicity[..., None, :] * member)[..., None, :, :]
    right = (np.nan_to_num(graded)[..., :, None, :] * by_group).sum(axis=-1)
    asked = ((~np.isnan(graded))[..., :, None, :] * by_group).sum(axis=-1)
    accuracy = np.divide(right, asked, out=np.zeros_like(right), where=asked > 0)
    systems = (asked > 0).sum(axis=-2, keepdims=True)
    error = 1.0 - accuracy.sum(axis=-2, keepdims=True) / np.maximum(systems, 1)
    error = np.where(error.max(axis=-1, keepdims=True) > _ROUNDING, error, 1.0) * (asked > 0)
    if group_weights is not None:
        sums = _as_grades(graded, group_weights, "group_weights")[1] @ member.T
        error *= (sums / member.sum(axis=1))[..., None, :]
    total = error.sum(axis=-1)
    return np.divide(
        (error * accuracy).sum(axis=-1), total, out=np.zeros_like(total), where=total > 0
    )
