r"""The objective of the 2PL and 3PL item response models.

With :math:`x_{lm} = a_m (\theta_l - b_m)`, :math:`a = e^{\alpha}` and :math:`c = u\,\sigma(g)` for
an upper limit u of guessing,

.. math:: P_{lm} = c_m + (1 - c_m)\,\sigma(x_{lm}),

and the penalties :math:`\rho_a \sum w \alpha^2`, :math:`\rho_g \sum w g^2`, with w the
multiplicity of a question, and :math:`\sum (\theta - \mu)^2 / (2 s^2)` are subtracted from the
log-likelihood. The weighted mean difficulty is held at 0.

The coordinate of a difficulty is the offset :math:`e = -a b / (1 + a)`: the intercept of a question
that hardly discriminates, whose difficulty runs away along a curved ridge, and minus the difficulty
of one that discriminates sharply, whose intercept does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.item_likelihoods import Guessing, Lines
from bayesrank.inference.fits.items import ItemCounts
from bayesrank.inference.fits.newton import along
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.two_sided import (
    Bordered,
    Expansion,
    joined,
    positive_definite,
)

_SCALE_STEPS = 2
_TINY = 1e-300
# Log-odds x below which a parameter that still falls is sent to the floor, and the floor itself.
_FALLING = -8.0
_FLOOR = -23.0


@dataclass(frozen=True)
class LogisticItems:
    """Penalised log-likelihood of 2PL or 3PL data.

    Free coordinates: abilities, offsets, log discriminations, then the logits g of estimated
    guessing.

    With guessing, a system that is right no more often than guessing explains has its maximum at
    minus infinity when abilities have no prior, and a question that tells nobody from a guesser has
    its difficulty at infinity. Such parameters are put where the chance of being right exceeds
    guessing by less than 1e-10 everywhere, and held there: systems at this floor tie.

    Attributes
    ----------
    data : ItemCounts
        Weighted counts.
    ability_mean : numpy.ndarray of shape (resample, system)
        Means of a normal prior on the abilities.
    ability_precision : numpy.ndarray of shape (resample,)
        Precision of that prior; 0 for none.
    discrimination_penalty : float
        Weight of the sum of squared log discriminations.
    guessing : Guessing
        How guessing is treated.
    guessing_penalty : float
        Weight of the sum of squared logits of guessing.
    """

    data: ItemCounts
    ability_mean: Array
    ability_precision: Array
    discrimination_penalty: float
    guessing: Guessing
    guessing_penalty: float = 0.0

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            data=self.data.take(index),
            ability_mean=self.ability_mean[index],
            ability_precision=self.ability_precision[index],
        )

    @property
    def has_prior(self) -> bool:
        """Whether abilities have a proper prior."""
        return bool(self.ability_precision.any())

    @property
    def has_floor(self) -> bool:
        """Whether maxima at infinity are possible."""
        return self.guessing.fixed != 0.0 and not self.has_prior

    def split(self, point: Array) -> tuple[Array, Array, Array, Array | None]:
        """Return abilities, offsets, log discriminations and guessing logits."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        first, second = n_systems + n_questions, n_systems + 2 * n_questions
        logit = None if self.guessing.fixed is not None else point[:, second:]
        return point[:, :n_systems], point[:, n_systems:first], point[:, first:second], logit

    @property
    def size(self) -> int:
        """Number of resamples."""
        return len(self.data.trials)

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.data.trials[0].size

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        slope = np.exp(self.split(point)[2])
        by_system = (self.data.trials @ slope[:, :, None]).max(axis=(-1, -2))
        return np.maximum(by_system, self.data.asked.max(axis=-1)) + self.ability_precision

    @cached_property
    def _lines(self) -> Lines:
        """The likelihood."""
        data = self.data
        counts = data.right[:, :, np.newaxis], data.trials[:, :, np.newaxis]
        return Lines(*counts, np.ones((1, 1)), True, self.guessing, offset=True)

    def _sides(self, point: Array) -> tuple[Array, Array]:
        """Return the coordinates of systems and questions, as the likelihood takes them."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        by_kind = point[:, n_systems:].reshape(len(point), -1, n_questions)
        return point[:, :n_systems, np.newaxis], by_kind.swapaxes(1, 2)

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        return self._lines.value(*self._sides(point))

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        ability, _, log_slope, logit = self.split(point)
        value = self.loglik(point)
        value -= 0.5 * self.ability_precision * ((ability - self.ability_mean) ** 2).sum(axis=-1)
        weights = self.data.weights
        value -= self.discrimination_penalty * (weights * log_slope**2).sum(axis=-1)
        if logit is not None:
            value -= self.guessing_penalty * (weights * logit**2).sum(axis=-1)
        return value

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective along what is not held, of shape (resample, p)."""
        gradient = self._gradient(point, self._lines.expand(*self._sides(point)))
        if self.has_floor:
            gradient[self._held(point, gradient)] = 0.0
        return along(gradient, self.constraint(point))

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the Lagrangian, of shape (resample, p, p).

        The Lagrangian is the objective less a multiplier times minus the mean difficulty, which is
        held; without a prior the multiplier is 0 and this is the objective's own Hessian.
        """
        return self._bordered(point, self.held(point), guarded=False).dense()

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where :meth:`information` is positive definite, of shape (resample,)."""
        return self._bordered(point, self.held(point), guarded=False).definite()

    def held_rows(self, point: Array) -> Array:
        """Return what is held, of shape (resample, p, 1)."""
        return self.constraint(point)[..., np.newaxis]

    def constraint(self, point: Array) -> Array:
        """Return the gradient of minus the mean difficulty, of shape (resample, p)."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        _, offset, log_slope, _ = self.split(point)
        share, flat = self._shares(point), np.exp(-log_slope)
        held = np.zeros(point.shape)
        held[:, n_systems : n_systems + n_questions] = share * (flat + 1.0)
        held[:, n_systems + n_questions : n_systems + 2 * n_questions] = -share * flat * offset
        return held

    def system(self, point: Array) -> tuple[Array, Callable[[Array, NDArray[np.intp]], Array]]:
        """Return the gradient, and a function from the damping of some resamples to their steps."""
        found = self._lines.expand(*self._sides(point))
        gradient, held = self._gradient(point, found), None
        if self.has_floor:
            held = self._held(point, gradient)
            gradient[held] = 0.0
        matrices = [self._bordered(point, held, found)]

        def step(damping: Array, rows: NDArray[np.intp]) -> Array:
            matrix = matrices[0].take(rows)
            if damping.any():
                if len(matrices) == 1:
                    matrices.append(self._bordered(point, held, exact=False))
                matrix = matrix.damped(damping, matrices[1].take(rows))
            return joined(*matrix.solve(*self._sides(gradient[rows])))

        return gradient, step

    def held(self, point: Array) -> NDArray[np.bool_]:
        """Say which coordinates have their maximum at infinity, of shape (resample, p)."""
        if not self.has_floor:
            return np.zeros(point.shape, dtype=bool)
        return self._held(point, self._gradient(point, self._lines.expand(*self._sides(point))))

    def _held(self, point: Array, gradient: Array) -> NDArray[np.bool_]:
        """Say which abilities and offsets fall for ever, of shape (resample, p)."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        x = self._lines.log_odds(*self._sides(point))[2][:, :, 0]
        highest = np.where(self.data.trials <= 0.0, -np.inf, x)
        held = np.zeros(gradient.shape, dtype=bool)
        questions = slice(n_systems, n_systems + n_questions)
        for side, axis in ((slice(0, n_systems), -1), (questions, -2)):
            top = highest.max(axis=axis)
            held[:, side] = (top < _FALLING) & (gradient[:, side] < 0.0) | (top <= _FLOOR)
        held[:, questions] &= ~self.data.left_out
        return held & ~self.data.left_out.all(axis=-1, keepdims=True)

    def restore(self, point: Array) -> Array:
        """Shift the level so that the mean difficulty is 0 again, where a prior minds it."""
        return self.levelled(point) if self.has_prior else point

    def levelled(self, point: Array) -> Array:
        """Shift the level so that the mean difficulty is 0."""
        ability, offset, log_slope, _ = self.split(point)
        flat = np.exp(-log_slope)
        level = -(self._shares(point) * (flat + 1.0) * offset).sum(axis=-1, keepdims=True)
        n_systems, n_questions = self.data.trials.shape[-2:]
        shifted = point.copy()
        shifted[:, :n_systems] = ability - level
        shifted[:, n_systems : n_systems + n_questions] = offset + level / (flat + 1.0)
        return shifted

    def settle(self, point: Array) -> Array:
        """Find the best scale, and send parameters that run to infinity to the floor."""
        return self.floored(self.rescaled(point))

    def floored(self, point: Array) -> Array:
        """Send parameters that run to infinity to the floor."""
        held = self.held(point)
        if not held.any():
            return point
        n_systems, n_questions = self.data.trials.shape[-2:]
        ability, offset, log_slope, _ = self.split(point)
        low, fallen = held[:, :n_systems], held[:, n_systems : n_systems + n_questions]
        slope = np.exp(log_slope)
        bottom = (_FLOOR - (1.0 + slope) * offset) / slope
        floor = np.where(self.data.left_out, np.inf, bottom).min(axis=-1, keepdims=True)
        best = np.where(low, floor, ability).max(axis=-1, keepdims=True)
        settled = point.copy()
        settled[:, :n_systems] = np.where(low, floor, ability)
        questions = slice(n_systems, n_systems + n_questions)
        settled[:, questions] = np.where(fallen, (_FLOOR - slope * best) / (1.0 + slope), offset)
        return self.restore(settled)

    def _gradient(self, point: Array, found: Expansion) -> Array:
        ability, _, log_slope, logit = self.split(point)
        parts = [found.gu[..., 0].copy(), *np.moveaxis(found.gv, -1, 0)]
        parts[0] -= self.ability_precision[:, None] * (ability - self.ability_mean)
        parts[2] -= 2.0 * self.discrimination_penalty * self.data.weights * log_slope
        if logit is not None:
            parts[3] -= 2.0 * self.guessing_penalty * self.data.weights * logit
        return np.concatenate(parts, axis=-1)

    def _bordered(
        self,
        point: Array,
        held: NDArray[np.bool_] | None,
        found: Expansion | None = None,
        *,
        exact: bool = True,
        guarded: bool = True,
    ) -> Bordered:
        """Return the matrix of a Newton step, with the constraint that fixes the level.

        Questions whose own block of the exact matrix is not positive definite get the expected
        one, unless it is for the record.
        """
        _, n_systems, n_questions = self.data.trials.shape
        if found is None:
            by_question = None if exact else np.zeros(self.data.weights.shape, dtype=bool)
            found = self._lines.expand(*self._sides(point), by_question)
        self._add_priors(found)
        if exact and guarded and not (definite := positive_definite(found.vv)).all():
            found = self._lines.expand(*self._sides(point), definite)
            self._add_priors(found)
        uu, vv, uv = found.uu, found.vv, found.uv
        if held is not None and held.any():
            low, fallen = held[:, :n_systems], held[:, n_systems : n_systems + n_questions]
            uv[low], uu[low] = 0.0, 1.0
            uv[..., 0] *= ~fallen[:, np.newaxis, np.newaxis]
            vv[..., 0, :] *= ~fallen[..., np.newaxis]
            vv[..., :, 0] *= ~fallen[..., np.newaxis]
            vv[..., 0, 0] += fallen
        batch, kinds = len(point), vv.shape[-1]
        on_u, on_v = np.zeros((batch, 1, n_systems, 1)), np.zeros((batch, 1, n_questions, kinds))
        if self.has_prior:
            ability, offset, log_slope, _ = self.split(point)
            share, flat = self._shares(point), np.exp(-log_slope)
            if exact:
                pull = self.ability_precision * (ability - self.ability_mean).sum(axis=-1)
                bend = pull[:, np.newaxis] * share * flat
                vv[..., 0, 1] -= bend
                vv[..., 1, 0] -= bend
                vv[..., 1, 1] += bend * offset
            on_v[:, 0, :, 0], on_v[:, 0, :, 1] = share * (flat + 1.0), -share * flat * offset
        else:
            on_u[:] = 1.0  # any level will do before the end
        # Nothing is held where no question is kept.
        nothing = ~(on_u.any(axis=(2, 3)) | on_v.any(axis=(2, 3)))
        return Bordered(uu, vv, uv, on_u, on_v, nothing.astype(np.float64))

    def _add_priors(self, found: Expansion) -> None:
        """Add priors and penalties to the blocks of an expansion of the likelihood."""
        found.uu += self.ability_precision[:, np.newaxis, np.newaxis, np.newaxis]
        found.vv[..., 1, 1] += 2.0 * self.discrimination_penalty * self.data.weights
        if self.guessing.fixed is None:
            found.vv[..., 2, 2] += 2.0 * self.guessing_penalty * self.data.weights
        for kind in range(found.vv.shape[-1]):
            found.vv[..., kind, kind] += self.data.left_out  # no data: they stay where they are

    def _shares(self, point: Array) -> Array:
        """Return the weight of each question in the mean difficulty."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        weights = self.data.weights
        if self.has_floor:
            weights = weights * ~self.held(point)[:, n_systems : n_systems + n_questions]
        total = np.maximum(weights.sum(axis=-1, keepdims=True), _TINY)
        return weights / total

    def rescaled(self, point: Array) -> Array:
        """Maximise over a common factor of abilities and difficulties.

        The likelihood does not know it (discriminations take the inverse), so that the objective
        is a curved ridge along it, which Newton's steps would follow slowly.
        """
        n_systems, n_questions = self.data.trials.shape[-2:]
        ability, _, log_slope, _ = self.split(point)
        asked, weights = ~self.data.left_out, self.data.weights
        mean, precision = self.ability_mean, self.ability_precision
        rho, count = 2.0 * self.discrimination_penalty, weights.sum(axis=-1)
        drift = (log_slope * weights).sum(axis=-1)
        shift = np.zeros(len(point))
        for _ in range(_SCALE_STEPS if self.has_prior else 1):
            scaled = ability * np.exp(shift)[:, None]
            down = precision * (scaled * (scaled - mean)).sum(axis=-1)
            down += rho * (count * shift - drift)
            bend = precision * (scaled * (2.0 * scaled - mean)).sum(axis=-1) + rho * count
            safe = np.maximum(bend, 0.5 * (precision * (scaled**2).sum(axis=-1) + rho * count))
            shift -= np.clip(down / np.maximum(safe, _TINY), -1.0, 1.0)
        rescaled = point.copy()
        rescaled[:, :n_systems] *= np.exp(shift)[:, None]
        # The intercepts (1 + a) e stay as they are.
        kept = (1.0 + np.exp(log_slope)) / (1.0 + np.exp(log_slope - shift[:, None] * asked))
        rescaled[:, n_systems : n_systems + n_questions] *= kept
        slopes = slice(n_systems + n_questions, n_systems + 2 * n_questions)
        rescaled[:, slopes] -= shift[:, None] * asked
        return rescaled
