"""Priors: their text, their numbers, and what they take from the data."""

import math
import re

import numpy as np
import pytest

from bayesrank import Comparisons, Responses
from bayesrank.errors import DataError
from bayesrank.priors import (
    Cauchy,
    Custom,
    Dirichlet,
    Empirical,
    Flat,
    Laplace,
    Normal,
    Prior,
    as_dirichlet,
    as_prior,
    parse_prior,
)

# Two systems, right in 3 of 4 and in 1 of 4 earlier outcomes.
EARLIER = np.array([[[1], [1], [1], [0]], [[0], [0], [1], [0]]])


@pytest.fixture
def data() -> Responses:
    return Responses([[0, 1, 1, 0], [1, 1, 0, 0]], prior_outcomes=EARLIER)


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("normal", Normal(0, 1)),
        ("normal()", Normal(0, 1)),
        ("normal(0.5)", Normal(0.5, 1)),
        ("normal(-1, 2)", Normal(-1, 2)),
        (" normal ( 1e-2 ,+.5 ) ", Normal(0.01, 0.5)),
        ("laplace(0, 2)", Laplace(0, 2)),
        ("cauchy(0, 2.5)", Cauchy(0, 2.5)),
        ("flat", Flat()),
        ("flat()", Flat()),
        ("empirical", Empirical()),
        ("empirical(2)", Empirical(None, 2.0)),
        ("empirical(2, 0.05)", Empirical(None, 2.0, 0.05)),
        ("2", Normal(0, 2)),
        (" 1.5e1 ", Normal(0, 15)),
    ],
)
def test_text_is_parsed(text, prior):
    assert parse_prior(text) == prior
    assert as_prior(text) == prior


@pytest.mark.parametrize(
    "text",
    [
        *("", "gauss", "custom", "normal(0, 1, 2)", "normal(a)", "normal(0; 1)"),
        *("normal(,2)", "normal(0,)", "normal(0,,1)", "normal(0, 1", "normal 0", "1 2"),
        *("nan", "inf", "normal(nan)", "normal((0), 1)", "normal(0, 1) + 1", "flat(1)"),
    ],
)
def test_other_text_is_refused(text):
    message = (
        f"prior must be a number or one of normal, laplace, cauchy, .*got {re.escape(repr(text))}"
    )
    with pytest.raises(ValueError, match=message):
        parse_prior(text)


@pytest.mark.parametrize(
    "other",
    [Empirical(EARLIER, 2.0), Empirical(EARLIER, 1.0, 0.1), Empirical(1 - EARLIER), Empirical()],
)
def test_empirical_priors_are_equal_where_all_they_hold_is(other):
    prior = Empirical(EARLIER)
    assert prior == Empirical(EARLIER.astype(float))
    assert hash(prior) == hash(Empirical(EARLIER.astype(float)))
    assert prior != other


@pytest.mark.parametrize(
    "prior",
    [
        Normal(),
        Normal(0.1, 2),
        Normal(-3, 1.23456789012345),
        Normal(1 / 3, 1e-7),
        Normal(0, 12345678.5),
        Laplace(0.5, math.pi),
        Cauchy(-1e-12, 2.5),
        Flat(),
        Empirical(None, 1.2345678, 0.0123456789),
    ],
)
def test_text_reads_back_as_the_same_prior(prior):
    assert parse_prior(str(prior)) == prior


def test_text_is_short():
    assert [str(p) for p in (Normal(0, 2), Laplace(0.5), Cauchy(), Flat(), Empirical())] == [
        "normal(0, 2)",
        "laplace(0.5, 1)",
        "cauchy(0, 1)",
        "flat",
        "empirical(1, 0.01)",
    ]
    assert str(Custom(math.sin)) == "custom(sin)"


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int64(2), "2"])
def test_a_number_is_the_standard_deviation_of_a_normal(number):
    assert as_prior(number) == Normal(0, 2)


def test_a_prior_is_itself():
    for prior in (Normal(), Flat(), Custom(len), Empirical(EARLIER)):
        assert as_prior(prior) is prior
        assert isinstance(prior, Prior)


@pytest.mark.parametrize("other", [None, True, [1, 2], Flat, object(), 1j])
def test_other_objects_are_no_prior(other):
    with pytest.raises(ValueError, match=r"prior must be a prior of bayesrank.priors, a number or"):
        as_prior(other)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Normal(0, 0), "sigma must be positive and finite; got 0"),
        (lambda: Normal(0, -1), "sigma must be positive and finite; got -1"),
        (lambda: Normal(0, math.nan), "sigma must be positive and finite; got nan"),
        (lambda: Normal(math.nan, 1), "mu must be finite; got nan"),
        (lambda: Laplace(0, math.inf), "b must be positive and finite; got inf"),
        (lambda: Laplace(math.inf), "mu must be finite; got inf"),
        (lambda: Cauchy(0, -2), "beta must be positive and finite; got -2"),
        (lambda: Cauchy(math.nan), "alpha must be finite; got nan"),
        (lambda: Empirical(None, 0), "sigma must be positive and finite; got 0"),
        (lambda: Empirical(None, 1, 0.5), r"eps must be in \(0, 0.5\); got 0.5"),
        (lambda: Empirical(None, 1, 0), r"eps must be in \(0, 0.5\); got 0"),
        (lambda: as_prior(-1), "sigma must be positive and finite; got -1"),
        (lambda: parse_prior("normal(0, 0)"), "sigma must be positive and finite; got 0"),
    ],
)
def test_parameters_out_of_range_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_priors_cannot_be_changed():
    with pytest.raises(AttributeError):
        Normal().sigma = 2.0  # type: ignore[misc]


def test_normal_and_flat_are_quadratic():
    mean, precision = Normal(0.5, 2).quadratic()
    assert (float(mean), precision) == (0.5, 0.25)
    mean, precision = Flat().quadratic()
    assert (float(mean), precision) == (0.0, 0.0)
    for prior in (Laplace(), Cauchy(), Custom(len)):
        assert prior.quadratic() is None


def test_priors_without_data_resolve_to_themselves(data):
    for prior in (Normal(), Laplace(), Cauchy(), Flat(), Custom(len)):
        assert prior.resolve(data) is prior


# The empirical prior


def test_empirical_means_are_centred_logits():
    mean, precision = Empirical(EARLIER, sigma=2).quadratic()
    np.testing.assert_allclose(mean, [math.log(3), -math.log(3)], rtol=1e-14)
    assert precision == 0.25


def test_empirical_accuracies_are_clipped():
    outcomes = np.array([[[1, 1]], [[0, 0]], [[1, 0]]])
    mean, _ = Empirical(outcomes, eps=0.1).quadratic()
    np.testing.assert_allclose(mean, [math.log(9), -math.log(9), 0], atol=1e-14)


def test_empirical_counts_what_was_observed():
    outcomes = np.array([[[1, -1], [0, 1]], [[np.nan, 0], [1, 0]]])
    mean, _ = Empirical(outcomes).quadratic()
    # 2 of 3 and 1 of 3.
    np.testing.assert_allclose(mean, [math.log(2), -math.log(2)], rtol=1e-14)


def test_a_system_without_earlier_outcomes_gets_the_mean_of_the_others():
    outcomes = np.array([[[1], [1], [1], [0]], [[0], [0], [1], [0]], [[-1], [-1], [-1], [-1]]])
    mean, _ = Empirical(outcomes).quadratic()
    np.testing.assert_allclose(mean, [math.log(3), -math.log(3), 0], atol=1e-14)


def test_empirical_takes_the_outcomes_of_the_data(data):
    resolved = Empirical(None, 2.0, 0.02).resolve(data)
    mean, precision = resolved.quadratic()
    np.testing.assert_allclose(mean, [math.log(3), -math.log(3)], rtol=1e-14)
    assert precision == 0.25
    assert str(Empirical(None, 2.0, 0.02)) == "empirical(2, 0.02)"


def test_the_text_of_a_prior_distinguishes_its_outcomes():
    ours, theirs = Empirical(EARLIER), Empirical(1 - EARLIER)
    assert len({str(ours), str(theirs), str(Empirical())}) == 3
    assert str(ours) == str(Empirical(EARLIER.tolist()))
    with pytest.raises(ValueError, match="prior must be a number or one of"):
        parse_prior(str(ours))  # text does not hold the outcomes


def test_own_outcomes_come_before_those_of_the_data(data):
    own = Empirical(1 - EARLIER)
    assert own.resolve(data) is own


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        (EARLIER[0, :, 0], r"shape \(system, question, d\) or \(system, question\); got \(4,\)"),
        (2 * EARLIER, "prior_outcomes must be 0 or 1, .* got 2"),
        (EARLIER / 2, "prior_outcomes must be 0 or 1, .* got 0.5"),
        (np.full((2, 1, 1), -1), "prior_outcomes must have at least one observed outcome"),
        ([["a"]], "prior_outcomes must be numbers"),
    ],
)
def test_earlier_outcomes_of_another_form_are_refused(earlier, message):
    with pytest.raises(DataError, match=message):
        Empirical(earlier)


def test_empirical_needs_outcomes_of_every_system(data):
    with pytest.raises(DataError, match=r"got None$"):
        Empirical().resolve(Responses([[0, 1]]))
    with pytest.raises(DataError, match=r"got None$"):
        Empirical().resolve(Comparisons([[0, 1], [1, 0]]))
    with pytest.raises(DataError, match="prior_outcomes must be given for an empirical prior"):
        Empirical().quadratic()
    with pytest.raises(DataError, match="must have one row per system, 2; got 1"):
        Empirical(EARLIER[:1]).resolve(data)


def test_one_earlier_outcome_of_each_question_needs_no_third_axis(data):
    given = Empirical(EARLIER[..., 0], sigma=2.0).resolve(data).quadratic()
    np.testing.assert_array_equal(given[0], Empirical(EARLIER[..., :1]).quadratic()[0])
    assert given[1] == 0.25


def test_outcomes_that_systems_share_expect_none_to_be_better():
    shared = Responses([[0, 1, 1, 0], [1, 1, 0, 0]], prior_outcomes=EARLIER[0])
    mean, precision = Empirical(sigma=0.5).resolve(shared).quadratic()
    np.testing.assert_array_equal(mean, [0.0, 0.0])
    assert precision == 4.0


@pytest.mark.parametrize("given", [Dirichlet((2.0, 0.5)), (2, 0.5), [2.0, 0.5], "Dirichlet(2, .5)"])
def test_counts_of_a_dirichlet_prior(given):
    prior = as_dirichlet(given)
    assert str(prior) == "dirichlet(2, 0.5)"
    assert parse_prior(str(prior)) == prior
    np.testing.assert_array_equal(prior.of_categories(2), [2.0, 0.5])
    assert prior.mean(np.array([0.0, 1.0])) == 0.2


@pytest.mark.parametrize("given", [0.5, "0.5", "dirichlet(0.5)", np.float64(0.5)])
def test_one_count_is_for_all_categories(given):
    np.testing.assert_array_equal(as_dirichlet(given).of_categories(3), [0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "counts of a Dirichlet prior must be positive finite numbers; got 0"),
        ((1, -1), "must be positive finite numbers"),
        ((1, np.inf), "must be positive finite numbers"),
        ([[1, 1]], "must be positive finite numbers"),
        ([], "must be positive finite numbers"),
        (True, "prior must be Dirichlet counts for bayes; got True"),
        ("normal(0, 1)", r"prior must be Dirichlet counts for bayes; got normal\(0, 1\)"),
        (Flat(), "prior must be Dirichlet counts for bayes; got flat"),
    ],
)
def test_what_no_dirichlet_prior_is(given, message):
    with pytest.raises(ValueError, match=message):
        as_dirichlet(given)
    with pytest.raises(ValueError, match="one for each of 3 categories"):
        Dirichlet((1, 2)).of_categories(3)


@pytest.mark.parametrize("given", [Dirichlet(), "dirichlet(1, 2)"])
def test_a_dirichlet_prior_is_none_on_scores(given):
    with pytest.raises(ValueError, match="must be a prior on scores; got dirichlet"):
        as_prior(given)


def test_a_custom_prior_is_a_function():
    with pytest.raises(ValueError, match=r"logp must be a function .* got 42"):
        Custom(42)  # pyright: ignore[reportArgumentType]


def test_empirical_refuses_categories_whose_worth_it_does_not_know():
    graded = Responses(
        [[0, 2], [1, 1]], weights=[0, 0.5, 1], prior_outcomes=[[[2], [0]], [[1], [1]]]
    )
    with pytest.raises(DataError, match="prior_outcomes must be 0 or 1"):
        Empirical().resolve(graded)
