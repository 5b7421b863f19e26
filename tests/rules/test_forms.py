"""The formal shapes: sums with rational coefficients, and scaled terms. All of it exact."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.graph.node import Graph
from stablegrad.rules.forms import Linear, Term, collect, times_all

GRAPH = Graph()
NODES = [GRAPH.node("input", (), (k,), (), np.dtype("float32")) for k in range(3)]
RATIONALS = st.fractions(min_value=-3, max_value=3, max_denominator=4)
LINEARS = st.builds(
    lambda parts, constant, logs: Linear(
        {n: k for n, k in parts.items() if k}, constant, {n: k for n, k in logs.items() if k}
    ),
    st.dictionaries(st.sampled_from(NODES), RATIONALS),
    RATIONALS,
    st.dictionaries(st.sampled_from([2, 3, Fraction(1, 2)]), RATIONALS),
)
TERMS = st.builds(
    Term,
    RATIONALS,
    st.dictionaries(st.sampled_from(NODES), st.integers(-2, 2).filter(bool)),
    LINEARS,
)


@given(LINEARS, LINEARS, LINEARS)
def test_sums_are_a_vector_space(a, b, c):
    assert a.plus(b) == b.plus(a)
    assert a.plus(b).plus(c) == a.plus(b.plus(c))
    assert not a.plus(a, -1)
    assert a.scaled(2) == a.plus(a)
    assert a.plus(b, -1).plus(b) == a
    assert hash(a.plus(b)) == hash(b.plus(a))


@given(LINEARS)
def test_opposite_parts_vanish_exactly(a):
    third = Fraction(1, 3)
    assert not a.scaled(third).plus(a.scaled(third)).plus(a.scaled(third)).plus(a, -1)
    assert all(a.parts.values()) and all(a.logs.values())


@given(TERMS, TERMS, TERMS)
def test_products_of_terms(a, b, c):
    left, right = a.times(b).times(c), a.times(b.times(c))
    assert left.key == right.key and left.coefficient == right.coefficient
    assert a.times(b).key == b.times(a).key


@given(st.lists(TERMS, max_size=4), st.lists(TERMS, max_size=4))
def test_sums_of_terms(a, b):
    collected = collect([*a, *b])
    assert len({t.key for t in collected}) == len(collected)
    assert all(t.coefficient for t in collected)
    assert not collect([*a, *(t.scaled(-1) for t in a)])
    assert {(t.key, t.coefficient) for t in times_all(a, b)} == {(t.key, t.coefficient) for t in times_all(b, a)}


@given(LINEARS, LINEARS, RATIONALS)
def test_the_size_of_a_sum_that_is_not_made(a, b, times):
    assert a.size_with(b, times) == a.plus(b, times).size()


@given(LINEARS, st.lists(st.tuples(LINEARS, RATIONALS), max_size=4))
def test_a_sum_in_one_pass(start, pairs):
    right = start
    for one, times in pairs:
        right = right.plus(one, times)
    assert Linear.total([(start, 1), *pairs]) == right
    assert Linear.total(pairs, start.constant, start.logs).plus(Linear(start.parts)) == right


@given(LINEARS, st.sampled_from(NODES), RATIONALS)
def test_a_part_more(a, node, times):
    assert a.plus_part(node, times) == a.plus(Linear({node: 1}), times)


@given(TERMS, RATIONALS.filter(bool), RATIONALS.filter(bool))
def test_multiples_of_a_term(a, k, m):
    assert [a.scaled(n).coefficient for n in (k, m, k)] == [n * a.coefficient for n in (k, m, k)]
    assert a.scaled(k).key == a.key


def test_log_of_one_is_nothing():
    assert Linear().with_log(1) == Linear()
    assert Linear().with_log(2, 3).logs == {2: 3}
    assert Linear({NODES[0]: 1}).without(NODES[0]) == Linear()
