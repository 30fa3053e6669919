"""The factory of standardised accuracy against its formula."""

import numpy as np
from pytensor.compile.mode import Mode
from scipy.special import expit, gammaln

from bayesrank import Responses
from bayesrank.models import standardized_accuracy

PYTHON = Mode(linker="py", optimizer="fast_compile")


def compiled(model, variables):
    """Return a function from a point of the free variables to values."""
    values = model.replace_rvs_by_values(variables)
    return model.compile_fn(values, inputs=model.value_vars, mode=PYTHON, on_unused_input="ignore")


def test_the_likelihood_is_binomial_in_the_sums_of_grades():
    data = Responses([[[0.5, 1.0], [0.0, np.nan]], [[0.25, 0.5], [np.nan, np.nan]]])
    model = standardized_accuracy(data, prior=1.5)
    point = {
        name: np.full_like(value, 0.3) for name, value in model.initial_point(random_seed=1).items()
    }
    names = ["ability", "difficulty", "asked_slope", "score"]
    values = compiled(model, [model[name] for name in names])(point)
    ability, difficulty, slope, score = values
    # The second question was asked one system of two: shares 1 and 1/2, less their mean.
    chance = expit(ability[:, np.newaxis] - difficulty + slope * np.array([0.25, -0.25]))
    assert np.allclose(score, chance.mean(axis=1))
    trials, totals = np.array([2.0, 1.0, 2.0]), np.array([1.5, 0.0, 0.75])
    p = chance[[0, 0, 1], [0, 1, 0]]
    choose = gammaln(trials + 1) - gammaln(totals + 1) - gammaln(trials - totals + 1)
    expected = choose + totals * np.log(p) + (trials - totals) * np.log1p(-p)
    logp = model.compile_fn(
        model.logp(vars=model.observed_RVs, sum=False), inputs=model.value_vars, mode=PYTHON
    )
    assert np.allclose(logp(point)[0], expected)


def test_scores_are_in_units_of_the_weights():
    model = standardized_accuracy(Responses([[0, 1, 2], [2, 2, 1]], weights=[-1.0, 0.0, 3.0]))
    point = model.initial_point(random_seed=1)
    (score,) = compiled(model, [model["score"]])(point)
    assert ((score > -1.0) & (score < 3.0)).all()
    assert "asked_slope" not in model.named_vars


def test_questions_that_nobody_was_asked_are_left_out():
    model = standardized_accuracy(Responses([[1, -1, 0], [0, -1, 1]]))
    assert list(model.coords["question"]) == ["question 1", "question 3"]
