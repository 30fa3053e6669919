r"""How scores at an optimum move with the data: contributions of units by one Newton step.

At an optimum x of an objective with curvature H, a unit u whose log-likelihood :math:`\ell_u`
counts a little more moves the score :math:`s_l` by :math:`z_l^\top \nabla \ell_u` with
:math:`z_l = H^{-1} \nabla s_l`, which is the slope of :math:`\ell_u` along :math:`z_l`. So one
direction per system gives the influences of all units, by central differences and without the
gradients of the units.

References
----------
.. [1] C. Varin, N. Reid and D. Firth. An overview of composite likelihood methods. Statistica
   Sinica 21 (2011). https://www.jstor.org/stable/24309261
.. [2] A. C. Cameron and D. L. Miller. A practitioner's guide to cluster-robust inference. Journal
   of Human Resources 50 (2015). https://doi.org/10.3368/jhr.50.2.317
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.inference.calibrate.unit_likelihoods import (
    QUESTION_PARAMETERS,
    CellModel,
    EventModel,
    Named,
    UnitModel,
)
from bayesrank.inference.fits.laplace import constrained_steps
from bayesrank.inference.fits.log_odds import logistic
from bayesrank.inference.resample.clusters import sums_over_clusters
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.weights import require_two_trials, widening_for_single_trials
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# Largest move of a parameter for a slope: its error is of the order of the square, and that of
# rounding of the inverse.
_STEP = 1e-4

# Move of a mean over questions, for a second difference.
_SHIFT = 1e-3

# Part of a standard deviation over which a curvature is taken.
_TENTH = 0.1

# Share of the largest variance below which a direction has none.
_FLAT = 1e-12

# Doubles of one block of directions: 32 MB.
_BLOCK_SIZE = 2**22


@dataclass(frozen=True)
class PriorPart:
    """What scores owe to their prior.

    Attributes
    ----------
    own : numpy.ndarray of shape (system, system)
        Covariance of the estimates by the information of the likelihood, as if its model held.
    pull : numpy.ndarray of shape (system,)
        How far the prior moves the estimates.
    left_open : numpy.ndarray of shape (system, system)
        Covariance of what the prior alone tells of the scores.
    """

    own: Array
    pull: Array
    left_open: Array

    def covariance(self, table: Contributions) -> Array:
        """Return the covariance of the scores over the units of a table.

        One unit of the model stands among them, and beside them what the prior leaves open:
        the mean square error of the estimates over the posterior of the truth.
        """
        units = table.freedom + 1.0
        seen = (table.freedom * table.widening * table.covariance + self.own) / units
        return seen + np.outer(self.pull, self.pull) + self.left_open


@dataclass(frozen=True)
class Mode:
    """An optimum, its curvature, and the parameters that its coordinates stand for.

    Attributes
    ----------
    point : numpy.ndarray of shape (p,)
        The optimum in free coordinates.
    information : numpy.ndarray of shape (p, p)
        Negative Hessian of the objective.
    constraints : numpy.ndarray of shape (p, constraint)
        Vectors whose product with the coordinates is held.
    unpack : callable
        Maps points of shape (point, p) to parameters by name.
    """

    point: Array
    information: Array
    constraints: Array
    unpack: Callable[[Array], Named]

    @cached_property
    def gradients(self) -> Array:
        """How the scores rise with the free coordinates, of shape (system, p)."""
        size = len(self.point)
        step = max(1, _BLOCK_SIZE // max(size, 1))
        parts = [
            (self._scores(self.point + moves) - self._scores(self.point - moves)) / (2 * _STEP)
            for moves in _blocks(_STEP * np.eye(size), step)
        ]
        return np.concatenate(parts).T

    @cached_property
    def directions(self) -> Array:
        """Where the optimum moves as the weight of each score does, of shape (system, p)."""
        steps = constrained_steps(self.information, self.constraints, self.gradients)
        if not np.isfinite(steps).all():
            raise DataError(
                "calibration must be 'none' for these data; got 'sandwich', for which the fit has "
                "no curvature along some direction"
            )
        return steps

    def _scores(self, points: Array) -> Array:
        return np.asarray(self.unpack(points)["score"])

    def slopes(
        self, function: Callable[[Named], Array], size: int, *, same_questions: bool
    ) -> Array:
        """Return slopes of a function of the parameters along the directions.

        Parameters
        ----------
        function : callable
            From named parameters to values of shape (point, ...).
        size : int
            Values per point, for the memory.
        same_questions : bool
            Whether the parameters of the questions move too.

        Returns
        -------
        numpy.ndarray of shape (system, ...)
        """
        held = {} if same_questions else self._question_parameters()
        step = max(1, _BLOCK_SIZE // max(size, len(self.point)))
        parts = []
        for block in _blocks(self.directions, step):
            length = np.maximum(np.abs(block).max(axis=1, keepdims=True), 1e-300)
            moves = _STEP / length * block
            ends = [
                function(_holding(self.unpack(self.point + side * moves), held))
                for side in (1.0, -1.0)
            ]
            rise = ends[0] - ends[1]
            parts.append(rise * (length / (2 * _STEP)).reshape(-1, *(1,) * (rise.ndim - 1)))
        return np.concatenate(parts)

    def prior(self, model: UnitModel, *, same_questions: bool) -> PriorPart:
        """Return what the scores owe to the priors, those of the questions only if these stay."""
        posterior = self.directions @ self.gradients.T
        size = model.data.outcomes.size if model.data.scores is None else model.data.trials.size

        at = self.unpack(self.point[np.newaxis])
        leaning = model.leaning(at)
        pull = self.slopes(leaning, size, same_questions=same_questions).sum(axis=1)
        # The share of the prior in the information along each axis of the posterior, from the
        # likelihood over a tenth of a standard deviation.
        variances, axes = np.linalg.eigh(posterior)
        spread = variances > _FLAT * variances[-1]
        axes, variances = axes[:, spread], variances[spread]
        moves = _TENTH / np.sqrt(variances)[:, np.newaxis] * (axes.T @ self.directions)
        step = max(1, _BLOCK_SIZE // max(size, len(self.point)))
        bend = [
            model.bend(at, self.unpack(self.point + block), self.unpack(self.point - block))
            for block in _blocks(moves, step)
        ]
        # None along which anything varies: a system alone, whose score is held.
        share = np.clip(1.0 - np.concatenate([variances[:0], *bend]) / _TENTH**2, 0.0, 1.0)
        own, left_open = ((part * variances * axes) @ axes.T for part in (1.0 - share, share**2))
        return PriorPart(own, pull, left_open)

    def _question_parameters(self) -> dict[str, Array]:
        named = self.unpack(self.point[np.newaxis])
        return {name: named[name] for name in QUESTION_PARAMETERS.intersection(named)}


def question_contributions(mode: Mode, model: UnitModel) -> Contributions:
    """Return what questions, or clusters of them, add to the scores.

    The parameters of a question go with it: in another sample of questions there are others. So
    each question enters with its likelihood at its own best parameters, and with the means over
    questions to which scores are relative.

    Parameters
    ----------
    mode : Mode
        The fit.
    model : UnitModel
        Its likelihood.

    Returns
    -------
    Contributions
    """
    data = model.data
    size = data.trials.size * (data.shape[2] if _by_trial(mode, model) else 1)
    at_mode = mode.unpack(mode.point[np.newaxis])
    moved = mode.slopes(model.leaning(at_mode), size, same_questions=False).T
    if isinstance(model, CellModel):
        moved = moved + model.direct(at_mode)
        if model.scaling is not None:
            # How scores follow when the mean that is held is another.
            pull = model.pull(at_mode, _SHIFT)
            followed = mode.slopes(pull, size, same_questions=True)
            moved += np.outer(model.scaling.shares(at_mode), followed)
    return Contributions.of(sums_over_clusters(moved, data))


def trial_contributions(mode: Mode, model: UnitModel) -> Contributions:
    """Return what the trials of each question add to the scores.

    Parameters
    ----------
    mode : Mode
        The fit.
    model : UnitModel
        Its likelihood.

    Returns
    -------
    Contributions

    Raises
    ------
    DataError
        If most observed cells have one trial.
    """
    data = model.data
    require_two_trials(data)
    if isinstance(model, EventModel):
        moved = mode.slopes(model.by_trial, data.outcomes.size, same_questions=True)
        moved = moved.reshape(len(moved), -1).T * widening_for_single_trials(data)
        return Contributions.of(moved, np.repeat(np.arange(data.shape[1]), data.shape[2]))
    log_odds = model.log_odds
    at_mode = log_odds(mode.unpack(mode.point[np.newaxis]))
    if at_mode.ndim == 3:
        lean = mode.slopes(log_odds, data.trials.size, same_questions=True)
        return answer_contributions(lean, data)
    noise = _noise(data, logistic(at_mode[0]))

    def of_answers(named: Named) -> Array:
        # A question that nobody was asked has no difficulty.
        each = np.where(data.observed, log_odds(named), 0.0) * noise
        return each.sum(axis=1) if data.paired else each

    moved = mode.slopes(of_answers, data.outcomes.size, same_questions=True)
    moved = moved.reshape(len(moved), -1).T * widening_for_single_trials(data)
    return _around_cell_means(moved, data)


def answer_contributions(lean: Array, data: Responses) -> Contributions:
    """Return what answers add to scores that are about linear in the numbers right.

    Parameters
    ----------
    lean : numpy.ndarray of shape (score, system, question)
        How much each score rises with the number right in each cell.
    data : Responses
        Right or wrong answers.

    Returns
    -------
    Contributions
        One row for each cell, or for each answer of runs that systems share.

    Raises
    ------
    DataError
        If most observed cells have one trial.
    """
    require_two_trials(data)
    lean = lean * widening_for_single_trials(data)[:, np.newaxis, np.newaxis]
    if not data.paired:
        correct, trials = data.binary_counts
        each = lean * np.sqrt(correct * (trials - correct) / np.maximum(trials - 1, 1))
    else:
        # Answers of one run of all systems may hang together, so that the run is the unit.
        each = np.einsum("slm,lmn->smn", lean, _noise(data, np.zeros(data.shape)))
    return _around_cell_means(each.reshape(len(each), -1).T, data)


def _around_cell_means(rows: Array, data: Responses) -> Contributions:
    """Return the table of rows that are deviations of answers from the means of their cells."""
    trials = data.trials.min(axis=0) if data.paired else data.trials
    return Contributions(rows, np.ones(len(rows)), float(np.maximum(trials - 1, 0).sum()))


def _noise(data: Responses, chance: Array) -> Array:
    """Return how far answers are from their expectations, of shape (system, question, trial).

    What the trials of a cell have in common says how far the chances are off there, and is no
    noise; how chances change from trial to trial only the model can tell.
    """
    trials = data.trials[..., np.newaxis]
    residual = np.where(data.observed, data.outcomes - chance, 0.0)
    residual -= residual.sum(axis=-1, keepdims=True) / np.maximum(trials, 1)
    residual *= np.sqrt(trials / np.maximum(trials - 1, 1))
    return np.where(data.observed, residual, 0.0)


def _by_trial(mode: Mode, model: UnitModel) -> bool:
    """Return whether chances change from trial to trial."""
    if isinstance(model, EventModel):
        return True
    return model.log_odds(mode.unpack(mode.point[np.newaxis])).ndim == 4


def _blocks(rows: Array, step: int) -> Iterator[Array]:
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _holding(named: Named, held: Named) -> Named:
    """Return parameters with some of them held at their values."""
    n_points = len(named["score"])
    fixed = {
        name: np.broadcast_to(value, (n_points, *value.shape[1:])) for name, value in held.items()
    }
    return {**named, **fixed}
