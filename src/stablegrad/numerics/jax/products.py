"""Products in which a zero meets an infinity or a factor leaves the range of the dtype."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p
from stablegrad.numerics.jax.quotients import divide

__all__ = [
    "log_abs_product",
    "log_of_product",
    "log_of_quotient",
    "mul_exp",
    "power_times_log",
    "times_log",
    "xlog1py",
    "xlogy",
]


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

    half = lax.exp(e / 2)

    def by_m(dm):
        # In two halves, for a slope that overflows may meet a small tangent.
        return dm * half * half

    def by_e(de):
        # Where the value overflows too: a saturated function of it has a slope of 0, which must not meet an infinity.
        beyond = (lax.abs(value) == jnp.inf) & (lax.abs(m) < jnp.inf)
        held = select(beyond, lax.min(half, lax.full_like(half, jnp.finfo(e.dtype).max)), 1.0)
        # The tangent itself is chosen, not multiplied by 0: what comes back may be infinite.
        within = select(beyond, 0.0, value) * select(beyond, 0.0, de)
        return within + select(beyond, m, 0.0) * select(beyond, de, 0.0) * held * held

    return value, combined(m, (tangents[0], by_m), (tangents[1], by_e))


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


def power_times_log(power: float, absolute: bool) -> Callable[[jax.Array], jax.Array]:
    """The function x**power * log(x) of x >= 0, for a power > 0; with `absolute` x**power * log|x|.

    0 at 0, where the slope is -inf for a power up to 1 and 0 for a larger one.

    >>> import jax
    >>> f = power_times_log(2, False)
    >>> float(f(0.0)), float(jax.grad(f)(0.0)), float(jax.grad(power_times_log(1, False))(0.0))
    (0.0, 0.0, -inf)
    """
    return _power_times_log(float(power), absolute)


@functools.cache
def _power_times_log(power: float, absolute: bool) -> Callable[[jax.Array], jax.Array]:
    def logarithm(x):
        return lax.log(lax.abs(x) if absolute else x)

    @elementwise
    def power_times_log(x: jax.Array) -> jax.Array:
        return _raised(x, power) * select(x == 0, 0.0, logarithm(x))

    @derivative_of(power_times_log)
    def rule(primals, tangents):
        (x,) = primals
        if power > 1:
            slope = power * _power_times_log(power - 1, absolute)(x) + _raised(x, power - 1)
        else:
            slope = _raised(x, power - 1) * (power * logarithm(x) + 1)
        return power_times_log(x), combined(x, (tangents[0], lambda dx: slope * dx))

    return power_times_log


def _raised(x: jax.Array, power: float) -> jax.Array:
    if power == 0:
        return lax.full_like(x, 1)
    if power in (0.5, -0.5):
        return lax.sqrt(x) if power > 0 else 1 / lax.sqrt(x)
    return lax.integer_pow(x, int(power)) if power == int(power) else lax.pow(x, lax.full_like(x, power))


@elementwise
def log_of_product(x: jax.Array, y: jax.Array) -> jax.Array:
    """log(x * y), also where the product leaves the range of the dtype. NaN where it is negative.

    Where the product is in range this is its logarithm, so that digits near x * y = 1 are kept, which log(x) + log(y)
    loses. Where it is not, both factors are first brought nearer to 1 by powers of two, which is exact. The derivative
    is 1 / x by x and 1 / y by y.

    >>> print(f"{log_of_product(1e-30, 1e-30):.4f} {log_of_product(-1e30, -1e30):.4f} {log_of_product(1e10, 1e-10)}")
    -138.1551 138.1551 0.0
    """
    step, product = _step(x), x * y
    # A product that underflows has a factor that large only where the other one is 0.
    up = (lax.abs(product) < 2 * jnp.finfo(x.dtype).tiny) & (lax.max(lax.abs(x), lax.abs(y)) < 2.0**step)
    down = (lax.abs(product) == jnp.inf) & (lax.max(lax.abs(x), lax.abs(y)) < jnp.inf)
    scale = select(up, 2.0**step, select(down, 2.0**-step, lax.full_like(x, 1)))
    return lax.log((x * scale) * (y * scale)) - _logarithms_of_square(up, down, x, step)


@derivative_of(log_of_product)
def _log_of_product_rule(primals, tangents):
    x, y = primals
    product = x * y
    both = select(product == product, x, jnp.nan)  # 0 * inf shows in the slope too
    return log_of_product(x, y), combined(
        x, (tangents[0], lambda dx: divide(dx, both)), (tangents[1], lambda dy: divide(dy, y))
    )


@elementwise
def log_of_quotient(x: jax.Array, y: jax.Array) -> jax.Array:
    """log(x / y), also where the quotient leaves the range of the dtype. NaN where it is negative.

    Where the quotient is in range this is its logarithm, so that digits near x = y are kept, which log(x) - log(y)
    loses. The derivative is 1 / x by x and -1 / y by y.

    >>> print(f"{log_of_quotient(1e-30, 1e30):.4f} {log_of_quotient(-1e30, -1e-30):.4f} {log_of_quotient(3.0, 3.0)}")
    -138.1551 138.1551 0.0
    """
    step, quotient = _step(x), x / y
    usual = (x != 0) & (y != 0) & (lax.max(lax.abs(x), lax.abs(y)) < jnp.inf)
    up = (lax.abs(quotient) < 2 * jnp.finfo(x.dtype).tiny) & usual
    down = (lax.abs(quotient) == jnp.inf) & usual
    one = lax.full_like(x, 1)
    above = select(up, 2.0**step, select(down, 2.0**-step, one))
    below = select(up, 2.0**-step, select(down, 2.0**step, one))  # XLA would take a quotient by it apart
    return lax.log((x * above) / (y * below)) - _logarithms_of_square(up, down, x, step)


@derivative_of(log_of_quotient)
def _log_of_quotient_rule(primals, tangents):
    x, y = primals
    quotient = x / y
    both = select(quotient == quotient, x, jnp.nan)  # 0 / 0 shows in the slope too
    return log_of_quotient(x, y), combined(
        x, (tangents[0], lambda dx: divide(dx, both)), (tangents[1], lambda dy: -divide(dy, y))
    )


def log_of_ratio(above: int, below: int) -> Callable[..., jax.Array]:
    """The function log(product of `above` arguments / product of `below` further ones), whatever leaves the range.

    Mantissas and exponents are multiplied apart, so that the logarithm is taken of the ratio itself where that is in
    range.

    >>> print(f"{log_of_ratio(1, 2)(1e30, 1e30, 1e30):.4f} {log_of_ratio(3, 0)(-1e30, 1e30, -1e30):.4f}")
    -69.0776 207.2327
    """
    return _log_of_ratio(above, below)


@functools.cache
def _log_of_ratio(above: int, below: int) -> Callable[..., jax.Array]:
    def log_of_ratio(*operands: jax.Array) -> jax.Array:
        mantissa, exponent = jnp.frexp(operands[0]) if above else (lax.full_like(operands[0], 1), 0)
        for k, operand in enumerate(operands):
            m, e = jnp.frexp(operand)
            if k >= above:
                mantissa, exponent = mantissa / m, exponent - e
            elif k:
                mantissa, exponent = mantissa * m, exponent + e
        near = jnp.clip(exponent, -64, 64)
        far = lax.convert_element_type(exponent - near, mantissa.dtype)
        return lax.log(jnp.ldexp(mantissa, near)) + far * math.log(2.0)

    function = elementwise(log_of_ratio)

    @derivative_of(function)
    def rule(primals, tangents):
        def part(k: int) -> tuple[Any, Callable[[Any], jax.Array]]:
            sign = 1 if k < above else -1
            return tangents[k], lambda dx: sign * divide(dx, primals[k])

        return function(*primals), combined(primals[0], *(part(k) for k in range(above + below)))

    return function


def _step(x: jax.Array) -> int:
    """Half the exponent of the largest number."""
    return int(jnp.finfo(x.dtype).maxexp) // 2


def _logarithms_of_square(up: jax.Array, down: jax.Array, x: jax.Array, step: int) -> jax.Array:
    """log(scale**2), which both operands together were multiplied by."""
    logarithm = 2 * step * math.log(2.0)
    return select(up, logarithm, select(down, -logarithm, lax.full_like(x, 0)))


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
