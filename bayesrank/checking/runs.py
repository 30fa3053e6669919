r"""Whether the runs of a system vary more than independent trials allow.

Trial t of every question is run t. If the trials of a question are exchangeable, and independent of
those of other questions, then permuting them within each question changes nothing, and the variance
of the run totals has a known distribution. With :math:`r_{mt}` the deviation of trial t of question
m from the mean of its question, :math:`A_m = \sum_t r_{mt}^2` and :math:`R_t = \sum_m r_{mt}`, the
statistic :math:`S = \sum_t R_t^2` has under these permutations

.. math::

    E(S) = \sum_m A_m, \qquad
    \operatorname{Var}(S) = 2 \Bigl(\operatorname{tr} C^2 - \sum_m \frac{A_m^2}{n_m - 1}\Bigr)

with C the covariance of R and :math:`n_m` the trials of question m. For right and wrong answers S
is proportional to Cochran's Q. Its p-value is that of a scaled chi-squared variable with these
moments. If few outcomes differ, so that the totals have heavy tails, it is that of random
permutations.

References
----------
.. [1] W. G. Cochran. The comparison of percentages in matched samples. Biometrika 37 (1950).
   https://doi.org/10.1093/biomet/37.3-4.256
.. [2] S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of
   Statistics 6 (1979). https://www.jstor.org/stable/4615733
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.responses import Responses
from bayesrank.validation import power_of_two

Array = NDArray[np.float64]

# Probability of a false alarm in a data set. The nominal level is 0.05; the difference allows for
# approximate p-values.
LEVEL = 0.03

# Above this excess kurtosis of the run totals, the chi-squared tail is too light. A total of five
# rare events has this kurtosis.
_HEAVY = 0.2

# Permuted outcomes, over all tests: about half a second.
_MOST_PERMUTED = 8_000_000

# With this many steps from trial to trial, all down or all up, outcomes count as sorted.
_MANY_STEPS = 10


class RunSpread(NamedTuple):
    """The variation of the runs of a system on a group of questions, or on all questions.

    `observed` and `expected` are standard deviations of the mean of a run, the second for
    independent trials; `p_value` is adjusted for all systems and groups (Holm).
    """

    system: str
    group: str | None
    observed: float
    expected: float
    p_value: float


@dataclass(frozen=True)
class _Runs:
    """The outcomes of one system on questions whose trials differ.

    `residuals`, (question, trial), are outcomes minus the mean of their question, 0 where missing;
    `seen` says which were observed. `per_run` is the mean number of outcomes of a run, including
    other questions.
    """

    residuals: Array
    seen: NDArray[np.bool_]
    per_run: float

    @property
    def squares(self) -> Array:
        """Sum of squared residuals of each question."""
        return (self.residuals**2).sum(axis=1)

    @property
    def statistic(self) -> float:
        """Sum of squared run totals."""
        return float((self.residuals.sum(axis=0) ** 2).sum())

    @property
    def has_heavy_tails(self) -> bool:
        """Whether the totals depend on few outcomes."""
        n = self.seen.sum(axis=1)
        second = self.squares / n
        fourth = (self.residuals**4).sum(axis=1) / n
        return bool((fourth - 3.0 * second**2).sum() > _HEAVY * second.sum() ** 2)

    def chi_squared_p(self) -> float:
        """Return the tail of a scaled chi-squared variable with the moments of permutations."""
        from scipy.special import gammaincc  # most readers of results do not need SciPy

        n, squares = self.seen.sum(axis=1), self.squares
        seen = self.seen.astype(float)
        together = squares / (n * (n - 1))
        covariance = -(seen * together[:, np.newaxis]).T @ seen
        np.fill_diagonal(covariance, (squares / n) @ seen)
        variance = 2.0 * ((covariance**2).sum() - (squares**2 / (n - 1)).sum())
        mean = squares.sum()
        if variance <= 1e-9 * mean**2:  # the totals of a single question never change
            return 1.0
        shape = mean**2 / variance
        return float(gammaincc(shape, self.statistic / mean * shape))

    def permutation_p(self, n_permutations: int, rng: np.random.Generator) -> float:
        """Return the share of permutations within questions that are as extreme."""
        # Residuals move to the front, and from there to observed places in a random order.
        front = np.argsort(~self.seen, axis=1, kind="stable")
        packed = np.take_along_axis(self.residuals, front, axis=1)
        least = self.statistic * (1.0 - 1e-9)
        n_extreme = 0
        for part in batches(n_permutations, packed.size, 1_000_000):
            size = (part.stop - part.start, *packed.shape)
            keys = np.where(self.seen, rng.random(size, dtype=np.float32), 2.0)
            places = np.argsort(keys, axis=-1)
            moved = np.empty(places.shape)
            np.put_along_axis(moved, places, np.broadcast_to(packed, places.shape), axis=-1)
            n_extreme += int(((moved.sum(axis=1) ** 2).sum(axis=-1) >= least).sum())
        return (1 + n_extreme) / (1 + n_permutations)

    def spread(self) -> tuple[float, float]:
        """Return the standard deviation of the mean of a run, observed and expected."""
        freedom = max(int(self.seen.any(axis=0).sum()) - 1, 1)
        n = self.seen.sum(axis=1)
        expected = (self.squares / (n - 1)).sum()
        observed = self.statistic / freedom
        return float(observed**0.5 / self.per_run), float(expected**0.5 / self.per_run)


def has_runs(data: Responses) -> bool:
    """Return whether trials are runs.

    They are not if there is only one, or if the outcomes of all questions are sorted, as in data
    made from counts.

    Examples
    --------
    >>> has_runs(Responses([[[0, 1], [1, 0], [1, 1]]]))
    True
    >>> has_runs(Responses([[[1, 0]] * 12]))
    False
    """
    if data.shape[2] < 2:
        return False
    values = data.levels if data.scores is None else data.scores
    earlier, later = values[..., :-1], values[..., 1:]
    both = data.observed[..., :-1] & data.observed[..., 1:]
    up, down = (int(np.count_nonzero(both & step)) for step in (later > earlier, later < earlier))
    return min(up, down) > 0 or max(up, down) < _MANY_STEPS


def run_effects(data: Responses, *, random_seed: int | None = 0) -> list[RunSpread]:
    """Find the systems whose runs vary more than independent trials allow.

    Every system is tested on all questions and, if there are groups, on each group.

    Parameters
    ----------
    data : Responses
        With two trials or more of some questions, in the order of the runs.
    random_seed : int, optional
        Seed of the permutations.

    Returns
    -------
    list of RunSpread
        The strongest first. At most 5 % of data sets with independent trials have any.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> outcomes = (rng.random((2, 40, 8)) < 0.6).astype(int)
    >>> run_effects(Responses(outcomes))
    []
    >>> outcomes[1, :, :2] *= rng.random((40, 2)) < 0.3  # two runs of the second system fail
    >>> [found.system for found in run_effects(Responses(outcomes))]
    ['system 2']
    """
    rng = np.random.default_rng(random_seed)
    tests = [(system, group, runs) for system, group, runs in _tables(data) if len(runs.seen) > 1]
    p_values = np.array([runs.chi_squared_p() for *_, runs in tests])
    doubtful = [i for i in np.flatnonzero(p_values <= LEVEL) if tests[i][2].has_heavy_tails]
    for i in doubtful:
        runs = tests[i][2]
        affordable = _MOST_PERMUTED // (len(doubtful) * runs.seen.size)
        # Twice the number that the smallest p-value needs to pass Holm's first step.
        wanted = round(2 * len(tests) / LEVEL) - 1
        p_values[i] = runs.permutation_p(max(min(wanted, affordable), 1), rng)
    adjusted = _holm(p_values)
    unit = _unit(data)
    found = []
    for i in np.flatnonzero(adjusted <= LEVEL):
        system, group, runs = tests[i]
        observed, expected = runs.spread()
        found.append(RunSpread(system, group, unit * observed, unit * expected, float(adjusted[i])))
    return sorted(found, key=lambda one: one.expected / one.observed)


def _tables(data: Responses) -> Iterator[tuple[str, str | None, _Runs]]:
    """Yield the runs of every system, on all questions and on each group of them."""
    groups = np.array(data.groups) if data.groups is not None else np.empty(0)
    names = np.unique(groups)
    for i, system in enumerate(data.systems):
        values, seen = _outcomes(data, i)
        yield system, None, _runs(values, seen)
        for name in names if len(names) > 1 else ():
            chosen = groups == name
            yield system, str(name), _runs(values[chosen], seen[chosen])


def _outcomes(data: Responses, system: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the worth of the outcomes of a system in units of :func:`_unit`, (question, trial)."""
    seen = data.observed[system]
    if data.scores is not None:
        return np.where(seen, data.scores[system], 0.0), seen
    return np.where(seen, (_worth(data) / _unit(data))[data.outcomes[system]], 0.0), seen


def _worth(data: Responses) -> Array:
    return np.arange(float(data.n_categories)) if data.weights is None else data.weights


def _unit(data: Responses) -> float:
    """Return the worth that counts as one, so that no square overflows or vanishes."""
    return power_of_two(_worth(data)) if data.scale is None else data.scale.high - data.scale.low


def _runs(values: Array, seen: NDArray[np.bool_]) -> _Runs:
    n = seen.sum(axis=1)
    mean = values.sum(axis=1) / np.maximum(n, 1)
    residuals = np.where(seen, values - mean[:, np.newaxis], 0.0)
    informative = (n > 1) & ((residuals**2).sum(axis=1) > 1e-12)
    per_run = float(seen.sum() / max(int(seen.any(axis=0).sum()), 1))
    return _Runs(residuals[informative], seen[informative], per_run)


def _holm(p_values: Array) -> Array:
    """Return p-values adjusted for their number by the step-down procedure of Holm."""
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
