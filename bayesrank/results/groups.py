"""Groups of systems that are not told apart: letters, and borders that no group crosses.

Not being told apart is not transitive: a may be unresolved from b, and b from c, while a is
resolved from c. So groups overlap, and a system may be in several: the compact letter display of
multiple comparisons.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.ranks import tie_groups

BoolArray = NDArray[np.bool_]

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letter_groups(score: ArrayLike, resolved: ArrayLike) -> tuple[str, ...]:
    """Give each system the letters of its groups.

    Two systems share a letter if and only if their order is not resolved [1]_. A group is a set of
    systems none of which are resolved from each other, as large as possible, so the groups are a
    cover of the graph of unresolved pairs by cliques. The cover is found by growing cliques [2]_,
    and groups that tell nothing new are left out; their number need not be the smallest, which is
    NP-hard to find. Letters follow the order of the systems: the best has an "a". After "z" come
    "a2" to "z2", "a3" and so on.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates, which give the order of the letters.
    resolved : array_like of bool and shape (system, opponent)
        Whether the system is resolved as better than the opponent, as
        :func:`bayesrank.results.rank_sets.resolved_pairs` returns it.

    Returns
    -------
    tuple of str
        Letters of each system, such as "a", "ab" or "b".

    References
    ----------
    .. [1] H.-P. Piepho. An algorithm for a letter-based representation of all-pairwise comparisons.
       Journal of Computational and Graphical Statistics 13 (2004).
       https://doi.org/10.1198/1061860043515
    .. [2] J. Gramm, J. Guo, F. Hüffner, R. Niedermeier, H.-P. Piepho and R. Schmid. Algorithms for
       compact letter displays: comparison and evaluation. Computational Statistics & Data Analysis
       52 (2007). https://doi.org/10.1016/j.csda.2006.09.035

    Examples
    --------
    >>> resolved = [[False, False, True], [False, False, False], [False, False, False]]
    >>> letter_groups([3.0, 2.0, 1.0], resolved)
    ('a', 'ab', 'b')
    """
    better = np.asarray(resolved, dtype=bool)
    order = _order(score, better)
    ordered = better[np.ix_(order, order)]
    letters = [""] * len(order)
    for number, members in enumerate(_cover(~(ordered | ordered.T))):
        for position in members:
            letters[order[position]] += _letter(number)
    return tuple(letters)


def borders(resolved: ArrayLike) -> BoolArray:
    """Say after which systems a border stands, which no group crosses.

    Parameters
    ----------
    resolved : array_like of bool and shape (system, opponent)
        As in :func:`letter_groups`, with systems and opponents from best to worst.

    Returns
    -------
    numpy.ndarray of bool and shape (system,)
        True where every system down to this one is resolved as better than every one below it;
        False for the last.

    Examples
    --------
    >>> borders([[False, True, True], [False, False, False], [False, False, False]])
    array([ True, False, False])
    """
    better = np.asarray(resolved, dtype=bool)
    n_systems = len(better)
    # The last system of the order that a system is not resolved from, in either direction.
    reach = np.where(np.triu(~better, 1), np.arange(n_systems), -1).max(axis=1, initial=-1)
    closed = np.maximum.accumulate(reach) <= np.arange(n_systems)
    closed[-1:] = False
    return closed


def split_letters(letters: str) -> list[tuple[str, int]]:
    """Split the letters of a system into its groups, each with its number from 0.

    Parameters
    ----------
    letters : str
        As :func:`letter_groups` returns them.

    Returns
    -------
    list of (str, int)

    Examples
    --------
    >>> split_letters("aza2")
    [('a', 0), ('z', 25), ('a2', 26)]
    """
    found = re.findall(r"([a-z])(\d*)", letters)
    size = len(_ALPHABET)
    return [
        (letter + turn, _ALPHABET.index(letter) + size * (int(turn or 1) - 1))
        for letter, turn in found
    ]


def _letter(number: int) -> str:
    turn, place = divmod(number, len(_ALPHABET))
    return _ALPHABET[place] + (str(turn + 1) if turn else "")


def _order(score: ArrayLike, better: BoolArray) -> NDArray[np.intp]:
    """Order systems by score, and equal scores by what they are resolved from, not by labels."""
    places = tie_groups(score)
    while True:
        keys = [
            (int(place), _sorted(places[above]), _sorted(places[below]))
            for place, above, below in zip(places, better.T, better, strict=True)
        ]
        known = sorted(set(keys))
        if len(known) == len(set(places.tolist())):
            return np.argsort(places, kind="stable")
        number = {key: position for position, key in enumerate(known)}
        places = np.array([number[key] for key in keys])


def _sorted(places: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(np.sort(places).tolist())


def _cover(unresolved: BoolArray) -> list[list[int]]:
    """Cover the edges of a graph by maximal cliques, in the order of their members.

    Sets of systems are the bits of integers.
    """
    n_systems = len(unresolved)
    bits = [1 << position for position in range(n_systems)]
    near = [sum(bits[j] for j in np.flatnonzero(row) if j != i) for i, row in enumerate(unresolved)]
    # Pairs that share no letter yet, by their first system.
    open_pairs = [near[i] >> (i + 1) << (i + 1) for i in range(n_systems)]
    cliques: list[list[int]] = []
    for i in range(n_systems):
        if not near[i]:
            cliques.append([i])
        while open_pairs[i]:
            j = _lowest(open_pairs[i])
            clique, candidates = bits[i] | bits[j], near[i] & near[j]
            while candidates:
                k = _lowest(candidates)
                clique, candidates = clique | bits[k], candidates & near[k]
            members = [k for k in range(n_systems) if clique & bits[k]]
            for k in members:
                open_pairs[k] &= ~clique
            cliques.append(members)
    return sorted(_without_redundant(cliques, n_systems))


def _lowest(members: int) -> int:
    return (members & -members).bit_length() - 1


def _without_redundant(cliques: Sequence[list[int]], n_systems: int) -> list[list[int]]:
    """Leave out cliques all of whose pairs are in others."""
    count = np.zeros((n_systems, n_systems), dtype=np.int64)
    for members in cliques:
        count[np.ix_(members, members)] += 1
    kept = []
    for members in reversed(cliques):
        pairs = np.ix_(members, members)
        if len(members) > 1 and (count[pairs] + np.eye(len(members), dtype=np.int64) >= 2).all():
            count[pairs] -= 1
        else:
            kept.append(members)
    return kept
