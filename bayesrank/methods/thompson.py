"""Thompson ranking: the expected rank under independent Beta posteriors of accuracy."""

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.results.ranks import average_rank
from bayesrank.validation import Count, Positive, checks_options

FloatArray = NDArray[np.float64]

# A density this far below its mode, in logs, is negligible in double precision.
_LOG_DROP = 38.0
# Grid step on the log-odds axis, in posterior standard deviations and absolutely. The error of the
# quadrature falls like the characteristic function of the narrowest posterior at pi / step.
_STEP_IN_SD = 0.25
_LARGEST_STEP = 0.125
# Doubles in one block of the grid: 32 MB.
_BLOCK_SIZE = 2**22


@checks_options
def thompson(
    correct: FloatArray,
    trials: FloatArray,
    weights: FloatArray | None = None,
    *,
    alpha: Positive = 1.0,
    beta: Positive = 1.0,
    n_samples: Count | None = None,
    random_seed: int | None = None,
) -> FloatArray:
    r"""Score systems by minus their expected rank under Beta posteriors of accuracy.

    .. math::

        s_l = -1 - \sum_{j \ne l} P(p_j > p_l), \qquad
        p_l \sim \operatorname{Beta}(\alpha + S_l, \beta + \textstyle\sum_m N_{lm} - S_l)

    with :math:`S_l = \sum_m k_{lm}`. The probabilities are computed by quadrature, to about 1e-12,
    unless `n_samples` asks for draws. Systems with equal counts tie exactly either way.

    Parameters
    ----------
    correct : numpy.ndarray of shape (..., system, question)
        Number of right answers.
    trials : numpy.ndarray of shape (..., system, question)
        Number of trials; 0 where the cell was not observed.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    alpha, beta : float, default 1.0
        Parameters of the Beta prior, in right and wrong answers.
    n_samples : int, optional
        Average the rank over this many joint draws instead of integrating.
    random_seed : int, optional
        Seed of the draws.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Minus the expected rank, between -L and -1; higher is better.

    Raises
    ------
    ValueError
        If a prior parameter is not positive or `n_samples` is not at least 1.

    References
    ----------
    .. [1] W. R. Thompson. On the likelihood that one unknown probability exceeds another in view of
       the evidence of two samples. Biometrika 25 (1933). https://doi.org/10.1093/biomet/25.3-4.285
    .. [2] F. Stenger. Numerical methods based on sinc and analytic functions (1993), section 4.5.
       https://doi.org/10.1007/978-1-4612-2706-9

    Examples
    --------
    >>> thompson(np.array([[3], [1], [1]]), np.full((3, 1), 4)).round(4)
    array([-1.2063, -2.3968, -2.3968])
    """
    correct, trials = np.broadcast_arrays(
        np.asarray(correct, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    w = np.ones(correct.shape[-1]) if weights is None else np.asarray(weights, dtype=np.float64)
    a = alpha + np.einsum("...sq,...q->...s", correct, w)
    b = beta + np.einsum("...sq,...q->...s", trials - correct, w)
    shape, n_systems = a.shape, a.shape[-1]
    a, b = a.reshape(-1, n_systems), b.reshape(-1, n_systems)
    if n_samples is None:
        ranks = _expected_ranks(a, b)
    else:
        ranks = _share_among_equals(_sampled_ranks(a, b, n_samples, random_seed), a, b)
    return -ranks.reshape(shape)


def _distance_to_tail(toward: FloatArray, away: FloatArray) -> FloatArray:
    """Return the distance from the mode, on the log-odds axis, where the density is negligible.

    `toward` is the Beta parameter of the side, `away` the other one. The log-density is concave,
    so Newton's steps from an upper bound approach the solution from above and may stop anywhere.
    """
    n = toward + away
    # With curvature c at most that at the mode, t - 1 + exp(-t) >= drop / c at this bound.
    ratio = _LOG_DROP * n / (toward * away)
    t = ratio + np.sqrt(2.0 * ratio)
    for _ in range(6):
        ahead = toward * np.exp(-t)  # the odds at distance t from the mode are ahead / away
        drop = toward * t + n * np.log1p(toward / n * np.expm1(-t))
        slope = toward - n * ahead / (ahead + away)
        t -= np.maximum(drop - _LOG_DROP, 0.0) / slope
    return t


def _expected_ranks(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return expected ranks, 1 for the best, from Beta parameters of shape (batch, system)."""
    centre = np.log(a) - np.log(b)
    low = (centre - _distance_to_tail(a, b)).min(axis=1)
    high = (centre + _distance_to_tail(b, a)).max(axis=1)
    step = np.minimum(_STEP_IN_SD * np.sqrt(1.0 / a + 1.0 / b).min(axis=1), _LARGEST_STEP)
    n_nodes = np.ceil((high - low) / step).astype(np.int64) + 1
    ranks = np.empty(a.shape)
    # Elements with grids of similar length share a block, to limit the padding.
    order = np.argsort(n_nodes, kind="stable")
    while order.size:
        longest = int(n_nodes[order[-1]])
        rows = order[-max(1, _BLOCK_SIZE // (longest * a.shape[1])) :]
        order = order[: -rows.size]
        ranks[rows] = _expected_ranks_on_grid(a[rows], b[rows], low[rows], high[rows], longest)
    return ranks


def _expected_ranks_on_grid(
    a: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray, n_nodes: int
) -> FloatArray:
    """Integrate on one grid per batch element: sinc quadrature on the log-odds axis.

    There the Beta density is analytic and dies out exponentially, so the plain sum over an
    equidistant grid converges exponentially, and so does the indefinite integral below.
    """
    # Imported here because scipy.special costs more than every other step of the ranking.
    from scipy.special import sici

    u = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_nodes)
    softplus = np.logaddexp(0.0, u)
    # Log-density relative to the mode: the constant cancels when the masses are normalised.
    centre = np.log(a) - np.log(b)
    density = a[:, :, None] * (u[:, None, :] - centre[:, :, None]) - (a + b)[:, :, None] * (
        softplus[:, None, :] - np.logaddexp(0.0, centre)[:, :, None]
    )
    np.exp(density, out=density)
    mass = density / density.sum(axis=2, keepdims=True)
    # P(p_j > node) = sum_i mass_ji (1/2 + Si(pi (i - node)) / pi), here summed over all j.
    lag = np.arange(-(n_nodes - 1), n_nodes)
    kernel = 0.5 + sici(np.pi * lag)[0] / np.pi
    size = 1 << (3 * n_nodes - 3).bit_length()
    spectrum = np.fft.rfft(mass.sum(axis=1), size) * np.fft.rfft(kernel[::-1], size)
    above = np.fft.irfft(spectrum, size)[:, n_nodes - 1 : 2 * n_nodes - 1]
    # The sum includes the system itself, above its own draw with probability 1/2.
    return 0.5 + np.einsum("blg,bg->bl", mass, above)


def _sampled_ranks(a: FloatArray, b: FloatArray, n_samples: int, seed: int | None) -> FloatArray:
    """Average ranks over joint draws, in blocks of draws."""
    rng = np.random.default_rng(seed)
    n_systems = a.shape[1]
    ranks = np.zeros(a.shape)
    for part in batches(n_samples, a.size):
        p = rng.beta(a, b, size=(part.stop - part.start, *a.shape))
        position = np.empty(p.shape)
        np.put_along_axis(position, np.argsort(-p, axis=-1), np.arange(1.0, n_systems + 1), axis=-1)
        ranks += position.sum(axis=0)
    return ranks / n_samples


def _share_among_equals(ranks: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Give systems with the same posterior the same expected rank, without sampling noise."""
    same = (a[:, :, None] == a[:, None, :]) & (b[:, :, None] == b[:, None, :])
    return np.einsum("bij,bj->bi", same, ranks) / same.sum(axis=2)


def thompson_draws(
    correct: FloatArray,
    trials: FloatArray,
    weights: FloatArray | None = None,
    *,
    size: int,
    rng: np.random.Generator,
    alpha: Positive = 1.0,
    beta: Positive = 1.0,
    n_samples: Count | None = None,
) -> FloatArray:
    """Draw minus the rank under independent Beta posteriors of accuracy.

    Parameters
    ----------
    correct, trials : numpy.ndarray of shape (system, question)
        As in :func:`thompson`, without leading axes.
    weights : numpy.ndarray of shape (size, question), optional
        Multiplicity of each question in each draw. With weights, the draws rank the posterior
        means, since the weights include the noise of the trials.
    size : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.
    alpha, beta, n_samples
        As in :func:`thompson`.

    Returns
    -------
    numpy.ndarray of shape (size, system)
        Minus the rank in each draw, 1 for the best.
    """
    w = np.ones((1, correct.shape[-1])) if weights is None else weights
    right = alpha + w @ correct.T
    wrong = beta + w @ (trials - correct).T
    if weights is not None:
        return -average_rank(-right / (right + wrong))
    return -average_rank(-rng.beta(right, wrong, (size, len(correct))))
