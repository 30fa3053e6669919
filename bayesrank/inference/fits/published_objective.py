r"""The published 2PL and 3PL item response models: penalties on the questions, no hierarchy.

With :math:`x_{lm} = a_m (\theta_l - b_m)`, :math:`a = e^{\alpha}` and :math:`c = u\,\sigma(g)` for
an upper limit u of guessing, :math:`P_{lm} = c_m + (1 - c_m)\,\sigma(x_{lm})`, and the penalties
:math:`\rho_a \sum \alpha^2`, :math:`\rho_g \sum g^2` and :math:`\sum (\theta - \mu)^2 / (2 s^2)`
are subtracted from the log-likelihood. The mean difficulty of the questions that are kept is held
at 0.

The coordinate of a difficulty is the offset :math:`e = -a b / (1 + a)`: the intercept of a question
that hardly discriminates, whose difficulty runs away along a curved ridge, and minus the difficulty
of one that discriminates sharply, whose intercept does.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.bordered import Bordered
from bayesrank.inference.fits.item_likelihoods import Lines
from bayesrank.inference.fits.items import ItemCounts, item_counts
from bayesrank.inference.fits.log_odds import NO_GUESSING, Guessing
from bayesrank.inference.fits.penalty import Array, PooledSlopes, Quadratic, checked_precision
from bayesrank.inference.fits.two_sided import Expansion, TwoSided

_TINY = 1e-300
_SCALE_STEPS = 2
# Log-odds x below which a parameter that still falls is sent to the floor, and the floor itself.
_FALLING = -8.0
_FLOOR = -23.0


@dataclass(frozen=True)
class PublishedItems(TwoSided[Lines]):
    """Penalised log-likelihood of 2PL or 3PL data.

    Free coordinates: abilities, offsets, log discriminations, then the logits g of estimated
    guessing.

    With guessing, a system that is right no more often than guessing explains has its maximum at
    minus infinity when abilities have no prior, and a question that tells nobody from a guesser has
    its difficulty at infinity. Such parameters are put where the chance of being right exceeds
    guessing by less than 1e-10 everywhere, and held there: systems at this floor tie.
    """

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Questions with answers, of shape (resample, question)."""
        return self.likelihood.trials.any(axis=1)

    @property
    def has_prior(self) -> bool:
        """Whether abilities have a proper prior."""
        return bool(self.systems.precision[0, 0] > 0.0)

    @property
    def has_floor(self) -> bool:
        """Whether maxima at infinity are possible."""
        return self.likelihood.guessing.fixed != 0.0 and not self.has_prior

    def parts(self, point: Array) -> tuple[Array, Array, Array]:
        """Return abilities, offsets and log discriminations."""
        n_systems, _, n_questions, _ = self.likelihood.shape
        cuts = n_systems + n_questions * np.arange(3)
        ability, offset, log_slope, _ = np.split(point, cuts, axis=1)
        return ability, offset, log_slope

    def held_rows(self, point: Array) -> Array:
        """Return the gradient of minus the mean difficulty, of shape (resample, p, 1)."""
        n_systems, _, n_questions, _ = self.likelihood.shape
        _, offset, log_slope = self.parts(point)
        share, flat = self._shares(point), np.exp(-log_slope)
        held = np.zeros((*point.shape, 1))
        held[:, n_systems : n_systems + n_questions, 0] = share * (flat + 1.0)
        held[:, n_systems + n_questions : n_systems + 2 * n_questions, 0] = -share * flat * offset
        return held

    def held(self, point: Array) -> NDArray[np.bool_]:
        """Say which coordinates have their maximum at infinity, of shape (resample, p)."""
        held = np.zeros(point.shape, dtype=bool)
        of_both = np.concatenate(self._at_infinity(point), axis=1)
        held[:, : of_both.shape[1]] = of_both
        return held

    def restore(self, point: Array) -> Array:
        """Shift the level so that the mean difficulty is 0 again, where a prior minds it."""
        return self.levelled(point) if self.has_prior else point

    def levelled(self, point: Array) -> Array:
        """Shift the level so that the mean difficulty is 0."""
        ability, offset, log_slope = self.parts(point)
        flat = np.exp(-log_slope)
        level = -(self._shares(point) * (flat + 1.0) * offset).sum(axis=-1, keepdims=True)
        return self._with(point, ability - level, offset + level / (flat + 1.0))

    def settle(self, point: Array) -> Array:
        """Find the best scale, and send parameters that run to infinity to the floor."""
        return self.floored(self.rescaled(point))

    def floored(self, point: Array) -> Array:
        """Send parameters that run to infinity to the floor."""
        low, fallen = self._at_infinity(point)
        if not (low.any() or fallen.any()):
            return point
        ability, offset, log_slope = self.parts(point)
        slope = np.exp(log_slope)
        bottom = (_FLOOR - (1.0 + slope) * offset) / slope
        floor = np.where(self.kept, bottom, np.inf).min(axis=-1, keepdims=True)
        ability = np.where(low, floor, ability)
        best = ability.max(axis=-1, keepdims=True)
        offset = np.where(fallen, (_FLOOR - slope * best) / (1.0 + slope), offset)
        return self.restore(self._with(point, ability, offset))

    def rescaled(self, point: Array) -> Array:
        """Maximise over a common factor of abilities and difficulties.

        The likelihood does not know it (discriminations take the inverse), so that the objective
        is a curved ridge along it, which Newton's steps would follow slowly.
        """
        ability, offset, log_slope = self.parts(point)
        mean, precision = np.asarray(self.systems.mean)[:, 0], self.systems.precision[0, 0]
        rho, count = self.questions.precision[1, 1], self.kept.sum(axis=-1)
        drift, shift = (log_slope * self.kept).sum(axis=-1), np.zeros(len(point))
        for _ in range(_SCALE_STEPS if self.has_prior else 1):
            scaled = ability * np.exp(shift)[:, None]
            down = precision * (scaled * (scaled - mean)).sum(axis=-1)
            down += rho * (count * shift - drift)
            bend = precision * (scaled * (2.0 * scaled - mean)).sum(axis=-1) + rho * count
            safe = np.maximum(bend, 0.5 * (precision * (scaled**2).sum(axis=-1) + rho * count))
            shift -= np.clip(down / np.maximum(safe, _TINY), -1.0, 1.0)
        moved = log_slope - shift[:, None] * self.kept
        # The intercepts (1 + a) e stay as they are.
        offset = offset * ((1.0 + np.exp(log_slope)) / (1.0 + np.exp(moved)))
        return self._with(point, ability * np.exp(shift)[:, None], offset, moved)

    def _with(self, point: Array, *parts: Array) -> Array:
        """Return a point with other abilities, offsets and perhaps log discriminations."""
        first = np.concatenate(parts, axis=1)
        return np.concatenate([first, point[:, first.shape[1] :]], axis=1)

    def _shares(self, point: Array) -> Array:
        """Return the weight of each question in the mean difficulty."""
        counted = self.kept
        if self.has_floor:
            counted = counted & ~self._at_infinity(point)[1]
        return counted / np.maximum(counted.sum(axis=-1, keepdims=True), 1.0)

    def _at_infinity(self, point: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which abilities and which offsets have their maximum at infinity."""
        if self.has_floor:
            return self._fallen(point, super()._expand(point)[0])
        n_systems, _, n_questions, _ = self.likelihood.shape
        shapes = (len(point), n_systems), (len(point), n_questions)
        return np.zeros(shapes[0], dtype=bool), np.zeros(shapes[1], dtype=bool)

    def _fallen(
        self, point: Array, found: Expansion
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which abilities and which offsets fall for ever."""
        trials = self.likelihood.trials
        x = self.likelihood.log_odds(*self.split(point))[2]
        highest = np.where(trials <= 0.0, -np.inf, x)
        fallen = []
        for axis, slope in ((2, found.gu[..., 0]), (1, found.gv[..., 0])):
            top = highest.max(axis=axis)
            fallen.append((top < _FALLING) & (slope < 0.0) | (top <= _FLOOR))
        some = self.kept.any(axis=-1, keepdims=True)
        return fallen[0] & some, fallen[1] & self.kept

    def _expand(
        self, point: Array, exact: NDArray[np.bool_] | None = None
    ) -> tuple[Expansion, PooledSlopes | None]:
        """Return the objective in blocks, without what is at the floor."""
        found, pooled = super()._expand(point, exact)
        if self.has_floor:
            lowest, fallen = self._fallen(point, found)
            if lowest.any() or fallen.any():
                found.gu[lowest], found.gv[fallen, 0] = 0.0, 0.0
                found.uv[lowest], found.uu[lowest] = 0.0, 1.0
                found.uv[..., 0] *= ~fallen[:, np.newaxis, np.newaxis]
                found.vv[..., 0, :] *= ~fallen[..., np.newaxis]
                found.vv[..., :, 0] *= ~fallen[..., np.newaxis]
                found.vv[..., 0, 0] += fallen
        return found, pooled

    def _bordered(self, point: Array, found: Expansion, pooled: PooledSlopes | None) -> Bordered:
        """Return the matrix of a Newton step, that of the Lagrangian.

        The Lagrangian is the objective less a multiplier times minus the mean difficulty; without
        a prior the multiplier is 0 and this is the objective itself.
        """
        (batch, n_systems, _), (_, n_questions, kinds) = found.gu.shape, found.gv.shape
        on_u, on_v = np.zeros((batch, 1, n_systems, 1)), np.zeros((batch, 1, n_questions, kinds))
        vv = found.vv
        if self.has_prior:
            ability, offset, log_slope = self.parts(point)
            pull = -self.systems.at(ability[..., np.newaxis])[1].sum(axis=(1, 2))
            bend = pull[:, np.newaxis] * self._shares(point) * np.exp(-log_slope)
            vv = vv.copy()
            vv[..., 0, 1] -= bend
            vv[..., 1, 0] -= bend
            vv[..., 1, 1] += bend * offset
            held = self.held_rows(point)[:, n_systems:, 0]
            on_v[:, 0] = held.reshape(batch, kinds, n_questions).swapaxes(1, 2)
        else:
            on_u[:] = 1.0  # any level will do before the end
        # Nothing is held where no question is kept.
        nothing = ~(on_u.any(axis=(2, 3)) | on_v.any(axis=(2, 3)))
        return Bordered(found.uu, vv, found.uv, on_u, on_v, nothing.astype(np.float64))


def published_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
    reg_discrimination: float = 0.01,
    guessing: Guessing = NO_GUESSING,
    reg_guessing: float = 0.1,
) -> tuple[PublishedItems, ItemCounts]:
    """Build the objective that is maximised, and return it with the data.

    Arguments are those of :func:`~bayesrank.inference.fits.published_irt.fit_published_items`.
    """
    checked_precision("ability_precision", ability_precision)
    checked_precision("reg_discrimination", reg_discrimination)
    checked_precision("reg_guessing", reg_guessing)
    if reg_discrimination == 0.0 and ability_precision == 0.0:
        raise ValueError(
            "reg_discrimination must be positive where abilities have no prior, since nothing "
            "else fixes their scale; got 0"
        )
    if guessing.fixed is None and reg_guessing == 0.0:
        raise ValueError("reg_guessing must be positive where guessing is estimated; got 0")
    data = item_counts(correct, trials, drop=True)
    n_systems, n_questions = data.right.shape[1:]
    precisions = [0.0, 2.0 * reg_discrimination]
    if guessing.fixed is None:
        precisions.append(2.0 * reg_guessing)
    mean = np.broadcast_to(np.asarray(ability_mean, dtype=np.float64), n_systems)
    problem = PublishedItems(
        Lines(data.right, data.trials, guessing, offset=True),
        Quadratic(np.array([[ability_precision]]), mean[:, np.newaxis]),
        Quadratic(np.diag(precisions)),
        None,
        np.zeros((0, n_systems, 1)),
        np.zeros((1, 0, n_questions, len(precisions))),
        len(data.right),
    )
    return problem, data
