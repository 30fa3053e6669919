"""Rows of the catalog: what they read from the source of their functions."""

import pickle
import sys
from inspect import Parameter

import pytest

from bayesrank.catalog import METHODS
from bayesrank.method import Method, Preset, load_function, read_call, split_calls
from bayesrank.priors import Laplace, Normal

SOURCE = '''
"""A module that cannot be imported."""

raise RuntimeError("read, and not imported")


def ranker(grades, weights=None, *, k: int, ties: Literal["a", "b"] = "a", scale=(1, -2.5),
           random_seed: int | None = None):
    """Score systems by nothing in particular.

    More about it.
    """


def factory(comparisons, *, prior: PriorLike = Laplace(0, 2), centred: bool = True):
    """Build a model"""


def without_docstring(grades): ...
'''


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    """Return the name of a module on the path that raises when it is imported."""
    (tmp_path / "unimportable.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "unimportable"


def row(function: str, *, backends=("bootstrap",), **fields) -> Method:
    return Method("mine", "test", function, "grades", backends, ("nobody2026",), **fields)


def test_options_and_title_are_read_without_an_import(module):
    method = row(f"{module}:ranker")
    assert method.title == "Score systems by nothing in particular"
    assert list(method.options) == ["k", "ties", "scale"]
    assert method.options["k"].default is Parameter.empty
    assert method.options["k"].annotation == "int"
    assert method.options["ties"].default == "a"
    assert method.options["ties"].annotation == "Literal['a', 'b']"
    assert method.options["scale"].default == (1, -2.5)
    assert method.options["scale"].annotation == "Any"
    assert method.is_random
    assert module not in sys.modules


def test_a_title_needs_no_full_stop_and_no_docstring(module):
    assert row(f"{module}:factory").title == "Build a model"
    assert row(f"{module}:without_docstring").title == ""


def test_options_cannot_be_changed(module):
    with pytest.raises(TypeError):
        row(f"{module}:ranker").options["k"] = None


def test_a_row_can_be_pickled_after_its_options_were_read():
    method = METHODS["borda"]
    assert pickle.loads(pickle.dumps(method)).options == method.options  # noqa: S301


def test_the_prior_of_a_factory_is_its_default(module):
    method = row(f"{module}:factory", backends=("map", "mle"))
    assert method.default_prior == Laplace(0, 2)
    assert list(method.options) == ["centred"]
    assert method.factory_path == f"{module}:factory"
    assert not method.is_random


def test_a_ranker_with_a_factory_takes_its_prior_from_the_factory(module):
    method = row(f"{module}:ranker", backends=("exact", "nuts"), factory=f"{module}:factory")
    assert method.factory_path == f"{module}:factory"
    assert method.default_prior == Laplace(0, 2)
    assert row(f"{module}:ranker", backends=("exact", "nuts")).default_prior is None


def test_methods_without_a_likelihood_have_no_prior(module):
    assert row(f"{module}:factory").default_prior is None
    assert METHODS["avg"].default_prior is None
    assert str(METHODS["bayes"].default_prior) == "dirichlet(1)"
    assert METHODS["bradley_terry"].default_prior == Normal(0, 1)


def test_known_options_pass(module):
    method = row(f"{module}:ranker")
    method.check_options({"k": 1})
    method.check_options({"ties": "b", "k": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1, "tie": "b"}, "options of mine must be among: k, ties, scale; got 'tie'"),
        ({"k": 1, "random_seed": 1}, "options of mine must be among: k, .* got 'random_seed'"),
        ({"ties": "b"}, "k must be given for mine; got none"),
    ],
)
def test_other_options_are_refused(module, options, message):
    with pytest.raises(ValueError, match=message):
        row(f"{module}:ranker").check_options(options)


def test_a_method_without_options_says_so(module):
    with pytest.raises(ValueError, match="options of mine must be among: none; got 'k'"):
        row(f"{module}:without_docstring").check_options({"k": 1})


def test_functions_are_loaded_by_their_path():
    assert load_function("bayesrank.priors:Normal") is Normal


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("bayesrank.nothing:avg", "function must name a module .* got 'bayesrank.nothing:avg'"),
        ("nowhere:nothing", "function must name a module that Python finds; got"),
        ("bayesrank.priors:nothing", "function must exist in its module; got"),
        ("bayesrank.priors:Normal", "function must exist in its module; got"),
    ],
)
def test_a_path_to_no_function_is_refused(function, message):
    with pytest.raises(LookupError, match=message):
        _ = row(function).title


def test_a_preset_has_no_options_by_default():
    preset = Preset("mine", "avg", "bootstrap")
    assert dict(preset.options) == {}
    assert preset.prior is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("avg", ("avg", {})),
        ("pass_at_k(k=4)", ("pass_at_k", {"k": 4})),
        (" rasch (prior = 'flat', a=(1, -2.5)) ", ("rasch", {"prior": "flat", "a": (1, -2.5)})),
        ("borda()", ("borda", {})),
    ],
)
def test_a_name_is_split_from_its_options(text, expected):
    assert read_call(text, "methods") == expected


@pytest.mark.parametrize(
    "text", ["", "a b", "f(1)", "f(k=g.h)", "f(**k)", "f(**{1: 2})", "a.b", "f(k=1)(j=2)", 3]
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"methods must have the form name or name\(option=value"):
        read_call(text, "methods")


def test_names_are_split_at_the_commas_between_them():
    text = " avg,g_pass_at_k_tau(k=8, tau=0.5) , bayes(weights=(0, 0.5, 1)),borda "
    assert split_calls(text) == [
        "avg",
        "g_pass_at_k_tau(k=8, tau=0.5)",
        "bayes(weights=(0, 0.5, 1))",
        "borda",
    ]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_when_to_use_it(name):
    use = METHODS[name].use
    assert use.endswith("."), f"{name} needs use='...' in its row, one sentence"
    assert use.startswith(("To ", "For ", "The default:"))
