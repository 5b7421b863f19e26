"""Integer arithmetic, against the engine: wrapping, division, shifts."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from stablegrad.exact import integers
from stablegrad.graph.ops import OPS

BINARY = (
    "add sub mul div rem max min and or xor shift_left shift_right_logical shift_right_arithmetic eq ne lt le gt ge"
).split()
UNARY = "neg abs sign square not population_count clz".split()
LAX = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}
numbers = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=4, max_size=4)


@pytest.mark.parametrize("name", BINARY)
@given(numbers, st.lists(st.one_of(st.integers(-3, 35), st.integers(-(2**31), 2**31 - 1)), min_size=4, max_size=4))
def test_of_two(name, a, b):
    a, b = np.array(a, np.int32), np.array(b, np.int32)
    b = np.where((a == -(2**31)) & (b == -1), 1, b).astype(np.int32)
    right = getattr(lax, LAX.get(name, name))(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_array_equal(integers.evaluate(name, [a, b], (), right.dtype), right)


@pytest.mark.parametrize("name", UNARY)
@given(numbers)
def test_of_one(name, a):
    a = np.array(a, np.int32)
    right = getattr(lax, LAX.get(name, name))(jnp.asarray(a))
    np.testing.assert_array_equal(integers.evaluate(name, [a], (), right.dtype), right)


def test_along_axes():
    a = np.arange(-3, 3, dtype=np.int32).reshape(2, 3)
    assert integers.evaluate("reduce_sum", [a], ((1,),), np.dtype(np.int32)).tolist() == [-6, 3]
    assert integers.evaluate("cumsum", [a], (1, True), np.dtype(np.int32)).tolist() == [[-6, -3, -1], [3, 3, 2]]
    assert integers.evaluate("argmax", [a], ((0,),), np.dtype(np.int32)).tolist() == [1, 1, 1]
    assert integers.evaluate("integer_pow", [a], (2,), np.dtype(np.int32)).tolist() == (a**2).tolist()


def test_a_name_that_is_not_known():
    assert integers.evaluate("nothing", [np.zeros(1, np.int32)], (), np.int32) is None


def test_the_names_are_operations():
    assert set(integers.ELEMENTWISE) | set(integers.REDUCTIONS) | set(integers.CUMULATIVE) <= set(OPS)
