"""Rules about powers: one that undoes a root, one spelled by a logarithm, one of a product, a product over a factor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from rules.harness import Program
from rules.tables import Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

INF, NAN = float("inf"), float("nan")
UNDOES, BY_LOGARITHM, OF_PRODUCT = "power_that_undoes_root", "power_by_logarithm", "power_of_product"

ITSELF = Family(
    UNDOES,
    breaking=[0.0],
    ordinary=[1e-30, 0.5, 1.0, 2.0, 1e30],
    spellings={
        "sqrt(x)**2": lambda x: jnp.sqrt(x) ** 2,
        "sqrt(x) sqrt(x)": lambda x: jnp.sqrt(x) * jnp.sqrt(x),
        "square(sqrt(x))": lambda x: jnp.square(jnp.sqrt(x)),
        "(x**0.5)**2": lambda x: (x**0.5) ** 2,
        "x**0.25 x**0.75": lambda x: x**0.25 * x**0.75,
        "sqrt(x)**2.0": lambda x: jnp.power(jnp.sqrt(x), 2.0),
        "sqrt(sqrt(x))**4": lambda x: jnp.sqrt(jnp.sqrt(x)) ** 4,
        "x**0.5 sqrt(x)": lambda x: x**0.5 * jnp.sqrt(x),
        "reshaped": lambda x: (jnp.sqrt(x).reshape(-1, 1) ** 2).ravel(),
        "under jit": lambda x: jax.jit(jnp.sqrt)(x) ** 2,
        "2 sqrt(x)**2 / 2": lambda x: 2 * jnp.sqrt(x) ** 2 / 2,
        "-(-sqrt(x))**2": lambda x: (-jnp.sqrt(x)) ** 2,
    },
    dtypes=("bfloat16", "float64"),
    exponent=False,
    thorough=True,
)
HIGHER = Family(
    UNDOES,
    breaking=[0.0],
    ordinary=[1e-10, 0.5, 1.0, 2.0, 1e10],
    spellings={
        "sqrt(x)**4": lambda x: jnp.sqrt(x) ** 4,
        "(x**0.25)**8": lambda x: (x**0.25) ** 8,
        "sqrt(x)**2 x": lambda x: jnp.sqrt(x) ** 2 * x,
        "sqrt(x)**3 sqrt(x)": lambda x: jnp.sqrt(x) ** 3 * jnp.sqrt(x),
    },
    exponent=False,
)
OF_TWO = Family(
    UNDOES,
    breaking=[(0.0, 0.5), (0.0, 2.0)],
    ordinary=[(1.0, 2.0), (3.0, -1.0), (1e-20, 0.5)],
    spellings={
        "sqrt(x)**2 + y": lambda x, y: jnp.sqrt(x) ** 2 + y,
        "sqrt(x)**2 y": lambda x, y: jnp.sqrt(x) ** 2 * y,
        "exp(-sqrt(x)**2 y)": lambda x, y: jnp.exp(-(jnp.sqrt(x) ** 2)) * y,
        "sqrt(|x y|)**2": lambda x, y: jnp.sqrt(x * y**2) ** 2,
    },
    exponent=False,
)
POWER = Family(
    BY_LOGARITHM,
    breaking=[(0.0, 2.0), (0.0, 3.5), (0.0, 1.0)],
    ordinary=[(1.0, 2.0), (0.5, 0.0), (3.0, -1.5), (2.0, 10.0), (1e-3, 2.0)],
    spellings={
        "exp(p log(x))": lambda x, p: jnp.exp(p * jnp.log(x)),
        "exp(log(x) p)": lambda x, p: jnp.exp(jnp.log(x) * p),
        "2 exp(p log(x)) / 2": lambda x, p: 2 * jnp.exp(p * jnp.log(x)) / 2,
        "exp(2 p log(x) / 2)": lambda x, p: jnp.exp(2 * p * jnp.log(x) / 2),
    },
    exponent=False,
    thorough=True,
    meaning=lambda x, p: x**p,
)


@table(ITSELF, HIGHER, OF_TWO, POWER)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


BETA = Family(
    BY_LOGARITHM,
    breaking=[(0.0, 2.0), (0.0, 3.0)],
    ordinary=[(0.25, 2.0), (0.5, 1.5), (0.75, 3.0)],
    spellings={
        "exp(p log(x) - x)": lambda x, p: jnp.exp(p * jnp.log(x) - x),
        "exp((p - 1) log(x) + 1)": lambda x, p: jnp.exp((p + 1) * jnp.log(x) + 1),
        "Poisson": lambda x, p: jnp.exp(p * jnp.log(x) - x - jax.scipy.special.gammaln(p + 1)),
    },
    exponent=False,
)


@table(BETA)
def test_densities(cases, name, thorough):
    cases.check(name, thorough=thorough)


# -- products along axes ---------------------------------------------------------------------------------------------

FACTORS = np.array(
    [[1e-20, 2e-20, 5e-20, 1e-10], [1e20, 2e25, 4e15, 3.0], [0.5, 1.5, 2.0, 1.0], [-1.0, -4.0, 2.0, 3.0]]
)
MEANS = {
    "prod**0.25": lambda x: jnp.prod(x, -1) ** 0.25,
    "sqrt(prod)": lambda x: jnp.sqrt(jnp.prod(x, -1)),
    "sqrt(sqrt(prod))": lambda x: jnp.sqrt(jnp.sqrt(jnp.prod(x, -1))),
    "power(prod, 1 / 3)": lambda x: jnp.power(jnp.prod(x, -1), 0.75),
    "prod(keepdims)": lambda x: (jnp.prod(x, -1, keepdims=True) ** 0.25)[:, 0],
    "of columns": lambda x: jnp.prod(x.T, 0) ** 0.25,
    "3 prod**0.25 - 1": lambda x: 3 * jnp.prod(x, -1) ** 0.25,
}
MEAN_CASES = Cases({name: Case(f, [FACTORS], OF_PRODUCT, [0, 1]) for name, f in MEANS.items()})


@pytest.mark.parametrize("name", MEAN_CASES)
def test_geometric_means(name):
    MEAN_CASES.check(name, thorough=name == "prod**0.25")


WITH_ZEROS = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.5, -2.0, 4.0], [0.0, 0.0, 0.0]])
SCALES = np.array([1.0, -0.5, 2.0], np.float32)


def others_exactly(x):
    a, b, c = x[:, 0], x[:, 1], x[:, 2]
    return jnp.stack([b * c, a * c, a * b], -1) * SCALES


OTHERS = {
    "prod / x": lambda x: SCALES * (jnp.prod(x, -1, keepdims=True) / x),
    "prod[:, None] / x": lambda x: SCALES * (jnp.prod(x, -1)[:, None] / x),
    "prod (1 / x)": lambda x: SCALES * (jnp.prod(x, -1, keepdims=True) * (1 / x)),
    "prod x**-1": lambda x: SCALES * (jnp.prod(x, -1, keepdims=True) * x**-1),
    "scale prod / x": lambda x: SCALES * jnp.prod(x, -1, keepdims=True) / x,
    "of columns": lambda x: (SCALES[:, None] * (jnp.prod(x.T, 0) / x.T)).T,
}
OTHER_CASES = Cases(
    {
        name: Case(f, [WITH_ZEROS], "product_over_factor", [0, 1, 3], options={"meaning": others_exactly})
        for name, f in OTHERS.items()
    }
)


def test_an_infinity_over_itself():
    x = np.array([[np.inf, 2.0, 0.5]], np.float32)
    np.testing.assert_array_equal(stabilize(OTHERS["prod / x"])(x), OTHERS["prod / x"](x))


@pytest.mark.parametrize("name", OTHER_CASES)
def test_products_over_a_factor(name):
    OTHER_CASES.check(name, thorough=name == "prod / x")


# -- what stays ------------------------------------------------------------------------------------------------------

DOMAIN = Domain(
    {
        "sqrt(x)**2": (lambda x: jnp.sqrt(x) ** 2, [-1.0, 0.0, 2.0, NAN, INF]),
        "sqrt(x) sqrt(x) x": (lambda x: jnp.sqrt(x) * jnp.sqrt(x) * x, [-1.0, 2.0, NAN]),
        "sqrt(x) sqrt(y)": (lambda x, y: jnp.sqrt(x) * jnp.sqrt(y), [-1.0, 2.0, NAN], [-1.0, -3.0, 1.0]),
        "exp(p log(x))": (lambda x, p: jnp.exp(p * jnp.log(x)), [-1.0, 2.0, NAN, 2.0], [2.0, 2.0, 1.0, NAN]),
        "exp(p log(x)), negative powers": (lambda x, p: jnp.exp(p * jnp.log(x)), [0.0, 2.0, INF], [-2.0, -1.0, 2.0]),
        "prod(x, y)**0.5": (
            lambda x, y: jnp.prod(jnp.stack([x, y]), 0) ** 0.5,
            [-1.0, 2.0, INF, NAN, -1.0],
            [1.0, 3.0, 1.0, 1.0, -4.0],
        ),
        "sqrt(x)**2 of a difference": (lambda x, y: jnp.sqrt(x - y) ** 2, [1.0, 2.0, INF], [2.0, 1.0, 1.0]),
        "rsqrt(x)**2": (lambda x: lax.rsqrt(x) ** 2, [-1.0, 2.0, NAN]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "sqrt(x) sqrt(y)": lambda u, v: jnp.sqrt(u) * jnp.sqrt(v),
    "sqrt(x)**3": lambda u, v: jnp.sqrt(u) ** 3,
    "x**2": lambda u, v: u**2,
    "x**p": lambda u, v: u**v,
    "sqrt(2 + sin(x))**2": lambda u, v: jnp.sqrt(2 + jnp.sin(u)) ** 2,
    "exp(p log(2 + sin(x)))": lambda u, v: jnp.exp(v * jnp.log(2 + jnp.sin(u))),
    "exp(log(x)**2)": lambda u, v: jnp.exp(jnp.log(u) ** 2),
    "prod(x)": lambda u, v: jnp.prod(u, -1),
    "prod(x)**2": lambda u, v: jnp.prod(u, -1) ** 2,
    "prod(x) / y": lambda u, v: jnp.prod(u, -1, keepdims=True) / v,
    "prod over the other axis": lambda u, v: jnp.prod(u, 0, keepdims=True) / jnp.prod(v, 0, keepdims=True),
    "sqrt(prod(2 + sin(x)))": lambda u, v: jnp.sqrt(jnp.prod(2 + jnp.sin(u), -1)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.full((2, 4), 0.5), jnp.ones((2, 4)))


def test_norms_squared():
    """exp(-|x|**2), and a Gaussian of distances with its diagonal: no length remains."""
    x = np.array([[0.0, 0.0], [3e-25, 4e-25], [1.0, 2.0]])
    program = Program(lambda x: jnp.exp(-(jnp.linalg.norm(x, axis=-1) ** 2)), [x])
    for answer in (*program.eager(), *program.jitted()):
        program.assert_right(answer)
    stable = stabilize(lambda x: jnp.exp(-(jnp.linalg.norm(x[:, None] - x[None], axis=-1) ** 2)).sum())
    np.testing.assert_array_equal(np.isfinite(jax.grad(stable)(jnp.asarray(x, "float32"))), True)


def test_a_product_of_square_roots_of_different_things_is_no_power():
    f = stabilize(lambda x, y: jnp.sqrt(x) * jnp.sqrt(y) * jnp.sqrt(x))
    np.testing.assert_allclose(f(jnp.float32(3), jnp.float32(4)), 6, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f, (0, 1))(jnp.float32(0), jnp.float32(4)), [2, 0])


@pytest.mark.parametrize("n", [jnp.array([1, 2, 3]), jnp.array(2)])
def test_whole_numbers_as_exponents_stay(n, recwarn):
    def f(x):
        return jnp.sum((1 - jax.nn.sigmoid(x)) ** n)

    x = jnp.array([1.0, 2.0, -3.0])
    np.testing.assert_allclose(jax.grad(stabilize(f))(x), jax.grad(f)(x), rtol=1e-5)
    assert not recwarn.list
