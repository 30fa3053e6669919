r"""Likelihoods of votes, pointwise in predictors of a vote and parameters that all votes share.

A vote on i and j sees how far the first is ahead, :math:`d`, perhaps the mean level of both,
:math:`m = (\theta_i + \theta_j) / 2`, and shared parameters :math:`c`. A :class:`VoteLikelihood` is
bound to votes and returns values and derivatives of blocks of them; the fit with covariates
(:mod:`bayesrank.inference.fits.pair_rows`) and the sandwich follow from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.log_odds import logistic, softplus
from bayesrank.inference.fits.pairs import (
    Array,
    PairLikelihood,
    Tie,
    bradley_terry,
    davidson,
    rao_kupper,
)
from bayesrank.vote_rows import BOTH_BAD, TIE, VoteRows

# Which votes: a block of them, or their numbers.
type Rows = slice | NDArray[np.integer[Any]]

# Log-odds beyond which a chance is 0 or 1 in double precision.
_FAR = 600.0


class Level(NamedTuple):
    """Derivatives in the level of both systems, each of shape (vote,) but the last, (vote, k).

    The slope, minus the second derivative, and minus the mixed ones with d and with c.
    """

    slope: Array
    bend: Array
    with_ahead: Array
    mixed: Array


class Terms(NamedTuple):
    """Derivatives of the log-likelihood of votes.

    Attributes
    ----------
    slope, bend : numpy.ndarray of shape (vote,)
        First derivative in d, and minus the second.
    shared_slope, mixed : numpy.ndarray of shape (vote, k)
        First derivatives in c, and minus the mixed ones in d and c.
    corner : numpy.ndarray of shape (k, k)
        Minus the second derivatives in c, summed over votes.
    level : Level or None
        Those in m, of likelihoods that depend on it.
    """

    slope: Array
    bend: Array
    shared_slope: Array
    mixed: Array
    corner: Array
    level: Level | None = None


class VoteLikelihood(Protocol):
    """A log-likelihood bound to votes."""

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which shared parameters must be positive, of shape (k,)."""
        ...

    @property
    def has_level(self) -> bool:
        """Whether the level of both systems matters."""
        ...

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes, of shape (vote,)."""
        ...

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        ...

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Say which shared parameters are at an end of their range, of shape (k,)."""
        ...

    def start(self) -> Array:
        """Return shared parameters to begin with, of shape (k,)."""
        ...


@dataclass(frozen=True)
class TwoSided:
    """A likelihood of paired results, bound to votes.

    Attributes
    ----------
    likelihood : PairLikelihood
        Of one side of a pair.
    votes : VoteRows
        The votes.
    """

    likelihood: PairLikelihood
    votes: VoteRows
    has_level = False

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the tie parameter must be positive, where it is estimated."""
        return np.full(int(self.likelihood.start is not None), self.likelihood.lowest_tie == 0.0)

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        return self._sides(self._value, (1.0,), some, ahead, shared)[0]

    def _value(self, won: Array, tied: Array, ahead: Array, tie: Tie) -> tuple[Array, ...]:
        return (self.likelihood.value(won, tied, ahead, tie),)

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        signs = (-1.0, 1.0, 1.0, -1.0, 1.0)
        slope, bend, *rest = self._sides(self.likelihood.derivatives, signs, some, ahead, shared)
        if not len(shared):
            none = np.zeros((len(slope), 0))
            return Terms(slope, bend, none, none, np.zeros((0, 0)))
        free = ~self.held(shared)
        shared_slope, mixed, corner = (each[:, np.newaxis] * free for each in rest)
        return Terms(slope, bend, shared_slope, mixed, corner.sum(axis=0, keepdims=True))

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Say whether the tie parameter is at an end of its range."""
        return (shared == self.likelihood.lowest_tie) | np.isinf(shared)

    def start(self) -> Array:
        """Return the tie parameter at which all systems alike have the share of ties."""
        if self.likelihood.start is None:
            return np.zeros(0)
        share = np.bincount(self.votes.outcome == 0, self.votes.weight, 2)
        with np.errstate(divide="ignore"):  # no ties, or nothing else
            return self.likelihood.start(share[1:] / share.sum())[1]

    def _sides(
        self,
        function: Callable[..., tuple[Array, ...]],
        signs: tuple[float, ...],
        some: Rows,
        ahead: Array,
        shared: Array,
    ) -> list[Array]:
        """Add up a function of one side of votes: that of the winner, and both sides of ties.

        `signs` are those that its results change by when the sides change.
        """
        outcome, weight = self.votes.outcome[some], self.votes.weight[some]
        tie = shared if len(shared) else np.float64(self.likelihood.log_tie or 0.0)
        ahead, turned = np.clip(ahead, -_FAR, _FAR), np.where(outcome < 0, -1.0, 1.0)
        even, policy = outcome == 0, self.likelihood.ties
        share = {"ignore": 0.0, "half": 0.5, "outcome": 0.0}[policy]
        won = weight * np.where(even, share, 1.0)
        tied = 0.5 * weight * even if policy == "outcome" else np.zeros(1)
        found = [
            turned * each if sign < 0.0 else each
            for each, sign in zip(function(won, tied, turned * ahead, tie), signs, strict=False)
        ]
        (rows,) = np.nonzero(even) if policy != "ignore" else (np.zeros(0, dtype=np.intp),)
        if len(rows):
            again = tied[rows] if policy == "outcome" else tied
            for each, more, sign in zip(
                found, function(won[rows], again, -ahead[rows], tie), signs, strict=False
            ):
                each[rows] += sign * more
        return found


@dataclass(frozen=True)
class CumulativeLogit:
    r"""Agresti's cumulative logits with symmetric thresholds, bound to votes.

    The k-th grade or a better one has the log-odds :math:`d - t_k`. The shared parameters are the
    gaps between thresholds, which are positive: :math:`t_1` above 0, where there are ties, then
    :math:`t_2 - t_1` and so on.

    Attributes
    ----------
    lower, upper : numpy.ndarray of int and shape (vote,)
        Numbers of the cuts below and above the result; 0 and the last stand for infinite ones.
    cuts : numpy.ndarray of shape (cut, k)
        What multiplies the gaps to give the cuts; NaN for the infinite ones.
    weight : numpy.ndarray of shape (vote,)
        How much each vote counts.
    """

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    cuts: Array
    weight: Array
    has_level = False

    @classmethod
    def of(cls, votes: VoteRows) -> "CumulativeLogit":
        """Bind the likelihood to votes: a threshold for each grade that was given."""
        n_grades, has_ties = len(votes.scale) // 2, 0 in votes.scale
        up = np.tri(n_grades) if has_ties else np.tri(n_grades, max(n_grades - 1, 0), -1)
        # Without ties there is one cut in the middle, at 0.
        low = -up[::-1] if has_ties else -up[:0:-1]
        outside = np.full((1, up.shape[1]), np.nan)
        cuts = np.concatenate([outside, low, up, outside])
        return cls(votes.places, votes.places + 1, cuts, votes.weight)

    @property
    def positive(self) -> NDArray[np.bool_]:
        """All gaps."""
        return np.ones(self.cuts.shape[1], dtype=bool)

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Return that none is: every grade was given."""
        return np.zeros(len(shared), dtype=bool)

    @property
    def ends(self) -> tuple[tuple[NDArray[np.bool_], Array], tuple[NDArray[np.bool_], Array]]:
        """Whether each result has a lower cut, with what multiplies the gaps; and an upper one."""
        last, cuts = len(self.cuts) - 1, self.cuts
        return (self.lower > 0, cuts[self.lower]), (self.upper < last, cuts[self.upper])

    def _distances(self, some: Rows, ahead: Array, shared: Array) -> tuple[Array, Array, Array]:
        """Return the log-odds of being above the lower cut and below the upper, and their gap."""
        cut = self.cuts @ shared
        cut[0], cut[-1] = -np.inf, np.inf
        low, high = cut[self.lower[some]], cut[self.upper[some]]
        return ahead - low, high - ahead, high - low

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        above, below, gap = self._distances(some, ahead, shared)
        with np.errstate(divide="ignore", invalid="ignore"):  # gaps that are not positive
            inside = np.log(-np.expm1(-gap))
        return self.weight[some] * (inside - softplus(-above) - softplus(-below))

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        above, below, gap = self._distances(some, ahead, shared)
        weight = self.weight[some]
        short, over = logistic(-above), logistic(-below)  # of the cuts
        low_bend, high_bend = weight * short * (1.0 - short), weight * over * (1.0 - over)
        short, over = weight * short, weight * over
        # Of log(1 - exp(-gap)), whose infinite ends have none.
        odds = 1.0 / np.expm1(gap)
        gap_bend = weight * odds * (1.0 + odds)
        odds *= weight
        cuts = np.nan_to_num(self.cuts)
        low, high = cuts[self.lower[some]], cuts[self.upper[some]]
        wide = (high - low) * np.isfinite(gap)[:, np.newaxis]
        shared_slope = odds[:, np.newaxis] * wide - short[:, np.newaxis] * low
        shared_slope += over[:, np.newaxis] * high
        mixed = -low_bend[:, np.newaxis] * low - high_bend[:, np.newaxis] * high
        corner = low.T @ (low_bend[:, np.newaxis] * low)
        corner += high.T @ (high_bend[:, np.newaxis] * high)
        corner += wide.T @ (gap_bend[:, np.newaxis] * wide)
        return Terms(short - over, low_bend + high_bend, shared_slope, mixed, corner)

    def start(self) -> Array:
        """Return gaps to begin with: those of the shares of results, all systems alike."""
        n_cuts = len(self.cuts) - 2
        shares = np.bincount(self.lower, self.weight, n_cuts + 1)
        shares = 0.5 * (shares + shares[::-1]) / shares.sum()
        inner = np.cumsum(shares)[:-1]
        levels = np.log(inner) - np.log1p(-inner)
        return np.linalg.lstsq(self.cuts[1:-1], levels, rcond=None)[0]


@dataclass(frozen=True)
class OutsideOption:
    r"""Davidson's model with an outside option, both bad, bound to votes.

    Win, loss, tie and both bad have log-weights :math:`d / 2, -d / 2, \log\nu` and
    :math:`b - \gamma m`. The shared parameters are :math:`\log\nu`, where there are ties, and
    :math:`b` and :math:`\gamma`, where both were bad.

    Attributes
    ----------
    result : numpy.ndarray of int and shape (vote,)
        0 for a win of the first, 1 for a loss, 2 for a tie, 3 where both were bad.
    weight : numpy.ndarray of shape (vote,)
        How much each vote counts.
    options : tuple of str
        The results that there are: ties, and votes in which both were bad, only if seen.
    """

    result: NDArray[np.intp]
    weight: Array
    options: tuple[str, ...]

    @classmethod
    def of(cls, votes: VoteRows) -> "OutsideOption":
        """Bind the likelihood to votes."""
        return cls(votes.results, votes.weight, votes.options)

    @property
    def has_ties(self) -> bool:
        """Whether ties are a result."""
        return TIE in self.options

    @property
    def has_level(self) -> bool:
        """Whether both bad is a result."""
        return BOTH_BAD in self.options

    @property
    def positive(self) -> NDArray[np.bool_]:
        """No parameter."""
        return np.zeros(int(self.has_ties) + 2 * int(self.has_level), dtype=bool)

    def held(self, shared: Array) -> NDArray[np.bool_]:
        """Return that none is: every result was seen."""
        return np.zeros(len(shared), dtype=bool)

    def _chances(self, ahead: Array, level: Array, shared: Array) -> tuple[Array, Array]:
        """Return the log-weights of the four results and their chances, of shape (4, vote)."""
        weights = np.full((4, len(ahead)), -np.inf)
        weights[0], weights[1] = 0.5 * ahead, -0.5 * ahead
        if self.has_ties:
            weights[2] = shared[0]
        if self.has_level:
            weights[3] = shared[-2] - shared[-1] * level
        weights -= weights.max(axis=0)
        chances = np.exp(weights)
        total = chances.sum(axis=0)
        return weights - np.log(total), chances / total

    def value(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Array:
        """Return the log-likelihood of a block of votes."""
        log_chances, _ = self._chances(ahead, level, shared)
        seen = np.take_along_axis(log_chances, self.result[some][np.newaxis], 0)[0]
        weight = self.weight[some]
        return weight * np.where(weight > 0.0, seen, 0.0)

    def terms(self, some: Rows, ahead: Array, level: Array, shared: Array) -> Terms:
        """Return the derivatives of a block of votes."""
        result, weight = self.result[some], self.weight[some]
        win, loss, tie, bad = self._chances(ahead, level, shared)[1]
        half_lead = 0.5 * (win - loss)
        k = len(shared)
        # Statistics of the results less their means, and minus their covariances.
        slope = weight * (0.5 * (result == 0) - 0.5 * (result == 1) - half_lead)
        bend = weight * (0.25 * (win + loss) - half_lead**2)
        shared_slope, mixed = np.zeros((2, len(ahead), k))
        corner = np.zeros((k, k))
        if self.has_ties:
            shared_slope[:, 0] = weight * ((result == 2) - tie)
            mixed[:, 0] = -weight * half_lead * tie
            corner[0, 0] = (weight * tie * (1.0 - tie)).sum()
        if not self.has_level:
            return Terms(slope, bend, shared_slope, mixed, corner)
        # Of b - gamma m, the log-weight of both bad.
        gain, spread = weight * ((result == 3) - bad), weight * bad * (1.0 - bad)
        lead, with_tie = -weight * half_lead * bad, -weight * tie * bad
        gamma, across = shared[-1], np.stack([np.ones_like(level), -level], axis=1)
        shared_slope[:, -2:] = gain[:, np.newaxis] * across
        mixed[:, -2:] = lead[:, np.newaxis] * across
        corner[-2:, -2:] = across.T @ (spread[:, np.newaxis] * across)
        of_level = -gamma * spread[:, np.newaxis] * across
        of_level[:, 1] += gain  # gamma and the level multiply each other
        if self.has_ties:
            corner[0, -2:] = corner[-2:, 0] = with_tie @ across
            of_level = np.column_stack([-gamma * with_tie, of_level])
        whole = Level(-gamma * gain, gamma**2 * spread, -gamma * lead, of_level)
        return Terms(slope, bend, shared_slope, mixed, corner, whole)

    def start(self) -> Array:
        """Return parameters to begin with: those of the shares of results, all systems alike."""
        shares = np.bincount(self.result, self.weight, 4)
        decided = 0.5 * max(shares[0] + shares[1], 1.0)
        found = [np.log(shares[2] / decided)] if self.has_ties else []
        return np.array(found + ([np.log(shares[3] / decided), 1.0] if self.has_level else []))


@dataclass(frozen=True)
class VoteModel:
    """A model of votes.

    Attributes
    ----------
    bound_to : callable
        Binds its likelihood to votes.
    of_ties : PairLikelihood
        What is left of it where votes are wins, losses and ties, in the same coordinates.
    """

    bound_to: Callable[[VoteRows], CumulativeLogit | OutsideOption]
    of_ties: PairLikelihood

    def of_pairs(self, has_ties: bool) -> PairLikelihood:
        """Return what is left of it without grades and votes for neither."""
        return self.of_ties if has_ties else bradley_terry()


def cumulative_logit(**_: Any) -> VoteModel:
    """Return Agresti's cumulative logits, in which grades and ties are outcomes."""
    return VoteModel(CumulativeLogit.of, rao_kupper())


def davidson_outside(**_: Any) -> VoteModel:
    """Return Davidson's model with the outside option, both bad."""
    return VoteModel(OutsideOption.of, davidson())


def bind(likelihood: PairLikelihood | VoteModel, votes: VoteRows) -> VoteLikelihood:
    """Bind a likelihood of pairs or of votes to votes."""
    if isinstance(likelihood, VoteModel):
        return likelihood.bound_to(votes)
    return TwoSided(likelihood, votes)
