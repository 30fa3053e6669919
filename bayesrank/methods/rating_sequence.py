"""Compiled rating updates match by match, in order of index, as the rating papers describe them.

Imported when such a rating is first computed, as :mod:`bayesrank.methods.rating_kernels`, which has
the updates of whole events and explains the arguments.
"""

from numba import njit

from bayesrank.methods.match_updates import (
    glicko_terms,
    update_elo,
    update_glicko,
    update_trueskill,
)


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
                        update_elo(rating, i, j, score, step, scale)


@njit(cache=True, nogil=True, error_model="numpy")
def glicko_matches(
    outcomes, order, draw_right, draw_wrong, growth, ceiling, scale, ratings, variances
):
    """Run Glicko; ratings and variances, (stream, system), hold the start and receive the end."""
    size = outcomes.shape[1]
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
                    known_i, known_j, surprise_i, surprise_j = glicko_terms(
                        rating, variance, i, j, score, scale
                    )
                    update_glicko(rating, variance, i, known_i, surprise_i, scale)
                    update_glicko(rating, variance, j, known_j, surprise_j, scale)


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
                    if score >= 0.0:
                        update_trueskill(mean, variance, i, j, score, twice_beta, margin)
            if (step + 1) % per_trial == 0:
                for i in range(size):
                    variance[i] += drift
