"""Contributions of questions and trials to scores, from fits that leave some of them out."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.calibrate.variation import Variation
from bayesrank.inference.resample.clusters import FEW_UNITS, SOME_UNITS, asked_clusters
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.trials import require_two_trials, widening_for_single_trials
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# More clusters are joined at random into so many: each part costs a fit.
_MOST_PARTS = 50

# Divisions of the questions into few parts where fits have several maxima.
_DIVISIONS = 4


def question_jackknife(
    scores_without: Callable[[NDArray[np.bool_]], Array], data: Responses
) -> Variation | None:
    """Return what questions add to a fit's scores, by the delete-a-group jackknife.

    None where some questions cannot be spared for an estimate; `scores_without` are those of fits
    that leave questions out (`Fit.without`).

    References
    ----------
    .. [1] P. S. Kott. The delete-a-group jackknife. Journal of Official Statistics 17 (2001).
    """
    parts = _parts(data)
    n = int(parts.max()) + 1
    scores = scores_without(parts == np.arange(n)[:, np.newaxis])
    if not np.isfinite(scores).all():
        return None
    return Variation.of(Contributions.of(scores, left_out=True))


def jackknife_of_many(
    scores_without: Callable[[NDArray[np.bool_]], Array], score: Array, data: Responses
) -> Variation | None:
    """Return what questions add to scores, by a jackknife that deletes many at once.

    Where the likelihood has several maxima, a fit without a few questions nearly always reaches the
    same as the whole does, and says nothing of how far estimates from other questions jump. Fits
    without a fifth of them do. Their deviations are from the estimate, not from their own mean, so
    that an estimate at another maximum than most of them has wide intervals.

    References
    ----------
    .. [1] J. Shao and C. F. J. Wu. A general theory for jackknife variance estimation. Annals of
       Statistics 17 (1989). https://doi.org/10.1214/aos/1176347263
    """
    parts = _parts(data)
    n = int(parts.max()) + 1
    large = min(FEW_UNITS, n)
    rng = np.random.default_rng(0)
    joined = np.stack([rng.permutation(n) % large for _ in range(_DIVISIONS)])
    left_out = (joined[:, parts] == np.arange(large)[:, np.newaxis, np.newaxis]) & (parts >= 0)
    deviations = scores_without(left_out.reshape(-1, len(parts))) - score
    if not np.isfinite(deviations).all():
        return None
    copies = np.full(len(deviations), (large - 1) / len(deviations))
    return Variation.of(Contributions(deviations, copies, n - 1.0))


def jackknife_by_refits(
    refit: Callable[[Array, Array], Array], data: Responses, kind: str
) -> Variation | None:
    """Return how scores vary over questions, runs or trials, by fits to the others.

    None where some units cannot be spared for an estimate; `refit` returns scores fitted to numbers
    right and of trials (`Fit.refit`). DataError if trials vary and most observed cells have one.
    """
    if kind != "question":
        return _trial_jackknife(refit, data, kind)
    right, trials = (counts.astype(float) for counts in data.binary_counts)

    def without(left_out: NDArray[np.bool_]) -> Array:
        kept = ~left_out[:, np.newaxis, :]
        return refit(right * kept, trials * kept)

    return question_jackknife(without, data)


def _trial_jackknife(
    refit: Callable[[Array, Array], Array], data: Responses, kind: str
) -> Variation | None:
    """Return how scores vary over parts of the trials, by several divisions into parts.

    None where some parts leave nothing to estimate.
    """
    require_two_trials(data)
    rng = np.random.default_rng(0)
    n_parts = min(SOME_UNITS, data.shape[2])
    n_divisions = _MOST_PARTS // n_parts
    divisions = [_counts_of_parts(data, n_parts, kind, rng) for _ in range(n_divisions)]
    # All in one call, which climbs side by side.
    scores = refit(*(np.concatenate(counts) for counts in zip(*divisions, strict=True)))
    if not np.isfinite(scores).all():
        return None
    scores = scores * widening_for_single_trials(data)
    found = Contributions.of(scores, np.repeat(np.arange(n_divisions), n_parts), left_out=True)
    # Divisions of the same trials know no more than these.
    units = data.trials - 1 if kind == "trial" else data.trials.max() - 1
    freedom = min(found.freedom, float(np.maximum(units, 0).sum()))
    return Variation.of(replace(found, copies=found.copies / n_divisions, freedom=freedom))


def _counts_of_parts(
    data: Responses, n_parts: int, kind: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return numbers right and of trials without each part, of shape (part, system, question)."""
    n_systems, n_questions, n_trials = data.shape
    shape = (1 if data.paired else n_systems, 1 if kind == "run" else n_questions, n_trials)
    places = rng.random(shape)  # answers of one run of all systems may hang together
    if kind == "trial" and not data.paired:
        places = np.where(data.observed, places, 1.0)  # missing ones come last
    # Cells with fewer trials than parts begin at any of these.
    order = places.argsort(axis=-1).argsort(axis=-1)
    order += rng.integers(n_parts, size=(*order.shape[:-1], 1))
    kept = data.observed & (order % n_parts != np.arange(n_parts).reshape(-1, 1, 1, 1))
    return (kept & (data.outcomes == 1)).sum(axis=-1, dtype=float), kept.sum(axis=-1, dtype=float)


def _parts(data: Responses) -> NDArray[np.intp]:
    """Return the part of every question, -1 for those that nobody was asked."""
    parts = asked_clusters(data)
    n_parts = int(parts.max()) + 1
    if n_parts > _MOST_PARTS:
        joined = np.random.default_rng(0).permutation(n_parts) % _MOST_PARTS
        parts = np.where(parts < 0, -1, joined[parts])
    return parts
