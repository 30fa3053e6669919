"""Option values: one table, by which Python and the command line say the same."""

import ast
import inspect
import math
from collections.abc import Callable
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import numpy as np
import pytest
from click.testing import Result

from bayesrank import METHODS, rank
from bayesrank import validation as module
from bayesrank.inference.fits import table
from bayesrank.inference.fits.pair_fits import fit_states
from bayesrank.method import load_function
from bayesrank.ranking import BACKENDS
from bayesrank.validation import (
    AboveZero,
    AtLeastOne,
    BelowOne,
    Count,
    Finite,
    NonNegative,
    Positive,
    Probability,
    TwoOrMore,
    UnitInterval,
    allowed_values,
    checks_options,
)

OUTCOMES = [[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 1]]]


@pytest.mark.parametrize(
    ("annotation", "right", "wrong", "words"),
    [
        (Finite, [-1, 2.5, np.float64(3)], [math.inf, math.nan, "1", True], "a finite number"),
        (Positive, [1e-9, 2], [0, -1, math.inf], "a finite number > 0"),
        (NonNegative, [0, 0.5], [-1e-9, math.inf], "a finite number >= 0"),
        (AtLeastOne, [1, 1.5], [0.9, math.inf], "a finite number >= 1"),
        (UnitInterval, [0, 1], [-0.1, 1.1], r"in [0, 1]"),
        (BelowOne, [0, 0.9], [1, math.nan], r"in [0, 1)"),
        (AboveZero, [0.1, 1], [0, 1.1], r"in (0, 1]"),
        (Probability, [0.5], [0, 1], "between 0 and 1"),
        (Count, [1, np.int64(3)], [0, 1.0, True, "1"], "an integer of at least 1"),
        (TwoOrMore, [2], [1], "an integer of at least 2"),
        (Count | None, [1, None], [0], "an integer of at least 1"),
        (Literal["a", "b"], ["a"], ["c", None, np.zeros(2)], "one of a, b"),
        (bool, [True, np.bool_(False)], [1, "yes"], "True or False"),
        (int, [-1], [1.5, False], "an integer"),
        (float, [1, math.inf], ["1", True], "a number"),
    ],
)
def test_an_annotation_says_what_a_value_must_be(annotation, right, wrong, words):
    allowed = allowed_values(annotation)
    assert allowed.words == words
    assert all(allowed.test(value) for value in right)
    assert not any(allowed.test(value) for value in wrong)


def test_a_function_names_the_option_the_constraint_and_the_value():
    @checks_options
    def scaled(score, *, scale: Positive = 1.0, order=None):
        return score * scale

    assert scaled(2.0, scale=3, order="any") == 6.0
    with pytest.raises(ValueError, match=r"scale must be a finite number > 0; got -1"):
        scaled(2.0, scale=-1)


def _options(function: Callable) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize("name", [name for name, row in METHODS.items() if row.kernel])
def test_a_kernel_has_the_options_of_its_factory(name):
    row = METHODS[name]
    kernel, factory = (_options(load_function(path)) for path in (row.kernel, row.factory_path))
    if _takes_more(load_function(row.kernel)):
        assert _options(table.fit_comparisons).items() <= _options(fit_states).items()
        kernel = _options(table.fit_comparisons) | kernel
    for option in row.options:
        assert kernel[option].annotation == factory[option].annotation
        assert kernel[option].default == factory[option].default


def _takes_more(function: Callable) -> bool:
    """Return whether a kernel hands options on that it does not name, as all pairs share them."""
    parameters = inspect.signature(function).parameters.values()
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


# Arrays are checked where they are read, priors by as_prior and as_dirichlet.
_READ_ELSEWHERE = ("ArrayLike", "Sequence[float]", "PriorLike")


@pytest.mark.parametrize(
    "row", [form for row in METHODS.values() for form in row.forms], ids=lambda row: row.name
)
def test_every_option_says_what_it_may_be_and_its_default_is(row):
    paths = (row.function, row.kernel or row.function)
    options = {name: each for path in paths for name, each in _options(load_function(path)).items()}
    for option, parameter in row.options.items():
        if not any(kind in parameter.annotation for kind in _READ_ELSEWHERE):
            allowed = allowed_values(options[option].annotation)
            assert allowed is not None, option
            assert parameter.default is parameter.empty or allowed.test(parameter.default)


@pytest.mark.parametrize("name", BACKENDS)
def test_every_option_of_a_back_end_says_what_it_may_be(name):
    for option, parameter in _options(BACKENDS[name]).items():
        assert allowed_values(parameter.annotation).test(parameter.default), option


def test_editors_complete_the_options_of_all_back_ends():
    tree = ast.parse(inspect.getsource(module))
    (listed,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "BackendOptions"
    )
    known = {
        each.target.id: eval(ast.unparse(each.annotation), vars(module))  # noqa: S307 - our source
        for each in listed.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    by_back_end = [_options(function) for function in BACKENDS.values()]
    assert set(known) == set().union(*by_back_end)
    for options in by_back_end:
        for name, parameter in options.items():
            assert set(_kinds(parameter.annotation)) <= set(_kinds(known[name])), name


def _kinds(annotation) -> tuple:
    is_union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if is_union else (annotation,)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("pass_at_k", {"k": 0}, "k must be an integer of at least 1; got 0"),
        ("pagerank", {"damping": 1.0}, "damping must be in [0, 1); got 1.0"),
        ("elo", {"tie_policy": "half"}, "tie_policy must be one of skip, draw"),
        ("irt_3pl", {"guessing": 1.0}, "guessing must be in [0, 1); got 1.0"),
        ("rasch", {"backend": "nuts", "tune": 0}, "tune must be an integer of at least 1"),
        ("rasch", {"calibration": "jack"}, "calibration must be one of sandwich, none"),
    ],
)
def test_python_and_the_command_line_say_the_same(
    run: Callable[..., Result], log, method, options, message
):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - compared below
        rank(OUTCOMES, method, **options)
    assert str(raised.value).startswith(message)
    flags = [
        text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)
    ]
    said = run("rank", log, "--method", method, *flags, code=2).stderr
    name, _, rest = message.partition(" ")
    assert f"--{name.replace('_', '-')} {rest}" in " ".join(said.split())


def test_text_that_is_no_number_is_told_what_it_must_be(run: Callable[..., Result], log):
    said = run("rank", log, "--method", "pass_at_k", "--k", "two", code=2).stderr
    assert "--k must be an integer of at least 1; got 'two'" in " ".join(said.split())
