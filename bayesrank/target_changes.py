"""Announce that the default target is another one than it was before the data grew."""

import hashlib
import warnings
from typing import NamedTuple

import numpy as np

from bayesrank.errors import TargetWarning
from bayesrank.responses import Responses

# Data sets that are remembered, the latest ones.
_MOST = 16


class _Seen(NamedTuple):
    """Data that were ranked: the number of their trials, a digest of them, and the target."""

    n_trials: int
    digest: bytes
    target: str


_seen: dict[tuple[tuple[str, ...], tuple[str, ...]], _Seen] = {}


def announce_change(data: Responses, target: str) -> None:
    """Warn if the data are earlier ones with trials added, and their target was another one.

    Parameters
    ----------
    data : Responses
        What is ranked.
    target : str
        The target that follows from their design.

    Warns
    -----
    TargetWarning
        If the intervals of the two rankings answer different questions.
    """
    key = data.systems, data.questions
    before = _seen.pop(key, None)
    grew = before is not None and before.digest == _digest(data, before.n_trials)
    if before is not None and grew and before.target != target:
        warnings.warn(
            f"target is {target!r} with the trials that were added; it was {before.target!r} "
            "before, so that the intervals answer another question: pass "
            f"target={before.target!r} to compare the two rankings",
            TargetWarning,
            stacklevel=4,
        )
    _seen[key] = _Seen(data.shape[2], _digest(data, data.shape[2]), target)
    if len(_seen) > _MOST:
        del _seen[next(iter(_seen))]


def forget() -> None:
    """Forget all data that were ranked."""
    _seen.clear()


def _digest(data: Responses, n_trials: int) -> bytes:
    values = data.outcomes if data.scores is None else data.scores
    return hashlib.sha256(np.ascontiguousarray(values[..., :n_trials]).tobytes()).digest()
