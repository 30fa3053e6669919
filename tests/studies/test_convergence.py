"""Convergence@n against a plain computation and by hand."""

import sys

import numpy as np
import pytest

from bayesrank import Responses, point_estimate, studies
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.methods.bayes import bayes
from bayesrank.results.ranks import adjacent_z_ranks, rank_scores
from bayesrank.studies.configurations import least_trials, read_method
from bayesrank.studies.scoring import score_rank


def plainly(
    data: Responses, redraw, ranks_of, replicates: int, full: np.ndarray, least: int = 1
) -> np.ndarray:
    """Return convergence@n of every replicate by its definition."""
    n_trials = data.shape[2]
    found = []
    for replicate in range(replicates):
        trials = redraw(replicate)
        same = [
            n >= least and (ranks_of(trials[..., :n]) == full).all() for n in range(1, n_trials + 1)
        ]
        starts = [s for s in range(1, n_trials) if all(same[s - 1 :])]
        found.append(min(starts) if starts else 0)
    return np.array(found)


def redrawn(data: Responses, bootstrap: str, replicates: int, seed: int):
    """Return a function of the replicate to its outcomes, with the trials of the study."""
    n_questions, n_trials = data.shape[1:]
    shape = (n_trials,) if bootstrap == "columns" else (n_trials, n_questions)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(n_trials, size=(replicates, *shape), dtype=np.uint16)

    def redraw(replicate):
        if bootstrap == "columns":
            return data.outcomes[..., chosen[replicate]]
        return np.take_along_axis(data.outcomes, chosen[replicate].T[np.newaxis], axis=-1)

    return redraw


@pytest.fixture(scope="module")
def close() -> Responses:
    """Four systems, two of them exactly tied, of graded outcomes."""
    rng = np.random.default_rng(0)
    outcomes = (rng.random((4, 6, 8)) < np.array([0.8, 0.6, 0.4, 0.4])[:, None, None]).astype(int)
    outcomes[3] = outcomes[2][:, ::-1]
    return Responses(outcomes)


def by_total(outcomes):
    return rank_scores(outcomes.sum(axis=(1, 2)))


@pytest.mark.parametrize("bootstrap", ["columns", "rows"])
def test_exact_order_agrees_with_the_definition(close, bootstrap):
    study = studies.convergence(close, replicates=200, bootstrap=bootstrap, random_seed=3)
    redraw = redrawn(close, bootstrap, 200, 3)
    expected = plainly(close, redraw, by_total, 200, by_total(close.outcomes))
    np.testing.assert_array_equal(study["converged_at"], expected)


@pytest.mark.parametrize("bootstrap", ["columns", "rows"])
def test_interval_ties_agree_with_the_definition(bootstrap):
    rng = np.random.default_rng(7)
    chance = np.array([0.9, 0.7, 0.5, 0.2])[:, None, None]
    categories = rng.binomial(2, np.broadcast_to(chance, (4, 10, 9)))
    data = Responses(categories, weights=[0.0, 0.3, 1.0])
    study = studies.convergence(
        data, replicates=60, bootstrap=bootstrap, ties="interval", z=1.0, random_seed=1
    )
    redraw = redrawn(data, bootstrap, 60, 1)

    def ranks_of(outcomes):
        arguments = point_arguments(Responses(outcomes, weights=[0.0, 0.3, 1.0]), "counts")
        mean = bayes(*arguments, None)
        sd = mean - bayes(*arguments, None, quantile=0.15865525393145707)
        return adjacent_z_ranks(mean, sd, z=1.0)

    full = ranks_of(data.outcomes)
    assert len(set(full)) < 4 or len(set(full)) == 4
    np.testing.assert_array_equal(study["full_rank"], full)
    np.testing.assert_array_equal(study["converged_at"], plainly(data, redraw, ranks_of, 60, full))


PASS_FAMILY = (
    "pass_at_k(k=3)",
    "pass_hat_k(k=2)",
    "g_pass_at_k_tau(k=4, tau=0.5)",
    "mg_pass_at_k(k=4)",
    "maj_at_k(k=3)",
    "auc_at_k(k=3)",
    "threshold_metric(threshold_weights=(0.5, 0.25, 0.25))",
    "pass_at_k_2",
)
# One of each way to read the data: grades, pairs, streams, counts of categories, likelihoods.
OTHERS = (
    "borda",
    "pagerank",
    "elo(tie_policy='skip')",
    "max_at_k(k=2)",
    "bayes(quantile=0.05)",
    "bradley_terry(backend='map', prior=0.5)",
)


@pytest.fixture(scope="module")
def apart() -> Responses:
    """Four systems far enough apart for replicates to converge at different numbers of trials."""
    rng = np.random.default_rng(5)
    chance = np.array([0.85, 0.6, 0.35, 0.1])[:, None, None]
    return Responses((rng.random((4, 9, 7)) < chance).astype(int))


@pytest.mark.parametrize("bootstrap", ["columns", "rows"])
@pytest.mark.parametrize("method", [*PASS_FAMILY, *OTHERS])
def test_any_method_agrees_with_the_definition(apart, method, bootstrap):
    size = 60 if method in PASS_FAMILY else 15
    study = studies.convergence(
        apart, method, replicates=size, trajectories=3, bootstrap=bootstrap, random_seed=2
    )
    name, options = read_method(method)

    def ranks_of(outcomes):
        return rank_scores(point_estimate(Responses(outcomes), name, **options))

    redraw, full, least = (
        redrawn(apart, bootstrap, size, 2),
        ranks_of(apart.outcomes),
        least_trials(method),
    )
    expected = plainly(apart, redraw, ranks_of, size, full, least)
    np.testing.assert_array_equal(study["full_rank"], full)
    np.testing.assert_array_equal(study["converged_at"], expected)
    assert len(set(expected)) > 1
    for replicate in range(3):
        for n in range(1, 8):
            found = study["rank"].values[replicate, n - 1]
            if n < least:
                assert np.isnan(found).all()
            else:
                np.testing.assert_array_equal(found, ranks_of(redraw(replicate)[..., :n]))


def test_a_refit_without_a_finite_estimate_is_the_limit():
    wins = np.zeros((3, 5, 4), dtype=int)
    wins[0], wins[1, :3, ::2] = 1, 1
    data = Responses(wins)
    study = studies.convergence(data, "bradley_terry", replicates=8, trajectories=8)
    assert study["full_rank"].values.tolist() == [1, 2, 3]
    redraw = redrawn(data, "columns", 8, 0)
    for replicate in range(8):
        last = score_rank(Responses(redraw(replicate)), "bradley_terry").rank
        np.testing.assert_array_equal(study["rank"].values[replicate, -1], last)


def test_methods_see_the_same_replicates(apart):
    methods = ["bayes", "pass_at_k(k=2)", "borda"]
    together = studies.convergence(apart, methods, replicates=40)
    assert dict(together["pmf"].sizes) == {"method": 3, "n_trials": 7}
    for method in methods:
        alone = studies.convergence(apart, method, replicates=40)
        assert alone.identical(together.sel({"method": method}))


def test_avg_ranks_as_bayes_does(apart):
    for ties in ("exact", "interval"):
        avg, bayes = (
            studies.convergence(apart, m, replicates=50, ties=ties) for m in ("avg", "bayes")
        )
        np.testing.assert_array_equal(avg["converged_at"], bayes["converged_at"])


def test_fractional_scores_converge_by_their_mean(apart):
    halves = studies.convergence(Responses(apart.outcomes / 2), "avg", replicates=50)
    whole = studies.convergence(apart, "avg", replicates=50)
    np.testing.assert_array_equal(halves["converged_at"], whole["converged_at"])


@pytest.mark.parametrize("method", ["bayes", "pass_at_k(k=2)", "borda"])
def test_the_actual_order_is_that_of_the_trials(apart, method):
    study = studies.convergence(apart, method, replicates=5)
    name, options = read_method(method)
    least = least_trials(method)
    ranks = [
        rank_scores(point_estimate(Responses(apart.outcomes[..., :n]), name, **options))
        for n in range(least, 8)
    ]
    np.testing.assert_array_equal(study["actual_rank"].values[least - 1 :], ranks)
    same = [(rank == ranks[-1]).all() for rank in ranks]
    starts = [n for n in range(least, 7) if all(same[n - least :])]
    assert int(study["actual_converged_at"]) == (min(starts) if starts else 0)
    assert float(study["actual_tau"][-1]) == 1.0


@pytest.mark.parametrize("bootstrap", ["columns", "rows"])
@pytest.mark.parametrize("method", ["bayes", "pass_at_k(k=2)", "borda"])
def test_the_worst_replicates_are_kept(apart, method, bootstrap):
    options = {"replicates": 30, "trajectories": 30, "bootstrap": bootstrap, "worst": 4}
    study = studies.convergence(apart, method, **options)
    converged = study["converged_at"].values
    ranks, full = study["rank"].values[:, -1], study["full_rank"].values
    first, second = np.triu_indices(4, 1)
    moved = (
        np.sign(ranks[:, first] - ranks[:, second]) != np.sign(full[first] - full[second])
    ).sum(axis=1)
    late = np.where(converged > 0, converged, 7 + moved)
    expected = np.argsort(-late, kind="stable")[:4]
    np.testing.assert_array_equal(study["worst_replicate"], expected)
    np.testing.assert_array_equal(study["worst_rank"], study["rank"].values[expected])


def test_the_worst_of_all_blocks_are_kept(apart, monkeypatch):
    whole = studies.convergence(apart, replicates=200, worst=5)
    # Eight replicates a block; the package's attribute of that name is the function.
    module = sys.modules["bayesrank.studies.convergence"]
    monkeypatch.setattr(module, "_BLOCK_SIZE", 8 * 7 * 9)
    blocks = studies.convergence(apart, replicates=200, worst=5)
    assert blocks.identical(whole)


def test_no_replicate_need_be_kept(apart):
    study = studies.convergence(apart, replicates=5, trajectories=0, worst=0)
    assert study.sizes["trajectory"] == study.sizes["worst"] == 0
    assert study["tau_mean"].isnull().all()


def test_shares_add_up(close):
    study = studies.convergence(close, replicates=500)
    assert float(study["pmf"].sum() + study["no_convergence"]) == pytest.approx(1.0)
    np.testing.assert_allclose(study["cdf"], np.cumsum(study["pmf"]))
    assert study["pmf"].values[-1] == 0.0  # equal at the last step alone is no convergence
    reached = study["converged_at"].values[study["converged_at"].values > 0]
    assert float(study["mean"]) == pytest.approx(reached.mean())


def test_systems_that_never_change_converge_at_once():
    study = studies.convergence(Responses([[[1] * 5], [[0] * 5]]), replicates=20)
    assert float(study["cdf"][0]) == 1.0
    assert float(study["tau_mean"][0]) == 1.0


def test_an_exact_tie_must_be_kept():
    # Two systems with equal totals that tie in no replicate but where both trials are drawn.
    data = Responses([[[1, 0]], [[0, 1]]])
    study = studies.convergence(data, replicates=50)
    assert float(study["no_convergence"]) == 1.0


def test_the_same_seed_gives_the_same_study(close):
    one, two = (studies.convergence(close, replicates=30, random_seed=9) for _ in range(2))
    assert one.identical(two)


def test_labels_do_not_matter(close):
    turned = Responses(close.outcomes[::-1], systems=close.systems[::-1])
    for ties in ("exact", "interval"):
        study = studies.convergence(close, replicates=50, ties=ties)
        other = studies.convergence(turned, replicates=50, ties=ties)
        np.testing.assert_array_equal(study["converged_at"], other["converged_at"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bootstrap": "cells"}, "bootstrap must be one of"),
        ({"ties": "none"}, "ties must be one of"),
        ({"replicates": 0}, "replicates must be an integer of at least 1"),
        ({"trajectories": -1}, "trajectories must be an integer of at least 0"),
        ({"z": -1.0}, "z must be a number of at least 0"),
        ({"worst": -1}, "worst must be an integer of at least 0"),
        ({"methods": "nothing"}, "methods must be among"),
        ({"methods": "pass_at_k"}, "k must be given for pass_at_k"),
        ({"methods": "pass_at_k(k=9)"}, "trials must be at least 9 for the method"),
        ({"methods": "borda", "ties": "interval"}, "ties must be 'exact' for 'borda'"),
        (
            {"methods": "bayes(quantile=0.1)", "ties": "interval"},
            "ties must be 'exact' for 'bayes",
        ),
    ],
)
def test_options_are_checked(close, options, message):
    with pytest.raises(ValueError, match=message):
        studies.convergence(close, **options)


def test_data_must_be_complete_and_repeated(close):
    outcomes = close.outcomes.copy()
    outcomes[0, 0, 0] = -1
    with pytest.raises(DataError, match="outcomes must be complete for convergence; got 1"):
        studies.convergence(Responses(outcomes))
    with pytest.raises(DataError, match="trials must be two or more"):
        studies.convergence(Responses(close.outcomes[..., :1]))
