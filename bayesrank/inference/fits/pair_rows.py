r"""Fits of paired comparisons battle by battle, with covariates, under normal priors.

A battle of i and j with covariates x has the likelihood of the pair
(:mod:`bayesrank.inference.fits.pairs`) at

.. math:: d = \theta_i - \theta_j + x^\top \beta.

One pass over the rows gives its derivatives; sums over pairs give those of the scores.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.battles import Battles
from bayesrank.connectivity import strongly_connected
from bayesrank.formula import Design
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.pair_counts import displace_threshold, pair_counts, start_of
from bayesrank.inference.fits.pairs import Array, PairLikelihood
from bayesrank.inference.fits.penalty import checked_precision
from bayesrank.inference.fits.zero_sum import NormalScores, ZeroSumScores, centred

# Rows whose derivatives are held at once: a dozen arrays of 8 MB.
_BLOCK = 1 << 20
# A step this short is Newton's own, without a look at what it gains.
_SHORT = 0.1
_MOST_HALVINGS = 40


@dataclass(frozen=True)
class PairRows(ZeroSumScores):
    """The penalised log-likelihood of battles with covariates: one resample.

    Free coordinates: the scores, the coefficients of the covariates, then the tie parameter where
    it is estimated.

    Attributes
    ----------
    likelihood : PairLikelihood
        Of one side of a battle.
    data : Battles
        The battles.
    design : Design
        Covariates.
    effect_mean, effect_precision : float
        Normal prior on the coefficients.
    tie_mean, tie_precision : float
        Normal prior on the tie parameter.
    """

    likelihood: PairLikelihood
    data: Battles
    design: Design
    effect_mean: float = 0.0
    effect_precision: float = 0.0
    tie_mean: float = 0.0
    tie_precision: float = 0.0

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return len(self.data.first)

    @property
    def blocks(self) -> range:
        """Where the blocks of battles begin."""
        return range(0, self.cells, _BLOCK)

    @property
    def has_tie(self) -> bool:
        """Whether the tie parameter is a coordinate."""
        return self.likelihood.start is not None

    def scale(self, point: Array) -> Array:
        """Return the number of battles, plus the prior's precision."""
        return self.data.totals.sum(axis=-1).max() + self.prior.precision

    def rows(self, point: Array, start: int = 0) -> tuple[Array, ...]:
        """Return the derivatives of a block of battles at a point of shape (p,).

        Slope in d and minus its derivative; where the tie parameter is estimated also the slope in
        it, minus the mixed derivative and minus the second derivative; each of shape (battle,).
        """
        won, lost, tied, ahead, tie = self._sides(point, start)
        one = self.likelihood.derivatives(won, tied, ahead, tie)
        other = self.likelihood.derivatives(lost, tied, -ahead, tie)
        signs = (-1.0, 1.0, 1.0, -1.0, 1.0)
        return tuple(a + sign * b for a, b, sign in zip(one, other, signs, strict=False))

    def _sides(self, point: Array, start: int) -> tuple[Any, ...]:
        """Return wins, losses and half the ties of a block of battles, d, and the tie parameter."""
        some = slice(start, start + _BLOCK)
        outcome, data = self.data.outcome[some], self.data
        weight = np.ones(len(outcome)) if data.weight is None else data.weight[some]
        shared = 0.5 * weight * (outcome == 0)
        half = shared if self.likelihood.ties == "half" else 0.0
        won, lost = weight * (outcome > 0) + half, weight * (outcome < 0) + half
        tied = shared if self.likelihood.ties == "outcome" else np.zeros(1)
        score, effects = point[: self.size], point[self.size : self.size + self.design.shape[1]]
        ahead = score[data.first[some]] - score[data.second[some]] + self.design[some] @ effects
        tie = point[-1:] if self.has_tie else np.float64(self.likelihood.log_tie or 0.0)
        return won, lost, tied, np.clip(ahead, -600.0, 600.0), tie

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        total = 0.0
        for start in self.blocks:
            won, lost, tied, ahead, tie = self._sides(point[0], start)
            total += self.likelihood.value(won, tied, ahead, tie).sum()
            total += self.likelihood.value(lost, tied, -ahead, tie).sum()
        return np.array([total])

    def value(self, point: Array) -> float:
        """Return the objective at one point, of shape (1, p)."""
        score, effects = point[0, : self.size], self._effects(point[0])
        penalty = self.prior.precision[0] * ((score - self.prior.mean[0]) ** 2).sum()
        penalty += self.effect_precision * ((effects - self.effect_mean) ** 2).sum()
        if self.has_tie and not self.likelihood.held(point)[0]:
            penalty += self.tie_precision * (point[0, -1] - self.tie_mean) ** 2
        return float(self.loglik(point)[0]) - 0.5 * float(penalty)

    def _effects(self, point: Array) -> Array:
        return point[self.size : self.size + self.design.shape[1]]

    def expand(self, point: Array) -> tuple[Array, Any]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        p, size, k = point.shape[1], self.size, self.design.shape[1]
        gradient, matrix = np.zeros(p), np.zeros((p, p))
        for start in self.blocks:
            self._add(point[0], start, gradient, matrix)
        gradient[:size] += self.prior.gradient(point[:, :size])[0]
        np.einsum("ii->i", matrix)[:size] += self.prior.precision[0]
        effects = slice(size, size + k)
        gradient[effects] -= self.effect_precision * (self._effects(point[0]) - self.effect_mean)
        np.einsum("ii->i", matrix)[effects] += self.effect_precision
        if self.has_tie:
            if self.likelihood.held(point)[0]:
                gradient[-1], matrix[-1], matrix[:, -1] = 0.0, 0.0, 0.0
                matrix[-1, -1] = 1.0
            else:
                gradient[-1] -= self.tie_precision * (point[0, -1] - self.tie_mean)
                matrix[-1, -1] += self.tie_precision
        return gradient[np.newaxis], lambda: matrix[np.newaxis].copy()

    def _add(self, point: Array, start: int, gradient: Array, matrix: Array) -> None:
        """Add what a block of battles tells to the gradient and to the information."""
        some, size = slice(start, start + _BLOCK), self.size
        first, second, x = self.data.first[some], self.data.second[some], self.design[some]
        effects = slice(size, size + x.shape[1])

        def by_system(values: Array) -> Array:
            return np.bincount(first, values, size) - np.bincount(second, values, size)

        slope, bend, *of_tie = self.rows(point, start)
        gradient[:size] += by_system(slope)
        gradient[effects] += slope @ x
        cell = first.astype(np.int64) * size + second
        pairs = np.bincount(cell, bend, size**2).reshape(size, size)
        pairs += pairs.T
        matrix[:size, :size] += np.diag(pairs.sum(axis=1)) - pairs
        weighted = bend[:, np.newaxis] * x
        cross = np.zeros((size, x.shape[1]))
        for column, values in enumerate(weighted.T):
            cross[:, column] = by_system(values)
        matrix[:size, effects] += cross
        matrix[effects, :size] += cross.T
        matrix[effects, effects] += x.T @ weighted
        if of_tie:
            tie_slope, mixed, tie_bend = of_tie
            gradient[-1] += tie_slope.sum()
            column = np.concatenate([by_system(mixed), mixed @ x])
            matrix[:-1, -1] += column
            matrix[-1, :-1] += column
            matrix[-1, -1] += tie_bend.sum()

    def newton(self, point: Array) -> Array:
        """Return the Newton step, halved until the objective rises, of shape (resample, p)."""
        step = super().newton(point)
        if self.has_tie and self.likelihood.lowest_tie == 0.0 and step[0, -1] < 0.0:
            step *= min(1.0, 0.5 * point[0, -1] / -step[0, -1])
        if not np.abs(step).max() > _SHORT:
            return step
        now = self.value(point)
        for _ in range(_MOST_HALVINGS):
            if self.value(point + step) > now:  # false for NaN
                break
            step *= 0.5
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return nothing: steps are safe already."""
        return np.zeros(len(step))


def pair_rows(
    likelihood: PairLikelihood,
    data: Battles,
    design: Design,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: float = 0.0,
    **priors: Any,
) -> PairRows:
    """Build the log-posterior of battles with covariates under normal priors.

    Parameters
    ----------
    likelihood : PairLikelihood
        Of one battle.
    data : Battles
        The battles.
    design : Design
        Their covariates; there may be none.
    prior_mean, prior_precision
        Normal prior on the scores; a precision of 0 is flat.
    **priors
        `effect_mean`, `effect_precision`, `tie_mean` and `tie_precision` of :class:`PairRows`.

    Returns
    -------
    PairRows

    Raises
    ------
    ValueError
        If a precision is negative.
    """
    for name in ("effect_precision", "tie_precision"):
        checked_precision(name, priors.get(name, 0.0))
    prior = NormalScores.of(prior_mean, prior_precision, (), len(data.systems))
    return PairRows(prior, likelihood, data, design, **priors)


def fit_pair_rows(likelihood: PairLikelihood, data: Battles, design: Design, **priors: Any) -> Fit:
    """Fit a model of paired comparisons with covariates, by Newton's method.

    Parameters
    ----------
    likelihood, data, design, **priors
        As in :func:`pair_rows`.

    Returns
    -------
    Fit
        Free coordinates: those of :class:`PairRows`. ``parameters["effect"]`` has the coefficients
        of the covariates, of shape (covariate,), ``parameters["tie_strength"]`` as of the pairs.

    Examples
    --------
    >>> from bayesrank.inference.fits.pairs import bradley_terry
    >>> data = Battles(["a", "a", "b", "b"], ["b", "b", "a", "a"], [1, 1, 0, 1])
    >>> fit = fit_pair_rows(bradley_terry(), data, data.design("1"), effect_precision=1.0,
    ...     prior_precision=1.0)
    >>> bool(fit.parameters["effect"][0] > 0.0)
    True
    """
    problem = pair_rows(likelihood, data, design, **priors)
    size, k = problem.size, design.shape[1]
    tables = pair_counts(likelihood, data.wins, data.ties, tie_precision=problem.tie_precision)
    start = start_of(tables)[0]
    point = np.concatenate([start[:size], np.zeros(k), start[size:]])[np.newaxis]
    optimum = maximise(problem, point)
    optimum.point[:, :size] = centred(optimum.point[:, :size])
    exists = problem.prior.precision > 0.0
    if not exists.all():
        met = data.wins + (0.5 * data.ties if likelihood.ties != "ignore" else 0.0)
        exists = strongly_connected(met[np.newaxis] > 0.0) & ~problem.is_flat(optimum.point)
    return Fit.at(
        problem,
        optimum,
        (),
        partial(_unpack, size=size, n_effects=k, log_tie=likelihood.log_tie),
        exists=exists,
        displace=np.add if likelihood.lowest_tie != 0.0 else displace_threshold,
    )


def _unpack(free: Array, *, size: int, n_effects: int, log_tie: float | None) -> dict[str, Array]:
    """Name the scores, the coefficients, and the tie strength where the model has one."""
    named = {"score": free[..., :size], "effect": free[..., size : size + n_effects]}
    if free.shape[-1] > size + n_effects:
        named["tie_strength"] = np.exp(free[..., -1])
    elif log_tie is not None:
        named["tie_strength"] = np.full(free.shape[:-1], np.exp(log_tie))
    return named
