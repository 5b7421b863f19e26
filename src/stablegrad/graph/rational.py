"""Exact coefficients: an int where the number is whole (most are, and ints are quick), else a Fraction."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

Rational = int | Fraction


class Exact(Fraction):
    """A number that is not whole. Sums and products of such and of ints are such or ints: never a whole fraction.

    `Fraction` asks what kind of number the other one is in a way that takes longer than the arithmetic.
    """

    __slots__ = ("_hash",)
    _numerator: int
    _denominator: int
    _hash: int

    def __add__(self, other: Any) -> Any:
        n, d = self._numerator, self._denominator
        if type(other) is int:
            return _coprime(n + other * d, d)
        if not isinstance(other, Fraction):
            return Fraction.__add__(self, other)
        m, e = other.numerator, other.denominator
        if not d & (d - 1) and not e & (e - 1):
            longer = d.bit_length() - e.bit_length()
            return _reduced(n + (m << longer), d) if longer >= 0 else _reduced((n << -longer) + m, e)
        return _reduced(n * e + m * d, d * e)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return _coprime(-self._numerator, self._denominator)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return _reduced(self._numerator * other, self._denominator)
        if not isinstance(other, Fraction):
            return Fraction.__mul__(self, other)
        return _reduced(self._numerator * other.numerator, self._denominator * other.denominator)

    __rmul__ = __mul__

    def __eq__(self, other: Any) -> bool:
        if type(other) is int:
            return False
        if not isinstance(other, Fraction):
            return Fraction.__eq__(self, other)
        return self._numerator == other.numerator and self._denominator == other.denominator

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash = Fraction.__hash__(self)
            return self._hash

    def __bool__(self) -> bool:
        return True

    def __lt__(self, other: Any) -> bool:
        return self._numerator < other * self._denominator if type(other) is int else Fraction.__lt__(self, other)

    def __gt__(self, other: Any) -> bool:
        return self._numerator > other * self._denominator if type(other) is int else Fraction.__gt__(self, other)


def _coprime(numerator: int, denominator: int) -> Rational:
    if denominator == 1:
        return numerator
    made = object.__new__(Exact)
    made._numerator, made._denominator = numerator, denominator
    return made


def _reduced(numerator: int, denominator: int) -> Rational:
    if numerator and not denominator & (denominator - 1):  # a power of two: the number comes from floats
        twos = min((numerator & -numerator).bit_length(), denominator.bit_length()) - 1
        return _coprime(numerator >> twos, denominator >> twos)
    shared = math.gcd(numerator, denominator)
    return _coprime(numerator // shared, denominator // shared)


def rational(number: Rational | float) -> Rational:
    """The number exactly; a float is taken as the dyadic rational that it is."""
    if isinstance(number, int):
        return number
    if type(number) is Exact:
        return number
    return _coprime(*number.as_integer_ratio())


def magnitude(number: Rational) -> Rational:
    return -number if number < 0 else number


def quotient(a: Rational, b: Rational) -> Rational:
    return a if b == 1 and isinstance(a, int) else rational(Fraction(a) / b)


def natural_logarithm(number: Rational) -> Rational:
    """log(number) to 50 digits, for a positive number."""
    exact = Fraction(number)
    with localcontext() as context:
        context.prec = 50
        return rational(Fraction((Decimal(exact.numerator) / Decimal(exact.denominator)).ln()))


def integer_power(a: Rational, n: int) -> Rational:
    if isinstance(a, int) and (n >= 0 or a == 1):
        return a ** abs(n)
    return rational(Fraction(a) ** n)
