"""Simulated benchmarks with known truth, for studies of methods.

Every function returns a dataset with ``outcomes`` of dims (system, question, trial) and the
true chances; ``Responses.from_dataarray(dataset["outcomes"])`` has the data for a ranking.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.agreement import kendall_tau_b
from bayesrank.validation import check_integer, check_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Parameters of simulated benchmarks with greedy runs. With these numbers the spread of
# accuracies (0.13), the mean of p (1 - p) (0.08) and the agreement of one trial with the gold
# standard (tau-b about 0.78) are those of the published olympiads of 30 questions.
_QUESTION_SD = 4.2
_CELL_SD = 1.2
_ABILITY_SD = 1.6
# Mean difference between greedy and sampled accuracies of the olympiads.
_GREEDY_SHIFT = -0.035
# Standard deviations of the greedy accuracies in the search for an alignment.
_GREEDY_SDS = np.linspace(0.0, 0.4, 161)
_ALIGNMENT_TOLERANCE = 0.01


class GreedyBenchmarks(NamedTuple):
    """Benchmarks with sampled and greedy runs, as :func:`greedy_benchmarks` draws them.

    Attributes
    ----------
    probability : numpy.ndarray of shape (benchmark, system, question)
        Chance of a right answer in one sampled trial.
    gold : numpy.ndarray of shape (benchmark, system)
        Right answers in all the trials of the gold standard.
    greedy : numpy.ndarray of int8 and shape (benchmark, system, question)
        Outcomes of the greedy runs.
    alignment : numpy.ndarray of shape (benchmark,)
        Kendall's tau-b between greedy and gold totals.
    """

    probability: FloatArray
    gold: IntArray
    greedy: NDArray[np.int8]
    alignment: FloatArray


def biased_coins(
    probability: ArrayLike,
    *,
    n_questions: int = 30,
    n_trials: int = 80,
    random_seed: int | None = 0,
) -> xr.Dataset:
    """Simulate systems with the same chance for every question, or a chance for each.

    Parameters
    ----------
    probability : array_like of shape (system,) or (system, question)
        Chances of a right answer.
    n_questions : int, default 30
        Number of questions, if `probability` has no axis of questions.
    n_trials : int, default 80
        Number of trials.
    random_seed : int, optional
        Same seed, same outcomes.

    Returns
    -------
    xarray.Dataset
        ``outcomes`` (system, question, trial), ``probability`` (system, question) and ``score``
        (system,), its mean.

    Raises
    ------
    ValueError
        If a chance is not between 0 and 1.

    Examples
    --------
    >>> data = biased_coins([0.9, 0.1], n_questions=4, n_trials=3)
    >>> dict(data["outcomes"].sizes)
    {'system': 2, 'question': 4, 'trial': 3}
    """
    chance = np.asarray(probability, dtype=np.float64)
    if chance.ndim == 1:
        chance = np.repeat(chance[:, None], check_integer(n_questions, "n_questions"), axis=1)
    if chance.ndim != 2 or not ((chance >= 0) & (chance <= 1)).all():
        raise ValueError(
            "probability must hold numbers between 0 and 1, one per system or per system and "
            f"question; got {probability!r}"
        )
    rng = np.random.default_rng(random_seed)
    outcomes = rng.random((*chance.shape, check_integer(n_trials, "n_trials"))) < chance[..., None]
    return _dataset("biased_coins", outcomes, probability=chance, score=chance.mean(axis=1))


def rasch_tensor(
    n_systems: int = 20,
    n_questions: int = 30,
    n_trials: int = 80,
    *,
    ability_sd: float = 1.0,
    difficulty_sd: float = 1.0,
    question_noise: float = 0.0,
    random_seed: int | None = 0,
) -> xr.Dataset:
    r"""Simulate a Rasch-type benchmark.

    .. math:: \operatorname{logit} p_{lm} = \theta_l - b_m + \varepsilon_{lm}

    with normal abilities, difficulties and noise; the noise is the interaction of systems and
    questions.

    Parameters
    ----------
    n_systems, n_questions, n_trials : int, default 20, 30, 80
        Size of the tensor.
    ability_sd, difficulty_sd : float, default 1
        Standard deviations of abilities and difficulties, in logits.
    question_noise : float, default 0
        Standard deviation of the noise per system and question, in logits.
    random_seed : int, optional
        Same seed, same outcomes.

    Returns
    -------
    xarray.Dataset
        ``outcomes`` (system, question, trial), ``probability`` (system, question), ``score``
        (system,), the abilities, and ``difficulty`` (question,).

    Raises
    ------
    ValueError
        If a size or a standard deviation cannot be used.

    Examples
    --------
    >>> data = rasch_tensor(3, 5, 2)
    >>> data["outcomes"].shape
    (3, 5, 2)
    """
    rng = np.random.default_rng(random_seed)
    sizes = {"n_systems": n_systems, "n_questions": n_questions, "n_trials": n_trials}
    for name, size in sizes.items():
        check_integer(size, name)
    ability = _scale("ability_sd", ability_sd) * rng.standard_normal(n_systems)
    difficulty = _scale("difficulty_sd", difficulty_sd) * rng.standard_normal(n_questions)
    noise = _scale("question_noise", question_noise) * rng.standard_normal((n_systems, n_questions))
    chance = _logistic(ability[:, None] - difficulty + noise)
    outcomes = rng.random((*chance.shape, n_trials)) < chance[..., None]
    return _dataset(
        "rasch_tensor", outcomes, probability=chance, score=ability, difficulty=difficulty
    )


def model_updates(
    base: xr.Dataset,
    changes: Sequence[float],
    *,
    question_noise: float = 0.0,
    random_seed: int | None = 0,
) -> xr.Dataset:
    """Simulate new versions of the systems of a simulated benchmark.

    Parameters
    ----------
    base : xarray.Dataset
        What :func:`rasch_tensor` or :func:`biased_coins` returned.
    changes : sequence of float, one per system
        Improvement of each new version, in logits.
    question_noise : float, default 0
        Standard deviation of further changes, per system and question, in logits.
    random_seed : int, optional
        Same seed, same outcomes.

    Returns
    -------
    xarray.Dataset
        As `base`, of the new versions, with the trials of the old ones in ``prior_outcomes``
        (system, question, earlier).

    Raises
    ------
    ValueError
        If there is not one change per system.

    Examples
    --------
    >>> new = model_updates(rasch_tensor(3, 5, 2), [0.0, 0.5, 0.0])
    >>> new["prior_outcomes"].shape
    (3, 5, 2)
    """
    chance = base["probability"].values
    step = np.asarray(changes, dtype=np.float64)
    if step.shape != chance.shape[:1]:
        raise ValueError(f"changes must be one number for each of {len(chance)}; got {changes!r}")
    rng = np.random.default_rng(random_seed)
    noise = _scale("question_noise", question_noise) * rng.standard_normal(chance.shape)
    with np.errstate(divide="ignore"):  # the logit of 0 and 1 is infinite, and stays so
        updated = _logistic(np.log(chance) - np.log1p(-chance) + step[:, None] + noise)
    outcomes = rng.random(base["outcomes"].shape) < updated[..., None]
    dataset = _dataset("model_updates", outcomes, probability=updated, score=updated.mean(axis=1))
    earlier = base["outcomes"].values.astype(np.int8)
    dataset["prior_outcomes"] = (("system", "question", "earlier"), earlier)
    return dataset.assign_coords(system=base["system"], question=base["question"])


def correlated_trials(base: xr.Dataset, correlation: float, *, random_seed: int | None = 0):
    """Redraw the outcomes of a simulated benchmark with correlated trials.

    The trials of a cell share a chance from a Beta distribution around its mean, so two trials of a
    cell have the given correlation, and further trials add less information.

    Parameters
    ----------
    base : xarray.Dataset
        What :func:`rasch_tensor` or :func:`biased_coins` returned.
    correlation : float
        Between two trials of one cell, in [0, 1).
    random_seed : int, optional
        Same seed, same outcomes.

    Returns
    -------
    xarray.Dataset
        As `base`, with other ``outcomes``.

    Raises
    ------
    ValueError
        If the correlation is not in [0, 1).

    Examples
    --------
    >>> alike = correlated_trials(biased_coins([0.5], n_trials=400), 0.99)
    >>> bool(abs(alike["outcomes"].mean("trial") - 0.5).mean() > 0.4)
    True
    """
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be in [0, 1); got {correlation!r}")
    rng = np.random.default_rng(random_seed)
    chance = base["probability"].values
    shared = chance
    if correlation > 0:
        size = 1 / correlation - 1
        inside = np.clip(chance, 1e-12, 1 - 1e-12)
        shared = np.where(
            (chance > 0) & (chance < 1), rng.beta(inside * size, (1 - inside) * size), chance
        )
    outcomes = rng.random(base["outcomes"].shape) < shared[..., None]
    redrawn = base.assign(outcomes=(base["outcomes"].dims, outcomes.astype(np.int8)))
    return redrawn.assign_attrs(study="correlated_trials", correlation=correlation)


def greedy_benchmarks(
    alignment: float,
    size: int,
    *,
    n_systems: int = 20,
    n_questions: int = 30,
    n_trials: int = 80,
    random_seed: int | None = 0,
) -> GreedyBenchmarks:
    """Simulate benchmarks whose greedy runs have one alignment with the gold standard.

    Systems differ in ability; questions differ in difficulty, mostly in the same way for all
    systems. The accuracy of a greedy run is that of the gold standard with a common shift of -0.035
    and normal noise for each system. The scale of the noise gives the stated tau-b between greedy
    and gold accuracies, to 0.01. The right answers of a greedy run are those with the highest
    chance plus logistic noise.

    Parameters
    ----------
    alignment : float
        Kendall's tau-b between greedy and gold totals.
    size : int
        Number of benchmarks.
    n_systems, n_questions : int, default 20, 30
        Size of a benchmark.
    n_trials : int, default 80
        Trials of the gold standard.
    random_seed : int, optional
        Same seed, same benchmarks.

    Returns
    -------
    GreedyBenchmarks

    Raises
    ------
    ValueError
        If the alignment is not in (-1, 1) or a size is not positive.

    Examples
    --------
    >>> benchmarks = greedy_benchmarks(0.7, 3)
    >>> bool((abs(benchmarks.alignment - 0.7) <= 0.01).all())
    True
    """
    if not -1 < alignment < 1:
        raise ValueError(f"alignment must be in (-1, 1); got {alignment!r}")
    check_integer(size, "size")
    rng = np.random.default_rng(random_seed)
    drawn: list[tuple[FloatArray, IntArray, NDArray[np.int8], float]] = []
    while len(drawn) < size:
        logits = _draw_logits(n_systems, n_questions, rng)
        chance = _logistic(logits)
        gold = rng.binomial(n_trials, chance).sum(axis=1)
        noise = rng.standard_normal(n_systems)
        mean = gold / (n_trials * n_questions) + _GREEDY_SHIFT
        totals = np.rint(n_questions * (mean + _GREEDY_SDS[:, None] * noise))
        totals = np.clip(totals, 0, n_questions).astype(np.int64)
        taus = kendall_tau_b(totals, gold)
        best = int(np.nanargmin(np.abs(taus - alignment)))
        if abs(taus[best] - alignment) <= _ALIGNMENT_TOLERANCE:
            latent = logits + rng.logistic(size=logits.shape)
            places = np.argsort(np.argsort(-latent, axis=1), axis=1)
            greedy = (places < totals[best][:, None]).astype(np.int8)
            drawn.append((chance, gold, greedy, float(taus[best])))
    return GreedyBenchmarks(*(np.stack(column) for column in zip(*drawn, strict=True)))


def _draw_logits(n_systems: int, n_questions: int, rng: np.random.Generator) -> FloatArray:
    ability = _ABILITY_SD * rng.standard_normal(n_systems)
    easiness = _QUESTION_SD * rng.standard_normal(n_questions)
    cells = _CELL_SD * rng.standard_normal((n_systems, n_questions))
    return ability[:, None] + easiness + cells


def _logistic(logits: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # exp(inf) is the inf that gives 0
        return 1.0 / (1.0 + np.exp(-logits))


def _scale(name: str, value: float) -> float:
    return check_number(value, name, least=0)


def _dataset(name: str, outcomes: NDArray[np.bool_], **truth: FloatArray) -> xr.Dataset:
    """Label a simulated tensor and its truth."""
    dims = {
        "probability": ("system", "question"),
        "score": ("system",),
        "difficulty": ("question",),
    }
    n_systems, n_questions, _ = outcomes.shape
    return xr.Dataset(
        {
            "outcomes": (("system", "question", "trial"), outcomes.astype(np.int8)),
            **{key: (dims[key], values) for key, values in truth.items()},
        },
        coords={
            "system": [f"system {number + 1}" for number in range(n_systems)],
            "question": [f"question {number + 1}" for number in range(n_questions)],
        },
        attrs={"study": name},
    )
