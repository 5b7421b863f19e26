"""Rules whose root is a contraction: a dot product, a matrix product with a vector, one row by row."""

from __future__ import annotations

from stablegrad.facts.reach import LOGARITHM
from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Node
from stablegrad.rules.companions import Companions
from stablegrad.rules.mul import holds_logarithm, times, with_weight
from stablegrad.rules.rule import Rewritten, rule


@rule("dot_general")
def contraction_with_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """sum(t * log(p)) written as a contraction, `t @ log(p)`: 0 where t is 0 and p is 0."""
    if not c.facts.reach(node) & LOGARITHM:
        return None
    (contract_a, contract_b), (batch_a, batch_b) = dict(node.params[0].parameters)["dimension_numbers"]
    a, b = node.inputs
    if a.dtype != node.dtype or b.dtype != node.dtype:
        return None
    places = dict(zip((*batch_b, *contract_b), (*batch_a, *contract_a)))  # axis of b -> axis of a
    if len(places) < len(b.shape):
        a, b, places = b, a, {i: k for k, i in places.items()}
        contract_a = contract_b
    if len(places) < len(b.shape) or sorted(batch_a if a is node.inputs[0] else batch_b) != list(range(len(batch_a))):
        return None  # both have axes of their own: the products of all pairs would be stored
    laid = arrange(c.graph, b, a.shape, tuple(places[k] for k in range(len(b.shape))))
    product = c.build.elementwise("mul", a, laid)
    for t, logarithm in (with_weight(c, laid, a)[::-1], with_weight(c, a, laid)[::-1]):
        found = times(c, t, logarithm, product) if holds_logarithm(c, logarithm) else None
        if found is not None:
            summed = c.build.along("reduce_sum", found.node, tuple(sorted(contract_a)))
            return Rewritten(summed, found.reason) if summed.shape == node.shape else None
    return None
