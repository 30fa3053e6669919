"""Transfer of priors between versions: published gains, and a direct statement of the design."""

import numpy as np
import pytest

from bayesrank import studies
from bayesrank.methods.bayes import bayes
from bayesrank.results.agreement import kendall_tau_b

# Gains in tau-b by 1, 2, 4, 8 and 16 trials of the earlier versions, from 1 and 4 trials.
PUBLISHED = {1: (0.057, 0.073, 0.086, 0.094, 0.099), 4: (0.012, 0.013, 0.009, 0.003, -0.003)}


@pytest.fixture(scope="module")
def study():
    return studies.prior_transfer(n=[1, 4, 16, 64], updates=20_000, random_seed=11)


@pytest.mark.parametrize(("n", "gains"), PUBLISHED.items())
def test_published_gains(study, n, gains):
    found = study.sel(n_trials=n)
    # Four standard errors, and half of the last digit that is published.
    allowed = 4 * found["gain_se"].values + 0.0005
    assert (np.abs(found["gain"].values - gains) <= allowed).all()


def test_the_update_is_as_large_as_published(study):
    assert float(study["update_tau"]) == pytest.approx(0.88, abs=0.01)
    assert float(study["changed"]) == pytest.approx(0.86, abs=0.015)


def test_much_old_evidence_misleads_once_there_are_trials(study):
    late = study.sel(n_trials=16, n_earlier=[8, 16])
    assert (late["gain"] < -4 * late["gain_se"]).all()


def test_gains_are_those_of_bayes_with_the_earlier_trials_as_outcomes():
    """The same design, stated with the functions that rank."""
    rng = np.random.default_rng(5)
    system, sets, questions = np.arange(1, 9)[:, None], 3000, 30
    shapes = system + 3, 12 - system
    old = rng.beta(*shapes, (sets, 8, questions))
    changes = rng.choice([-1, 1], size=(2, sets, 8, 1))
    new = rng.beta(shapes[0] + changes[0], shapes[1] + changes[1], old.shape)
    right, earlier = rng.binomial(2, new), rng.binomial(4, old)
    counts, before = (np.stack([n - k, k], axis=-1) for n, k in ((2, right), (4, earlier)))
    weights = np.array([0.0, 1.0])
    taus = [
        kendall_tau_b(-bayes(counts, weights, before, use_prior_outcomes=use), -new.mean(axis=-1))
        for use in (False, True)
    ]
    gain = taus[1] - taus[0]
    found = studies.prior_transfer(n=[2], earlier=[4], updates=6000)
    error = np.hypot(gain.std() / np.sqrt(sets), float(found["gain_se"].item()))
    assert found["gain"].item() == pytest.approx(gain.mean(), abs=4 * error)
    assert found["tau_without"].item() == pytest.approx(taus[0].mean(), abs=0.01)


def test_systems_that_updates_cannot_turn_keep_their_order():
    far = studies.prior_transfer(shapes=[(2.0, 200.0), (200.0, 2.0)], n=[1], updates=50)
    assert float(far["update_tau"]) == 1.0
    assert float(far["changed"]) == 0.0
    np.testing.assert_array_equal(far["gain"], 0.0)


def test_the_same_seed_gives_the_same_study():
    one, two = (studies.prior_transfer(updates=50, random_seed=4) for _ in range(2))
    assert one.identical(two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": []}, "n must be one increasing number or more"),
        ({"n": [4, 1]}, "n must be one increasing number or more"),
        ({"n": [0]}, "n must be an integer of at least 1; got 0"),
        ({"earlier": [1, 1]}, "earlier must be one increasing number or more"),
        ({"updates": 0}, "updates must be an integer of at least 1"),
        ({"n_questions": 2.5}, "n_questions must be an integer of at least 1"),
        ({"shapes": [(1.0, 2.0), (2.0, 2.0)]}, "shapes must be two numbers above 1"),
        ({"shapes": [(2.0, 2.0)]}, "shapes must be two numbers above 1"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        studies.prior_transfer(**options)
