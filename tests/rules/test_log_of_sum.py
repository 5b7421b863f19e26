"""Logarithms of sums along axes: logsumexp, its weights, log-softmax and log(1 - softmax)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, logsumexp, softmax

from rules.harness import Program, check_rule, in_dtype
from rules.tables import Case, Cases
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

FAR_LEFT = np.array([[-20.0, -18.5, -25.0], [-200.0, -150.0, -180.0]])
INF, NAN = float("inf"), float("nan")
LOG = "log_of_companion"
ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
WEIGHTS = np.array([[0.5, 0.25, 2.0, 1.0], [1.0, 0.5, 0.25, 2.0], [0.25, 1.0, 4.0, 1.0], [1.0, 0.5, 0.25, 2.0]])
SIGNED = (WEIGHTS * np.array([1.0, -1.0, 1.0, -1.0])).astype(np.float32)
SUMS = {
    "log(sum(exp(x)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1)),
    "log(mean(exp(x)))": lambda x, w: jnp.log(jnp.mean(jnp.exp(x), -1)),
    "log(sum(exp(x), keepdims))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True)),
    "log(sum(exp(x.T), 0))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x.T), 0)),
    "log(sum(w exp(x)))": lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), -1)),
    "log(mean(exp(x) w))": lambda x, w: jnp.log(jnp.mean(jnp.exp(x) * w, -1)),
    "log(sum(exp(x) / w))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) / w, -1)),
    "log(1 + sum(exp(x)))": lambda x, w: jnp.log(1 + jnp.sum(jnp.exp(x), -1)),
    "log1p(sum(exp(x)))": lambda x, w: jnp.log1p(jnp.sum(jnp.exp(x), -1)),
    "log(sum(exp(x)) / 3)": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1) / 3),
    "log(exp(x) @ v)": lambda x, w: jnp.log(jnp.exp(x) @ w[0]),
    "log(einsum)": lambda x, w: jnp.log(jnp.einsum("ij,ij->i", jnp.exp(x), w)),
    "log(vmap of vdot)": lambda x, w: jnp.log(jax.vmap(jnp.vdot)(jnp.exp(x), w)),
    "log(sum of a loop)": lambda x, w: jnp.log(sum(jnp.exp(x[:, k]) for k in range(4))),
    "log(sum(exp(x)[:, :2]) + rest)": lambda x, w: jnp.log(jnp.exp(x)[:, :2].sum(-1) + jnp.exp(x)[:, 2:].sum(-1)),
    "log(max(exp(x)))": lambda x, w: jnp.log(jnp.max(jnp.exp(x), -1)),
    "log(cumsum(exp(x)))": lambda x, w: jnp.log(jnp.cumsum(jnp.exp(x), -1)),
    "log(sum(exp(x)**2))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) ** 2, -1)),
    "log(norm of exp(x))": lambda x, w: jnp.log(jnp.sqrt(jnp.sum(jnp.exp(x) ** 2, -1))),
    "log(sum(exp(x) exp(w)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) * jnp.exp(w), -1)),
    "log(sum(exp(x)) * sum(exp(w)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1) * jnp.sum(jnp.exp(w), -1)),
    "log(sum under checkpoint)": lambda x, w: jnp.log(jax.checkpoint(lambda u: jnp.exp(u).sum(-1))(x)),
    "log(sum of a vmap)": lambda x, w: jnp.log(jax.vmap(lambda u: jnp.exp(u).sum())(x)),
    "log(sum in a jitted helper)": lambda x, w: jnp.log(jax.jit(lambda u: jnp.exp(u).sum(-1))(x)),
}


HELD = WEIGHTS.astype(np.float32)
SUM_CASES = Cases({name: Case(lambda x, f=f: f(x, HELD), [ROWS], LOG, [0, 1], source=f) for name, f in SUMS.items()})


@pytest.mark.parametrize("name", SUM_CASES)
def test_sums(name):
    SUM_CASES.check(name, thorough=name in ("log(sum(exp(x)))", "log(exp(x) @ v)"))


BY_WEIGHT_CASES = Cases(
    {
        name: Case(SUMS[name], [ROWS / 4, WEIGHTS], LOG)
        for name in ("log(sum(w exp(x)))", "log(einsum)", "log(sum(exp(x) / w))")
    }
)


@pytest.mark.parametrize("name", BY_WEIGHT_CASES)
def test_sums_differentiated_by_weights(name):
    BY_WEIGHT_CASES.check(name)


def test_sum_over_a_zero_weight():
    """A weight 0 above an exponential that overflows takes no part in value or gradient."""
    w = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1], [1, 1, 0, 0.0]], np.float32)
    check_rule(Program(lambda x: jnp.log(jnp.sum(w * jnp.exp(x), -1)), [ROWS]), LOG, fails_plain=[0, 1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    x = ROWS * {"float16": 0.13, "bfloat16": 1, "float64": 8}[dtype]
    with in_dtype(dtype):
        program = Program(lambda x: jnp.log(jnp.sum(jnp.exp(x), -1)), [x], dtype)
    check_rule(program, LOG, fails_plain=[0, 1])


def _cross_entropy(x, t):
    return -jnp.sum(t * jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)), -1)


HALF_TARGETS = np.array([[0.5, 0.25, 0.25, 0], [0, 1, 0, 0], [0.25, 0.25, 0.5, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", [_cross_entropy, lambda x, t: _cross_entropy(x[:, :1], t[:, :1])], ids=["4", "1 class"])
def test_half_cross_entropy(f, dtype):
    """jnp.sum of halves is a sum in float32 between two casts; no half rounds the logarithm of it on the way."""
    x = ROWS * {"float16": 0.13, "bfloat16": 1}[dtype]
    with in_dtype(dtype):
        program = Program(f, [x, HALF_TARGETS], dtype)
    check_rule(program, LOG, fails_plain=[0, 1], source=_cross_entropy)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_cross_entropy_keeps_its_digits(dtype):
    """Within the last digit of the dtype, as far as the logits are from 0."""
    x, t = jnp.array([[50.0, 49.0], [20.0, 19.0], [9.0, 8.0]], dtype), jnp.array([1.0, 0.0], dtype)
    for wrap in (lambda g: g, jax.jit):
        got = np.asarray(wrap(stabilize(_cross_entropy))(x, t), np.float64)
        np.testing.assert_allclose(got, np.log1p(np.exp(-1.0)), rtol=float(jnp.finfo(dtype).eps))


CUBE = (np.arange(12.0).reshape(2, 2, 3) * 7 % 61 * 6 - 180) / 1.5
CUBE_WEIGHTS = np.round(np.cos(np.arange(12.0)).reshape(2, 2, 3) * 16).astype(np.float32) / 16
AXES = {"all": None, "first": 0, "middle": 1, "last two": (1, 2), "outer two": (0, 2), "a negative one": -3}


def log_softmax_along(axis):
    return lambda x: CUBE_WEIGHTS * jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x), axis, keepdims=True))


def log_one_minus_softmax_along(axis):
    return lambda x: CUBE_WEIGHTS * jnp.log(1 - jnp.exp(x) / jnp.sum(jnp.exp(x), axis, keepdims=True))


def logsumexp_along(axis):
    return lambda x: jnp.log(jnp.sum(jnp.exp(x), axis))


def logsumexp_kept(axis):
    return lambda x: jnp.log(jnp.sum(jnp.exp(x), axis, keepdims=True))


AXES_CASES = Cases(
    {
        f"{what}-{name}": Case(make(axis), [CUBE], LOG, breaking)
        for what, make, breaking in (
            ("logsumexp", logsumexp_along, ()),
            ("logsumexp, keepdims", logsumexp_kept, ()),
            ("log_softmax", log_softmax_along, [0, 1]),
            ("log(1 - softmax)", log_one_minus_softmax_along, [0, 1]),
        )
        for name, axis in AXES.items()
    }
)


@pytest.mark.parametrize("name", AXES_CASES)
def test_along(name):
    AXES_CASES.check(name)


SHAPES = {"(1, 4)": (1, 4), "(4, 1)": (4, 1), "(1, 1)": (1, 1), "(3, 1, 2)": (3, 1, 2), "(1,)": (1,), "(4,)": (4,)}


def numbers(shape):
    size = int(np.prod(shape))
    return (np.arange(size) * 37 % 11 * 60.0 - 250).reshape(shape)


def weighted_log_softmax(shape):
    w = 1 + np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return lambda x: w * jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True))


SHAPE_CASES = Cases(
    {f"logsumexp-{name}": Case(logsumexp_along(-1), [numbers(shape)], LOG) for name, shape in SHAPES.items()}
    | {
        f"log_softmax-{name}": Case(weighted_log_softmax(shape), [numbers(shape)], LOG)
        for name, shape in SHAPES.items()
    }
    | {
        "no axes": Case(lambda x: jnp.log(1 + jnp.exp(x)), [np.array(200.0)], LOG, True),
        "no axes, a sum": Case(lambda x: jnp.log(jnp.exp(x).sum()), [np.array(200.0)], LOG, True),
        "no axes, a stack": Case(
            lambda x: jnp.log(jnp.stack([jnp.exp(x), jnp.exp(2 * x)]).sum()), [np.array(200.0)], LOG, True
        ),
    }
)


@pytest.mark.parametrize("name", SHAPE_CASES)
def test_shapes(name):
    SHAPE_CASES.check(name)


DOMAIN = Domain(
    {
        "log(sum(sqrt(x)**2))": (
            lambda x: jnp.log(jnp.sum(jnp.sqrt(x) ** 2, -1)),
            [[-1.0, 2.0], [1.0, 2.0], [NAN, 1.0], [0.0, 0.0]],
        ),
        "log(norm(sqrt(x)))": (
            lambda x: jnp.log(jnp.linalg.norm(jnp.sqrt(x), axis=-1)),
            [[200.0, -1.0], [1.0, 2.0], [0.0, 0.0]],
        ),
        "log1p(sum(sqrt(x)**2))": (
            lambda x: jnp.log1p(jnp.sum(jnp.sqrt(x) ** 2, -1)),
            [[-1.0, 2.0], [1.0, 2.0], [-1.0, -2.0]],
        ),
        "log(sum(sqrt(x p)**2))": (
            lambda x, p: jnp.log(jnp.sum(jnp.sqrt(x * p) ** 2, -1)),
            [[-1.0, 3.0], [-1.0, -3.0], [1.0, 2.0]],
            [[1.0, 1.0], [-1.0, -2.0], [1.0, 2.0]],
        ),
        "log(sum(exp(x)))": (
            lambda x: jnp.log(jnp.sum(jnp.exp(x), -1)),
            [[NAN, 2.0], [INF, 1.0], [-INF, 1.0], [-INF, -INF], [INF, INF], [INF, -INF], [NAN, INF]],
        ),
        "log(sum(-exp(x)))": (lambda x: jnp.log(jnp.sum(-jnp.exp(x), -1)), [[1.0, 2.0], [NAN, 0.0]]),
        "log(softmax(x))": (lambda x: jnp.log(softmax(x)), [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]]),
        "log(exp(x) / sum)": (
            lambda x: jnp.log(jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)),
            [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]],
        ),
        "log(sum(w exp(x))), any sign": (
            lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), -1)),
            [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [NAN, 1.0], [INF, 0.0], [-INF, -INF]],
            [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        ),
        "log(sum(x))": (lambda x: jnp.log(jnp.sum(x, -1)), [[-1.0, -2.0], [-1.0, 1.0], [NAN, 1.0], [INF, 1.0]]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "log(sum(x**2) + 3)": lambda x: jnp.log(jnp.sum(x**2) + 3),
    "log(mean(abs(x)))": lambda x: jnp.log(jnp.mean(jnp.abs(x))),
    "log(2 + sin(x))": lambda x: jnp.log(2 + jnp.sin(x)),
    "library log_softmax": lambda x: log_softmax(x),
    "library logsumexp": lambda x: logsumexp(x, -1),
    "shifted logsumexp": lambda x: jnp.log(jnp.exp(x - x.max()).sum()) + x.max(),
    "log(x)": lambda x: jnp.log(x),
    "log(det)": lambda x: jnp.log(jnp.abs(jnp.linalg.det(x @ x.T))),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.log(1 + jnp.exp(x).sum(-1)),
        lambda x: jnp.log1p(jnp.exp(x).sum(-1)),
        lambda x: jnp.logaddexp(jnp.log(jnp.exp(x).sum(-1)), 0.0),
    ],
)
def test_one_and_a_sum_that_is_far_left(f):
    """log(1 + s) is s there, not 0."""
    with in_dtype("float32"):
        program = Program(f, [FAR_LEFT])
        for answer in (*program.eager(), *program.jitted()):
            program.assert_right(answer)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", [softmax, log_softmax, lambda x: logsumexp(x, -1)], ids=["softmax", "log", "sum"])
def test_the_library_s_own_of_halves_are_left_alone(f, dtype):
    """Their sum of shifted exponentials, in float32 between two casts, is at least 1."""
    assert_left_alone(f, jnp.ones((2, 4), dtype))
