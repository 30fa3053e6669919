"""Tables of battles in the layouts that arenas and judges publish, as one layout.

Every layout becomes one row per result, with the columns first, second, winner and, if present,
weight, time, group, prompt, judge and vote; columns of covariates keep their names after a prefix.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import column_of, field_name
from bayesrank.errors import DataError
from bayesrank.outcomes import nested, outcome_numbers
from bayesrank.style import as_numbers, covariate_columns, differences

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bayesrank")

# Columns of the two systems; the first pair that is present is read.
SIDES = (
    ("first", "second"),
    ("model_a", "model_b"),
    ("left", "right"),
    ("model_x", "model_y"),
    ("model_1", "model_2"),
    ("model1", "model2"),
    ("player_a", "player_b"),
    ("player_1", "player_2"),
    ("player1", "player2"),
    ("system_a", "system_b"),
    ("system_1", "system_2"),
    ("white", "black"),
    ("home", "away"),
    ("generator_1", "generator_2"),
    ("model_a_name", "model_b_name"),
    ("winner", "loser"),
)
WINNERS = ("winner", "result", "outcome", "verdict", "chosen_model_name", "vote")
# Columns of zeros and ones in place of a winner, and the winner that they mark.
_MARKS = {"winner_model_a": "first", "winner_model_b": "second", "winner_tie": "tie"}
# Numbers of wins of the two sides.
_WINS = (("wins_a", "wins_b"), ("wins_1", "wins_2"), ("wins1", "wins2"), ("win1", "win2"))
_TIES = ("ties", "draws", "tie", "n_ties")
# How many equal battles a row with a winner stands for; beside numbers of wins it is their sum.
_COUNTS = ("count", "n_votes", "votes", "n")
# Columns that mark ties beside a winner.
_EQUAL = ("both_equal", "tie", "is_tie", "draw")
# Verdicts on two games, the second with the sides swapped.
_GAMES = ("g1_winner", "g2_winner")
BASELINE = ("model", "baseline", "games")
# Other columns of a battle; for each, the first name that is present is read.
_ROLES = {
    "weight": ("weight", *_COUNTS),
    "time": ("time", "tstamp", "timestamp", "created_at", "date"),
    "group": ("group", "category", "language", "dataset"),
    "prompt": ("prompt_id", "question_id", "uid", "prompt", "instruction", "question"),
    "judge": (
        "judge",
        "user",
        "user_id",
        "judge_hash",
        "voter",
        "worker",
        "annotator",
        "evaluation_session_id",
        "session_hash",
    ),
    "vote": ("vote_id",),
}
KNOWN = frozenset(
    {
        *(name for pair in (*SIDES, *_WINS) for name in pair),
        *(name for names in _ROLES.values() for name in names),
        *(*WINNERS, *_MARKS, *_TIES, *_EQUAL, *_GAMES, *BASELINE, "preference"),
    }
)
# Prefix of columns of covariates that already are differences.
COVARIATE = "covariate "

# Nanoseconds, microseconds and milliseconds, which programs write as well as seconds since 1970:
# a number that is 1973 or later in them would be after the year 5100 in the next larger unit.
_UNITS, _EARLIEST = (1e9, 1e6, 1e3), 1e8

# A date that begins with two numbers, day and month in either order.
_DAY_AND_MONTH = r"^\s*(\d{1,2})([./-])(\d{1,2})[./-]\d{2}"
# Numbers such as 20260131 are dates: as seconds all of them would be in August 1970.
_DATES = 1970_01_01, 2100_01_01
# A time of day without a date, which would be today's.
_TIME_OF_DAY = r"^\s*\d{1,2}:\d{2}"

type Read = "Callable[[pd.DataFrame, str], pd.DataFrame]"


@lru_cache  # of JSON every record names its fields
def battle_column(column: Hashable) -> str:
    """Return the name of a column as the layouts spell it; others only in lower case.

    Examples
    --------
    >>> [battle_column(name) for name in ("Model A", "modelB", "Length_A", "Turn Count")]
    ['model_a', 'model_b', 'length_a', 'turn count']
    """
    name = field_name(column)
    return name if name in KNOWN else str(column).strip().lower()


def is_battle_table(columns: Iterable[Hashable]) -> bool:
    """Return whether columns are those of a layout of battles.

    Examples
    --------
    >>> is_battle_table({"model_a", "model_b", "winner"}), is_battle_table({"model", "score"})
    (True, False)
    """
    return _layout(set(map(battle_column, columns))) is not None


def read_table(frame: "pd.DataFrame") -> dict[str, Any]:
    """Return the keyword arguments of :class:`bayesrank.Battles` for a table in any layout."""
    return battle_arguments(standardize(frame, "the table"))


def battle_arguments(rows: "pd.DataFrame") -> dict[str, Any]:
    """Return the keyword arguments of :class:`bayesrank.Battles` for standardised rows."""
    arguments: dict[str, Any] = {name: rows[name] for name in ("first", "second", "winner")}
    arguments |= {name: rows[name] for name in _ROLES if name in rows}
    names = [name for name in rows if name.startswith(COVARIATE)]
    if names:
        arguments["covariates"] = {name.removeprefix(COVARIATE): rows[name] for name in names}
    return arguments


def standardize(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Turn a table of battles into rows of one layout.

    Parameters
    ----------
    frame : pandas.DataFrame
        In one of the layouts; its columns in any case, of words joined in any way.
    source : str
        Where it is from, for messages.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        If the columns are those of no layout, or a battle lacks a system or a winner.
    """
    import pandas as pd  # 0.3 s, which importing this module should not take

    names = [battle_column(column) for column in frame.columns]
    frame = frame.set_axis(names, axis="columns").reset_index(drop=True)
    twice = next((name for name in names if name in KNOWN and names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"battles must have one column {twice}; got several in {source}")
    read = _layout(set(names))
    if read is None:
        raise DataError(
            "battles must have columns for two systems, such as model_a and model_b, and for the "
            f"winner; got {', '.join(names) or 'none of them'} in {source}"
        )
    frame = _without_empty_rows(frame)
    if frame.empty:
        raise DataError(f"battles must hold at least one battle; got none in {source}")
    rows = read(frame, source)
    both = [pd.Series(rows[name]) for name in ("first", "second")]
    rows["first"], rows["second"] = _without_spaces(both, "system", source)
    sides = {name: pd.Series(rows[name]) for name in ("first", "second", "winner")}
    for name, column in sides.items():
        blank = _is_blank(column)
        if blank.any():
            raise DataError(
                f"battles must name the {name} of every battle; got a blank in row "
                f"{int(blank.argmax()) + 1} of {source}"
            )
    alone = _is_same(sides["first"], sides["second"])
    if alone.any():
        logger.info(
            f"{alone.sum():,} of {len(rows):,} battles are of a system with itself, and left out, "
            f"in {source}"
        )
        rows = rows.loc[~alone].reset_index(drop=True)
        if rows.empty:
            raise DataError(f"battles must be of two systems; got none in {source}")
    return rows


def _without_empty_rows(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rows that hold nothing, as spreadsheets write below their tables."""
    maybe = frame.loc[_is_blank(frame.iloc[:, 0])]
    empty = [_is_blank(maybe.iloc[:, place]) for place in range(maybe.shape[1])]
    nothing = maybe.index[np.all(empty, axis=0)]
    return frame.drop(index=nothing).reset_index(drop=True) if len(nothing) else frame


def _without_spaces(columns: "list[pd.Series]", role: str, source: str) -> "list[pd.Series]":
    """Return labels without spaces around them, as tables of outcomes are read."""
    import pandas as pd

    encoded = [_factorize(column) for column in columns]
    known = {name for _, names in encoded for name in names}
    plain = {name.strip() for name in known}
    if plain <= known and len(plain) == len(known):
        return columns
    if len(plain) < len(known):
        logger.info(f"Names of a {role} that differ in spaces around them are one in {source}")
    place = {name: number for number, name in enumerate(sorted(plain))}
    found = []
    for column, (codes, names) in zip(columns, encoded, strict=True):
        places = np.array([*(place[name.strip()] for name in names), -1])[codes]
        found.append(pd.Series(pd.Categorical.from_codes(places, list(place)), index=column.index))
    return found


def _is_blank(column: "pd.Series") -> NDArray[np.bool_]:
    """Return which entries are missing, empty or only spaces."""
    codes, names = _factorize(column)
    return np.array([*(not name.strip() for name in names), True])[codes]


def _is_same(one: "pd.Series", other: "pd.Series") -> NDArray[np.bool_]:
    """Return where two columns have the same label."""
    (left, here), (right, there) = _factorize(one), _factorize(other)
    place = {name: number for number, name in enumerate(here)}
    return np.array([place.get(name, -1) for name in there])[right] == left


def _factorize(column: "pd.Series") -> tuple[NDArray[np.intp], list[str]]:
    """Return numbers of labels, -1 for missing ones, and the labels."""
    import pandas as pd

    try:
        codes, names = pd.factorize(column)
    except TypeError as error:  # lists and mappings
        raise DataError(
            f"battles must hold labels in their columns; got {nested(column)[0]} for {column.name}"
        ) from error
    return codes, list(map(str, names))


def _layout(columns: set[str]) -> "Read | None":
    """Return the reader of a layout, None if the columns are not those of a layout."""
    if set(BASELINE) <= columns:
        return _read_baseline_games
    if not any(set(pair) <= columns for pair in SIDES):
        return None
    return next((read for names, read in _READ.items() if set(names) <= columns), None)


def _sides(frame: "pd.DataFrame") -> tuple[str, str]:
    return next(pair for pair in SIDES if set(pair) <= set(frame.columns))


def _read_winners(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Read one row per battle, with a winner or columns that mark it."""
    import pandas as pd

    first, second = _sides(frame)
    named = next((name for name in (*WINNERS, "preference") if name in frame), None)
    if named is not None:
        winner = frame[named]
        if np.isin(as_numbers(winner), (0.0, 1.0)).all():
            # A result is usually the share of the first system, a winner maybe a place.
            level = logging.INFO if named in ("result", "outcome") else logging.WARNING
            said = f"1 is a win of the first system and 0 of the second in {source}"
            logger.log(level, f"{said}: write model_a and model_b if they number the sides from 0")
    else:
        marked = np.column_stack(
            [
                outcome_numbers(column_of(frame, name), f"column {name} of {source}")
                for name in _MARKS
            ]
        )
        # A blank marks nothing; shares of several results are no verdict.
        marked = np.nan_to_num(marked)
        one = ((marked == 1.0).sum(axis=1) == 1) & (marked.sum(axis=1) == 1.0)
        if not one.all():
            raise DataError(
                f"battles must mark one result of every battle; got others in {source}, row "
                f"{int(one.argmin()) + 1}"
            )
        results = np.array(list(_MARKS.values()), dtype=object)
        winner = pd.Series(results[marked.argmax(axis=1)], index=frame.index)
    for name in filter(frame.__contains__, _EQUAL):
        equal = outcome_numbers(column_of(frame, name), f"column {name} of {source}") == 1.0
        winner = pd.Series(winner).astype(object).where(~equal, "tie")
    columns = {"first": frame[first], "second": frame[second], "winner": winner}
    return pd.DataFrame({**columns, **_further(frame, source)}, copy=False)


def _read_swapped_games(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Read two verdicts on each pair of answers, the second with the sides swapped."""
    first, second = _sides(frame)
    turned = {first: "second", second: "first", "tie": "tie"}
    straight = {first: "first", second: "second", "tie": "tie"}
    further = _further(frame, source)
    for name in _GAMES:
        unknown = set(map(str, frame[name].dropna())).difference(straight, ("error", ""))
        if unknown:
            raise DataError(
                f"{name} must be {first}, {second}, tie or error; got {min(unknown)!r} in {source}"
            )
    verdicts = [
        [words.get(word) for word in frame[name]]
        for name, words in zip(_GAMES, (straight, turned), strict=True)
    ]
    one = _game(further, frame[first], frame[second], verdicts[0], turned=False)
    two = _game(further, frame[second], frame[first], verdicts[1], turned=True)
    return _without_verdict([one, two], source)


def _read_baseline_games(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Read two games against a baseline, which is A in the first of them."""
    import pandas as pd

    scores = pd.DataFrame([_scores(games) for games in frame["games"]], index=frame.index)
    further, system, baseline = _further(frame, source), frame["model"], frame["baseline"]
    # Columns of answers are first for the model, then for the baseline.
    one = _game(further, baseline, system, scores[0], turned=True)
    two = _game(further, system, baseline, scores[1], turned=False)
    return _without_verdict([one, two], source)


def _scores(games: Any) -> tuple[str | None, str | None]:
    """Return the verdicts of two games, such as A>>B."""
    found = [game.get("score") if isinstance(game, Mapping) else None for game in games or ()]
    one, two, *_ = [*found, None, None]
    return one, two


def _game(
    further: Mapping[str, Any], first: Any, second: Any, winner: Any, *, turned: bool
) -> "pd.DataFrame":
    """Return the rows of one of two games, which are one vote."""
    import pandas as pd

    rows = pd.DataFrame({"first": first, "second": second, "winner": winner, **further})
    rows["vote"] = np.arange(len(rows))
    if turned:
        names = [name for name in rows if name.startswith(COVARIATE)]
        rows[names] = -rows[names]
    return rows


def _without_verdict(games: "list[pd.DataFrame]", source: str) -> "pd.DataFrame":
    """Put games below one another, each vote together, without those that have no verdict."""
    import pandas as pd

    rows = pd.concat(games).sort_index(kind="stable")
    kept = rows.dropna(subset=["winner"]).reset_index(drop=True)
    if kept.empty:
        raise DataError(f"battles must have a verdict on one game at least; got none in {source}")
    if len(kept) < len(rows):
        logger.info(f"{len(rows) - len(kept)} of {len(rows)} games have no verdict in {source}")
    return kept


def _read_counts(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Read numbers of wins and ties of pairs, a row for each result with its number as weight."""
    import pandas as pd

    first, second = _sides(frame)
    wins = next(pair for pair in _WINS if set(pair) <= set(frame.columns))
    ties = next((name for name in _TIES if name in frame), None)
    counted = {"first": wins[0], "second": wins[1]} | ({} if ties is None else {"tie": ties})
    further = _further(frame.drop(columns=list(_COUNTS), errors="ignore"), source)
    parts = []
    for winner, name in counted.items():
        weight = _numbers(frame[name], name, source) * further.get("weight", 1.0)
        sides = {"first": frame[first], "second": frame[second], "winner": winner}
        parts.append(pd.DataFrame({**sides, **further, "weight": weight}))
    rows = pd.concat(parts).sort_index(kind="stable")
    # A pair without a battle adds no battle, but its systems are included.
    return rows.reset_index(drop=True)


def _read_preferences(frame: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """Read preferences from 1 (the first) to 2 (the second), 0 for a tie, as AlpacaEval has."""
    import pandas as pd

    first, second = _sides(frame)
    preference = as_numbers(frame["preference"])
    if (np.isnan(preference) & ~_is_blank(column_of(frame, "preference"))).any():
        return _read_winners(frame, source)  # sides in words
    outside = (preference < 1.0) & (preference != 0.0) | (preference > 2.0)
    if outside.any():
        raise DataError(
            f"preference must be from 1 (the first) to 2 (the second), or 0 for a tie; got "
            f"{preference[outside][0]:g} in {source}"
        )
    if (preference == 0.0).any() and not (preference > 1.0).any():
        raise DataError(
            "preference must be from 1 (the first) to 2 (the second), or 0 for a tie; got 0 and "
            f"none above 1 in {source}: call the column winner where 0 is a win of the second"
        )
    share = np.where(preference == 0.0, 0.5, 2.0 - preference)
    part = pd.DataFrame({"first": frame[first], "second": frame[second], "winner": share})
    part = part.assign(**_further(frame, source))
    return _without_verdict([part], source)


def _further(frame: "pd.DataFrame", source: str) -> dict[str, Any]:
    """Return the other columns of the battles, and their covariates."""
    sides = set(_sides(frame)) if not set(BASELINE) <= set(frame.columns) else set(BASELINE)
    taken = sides | {*WINNERS, *_MARKS, *_GAMES}
    import pandas as pd

    found: dict[str, Any] = {}
    for role, names in _ROLES.items():
        name = next((name for name in names if name in frame and name not in taken), None)
        if name is None:
            continue
        column = pd.Series(frame[name])
        if role == "weight":
            found[role] = _numbers(column, name, source)
        elif role == "time":
            found[role] = read_times(column, source)
        elif (labels := _as_labels(column, role, source)) is not None:
            found[role] = labels
    found |= {name: frame[name] for name in frame if name.startswith(COVARIATE)}
    pairs = covariate_columns(frame, taken | {each for pair in _WINS for each in pair})
    return found | {f"{COVARIATE}{name}": values for name, values in differences(frame, pairs)}


def _as_labels(column: "pd.Series", role: str, source: str) -> "pd.Series | None":
    """Return labels; each unknown prompt or judge counts as a separate one."""
    if column.dtype == object:
        column = column.map(_joined)
    (column,) = _without_spaces([column], role, source)
    blank = _is_blank(column)
    if not blank.any():
        return column
    if blank.all():
        return None
    if role != "group":
        logger.info(
            f"{blank.sum():,} of {len(blank):,} battles name no {role} in {source}: each counts as "
            f"a {role} of its own"
        )
    unknown = [f"unknown {role} {row + 1}" if role != "group" else "" for row in range(len(column))]
    return column.astype(object).where(~blank, unknown)


def _joined(value: Any) -> Any:
    """Return a list, such as of a judge and its template, as one text."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple | np.ndarray) else value


def _numbers(column: Any, name: str, source: str) -> NDArray[np.float64]:
    numbers = as_numbers(column)
    if not np.isfinite(numbers).all():
        wrong = list(column)[int(np.isfinite(numbers).argmin())]
        raise DataError(f"{name} must be numbers; got {wrong!r} in {source}")
    if (numbers < 0.0).any():
        raise DataError(f"{name} must not be negative; got {numbers.min():g} in {source}")
    return numbers


def read_times(column: "pd.Series", source: str) -> NDArray[np.float64]:
    """Return times as seconds; numbers of today's dates tell whether they are smaller units."""
    import pandas as pd

    if column.dtype.kind != "M":
        numbers = as_numbers(column)
        if np.isfinite(numbers).all():
            if (days := _as_days(numbers)) is not None:
                return days
            largest = np.abs(numbers).max(initial=0.0)
            return numbers / next((unit for unit in _UNITS if largest >= _EARLIEST * unit), 1.0)
    try:
        when = pd.DatetimeIndex(_as_times(column, source))
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"time must be times; got {error} in {source}") from error
    if when.hasnans:
        raise DataError(
            f"time must be given for every battle; got blanks in {source}: a column "
            "with another name is not read"
        )
    return np.asarray(
        (when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1), dtype=np.float64
    )


def _as_days(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return numbers such as 20260131 as seconds, None where one of them is no date."""
    import pandas as pd

    if not ((numbers >= _DATES[0]) & (numbers < _DATES[1])).all():
        return None
    found, place = np.unique(numbers, return_inverse=True)
    texts = [f"{number:.10g}" for number in found]
    days = pd.to_datetime(texts, format="%Y%m%d", errors="coerce")
    if days.hasnans:
        return None
    return days.to_numpy().astype("datetime64[s]").astype(np.float64)[place]


def _as_times(column: "pd.Series", source: str) -> "pd.Series":
    """Read times: ISO 8601, or dates whose days and months have one order in all rows."""
    import pandas as pd

    try:
        return pd.to_datetime(column, utc=True, format="ISO8601")
    except (TypeError, ValueError):
        texts = pd.Series(column.astype(str))
    undated = texts.str.match(_TIME_OF_DAY)
    if undated.any():
        raise DataError(
            f"time must hold dates; got {texts.loc[undated].iloc[0]!r}, a time of day, in "
            f"{source}: a column with another name is not read"
        )
    parts = texts.str.extract(_DAY_AND_MONTH)
    one, two = (parts[place].astype(float) for place in (0, 2))
    first, second = one > 12, two > 12
    if first.any() and second.any():
        raise DataError(
            f"time must have its days and months in one order; got {texts.loc[first].iloc[0]!r} "
            f"and {texts.loc[second].iloc[0]!r} in {source}: write them as 2026-01-31"
        )
    # Languages with dots in dates write the day first.
    day_first = bool(first.any() or ((parts[1] == ".").any() and not second.any()))
    if not (first.any() or second.any()) and (one != two)[one.notna()].any():
        example = texts.loc[one.notna() & (one != two)].iloc[0]
        order = "day" if day_first else "month"
        logger.info(f"Times such as {example!r} are read with the {order} first in {source}")
    return pd.to_datetime(column, utc=True, format="mixed", dayfirst=day_first)


# Columns with the winner of a battle: the first layout that is present is read.
_READ: "Mapping[tuple[str, ...], Read]" = {
    _GAMES: _read_swapped_games,
    **{(name,): _read_winners for name in WINNERS},
    tuple(_MARKS): _read_winners,
    **dict.fromkeys(_WINS, _read_counts),
    ("preference",): _read_preferences,
}
RESULTS = tuple(_READ)
