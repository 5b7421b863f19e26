"""Rules whose root is a square root: lengths of vectors. Where a length is 0 its slope is 0 by convention."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

from rules.harness import Program
from rules.tables import Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

INF, NAN = float("inf"), float("nan")
RULE, QUOTIENT, LOGARITHM = "root_of_squares", "quotient_by_length", "log_of_companion"
KINK = {"slope_of_kink": True}

# -- of rows ---------------------------------------------------------------------------------------------------------

ROWS = np.array([[0.0, 0.0, 0.0], [3e-25, -4e-25, 1e-25], [3e25, 4e25, -1e24], [1.0, 2.0, -3.0], [0.0, 0.5, 0.0]])
EQUAL = np.array([[2.0, 2.0, 2.0], [3e-25, -4e-25, 1e-25], [3e25, 4e25, -1e24], [1.0, 2.0, -3.0], [0.5, 0.5, 0.75]])
WEIGHTS = np.array([0.5, 0.0, 2.0], np.float32)
FLAGS = np.array([True, False, True])
LENGTHS = {
    "sqrt(sum(x x))": lambda x: jnp.sqrt(jnp.sum(x * x, -1)),
    "sqrt(sum(x**2))": lambda x: jnp.sqrt(jnp.sum(x**2, -1)),
    "sqrt(sum(square(x)))": lambda x: jnp.sqrt(jnp.sum(jnp.square(x), -1)),
    "sqrt(sum(power(x, 2)))": lambda x: jnp.sqrt(jnp.sum(jnp.power(x, 2.0), -1)),
    "sqrt(sum(|x|**2))": lambda x: jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, -1)),
    "sum(x**2)**0.5": lambda x: jnp.sum(x**2, -1) ** 0.5,
    "power(sum, 1 / 2)": lambda x: jnp.power(jnp.sum(x**2, -1), 0.5),
    "x @ x": lambda x: jax.vmap(lambda r: jnp.sqrt(r @ r))(x),
    "vdot": lambda x: jax.vmap(lambda r: jnp.sqrt(jnp.vdot(r, r)))(x),
    "einsum ij,ij->i": lambda x: jnp.sqrt(jnp.einsum("ij,ij->i", x, x)),
    "linalg.norm": lambda x: jnp.linalg.norm(x, axis=-1),
    "linalg.norm, keepdims": lambda x: jnp.linalg.norm(x, axis=-1, keepdims=True)[:, 0],
    "linalg.norm of a vector": lambda x: jax.vmap(jnp.linalg.norm)(x),
    "Frobenius": lambda x: jax.vmap(lambda r: jnp.linalg.norm(r.reshape(1, 3)))(x),
    "of columns": lambda x: jnp.sqrt(jnp.sum(x.T**2, 0)),
    "transposed squares": lambda x: jnp.sqrt(jnp.sum((x**2).T, 0)),
    "reshaped squares": lambda x: jnp.sqrt(jnp.sum((x**2).reshape(-1, 3, 1), (1, 2))),
    "gathered squares": lambda x: jnp.sqrt(jnp.sum((x**2)[jnp.arange(len(x))], -1)),
    "gathered sums": lambda x: jnp.sqrt(jnp.sum(x**2, -1)[jnp.arange(len(x))]),
    "joined squares": lambda x: jnp.sqrt(jnp.sum(jnp.concatenate([x[:, :1], x[:, 1:]], 1) ** 2, -1)),
    "sum of three squares": lambda x: jnp.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2 + x[:, 2] ** 2),
    "sum of two sums": lambda x: jnp.sqrt(jnp.sum(x[:, :2] ** 2, -1) + x[:, 2] ** 2),
    "a sum in Python": lambda x: jnp.sqrt(sum(x[:, k] ** 2 for k in range(3))),
    "optax.tree.norm": lambda x: jax.vmap(lambda r: optax.tree.norm({"a": r[:1], "b": r[1:]}))(x),
    "mean of squares": lambda x: jnp.sqrt(jnp.mean(x**2, -1)),
    "3 sqrt(sum / 3)": lambda x: 3 * jnp.sqrt(jnp.sum(x * x, -1) / 3),
    "sqrt(sum(0.3 x**2))": lambda x: jnp.sqrt(jnp.sum(0.25 * x**2, -1)),
    "constant weights": lambda x: jnp.sqrt(jnp.sum(WEIGHTS * x**2, -1)),
    "weights @": lambda x: jnp.sqrt(jnp.sum(x * WEIGHTS * x, -1)),
    "flags": lambda x: jnp.sqrt(jnp.sum(FLAGS * x**2, -1)),
    "selected squares": lambda x: jnp.sqrt(jnp.sum(jnp.where(FLAGS, x**2, 0.0), -1)),
    "max(sum, 0)": lambda x: jnp.sqrt(jnp.maximum(jnp.sum(x**2, -1), 0.0)),
    "clip(sum, 0)": lambda x: jnp.sqrt(jnp.clip(jnp.sum(x**2, -1), 0.0)),
    "a jitted sum": lambda x: jnp.sqrt(jax.jit(lambda x: jnp.sum(x**2, -1))(x)),
    "of scaled x": lambda x: jnp.sqrt(jnp.sum((2 * x) ** 2, -1)),
    "-sqrt(sum) + 1": lambda x: 1 - jnp.sqrt(jnp.sum(x**2, -1)),
}
DEVIATIONS = {
    "std": lambda x: jnp.std(x, -1),
    "std, ddof=1": lambda x: jnp.std(x, -1, ddof=1),
    "std, keepdims": lambda x: jnp.std(x, -1, keepdims=True)[:, 0],
    "sqrt(var)": lambda x: jnp.sqrt(jnp.var(x, -1)),
    "var**0.5": lambda x: jnp.var(x, -1) ** 0.5,
    "deviations": lambda x: jnp.sqrt(jnp.mean((x - jnp.mean(x, -1, keepdims=True)) ** 2, -1)),
    "|deviations|**2": lambda x: jnp.sqrt(jnp.mean(jnp.abs(x - jnp.mean(x, -1, keepdims=True)) ** 2, -1)),
}


def cases(programs, rows, rule=RULE, breaking=(0, 1, 2), dtype="float32", **options):
    made = Cases({name: Case(f, [rows], rule, list(breaking), options=KINK | options) for name, f in programs.items()})
    made.dtype = dtype
    return made


OF_ROWS = cases(LENGTHS, ROWS)
OF_ROWS["optax.tree.norm"] = replace(OF_ROWS["optax.tree.norm"], source=optax.tree.norm)
OF_DEVIATIONS = cases(DEVIATIONS, EQUAL)
RANGES = {"float16": (1e-5, 1e4), "bfloat16": (1e-25, 1e25), "float64": (1e-200, 1e200)}
TYPED = {
    dtype: cases(
        {n: LENGTHS[n] for n in ("sqrt(sum(x x))", "linalg.norm", "mean of squares")},
        np.array([[0.0] * 3, [3.0 * low, -4 * low, low], [3 * high, 4 * high, -high], [1.0, 2.0, -3.0]]),
        dtype=dtype,
    )
    for dtype, (low, high) in RANGES.items()
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_lengths_of_rows(name):
    OF_ROWS.check(name, thorough=name in ("sqrt(sum(x x))", "linalg.norm"))


@pytest.mark.parametrize("name", OF_DEVIATIONS)
def test_deviations(name):
    OF_DEVIATIONS.check(name)


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d, c in TYPED.items() for n in c])
def test_other_dtypes(dtype, name):
    TYPED[dtype].check(name)


# -- of a few numbers ------------------------------------------------------------------------------------------------

PAIR = Family(
    RULE,
    breaking=[(0.0, 0.0), (3e-25, 4e-25), (-3e25, 4e25)],
    ordinary=[(1.0, 2.0), (0.0, 3.0), (-1.0, 0.0)],
    spellings={
        "sqrt(x x + y y)": lambda x, y: jnp.sqrt(x * x + y * y),
        "sqrt(x**2 + y**2)": lambda x, y: jnp.sqrt(x**2 + y**2),
        "(x**2 + y**2)**0.5": lambda x, y: (x**2 + y**2) ** 0.5,
        "sqrt(x**2 + 4 y**2) / 2": lambda x, y: jnp.sqrt(x**2 + 4 * y**2) / 2,
        "x**2 + y**2 + 0 x": lambda x, y: jnp.sqrt(x**2 + y**2 + 0.5 * jnp.zeros_like(x)),
        "of a stack": lambda x, y: jnp.linalg.norm(jnp.stack([x, y]), axis=0),
    },
    exponent=False,
    kinks=True,
    thorough=True,
)
GUARDED = Family(
    RULE,
    breaking=[(0.0, 0.0), (-3e25, 4e25)],
    ordinary=[(1.0, 2.0), (0.0, 3.0), (-1.0, 0.0)],
    spellings={
        "a norm": lambda x, y: jnp.where(x * x + y * y > 0, jnp.sqrt(x * x + y * y), 0.0),
        "a norm of other squares": lambda x, y: jnp.where((x != 0) | (y != 0), jnp.sqrt(x**2 + y**2), 0.0),
    },
    exponent=False,
    kinks=True,
)
SIZE = Family(
    RULE,
    breaking=[0.0, 1e-25, -1e25],
    ordinary=[1.0, -2.0, 0.5],
    spellings={
        "sqrt(x**2)": lambda x: jnp.sqrt(x**2),
        "sqrt(x x)": lambda x: jnp.sqrt(x * x),
        "(x**2)**0.5": lambda x: (x**2) ** 0.5,
        "sqrt(3 x**2)": lambda x: jnp.sqrt(3 * x**2),
        "sqrt(x**2 / 2)": lambda x: jnp.sqrt(x**2 / 2),
        "sqrt(x**2 (2 + sin(x)))": lambda x: jnp.sqrt(x**2 * (2 + jnp.sin(x))),
    },
    exponent=False,
    kinks=True,
)
DOUBLE_GUARD = Family(
    RULE,
    breaking=[(-3e25, 4e25)],
    ordinary=[(0.0, 0.0), (1.0, 2.0), (0.0, 3.0), (-1.0, 0.0)],
    spellings={
        "double where": lambda x, y: jnp.where(
            x * x + y * y > 0, jnp.sqrt(jnp.where(x * x + y * y > 0, x * x + y * y, 1.0)), 0.0
        ),
    },
    exponent=False,
    kinks=True,
)
INVERSE = Family(
    RULE,
    breaking=[(3e-15, 4e-15), (-3e18, 4e18)],
    ordinary=[(1.0, 2.0), (0.0, 3.0), (-1.0, 0.0)],
    spellings={
        "rsqrt(x**2 + y**2)": lambda x, y: lax.rsqrt(x**2 + y**2),
        "(x**2 + y**2)**-0.5": lambda x, y: (x**2 + y**2) ** -0.5,
    },
    exponent=False,
)
KERNEL = Family(
    RULE,
    breaking=[(1.0, 1.0), (0.0, 0.0)],
    ordinary=[(1.0, 2.0), (0.5, -0.5), (3.0, 0.0)],
    spellings={
        "Matern 1/2": lambda x, y: jnp.exp(-jnp.sqrt((x - y) ** 2 + (x - y) ** 2)),
        "Matern 3/2": lambda x, y: (1 + 3**0.5 * jnp.sqrt((x - y) ** 2)) * jnp.exp(-(3**0.5) * jnp.sqrt((x - y) ** 2)),
        "Huber, smooth": lambda x, y: jnp.sqrt((x - y) ** 2) - jnp.log1p(jnp.sqrt((x - y) ** 2)),
    },
    exponent=False,
    kinks=True,
)


HYPOT = Family(
    "length_by_maximum",
    breaking=[(1e-25, 1e-25), (2e30, 1e30)],
    ordinary=[(3.0, 4.0), (-5.0, 0.5), (1e-3, 2.0), (-2.0, -2.0), (7.0, 0.0)],
    spellings={
        "hypot(x, y)": lambda x, y: jnp.hypot(x, y),
        "hypot(y, -x)": lambda x, y: jnp.hypot(y, -x),
        "max sqrt(1 + (min / max)**2)": lambda x, y: (
            jnp.maximum(abs(x), abs(y)) * jnp.sqrt(1 + (jnp.minimum(abs(x), abs(y)) / jnp.maximum(abs(x), abs(y))) ** 2)
        ),
    },
    exponent=False,
)


@table(HYPOT, PAIR, GUARDED, DOUBLE_GUARD, SIZE, INVERSE, KERNEL)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


# -- what lengths are used for ---------------------------------------------------------------------------------------

POINTS = np.array([[0.0, 0.0], [3.0, 4.0], [2.0, -1.0], [-1.0, 2.0]])


def distances(x):
    return jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1))


def matern52(d):
    return (1 + 5**0.5 * d + 5 / 3 * d**2) * jnp.exp(-(5**0.5) * d)


LARGER = cases(
    {
        "distances": lambda x: distances(x) * jnp.arange(4.0),
        "distances, vmap": lambda x: jax.vmap(lambda a: jax.vmap(lambda b: jnp.linalg.norm(a - b))(x))(x) / 2,
        "Matern 1/2": lambda x: jnp.exp(-distances(x)),
        "Matern 5/2": lambda x: matern52(distances(x)),
        "exp(-d**2)": lambda x: jnp.exp(-(distances(x) ** 2)),
        "inverse multiquadric": lambda x: 1 / (1 + distances(x)),
        "triplet": lambda x: jax.nn.relu(distances(x)[:, 1] - distances(x)[:, 3] + 1),
        "guarded length": lambda x: jnp.where((x**2).sum(-1) > 0, jnp.sqrt((x**2).sum(-1)), 0.0),
    },
    POINTS,
    breaking=(),
)


@pytest.mark.parametrize("name", LARGER)
def test_distances(name):
    program = Program(LARGER[name].f, [POINTS], **KINK)
    for answer in (*program.eager(), *program.jitted(), *program.transformed()):
        program.assert_right(answer)


def test_two_equal_points():
    """They add nothing to the slopes, and the others what they add alone."""
    x, y = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]), jnp.asarray([[0.0, 0.0], [3.0, 4.0]])
    stable = stabilize(lambda x: distances(x).sum())
    np.testing.assert_allclose(jax.grad(stable)(x)[1:], [jax.grad(stable)(y)[1]] * 2, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(stable)(y), [[-1.2, -1.6], [1.2, 1.6]], rtol=1e-6)


NONZERO = np.array([[3e-25, -4e-25, 1e-25], [3e22, 4e22, -1e22], [1.0, 2.0, -3.0], [0.0, 0.5, 0.0]])
SCALES = np.array([1.0, -0.5, 2.0], np.float32)
UNITS = {
    "x / norm": lambda x: SCALES * (x / jnp.linalg.norm(x, axis=-1, keepdims=True)),
    "x / sqrt(sum)[:, None]": lambda x: SCALES * (x / jnp.sqrt(jnp.sum(x * x, -1))[:, None]),
    "x / sum**0.5": lambda x: SCALES * (x / jnp.sum(x * x, -1, keepdims=True) ** 0.5),
    "x rsqrt(sum)": lambda x: SCALES * (x * lax.rsqrt(jnp.sum(x**2, -1, keepdims=True))),
    "x (1 / norm)": lambda x: SCALES * (x * (1 / jnp.linalg.norm(x, axis=-1, keepdims=True))),
    "x sum**-0.5": lambda x: SCALES * (x * jnp.sum(x**2, -1, keepdims=True) ** -0.5),
    "root mean square": lambda x: SCALES * (x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True))),
    "of columns": lambda x: (SCALES[:, None] * (x.T / jnp.linalg.norm(x.T, axis=0))).T,
    "x / max(norm, eps)": lambda x: SCALES * (x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-30)),
    "x / (2 norm)": lambda x: SCALES * (x / (2 * jnp.linalg.norm(x, axis=-1, keepdims=True))),
    "an entry": lambda x: x[:, 0] / jnp.linalg.norm(x, axis=-1),
}
SCORES = {
    "standard score": lambda x: SCALES * ((x - x.mean(-1, keepdims=True)) / jnp.std(x, -1, keepdims=True)),
    "standard score, var": lambda x: (
        SCALES * ((x - x.mean(-1, keepdims=True)) / jnp.sqrt(jnp.var(x, -1, keepdims=True)))
    ),
}
SCORE_CASES = cases(SCORES, NONZERO[:3], QUOTIENT, [0])
UNIT_CASES = cases(UNITS, NONZERO, QUOTIENT, [0])
LOGS = {
    "log(norm)": lambda x: jnp.log(jnp.linalg.norm(x, axis=-1)),
    "log(sqrt(sum))": lambda x: jnp.log(jnp.sqrt(jnp.sum(x**2, -1))),
    "log(sum(x**2))": lambda x: jnp.log(jnp.sum(x**2, -1)),
    "log(sum(x x)) / 2": lambda x: jnp.log(jnp.sum(x * x, -1)) / 2,
    "log(mean(x**2))": lambda x: jnp.log(jnp.mean(x**2, -1)),
    "log(x @ x)": lambda x: jax.vmap(lambda r: jnp.log(r @ r))(x),
    "log(three squares)": lambda x: jnp.log(x[:, 0] ** 2 + x[:, 1] ** 2 + x[:, 2] ** 2),
    "log(var)": lambda x: jnp.log(jnp.var(x, -1)),
    "log2(norm)": lambda x: jnp.log2(jnp.linalg.norm(x, axis=-1)),
}
LOG_CASES = cases(LOGS, NONZERO, LOGARITHM, [0])


@pytest.mark.parametrize("name", UNIT_CASES)
def test_unit_vectors(name):
    UNIT_CASES.check(name, thorough=name == "x / norm")


@pytest.mark.parametrize("name", SCORE_CASES)
def test_standard_scores(name):
    SCORE_CASES.check(name)


@pytest.mark.parametrize("name", LOG_CASES)
def test_logarithms_of_lengths(name):
    LOG_CASES.check(name)


TWO_ROWS = np.array([[1.0, 2.0, -3.0], [3e-15, -4e-15, 1e-15], [1e15, 2e15, 3e15], [0.0, 0.5, 0.0]])


def test_cosine_similarity():
    def f(x, y):
        norms = jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1)
        return jnp.sum(x * y, -1) / norms

    program = Program(f, [TWO_ROWS, TWO_ROWS[::-1] + 0.0 * TWO_ROWS])
    for answer in (*program.eager(), *program.jitted()):
        program.assert_right(answer)


def test_cosine_similarity_of_nothing():
    """With a bound below, as libraries have it: finite, and the slope of the length 0."""

    def f(x, y):  # fmt: skip
        return optax.cosine_similarity(x, y, epsilon=1e-6)

    value, slopes = jax.value_and_grad(stabilize(f), (0, 1))(jnp.zeros(3), jnp.array([1.0, 2.0, 2.0]))
    assert float(value) == 0 and np.all(np.isfinite(np.stack(slopes)))


def test_half_precision_sums_that_the_library_widens():
    for dtype in ("float16", "bfloat16"):
        x = jnp.asarray([[300.0, -400.0], [0.0, 0.0], [3e-4, 4e-4]], dtype)
        for f in (LENGTHS["sqrt(sum(x x))"], LENGTHS["linalg.norm"], lambda x: jnp.sqrt((x * x).sum(-1))):
            stable = stabilize(f)
            value, slope = stable(x), jax.grad(lambda x, stable=stable: stable(x).sum())(x)
            value, slope = (np.asarray(y, np.float64) for y in (value, slope))
            np.testing.assert_allclose(value, [500, 0, 5e-4], rtol=1e-2)
            np.testing.assert_allclose(slope, [[0.6, -0.8], [0, 0], [0.6, 0.8]], rtol=1e-2)


def test_a_cast_between_root_and_squares():
    x = jnp.asarray([[300.0, -400.0], [0.0, 0.0]], "float16")
    f = stabilize(lambda x: jnp.sqrt(jnp.sum(x.astype("float32") ** 2, -1)).astype("float16"))
    np.testing.assert_allclose(f(x), [500, 0])
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), [[0.6, -0.8], [0, 0]], rtol=1e-3)


# -- what stays ------------------------------------------------------------------------------------------------------

DOMAIN = Domain(
    {
        "sqrt(x**2)": (lambda x: jnp.sqrt(x**2), [NAN, INF, -INF, 1.0]),
        "sqrt(x**2 + y**2)": (lambda x, y: jnp.sqrt(x**2 + y**2), [NAN, INF, -INF, 1.0], [1.0, 1.0, NAN, INF]),
        "sqrt(-x**2)": (lambda x: jnp.sqrt(-(x**2)), [1.0, 2.0]),
        "sqrt(x**3)": (lambda x: jnp.sqrt(x**3), [-1.0, 2.0]),
        "sqrt(x**2 - y**2)": (lambda x, y: jnp.sqrt(x**2 - y**2), [1.0, 2.0], [2.0, 1.0]),
        "sqrt(x x**2)": (lambda x: jnp.sqrt(x * x**2), [-1.0, 2.0]),
        "sqrt(x**2 y)": (lambda x, y: jnp.sqrt(x**2 * y), [1.0, 2.0, 2.0], [-1.0, 4.0, NAN]),
        "1 / sqrt(x**2)": (lambda x: 1 / jnp.sqrt(x**2), [NAN, INF, 2.0]),
        "x / sqrt(x**2 + y**2)": (lambda x, y: x / jnp.sqrt(x**2 + y**2), [0.0, 1.0, NAN], [0.0, 2.0, 1.0]),
        "log(x**2 + y**2)": (lambda x, y: jnp.log(x**2 + y**2), [1.0, NAN, INF], [2.0, 1.0, 1.0]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "sqrt(sum + eps)": lambda u, v: jnp.sqrt(jnp.sum(u**2, -1) + 1e-8),
    "sum(x**2)**1.5": lambda u, v: jnp.sum(u**2, -1) ** 1.5,
    "sqrt(x)": lambda u, v: jnp.sqrt(u),
    "sqrt(x + y)": lambda u, v: jnp.sqrt(u + v),
    "sqrt(sum(x))": lambda u, v: jnp.sqrt(jnp.sum(u, -1)),
    "sqrt(x y)": lambda u, v: jnp.sqrt(u * v),
    "sqrt(x**2 - y**2)": lambda u, v: jnp.sqrt(u**2 - v**2),
    "sqrt(1 + x**2)": lambda u, v: jnp.sqrt(1 + u**2),
    "sqrt(sin(x)**2 + 1)": lambda u, v: jnp.sqrt(jnp.sin(u) ** 2 + 1),
    "sqrt of a bounded square": lambda u, v: jnp.sqrt((2 + jnp.sin(u)) ** 2),
    "layer norm": lambda u, v: (u - u.mean(-1, keepdims=True)) * lax.rsqrt(u.var(-1, keepdims=True) + 1e-5),
    "layer norm, quotient": lambda u, v: (u - u.mean(-1, keepdims=True)) / jnp.sqrt(u.var(-1, keepdims=True) + 1e-5),
    "root mean square norm": lambda u, v: u * lax.rsqrt(jnp.mean(u**2, -1, keepdims=True) + 1e-6),
    "Adam, its second moment given": lambda u, v: u / (jnp.sqrt(v) + 1e-8),
    "sqrt of a matrix product": lambda u, v: jnp.sqrt(u @ v.T),
    "x / (1 + |x|)": lambda u, v: u / (1 + jnp.abs(u)),
    "max(sum, eps)": lambda u, v: jnp.sqrt(jnp.maximum(jnp.sum(u**2, -1), 1e-8)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)), jnp.ones((2, 4)))


def test_a_step_of_adam():
    """Is what it was, where its slopes are finite."""
    adam = optax.adam(1e-2)
    parameters = {"w": jnp.array([1.0, -2.0, 0.0])}

    def step(gradient):
        updates, _ = adam.update({"w": gradient}, adam.init(parameters), parameters)
        return updates["w"]

    gradient = jnp.array([0.5, -1e-3, 2.0])
    np.testing.assert_allclose(stabilize(step)(gradient), step(gradient), rtol=1e-6)
    slopes = [jax.grad(lambda g, f=f: f(g).sum())(gradient) for f in (step, stabilize(step))]
    np.testing.assert_allclose(*slopes, rtol=1e-2, atol=1e-6)


def test_a_number_to_a_whole_power_that_is_computed():
    f = stabilize(lambda x, n: jnp.log1p(-(0.9**n)) * jnp.sqrt(x**2 / (1 - 0.9**n)))
    expected = np.log1p(-(0.9**3)) * 2 / np.sqrt(1 - 0.9**3)
    np.testing.assert_allclose(f(jnp.float32(2), jnp.int32(3)), expected, rtol=1e-6)


def test_second_derivatives():
    x = jnp.array([1.0, 2.0, -3.0])
    stable = stabilize(lambda x: jnp.sqrt(jnp.sum(x**2)))
    right = np.eye(3) / np.sqrt(14) - np.outer(x, x) / 14**1.5
    np.testing.assert_allclose(jax.hessian(stable)(x), right, rtol=1e-5, atol=1e-7)
    assert not np.any(jax.hessian(stable)(jnp.zeros(3)))
