"""The table of operations is consistent with itself."""

import pickle

import pytest

from stablegrad.graph.ops import OPS, get_op


def test_names_are_the_keys():
    assert all(name == op.name for name, op in OPS.items())


def test_commutative_operations_are_elementwise():
    assert all(op.elementwise for op in OPS.values() if op.commutative)


def test_only_arithmetic_is_elementwise_or_emitted():
    assert {op.kind for op in OPS.values() if op.elementwise or op.emitted} == {"arithmetic"}


def test_an_operation_survives_pickling_as_itself():
    assert pickle.loads(pickle.dumps(get_op("exp"))) is get_op("exp")


def test_an_unknown_name_is_an_error():
    with pytest.raises(KeyError, match="no_such_operation"):
        get_op("no_such_operation")
