"""Sigmoid, tanh and their integrals: softplus, log_sigmoid, log_cosh."""

import math

import jax
from jax import lax

from stablegrad.numerics.jax.definition import at_least, at_most, combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p

__all__ = ["log_cosh", "log_sigmoid", "sigmoid", "sigmoid_difference", "softplus", "tanh"]


@elementwise
def sigmoid(x: jax.Array) -> jax.Array:
    """1 / (1 + exp(-x)), with a derivative that is accurate in both tails.

    The derivative is sigmoid(x) sigmoid(-x); the usual p (1 - p) is 0 as soon as p rounds to 1.
    0 at -inf, 1 at inf.

    >>> import jax
    >>> print(f"{jax.grad(sigmoid)(40.0):.4e}")
    4.2484e-18
    """
    return lax.logistic(x)


@derivative_of(sigmoid)
def _sigmoid_rule(primals, tangents):
    (x,) = primals
    return sigmoid(x), combined(x, (tangents[0], lambda dx: sigmoid_slope(x) * dx))


@elementwise
def sigmoid_slope(x: jax.Array) -> jax.Array:
    return lax.logistic(x) * lax.logistic(-x)


@derivative_of(sigmoid_slope)
def _sigmoid_slope_rule(primals, tangents):
    # sigmoid(-x) - sigmoid(x) cancels at 0; it is -tanh(x / 2).
    (x,) = primals
    slope = sigmoid_slope(x)
    return slope, combined(x, (tangents[0], lambda dx: -slope * tanh(x / 2) * dx))


@elementwise
def sigmoid_difference(a: jax.Array, b: jax.Array) -> jax.Array:
    """sigmoid(a) - sigmoid(b) without cancellation: sigmoid(a) sigmoid(-b) (1 - exp(b - a)) for a >= b.

    Also where both round to 1. The derivatives are those of the two sigmoids. Infinite arguments are the ends 0 and 1
    of the range; equal ones differ by 0.

    >>> print(f"{sigmoid_difference(31.0, 30.0):.4e}")
    5.9151e-14
    """
    return sigmoid_gap(a, b, a - b)


@derivative_of(sigmoid_difference)
def _sigmoid_difference_rule(primals, tangents):
    a, b = primals
    return sigmoid_difference(a, b), _slope_of_difference(a, b, tangents)


@elementwise
def sigmoid_gap(a: jax.Array, b: jax.Array, gap: jax.Array) -> jax.Array:
    """`sigmoid_difference` where a - b is known with more digits than the subtraction has. The derivatives by a and b
    are all there is: none flows into `gap`."""
    higher, lower = lax.max(a, b), lax.min(a, b)
    size = lax.logistic(higher) * lax.logistic(-lower) * lax.expm1(-lax.abs(gap))
    return select(a == b, 0.0, -lax.sign(gap) * size)


@derivative_of(sigmoid_gap)
def _sigmoid_gap_rule(primals, tangents):
    a, b, _ = primals
    return sigmoid_gap(*primals), _slope_of_difference(a, b, tangents)


def _slope_of_difference(a, b, tangents):
    return combined(
        a,
        (tangents[0], lambda da: sigmoid_slope(a) * da),
        (tangents[1], lambda db: -sigmoid_slope(b) * db),
    )


@elementwise
def sigmoid_step(a: jax.Array, b: jax.Array, gap: jax.Array) -> jax.Array:
    """`sigmoid_gap` of b and a gap that does not depend on b: the derivative by b is the difference of two slopes,
    without cancellation; none flows into a, which is b + gap."""
    return sigmoid_gap(a, b, gap)


@derivative_of(sigmoid_step)
def _sigmoid_step_rule(primals, tangents):
    a, b, _ = primals
    value = sigmoid_step(*primals)
    return value, combined(
        value,
        # s' = s (1 - s), so that s'(a) - s'(b) = (s(a) - s(b)) (1 - s(a) - s(b)).
        (tangents[1], lambda db: -0.5 * value * (tanh(a / 2) + tanh(b / 2)) * db),
        (tangents[2], lambda dgap: sigmoid_slope(a) * dgap),
    )


@elementwise
def tanh(x: jax.Array) -> jax.Array:
    """tanh(x), with derivative sech(x)**2 that is accurate far out.

    The usual 1 - tanh(x)**2 is 0 from x = 9 on in float32. -1 at -inf, 1 at inf.

    >>> import jax
    >>> print(f"{jax.grad(tanh)(20.0):.4e}")
    1.6993e-17
    """
    # XLA's approximation is off by 4.5 ulp near 3.7 (float32) and by 6 near 19 (float64), where the condition
    # number is 0; the relative error 3u of 2 / (1 + e^2x) < 1/4 is less than u in the result from 1 on.
    size = lax.abs(x)
    return select(size > 1, lax.sign(x) * (1 - 2 / (1 + lax.exp(2 * size))), lax.tanh(x))


@derivative_of(tanh)
def _tanh_rule(primals, tangents):
    (x,) = primals
    return tanh(x), combined(x, (tangents[0], lambda dx: _sech_squared(x) * dx))


@elementwise
def _sech_squared(x: jax.Array) -> jax.Array:
    # Far out the square of sech, for 4 exp(-2x) would be flushed to zero before its result is. Near 0 the
    # four roundings of that form are 4 ulp below 1, those of 1 - tanh**2 one.
    size, ratio = lax.abs(x), lax.tanh(x)
    root = lax.exp(-size)
    sech = 2 * root / (1 + root * root)
    return select(size < 0.5, 1 - ratio * ratio, sech * sech)


@derivative_of(_sech_squared)
def _sech_squared_rule(primals, tangents):
    (x,) = primals
    value = _sech_squared(x)
    return value, combined(x, (tangents[0], lambda dx: -2 * value * tanh(x) * dx))


@elementwise
def softplus(x: jax.Array) -> jax.Array:
    """log(1 + exp(x)), with derivative sigmoid(x). 0 at -inf, inf at inf.

    >>> float(softplus(1000.0)), float(softplus(0.0)) == float(jax.numpy.log(2.0))
    (1000.0, True)
    """
    return at_least(x, 0.0) + lax.log1p(lax.exp(-lax.abs(x)))


@derivative_of(softplus)
def _softplus_rule(primals, tangents):
    (x,) = primals
    return softplus(x), combined(x, (tangents[0], lambda dx: sigmoid(x) * dx))


@elementwise
def log_sigmoid(x: jax.Array) -> jax.Array:
    """log(sigmoid(x)) = -softplus(-x), with derivative sigmoid(-x). -inf at -inf, 0 at inf.

    >>> float(log_sigmoid(-1000.0))
    -1000.0
    """
    return at_most(x, 0.0) - lax.log1p(lax.exp(-lax.abs(x)))


@derivative_of(log_sigmoid)
def _log_sigmoid_rule(primals, tangents):
    (x,) = primals
    return log_sigmoid(x), combined(x, (tangents[0], lambda dx: sigmoid(-x) * dx))


@elementwise
def log_cosh(x: jax.Array) -> jax.Array:
    """log(cosh(x)): x**2 / 2 near 0, |x| - log 2 far out. Derivative tanh(x). inf at both infinities.

    >>> print(f"{log_cosh(1e-4):.4e} {log_cosh(1000.0):.2f}")
    5.0000e-09 999.31
    """
    size = lax.abs(x)
    far = size + (lax.log1p(lax.exp(-2 * size)) - math.log(2.0))
    # cosh**-2 = 1 - tanh**2. Up to |x| = 1 its logarithm amplifies an error of tanh by at most 1.6 per unit
    # of the condition number; from there on |x| - log 2 cancels by at most a factor 3.
    ratio = lax.tanh(x)
    return select(size < 1, -0.5 * log1p(-ratio * ratio), far)


@derivative_of(log_cosh)
def _log_cosh_rule(primals, tangents):
    (x,) = primals
    return log_cosh(x), combined(x, (tangents[0], lambda dx: tanh(x) * dx))
