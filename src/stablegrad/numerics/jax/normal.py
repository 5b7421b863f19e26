"""Logarithms of the complementary error function and of the normal distribution function."""

import math

import jax
from jax import lax

from stablegrad.numerics.jax.definition import at_least, combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p
from stablegrad.numerics.jax.quotients import polynomial

__all__ = ["log_erfc", "log_ndtr"]

# For x >= 1/2, sqrt(pi) x exp(x**2) erfc(x) = 1 - G / (x (x + 5/2)) with a smooth G between 0.5 and 0.87,
# here as a polynomial in t = 6 / (x + 5/2) - 1, from the highest power down: the Chebyshev series of G over
# -1 <= t <= 1, computed with 240 bits and cut where the rest is below 1.2e-8 and 3e-17.
_SERIES = {
    "float32": (
        4.65228535e-05,
        -9.72549532e-05,
        -0.000501374035,
        0.000724601651,
        0.00452377153,
        0.000404758815,
        -0.036391051,
        -0.114459622,
        -0.170393264,
        -0.0648669179,
        0.293484376,
        0.769063406,
    ),
    "float64": (
        -9.7212711731718343e-10,
        8.9038576902085477e-10,
        9.3454014253226083e-09,
        -1.3364445062868692e-08,
        -4.3062120876703397e-08,
        1.0618442569079182e-07,
        1.07705809094841e-07,
        -6.1748027251091918e-07,
        6.4908582451400873e-08,
        3.0805242683183272e-06,
        -2.8036677846377218e-06,
        -1.4911022708392277e-05,
        2.3509733721390829e-05,
        7.9964401470687541e-05,
        -0.00015319137824452525,
        -0.00053784906531013758,
        0.00078236939186977349,
        0.0045442094425836594,
        0.00037609057026682274,
        -0.036396775149708613,
        -0.11445307816825773,
        -0.17039256736015224,
        -0.064867468950194476,
        0.29348435142567753,
        0.76906341396929312,
    ),
}


@elementwise
def log_erfc(x: jax.Array) -> jax.Array:
    """log(erfc(x)), accurate in both tails: log 2 at -inf, about -x**2 far to the right, -inf at inf.

    The derivative is minus the slope 2 exp(-x**2) / (sqrt(pi) erfc(x)).

    >>> import jax
    >>> print(f"{log_erfc(100.0):.2f} {jax.grad(log_erfc)(100.0):.4f} {log_erfc(1e-10):.4e}")
    -10005.18 -200.0100 -1.1284e-10
    """
    far = -(x * x) + (log1p(-_defect(x)) - lax.log(x * math.sqrt(math.pi)))
    return select(x < 0.5, log1p(-lax.erf(x)), far)


@derivative_of(log_erfc)
def _log_erfc_rule(primals, tangents):
    (x,) = primals
    return log_erfc(x), combined(x, (tangents[0], lambda dx: -_hazard(x) * dx))


@elementwise
def log_ndtr(x: jax.Array) -> jax.Array:
    """The logarithm of the distribution function of the standard normal law, accurate in both tails.

    -inf at -inf, 0 at inf. The derivative is the inverse Mills ratio exp(-x**2 / 2) / (sqrt(2 pi) ndtr(x)).

    >>> import jax
    >>> print(f"{log_ndtr(-100.0):.2f} {log_ndtr(10.0):.4e} {jax.grad(log_ndtr)(-100.0):.4f}")
    -5005.52 -7.6199e-24 100.0100
    """
    scaled = x * -math.sqrt(0.5)
    return select(x > 0, log1p(-0.5 * lax.erfc(-scaled)), log_erfc(scaled) - math.log(2.0))


@derivative_of(log_ndtr)
def _log_ndtr_rule(primals, tangents):
    (x,) = primals
    root = math.sqrt(0.5)
    return log_ndtr(x), combined(x, (tangents[0], lambda dx: root * _hazard(x * -root) * dx))


def _defect(x: jax.Array) -> jax.Array:
    """1 - sqrt(pi) x exp(x**2) erfc(x), for x >= 1/2."""
    return _smooth(x) / (x * (x + 2.5))


def _smooth(x: jax.Array) -> jax.Array:
    return polynomial(6 / (x + 2.5) - 1, _SERIES[x.dtype.name])


@elementwise
def _hazard(x: jax.Array) -> jax.Array:
    """2 exp(-x**2) / (sqrt(pi) erfc(x)), about 2 x far to the right."""
    near = lax.exp(-(x * x)) / lax.erfc(x) * (2 / math.sqrt(math.pi))
    return select(x < 0.5, near, 2 * x / (1 - _defect(x)))


@derivative_of(_hazard)
def _hazard_rule(primals, tangents):
    (x,) = primals
    return _hazard(x), combined(x, (tangents[0], lambda dx: _hazard_slope(x) * dx))


@elementwise
def _hazard_slope(x: jax.Array) -> jax.Array:
    """h (h - 2 x) of the hazard h: 2 in the limit, where the difference cancels."""
    # Far to the left the hazard is flushed to zero before its product with 2 x is.
    root = lax.exp(-0.5 * (x * x))
    excess = _hazard(x) - 2 * at_least(x, -1e18)
    near = root * (excess * (2 / math.sqrt(math.pi)) / lax.erfc(x)) * root
    rest = 1 - _defect(x)
    return select(x < 0.5, near, 4 * _smooth(x) / (rest * rest * (1 + 2.5 / x)))


@derivative_of(_hazard_slope)
def _hazard_slope_rule(primals, tangents):
    (x,) = primals
    hazard, slope = _hazard(x), _hazard_slope(x)
    excess = slope / hazard
    return slope, combined(x, (tangents[0], lambda dx: hazard * (excess * excess + slope - 2) * dx))
