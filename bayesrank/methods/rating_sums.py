"""Compiled rating updates of many systems, whose sums over opponents are expansions.

Matches are those of :mod:`bayesrank.methods.rating_kernels`, which also explains the arguments; the
sums of an event are those of :mod:`bayesrank.methods.expansions`. Streams are computed one by
one. A stream does not change if it leaves the widest range, or if its systems are too different for
terms of first order; the kernels return which streams are done.
"""

import math

import numpy as np
from numba import njit

# Systems are padded to a multiple of this, so that vectorised loops have no remainder.
_COLUMNS = 16
# The next terms, in the square of this, are 1e-8.
_UNLIKE = 3e-4


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _moments(place, one_weight, other_weight, terms, older, newer, one, other):
    """Sum the Chebyshev polynomials of the places with two weights.

    `older` and `newer` hold two polynomials of every place, from which four more are computed.
    """
    for c in range(len(place)):
        older[c], newer[c] = 1.0, place[c]
    for k in range(0, terms, 4):
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(len(place)):
            twice, t0, t1 = 2.0 * place[j], older[j], newer[j]
            t2 = twice * t1 - t0
            t3 = twice * t2 - t1
            older[j] = twice * t3 - t2
            newer[j] = twice * older[j] - t3
            x, y = one_weight[j], other_weight[j]
            a += x * t0
            b += x * t1
            c += x * t2
            d += x * t3
            e += y * t0
            f += y * t1
            g += y * t2
            h += y * t3
        one[k], one[k + 1], one[k + 2], one[k + 3] = a, b, c, d
        other[k], other[k + 1], other[k + 2], other[k + 3] = e, f, g, h


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _evaluate(place, one, other, terms, older, newer, one_value, other_value):
    """Fill in the values of two series at the places; `older` and `newer` as for the moments."""
    for c in range(len(place)):
        older[c], newer[c], one_value[c], other_value[c] = 1.0, place[c], 0.0, 0.0
    for k in range(0, terms, 4):
        a, b, c, d = one[k], one[k + 1], one[k + 2], one[k + 3]
        e, f, g, h = other[k], other[k + 1], other[k + 2], other[k + 3]
        for j in range(len(place)):
            twice, t0, t1 = 2.0 * place[j], older[j], newer[j]
            t2 = twice * t1 - t0
            t3 = twice * t2 - t1
            older[j] = twice * t3 - t2
            newer[j] = twice * older[j] - t3
            one_value[j] += (a * t0 + b * t1) + (c * t2 + d * t3)
            other_value[j] += (e * t0 + f * t1) + (g * t2 + h * t3)


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _add_product(coefficients, moment, factor, terms, series):
    """Add the coefficients of the sum over sources to those of a series in the target's place."""
    for source in range(0, terms, 4):
        a, b = factor * moment[source], factor * moment[source + 1]
        c, d = factor * moment[source + 2], factor * moment[source + 3]
        for target in range(terms):
            series[target] += (
                a * coefficients[source, target] + b * coefficients[source + 1, target]
            ) + (c * coefficients[source + 2, target] + d * coefficients[source + 3, target])


@njit(cache=True, nogil=True)
def _range(rating, scale, widths):
    """Return the middle of the ratings and the narrowest range that holds them all."""
    low, high = rating[0], rating[0]
    for i in range(len(rating)):
        low, high = min(low, rating[i]), max(high, rating[i])
    which = 0
    while which < len(widths) and widths[which] < 0.5 * scale * (high - low):
        which += 1
    return 0.5 * (low + high), which


@njit(cache=True, nogil=True, fastmath=True)
def elo_sums(
    outcomes, order, draw_right, draw_wrong, step_size, scale, first, ratings, widths, sizes,
    expansions,
):  # fmt: skip
    """Run Elo over streams."""
    size, most = outcomes.shape[1], expansions.shape[-1]
    columns = -(-size // _COLUMNS) * _COLUMNS
    place, right, wrong = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    by_right, by_wrong = np.empty(columns), np.empty(columns)
    older, newer = np.empty(columns), np.empty(columns)
    moment, series = np.empty((2, most)), np.empty((2, most))
    done = np.ones(len(order), dtype=np.bool_)
    for s in range(len(order)):
        rating = ratings[s].copy()
        for step in range(order.shape[1]):
            event = outcomes[order[s, step]]
            middle, which = _range(rating, scale, widths)
            if which == len(widths):
                done[s] = False
                break
            terms, each = sizes[which], expansions[which]
            for i in range(size):
                place[i] = (rating[i] - middle) * (scale / widths[which])
                right[i] = 1.0 if event[i] == 1 else 0.0
                wrong[i] = 1.0 if event[i] == 0 else 0.0
            _moments(place, right, wrong, terms, older, newer, moment[0], moment[1])
            series[:] = 0.0
            _add_product(each[0], moment[0], 1.0, terms, series[0])
            _add_product(each[0], moment[1], 1.0, terms, series[1])
            _evaluate(place, series[0], series[1], terms, older, newer, by_right, by_wrong)
            n_right, n_wrong = right.sum(), wrong.sum()
            for i in range(size):
                gain = right[i] * (0.5 * n_wrong - by_wrong[i] - draw_right * by_right[i])
                gain -= wrong[i] * (0.5 * n_right + by_right[i] + draw_wrong * by_wrong[i])
                rating[i] += step_size * gain
        if done[s]:
            ratings[s] = rating
    return done


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _series_of_glicko(expansions, moment, typical, terms, learned, known):
    """Fill in the series of scores and of information that opponents of one group give."""
    # Weights of opponents are g = G (1 + e); the moments have the first two powers of e.
    one, unlike, square = moment[0], moment[1], typical * typical
    learned[:], known[:] = 0.0, 0.0
    _add_product(expansions[0], one + unlike, typical, terms, learned)
    _add_product(expansions[1], unlike, typical, terms, learned)
    _add_product(expansions[2], one + 2.0 * unlike, square, terms, known)
    _add_product(expansions[3], unlike, square, terms, known)


@njit(cache=True, nogil=True, fastmath=True)
def glicko_sums(
    outcomes, order, draw_right, draw_wrong, growth, ceiling, scale, first, ratings, variances,
    widths, sizes, expansions,
):  # fmt: skip
    """Run Glicko over streams."""
    size, most = outcomes.shape[1], expansions.shape[-1]
    columns = -(-size // _COLUMNS) * _COLUMNS
    spread = 3.0 * (scale / math.pi) ** 2
    g, place = np.empty(size), np.zeros(columns)
    right, wrong = np.zeros((2, columns)), np.zeros((2, columns))
    lost, known = np.empty((2, columns)), np.empty((2, columns))
    older, newer = np.empty(columns), np.empty(columns)
    moment, series = np.empty((2, 2, most)), np.empty((2, 2, most))
    done = np.ones(len(order), dtype=np.bool_)
    for s in range(len(order)):
        rating, variance = ratings[s].copy(), variances[s].copy()
        for step in range(order.shape[1]):
            event = outcomes[order[s, step]]
            for i in range(size):
                variance[i] = min(variance[i] + growth, ceiling)
                g[i] = 1.0 / math.sqrt(1.0 + spread * variance[i])
            typical = 0.5 * (g.min() + g.max())
            middle, which = _range(rating, scale * typical, widths)
            if which == len(widths) or (g.max() / typical - 1.0) * 2.0 * widths[which] > _UNLIKE:
                done[s] = False
                break
            terms, each = sizes[which], expansions[which]
            for i in range(size):
                place[i] = (rating[i] - middle) * (scale * typical / widths[which])
                right[0, i] = 1.0 if event[i] == 1 else 0.0
                wrong[0, i] = 1.0 if event[i] == 0 else 0.0
                unlike = g[i] / typical - 1.0
                right[1, i], wrong[1, i] = right[0, i] * unlike, wrong[0, i] * unlike
            for p in range(2):
                one, other = moment[0, p], moment[1, p]
                _moments(place, right[p], wrong[p], terms, older, newer, one, other)
            for group in range(2):
                to_learn, to_know = series[0, group], series[1, group]
                _series_of_glicko(each, moment[group], typical, terms, to_learn, to_know)
            _evaluate(place, series[0, 0], series[0, 1], terms, older, newer, lost[0], lost[1])
            _evaluate(place, series[1, 0], series[1, 1], terms, older, newer, known[0], known[1])
            of_right = typical * (right[0].sum() + right[1].sum())
            of_wrong = typical * (wrong[0].sum() + wrong[1].sum())
            for i in range(size):
                # No system meets itself, a draw with a quarter of the information.
                own = 0.25 * g[i] * g[i]
                info = right[0, i] * (known[1, i] + draw_right * (known[0, i] - own))
                info += wrong[0, i] * (known[0, i] + draw_wrong * (known[1, i] - own))
                learned = right[0, i] * (0.5 * of_wrong - lost[1, i] - draw_right * lost[0, i])
                learned -= wrong[0, i] * (0.5 * of_right + lost[0, i] + draw_wrong * lost[1, i])
                precision = 1.0 / variance[i] + scale * scale * info
                rating[i] += scale / precision * learned
                variance[i] = 1.0 / precision
        if done[s]:
            ratings[s], variances[s] = rating, variance
    return done


@njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _series_of_trueskill(expansions, moment, typical, terms, series):
    """Fill in the series of a gain or a shift that opponents of one group give, and its slope.

    The slope is in how much the player's share exceeds the typical one, as the second moments are.
    """
    series[:] = 0.0
    _add_product(expansions[0], moment[0], 1.0, terms, series[0])
    _add_product(expansions[2], moment[0], typical, terms, series[0])
    _add_product(expansions[1], moment[1], 1.0, terms, series[0])
    _add_product(expansions[1], moment[0], 1.0, terms, series[1])
    _add_product(expansions[2], moment[0], 1.0, terms, series[1])


@njit(cache=True, nogil=True)
def _turn_around(series):
    """Change the sign of the places of a series of Chebyshev polynomials, along the last axis."""
    series[..., 1::2] *= -1.0


@njit(cache=True, nogil=True, fastmath=True)
def trueskill_sums(
    outcomes, order, draw_right, draw_wrong, twice_beta, margin, drift, per_trial, first, means,
    variances, widths, sizes, expansions,
):  # fmt: skip
    """Run TrueSkill over streams without draws and without a margin."""
    size, most = outcomes.shape[1], expansions.shape[-1]
    columns = -(-size // _COLUMNS) * _COLUMNS
    place, share = np.zeros(columns), np.zeros(columns)
    right, wrong = np.zeros((2, columns)), np.zeros((2, columns))
    value = np.empty((2, 2, 2, columns))
    older, newer = np.empty(columns), np.empty(columns)
    # Of moments by group and power; of series by gain or shift, group of the player and slope.
    moment, series = np.empty((2, 2, most)), np.empty((2, 2, 2, most))
    done = np.ones(len(order), dtype=np.bool_)
    for s in range(len(order)):
        mean, variance = means[s].copy(), variances[s].copy()
        for step in range(order.shape[1]):
            event = outcomes[order[s, step]]
            middle_variance = 0.5 * (variance.min() + variance.max())
            per = 1.0 / math.sqrt(twice_beta + 2.0 * middle_variance)
            typical = middle_variance * per * per
            middle, which = _range(mean, per, widths)
            if which == len(widths) or variance.max() * per * per > _UNLIKE:
                done[s] = False
                break
            terms, each = sizes[which], expansions[which]
            for i in range(size):
                place[i] = (mean[i] - middle) * (per / widths[which])
                share[i] = variance[i] * per * per
                right[0, i] = 1.0 if event[i] == 1 else 0.0
                wrong[0, i] = 1.0 if event[i] == 0 else 0.0
                unlike = share[i] - typical
                right[1, i], wrong[1, i] = right[0, i] * unlike, wrong[0, i] * unlike
            for p in range(2):
                one, other = moment[0, p], moment[1, p]
                _moments(place, right[p], wrong[p], terms, older, newer, one, other)
            # Losers have the same function of the difference with the opposite sign.
            _turn_around(moment[0])
            for kind in range(2):
                of_kind = each[3 * kind : 3 * kind + 3]
                _series_of_trueskill(of_kind, moment[1], typical, terms, series[kind, 0])
                _series_of_trueskill(of_kind, moment[0], typical, terms, series[kind, 1])
            _turn_around(series[:, 1])
            for kind in range(2):
                for slope in range(2):
                    one, other = series[kind, 0, slope], series[kind, 1, slope]
                    of_one, of_other = value[kind, 0, slope], value[kind, 1, slope]
                    _evaluate(place, one, other, terms, older, newer, of_one, of_other)
            between = drift if (first + step + 1) % per_trial == 0 else 0.0
            for i in range(size):
                unlike = share[i] - typical
                gain = right[0, i] * (value[0, 0, 0, i] + unlike * value[0, 0, 1, i])
                gain += wrong[0, i] * (value[0, 1, 0, i] + unlike * value[0, 1, 1, i])
                shift = right[0, i] * (value[1, 0, 0, i] + unlike * value[1, 0, 1, i])
                shift -= wrong[0, i] * (value[1, 1, 0, i] + unlike * value[1, 1, 1, i])
                gain *= share[i]
                mean[i] += share[i] * shift / per / (1.0 + gain)
                variance[i] = variance[i] / (1.0 + gain) + between
        if done[s]:
            means[s], variances[s] = mean, variance
    return done
