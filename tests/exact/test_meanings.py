"""Every function of one number: value, first and second derivative against mpmath."""

import jax
import mpmath
import numpy as np
import pytest
from jax import lax

from stablegrad.exact.meanings import FUNCTIONS, PROGRAMS, SMOOTH
from stablegrad.exact.scalars import Infinity, Undefined
from stablegrad.graph.ops import OPS
from stablegrad.truth import truth

INSIDE = (-0.75, -0.3, 0.2, 0.9)
POSITIVE = (0.2, 0.9, 3.5, 40.0)
ALL = (*INSIDE, 3.5, -12.25)

# name: (mpmath's function, points)
REFERENCE = {
    "exp": (mpmath.exp, ALL),
    "exp2": (lambda x: mpmath.mpf(2) ** x, ALL),
    "log": (mpmath.log, POSITIVE),
    "log1p": (mpmath.log1p, (*INSIDE, 1e-20, 40.0)),
    "expm1": (mpmath.expm1, (*ALL, 1e-20)),
    "sin": (mpmath.sin, ALL),
    "cos": (mpmath.cos, ALL),
    "tan": (mpmath.tan, ALL),
    "asin": (mpmath.asin, INSIDE),
    "acos": (mpmath.acos, INSIDE),
    "atan": (mpmath.atan, ALL),
    "sinh": (mpmath.sinh, ALL),
    "cosh": (mpmath.cosh, ALL),
    "tanh": (mpmath.tanh, (*ALL, 20.0)),
    "asinh": (mpmath.asinh, (*ALL, -1e6)),
    "acosh": (mpmath.acosh, (1.0001, 3.5)),
    "atanh": (mpmath.atanh, INSIDE),
    "sqrt": (mpmath.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), POSITIVE),
    "cbrt": (mpmath.cbrt, POSITIVE),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), (*ALL, 60.0, -60.0)),
    "erf": (mpmath.erf, ALL),
    "erfc": (mpmath.erfc, ALL),
    "erf_inv": (mpmath.erfinv, INSIDE),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), (*ALL, 0.01)),
    "digamma": (mpmath.digamma, (*ALL, 0.01)),
    "bessel_i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), ALL),
    "bessel_i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), ALL),
    "logit": (lambda x: mpmath.log(x / (1 - x)), (0.2, 0.5, 0.9, 1e-20)),
    "neg": (lambda x: -x, ALL),
    "square": (lambda x: x * x, ALL),
    "abs": (abs, ALL),
}


def close(found, right, tolerance=1e-6):
    return abs(float(found) - float(right)) <= tolerance * max(abs(float(right)), 1e-30)


@pytest.mark.parametrize("name", REFERENCE)
def test_value_and_derivatives(name):
    function, points = REFERENCE[name]
    for x in points:
        x = np.float32(x)
        with mpmath.workdps(60):
            exact = mpmath.mpf(float(x))
            right = [mpmath.diff(function, exact, n) if n else function(exact) for n in range(3)]
        found = truth(getattr(lax, name, None) or getattr(jax.scipy.special, name), x)
        assert not found.undecided
        assert found.value == np.float32(float(right[0]))
        assert close(found.gradient[0], right[1])
        assert close(found.sensitivity, abs(exact * right[1]))
        if right[2]:
            assert close(found.gradient_sensitivity[0], abs(exact * right[2]))


def test_every_function_is_compared():
    made_inside = {"softplus"}
    assert set(FUNCTIONS) - made_inside <= set(REFERENCE)
    assert set(FUNCTIONS) | set(PROGRAMS) | set(SMOOTH) <= set(OPS)


OF_TWO = {
    "atan2": (lax.atan2, mpmath.atan2, ((0.3, 0.8), (-0.3, -0.8), (1e-25, -5e-26))),
    "pow": (lax.pow, mpmath.power, ((0.3, 0.8), (3.0, -2.5), (2.0, 3.0))),
    "logaddexp": (
        jax.numpy.logaddexp,
        lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
        ((0.3, 0.8), (800.0, -3.0), (-1e4, -1e4 - 1)),
    ),
    "div": (lax.div, lambda a, b: a / b, ((0.3, 0.8), (-3e-40, 7e30))),
    "mul": (lax.mul, lambda a, b: a * b, ((0.3, 0.8), (-3e-40, 7e30))),
    "rem": (lax.rem, mpmath.fmod, ((7.3, 2.0), (7.3, 0.4))),
    "xlogy": (jax.scipy.special.xlogy, lambda a, b: a * mpmath.log(b), ((0.3, 0.8), (2.0, 1e-30))),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two(name):
    function, reference, points = OF_TWO[name]
    for a, b in np.float32(points):
        with mpmath.workdps(80):
            x, y = mpmath.mpf(float(a)), mpmath.mpf(float(b))
            right = reference(x, y)
            slopes = [mpmath.diff(reference, (x, y), n) for n in ((1, 0), (0, 1))]
            bent = {n: mpmath.diff(reference, (x, y), n) for n in ((2, 0), (1, 1), (0, 2))}
        found = truth(function, a, b)
        assert not found.undecided
        assert close(found.value, right)
        for g, s in zip(found.gradient, slopes, strict=True):
            assert close(g, float(np.float32(float(s))))
        curves = [abs(x * bent[2, 0]) + abs(y * bent[1, 1]), abs(y * bent[0, 2]) + abs(x * bent[1, 1])]
        for g, c in zip(found.gradient_sensitivity, curves, strict=True):
            assert close(g, c, 1e-5)


SPECIAL = {
    "igamma": (lax.igamma, lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), 1.5),
    "igammac": (lax.igammac, lambda a, x: mpmath.gammainc(a, x, regularized=True), 1.5),
    "zeta": (lax.zeta, mpmath.zeta, 2.5),
    "polygamma": (lax.polygamma, mpmath.polygamma, 2.0),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_by_their_last_argument(name):
    function, reference, first = SPECIAL[name]
    x = np.float32(0.7)
    order = int(first) if name == "polygamma" else first
    with mpmath.workdps(40):
        right = [mpmath.diff(lambda v: reference(order, v), mpmath.mpf(float(x)), n) for n in range(3)]
    found = truth(lambda v: function(np.float32(first), v), x)
    assert not found.undecided
    assert close(found.value, right[0]) and close(found.gradient[0], right[1])
    assert close(found.gradient_sensitivity[0], abs(0.7 * right[2]), 1e-5)


def test_incomplete_beta():
    a, b, x = np.float32(2.5), np.float32(1.5), np.float32(0.3)
    found = truth(lambda v: lax.betainc(a, b, v), x)
    with mpmath.workdps(40):
        right = mpmath.betainc(2.5, 1.5, 0, mpmath.mpf(float(x)), regularized=True)
    assert close(found.value, right) and not found.undecided


def test_no_formula_for_a_derivative_is_said():
    found = truth(lax.igamma, np.float32(1.5), np.float32(0.7))
    assert found.gradient_decided == (False, True)
    assert "igamma" in found.reasons[0]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_ends_of_the_line(name):
    """At an infinity each function has a limit that its neighbours approach, or says that it has none."""
    f = FUNCTIONS[name]
    for sign in (-1, 1):
        end = f(Infinity(sign, "data"))
        assert not (type(end) is Undefined and end.kind != "nan")


def test_every_elementwise_operation_has_a_meaning():
    """But those on integers (integers.py), those that evaluate.py answers itself, and five that have none."""
    integers = "not population_count clz and or xor shift_left shift_right_arithmetic shift_right_logical".split()
    itself = "round is_finite integer_pow eq ne lt le gt ge select cast".split()
    without = "imag complex nextafter igamma_grad_a random_gamma_grad".split()
    captured = {name for name, op in OPS.items() if op.elementwise and not op.emitted}
    assert captured - {*FUNCTIONS, *PROGRAMS, *SMOOTH} == {*integers, *itself, *without}
