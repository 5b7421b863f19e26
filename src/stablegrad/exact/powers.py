"""Powers and exact roots of scalars."""

from __future__ import annotations

import math

from flint import fmpq

from stablegrad.exact.scalars import (
    INF,
    LARGEST_RATIONAL_BITS,
    ONE,
    ZERO,
    Infinity,
    Scalar,
    Undefined,
    absolute,
    as_ball,
    ball,
    compare,
    is_finite,
    is_zero,
    rational,
    sign,
    worse,
)


def rational_root(a: fmpq, n: int) -> fmpq | None:
    """The n-th root of a >= 0 where it is rational."""
    p, q = int(a.p), int(a.q)
    roots = []
    for number in (p, q):
        root = math.isqrt(number) if n == 2 else _integer_root(number, n)
        if root**n != number:
            return None
        roots.append(root)
    return fmpq(*roots)


def _integer_root(number: int, n: int) -> int:
    if number < 2:
        return number
    low, high = 1, 1 << (number.bit_length() // n + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**n <= number:
            low = middle
        else:
            high = middle - 1
    return low


def power(a: Scalar, b: Scalar) -> Scalar:
    """a ** b; 0 ** 0 = 1; NaN for a negative base unless b is an integer."""
    if is_zero(b):
        return ONE if type(a) is not Undefined else a
    if type(a) is Undefined or type(b) is Undefined:
        return worse(a, b)
    if type(a) is fmpq and a == 1 and is_finite(b):
        return ONE
    integer = int(b.p) if type(b) is fmpq and b.q == 1 else None
    s = sign(a)
    if type(s) is Undefined:
        if integer is not None and integer > 0:
            return ball(a**integer)
        return s
    if type(b) is Infinity:
        return _power_infinite(a, b)
    positive = sign(b)
    if type(positive) is Undefined:
        return positive
    if s == 0:
        return ZERO if positive > 0 else INF
    if type(a) is Infinity:
        if s < 0 and integer is None:
            return Undefined("nan", "a negative number to a power that is no integer")
        odd = integer is not None and integer % 2 == 1
        if positive < 0:
            return ZERO
        return Infinity(-1 if s < 0 and odd else 1, a.origin)
    if integer is not None:
        if type(a) is fmpq and a.height_bits() * abs(integer) <= LARGEST_RATIONAL_BITS:
            return a**integer
        return ball(as_ball(a) ** integer)
    if s < 0:
        return Undefined("nan", "a negative number to a power that is no integer")
    if type(a) is fmpq and type(b) is fmpq and int(b.q) <= 64 and abs(int(b.p)) <= 64:
        root = rational_root(a, int(b.q))
        if root is not None:
            return rational(root ** int(b.p))
    return ball(as_ball(a) ** as_ball(b))


def _power_infinite(a: Scalar, b: Infinity) -> Scalar:
    order = compare(absolute(a), ONE)
    if type(order) is Undefined:
        return order
    if order == 0:
        return ONE if b.origin == "data" else Undefined("singular", "1 ** inf")
    return INF if (order > 0) == (b.sign > 0) else ZERO
