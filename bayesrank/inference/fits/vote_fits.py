"""Fits of votes with covariates under normal priors, and where Newton's method begins."""

from contextlib import suppress
from typing import Any

import numpy as np

from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_counts import fit_pairs
from bayesrank.inference.fits.pair_rows import BLOCK, PairRows, pair_rows
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.vote_likelihoods import TwoSided, VoteModel
from bayesrank.inference.fits.zero_sum import first_scores
from bayesrank.views import Comparisons
from bayesrank.vote_rows import VoteRows


def fit_pair_rows(
    likelihood: PairLikelihood | VoteModel, data: Comparisons, design: Design, **priors: Any
) -> Fit:
    """Fit a model of votes by Newton's method; without covariates equal votes are merged.

    Priors are those of :func:`~bayesrank.inference.fits.pair_rows.pair_rows`.
    """
    votes = VoteRows.of(data)
    if not design.shape[1]:
        votes = votes.merged()
        design = Design.empty(len(votes.first))
    problem = pair_rows(likelihood, votes, design, **priors)
    optimum = maximise(problem, start_of_votes(problem, data)[np.newaxis])
    if not design.shape[1]:
        return problem.fit_at(optimum)
    return problem.fit_at(optimum, rows=problem.without_priors)


def start_of_votes(problem: PairRows, data: Comparisons) -> Array:
    """Return where to begin: at the fit of the counts of pairs, else by points and shares."""
    likelihood, n_effects = problem.likelihood, problem.design.shape[1]
    n, n_states = problem.width, problem.tree.n_states

    def everywhere(scores: Array, shared: Array) -> Array:
        return np.concatenate([np.tile(scores, n_states), np.zeros(n_effects), shared])

    if isinstance(likelihood, TwoSided) and n_effects + n_states > 1:
        priors = {
            "prior_mean": problem.prior.mean[0, :n],
            "prior_precision": problem.prior.precision[0],
        }
        if problem.n_shared:
            priors["tie_mean"], priors["tie_precision"] = problem.mean[-1], problem.precision[-1]
        pooled = fit_pairs(likelihood.likelihood, data.wins, data.ties, **priors)
        if pooled.converged:
            found = everywhere(pooled.score, pooled.free[n:])
            return found + _step_of_effects(problem, found) if n_effects else found
    points, played = (data.wins + 0.5 * data.ties).sum(axis=1), data.totals.sum(axis=1)
    scores = first_scores(points[np.newaxis], played[np.newaxis])
    proper = bool(problem.precision[n_effects:].any())
    return everywhere(scores[0], likelihood.start(proper=proper))


def _step_of_effects(problem: PairRows, point: Array) -> Array:
    """Return Newton's step of the coefficients by a part of the votes, (p,); 0 where long."""
    n_votes, k = problem.design.shape
    sums = problem.sums(point, [slice(None, None, max(1, n_votes // BLOCK))])
    information = sums.corner[:k, :k] + np.diag(problem.precision[:k])
    step, here = np.zeros(len(point)), slice(problem.size, problem.size + k)
    with suppress(np.linalg.LinAlgError):
        step[here] = np.linalg.solve(information, sums.gradient[here])
    return step if np.abs(step).max() < 1.0 else np.zeros(len(point))
