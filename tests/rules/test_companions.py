"""Two spellings of one meaning have one companion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import sigmoid, softmax

from stablegrad.engines.jax.capture import Capture
from stablegrad.facts import Facts
from stablegrad.rules import Companions
from stablegrad.rules.forms import collect
from stablegrad.rules.logarithm import log_of


def companions_of(*spellings, shapes=((3,), (3,))):
    """Companions of one graph, and the node of each spelling in it."""
    args = [jax.ShapeDtypeStruct(s, np.float32) for s in shapes]
    graph = Capture(jax.make_jaxpr(lambda *a: [f(*a) for f in spellings])(*args)).graph
    return Companions(graph, Facts()), graph.outputs


SUMS = {
    "x - y": [lambda x, y: x - y, lambda x, y: -(y - x), lambda x, y: x + -y, lambda x, y: (2 * x - 2 * y) / 2],
    "cancelling parts": [lambda x, y: x, lambda x, y: x + y - y, lambda x, y: x * 3 - x - x, lambda x, y: (x - y) + y],
    "numbers": [lambda x, y: x + 3, lambda x, y: 1 + x + 2, lambda x, y: (2 * x + 6) / 2],
    "a broadcast sum": [
        lambda x, y: (x - y)[:, None] * jnp.ones((1, 2)) * 1.0,
        lambda x, y: (x[:, None] - y[:, None]) * jnp.ones((1, 2)) * 1.0,
    ],
    "a reversed sum": [lambda x, y: (x - y)[::-1], lambda x, y: x[::-1] - y[::-1]],
}
TERMS = {
    "exp(x)": [lambda x, y: jnp.exp(x), lambda x, y: 1 / jnp.exp(-x), lambda x, y: jnp.exp(x / 2) ** 2],
    "exp(x - y)": [
        lambda x, y: jnp.exp(x - y),
        lambda x, y: jnp.exp(x) / jnp.exp(y),
        lambda x, y: jnp.exp(x) * jnp.exp(-y),
        lambda x, y: jnp.sqrt(jnp.exp(2 * x)) / jnp.exp(y),
        lambda x, y: jnp.exp(-y) * jnp.exp(x) * jnp.exp(y) / jnp.exp(y),
    ],
    "one": [lambda x, y: jnp.exp(x) * jnp.exp(-x) + 0 * x, lambda x, y: jnp.exp(x - x)],
    "sigmoid(x)": [
        lambda x, y: sigmoid(x),
        lambda x, y: 1 / (1 + jnp.exp(-x)),
        lambda x, y: (1 + jnp.exp(-x)) ** -1,
        lambda x, y: lax.logistic(x),
        lambda x, y: jnp.exp(-jnp.log(1 + jnp.exp(-x))),
    ],
    "1 - sigmoid(x)": [
        lambda x, y: 1 - sigmoid(x),
        lambda x, y: 1 - 1 / (1 + jnp.exp(-x)),
        lambda x, y: -(sigmoid(x) - 1),
    ],
    "a square": [
        lambda x, y: x**2 * jnp.exp(y),
        lambda x, y: x * jnp.exp(y) * x,
        lambda x, y: jnp.square(x) * jnp.exp(y),
    ],
}
ALONG_AXES = {
    "softmax": [
        lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True),
        lambda x: softmax(x),
        lambda x: jnp.exp(x) * (1 / jnp.sum(jnp.exp(x), -1)[:, None]),
        lambda x: jnp.exp(x - jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True))),
        lambda x: jnp.exp(x - 3) / jnp.sum(jnp.exp(x - 3), -1, keepdims=True),
    ],
    "a sum of exponentials": [
        lambda x: jnp.sum(jnp.exp(x), -1),
        lambda x: jnp.mean(jnp.exp(x), -1) * 4,
        lambda x: jnp.sum(2 * jnp.exp(x), -1) / 2,
    ],
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name):
    c, nodes = companions_of(*SUMS[name])
    assert len({c.linear(n) for n in nodes}) == 1


def described(c, node):
    return {(t.key, t.coefficient) for t in collect(c.scaled(node).terms)}


@pytest.mark.parametrize("name", TERMS)
def test_terms(name):
    c, nodes = companions_of(*TERMS[name])
    first, *others = [described(c, n) for n in nodes]
    assert all(first == other for other in others)


@pytest.mark.parametrize("name", ALONG_AXES)
def test_along_axes(name):
    c, nodes = companions_of(*ALONG_AXES[name], shapes=((2, 4),))
    first, *others = [log_of(c, n)[0] for n in nodes]
    assert all(first == other for other in others)


def test_nothing_better_is_the_node_itself():
    c, nodes = companions_of(lambda x, y: jnp.sin(x), lambda x, y: x, lambda x, y: x * y)
    assert [c.trivial(n) for n in nodes] == [True, True, False]
    assert c.linear(nodes[0]).parts == {nodes[0]: 1}
    (term,) = c.scaled(nodes[1]).terms
    assert term.factors == {nodes[1]: 1} and not term.exponent and term.coefficient == 1


def test_a_negative_number_is_remembered():
    """exp(log(x)) is x only where x is not negative."""
    c, (node,) = companions_of(lambda x, y: jnp.exp(jnp.log(x - y)))
    (term,) = c.scaled(node).terms
    (factor,) = term.factors
    assert c.scaled(node).guards or factor.op.name == "nonnegative"


def test_each_question_is_answered_once():
    c, (node,) = companions_of(lambda x, y: jnp.exp(x) / (1 + jnp.exp(x)))
    assert c.scaled(node) is c.scaled(node)
    assert c.linear(node) is c.linear(node)


def test_deep_programs_are_answered():
    """No recursion error: a question nested too deep is answered "the node itself"."""

    def f(x, y):
        for _ in range(2000):
            x = jnp.exp(-x) + 1.0
        return x

    c, (node,) = companions_of(f)
    assert c.scaled(node).terms
