"""Every primitive that JAX has, and every one that a public function binds, has the standing that the table says."""

import collections

import jax
import jax.extend.core as jex
import jax.extend.core.primitives
import pytest

from engines.jax import primitives as table
from engines.jax.public_calls import CALLS, public_functions
from stablegrad.engines.jax import names
from stablegrad.engines.jax.capture import Capture

OTHER = {name: group for group, listed in table.OPAQUE_OTHER.items() for name in listed.split()}
STANDING = {
    **dict.fromkeys(table.ARITHMETIC, "arithmetic"),
    **dict.fromkeys(table.MOVING, "moving"),
    **dict.fromkeys(table.REGION, "region"),
    **dict.fromkeys(table.KEPT_WHOLE, "opaque"),
    **dict.fromkeys(table.OPAQUE_NUMERIC, "opaque"),
    **dict.fromkeys(OTHER, "opaque"),
}


def listed_by_jax() -> dict[str, jex.Primitive]:
    """The primitives that JAX names in public."""
    found = {}
    for module in (jax.extend.core.primitives, jax.lax, jax.lax.linalg):
        for name in dir(module):
            if name.endswith("_p") and not name.startswith("_"):
                value = getattr(module, name)
                found[str(value)] = value
    return found


def standing_of(node) -> str:
    """What an operation of the graph is to the compiler."""
    if node.op.name == "output":
        node = node.inputs[0]
    return node.op.kind


@pytest.fixture(scope="module")
def observed() -> dict[str, collections.Counter]:
    """primitive -> how often it was captured as what, over a call of every public function."""
    counted: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for call in CALLS.values():
        for program in call():
            _observe(program, counted, manual=False)
    return counted


def _observe(program, counted, manual):
    waiting = [Capture(program).top]
    while waiting:
        frame = waiting.pop()
        for index, equation in enumerate(frame.jaxpr.eqns):
            name = str(equation.primitive)
            child = frame.children.get(index)
            if child is not None:
                waiting.append(child)
                counted[name]["region"] += 1
                continue
            if not equation.outvars:
                counted[name]["opaque"] += 1
            elif manual:  # values of one device of several: the compiler leaves all of it
                counted[name]["manual"] += 1
            else:
                node = frame.nodes[equation.outvars[0]]
                known = node.origin != (frame, equation.outvars[0])  # an equal value, or a reshape to the same shape
                counted[name]["known" if known else standing_of(node)] += 1
            for body in jex.jaxprs_in_params(equation.params):
                closed = body if isinstance(body, jex.ClosedJaxpr) else jex.ClosedJaxpr(body, ())
                if not closed.jaxpr.constvars or closed.consts:
                    _observe(closed, counted, manual or name == "shard_map")


def test_every_public_function_is_called():
    assert not public_functions() - set(CALLS), "write a call for these, or say that they compute no array"


def test_every_primitive_that_jax_names_is_in_the_table():
    assert not set(listed_by_jax()) - set(STANDING)


def test_every_primitive_that_a_public_function_binds_is_in_the_table(observed):
    assert not set(observed) - set(STANDING)


def test_the_table_has_no_primitive_that_does_not_exist(observed):
    assert not set(STANDING) - set(observed) - set(listed_by_jax())


def test_no_primitive_stands_twice():
    listed = [*table.ARITHMETIC, *table.MOVING, *table.REGION, *table.KEPT_WHOLE, *table.OPAQUE_NUMERIC, *OTHER]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", sorted(name for name, standing in STANDING.items() if standing != "opaque"))
def test_what_the_table_says_is_understood_is(name, observed):
    kinds = observed[name]
    assert kinds[STANDING[name]] > 0 or kinds["manual"] == kinds.total()
    assert not kinds["opaque"] or name in table.SOMETIMES_OPAQUE


def test_what_the_table_says_is_opaque_is(observed):
    understood = {name: dict(observed[name]) for name, standing in STANDING.items() if standing == "opaque"
                  and set(observed[name]) - {"opaque", "manual", "known"}}  # fmt: skip
    assert understood == {}


@pytest.mark.parametrize("name", sorted(table.SOMETIMES_OPAQUE))
def test_a_form_that_is_not_understood_is_met(name, observed):
    assert observed[name]["opaque"] and observed[name][STANDING[name]]


def test_the_number_of_opaque_numeric_primitives_is_small():
    assert len(table.OPAQUE_NUMERIC) <= table.MOST_OPAQUE_NUMERIC


def test_no_table_of_the_engine_holds_a_primitive_twice():
    tables = [names.ELEMENTWISE, names.REDUCTIONS, names.ARG_REDUCTIONS, names.CUMULATIVE, names.HANDLED, names.MOVING]
    counted = collections.Counter(primitive for one in tables for primitive in one)
    assert max(counted.values()) == 1


def test_an_operation_has_one_name_in_the_graph():
    for one in (names.REDUCTIONS, names.ARG_REDUCTIONS, names.CUMULATIVE, names.HANDLED):
        assert all(str(primitive).replace("-", "_") == name for primitive, name in one.items())
    renamed = {str(primitive): name for primitive, name in names.ELEMENTWISE.items() if str(primitive) != name}
    assert renamed == {"add_any": "add", "select_n": "select"}
