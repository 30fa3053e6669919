"""The variance of estimates over the units of a run, and the terms of the model and its prior.

Units are questions, runs, right or wrong answers, events, or battles; a judge or a prompt with many
battles is one unit. At an optimum, the influence of a unit on a score is the slope of its
log-likelihood along the Newton step for the gradient of the score. So one direction per system
gives the influences of all units, by central differences and without the gradients of the units.
Where influences tell too little, the jackknife fits the data again without some of the units.
Formulas and references: docs/uncertainty.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.unit_likelihoods import (
    Array,
    CellSlopes,
    EventModel,
    Moves,
    Named,
    UnitModel,
)
from bayesrank.inference.fits.fit import Unit, constrained_steps, symmetric_root
from bayesrank.inference.fits.pair_rows import PairRows
from bayesrank.inference.fits.pairs import PairLikelihood
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.resample.units import (
    ROUNDING,
    SOME_UNITS,
    Contributions,
    asked_clusters,
    freedom_of,
    left_out_scale,
    missing_variance,
    student_variance,
    sums_over_clusters,
)
from bayesrank.inference.resample.weights import resample, widening_for_single_answers
from bayesrank.inference.run import Run
from bayesrank.log_odds import logistic
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    from bayesrank.inference.graph.fit import ModelFit

# Bootstrap draws of battles, and of trials that systems do not share: a standard deviation has an
# error of 2 %.
_RESAMPLES = 2000


# Most fits to parts of the data: the standard deviation of 50 contributions has an error of a
# tenth. More clusters are joined at random into this number of parts.
_MOST_PARTS = 50

ScoresWithout = Callable[[NDArray[np.bool_]], Array]


@dataclass(frozen=True)
class Variation:
    """The variance of estimates over units."""

    # (coordinate, coordinate), with the widening of Student's t for few units.
    covariance: Array
    # Its degrees of freedom: units minus strata.
    freedom: float
    # (coordinate,): sum over units of the square of what each adds to a variance.
    squares: Array

    @classmethod
    def of(cls, table: Contributions) -> Self:
        """Return the variation of a table of contributions."""
        widening = student_variance(table.freedom)
        squares = ((widening * table.deviations**2) ** 2).sum(axis=0)
        return cls(widening * table.covariance, table.freedom, squares)

    def crossed(self, other: "Variation", both: "Variation") -> "Variation":
        """Add another kind of units, and subtract `both`: units that share one unit of each kind.

        Negative eigenvalues, which occur where neither kind varies, are set to zero.
        """
        values, axes = np.linalg.eigh(self.covariance + other.covariance - both.covariance)
        total = (np.maximum(values, 0.0) * axes) @ axes.T
        fewer = np.maximum(self.squares, other.squares)
        return Variation(total, min(self.freedom, other.freedom), fewer)


@dataclass(frozen=True)
class ModelPart:
    """Covariances by the likelihood and its prior, each of shape (coordinate, coordinate)."""

    # Of the estimates under the model of the likelihood: V of docs/uncertainty.md.
    own: Array
    # Of the posterior: W.
    posterior: Array
    # Of the bias that the prior causes: L.
    left_open: Array

    def covariance(self, found: Variation, shown: Array | None = None) -> Array:
        """Return the covariance of estimates that vary over units.

        Given the numbers `shown` of units with the variation of systems, which are the first
        coordinates, a system with fewer than others has their variance relative to the likelihood.
        """
        own, unit = np.diag(self.own), np.diag(self.own) / max(found.freedom, 1.0)
        total = found.covariance + self.own / max(found.freedom, 1.0)
        seen = np.maximum(np.diag(total), 0.0)  # rounding may be negative
        squares = found.squares + unit**2
        # The effective number of units in a variance; one if no unit varies.
        varies = (squares > 0.0) & (seen**2 > 0.0)
        units = np.divide(seen**2, squares, out=np.ones_like(own), where=varies)
        missing = np.divide(own - seen, own, out=np.zeros_like(own), where=own > seen)
        missing *= np.minimum(SOME_UNITS / units, 1.0)
        some = np.flatnonzero(own[: 0 if shown is None else len(shown)] > 0.0)
        if shown is not None and len(some):
            fewer = missing_variance(seen[some], shown[some], own[some]) / own[some]
            missing[some] = np.maximum(missing[some], fewer)
        root = symmetric_root(self.posterior - self.left_open)
        return total + (root * missing) @ root + self.left_open


def over_units(run: Run, over: Callable[[str], Variation]) -> Variation:
    """Return the variation of estimates over the units of a run, from that over one kind.

    Kinds are ``question``, ``run`` or ``trial`` of responses; for battles the kinds that all
    battles of a unit share, joined by a comma.
    """
    kinds, both = run.unit.split(","), run.unit
    if isinstance(run.data, Responses) and run.target == "population":
        kinds, both = ["question", "run"] if run.unit == "run" else ["question"], "trial"
    found = [over(kind) for kind in kinds]
    return found[0] if len(found) == 1 else found[0].crossed(found[1], over(both))


@dataclass(frozen=True)
class Mode:
    """An optimum, its Newton steps, and the parameters that its coordinates stand for."""

    # (p,), in free coordinates.
    point: Array
    # Newton steps of the objective there for gradients, both of shape (step, p).
    steps: Callable[[Array], Array]
    # Parameters by name of points of shape (point, p).
    unpack: Callable[[Array], Named]
    # Returns the gradients of the scores, if they are known.
    known: Callable[[], Array] | None = None
    # The scale of the scores, if the variance along it is left out.
    unit: Unit | None = None

    @cached_property
    def gradients(self) -> Array:
        """Gradients of the scores in the free coordinates, of shape (system, p)."""
        if self.known is not None:
            return self.known()
        return Moves(self.unpack, self.point, np.eye(len(self.point))).rates["score"].T

    @cached_property
    def directions(self) -> Array:
        """Newton steps for the gradients of the scores, of shape (system, p)."""
        steps = self.steps(self.gradients)
        if not np.isfinite(steps).all():
            raise DataError(
                "calibration must be 'none' for these data; got 'sandwich', for which the fit has "
                "no curvature along some direction"
            )
        return steps

    @cached_property
    def moves(self) -> Moves:
        """How the parameters move along the directions."""
        return Moves(self.unpack, self.point, self.directions)

    def prior(self, model: UnitModel) -> ModelPart:
        """Return the parts of the covariance of the scores by the likelihood and the priors."""
        directions = self.directions
        if self.unit is not None:
            way = self.unit.spread * self.unit.way
            directions = directions - np.outer(self.gradients @ way, way)
        # The share of the prior in the information along each principal axis of the posterior.
        variances, axes = np.linalg.eigh(directions @ self.gradients.T)
        spread = variances > ROUNDING * variances[-1]
        axes, variances = axes[:, spread], variances[spread]
        one_sd = (axes / np.sqrt(variances)).T @ directions
        moves = Moves(self.unpack, self.point, one_sd)
        share = np.clip(1.0 - (model.information(moves) if len(one_sd) else variances), 0.0, 1.0)
        parts = 1.0 - share, np.ones_like(share), share**2
        own, posterior, left_open = ((part * variances * axes) @ axes.T for part in parts)
        return ModelPart(own, posterior, left_open)


def graph_mode(fit: "ModelFit", data: Responses) -> Mode:
    """Return the optimum of a graph as a mode, with systems and questions ordered as in the data.

    Questions that its model leaves out have NaN.
    """
    model = fit.bound.flat.model
    labels = {"system": data.systems, "question": data.questions}
    places = {
        dim: [labels[dim].index(one) for one in model.coords[dim] or ()]
        for dim in labels
        if dim in model.coords
    }

    def unpack(points: Array) -> Named:
        named = fit.bound.named(points)
        for name, values in named.items():
            for axis, dim in enumerate(model.named_vars_to_dims.get(name, ()), 1):
                if dim in places:
                    shape = (*values.shape[:axis], len(labels[dim]), *values.shape[axis + 1 :])
                    ordered = np.full(shape, np.nan)
                    ordered[(*[slice(None)] * axis, places[dim])] = values
                    named[name] = values = ordered
        return named

    return Mode(fit.x, partial(constrained_steps, -fit.hessian, np.zeros((len(fit.x), 0))), unpack)


def variation_at(mode: Mode, model: UnitModel, kind: str) -> Variation:
    """Return the variation of scores over questions or clusters of them, over runs or trials."""
    data = model.data
    if isinstance(model, EventModel):
        return event_variation(model.by_trial(mode.moves), data, kind)
    if kind == "question":
        return question_variation(model.by_question(mode.moves), data)
    logit = model.log_odds(mode.moves.at)[0]
    chance = logistic(logit) if logit.shape[-1] > 1 else 0.0
    return answer_variation(model.slopes(mode.moves), data, kind, chance=chance)


def question_variation(added: Array, data: Responses) -> Variation:
    """Return the variation over clusters of contributions of questions (question, coordinate)."""
    clusters = asked_clusters(data)
    trials = sums_over_clusters(data.trials.sum(axis=0, dtype=float), clusters)
    table = Contributions.of(sums_over_clusters(added, clusters), sizes=trials)
    return Variation.of(table)


def event_variation(
    rows: Array, data: Responses, kind: str, *, by_system: bool = True
) -> Variation:
    """Return the variation of contributions of events, of shape (question, trial, coordinate).

    By default the coordinates are systems, each of which has the noise of its own trials.
    """
    if kind == "question":
        return question_variation(rows.sum(axis=1), data)
    widening = widening_for_single_answers(data, events=True)
    question, trial = np.nonzero(data.observed.any(axis=0))
    rows = rows[question, trial] * (widening if by_system else np.sqrt((widening**2).mean()))
    table = Contributions.of(rows, question)
    if kind != "run":
        return Variation.of(table)
    sums = sums_over_clusters(table.deviations, trial)
    return Variation.of(Contributions(sums, data.trials.max() - 1.0))


def answer_variation(
    slopes: CellSlopes, data: Responses, kind: str = "trial", *, chance: Array | float = 0.0
) -> Variation:
    """Return the variation of scores over answers or over runs, from their slopes by answers.

    `chance` is the expectation of each trial, where it changes from trial to trial.
    """
    widening = widening_for_single_answers(data)
    # The mean deviation of a cell is an error of the model, not noise.
    trials = data.trials[..., np.newaxis]
    noise = np.where(data.observed, data.outcomes - chance, 0.0)
    noise -= noise.sum(axis=-1, keepdims=True) / np.maximum(trials, 1)
    noise *= data.observed * np.sqrt(trials / np.maximum(trials - 1, 1))
    if kind == "run":
        freedom = data.trials.max() - 1.0
        rows = slopes.sums(noise).sum(axis=1) if data.paired else slopes.sums(noise, "l")
    else:
        # Answers of one run of all systems may be dependent, so that the run is the unit.
        units = data.observed.any(axis=0).sum(axis=-1) if data.paired else data.trials
        freedom = float(np.maximum(units - 1, 0).sum())
        rows = slopes.sums(noise)
    rows = rows.reshape(len(rows), -1).T * widening
    found = Variation.of(Contributions(rows, freedom))
    if kind == "run" or data.paired:
        return found
    apart = slopes.products(noise**2) * np.outer(widening, widening)
    return replace(found, covariance=student_variance(freedom) * apart)


def gradient_variation(
    data: Responses | Comparisons,
    likelihood: PairLikelihood,
    point: Array,
    kind: str,
    seed: np.random.SeedSequence,
) -> Variation:
    """Return the variation of the gradient of pairs over one kind of units, or over battles.

    The point has the scores, then the tie parameter where it is estimated. The seed is for the
    bootstrap of battles, and of trials that systems do not share.
    """
    if isinstance(data, Responses) and data.paired:
        rows = _event_gradients(data.levels.reshape(len(data.systems), -1), likelihood, point)
        rows = rows.reshape(*data.shape[1:], len(point))
        return event_variation(rows, data, kind, by_system=False)
    if isinstance(data, Responses) and kind == "question":
        rows = [
            likelihood.gradient(point, *data.compare_by_question(some))
            for some in batches(data.shape[1], len(data.systems) ** 2)
        ]
        return question_variation(np.concatenate(rows), data)
    if kind == "run":
        raise DataError(
            "unit must be 'trial' for comparisons of runs that systems do not share; got 'run': "
            "build Responses with paired=True"
        )
    drawn = resample(
        data,
        "pairs",
        target="benchmark",
        smooth=True,
        size=_RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    wins, ties = point_arguments(data, "pairs")
    found = np.concatenate([likelihood.gradient(point, *batch) for batch in drawn])
    freedom = float(wins.sum() + ties.sum() / 2.0)
    covariance = np.atleast_2d(np.cov(found, rowvar=False))
    return Variation(covariance, freedom, np.diag(covariance) ** 2 / max(freedom, 1.0))


def _event_gradients(levels: NDArray[np.int8], likelihood: PairLikelihood, point: Array) -> Array:
    """Return the gradient of each trial of all systems, of shape (trial, p).

    A system wins against systems at lower levels, loses to those at higher levels, and ties with
    the others at its level. So the gradients are products with tables of the slopes of single
    results.
    """
    size = len(levels)
    one, none = np.ones((size, size)), np.zeros((size, size))
    arguments = likelihood.arguments(point[np.newaxis], size)
    won, tied = (
        likelihood.derivatives(*likelihood.sides(*result), *arguments)
        for result in ((one, none), (none, one))
    )
    tie_slope = tied[0][0] - tied[0][0].T
    rows = np.zeros((levels.shape[1], len(point)))
    for level in range(int(levels.max(initial=0)) + 1):
        at, below = (levels == level).astype(float), (levels >= 0) & (levels < level)
        rows[:, :size] += (at * (won[0][0] @ below) - below * (won[0][0].T @ at)).T
        rows[:, :size] += (at * (tie_slope @ at)).T
        if likelihood.start is not None and not likelihood.at_end(point[-1]):
            for table, others in ((won, below), (tied, at)):
                slope = np.where(np.eye(size, dtype=bool), 0.0, table[2][0])
                rows[:, size] += (at * (slope @ others)).sum(axis=0)
    return rows


def unit_variation(problem: PairRows, data: Battles, unit: str, point: Array) -> Variation:
    """Return the variation of the gradient of votes over units of battles, of one kind or of two.

    Gradients of units are sparse, since a unit has battles of few systems.
    """
    from scipy.sparse import csr_array

    codes, *crossed = (data.unit_codes(kind).astype(np.int64) for kind in unit.split(","))
    for others in crossed:
        codes = np.unique(codes * (others.max() + 1) + others, return_inverse=True)[1]
    n_votes, p, size = len(codes), len(point), problem.size
    # A row may be many votes, such as 7 wins.
    times = data.repeats if data.rows_are_units(unit) else None
    row = np.arange(n_votes) if times is None else np.repeat(np.arange(n_votes), times)
    codes = codes if times is None else np.arange(len(row))
    part = 1.0 / np.bincount(row, minlength=n_votes)[row]
    n = int(codes.max()) + 1
    # Of each vote the slopes in both scores, and in the other coordinates.
    slopes = np.empty((n_votes, 2 + p - size))
    for some in problem.blocks:
        both, slopes[some, 2:] = problem.slopes(point, some)
        slopes[some, :2] = both.T
    places = np.empty(slopes.shape, dtype=np.int32)
    places[:, 0], places[:, 1] = problem.votes.first, problem.votes.second
    places[:, 2:] = np.arange(size, p)
    starts = np.arange(n_votes + 1) * slopes.shape[1]
    votes = csr_array((slopes.ravel(), places.ravel(), starts), shape=(n_votes, p))
    sizes = np.bincount(codes, part * problem.votes.weight[row], n)
    share = sizes / sizes.sum()
    scale = left_out_scale(share, n)
    weights = np.stack([scale, scale**2 * share, np.ones(n)])
    gradients: Any = csr_array((part, (codes, row)), shape=(n, n_votes)) @ votes
    total, shared, pull = weights @ gradients
    gradients.data *= np.repeat(scale, np.diff(gradients.indptr))
    squares, fourth = (gradients.T @ gradients).toarray(), (gradients**4).sum(axis=0)
    # Gradients add up to the gradient of the prior; subtract the share of each unit in it.
    total -= (scale * share).sum() * pull
    shared -= 0.5 * (scale**2 * share**2).sum() * pull
    squares -= np.outer(shared, pull) + np.outer(pull, shared)
    freedom = freedom_of(sizes)
    widening = student_variance(freedom)
    spread = widening * (squares - np.outer(total, total) / n)
    return Variation(spread, freedom, widening**2 * fourth)


def question_jackknife(scores_without: ScoresWithout, data: Responses) -> Contributions | None:
    """Return contributions of clusters of questions, many joined into parts; None if one lacks.

    `scores_without` takes the questions of each part, (part, question), and returns the scores
    without them, (part, system).
    """
    parts = _parts(data)
    sizes = sums_over_clusters(data.trials.sum(axis=0, dtype=float), parts)
    left_out = parts == np.arange(len(sizes))[:, np.newaxis]
    return Contributions.without(scores_without(left_out), sizes=sizes)


def delete_many_jackknife(
    scores_without: ScoresWithout, score: Array, data: Responses
) -> Contributions | None:
    """Return contributions of questions by a jackknife that deletes many at once.

    If the likelihood has several maxima, a fit without a few questions nearly always ends at
    the maximum of all data. Deviations are from the estimate, not from their own mean. So an
    estimate has wide intervals if most of the fits end at another maximum.
    """
    parts = _parts(data)
    n = int(parts.max()) + 1
    large = min(FEW_UNITS, n)
    rng = np.random.default_rng(0)
    joined = np.stack([rng.permutation(n) % large for _ in range(FEW_UNITS)])
    left_out = (joined[:, parts] == np.arange(large)[:, np.newaxis, np.newaxis]) & (parts >= 0)
    deviations = scores_without(left_out.reshape(-1, len(parts))) - score
    deviations *= np.sqrt((large - 1) / len(deviations))
    return Contributions(deviations, n - 1.0) if np.isfinite(deviations).all() else None


def _parts(data: Responses) -> NDArray[np.intp]:
    """Return the part of every question, -1 for questions that no system was asked."""
    parts = asked_clusters(data)
    n_parts = int(parts.max()) + 1
    if n_parts > _MOST_PARTS:
        joined = np.random.default_rng(0).permutation(n_parts) % _MOST_PARTS
        parts = np.where(parts < 0, -1, joined[parts])
    return parts


def jackknife_by_refits(
    refit: Callable[[Array, Array], Array], data: Responses, kind: str
) -> Contributions | None:
    """Return contributions of questions, runs or trials, by fits without them.

    None if there is no estimate without some of them; `refit` is that of a `Fit`.
    """
    if kind == "question":
        right, trials = (counts.astype(float) for counts in data.binary_counts)

        def without(left_out: NDArray[np.bool_]) -> Array:
            kept = ~left_out[:, np.newaxis, :]
            return refit(right * kept, trials * kept)

        return question_jackknife(without, data)
    widening = widening_for_single_answers(data)
    rng = np.random.default_rng(0)
    n_parts = min(SOME_UNITS, data.shape[2])
    n_divisions = _MOST_PARTS // n_parts
    divisions = [_counts_of_parts(data, n_parts, kind, rng) for _ in range(n_divisions)]
    # All in one call, a batch of fits.
    scores = widening * refit(*(np.concatenate(counts) for counts in zip(*divisions, strict=True)))
    found = Contributions.without(scores, strata=np.repeat(np.arange(n_divisions), n_parts))
    if found is None:
        return None
    # Several divisions of the same trials have no more degrees of freedom than one.
    units = data.trials - 1 if kind == "trial" else data.trials.max() - 1
    freedom = min(found.freedom, float(np.maximum(units, 0).sum()))
    deviations = found.deviations / np.sqrt(n_divisions)
    return Contributions(deviations, freedom)


def _counts_of_parts(
    data: Responses, n_parts: int, kind: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return right answers and trials without each part, both (part, system, question)."""
    n_systems, n_questions, n_trials = data.shape
    shape = (1 if data.paired else n_systems, 1 if kind == "run" else n_questions, n_trials)
    places = rng.random(shape)  # answers of one run of all systems may be dependent
    if kind == "trial" and not data.paired:
        places = np.where(data.observed, places, 1.0)  # missing trials come last
    # In cells with fewer trials than parts the first trial is in a random part.
    order = places.argsort(axis=-1).argsort(axis=-1)
    order += rng.integers(n_parts, size=(*order.shape[:-1], 1))
    kept = data.observed & (order % n_parts != np.arange(n_parts).reshape(-1, 1, 1, 1))
    return (kept & (data.outcomes == 1)).sum(axis=-1, dtype=float), kept.sum(axis=-1, dtype=float)
