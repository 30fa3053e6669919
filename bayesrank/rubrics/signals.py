"""Signals of an attempt that shipped schemes read, and a calibration of verifier scores."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.validation import check_number

SIGNALS: Mapping[str, str] = MappingProxyType(
    {
        "has_box": "whether the answer is in the required format, such as \\boxed{} (0 or 1)",
        "is_correct": "whether the extracted answer is right (0 or 1)",
        "token_ratio": "tokens of the completion, as a fraction of the largest allowed number",
        "repeated_pattern": "whether the finish reason is not 'stop' (0 or 1)",
        "prompt_bpt": "bits per token of the prompt under the system",
        "completion_bpt": "bits per token of the completion; lower is more confident",
        "compass_A": "a verifier's probability of correct",
        "compass_B": "a verifier's probability of wrong",
        "compass_C": "a verifier's probability of irrelevant or off-task",
        "completion_mean_logprob": "mean log probability of the tokens of the completion",
        "completion_sum_logprob": "sum of them",
        "completion_min_logprob": "smallest of them",
        "prompt_mean_logprob": "mean log probability of the tokens of the prompt",
        "prompt_sum_logprob": "sum of them",
    }
)
"""Names and meanings of the signals that shipped schemes read; tables may have other signals."""


def label_probabilities(
    scores: ArrayLike, *, bias: ArrayLike = 0.0, temperature: float = 1.0
) -> NDArray[np.float64]:
    r"""Turn a verifier's scores of labels into calibrated probabilities.

    .. math:: p = \operatorname{softmax}\left(\frac{s - b}{T}\right)

    Parameters
    ----------
    scores : array_like of shape (..., label)
        Logits, or log-probabilities, of the labels.
    bias : array_like of shape (label,), default 0
        Scores of the labels without evidence.
    temperature : float, default 1
        Values above 1 make the probabilities of the verifier less extreme.

    Returns
    -------
    numpy.ndarray of shape (..., label)

    Raises
    ------
    ValueError
        If the temperature is not a number above 0.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), appendix F.1. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> label_probabilities([2.0, 1.0, 1.0], temperature=0.5).round(3)
    array([0.787, 0.107, 0.107])
    """
    check_number(temperature, "temperature", above=0)
    logits = (np.asarray(scores, dtype=np.float64) - np.asarray(bias)) / temperature
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)
