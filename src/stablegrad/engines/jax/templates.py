"""How each operation of the graph is written in JAX: traced once per shape, then copied equation by equation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from stablegrad.engines.jax import _compat, compositions
from stablegrad.graph.node import Handle, Node
from stablegrad.numerics import jax as numerics
from stablegrad.numerics.jax import powers_of_two
from stablegrad.numerics.jax.powers import power_of_product, product_of_others
from stablegrad.numerics.jax.products import log_of_ratio, power_times_log
from stablegrad.numerics.jax.scaled_products import scaled_dot, scaled_dot_exponent
from stablegrad.numerics.jax.sigmoids import sigmoid_gap, sigmoid_step


def _late(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(numerics, name)(*args, **kwargs)


def _shaped(function: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function of operands that are scalars or have the result's shape."""

    @functools.wraps(function)
    def call(node: Node, *operands: Any) -> Any:
        return function(*(o if np.shape(o) == node.shape else lax.full(node.shape, o) for o in operands))

    return call


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's own binary operations take a scalar operand as it is."""
    return lambda node, *operands: function(*operands)


def _axes(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *operands: function(*operands, axis=node.params[0])


def _one_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function along one axis, for several: they are laid behind each other as the last."""

    def call(node: Node, x: Any) -> Any:
        axes = node.params[0]
        if len(axes) == 1:
            return function(x, axis=axes)
        kept = [k for k in range(x.ndim) if k not in axes]
        order = [*kept, *axes]
        flat = lax.reshape(lax.transpose(x, order), (*(x.shape[k] for k in kept), math.prod(x.shape[k] for k in axes)))
        out = function(flat, axis=(flat.ndim - 1,))
        out = lax.reshape(out, tuple(x.shape[k] for k in order))
        return lax.transpose(out, [order.index(k) for k in range(x.ndim)])

    return call


def _arrange(node: Node, x: Any) -> Any:
    dims = node.params
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    if order != list(range(len(dims))):
        x = lax.transpose(x, order)
    return lax.broadcast_in_dim(x, node.shape, sorted(dims))


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    """A sum along axes; of halves in float32, as jnp.sum does it."""
    if x.dtype.itemsize != 2:
        return lax.reduce_sum(x, axes)
    return lax.reduce_sum(x.astype(jnp.float32), axes).astype(x.dtype)


def _weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Operands (exponent, weight), with the axes of the reduction."""
    return lambda node, e, m: function(e, m, axis=node.params[0])


def _asked(node: Node, where: Any, *positions: Any) -> Any:
    """The transpose of a move, of truth values."""
    handle, at, shapes = node.params

    def move(x: Any) -> Any:
        data = dict(zip(handle.data, (x if k == at else jnp.zeros(shape) for k, shape in enumerate(shapes))))
        given = iter(positions)
        operands = [data[k] if k in data else next(given) for k in range(len(data) + len(positions))]
        return handle.primitive.bind(*operands, **dict(handle.parameters))

    (asked,) = jax.linear_transpose(move, jax.ShapeDtypeStruct(node.shape, jnp.zeros(()).dtype))(where.astype(float))
    return asked > 0


_NUMERICS = (
    "softplus log_sigmoid sigmoid log1mexp log_expm1 logdiffexp exprel log1prel linex log_cosh "
    "mul_exp times_log cosm1 log_erfc log_of_product log_of_quotient"
)


def _scaled_dot(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *operands: function(dict(node.params[0].parameters)["dimension_numbers"], *operands)


_POWERS_OF_TWO = (
    "binary_exponent without_exponent aligned times_power_of_two scaled_value log_of_scaled mantissa_of_exp "
    "exponent_of_exp"
)
_STABLE = {
    "stable_logaddexp": _late("logaddexp"),
    "stable_expm1": _late("expm1"),
    "stable_tanh": _late("tanh"),
    "stable_asinh": _late("asinh"),
    "stable_acosh": _late("acosh"),
    "stable_atanh": _late("atanh"),
    "stable_xlogy": _late("xlogy"),
    "stable_xlog1py": _late("xlog1py"),
}
_LAX_UNARY = (
    "neg exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt cbrt logistic "
    "abs sign floor ceil is_finite erf erfc lgamma digamma square"
)

_LAX_OTHER = (
    "eq ne lt le gt ge nextafter igamma igammac igamma_grad_a random_gamma_grad zeta polygamma complex real imag conj "
    "population_count clz bessel_i0e bessel_i1e shift_left shift_right_arithmetic shift_right_logical"
)
_LAX_NAMES = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "regularized_incomplete_beta": "betainc"}
_OF_JAX: dict[str, Callable[..., Any]] = {
    "logaddexp": jnp.logaddexp,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "logit": special.logit,
    "relu": jax.nn.relu,
}

EMIT: dict[str, Callable[..., Any]] = {
    **{name: _shaped(getattr(lax, name)) for name in _LAX_OTHER.split()},
    **{name: _shaped(getattr(lax, function)) for name, function in _LAX_NAMES.items()},
    **{name: _shaped(function) for name, function in _OF_JAX.items()},
    **{name: _shaped(_late(name)) for name in _NUMERICS.split()},
    **{name: _shaped(function) for name, function in _STABLE.items()},
    **{name: _shaped(getattr(lax, name)) for name in _LAX_UNARY.split()},
    "add": _binary(lax.add),
    "sub": _binary(lax.sub),
    "mul": _binary(lax.mul),
    "div": _binary(lax.div),
    "pow": _binary(lax.pow),
    "max": _binary(lax.max),
    "min": _binary(lax.min),
    "clamp": lambda node, low, x, high: lax.clamp(low, x, high),
    "select": lambda node, which, *cases: lax.select_n(
        which, *(c if np.shape(c) == node.shape else lax.full(node.shape, c) for c in cases)
    ),
    "integer_pow": lambda node, x: lax.integer_pow(x, node.params[0]),
    "cast": lambda node, x: lax.convert_element_type(x, node.dtype),
    "arrange": _arrange,
    "asked": _asked,
    "log_of_ratio": lambda node, *operands: log_of_ratio(*node.params)(*operands),
    "power_times_log": lambda node, x: power_times_log(*node.params)(x),
    "reshape": lambda node, x: lax.reshape(x, node.shape),
    "stop_gradient": lambda node, x: lax.stop_gradient(x),
    "reduce_sum": lambda node, x: _sum(x, node.params[0]),
    "reduce_max": lambda node, x: lax.reduce_max(x, node.params[0]),
    "reduce_min": lambda node, x: lax.reduce_min(x, node.params[0]),
    "reduce_or": lambda node, x: lax.reduce_or(x, node.params[0]),
    "reduce_and": lambda node, x: lax.reduce_and(x, node.params[0]),
    "reduce_xor": lambda node, x: lax.reduce_xor(x, node.params[0]),
    "argmax": lambda node, x: lax.argmax(x, node.params[0][0], node.dtype),
    "argmin": lambda node, x: lax.argmin(x, node.params[0][0], node.dtype),
    "round": lambda node, x: lax.round(x, *node.params),
    "reduce_precision": lambda node, x: lax.reduce_precision(x, *node.params),
    "not": lambda node, x: lax.bitwise_not(x),
    "atan2": _shaped(lax.atan2),
    "rem": _shaped(lax.rem),
    "erf_inv": _shaped(lax.erf_inv),
    "reduce_prod": lambda node, x: lax.reduce_prod(x, node.params[0]),
    "cumsum": lambda node, x: lax.cumsum(x, *node.params),
    "cumprod": lambda node, x: lax.cumprod(x, *node.params),
    "cummax": lambda node, x: lax.cummax(x, *node.params),
    "cummin": lambda node, x: lax.cummin(x, *node.params),
    "cumlogsumexp": lambda node, x: lax.cumlogsumexp(x, *node.params),
    "nonnegative": _shaped(compositions.nonnegative),
    "require_finite": _shaped(compositions.require_finite),
    "stable_div": _shaped(_late("divide")),
    "require": _shaped(compositions.require),
    "shift": _axes(compositions.shift),
    "shift_weighted": _weighted(compositions.shift_weighted),
    "shift_terms": _binary(compositions.shift_terms),
    "log_sum_exp_terms": _shaped(compositions.log_sum_exp_terms),
    "inverse_exprel": _shaped(compositions.inverse_exprel),
    "softmax_cross_entropy": _weighted(_late("softmax_cross_entropy")),
    "sigmoid_cross_entropy": _shaped(_late("sigmoid_cross_entropy")),
    "sigmoid_slope": _shaped(compositions.sigmoid_slope),
    "linex_near_0": _shaped(compositions.linex_near_0),
    "sigmoid_gap": _shaped(sigmoid_gap),
    "sigmoid_step": _shaped(sigmoid_step),
    "inverse_expm1": _shaped(compositions.inverse_expm1),
    "pair_shift": _shaped(compositions.pair_shift),
    "sum_of_pair": lambda node, z: compositions.sum_of_pair(z, *node.params),
    "difference_of_pair": _shaped(compositions.difference_of_pair),
    "power_exp": _shaped(_late("power_exp")),
    "power_of_product": lambda node, x: power_of_product(node.params[1])(x, node.params[0]),
    "product_of_others": _one_axis(product_of_others),
    "log_of_1_and": _shaped(compositions.log_of_1_and),
    "atanh_or": _shaped(compositions.atanh_or),
    "held_size": _shaped(compositions.held_size),
    "norm": _axes(_late("norm")),
    "norm_undefined_at_0": _axes(lambda x, axis: compositions.undefined_at_0(numerics.norm(x, axis))),
    "norm_of_terms": _shaped(compositions.norm_of_terms),
    "norm_of_terms_undefined_at_0": _shaped(lambda *x: compositions.undefined_at_0(compositions.norm_of_terms(*x))),
    "cosh_shift": _shaped(compositions.cosh_shift),
    "scaled_cosh": _shaped(compositions.scaled_cosh),
    "log_near_1": _shaped(compositions.log_near_1),
    "log_softplus": _shaped(compositions.log_softplus),
    "log1mexp_of_exp": _shaped(compositions.log1mexp_of_exp),
    "log_sum_terms": lambda node, *pairs: compositions.log_sum_terms(*pairs, one=node.params[0] if node.params else -1),
    **{name: _shaped(getattr(powers_of_two, name)) for name in _POWERS_OF_TWO.split()},
    "scaled_dot": _scaled_dot(scaled_dot),
    "scaled_dot_exponent": _scaled_dot(scaled_dot_exponent),
    "log_abs_product": _axes(_late("log_abs_product")),
    "logsumexp": _axes(_late("logsumexp")),
    "logsumexp_weighted": _weighted(_late("logsumexp_weighted")),
    "log_softmax": _axes(_late("log_softmax")),
    "log_softmax_of_picks": _axes(_late("log_softmax_of_picks")),
    "softmax": _axes(_late("softmax")),
    "log_sum_others": _one_axis(_late("log_sum_others")),
    "log_one_minus_softmax": _one_axis(_late("log_one_minus_softmax")),
    "one_minus_softmax": _one_axis(_late("one_minus_softmax")),
}

_TRACED: dict[tuple, jex.ClosedJaxpr] = {}
MOST_TRACED = 4096


def template(node: Node, context: Hashable = None) -> tuple[jex.ClosedJaxpr, list[Node]]:
    """The equations of one new node, and which of its inputs they read (literals are written in).

    `context` is `_compat.trace_context()`, which is the same for a whole program.
    """
    context = context or _compat.trace_context()
    reads, described = [], []
    for i in node.inputs:
        if i.op.name == "literal":
            described.append((i.params, i.dtype))
        else:
            described.append((i.shape, i.dtype))
            reads.append(i)
    key: tuple | None = (node.op.name, node.params, node.shape, node.dtype, context, *described)
    try:
        found = _TRACED.get(key)  # type: ignore[arg-type]
    except TypeError:
        found, key = None, None
    if found is None:
        found = _trace(node, reads)
        if key is not None:
            if len(_TRACED) >= MOST_TRACED:
                _TRACED.clear()
            _TRACED[key] = found
    return found, reads


def _trace(node: Node, reads: list[Node]) -> jex.ClosedJaxpr:
    emit = EMIT.get(node.op.name)

    def function(*values: Any) -> Any:
        given = iter(values)
        operands = [i.value if i.op.name == "literal" else next(given) for i in node.inputs]
        if emit is not None:
            return emit(node, *operands)
        handle = node.params[0]
        assert isinstance(handle, Handle), f"no way to write {node.op.name} in JAX"
        return handle.primitive.bind(*operands, **dict(handle.parameters))

    return jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(i.shape, i.dtype) for i in reads))
