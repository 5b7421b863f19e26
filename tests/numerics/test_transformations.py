"""Every function under the transformations of JAX, and the size of what it emits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from stablegrad.numerics import jax as numerics

POSITIVE = jnp.asarray([1.5, 2.0, 3.25])
INSIDE = jnp.asarray([0.25, 0.5, 0.75])

# The arguments of each public function; the last axis is reduced where there is one.
ARGUMENTS = {
    "log1mexp": (-POSITIVE,),
    "log1prel": (POSITIVE,),
    "log_expm1": (POSITIVE,),
    "log_matmul_exp": (POSITIVE, jnp.eye(3) + 0.5),
    "logaddexp": (POSITIVE, INSIDE),
    "logdiffexp": (POSITIVE, INSIDE),
    "logsumexp_weighted": (INSIDE, POSITIVE),
    "mul_exp": (POSITIVE, INSIDE),
    "times_log": (POSITIVE, INSIDE),
    "xlogy": (POSITIVE, INSIDE),
    "xlog1py": (POSITIVE, INSIDE),
    "divide": (POSITIVE, INSIDE),
    "log_of_product": (POSITIVE, INSIDE),
    "log_of_quotient": (POSITIVE, INSIDE),
    "acosh": (POSITIVE,),
    "power_exp": (POSITIVE, INSIDE, -INSIDE),
    "sigmoid_cross_entropy": (POSITIVE, INSIDE),
    "sigmoid_difference": (POSITIVE, INSIDE),
    "softmax_cross_entropy": (POSITIVE, INSIDE),
}

# The most equations that a call may put into the program of the caller (float32).
EQUATIONS = {
    "log_matmul_exp": 16,
    "log_one_minus_softmax": 66,
    "log_sum_others": 50,
    "log_softmax": 45,  # three guard against a maximum that XLA contracts; without them values are wrong
    "log_softmax_of_picks": 45,
    "logsumexp": 26,
    "exprel": 28,
    "linex": 34,
    "sigmoid_difference": 22,
    "logsumexp_weighted": 32,
    "log_erfc": 42,
    "log_ndtr": 50,
    "log_of_product": 30,  # 0 and infinite factors too
    "log_of_quotient": 34,
    "one_minus_softmax": 43,
    "power_exp": 28,
    "softmax": 26,
    "softmax_cross_entropy": 45,
}


def arguments(name):
    return ARGUMENTS.get(name, (INSIDE,))


def total(name):
    return lambda *x: getattr(numerics, name)(*x).sum()


def equations(jaxpr):
    for equation in jaxpr.eqns:
        inner = equation.params.get("call_jaxpr")
        if inner is None:
            yield equation
        else:
            yield from equations(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize("name", numerics.__all__)
def test_emits_few_equations_and_no_nested_jit(name):
    jaxpr = jax.make_jaxpr(getattr(numerics, name))(*arguments(name)).jaxpr
    names = [equation.primitive.name for equation in equations(jaxpr)]
    assert len(names) <= EQUATIONS.get(name, 17)
    assert "jit" not in names and "pjit" not in names
    assert [e.primitive.name for e in jaxpr.eqns] == ["custom_jvp_call"]


@pytest.mark.parametrize(
    "name",
    ["softplus", "logaddexp", "logsumexp", "log_softmax", "log_sum_others", "log_matmul_exp", "exprel", "mul_exp"],
)
def test_scan_remat_and_vmap_agree_with_the_plain_gradient(name):
    x = arguments(name)
    plain = jax.grad(total(name))(*x)

    def looped(first, *rest):
        def body(carry, _):
            return carry + jax.checkpoint(total(name))(first, *rest), None

        return lax.scan(body, jnp.zeros(()), None, length=2)[0] / 2

    def batched(first, *rest):
        stacked = jnp.stack([first, first])
        return jax.vmap(total(name), (0,) + (None,) * len(rest))(stacked, *rest).sum() / 2

    both = jax.jit(lambda *x: (jax.grad(looped)(*x), jax.grad(batched)(*x)))(*x)
    for gradient in both:
        assert np.allclose(gradient, plain, rtol=1e-5)


@pytest.mark.parametrize("name", numerics.__all__)
def test_keeps_half_precision(name):
    for dtype in ("float16", "bfloat16"):
        shapes = [jax.ShapeDtypeStruct(x.shape, dtype) for x in arguments(name)]
        assert jax.eval_shape(getattr(numerics, name), *shapes).dtype == dtype
        assert jax.eval_shape(jax.grad(total(name)), *shapes).dtype == dtype


@pytest.mark.parametrize("name", numerics.__all__)
def test_float32_stays_float32_where_float64_is_enabled(name):
    with jax.enable_x64(True):
        x = [one.astype("float32") for one in arguments(name)]
        jaxpr = str(jax.make_jaxpr(jax.hessian(total(name)))(*x))
    assert "f64[3" not in jaxpr
    assert "new_dtype=float64" not in jaxpr


@pytest.mark.parametrize("name", ["softplus", "logsumexp", "log_softmax", "logsumexp_weighted", "log_sum_others"])
def test_inside_shard_map(name):
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    x = [jnp.stack([one, one]) for one in arguments(name)]
    rows = jax.sharding.PartitionSpec("rows")

    def loss(*x):
        return jax.shard_map(jax.vmap(total(name)), mesh=mesh, in_specs=rows, out_specs=rows)(*x).sum()

    gradient = jax.jit(jax.grad(loss))(*x)
    assert np.allclose(gradient[0], jax.grad(total(name))(*arguments(name)), rtol=1e-6)


@pytest.mark.parametrize("name", numerics.__all__)
def test_has_an_example_and_a_name(name):
    function = getattr(numerics, name)
    assert function.__name__ == name
    assert ">>>" in function.__doc__
