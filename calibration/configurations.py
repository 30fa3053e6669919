"""What is measured: every preset, and every method that no preset runs with its defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from bayesrank import METHODS, PRESETS
from bayesrank.checking.coverage import measured_options
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from calibration.worlds import DESIGNS, Generator, Prior, Target

# Scores that take few values (counts of majorities, places, levels of a partial order, the worst
# defeat, at the ends of which most systems may lie): their intervals cannot have 95 %, so they must
# have more rather than less. Methods or, where an option decides it, configurations.
FEW_VALUES = frozenset(
    {
        "copeland",
        "minimax",
        "serial_rank_sign",
        "schulze",
        "ranked_pairs",
        "kemeny_young",
        "nanson",
        "baldwin",
        "majority_judgment",
        "thompson",
    }
)

# Promised for every truth, never to be too low.
CONSERVATIVE = frozenset({"avg"})


@dataclass(frozen=True)
class Configuration:
    """One way of ranking.

    Attributes
    ----------
    name : str
        What it is called in the tables.
    ranker : str
        What :func:`bayesrank.rank` is given.
    method : Method
        Row of the catalog.
    backend : str
        Back end.
    options : mapping
        Further keywords of :func:`bayesrank.rank`.
    naive : bool
        Whether a calibration that is the default is left out, for contrast.
    """

    name: str
    ranker: str
    method: Method
    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)
    naive: bool = False

    def has(self, target: Target, generator: Generator, n_trials: int) -> bool:
        """Return whether there is something to measure for this target and generator."""
        if target == "benchmark" and n_trials < 2:
            return False
        # As in rank(): nothing calibrates these draws for other questions.
        is_likelihood = self.backend in LIKELIHOOD_BACKENDS
        if target == "population" and is_likelihood and self.method.gradient is None:
            return False
        return generator != "prior" or (self.prior is not None and target == "benchmark")

    def options_for(self, target: Target, generator: Generator) -> Mapping[str, Any]:
        """Return the options of a cell: with the sandwich for item models that are wrong.

        Over questions and for some methods it is the default.
        """
        if target != "benchmark" or generator != "beta" or not self._can_be_calibrated:
            return self.options
        return {**self.options, "calibration": "sandwich"}

    @property
    def _can_be_calibrated(self) -> bool:
        """Whether it is no default on a benchmark, but to be had."""
        fits = self.backend in LIKELIHOOD_BACKENDS and self.method.gradient is not None
        return fits and not self.method.is_calibrated

    @property
    def has_ordered_trials(self) -> bool:
        """Whether a model takes the trials for times."""
        if self.method.name != "dynamic_irt":
            return False
        variant = self.method_options.get("variant", self.method.options["variant"].default)
        return variant != "linear"

    @property
    def is_slow(self) -> bool:
        """Whether it samples, or goes through the comparisons one by one."""
        return self.backend == "nuts" or self.method.family == "ratings"

    @property
    def method_options(self) -> dict[str, Any]:
        """Options of the method, those of a preset included."""
        preset = PRESETS.get(self.ranker)
        given = {**(preset.options if preset else {}), **self.options}
        return {name: value for name, value in given.items() if name in self.method.options}

    @property
    def estimand(self) -> str:
        """What is estimated: configurations that share it have the same true score.

        They differ in the calibration of the draws, or in which quantile of a marginal likelihood's
        posterior is the estimate, which changes neither draws nor truth.
        """
        if self.backend != "mml":
            return self.ranker
        options = self.method_options
        options.pop("quantile", None)
        return f"{self.method.name} {sorted(options.items())}"

    @property
    def prior(self) -> Prior | None:
        """Where truths of its own prior come from, None where it supposes no prior of the answers.

        It shrinks towards that prior, so that its intervals have their level over such truths and
        not at a fixed one: closed forms, and the walk, whose steps have a given variance.
        """
        if self.name == "dynamic_irt_state_space":
            return "walk"
        # Of an unbiased estimate the draws suppose no prior.
        if self.backend != "exact" or self.method.functional is not None:
            return None
        return "systems" if self.method.name == "thompson" else "cells"

    def rule(self, quantity: str, target: Target, generator: Generator) -> str:
        """Return what the coverage of a quantity is held to: see the README."""
        if self.naive:
            return "contrast"
        if self.prior is not None and target == "benchmark" and generator != "prior":
            return "fixed truth"
        few = not {self.name, self.method.name}.isdisjoint(FEW_VALUES | CONSERVATIVE)
        return "at least" if few or quantity == "joint ranks" else "nominal"


def configurations() -> list[Configuration]:
    """Return all configurations, in the order of the catalog."""
    found = [
        Configuration(preset.name, preset.name, METHODS[preset.method], preset.backend)
        for preset in PRESETS.values()
        if preset.method in METHODS
    ]
    found += [
        Configuration(name, name, row, row.backends[0], measured_options(row))
        for name, row in METHODS.items()
        if name not in PRESETS and not _is_preset(row)
    ]
    found += [
        Configuration(
            f"{one.name} (naive)",
            one.ranker,
            one.method,
            one.backend,
            {**one.options, "calibration": "none"},
            naive=True,
        )
        for one in found
        if one.method.gradient is not None and one.method.composite
    ]
    order = {name: position for position, name in enumerate(METHODS)}
    return sorted(found, key=lambda one: order[one.method.name])


def n_cells() -> int:
    """Return the number of cells of a whole table."""
    return sum(
        one.has(target, generator, design.n_trials)
        for one in configurations()
        for design in DESIGNS
        for target in get_args(Target)
        for generator in get_args(Generator)
    )


def _is_preset(row: Method) -> bool:
    """Return whether a preset runs a method of the NumPy layer with its default options."""
    options = {name: option.default for name, option in row.options.items()}
    return row.backends[0] not in LIKELIHOOD_BACKENDS and any(
        preset.method == row.name
        and preset.backend == row.backends[0]
        and {**options, **preset.options} == {**options, **row.example}
        for preset in PRESETS.values()
    )
