"""Reader of inspect_ai logs, ``.eval`` and ``.json``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from bayesrank.errors import DataError
from bayesrank.readers.inspect_files import Sample, Spec, read_samples, read_spec
from bayesrank.readers.log_table import COLUMNS, RENAME_ONE, LogTable, build_table
from bayesrank.readers.outcome_values import outcome_number
from bayesrank.readers.selection import Selection, choose

# Coordinates of a sample beside its outcome.
DETAILS = ("limit", "error")


@dataclass
class Run:
    """One run of one system, gathered from its log and the logs of its retries."""

    questions: list[str] = field(default_factory=list)
    n_epochs: int = 1
    samples: dict[tuple[str, int], Sample] = field(default_factory=dict)

    def add(self, spec: Spec, samples: Iterable[Sample]) -> None:
        """Add a log; what a later attempt scored again replaces what an earlier one had."""
        found = []
        for sample in samples:
            cell = (sample.question, sample.epoch)
            found.append(sample.question)
            if sample.values or cell not in self.samples:
                self.samples[cell] = sample
        self.questions = list(dict.fromkeys([*self.questions, *spec.questions, *found]))
        epochs = [epoch for _, epoch in self.samples]
        self.n_epochs = max(self.n_epochs, spec.n_epochs, *epochs)


def read_inspect(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the samples of one task and scorer.

    The system is the model; epochs are trials, and further logs of a model on the task add trials
    in the order of their creation. Logs with one ``task_id`` are attempts of one run, which counts
    once. Epochs are independent, so trials are not paired. ``C``, ``P``, ``I`` and ``N`` are worth
    1, 0.5, 0 and 0. Samples that failed, were invalidated or not scored, and those that the header
    announces but the log does not hold, are missing. The columns limit and error say what ended a
    sample, and are empty where nothing did.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Logs.
    selection : Selection
        May name a task, a scorer and, for scorers that give several named values, a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, two logs of one model were run with different settings, or a log
        is damaged.
    """
    import pandas as pd  # 0.3 s, only when a log is read

    specs = [read_spec(path) for path in paths]
    task = choose("task", (spec.task for spec in specs), selection.task)
    specs = sorted((spec for spec in specs if spec.task == task), key=lambda spec: spec.created)
    _check_settings(specs)
    systems: dict[str, dict[str, Run]] = {}
    for spec in specs:
        run = systems.setdefault(spec.model, {}).setdefault(spec.run, Run())
        run.add(spec, read_samples(spec.path))
    every_run = [run for runs in systems.values() for run in runs.values()]
    samples = [sample for run in every_run for sample in run.samples.values()]
    where = f" for task {task!r}"
    scorers = [name for sample in samples for name in sample.values]
    if not scorers:
        raise DataError(
            f"paths must hold scored samples; got {len(samples)} without a score{where}: run "
            "'inspect score' first"
        )
    scorer = choose("scorer", scorers, selection.scorer, where)
    metric = _choose_metric([sample.values.get(scorer) for sample in samples], scorer, selection)
    columns = pd.Index([*COLUMNS, *DETAILS])
    frame = pd.DataFrame(_rows(systems, scorer, metric), columns=columns)
    return build_table(frame, "inspect", paired=False, details=DETAILS)


def _rows(
    systems: dict[str, dict[str, Run]], scorer: str, metric: str | None
) -> Iterator[tuple[str, str, int, float, str, str]]:
    """Yield system, question, trial, outcome and details of every sample that should exist."""
    for system, runs in systems.items():
        n_trials = 0
        for run in runs.values():
            for epoch, question in product(range(1, run.n_epochs + 1), run.questions):
                sample = run.samples.get((question, epoch))
                value = sample.values.get(scorer) if sample else None
                where = f"scorer {scorer!r}, system {system!r}, sample {question!r}, epoch {epoch}"
                if metric is not None and value is not None:
                    value = _named_value(value, metric, where)
                outcome = outcome_number(value, where)
                limit, error = (sample.limit, sample.error) if sample else ("", "")
                yield system, question, n_trials + epoch - 1, outcome, limit, error
            n_trials += run.n_epochs


def _choose_metric(values: list[object], scorer: str, selection: Selection) -> str | None:
    """Return the named value to read, None for a scorer that gives single values."""
    for value in values:
        if isinstance(value, list):
            raise DataError(
                f"scorer must give single or named values; got the list {value!r} for {scorer!r} "
                "(pass scorer=... with another one)"
            )
    names = [name for value in values if isinstance(value, dict) for name in value]
    if names:
        return choose("metric", names, selection.metric, f" for scorer {scorer!r}")
    if selection.metric is not None:
        raise DataError(
            f"metric must be left out for scorer {scorer!r}, which gives single values; got "
            f"{selection.metric!r}"
        )
    return None


def _named_value(value: object, metric: str, where: str) -> object:
    if isinstance(value, dict):
        return value.get(metric)
    # A scorer that fails gives NaN in place of its named values.
    if isinstance(value, float) and value != value:
        return None
    raise DataError(f"outcome must be named values in all samples; got {value!r} for {where}")


def _check_settings(specs: list[Spec]) -> None:
    """Refuse logs of one model that were run with different settings."""
    first: dict[str, Spec] = {}
    for spec in specs:
        known = first.setdefault(spec.model, spec)
        for name, setting in spec.settings.items():
            if setting != known.settings[name]:
                raise DataError(
                    f"paths must hold one system per model name; got different {name} for "
                    f"{spec.model!r} in {known.path.name} and {spec.path.name}",
                    **RENAME_ONE,
                )
