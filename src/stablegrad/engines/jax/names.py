"""JAX's primitives and what the compiler calls them. Primitive objects are compared, never their names.

A primitive that stands in none of these tables is opaque: bound again exactly as it was.
"""

from __future__ import annotations

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from stablegrad.engines.jax import _compat


def _table(names: str) -> dict[jex.Primitive, str]:
    """'canonical=primitive' or 'name' for both; a primitive that this version lacks is left out."""
    table = {}
    for entry in names.split():
        canonical, _, name = entry.partition("=")
        found = _compat.primitive(name or canonical)
        if found is not None:
            table[found] = canonical
    return table


# Elementwise; parameters other than those read below must be at their defaults (`capture.py`).
ELEMENTWISE = _table(
    "neg exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt cbrt "
    "logistic abs sign floor ceil is_finite erf erfc erf_inv lgamma digamma square not bessel_i0e bessel_i1e conj "
    "real imag population_count clz add mul max min eq ne and or xor sub div rem pow atan2 nextafter lt le gt ge "
    "shift_left shift_right_arithmetic shift_right_logical complex igamma igammac igamma_grad_a zeta polygamma "
    "clamp regularized_incomplete_beta add=add_jaxvals select=select_n integer_pow round reduce_precision"
)

# Along axes; `params` of the node are (axes,) or the engine's handle.
REDUCTIONS = _table("reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor")
ARG_REDUCTIONS = _table("argmax argmin")
CUMULATIVE = _table("cumsum cumprod cummax cummin cumlogsumexp")
SORT = _compat.primitive("sort")
HANDLED = _table(
    "dot_general conv_general_dilated scatter_add scatter_mul scatter_max scatter_min reduce_window_sum "
    "reduce_window_max reduce_window_min select_and_gather_add select_and_scatter_add"
)

# Moving primitives that keep the engine's parameters, with the positions of their data inputs (None: all of them).
MOVING: dict[jex.Primitive, tuple[int, ...] | None] = {}
for _name, _data in {
    "slice": (0,),
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "gather": (0,),
    "scatter": (0, 2),
    "pad": (0, 1),
    "concatenate": None,
    "rev": (0,),
    "copy": (0,),
    "name": (0,),
    "sharding_constraint": (0,),
    "device_put": (0,),
}.items():
    _found = _compat.primitive(_name)
    if _found is not None:
        MOVING[_found] = _data
# Public functions whose primitives jax.extend does not list.
for _function, _arguments in (
    (lambda x: jnp.stack([x, x]), (0.0,)),
    (lambda x: jnp.tile(x, (2,)), (jax.ShapeDtypeStruct((2,), "float32"),)),
    (lambda x: jax.lax.copy_p.bind(x) if hasattr(jax.lax, "copy_p") else jnp.copy(x), (0.0,)),
):
    for _equation in jax.make_jaxpr(_function)(*_arguments).jaxpr.eqns:
        if str(_equation.primitive) in ("stack", "tile", "copy", "copy_p"):
            MOVING.setdefault(_equation.primitive, None if str(_equation.primitive) == "stack" else (0,))

JIT = _compat.primitive("jit")
REMAT = _compat.primitive("remat")
CUSTOM_JVP = _compat.primitive("custom_jvp_call")
CUSTOM_VJP = _compat.primitive("custom_vjp_call")
SCAN = _compat.primitive("scan")
WHILE = _compat.primitive("while")
COND = _compat.primitive("cond")
CONVERT = _compat.primitive("convert_element_type")
BROADCAST = _compat.primitive("broadcast_in_dim")
TRANSPOSE = _compat.primitive("transpose")
RESHAPE = _compat.primitive("reshape")
SQUEEZE = _compat.primitive("squeeze")
IOTA = _compat.primitive("iota")
STOP_GRADIENT = _compat.primitive("stop_gradient")
BARRIER = _compat.optimization_barrier_p
SPLIT = _compat.split_p
SLICE = _compat.primitive("slice")
CONCATENATE = _compat.primitive("concatenate")
STACK = _compat.stack_p
GATHER = _compat.primitive("gather")

# JAX's own custom_jvp functions that have a name here; their derivative is the mathematical one.
OWN_CUSTOM_JVP = {
    "logaddexp": "logaddexp",
    "xlogy": "xlogy",
    "xlog1py": "xlog1py",
    "relu": "relu",
    "logit": "logit",
    "_xlogx": "xlogy",
}
