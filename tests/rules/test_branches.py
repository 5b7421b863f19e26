"""The branch that a `where` does not take."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import logsumexp

from rules.tables import Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

INF, NAN = float("inf"), float("nan")
RULE = "untaken_branch"
GUARDED_LOG = Family(
    RULE,
    breaking=[0.0],
    ordinary=[-1.0, 1e-30, 1.0, 2.0, -200.0],
    spellings={
        "where(x > 0, log(x), 0)": lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
        "where(x <= 0, 0, log(x))": lambda x: jnp.where(x <= 0, 0.0, jnp.log(x)),
        "where(0 < x, log(x), x)": lambda x: jnp.where(x > 0, jnp.log(x), x),
        "where(not x <= 0, ...)": lambda x: jnp.where(~(x <= 0), jnp.log(x), 0.0),
        "lax.select": lambda x: lax.select(x > 0, jnp.log(x), jnp.zeros_like(x)),
        "3 log(x) + 1": lambda x: jnp.where(x > 0, 3 * jnp.log(x) + 1, 0.0),
        "-log(x)**2": lambda x: jnp.where(x > 0, -(jnp.log(x) ** 2), 0.0),
        "x log(x)": lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0),
        "log of a reshaped x": lambda x: jnp.where(x > 0, jnp.log(x.reshape(2, -1)).ravel(), 0.0),
        "log of a reversed x": lambda x: jnp.where(x > 0, jnp.log(x[::-1])[::-1], 0.0),
        "log of a rolled x": lambda x: jnp.where(x > 0, jnp.roll(jnp.log(jnp.roll(x, 2)), -2), 0.0),
        "a gathered log": lambda x: jnp.where(x > 0, jnp.log(x)[jnp.arange(len(x))], 0.0),
        "joined logs": lambda x: jnp.where(x > 0, jnp.concatenate([jnp.log(x[:2]), jnp.log(x[2:])]), 0.0),
        "a jitted log": lambda x: jnp.where(x > 0, jax.jit(jnp.log)(x), 0.0),
        "a broadcast log": lambda x: jnp.where((x > 0)[:, None], jnp.log(x)[:, None], jnp.zeros((1, 2)))[:, 0],
        "both branches of it": lambda x: jnp.where(x > 0, jnp.log(x), 0.0) + jnp.where(x > 2, 1.0, jnp.sin(x)),
        "sqrt(x)": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
        "cbrt(x)": lambda x: jnp.where(x > 0, jnp.cbrt(x), 0.0),
        "1 / sqrt(x)": lambda x: jnp.where(x > 1e-3, 1 / jnp.sqrt(x), 0.0),
        "1 / x": lambda x: jnp.where(x > 1e-3, 1 / x, 0.0),
        "x**0.5": lambda x: jnp.where(x > 0, x**0.5, 0.0),
        "x**-1.5": lambda x: jnp.where(x > 1e-3, x**-1.5, 0.0),
        "x**x": lambda x: jnp.where(x > 0, x**x, 1.0),
        "log2(x)": lambda x: jnp.where(x > 0, jnp.log2(x), 0.0),
        "sqrt(x) log(x)": lambda x: jnp.where(x > 0, jnp.sqrt(x) * jnp.log(x), 0.0),
        "log under checkpoint": lambda x: jnp.where(x > 0, jax.checkpoint(jnp.log)(x), 0.0),
        "the select of a vmap": lambda x: jax.vmap(lambda v: jnp.where(v > 0, jnp.log(v), 0.0))(x),
        "nested": lambda x: jnp.where(x > 0, jnp.where(x > 1, jnp.log(x - 1), jnp.sqrt(x)), 0.0),
        "jnp.select": lambda x: jnp.select([x < 0, x == 0], [-x, 1.0 + x], jnp.log(x)),
        "max(x, -5)": lambda x: jnp.where(x > 0, jnp.log(jnp.maximum(x, -5)), 0.0),
    },
    dtypes=("float16", "bfloat16", "float64"),
    exponent=False,
    thorough=True,
)
INVERSE_FUNCTIONS = Family(
    RULE,
    breaking=[1.0, -1.0],
    ordinary=[0.0, 0.5, 3.0],
    spellings={
        "arccos(x)": lambda x: jnp.where(jnp.abs(x) < 1, jnp.arccos(x), 0.0),
        "arcsin(x)": lambda x: jnp.where(jnp.abs(x) < 1, jnp.arcsin(x), x),
        "arctanh(x)": lambda x: jnp.where(jnp.abs(x) < 1, jnp.arctanh(x), 0.0),
        "sqrt(1 - x**2)": lambda x: jnp.where(jnp.abs(x) < 1, jnp.sqrt(1 - x**2), 0.0),
        "1 / (1 - x**2)": lambda x: jnp.where(jnp.abs(x) < 1, 1 / (1 - x**2), 0.0),
        "log(1 - x x)": lambda x: jnp.where(jnp.abs(x) < 1, jnp.log(1 - x * x), 0.0),
        "erfinv(x)": lambda x: jnp.where(jnp.abs(x) < 1, jax.scipy.special.erfinv(x), 0.0),
    },
    exponent=False,
)
EXPONENTIALS = Family(
    RULE,
    breaking=[200.0, 95.0],
    ordinary=[0.0, -1.0, 1e-30, 1.0, -200.0],
    spellings={
        "where(x > 0, x, exp(x) - 1)": lambda x: jnp.where(x > 0, x, jnp.exp(x) - 1),
        "where(x > 0, 2 x, expm1(x))": lambda x: jnp.where(x > 0, 2 * x, jnp.expm1(x)),
        "where(x < 0, exp(x), 1 + x)": lambda x: jnp.where(x < 0, jnp.exp(x), 1 + x),
        "where(x > 20, x, log(1 + exp(x)))": lambda x: jnp.where(x > 20, x, jnp.exp(x) * jnp.cos(x)),
        "where(x > 9, x, sinh(x))": lambda x: jnp.where(x > 9, x, jnp.sinh(x)),
        "where(x > 9, x, cosh(x))": lambda x: jnp.where(x > 9, x, jnp.cosh(jnp.maximum(x, -1))),
        "where(x > 9, x, exp(x)**2)": lambda x: jnp.where(x > 9, x, jnp.exp(x) ** 2),
    },
)
TWO = Family(
    RULE,
    breaking=[(0.0, 0.0)],
    ordinary=[(1.0, 2.0), (0.0, 3.0), (-1.0, 0.0)],
    spellings={
        "a root": lambda x, y: jnp.where(jnp.abs(x) + jnp.abs(y) > 0, jnp.sqrt(jnp.abs(x) + jnp.abs(y)), 0.0),
        "arctan2": lambda x, y: jnp.where((x != 0) | (y != 0), jnp.arctan2(x, y), 0.0),
        "x / y": lambda x, y: jnp.where(jnp.abs(y) + jnp.abs(x) > 0, x / jnp.sqrt(x * x + y * y), 0.0),
        "log(x x + y y)": lambda x, y: jnp.where(x * x + y * y > 0, jnp.log(x * x + y * y), 0.0),
    },
    exponent=False,
)

ndtr = jax.scipy.special.ndtr
TAKEN = Family(  # what a rule writes for a logarithm holds selects of its own, under the `where` of the program
    RULE,
    breaking=[(-150.0, 0.0), (-150.0, -2.0)],
    ordinary=[(-6.0, 0.0), (-12.0, -1.0), (-3.0, 0.0), (-6.0, 1.0), (0.25, 0.0), (2.0, 0.0), (-150.0, 1.0)],
    spellings={
        "where(y > 0, z, log(ndtr(z)))": lambda z, y: jnp.where(y > 0, z, jnp.log(ndtr(z))),
        "where(y <= 0, log(ndtr(z)), z)": lambda z, y: jnp.where(y <= 0, jnp.log(ndtr(z)), z),
        "-2 log(ndtr(z)) + z": lambda z, y: jnp.where(y > 0, z, -2 * jnp.log(ndtr(z)) + z),
        "a where in a where": lambda z, y: jnp.where(
            y > 0, z, jnp.where(y > -1, jnp.log(ndtr(z)), jnp.log(ndtr(2 * z)))
        ),
        "log(erfc(-z))": lambda z, y: jnp.where(y > 0, z, jnp.log(jax.scipy.special.erfc(-z))),
    },
    exponent=False,
)
LOG_OF_WHERE = Family(
    "log_of_companion",
    breaking=TAKEN.breaking,
    ordinary=TAKEN.ordinary,
    spellings={"log of a where": lambda z, y: jnp.log(jnp.where(y > 0, z * z, ndtr(z)))},
    exponent=False,
)
NOT_TAKEN = Family(  # functions that only rules write, where they have no slope
    RULE,
    breaking=[(200.0, 0.0), (-200.0, 0.0)],
    ordinary=[(0.5, 1.0), (-2.0, 0.0), (3.0, 1.0)],
    spellings={
        "log(1 - exp(-exp(|x|)))": lambda x, y: jnp.where(y > 0, jnp.log(1 - jnp.exp(-jnp.exp(jnp.abs(x)))), x),
        "sinh(x) + cosh(x)": lambda x, y: jnp.where(y > 0, jnp.sinh(x) + 2 * jnp.cosh(x), x),
        "log1p(-|x|) / |x|": lambda x, y: jnp.where(y > 3, jnp.log1p(-jnp.abs(x)) / jnp.abs(x), x),
        "logit(x)": lambda x, y: jnp.where(y > 3, jax.scipy.special.logit(jnp.minimum(jnp.abs(x), 1)), x),
    },
    exponent=False,
)


@table(GUARDED_LOG, INVERSE_FUNCTIONS, EXPONENTIALS, TWO, TAKEN, LOG_OF_WHERE, NOT_TAKEN)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


MASK = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
ROWS = np.array([[2.0, -3.0, 1.5, 0.5], [-1.0, 0.25, 10.0, 9.5], [2.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
VALUES = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 3.0]])


def _softmax(x):
    shifted = jnp.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


LARGER = {
    "sum of guarded logs": (lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0), -1), [VALUES], [0, 2]),
    "guarded log of a sum": (
        lambda x: jnp.where(x.sum(-1) > 0, jnp.log(x.sum(-1)), 0.0), [VALUES], [0]),
    "guarded log of an indexed x": (
        lambda x: jnp.where(x > 0, jnp.log(x), 0.0)[jnp.array([0, 0, 1, 2])][:3], [VALUES], [0]),
    "matrix product of guarded logs": (
        lambda x: jnp.where(x > 0, jnp.log(x), 0.0) @ jnp.array([1.0, 2.0]), [VALUES], [0, 2]),
    "guarded root of a sum": (
        lambda x: jnp.where(x.sum(-1) > 0, jnp.sqrt(x.sum(-1)), 0.0), [VALUES], [0]),
    "guarded unit vector": (
        lambda x: jnp.where((x**2).sum(-1) > 0, x[:, 0] / jnp.sqrt((x**2).sum(-1)), 0.0), [VALUES], [0]),
    "attention, a row all masked": (
        lambda x: jnp.where(MASK.any(-1, keepdims=True), _softmax(jnp.where(MASK, x, -jnp.inf)), 0.0)
        * jnp.array([1.0, 2.0, 3.0, 4.0]), [ROWS], ()),
}  # fmt: skip


LARGER_CASES = Cases({name: Case(f, args, RULE, breaking) for name, (f, args, breaking) in LARGER.items()})


@pytest.mark.parametrize("name", LARGER_CASES)
def test_larger(name):
    LARGER_CASES.check(name)


MASKS = {  # with the slopes at 0, 1, 4, -1
    "(x > 0) log(max(x, 0))": (lambda x: (x > 0) * jnp.log(jnp.maximum(x, 0)), [0.0, 1.0, 0.25, 0.0]),
    "(x > 0) sqrt(max(x, 0))": (lambda x: (x > 0) * jnp.sqrt(jnp.maximum(x, 0)), [0.0, 0.5, 0.25, 0.0]),
    "sqrt(|x|) (x > 0).astype": (lambda x: jnp.sqrt(jnp.abs(x)) * (x > 0).astype(x.dtype), [0.0, 0.5, 0.25, 0.0]),
    "2 (x > 0) sqrt(|x|) / 4": (lambda x: 2 * (x > 0) * jnp.sqrt(jnp.abs(x)) / 4, [0.0, 0.25, 0.125, 0.0]),
    "(1 - (x <= 0)) cbrt(x)": (lambda x: (1 - (x <= 0)) * jnp.cbrt(x), [0.0, 1 / 3, 4 ** (-2 / 3) / 3, 0.0]),
    "where(x > 0, 1, 0) |x|**1.5": (
        lambda x: jnp.where(x > 0, 1.0, 0.0) * jnp.abs(x) ** 0.5 * x, [0.0, 1.5, 3.0, 0.0]),
    "a mask in columns": (
        lambda x: ((x > 0).astype(x.dtype)[:, None] * jnp.sqrt(jnp.abs(x))[:, None])[:, 0], [0.0, 0.5, 0.25, 0.0]),
}  # fmt: skip
GUARDS = {
    "double where of log": lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0),
    "double where of sqrt": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0),
    "double where of 1 / x": lambda x: jnp.where(x != 0, 1 / jnp.where(x != 0, x, 1.0), 0.0),
    "mask times guarded log": lambda x: (x > 0) * jnp.log(jnp.where(x > 0, x, 1.0)),
    "clipped log": lambda x: jnp.log(jnp.maximum(x, 1e-6)),
    "log of x plus eps": lambda x: jnp.log(x + 1e-6),
    "sqrt of x plus eps": lambda x: jnp.sqrt(x * x + 1e-12),
}


@pytest.mark.parametrize("options", [{}, {"disable": "untaken_branch"}], ids=["all rules", "no guards"])
@pytest.mark.parametrize("name", GUARDS)
def test_the_users_own_guard_is_kept(name, options):
    x = jnp.array([0.0, 1.0, 2.0])
    f = GUARDS[name]
    stable = stabilize(f, **options)
    np.testing.assert_allclose(stable(x), f(x), rtol=1e-6)
    for wrap in (lambda g: g, jax.jit):
        got = wrap(jax.grad(lambda x: stable(x).sum()))(x)
        np.testing.assert_allclose(got, jax.grad(lambda x: f(x).sum())(x), rtol=1e-6)


DOMAIN = Domain(
    {
        "a taken log": (lambda x: jnp.where(x > -5, jnp.log(x), 0.0), [-2.0, 0.0, 1.0, INF]),
        "a taken sqrt": (lambda x: jnp.where(x > -5, jnp.sqrt(x), 0.0), [-2.0, 1.0, INF]),
        "NaN taken": (lambda x: jnp.where(x <= 5, 0.0, jnp.log(x)), [NAN, 1.0, 6.0]),
        "a taken quotient": (lambda x: jnp.where(x > -5, x / (x + 1), 0.0), [-1.0, 0.0, NAN]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "where(x > 0, x, 0.1 x)": lambda x: jnp.where(x > 0, x, 0.1 * x),
    "relu": lambda x: jax.nn.relu(x),
    "leaky_relu": lambda x: jax.nn.leaky_relu(x),
    "elu": lambda x: jnp.where(x > 0, x, jnp.expm1(jnp.where(x > 0, 0.0, jnp.maximum(x, -0.5)))),
    "clip": lambda x: jnp.clip(x, -1, 1),
    "where of a sine": lambda x: jnp.where(x > 0, jnp.sin(x), jnp.cos(x)),
    "where of a bounded log": lambda x: jnp.where(x > 0, jnp.log(2 + jnp.sin(x)), 0.0),
    "masked mean": lambda x: jnp.where(x > 0, x, 0.0).sum() / 4,
    "library logsumexp": lambda x: logsumexp(x, -1),
    "dropout": lambda x: jnp.where(x > 0.5, x / 0.5, 0.0),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)))


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_multiply(name):
    f, slope = MASKS[name]
    x = jnp.array([0.0, 1.0, 4.0, -1.0])
    for wrap in (lambda g: g, jax.jit):
        np.testing.assert_allclose(wrap(jax.grad(lambda x: stabilize(f)(x).sum()))(x), slope, rtol=1e-5)


def test_a_domain_error_under_a_mask_stays():
    """0 * log(0) is 0, 0 * log(-1) is NaN."""
    f = stabilize(lambda x, m: jnp.log(x) * m.astype(x.dtype))
    np.testing.assert_array_equal(f(jnp.array([0.0, -1.0, 1.0]), jnp.array([False, False, True])), [0.0, NAN, 0.0])


def test_users_of_the_hazard_outside_the_where_keep_it():
    def f(x):
        logarithm = jnp.log(x)
        return jnp.where(x > 1, logarithm, 0.0), logarithm

    guarded, free = stabilize(f)(jnp.array([0.0, -1.0, 2.0]))
    np.testing.assert_array_equal(guarded, jnp.where(jnp.array([0, 0, 1]), jnp.log(2.0), 0))
    np.testing.assert_array_equal(free, jnp.array([-INF, NAN, np.log(np.float32(2.0))]))


@pytest.mark.parametrize("x", [0.7, 2.0, 0.2])
def test_a_guard_of_the_user_s_before_a_difference(x):
    """where(c, log(where(c, x - a, 1)), 0), also divided by what it guards, and a stabilized one stabilized again."""

    def guarded(x):
        return jnp.where(x > 0.7, jnp.log(jnp.where(x > 0.7, x - 0.7, 1.0)), 0.0)

    def divided(x):
        inside = jnp.where(x > 0.7, x - 0.7, 1.0)
        return jnp.where(x > 0.7, jnp.log(inside) / inside, 0.0)

    for f in (guarded, divided, stabilize(lambda x: jnp.where(x > 0.7, jnp.log(x - 0.7), 0.0))):
        value, slope = jax.value_and_grad(stabilize(f))(jnp.float32(x))
        np.testing.assert_allclose([value, slope], jax.value_and_grad(f)(jnp.float32(x)), rtol=1e-6)
