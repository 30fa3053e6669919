"""Formulas of covariates: sums of names, what formulae reads, and designs by blocks of rows."""

import numpy as np
import pytest

import bayesrank.formula
from bayesrank import Battles, point_estimate, rank
from bayesrank.errors import DataError
from bayesrank.formula import Design, design_of, read_sum


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    first = rng.integers(3, size=300)
    length, group = rng.normal(size=300), rng.choice(["code", "prose"], 300)
    ahead = (0.5 + 0.8 * (group == "code")) * length + rng.logistic(size=300)
    return Battles(
        np.array(list("abc"))[first],
        np.array(list("abc"))[(first + 1) % 3],
        (ahead > 0.0) * 1,
        group=group,
        time=np.arange(300.0),
        covariates={"length": length, "bold": rng.normal(size=300)},
    )


@pytest.mark.parametrize(
    "formula",
    [
        "length",
        "1 + length",
        "0 + length",
        "length - 1",
        "length+bold",
        "bold + 1",
        "length + length",
    ],
)
def test_sums_of_names_are_what_formulae_makes_of_them(data, formula):
    known = {"position": np.ones(300), **data.covariates}
    theirs = Design.of(bayesrank.formula._columns_of_formulae(formula, known), 300)
    ours = data.design(formula)
    assert ours.terms == theirs.terms
    np.testing.assert_allclose(ours[:], theirs[:])
    np.testing.assert_allclose(ours[10:20], theirs[:][10:20])
    np.testing.assert_allclose(ours[np.array([5, 2])], theirs[:][[5, 2]])


def test_a_weight_stands_for_so_many_rows(data):
    times = np.random.default_rng(1).integers(4, size=300)
    rows = np.repeat(np.arange(300), times)
    names = np.array(data.systems)

    def log(some, **others):
        return Battles(
            names[data.first[some]],
            names[data.second[some]],
            (data.outcome[some] > 0) * 1,
            systems=names,
            covariates={name: column[some] for name, column in data.covariates.items()},
            **others,
        )

    weighted, repeated = log(np.arange(300), weight=times.astype(float)), log(rows)
    np.testing.assert_allclose(
        weighted.design("length + bold")[:][rows], repeated.design("length + bold")[:], rtol=1e-12
    )
    one, other = (
        rank(each, "davidson", formula="length", draws=0) for each in (weighted, repeated)
    )
    for group, name in (("ranking", "score"), ("point_estimate", "effect")):
        np.testing.assert_allclose(one[group][name], other[group][name], rtol=1e-9)


def test_interactions_functions_and_factors_are_read_by_formulae(data):
    found = data.design("0 + position + length:group + np.tanh(bold)")
    assert found.terms == ("position", "length:group[code]", "length:group[prose]", "np.tanh(bold)")
    length = data.covariates["length"]
    code = np.array(data.group.names)[data.group.codes] == "code"
    expected = np.where(code, length, 0.0)
    np.testing.assert_allclose(found[:][:, 1], expected / expected.std())
    result = rank(data, "davidson", formula="0 + length:group", draws=0)
    effect = result["point_estimate"]["effect"]
    assert effect["covariate"].values.tolist() == ["length:group[code]", "length:group[prose]"]
    assert effect[0] > effect[1] > 0.0
    assert data.design("group").terms == ("position", "group[prose]")
    assert data.design("scale(time)").shape == (300, 2)


def test_the_reference_group_does_not_hang_on_the_order_of_rows():
    sides, groups = (["a", "b", "a"] * 4, ["b", "c", "c"] * 4), ["y", "x", "z", "x"] * 3
    winners = (["first", "second", "tie", "second"] * 3)[:12]
    logs = [
        Battles(*(side[::way] for side in sides), winners[::way], group=groups[::way])
        for way in (1, -1)
    ]
    assert logs[0].design("group").terms == ("position", "group[y]", "group[z]")
    found = [point_estimate(log, "davidson", formula="group") for log in logs]
    one, two = (score[np.argsort(log.systems)] for score, log in zip(found, logs, strict=True))
    np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (
            "markdown",
            "formula must name some of position, length, bold, time, group; got 'markdown'",
        ),
        ("length:markdown", "formula must name some of .*; got 'markdown'"),
        ("length + (", "formula must be one that formulae reads"),
        ("length + (1|group)", "formula must hold covariates without an outcome and without group"),
        ("length ~ bold", "formula must hold covariates without an outcome"),
        ("np.log(length)", "formula must give finite numbers"),
        ("0", "formula must have a term"),
    ],
)
def test_formulas_that_cannot_be_used_are_refused(data, formula, said):
    with pytest.raises(DataError, match=said):
        data.design(formula)


def test_what_does_not_vary_stands_in_for_the_position_once():
    design_of("0 + k", {"k": np.full(3, 2.0)}, 3)
    for formula in ("k", "position + k"):
        with pytest.raises(
            DataError, match="covariates that vary over battles, beside one position"
        ):
            design_of(formula, {"k": np.full(3, 2.0)}, 3)


def test_without_formulae_the_error_says_what_to_install(data, monkeypatch):
    monkeypatch.setattr(bayesrank.formula, "find_spec", lambda name: None)
    assert data.design("length").terms == ("position", "length")
    with pytest.raises(
        DataError, match=r"without the package formulae; got 'length:bold': install"
    ):
        data.design("length:bold")


def test_an_empty_sum_is_no_sum_of_names():
    assert read_sum("") is None
    assert read_sum("length +") is None


@pytest.mark.parametrize("formula", [[], 5])
def test_a_formula_that_is_no_text_is_refused(data, formula):
    with pytest.raises(DataError, match="formula must be a str"):
        rank(data, "bradley_terry", formula=formula, draws=0)
