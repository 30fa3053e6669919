"""The columns of long tables: their usual names, and their lookup in a table."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.outcomes import DECIMAL_COMMA, DECLARED, TO_WHOM, outcome_numbers

if TYPE_CHECKING:
    import pandas as pd

# Usual names of each column, in any case; the first one has priority.
NAMES: dict[str, tuple[str, ...]] = {
    "system": (
        "system",
        "model",
        "system_name",
        "system_id",
        "model_name",
        "model_id",
        "model_name_or_path",
        "llm",
        "agent",
        "agent_name",
        "submission",
    ),
    "question": (
        "question",
        "item",
        "question_id",
        "qid",
        "query_id",
        "item_id",
        "task_id",
        "sample_id",
        "doc_id",
        "instance_id",
        "prompt_id",
        "problem_id",
        "problem_idx",
        "example_id",
        "problem",
        "id",
    ),
    "trial": (
        "trial",
        "epoch",
        "run",
        "seed",
        "attempt",
        "trial_id",
        "trial_idx",
        "run_id",
        "attempt_id",
        "repeat",
        "repetition",
        "replicate",
        "iteration",
        "rollout",
    ),
    "outcome": (
        "outcome",
        "score",
        "reward",
        "correct",
        "is_correct",
        "resolved",
        "is_resolved",
        "passed",
        "pass",
        "success",
        "is_success",
        "solved",
        "acc",
        "accuracy",
        "exact_match",
        "rating",
        "value",
    ),
    "group": (
        "group",
        "benchmark",
        "benchmark_name",
        "dataset",
        "dataset_name",
        "subject",
        "category",
        "topic",
        "domain",
        "task",
        "task_name",
        "subset",
        "subtask",
    ),
}
COLUMNS = tuple(NAMES)
OPTIONAL = frozenset({"trial", "group"})

# What has one column per label in wide tables, by the role that they lack.
_ACROSS = {"system": "system", "question": "question", "outcome": "trial"}

# Numbers that are used as the question if there is no other column for it, and then groups.
NUMBERS = ("idx", "index", "question_idx", "sample_idx", "example_idx", "doc_idx")
QUESTIONS = ("task", "task_name")

# A run or a seed is the same one for all systems; an epoch or an attempt is just a number.
PAIRED_TRIALS = frozenset({"run", "seed"})

# Settings of a system, and how it was measured.
_SETTING_NAMES = """
temperature temp top_p top_k min_p max_tokens max_new_tokens max_output_tokens
max_completion_tokens frequency_penalty presence_penalty repetition_penalty decoding sampling
sampler effort reasoning_effort reasoning_mode reasoning_level reasoning_budget thinking
thinking_mode thinking_level thinking_budget budget budget_tokens verbosity cot chain_of_thought
revision version model_version model_revision model_sha model_args checkpoint commit sha
snapshot release quantization quant precision dtype bits provider inference_provider endpoint
base_url api api_version deployment backend engine platform prompt prompt_template
prompt_version prompt_name prompt_style prompt_type prompt_variant prompt_format system_prompt
template chat_template scaffold harness agent_version agent_config tools tool_use use_tools
tools_enabled browsing n_shot n_shots num_fewshot num_shots shots few_shot fewshot config
configuration config_name setting settings setup variant mode condition arm strategy method
technique max_steps max_turns step_limit message_limit token_limit time_limit cost_limit grader
grader_model judge judge_model scorer_model
"""
SETTINGS = frozenset(_SETTING_NAMES.split())

# Columns with the reason of a missing outcome; in the first ones any text is an error.
ERRORS = (
    "error",
    "error_type",
    "error_message",
    "error_msg",
    "exception",
    "exception_type",
    "is_error",
    "has_error",
    "errored",
)
STATUSES = (
    "status",
    "failure_mode",
    "finish_reason",
    "stop_reason",
    "termination_reason",
    "exit_status",
    "limit",
)

# Outcomes that are right or wrong, or already shares of 1.
_SHARES = frozenset(NAMES["outcome"]) - {"outcome", "score", "reward", "rating", "value"}
# Those of them that are never numbers of right answers, but maybe percentages.
_RATES = frozenset({"acc", "accuracy", "exact_match"})
# The highest possible score of a row, where questions have different ones.
MAXIMA = ("max_score", "maximum_score", "max_points", "max_reward", "points_possible", "out_of")
# Numbers of right answers, and what they are divided by, in tables of counts.
_COUNTS = tuple(
    name
    for each in ("correct", "passed", "solved", "resolved", "success")
    for name in (f"n_{each}", f"num_{each}", f"{each}_count")
)
_COUNTED = _SHARES.difference(_RATES).union(_COUNTS)
TOTALS = ("total", *(
    name
    for each in ("total", "questions", "samples", "items", "problems", "tasks")
    for name in (f"n_{each}", f"num_{each}", f"{each}_count")
), "total_count")  # fmt: skip
# Outcomes of which the lowest is best: places, and ends of names such as eval/loss and latency_ms.
_PLACES = frozenset(["rank", "ranking", "place", "placement", "position", "standing"])
_LOWER_NAMES = """
attack_success_rate average_rank avg_rank bits_per_byte bits_per_char bits_per_character bpb bpc
brier brier_score cer cost der duration ece edit_distance eer error error_rate errors failure_rate
fid hallucination_rate jailbreak_rate latency logloss loss mae mape mean_rank mse nll perplexity ppl
price rmse rmsle runtime smape ter time toxicity wer wer_score
"""
_LOWER = re.compile(
    rf"(?!(?:neg|negative|minus|inverse|no)_)(?:.+_)?(?:{'|'.join(_LOWER_NAMES.split())})"
    r"(?:_(?:s|ms|secs?|seconds|minutes|usd|mean|avg|average|median|total|min|max|bin|p?\d+|per_.+))*"
)
# Columns that say in each row which outcome is best, and whether their truth means the lowest.
DIRECTIONS = {
    name: word == "lower"
    for word in ("lower", "higher", "greater")
    for name in (f"{word}_is_better", f"is_{word}_better", f"{word}_better")
}
# Leaderboards mark them with arrows.
_DOWN = frozenset("\u2193\u2b07")

# Columns that select rows of a table, and further names of the last one.
SELECTORS = ("task", "scorer", "filter", "metric")
METRICS = ("metric", "metric_name", "measure", "score_name", "score_type")

_KNOWN = SETTINGS.union(
    *(ERRORS, STATUSES, MAXIMA, _COUNTS, TOTALS, SELECTORS, METRICS, NUMBERS, QUESTIONS, DECLARED),
    *NAMES.values(),
    DIRECTIONS,
)

# Value that disables the groups of a table.
NONE = "none"


class Source(NamedTuple):
    """Where a table is from: the argument that names it, and what ends a message on it."""

    argument: str
    where: str = ""


class Found(NamedTuple):
    """The columns of a table, each as its own name.

    System, question and trial may be several columns, which together name one; `groups` are all
    columns that may group questions, and `group` is the one that the caller chose; `settings` may
    distinguish systems; `reasons` give the reasons of missing outcomes, `maximum` the highest
    score, and `total` the number of answers of which outcomes count the right ones.
    """

    system: tuple[Hashable, ...]
    question: tuple[Hashable, ...]
    outcome: Hashable
    trial: tuple[Hashable, ...]
    groups: tuple[Hashable, ...]
    group: Hashable | None
    settings: tuple[Hashable, ...]
    reasons: tuple[Hashable, ...]
    maximum: Hashable | None
    total: Hashable | None

    @property
    def paired(self) -> bool:
        """Whether the columns of trials name runs that all systems share."""
        return bool(self.trial) and set(map(field_name, self.trial)) <= PAIRED_TRIALS


def column_of(frame: "pd.DataFrame", name: Hashable) -> "pd.Series":
    """Return a column of a table that names every column once."""
    return cast("pd.Series", frame[name])


def as_frame(table: Any, *, wide: bool = False) -> "pd.DataFrame":
    """Return a table as a DataFrame with the columns that its file would have.

    Parameters
    ----------
    table : pandas.DataFrame, pandas.Series, or a table with a method ``to_pandas``
        Names in its index become columns.
    wide : bool, default False
        Whether an index of labels without a name becomes a column, too: it may name the systems.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        If it is something else, or has names of columns in several rows.

    Examples
    --------
    >>> import pandas as pd
    >>> list(as_frame(pd.DataFrame({"q1": [1, 0]}, index=pd.Index(["a", "b"], name="model"))))
    ['model', 'q1']
    """
    frame = table.to_pandas() if hasattr(table, "to_pandas") else table
    if hasattr(frame, "to_frame") and not hasattr(frame, "columns"):  # a Series
        frame = frame.to_frame(frame.name or "outcome")
    if not hasattr(frame, "columns"):
        raise DataError(f"frame must be a pandas.DataFrame; got {type(table).__name__}")
    if frame.columns.nlevels > 1:
        raise DataError(
            f"frame must name every column once; got {frame.columns.nlevels} rows of names: join "
            "them, or take the columns of one name"
        )
    labels = {}
    for place, name in enumerate(frame.index.names):
        values = frame.index.get_level_values(place)
        if name is not None and name not in frame:
            labels[name] = values
        elif wide and name is None and values.dtype.kind not in "iuf":
            labels[f"Unnamed: {place}"] = values
    if not labels:
        return frame
    frame = frame.reset_index(drop=True)
    for place, (name, values) in enumerate(labels.items()):
        frame.insert(place, name, values)
    return frame


def categories_of(table: "pd.DataFrame", name: str) -> "pd.Categorical":
    """Return a column of labels."""
    return cast("pd.Categorical", table[name].array)


def field_name(column: Hashable) -> str:
    """Return the name of a column as `NAMES` spells it.

    Examples
    --------
    >>> [field_name(name) for name in ("Model Name", "isCorrect", "problem-idx")]
    ['model_name', 'is_correct', 'problem_idx']
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(column).strip())
    return re.sub(r"[\s\-]+", "_", words).lower()


def is_other(column: Hashable, asked: Collection[str] = ()) -> bool:
    """Return whether a column has neither a known name nor one of those that the caller gave."""
    return field_name(column) not in _KNOWN and field_name(column) not in asked


def asked_columns(chosen: Mapping[str, str | None]) -> set[str]:
    """Return the names of all columns that the caller gave, as `NAMES` spells them."""
    names = [name for text in chosen.values() if text for name in (text, *text.split(","))]
    return {field_name(each) for name in names for each in (name, name.partition(".")[0])}


def with_fields(frame: "pd.DataFrame", chosen: Mapping[str, str | None]) -> "pd.DataFrame":
    """Return a table with a column for each field of an object that the caller named.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"model": ["a"], "scores": [{"accuracy": 1}]})
    >>> list(with_fields(frame, {"outcome": "scores.accuracy"})["scores.accuracy"])
    [1]
    """
    for text in chosen.values():
        for name in (text or "").split(","):
            column, *fields = name.strip().split(".")
            if fields and name.strip() not in frame and column in frame:
                values = [reduce(_field, fields, each) for each in column_of(frame, column)]
                frame = frame.assign(**{name.strip(): values})
    return frame


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def as_words(argument: str, value: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return words that were given as a sequence, or as one text separated by commas.

    Parameters
    ----------
    argument : str
        Name of the argument, for the message.
    value : str or iterable of str, optional
        None is no word.

    Returns
    -------
    tuple of str

    Raises
    ------
    DataError
        If it holds something else.

    Examples
    --------
    >>> as_words("pool", "seed, limits.message_limit")
    ('seed', 'limits.message_limit')
    """
    given = value.split(",") if isinstance(value, str) else value or ()
    words = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(word, str) for word in words):
        raise DataError(f"{argument} must be names, or one text with commas; got {value!r}")
    return tuple(word.strip() for word in words if word.strip())


def split_and_pooled(
    split_by: str | Iterable[str] | None, pool: str | Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings that distinguish systems, and those that do not, as :func:`as_words`.

    Raises
    ------
    DataError
        If one is among both.
    """
    split, pooled = as_words("split_by", split_by), as_words("pool", pool)
    both = next((name for name in split if name in pooled), None)
    if both is not None:
        raise DataError(
            f"split_by and pool must name different settings; got {both!r} in both: leave it out "
            "of one of them"
        )
    return split, pooled


def find_columns(frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source) -> Found:
    """Find the roles of the columns of a table.

    Parameters
    ----------
    frame : pandas.DataFrame
        Table.
    chosen : mapping of str to str
        Columns that the caller named, by the keys of `NAMES`: several columns whose values make up
        the system, the question or the trial are separated by commas, and ``group="none"`` means
        no groups. Under ``split_by`` and ``pool``, columns of settings, likewise separated.
    source : Source
        For messages.

    Returns
    -------
    Found

    Raises
    ------
    DataError
        If a column is absent, or several could be meant.
    """
    given: dict[str, Hashable] = {}
    for column in frame.columns:
        given.setdefault(field_name(column), column)
    picked = {
        name: tuple(
            _named(frame, given, each.strip(), name, source)
            # A name may hold a comma.
            for each in ([text] if text in frame else text.split(","))
        )
        for name, text in chosen.items()
        if name in NAMES and text is not None and not (name == "group" and text == NONE)
    }
    for name in ("outcome", "group"):
        if len(picked.get(name, ())) > 1:
            raise DataError(f"{name} must name one column; got {chosen[name]!r}")
    split_by, pool = (_listed(given, chosen.get(name)) for name in ("split_by", "pool"))
    taken = {column for columns in (*picked.values(), split_by) for column in columns}
    free = {name: column for name, column in given.items() if column not in taken}
    present = {
        name: [free[alias] for alias in aliases if alias in free] for name, aliases in NAMES.items()
    }
    total = next(filter(None, map(free.get, TOTALS)), None)
    if total is not None and "outcome" not in picked:
        present["outcome"] = _without_counts(frame, present["outcome"]) or [
            free[alias] for alias in _COUNTS if alias in free
        ]
    found: dict[str, tuple[Hashable, ...]] = {}
    for name in ("system", "trial", "question", "outcome"):
        if name == "question" and not present[name] and name not in picked:
            present[name] = _stand_ins(frame, free, found)
        found[name] = picked[name] if name in picked else _only(frame, name, present[name], source)
    outcome = field_name(found["outcome"][0])
    refuse_lower("outcome", found["outcome"][0])
    used = {column for columns in found.values() for column in columns}
    free = {name: column for name, column in free.items() if column not in used}
    _refuse_metrics(frame, [free[name] for name in METRICS if name in free], source)
    # What else may name a system, as a model its agent, distinguishes systems as settings do.
    telling = SETTINGS.union(NAMES["system"])
    settings = (*split_by, *(free[name] for name in free if name in telling))
    groups = tuple(column for column in present["group"] if column not in used)
    group = picked["group"][0] if "group" in picked else None
    if group is not None:
        groups = (group, *groups)
    return Found(
        system=found["system"],
        question=found["question"],
        outcome=found["outcome"][0],
        trial=found["trial"],
        groups=() if chosen.get("group") == NONE else groups,
        group=group,
        settings=tuple(dict.fromkeys([*settings, *pool])),
        reasons=tuple(free[name] for name in (*ERRORS, *STATUSES) if name in free),
        maximum=None if outcome in _SHARES else next(filter(None, map(free.get, MAXIMA)), None),
        total=total if outcome in _COUNTED and total in free.values() else None,
    )


def _stand_ins(
    frame: "pd.DataFrame",
    free: Mapping[str, Hashable],
    found: Mapping[str, tuple[Hashable, ...]],
) -> list[Hashable]:
    """Return what names the question in a table without a usual column for it, at most one.

    That is a number, unless it counts the rows of all systems; a task; or a benchmark or another
    group with one row for each system, as on leaderboards, if every system has most of them.
    """
    several = any(_varies(column_of(frame, each)) for each in found["system"])
    for name in NUMBERS:
        if name in free and (not several or frame[free[name]].astype(str).duplicated().any()):
            return [free[name]]
    tasks = [free[name] for name in QUESTIONS if name in free]
    if tasks:
        return tasks[:1]
    apart = [free[name] for name in free if name in SETTINGS.union(NAMES["system"])]
    for level in (free[name] for name in NAMES["group"] if name in free):
        columns = dict.fromkeys([*found["system"], level, *found["trial"], *apart])
        texts = [column_of(frame, each).astype(str).tolist() for each in columns]
        n_names = len(found["system"]) + 1
        pairs = set(zip(*texts[:n_names], strict=True))
        times = Counter(pair[:-1] for pair in pairs)
        n_levels = len({pair[-1] for pair in pairs})
        once = len(set(zip(*texts, strict=True))) == len(frame)
        # Else it may group systems, such as open and closed ones.
        if once and 2 * min(times.values(), default=0) > n_levels:
            return [level]
    return []


def _without_counts(frame: "pd.DataFrame", names: Sequence[Hashable]) -> list[Hashable]:
    """Leave out columns that count right answers, where another one has their share."""
    return [name for name in names if not are_counts(column_of(frame, name))] or list(names)


def are_counts(column: "pd.Series") -> bool:
    """Return whether a column holds whole numbers, some of them above 1 unless its name says so."""
    try:
        numbers = outcome_numbers(column, "")
    except DataError:
        return False
    known = numbers[~np.isnan(numbers)]
    counts = len(known) and (known == np.floor(known)).all() and known.min() >= 0.0
    return bool(counts and (field_name(column.name) in _COUNTS or (known > 1.0).any()))


def refuse_lower(argument: str, *names: Hashable) -> None:
    """Raise if columns or a metric are named like some of which the lowest value is best."""
    lower = [repr(str(name)) for name in names if _is_lower(name)]
    if lower:
        it = "it" if len(lower) == 1 else "them"
        remedy = f"leave {it} out, or reverse the values and rename {it}"
        raise DataError(
            f"{argument} must be higher for better systems; got {', '.join(lower)}, of which the "
            "lowest is best",
            in_python=f"{remedy}; for places, use Ballots.from_rankings",
            in_shell=remedy,
        )


def _is_lower(name: Hashable) -> bool:
    spelled = re.sub(r"[\W_]+", "_", field_name(name)).strip("_")
    named = spelled in _PLACES or _LOWER.fullmatch(spelled)
    return bool(named) or not _DOWN.isdisjoint(str(name))


def _refuse_metrics(frame: "pd.DataFrame", columns: Sequence[Hashable], source: Source) -> None:
    """Raise if rows are of several metrics, or of one of which the lowest value is best."""
    for column in columns:
        names = [str(name) for name in column_of(frame, column).dropna().unique()]
        if len(names) > 1:
            raise DataError(
                f"{source.argument} must hold rows of one metric; got {', '.join(names[:3])} in "
                f"the column {str(column)!r}{source.where}: keep the rows of one of them"
            )
        for name in names:
            refuse_lower("metric", name)


def check_settings(chosen: Mapping[str, str | None], frames: "Iterable[pd.DataFrame]") -> None:
    """Raise if a column to split by or to pool is in no table."""
    columns = list(dict.fromkeys(str(name) for frame in frames for name in frame.columns))
    known = {field_name(name) for name in columns}
    for argument in ("split_by", "pool"):
        for name in (chosen.get(argument) or "").split(","):
            if name and field_name(name) not in known:
                raise DataError(
                    f"{argument} must name columns of {', '.join(columns)}; got {name!r}"
                )


def _listed(given: Mapping[str, Hashable], text: str | None) -> list[Hashable]:
    """Return the columns of a list that a table has; others may have the rest."""
    names = map(field_name, (text or "").split(","))
    return [given[name] for name in names if name in given]


def _named(
    frame: "pd.DataFrame", given: Mapping[str, Hashable], column: str, name: str, source: Source
) -> Hashable:
    """Return the column that the caller means."""
    if column in frame:
        return column
    if field_name(column) in given:
        return given[field_name(column)]
    raise DamagedFileError(
        f"{name} must name a column of {', '.join(map(str, frame.columns)) or 'none'}; got "
        f"{column!r}{source.where}"
    )


def _only(
    frame: "pd.DataFrame", name: str, present: Sequence[Hashable], source: Source
) -> tuple[Hashable, ...]:
    """Return the one column that is meant, none where it is optional and absent."""
    if name in ("system", "question") and len(present) > 1:
        present = [each for each in present if _varies(column_of(frame, each))] or present
    if name == "question":
        present = _without_row_ids(frame, present)
    if not present:
        if name in OPTIONAL:
            return ()
        across = _ACROSS.get(name)
        wide = f", or pass wide=True for one column per {across}" if across else ""
        battles = " (of battles model_a, model_b and winner)" if name == "system" else ""
        of_file = name == "system" and source.argument == "paths"
        wide = f" (file or folder if these name it){wide}" if of_file else wide
        if name == "question":
            wide = f" (row if each row is another one, in one order for all systems){wide}"
        one = len(frame.columns) == 1 and DECIMAL_COMMA in frame.attrs  # of a text
        remedy = "separate the columns by commas" if one else f"name it by {name}=...{wide}"
        raise DamagedFileError(
            f"{source.argument} must have a column for the {name}, called "
            f"{', '.join(NAMES[name][:3])} or the like{battles}; got "
            f"{', '.join(map(str, frame.columns)) or 'none'}{source.where}",
            in_python=remedy if one else f"{remedy}, {TO_WHOM}",
            in_shell=remedy,
        )
    first, *others = present
    if name == "question" or field_name(first) != name:  # questions may be texts that recur
        several = (
            "" if name == "outcome" else f", or several as {name}='{','.join(map(str, present))}'"
        )
        for other in others:
            if not _say_the_same(frame, first, other, name):
                raise DataError(
                    f"{source.argument} must have one column for the {name}; got "
                    f"{', '.join(map(str, present))}{source.where}: name the right one by "
                    f"{name}=...{several}"
                )
    return (first,)


def _without_row_ids(frame: "pd.DataFrame", names: Sequence[Hashable]) -> Sequence[Hashable]:
    """Leave out columns that have another value in every row, where one has not.

    Such are the uuids that logs give to every sample: no two systems would share a question.
    """
    if len(names) < 2:
        return names
    return [name for name in names if frame[name].astype(str).duplicated().any()] or names


def _say_the_same(frame: "pd.DataFrame", first: Hashable, other: Hashable, name: str) -> bool:
    """Return whether two columns split the rows alike; of outcomes, whether they are equal."""
    if name == "outcome":
        try:
            one, two = (outcome_numbers(column_of(frame, each), "") for each in (first, other))
        except DataError:
            return False
        return bool(np.array_equal(one, two, equal_nan=True))
    one, two = (_codes(column_of(frame, each)) for each in (first, other))
    n_both = len(np.unique(one * (two.max(initial=0) + 1) + two))
    return n_both == one.max(initial=-1) + 1 == two.max(initial=-1) + 1


def _varies(column: "pd.Series") -> bool:
    return bool((column.astype(str) != str(column.iloc[0])).any()) if len(column) else False


def _codes(column: "pd.Series") -> NDArray[np.int64]:
    return column.astype(str).fillna("").factorize()[0].astype(np.int64)


def pair_codes(one: "pd.Categorical", two: "pd.Categorical") -> NDArray[np.int64]:
    """Return a number for each pair of labels, from which the second follows as the remainder."""
    return one.codes.astype(np.int64) * max(len(two.categories), 1) + two.codes
