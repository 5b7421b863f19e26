"""What all functions of this package share: dtypes, broadcasting, one cached trace, derivative rules.

A function here is a `jax.custom_jvp` (never a `custom_vjp`: forward mode must work) behind
`jax.jit(inline=True)`: the body is traced once per shape and dtype and then copied into the caller's program,
which is ten times cheaper than tracing it anew, and called eagerly it runs as one compiled program.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

Function = TypeVar("Function", bound=Callable[..., Any])
Rule = TypeVar("Rule", bound=Callable[..., Any])

Axis: TypeAlias = Any
"""What a caller passes: an int, a sequence of ints or None for all; what a function gets: sorted ints."""

_cores: dict[Callable[..., Any], Any] = {}


def elementwise(function: Function) -> Function:
    """Make `function`, written for floating arrays of one shape and of one dtype of 32 bits or more, public.

    Arguments are promoted and broadcast as in jax.numpy. float16 and bfloat16 compute in float32 inside and
    return their own dtype; integers become the default floating dtype; complex numbers raise TypeError.
    """
    return _public(function, broadcast=True)


def of_arrays(function: Function) -> Function:
    """The same without the broadcasting."""
    return _public(function, broadcast=False)


def _public(function: Function, broadcast: bool) -> Function:
    core: Any = jax.custom_jvp(function)

    @functools.partial(jax.jit, inline=True)
    def traced(*args: Any) -> Any:
        arrays, dtype = _working_arrays(function.__name__, args, broadcast)
        return _converted(core(*arrays), dtype)

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = inspect.signature(function).bind(*args, **kwargs).args
        return traced(*args)

    _cores[public] = core
    return public  # type: ignore[return-value]


def along_axis(function: Function) -> Function:
    """The same for a function whose last argument is `axis`: an int, a tuple of them, or None for all."""
    signature = inspect.signature(function)
    arrays_expected = len(signature.parameters) - 1
    core: Any = jax.custom_jvp(function, nondiff_argnums=(arrays_expected,))

    @functools.partial(jax.jit, inline=True, static_argnums=0)
    def traced(axis: Any, *args: Any) -> Any:
        arrays, dtype = _working_arrays(function.__name__, args, broadcast=True)
        axes = _axes(function.__name__, axis, arrays[0].ndim)
        return _converted(core(*arrays, axes), dtype)

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        *arrays, axis = bound.args
        return traced(tuple(axis) if isinstance(axis, list) else axis, *arrays)

    _cores[public] = core
    return public  # type: ignore[return-value]


def derivative_of(public: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Attach a rule `(primals, tangents) -> (value, tangent)`; `(axis, primals, tangents)` with an axis.

    A tangent that is known to be zero arrives as a `SymbolicZero`; `combined` skips it, so that an infinite
    slope of an argument nobody differentiates by meets no zero.
    """

    def attach(rule: Rule) -> Rule:
        _cores[public].defjvp(rule, symbolic_zeros=True)
        return rule

    return attach


def combined(like: jax.Array, *terms: tuple[Any, Callable[[Any], Any]]) -> jax.Array:
    """The sum of `linear(tangent)` over the terms `(tangent, linear)` whose tangent is not known as zero."""
    parts = [linear(tangent) for tangent, linear in terms if not isinstance(tangent, SymbolicZero)]
    return functools.reduce(operator.add, parts) if parts else lax.full_like(like, 0)


def select(condition: jax.Array, x: Any, y: Any) -> jax.Array:
    """`lax.select` that takes a number for one of its branches."""
    if not hasattr(x, "dtype"):
        x = lax.full_like(y, x)
    elif not hasattr(y, "dtype"):
        y = lax.full_like(x, y)
    return lax.select(condition, x, y)


def at_least(x: jax.Array, bound: float) -> jax.Array:
    """The larger of x and a number, NaN for NaN. (lax.max alone gives a Python number a dtype of its own.)"""
    return lax.max(x, lax.full_like(x, bound))


def at_most(x: jax.Array, bound: float) -> jax.Array:
    """The smaller of x and a number, NaN for NaN."""
    return lax.min(x, lax.full_like(x, bound))


def within_range(x: jax.Array) -> jax.Array:
    """x with its infinities replaced by the largest numbers of the dtype."""
    largest = float(jnp.finfo(x.dtype).max)
    return lax.clamp(lax.full_like(x, -largest, shape=()), x, lax.full_like(x, largest, shape=()))


def spread(reduced: jax.Array, like: jax.Array, axes: Sequence[int]) -> jax.Array:
    """Broadcast the result of a reduction of `like` over `axes` back to the shape of `like`."""
    return lax.broadcast_in_dim(reduced, like.shape, [d for d in range(like.ndim) if d not in axes])


def _working_arrays(name: str, args: Sequence[Any], broadcast: bool) -> tuple[list[jax.Array], Any]:
    dtype = jnp.result_type(*args)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError(f"{name} is a function of real numbers, but was given {dtype}; pass real arrays.")
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    working = jnp.float32 if jnp.finfo(dtype).bits < 32 else dtype
    arrays = [_converted(jnp.asarray(arg), working) for arg in args]
    if broadcast and len({array.shape for array in arrays}) > 1:
        arrays = jnp.broadcast_arrays(*arrays)
    return arrays, dtype


def _converted(array: jax.Array, dtype: Any) -> jax.Array:
    return array if array.dtype == dtype else lax.convert_element_type(array, dtype)


def _axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    requested = tuple(range(ndim)) if axis is None else (axis,) if hasattr(axis, "__index__") else tuple(axis)
    for one in requested:
        if not -ndim <= one < ndim:
            raise ValueError(f"{name}: axis {one} does not exist in an array of {ndim} dimensions.")
    axes = tuple(sorted({one % ndim for one in requested}))
    if len(axes) < len(requested):
        raise ValueError(f"{name}: axis {axis} names the same dimension twice.")
    return axes
