"""Scores of methods on many data sets, with a ranking where no finite estimate exists."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.errors import ConvergenceWarning, NoFiniteEstimate
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.run import split_scores
from bayesrank.method import load_function
from bayesrank.priors import Normal
from bayesrank.ranking import point_estimate, rank
from bayesrank.responses import Responses
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.configurations import find_row, read_method

FloatArray = NDArray[np.float64]

# Standard deviations of the prior, in logits, for the limit of the MAP, and shares of a
# comparison for the limit of rank centrality. Diverging scores move apart by the logarithm of
# these, in decreasing steps, so the order has converged if two steps in a row agree.
_GROWING_SDS = (1e2, 1e3, 1e4, 1e5)
_SHRINKING_SHARES = (1e-6, 1e-8, 1e-10)
_DRAWS_OF_A_SAMPLER = 500
# Numbers in the first argument of one call of a ranker: 8 MB of doubles.
_BLOCK_SIZE = 2**20


class Scored(NamedTuple):
    """A ranking of one data set.

    Attributes
    ----------
    rank : numpy.ndarray of float64 and shape (system,)
        1 for the best, ties share the best place; NaN where the method cannot rank these data.
    finite : bool
        Whether a finite estimate exists.
    """

    rank: FloatArray
    finite: bool


def score_rank(data: Responses, method: str, *, random_seed: int | None = None) -> Scored:
    """Rank systems by the point estimate of a method, or by its limit if it is not finite.

    A maximum-likelihood estimate that does not exist is replaced by the limit of the posterior
    mode under a normal prior with increasing standard deviation. The stationary distribution of
    rank centrality on an unconnected graph is replaced by the limit for smoothing towards zero.
    `method` is a published configuration or a method, with options in parentheses.
    """
    with warnings.catch_warnings():
        # Fits that do not converge here have a limit at infinity, which does not affect the ranks.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return Scored(_ranks(_scores(data, method, random_seed)), True)
        except (NoFiniteEstimate, np.linalg.LinAlgError):
            # The curvature is singular at infinity, if no check of existence raised before.
            return Scored(_limit(data, method), False)


def score_ranks(
    samples: Sequence[Responses], method: str, *, random_seed: int | None = None
) -> FloatArray:
    """Return ranks (sample, system) as :func:`score_rank`, of data that differ only in trials."""
    if scores_at_once(method):
        return Batch(samples).rank(method, np.arange(len(samples[0].systems))[np.newaxis])[0][0]
    return np.stack(
        [score_rank(sample, method, random_seed=random_seed).rank for sample in samples]
    )


def scores_at_once(method: str) -> bool:
    """Return whether a method is a function of arrays that scores many data sets in one call."""
    row, backend, _ = find_row(method)
    streams = row.data == "stream"  # whose samples are orders of one stream
    return backend in ("bootstrap", "exact") and not streams and not row.is_random


class Batch:
    """Many samples of the trials of the same systems, as arrays for rankers.

    Rankers that are functions of arrays score all samples of many pools of systems in one call,
    some fifty times as fast as with one call for each.

    Parameters
    ----------
    samples : sequence of Responses
        Of the same systems, questions and number of trials; only trials may differ.
    """

    def __init__(self, samples: Sequence[Responses]) -> None:
        self._samples = samples
        self._stacked: dict[str, list[Any]] = {}

    def rank(self, method: str, pools: NDArray[np.intp]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Rank the systems of each pool from each sample, as :func:`score_rank` does.

        For a method that :func:`scores_at_once` and pools (pool, member). Returns the ranks, (pool,
        sample, member), and which are of finite estimates, (pool, sample).
        """
        shape = len(pools), len(self._samples)
        try:
            return _ranks(self._score(method, pools)), np.ones(shape, dtype=np.bool_)
        except NoFiniteEstimate:
            ranks, finite = self.limit(method, pools), np.zeros(shape, dtype=np.bool_)
        for position, sample in enumerate(self._samples):
            alone = Batch([sample])
            for pool in range(len(pools)):
                try:
                    ranks[pool, position] = _ranks(alone._score(method, pools[[pool]]))[0, 0]
                    finite[pool, position] = True
                except NoFiniteEstimate:
                    pass  # the limit stands
        return ranks, finite

    def limit(self, method: str, pools: NDArray[np.intp]) -> FloatArray:
        """Rank by the limit for smoothing towards zero; NaN for methods without smoothing."""
        shape = len(pools), len(self._samples), pools.shape[1]
        if "smoothing" not in find_row(method)[0].options:
            return np.full(shape, np.nan)
        return _settled(
            lambda share: self._score(method, pools, smoothing=share), _SHRINKING_SHARES, shape
        )

    def _score(self, method: str, pools: NDArray[np.intp], **options: Any) -> FloatArray:
        """Return scores of shape (pool, sample, member)."""
        row, _, own = find_row(method)
        if row.data not in self._stacked:
            self._stacked[row.data] = self._stack(row.data)
        ranker, first = load_function(row.function), self._stacked[row.data][0]
        per_pool = first.size // first.shape[1] * pools.shape[1]
        scores = []
        for some in batches(len(pools), per_pool, _BLOCK_SIZE):
            arguments = self._select(row.data, pools[some])
            scores.append(split_scores(ranker(*arguments, **{**own, **options}))[0])
        return np.concatenate(scores, axis=1).swapaxes(0, 1)

    def _stack(self, kind: str) -> list[Any]:
        """Return arguments with a leading axis of samples, except those without trials."""
        first, *rest = zip(*(point_arguments(one, kind) for one in self._samples), strict=True)
        varies = kind in ("binary", "pairs")
        return [np.stack(first), *(np.stack(each) if varies else each[0] for each in rest)]

    def _select(self, kind: str, pools: NDArray[np.intp]) -> list[Any]:
        """Return arguments with leading axes (sample, pool)."""
        if kind == "pairs":
            at: Any = (slice(None), pools[:, :, np.newaxis], pools[:, np.newaxis, :])
            return [array[at] for array in self._stacked[kind]]
        first, *rest = self._stacked[kind]
        return [first[:, pools], *(_of_pools(each, first, pools) for each in rest)]


def _of_pools(argument: Any, first: NDArray[Any], pools: NDArray[np.intp]) -> Any:
    """Select the systems of pools in the arguments of a ranker after the first."""
    if argument is None or np.ndim(argument) < 2:  # groups of questions, worths of categories
        return argument
    if np.ndim(argument) == first.ndim:  # a number of trials for each sample
        return argument[:, pools]
    # Earlier outcomes, of each system or shared by all.
    return argument[pools] if len(argument) == first.shape[1] else argument


def _scores(data: Responses, method: str, random_seed: int | None) -> FloatArray:
    row, backend, _ = find_row(method)
    name, keywords = read_method(method)
    if backend != "nuts":
        seed = random_seed if row.is_random else None
        return point_estimate(data, name, random_seed=seed, **keywords)
    # Only the mean is used, which calibration of the draws does not change. Densities would take
    # as long as the draws.
    tree = rank(
        data,
        name,
        draws=_DRAWS_OF_A_SAMPLER,
        random_seed=random_seed,
        calibration="none",
        log_likelihood=False,
        **keywords,
    )
    return tree["ranking"].to_dataset()["score"].values


def _ranks(scores: FloatArray) -> FloatArray:
    unranked = np.isnan(scores)  # without any outcome
    ranks = np.asarray(rank_scores(np.where(unranked, -np.inf, scores)), dtype=np.float64)
    return np.where(unranked, np.nan, ranks)


def _limit(data: Responses, method: str) -> FloatArray:
    row, backend, options = find_row(method)
    everyone = np.arange(len(data.systems))
    if scores_at_once(method):
        return Batch([data]).limit(method, everyone[np.newaxis])[0, 0]
    if backend != "mle" or "map" not in row.backends:
        return np.full(len(everyone), np.nan)
    flat = {name: "flat" for name in row.options if name.endswith("_prior")}
    chosen: dict[str, Any] = {**flat, **options}

    def scores_at(sd: float) -> FloatArray:
        return point_estimate(data, row.name, backend="map", prior=Normal(0.0, sd), **chosen)

    return _settled(scores_at, _GROWING_SDS, everyone.shape)


def _settled(
    scores_at: Callable[[float], FloatArray], steps: Sequence[float], shape: tuple[int, ...]
) -> FloatArray:
    """Return the first rankings that are equal in two steps in a row, or else the last ones."""
    last, moving = np.full(shape, np.nan), np.ones(shape[:-1], dtype=np.bool_)
    for step in steps:
        try:
            scores = scores_at(step)
        except (NoFiniteEstimate, np.linalg.LinAlgError):
            return last
        if not np.isfinite(scores).all():
            return last
        ranks = _ranks(scores)
        agree = (ranks == last).all(axis=-1)
        last = np.where(moving[..., np.newaxis], ranks, last)
        moving &= ~agree
    return last
