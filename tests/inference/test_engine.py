"""The engine against PyMC's own compiled functions, and its promise to compile once."""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import toposort

from bayesrank.inference.graph import bound_model as module
from bayesrank.inference.graph.bound_model import FUNCTIONS, bind_model, build_objective
from bayesrank.inference.graph.flat_model import FlatModel
from bayesrank.models.observations import BinomialReal

PYTHON = Mode(linker="py", optimizer="fast_compile")


@pytest.fixture(autouse=True, scope="module")
def _without_compiler() -> Iterator[None]:
    """Spare PyMC's reference functions the C++ compiler, which PyTensor calls for inner graphs."""
    with pytensor.config.change_flags(cxx=""):
        yield


def bradley_terry(n_systems: int = 5, seed: int = 0) -> pm.Model:
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n_systems, 1)
    total = rng.integers(5, 50, first.size) + 0.5
    coords = {"system": range(n_systems), "pair": range(first.size)}
    with pm.Model(coords=coords) as model:
        left, right = pm.Data("left", first, dims="pair"), pm.Data("right", second, dims="pair")
        score = pm.ZeroSumNormal("score", sigma=1.5, dims="system")
        BinomialReal(
            "wins",
            n=total,
            logit_p=score[left] - score[right],
            observed=total * rng.uniform(0.2, 0.8, first.size),
            dims="pair",
        )
    return model


def all_transforms() -> pm.Model:
    """Scalars and arrays under every kind of transform, an empty-handed user's model."""
    rng = np.random.default_rng(1)
    with pm.Model(coords={"group": list("abc"), "item": list("uvwx")}) as model:
        sd = pm.HalfNormal("sd", 2.0)
        share = pm.Beta("share", 2.0, 3.0)
        upper = pm.Exponential("upper", 1.0)
        bounded = pm.Uniform("bounded", 0.0, upper)
        cuts = pm.Normal("cuts", 0.0, 2.0, shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
        effect = pm.ZeroSumNormal("effect", sigma=sd, dims=("group", "item"), n_zerosum_axes=2)
        weights = pm.Dirichlet("weights", np.ones(3))
        pm.Deterministic("shifted", effect + bounded, dims=("group", "item"))
        location = effect[:, 0] * share + cuts.sum() + weights[0]
        pm.Normal("y", location, sd, observed=rng.normal(size=(4, 3)))
    return model


def constants_only() -> pm.Model:
    """Data written straight into the graph, as a user would."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=40)
    with pm.Model() as model:
        slope, level = pm.Normal("slope"), pm.Normal("level", 0.0, 5.0)
        pm.Normal("y", level + slope * x, 1.0, observed=rng.normal(size=40))
    return model


def discrete_observed() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0, shape=2)
        p = pm.Dirichlet("p", np.ones(3))
        pm.Poisson("counts", rate, observed=[[3, 0], [1, 4]])
        pm.Categorical("category", p, observed=[0, 2, 1, 1])
        pm.Potential("penalty", -((rate - 1.0) ** 2).sum())
    return model


MODELS: dict[str, Callable[[], pm.Model]] = {
    "bradley_terry": bradley_terry,
    "all_transforms": all_transforms,
    "constants_only": constants_only,
    "discrete_observed": discrete_observed,
}


def split(model: pm.Model, x: np.ndarray) -> dict[str, np.ndarray]:
    """Cut a flat vector into PyMC's dictionary of unconstrained values."""
    start = model.initial_point()
    ends = np.cumsum([value.size for value in start.values()])
    parts = np.split(x, ends[:-1])
    return {
        name: part.reshape(value.shape)
        for (name, value), part in zip(start.items(), parts, strict=True)
    }


@pytest.mark.parametrize("kind", ["map", "nuts"])
@pytest.mark.parametrize("name", MODELS)
def test_value_and_gradient_are_those_of_pymc(name: str, kind: str) -> None:
    model = MODELS[name]()
    bound = bind_model(model, kind, backend="python")
    logp = model.compile_logp(jacobian=kind == "nuts", mode=PYTHON)
    dlogp = model.compile_dlogp(jacobian=kind == "nuts", mode=PYTHON)
    for x in np.random.default_rng(3).normal(size=(3, bound.size)):
        value, gradient = bound.logp_and_gradient(x)
        assert value == pytest.approx(float(logp(split(model, x))), rel=1e-12)
        np.testing.assert_allclose(gradient, dlogp(split(model, x)), rtol=1e-9, atol=1e-10)


def test_likelihood_alone_has_the_variables_it_depends_on() -> None:
    model = all_transforms()
    with model:
        hyper = pm.Normal("hyper")
        pm.Normal("unused", hyper)
    bound = bind_model(model, "mle", backend="python")
    assert list(bound.slices()) == ["sd", "share", "cuts", "effect", "weights"]


def test_likelihood_alone_is_that_of_pymc() -> None:
    model = discrete_observed()
    bound = bind_model(model, "mle", backend="python")
    observed = [*model.observed_RVs, *model.potentials]
    logp = model.compile_logp(vars=observed, jacobian=False, mode=PYTHON)
    x = np.random.default_rng(4).normal(size=bound.size)
    assert bound.logp_and_gradient(x)[0] == pytest.approx(float(logp(split(model, x))), rel=1e-12)


def test_machine_code_agrees_with_python() -> None:
    model = bradley_terry()
    python, numba = (bind_model(model, "nuts", backend=b) for b in ("python", "numba"))
    x = np.random.default_rng(5).normal(size=python.size)
    expected, got = python.logp_and_gradient(x), numba.logp_and_gradient(x)
    assert got[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_hessian_is_the_slope_of_the_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = bind_model(MODELS[name](), "map", backend="python")
    x = 0.5 * np.random.default_rng(6).normal(size=bound.size)
    hessian = bound.hessian(x)
    step = 1e-5
    slopes = [
        (bound.logp_and_gradient(x + e)[1] - bound.logp_and_gradient(x - e)[1]) / (2 * step)
        for e in step * np.eye(bound.size)
    ]
    np.testing.assert_allclose(hessian, slopes, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(module, "LARGEST_BLOCK", 1)
    np.testing.assert_allclose(bound.hessian(x), hessian, rtol=1e-12, atol=1e-12)


def test_named_variables_are_those_of_pymc() -> None:
    model = all_transforms()
    bound = bind_model(model, "map", backend="python")
    points = np.random.default_rng(7).normal(size=(3, bound.size))
    names = [v.name for v in [*model.free_RVs, *model.deterministics]]
    values = bound.named(points)
    assert list(values) == names
    expected = model.compile_fn(
        model.replace_rvs_by_values([model[name] for name in names]),
        inputs=model.value_vars,
        mode=PYTHON,
    )
    for i, x in enumerate(points):
        for name, value in zip(names, expected(split(model, x)), strict=True):
            np.testing.assert_allclose(values[name][i], value, rtol=1e-10, atol=1e-12)


def test_other_data_of_other_shapes_compile_nothing() -> None:
    bind_model(bradley_terry(5), "map", backend="python")
    before = FUNCTIONS.compilations
    for n_systems, seed in [(5, 1), (3, 2), (9, 3)]:
        model = bradley_terry(n_systems, seed)
        bound = bind_model(model, "map", backend="python")
        logp = model.compile_logp(jacobian=False, mode=PYTHON)
        x = np.random.default_rng(seed).normal(size=bound.size)
        assert bound.logp_and_gradient(x)[0] == pytest.approx(float(logp(split(model, x))))
    assert FUNCTIONS.compilations == before


def test_replaced_data_are_seen() -> None:
    model = bradley_terry()
    x = np.linspace(-1.0, 1.0, 4)
    before = bind_model(model, "map", backend="python").logp_and_gradient(x)[0]
    with model:
        pm.set_data({"wins_n": model["wins_n"].get_value() + 1.0})
    after = bind_model(model, "map", backend="python").logp_and_gradient(x)[0]
    logp = model.compile_logp(jacobian=False, mode=PYTHON)
    assert after != before
    assert after == pytest.approx(float(logp(split(model, x))), rel=1e-12)


def test_array_constants_of_one_shape_share_code() -> None:
    def regression(seed: int, n: int, sd: float) -> pm.Model:
        x, y = np.random.default_rng(seed).normal(size=(2, n))
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("slope") * x, sd, observed=y)
        return model

    bind_model(regression(0, 30, 1.0), "map", backend="python")
    before = FUNCTIONS.compilations
    other = regression(1, 30, 1.0)
    expected = float(other.compile_logp(jacobian=False, mode=PYTHON)({"slope": 0.3}))
    value = bind_model(other, "map", backend="python").logp_and_gradient(np.array([0.3]))[0]
    assert value == pytest.approx(expected, rel=1e-12)
    assert FUNCTIONS.compilations == before
    for different in (regression(1, 31, 1.0), regression(1, 30, 2.0)):
        before = FUNCTIONS.compilations
        bind_model(different, "map", backend="python")
        assert FUNCTIONS.compilations > before


def test_terms_of_the_data_are_computed_once() -> None:
    objective = build_objective(FlatModel(bradley_terry(), "map"))
    operations = {str(node.op) for node in toposort([objective.logp, objective.gradient])}
    assert not operations & {"Gammaln", "Ge"}
    bound = bind_model(bradley_terry(), "map", backend="python")
    assert len(bound._arguments) > len(bound.flat.structure.sources)


def test_what_moves_with_the_parameters_stays() -> None:
    with pm.Model() as model:
        data = pm.Data("data", np.arange(1.0, 6.0))
        level = pm.Normal("level", 0.0, 2.0)
        # The same data-only vector, its own sum and its logarithm, met with the parameter twice.
        scaled = pt.exp(data) / pt.exp(data).sum()
        pm.Potential("penalty", -(scaled * (level - pt.log(data)) ** 2).sum() + scaled.sum())
    bound = bind_model(model, "map", backend="python")
    logp = model.compile_logp(jacobian=False, mode=PYTHON)
    for level in (-1.0, 0.5):
        value = bound.logp_and_gradient(np.array([level]))[0]
        assert value == pytest.approx(float(logp({"level": level})), rel=1e-13)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_threads_do_not_disturb_one_another(backend: str) -> None:
    bound = bind_model(bradley_terry(), "nuts", backend=backend)
    points = np.random.default_rng(8).normal(size=(2, 300, bound.size))
    expected = [[bound.logp_and_gradient(x)[0] for x in chain] for chain in points]
    got: list[list[float]] = [[], []]

    def run(chain: int) -> None:
        got[chain] = [bound.logp_and_gradient(x)[0] for x in points[chain]]

    threads = [threading.Thread(target=run, args=(chain,)) for chain in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == expected


def test_starting_point_is_that_of_the_model() -> None:
    with pm.Model() as model:
        pm.Normal("a", 3.0, 1.0, initval=1.25)
        pm.Exponential("b", 0.5, initval=np.exp(2.0))
        pm.Normal("c", 4.0, 1.0, shape=2)
    bound = bind_model(model, "map", backend="python")
    np.testing.assert_allclose(bound.start, [1.25, 2.0, 4.0, 4.0])


def test_a_starting_point_from_the_prior_repeats() -> None:
    with pm.Model() as model:
        pm.Normal("a", shape=3, initval="prior")
    starts = [bind_model(model, "map", backend="python").start for _ in range(2)]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert np.ptp(starts[0]) > 0.0


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_indices_beyond_the_data_are_refused(backend: str) -> None:
    model = bradley_terry()
    bind_model(model, "nuts", backend=backend)
    with model:
        pm.set_data({"right": np.full(10, 3_000_000)})
    with pytest.raises(ValueError, match="model must have data of matching shapes; got index 3000"):
        bind_model(model, "nuts", backend=backend)


def test_impossible_parameters_have_no_probability() -> None:
    with pm.Model() as model:
        level = pm.Normal("level")
        pm.Normal("y", 0.0, level, observed=[1.0])
    value, _ = bind_model(model, "map", backend="python").logp_and_gradient(np.array([-1.0]))
    assert value == -np.inf


def test_a_discrete_free_variable_is_refused() -> None:
    with pm.Model() as model:
        pm.Poisson("count", 3.0)
    with pytest.raises(ValueError, match=r"continuous free variables only; got discrete \['count"):
        bind_model(model, "map")


def test_minibatches_are_refused() -> None:
    with pm.Model() as model:
        batch = pm.Minibatch(np.arange(20.0), batch_size=5)
        pm.Normal("y", pm.Normal("mu"), observed=batch, total_size=20)
    with pytest.raises(ValueError, match="deterministic log-probability"):
        bind_model(model, "map")


def test_a_model_without_parameters_or_data_is_refused() -> None:
    with pm.Model() as nothing_free:
        pm.Normal("y", 0.0, 1.0, observed=[1.0])
    with pytest.raises(ValueError, match="model must have free variables; got none"):
        bind_model(nothing_free, "map")
    with pm.Model() as nothing_observed:
        pm.Normal("mu")
    with pytest.raises(ValueError, match="must have an observed variable or a potential"):
        bind_model(nothing_observed, "mle")
