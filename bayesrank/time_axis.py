"""Checks of the options of dynamic item response models, without importing PyMC."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Variant = Literal["growth", "state_space", "linear"]
ScoreTarget = Literal["final", "initial", "mean", "gain"]
# Weight of the squared first states in the published penalty of the state-space variant.
ANCHOR = 0.001


def check_time_axis(
    n_trials: int,
    *,
    variant: str,
    assume_time_axis: bool,
    time_points: ArrayLike | None,
    score_target: str,
) -> NDArray[np.float64]:
    """Check the options of a dynamic model and return the times of the trials.

    Parameters
    ----------
    n_trials : int
        Number of trials.
    variant, assume_time_axis, time_points, score_target
        As in :func:`bayesrank.models.dynamic_irt`.

    Returns
    -------
    numpy.ndarray of shape (trial,)
        Times from 0 to 1; a single trial has the time 0.

    Raises
    ------
    ValueError
        If an option has an unknown value, if the time axis is not assumed, if the times do not
        increase, or if the score is the gain of abilities that do not change.

    Examples
    --------
    >>> check_time_axis(
    ...     3,
    ...     variant="growth",
    ...     assume_time_axis=True,
    ...     time_points=[2010, 2020, 2030],
    ...     score_target="final",
    ... )
    array([0. , 0.5, 1. ])
    """
    for name, value, known in (
        ("variant", variant, get_args(Variant)),
        ("score_target", score_target, get_args(ScoreTarget)),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
    if score_target == "gain" and (variant == "linear" or n_trials == 1):
        raise ValueError(
            "score_target must be 'final', 'initial' or 'mean' if abilities do not change, for "
            f"variant='linear' or one trial; got 'gain' for {variant=} and {n_trials} trials"
        )
    if variant != "linear" and not assume_time_axis:
        raise ValueError(
            f"assume_time_axis must be True for variant={variant!r}, which takes the trials as "
            f"ordered times; got {assume_time_axis!r}"
        )
    if time_points is None:
        return np.linspace(0.0, 1.0, n_trials)
    times = np.asarray(time_points, dtype=np.float64)
    if times.shape != (n_trials,):
        raise ValueError(
            f"time_points must have {n_trials} numbers, one per trial; got shape {times.shape}"
        )
    if not (np.isfinite(times).all() and (np.diff(times) > 0.0).all()):
        raise ValueError(f"time_points must be finite and strictly increase; got {time_points!r}")
    return (times - times[0]) / (times[-1] - times[0]) if n_trials > 1 else np.zeros(1)
