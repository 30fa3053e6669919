"""Stability of rankings by the number of votes: how many votes the final order needs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from bayesrank.battles import Battles
from bayesrank.catalog import default_method
from bayesrank.entrance import as_comparisons
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.method import read_call
from bayesrank.ranking import point_estimate
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.validation import check_integer

# Default shares of the votes to draw.
_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)


def battle_stability(
    data: Battles | ArrayLike,
    methods: str | Sequence[str] | None = None,
    *,
    n: int | Sequence[int] | None = None,
    draws: int = 80,
    random_seed: int = 0,
) -> xr.Dataset:
    """Compare rankings from some of the votes with the ranking from all, by Kendall's tau-b.

    All methods see the same drawn votes, without replacement and in their order. A row with a whole
    weight, such as 7 wins, is so many votes.

    Parameters
    ----------
    data : Battles or pandas.DataFrame
        All votes.
    methods : str or sequence of str, optional
        Names of methods that rank battles, with options in parentheses; the default of
        :func:`bayesrank.rank` by default.
    n : int or sequence of int, optional
        Numbers of votes; a sixteenth, an eighth, a quarter and a half of all by default.
    draws : int, default 80
        Number of draws.
    random_seed : int, default 0
        Same seed, same result.

    Returns
    -------
    xarray.Dataset
        Over dims method, n_battles and draw: ``tau``, NaN where all systems tie or an estimate does
        not exist, ``same_best``, whether the best systems are the same, and ``finite``, whether the
        estimate exists. Over method and n_battles: ``tau_mean``, ``tau_sd``, ``tau_min`` and
        ``tau_max``, ``best_share``, the share of draws with the same best systems among those with
        an estimate, and ``draws_infinite``, the number of the others.

    Raises
    ------
    ValueError
        If a number or a name is invalid.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> names = np.array(list("abcd"))
    >>> first = rng.integers(4, size=400)
    >>> second = (first + 1 + rng.integers(3, size=400)) % 4
    >>> winner = names[np.minimum(first, second)]
    >>> study = battle_stability(Battles(names[first], names[second], winner), n=[20, 200], draws=9)
    >>> study["tau_mean"].round(1).values
    array([[1., 1.]])
    """
    log = as_comparisons(data, "to study votes")
    if not isinstance(log, Battles):
        raise DataError("data must be battles with a row for each vote; got comparisons")
    if methods is None:
        methods = default_method(log)
    calls = list(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    data = log.single_votes()
    votes = data.unit_codes("battle")
    total = len(np.unique(votes))
    some = dict.fromkeys(max(1, int(total * share)) for share in _SHARES)
    counts = list(some) if n is None else np.atleast_1d(n)
    for count in counts:
        if not 1 <= check_integer(int(count), "n") <= total:
            raise ValueError(f"n must be from 1 to {total}, the number of votes; got {count}")
    draws = check_integer(draws, "draws")
    parsed = {call: read_call(call, "methods") for call in calls}
    final = {call: point_estimate(data, name, **o) for call, (name, o) in parsed.items()}
    found = np.full((3, len(calls), len(counts), draws), np.nan)
    for column, count in enumerate(map(int, counts)):
        rng = np.random.default_rng([random_seed, count])
        drawn = [np.isin(votes, rng.choice(total, count, replace=False)) for _ in range(draws)]
        parts = [data.take(np.flatnonzero(kept)) for kept in drawn]
        for row, (call, (name, options)) in enumerate(parsed.items()):
            agreement = [_agreement(part, name, options, final[call]) for part in parts]
            found[:, row, column] = np.transpose(agreement)
    dims = ("method", "n_battles", "draw")
    study = xr.Dataset(
        {
            "tau": (dims, found[0]),
            "same_best": (dims, found[1] == 1.0),
            "finite": (dims, found[2] > 0),
        },
        coords={"method": calls, "n_battles": [int(count) for count in counts]},
        attrs={"study": "battle_stability", "random_seed": random_seed},
    )
    taus = study["tau"]
    return study.assign(
        tau_mean=taus.mean("draw"),
        tau_sd=taus.std("draw", ddof=min(1, draws - 1)),
        tau_min=taus.min("draw"),
        tau_max=taus.max("draw"),
        best_share=study["same_best"].where(study["finite"]).mean("draw"),
        draws_infinite=(~study["finite"]).sum("draw"),
    )


def _agreement(
    part: Battles, method: str, options: dict[str, Any], final: np.ndarray
) -> tuple[float, bool, bool]:
    """Return tau, whether the best systems are the same, and whether the estimate exists."""
    try:
        score = point_estimate(part, method, **options)
    except NoFiniteEstimate:
        return float("nan"), False, False
    seen = ~np.isnan(score)  # other systems have no battle in this part
    same = np.array_equal(score == np.nanmax(score), final == np.nanmax(final))
    return float(kendall_tau_b(score[seen], final[seen])), same, True
