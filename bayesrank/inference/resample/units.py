"""Units of a sample and their contributions to scores (docs/uncertainty.md).

Units of responses are questions or, if there are enough of them, groups of questions; and trials
and runs, each with its own stratum.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.errors import CalibrationWarning, DataError
from bayesrank.responses import Responses
from bayesrank.vote_rows import VoteRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]

# With fewer units the estimate of the spread is imprecise.
SOME_UNITS = 10

# Relative rounding errors of scores and of their spread are smaller.
ROUNDING = 1e-9
# More effective trials, or more degrees of freedom, change draws only by rounding.
UNLIMITED = 1.0 / ROUNDING
_TINY = np.finfo(np.float64).tiny


def has_clusters(data: Responses) -> bool:
    """Return whether whole groups of questions vary: there are enough of them."""
    return data.groups is not None and len(set(data.groups)) >= FEW_UNITS


def clusters_of(data: Responses) -> NDArray[np.intp]:
    """Return the cluster of every question, numbered from 0: its group, if there are enough."""
    if has_clusters(data):
        return np.unique(np.array(data.groups), return_inverse=True)[1].astype(np.intp)
    return np.arange(len(data.questions))


def asked_clusters(data: Responses) -> NDArray[np.intp]:
    """Return the cluster of every question with an answer, numbered from 0, and -1 for others.

    Clusters without such a question are not units of the sample.
    """
    asked = data.trials.any(axis=0)
    clusters = np.full(len(asked), -1)
    clusters[asked] = np.unique(clusters_of(data)[asked], return_inverse=True)[1]
    return clusters


def effective_number(sizes: "NDArray[Any] | csr_array") -> Any:
    """Return how many units of one size have a mean with the same variance (Carter et al. 2017).

    Of each column of sizes (unit, ...); 1 if all are zero.

    Examples
    --------
    >>> effective_number(np.array([[2, 1], [2, 1], [2, 8]]))
    array([3.        , 1.51515152])
    """
    total, squares = sizes.sum(axis=0, dtype=float), (sizes * sizes).sum(axis=0, dtype=float)
    return np.divide(total**2, squares, out=np.ones_like(squares), where=squares > 0.0)[()]


def asked_units(data: Responses) -> Array:
    """Return the effective number of clusters of questions that each system answered, (system,)."""
    return effective_number(sums_over_clusters(data.trials.T.astype(float), asked_clusters(data)))


def voting_units(data: Battles, unit: str, votes: VoteRows) -> Array:
    """Return the effective number of units with votes on each system, (system,); 1 for none.

    The systems are those of the votes, in each state. Of crossed kinds of units the fewer.
    """
    from scipy.sparse import csr_array

    sides, weight = np.append(votes.first, votes.second), np.tile(votes.weight, 2)
    codes = (np.tile(data.unit_codes(kind), 2) for kind in unit.split(","))
    return np.minimum.reduce([effective_number(csr_array((weight, (c, sides)))) for c in codes])


def shown_units(data: Responses, target: str, unit: str) -> tuple[Array, Array]:
    """Return how many units show how the score of each system varies, and a model of the variance.

    Units are questions, or the degrees of freedom of runs or of the trials of all cells: a single
    run, or one trial of each question, shows nothing. The model, (system,), is the variance of a
    mean over units that vary alike.
    """
    if target == "population":
        return (units := asked_units(data)), 1.0 / units
    n = data.observed.any(axis=1, keepdims=True).sum(axis=-1) if unit == "run" else data.trials
    shares = (n > 0) / np.maximum((n > 0).sum(axis=1, keepdims=True), 1)
    return np.maximum(n - 1.0, 0.0).sum(axis=1), (shares**2 / np.maximum(n, 1)).sum(axis=1)


def missing_variance(variance: Array, units: Array, model: Array) -> Array:
    """Return what variances (system,) lack where few units show them, and other systems have more.

    Units that a system lacks vary as those of all systems do, relative to their `model`, which has
    the variances up to a common factor.
    """
    some = units > 0.0
    common = (units * variance)[some] @ (1.0 / model[some]) / units.sum()
    lacking = SOME_UNITS / np.maximum(units, SOME_UNITS) * (1.0 - units / units.max())
    return lacking * np.maximum(common * model - variance, 0.0)


def equal_units(sizes: NDArray[Any]) -> float:
    """Return the effective number of units of such sizes, at least the fewest for a spread.

    With the variance of t for fewer units, one of them has all weight.
    """
    return max(effective_number(sizes), min(len(sizes), FEW_UNITS))


def sums_over_clusters(by_question: Array, clusters: NDArray[np.intp]) -> Array:
    """Sum rows (question, ...) over the questions of each cluster, (cluster, ...), -1 for none."""
    sums = np.zeros((int(clusters.max()) + 1, *by_question.shape[1:]))
    np.add.at(sums, clusters[clusters >= 0], by_question[clusters >= 0])
    return sums


def warn_of_few_groups(data: Responses) -> None:
    """Warn if there are two groups or more, but too few to estimate the variance over groups.

    Groups of unequal sizes count as fewer.
    """
    sizes = np.unique(data.groups or ("",), return_counts=True)[1]
    n_groups, n_equal = len(sizes), round(effective_number(sizes))
    if n_groups < 2 or n_equal >= FEW_UNITS:
        return
    few = f"{n_groups} groups of questions"
    what = "take the questions as independent, and may"
    if has_clusters(data):
        few, what = f"{few} of unequal sizes count as {n_equal}, which", "may"
    warnings.warn(
        f"{few} are too few to estimate how scores vary over groups: intervals {what} be too "
        "narrow for questions of other groups",
        CalibrationWarning,
        stacklevel=4,
    )


def question_clusters(data: Responses) -> NDArray[np.intp]:
    """Return the clusters of the questions, or raise DataError if they cannot vary."""
    if data.shape[1] < 2:
        raise DataError(
            "questions must be two or more for target='population'; got 1: use target='benchmark' "
            "with two or more trials, or draws=0 for the estimate only"
        )
    return clusters_of(data)


def warn_of_few_units(n_units: int, unit: str) -> None:
    """Warn if resampled units are too few to estimate the variance of scores over them."""
    if n_units < FEW_UNITS:
        remedy = "standardized_accuracy" if unit == "run" else "davidson"
        warnings.warn(
            f"{n_units} {unit}{'s are' if n_units > 1 else ' is'} too few to estimate how scores "
            f"vary over {unit}s: resampled intervals for unit={unit!r} may be too narrow; {remedy} "
            "has wider ones",
            CalibrationWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class Contributions:
    """Deviations of the contributions of units to scores from the mean of their stratum."""

    # (unit, system), scaled so that their products add up to the covariance.
    deviations: Array
    # Degrees of freedom of the covariance: units minus strata.
    freedom: float

    @classmethod
    def of(
        cls,
        added: Array,
        strata: NDArray[np.integer] | None = None,
        *,
        sizes: NDArray[Any] | None = None,
        left_out: bool = False,
    ) -> Self:
        """Build the table from contributions (unit, system), or from scores without each unit.

        The deviations of scores without a unit, if `left_out`, are those of the contributions over
        1 - n. The units of a stratum vary around its mean. By default there is one stratum, whose
        units have equal `sizes`, (unit,). Unequal ones count as fewer units.
        """
        labels = np.zeros(len(added), dtype=np.intp) if strata is None else strata
        stratum = np.unique(labels, return_inverse=True)[1]
        n = np.bincount(stratum)
        if left_out:
            scaled = -np.sqrt((n - 1.0) / n)[stratum, np.newaxis] * added
        else:
            shares = 1.0 / n[stratum] if sizes is None else sizes / sizes.sum()
            # Contributions add up to the shift by the prior; subtract the share of each unit in it.
            own = added - shares[:, np.newaxis] * sums_over_clusters(added, stratum)[stratum]
            scaled = left_out_scale(shares, n[stratum])[:, np.newaxis] * own
        deviations = scaled - (sums_over_clusters(scaled, stratum) / n[:, np.newaxis])[stratum]
        size = np.abs(deviations).max(axis=0) / np.maximum(np.abs(added).max(axis=0), _TINY)
        deviations[:, size <= ROUNDING] = 0.0
        freedom = float((n - 1.0).sum()) if sizes is None else freedom_of(sizes)
        return cls(deviations, freedom)

    @classmethod
    def without(cls, scores: Array, **units: Any) -> Self | None:
        """Build the table from scores without each unit; None if some of these do not exist."""
        return cls.of(scores, left_out=True, **units) if np.isfinite(scores).all() else None

    @property
    def covariance(self) -> Array:
        """Covariance of the scores, of shape (system, system)."""
        return self.deviations.T @ self.deviations

    @cached_property
    def standard_errors(self) -> Array:
        """Root of the variance of each score, of shape (system,)."""
        # Powers of very large or small ones leave float64.
        largest = np.abs(self.deviations).max(axis=0, initial=0.0)
        size = np.where(largest > 0.0, largest, 1.0)
        return size * np.sqrt(((self.deviations / size) ** 2).sum(axis=0))

    @property
    def tail_freedom(self) -> Array:
        """Degrees of freedom of each variance by the kurtosis of the contributions, (system,)."""
        n, norm = len(self.deviations), self.standard_errors
        directions = self.deviations / np.where(norm > 0.0, norm, 1.0)
        kurtosis = n * (directions**4).sum(axis=0)
        return 2.0 * n / np.maximum(kurtosis - 1.0, 1.0 / n)


def left_out_scale(shares: Array, n: NDArray[np.integer] | int) -> Array:
    """Return factors of contributions, by the share of each of n units in the data.

    Those of the cluster jackknife (docs/uncertainty.md); 0 for a unit with all data.
    """
    left = 1.0 - shares
    root = np.broadcast_to(np.sqrt((n - 1.0) / n), left.shape)
    return np.divide(root, left, out=np.zeros_like(left), where=left > ROUNDING)


def freedom_of(sizes: NDArray[Any]) -> float:
    """Return the degrees of freedom of a variance over units of such sizes, at least 1 of two."""
    return min(max(effective_number(sizes) - 1.0, 1.0), len(sizes) - 1.0)


def student_variance(freedom: float) -> float:
    """Return the variance of Student's t, for at least three degrees of freedom; 0 for none."""
    return min(1.0 + 2.0 / max(freedom - 2.0, 1.0), freedom)
