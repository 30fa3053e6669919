"""The shipped schemes against the published tables, stated in NumPy line by line.

[D] is arXiv:2510.04265, Table 5, with thresholds per dataset; [R] is arXiv:2603.10960, Table 21,
with thresholds per model. Nothing here reads the file that ships.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from bayesrank.rubrics import SCHEMES, Scheme, classify, rubric_responses

Array = NDArray[Any]
N_ATTEMPTS = 2000


def simulate(seed: int) -> pd.DataFrame:
    """Simulate attempts of five models on three datasets.

    Signals are rounded, so that many of them equal a threshold or each other; completions are
    surer where they are right, so that percentiles among some attempts are not those among all.
    """
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "model": rng.choice(list("vwxyz"), N_ATTEMPTS),
            "group": rng.choice(["one", "two", "three"], N_ATTEMPTS, p=[0.6, 0.3, 0.1]),
            "question": np.arange(N_ATTEMPTS),
        }
    )
    # Models and datasets differ, or thresholds per model would do for those per dataset.
    shift = table["model"].map(dict(zip("vwxyz", range(5), strict=True))) / 10
    shift += table["group"].map({"one": 0.0, "two": 0.3, "three": 0.6})
    for name in ("is_correct", "has_box"):
        table[name] = rng.choice([0.0, 0.5, 1.0], N_ATTEMPTS, p=[0.45, 0.1, 0.45])
    table["repeated_pattern"] = (rng.random(N_ATTEMPTS) < 0.1).astype(int)
    for name in ("token_ratio", "prompt_bpt", "completion_bpt"):
        table[name] = (rng.random(N_ATTEMPTS) + shift).round(2)
    table["completion_bpt"] -= 0.3 * table["is_correct"]
    labels = rng.multinomial(10, [0.5, 0.3, 0.2], N_ATTEMPTS) / 10
    table[["compass_A", "compass_B", "compass_C"]] = labels
    return table


def by(keys: Array, values: Array, percent: float, where: Array | None = None) -> Array:
    """Return for each attempt the percentile among the attempts with its key that are counted."""
    counted = np.ones(len(keys), dtype=bool) if where is None else where
    cut = {key: np.percentile(values[(keys == key) & counted], percent) for key in np.unique(keys)}
    return np.array([cut[key] for key in keys])


class Predicates(NamedTuple):
    """The published predicates, each of shape (attempt,)."""

    invalid: Array
    correct: Array
    wrong: Array
    high_conf: Array
    low_conf: Array
    wrong_high_conf: Array
    ood: Array
    ind: Array
    economical: Array
    moderate: Array
    verbose: Array
    boxed: Array
    unboxed: Array
    A_high: Array


def predicates(table: pd.DataFrame, keys: Array) -> Predicates:
    s = {name: table[name].to_numpy() for name in table}
    bpt, prompt, tokens = s["completion_bpt"], s["prompt_bpt"], s["token_ratio"]
    correct = s["is_correct"] >= 0.5
    tau_high = by(keys, bpt, 40)
    tau_low_wrong = by(keys, bpt, 60, ~correct)
    tau_prompt = by(keys, prompt, 90)
    p33, p66 = by(keys, tokens, 33), by(keys, tokens, 66)
    return Predicates(
        invalid=(s["repeated_pattern"] == 1) | (s["compass_C"] >= 0.5),
        correct=correct,
        wrong=s["is_correct"] < 0.5,
        high_conf=bpt <= tau_high,
        low_conf=bpt > tau_high,
        wrong_high_conf=~correct & (bpt <= tau_low_wrong),
        ood=prompt >= tau_prompt,
        ind=prompt < tau_prompt,
        economical=tokens <= p33,
        moderate=(tokens > p33) & (tokens <= p66),
        verbose=tokens > p66,
        boxed=s["has_box"] >= 0.5,
        unboxed=s["has_box"] < 0.5,
        A_high=s["compass_A"] >= 0.6,
    )


def first(*conditions: tuple[Array, int], otherwise: int = -1) -> Array:
    """Return for each attempt the number beside the first condition that holds."""
    return np.select([c for c, _ in conditions], [number for _, number in conditions], otherwise)


def table_5_of_d(t: pd.DataFrame) -> dict[str, Array]:
    """State the twelve schemata of [D]."""
    keys = t["group"].to_numpy()
    p = predicates(t, keys)
    invalid = (p.invalid, 0)
    bpt = t["completion_bpt"].to_numpy()
    corr_p33, corr_p66 = by(keys, bpt, 33, p.correct), by(keys, bpt, 66, p.correct)
    length = {1: p.economical, 2: p.moderate, 3: p.verbose}
    plain = first(invalid, (p.wrong, 1), (p.correct, 2))
    return {
        "exact_match": plain,
        "format_aware_2025": first(
            invalid,
            (p.wrong & p.unboxed, 1),
            (p.wrong & p.boxed, 2),
            (p.correct & p.unboxed, 3),
            (p.correct & p.boxed, 4),
        ),
        "conf_calibrated": first(
            invalid,
            (p.wrong_high_conf, 2),
            (p.wrong & p.low_conf, 1),
            (p.wrong, 1),  # what the table leaves out
            (bpt <= corr_p33, 5),
            (bpt <= corr_p66, 4),
            otherwise=3,
        ),
        "ood_robustness": first(
            invalid,
            (p.ood & p.wrong, 1),
            (p.ind & p.wrong, 2),
            (p.ood & p.correct, 3),
            (p.ind & p.correct, 4),
        ),
        "strict_compliance": first(
            invalid, (p.wrong | (p.correct & p.unboxed), 1), (p.correct & p.boxed, 2)
        ),
        "conf_wrong_penalty": first(
            invalid,
            (p.wrong_high_conf, 1),
            (p.wrong & p.low_conf, 2),
            (p.correct, 3),
            otherwise=1,  # what the table leaves out
        ),
        "verifier_only_2025": first(
            invalid, (p.A_high, 3), (t["compass_B"].to_numpy() >= 0.6, 2), otherwise=1
        ),
        "format_confidence": first(
            invalid,
            (p.wrong & p.unboxed, 1),
            (p.wrong & p.boxed & p.low_conf, 2),
            (p.wrong & p.boxed & p.high_conf, 3),
            (p.correct & p.unboxed & p.low_conf, 4),
            (p.correct & p.unboxed & p.high_conf, 5),
            (p.correct & p.boxed & p.low_conf, 6),
            (p.correct & p.boxed & p.high_conf, 7),
        ),
        "length_robust": plain,
        "verifier_prob": first(
            invalid,
            (p.wrong & p.A_high, 1),
            (p.wrong & ~p.A_high, 2),
            (p.correct & ~p.A_high, 3),
            (p.correct & p.A_high, 4),
        ),
        "efficiency_adjusted_2025": first(
            invalid,
            *((p.wrong & holds, number) for number, holds in length.items()),
            *((p.correct & holds, 3 + number) for number, holds in length.items()),
        ),
        "concision_high_conf": first(
            invalid,
            (p.wrong, 1),
            (p.correct & p.verbose, 2),
            (p.correct & p.moderate, 3),
            (p.correct & p.economical & p.high_conf, 5),
            (p.correct & p.economical, 4),
        ),
    }


def table_21_of_r(t: pd.DataFrame) -> dict[str, Array]:
    """State the eight schemes of [R]."""
    p = predicates(t, t["model"].to_numpy())
    invalid = (p.invalid, 0)
    verifier = t[["compass_A", "compass_B", "compass_C"]].to_numpy()
    length = {1: p.economical, 2: p.moderate, 3: p.verbose}
    return {
        "conservative": first(
            invalid, (p.wrong & p.high_conf, 1), (p.wrong & p.low_conf, 2), (p.correct, 3)
        ),
        "efficiency_adjusted": first(
            invalid,
            *((p.wrong & holds, number) for number, holds in length.items()),
            *((p.correct & holds, 3 + number) for number, holds in length.items()),
        ),
        "format_aware": first(
            invalid,
            (p.wrong & p.unboxed, 1),
            (p.wrong & p.boxed, 2),
            (p.correct & p.unboxed, 3),
            (p.correct & p.boxed, 4),
        ),
        "balanced_composite": first(
            invalid,
            (p.wrong & p.unboxed, 1),
            (p.wrong & p.boxed & p.low_conf, 2),
            (p.wrong & p.boxed & p.high_conf, 3),
            (p.correct & p.unboxed & p.low_conf, 4),
            (p.correct & p.unboxed & p.high_conf, 5),
            (p.correct & p.boxed & p.low_conf, 6),
            (p.correct & p.boxed & p.high_conf, 7),
        ),
        "ood_robust": first(
            invalid,
            (p.ood & p.wrong, 1),
            (p.ind & p.wrong, 2),
            (p.ood & p.correct, 3),
            (p.ind & p.correct, 4),
        ),
        "rare_event": first(
            invalid,
            (p.unboxed & ~p.correct, 5),
            (p.ood & p.wrong, 1),
            (p.ood & p.correct, 2),
            (p.ind & p.wrong, 3),
            (p.ind & p.correct, 4),
        ),
        "verifier_calibrated": first(
            invalid,
            (p.wrong & (verifier[:, 0] >= 0.6), 1),
            (p.wrong & (verifier[:, 0] < 0.6), 2),
            (p.correct & (verifier[:, 0] >= 0.6), 5),
            (p.correct & (verifier[:, 0] >= 0.3), 4),
            (p.correct, 3),
        ),
        "verifier_only": np.where(
            t["repeated_pattern"] == 1, 0, np.array([3, 2, 1])[verifier.argmax(axis=1)]
        ),
    }


WEIGHTS_OF_R = {
    "conservative": [0, -0.10, 0.05, 1.00],
    "efficiency_adjusted": [0, 0.10, 0.07, 0.03, 1, 0.92, 0.85],
    "format_aware": [0, 0.10, 0.05, 0.90, 1],
    "balanced_composite": [0, 0.10, 0.06, -0.02, 0.90, 0.95, 0.97, 1],
    "ood_robust": [0, 0.05, 0.10, 0.95, 1],
    "rare_event": [0, 0.05, 1, 0.08, 0.95, 0.20],
    "verifier_calibrated": [0, -0.05, 0.05, 0.88, 0.94, 1],
    "verifier_only": [0, 0, 0.1, 1],
}


def published_in(paper: str) -> dict[str, Scheme]:
    return {name: one for name, one in SCHEMES.items() if one.source.startswith(paper)}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_category_is_that_of_the_published_table(seed: int):
    attempts = simulate(seed)
    expected = {**table_5_of_d(attempts), **table_21_of_r(attempts)}
    assert len(expected) == 20
    for name, categories in expected.items():
        got = classify(attempts, SCHEMES[name]).to_numpy()
        differ = np.flatnonzero(got != categories)
        assert not len(differ), (name, attempts.iloc[differ[0]])
        # Every category occurs, or its rule would not have been tried.
        assert set(categories) == set(range(len(SCHEMES[name].categories))), name


def test_both_tables_are_there_in_full():
    attempts = simulate(0)
    assert set(published_in("arXiv:2510.04265, Table 5: ")) == set(table_5_of_d(attempts))
    assert set(published_in("arXiv:2603.10960, Table 21: ")) == set(table_21_of_r(attempts))


def test_weights_are_the_published_ones():
    weights = {name: one.weights for name, one in published_in("arXiv:2603.10960").items()}
    assert weights == {name: tuple(map(float, row)) for name, row in WEIGHTS_OF_R.items()}
    assert not any(one.weights for one in published_in("arXiv:2510.04265").values())


def test_a_category_is_a_choice_only_where_the_table_has_none():
    chosen = {name for name, one in SCHEMES.items() if one.otherwise and "arXiv" in one.source}
    assert chosen == {"conf_calibrated", "conf_wrong_penalty", "verifier_only_2025"}


def test_robustness_rewards_what_is_published():
    """In distribution is worth more than out of it, for right and for wrong answers."""
    attempts = pd.DataFrame(
        {
            "system": "a",
            "question": range(10),
            "is_correct": [1, 0] * 5,
            "prompt_bpt": [1.0] * 8 + [2.0] * 2,
            "repeated_pattern": 0,
            "compass_C": 0.0,
        }
    )
    worth = rubric_responses(attempts, SCHEMES["ood_robust"]).grades[0]
    np.testing.assert_allclose(worth, [1.0, 0.10] * 4 + [0.95, 0.05])
