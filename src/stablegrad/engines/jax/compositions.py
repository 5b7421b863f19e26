"""Small functions that only emitted programs need: shifts, guards, the logarithm of a sum of few terms."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablegrad.numerics import jax as numerics


def _number(x: Any, value: Any) -> Any:
    return lax.full_like(x, value)


def _nan_where(bad: Any, value: Any) -> Any:
    """value, NaN where `bad`; the derivative is NaN there too, and untouched elsewhere."""
    inside = lax.select(bad, value, _number(value, 0))
    return lax.select(bad, lax.mul(inside, _number(value, math.nan)), value)


def nonnegative(u: Any) -> Any:
    """u where it is 0 or more, NaN below: exp(log(u))."""
    return _nan_where(lax.lt(u, _number(u, 0)), u)


def require(value: Any, u: Any) -> Any:
    """value, NaN where u is negative."""
    return _nan_where(lax.lt(u, _number(u, 0)), value)


def require_finite(value: Any, u: Any) -> Any:
    """value, NaN where u is infinite or NaN: u was divided out."""
    return _nan_where(lax.bitwise_not(lax.is_finite(u)), value)


def _finite(shift: Any) -> Any:
    """A shift that can be subtracted: 0 where the maximum is not a finite number."""
    return lax.stop_gradient(lax.select(lax.is_finite(shift), shift, _number(shift, 0)))


def shift(e: Any, axis: tuple[int, ...]) -> Any:
    """The largest exponent along `axis`, held constant for the derivative."""
    return _finite(lax.reduce_max(lax.stop_gradient(e), axis))


def shift_weighted(e: Any, m: Any, axis: tuple[int, ...]) -> Any:
    """The largest exponent that has a mantissa other than 0."""
    return _finite(lax.reduce_max(_counted(lax.stop_gradient(m), lax.stop_gradient(e)), axis))


def _counted(m: Any, e: Any) -> Any:
    """e where m is not 0, else -inf."""
    if isinstance(m, np.ndarray):  # a literal
        return e if m != 0 else _number(e, -math.inf)
    return lax.select(lax.ne(m, _number(m, 0)), e, _number(e, -math.inf))


def _held(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else lax.stop_gradient(x)


def _entry(m: Any, e: Any, s: Any) -> Any:
    """m * exp(e - s), where s is at least every e that counts."""
    down = lax.sub(e, s) if not isinstance(e, np.ndarray) or e != 0 else lax.neg(s)
    if isinstance(m, np.ndarray):
        return lax.exp(down) if m == 1 else lax.mul(_number(s, m), lax.exp(down))
    return numerics.mul_exp(m, down)


def shift_terms(*pairs: Any) -> Any:
    """The largest exponent of m1, e1, m2, e2 ... that has m != 0. Literals are NumPy scalars."""
    held = [_held(p) for p in pairs]
    return _finite(functools.reduce(_larger, [_counted(m, e) for m, e in zip(held[::2], held[1::2])]))


def _larger(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else lax.max(a, b)


def held_size(s: Any) -> Any:
    """About the power of two nearest to |s|, with the sign of s, constant for the derivative; 1 for 0 and infinity."""
    held = lax.stop_gradient(s)
    size, one = lax.abs(held), _number(s, 1)
    usable = lax.bitwise_and(lax.gt(size, _number(s, 0)), lax.is_finite(size))
    exponent = lax.round(lax.mul(lax.log(lax.select(usable, size, one)), _number(s, 1 / math.log(2))))
    return lax.select(usable, lax.mul(lax.sign(held), lax.exp2(exponent)), one)


def log_near_1(rest: Any, whole: Any) -> Any:
    """log of `whole`, which is 1 + `rest`: by the rest where that is small."""
    near = lax.lt(lax.abs(rest), _number(rest, 0.5))
    inside, outside = lax.select(near, rest, _number(rest, 0)), lax.select(near, _number(rest, 1), whole)
    return lax.select(near, numerics.log1p(inside), lax.log(outside))


def linex_near_0(x: Any, whole: Any) -> Any:
    """`whole`, which is exp(x) - 1 - x: by x where that is small."""
    near = lax.lt(lax.abs(x), _number(x, 1))
    return lax.select(near, numerics.linex(lax.select(near, x, _number(x, 0))), whole)


def log_of_1_and(rest: Any, logarithm: Any) -> Any:
    """`logarithm`, which is log(1 + `rest`): by the rest where that is small."""
    near = lax.lt(lax.abs(rest), _number(rest, 0.25))
    return lax.select(near, numerics.log1p(lax.select(near, rest, _number(rest, 0))), logarithm)


def atanh_or(u: Any, written: Any) -> Any:
    """`written`, which is atanh(u): by u where it is small, and where it is NaN."""
    far = lax.ge(lax.abs(u), _number(u, 0.5))
    return lax.select(far, written, numerics.atanh(lax.select(far, _number(u, 0), u)))


def log_sum_terms(*pairs: Any, one: int = -1) -> Any:
    """log of the sum of m * exp(e) over pairs m1, e1, m2, e2 ..., with a 1 in front of pairs[one] if one >= 0: NaN if
    the sum is negative."""
    if one < 0:
        pure = [k for k in range(0, len(pairs), 2) if isinstance(pairs[k], np.ndarray) and pairs[k] == 1]
        if len(pure) != 1:
            return _log_of_shifted(*pairs)
        (place,) = pure
        return _log_beside(pairs[:place], pairs[place + 1], pairs[place + 2 :])
    return _log_beside(pairs[:one], None, pairs[one:])


def _log_of_shifted(*pairs: Any) -> Any:
    s = shift_terms(*pairs)
    entries = [_entry(m, e, s) for m, e in zip(pairs[::2], pairs[1::2])]
    return lax.add(lax.log(functools.reduce(lax.add, entries)), s)


def _log_beside(before: tuple[Any, ...], top: Any, after: tuple[Any, ...]) -> Any:
    """log of exp(top) and the sum over further pairs on both sides; `top` None stands for 0.

    What is small is not rounded away beside exp(top), nor a logarithm near 0 beside the 1 that its sum would be.
    """
    pairs = (*before, *after)
    if isinstance(top, np.ndarray):  # a number
        top = None if top == 0 else _number(next(p for p in pairs if not isinstance(p, np.ndarray)), top)
    others = _sum_above(pairs, top)
    zero = _number(others, 0)
    # Either side gets zeros where it is not taken: no slope there is infinite or NaN, as it is of a logarithm that
    # happens to be one of 0.
    near = lax.bitwise_and(lax.gt(others, _number(others, -0.5)), lax.lt(others, _number(others, 2)))
    inside = [lax.select(near, zero + operand, zero) for operand in pairs]
    outside = [lax.select(near, zero, zero + operand) for operand in pairs]
    base = None if top is None else lax.select(near, top, zero)
    close = numerics.log1p(_sum_above(inside, base))
    far = zero if top is None else lax.select(near, zero, top)
    pair = (_number(others, 1), far)  # in its place: (1 + x) + y is not 1 + (x + y)
    written = _log_of_shifted(*outside[: len(before)], *pair, *outside[len(before) :])
    return lax.select(near, close if base is None else lax.add(base, close), written)


def _sum_above(pairs: Any, top: Any) -> Any:
    """The sum of m * exp(e - top)."""
    down = [e if top is None else lax.sub(e + _number(top, 0), top) for e in pairs[1::2]]
    return functools.reduce(lax.add, [numerics.mul_exp(m, e) for m, e in zip(pairs[::2], down)])


def pair_shift(z: Any) -> Any:
    """max(z, 0), with the slope of a branch at 0: the larger exponent of 1 and e^z."""
    return lax.select(lax.gt(z, _number(z, 0)), z, _number(z, 0))


def sum_of_pair(z: Any, ratio: float = 1.0) -> Any:
    """(1 + ratio e^z) / exp(pair_shift(z))"""
    small, one = lax.exp(_downward(z)), _number(z, 1)
    if ratio == 1:
        return lax.add(small, one)
    weight, up = _number(z, ratio), lax.gt(z, _number(z, 0))
    return lax.select(up, lax.add(small, weight), lax.add(lax.mul(small, weight), one))


def difference_of_pair(z: Any) -> Any:
    """(e^z - 1) / exp(pair_shift(z))"""
    less = numerics.expm1(_downward(z))
    return lax.select(lax.gt(z, _number(z, 0)), lax.neg(less), less)


def _downward(z: Any) -> Any:
    """-|z|, by branches: at 0 the slopes of these functions add up to the right one.

    Constant where e^-z underflows: a cotangent there, exp(shift) or more, may be infinite, and meets no slope of 0.
    """
    range_ = jnp.finfo(z.dtype)
    far = -math.log(range_.smallest_subnormal if z.dtype == np.float16 else range_.tiny)
    down = lax.select(lax.gt(z, _number(z, 0)), lax.neg(z), z)
    return lax.select(lax.gt(z, _number(z, far)), _number(z, -2 * far), down)


CENTRE = 16.0


def cosh_shift(h: Any) -> Any:
    """|h|, or 0 where e^h and e^-h are in range as they are, or h is infinite; constant for the derivative."""
    size = lax.stop_gradient(lax.abs(h))
    apart = lax.bitwise_and(lax.ge(size, _number(h, CENTRE)), lax.lt(size, _number(h, math.inf)))
    return lax.select(apart, size, _number(h, 0))


def scaled_cosh(h: Any) -> Any:
    """(e^h + e^-h) / exp(cosh_shift(h)), the shift held constant for the derivative: near 0 by the function itself,
    which has the right slope there; beyond by two exponentials, of which one is 1."""
    shift = cosh_shift(h)
    near, zero = lax.eq(shift, _number(h, 0)), _number(h, 0)
    inside, outside = lax.select(near, h, zero), lax.select(near, zero, h)
    tails = lax.add(lax.exp(lax.sub(outside, shift)), lax.exp(lax.sub(lax.neg(outside), shift)))
    return lax.select(near, lax.mul(lax.cosh(inside), _number(h, 2)), tails)


def log_sum_exp_terms(*exponents: Any) -> Any:
    """log of the sum of exp(e) over a few arrays of one shape."""
    return numerics.logsumexp(_stacked(exponents), axis=(0,))


def norm_of_terms(*roots: Any) -> Any:
    """sqrt of the sum of squares of a few arrays of one shape."""
    return numerics.norm(_stacked(roots), axis=(0,))


def _stacked(arrays: Any) -> Any:
    return lax.concatenate([lax.expand_dims(a, (0,)) for a in arrays], 0)


def _sides(x: Any) -> tuple[Any, Any, Any]:
    """x or 0 where it is negative, where it is not, and which; no minimum, whose slope at 0 is 1/2."""
    zero = _number(x, 0)
    negative = lax.lt(x, zero)
    return lax.select(negative, x, zero), lax.select(negative, zero, x), negative


def log_softplus(x: Any) -> Any:
    """log(log(1 + e^x)): x plus a small number far left, where log(1 + e^x) underflows."""
    left, right, negative = _sides(x)
    small = lax.add(left, lax.log(numerics.log1prel(lax.exp(left))))
    return lax.select(negative, small, lax.log(numerics.softplus(right)))


def log1mexp_of_exp(x: Any) -> Any:
    """log(1 - exp(-e^x)), the log of the inverse complementary log-log: x plus a small number far left."""
    left, right, negative = _sides(x)
    small = lax.add(left, lax.log(numerics.exprel(lax.neg(lax.exp(left)))))
    return lax.select(negative, small, numerics.log1mexp(lax.neg(lax.exp(right))))


@jax.custom_jvp
def inverse_expm1(z: Any) -> Any:
    """1 / (e^z - 1), with the derivative 1 / ((e^z - 1) (e^-z - 1)), which is right at both ends."""
    return lax.div(_number(z, 1), lax.expm1(z))


@inverse_expm1.defjvp
def _inverse_expm1_rule(primals: Any, tangents: Any) -> Any:
    (z,), (dz,) = primals, tangents
    value = inverse_expm1(z)
    return value, lax.mul(dz, lax.mul(value, inverse_expm1(lax.neg(z))))


@jax.custom_jvp
def inverse_exprel(z: Any) -> Any:
    """z / (e^z - 1), 1 at 0 (the generating function of the Bernoulli numbers)."""
    return lax.div(_number(z, 1), numerics.exprel(z))


@inverse_exprel.defjvp
def _inverse_exprel_rule(primals: Any, tangents: Any) -> Any:
    """b'(z) = b(z) (1 - b(-z)) / z; near 0, where that cancels, -exprel'(z) / exprel(z)^2."""
    (z,), (dz,) = primals, tangents
    value = inverse_exprel(z)
    near = lax.lt(lax.abs(z), _number(z, 1))
    small = lax.select(near, z, _number(z, 1))
    relative, slope = jax.jvp(numerics.exprel, (small,), (_number(z, 1),))
    inside = lax.neg(lax.div(slope, lax.mul(relative, relative)))
    large = lax.select(near, _number(z, 1), z)
    outside = lax.mul(value, lax.div(lax.sub(_number(z, 1), inverse_exprel(lax.neg(large))), large))
    return value, lax.mul(dz, lax.select(near, inside, outside))


@jax.custom_jvp
def undefined_at_0(length: Any) -> Any:
    """A length, whose derivative is NaN where it is 0."""
    return length


@undefined_at_0.defjvp
def _undefined_at_0_rule(primals: Any, tangents: Any) -> Any:
    (length,), (dx,) = primals, tangents
    slope = lax.select(lax.eq(length, _number(length, 0)), _number(length, math.nan), _number(length, 1))
    return undefined_at_0(length), lax.mul(dx, slope)


@jax.custom_jvp
def sigmoid_slope(z: Any) -> Any:
    """s(z) s(-z), the derivative of the logistic function s."""
    return lax.mul(numerics.sigmoid(z), numerics.sigmoid(lax.neg(z)))


@sigmoid_slope.defjvp
def _sigmoid_slope_rule(primals: Any, tangents: Any) -> Any:
    (z,), (dz,) = primals, tangents
    value = sigmoid_slope(z)
    return value, lax.neg(lax.mul(dz, lax.mul(value, numerics.tanh(lax.mul(z, _number(z, 0.5))))))
