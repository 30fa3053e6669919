"""Vectorised logistic functions and products, and what compiled models make of them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.graph.traversal import toposort
from scipy.special import expit

from bayesrank.models.array_ops import logistic_arrays, with_array_ops


def op_names(function) -> list[str]:
    return [type(node.op).__name__ for node in toposort(function.maker.fgraph.outputs)]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 2000])
def test_values_are_those_of_scipy(size: int) -> None:
    x = np.random.default_rng(size).normal(scale=20.0, size=size)
    softplus, sigmoid = logistic_arrays(x)
    np.testing.assert_allclose(softplus, np.logaddexp(0.0, x), rtol=4e-15)
    np.testing.assert_allclose(sigmoid, expit(x), rtol=4e-15)


def test_extreme_and_strided_arguments() -> None:
    x = np.array([0.0, -0.0, 1e-300, 40.0, -40.0, -699.0, 1e5, -1e5, np.inf, -np.inf, np.nan])
    strided = np.repeat(x, 2)[::2]
    softplus, sigmoid = logistic_arrays(strided)
    # Below -700 both are given as e^-700, which no sum with a number above 1e-280 notices.
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(0.0, x)
    np.testing.assert_allclose(softplus, expected, rtol=4e-15, atol=1e-300)
    np.testing.assert_allclose(sigmoid, expit(x), rtol=4e-15, atol=1e-300)


def test_value_and_gradient_share_one_operation() -> None:
    x = pt.dvector("x")
    value = (2.0 * pt.softplus(x)).sum()
    outputs = [value, pt.grad(value, x)]
    compiled = pytensor.function([x], outputs, mode=with_array_ops(get_mode("NUMBA")))
    assert op_names(compiled).count("_Logistic") == 1
    at = np.array([-1.0, 0.0, 3.0])
    got = compiled(at)
    np.testing.assert_allclose(got[0], 2.0 * np.logaddexp(0.0, at).sum(), rtol=1e-14)
    np.testing.assert_allclose(got[1], 2.0 * expit(at), rtol=1e-14)


def test_scalars_and_matrices_stay_as_they_are() -> None:
    for x in (pt.dscalar("x"), pt.dmatrix("x")):
        compiled = pytensor.function([x], pt.softplus(x), mode=with_array_ops(get_mode("NUMBA")))
        assert "_Logistic" not in op_names(compiled)


def test_products_of_matrices_are_those_of_numpy() -> None:
    x, y = pt.dmatrices("x", "y")
    # The second is transposed, so that its memory is not contiguous.
    value = (pt.exp(x) @ y.T) ** 2
    outputs = [value, *pt.grad(value.sum(), [x, y])]
    compiled = pytensor.function([x, y], outputs, mode=with_array_ops(get_mode("NUMBA")))
    assert op_names(compiled).count("_MatrixProduct") == 3
    assert "Dot" not in op_names(compiled)
    for n, k, m in [(0, 2, 3), (2, 0, 3), (1, 1, 1), (5, 3, 4), (30, 200, 7)]:
        rng = np.random.default_rng(1)
        at = rng.normal(size=(n, k)), rng.normal(size=(m, k))
        product = np.exp(at[0]) @ at[1].T
        by_x, by_y = np.exp(at[0]) * (2.0 * product @ at[1]), 2.0 * product.T @ np.exp(at[0])
        for got, expected in zip(compiled(*at), [product**2, by_x, by_y], strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_products_with_vectors_are_replaced_and_those_of_whole_numbers_are_not() -> None:
    x, y, n = pt.dmatrix("x"), pt.dvector("y"), pt.lmatrix("n")
    outputs = [x @ y, y @ x, n @ n.T]
    compiled = pytensor.function([x, y, n], outputs, mode=with_array_ops(get_mode("NUMBA")))
    assert op_names(compiled).count("_MatrixProduct") == 2
    assert op_names(compiled).count("Dot") == 1
    # A known length stays known, so that nothing has to check it.
    assert "SpecifyShape" not in op_names(compiled)
