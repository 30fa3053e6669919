"""Like questions of a complete table merged into one, so that a fit of its abilities has fewer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.item_likelihoods import Lines
from bayesrank.inference.fits.two_sided import TwoSided


def merged_questions(
    problem: TwoSided[Lines],
) -> tuple[TwoSided[Lines], NDArray[np.intp] | None]:
    """Merge the questions of one complete table that have the same number right.

    Their difficulties are equal where they have no prior and questions discriminate alike.

    Parameters
    ----------
    problem : TwoSided of Lines
        Such a problem, with answers to all questions but those that are left out.

    Returns
    -------
    problem : TwoSided of Lines
        The problem of the merged questions, without those that are left out; the same one where
        there is nothing to merge, an answer is missing, or there are several resamples.
    place : numpy.ndarray of intp and shape (question,), or None
        Where each question is among the merged ones, any for those that are left out; None where
        the problem is the same.
    """
    lines = problem.likelihood
    asked = lines.trials.sum(axis=(1, 2))[0]
    kept = np.flatnonzero(asked)
    complete = (asked[kept] == lines.trials.max() * lines.by_trial.size).all()
    if problem.size != 1 or not kept.size or not complete:
        return problem, None
    distinct, found, counts = np.unique(
        lines.by_question[0, kept], return_inverse=True, return_counts=True
    )
    if distinct.size == asked.size:
        return problem, None
    # Of what was right only sums count, and this table has them.
    right = lines.by_trial[..., np.newaxis] * (counts * distinct / lines.by_question.sum())
    trials = np.broadcast_to(counts * lines.trials.max(), right.shape)
    order = kept[np.argsort(found, kind="stable")]
    starts = np.cumsum(counts) - counts
    held = np.add.reduceat(problem.hold_v[:, :, order], starts, axis=2)
    place = np.zeros(lines.by_question.size, dtype=np.intp)
    place[kept] = found
    merged = replace(lines, right=right, trials=trials)
    return replace(problem, likelihood=merged, hold_v=held), place
