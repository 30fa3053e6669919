"""Schemes: ordered predicates over signals that map an attempt to a category."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayesrank.rubrics.predicates import names_in, parse_predicate
from bayesrank.validation import check_choice

Scope = Literal["global", "system", "group"]


@dataclass(frozen=True)
class Rule:
    """A category and the condition for it.

    Attributes
    ----------
    category : str
        One of the categories of the scheme.
    when : str
        A predicate, see :mod:`bayesrank.rubrics.predicates`.
    """

    category: str
    when: str

    def __post_init__(self) -> None:
        parse_predicate(self.when)


@dataclass(frozen=True)
class Threshold:
    """A named percentile of a signal, for comparisons in predicates.

    Attributes
    ----------
    signal : str
        The signal.
    percentile : float
        Between 0 and 100, linear between order statistics.
    by : {"global", "system", "group"}, default "group"
        Percentile over all attempts, over those of each system, or over those on each group of
        questions (dataset).
    where : str, default ""
        Predicate that selects the attempts that count; empty for all.
    """

    signal: str
    percentile: float
    by: Scope = "group"
    where: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.percentile <= 100:
            raise ValueError(f"percentile must be between 0 and 100; got {self.percentile!r}")
        check_choice("by", self.by, Scope)
        if self.where:
            parse_predicate(self.where)


@dataclass(frozen=True)
class Scheme:
    """A declarative map from signals to categories.

    The first rule that holds decides, so write specific rules first.

    Attributes
    ----------
    name : str
        Name of the scheme.
    categories : tuple of str
        Labels of categories 0, 1, ...
    rules : tuple of Rule
        In the order of evaluation.
    otherwise : str, optional
        Category of attempts for which no rule holds; without it, such an attempt is an error.
    weights : tuple of float, optional
        Worth of each category; without them, the user of the scheme must give them.
    exclusive : bool, default False
        Whether two rules that hold for one attempt are an error.
    thresholds : mapping of str to Threshold
        Names of percentiles of signals.
    predicates : mapping of str to str
        Names of predicates.
    title, source : str
        Its purpose in one line, and its publication.

    Examples
    --------
    >>> Scheme("format", ("wrong", "loose", "neat"), (
    ...     Rule("neat", "is_correct and has_box"),
    ...     Rule("loose", "is_correct"),
    ... ), otherwise="wrong").signals
    ('is_correct', 'has_box')
    """

    name: str
    categories: tuple[str, ...]
    rules: tuple[Rule, ...]
    otherwise: str | None = None
    weights: tuple[float, ...] | None = None
    exclusive: bool = False
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    predicates: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if len(self.categories) < 2 or len(set(self.categories)) != len(self.categories):
            raise ValueError(
                f"categories of {self.name} must be two or more different labels; "
                f"got {self.categories}"
            )
        if not self.rules:
            raise ValueError(f"rules of {self.name} must be one or more; got none")
        used = [rule.category for rule in self.rules]
        used += [self.otherwise] if self.otherwise is not None else []
        for category in used:
            if category not in self.categories:
                raise ValueError(
                    f"rules of {self.name} must name one of its categories "
                    f"{', '.join(self.categories)}; got {category!r}"
                )
        if self.weights is not None and (
            len(self.weights) != len(self.categories) or not np.isfinite(self.weights).all()
        ):
            raise ValueError(
                f"weights of {self.name} must be {len(self.categories)} finite numbers; "
                f"got {self.weights}"
            )
        self._check_cycles()

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that the scheme reads, in order of use."""
        found: dict[str, None] = {}
        for rule in self.rules:
            self._collect(rule.when, found)
        return tuple(found)

    def _collect(self, text: str, found: dict[str, None]) -> None:
        for name in names_in(parse_predicate(text)):
            if name in self.predicates:
                self._collect(self.predicates[name], found)
            elif name in self.thresholds:
                threshold = self.thresholds[name]
                found.setdefault(threshold.signal)
                if threshold.where:
                    self._collect(threshold.where, found)
            else:
                found.setdefault(name)

    def _check_cycles(self) -> None:
        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                raise ValueError(
                    f"predicates of {self.name} must not refer to themselves; "
                    f"got {' -> '.join((*path, name))}"
                )
            text = self.predicates.get(name) or ""
            if name in self.thresholds:
                text = self.thresholds[name].where
            if text:
                for inner in names_in(parse_predicate(text)):
                    visit(inner, (*path, name))

        for name in (*self.predicates, *self.thresholds):
            visit(name, ())


def read_schemes(path: str | Path) -> dict[str, Scheme]:
    """Read schemes from a TOML file.

    Every table under ``schemes`` is one scheme: ``categories``, ``rules`` (tables with
    ``category`` and ``when``), and optionally ``otherwise``, ``weights``, ``exclusive``,
    ``title``, ``source`` and the tables ``thresholds`` and ``predicates``. All schemes of the file
    can use the top-level tables ``predicates`` and ``thresholds``. The key ``by`` of a scheme
    applies to its thresholds without one.

    Parameters
    ----------
    path : str or pathlib.Path
        The file.

    Returns
    -------
    dict of str to Scheme

    Raises
    ------
    ValueError
        If the file does not have this form.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"path must hold schemes in TOML; got {str(path)!r}: {error}") from error
    return parse_schemes(content)


def parse_schemes(content: Mapping[str, Any]) -> dict[str, Scheme]:
    """Build schemes from the content of a file; see :func:`read_schemes`."""
    _check_keys(content, ("predicates", "thresholds", "schemes"), "the file")
    predicates, thresholds = content.get("predicates", {}), content.get("thresholds", {})
    for label, threshold in thresholds.items():
        _check_keys(threshold, _THRESHOLD_KEYS, label)
    for text in predicates.values():  # includes those that no scheme uses
        parse_predicate(text)
    return {
        name: _parse_scheme(name, record, predicates, thresholds)
        for name, record in content.get("schemes", {}).items()
    }


_KEYS = (
    "categories",
    "rules",
    "otherwise",
    "weights",
    "exclusive",
    "by",
    "thresholds",
    "predicates",
    "title",
    "source",
)
_THRESHOLD_KEYS = ("signal", "percentile", "by", "where")


def _parse_scheme(
    name: str,
    record: Mapping[str, Any],
    shared_predicates: Mapping[str, str],
    shared_thresholds: Mapping[str, Any],
) -> Scheme:
    _check_keys(record, _KEYS, name)
    for key in ("categories", "rules"):
        if key not in record:
            raise ValueError(f"{key} must be given for the scheme {name}; got none")
    for rule in record["rules"]:
        _check_keys(rule, ("category", "when"), f"a rule of {name}", needed=True)
    own_thresholds, own_predicates = record.get("thresholds", {}), record.get("predicates", {})
    for label, threshold in own_thresholds.items():
        _check_keys(threshold, _THRESHOLD_KEYS, f"{label} of {name}")
    by = {"by": record["by"]} if "by" in record else {}
    thresholds = {
        label: Threshold(**{**by, **threshold})
        for label, threshold in {**shared_thresholds, **own_thresholds}.items()
    }
    predicates = {**shared_predicates, **own_predicates}
    rules = tuple(Rule(**rule) for rule in record["rules"])
    kept = _used(rules, predicates, thresholds).union(own_thresholds, own_predicates)
    weights = record.get("weights")
    return Scheme(
        name=name,
        categories=tuple(record["categories"]),
        rules=rules,
        otherwise=record.get("otherwise"),
        weights=None if weights is None else tuple(map(float, weights)),
        exclusive=record.get("exclusive", False),
        thresholds={label: one for label, one in thresholds.items() if label in kept},
        predicates={label: text for label, text in predicates.items() if label in kept},
        title=record.get("title", ""),
        source=record.get("source", ""),
    )


def _used(
    rules: Sequence[Rule], predicates: Mapping[str, str], thresholds: Mapping[str, Threshold]
) -> set[str]:
    """Return the names that rules use, directly or through other names."""
    used: set[str] = set()
    texts = [rule.when for rule in rules]
    while texts:
        for name in set(names_in(parse_predicate(texts.pop()))) - used:
            used.add(name)
            text = thresholds[name].where if name in thresholds else predicates.get(name, "")
            texts += [text] if text else []
    return used


def _check_keys(
    record: Mapping[str, Any], known: Sequence[str], where: str, *, needed: bool = False
) -> None:
    for key in record:
        if key not in known:
            raise ValueError(f"keys of {where} must be among {', '.join(known)}; got {key!r}")
    if needed and (missing := [key for key in known if key not in record]):
        raise ValueError(f"{where} must have the keys {', '.join(known)}; got no {missing[0]!r}")
