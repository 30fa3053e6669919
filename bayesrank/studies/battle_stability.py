"""Stability of rankings by the number of votes: how many votes the final order needs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
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
) -> pd.DataFrame:
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
    pandas.DataFrame
        One row per method and number of votes: ``method``, ``battles``, ``tau`` (mean over draws),
        ``sd``, ``min``, ``max``, and ``top``, the share of draws with the same best systems. Draws
        in which an estimate does not exist are left out and counted in ``infinite``.

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
    >>> study[["method", "battles", "tau"]].round(1)
                  method  battles  tau
    0  bradley_terry_map       20  1.0
    1  bradley_terry_map      200  1.0
    """
    log = as_comparisons(data, "to study votes")
    if not isinstance(log, Battles):
        raise DataError("data must be battles with a row for each vote; got comparisons")
    if methods is None:
        methods = default_method(log)
    calls = [methods] if isinstance(methods, str) else list(methods)
    data = log.single_votes()
    votes = data.unit_codes("battle")
    total = len(np.unique(votes))
    some = dict.fromkeys(max(1, int(total * share)) for share in _SHARES)
    counts = list(some) if n is None else np.atleast_1d(n)
    for count in counts:
        if not 1 <= check_integer(int(count), "n") <= total:
            raise ValueError(f"n must be from 1 to {total}, the number of votes; got {count}")
    check_integer(draws, "draws")
    parsed = {call: read_call(call, "methods") for call in calls}
    final = {call: point_estimate(data, name, **o) for call, (name, o) in parsed.items()}
    rows = []
    for count in map(int, counts):
        rng = np.random.default_rng([random_seed, count])
        drawn = [np.isin(votes, rng.choice(total, count, replace=False)) for _ in range(draws)]
        parts = [data.take(np.flatnonzero(kept)) for kept in drawn]
        for call, (name, options) in parsed.items():
            rows.append((call, count, *_agreement(parts, name, options, final[call])))
    columns = ["method", "battles", "tau", "sd", "min", "max", "top", "infinite"]
    table = pd.DataFrame(rows, columns=pd.Index(columns))
    order = table["method"].map(calls.index)
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _agreement(
    parts: list[Battles], method: str, options: dict[str, Any], final: np.ndarray
) -> tuple[float, ...]:
    """Return mean, spread and range of tau, the share with the same best, and failures."""
    taus, same = [], []
    for part in parts:
        try:
            score = point_estimate(part, method, **options)
        except NoFiniteEstimate:
            continue
        seen = ~np.isnan(score)  # other systems have no battle in this part
        taus.append(float(kendall_tau_b(score[seen], final[seen])))
        same.append(np.array_equal(score == np.nanmax(score), final == np.nanmax(final)))
    missing = len(parts) - len(taus)
    top = float(np.mean(same)) if same else float("nan")
    known = np.array(taus)
    known = known[~np.isnan(known)]  # where all scores are equal there is no order to agree with
    if not len(known):
        return *(float("nan"),) * 4, top, missing
    return *map(float, (known.mean(), known.std(), known.min(), known.max())), top, missing
