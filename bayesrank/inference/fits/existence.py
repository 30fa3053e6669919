"""Whether a finite maximum-likelihood estimate exists, and which systems prevent it.

Every check returns nothing when the estimate exists and raises
:class:`~bayesrank.errors.NoFiniteEstimate` otherwise; the message names the systems (or the systems
and questions) that the data separate, and the remedy. Posterior modes under proper priors always
exist and need no check. The catalog names one function ``require_*(data, method=NAME, **options)``
per row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways, reachable, strongly_connected
from bayesrank.errors import NoFiniteEstimate
from bayesrank.inference.fits.pairs import TiePolicy
from bayesrank.inference.fits.vote_likelihoods import CumulativeLogit
from bayesrank.responses import Responses
from bayesrank.validation import AtLeastOne
from bayesrank.views import Ballots, Comparisons, Events
from bayesrank.vote_rows import BOTH_BAD, RESULTS, TIE, VoteRows

REMEDY = 'use backend="map", whose prior keeps every score finite'
_NAMES_SHOWN = 5
# Coordinates of a direction, up to 1, that differ by less are equal.
_LEVEL = 1e-6


def check_wins(
    wins: ArrayLike, ties: ArrayLike = 0.0, *, systems: Sequence[str], method: str
) -> None:
    """Check that likelihoods of wins and losses, or Luce-type ones, have a finite maximum.

    They do if and only if the graph with an edge from i to j where i beat j is strongly connected:
    however the systems are split in two, each part beats the other at least once. A tie counts in
    both directions where it is an outcome, as in Rao-Kupper with a fixed kappa above 1.

    References
    ----------
    .. [1] L. R. Ford Jr. Solution of a ranking problem from binary comparisons. The American
       Mathematical Monthly 64 (1957). https://doi.org/10.1080/00029890.1957.11989117
    """
    tied = np.asarray(ties) > 0.0
    edges = (np.asarray(wins) > 0.0) | tied
    if strongly_connected(edges):
        return
    top, bottom = _closed_groups(reachable(edges))
    beaten, beats, met = ("lost to", "beat", "beat or lost to")
    if tied.ndim:
        beaten, beats, met = ("lost to or tied with", "beat or tied with", "met")
    group, verb = (top, beaten) if top.sum() <= bottom.sum() else (bottom, beats)
    if not (edges[group][:, ~group].any() or edges[~group][:, group].any()):
        verb = met
    raise no_estimate(
        method,
        f"{named(systems, group)} never {verb} any of the other {int((~group).sum())} systems",
    )


def check_tie_model(
    wins: ArrayLike, ties: ArrayLike, *, systems: Sequence[str], method: str, share: float
) -> None:
    r"""Check that Davidson or Rao-Kupper with an estimated tie parameter has a finite maximum.

    It has one unless the log-likelihood never falls along some direction :math:`(d, e)` of scores
    and log tie parameter, other than a common shift of the scores: with the `share` :math:`g`, 1/2
    for Davidson and 1 for Rao-Kupper, :math:`d_i \ge d_j` and :math:`e \le g (d_i - d_j)` wherever
    i beat j, and :math:`e \ge g |d_i - d_j|` wherever i and j tied. That is a linear programme,
    needed only where wins alone do not connect the systems.
    """
    won, tied = np.asarray(wins) > 0.0, np.asarray(ties) > 0.0
    if not tied.any():
        raise no_estimate(
            method,
            "there are no ties, so the tie strength runs to the end of its range",
            "use bradley_terry, which needs none",
        )
    if strongly_connected(won):
        return  # every d is equal, and then a single tie bounds e from below and a win from above
    if not won.any():
        raise no_estimate(
            method,
            "every comparison is a tie, so the tie strength is infinite and the scores are "
            "undetermined",
        )
    check_wins(wins, ties, systems=systems, method=method)
    ahead, behind = np.nonzero(won)
    one, other = np.nonzero(tied)  # both orders of every tied pair
    sizes = [len(ahead), len(ahead), len(one)]
    _check_directions(
        np.concatenate([ahead, ahead, one]),
        np.concatenate([behind, behind, other]),
        np.repeat([1.0, share, share], sizes),
        np.repeat([0.0, -1.0, 1.0], sizes)[:, np.newaxis],
        "tie strength",
        systems,
        method,
    )


def named(labels: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    """List the chosen labels, at most five of them.

    Examples
    --------
    >>> named(["a", "b", "c"], np.array([True, False, True]))
    "'a', 'c'"
    """
    names = [repr(str(label)) for label, wanted in zip(labels, chosen, strict=True) if wanted]
    if len(names) > _NAMES_SHOWN:
        return f"{', '.join(names[:_NAMES_SHOWN])} and {len(names) - _NAMES_SHOWN} more"
    return ", ".join(names)


def no_estimate(method: str, reason: str, remedy: str = REMEDY) -> NoFiniteEstimate:
    """Return the error of a method without a finite estimate."""
    return NoFiniteEstimate(
        f"{method} has no finite maximum-likelihood estimate: {reason}; {remedy}"
    )


def no_estimate_of_votes() -> NoFiniteEstimate:
    """Return the error of votes whose likelihood is unbounded along a direction."""
    return NoFiniteEstimate(
        "votes must bound scores and the coefficients of covariates for a finite "
        "maximum-likelihood estimate; got some that can grow for ever without lowering "
        f"the likelihood: {REMEDY}"
    )


def _closed_groups(closure: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the smallest group that no outsider reaches, and the smallest that reaches none."""
    together = closure & closure.T
    sizes = together.sum(axis=1)
    unreached = ~(closure.T & ~together).any(axis=1)
    unreaching = ~(closure & ~together).any(axis=1)
    first = np.argmin(np.where(unreached, sizes, len(sizes) + 1))
    last = np.argmin(np.where(unreaching, sizes, len(sizes) + 1))
    return together[first], together[last]


def _check_directions(
    first: NDArray[np.integer[Any]],
    second: NDArray[np.integer[Any]],
    slope: NDArray[np.float64],
    others: NDArray[np.float64],
    name: str,
    systems: Sequence[str],
    method: str,
) -> None:
    """Raise if along some direction of scores and other parameters no row falls and one rises.

    A row is the slope times the difference of two scores, and multiples of others, called `name`.
    """
    # Imported here: the import of scipy.optimize takes longer than most fits, and few data sets
    # need it.
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    rows, shape = np.arange(len(first)), (len(first), len(systems))
    place = np.tile(rows, 2), np.concatenate([first, second])
    scores = csr_array((np.concatenate([slope, -slope]), place), shape=shape)
    table = hstack([scores, csr_array(others)]).tocsr()
    solution = linprog(
        -np.asarray(table.sum(axis=0)).ravel(),
        A_ub=-table,
        b_ub=np.zeros(len(rows)),
        bounds=(-1.0, 1.0),
        method="highs",
    )
    if -solution.fun <= _LEVEL:
        return
    direction = solution.x[: len(systems)]
    top = named(systems, direction > direction.max() - _LEVEL)
    raise no_estimate(
        method,
        f"raising {top} above the other systems, with the {name} adjusted, never lowers the "
        "likelihood",
    )


def require_wins(
    data: Comparisons | Ballots | Responses | Events,
    *,
    method: str,
    ties: TiePolicy = "ignore",
    **_: Any,
) -> None:
    """Raise unless chains of wins, or of better places, connect all systems in both directions."""
    if isinstance(data, Comparisons):
        wins = data.wins + data.ties / 2 if ties == "half" else data.wins
    elif isinstance(data, Ballots):
        # A system on no ballot is ranked above and below no other.
        wins = (data.grades[:, np.newaxis] > data.grades[np.newaxis]).any(axis=-1)
    else:
        events = data if isinstance(data, Events) else data.events
        wins = events.right.T.astype(np.float64) @ events.wrong
    check_wins(wins, systems=data.systems, method=method)


def require_davidson(data: Comparisons, *, method: str, **_: Any) -> None:
    """Raise if the likelihood increases without end along some direction."""
    check_tie_model(data.wins, data.ties, systems=data.systems, method=method, share=0.5)


def require_rao_kupper(
    data: Comparisons, *, method: str, tie_strength: AtLeastOne | None = None, **_: Any
) -> None:
    """Raise if the likelihood increases without end along some direction."""
    if tie_strength is None:
        check_tie_model(data.wins, data.ties, systems=data.systems, method=method, share=1.0)
    else:
        ties = data.ties if tie_strength > 1.0 else 0.0
        check_wins(data.wins, ties, systems=data.systems, method=method)


def require_cumulative_logit(data: Comparisons, **_: Any) -> None:
    """Raise if the likelihood never decreases along some direction of scores and gaps.

    The gaps are those between thresholds, and the direction is no common shift of the scores: the
    difference of two scores must neither fall below the lower threshold of a grade that was given
    nor rise above its upper one.
    """
    name, systems = "cumulative_logit", data.systems
    if not data.wins.any():
        check_wins(data.wins, systems=systems, method=name)
    if strongly_connected(data.wins > 0.0):
        return
    # A grade is information in both directions, as a tie is.
    check_wins(data.wins, data.totals, systems=systems, method=name)
    votes = VoteRows.of(data).merged()
    cuts, place = CumulativeLogit(votes).cuts, votes.places
    low, high = place > 0, place + 2 < len(cuts)
    i, j = (np.concatenate([each[low], each[high]]) for each in (votes.first, votes.second))
    slope = np.repeat([1.0, -1.0], [low.sum(), high.sum()])
    gaps = np.vstack([-cuts[place[low]], cuts[place[high] + 1]])
    _check_directions(i, j, slope, gaps, "thresholds", systems, name)


def require_davidson_outside(data: Comparisons, **_: Any) -> None:
    """Raise if the likelihood of votes other than both bad increases without end."""
    name, votes = "davidson_outside", VoteRows.of(data)
    if BOTH_BAD in votes.options and len(data.systems) < 3:
        raise no_estimate(name, "how votes for neither depend on the level needs three systems")
    if TIE not in votes.options:
        check_wins(data.wins, systems=data.systems, method=name)
        return
    tied = votes.seen & (votes.results == RESULTS.index(TIE))
    ties = np.zeros_like(data.ties)
    ties[votes.first[tied], votes.second[tied]] = 1.0
    check_tie_model(data.wins, ties + ties.T, systems=data.systems, method=name, share=0.5)


def require_items(data: Responses, *, variant: str | None = None, **_: Any) -> None:
    """Raise if the abilities have no finite joint maximum-likelihood estimate.

    Questions that every system answered right, or wrong, in every trial carry no information and
    are left out. On the others the Rasch model is a Bradley-Terry model between systems and
    questions, a system beating a question when it answers right, and its estimate is finite if and
    only if that graph is strongly connected [1]_. The same condition is necessary, though not
    sufficient, for 2PL and 3PL; fits of those report whether they converged. The penalty of a
    random walk keeps the abilities of all systems finite.

    References
    ----------
    .. [1] G. H. Fischer. On the existence and uniqueness of maximum-likelihood estimates in the
       Rasch model. Psychometrika 46 (1981). https://doi.org/10.1007/BF02293919
    """
    right, trials = data.binary_counts
    wrong = trials - right
    if variant == "state_space" or linked_both_ways(right > 0, wrong > 0):
        return
    method, systems = "an item response model", data.systems
    keep = (right.sum(axis=0) > 0.0) & (wrong.sum(axis=0) > 0.0)
    if not keep.any():
        raise no_estimate(method, "every question is answered right by all systems or wrong by all")
    right, wrong = right[:, keep], wrong[:, keep]
    for verdict, missing in (("right", wrong), ("wrong", right)):
        always = missing.sum(axis=1) <= 0.0
        if always.any():
            raise no_estimate(
                method,
                f"{named(systems, always)} answered every question that separates the systems "
                f"{verdict}",
            )
    n_systems = len(right)
    edges = np.zeros((n_systems + right.shape[1],) * 2, dtype=bool)
    edges[:n_systems, n_systems:] = right > 0.0
    edges[n_systems:, :n_systems] = wrong.T > 0.0
    kept = [label for label, stays in zip(data.questions, keep, strict=True) if stays]
    group = _closed_groups(reachable(edges))[0]
    raise no_estimate(
        method,
        f"{named(systems, group[:n_systems])} answered every question right except among "
        f"{named(kept, group[n_systems:])}, which no other system ever answered right",
    )
