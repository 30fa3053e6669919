"""Convergence@n: after how many trials the ranking no longer changes."""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.studies.configurations import choose_methods
from bayesrank.studies.convergence_procedures import Procedure, Redrawn, choose_procedure
from bayesrank.studies.references import nan_mean, tau_or_nan
from bayesrank.validation import check_integer, check_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Bootstrap = Literal["columns", "rows"]
Ties = Literal["exact", "interval"]

# Numbers in the largest array of one block of replicates: 64 MB of doubles.
_BLOCK_SIZE = 2**23


def convergence(
    data: Responses | ArrayLike,
    methods: str | Sequence[str] = "bayes",
    *,
    replicates: int = 100_000,
    bootstrap: Bootstrap = "columns",
    ties: Ties = "exact",
    z: float = 1.645,
    trajectories: int = 100,
    worst: int = 1,
    random_seed: int | None = 0,
) -> xr.Dataset:
    """Bootstrap the number of trials after which the ranking no longer changes.

    A replicate resamples the trials one after another and ranks after each. It converges at n, the
    smallest number of trials, below the last one, from which its ranking stays that of the
    original data from all trials by the same method [1]_. A replicate whose last or last but one
    ranking differs does not converge. All methods see the same replicates.

    ``avg``, ``bayes`` and the pass@k family are ranked by compiled loops. Any other method is
    refitted at every step: use fewer replicates.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes; no trial may be missing.
    methods : str or sequence of str, default "bayes"
        Names of methods, with options in parentheses, such as ``"pass_at_k(k=4)"``. A sequence adds
        the dim ``method``.
    replicates : int, default 100000
        Number of bootstrap replicates.
    bootstrap : {"columns", "rows"}, default "columns"
        Resample whole trials, or the trials of each question separately.
    ties : {"exact", "interval"}, default "exact"
        Rank by the score, with exact ties; or, for ``bayes`` and ``avg``, give neighbours one
        rank if their difference is less than `z` standard deviations of the difference.
    z : float, default 1.645
        For ``ties="interval"``.
    trajectories : int, default 100
        Number of replicates whose rankings are kept after each trial.
    worst : int, default 1
        Number of worst replicates to keep: those that converge last or never; among those that
        never converge, the ones with the most pairs of systems in another order after the last
        trial.
    random_seed : int, optional
        Same seed, same result; 0 by default, None for another one every time.

    Returns
    -------
    xarray.Dataset
        Over n_trials: ``pmf`` and ``cdf`` of convergence@n, as shares of all replicates, and
        ``tau_mean``, the mean agreement (tau-b) of the trajectories with the full ranking.
        ``no_convergence``, the share that does not converge, ``mean`` and ``median`` of n where
        they do, ``converged_at`` (replicate,), 0 for none, ``rank`` (trajectory, n_trials, system)
        and ``full_rank`` (system,). Of the trials in their actual order: ``actual_converged_at``,
        ``actual_rank`` (n_trials, system) and ``actual_tau`` (n_trials). Of the worst replicates:
        ``worst_replicate`` (worst,) and ``worst_rank`` (worst, n_trials, system). Ranks are NaN
        where a method needs more trials.

    Raises
    ------
    ValueError
        If an argument is invalid.
    DataError
        If a trial is missing, there are fewer than two, or a method cannot rank the data.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), appendix I.1. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> data = Responses([[[1, 1, 1, 1]], [[0, 0, 0, 0]]])
    >>> convergence(data, replicates=10)["pmf"].values
    array([1., 0., 0., 0.])
    >>> convergence(data, ["bayes", "pass_at_k(k=2)"], replicates=10)["pmf"].values
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.]])
    """
    data = as_responses(data, "to study trials and questions")
    _check(data, bootstrap, ties, z)
    for name, number, least in (
        ("replicates", replicates, 1),
        ("trajectories", trajectories, 0),
        ("worst", worst, 0),
    ):
        check_integer(number, name, least=least)
    names = choose_methods(data, methods, n=data.shape[2], argument="trials")
    followed = [
        _Followed(choose_procedure(data, name, ties, z, random_seed), data.shape[2])
        for name in names
    ]
    done = 0
    for chosen in _redraws(data, replicates, bootstrap, np.random.default_rng(random_seed)):
        for one in followed:
            one.add(chosen, done, max(trajectories - done, 0), worst)
        done += len(chosen)
    dataset = xr.concat([one.result(data) for one in followed], dim="method")
    dataset = dataset.assign_coords(
        method=list(names),
        n_trials=np.arange(1, data.shape[2] + 1),
        system=list(data.systems),
    ).assign_attrs(study="convergence", bootstrap=bootstrap, ties=ties, z=z)
    return dataset.isel(method=0) if isinstance(methods, str) else dataset


class _Followed:
    """Summaries of the replicates of one method, block by block."""

    def __init__(self, procedure: Procedure, n_trials: int) -> None:
        self._procedure = procedure
        self._n_trials = n_trials
        self._converged: list[IntArray] = []
        self._ranks: list[FloatArray] = []
        self._worst: list[tuple[int, int, Redrawn]] = []

    def add(self, chosen: Redrawn, start: int, trajectories: int, worst: int) -> None:
        """Rank a block of replicates; the first one has the number `start`."""
        converged, moved = self._procedure.converge(chosen)
        # Equality with the full ranking only at the last step is not convergence.
        converged[converged == self._n_trials] = 0
        self._converged.append(converged)
        if trajectories:
            self._ranks.append(self._procedure.follow(chosen[:trajectories]))
        if worst:
            late = np.where(converged > 0, converged, self._n_trials + moved)
            last = np.argsort(-late, kind="stable")[:worst]
            self._worst += [(int(late[i]), start + int(i), chosen[i].copy()) for i in last]
            self._worst.sort(key=lambda each: (-each[0], each[1]))
            del self._worst[worst:]

    def result(self, data: Responses) -> xr.Dataset:
        """Label the summaries."""
        converged = np.concatenate(self._converged)
        pmf = np.bincount(converged, minlength=self._n_trials + 1)[1:] / len(converged)
        reached = converged[converged > 0]
        shape = (0, self._n_trials, len(data.systems))
        ranks = np.concatenate(self._ranks) if self._ranks else np.empty(shape)
        reference = np.asarray(self._procedure.reference, dtype=np.float64)
        in_order = np.arange(self._n_trials, dtype=np.uint16)[np.newaxis]
        actual = self._procedure.follow(in_order)[0]
        actual_converged = int(self._procedure.converge(in_order)[0][0])
        worst = (
            self._procedure.follow(np.stack([chosen for *_, chosen in self._worst]))
            if (self._worst)
            else np.empty(shape)
        )
        path = ("n_trials", "system")
        return xr.Dataset(
            {
                "pmf": ("n_trials", pmf),
                "cdf": ("n_trials", np.cumsum(pmf)),
                "tau_mean": ("n_trials", nan_mean(tau_or_nan(ranks, reference), axis=0)),
                "no_convergence": ((), 1.0 - len(reached) / len(converged)),
                "mean": ((), reached.mean() if len(reached) else np.nan),
                "median": ((), np.median(reached) if len(reached) else np.nan),
                "converged_at": ("replicate", converged),
                "rank": (("trajectory", *path), ranks),
                "full_rank": ("system", reference),
                "actual_converged_at": ((), actual_converged % self._n_trials),
                "actual_rank": (path, actual),
                "actual_tau": ("n_trials", tau_or_nan(actual, reference)),
                "worst_replicate": ("worst", [number for _, number, _ in self._worst]),
                "worst_rank": (("worst", *path), worst),
            }
        )


def _check(data: Responses, bootstrap: str, ties: str, z: float) -> None:
    for name, value, known in (
        ("bootstrap", bootstrap, ("columns", "rows")),
        ("ties", ties, ("exact", "interval")),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
    check_number(z, "z", least=0)
    if data.n_missing:
        raise DataError(
            f"outcomes must be complete for convergence; got {data.n_missing} missing trials"
        )
    if data.shape[2] < 2:
        raise DataError(f"trials must be two or more for convergence; got {data.shape[2]}")


def _redraws(
    data: Responses, replicates: int, bootstrap: str, rng: np.random.Generator
) -> Iterator[Redrawn]:
    """Yield trials of shape (replicate, step) or (replicate, step, question), block by block."""
    n_systems, n_questions, n_trials = data.shape
    shape = (n_trials,) if bootstrap == "columns" else (n_trials, n_questions)
    of_each = n_trials * max(n_systems, shape[-1], n_questions)
    for part in batches(replicates, of_each, _BLOCK_SIZE):
        size = (part.stop - part.start, *shape)
        yield rng.integers(n_trials, size=size, dtype=np.uint16)
