"""Programs that keep their exponentials in range by themselves: ratios of probabilities, merged sums, attention.

They are right when plain, for arguments of any size, and must not get worse: opened, the shift would be lost.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, logsumexp, softmax, softplus

from rules.harness import Program
from stablegrad.exact.error import within_contract

WEIGHTS = np.array([[1.0, -0.5, 0.2], [0.3, 2.0, 1.0], [0.0, 1.0, -1.0]], np.float32)


def ratio(a, b):
    return jnp.exp(log_softmax(a)[2] - log_softmax(b)[2])


def clipped_ratio(a, b):
    return jnp.sum(jnp.minimum(jnp.exp(log_softmax(a) - log_softmax(b)), 1.25))


def third_estimator(a, b):
    """Schulman's estimate of a KL divergence."""
    gap = log_softmax(a)[2] - log_softmax(b)[2]
    return jnp.exp(gap) - 1 - gap


def ratio_by_hand(a, b):
    picks = [x[2] - jnp.max(x) - jnp.log(jnp.sum(jnp.exp(x - jnp.max(x)))) for x in (a, b)]
    return jnp.exp(picks[0] - picks[1])


def merged(a, b):
    """The logarithm of the sum over two blocks, as online softmaxes carry it."""
    m, n = jnp.max(a), jnp.max(b)
    top = jnp.maximum(m, n)
    both = jnp.exp(m - top) * jnp.sum(jnp.exp(a - m)) + jnp.exp(n - top) * jnp.sum(jnp.exp(b - n))
    return top + jnp.log(both)


def mean(x):
    return softmax(x) @ WEIGHTS.astype(x.dtype)


def scaled_to_unit_mean_square(x):
    v = mean(x)
    return jnp.sum(v * jax.lax.rsqrt(jnp.mean(v**2) + 1e-6) * jnp.arange(1, 4, dtype=x.dtype))


FAR = [np.array([1.0, 0.0, -90.0]), np.array([1.0, 0.5, -91.0])]
NEAR = [np.array([1.0, 0.0, -2.0]), np.array([1.0, 0.5, 0.25])]
BLOCKS = [[[95, 2], [0, 1]], [[-200, -201], [0, 1]], [[89, 88], [89, 90]], [[-87, -88], [0, 1]], [[3, 1], [2, 0]]]
LARGE = [[np.array([1e4] * 3)], [np.array([-1e4, 1e4, 1e4])], [np.array([0.0, 1e30, 2.0])], [np.array([89.0, 89, 88])]]
LOGITS = [[np.array([1.0, 100.0, 0.0])], [np.array([1.0, 5.0, 0.0])], [np.array([1.0, 2.0, 1.5])]]
PROGRAMS = {
    "exp(log p - log q)": (ratio, [FAR, NEAR]),
    "min(p / q, c)": (clipped_ratio, [FAR, NEAR]),
    "p / q - 1 - log(p / q)": (third_estimator, [FAR, NEAR]),
    "p / q, log_softmax by hand": (ratio_by_hand, [FAR, NEAR]),
    "exp(log p + 91)": (lambda a: jnp.exp(log_softmax(a)[2] + 91), [FAR[:1]]),
    "merged sums": (merged, [[np.array(x, float) for x in pair] for pair in BLOCKS]),
    "norm(softmax @ w)": (lambda x: jnp.linalg.norm(mean(x)), LOGITS),
    "norm(sum(softmax w))": (
        lambda x: jnp.linalg.norm(jnp.sum(softmax(x)[:, None] * WEIGHTS.astype(x.dtype), 0)),
        LOGITS,
    ),
    "v / norm(v)": (lambda x: jnp.sum(mean(x) / jnp.linalg.norm(mean(x)) * jnp.arange(1, 4, dtype=x.dtype)), LOGITS),
    "v rsqrt(mean(v**2))": (scaled_to_unit_mean_square, LOGITS),
    "log1p(sum(v**2))": (lambda x: jnp.log1p(jnp.sum(mean(x) ** 2)), LOGITS),
    "logaddexp(norm(v), 1)": (lambda x: jnp.logaddexp(jnp.linalg.norm(mean(x)), 1.0), LOGITS),
    "shifted by the mean": (lambda x: jnp.log(jnp.sum(jnp.exp((x - jnp.mean(x)) - softplus(x - jnp.mean(x))))), LARGE),
    "p / (1 + p)": (lambda x: jnp.log(jnp.sum(softmax(x) / (1 + softmax(x)))), LARGE),
    "weighted p / (1 + p)": (lambda x: jnp.log(jnp.sum(WEIGHTS[2] ** 2 * softmax(x) / (1 + softmax(x)))), LARGE),
    "norm(softmax)": (lambda x: jnp.sqrt(jnp.sum(jnp.square(softmax(x)))), LARGE),
    "1 / (1 - softmax)": (lambda x: (1 / (1 - softmax(x / 3)))[0], LARGE),
    "log(sum(1 / (1 - softmax)))": (lambda x: jnp.log(jnp.sum(jnp.arange(1.0, 4) / (1 - softmax(x)))), LARGE[:2]),
    "exp(softplus(x) - max)": (lambda x: jnp.sum((jnp.exp(softplus(x) - jnp.max(softplus(x))) * x) ** 2), LOGITS),
    "log(2 + exp(-x))": (lambda x: jnp.log(2 + jnp.exp(-x[1])), [[np.array([0.0, 50.0])], [np.array([0.0, 1.0])]]),
    "logaddexp(a, log b), small": (lambda a: jnp.log(jnp.logaddexp(a[0], jnp.log(a[1]))), [[np.array([1e-4, 1e-4])]]),
    "logaddexp(a, 2 log b)": (lambda a: jnp.logaddexp(a[0], 2 * jnp.log(a[1])), [[np.array([1.0, 1e30])]]),
    "log sum of several logs": (
        lambda a: logsumexp(jnp.log1p(a) + jnp.log1p(a[::-1]) + log_softmax(a)), [[np.array([1e30, 1e30, 1e30])]]
    ),
    "log(v / max(norm(v), eps))": (
        lambda v: jnp.log(v / jnp.maximum(jnp.linalg.norm(v), 1e-12))[0], [[np.array([20.0, 3.0, 89.0])]]
    ),
    "t log(v / norm(v))": (
        lambda v: jnp.mean(jnp.cbrt(v) * jnp.log(v / jnp.linalg.norm(v))), [[np.array([1e-10] * 3)]]
    ),
    "log(layer norm), variance inf": (
        lambda v: 1 / jnp.log((v - jnp.mean(v)) / jnp.sqrt(jnp.var(v) + 1e-5))[0], [[np.array([1e30] * 3)]]
    ),
    "norm of a mean written by exponentials": (
        lambda x: jnp.linalg.norm((jnp.exp(x - x.max()) / jnp.exp(x - x.max()).sum()) @ WEIGHTS.astype(x.dtype)),
        LOGITS,
    ),
}  # fmt: skip
CASES = [
    pytest.param(f, args, id=f"{name} {k}") for name, (f, points) in PROGRAMS.items() for k, args in enumerate(points)
]


@pytest.mark.parametrize(("f", "args"), CASES)
def test_no_worse_than_plain(f, args):
    """Each number within the contract, or no further off than twice the plain program's."""
    program = Program(f, args)
    exact = program.exact
    plain_value, plain_slopes = f(*program.args), jax.grad(f, program.wrt)(*program.args)
    for answer in program.eager():
        if answer.value is not None:
            _assert_no_worse(answer.value, plain_value, exact.value, exact.condition, exact.sensitivity)
        for k, slope in enumerate(answer.gradient or ()):
            _assert_no_worse(
                slope,
                plain_slopes[k],
                exact.gradient[k],
                exact.gradient_condition[k],
                exact.gradient_sensitivity[k],
            )


def _assert_no_worse(got, plain, exact, condition, sensitivity):
    right = within_contract(got, exact, condition, "float32", sensitivity=sensitivity)
    got, plain, exact = (np.asarray(x, np.float64) for x in (got, plain, exact))
    no_worse = np.abs(got - exact) <= 2 * np.abs(plain - exact) + float(np.finfo(np.float32).tiny)
    assert np.all(right | no_worse | np.isnan(plain)), (got, plain, exact)
