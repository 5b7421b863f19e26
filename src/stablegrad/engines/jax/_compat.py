"""What the engine needs of JAX that is private or changes between versions, all of it in this one file."""

from __future__ import annotations

import functools
import os
from collections.abc import Hashable
from typing import Any

import jax
import jax.extend.core as jex
from jax._src import core as _core
from jax._src import source_info_util as _source_info
from jax._src.config import trace_context as _trace_context
from jax._src.interpreters import partial_eval as _partial_eval
from jax.extend.core import primitives as public

JAX_ROOT = os.path.dirname(os.path.abspath(jax.__file__)) + os.sep
PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def primitive(name: str) -> Any:
    """The public primitive object of that name, or None in a version that has none."""
    return getattr(public, name + "_p", None)


def _primitive_of(function: Any, *arguments: Any) -> jex.Primitive:
    """The primitive that a public function binds, for those that jax.extend does not list."""
    return jax.make_jaxpr(function)(*arguments).jaxpr.eqns[0].primitive


optimization_barrier_p = _primitive_of(jax.lax.optimization_barrier, 0.0)
stack_p = _primitive_of(lambda x: jax.numpy.stack([x, x]), 0.0)
split_p = _primitive_of(lambda x: jax.lax.split(x, (1, 1)), jax.ShapeDtypeStruct((2,), "float32"))
unstack_p = _primitive_of(jax.lax.unstack, jax.ShapeDtypeStruct((2,), "float32"))
_ROWS = jax.lax.ScatterDimensionNumbers((0,), (), (0,))
scatter_add_p, scatter_sub_p = (
    _primitive_of(
        functools.partial(function, dimension_numbers=_ROWS, mode="promise_in_bounds"),
        jax.ShapeDtypeStruct((2,), "float32"),
        jax.ShapeDtypeStruct((1,), "int32"),
        jax.ShapeDtypeStruct((2,), "float32"),
    )
    for function in (jax.lax.scatter_add, jax.lax.scatter_sub)
)


CLIP, FILL_OR_DROP, PROMISE_IN_BOUNDS = (
    getattr(jax.lax.GatherScatterMode, name) for name in ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS")
)


def trace_context() -> Hashable:
    """A key that differs where the same function would be traced differently: x64, mesh, axis names ..."""
    return _trace_context()


def staged(closed: jex.ClosedJaxpr, arguments: list[Any]) -> list[Any] | None:
    """The equations of a program without effects put into the jaxpr that is being traced, as they are.

    Binding each again would trace it anew, which costs several times as much. None where some other transformation
    is at work, or none: then they have to be bound.
    """
    trace = _core.trace_ctx.trace
    if type(trace) is not _partial_eval.DynamicJaxprTrace or trace.requires_low or closed.jaxpr.effects:
        return None
    values = [*closed.consts, *arguments]
    if not all(isinstance(v, jax.Array) for v in values):
        return None
    jaxpr, outer, here = closed.jaxpr, _source_info.current_name_stack(), _source_info.current()
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [trace.to_jaxpr_tracer(v, here) for v in values]))
    nested = bool(outer.stack)
    tracer, literal, equation_of = _partial_eval.DynamicJaxprTracer, jex.Literal, _partial_eval.TracingEqn
    add, variable = trace.frame.add_eqn, trace.frame.newvar
    for e in jaxpr.eqns:
        source = e.source_info
        if nested:
            source = source.replace(name_stack=outer + source.name_stack)
        read = [tracer(trace, v.aval, v, source) if isinstance(v, literal) else env[v] for v in e.invars]
        written = [variable(v.aval) for v in e.outvars]
        new = equation_of(read, written, e.primitive, e.params, e.effects, source, e.ctx)
        for var, own in zip(e.outvars, written):
            env[var] = tracer(trace, own.aval, own, source, new)
        add(new)
    return [v.val if isinstance(v, literal) else env[v] for v in jaxpr.outvars]


def looks_for_nan() -> bool:
    """JAX is to raise where a result is NaN, or infinite."""
    return bool(jax.config.jax_debug_nans or jax.config.jax_debug_infs)  # type: ignore[attr-defined]


def is_tracer(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer)


def user_frame(equation: jex.JaxprEqn) -> tuple[str, int, str] | None:
    """(file, line, function) of the user's innermost frame that wrote an equation."""
    traceback = equation.source_info.traceback
    for frame in getattr(traceback, "frames", ()):
        name = frame.file_name
        if name.startswith((JAX_ROOT, PACKAGE_ROOT)) or "importlib" in name:
            continue
        if f"{os.sep}site-packages{os.sep}jaxlib" in name:
            continue
        return name, frame.line_num, frame.function_name
    return None


def written_in_jax(jaxpr: jex.Jaxpr) -> bool:
    """True if the traced function of a body is JAX's own; its frames may then be those of an earlier caller."""
    return _is_jax_own(jaxpr.debug_info)


def written_here(jaxpr: jex.Jaxpr) -> bool:
    """True if the traced function of a body is one of this package."""
    info = jaxpr.debug_info
    return info is not None and " at " + PACKAGE_ROOT in (info.func_src_info or "")


def custom_rule_is_jax_own(equation: jex.JaxprEqn) -> bool:
    """True if the function and the derivative rule of a custom_jvp_call were both written in JAX itself."""
    rule = equation.params.get("jvp_jaxpr_fun", None)
    return written_in_jax(equation.params["call_jaxpr"].jaxpr) and _is_jax_own(getattr(rule, "debug_info", None))


def _is_jax_own(info: jex.DebugInfo | None) -> bool:
    return info is not None and " at " + JAX_ROOT in (info.func_src_info or "")


def plain_jit(parameters: dict[str, Any]) -> bool:
    """True for a jit that only names and groups: no shardings, layouts, donation or options of its own."""
    return (
        all(type(s).__name__ == "UnspecifiedValue" for s in parameters["in_shardings"])
        and all(type(s).__name__ == "UnspecifiedValue" for s in parameters["out_shardings"])
        and all(layout is None for layout in parameters["in_layouts"] + parameters["out_layouts"])
        and not any(parameters["donated_invars"])
        and not parameters["compiler_options_kvs"]
    )


def regrouped_jit_parameters(parameters: dict[str, Any], jaxpr: jex.ClosedJaxpr) -> dict[str, Any]:
    """Parameters of a plain jit for a body with other inputs and outputs."""
    unspecified = (parameters["in_shardings"] + parameters["out_shardings"])[0]
    inputs, outputs = len(jaxpr.jaxpr.invars), len(jaxpr.jaxpr.outvars)
    return dict(
        parameters,
        jaxpr=jaxpr,
        in_shardings=(unspecified,) * inputs,
        out_shardings=(unspecified,) * outputs,
        in_layouts=(None,) * inputs,
        out_layouts=(None,) * outputs,
        donated_invars=(False,) * inputs,
    )


def trivial_sharding(aval: Any) -> bool:
    """True unless the type of a value carries a mesh (explicit sharding, or inside shard_map)."""
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    varying = getattr(aval, "vma", None) or getattr(aval, "manual_axis_type", None)
    return (mesh is None or mesh.empty or not getattr(mesh, "_any_axis_explicit", False)) and not _varies(varying)


def _varies(varying: Any) -> bool:
    if varying is None:
        return False
    if isinstance(varying, (frozenset, set)):
        return bool(varying)
    return bool(getattr(varying, "varying", None) or getattr(varying, "unreduced", None))


def debug_info(jaxpr: jex.Jaxpr, inputs: int, outputs: int) -> Any:
    """Names for a body that was regrouped: those of the original, without its argument and result names."""
    info = jaxpr.debug_info
    return jex.DebugInfo(info.traced_for, info.func_src_info, ("",) * inputs, ("",) * outputs)


def abstract(value: Any) -> Any:
    return jax.typeof(value)


def dtype(aval: Any) -> Any:
    return aval.dtype


def branch_for_any_platform(equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
    """The branch of a `lax.platform_dependent` that serves every platform not named, or None for other conds."""
    platforms = equation.params.get("branches_platforms")
    if not platforms or None not in platforms or equation.effects:
        return None
    return equation.params["branches"][platforms.index(None)]


def has_references(jaxpr: jex.Jaxpr) -> bool:
    """True if some equation reads or writes a mutable array."""
    return any("Ref" in type(v.aval).__name__ for e in jaxpr.eqns for v in (*e.invars, *e.outvars))
