"""Products in which a zero meets an infinity or a factor leaves the range of the dtype."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p
from stablegrad.numerics.jax.quotients import divide

__all__ = ["log_abs_product", "mul_exp", "times_log", "xlog1py", "xlogy"]


@elementwise
def mul_exp(m: jax.Array, e: jax.Array) -> jax.Array:
    """m * exp(e), accurate also where exp(e) alone leaves the range of the dtype.

    0 where m == 0 and e < inf, even if exp(e) overflows. 0 where e == -inf, whatever m is unless it is NaN:
    the limit where m grows at most linearly in e. m == 0 with e == inf stays NaN. The derivative is exp(e) by
    m and mul_exp(m, e) by e.

    >>> print(f"{mul_exp(1e-30, 100.0):.4e} {mul_exp(0.0, 1000.0):.1f} {mul_exp(jnp.inf, -jnp.inf):.1f}")
    2.6881e+13 0.0 0.0
    """
    factor = select(e == -jnp.inf, lax.sign(m), m)
    # exp(e) = exp(near) exp(e - near). While exp(e) is in range, e - near is 0 and this is the plain product;
    # beyond, e - near is exact (Sterbenz; the bounds are integers) for as long as the result can be finite.
    range_ = jnp.finfo(e.dtype)
    lowest, highest = math.ceil(math.log(range_.tiny)), math.floor(math.log(range_.max))
    near = lax.clamp(e.dtype.type(lowest), e, e.dtype.type(highest))
    product = factor * lax.exp(near) * lax.exp(e - near)
    # What is NaN now without a NaN in m or e is 0 * inf: m is 0, or m is infinite and exp(rest) underflowed.
    return lax.select((product != product) & (e < jnp.inf), factor, product)


@derivative_of(mul_exp)
def _mul_exp_rule(primals, tangents):
    m, e = primals
    value = mul_exp(m, e)

    def by_m(dm):
        # In two halves, for a slope that overflows may meet a small tangent.
        half = lax.exp(e / 2)
        return dm * half * half

    return value, combined(m, (tangents[0], by_m), (tangents[1], lambda de: value * de))


@elementwise
def times_log(t: jax.Array, l: jax.Array) -> jax.Array:  # noqa: E741
    """t * l, where l is a logarithm: 0 where t == 0 and l == -inf, the plain product elsewhere.

    0 * NaN and 0 * inf stay NaN. The derivative by t is l, 0 where t == 0 and l == -inf; by l it is t.

    >>> float(times_log(0.0, -jax.numpy.inf)), float(times_log(2.0, -3.0))
    (0.0, -6.0)
    """
    return t * _without_log_of_zero(t, l)


@derivative_of(times_log)
def _times_log_rule(primals, tangents):
    t, l = primals  # noqa: E741
    return times_log(t, l), combined(
        t, (tangents[0], lambda dt: _without_log_of_zero(t, l) * dt), (tangents[1], lambda dl: t * dl)
    )


def _without_log_of_zero(t: jax.Array, l: jax.Array) -> jax.Array:  # noqa: E741
    return select((t == 0) & (l == -jnp.inf), 0.0, l)


@elementwise
def xlogy(x: jax.Array, y: jax.Array) -> jax.Array:
    """x * log(y), 0 where both are 0, with both gradients 0 there (and the second derivatives).

    x == 0 with y < 0 stays NaN, and so does x == 0 with y == inf.

    >>> import jax
    >>> [float(g) for g in jax.grad(xlogy, (0, 1))(0.0, 0.0)]
    [0.0, 0.0]
    """
    return x * lax.log(select((x == 0) & (y == 0), 1.0, y))


@derivative_of(xlogy)
def _xlogy_rule(primals, tangents):
    x, y = primals
    both = (x == 0) & (y == 0)
    inside = select(both, 1.0, y)
    return xlogy(x, y), combined(
        x,
        (tangents[0], lambda dx: lax.log(inside) * dx),
        (tangents[1], lambda dy: divide(select(both, 0.0, x), inside) * dy),
    )


@elementwise
def xlog1py(x: jax.Array, y: jax.Array) -> jax.Array:
    """x * log(1 + y), 0 where x == 0 and y == -1, with both gradients 0 there (and the second derivatives).

    x == 0 with y < -1 stays NaN, and so does x == 0 with y == inf.

    >>> float(xlog1py(0.0, -1.0)), float(xlog1py(2.0, 1e-20)) == float(jnp.float32(2e-20))
    (0.0, True)
    """
    return x * log1p(select((x == 0) & (y == -1), 0.0, y))


@derivative_of(xlog1py)
def _xlog1py_rule(primals, tangents):
    x, y = primals
    both = (x == 0) & (y == -1)
    inside = select(both, 0.0, y)
    return xlog1py(x, y), combined(
        x,
        (tangents[0], lambda dx: log1p(inside) * dx),
        (tangents[1], lambda dy: divide(select(both, 0.0, x), 1 + inside) * dy),
    )


@along_axis
def log_abs_product(x: jax.Array, axis: Axis = None) -> jax.Array:
    """log(prod(x)) over `axis` (all axes by default), without the product; the result lacks those axes.

    NaN if the product is negative, -inf if a factor is 0 (and none is infinite). The derivative is 1 / x.

    >>> print(log_abs_product(jnp.full(4, 1e-30)))
    -276.3102
    """
    negative = lax.reduce_prod(lax.sign(x), axis) < 0
    # log|x| = whole + part: the whole numbers add up without rounding, and the parts are small.
    log = lax.log(lax.abs(x))
    whole = lax.clamp(x.dtype.type(-2000), lax.round(log), x.dtype.type(2000))
    total = lax.reduce_sum(whole, axis) + lax.reduce_sum(log - whole, axis)
    return select(negative, jnp.nan, total)


@derivative_of(log_abs_product)
def _log_abs_product_rule(axis, primals, tangents):
    (x,) = primals
    value = log_abs_product(x, axis)
    return value, combined(value, (tangents[0], lambda dx: lax.reduce_sum(dx / x, axis)))
