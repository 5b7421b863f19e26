"""Germs: their arithmetic and limits, and their slopes against the derivatives of jets."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from stablegrad.engines.jax.capture import Capture
from stablegrad.exact import derivative, limits
from stablegrad.exact import scalars as s
from stablegrad.exact.evaluate import Evaluator
from stablegrad.exact.germ import Flat, Germ, limit, slope
from stablegrad.exact.germs import GermAlgebra
from stablegrad.exact.jet import Jet
from stablegrad.exact.jets import JetAlgebra
from stablegrad.exact.scalars import Infinity, Undefined
from stablegrad.exact.solve import Problem
from stablegrad.truth import JaxEngine

K = GermAlgebra(8, np.random.default_rng(0))
T = K.line(s.ZERO, s.ONE)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(192):
        yield


def near(found, right):
    return abs(float(found) - right) < 1e-12


def test_reading_terms():
    g = Germ({(0, 0): fmpq(2), (1, 0): fmpq(3), (2, 1): fmpq(5)})
    assert limit(g) == 2 and slope(g) == 3
    assert limit(Germ({(0, 1): fmpq(1)})).sign == -1  # log t
    assert limit(Germ({(-1, 1): fmpq(-1)})).sign == 1  # -log(t) / t
    assert slope(Germ({(Fraction(1, 2), 0): fmpq(-1)})).sign == -1
    assert slope(Germ({(1, 1): fmpq(1)})).sign == -1  # t log t
    assert slope(Germ({}, 1)).kind == "truncated"
    assert limit(Germ({(0, 0): fmpq(1)}, 0)).kind == "truncated"


def test_a_ball_around_zero_does_not_lead():
    assert limit(Germ({(-1, 0): arb(0, 1e-30)})).kind == "imprecise"


def test_powers_and_logarithms():
    assert K.power(K.mul(T, T), s.HALF).terms == {(1, 0): 1}
    assert K.unary("sqrt", K.mul(fmpq(4), T)).terms == {(Fraction(1, 2), 0): 2}
    log = K.unary("log", K.mul(T, T))
    assert log.terms == {(0, 1): 2}
    assert K.unary("exp", log).terms == {(2, 0): 1}
    assert limit(K.mul(T, log)) == 0 and slope(K.mul(T, log)).sign == -1
    assert K.unary("log", K.neg(T)).kind == "nan"
    assert K.unary("log", log).kind in ("nan", "unsupported")


def test_vanishing_exponentials():
    pole = K.div(s.MINUS_ONE, T)
    flat = K.unary("exp", pole)
    assert type(flat) is Flat and limit(flat) == 0
    assert type(K.mul(flat, pole)) is Flat
    assert limit(K.add(flat, s.ONE)) == 1
    assert limit(K.mul(K.unary("log", K.add(flat, s.ONE)), pole)) == 0
    assert type(K.unary("log1p", flat)) is Flat
    assert K.unary("log", flat) is s.LOG_ZERO
    assert type(K.unary("exp", K.neg(pole))) is Infinity
    assert K.div(flat, flat).kind == "singular"


def test_an_infinity_of_the_data():
    x = K.from_float(math.inf)
    assert limit(x).origin == "data"
    assert K.sub(x, x) is s.ZERO
    assert K.mul(s.ZERO, x).kind == "nan"
    assert limit(K.sub(x, K.from_float(math.inf))).sign != 0
    assert K.unary("tanh", x) == 1 or limit(K.unary("tanh", x)) == 1
    assert limit(K.unary("logistic", K.neg(x))) == 0


def test_choices_just_above_zero():
    assert K.maximum(T, s.ZERO) is T and K.absolute(K.neg(T)).terms == T.terms
    assert K.minimum(T, K.mul(fmpq(2), T)).terms == T.terms
    assert near(K.atan2(T, s.ZERO), math.pi / 2) and near(limit(K.atan2(T, T)), math.pi / 4)
    assert near(limit(K.atan2(T, K.neg(T))), 3 * math.pi / 4)


@given(st.fractions(-3, 3, max_denominator=64), st.fractions(-3, 3, max_denominator=64))
def test_a_quotient_undoes_a_product(a, b):
    with ctx.workprec(192):
        p = K.line(fmpq(a.numerator, a.denominator), s.ONE)
        q = K.line(fmpq(b.numerator, b.denominator), fmpq(2))
        back = K.div(K.mul(p, q), q)
        assert limit(K.sub(back, p)) == 0 and slope(K.sub(back, p)) == 0


NAMES = (
    "exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh atanh sqrt rsqrt cbrt logistic erf erfc "
    "lgamma neg square abs"
).split()
SMOOTH = {name: (getattr(lax, name), np.float32([0.3, 0.8])) for name in NAMES}
SMOOTH |= {
    "acosh": (lax.acosh, np.float32([1.3, 2.0])),
    "negative cube root": (lax.cbrt, np.float32([-0.3])),
    "negative asinh": (lax.asinh, np.float32([-0.3, -7.0])),
    "pow": (lambda x: x[0] ** x[1] + x[1] ** -3 + x[0] ** 2.5, np.float32([0.3, 0.8])),
    "atan2": (lambda x: jnp.arctan2(x[0], x[1]) + jnp.arctan2(x[1], -x[0]), np.float32([0.3, 0.8])),
    "logaddexp": (lambda x: jnp.logaddexp(x[0], x[1]) + jax.nn.softplus(-x[0]), np.float32([0.3, 0.8])),
    "softmax": (lambda x: jnp.log(jax.nn.softmax(x))[0], np.float32([0.3, 0.8, 0.8])),
    "product": (lambda x: jnp.prod(x) / x[0], np.float32([0.3, 0.8, -0.5])),
    "scan": (lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c), 1.0, x)[0], np.float32([0.3, 0.8, -0.5])),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_and_curvatures_are_those_of_jets(name):
    """Two ways to the same derivatives: the chain rule, and power series along each input."""
    function, x = SMOOTH[name]
    graph, engine = Capture(jax.make_jaxpr(lambda v: function(v))(x)).graph, JaxEngine()
    directions = tuple((0, place) for place in range(x.size))
    problem = Problem(graph, [x], engine, directions, frozenset(range(x.size)))
    algebra = JetAlgebra(2)
    seeds = problem.arguments(algebra, lambda k, place, value: algebra.seed(algebra.from_float(value), place))
    jets = [e for out in Evaluator(algebra, engine).run(graph, seeds) for e in out.ravel()]
    for place in range(x.size):
        curve = lambda k, p: [(1, s.ONE)] if p == place else []  # noqa: B023, E731
        germs = limits.run(problem, curve, GermAlgebra(6, np.random.default_rng(0)))
        for jet, germ in zip(jets, germs, strict=True):
            grad = jet.grad.get(place, s.ZERO) if type(jet) is Jet else s.ZERO
            bent = jet.hess.get((place, place), s.ZERO) if type(jet) is Jet else s.ZERO
            assert type(grad) is not Undefined and limits.same(grad, slope(germ)) is True
            if name != "softmax":  # its maximum is a tie
                assert limits.same(bent, derivative._second(germ)) is True
