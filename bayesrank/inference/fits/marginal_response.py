r"""How scores of a marginal likelihood follow the answers.

With the items known, the posterior mean of a function of z rises with the number right in a cell by
its posterior covariance with the log-odds :math:`x_m = a_m z + d_m` there. That holds for z itself
and for the complete-data scores g, whose sum is zero at the optimum; the items x therefore follow
by :math:`H^{-1} \partial u / \partial k`, with H the negative Hessian and u the sum of the means of
g, and the mean of z follows the items by its covariance with g.
"""

import numpy as np

from bayesrank.inference.fits.log_odds import logistic
from bayesrank.inference.fits.marginal import MarginalItems
from bayesrank.inference.fits.penalty import Array


def score_slopes(problem: MarginalItems, row: int, point: Array, *, centred: bool) -> Array:
    """Return how much each score rises with each number right.

    Parameters
    ----------
    problem : MarginalItems
        The objective.
    row : int
        The resample.
    point : numpy.ndarray of shape (p,)
        Its optimum.
    centred : bool
        Whether abilities have the mean that puts the mean difficulty at 0, instead of a given one.

    Returns
    -------
    numpy.ndarray of shape (system of the score, system, question)
        Derivatives with respect to the number right in each cell; 0 for questions left out.
    """
    curves = problem.curves(row, point)
    n_systems, n_questions = problem.data.right[row].shape
    kept = np.flatnonzero(~problem.data.left_out[row])
    nodes, weights, _ = curves.grid
    chance = logistic(nodes[:, None] * curves.slope + curves.intercept)
    mean = weights @ nodes
    lean = weights * (nodes - mean[:, None])  # of which sums are covariances with z
    variance = (lean @ nodes)[:, None]
    # With the scores k - n p of an intercept, and (k - n p) a z of a log slope.
    by_intercept = -curves.trials * (lean @ chance)
    by_slope = curves.right * variance - curves.trials * (lean @ (chance * nodes[:, None]))
    by_slope *= curves.slope

    covariance = np.zeros((n_systems, len(point)))
    covariance[:, kept] = by_intercept
    pull = np.zeros((len(point), n_systems, n_questions))
    pull[kept, :, kept] = 1.0
    if problem.slopes == "each":
        covariance[:, n_questions + kept] = by_slope
        pull[n_questions + kept, :, kept] = np.outer(curves.slope, mean)
    elif problem.slopes == "common":
        covariance[:, -1] = by_slope.sum(axis=-1)
        pull[-1][:, kept] = np.outer(mean, curves.slope)
    pull[:, :, kept] += covariance.T[:, :, None] * curves.slope
    pull[problem.held(point[None])[0]] = 0.0

    scale = float(np.exp(point[-1])) if problem.slopes == "common" else problem.fixed_slope
    of_items = scale * covariance
    if problem.slopes == "common":
        of_items[:, -1] += scale * mean
    if centred:
        multiplicity = problem.data.weights[row]
        of_items[:, :n_questions] += multiplicity / max(multiplicity.sum(), 1e-300)
    information = problem.take(slice(row, row + 1)).information(point[None])[0]
    moved = np.linalg.solve(information, pull.reshape(len(point), -1))
    slopes = (of_items @ moved).reshape(n_systems, n_systems, n_questions)
    index = np.arange(n_systems)[:, None]
    slopes[index, index, kept] += scale * variance * curves.slope
    return slopes
