r"""The published 2PL and 3PL item response models: penalties on the questions, no hierarchy.

With :math:`x_{lm} = a_m (\theta_l - b_m)`, :math:`a = e^{\alpha}` and :math:`c = u\,\sigma(g)` for
an upper limit u of guessing, :math:`P_{lm} = c_m + (1 - c_m)\,\sigma(x_{lm})`, and the penalties
:math:`\rho_a \sum \alpha^2`, :math:`\rho_g \sum g^2` and :math:`\sum (\theta - \mu)^2 / (2 s^2)`
are subtracted from the log-likelihood. The mean difficulty of the questions that are kept is fixed
at 0.

The coordinate of a difficulty is the offset :math:`e = -a b / (1 + a)`: the intercept of a question
that hardly discriminates, whose difficulty diverges along a curved ridge, and minus the difficulty
of a question that discriminates sharply, whose intercept diverges.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.counting import order_of_counts
from bayesrank.inference.fits.bordered import Bordered, joined, parted
from bayesrank.inference.fits.fit import Fit, Unit, merge_noise
from bayesrank.inference.fits.item_likelihoods import (
    NO_GUESSING,
    Guessing,
    ItemCounts,
    Lines,
    item_counts,
    known,
    limited,
)
from bayesrank.inference.fits.item_models import Named, fit_rasch, named_lines
from bayesrank.inference.fits.newton import MAX_DAMPED_ITERATIONS, MAX_ITERATIONS, Array, Optimum
from bayesrank.inference.fits.symmetry import (
    Exchangeable,
    maximise_from_several,
    merged_questions,
    other_abilities,
    told_apart,
)
from bayesrank.inference.fits.two_sided import Expansion, Floor, Quadratic, TwoSided
from bayesrank.log_odds import finite_exp, logistic, softplus
from bayesrank.priors import FLAT, NormalPrior

# Precision of the abilities of the Rasch fit to begin with, where the model itself has no prior.
_START_PRECISION = 0.1
_TINY = 1e-300
_SCALE_STEPS = 2
# Log-odds x below which a parameter that still falls is sent to the floor, and the floor itself.
_FALLING = -8.0
_FLOOR = -23.0
# Standard deviations between which the unit is drawn.
_GRID = np.linspace(-8.0, 8.0, 801)
# Signed roots of likelihood ratios between which abilities above the floor are interpolated, the
# smallest as a share of the largest, and halvings of an interval that leave rounding.
_ROOTS, _LEAST_ROOT, _HALVINGS = 64, 1e-6, 60


@dataclass(frozen=True)
class PublishedItems(TwoSided[Lines]):
    """Penalised log-likelihood of 2PL or 3PL data.

    Points: abilities, offsets, log discriminations, then the logits g of estimated guessing.

    With guessing, a system that is right no more often than guessing explains has its maximum at
    minus infinity when abilities have no prior, and a question that tells nobody from a guesser has
    its difficulty at infinity. Such parameters are put where the chance of being right exceeds
    guessing by less than 1e-10 everywhere, and held there: systems at this floor tie.
    """

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Questions with answers, of shape (resample, question)."""
        return self.likelihood.trials.any(axis=1)

    @cached_property
    def counts(self) -> Array:
        """How many questions with answers each stands for, of shape (resample, question)."""
        counts = self.questions.counts
        return self.kept.astype(np.float64) if counts is None else self.kept * counts

    @property
    def has_prior(self) -> bool:
        """Whether abilities have a proper prior."""
        return bool(self.systems.precision[0, 0] > 0.0)

    @property
    def has_floor(self) -> bool:
        """Whether maxima at infinity are possible."""
        return self.likelihood.guessing.fixed != 0.0 and not self.has_prior

    def parts(self, point: Array) -> tuple[Array, Array, Array]:
        """Return views of abilities, offsets and log discriminations."""
        u, v = self.split(point)
        return u[..., 0], v[..., 0], v[..., 1]

    def held_rows(self, point: Array) -> Array:
        """Return the gradient of minus the mean difficulty, of shape (resample, p, 1)."""
        _, offset, log_slope = self.parts(point)
        share, flat, held = self._shares(point), np.exp(-log_slope), np.zeros_like(point)
        _, by_offset, by_slope = self.parts(held)
        by_offset[:], by_slope[:] = share * (flat + 1.0), -share * flat * offset
        return held[..., np.newaxis]

    def held(self, point: Array) -> NDArray[np.bool_]:
        """Say which coordinates are at the floor, of shape (resample, p)."""
        held = np.zeros(point.shape, dtype=bool)
        if (floor := self._floor(point)) is not None:
            both = np.concatenate(floor, axis=1)
            held[:, : both.shape[1]] = both
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
        if (floor := self._floor(point)) is None:
            return point
        low, fallen = floor
        ability, offset, log_slope = self.parts(point)
        slope = np.exp(log_slope)
        bottom = (_FLOOR - (1.0 + slope) * offset) / slope
        lowest = np.where(self.kept, bottom, np.inf).min(axis=-1, keepdims=True)
        ability = np.where(low, lowest, ability)
        best = ability.max(axis=-1, keepdims=True)
        offset = np.where(fallen, (_FLOOR - slope * best) / (1.0 + slope), offset)
        return self._with(point, ability, offset)

    def in_unit(self, point: Array, log_factor: Array) -> Array:
        """Return points with abilities times a factor, of the same likelihood."""
        ability, offset, log_slope = self.parts(point)
        moved = log_slope - log_factor[..., np.newaxis] * self.kept
        # The intercepts (1 + a) e stay as they are.
        offset = offset * ((1.0 + np.exp(log_slope)) / (1.0 + np.exp(moved)))
        return self._with(point, ability * np.exp(log_factor)[..., np.newaxis], offset, moved)

    def rescaled(self, point: Array) -> Array:
        """Maximise over a common factor of abilities and difficulties.

        The likelihood does not know it (discriminations take the inverse), so that the objective is
        a curved ridge along it, which Newton's steps would follow slowly.
        """
        ability, _, log_slope = self.parts(point)
        count, drift, shift = self.counts.sum(axis=-1), self.drift(log_slope), np.zeros(len(point))
        for _ in range(_SCALE_STEPS if self.has_prior else 1):
            scaled = ability * np.exp(shift)[:, None]
            down, bend, least = self.along_unit(scaled, drift - count * shift)
            safe = np.maximum(np.maximum(bend, least), _TINY)
            shift -= np.clip(down / safe, -1.0, 1.0)
        return self.in_unit(point, shift)

    def drift(self, log_slope: Array) -> Array:
        """Return the sum of log discriminations, of shape (resample,)."""
        return (log_slope * self.counts).sum(axis=-1)

    def along_unit(self, ability: Array, drift: Array) -> tuple[Array, Array, Array]:
        """Return slope and curvature of the penalties along the log of the unit, and a least."""
        mean, precision = np.asarray(self.systems.mean)[:, 0], self.systems.precision[0, 0]
        rho = self.questions.precision[1, 1]
        certain = rho * self.counts.sum(axis=-1)
        slope = precision * (ability * (ability - mean)).sum(axis=-1) - rho * drift
        bend = precision * (ability * (2.0 * ability - mean)).sum(axis=-1) + certain
        return slope, bend, 0.5 * (precision * (ability**2).sum(axis=-1) + certain)

    def _with(self, point: Array, *parts: Array) -> Array:
        """Return a point with other abilities, offsets and perhaps log discriminations."""
        first = np.concatenate(parts, axis=-1)
        return np.concatenate([first, point[..., first.shape[-1] :]], axis=-1)

    def _shares(self, point: Array) -> Array:
        """Return the weight of each question in the mean difficulty."""
        counted = self.counts
        if (floor := self._floor(point)) is not None:
            counted = counted * ~floor[1]
        return counted / np.maximum(counted.sum(axis=-1, keepdims=True), 1.0)

    def _floor(self, point: Array) -> Floor | None:
        """Return which abilities and which offsets are at the floor; None where none are."""
        return self._at(point).floor if self.has_floor else None

    def _expand(self, point: Array, exact: NDArray[np.bool_] | None = None) -> Expansion:
        """Return the objective in blocks, without what is at the floor or falls to it."""
        found = super()._expand(point, exact)
        if not self.has_floor:
            return found
        x = self.likelihood.log_odds(*self.split(point))[2]
        highest = np.where(self.likelihood.trials <= 0.0, -np.inf, x)
        tops = highest.max(axis=2), highest.max(axis=1)
        low, fallen = (
            (top < _FALLING) & (slope[..., 0] < 0.0) | (top <= _FLOOR)
            for top, slope in zip(tops, (found.gu, found.gv), strict=True)
        )
        low, fallen = low & self.kept.any(axis=-1, keepdims=True), fallen & self.kept
        if low.any() or fallen.any():
            found.floor = low, fallen
            found.gu[low], found.gv[fallen, 0] = 0.0, 0.0
            found.uv[low], found.uu[low] = 0.0, 1.0
            found.uv[..., 0] *= ~fallen[:, np.newaxis, np.newaxis]
            found.vv[..., 0, :] *= ~fallen[..., np.newaxis]
            found.vv[..., :, 0] *= ~fallen[..., np.newaxis]
            found.vv[..., 0, 0] += fallen
        return found

    def blocks(self, point: Array) -> Bordered:
        """Return the negative Hessian in blocks, bordered by that of the mean difficulty."""
        on_u, on_v = (side[:, np.newaxis] for side in self.split(self.held_rows(point)[..., 0]))
        return replace(super().blocks(point), on_u=on_u, on_v=on_v)

    def _bordered(self, point: Array, found: Expansion) -> Bordered:
        """Return the matrix of a Newton step, that of the Lagrangian.

        That is the objective less a multiplier times minus the mean difficulty; without a prior the
        multiplier is 0.
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
            on_v[:, 0] = self.split(self.held_rows(point)[..., 0])[1]
        else:
            on_u[:] = 1.0  # any level works before the end
        # There is no constraint if no question is kept.
        nothing = ~(on_u.any(axis=(2, 3)) | on_v.any(axis=(2, 3)))
        return Bordered(found.uu, vv, found.uv, on_u, on_v, nothing.astype(np.float64))


def published_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    prior: NormalPrior = FLAT,
    reg_discrimination: float = 0.01,
    guessing: Guessing = NO_GUESSING,
    reg_guessing: float = 0.1,
) -> tuple[PublishedItems, ItemCounts]:
    """Build the objective of the published 2PL or 3PL model.

    Counts and `prior` are as in :func:`~bayesrank.inference.fits.item_models.rasch_items`.
    ValueError if nothing fixes the scale.
    """
    if reg_discrimination == 0.0 and prior.precision == 0.0:
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
    problem = PublishedItems(
        Lines(data.right, data.trials, guessing, offset=True),
        Quadratic.of_abilities(prior, n_systems),
        Quadratic(np.diag(precisions)),
        None,
        np.zeros((0, n_systems, 1)),
        np.zeros((1, 0, n_questions, len(precisions))),
        len(data.right),
    )
    return problem, data


def fit_published_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
    **priors: Any,
) -> Fit:
    """Fit the 2PL or 3PL model, P(l is right on m) = c_m + (1 - c_m) sigma(a_m (theta_l - b_m)).

    The objective is not concave: the fit is the highest maximum found from the Rasch model's
    abilities and, where those are not clear, from other dimensions of the answers too. Systems, and
    questions, that the data cannot distinguish, because they could change places with others, tie,
    though the likelihood may be higher with them apart: then it has several equally high maxima, of
    which the estimates are the mean. Without a prior, systems that guessing alone explains have
    abilities at minus infinity: they are reported, all equal, at the ability where the chance of
    being right exceeds guessing by less than 1e-10 on every question. Half of their draws are
    there, the others above it by the signed root of the likelihood ratio.

    Arguments are those of :func:`published_items`. ``parameters``: ``difficulty``, infinite for
    questions that every system answers alike (they are left out), ``discrimination`` and
    ``guessing`` where there is any, NaN for those, and their logarithms and logits.
    """
    problem, data = published_items(correct, trials, **priors)
    mean = np.asarray(problem.systems.mean)[:, 0]
    exists = problem.has_prior | linked_both_ways(data.right > 0.0, data.right < data.trials)
    if not np.any(exists):  # fits that diverge do not converge
        max_iterations = min(max_iterations, MAX_ITERATIONS)
    if len(data.right) > 1:
        optimum = _highest(problem, data, max_iterations)
    else:
        # Which of several maxima is found depends on rounding.
        kinds = np.unique(mean, return_inverse=True)[1]
        systems, questions = order_of_counts(data.right[0], data.trials[0], kinds)
        tables = (table[0, systems][:, questions] for table in (data.right, data.trials))
        moved = {**priors, "prior": NormalPrior(mean[systems], problem.systems.precision[0, 0])}
        optimum = _highest(*published_items(*tables, **moved), max_iterations)
        u, v = problem.split(optimum.point)
        optimum = optimum.at(joined(u[:, systems.argsort()], v[:, questions.argsort()]))
    optimum = optimum.at(problem.levelled(problem.floored(optimum.point)))
    point, n_systems = optimum.point, data.right.shape[1]
    unpack = partial(_unpack, problem, limit=data.limit)
    alike = Exchangeable.of(data.right, data.trials, mean)
    middle = alike.mean(point)
    middle[:, :n_systems] = merge_noise(middle[:, :n_systems])
    named = unpack(middle.reshape(*data.lead, -1))
    held = problem.held(point)
    low = held[:, :n_systems].reshape(*data.lead, -1)
    unit = unit_of(problem, point, data.lead)
    return Fit.at(
        problem,
        optimum,
        data.lead,
        unpack,
        exists=exists,
        score=named.pop("score"),
        parameters=named,
        blocks=problem.blocks,
        displace=partial(displace, problem, unit, held),
        at_end=low if low.any() else None,
        gradients=lambda: np.eye(n_systems, point.shape[1]),
        unit=unit,
        exchange=alike.exchange,
    )


def _highest(problem: PublishedItems, data: ItemCounts, max_iterations: int) -> Optimum:
    """Return the highest maxima found from several starts."""
    merged = merged_questions(problem)
    start = merged.point(_first_point(problem, data))
    others = other_abilities(data, start.shape[1])
    optimum = maximise_from_several(merged.reduced, start, others, max_iterations=max_iterations)
    return told_apart(merged, optimum, max_iterations)


def _first_point(problem: PublishedItems, data: ItemCounts) -> Array:
    """Begin at the Rasch model, on its best scale, with guessing at half the weakest rates."""
    n_systems, guessing = data.right.shape[1], problem.likelihood.guessing
    precision = problem.systems.precision[0, 0] if problem.has_prior else _START_PRECISION
    rasch = fit_rasch(data.right, data.trials, prior=NormalPrior(0.0, precision))
    offset = 0.5 * np.where(data.left_out, 0.0, rasch.free[:, n_systems:])
    parts = [rasch.score, offset, np.zeros_like(offset)]
    if guessing.fixed is None:
        rates = np.sort((data.right + 0.5) / (data.trials + 1.0), axis=-2)
        weakest = rates[:, : max(1, n_systems // 4)].mean(axis=-2)
        share = np.clip(0.5 * weakest / guessing.upper, 0.02, 0.9)
        parts.append(np.where(data.left_out, 0.0, np.log(share) - np.log1p(-share)))
    point = np.concatenate(parts, axis=-1)
    for _ in range(3):
        point = problem.rescaled(point)
    return problem.restore(point)


def _unpack(problem: PublishedItems, free: Array, *, limit: Array | None) -> Named:
    ability, offset, log_slope = problem.parts(free)
    difficulty = -offset * (finite_exp(-log_slope) + 1.0)
    guessing = problem.likelihood.guessing
    lines = named_lines(guessing, problem.split(free)[1])
    named = {"score": ability, "difficulty": limited(difficulty, limit)}
    named |= {name: known(values, limit) for name, values in lines.items()}
    if guessing.fixed:
        named["guessing"] = np.full(difficulty.shape, guessing.fixed)
    return named


def unit_of(problem: "PublishedItems", point: Array, lead: tuple[int, ...]) -> Unit:
    """Return the unit of abilities at optima, (resample, p), for resamples of shape `lead`."""
    ability, offset, log_slope = problem.parts(point)
    way = np.zeros_like(point)
    # The intercepts (1 + a) e stay as they are.
    moves = ability, offset * logistic(log_slope), -1.0 * problem.kept
    for part, move in zip(problem.parts(way), moves, strict=True):
        part[:] = move
    way[problem.held(point)] = 0.0
    _, bend, least = problem.along_unit(ability, problem.drift(log_slope))
    bend = np.maximum(bend, least)
    # Equal abilities, and no question that tells of them, have no unit.
    spread = np.where(bend > 0.0, 1.0 / np.sqrt(np.maximum(bend, _TINY)), 0.0)
    draw = partial(_draw_unit, problem, point, spread) if problem.has_prior else None
    return Unit(way.reshape(*lead, -1), spread.reshape(lead), draw)


def _draw_unit(
    problem: "PublishedItems", point: Array, spread: Array, normal: Array, drawn: Array
) -> Array:
    """Turn standard normal draws, (draw, ...), into logs of the unit of drawn abilities.

    By the signed root: their squares are the deviance of the penalties along the unit from its
    least, which is far from quadratic where abilities are near their means.
    """
    ability, _, log_slope = problem.parts(point)
    mean, precision = np.asarray(problem.systems.mean)[:, 0], problem.systems.precision[0, 0]
    drawn = drawn.reshape(len(normal), *ability.shape)
    squares, products = (drawn**2).sum(axis=-1), (drawn * mean).sum(axis=-1)
    rho = problem.questions.precision[1, 1]
    # Discriminations follow abilities so far that the slope along the unit stays.
    slope = precision * ((2.0 * ability - mean) * (drawn - ability)).sum(axis=-1)
    slope += rho * problem.drift(log_slope)
    count = rho * problem.counts.sum(axis=-1)
    normals, found = normal.reshape(slope.shape), np.empty(slope.shape)
    for draw, row in np.ndindex(slope.shape):
        steps = spread[row] * _GRID
        factor = finite_exp(steps)
        deviance = precision * factor * (squares[draw, row] * factor - 2.0 * products[draw, row])
        deviance += steps * (count[row] * steps - 2.0 * slope[draw, row])
        least = int(deviance.argmin())
        root = np.sqrt(deviance - deviance[least])
        root[:least] *= -1.0
        found[draw, row] = np.interp(normals[draw, row], root, steps)
    return found.reshape(normal.shape)


def displace(
    problem: "PublishedItems", unit: Unit, held: NDArray[np.bool_], free: Array, deviations: Array
) -> Array:
    """Move optima by Gaussian deviations, (draw, ..., p), in which the unit has no part of its own.

    Questions at the floor of guessing, `held`, stay there; abilities rise from it.
    """
    points, deviations = free.reshape(held.shape), deviations.reshape(-1, *held.shape)
    kept = np.where(held, 0.0, deviations)
    # The score of the deviations along the unit.
    mean, precision = np.asarray(problem.systems.mean)[:, 0], problem.systems.precision[0, 0]
    ability, _, log_slope = problem.parts(kept)
    along = (precision * (2.0 * problem.parts(points)[0] - mean) * ability).sum(axis=-1)
    along -= problem.questions.precision[1, 1] * problem.drift(log_slope)
    spread = unit.spread.reshape(-1)
    moved = points + kept - (spread**2 * along)[..., np.newaxis] * unit.way.reshape(held.shape)
    if unit.draw is not None:
        moved = problem.in_unit(moved, unit.draw(spread * along, problem.parts(moved)[0]))
    answers = problem.likelihood
    for row, system in np.argwhere(held[:, : answers.shape[0]]):
        v = parted(points[row : row + 1], answers.shape)[1]
        lost = partial(_lost, answers.take(np.array([row])), v, system)
        moved[:, row, system] = risen(lost, float(points[row, system]), deviations[:, row, system])
    return moved.reshape(-1, *free.shape)


def _lost(answers: Lines, v: Array, system: int, ability: Array) -> Array:
    """Return by how much the log-likelihood of a system that only guesses is higher, (ability,)."""
    _, _, x, guess = answers.log_odds(ability[np.newaxis, :, np.newaxis], v)
    right, trials = answers.right[:, system], answers.trials[:, system]
    more = np.log1p((1.0 / np.asarray(guess) - 1.0) * logistic(x))
    return ((trials - right) * softplus(x) - right * more)[0].sum(axis=-1)


def risen(lost: Callable[[Array], Array], floor: float, normals: Array) -> Array:
    """Return abilities at the floor of guessing, or above it, for standard normal numbers, (draw,).

    A positive number is the signed root of a likelihood ratio: the log-likelihood has `lost` half
    its square from the floor to the ability. For others the ability is at the floor, as half of all
    estimates at the end of a range are [1]_.

    References
    ----------
    .. [1] S. G. Self and K.-Y. Liang. Asymptotic properties of maximum likelihood estimators and
       likelihood ratio tests under nonstandard conditions. Journal of the American Statistical
       Association 82 (1987). https://doi.org/10.1080/01621459.1987.10478472

    Examples
    --------
    >>> risen(np.exp, -20.0, np.array([-1.0, 1.0, 2.0])).round(2)
    array([-20.  ,  -0.69,   0.69])
    """
    roots = max(float(normals.max()), _LEAST_ROOT) * np.geomspace(_LEAST_ROOT, 1.0, _ROOTS)
    reach = 1.0
    while lost(np.array([floor + reach]))[0] <= 0.5 * roots[-1] ** 2:
        reach *= 2.0
    low, high = np.full(_ROOTS, floor), np.full(_ROOTS, floor + reach)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        over = lost(middle) > 0.5 * roots**2
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    found = np.interp(np.log(np.maximum(normals, roots[0])), np.log(roots), low)
    return np.where(normals > 0.0, found, floor)
