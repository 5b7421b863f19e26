"""Rules whose root is a logarithm: elementwise arguments (along axes: test_log_along_axes.py)."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.nn import sigmoid

from rules.tables import HALVES, Family, table
from rules.unchanged import Domain

INF, NAN = float("inf"), float("nan")
LOG = "log_of_companion"

SOFTPLUS = Family(
    LOG,
    breaking=[200.0, 95.0],
    ordinary=[-200.0, -95.0, -20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "log(1 + exp(x))": lambda x: jnp.log(1 + jnp.exp(x)),
        "log(exp(x) + 1)": lambda x: jnp.log(jnp.exp(x) + 1.0),
        "log1p(exp(x))": lambda x: jnp.log1p(jnp.exp(x)),
        "log(exp(x) - -1)": lambda x: jnp.log(jnp.exp(x) - -1.0),
        "log(exp(0) + exp(x))": lambda x: jnp.log(jnp.exp(jnp.zeros_like(x)) + jnp.exp(x)),
        "-log(1 / (1 + exp(x)))": lambda x: -jnp.log(1 / (1 + jnp.exp(x))),
        "-log(1 - sigmoid(x))": lambda x: -jnp.log(1 - sigmoid(x)),
        "-log(sigmoid(-x))": lambda x: -jnp.log(sigmoid(-x)),
        "-log(1 - 1 / (1 + exp(-x)))": lambda x: -jnp.log(1 - 1 / (1 + jnp.exp(-x))),
        "-log(exp(-x) / (1 + exp(-x)))": lambda x: -jnp.log(jnp.exp(-x) / (1 + jnp.exp(-x))),
        "log((1 + exp(x)) ** 2) / 2": lambda x: jnp.log((1 + jnp.exp(x)) ** 2) / 2,
        "log(sqrt(1 + exp(x))) * 2": lambda x: jnp.log(jnp.sqrt(1 + jnp.exp(x))) * 2,
        "-log(reciprocal(1 + exp(x)))": lambda x: -jnp.log(jnp.reciprocal(1 + jnp.exp(x))),
        "-2 log(rsqrt(1 + exp(x)))": lambda x: -2 * jnp.log(lax.rsqrt(1 + jnp.exp(x))),
        "log(abs(1 + exp(x)))": lambda x: jnp.log(jnp.abs(1 + jnp.exp(x))),
        "log of a jitted 1 + exp(x)": lambda x: jnp.log(jax.jit(lambda u: 1 + jnp.exp(u))(x)),
        "log under checkpoint": lambda x: jax.checkpoint(lambda u: jnp.log(1 + jnp.exp(u)))(x),
        "log of a vmapped 1 + exp(x)": lambda x: jnp.log(jax.vmap(lambda u: 1 + jnp.exp(u))(x)),
    },
    dtypes=HALVES,
    thorough=True,
)
LOG_SIGMOID = Family(
    LOG,
    breaking=[-200.0, -95.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0, 95.0, 200.0],
    spellings={
        "log(sigmoid(x))": lambda x: jnp.log(sigmoid(x)),
        "log(1 / (1 + exp(-x)))": lambda x: jnp.log(1 / (1 + jnp.exp(-x))),
        "log(exp(x) / (1 + exp(x)))": lambda x: jnp.log(jnp.exp(x) / (1 + jnp.exp(x))),
        "log((1 + exp(-x)) ** -1)": lambda x: jnp.log((1 + jnp.exp(-x)) ** -1),
        "log2(sigmoid(x))": lambda x: jnp.log2(sigmoid(x)),
        "log10(sigmoid(x))": lambda x: jnp.log10(sigmoid(x)),
        "log(lax.logistic(x))": lambda x: jnp.log(lax.logistic(x)),
        "log(sigmoid(x) ** 3)": lambda x: jnp.log(sigmoid(x) ** 3),
        "log(0.25 * sigmoid(x))": lambda x: jnp.log(0.25 * sigmoid(x)),
        "log(max(sigmoid(x), 0))": lambda x: jnp.log(jnp.maximum(sigmoid(x), 0.0)),
        "log(clip(sigmoid(x), 0, 1))": lambda x: jnp.log(jnp.clip(sigmoid(x), 0.0, 1.0)),
    },
)
LOG1MEXP = Family(
    LOG,
    breaking=[-1e-9, -1e-12],
    ordinary=[-200.0, -20.0, -3.0, -0.7, -1e-3, -1e-5],
    spellings={
        "log(1 - exp(x))": lambda x: jnp.log(1 - jnp.exp(x)),
        "log(-exp(x) + 1)": lambda x: jnp.log(-jnp.exp(x) + 1),
        "log1p(-exp(x))": lambda x: jnp.log1p(-jnp.exp(x)),
        "log(-(exp(x) - 1))": lambda x: jnp.log(-(jnp.exp(x) - 1)),
        "log(1 - 1 / exp(-x))": lambda x: jnp.log(1 - 1 / jnp.exp(-x)),
        "log(1 - sqrt(exp(2 x)))": lambda x: jnp.log(1 - jnp.sqrt(jnp.exp(2 * x))),
        "log(3 - 3 exp(x))": lambda x: jnp.log(3 - 3 * jnp.exp(x)),
    },
    dtypes=("float16", "bfloat16"),
    thorough=True,
)
LOG_MINUS_EXPM1 = Family(
    LOG,
    breaking=[-20.0, -40.0],
    ordinary=[-95.0, -3.0, -0.7, -1e-3, -1e-9],
    spellings={"log(-expm1(x))": lambda x: jnp.log(-jnp.expm1(x))},
)
LOG_EXPM1 = Family(
    LOG,
    breaking=[200.0, 95.0],
    ordinary=[20.0, 3.0, 0.7, 1e-3, 1e-9, 1e-30],
    spellings={
        "log(exp(x) - 1)": lambda x: jnp.log(jnp.exp(x) - 1),
        "log(expm1(x))": lambda x: jnp.log(jnp.expm1(x)),
        "log(-(1 - exp(x)))": lambda x: jnp.log(-(1 - jnp.exp(x))),
        "log1p(exp(x) - 2)": lambda x: jnp.log1p(jnp.exp(x) - 2),
    },
    dtypes=("float64",),
)
LOGADDEXP = Family(
    LOG,
    breaking=[(200.0, 199.0), (-200.0, -201.0), (200.0, 200.0), (-200.0, 200.0)],
    ordinary=[(0.0, 0.0), (1.0, -1.0), (0.5, 20.0), (-3.0, -3.5)],
    spellings={
        "log(exp(a) + exp(b))": lambda a, b: jnp.log(jnp.exp(a) + jnp.exp(b)),
        "log(exp(b) + exp(a))": lambda a, b: jnp.log(jnp.exp(b) + jnp.exp(a)),
        "log(sum of a stack)": lambda a, b: jnp.log(jnp.exp(jnp.stack([a, b])).sum(0)),
        "log(2 exp(a) + 2 exp(b))": lambda a, b: jnp.log(2 * jnp.exp(a) + 2 * jnp.exp(b)),
        "log(exp(a) (1 + exp(b) / exp(a)))": lambda a, b: jnp.log(jnp.exp(a) * (1 + jnp.exp(b) / jnp.exp(a))),
        "log(exp(a) - -exp(b))": lambda a, b: jnp.log(jnp.exp(a) - -jnp.exp(b)),
        "log((exp(a) + exp(b)) / 2)": lambda a, b: jnp.log((jnp.exp(a) + jnp.exp(b)) / 2),
    },
    dtypes=("float64",),
    thorough=True,
)
LOGDIFFEXP = Family(
    LOG,
    breaking=[(200.0, 199.0), (-200.0, -200.5), (200.0, -200.0)],
    ordinary=[(1.0, -1.0), (20.0, 0.5), (-3.0, -3.5), (0.0, -1e-3)],
    spellings={
        "log(exp(a) - exp(b))": lambda a, b: jnp.log(jnp.exp(a) - jnp.exp(b)),
        "log(-exp(b) + exp(a))": lambda a, b: jnp.log(-jnp.exp(b) + jnp.exp(a)),
        "log(exp(a) (1 - exp(b - a)))": lambda a, b: jnp.log(jnp.exp(a) * (1 - jnp.exp(b - a))),
    },
    dtypes=HALVES,
)
LOG_COSH = Family(
    LOG,
    breaking=[-200.0, 200.0, -95.0, 1e-5],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "log(cosh(x))": lambda x: jnp.log(jnp.cosh(x)),
        "log((exp(x) + exp(-x)) / 2)": lambda x: jnp.log((jnp.exp(x) + jnp.exp(-x)) / 2),
        "-log(1 / cosh(x))": lambda x: -jnp.log(1 / jnp.cosh(x)),
    },
    dtypes=("float64",),
)
LOG_TANH = Family(
    LOG,
    breaking=[20.0, 40.0],
    ordinary=[1e-30, 1e-9, 1e-3, 0.7, 3.0],
    spellings={
        "log(tanh(x))": lambda x: jnp.log(jnp.tanh(x)),
        "log((1 - exp(-2x)) / (1 + exp(-2x)))": lambda x: jnp.log((1 - jnp.exp(-2 * x)) / (1 + jnp.exp(-2 * x))),
    },
)
LOG_SECH_SQUARED = Family(
    LOG,
    breaking=[-20.0, 20.0, 200.0],
    ordinary=[0.7, -1.5, 3.0],
    spellings={
        "log(1 - tanh(x)**2)": lambda x: jnp.log(1 - jnp.tanh(x) ** 2),
        "log(1 - tanh(x) tanh(x))": lambda x: jnp.log(1 - jnp.tanh(x) * jnp.tanh(x)),
        "log((1 - tanh(x)) (1 + tanh(x)))": lambda x: jnp.log((1 - jnp.tanh(x)) * (1 + jnp.tanh(x))),
    },
)
POWERS = Family(
    LOG,
    breaking=[-200.0, 200.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "log(exp(x))": lambda x: jnp.log(jnp.exp(x)),
        "log(sqrt(exp(x)))": lambda x: jnp.log(jnp.sqrt(jnp.exp(x))),
        "log(exp(x) ** 2)": lambda x: jnp.log(jnp.exp(x) ** 2),
        "log(exp(x) ** -0.5)": lambda x: jnp.log(jnp.exp(x) ** -0.5),
        "log(rsqrt(exp(x)))": lambda x: jnp.log(lax.rsqrt(jnp.exp(x))),
        "log(square(exp(x)))": lambda x: jnp.log(jnp.square(jnp.exp(x))),
        "log(1 / exp(x))": lambda x: jnp.log(1 / jnp.exp(x)),
        "log(3 exp(x))": lambda x: jnp.log(3 * jnp.exp(x)),
        "log(-exp(x) * -2)": lambda x: jnp.log(-jnp.exp(x) * -2),
        "log(exp(x) exp(x / 2))": lambda x: jnp.log(jnp.exp(x) * jnp.exp(x / 2)),
        "log(abs(-exp(x)))": lambda x: jnp.log(jnp.abs(-jnp.exp(x))),
        "log(exp2(x))": lambda x: jnp.log(jnp.exp2(2 * x)),
        "log2(exp2(x))": lambda x: jnp.log2(jnp.exp2(2 * x)),
        "log(cbrt(exp(x)))": lambda x: jnp.log(jnp.cbrt(jnp.exp(x))),
        "log(10 ** x)": lambda x: jnp.log(10.0**x),
    },
)
GAUSS = Family(
    LOG,
    breaking=[-15.0, 20.0],
    ordinary=[-3.0, 0.0, 0.5, 5.0],
    spellings={
        "log(exp(-x**2 / 2) / sqrt(2 pi))": lambda x: jnp.log(jnp.exp(-(x**2) / 2) / jnp.sqrt(2 * jnp.pi)),
        "log(norm.pdf(x))": lambda x: jnp.log(jax.scipy.stats.norm.pdf(x)),
        "log(0.4 exp(-x * x))": lambda x: jnp.log(0.4 * jnp.exp(-x * x)),
    },
    exponent=False,
)
TAILS = Family(
    LOG,
    breaking=[12.0, 100.0],
    ordinary=[-5.0, -1.0, 0.0, 0.5, 3.0],
    spellings={"log(erfc(x))": lambda x: jnp.log(jax.scipy.special.erfc(x))},
    exponent=False,
)
WEIGHTED = Family(
    LOG,
    breaking=[(200.0, 3.0), (-200.0, 0.5), (-200.0, 1e-30)],
    ordinary=[(0.0, 2.0), (1.0, 0.7), (20.0, 1e20)],
    spellings={
        "log(w exp(x))": lambda x, w: jnp.log(w * jnp.exp(x)),
        "log(w / exp(-x))": lambda x, w: jnp.log(w / jnp.exp(-x)),
        "log(exp(x) / w)": lambda x, w: jnp.log(jnp.exp(x) / w),
        "log(w**2 exp(x))": lambda x, w: jnp.log((w * 1e-4) ** 2 * jnp.exp(x)),
        "log(w + exp(x)) - (log w)": lambda x, w: jnp.log(w * jnp.exp(x) + 2 * w * jnp.exp(x)),
    },
    exponent=False,
    thorough=True,
)
MIXTURE = Family(
    LOG,
    breaking=[(-200.0, -190.0, 0.3), (200.0, 201.0, 0.5), (-120.0, -200.0, 0.0), (-120.0, -200.0, 1.0)],
    ordinary=[(0.0, 1.0, 0.25), (3.0, -3.0, 0.75)],
    spellings={
        "log(w exp(a) + (1 - w) exp(b))": lambda a, b, w: jnp.log(w * jnp.exp(a) + (1 - w) * jnp.exp(b)),
    },
    exponent=False,
)
EXTREMES = Family(
    LOG,
    breaking=[(200.0, 190.0), (-200.0, -210.0)],
    ordinary=[(0.0, 1.0), (3.0, -3.0)],
    spellings={
        "log(max(exp(a), exp(b)))": lambda a, b: jnp.log(jnp.maximum(jnp.exp(a), jnp.exp(b))),
        "log(min(exp(a), exp(b)))": lambda a, b: jnp.log(jnp.minimum(jnp.exp(a), jnp.exp(b))),
        "log(where(a > b, exp(a), exp(b)))": lambda a, b: jnp.log(jnp.where(a > b, jnp.exp(a), jnp.exp(b))),
        "log(exp(a) * exp(b))": lambda a, b: jnp.log(jnp.exp(a) * jnp.exp(b)),
        "log(exp(a) * exp(a - b))": lambda a, b: jnp.log(jnp.exp(a) * jnp.exp(a - b)),
    },
)
ASINH = Family(
    LOG,
    breaking=[-1e20, -200.0, -1e-8, 1e25],
    ordinary=[-1.0, 0.0, 0.5, 3.0],
    spellings={
        "log(x + sqrt(x x + 1))": lambda x: jnp.log(x + jnp.sqrt(x * x + 1)),
        "log(x + sqrt(1 + x**2))": lambda x: jnp.log(x + jnp.sqrt(1 + x**2)),
        "log(sqrt(x**2 + 1) + x)": lambda x: jnp.log(jnp.sqrt(x**2 + 1) + x),
    },
    exponent=False,
)
ACOSH = Family(
    LOG,
    breaking=[1e20, 1e25],
    ordinary=[1.01, 1.5, 2.0, 10.0, 1e4],
    spellings={"log(x + sqrt(x x - 1))": lambda x: jnp.log(x + jnp.sqrt(x * x - 1))},
    exponent=False,
)
LOG_SINH = Family(
    LOG,
    breaking=[200.0, 95.0],
    ordinary=[20.0, 3.0, 0.7, 1e-3, 1e-6, 1e-30],
    spellings={
        "log(sinh(x))": lambda x: jnp.log(jnp.sinh(x)),
        "log((exp(x) - exp(-x)) / 2)": lambda x: jnp.log((jnp.exp(x) - jnp.exp(-x)) / 2),
    },
)
RATIOS = Family(
    LOG,
    breaking=[(1e-30, 1e20), (1e30, 1e-20)],
    ordinary=[(1.0, 1.0), (2.0, 2.000001), (3.0, 0.5)],
    spellings={
        "log(u / v)": lambda u, v: jnp.log(u / v),
        "log(u * (1 / v))": lambda u, v: jnp.log(u * (1 / v)),
        "log(sqrt(u / v))": lambda u, v: jnp.log(jnp.sqrt(u / v)),
        "log((u / v)**2)": lambda u, v: jnp.log((u / v) ** 2),
    },
    exponent=False,
)
PRODUCTS = Family(
    LOG,
    breaking=[(1e-30, 1e-20), (1e30, 1e20), (-1e30, -1e30), (-1e-25, -1e-25)],
    ordinary=[(1.0, 1.0), (2.0, 0.5000001), (1e10, 1.0001e-10), (-3.0, -0.5), (1e25, 1e-20)],
    spellings={
        "log(u v)": lambda u, v: jnp.log(u * v),
        "log(|u| |v|)": lambda u, v: jnp.log(jnp.abs(u) * jnp.abs(v)),
        "log(2 u v)": lambda u, v: jnp.log(2 * u * v),
        "log(-(u (-v)))": lambda u, v: jnp.log(-(u * -v)),
        "log(sqrt(u v))": lambda u, v: jnp.log(jnp.sqrt(u * v)),
    },
    exponent=False,
)
OF_THREE = Family(
    LOG,
    breaking=[(1e30, 1e25, 1e-30), (-1e-30, 1e-20, -1e30)],
    ordinary=[(1.0, 2.0, 3.0), (-1.0, -2.0, 0.5), (1e20, 1e20, 1.0)],
    spellings={
        "log(u / v / w)": lambda u, v, w: jnp.log(u / v / (w * v * v)),
        "log(u v / w)": lambda u, v, w: jnp.log(u * v / w * (v / v)),
    },
    exponent=False,
)
LOG_SOFTPLUS = Family(
    LOG,
    breaking=[-200.0, -95.0],
    ordinary=[200.0, -20.0, -1.0, 0.0, 0.7, 20.0],
    spellings={
        "log(log(1 + exp(x)))": lambda x: jnp.log(jnp.log(1 + jnp.exp(x))),
        "log(-log(sigmoid(-x)))": lambda x: jnp.log(-jnp.log(sigmoid(-x))),
        "log(-log(1 - sigmoid(x)))": lambda x: jnp.log(-jnp.log(1 - sigmoid(x))),
        "log(x + log(1 + exp(-x)))": lambda x: jnp.log(x + jnp.log(1 + jnp.exp(-x))),
        "log(max(x, 0) + log(1 + exp(-|x|)))": lambda x: jnp.log(jnp.maximum(x, 0) + jnp.log(1 + jnp.exp(-jnp.abs(x)))),
    },
)
LOG_SIGMOID_DIFFERENCE = Family(
    LOG,
    breaking=[(1000.0, 999.0), (-1000.0, -1001.0)],
    ordinary=[(1.0, 0.0), (-30.0, -30.25), (2.0, -200.0), (0.5, 0.25)],
    spellings={
        "log(s(a) - s(b))": lambda a, b: jnp.log(sigmoid(a) - sigmoid(b)),
        "log((1 - s(b)) - (1 - s(a)))": lambda a, b: jnp.log((1 - sigmoid(b)) - (1 - sigmoid(a))),
        "log(1 / (1 + exp(-a)) - ...)": lambda a, b: jnp.log(1 / (1 + jnp.exp(-a)) - 1 / (1 + jnp.exp(-b))),
    },
)
BERNOULLI = Family(
    LOG,
    breaking=[(-200.0, 1.0), (150.0, 0.0), (1000.0, 0.25)],
    ordinary=[(0.0, 1.0), (-3.0, 0.5), (2.0, 0.0)],
    spellings={
        "log(p**y (1 - p)**(1 - y))": lambda x, y: jnp.log(sigmoid(x) ** y * (1 - sigmoid(x)) ** (1 - y)),
        "log of it by exp": lambda x, y: jnp.log((p := jnp.exp(x) / (1 + jnp.exp(x))) ** y * (1 - p) ** (1 - y)),
    },
)
SQUARES = Family(
    LOG,
    breaking=[1e-30, -1e30],
    ordinary=[1.0, -2.0, 3.0, 0.25],
    spellings={
        "log(u**2)": lambda u: jnp.log(u**2),
        "log(u * u)": lambda u: jnp.log(u * u),
        "log(square(u))": lambda u: jnp.log(jnp.square(u)),
        "log(u**4)": lambda u: jnp.log(u**4),
        "log((u**2) ** 0.5)": lambda u: jnp.log((u**2) ** 0.5),
        "log(sqrt(u * u))": lambda u: jnp.log(jnp.sqrt(u * u)),
        "log(abs(u)**3)": lambda u: jnp.log(jnp.abs(u) ** 3),
        "log(u**-2)": lambda u: jnp.log(u**-2),
        "log(1 / u**2)": lambda u: jnp.log(1 / u**2),
    },
    exponent=False,
)
LOGIT = Family(
    LOG,
    breaking=[-95.0, -200.0, 95.0],
    ordinary=[-3.0, 0.0, 0.5, 2.0],
    spellings={
        "log(p / (1 - p))": lambda x: jnp.log(sigmoid(x) / (1 - sigmoid(x))),
        "-log(1 / p - 1)": lambda x: -jnp.log(1 / sigmoid(x) - 1),
    },
)
LOG1P = Family(
    LOG,
    breaking=[1e-9, 1e-12],
    ordinary=[0.5, 0.25, 1e-3, -3.0, -1e10],
    spellings={"log(1 - p)": lambda p: jnp.log(1 - p)},
    exponent=False,
)
LOGADDEXP_OF_LOGS = Family(
    "logaddexp_of_logarithms",
    breaking=[(-200.0, 0.5), (-120.0, -130.0)],
    ordinary=[(0.0, 0.0), (1.0, -1.0), (3.0, 20.0)],
    spellings={
        "logaddexp(log exp, b)": lambda a, b: jnp.logaddexp(jnp.log(jnp.exp(a)), b),
        "logaddexp(log sigmoid, log sigmoid)": lambda a, b: jnp.logaddexp(jnp.log(sigmoid(a)), jnp.log(sigmoid(b)) + 1),
        "logaddexp(b, log sigmoid)": lambda a, b: jnp.logaddexp(b, jnp.log(sigmoid(a))),
    },
    thorough=True,
)
LOGADDEXP_OF_ZERO = Family(
    "logaddexp_of_logarithms",
    breaking=[(0.0, 2.0), (1.0, 0.0)],
    ordinary=[(1.0, 2.0), (1e-20, 1e-21), (3e30, 4e30)],
    spellings={"logaddexp(log u, log v)": lambda u, v: jnp.logaddexp(jnp.log(u), jnp.log(v))},
    exponent=False,
)


@table(
    SOFTPLUS, LOG_SIGMOID, LOG1MEXP, LOG_MINUS_EXPM1, LOG_EXPM1, LOGADDEXP, LOGDIFFEXP, LOG_COSH, LOG_TANH,
    LOG_SECH_SQUARED, POWERS, GAUSS, TAILS, WEIGHTED, MIXTURE, EXTREMES, ASINH, ACOSH, LOG_SINH, RATIOS,
    PRODUCTS, OF_THREE, LOG_SOFTPLUS, LOG_SIGMOID_DIFFERENCE, BERNOULLI, SQUARES, LOGIT,
    LOG1P, LOGADDEXP_OF_LOGS, LOGADDEXP_OF_ZERO,
)  # fmt: skip
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


DOMAIN = Domain(
    {
        "log(1 + sqrt(x)**2)": (lambda x: jnp.log(1 + jnp.sqrt(x) ** 2), [-0.5, -2.0, 0.5, NAN]),
        "log1p(square(sqrt(x)))": (lambda x: jnp.log1p(jnp.square(jnp.sqrt(x))), [-0.5, 0.5, 3.0]),
        "log1p(sqrt(x) sqrt(x))": (lambda x: jnp.log1p(jnp.sqrt(x) * jnp.sqrt(x)), [-0.5, 0.5, 3.0]),
        "log1p(x**1.5 / sqrt(x))": (lambda x: jnp.log1p(x**1.5 / jnp.sqrt(x)), [-0.5, 0.5, 3.0]),
        "log1p((x**0.25)**8)": (lambda x: jnp.log1p((x**0.25) ** 8), [-0.5, 0.5, 3.0]),
        "log(exp(x) + rsqrt(y)**2)": (
            lambda x, y: jnp.log(jnp.exp(x) + lax.rsqrt(y) ** 2),
            [1.0, 1.0, 3.0],
            [-1.0, 2.0, 0.5],
        ),
        "log(exp(x) sqrt(y) / sqrt(y))": (
            lambda x, y: jnp.log(jnp.exp(x) * jnp.sqrt(y) / jnp.sqrt(y)),
            [1.0, 1.0, 2.0],
            [-1.0, 2.0, 0.5],
        ),
        "log1p(expm1(x) - rsqrt(x)**2)": (
            lambda x: jnp.log1p(jnp.expm1(x) - jnp.square(lax.rsqrt(x))),
            [-0.1, 3.0, 2.0],
        ),
        "log1p(sqrt(y)**2 exp(x))": (
            lambda x, y: jnp.log1p(jnp.sqrt(y) ** 2 * jnp.exp(x)),
            [1.0, 1.0, 0.0],
            [-0.1, 2.0, 3.0],
        ),
        "log(x max(y, 0))": (
            lambda x, y: jnp.log(x * jnp.maximum(y, 0)),
            [-0.5, -0.5, 2.0, 2.0, NAN, INF],
            [-1.0, 2.0, -1.0, 3.0, 1.0, 0.0],
        ),
        "log(x y**2)": (lambda x, y: jnp.log(x * y**2), [-0.5, -0.5, 2.0, 2.0], [0.0, 2.0, 0.0, 3.0]),
        "log(x relu(y) |z|)": (
            lambda x, y, z: jnp.log(x * jax.nn.relu(y) * jnp.abs(z)),
            [-0.5, -0.5, 2.0],
            [1.0, -1.0, 3.0],
            [0.0, 1.0, 3.0],
        ),
        "log(cbrt(x) y)": (lambda x, y: jnp.log(jnp.cbrt(x) * y), [INF, INF, INF, 8.0], [1e-30, -1.0, 0.0, 2.0]),
        "log(x / y)": (
            lambda x, y: jnp.log(x / y),
            [0.0, 1e-30, 1e30, INF, INF, 0.0],
            [1e-30, 0.0, INF, 1e-30, INF, 0.0],
        ),
        "log1p(x / y)": (lambda x, y: jnp.log1p(x / y), [-90.0, 90.0, -91.0, 0.0, INF], [90.0, 90.0, 90.0, 0.0, 2.0]),
        "log(x)": (lambda x: jnp.log(x), [-INF, -2.0, -1.0, 0.0, 1.0, INF, NAN]),
        "log(1 - exp(x))": (lambda x: jnp.log(1 - jnp.exp(x)), [-INF, -100.0, -1.0, 0.0, 1.0, 100.0, INF, NAN]),
        "log1p(-exp(x))": (lambda x: jnp.log1p(-jnp.exp(x)), [-INF, -100.0, -1.0, 0.0, 1.0, INF, NAN]),
        "log(-expm1(x))": (lambda x: jnp.log(-jnp.expm1(x)), [-INF, -100.0, -1.0, 0.0, 1.0, INF, NAN]),
        "log(exp(x) - 1)": (lambda x: jnp.log(jnp.exp(x) - 1), [-INF, -100.0, -1.0, 0.0, 1.0, INF, NAN]),
        "log(2 - exp(x))": (lambda x: jnp.log(2 - jnp.exp(x)), [-INF, -1.0, 0.0, 1.0, INF, NAN]),
        "log(sigmoid(x))": (lambda x: jnp.log(sigmoid(x)), [-INF, 0.0, INF, NAN]),
        "log(1 - sigmoid(x))": (lambda x: jnp.log(1 - sigmoid(x)), [-INF, 0.0, INF, NAN]),
        "log(1 + exp(x))": (lambda x: jnp.log(1 + jnp.exp(x)), [-INF, 0.0, INF, NAN]),
        "log(cosh(x))": (lambda x: jnp.log(jnp.cosh(x)), [-INF, 0.0, INF, NAN]),
        "log(sinh(x))": (lambda x: jnp.log(jnp.sinh(x)), [-INF, -1.0, 0.0, 1.0, INF, NAN]),
        "log(tanh(x))": (lambda x: jnp.log(jnp.tanh(x)), [-INF, -1.0, 0.0, 1.0, INF, NAN]),
        "log(-exp(x))": (lambda x: jnp.log(-jnp.exp(x)), [-1.0, 0.0, 1.0, NAN]),
        "log(-exp(x) * exp(x))": (lambda x: jnp.log(-jnp.exp(x) * jnp.exp(x)), [-1.0, 0.0, 1.0, NAN]),
        "log(u**2)": (lambda u: jnp.log(u**2), [-INF, -2.0, 0.0, 2.0, INF, NAN]),
        "log(u**3)": (lambda u: jnp.log(u**3), [-INF, -2.0, 0.0, 2.0, INF, NAN]),
        "log(sqrt(u))": (lambda u: jnp.log(jnp.sqrt(u)), [-INF, -2.0, 0.0, 2.0, INF, NAN]),
        "log(u**2 - 1)": (lambda u: jnp.log(u**2 - 1), [-2.0, -1.0, 0.0, 1.0, 2.0, NAN]),
        "log(u + sqrt(u u + 1))": (lambda u: jnp.log(u + jnp.sqrt(u * u + 1)), [-2.0, 0.0, 1.0, INF, NAN]),
        "log1p(u)": (lambda u: jnp.log1p(u), [-2.0, -1.0, 0.0, 1.0, INF, NAN]),
        "log1p(-u)": (lambda u: jnp.log1p(-u), [-INF, -1.0, 0.0, 1.0, 2.0, NAN]),
        "log(u / (1 - u))": (lambda u: jnp.log(u / (1 - u)), [-1.0, 0.0, 0.5, 1.0, 2.0, NAN]),
        "log(abs(u))": (lambda u: jnp.log(jnp.abs(u)), [-INF, -2.0, 0.0, 2.0, INF, NAN]),
    }
)
SIGNS = [-2.0, -1.0, 1.0, 0.0, 0.0, 2.0, NAN, 1.0, -3.0], [-3.0, 1.0, -1.0, 0.0, 1.0, 0.0, 1.0, NAN, -0.5]
DOMAIN_OF_TWO = Domain(
    {
        "log(a * b)": (lambda a, b: jnp.log(a * b), *SIGNS),
        "log(a / b)": (lambda a, b: jnp.log(a / b), *SIGNS),
        "log(sqrt(a) * sqrt(b))": (lambda a, b: jnp.log(jnp.sqrt(a) * jnp.sqrt(b)), *SIGNS),
        "log(sqrt(a * b))": (lambda a, b: jnp.log(jnp.sqrt(a * b)), *SIGNS),
        "log(a * exp(b))": (lambda a, b: jnp.log(a * jnp.exp(b)), *SIGNS),
        "log(a**2 * b)": (lambda a, b: jnp.log(a**2 * b), *SIGNS),
        "log(exp(a) + b)": (lambda a, b: jnp.log(jnp.exp(a) + b), *SIGNS),
        "log(max(exp(a), b))": (lambda a, b: jnp.log(jnp.maximum(jnp.exp(a), b)), *SIGNS),
        "log(max(-exp(a), b))": (lambda a, b: jnp.log(jnp.maximum(-jnp.exp(a), b)), *SIGNS),
        "log(exp(a) - exp(b))": (
            lambda a, b: jnp.log(jnp.exp(a) - jnp.exp(b)),
            [-INF, -INF, INF, 0.0, 1.0, 0.0, NAN, 0.0],
            [-INF, 1.0, -INF, 0.0, 0.0, 1.0, 1.0, NAN],
        ),
        "log(exp(a) + exp(b))": (
            lambda a, b: jnp.log(jnp.exp(a) + jnp.exp(b)),
            [-INF, -INF, INF, INF, 0.0, NAN],
            [-INF, 1.0, 1.0, -INF, 0.0, 1.0],
        ),
        "logaddexp(log a, log b)": (lambda a, b: jnp.logaddexp(jnp.log(a), jnp.log(b)), *SIGNS),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


@pytest.mark.parametrize("name", DOMAIN_OF_TWO)
def test_domain_errors_of_two_arguments_survive(name):
    DOMAIN_OF_TWO.check(name)
