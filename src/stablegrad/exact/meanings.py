"""What each operation means over the real numbers: one line per operation.

`FUNCTIONS` holds the functions of one number: their value as a method of a ball, first and second derivative (written
in x and the value y), the points where the value is known exactly, limits at the two infinities, and the domain.
`PROGRAMS` holds what is made of other operations; it is written in terms of an algebra `k` (jets.py, germs.py), so
that one line serves values, derivatives and limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flint
from flint import acb, arb, fmpq

from stablegrad.exact import powers
from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import INF, LOG_ZERO, MINUS_INF, MINUS_ONE, ONE, ZERO, Infinity, Undefined


def _out(name: str, what: str) -> Undefined:
    return Undefined("nan", f"{name} {what}")


@dataclass(frozen=True, eq=False)
class Function:
    """A function of one real number.

    value: of a ball inside the domain. first, second: derivatives at x, in terms of x and y = f(x).
    at: exact values at exact points. exact: exact value at a rational, or None. low, high: limits at -inf and +inf.
    domain: (smallest, largest) argument, None where unbounded; the ends themselves are in `at` or regular.
    """

    name: str
    value: Callable[[arb], arb]
    first: Callable[[Any, Any], Any]
    second: Callable[[Any, Any], Any]
    low: s.Scalar
    high: s.Scalar
    at: dict[int, s.Scalar] = field(default_factory=dict)
    exact: Callable[[fmpq], fmpq | None] = lambda x: None
    domain: tuple[int | None, int | None] = (None, None)

    def __call__(self, x: s.Scalar) -> s.Scalar:
        """f(x); equal arguments give the same object, so that f(x) - f(y) is seen to be 0 where x = y."""
        if type(x) is Undefined:
            return x
        if flint.ctx.prec != _remembered_at[0] or len(_remembered) > MOST_REMEMBERED:
            _remembered.clear()
            _remembered_at[0] = flint.ctx.prec
        key = (self.name, int(x.p), int(x.q)) if type(x) is fmpq else (self.name, id(x))
        found = _remembered.get(key)
        if found is None:
            found = _remembered[key] = (self._evaluate(x), x)
        return found[0]

    def _evaluate(self, x: s.Scalar) -> s.Scalar:
        if type(x) is Infinity:
            y = self.high if x.sign > 0 else self.low
            y = y() if callable(y) else y
            return Infinity(y.sign, x.origin) if type(y) is Infinity and x.origin == "data" else y
        if type(x) is fmpq:
            if x.q == 1 and (known := self.at.get(int(x.p))) is not None:
                return known
            if (known := self.exact(x)) is not None:
                return known
        for end, outside in zip(self.domain, (-1, 1)):
            if end is not None:
                order = s.compare(x, fmpq(end))
                if type(order) is Undefined:
                    return order
                if order == outside:
                    return _out(self.name, "outside its domain")
        return s.ball(self.value(s.as_ball(x)))


FUNCTIONS: dict[str, Function] = {}
# Results at the precision of now; the argument is kept with them, so that its identity stays its own.
_remembered: dict[tuple, tuple[s.Scalar, s.Scalar]] = {}
_remembered_at = [0]
MOST_REMEMBERED = 50_000


def _f(name: str, value: Any, first: Any, second: Any, low: Any, high: Any, **more: Any) -> None:
    FUNCTIONS[name] = Function(name, value, first, second, low, high, **more)


def _ball(f: Callable[[arb], arb]) -> Callable[[Any], arb]:
    return lambda x: f(s.as_ball(x))


_exp, _cosh, _sinh, _cos, _sin = (_ball(f) for f in (arb.exp, arb.cosh, arb.sinh, arb.cos, arb.sin))
_sqrt, _digamma = _ball(arb.sqrt), _ball(arb.digamma)


def _polygamma(n: int, x: Any) -> arb:
    return acb(s.as_ball(x)).polygamma(n).real


def _log_abs_gamma(x: arb) -> arb:
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


def _power_of_two(x: fmpq) -> fmpq | None:
    return fmpq(2) ** int(x.p) if x.q == 1 and abs(int(x.p)) <= s.LARGEST_RATIONAL_BITS else None


def _exact_root(n: int) -> Callable[[fmpq], fmpq | None]:
    def root(x: fmpq) -> fmpq | None:
        found = powers.rational_root(abs(x), n)
        return None if found is None or (x < 0 and n == 2) else (-found if x < 0 else found)

    return root


def _cbrt(x: arb) -> arb:
    return x.root(3) if x > 0 else -((-x).root(3))


def _bessel_e(n: int) -> Callable[[arb], arb]:
    return lambda x: x.bessel_i(n) * (-abs(x)).exp()


def _bessel_slopes(n: int) -> tuple[Any, Any]:
    """Derivatives of I_n(x) exp(-|x|), x not 0, from I_0' = I_1, I_1' = I_0 - I_1 / x and the equation of Bessel."""

    def first(x: Any, y: Any) -> Any:
        x = s.as_ball(x)
        zero, one, decay = x.bessel_i(0), x.bessel_i(1), (-abs(x)).exp()
        slope = one if n == 0 else zero - one / x
        return slope * decay - x.sgn() * s.as_ball(y)

    def second(x: Any, y: Any) -> Any:
        x = s.as_ball(x)
        zero, one, decay = x.bessel_i(0), x.bessel_i(1), (-abs(x)).exp()
        here, slope = (zero, one) if n == 0 else (one, zero - one / x)
        curve = (1 + n * n / x**2) * here - slope / x
        return decay * (curve - 2 * x.sgn() * slope + here)

    return first, second


def _nan(name: str) -> Undefined:
    return _out(name, "of an infinity")


def _half_pi() -> arb:
    """A limit that depends on the working precision, hence a function."""
    return arb.pi() / 2


def _minus_half_pi() -> arb:
    return -_half_pi()


_logistic = _ball(lambda x: 1 / (1 + (-x).exp()))
_gauss = _ball(lambda x: 2 / arb.pi().sqrt() * (-x * x).exp())

_f("exp", arb.exp, lambda x, y: y, lambda x, y: y, ZERO, INF, at={0: ONE})
_f("exp2", lambda x: arb(2) ** x, lambda x, y: y * arb.const_log2(), lambda x, y: y * arb.const_log2() ** 2,
   ZERO, INF, exact=_power_of_two)  # fmt: skip
_f("expm1", arb.expm1, lambda x, y: 1 if x == 0 else _exp(x), lambda x, y: 1 if x == 0 else _exp(x),
   MINUS_ONE, INF, at={0: ZERO})  # fmt: skip
_f("log", arb.log, lambda x, y: 1 / x, lambda x, y: -1 / x**2, _nan("log"), INF,
   at={0: LOG_ZERO, 1: ZERO}, domain=(0, None))  # fmt: skip
_f("log1p", arb.log1p, lambda x, y: 1 / (1 + x), lambda x, y: -1 / (1 + x) ** 2, _nan("log1p"), INF,
   at={-1: LOG_ZERO, 0: ZERO}, domain=(-1, None))  # fmt: skip
_f("sqrt", arb.sqrt, lambda x, y: 1 / (2 * y), lambda x, y: -1 / (4 * x * y), _nan("sqrt"), INF,
   at={0: ZERO}, exact=_exact_root(2), domain=(0, None))  # fmt: skip
_f("rsqrt", lambda x: 1 / x.sqrt(), lambda x, y: -y / (2 * x), lambda x, y: 3 * y / (4 * x**2), _nan("rsqrt"), ZERO,
   at={0: INF, 1: ONE}, domain=(0, None))  # fmt: skip
_f("cbrt", _cbrt, lambda x, y: 1 / (3 * y**2), lambda x, y: -2 / (9 * x * y**2), MINUS_INF, INF,
   at={0: ZERO}, exact=_exact_root(3))  # fmt: skip
_f("logistic", _logistic, lambda x, y: y * s.as_ball(_logistic(-x)) if x != 0 else fmpq(1, 4),
   lambda x, y: y * _logistic(-x) * -(s.as_ball(x) / 2).tanh() if x != 0 else fmpq(0), ZERO, ONE,
   at={0: s.HALF})  # fmt: skip
_f("softplus", lambda x: FUNCTIONS["log"](fmpq(2)) if x == 0 else (-abs(x)).exp().log1p() + x.max(arb(0)),
   lambda x, y: _logistic(x), lambda x, y: _logistic(x) * _logistic(-x), ZERO, INF)  # fmt: skip
_f(
    "sin",
    arb.sin,
    lambda x, y: _cos(x) if x != 0 else 1,
    lambda x, y: -y,
    _nan("sin"),
    _nan("sin"),
    at={0: ZERO},
)
_f(
    "cos",
    arb.cos,
    lambda x, y: -_sin(x) if x != 0 else 0,
    lambda x, y: -y,
    _nan("cos"),
    _nan("cos"),
    at={0: ONE},
)
_f(
    "tan",
    arb.tan,
    lambda x, y: 1 + y**2,
    lambda x, y: 2 * y * (1 + y**2),
    _nan("tan"),
    _nan("tan"),
    at={0: ZERO},
)
_f("asin", arb.asin, lambda x, y: 1 / _sqrt(1 - x**2) if x**2 != 1 else 1 / fmpq(0),
   lambda x, y: x / _sqrt(1 - x**2) ** 3 if x**2 != 1 else 1 / fmpq(0), _nan("asin"), _nan("asin"),
   at={0: ZERO}, domain=(-1, 1))  # fmt: skip
_f("acos", arb.acos, lambda x, y: -1 / _sqrt(1 - x**2) if x**2 != 1 else 1 / fmpq(0),
   lambda x, y: -x / _sqrt(1 - x**2) ** 3 if x**2 != 1 else 1 / fmpq(0), _nan("acos"), _nan("acos"),
   at={1: ZERO}, domain=(-1, 1))  # fmt: skip
_f("atan", arb.atan, lambda x, y: 1 / (1 + x**2), lambda x, y: -2 * x / (1 + x**2) ** 2,
   _minus_half_pi, _half_pi, at={0: ZERO})  # fmt: skip
_f("sinh", arb.sinh, lambda x, y: _cosh(x) if x != 0 else 1, lambda x, y: y, MINUS_INF, INF, at={0: ZERO})
_f("cosh", arb.cosh, lambda x, y: _sinh(x) if x != 0 else 0, lambda x, y: y, INF, INF, at={0: ONE})
_f("tanh", arb.tanh, lambda x, y: 1 / _cosh(x) ** 2 if x != 0 else 1, lambda x, y: -2 * y / _cosh(x) ** 2,
   MINUS_ONE, ONE, at={0: ZERO})  # fmt: skip
_f("asinh", arb.asinh, lambda x, y: 1 / _sqrt(1 + x**2), lambda x, y: -x / _sqrt(1 + x**2) ** 3,
   MINUS_INF, INF, at={0: ZERO})  # fmt: skip
_f("acosh", arb.acosh, lambda x, y: 1 / _sqrt(x**2 - 1) if x != 1 else 1 / fmpq(0),
   lambda x, y: -x / _sqrt(x**2 - 1) ** 3 if x != 1 else 1 / fmpq(0), _nan("acosh"), INF,
   at={1: ZERO}, domain=(1, None))  # fmt: skip
_f("atanh", arb.atanh, lambda x, y: 1 / (1 - x**2), lambda x, y: 2 * x / (1 - x**2) ** 2, _nan("atanh"),
   _nan("atanh"), at={-1: MINUS_INF, 0: ZERO, 1: INF}, domain=(-1, 1))  # fmt: skip
_f("erf", arb.erf, lambda x, y: _gauss(x), lambda x, y: -2 * x * _gauss(x), MINUS_ONE, ONE, at={0: ZERO})
_f("erfc", arb.erfc, lambda x, y: -_gauss(x), lambda x, y: 2 * x * _gauss(x), fmpq(2), ZERO, at={0: ONE})
_f("erf_inv", arb.erfinv, lambda x, y: 1 / _gauss(y), lambda x, y: 2 * y / _gauss(y) ** 2, _nan("erf_inv"),
   _nan("erf_inv"), at={-1: MINUS_INF, 0: ZERO, 1: INF}, domain=(-1, 1))  # fmt: skip
_f("lgamma", _log_abs_gamma, lambda x, y: _digamma(x), lambda x, y: _polygamma(1, x), INF, INF,
   at={1: ZERO, 2: ZERO}, exact=lambda x: INF if x.q == 1 and x <= 0 else None)  # fmt: skip
_f("digamma", arb.digamma, lambda x, y: _polygamma(1, x), lambda x, y: _polygamma(2, x), _nan("digamma"), INF,
   exact=lambda x: _out("digamma", "at a pole") if x.q == 1 and x <= 0 else None)  # fmt: skip
_f("bessel_i0e", _bessel_e(0), *_bessel_slopes(0), ZERO, ZERO, at={0: ONE})
_f("bessel_i1e", _bessel_e(1), *_bessel_slopes(1), ZERO, ZERO, at={0: ZERO})


def _gamma_density(a: Any, x: Any) -> Any:
    a, x = s.as_ball(a), s.as_ball(x)
    return ((a - 1) * x.log() - x - a.lgamma()).exp()


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth function of several numbers.

    value: of balls. slopes: the derivative by each operand, None where there is no formula. curves: second ones by
    pairs of operands; a pair that is missing has no formula.
    """

    value: Callable[..., arb]
    slopes: tuple[Callable[..., Any] | None, ...]
    curves: dict[tuple[int, int], Callable[..., Any]]


def _beta_density(a: Any, b: Any, x: Any) -> arb:
    a, b, x = s.as_ball(a), s.as_ball(b), s.as_ball(x)
    beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return ((a - 1) * x.log() + (b - 1) * (-x).log1p() - beta).exp()


SMOOTH: dict[str, Smooth] = {
    "igamma": Smooth(
        lambda a, x: x.gamma_lower(a, regularized=1), (None, _gamma_density),
        {(1, 1): lambda a, x: _gamma_density(a, x) * ((a - 1) / x - 1)}),
    "igammac": Smooth(
        lambda a, x: x.gamma_upper(a, regularized=1), (None, lambda a, x: -_gamma_density(a, x)),
        {(1, 1): lambda a, x: -_gamma_density(a, x) * ((a - 1) / x - 1)}),
    "zeta": Smooth(
        lambda n, q: n.zeta(q), (None, lambda n, q: -n * (s.as_ball(n) + 1).zeta(s.as_ball(q))),
        {(1, 1): lambda n, q: n * (n + 1) * (s.as_ball(n) + 2).zeta(s.as_ball(q))}),
    "polygamma": Smooth(
        lambda n, x: _polygamma(int(n.unique_fmpz()), x), (None, lambda n, x: _polygamma(int(n.p) + 1, x)),
        {(1, 1): lambda n, x: _polygamma(int(n.p) + 2, x)}),
    "regularized_incomplete_beta": Smooth(
        lambda a, b, x: x.beta_lower(a, b, regularized=1), (None, None, _beta_density),
        {(2, 2): lambda a, b, x: _beta_density(a, b, x) * ((a - 1) / x - (b - 1) / (1 - x))}),
}  # fmt: skip


def _relu(k: Any, x: Any, *_: Any) -> Any:
    return k.maximum(x, ZERO)


def _clamp(k: Any, low: Any, x: Any, high: Any) -> Any:
    return k.minimum(k.maximum(x, low), high)


def _remainder(k: Any, a: Any, b: Any) -> Any:
    return k.sub(a, k.mul(b, k.rounded("trunc", k.div(k.point(a), k.point(b)))))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "neg": lambda k, a: k.neg(a),
    "add": lambda k, a, b: k.add(a, b),
    "sub": lambda k, a, b: k.sub(a, b),
    "mul": lambda k, a, b: k.mul(a, b),
    "div": lambda k, a, b: k.div(a, b),
    "rem": _remainder,
    "max": lambda k, a, b: k.maximum(a, b),
    "min": lambda k, a, b: k.minimum(a, b),
    "abs": lambda k, a: k.absolute(a),
    "square": lambda k, a: k.mul(a, a),
    "pow": lambda k, a, b: k.power(a, b),
    "clamp": _clamp,
    "relu": _relu,
    "atan2": lambda k, y, x: k.atan2(y, x),
    "logaddexp": lambda k, a, b: k.logaddexp(a, b),
    "logit": lambda k, a: k.sub(k.unary("log", a), k.unary("log1p", k.neg(a))),
    "xlogy": lambda k, a, b: k.mul(a, k.unary("log", b)),
    "xlog1py": lambda k, a, b: k.mul(a, k.unary("log1p", b)),
    "sign": lambda k, a: k.rounded("sign", k.point(a)),
    "floor": lambda k, a: k.rounded("floor", k.point(a)),
    "ceil": lambda k, a: k.rounded("ceil", k.point(a)),
    "stop_gradient": lambda k, a: k.freeze(a),
    "reduce_precision": lambda k, a: a,
    "real": lambda k, a: a,
    "conj": lambda k, a: a,
}
