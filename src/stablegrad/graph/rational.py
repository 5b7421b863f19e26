"""Exact coefficients: an int where the number is whole (most are, and ints are quick), else a Fraction."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

Rational = int | Fraction


def rational(number: Rational | float) -> Rational:
    """The number exactly; a float is taken as the dyadic rational that it is."""
    if isinstance(number, int):
        return number
    exact = Fraction(number)
    return exact.numerator if exact.denominator == 1 else exact


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
