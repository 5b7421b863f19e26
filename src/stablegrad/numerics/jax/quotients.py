"""Quotients: with a derivative that stays in range, and with a removable singularity at 0."""

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import (
    at_least,
    at_most,
    combined,
    derivative_of,
    elementwise,
    select,
    within_range,
)
from stablegrad.numerics.jax.exponentials import expm1, log1p

__all__ = ["divide", "exprel", "log1prel"]


@elementwise
def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """x / y, with derivative (dx - (x / y) dy) / y: no square of y, which leaves the range before it must.

    >>> import jax
    >>> print(f"{jax.grad(divide, 1)(1e-30, 1e-25):.1e}")
    -1.0e+20
    """
    return x / y


@derivative_of(divide)
def _divide_rule(primals, tangents):
    x, y = primals
    value = divide(x, y)
    numerator = combined(value, (tangents[0], lambda dx: dx), (tangents[1], lambda dy: -value * dy))
    # A product, for the division's own derivative by y squares y.
    return value, numerator * divide(lax.full_like(y, 1), y)


@elementwise
def exprel(x: jax.Array) -> jax.Array:
    """(exp(x) - 1) / x, with its limit 1 at 0. 0 at -inf, inf at inf.

    Finite for as long as the quotient is, also where exp(x) overflows. The n-th derivative is the integral of
    t**n exp(x t) over t from 0 to 1, for every n.

    >>> import jax
    >>> float(exprel(0.0)), float(jax.grad(exprel)(0.0))
    (1.0, 0.5)
    """
    # Far from 0, exp(x) - 1 = h (h + 2) with h = expm1(x / 2). Near 0 the error of expm1, up to 4 ulp, counts
    # in full, as the condition number is 0 there: exp(x / 2) times the power series of sinh(x / 2) / (x / 2).
    near = lax.exp(0.5 * x) * polynomial(x * x, _sinhc_series(x.dtype.name))
    bounded = at_most(x, _beyond_overflow(x))
    root = lax.expm1(0.5 * bounded)
    return select(lax.abs(x) < 1, near, root / bounded * (root + 2))


@derivative_of(exprel)
def _exprel_rule(primals, tangents):
    (x,) = primals
    return exprel(x), combined(x, (tangents[0], lambda dx: _exprel_moment(x, 1) * dx))


@elementwise
def linex(x: jax.Array) -> jax.Array:
    """exp(x) - 1 - x, about x**2 / 2 near 0, without cancellation; derivative expm1(x). inf at both infinities.

    The linear-exponential loss of H. R. Varian, "A Bayesian approach to real estate assessment", 1975; also what the
    divergence of two Gaussian distributions is made of, and r - 1 - log(r) for x = log(r).

    >>> print(f"{linex(1e-4):.4e}")
    5.0002e-09
    """
    near = x * x * polynomial(x, _linex_series(x.dtype.name))
    return select(lax.abs(x) < 1, near, lax.expm1(x) - at_most(x, _beyond_overflow(x)))


@derivative_of(linex)
def _linex_rule(primals, tangents):
    (x,) = primals
    return linex(x), combined(x, (tangents[0], lambda dx: expm1(x) * dx))


@elementwise
def log1prel(x: jax.Array) -> jax.Array:
    """log(1 + x) / x for x >= -1, with its limit 1 at 0. inf at -1, NaN below, 0 at inf.

    The n-th derivative is (-1)**n n! times the integral of t**n / (1 + x t)**(n + 1) over t from 0 to 1.

    >>> import jax
    >>> float(log1prel(0.0)), float(jax.grad(log1prel)(0.0))
    (1.0, -0.5)
    """
    x = select(lax.abs(x) < 1e-20, 1e-20, x)
    return log1p(within_range(x)) / x


@derivative_of(log1prel)
def _log1prel_rule(primals, tangents):
    (x,) = primals
    return log1prel(x), combined(x, (tangents[0], lambda dx: -_log1prel_moment(x, 1) * dx))


def _moment(function):
    """A function of an array and the static order n >= 1, with a derivative of its own, traced once."""
    core = jax.custom_jvp(function, nondiff_argnums=(1,))
    return jax.jit(core, static_argnums=1, inline=True), core


def _exprel_moment_value(x: jax.Array, n: int) -> jax.Array:
    """The integral of t**n exp(x t) over t from 0 to 1.

    Far from 0 by the recurrence M_k = (exp(x) - k M_{k-1}) / x, which loses at most a factor 4 from
    |x| = n + 1 on; nearer as exp(x / 2) times the power series in x of the integral about t = 1/2.
    """
    x = at_most(x, _beyond_overflow(x))
    scale = 0.5 * at_least(x, 0.0)  # exp(scale) is taken out, for exp(x) overflows before the integral does
    top, bottom = lax.exp(x - scale), lax.exp(-scale)
    far = (top - bottom) / x
    for k in range(1, n + 1):
        far = (top - k * far) / x
    near = lax.exp(0.5 * at_most(x, 0.0)) * polynomial(x, _exprel_series(n, x.dtype.name))
    return select(lax.abs(x) < n + 1, near, far) * lax.exp(scale)


_exprel_moment, _core = _moment(_exprel_moment_value)


@_core.defjvp
def _exprel_moment_rule(n, primals, tangents):
    return _exprel_moment(*primals, n), _exprel_moment(*primals, n + 1) * tangents[0]


def _log1prel_moment_value(x: jax.Array, n: int) -> jax.Array:
    """The integral of t**n / (1 + x t)**(n + 1) over t from 0 to 1.

    Far from 0 it is (log(1 + x) - w - w**2 / 2 - ... - w**n / n) / x**(n + 1) with w = x / (1 + x); for
    -4/7 < x < 4/3 the power series in z = x / (2 + x), |z| < 2/5, where 1 + x t = (1 + z (2t - 1)) / (1 - z).
    """
    w = 1 - 1 / (1 + x)  # the rounding of 1 + x then cancels against its effect in the logarithm
    powers = w * polynomial(w, tuple(1 / k for k in range(n, 0, -1)))
    # There log(1 + x) has half the error of XLA's log1p; log 0 must not meet the infinity that outweighs it.
    far = (within_range(lax.log(1 + x)) - powers) / x
    for _ in range(n):
        far = far * (1 / x)
    z = x / (2 + x)
    near = polynomial(z, _log1prel_series(n, x.dtype.name)) * (1 - z) ** (n + 1)
    return select(lax.abs(z) < 0.4, near, far)


_log1prel_moment, _core = _moment(_log1prel_moment_value)


@_core.defjvp
def _log1prel_moment_rule(n, primals, tangents):
    return _log1prel_moment(*primals, n), -(n + 1) * _log1prel_moment(*primals, n + 1) * tangents[0]


def _beyond_overflow(x: jax.Array) -> float:
    """Where exp(x / 2) is still finite but exp(x) / x has long overflowed."""
    return 2.0 * math.floor(math.log(jnp.finfo(x.dtype).max))


def polynomial(x: jax.Array, coefficients: tuple[float, ...]) -> jax.Array:
    """Horner's rule, from the highest power to the constant."""
    value = lax.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


@functools.cache
def _sinhc_series(dtype: str) -> tuple[float, ...]:
    """The power series of sinh(x / 2) / (x / 2) in x**2."""
    return _series(lambda k: Fraction(1, 4**k * math.factorial(2 * k + 1)), 1, dtype)


@functools.cache
def _linex_series(dtype: str) -> tuple[float, ...]:
    """The power series of (exp(x) - 1 - x) / x**2."""
    return _series(lambda k: Fraction(1, math.factorial(k + 2)), 1, dtype)


@functools.cache
def _exprel_series(n: int, dtype: str) -> tuple[float, ...]:
    """x**k / k! times the integral of (s + 1/2)**n s**k over s from -1/2 to 1/2."""
    return _series(lambda k: Fraction(1, 2**k * math.factorial(k)) * _central_moment(n, k), n + 1, dtype)


@functools.cache
def _log1prel_series(n: int, dtype: str) -> tuple[float, ...]:
    return _series(lambda k: (-1) ** k * math.comb(n + k, k) * _central_moment(n, k), Fraction(2, 5), dtype)


def _series(coefficient: Callable[[int], Fraction], radius: Fraction | int, dtype: str) -> tuple[float, ...]:
    """Coefficients from the highest power down, until two in a row are negligible at `radius`."""
    negligible = Fraction(float(jnp.finfo(dtype).eps)) / 64 * coefficient(0)
    found: list[Fraction] = []
    while len(found) < 3 or any(abs(found[-i]) * radius ** (len(found) - i) > negligible for i in (1, 2)):
        found.append(coefficient(len(found)))
    return tuple(float(one) for one in reversed(found))


def _central_moment(n: int, k: int) -> Fraction:
    """The mean of ((1 + s) / 2)**n s**k over s from -1 to 1."""
    even = (i for i in range(n + 1) if (i + k) % 2 == 0)
    return sum((Fraction(math.comb(n, i), i + k + 1) for i in even), Fraction(0)) / 2**n
