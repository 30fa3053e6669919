"""Compiled rating updates match by match, in order of index, as the rating papers describe them.

Imported when such a rating is first computed, as :mod:`bayesrank.methods.rating_kernels`, which has
the updates of whole events and explains the arguments.
"""

import math

from numba import njit

from bayesrank.methods.trueskill_kernels import draw_factors, win_factor


@njit(cache=True)
def _match_score(first: int, second: int, draw_right: float, draw_wrong: float) -> float:
    """Return the first player's score, or -1 where no match counts."""
    if first < 0 or second < 0:
        return -1.0
    if first != second:
        return 1.0 if first > second else 0.0
    return 0.5 if (draw_right if first == 1 else draw_wrong) > 0.0 else -1.0


@njit(cache=True, nogil=True, error_model="numpy")
def elo_matches(outcomes, order, draw_right, draw_wrong, step, scale, ratings):
    """Run Elo; `ratings` of shape (stream, system) holds the start and receives the end."""
    size = outcomes.shape[1]
    for stream in range(order.shape[0]):
        rating = ratings[stream]
        for event in order[stream]:
            for i in range(size):
                for j in range(i + 1, size):
                    score = _match_score(
                        outcomes[event, i], outcomes[event, j], draw_right, draw_wrong
                    )
                    if score >= 0.0:
                        expected = 1.0 / (1.0 + math.exp(scale * (rating[j] - rating[i])))
                        rating[i] += step * (score - expected)
                        rating[j] -= step * (score - expected)


@njit(cache=True, nogil=True, error_model="numpy")
def glicko_matches(
    outcomes, order, draw_right, draw_wrong, growth, ceiling, scale, ratings, variances
):
    """Run Glicko; ratings and variances, (stream, system), hold the start and receive the end."""
    size = outcomes.shape[1]
    spread = 3.0 * (scale / math.pi) ** 2
    for stream in range(order.shape[0]):
        rating, variance = ratings[stream], variances[stream]
        for event in order[stream]:
            for i in range(size):
                variance[i] = min(variance[i] + growth, ceiling)
            for i in range(size):
                for j in range(i + 1, size):
                    score = _match_score(
                        outcomes[event, i], outcomes[event, j], draw_right, draw_wrong
                    )
                    if score < 0.0:
                        continue
                    gap = scale * (rating[i] - rating[j])
                    g_i = 1.0 / math.sqrt(1.0 + spread * variance[i])
                    g_j = 1.0 / math.sqrt(1.0 + spread * variance[j])
                    for_i = 1.0 / (1.0 + math.exp(-g_j * gap))
                    for_j = 1.0 / (1.0 + math.exp(g_i * gap))
                    known_i = (scale * g_j) ** 2 * for_i * (1.0 - for_i)
                    known_j = (scale * g_i) ** 2 * for_j * (1.0 - for_j)
                    variance[i] = 1.0 / (1.0 / variance[i] + known_i)
                    variance[j] = 1.0 / (1.0 / variance[j] + known_j)
                    rating[i] += scale * variance[i] * g_j * (score - for_i)
                    rating[j] += scale * variance[j] * g_i * (1.0 - score - for_j)


@njit(cache=True, nogil=True, error_model="numpy")
def trueskill_matches(
    outcomes, order, draw_right, draw_wrong, twice_beta, margin, drift, per_trial, means, variances
):
    """Run TrueSkill; means and variances, (stream, system), hold the start and receive the end."""
    size = outcomes.shape[1]
    for stream in range(order.shape[0]):
        mean, variance = means[stream], variances[stream]
        for step in range(order.shape[1]):
            event = order[stream, step]
            for i in range(size):
                for j in range(i + 1, size):
                    score = _match_score(
                        outcomes[event, i], outcomes[event, j], draw_right, draw_wrong
                    )
                    if score < 0.0:
                        continue
                    winner, loser = (j, i) if score == 0.0 else (i, j)
                    per = 1.0 / math.sqrt(twice_beta + variance[i] + variance[j])
                    t = (mean[winner] - mean[loser]) * per
                    if score == 0.5:
                        v, w = draw_factors(t, margin * per)
                    else:
                        t -= margin * per
                        v = win_factor(t)
                        w = v * (v + t)
                    mean[winner] += variance[winner] * per * v
                    mean[loser] -= variance[loser] * per * v
                    variance[winner] *= 1.0 - variance[winner] * per * per * w
                    variance[loser] *= 1.0 - variance[loser] * per * per * w
            if (step + 1) % per_trial == 0:
                for i in range(size):
                    variance[i] += drift
