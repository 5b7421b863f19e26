"""Sums and differences of numbers held as logarithms."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p
from stablegrad.numerics.jax.sigmoids import sigmoid

__all__ = ["log1mexp", "log_expm1", "logaddexp", "logdiffexp"]


@elementwise
def log1mexp(x: jax.Array) -> jax.Array:
    """log(1 - exp(x)) for x <= 0. 0 at -inf, -inf at 0, NaN above.

    Switches between log(-expm1(x)) and log1p(-exp(x)) at -log 2 (M. Maechler, "Accurately computing
    log(1 - exp(-|a|))", 2012). The derivative is -1/expm1(-x), -inf at 0.

    >>> print(f"{log1mexp(-1e-10):.4f} {log1mexp(-50.0):.4e}")
    -23.0259 -1.9287e-22
    """
    return select(x > -math.log(2.0), lax.log(-lax.expm1(x)), log1p(-lax.exp(x)))


@derivative_of(log1mexp)
def _log1mexp_rule(primals, tangents):
    (x,) = primals
    return log1mexp(x), combined(x, (tangents[0], lambda dx: -_reciprocal_expm1(-x) * dx))


@elementwise
def log_expm1(x: jax.Array) -> jax.Array:
    """log(exp(x) - 1) for x >= 0: the inverse of softplus. -inf at 0, NaN below, inf at inf.

    >>> print(f"{log_expm1(1e-10):.4f} {log_expm1(1000.0):.1f}")
    -23.0259 1000.0
    """
    return select(x < 1, lax.log(lax.expm1(x)), x + log1p(-lax.exp(-x)))


@derivative_of(log_expm1)
def _log_expm1_rule(primals, tangents):
    (x,) = primals
    return log_expm1(x), combined(x, (tangents[0], lambda dx: (1 + _reciprocal_expm1(x)) * dx))


@elementwise
def logaddexp(a: jax.Array, b: jax.Array) -> jax.Array:
    """log(exp(a) + exp(b)), with derivative sigmoid(a - b) by a and sigmoid(b - a) by b.

    Where both are -inf (the value is -inf) or both inf, the weights are 1/2 each; jax.numpy.logaddexp has
    NaN there.

    >>> import jax
    >>> [float(g) for g in jax.grad(logaddexp, (0, 1))(-jax.numpy.inf, -jax.numpy.inf)]
    [0.5, 0.5]
    """
    gap = select(a == b, 0.0, a - b)  # equal infinities have no difference
    return lax.max(a, b) + lax.log1p(lax.exp(-lax.abs(gap)))


@derivative_of(logaddexp)
def _logaddexp_rule(primals, tangents):
    a, b = primals
    gap = difference(a, b)
    return logaddexp(a, b), combined(
        a, (tangents[0], lambda da: sigmoid(gap) * da), (tangents[1], lambda db: sigmoid(-gap) * db)
    )


@elementwise
def logdiffexp(a: jax.Array, b: jax.Array) -> jax.Array:
    """log(exp(a) - exp(b)) for a >= b. -inf for a == b (both -inf too), a for b = -inf, NaN for a < b.

    The derivatives 1 + 1/expm1(a - b) and -1/expm1(a - b) are infinite at a == b.

    >>> print(f"{logdiffexp(1000.0, 999.0):.4f}")
    999.5413
    """
    return a + log1mexp(difference(b, a))


@derivative_of(logdiffexp)
def _logdiffexp_rule(primals, tangents):
    a, b = primals
    excess = _reciprocal_expm1(difference(a, b))
    return logdiffexp(a, b), combined(
        a, (tangents[0], lambda da: (1 + excess) * da), (tangents[1], lambda db: -excess * db)
    )


@elementwise
def difference(a: jax.Array, b: jax.Array) -> jax.Array:
    """a - b, where equal infinities differ by 0; the slopes stay 1 and -1 there and at ties."""
    return select(a == b, 0.0, a - b)


@derivative_of(difference)
def _difference_rule(primals, tangents):
    a, b = primals
    return difference(a, b), combined(a, (tangents[0], lambda da: da), (tangents[1], lambda db: -db))


@elementwise
def _reciprocal_expm1(t: jax.Array) -> jax.Array:
    """1 / (exp(t) - 1) for t >= 0, inf at either zero, NaN below."""
    return 1 / lax.expm1(select(t >= 0, lax.abs(t), jnp.nan))


@derivative_of(_reciprocal_expm1)
def _reciprocal_expm1_rule(primals, tangents):
    (t,) = primals
    value = _reciprocal_expm1(t)
    return value, combined(t, (tangents[0], lambda dt: -value * (1 + value) * dt))
