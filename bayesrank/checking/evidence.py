"""Whether the data can answer the question: who was asked what, and how often."""

from collections.abc import Iterator

import numpy as np

from bayesrank.checking.design import Design, list_some
from bayesrank.checking.runs import RunSpread, has_runs, run_effects
from bayesrank.checking.verdicts import Finding
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

# Pairs of systems that share less of the questions that either was asked are on different ones.
SAME_QUESTIONS = 0.95

# The accuracy over fewer outcomes has a standard error of up to 0.09.
FEW_OUTCOMES = 30

# Above this ratio of standard deviations, intervals are less than two thirds as wide as they should
# be.
_MUCH_SPREAD = 1.5


def check_evidence(
    design: Design, data: Responses | Comparisons | Ballots | None, *, random_seed: int | None
) -> Iterator[Finding]:
    """Yield what there is to say on the data, whatever they are ranked by.

    Parameters
    ----------
    design : Design
        Who was asked what.
    data : Responses, Comparisons or Ballots, optional
        What was ranked; runs cannot be compared without.
    random_seed : int, optional
        Of permutations.

    Yields
    ------
    Finding
    """
    found = [
        *_never_compared(design),
        *_different_questions(design),
        *_few_outcomes(design),
        *_always_alike(design),
    ]
    yield from found or [_enough(design)]
    yield from _check_runs(design, data, random_seed)


def _enough(design: Design) -> Finding:
    fewest = float(design.sizes.min())
    where = "" if design.trials is None else " on the same questions"
    return Finding(
        "data",
        "good",
        f"Every system has {fewest:,.0f} {design.unit}s or more{where}, and not all alike.",
        {"fewest": fewest},
        "enough",
    )


def _never_compared(design: Design) -> Iterator[Finding]:
    first, second = np.nonzero(np.triu(~design.met, 1))
    if not len(first):
        return
    n_pairs = len(design.systems) * (len(design.systems) - 1) // 2
    pair = [design.systems[i] for i in (first[0], second[0])]
    place = {"outcome": "on any question", "battle": "in a battle", "ballot": "on any ballot"}
    yield Finding(
        "data",
        "doubtful",
        f"{pair[0]} and {pair[1]} never met {place[design.unit]} ({len(first)} of {n_pairs} pairs "
        f"of systems): their order rests on comparisons with others. Gather {design.unit}s of "
        "both.",
        {"pairs": len(first), "of": n_pairs, "example": pair},
        "never compared",
    )


def _different_questions(design: Design) -> Iterator[Finding]:
    if design.trials is None or len(design.systems) < 2:
        return
    asked = (design.trials > 0).astype(np.float32)
    shared = asked @ asked.T
    either = asked.sum(axis=1)[:, np.newaxis] + asked.sum(axis=1) - shared
    first, second = np.triu_indices(len(asked), 1)
    share = shared[first, second] / np.maximum(either[first, second], 1)
    n_different = int((share < SAME_QUESTIONS).sum())
    if not n_different:
        return
    worst = int(share.argmin())
    pair = [design.systems[i] for i in (first[worst], second[worst])]
    both, all_ = (int(part[first[worst], second[worst]]) for part in (shared, either))
    others = ""
    if len(share) > 1:
        others = f", and {n_different} of {len(share)} pairs less than {100 * SAME_QUESTIONS:g} %"
    yield Finding(
        "data",
        "doubtful",
        f"Systems were asked different questions: {pair[0]} and {pair[1]} share {both} of {all_} "
        f"({100 * both / max(all_, 1):.0f} %){others}. A difference may come from the "
        "questions, unless the method allows for their difficulty. Run what is missing, or rank "
        "on the shared questions.",
        {
            "smallest_share": float(share[worst]),
            "pair": pair,
            "pairs": n_different,
            "of": len(share),
            "limit": SAME_QUESTIONS,
        },
        "different questions",
    )


def _few_outcomes(design: Design) -> Iterator[Finding]:
    few = design.sizes < FEW_OUTCOMES
    if not few.any():
        return
    order = np.argsort(design.sizes, kind="stable")[: np.count_nonzero(few)]
    sizes = {design.systems[i]: float(design.sizes[i]) for i in order}
    named = [f"{name} has {size:g}" for name, size in sizes.items()]
    none = min(sizes.values()) == 0
    yield Finding(
        "data",
        "bad" if none else "doubtful",
        f"There are fewer than {FEW_OUTCOMES} {design.unit}s of {len(sizes)} of "
        f"{len(design.systems)} systems ({list_some(named)}): they say little. Gather more.",
        {"systems": sizes, "limit": FEW_OUTCOMES},
        "few outcomes",
    )


def _always_alike(design: Design) -> Iterator[Finding]:
    alike = ~design.varied & (design.sizes > 0)
    if not alike.any():
        return
    names = design.names(alike)
    fewest = float(design.sizes[alike].min())
    # The rule of three, exactly: the upper 95 % bound of a chance of which nothing was seen.
    bound = 1.0 - 0.05 ** (1.0 / fewest)
    always = {
        "battle": "won every battle or lost every battle",
        "ballot": "came first on every ballot or last on every ballot",
    }
    answers = "always right or always wrong" if design.binary else "always the same"
    what = always.get(design.unit, f"{'was' if len(names) == 1 else 'were'} {answers}")
    yield Finding(
        "data",
        "doubtful",
        f"{list_some(names)} {what}. What was never seen in {fewest:g} {design.unit}s may "
        f"still have a chance of {100 * bound:.2g} %, and the interval rests on that allowance. "
        "Gather more.",
        {"systems": names, "fewest": fewest, "largest_unseen_chance": bound},
        "always alike",
    )


def _check_runs(
    design: Design, data: Responses | Comparisons | Ballots | None, random_seed: int | None
) -> Iterator[Finding]:
    if design.trials is None:
        return
    if design.trials.max() < 2:
        yield Finding(
            "data",
            "not measured",
            "Every question has a single trial of each system: how much answers vary from run to "
            "run does not show. Repeat some runs.",
            {"trials": 1},
            "single trials",
        )
    elif not isinstance(data, Responses):
        yield Finding(
            "data",
            "not measured",
            "The result does not hold single trials, so that runs cannot be compared: check it "
            "together with the data.",
            name="runs",
        )
    elif not has_runs(data):
        yield Finding(
            "data",
            "not measured",
            "The trials of every question are sorted by their outcome, so that runs cannot be "
            "compared: keep the order in which they were run.",
            name="runs",
        )
    else:
        yield _judge_runs(run_effects(data, random_seed=random_seed))


def _judge_runs(found: list[RunSpread]) -> Finding:
    if not found:
        return Finding("data", "good", "Runs vary no more than independent trials do.", name="runs")
    worst = found[0]
    ratio = worst.observed / worst.expected
    names = list(dict.fromkeys(one.system for one in found))
    where = "" if worst.group is None else f" on {worst.group}"
    runs = [
        {
            "system": one.system,
            "group": one.group,
            "run_sd": one.observed,
            "independent_sd": one.expected,
            "p_value": one.p_value,
        }
        for one in found
    ]
    return Finding(
        "data",
        "bad" if ratio > _MUCH_SPREAD else "doubtful",
        f"Runs of {list_some(names)} vary more than independent trials do: the mean of a run of "
        f"{worst.system}{where} has a standard deviation of {worst.observed:.3f}, independent "
        f"trials {worst.expected:.3f}. Intervals take trials as independent, and may be "
        f"{ratio:.1f} times too narrow. Take the run as the unit: rank the means of the runs, one "
        "outcome each, with target='population'.",
        {"systems": names, "ratio": ratio, "runs": runs},
        "runs",
    )
