"""The findings of a check, in words and in numbers."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bayesrank.display import to_html
from bayesrank.printable import listing

Topic = Literal["sampling", "data", "identification", "fit", "calibration"]
Verdict = Literal["does not apply", "good", "not measured", "doubtful", "bad"]

TOPICS: tuple[Topic, ...] = ("sampling", "data", "identification", "fit", "calibration")

# From best to worst; the verdict of a topic is the worst one.
VERDICTS: tuple[Verdict, ...] = ("does not apply", "good", "not measured", "doubtful", "bad")

# What a check measures, where its name does not say it.
_MEASURED = {
    "runs": "variation between runs",
    "prior": "influence of the prior",
    "coverage": "coverage of the intervals",
    "win rates": "fit of the win rates",
}

# Verdicts after which a result should be read with caution.
_CAUTION = frozenset({"doubtful", "bad"})


@dataclass(frozen=True)
class Finding:
    """One finding of a check.

    Attributes
    ----------
    topic : {"sampling", "data", "identification", "fit", "calibration"}
        Its topic.
    verdict : {"good", "does not apply", "not measured", "doubtful", "bad"}
        Its verdict.
    sentence : str
        The finding in words, with the remedy if there is one.
    numbers : mapping
        Numbers and names of systems behind the verdict, by name.
    name : str
        Name of the check, in a word or two.
    """

    topic: Topic
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Report:
    """The findings of :func:`bayesrank.checking.check`.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of the topics.
    """

    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        """Iterate over the findings."""
        return iter(self.findings)

    def about(self, name: str) -> tuple[Finding, ...]:
        """Return the findings of a name, such as "runs"."""
        return tuple(one for one in self.findings if one.name == name)

    def verdict(self, topic: Topic) -> Verdict:
        """Return the worst verdict on a topic, "not measured" if nothing was found on it.

        Topics are sampling, data, identification, fit and calibration; verdicts, from the best
        to the worst, does not apply, good, not measured, doubtful and bad.
        """
        found = [VERDICTS.index(one.verdict) for one in self.findings if one.topic == topic]
        return VERDICTS[max(found)] if found else "not measured"

    @property
    def trustworthy(self) -> bool:
        """Whether no finding is bad or doubtful."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are bad or doubtful, the bad ones first."""
        found = [one for one in self.findings if one.verdict in _CAUTION]
        return tuple(sorted(found, key=lambda one: VERDICTS.index(one.verdict), reverse=True))

    @property
    def unmeasured(self) -> str:
        """A sentence on what was not measured, empty if everything was."""
        found = [one.name for one in self.findings if one.verdict == "not measured"]
        names = dict.fromkeys(_MEASURED.get(name, name) for name in found)
        return f"Not measured: {listing(names, len(names))}." if names else ""

    @property
    def summary(self) -> str:
        """One line: the worst warning, the number of others, and what was not measured."""
        worst = "no warnings."
        if self.warnings:
            first, *others = self.warnings
            worst = f"{first.topic} {first.verdict}. {first.sentence}"
            if others:
                worst += f" ({len(others)} more warning{'s' * (len(others) > 1)})"
        return " ".join(filter(None, ("Check:", worst, self.unmeasured)))

    def reworded(self, translate: Callable[[str], str]) -> "Report":
        """Return the report with every sentence translated, such as arguments into flags."""
        return Report(
            tuple(replace(one, sentence=translate(one.sentence)) for one in self.findings)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts by topic and the findings, as JSON can hold them.

        Examples
        --------
        >>> Report((Finding("fit", "good", "Fine."),)).to_dict()["verdicts"]["fit"]
        'good'
        """
        return {
            "trustworthy": self.trustworthy,
            "verdicts": {topic: self.verdict(topic) for topic in TOPICS},
            "findings": [
                {
                    "topic": one.topic,
                    "name": one.name,
                    "verdict": one.verdict,
                    "sentence": one.sentence,
                    "numbers": _finite(one.numbers),
                }
                for one in self.findings
            ],
        }

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        """Return one line per finding."""
        return "\n".join(f"{one.topic} {one.verdict}: {one.sentence}" for one in self.findings)

    def _repr_html_(self) -> str | None:
        return to_html("check_html", self)


def _finite(value: Any) -> Any:
    """Return numbers for JSON: null for those that are not finite."""
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
