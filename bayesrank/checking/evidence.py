"""Check the data: which systems were asked which questions, how often, and in which runs."""

from collections.abc import Iterator

import numpy as np

from bayesrank.checking.design import Design
from bayesrank.checking.runs import RunSpread, has_runs, run_effects
from bayesrank.checking.verdicts import Finding
from bayesrank.printable import listing
from bayesrank.responses import Responses
from bayesrank.results.summary import FEW_SHARE, is_little, least_outcomes
from bayesrank.views import Ballots, Comparisons

# Two systems have different questions if they share less than this part of the questions of either.
SAME_QUESTIONS = 0.95

# Above this ratio of standard deviations, intervals have less than two thirds of their right width.
_MUCH_SPREAD = 1.5


def check_evidence(
    design: Design,
    data: Responses | Comparisons | Ballots | None,
    *,
    ci_prob: float = 0.95,
    unit: str = "trial",
    random_seed: int | None = 0,
) -> Iterator[Finding]:
    """Yield the findings on the data, which do not depend on the method.

    Runs can be compared only if `data` are given. The seed is that of permutations.
    """
    found = [
        *_never_compared(design),
        *_different_questions(design),
        *_few_outcomes(design, ci_prob),
        *_always_alike(design),
    ]
    yield from found or [_enough(design)]
    yield from _check_runs(design, data, unit, random_seed)


def _enough(design: Design) -> Finding:
    fewest = float(design.sizes.min())
    where = "" if design.trials is None else " on the same questions"
    return Finding(
        "data",
        "good",
        f"Every system has at least {fewest:,.0f} {design.unit}s{where}, which are not all alike.",
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
        f"of systems): their order depends on comparisons with others. Gather {design.unit}s of "
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
        "questions, unless the method allows for their difficulty, as the default and item "
        "response models do. Run the missing questions, or rank on the shared questions.",
        {
            "smallest_share": float(share[worst]),
            "pair": pair,
            "pairs": n_different,
            "of": len(share),
            "limit": SAME_QUESTIONS,
        },
        "different questions",
    )


def _few_outcomes(design: Design, ci_prob: float) -> Iterator[Finding]:
    least = least_outcomes(ci_prob)
    asked = [] if design.trials is None else [np.count_nonzero(design.trials, axis=1)]
    few = is_little(design.sizes, *asked, least=least)
    if not few.any():
        return
    order = [i for i in np.argsort(design.sizes, kind="stable") if few[i]]
    sizes = {design.systems[i]: float(design.sizes[i]) for i in order}
    median = float(np.median(design.sizes))
    named = [f"{name} has {size:g}" for name, size in sizes.items()]
    yield Finding(
        "data",
        "bad" if min(sizes.values()) == 0 else "doubtful",
        f"{len(sizes)} of {len(design.systems)} systems have few {design.unit}s "
        f"({listing(named)}; the median is {median:g}). Gather more.",
        {"systems": sizes, "least": least, "median": median, "least_share": FEW_SHARE},
        "few outcomes",
    )


def _always_alike(design: Design) -> Iterator[Finding]:
    alike = ~design.varied & (design.sizes > 0)
    if not alike.any():
        return
    names = design.names(alike)
    fewest = float(design.sizes[alike].min())
    # The exact rule of three: the upper 95 % bound of a chance of an event that was never observed.
    bound = 1.0 - 0.05 ** (1.0 / fewest)
    always = {
        "battle": "had the same result in every battle",
        "ballot": "came first on every ballot or last on every ballot",
    }
    answers = "always right or always wrong" if design.binary else "always the same"
    what = always.get(design.unit, f"{'was' if len(names) == 1 else 'were'} {answers}")
    yield Finding(
        "data",
        "doubtful",
        f"{listing(names)} {what}. An event that was never observed in {fewest:g} "
        f"{design.unit}{'s' * (fewest != 1)} may still have a chance of {100 * bound:.2g} % (rule "
        "of three), and the interval allows for this. Gather more.",
        {"systems": names, "fewest": fewest, "largest_unseen_chance": bound},
        "always alike",
    )


def _check_runs(
    design: Design,
    data: Responses | Comparisons | Ballots | None,
    unit: str,
    random_seed: int | None,
) -> Iterator[Finding]:
    if design.trials is None:
        return
    if design.trials.max() < 2:
        yield Finding(
            "data",
            "not measured",
            "Every question has a single trial of each system, which does not show how answers "
            "vary from run to run. Repeat some runs.",
            {"trials": 1},
            "runs",
        )
    elif not isinstance(data, Responses):
        yield Finding(
            "data",
            "not measured",
            "The result does not hold single trials, which the comparison of runs needs: check it "
            "together with the data.",
            name="runs",
        )
    elif not has_runs(data):
        yield Finding(
            "data",
            "not measured",
            "The trials of every question are sorted by their outcome, so that runs cannot be "
            "compared: keep trials in the order of the runs.",
            name="runs",
        )
    else:
        yield _judge_runs(run_effects(data, random_seed=random_seed), unit)


def _judge_runs(found: list[RunSpread], unit: str) -> Finding:
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
    sentence = (
        f"Runs of {listing(names)} vary more than independent trials do: the mean of a run of "
        f"{worst.system}{where} has a standard deviation of {worst.observed:.3g}, independent "
        f"trials {worst.expected:.3g}."
    )
    numbers = {"systems": names, "ratio": ratio, "runs": runs}
    if "run" in unit.split(","):
        sentence = f"{sentence} The intervals take the run as the unit."
        return Finding("data", "good", sentence, numbers, "runs")
    return Finding(
        "data",
        "bad" if ratio > _MUCH_SPREAD else "doubtful",
        f"{sentence} The intervals take trials as independent, and may be {ratio:.1f} times too "
        "narrow. Take the run as the unit: unit='run', for likelihoods and resampled scores.",
        numbers,
        "runs",
    )
