"""Transfer: the effect of trials of earlier versions of systems on the ranking of new ones."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]


def prior_transfer(
    *,
    n: Sequence[int] = (1, 4, 16, 64),
    earlier: Sequence[int] = (1, 2, 4, 8, 16),
    shapes: Sequence[tuple[float, float]] | None = None,
    n_questions: int = 30,
    updates: int = 4000,
    random_seed: int = 0,
) -> xr.Dataset:
    r"""Simulate updates of systems that are ranked with trials of their earlier versions as prior.

    The chance that system i answers a question is drawn from a Beta distribution with the shapes
    :math:`(i + 3, 12 - i)`, for i from 1 to 8. Its update adds 1 or -1, at random, to each of the
    two shapes, and its chances are drawn again ([1]_, appendix C). Bayes@N ranks the updated
    systems from n trials, with D trials of the earlier versions counted as trials, and the ranking
    is compared with the order of the true mean chances.

    Parameters
    ----------
    n : sequence of int, default (1, 4, 16, 64)
        Numbers of trials of the updated systems.
    earlier : sequence of int, default (1, 2, 4, 8, 16)
        Numbers D of trials of the earlier versions.
    shapes : sequence of pairs of float, optional
        Shapes of the Beta distributions of the earlier versions, one pair per system, each above
        1; those above by default.
    n_questions : int, default 30
        Number of questions.
    updates : int, default 4000
        Number of simulated updates of all systems.
    random_seed : int, default 0
        Same seed, same result.

    Returns
    -------
    xarray.Dataset
        Over n_trials and n_earlier: ``tau``, the mean tau-b, ``gain`` over the ranking without
        earlier trials, from the same trials, and its standard error ``gain_se``. ``tau_without``
        (n_trials,) is that of the latter. ``update_tau``, the mean tau-b between the true orders of
        the earlier and the updated systems, and ``changed``, the share of updates that change it.

    Raises
    ------
    ValueError
        If a number is invalid.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025). https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> study = prior_transfer(n=[1], earlier=[1, 16], updates=500)
    >>> bool((study["gain"] > 4 * study["gain_se"]).all())
    True
    """
    counts, before = (_increasing(*each) for each in (("n", n), ("earlier", earlier)))
    first, second = _check_shapes(shapes)
    n_questions = check_integer(n_questions, "n_questions")
    updates = check_integer(updates, "updates")
    rng = np.random.default_rng(random_seed)
    taus: list[FloatArray] = []
    orders: list[FloatArray] = []
    for part in batches(updates, len(first) * n_questions):
        size = (part.stop - part.start, len(first))
        cells = (*size, n_questions)
        changes = rng.choice([-1.0, 1.0], size=(2, *size))
        old = rng.beta(first[:, None], second[:, None], cells)
        new = rng.beta((first + changes[0])[..., None], (second + changes[1])[..., None], cells)
        truth = -new.mean(axis=-1)
        orders.append(kendall_tau_b(-old.mean(axis=-1), truth))
        # With equally many trials in all cells Bayes@N ranks by the number of right answers.
        right = _right_answers(new, counts, rng)
        with_prior = right[:, None] + np.concatenate(
            [np.zeros((1, *size)), _right_answers(old, before, rng)]
        )
        taus.append(kendall_tau_b(-with_prior, truth))
    tau = np.concatenate(taus, axis=-1)
    gain = tau[:, 1:] - tau[:, :1]
    dims = ("n_trials", "n_earlier")
    between = np.concatenate(orders)
    return xr.Dataset(
        {
            "tau": (dims, np.nanmean(tau[:, 1:], axis=-1)),
            "gain": (dims, np.nanmean(gain, axis=-1)),
            "gain_se": (dims, np.nanstd(gain, axis=-1) / np.sqrt(updates)),
            "tau_without": ("n_trials", np.nanmean(tau[:, 0], axis=-1)),
            "update_tau": ((), between.mean()),
            "changed": ((), (between < 1.0).mean()),
        },
        coords={"n_trials": counts, "n_earlier": before},
        attrs={"study": "prior_transfer", "updates": updates, "random_seed": random_seed},
    )


def _right_answers(
    chance: FloatArray, trials: Sequence[int], rng: np.random.Generator
) -> FloatArray:
    """Draw cumulative numbers of right answers to all questions, (trials, update, system)."""
    steps = np.diff(trials, prepend=0)
    drawn = [rng.binomial(step, chance).sum(axis=-1) for step in steps]
    return np.cumsum(drawn, axis=0).astype(np.float64)


def _increasing(name: str, numbers: Sequence[int]) -> list[int]:
    found = [check_integer(number, name) for number in numbers]
    if not found or sorted(set(found)) != found:
        raise ValueError(f"{name} must be one increasing number or more; got {numbers!r}")
    return found


def _check_shapes(
    shapes: Sequence[tuple[float, float]] | None,
) -> tuple[FloatArray, FloatArray]:
    if shapes is None:
        system = np.arange(1.0, 9.0)
        return system + 3.0, 12.0 - system
    pairs = np.asarray(shapes, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) < 2 or not (pairs > 1.0).all():
        raise ValueError(
            "shapes must be two numbers above 1, which an update may lower by 1, for each of two "
            f"systems or more; got {shapes!r}"
        )
    return pairs[:, 0], pairs[:, 1]
