r"""Likelihoods of votes, pointwise in the predictors of a vote and in shared parameters.

The likelihood of a vote on i and j depends on the lead of the first system :math:`d`, in some
models on the mean level of both, :math:`m = (\theta_i + \theta_j) / 2`, and on parameters
:math:`c` that all votes share. The fit vote by vote
(:mod:`bayesrank.inference.fits.pair_rows`) and the sandwich follow from a :class:`VoteLikelihood`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.newton import Array
from bayesrank.inference.fits.pairs import PairLikelihood, bradley_terry, davidson, rao_kupper
from bayesrank.log_odds import finite_exp, logistic, softplus
from bayesrank.vote_rows import BOTH_BAD, TIE, VoteRows

# A selection of votes: a block, or their numbers.
type Rows = slice | NDArray[np.integer[Any]]
# Beyond these log-odds a probability is 0 or 1 in double precision.
_FAR = 600.0


class Terms(NamedTuple):
    """Derivatives of the log-likelihood of votes by d, by m if it depends on m, and by each of c.

    `slope` has the first derivatives, of shape (predictor, vote), and `bend` the negative second
    derivatives, of shape (predictor, predictor, vote).
    """

    slope: Array
    bend: Array


class VoteLikelihood(ABC):
    """A log-likelihood bound to votes.

    `positive`, of shape (k,), marks the shared parameters that must be positive. The arguments of
    the functions are a selection of votes, the leads of the first systems and the levels, of shape
    (vote,), and the shared parameters, of shape (k,).
    """

    votes: VoteRows
    positive: NDArray[np.bool_]
    has_level = False

    @abstractmethod
    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of each vote."""

    @abstractmethod
    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of each vote."""

    def slope(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the first derivatives only."""
        return self.terms(some, ahead, level, shared).slope

    @abstractmethod
    def start(self, *, proper: bool) -> Array:
        """Return shared parameters, (k,), for equal systems; finite ones if `proper`."""

    @abstractmethod
    def names(self, score: Array, shared: Array) -> dict[str, Array]:
        """Return named parameters from the shared ones, of shape (..., k)."""

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Return which shared parameters are at an end of their range, of shape (k,)."""
        return np.zeros(len(shared), dtype=bool)


class PairedResults(VoteLikelihood):
    """A likelihood of paired results, bound to votes."""

    def __init__(self, likelihood: PairLikelihood, votes: VoteRows) -> None:
        self.likelihood, self.votes = likelihood, votes
        self.positive = likelihood.positive

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        likelihood = self.likelihood
        return self._sides(lambda *at: (likelihood.value(*at),), (1.0,), some, ahead, shared)[0]

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        signs = (-1.0, 1.0, 1.0, -1.0, 1.0)
        slope, bend, *rest = self._sides(self.likelihood.derivatives, signs, some, ahead, shared)
        if not len(shared):
            return Terms(slope[np.newaxis], bend[np.newaxis, np.newaxis])
        tie_slope, mixed, corner = (each * ~self.held(shared) for each in rest)
        return Terms(np.stack([slope, tie_slope]), np.array([[bend, mixed], [mixed, corner]]))

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Return whether the tie parameter is at an end of its range."""
        return self.likelihood.at_end(shared)

    def names(self, score: Array, shared: Array) -> dict[str, Array]:
        """Return the tie strength by name, if the model has one."""
        return self.likelihood.names(score, shared)

    def start(self, *, proper: bool) -> Array:
        """Return the tie parameter that the share of ties gives for equal systems."""
        weight = self.votes.weight
        share = weight[self.votes.outcome == 0].sum(keepdims=True) / (weight.sum() or 1.0)
        return self.likelihood.begin(share, proper=proper)[1][0]

    def _sides(
        self,
        function: Callable[..., tuple[Array, ...]],
        signs: tuple[float, ...],
        some: Rows,
        ahead: Array,
        shared: Array,
    ) -> list[Array]:
        """Sum a function over the side of the winner, or over both sides of a tie.

        Results with a negative entry in `signs` change their sign if the sides are swapped.
        """
        outcome, weight = self.votes.outcome[some], self.votes.weight[some]
        tie = shared if len(shared) else self.likelihood.log_tie or 0.0
        ahead, turned = np.clip(ahead, -_FAR, _FAR), np.where(outcome < 0, -1.0, 1.0)
        even, policy = outcome == 0, self.likelihood.ties
        won = weight * np.where(even, 0.5 * (policy == "half"), 1.0)
        tied = weight * even * (0.5 * (policy == "outcome"))
        found = [
            turned * each if sign < 0.0 else each
            for each, sign in zip(function(won, tied, turned * ahead, tie), signs, strict=False)
        ]
        if policy != "ignore" and even.any():
            rows = np.flatnonzero(even)
            others = function(won[rows], tied[rows], -ahead[rows], tie)
            for each, more, sign in zip(found, others, signs, strict=False):
                each[rows] += sign * more
        return found


class CumulativeLogit(VoteLikelihood):
    """Agresti's cumulative logits with symmetric thresholds, bound to votes.

    The k-th grade or a better one has the log-odds :math:`d - t_k`. The shared parameters are the
    gaps between thresholds, which are positive: :math:`t_1` above 0, if there are ties, then
    :math:`t_2 - t_1` and so on. `cuts`, (cut, k), are the coefficients of the gaps that give the
    cuts, numbered as the results above them; NaN for the infinite lowest and highest cut.
    """

    # In the same coordinates.
    of_ties = rao_kupper()

    def __init__(self, votes: VoteRows) -> None:
        n_grades, self.has_ties = len(votes.scale) // 2, 0 in votes.scale
        up = np.tri(n_grades) if self.has_ties else np.tri(n_grades, max(n_grades - 1, 0), -1)
        # Without ties the middle cut is at 0.
        low = -up[::-1] if self.has_ties else -up[:0:-1]
        outside = np.full((1, up.shape[1]), np.nan)
        self.votes, self.cuts = votes, np.concatenate([outside, low, up, outside])
        self.positive = np.ones(up.shape[1], dtype=bool)

    def _distances(self, some: Rows, ahead: Array, shared: Array) -> tuple[Array, Array, Array]:
        """Return the log-odds of being above the lower and below the upper cut of each vote.

        And the gaps between neighbouring cuts, of shape (result,).
        """
        cut = self.cuts @ shared
        cut[0], cut[-1] = -np.inf, np.inf
        place = self.votes.places[some]
        return ahead - cut[place], cut[place + 1] - ahead, np.diff(cut)

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        above, below, gap = self._distances(some, ahead, shared)
        with np.errstate(divide="ignore", invalid="ignore"):  # gaps that are not positive
            inside = np.log(-np.expm1(-gap))[self.votes.places[some]]
        return self.votes.weight[some] * (inside - softplus(-above) - softplus(-below))

    def slope(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the first derivatives only."""
        short, over, odds, (low, high, wide) = self._parts(some, ahead, shared)
        of_gaps = high * over - low * short + wide * odds
        return self.votes.weight[some] * np.concatenate([(short - over)[np.newaxis], of_gaps])

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        short, over, odds, (low, high, wide) = self._parts(some, ahead, shared)
        one = np.ones((1, len(ahead)))
        parts = (
            (np.concatenate([one, -low]), short * (1.0 - short)),
            (np.concatenate([-one, high]), over * (1.0 - over)),
            (np.concatenate([0.0 * one, wide]), odds * (1.0 + odds)),
        )
        weight = self.votes.weight[some]
        bends = (along[:, np.newaxis] * (along * (weight * bend)) for along, bend in parts)
        return Terms(self.slope(some, ahead, level, shared), sum(bends, np.zeros(())))

    def _parts(
        self, some: Rows, ahead: Array, shared: Array
    ) -> tuple[Array, Array, Array, tuple[Array, Array, Array]]:
        """Return the derivatives of the log-likelihood by three distances of each vote.

        They are those above the lower cut, below the upper cut, and between both. The last entry
        has the derivatives of both cuts and of their gap by the gaps, of shape (k, vote).
        """
        above, below, gap = self._distances(some, ahead, shared)
        with np.errstate(over="ignore"):  # without a finite estimate the gaps diverge
            odds = 1.0 / np.expm1(gap)
        cuts, place = np.nan_to_num(self.cuts).T, self.votes.places[some]
        sides = cuts[:, :-1], cuts[:, 1:], np.diff(cuts) * np.isfinite(gap)
        low, high, wide = (each[:, place] for each in sides)
        return logistic(-above), logistic(-below), odds[place], (low, high, wide)

    def start(self, *, proper: bool) -> Array:
        """Return starting values of the gaps, from smoothed shares of results of equal systems."""
        n_cuts = len(self.cuts) - 2
        shares = 0.5 + np.bincount(self.votes.places, self.votes.weight, n_cuts + 1)
        shares = 0.5 * (shares + shares[::-1]) / shares.sum()
        inner = np.cumsum(shares)[:-1]
        levels = np.log(inner) - np.log1p(-inner)
        return np.linalg.lstsq(self.cuts[1:-1], levels, rcond=None)[0]

    def names(self, score: Array, shared: Array) -> dict[str, Array]:
        """Return the gaps between thresholds and the thresholds above 0 by name, if any."""
        if not shared.shape[-1]:
            return {}
        named = {"gap": shared, "threshold": np.cumsum(shared, axis=-1)}
        return named | ({"tie_strength": finite_exp(shared[..., 0])} if self.has_ties else {})


class OutsideOption(VoteLikelihood):
    r"""Davidson's model with an outside option, both bad, bound to votes.

    Win, loss, tie and both bad have log-weights :math:`d / 2, -d / 2, \log\nu` and
    :math:`u = b - \gamma m`. The shared parameters are :math:`\log\nu`, if there are ties, and
    :math:`b` and :math:`\gamma`, if there are votes for neither.
    """

    of_ties = davidson()

    def __init__(self, votes: VoteRows) -> None:
        self.votes = votes
        self.has_ties, self.has_level = TIE in votes.options, BOTH_BAD in votes.options
        self.positive = np.zeros(self.has_ties + 2 * self.has_level, dtype=bool)

    def _log_chances(self, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-probabilities of the four results, of shape (4, vote)."""
        weights = np.full((4, len(ahead)), -np.inf)
        weights[0], weights[1] = 0.5 * ahead, -0.5 * ahead
        if self.has_ties:
            weights[2] = shared[0]
        if self.has_level:
            weights[3] = shared[-2] - shared[-1] * level
        weights -= weights.max(axis=0)
        return weights - np.log(np.exp(weights).sum(axis=0))

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        log_chances = self._log_chances(ahead, level, shared)
        seen = np.take_along_axis(log_chances, self.votes.results[some][np.newaxis], 0)[0]
        weight = self.votes.weight[some]
        return weight * np.where(weight > 0.0, seen, 0.0)

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        result, weight = self.votes.results[some], self.votes.weight[some]
        win, loss, tie, bad = np.exp(self._log_chances(ahead, level, shared))
        # Sufficient statistics of d, log nu and u: values, means, squares and covariances.
        said = np.stack([0.5 * (result == 0) - 0.5 * (result == 1), result == 2, result == 3])
        mean, squares = np.stack([0.5 * (win - loss), tie, bad]), (0.25 * (win + loss), tie, bad)
        gain, spread = weight * (said - mean), -weight * mean[:, np.newaxis] * mean
        np.einsum("iin->in", spread)[...] += weight * squares
        # Which statistic each of d, m, log nu, b and gamma enters, and its derivative there.
        moves: list[tuple[int, Any]] = [(0, 1.0)]
        moves += [(2, -shared[-1])] if self.has_level else []
        moves += [(1, 1.0)] if self.has_ties else []
        moves += [(2, 1.0), (2, -level)] if self.has_level else []
        slope = np.array([by * gain[at] for at, by in moves])
        bend = np.array([[by * to * spread[at, of] for of, to in moves] for at, by in moves])
        if self.has_level:  # the predictor has the product of gamma and the level
            bend[1, -1] += gain[2]
            bend[-1, 1] += gain[2]
        return Terms(slope, bend)

    def start(self, *, proper: bool) -> Array:
        """Return starting values: from the shares of results, for equal systems."""
        shares = np.bincount(self.votes.results, self.votes.weight, 4)
        decided = 0.5 * max(shares[0] + shares[1], 1.0)
        found = [np.log(shares[2] / decided)] if self.has_ties else []
        return np.array(found + ([np.log(shares[3] / decided), 1.0] if self.has_level else []))

    def names(self, score: Array, shared: Array) -> dict[str, Array]:
        """Return the tie strength and the bar by name, if there are ties and votes for neither."""
        named = {"tie_strength": finite_exp(shared[..., 0])} if self.has_ties else {}
        if self.has_level:
            bar, slope = shared[..., -2], shared[..., -1]
            above = slope[..., np.newaxis] * score - bar[..., np.newaxis]
            named |= {"bar": bar, "bar_slope": slope, "above_bar": above}
        return named


# A model of votes is a likelihood that is bound to votes by calling it.
type VoteModel = type[CumulativeLogit | OutsideOption]


def cumulative_logit(**_: Any) -> VoteModel:
    """Return Agresti's cumulative logits, in which grades and ties are outcomes."""
    return CumulativeLogit


def davidson_outside(**_: Any) -> VoteModel:
    """Return Davidson's model with the outside option, both bad."""
    return OutsideOption


def of_pairs(likelihood: PairLikelihood | VoteModel, *, has_tie_strength: bool) -> PairLikelihood:
    """Return the likelihood of wins, losses and ties: without grades and votes for neither."""
    if isinstance(likelihood, PairLikelihood):
        return likelihood
    return likelihood.of_ties if has_tie_strength else bradley_terry()


def bind(likelihood: PairLikelihood | VoteModel, votes: VoteRows) -> VoteLikelihood:
    """Bind a likelihood of pairs or of votes to votes."""
    if isinstance(likelihood, PairLikelihood):
        return PairedResults(likelihood, votes)
    return likelihood(votes)
