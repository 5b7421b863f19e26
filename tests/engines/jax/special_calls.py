"""Calls of public functions that take functions, dimension numbers, meshes or axis names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

X = jnp.array([0.5, 0.25, 0.75, 1.25])
M = jnp.eye(4) + 0.1 * jnp.arange(16.0).reshape(4, 4)
K = jnp.array([1, 2, 0, 3])
B = jnp.array([True, False, True, True])
IMAGE = jnp.ones((1, 1, 4, 4))
MESH = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))

# Names that compute no array: types and their tools, printing and files, settings, plans without numbers; and those
# that make an array from values that must be known while tracing.
NOT_ARRAYS = frozenset("""
    array_repr array_str astype broadcast_shapes can_cast einsum_path from_dlpack frombuffer fromfile fromfunction
    fromiter fromstring frompyfunc get_printoptions iscomplexobj isdtype isrealobj isscalar issubdtype iterable load
    mask_indices ndim printoptions promote_types result_type save savez set_printoptions shape size vectorize ufunc
    get_scaled_dot_general_config initializers
    ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike AccuracyMode conv_dimension_numbers
    conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple dtype padtype_to_pads
    reduce_window_shape_tuple axis_size linalg
    shape_as_value trim_zeros precv psend
""".split())  # fmt: skip


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for each row of a matrix, the rows being an axis named i."""
    return jax.vmap(function, axis_name="i")


def _manual(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`function` inside a shard_map over one device."""
    return jax.shard_map(function, mesh=MESH, in_specs=P("d"), out_specs=P("d"), **options)


_rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
_into = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
_contract = (((1,), (0,)), ((), ()))
_ragged = lax.RaggedDotDimensionNumbers(_contract, lhs_ragged_dimensions=[0], rhs_group_dimensions=[0])


def _scatter(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, at, new: function(x, at[:, None], new, _into)


@functools.partial(lax.composite, name="example.square")
def _composite(x: Any) -> Any:
    return x * x


def _root(x: Any) -> Any:
    return lax.custom_root(lambda r: r * r - x, jnp.ones_like(x), lambda f, r: r, lambda g, y: y / g(jnp.ones_like(y)))


def _solve(m: Any, x: Any) -> Any:
    def solve(f: Any, b: Any) -> Any:
        return b / 2

    return lax.custom_linear_solve(lambda v: 2 * v, x, solve, symmetric=True) + m[0]


def _ragged_exchange(x: Any) -> Any:
    one = jnp.zeros(1, jnp.int32)
    return lax.ragged_all_to_all(x, x, one, one + 4, one, one + 4, axis_name="d")


# name: (function, arguments)
SPECIAL: dict[str, tuple[Callable[..., Any], tuple]] = {
    "jax.numpy.apply_along_axis": (lambda x: jnp.apply_along_axis(jnp.sum, 0, x), (M,)),
    "jax.numpy.apply_over_axes": (lambda x: jnp.apply_over_axes(jnp.sum, x, [0]), (M,)),
    "jax.numpy.argwhere": (lambda x: jnp.argwhere(x, size=2), (X,)),
    "jax.numpy.bincount": (lambda k: jnp.bincount(k, length=4), (K,)),
    "jax.numpy.broadcast_to": (lambda x: jnp.broadcast_to(x, (2, 4)), (X,)),
    "jax.numpy.choose": (lambda k, x: jnp.choose(k, [x] * 4, mode="clip"), (K, X)),
    "jax.numpy.compress": (lambda b, x: jnp.compress(b, x, size=2), (B, X)),
    "jax.numpy.cross": (lambda x: jnp.cross(x[:3], x[1:]), (X,)),
    "jax.numpy.dsplit": (lambda x: jnp.dsplit(x, 2), (jnp.ones((2, 2, 4)),)),
    "jax.numpy.einsum": (lambda x: jnp.einsum("ij,kj->ik", x, x), (M,)),
    "jax.numpy.extract": (lambda b, x: jnp.extract(b, x, size=2), (B, X)),
    "jax.numpy.fill_diagonal": (lambda x: jnp.fill_diagonal(x, 2.0, inplace=False), (M,)),
    "jax.numpy.flatnonzero": (lambda x: jnp.flatnonzero(x, size=2), (X,)),
    "jax.numpy.full": (lambda x: jnp.full((2, 4), x), (X,)),
    "jax.numpy.intersect1d": (lambda x: jnp.intersect1d(x, x, size=2), (X,)),
    "jax.numpy.kaiser": (lambda x: jnp.kaiser(5, x), (2.5,)),
    "jax.numpy.nonzero": (lambda x: jnp.nonzero(x, size=2), (X,)),
    "jax.numpy.permute_dims": (lambda x: jnp.permute_dims(x, (1, 0)), (M,)),
    "jax.numpy.piecewise": (lambda x: jnp.piecewise(x, [x > 0.5], [jnp.sin, jnp.cos]), (X,)),
    "jax.numpy.place": (lambda x, b: jnp.place(x, b, x, inplace=False), (X, B)),
    "jax.numpy.polyfit": (lambda x: jnp.polyfit(x, x, 1), (X,)),
    "jax.numpy.put": (lambda x, k: jnp.put(x, k, x, inplace=False), (X, K)),
    "jax.numpy.put_along_axis": (lambda x, k: jnp.put_along_axis(x, k, x, 0, inplace=False), (X, K)),
    "jax.numpy.ravel_multi_index": (lambda k: jnp.ravel_multi_index((k, k), (4, 4), mode="clip"), (K,)),
    "jax.numpy.roots": (lambda x: jnp.roots(x, strip_zeros=False), (X,)),
    "jax.numpy.select": (lambda b, x: jnp.select([b, ~b], [x, 2 * x]), (B, X)),
    "jax.numpy.setdiff1d": (lambda x: jnp.setdiff1d(x, x, size=2), (X,)),
    "jax.numpy.setxor1d": (lambda x: jnp.setxor1d(x, x, size=2), (X,)),
    "jax.numpy.union1d": (lambda x: jnp.union1d(x, x, size=2), (X,)),
    "jax.numpy.unique": (lambda x: jnp.unique(x, size=2), (X,)),
    "jax.numpy.unique_all": (lambda x: jnp.unique_all(x, size=2), (X,)),
    "jax.numpy.unique_counts": (lambda x: jnp.unique_counts(x, size=2), (X,)),
    "jax.numpy.unique_inverse": (lambda x: jnp.unique_inverse(x, size=2), (X,)),
    "jax.numpy.unique_values": (lambda x: jnp.unique_values(x, size=2), (X,)),
    "jax.numpy.unpackbits": (lambda k: jnp.unpackbits(k.astype(jnp.uint8)), (K,)),
    "jax.numpy.unravel_index": (lambda k: jnp.unravel_index(k, (2, 2)), (K,)),
    "jax.numpy.linalg.cross": (lambda x: jnp.linalg.cross(x[:3], x[1:]), (X,)),
    "jax.numpy.linalg.multi_dot": (lambda x: jnp.linalg.multi_dot([x, x, x]), (M,)),
    "jax.numpy.linalg.tensorinv": (lambda x: jnp.linalg.tensorinv(x, ind=1), (M,)),
    "jax.numpy.linalg.tensorsolve": (jnp.linalg.tensorsolve, (M, X)),
    "jax.nn.dot_product_attention": (jax.nn.dot_product_attention, (jnp.ones((1, 4, 2, 8)),) * 3),
    "jax.nn.scaled_dot_general": (lambda x: jax.nn.scaled_dot_general(x, x, _contract), (M,)),
    "jax.nn.scaled_matmul": (
        lambda x, s: jax.nn.scaled_matmul(x, x, s, s), (jnp.ones((1, 4, 8), jnp.float8_e4m3fn),
                                                         jnp.ones((1, 4, 1), jnp.float8_e8m0fnu))),
    "jax.scipy.special.bessel_jn": (lambda x: jax.scipy.special.bessel_jn(x, v=2, n_iter=10), (X,)),
    "jax.scipy.special.sph_harm_y": (
        lambda k, x: jax.scipy.special.sph_harm_y(k, k, x, x, n_max=3), (K, X)),
    "jax.lax.after_all": (lambda x: lax.after_all(lax.create_token(x)), (X,)),
    "jax.lax.create_token": (lambda x: lax.create_token(x), (X,)),
    "jax.lax.all_gather": (_named(lambda x: lax.all_gather(x, "i")), (M,)),
    "jax.lax.all_gather (manual)": (_manual(lambda x: lax.all_gather(x, "d", tiled=True)), (M,)),
    "jax.lax.all_to_all": (_manual(lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True)), (M,)),
    "jax.lax.argmax": (lambda x: lax.argmax(x, 0, jnp.int32), (X,)),
    "jax.lax.argmin": (lambda x: lax.argmin(x, 0, jnp.int32), (X,)),
    "jax.lax.associative_scan": (lambda x: lax.associative_scan(jnp.add, x), (X,)),
    "jax.lax.axis_index": (_manual(lambda x: x + lax.axis_index("d")), (M,)),
    "jax.lax.bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, jnp.int32), (X,)),
    "jax.lax.broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, 4), (1,)), (X,)),
    "jax.lax.broadcasted_iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, (2, 4), 1), (X,)),
    "jax.lax.composite": (_composite, (X,)),
    "jax.lax.concatenate": (lambda x: lax.concatenate([x, x], 0), (X,)),
    "jax.lax.cond": (lambda b, x: lax.cond(b[0], jnp.sin, jnp.cos, x), (B, X)),
    "jax.lax.conv": (lambda x: lax.conv(x, x, (1, 1), "SAME"), (IMAGE,)),
    "jax.lax.conv_general_dilated": (lambda x: lax.conv_general_dilated(x, x, (1, 1), "SAME"), (IMAGE,)),
    "jax.lax.conv_general_dilated_local": (
        lambda x: lax.conv_general_dilated_local(x, jnp.ones((1, 4, 3, 3)), (1, 1), "VALID", (2, 2)), (IMAGE,)),
    "jax.lax.conv_general_dilated_patches": (
        lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"), (IMAGE,)),
    "jax.lax.conv_transpose": (
        lambda x: lax.conv_transpose(x, x, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")), (IMAGE,)),
    "jax.lax.conv_with_general_padding": (
        lambda x: lax.conv_with_general_padding(x, x, (1, 1), ((1, 1), (1, 1)), None, None), (IMAGE,)),
    "jax.lax.convert_element_type": (lambda x: lax.convert_element_type(x, jnp.float16), (X,)),
    "jax.lax.custom_linear_solve": (_solve, (M, X)),
    "jax.lax.custom_root": (_root, (2.5,)),
    "jax.lax.dot_general": (lambda x: lax.dot_general(x, x, _contract), (M,)),
    "jax.lax.dynamic_slice": (lambda k, x: lax.dynamic_slice(x, (k[0],), (2,)), (K, X)),
    "jax.lax.dynamic_update_index_in_dim": (lambda k, x: lax.dynamic_update_index_in_dim(x, 2.0, k[0], 0), (K, X)),
    "jax.lax.dynamic_update_slice": (lambda k, x: lax.dynamic_update_slice(x, x[:2], (k[0],)), (K, X)),
    "jax.lax.dynamic_update_slice_in_dim": (lambda k, x: lax.dynamic_update_slice_in_dim(x, x[:2], k[0], 0), (K, X)),
    "jax.lax.empty": (lambda x: lax.empty((4,), jnp.float32), (X,)),
    "jax.lax.expand_dims": (lambda x: lax.expand_dims(x, (0,)), (X,)),
    "jax.lax.fft": (lambda x: lax.fft(x, "RFFT", (4,)), (X,)),
    "jax.lax.fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), x), (X,)),
    "jax.lax.gather": (lambda k, x: lax.gather(x, k[:, None], _rows, (1, 4)), (K, M)),
    "jax.lax.index_take": (lambda k, x: lax.index_take(x, (k,), (0,)), (K, X)),
    "jax.lax.iota": (lambda x: x + lax.iota(jnp.float32, 4), (X,)),
    "jax.lax.map": (lambda x: lax.map(jnp.sin, x), (X,)),
    "jax.lax.pad": (lambda x: lax.pad(x, 0.0, ((1, 1, 0),)), (X,)),
    "jax.lax.pbroadcast": (_manual(lambda x: lax.pbroadcast(x, "d", 0)), (M,)),
    "jax.lax.pcast": (_manual(lambda x: x + lax.pcast(jnp.ones(4), "d", to="varying")), (M,)),
    "jax.lax.platform_dependent": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), (X,)),
    "jax.lax.pmax": (_manual(lambda x: x + lax.pmax(lax.stop_gradient(x), "d")), (M,)),
    "jax.lax.pmin": (_manual(lambda x: x + lax.pmin(lax.stop_gradient(x), "d")), (M,)),
    "jax.lax.pmean": (_manual(lambda x: x + lax.pmean(x, "d")), (M,)),
    "jax.lax.ppermute": (_manual(lambda x: lax.ppermute(x, "d", [(0, 0)])), (M,)),
    "jax.lax.pshuffle": (_named(lambda x: lax.pshuffle(x, "i", [1, 0, 3, 2])), (M,)),
    "jax.lax.psum": (_manual(lambda x: x + lax.psum(x, "d")), (M,)),
    "jax.lax.psum_scatter": (_manual(lambda x: lax.psum_scatter(x, "d", tiled=True)), (M,)),
    "jax.lax.pswapaxes": (_manual(lambda x: lax.pswapaxes(x, "d", 0)[None]), (jnp.ones((1, 4)),)),
    "jax.lax.polygamma": (lax.polygamma, (X, X)),
    "jax.lax.ragged_all_to_all": (_manual(_ragged_exchange), (X,)),
    "jax.lax.ragged_dot": (lambda x, k: lax.ragged_dot(x, jnp.stack([x] * 4), k), (M, K)),
    "jax.lax.ragged_dot_general": (
        lambda x, k: lax.ragged_dot_general(x, jnp.stack([x] * 4), k, lax.RaggedDotDimensionNumbers(
            (((1,), (1,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[0])), (M, K)),
    "jax.lax.reduce": (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * a, (0,)), (X,)),
    "jax.lax.reduce_and": (lambda b: lax.reduce_and(b, (0,)), (B,)),
    "jax.lax.reduce_or": (lambda b: lax.reduce_or(b, (0,)), (B,)),
    "jax.lax.reduce_xor": (lambda b: lax.reduce_xor(b, (0,)), (B,)),
    "jax.lax.reduce_max": (lambda x: lax.reduce_max(x, (0,)), (X,)),
    "jax.lax.reduce_min": (lambda x: lax.reduce_min(x, (0,)), (X,)),
    "jax.lax.reduce_prod": (lambda x: lax.reduce_prod(x, (0,)), (X,)),
    "jax.lax.reduce_sum": (lambda x: lax.reduce_sum(x, (0,)), (X,)),
    "jax.lax.reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), (X,)),
    "jax.lax.reduce_window": (
        lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * a, (2,), (1,), "VALID"), (X,)),
    "jax.lax.reduce_window (sum)": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"), (X,)),
    "jax.lax.reduce_window (max)": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID"), (X,)),
    "jax.lax.reduce_window (min)": (lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2,), (1,), "VALID"), (X,)),
    "jax.lax.rev": (lambda x: lax.rev(x, (0,)), (X,)),
    "jax.lax.rng_bit_generator": (lambda k: lax.rng_bit_generator(k.astype(jnp.uint32), (2,)), (K,)),
    "jax.lax.rng_uniform": (lambda x: lax.rng_uniform(x[0], x[1], (2,)), (X,)),
    "jax.lax.scaled_dot": (lambda x: lax.scaled_dot(x, x), (M,)),
    "jax.lax.scan": (lambda x: lax.scan(lambda c, r: (c * r, c), 1.0, x), (X,)),
    "jax.lax.scatter": (_scatter(lax.scatter), (M, K, M)),
    "jax.lax.scatter_add": (_scatter(lax.scatter_add), (M, K, M)),
    "jax.lax.scatter_apply": (lambda x, at: lax.scatter_apply(x, at[:, None], jnp.sin, _into, update_shape=(4, 4)),
                              (M, K)),
    "jax.lax.scatter_max": (_scatter(lax.scatter_max), (M, K, M)),
    "jax.lax.scatter_min": (_scatter(lax.scatter_min), (M, K, M)),
    "jax.lax.scatter_mul": (_scatter(functools.partial(lax.scatter_mul, unique_indices=True)), (M, K, M)),
    "jax.lax.scatter_sub": (_scatter(lax.scatter_sub), (M, K, M)),
    "jax.lax.slice": (lambda x: lax.slice(x, (1,), (3,)), (X,)),
    "jax.lax.squeeze": (lambda x: lax.squeeze(x, (0, 1)), (IMAGE,)),
    "jax.lax.stack": (lambda x: lax.stack([x, x]), (X,)),
    "jax.lax.switch": (lambda k, x: lax.switch(k[0], [jnp.sin, jnp.cos, jnp.tan], x), (K, X)),
    "jax.lax.tile": (lambda x: lax.tile(x, (2,)), (X,)),
    "jax.lax.transpose": (lambda x: lax.transpose(x, (1, 0)), (M,)),
    "jax.lax.while_loop": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: 2 * c, x), (X,)),
    "jax.lax.with_sharding_constraint": (
        lambda x: lax.with_sharding_constraint(x, jax.sharding.NamedSharding(MESH, P("d"))), (M,)),
    "jax.lax.linalg.lu_pivots_to_permutation": (lambda k: lax.linalg.lu_pivots_to_permutation(k, 4), (K,)),
    "jax.lax.linalg.ormqr": (lambda x, v: lax.linalg.ormqr(x, v, x), (M, X)),
    "jax.lax.linalg.tridiagonal_solve": (
        lambda x, m: lax.linalg.tridiagonal_solve(x, x, x, m), (X, M)),
}  # fmt: skip
