"""Simulated signals of attempts, for rubrics.

Outcomes are those of :func:`bayesrank.datasets.load_olympiad` for eleven of its systems. Everything
else is simulated and calibrated to nothing: no signal says anything about the model that a system
is named after. The simulation has the features that rubrics react to:

- Systems differ in the length of their completions, in how often they box an answer, in how sure
  they are, and in how much surer they are where they are right.
- A harder question has a more surprising prompt, and longer and less sure completions.
- A wrong completion is longer and less sure. One that reaches the limit of tokens is cut off, which
  only wrong ones do.
- The verifier is right most of the time. It likes some systems, and longer completions, and takes a
  completion that is cut off, or without a box, for no answer.
"""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.datasets.olympiad import load_olympiad

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

# The eleven systems of the published study of rubrics, whose own data are not published.
SYSTEMS = (
    "DS-R1-Qwen",
    "LIMO-v2",
    "OpenThinker2",
    "OpenThinker3",
    "Qwen3-Thinking",
    "Sky-T1-Flash",
    "gpt-oss-high",
    "gpt-oss-low",
    "gpt-oss-medium",
    "EXAONE-4.0",
    "OR-Nemotron",
)
_SEED = 20
_MOST_TOKENS = 32_768


def load_attempts(benchmark: str | None = None) -> "pd.DataFrame":
    """Load simulated attempts of eleven systems with the signals that rubrics read.

    The table has the form of the published study of rubrics [1]_: eleven systems, 120 questions of
    four olympiads, 80 sampled runs and a greedy one. Whether an attempt is right is as in
    :func:`load_olympiad`; all other signals are simulated, and calibrated to nothing.

    Parameters
    ----------
    benchmark : {"AIME'24", "HMMT'25", "AIME'25", "BrUMO'25"}, optional
        Keep only this benchmark; all four by default.

    Returns
    -------
    pandas.DataFrame
        One row per attempt: ``system``, ``question``, ``trial`` (1 to 80; 0 for the greedy run),
        ``group`` (the benchmark), ``greedy`` (0 or 1), and the nine signals ``has_box``,
        ``is_correct``, ``token_ratio``, ``repeated_pattern``, ``prompt_bpt``, ``completion_bpt``,
        ``compass_A``, ``compass_B`` and ``compass_C``, whose meanings
        :data:`bayesrank.rubrics.SIGNALS` states.

    Raises
    ------
    ValueError
        If `benchmark` is none of the four.

    References
    ----------
    .. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026), appendix F.
       https://doi.org/10.48550/arXiv.2603.10960

    Examples
    --------
    >>> attempts = load_attempts("AIME'25")
    >>> attempts.shape
    (26730, 14)
    >>> attempts["system"].nunique(), int(attempts["greedy"].sum())
    (11, 330)
    """
    groups = load_olympiad(benchmark).groups  # which refuses a benchmark that is not known
    attempts = _simulate()
    return attempts.loc[attempts["group"].isin(groups or ())].reset_index(drop=True)


@cache
def _simulate() -> "pd.DataFrame":
    """Simulate all attempts, by system, question and trial."""
    import pandas as pd

    data = load_olympiad()
    kept = [data.systems.index(f"{name} (sim)") for name in SYSTEMS]
    right = np.append(np.asarray(data.prior_outcomes), data.outcomes, axis=-1)[kept]
    signals = _draw_signals(right.astype(np.float64))
    labels = {
        "system": [data.systems[place] for place in kept],
        "question": data.questions,
        "trial": range(right.shape[2]),
    }
    index = pd.MultiIndex.from_product(list(labels.values()), names=list(labels))
    columns = {name: np.broadcast_to(each, right.shape).ravel() for name, each in signals.items()}
    table = pd.DataFrame(columns, index=index).reset_index()
    group = np.repeat(np.asarray(data.groups, dtype=object), right.shape[2])
    table.insert(3, "group", np.tile(group, len(kept)))
    table.insert(4, "greedy", (table["trial"] == 0).astype(int))
    return table


def _draw_signals(right: Array) -> dict[str, NDArray[np.generic]]:
    """Draw signals, of shapes that broadcast to (system, question, trial)."""
    from bayesrank.rubrics.signals import label_probabilities

    # Only `random` is used: NumPy keeps the streams of a bit generator, not those of the
    # distributions that are derived from it.
    rng = np.random.Generator(np.random.PCG64(_SEED))
    n_systems, n_questions, _ = right.shape

    def trait(low: float, high: float) -> Array:
        """Draw what a system is like."""
        return low + (high - low) * rng.random((n_systems, 1, 1))

    def noise(*shape: int) -> Array:
        """Draw logistic noise of standard deviation 1."""
        chance = rng.random(shape)
        return np.log(chance / (1 - chance)) * np.sqrt(3) / np.pi

    wrong = 1 - right
    difficulty = wrong.mean(axis=(0, 2), keepdims=True)
    difficulty = (difficulty - difficulty.mean()) / difficulty.std()
    length = np.log(0.25) + trait(-0.5, 0.5) + 0.25 * difficulty + 0.35 * wrong
    length = length + 0.35 * noise(*right.shape)
    tokens = np.minimum(np.ceil(_MOST_TOKENS * np.exp(length)), _MOST_TOKENS - right)
    cut = tokens == _MOST_TOKENS
    boxing = np.where(right == 1, trait(0.96, 1.0), trait(0.6, 0.95))
    boxed = (rng.random(right.shape) < boxing) & ~cut
    surprise = 1.5 + 0.3 * difficulty + trait(-0.2, 0.2) + 0.1 * noise(n_systems, n_questions, 1)
    unsure = np.log(trait(0.25, 0.6)) + 0.1 * difficulty + trait(0.0, 0.3) * wrong
    unsure = unsure + 0.15 * noise(*right.shape)
    for_right = 1.2 * (right - wrong) + 0.8 * (length - np.log(0.25)) + trait(-0.4, 0.4)
    for_right = for_right + noise(*right.shape)
    for_none = -2.5 + 3.0 * cut + 1.5 * ~boxed + noise(*right.shape)
    verifier = label_probabilities(np.stack([for_right, -for_right, for_none], axis=-1))
    return {
        "has_box": boxed.astype(int),
        "is_correct": right.astype(int),
        "token_ratio": tokens / _MOST_TOKENS,
        "repeated_pattern": cut.astype(int),
        "prompt_bpt": surprise,
        "completion_bpt": np.exp(unsure),
        **{f"compass_{label}": verifier[..., place] for place, label in enumerate("ABC")},
    }
