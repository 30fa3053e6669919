"""Scores of methods on many data sets, with a ranking where no finite estimate exists."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank.catalog import METHODS, PRESETS
from bayesrank.errors import ConvergenceWarning, NoFiniteEstimate
from bayesrank.method import Method
from bayesrank.priors import Normal
from bayesrank.ranking import point_estimate, rank
from bayesrank.responses import Responses
from bayesrank.results.ranks import rank_scores

FloatArray = NDArray[np.float64]

#: The 72 published configurations; `PRESETS` holds three more of the same library.
PUBLISHED: tuple[str, ...] = tuple(
    name
    for name in PRESETS
    if name not in ("davidson_luce", "davidson_luce_map", "dynamic_irt_state_space")
)
#: Those that need two trials of every question.
SECOND_TRIAL: tuple[str, ...] = ("pass_at_k_2", "pass_hat_k_2", "mg_pass_at_k_2")

# Standard deviations of the prior, in logits, in search of the limit of the MAP, and shares of a
# comparison in search of that of rank centrality. Scores that diverge move apart by ever smaller
# steps, the logarithm of these, so the order is settled when two in a row agree.
_GROWING_SDS = (1e2, 1e3, 1e4, 1e5)
_SHRINKING_SHARES = (1e-6, 1e-8, 1e-10)
_DRAWS_OF_A_SAMPLER = 500


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
    """Rank systems by the point estimate of a method, or by its limit where that is not finite.

    A maximum-likelihood estimate that does not exist is replaced by the limit of the posterior
    mode under a normal prior whose standard deviation grows; the stationary distribution of rank
    centrality on a graph that is not connected, by the limit of a smoothing that vanishes.

    Parameters
    ----------
    data : Responses
        Outcomes of all systems.
    method : str
        A published configuration or a method.
    random_seed : int, optional
        For methods that draw.

    Returns
    -------
    Scored
    """
    with warnings.catch_warnings():
        # What does not converge here is a limit at infinity, which the rank does not feel.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return Scored(_ranks(_scores(data, method, random_seed)), True)
        except (NoFiniteEstimate, np.linalg.LinAlgError):
            # A curvature is singular at infinity, where no check of existence foretold it.
            return Scored(_limit(data, method), False)


def needs_second_trial(data: Responses, method: str) -> bool:
    """Return whether a method needs more trials than every question has."""
    preset = PRESETS.get(method)
    k = preset.options.get("k") if preset else None
    return k is not None and int(data.trials.min()) < k


def check_methods(methods: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of methods.

    Raises
    ------
    ValueError
        If one is not known, or given twice.
    """
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    for name in names:
        if name not in PRESETS and name not in METHODS:
            known = ", ".join(dict.fromkeys([*METHODS, *PRESETS]))
            raise ValueError(f"methods must be among {known}; got {name!r}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"methods must be one or more, each once; got {methods!r}")
    return names


def find_row(method: str) -> tuple[Method, str, dict[str, Any]]:
    """Return the row of a method, its back end and its options."""
    preset = PRESETS.get(method)
    if preset is None:
        return METHODS[method], METHODS[method].backends[0], {}
    return METHODS[preset.method], preset.backend, dict(preset.options)


def _scores(data: Responses, method: str, random_seed: int | None) -> FloatArray:
    row, backend, _ = find_row(method)
    if backend != "nuts":
        seed = random_seed if row.is_random else None
        return point_estimate(data, method, random_seed=seed)
    # Only the mean is read, which calibration of the draws does not move, and densities would take
    # as long as the draws.
    tree = rank(
        data,
        method,
        draws=_DRAWS_OF_A_SAMPLER,
        random_seed=random_seed,
        calibration="none",
        log_likelihood=False,
    )
    return tree["ranking"].to_dataset()["score"].values


def _ranks(scores: FloatArray) -> FloatArray:
    return np.asarray(rank_scores(scores), dtype=np.float64)


def _limit(data: Responses, method: str) -> FloatArray:
    row, backend, options = find_row(method)
    if backend == "mle" and "map" in row.backends:
        flat = {name: "flat" for name in row.options if name.endswith("_prior")}
        chosen: dict[str, Any] = {**flat, **options}

        def scores_at(sd: float) -> FloatArray:
            return point_estimate(data, row.name, backend="map", prior=Normal(0.0, sd), **chosen)

        return _settled(scores_at, _GROWING_SDS, data)
    if "smoothing" in row.options:
        return _settled(
            lambda share: point_estimate(data, row.name, **{**options, "smoothing": share}),
            _SHRINKING_SHARES,
            data,
        )
    return np.full(len(data.systems), np.nan)


def _settled(
    scores_at: Callable[[float], FloatArray], steps: Sequence[float], data: Responses
) -> FloatArray:
    """Return the first ranking that two steps in a row agree on, or the last one there is."""
    last = np.full(len(data.systems), np.nan)
    for step in steps:
        try:
            scores = scores_at(step)
        except (NoFiniteEstimate, np.linalg.LinAlgError):
            return last
        if not np.isfinite(scores).all():
            return last
        ranks = _ranks(scores)
        if np.array_equal(ranks, last):
            return ranks
        last = ranks
    return last
