"""The true score of a world under a configuration: what its intervals are to hold.

====================== ===========================================================================
configuration          true score
====================== ===========================================================================
own prior, a walk      the ability at the last trial
likelihood             the maximiser for the expected counts of a tensor, prior included
item model, population the limit for many questions of the same trials, each with its parameters
item model that        the expected score of a new tensor, by simulation: default priors, marginal
shrinks                likelihoods; on a benchmark those too that take trials for times
closed form, k trials  the functional of the true chances
bayes, population      the expected score, shrunk as the estimate is
smooth NumPy ranker    the score of the expected data; where questions are weighed by the answers
                       to them, population, the limit for many questions of the same trials
other NumPy rankers    the expected score of a new data set of the same design, by simulation
====================== ===========================================================================
"""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank import PRESETS, point_estimate, rank
from bayesrank.errors import NoFiniteEstimate
from bayesrank.method import load_function
from bayesrank.priors import Normal, as_prior
from bayesrank.results.ranks import rank_scores
from calibration.configurations import Configuration
from calibration.worlds import Walk, World

Array = NDArray[np.float64]

# Simulated data sets of an expected score. Its error is 1/14 of the standard deviation of a score,
# or less where scores follow accuracies.
N_DATA_SETS = 200
_BATCH = 100

# Tensors whose questions together stand for a population.
N_TENSORS = 100

# Questions of each kind in the limit for many questions, where every kind is there: what is left is
# the noise of the trials of 50,000 questions.
N_COPIES = 50

# Penalties on parameters of systems, which are to weigh as much against them as against one tensor.
_SYSTEM_PENALTIES = frozenset({"slope_reg", "state_reg"})

# Simulated fits of an expected score. With accuracies for control its error is 1/25 of the standard
# deviation of a score or less where scores follow accuracies (rasch_mml, irt_2pl, irt_3pl), and
# about 1/10 elsewhere.
N_FITS = 20


def true_score(configuration: Configuration, world: World, rng: np.random.Generator) -> Array:
    """Return the true score of a world.

    Parameters
    ----------
    configuration : Configuration
        Whose score.
    world : World
        The truth.
    rng : numpy.random.Generator
        Source of randomness where the score is simulated.

    Returns
    -------
    numpy.ndarray of shape (system,)
    """
    if isinstance(world, Walk):
        return world.ability[:, -1]
    if configuration.method.family == "item response":
        if _is_shrunken(configuration):
            return _mean_estimate(configuration, world, rng)
        if world.target == "population":
            return _limit(configuration, world, rng)
        # The counts of trials that are times would not do.
        if configuration.has_ordered_trials:
            return _mean_estimate(configuration, world, rng)
    if configuration.method.data in ("comparisons", "responses"):
        return _maximiser(configuration, world, rng)
    if configuration.backend == "exact":
        return _functional(configuration, world)
    if configuration.method.smooth:
        if world.target == "population" and configuration.method.weighs_questions:
            return scores_of(configuration, *_many_questions(configuration.method.data, world, rng))
        return scores_of(configuration, *_expected_arguments(configuration.method.data, world))
    batches = [_simulated_scores(configuration, world, rng) for _ in range(N_DATA_SETS // _BATCH)]
    scores, accuracies = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return expected_score(scores, accuracies - world.accuracy)


def scores_of(configuration: Configuration, *arguments: Any) -> Array:
    """Call the ranker of a configuration."""
    function = load_function(configuration.method.function)
    result = function(*arguments, **configuration.method_options)
    return np.asarray(result[0] if isinstance(result, tuple) else result)


def _maximiser(configuration: Configuration, world: World, rng: np.random.Generator) -> Array:
    if configuration.method.data == "comparisons":
        data = world.expected_comparisons()
    else:
        data = world.expected_responses(rng)
    # The mode stands for the mean of a sampler's draws.
    backend = "map" if configuration.backend == "nuts" else configuration.backend
    options = {**configuration.options, "calibration": "none"}
    result = rank(data, configuration.ranker, backend=backend, draws=0, **options)
    return np.asarray(result["ranking"].to_dataset()["score"])


def _ranker_of_ability(configuration: Configuration) -> tuple[str, dict[str, Any]]:
    """Return ranker and options, without the quantile that mml may score by: it draws abilities."""
    if configuration.backend != "mml":
        return configuration.ranker, dict(configuration.options)
    options = {**configuration.method_options, **configuration.options}
    options.pop("quantile", None)
    return configuration.method.name, options


def _is_shrunken(configuration: Configuration) -> bool:
    """Return whether the scale of the scores depends on how much data there are.

    Default priors learn theirs from the data, and abilities of a marginal likelihood are shrunk.
    """
    return configuration.backend == "mml" or configuration.ranker not in PRESETS


def _mean_estimate(configuration: Configuration, world: World, rng: np.random.Generator) -> Array:
    """Return the expected estimate from a new tensor, of those that have one."""
    backend = "map" if configuration.backend == "nuts" else configuration.backend
    ranker, options = _ranker_of_ability(configuration)
    scores, accuracies = [], []
    for _ in range(N_FITS):
        data = world.draw_responses(rng)
        with suppress(NoFiniteEstimate):
            scores.append(point_estimate(data, ranker, backend=backend, **options))
            right, trials = data.binary_counts
            accuracies.append(right.sum(axis=1) / trials.sum(axis=1))
    if not scores:
        raise ValueError("no simulated tensor has a finite estimate")
    if len(scores) < N_FITS:
        # Those with an estimate are no random tensors: the accuracy to expect of them is not known,
        # and the plain mean of 20 is off by 1/4 of a standard deviation.
        return np.mean(scores, axis=0)
    return expected_score(np.array(scores), np.array(accuracies) - world.accuracy)


def expected_score(scores: Array, excess: Array) -> Array:
    """Return what simulated scores, of shape (data set, system), have for expectation.

    `excess`, of the same shape, has expectation zero: how far accuracies are above those expected.
    What chance made of them in the data sets, of the system itself and of all together, is taken
    out of the mean of the scores by regression: accuracies are control variates (Lavenberg and
    Welch 1981, https://doi.org/10.1287/mnsc.27.3.322).
    """
    level = excess.mean(axis=1)
    expected = np.empty(scores.shape[1])
    for system, own in enumerate(excess.T):
        design = np.stack([np.ones(len(scores)), own, level], axis=1)
        expected[system] = np.linalg.lstsq(design, scores[:, system])[0][0]
    return expected


def _limit(configuration: Configuration, world: World, rng: np.random.Generator) -> Array:
    """Return the score that questions of a population lead to.

    Every question brings parameters of its own, estimated from few answers, so that the expected
    answers would not do. The score is the limit for many questions, with a prior that weighs as
    much against them as it does against a tensor's.
    """
    backend = "map" if configuration.backend == "nuts" else configuration.backend
    prior = PRESETS[configuration.ranker].prior
    options = dict(configuration.options)
    if prior is not None and backend == "map":
        mean, precision = as_prior(prior).quadratic() or (0.0, 0.0)
        options["prior"] = Normal(float(mean), float((N_TENSORS * precision) ** -0.5))
    for name in _SYSTEM_PENALTIES.intersection(configuration.method.options):
        options[name] = N_TENSORS * configuration.method.options[name].default
    return point_estimate(
        world.draw_responses(rng, N_TENSORS), configuration.ranker, backend=backend, **options
    )


def _functional(configuration: Configuration, world: World) -> Array:
    method = configuration.method
    if method.name == "bayes" and world.target == "population":
        # Linear in the counts, so that those expected have the expected score: that of other
        # questions is shrunk as the estimate is.
        shares = np.stack([1.0 - world.chances, world.chances], axis=-1)
        options = {**configuration.method_options, "quantile": None}
        arguments = (world.design.n_trials * shares, np.array([0.0, 1.0]), shares, world.weights)
        return load_function(method.function)(*arguments, **options)
    if method.name == "thompson":
        return -np.asarray(rank_scores(world.accuracy, method="average"), dtype=np.float64)
    if method.functional is None:
        return world.accuracy
    chances = world.chances
    if method.data == "counts":
        arguments = (np.stack([1.0 - chances, chances], axis=-1), np.array([0.0, 1.0]))
    else:
        arguments = (chances,)
    functional = load_function(method.functional)
    return functional(*arguments, world.weights, **configuration.method_options)


def _expected_arguments(kind: str, world: World) -> tuple[Any, ...]:
    """Return the arguments of a smooth ranker for the expected data."""
    chances, n_trials = world.chances, world.design.n_trials
    if kind == "pairs":
        expected = world.expected_comparisons()
        return expected.wins, expected.ties
    trials = np.full(chances.shape, float(n_trials))
    if kind == "grades":
        return chances, world.weights
    if kind == "grouped grades":
        return chances, None, world.weights
    if kind == "binary":
        return trials * chances, trials, world.weights
    if kind == "counts":
        counts = np.stack([trials * (1.0 - chances), trials * chances], axis=-1)
        return counts, np.array([0.0, 1.0]), world.weights
    raise ValueError(f"kind must be grades, binary, counts or pairs for expected data; got {kind}")


def _many_questions(kind: str, world: World, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return the arguments of a smooth ranker for many questions with as many trials as a tensor's.

    What a ranker takes from the answers to a question, such as its difficulty, another question
    has from as few answers, so that the expected answers would not do.
    """
    chances = np.tile(world.chances, N_COPIES)
    n_trials = world.design.n_trials
    correct = rng.binomial(n_trials, chances).astype(np.float64)
    weights = np.tile(world.weights / N_COPIES, N_COPIES)
    if kind == "grades":
        return correct / n_trials, weights
    return correct, np.full(chances.shape, float(n_trials)), weights


def _simulated_scores(
    configuration: Configuration, world: World, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return scores and accuracies in new data sets, both of shape (data set, system)."""
    kind = configuration.method.data
    if kind == "grades":
        counts = rng.binomial(world.design.n_trials, world.draw_chances(rng, _BATCH))
        grades = counts / world.design.n_trials
        return scores_of(configuration, grades), grades.mean(axis=-1)
    outcomes = world.draw_outcomes(rng, _BATCH)
    accuracies = outcomes.mean(axis=(2, 3))
    if kind == "stream":
        streams = np.ascontiguousarray(outcomes.transpose(0, 3, 2, 1))
        return np.stack([scores_of(configuration, stream) for stream in streams]), accuracies
    if kind == "pairs":
        right = outcomes.reshape(*outcomes.shape[:2], -1).astype(np.float32)
        wrong = 1.0 - right
        wins = right @ wrong.swapaxes(1, 2)
        ties = right @ right.swapaxes(1, 2) + wrong @ wrong.swapaxes(1, 2)
        ties[:, *np.diag_indices(world.design.n_systems)] = 0.0
        scores = scores_of(configuration, wins.astype(np.float64), ties.astype(np.float64))
        return scores, accuracies
    raise ValueError(f"kind must be grades, stream or pairs for simulated data; got {kind}")
