"""The exact value, gradient and condition numbers of a JAX function, correctly rounded: what tests compare with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np

from stablegrad.engines.jax import _compat, names
from stablegrad.engines.jax.capture import Capture
from stablegrad.exact import Answer, solve
from stablegrad.exact.engine import Branches, Call, LinearSystem, Loop, Region, While
from stablegrad.exact.rounded import to_float
from stablegrad.exact.scalars import Undefined
from stablegrad.exact.structure import holds_elements
from stablegrad.graph.node import Graph, Handle, is_float

_NAMES = {
    p: n
    for n in ("gather", "dynamic_slice", "split", "sort", "top_k", "cholesky", "lu", "triangular_solve")
    if (p := names.SPLIT if n == "split" else _compat.primitive(n)) is not None
}

_LINEAR_SOLVE = _compat.primitive("linear_solve")


class JaxEngine:
    """JAX, as far as the exact evaluator needs it (`stablegrad.exact.engine.Engine`)."""

    def __init__(self) -> None:
        self._graphs: dict[int, tuple[Any, Graph]] = {}
        self._regions: dict[int, tuple[Handle, Region | None]] = {}

    def bind(self, handle: Handle, arrays: list[Any]) -> list[Any]:
        parameters = dict(handle.parameters)
        with jax.ensure_compile_time_eval():
            results = handle.primitive.bind(*map(jax.numpy.asarray, arrays), **parameters)
        results = results if handle.primitive.multiple_results else [results]
        return [np.asarray(r) if not jax.dtypes.issubdtype(r.dtype, jax.dtypes.extended) else r for r in results]

    def name(self, handle: Handle) -> str:
        return _NAMES.get(handle.primitive, "")

    def region(self, handle: Handle) -> Region | None:
        found = self._regions.get(id(handle))
        if found is None:
            found = self._regions[id(handle)] = (handle, self._open(handle))
        return found[1]

    def _open(self, handle: Handle) -> Region | None:
        parameters, primitive = dict(handle.parameters), handle.primitive
        if primitive is names.SCAN:
            return Loop(
                self._graph(parameters["jaxpr"]),
                parameters["num_consts"],
                parameters["num_carry"],
                parameters["length"],
                parameters["reverse"],
            )
        if primitive is names.WHILE:
            return While(
                self._graph(parameters["cond_jaxpr"]),
                parameters["cond_nconsts"],
                self._graph(parameters["body_jaxpr"]),
                parameters["body_nconsts"],
            )
        if primitive is names.COND:
            return Branches(tuple(self._graph(b) for b in parameters["branches"]))
        if primitive in (names.CUSTOM_JVP, names.CUSTOM_VJP):
            return Call(self._graph(parameters["call_jaxpr"]), not _rule_of_jax(handle))
        if primitive is _LINEAR_SOLVE:
            lengths = parameters["const_lengths"]
            others = lengths.vecmat + lengths.solve + lengths.transpose_solve
            return LinearSystem(self._graph(parameters["jaxprs"].matvec), lengths.matvec, others)
        if primitive is names.JIT:
            return Call(self._graph(parameters["jaxpr"]), False)
        return None

    def _graph(self, jaxpr: Any) -> Graph:
        closed = jaxpr if isinstance(jaxpr, jex.ClosedJaxpr) else jex.ClosedJaxpr(jaxpr, ())
        found = self._graphs.get(id(jaxpr))
        if found is None:
            found = self._graphs[id(jaxpr)] = (jaxpr, Capture(closed).graph)
        return found[1]

    def destinations(
        self, handle: Handle, operand: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]
    ) -> np.ndarray:
        parameters = dict(handle.parameters)
        start = jax.numpy.zeros(operand, np.float32)

        def put(values: Any) -> Any:
            return jax.lax.scatter_add(start, indices, values, parameters["dimension_numbers"], mode=parameters["mode"])

        # The transpose of a scatter tells, for each update, the number of the place that it went to.
        _, back = jax.vjp(put, jax.numpy.zeros(updates, np.float32))
        size = int(np.prod(operand, dtype=int))
        numbers = np.arange(1, size + 1, dtype=np.float32).reshape(operand)
        return np.asarray(back(numbers)[0]).astype(np.int64) - 1


def _rule_of_jax(handle: Handle) -> bool:
    """True for a custom_jvp function of JAX's own: its rule is the mathematical derivative."""
    parameters = dict(handle.parameters)
    rule = getattr(parameters.get("jvp_jaxpr_fun"), "debug_info", None)
    where = rule.func_src_info or "" if rule is not None else ""
    return " at " + _compat.JAX_ROOT in where and _compat.written_in_jax(parameters["call_jaxpr"].jaxpr)


@dataclass(frozen=True)
class Truth:
    """The exact answer for f(*args).

    Attributes:
        value: like f's result; NumPy arrays, correctly rounded to each output's dtype.
        gradient: for each argument a pytree like it: the derivative of the sum of all float outputs by each float
            leaf, rounded to the leaf's dtype; None for leaves that are no floats, and for arguments not in `wrt`.
        condition: like value, float64: sum_j |x_j df/dx_j| / |f|; None for outputs that are no floats.
        sensitivity: like condition, not divided by |f|: what a relative error of 1 in every input amounts to.
        gradient_condition: like gradient: sum_j |x_j d2f/dx_i dx_j| / |df/dx_i|; NaN where it is not known.
        gradient_sensitivity: like gradient_condition, not divided by |df/dx_i|.
        value_decided, gradient_decided: like value and gradient: True where the number is certain.
        undecided: True if anything asked for is not certain.
        reasons: why, each reason once.
    """

    value: Any
    gradient: tuple[Any, ...]
    condition: Any
    sensitivity: Any
    gradient_condition: tuple[Any, ...]
    gradient_sensitivity: tuple[Any, ...]
    value_decided: Any
    gradient_decided: tuple[Any, ...]
    undecided: bool
    reasons: tuple[str, ...]


def truth(
    f: Callable[..., Any],
    *args: Any,
    wrt: tuple[int, ...] | None = None,
    gradient: bool = True,
    conditions: bool = True,
    sample: int | None = None,
    seed: int = 0,
    max_precision: int = 8192,
    **kwargs: Any,
) -> Truth:
    """The exact value, gradient and condition numbers of f(*args, **kwargs) over the real numbers.

    Inputs and literals are the exact values of the floats as held; the program is read as `docs/architecture.md`
    says: casts are the identity, removable singularities have their limit, 0 * log(0) is 0.

    Args:
        f: a function that JAX can trace.
        args: its arguments, any pytrees of arrays.
        wrt: positions of the arguments to differentiate by; all by default.
        gradient: False for values only.
        conditions: False leaves all condition numbers NaN, and is faster.
        sample: take only that many directions of the gradient, at random; the others are not decided. Condition
            numbers of values are then estimated from these.
        seed: of that choice.
        max_precision: bits at which a number that is still not certain is left undecided.

    Returns:
        A `Truth`.

    Raises:
        Whatever JAX raises when it traces f.

    >>> import jax.numpy as jnp
    >>> found = truth(lambda x: jnp.log(jnp.sum(jnp.exp(x))), jnp.array([-800.0, -805.0]))
    >>> print(found.value, found.gradient[0])
    -799.9933 [0.9933072  0.00669285]
    """
    engine = JaxEngine()
    closed, shapes = jax.make_jaxpr(lambda *a: f(*a, **kwargs), return_shape=True)(*args)
    leaves, tree = jax.tree_util.tree_flatten(args)
    avals = [v.aval for v in closed.jaxpr.invars]
    inputs = [np.asarray(leaf).astype(a.dtype) if _is_float(a.dtype) else leaf for leaf, a in zip(leaves, avals)]
    owner = [k for k, arg in enumerate(args) for _ in jax.tree_util.tree_leaves(arg)]
    differentiated = [gradient and _is_float(a.dtype) and (wrt is None or owner[k] in wrt) for k, a in enumerate(avals)]
    answer = solve(
        Capture(closed).graph,
        inputs,
        engine,
        differentiated=differentiated,
        conditions=conditions,
        sample=sample,
        seed=seed,
        max_precision=max_precision,
    )
    return _assemble(answer, jax.tree_util.tree_structure(shapes), tree, inputs)


def _is_float(dtype: Any) -> bool:
    return not jax.dtypes.issubdtype(dtype, jax.dtypes.extended) and is_float(dtype)


def _rounded(elements: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    pairs = [to_float(x, dtype) for x in elements.ravel()]
    numbers = np.array([n for n, _ in pairs], np.float64).astype(dtype).reshape(elements.shape)
    return numbers, np.array([d for _, d in pairs], bool).reshape(elements.shape)


def _assemble(answer: Answer, out_tree: Any, in_tree: Any, inputs: list[Any]) -> Truth:
    values, value_decided, reasons = [], [], []
    for out in answer.outputs:
        if out.dtype is not None:
            number, decided = _rounded(out.value, out.dtype)
            reasons += [x.reason for x in out.value.ravel() if type(x) is Undefined and x.kind != "nan"]
        else:
            number = out.value
            decided = np.ones(np.shape(number), bool)
            if holds_elements(number):
                reasons += [x.reason for x in number.ravel() if type(x) is Undefined]
                decided = np.array([type(x) is not Undefined for x in number.ravel()]).reshape(number.shape)
        values.append(number)
        value_decided.append(decided)
    gradients: list[Any] = []
    gradient_decided: list[Any] = []
    for x, found in zip(inputs, answer.gradients):
        pair = (None, None) if found is None else _rounded(found, x.dtype)
        gradients.append(pair[0])
        gradient_decided.append(pair[1])
        elements = [] if found is None else found.ravel().tolist()
        reasons += [g.reason for g in elements if type(g) is Undefined and g.kind != "nan"]

    def per_argument(column: list[Any]) -> tuple[Any, ...]:
        return jax.tree_util.tree_unflatten(in_tree, column)

    def per_output(column: list[Any]) -> Any:
        return jax.tree_util.tree_unflatten(out_tree, column)

    certain = all(np.all(d) for d in value_decided) and all(np.all(d) for d in gradient_decided if d is not None)
    return Truth(
        per_output(values),
        per_argument(gradients),
        per_output([o.condition for o in answer.outputs]),
        per_output([o.sensitivity for o in answer.outputs]),
        per_argument(answer.gradient_conditions),
        per_argument(answer.gradient_sensitivities),
        per_output(value_decided),
        per_argument(gradient_decided),
        not certain,
        tuple(dict.fromkeys(reasons)),
    )
