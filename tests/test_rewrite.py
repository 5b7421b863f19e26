"""The walk over a graph: which nodes are asked about, which answers are taken, what is recorded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engines.jax.program import captured
from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.graph.node import Graph
from stablegrad.graph.verify import verify
from stablegrad.rewrite import rewrite
from stablegrad.rules import RULES, Rewritten

X = jnp.array([[0.5, 0.25, 0.75], [1.0, 2.0, 3.0]])


def found(capture, disabled=frozenset()):
    """The rewriting of a captured program, verified."""
    roots = [*capture.graph.outputs, *capture.effects]
    verify(capture.graph, roots=roots)
    rewriting = rewrite(capture.graph, roots, disabled)
    verify(capture.graph, rewriting.replaced, roots)
    return rewriting


def softplus(x):
    return jnp.log(1 + jnp.exp(x))


def test_a_hazard_is_replaced_and_recorded():
    capture = captured(softplus, X)
    rewriting = found(capture)
    (output,) = capture.graph.outputs
    ((name, node, replacement, reason),) = rewriting.records
    assert node is output
    assert rewriting.replaced == {output: replacement}
    assert replacement.op.name == "softplus"
    assert name == "log_of_companion"
    assert reason


def test_nothing_is_found_in_a_harmless_program():
    rewriting = found(captured(lambda x: jnp.sin(x) * 2 + x, X))
    assert not rewriting.replaced
    assert not rewriting.records


def test_what_no_output_needs_is_not_asked_about():
    assert not found(captured(lambda x: (softplus(x), x)[1], X)).records


def test_what_an_effect_needs_is():
    assert found(captured(lambda x: jax.debug.callback(lambda v: None, softplus(x)), X)).records


def test_a_value_under_a_rewritten_one_that_is_needed_no_more_is_not_asked_about():
    """exp(x) of log(1 + exp(x)) is gone; an output that needs it too keeps it."""
    asked = []

    def spy(companions, node):
        asked.append(node)
        return None

    RULES["exp"].append(("spy", spy))
    try:
        found(captured(softplus, X))
        assert not asked
        found(captured(lambda x: (softplus(x), jnp.exp(x)), X))
        assert len(asked) == 1
    finally:
        RULES["exp"].remove(("spy", spy))


def test_every_node_is_asked_once():
    asked = []

    def spy(companions, node):
        asked.append(node)
        return None

    RULES.setdefault("sin", []).append(("spy", spy))
    try:
        found(captured(lambda x: (jnp.sin(x) + jnp.sin(x), jnp.sin(jnp.sin(x))), X))
    finally:
        RULES["sin"].remove(("spy", spy))
    assert len(asked) == len(set(asked)) == 2


def test_rewrites_go_on_inside_a_replacement():
    rewriting = found(captured(lambda x: softplus(jnp.log(jax.nn.softmax(jnp.sin(x) * 1e3)) * jnp.cos(x)), X))
    assert len(rewriting.records) >= 2


def test_equal_values_are_rewritten_once():
    capture = captured(lambda x: (softplus(x), softplus(x) + jnp.sin(x)), X)
    assert len([r for r in found(capture).records if r[0] == "log_of_companion"]) == 1


@pytest.mark.parametrize("disabled", [{"log_of_companion"}, {"log_of_companion", "untaken_branch"}])
def test_rules_by_name(disabled):
    assert not found(captured(softplus, X), frozenset(disabled)).records


def test_the_second_walk_guards_branches():
    def f(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)

    rewriting = found(captured(f, X))
    assert [name for name, *_ in rewriting.records] == ["untaken_branch"]
    assert not found(captured(f, X), frozenset({"untaken_branch"})).records


# -- answers that are not taken --------------------------------------------------------------------------------------


@pytest.fixture
def rule_for_sin():
    """Register one rule for sin, for the length of a test."""
    before = list(RULES.get("sin", []))

    def register(answer):
        RULES["sin"] = [("made_up", answer)]

    yield register
    RULES["sin"] = before


def test_an_answer_of_another_shape_or_dtype_is_an_error(rule_for_sin):
    rule_for_sin(lambda c, node: Rewritten(c.build.number(1.0, node.dtype), "a reason"))
    with pytest.raises(AssertionError, match=r"rule made_up changed float32\(2, 3\) to float32\(\)"):
        rewrite((graph := captured(jnp.sin, X).graph), graph.outputs)


def test_the_node_itself_is_no_answer(rule_for_sin):
    rule_for_sin(lambda c, node: Rewritten(node, "a reason"))
    assert not found(captured(jnp.sin, X)).records


def test_an_answer_that_needs_the_node_itself_is_not_taken(rule_for_sin):
    rule_for_sin(lambda c, node: Rewritten(c.build.neg(node), "a reason"))
    assert not found(captured(jnp.sin, X)).records


def test_two_answers_that_need_each_other_are_not_both_taken(rule_for_sin):
    """sin(x) is to be written with sin(2 x), and sin(2 x) with sin(x)."""
    capture = captured(lambda x: (jnp.sin(x), jnp.sin(2 * x)), X)
    first, second = capture.graph.outputs

    rule_for_sin(lambda c, node: Rewritten(c.build.neg(second if node is first else first), "a reason"))
    assert len(found(capture).records) == 1


def test_an_answer_of_several_steps(rule_for_sin):
    rule_for_sin(lambda c, node: Rewritten(c.build.neg(c.build.elementwise("cos", node.inputs[0])), "a reason"))
    rewriting = found(captured(lambda x: jnp.sin(jnp.sin(x)), X))
    assert [name for name, *_ in rewriting.records] == ["made_up", "made_up"]


# -- size ------------------------------------------------------------------------------------------------------------


def test_a_graph_made_by_hand():
    """A node that no program has is never replaced: the walk goes through it."""
    graph = Graph()
    x = leaf(graph, 3)
    one = graph.literal(1.0, FLOAT)
    node = elementwise(graph, "log", elementwise(graph, "add", one, elementwise(graph, "exp", x)))
    assert not rewrite(graph, [node]).replaced
    node.origin = "a captured value"
    assert rewrite(graph, [node]).replaced[node].op.name == "softplus"


def test_no_roots():
    assert not rewrite(Graph(), []).replaced


@pytest.mark.parametrize("step", [lambda x: softplus(x * x), lambda x: jnp.sin(x), lambda x: x / (1 + jnp.exp(x * x))])
def test_programs_of_any_depth(step):
    def f(x):
        for _ in range(2_000):
            x = step(x)
        return x

    found(captured(f, np.float32(1)))
