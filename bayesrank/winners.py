"""The winners of battles as in published logs: names of systems, sides, grades and numbers.

The words of a log are interpreted together, because a single word is ambiguous: a system may be
called "A", and 1 may be the number of the first side or a point for it.
"""

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError
from bayesrank.outcomes import with_points
from bayesrank.validation import label_systems, label_texts, numeric

# Outcomes of a battle for its first system; they are negative if the second one is better.
MUCH_BETTER, BETTER, TIE = 2, 1, 0

# Names of the two sides, in logs that name the side of the winner.
SIDES = (
    ("first", "second"),
    ("model_a", "model_b"),
    ("model_1", "model_2"),
    ("left", "right"),
    ("model_x", "model_y"),
    ("player_a", "player_b"),
    ("player_1", "player_2"),
    ("system_a", "system_b"),
    ("assistant_a", "assistant_b"),
    ("response_a", "response_b"),
    ("output_1", "output_2"),
    ("white", "black"),
    ("home", "away"),
    ("1-0", "0-1"),
    ("a", "b"),
    ("x", "y"),
    ("1", "2"),
    ("a_win", "b_win"),
    ("a_wins", "b_wins"),
    ("a>b", "b>a"),
    ("b<a", "a<b"),
    ("[[a]]", "[[b]]"),
    ("[[a>b]]", "[[b>a]]"),
)
_MUCH = (
    ("a>>b", "b>>a"),
    ("b<<a", "a<<b"),
    ("[[a>>b]]", "[[b>>a]]"),
    ("a_much_better", "b_much_better"),
    ("first_much_better", "second_much_better"),
)
_TIES = (
    *("tie", "tie (inconsistent)", "draw", "drawn", "equal", "both"),
    *("a=b", "b=a", "[[a=b]]", "[[b=a]]", "[[c]]"),
    *("1/2-1/2", "\u00bd-\u00bd", "0.5-0.5"),
)
_BOTH_BAD = ("tie (bothbad)", "both_bad", "bothbad", "tie (both bad)", "neither")

_WORDS: dict[str, int] = {
    **{word: sign * BETTER for pair in SIDES for word, sign in zip(pair, (1, -1), strict=True)},
    **{
        word: sign * MUCH_BETTER for pair in _MUCH for word, sign in zip(pair, (1, -1), strict=True)
    },
    **dict.fromkeys((*_TIES, *_BOTH_BAD), TIE),
}


class Votes(NamedTuple):
    """Outcomes of battles, one row each; a battle with shared points has a row for each result.

    Attributes
    ----------
    row : numpy.ndarray of int and shape (vote,), or None
        The battle of each row; None if there is one row per battle, in order.
    outcome : numpy.ndarray of int8 and shape (vote,)
        2 if the first system was much better, 1 if it was better, 0 for a tie, else -1 and -2.
    both_bad : numpy.ndarray of bool and shape (vote,), or None
        Ties in which neither system was good enough, if the log records them.
    share : numpy.ndarray of shape (vote,), or None
        Share of the battle of each row; None if all shares are 1.
    """

    row: NDArray[np.intp] | None
    outcome: NDArray[np.int8]
    both_bad: NDArray[np.bool_] | None
    share: NDArray[np.float64] | None


def encode(labels: Any, argument: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Replace labels by numbers, in the order in which they first appear.

    Parameters
    ----------
    labels : sequence of hashable
        Labels; a categorical pandas.Series is fastest.
    argument : str
        Name of the argument, for the message.

    Returns
    -------
    codes : numpy.ndarray of int32
    names : tuple of str

    Raises
    ------
    DataError
        If it is not a sequence of labels, or a label is missing.
    """
    import pandas as pd  # 0.3 s, which importing this module should not take

    if not isinstance(labels, pd.Series):
        labels = pd.Series(list(label_texts(labels, argument)), dtype=object)
    codes, found = pd.factorize(labels)
    if len(codes) and codes.min() < 0:
        blank = labels.iloc[int(codes.argmin())]
        raise DataError(f"{argument} must hold a label in every place; got {blank!r}")
    names = label_texts(found, argument)
    if len(set(names)) < len(names):  # 1 and "1" are one label
        place = {name: number for number, name in enumerate(dict.fromkeys(names))}
        codes, names = np.array([place[name] for name in names])[codes], tuple(place)
    return codes.astype(np.int32), names


def encode_sides(
    first: Any, second: Any, systems: Sequence[Hashable] | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[str, ...]]:
    """Replace systems by numbers, in the order of `systems` or of first appearance.

    Raises
    ------
    DataError
        If a battle is of a system with itself, or a system is not among `systems`.
    """
    (left, here), (right, there) = encode(first, "first"), encode(second, "second")
    if len(left) != len(right) or not len(left):
        raise DataError(
            "first and second must have one entry per battle, at least one; got "
            f"{len(left)} and {len(right)}"
        )
    met = tuple(dict.fromkeys((*here, *there)))
    names = met if systems is None else label_systems(systems, len(label_texts(systems, "systems")))
    index = {name: number for number, name in enumerate(names)}
    unknown = [name for name in met if name not in index]
    if unknown:
        raise DataError(f"systems must hold every system of a battle; got none for {unknown}")
    i = np.array([index[name] for name in here], dtype=np.int32)[left]
    j = np.array([index[name] for name in there], dtype=np.int32)[right]
    if (i == j).any():
        row = int((i == j).argmax())
        raise DataError(
            f"first and second must differ; got {names[i[row]]!r} twice in battle {row + 1}: leave "
            "out battles of a system with itself"
        )
    return in_order_of_appearance(i, j, names) if systems is None else (i, j, names)


def in_order_of_appearance(
    left: NDArray[np.int32], right: NDArray[np.int32], names: tuple[str, ...]
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[str, ...]]:
    """Renumber systems in the order in which they first appear in the rows."""
    firsts = np.full((2, len(names)), 2 * len(left), dtype=np.int64)
    for side, (codes, first) in enumerate(zip((left, right), firsts, strict=True)):
        first[codes[::-1]] = 2 * np.arange(len(codes))[::-1] + side
    order = firsts.min(axis=0).argsort(kind="stable")
    number = np.empty(len(names), dtype=np.int32)
    number[order] = np.arange(len(names), dtype=np.int32)
    return number[left], number[right], tuple(names[place] for place in order)


def read_winners(
    winner: Any, first: NDArray[np.int32], second: NDArray[np.int32], systems: tuple[str, ...]
) -> Votes:
    """Read the winners of battles.

    Parameters
    ----------
    winner : sequence of hashable
        The name of the winner, its side (model_a, left, A, 1, ...), how much better it was
        (``A>>B``, ``B>A``), or a tie (tie, draw, both_bad). Numbers are the share of the first
        system if one of them is 0 or a fraction (1, 0.5, 0), its lead if one is -1 (1, 0, -1), or
        else the number of the side (1, 2). Only names are case-sensitive.
    first, second : numpy.ndarray of int and shape (battle,)
        The systems of each battle.
    systems : tuple of str
        Their names.

    Returns
    -------
    Votes

    Raises
    ------
    DataError
        If a word is unknown, or may be a name or a side.
    """
    codes, labels = encode(winner, "winner")
    if len(codes) != len(first):
        raise DataError(
            f"winner must have one entry per battle; got {len(codes)} for {len(first)} battles"
        )
    words = [_word(label) for label in labels]
    ties = np.array([_WORDS.get(word) == TIE for word in words])
    index = {name: number for number, name in enumerate(systems)}
    named = np.array([index.get(label.strip(), -1) for label in labels])
    of_row = named[codes]
    by_name = (of_row == first) | (of_row == second) | (ties[codes] & (of_row < 0))
    if (named >= 0).any() and by_name.all():
        outcome = np.where(of_row == first, BETTER, np.where(of_row == second, -BETTER, TIE))
        both_bad = np.array(
            [word in _BOTH_BAD and name < 0 for word, name in zip(words, named, strict=True)]
        )
        return Votes(None, outcome.astype(np.int8), _where_any(both_bad, codes), None)
    share = _numbers(words, systems)
    if share is not None:
        return _in_part(share, codes)
    _refuse_unknown(codes, labels, words, named, systems)
    outcome = np.array([_WORDS[word] for word in words], dtype=np.int8)[codes]
    both_bad = np.array([word in _BOTH_BAD for word in words])
    return Votes(None, outcome, _where_any(both_bad, codes), None)


def _word(label: str) -> str:
    """Return a label in lower case, and as `_WORDS` spells it if it is one of these."""
    word = label.strip().lower()
    joined = re.sub(r"[\s-]+", "_", word)
    return joined if joined in _WORDS else word


def _refuse_unknown(
    codes: NDArray[np.int32],
    labels: Sequence[str],
    words: Sequence[str],
    named: NDArray[np.intp],
    systems: tuple[str, ...],
) -> None:
    """Raise for words that are not sides, and for sides that may also be names."""
    unknown = next((code for code, word in enumerate(words) if word not in _WORDS), None)
    if unknown is not None:
        raise DataError(
            "winner must be one of the two systems of its battle, a side (first and second, "
            "model_a and model_b, left and right, A and B, 1 and 2), a grade (A>>B, A>B), tie, "
            f"both_bad, or a number from 0 to 1; got {labels[unknown]!r} in battle "
            f"{int((codes == unknown).argmax()) + 1}"
        )
    if (named >= 0).any():
        name = systems[int(named[named >= 0][0])]
        raise DataError(
            f"winner must be a system of its battle where winners are named; got {name!r}, a name "
            "as well as a side, for other systems too: write first and second for sides"
        )


def _numbers(words: Sequence[str], systems: tuple[str, ...]) -> NDArray[np.float64] | None:
    """Return the share of the first system by word; None if the words are not numbers."""
    try:
        values = np.array([float(str(word)) for word in with_points(words)])
    except ValueError:
        return None
    found = set(values.tolist())
    if set(words) & set(systems):
        return None  # names, one of them not of its battle
    if -1.0 in found and found <= {-1.0, 0.0, 1.0}:
        return (values + 1.0) / 2.0
    if 2.0 in found and found <= {1.0, 2.0}:
        return 2.0 - values
    if ((values >= 0.0) & (values <= 1.0)).all():
        return values
    raise DataError(
        "winner must hold numbers from 0 to 1 (the share of the first system), 1 and 2 (its side) "
        f"or 1, 0 and -1; got {', '.join(f'{value:g}' for value in sorted(found)[:5])}"
    )


def _in_part(share: NDArray[np.float64], codes: NDArray[np.int32]) -> Votes:
    """Return votes from the shares that the first systems won."""
    if set(share.tolist()) <= {0.0, 0.5, 1.0}:
        return Votes(None, (2.0 * share - 1.0).astype(np.int8)[codes], None, None)
    return won_in_part(share[codes])


def won_in_part(share: ArrayLike) -> Votes:
    """Return a row for each side that won a share of a battle; a half is a tie.

    Parameters
    ----------
    share : array_like of shape (battle,)
        Share of the first system, from 0 to 1.

    Examples
    --------
    >>> won_in_part([1.0, 0.25]).outcome, won_in_part([1.0, 0.25]).share
    (array([ 1,  1, -1], dtype=int8), array([1.  , 0.25, 0.75]))
    """
    won = numeric(share, "winner")
    if not ((won >= 0.0) & (won <= 1.0)).all():
        raise DataError(f"winner must be shares from 0 to 1; got {won.min()} to {won.max()}")
    both = np.stack([np.where(won == 0.5, 0.0, won), np.where(won == 0.5, 0.0, 1.0 - won)], 1)
    parts = np.column_stack([both, (won == 0.5).astype(float)])
    row, side = np.nonzero(parts)
    outcome = np.array([BETTER, -BETTER, TIE], dtype=np.int8)[side]
    return Votes(row, outcome, None, parts[row, side])


def _where_any(flags: NDArray[np.bool_], codes: NDArray[np.int32]) -> NDArray[np.bool_] | None:
    return flags[codes] if flags.any() else None


def vote_weights(
    weight: ArrayLike | None, n_battles: int, votes: Votes
) -> NDArray[np.float64] | None:
    """Return the weight of each row of votes; None if all weights are 1.

    Raises
    ------
    DataError
        If a weight is negative or not finite, or there is not one per battle.
    """
    if weight is None:
        return votes.share
    weights = numeric(weight, "weight")
    if weights.shape != (n_battles,):
        raise DataError(
            f"weight must have one entry per battle, {n_battles}; got shape {weights.shape}"
        )
    invalid = ~(np.isfinite(weights) & (weights >= 0))
    if invalid.any():
        raise DataError(
            f"weight must hold finite numbers that are not negative; got {weights[invalid][0]}"
        )
    if votes.row is not None:
        weights = weights[votes.row]
    return weights if votes.share is None else weights * votes.share


def count_outcomes(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    outcome: NDArray[np.int8],
    weight: NDArray[np.float64] | None,
    size: int,
) -> "tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]":
    """Count results by pair, in one pass.

    Returns
    -------
    first_wins, second_wins, first_ties : numpy.ndarray of shape (system, opponent)
        Wins of the first systems and of the second systems, and ties, by the order of naming.
    """
    # Cells of (result, winner or first, loser or second).
    cell = first.astype(np.int64) * size + second
    cell += np.where(outcome == 0, 2, outcome < 0).astype(np.int64) * size**2
    table = np.bincount(cell, weight, 3 * size**2).reshape(3, size, size).astype(np.float64)
    return table[0], np.ascontiguousarray(table[1].T), table[2]
