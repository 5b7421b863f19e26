"""`truth` on whole losses, against mpmath; its options and its report."""

import time

import jax
import jax.numpy as jnp
import ml_dtypes
import mpmath
import numpy as np
import pytest
from jax import lax

from stablegrad.exact.error import within_contract
from stablegrad.truth import truth

LOGITS = np.float32([[1.5, -200.0, 3.0, 0.25, 90.0], [0.0, 0.0, 0.0, 1e-3, -4.0], [1e4, -1e4, 3.0, 2.0, 1.0]])
TARGETS = np.float32([[0, 1, 0, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2], [0, 0, 0.5, 0.5, 0]])


def exact(array):
    return [[mpmath.mpf(float(x)) for x in row] for row in array]


def cross_entropy(z, y):
    return -jnp.sum(y * jnp.log(jnp.exp(z) / jnp.sum(jnp.exp(z), axis=-1, keepdims=True)))


SPELLINGS = {
    "exp over sum": cross_entropy,
    "softmax": lambda z, y: -jnp.sum(y * jnp.log(jax.nn.softmax(z))),
    "log_softmax": lambda z, y: -jnp.sum(y * jax.nn.log_softmax(z)),
    "reshaped": lambda z, y: -jnp.sum(y.T.reshape(-1) * jnp.log(jax.nn.softmax(z).T).reshape(-1)),
    "in two parts": lambda z, y: -jnp.sum(
        y * jnp.log(jnp.concatenate([jax.nn.softmax(z)[:, :2], jax.nn.softmax(z)[:, 2:]], 1))),
    "row by row": lambda z, y: -jnp.sum(lax.map(lambda r: jnp.sum(r[1] * jnp.log(jax.nn.softmax(r[0]))), (z, y))),
    "a product of powers": lambda z, y: -jnp.sum(jnp.log(jnp.prod(jax.nn.softmax(z) ** y, 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_cross_entropy(name):
    with mpmath.workdps(400):
        loss, slopes = mpmath.mpf(0), []
        for z, y in zip(exact(LOGITS), exact(TARGETS), strict=True):
            total = sum(mpmath.exp(v) for v in z)
            loss -= sum(t * (v - mpmath.log(total)) for v, t in zip(z, y, strict=True))
            slopes.append([sum(y) * mpmath.exp(v) / total - t for v, t in zip(z, y, strict=True)])
        slopes = np.float32([[float(v) for v in row] for row in slopes])
        loss = np.float32(float(loss))
    y = jnp.asarray(TARGETS)
    found = truth(lambda z: SPELLINGS[name](z, y), LOGITS)
    assert not found.undecided, found.reasons
    assert found.value == loss
    np.testing.assert_array_equal(found.gradient[0], slopes)


def test_condition_numbers_of_cross_entropy():
    z = np.float32([[1.0, -2.0, 0.5]])
    y = np.float32([[0.0, 1.0, 0.0]])
    p = np.exp(z) / np.sum(np.exp(z))
    found = truth(lambda v: cross_entropy(v, jnp.asarray(y)), z)
    weight = np.sum(np.abs(z * (p - y)))
    assert found.sensitivity == pytest.approx(weight, rel=1e-5)
    assert found.condition == pytest.approx(weight / found.value, rel=1e-5)
    curves = np.abs(np.diag(p[0]) - np.outer(p, p)) @ np.abs(z[0])
    np.testing.assert_allclose(found.gradient_sensitivity[0][0], curves, rtol=1e-5)
    np.testing.assert_allclose(found.gradient_condition[0][0], curves / np.abs(p - y)[0], rtol=1e-5)


def test_it_is_fast_enough_for_tests():
    z = np.float32(np.random.default_rng(0).normal(size=(3, 5)))
    y = jnp.asarray(TARGETS)
    truth(lambda v: cross_entropy(v, y), z)
    start = time.perf_counter()
    truth(lambda v: cross_entropy(v, y), z)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("x", [-1e-30, -1e-8, -0.5, -0.7, -50.0, -100.0])
def test_log1mexp(x):
    x = np.float32(x)
    found = truth(lambda v: jnp.log(1 - jnp.exp(v)), x)
    with mpmath.workdps(200):
        v = mpmath.mpf(float(x))
        right = mpmath.log(1 - mpmath.exp(v)), -mpmath.exp(v) / (1 - mpmath.exp(v))
    assert found.value == np.float32(float(right[0])) and found.gradient[0] == np.float32(float(right[1]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32], ids=["f16", "bf16", "f32"])
def test_each_dtype_has_its_own_rounding(dtype):
    x = np.array([0.1, 300.0, -7.0]).astype(dtype)
    found = truth(lambda v: jnp.log(jnp.sum(jnp.exp(v))), jnp.asarray(x))
    with mpmath.workdps(300):
        total = mpmath.log(sum(mpmath.exp(mpmath.mpf(float(v))) for v in x))
    assert found.value.dtype == dtype and found.gradient[0].dtype == dtype
    assert found.value == np.array(float(total)).astype(dtype)
    assert found.gradient[0][1] == 1


def test_a_product_in_a_scan():
    x = np.float32([1e-30, 2e-30, 3e-30, 0.5])
    found = truth(lambda v: jnp.log(lax.scan(lambda c, a: (c * a, None), 1.0, v)[0]), x)
    assert found.value == np.float32(sum(np.log(np.float64(v)) for v in x))
    np.testing.assert_array_equal(found.gradient[0], np.float32(1 / np.float64(x)))


def test_the_branch_not_taken():
    x = np.float32([0.0, 2.0])
    found = truth(lambda v: jnp.where(v > 0, jnp.log(v), 0.0), x)
    assert found.value.tolist() == [0.0, np.float32(np.log(2.0))] and found.gradient[0].tolist() == [0.0, 0.5]
    found = truth(lambda v: lax.cond(v > 0, jnp.log, lambda u: 2 * u, v), np.float32(0))
    assert found.value == 0 and found.gradient[0] == 2


def test_arguments_of_every_kind():
    def f(parameters, k, *, scale):
        return {"loss": scale * jnp.sum(parameters["w"][k] ** 2), "count": k + 1}

    w = np.float32([1.0, 3.0])
    found = truth(f, {"w": w, "flag": True}, 1, scale=jnp.float32(0.5))
    assert found.value["loss"] == 4.5 and found.value["count"] == 2
    assert found.gradient[0]["w"].tolist() == [0.0, 3.0] and found.gradient[0]["flag"] is None
    assert found.gradient[1] is None
    assert found.condition["loss"] == 2 and found.condition["count"] is None
    assert found.value_decided["count"] and not found.undecided


def test_only_some_arguments():
    found = truth(lambda a, b: a * b, np.float32(2), np.float32(3), wrt=(1,))
    assert found.gradient[0] is None and found.gradient[1] == 2
    found = truth(lambda a: a * a, np.float32(2), gradient=False)
    assert found.value == 4 and found.gradient == (None,)


def test_without_conditions():
    found = truth(lambda a: a * a, np.float32(2), conditions=False)
    assert found.gradient[0] == 4 and np.isnan(found.condition) and np.isnan(found.gradient_condition[0])


def test_a_sample_of_the_directions():
    x = np.float32(np.arange(1, 51))
    found = truth(lambda v: jnp.sum(v**2), x, sample=5)
    assert np.sum(found.gradient_decided[0]) == 5 and found.undecided
    known = found.gradient_decided[0]
    np.testing.assert_array_equal(found.gradient[0][known], 2 * x[known])
    assert np.sum(np.isfinite(found.gradient_condition[0])) == 5
    assert found.reasons == ("not in the sample",)


def test_many_inputs():
    x = np.float32(np.random.default_rng(1).normal(size=(20, 10)) * 30)
    found = truth(lambda z: -jnp.sum(jnp.log(jax.nn.softmax(z))[:, 0]), x)
    assert not found.undecided
    assert np.sum(np.isfinite(found.gradient_condition[0])) == 24
    p = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    right = p / p.sum(1, keepdims=True) - np.eye(10)[0]
    np.testing.assert_allclose(found.gradient[0], right, rtol=1e-6, atol=1e-38)


def test_undecided_at_the_cap():
    def equal_but_for_rounding(x):
        return jnp.where(jnp.exp(jnp.log(x)) >= x, x, -x)

    found = truth(equal_but_for_rounding, np.float32(3), max_precision=300)
    assert found.undecided and np.isnan(found.value) and not found.value_decided
    assert found.reasons == ("the precision at hand does not decide it",)


def test_precision_is_raised():
    # 400 bits are lost between 1 and 1 + exp(-300).
    found = truth(lambda x: jnp.log((1 + jnp.exp(x)) - 1), np.float32(-300))
    assert found.value == -300 and found.gradient[0] == 1


def test_what_jax_says_comes_through():
    with pytest.raises(TypeError, match="concrete"):
        truth(lambda x: float(x), np.float32(1))


def test_the_right_answer_is_within_the_contract():
    z = np.float32(np.random.default_rng(2).normal(size=6) * 3)
    found = truth(lambda v: -jax.nn.log_softmax(v)[0], z)
    value, slope = jax.value_and_grad(lambda v: -jax.nn.log_softmax(v)[0])(z)
    assert within_contract(value, found.value, found.condition, np.float32)
    assert np.all(within_contract(slope, found.gradient[0], found.gradient_condition[0], np.float32))
