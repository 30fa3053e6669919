"""Experiments of RankLLM: levels of difficulty, damping, and the 2PL within bounds."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_responses
from bayesrank.errors import ConvergenceWarning
from bayesrank.methods.bipartite import changes_by_round, rankllm
from bayesrank.responses import Responses
from bayesrank.studies.perturbation import MEASURES, correlations, estimate_difficulty
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]
Bounds = tuple[float, float]

LEVELS = ("easy", "medium", "hard")

_DAMPINGS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0)


def difficulty_levels(
    data: Responses | ArrayLike,
    method: str = "rankllm",
    *,
    cuts: Bounds | None = None,
    **options: Any,
) -> xr.Dataset:
    """Count easy, medium and hard questions, with the accuracy of each system on them.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials; with `groups` to count by benchmark too.
    method : str, default "rankllm"
        A method that estimates difficulties, with its options in parentheses or as keywords.
    cuts : tuple of two floats, optional
        Lower bounds of the difficulty of medium and of hard questions, in the units of the method.
        By default they cut the range of the finite difficulties into thirds; questions of equal
        difficulty are all medium.
    **options
        Options of the method.

    Returns
    -------
    xarray.Dataset
        ``n_questions`` and ``share`` over group ("all", then the groups of the data) and level
        (easy, medium, hard); ``accuracy``, the mean grade, over system and level, NaN without such
        questions; ``difficulty`` over question. A question without a difficulty has no level and
        does not count in any share.

    Raises
    ------
    ValueError
        If the method estimates no difficulties, or the cuts are not two ascending numbers.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> from bayesrank.datasets import load_rankllm_case_study
    >>> study = difficulty_levels(load_rankllm_case_study(), cuts=(50, 90))
    >>> study["share"].sel(group="all").values
    array([0.7 , 0.21, 0.09])
    """
    data = as_responses(data, "to study trials and questions")
    difficulty = estimate_difficulty(data, method, **options)
    if cuts is None:
        cuts = _thirds(difficulty[np.isfinite(difficulty)])
    elif len(cuts) != 2 or not cuts[0] < cuts[1]:
        raise ValueError(f"cuts must be two ascending numbers; got {cuts!r}")
    level = 0 + (difficulty >= cuts[0]) + (difficulty >= cuts[1])
    member = (level == np.arange(len(LEVELS))[:, np.newaxis]) & ~np.isnan(difficulty)
    groups = {"all": np.ones(data.shape[1], dtype=np.bool_)}
    for name in dict.fromkeys(data.groups or ()):
        groups[name] = np.array([group == name for group in data.groups or ()])
    counts = np.array([(member & chosen).sum(axis=1) for chosen in groups.values()])
    right = np.nan_to_num(data.grades) @ member.T
    asked = ~np.isnan(data.grades) @ member.T.astype(np.float64)
    dims = ("group", "level")
    return xr.Dataset(
        {
            "n_questions": (dims, counts),
            "share": (dims, _ratio(counts, counts.sum(axis=1, keepdims=True))),
            "accuracy": (("system", "level"), _ratio(right, asked)),
            "difficulty": ("question", difficulty),
        },
        coords={
            "group": list(groups),
            "level": list(LEVELS),
            "system": list(data.systems),
            "question": list(data.questions),
        },
        attrs={
            "study": "difficulty_levels",
            "method": method,
            "cuts": [float(cut) for cut in cuts],
        },
    )


def _thirds(values: FloatArray) -> Bounds:
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return (low, np.inf) if low == high else (low + (high - low) / 3, high - (high - low) / 3)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> FloatArray:
    missing = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=missing, where=denominator > 0)


def damping_sensitivity(
    data: Responses | ArrayLike, damping: Sequence[float] = _DAMPINGS, *, tol: float = 1e-10
) -> xr.Dataset:
    """Run the updates of RankLLM with several dampings, and follow how they converge.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        All trials.
    damping : sequence of float, default 0.1 to 1
        Shares, in [0, 1], that follow the grades.
    tol : float, default 1e-10
        The updates end when both distributions together change by less, in sum; after 1000 at most.

    Returns
    -------
    xarray.Dataset
        ``score`` (damping, system), 100 for the best; ``change`` (damping, iteration), the summed
        change of both distributions in an update, NaN after the last; ``iterations`` (damping);
        ``competency`` and ``difficulty`` (damping, measure), the correlations of scores and
        difficulties with those of the default damping, 0.85.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). https://doi.org/10.48550/arXiv.2602.12424

    Examples
    --------
    >>> from bayesrank.datasets import load_rankllm_case_study
    >>> study = damping_sensitivity(load_rankllm_case_study(), [0.5, 0.85])
    >>> study["change"].isel(iteration=0).values.round(3)
    array([0.481, 0.85 ])
    """
    data = as_responses(data, "to study trials and questions")
    if not len(damping):
        raise ValueError("damping must be one number or more; got none")
    default = rankllm(data.grades)
    results = [rankllm(data.grades, damping=share, tol=tol) for share in damping]
    changes = [changes_by_round(data.grades, damping=share, tol=tol) for share in damping]
    table = np.full((len(changes), max(map(len, changes))), np.nan)
    for row, change in zip(table, changes, strict=True):
        row[: len(change)] = change
    agreement = {
        name: [correlations(getattr(each, name), getattr(default, name)) for each in results]
        for name in ("competency", "difficulty")
    }
    return xr.Dataset(
        {
            "score": (("damping", "system"), [each.score for each in results]),
            "change": (("damping", "iteration"), table),
            "iterations": ("damping", [len(change) for change in changes]),
            **{name: (("damping", "measure"), rows) for name, rows in agreement.items()},
        },
        coords={
            "damping": list(damping),
            "system": list(data.systems),
            "iteration": np.arange(1, table.shape[1] + 1),
            "measure": list(MEASURES),
        },
        attrs={"study": "damping_sensitivity", "tol": tol},
    )


def bounded_2pl(
    data: Responses | ArrayLike,
    *,
    ability: Bounds = (-5.0, 5.0),
    difficulty: Bounds = (-5.0, 5.0),
    discrimination: Bounds = (0.1, 3.0),
    starts: int = 40,
    random_seed: int = 0,
) -> xr.Dataset:
    r"""Fit the 2PL model by joint maximum likelihood within bounds, as a baseline.

    System :math:`l` answers question :math:`m` right with probability
    :math:`\operatorname{logit}^{-1}(a_m (\theta_l - b_m))`. Without bounds the likelihood of a
    few systems has no maximum, and within bounds the estimates depend on them. So this is only a
    baseline: rank by ``irt_2pl``.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Binary outcomes.
    ability, difficulty, discrimination : tuple of two floats
        Lower and upper bounds of :math:`\theta`, :math:`b` and :math:`a`; by default (-5, 5),
        (-5, 5) and (0.1, 3).
    starts : int, default 40
        Number of random starting points; there are many local maxima, and the best one is used.
    random_seed : int, default 0
        Same seed, same starting points.

    Returns
    -------
    xarray.Dataset
        ``ability`` over system; ``score``, the abilities scaled from 0 for the least to 100 for
        the largest; ``difficulty`` and ``discrimination`` over question, equal for questions with
        equal answers; ``log_likelihood``.

    Raises
    ------
    DataError
        If outcomes are not binary.
    ValueError
        If a bound or the number of starting points is invalid.

    Warns
    -----
    ConvergenceWarning
        If the optimiser did not converge from the best starting point.

    References
    ----------
    .. [1] Z. Zhang et al. RankLLM: weighted ranking of LLMs by quantifying question difficulty
       (2026). Appendix H.4. https://doi.org/10.48550/arXiv.2602.12424
    .. [2] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> from bayesrank.datasets import load_rankllm_case_study
    >>> bounded_2pl(load_rankllm_case_study())["score"].values.round()
    array([100.,  84.,  20.,   0.,  20.])
    """
    data = as_responses(data, "to study trials and questions")
    from scipy.optimize import minimize  # half a second of start-up
    from scipy.special import expit

    bounds = {"ability": ability, "difficulty": difficulty, "discrimination": discrimination}
    _check_bounds(bounds, starts)
    correct, trials = data.binary_counts
    # Questions with equal answers have equal maxima, so each pattern is fitted once.
    patterns, index, copies = np.unique(
        np.concatenate([correct, trials]), axis=1, return_inverse=True, return_counts=True
    )
    right, asked = np.split(patterns, 2)
    sizes = (data.shape[0], patterns.shape[1], patterns.shape[1])
    box = np.repeat(np.array(list(bounds.values()), dtype=np.float64), sizes, axis=0)
    ends = np.cumsum(sizes)[:2]

    def negative(point: FloatArray) -> tuple[float, FloatArray]:
        theta, b, a = np.split(point, ends)
        gap = theta[:, np.newaxis] - b
        logit = a * gap
        value = (copies * (asked * np.logaddexp(0.0, logit) - right * logit)).sum()
        slope = copies * (asked * expit(logit) - right)
        by_gap = slope * a
        gradient = [by_gap.sum(axis=1), -by_gap.sum(axis=0), (slope * gap).sum(axis=0)]
        return float(value), np.concatenate(gradient)

    rng = np.random.default_rng(random_seed)
    fits = []
    for _ in range(starts):
        start = np.concatenate(
            [rng.normal(size=sum(sizes[:2])), np.exp(0.5 * rng.normal(size=sizes[2]))]
        )
        options = {"maxiter": 5000, "maxfun": 20_000}
        start = np.clip(start, box[:, 0], box[:, 1])
        fits.append(minimize(negative, start, jac=True, bounds=box, options=options))
    best = min(fits, key=lambda fit: fit.fun)
    if not best.success:
        warnings.warn(f"the fit did not converge: {best.message}", ConvergenceWarning, stacklevel=2)
    theta, b, a = np.split(best.x, ends)
    spread = np.ptp(theta) or 1.0
    return xr.Dataset(
        {
            "score": ("system", 100.0 * ((theta - theta.min()) / spread)),
            "ability": ("system", theta),
            "difficulty": ("question", b[index.ravel()]),
            "discrimination": ("question", a[index.ravel()]),
            "log_likelihood": ((), -best.fun),
        },
        coords={"system": list(data.systems), "question": list(data.questions)},
        attrs={"study": "bounded_2pl", **{name: list(pair) for name, pair in bounds.items()}},
    )


def _check_bounds(bounds: dict[str, Bounds], starts: int) -> None:
    for name, pair in bounds.items():
        if len(pair) != 2 or not -np.inf < pair[0] < pair[1] < np.inf:
            raise ValueError(f"{name} must be two ascending, finite numbers; got {pair!r}")
    if bounds["discrimination"][0] <= 0:
        raise ValueError(f"discrimination must be positive; got {bounds['discrimination']!r}")
    check_integer(starts, "starts")
