"""What the simulated tensors are drawn from: designs, generators of chances, expected data."""

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank import Comparisons, Responses
from bayesrank.views import Events

Array = NDArray[np.float64]
Target = Literal["benchmark", "population"]
Generator = Literal["rasch", "beta", "prior"]
Prior = Literal["cells", "systems", "walk"]

# Kinds of questions in a population, from which those of a tensor are drawn with replacement.
N_KINDS = 1000

# Strength of the Beta noise around the chances of the Rasch model, see "beta" below.
BETA_STRENGTH = 5.0

# Variance of a walk from its first trial to its last: that of the default penalty of the model.
WALK_VARIANCE = 0.5

# Up to here all sets of right systems are enumerated; above, this many trials are drawn instead.
_MOST_ENUMERATED = 12
_N_DRAWN_EVENTS = 200_000


class Design(NamedTuple):
    """Numbers of systems, questions and trials."""

    n_systems: int
    n_questions: int
    n_trials: int

    def __str__(self) -> str:
        return "x".join(str(size) for size in self)


DESIGNS = (Design(10, 30, 8), Design(20, 30, 80), Design(5, 200, 1))


def derive_seed(*words: object) -> np.random.SeedSequence:
    """Return the seed that belongs to these words, the same in every run."""
    digest = hashlib.sha256("|".join(str(word) for word in words).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))


@dataclass(frozen=True, eq=False)
class World:
    """The truth behind simulated tensors.

    Attributes
    ----------
    design : Design
        Size of a tensor.
    target : {"benchmark", "population"}
        Whether all tensors have the same questions, or each draws its own.
    chances : numpy.ndarray of shape (system, kind)
        Chance of a right answer to each kind of question. On a benchmark every question is a kind
        of its own.
    """

    design: Design
    target: Target
    chances: Array

    @property
    def weights(self) -> Array:
        """How many questions of each kind a tensor has on average, of shape (kind,)."""
        n_kinds = self.chances.shape[1]
        return np.full(n_kinds, self.design.n_questions / n_kinds)

    @property
    def accuracy(self) -> Array:
        """Chance of a right answer to a random question, of shape (system,)."""
        return self.chances.mean(axis=1)

    def draw_chances(self, rng: np.random.Generator, size: int) -> Array:
        """Return the chances behind tensors, of shape (size, system, question)."""
        if self.target == "benchmark":
            return np.broadcast_to(self.chances, (size, *self.chances.shape))
        kinds = rng.integers(0, self.chances.shape[1], (size, self.design.n_questions))
        return self.chances[:, kinds].swapaxes(0, 1)

    def draw_outcomes(self, rng: np.random.Generator, size: int) -> NDArray[np.int8]:
        """Return tensors of shape (size, system, question, trial)."""
        chances = self.draw_chances(rng, size)[..., np.newaxis]
        shape = (*chances.shape[:-1], self.design.n_trials)
        return (rng.random(shape, dtype=np.float32) < chances).astype(np.int8)

    def draw_responses(self, rng: np.random.Generator, size: int = 1) -> Responses:
        """Return the data of some evaluations in a row, with one earlier outcome per cell."""
        chances = np.concatenate(list(self.draw_chances(rng, size)), axis=1)
        outcomes = rng.random((*chances.shape, self.design.n_trials)) < chances[..., np.newaxis]
        earlier = rng.random((*chances.shape, 1)) < chances[..., np.newaxis]
        return Responses(
            outcomes.astype(np.int8),
            prior_outcomes=earlier.astype(np.int8),
        )

    def expected_comparisons(self) -> Comparisons:
        """Return the expected wins and ties of a tensor."""
        right = self.chances * (self.design.n_trials * self.weights)
        wins = right @ (1.0 - self.chances).T
        ties = right @ self.chances.T
        ties += ((1.0 - self.chances) * (self.design.n_trials * self.weights)) @ (
            1.0 - self.chances
        ).T
        return Comparisons(wins, (ties + ties.T) / 2)

    def expected_events(self, rng: np.random.Generator) -> Events:
        """Return the expected number of each set of right and wrong systems in a tensor."""
        n_systems, n_events = self.design.n_systems, self.weights.sum() * self.design.n_trials
        if n_systems <= _MOST_ENUMERATED:
            sets = np.arange(1, 2**n_systems - 1)
            right = (sets[:, np.newaxis] >> np.arange(n_systems) & 1).astype(bool)
            chance = np.ones((len(sets), self.chances.shape[1]))
            for system, chances in enumerate(self.chances):
                chance *= np.where(right[:, [system]], chances, 1.0 - chances)
            return self._events(right, n_events * chance.mean(axis=1))
        kinds = rng.integers(0, self.chances.shape[1], _N_DRAWN_EVENTS)
        drawn = rng.random((_N_DRAWN_EVENTS, n_systems)) < self.chances[:, kinds].T
        # As whole numbers, since rows are slow to sort.
        bits = np.arange(n_systems)
        sets, multiplicity = np.unique(drawn @ (1 << bits), return_counts=True)
        right = (sets[:, np.newaxis] >> bits & 1).astype(bool)
        mixed = right.any(axis=1) & ~right.all(axis=1)
        return self._events(right[mixed], n_events / _N_DRAWN_EVENTS * multiplicity[mixed])

    def expected_responses(self, rng: np.random.Generator) -> Responses:
        """Return responses whose counts are the expected ones, which are no whole numbers.

        They have one question of every kind, in as many trials as a tensor has of that kind.
        """
        trials = np.broadcast_to(self.design.n_trials * self.weights, self.chances.shape)
        right = trials * self.chances
        data = Responses(np.zeros((*self.chances.shape, self.design.n_trials), dtype=np.int8))
        # The statistics are cached when they are first asked for; here they are there before.
        data.__dict__.update(
            trials=trials,
            counts=np.stack([trials - right, right], axis=-1),
            binary_counts=(right, trials),
            comparisons=self.expected_comparisons(),
            events=self.expected_events(rng),
        )
        return data

    def _events(self, right: NDArray[np.bool_], expected: Array) -> Events:
        systems = tuple(f"system {i + 1}" for i in range(self.design.n_systems))
        # Kernels take fractions where observed events are counted.
        return Events(right, ~right, cast("NDArray[np.int64]", expected), systems)


@dataclass(frozen=True, eq=False)
class Walk(World):
    """The truth behind tensors whose trials are times: Rasch models with abilities that walk.

    Attributes
    ----------
    ability : numpy.ndarray of shape (system, trial)
        Beside difficulties with mean 0.
    difficulty : numpy.ndarray of shape (question,)
        Difficulties. `chances` are means over the trials.
    """

    ability: Array
    difficulty: Array

    def draw_responses(self, rng: np.random.Generator, size: int = 1) -> Responses:
        """Return the data of some evaluations of the same questions."""
        chances = np.tile(_rasch_chances(self.ability, self.difficulty), (1, size, 1))
        return Responses((rng.random(chances.shape) < chances).astype(np.int8))


def draw_world(
    design: Design,
    target: Target,
    generator: Generator,
    rng: np.random.Generator,
    *,
    prior: Prior | None = None,
) -> World:
    """Draw what tensors come from.

    Parameters
    ----------
    design : Design
        Size of a tensor.
    target : {"benchmark", "population"}
        Whether its questions are fixed or drawn.
    generator : {"rasch", "beta", "prior"}
        "rasch": the logit of a chance is ability minus difficulty, both standard normal. "beta":
        each chance c of these is replaced by one drawn from Beta(5 c, 5 (1 - c)). "prior": what a
        posterior supposes.
    rng : numpy.random.Generator
        Source of randomness.
    prior : {"cells", "systems", "walk"}, optional
        Under "prior": uniform chances, of each system at each question or of each system at all of
        them, or a random walk of abilities.

    Returns
    -------
    World
    """
    n_kinds = design.n_questions if target == "benchmark" else N_KINDS
    if generator == "prior" and prior == "walk":
        return _draw_walk(design, target, rng)
    if generator == "prior":
        chances = rng.random((design.n_systems, 1 if prior == "systems" else n_kinds))
        return World(design, target, np.broadcast_to(chances, (design.n_systems, n_kinds)))
    ability = rng.normal(size=(design.n_systems, 1))
    chances = 1.0 / (1.0 + np.exp(rng.normal(size=n_kinds) - ability))
    if generator == "beta":
        chances = rng.beta(BETA_STRENGTH * chances, BETA_STRENGTH * (1.0 - chances))
    return World(design, target, chances)


def _draw_walk(design: Design, target: Target, rng: np.random.Generator) -> Walk:
    n_steps = design.n_trials - 1
    steps = rng.normal(size=(design.n_systems, n_steps)) * (WALK_VARIANCE / n_steps) ** 0.5
    first = rng.normal(size=(design.n_systems, 1))
    ability = np.concatenate([first, first + np.cumsum(steps, axis=1)], axis=1)
    difficulty = rng.normal(size=design.n_questions)
    difficulty -= difficulty.mean()
    chances = _rasch_chances(ability, difficulty).mean(axis=-1)
    return Walk(design, target, chances, ability, difficulty)


def _rasch_chances(ability: Array, difficulty: Array) -> Array:
    """Return chances of shape (system, question, trial)."""
    return 1.0 / (1.0 + np.exp(difficulty[:, np.newaxis] - ability[:, np.newaxis]))
