"""Exact coefficients: an int where the number is whole (most are, and ints are quick), else a Fraction."""

from __future__ import annotations

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
    return rational(Fraction(a) / b)


def integer_power(a: Rational, n: int) -> Rational:
    return rational(Fraction(a) ** n)
