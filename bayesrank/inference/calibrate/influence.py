"""How scores at an optimum move with the data: contributions of units by one Newton step.

The influence of a unit on a score is the slope of its log-likelihood along the direction in which
the optimum moves as the score does (docs/uncertainty.md). So one direction per system gives the
influences of all units, by central differences and without the gradients of the units.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.inference.calibrate.cells_and_events import (
    QUESTION_PARAMETERS,
    CellSlopes,
    EventModel,
    Moves,
    Named,
    UnitModel,
)
from bayesrank.inference.calibrate.variation import ModelPart, Variation
from bayesrank.inference.fits.fit import Unit, constrained_steps
from bayesrank.inference.resample.clusters import asked_clusters, sums_over_clusters
from bayesrank.inference.resample.contributions import ROUNDING, Contributions, student_variance
from bayesrank.inference.resample.trials import widening_for_single_trials
from bayesrank.log_odds import logistic
from bayesrank.responses import Responses

if TYPE_CHECKING:
    from bayesrank.inference.graph.fit import ModelFit

Array = NDArray[np.float64]


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
    # The unit of the scores, where it is left out of what they owe to the priors.
    unit: Unit | None = None

    @cached_property
    def gradients(self) -> Array:
        """How the scores rise with the free coordinates, of shape (system, p)."""
        if self.known is not None:
            return self.known()
        return Moves(self.unpack, self.point, np.eye(len(self.point))).rates["score"].T

    @cached_property
    def directions(self) -> Array:
        """Where the optimum moves as the weight of each score does, of shape (system, p)."""
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
        """Return what the scores owe to the likelihood and to the priors."""
        directions = self.directions
        if self.unit is not None:
            way = self.unit.spread * self.unit.way
            directions = directions - np.outer(self.gradients @ way, way)
        # The share of the prior in the information along each axis of the posterior.
        variances, axes = np.linalg.eigh(directions @ self.gradients.T)
        spread = variances > ROUNDING * variances[-1]
        axes, variances = axes[:, spread], variances[spread]
        one_sd = (axes / np.sqrt(variances)).T @ directions
        bend = model.bend(Moves(self.unpack, self.point, one_sd)) if len(one_sd) else variances
        share = np.clip(1.0 - bend, 0.0, 1.0)
        parts = 1.0 - share, np.ones_like(share), share**2
        own, posterior, left_open = ((part * variances * axes) @ axes.T for part in parts)
        return ModelPart(own, posterior, left_open)


def graph_mode(fit: "ModelFit", data: Responses) -> Mode:
    """Describe the optimum of a graph, of a model that may have left questions out, as NaN."""
    questions = fit.bound.flat.model.coords.get("question") or data.questions
    kept = np.isin(data.questions, questions)

    def unpack(points: Array) -> Named:
        named = fit.bound.named(points)
        for name in QUESTION_PARAMETERS & named.keys():
            values = np.full((len(points), len(kept), *named[name].shape[2:]), np.nan)
            values[:, kept] = named[name]
            named[name] = values
        return named

    return Mode(fit.x, partial(constrained_steps, -fit.hessian, np.zeros((len(fit.x), 0))), unpack)


def variation_at(mode: Mode, model: UnitModel, kind: str) -> Variation:
    """Return how scores vary over questions or clusters of them, over runs, or over trials."""
    data = model.data
    if isinstance(model, EventModel):
        return event_variation(model.by_trial(mode.moves), data, kind)
    if kind == "question":
        return question_variation(model.by_question(mode.moves), data)
    logit = model.log_odds(mode.moves.at)[0]
    chance = logistic(logit) if logit.shape[-1] > 1 else 0.0
    return answer_contributions(model.slopes(mode.moves), data, kind, chance=chance)


def question_variation(added: Array, data: Responses) -> Variation:
    """Return how what questions add varies over clusters of them, (question, coordinate)."""
    return Variation.of(Contributions.of(sums_over_clusters(added, asked_clusters(data))))


def event_variation(
    rows: Array, data: Responses, kind: str, *, by_system: bool = True
) -> Variation:
    """Return how what events add to coordinates varies, of shape (question, trial, coordinate).

    The coordinates are systems, each of which has the noise of its own trials, unless told
    otherwise.
    """
    if kind == "question":
        return question_variation(rows.sum(axis=1), data)
    widening = widening_for_single_trials(data)
    question, trial = np.nonzero(data.observed.any(axis=0))
    rows = rows[question, trial] * (widening if by_system else np.sqrt((widening**2).mean()))
    table = Contributions.of(rows, question)
    if kind != "run":
        return Variation.of(table)
    sums = np.zeros((data.shape[2], rows.shape[1]))
    np.add.at(sums, trial, table.deviations)
    return Variation.of(Contributions(sums, data.trials.max() - 1.0))


def answer_contributions(
    slopes: "CellSlopes | DenseSlopes",
    data: Responses,
    kind: str = "trial",
    *,
    chance: Array | float = 0.0,
) -> Variation:
    """Return how scores vary over right or wrong answers, or over runs, by slopes by the answers.

    `chance` has expectations that change from trial to trial.
    """
    widening = widening_for_single_trials(data)
    noise = _noise(data, chance)
    if kind == "run":
        freedom = data.trials.max() - 1.0
        rows = slopes.sums(noise).sum(axis=1) if data.paired else slopes.sums(noise, "question")
    else:
        # Answers of one run of all systems may hang together, so that the run is the unit.
        trials = data.trials.min(axis=0) if data.paired else data.trials
        freedom = float(np.maximum(trials - 1, 0).sum())
        rows = slopes.sums(noise)
    rows = rows.reshape(len(rows), -1).T * widening
    found = Variation.of(Contributions(rows, freedom))
    if kind == "run" or data.paired:
        return found
    apart = slopes.products(noise**2) * np.outer(widening, widening)
    return replace(found, covariance=student_variance(freedom) * apart)


@dataclass(frozen=True)
class DenseSlopes:
    """Slopes of scores by the numbers right, with the methods of :class:`CellSlopes`."""

    # (score, system, question)
    values: Array

    def sums(self, weights: Array, over: str = "system") -> Array:
        """Sum over systems or questions, by weights of shape (system, question, trial)."""
        kept = "m" if over == "system" else "l"
        return np.einsum(f"slm,lmn->s{kept}n", self.values, weights)

    def products(self, weights: Array) -> Array:
        """Sum products of slopes by weights over cells, of shape (score, score)."""
        each = (self.values * np.sqrt(weights.sum(axis=-1))).reshape(len(self.values), -1)
        return each @ each.T


def _noise(data: Responses, chance: Array | float) -> Array:
    """Return how far answers are from their expectations, of shape (system, question, trial).

    What the trials of a cell have in common says how far the chances are off there, and is no
    noise; how chances change from trial to trial only the model can tell.
    """
    trials = data.trials[..., np.newaxis]
    residual = np.where(data.observed, data.outcomes - chance, 0.0)
    residual -= residual.sum(axis=-1, keepdims=True) / np.maximum(trials, 1)
    residual *= np.sqrt(trials / np.maximum(trials - 1, 1))
    return np.where(data.observed, residual, 0.0)
