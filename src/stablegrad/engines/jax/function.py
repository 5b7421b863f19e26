"""A stabilized function: captured and rewritten once per kind of arguments, then run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from stablegrad.engines.jax import _compat
from stablegrad.engines.jax.argument_names import argument_names
from stablegrad.engines.jax.capture import Capture
from stablegrad.engines.jax.engine import Rewriter, rewrite_program, run

# What JAX raises where a traced value is used as a Python number, a truth value, an index or a shape.
CONCRETE_ERRORS = (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError, TypeError)
MOST_KEPT = 256  # programs of one function; more kinds of arguments than that start again


class Stabilized:
    """`f` stabilized. Called as `f` is; also a method, when it stands in a class."""

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        rewriter: Any,
        restore: Callable[[Callable[..., Any]], Any],
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self.f = f
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.rewriter = rewriter
        self.restore = restore  # stabilizes a function again, when this one is unpickled
        self._programs: dict[Any, tuple[jex.ClosedJaxpr, Any]] = {}
        self._numbers_traced = True  # Python numbers are arguments like any other, until the function needs one

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dynamic, call, key = self._split(args, kwargs, self._numbers_traced)
        found = self._programs.get(key)
        if found is None:
            dynamic, key, closed, tree = self._traced(args, kwargs, dynamic, call, key)
            found = rewrite_program(closed, self.rewriter), tree
            if not any(map(_compat.is_tracer, closed.consts)):
                if len(self._programs) >= MOST_KEPT:
                    self._programs.clear()
                self._programs[key] = found
        closed, tree = found
        return jax.tree.unflatten(tree, [_as_array(leaf) for leaf in run(closed, dynamic)])

    def _traced(self, args: tuple, kwargs: dict[str, Any], dynamic: list, call: Any, key: Any) -> tuple:
        """Trace; where that fails because a Python number had to be concrete, hold the numbers fixed and try again."""
        try:
            return dynamic, key, *_trace(call, dynamic)
        except CONCRETE_ERRORS:
            fixed, call, key = self._split(args, kwargs, False)
            if len(fixed) == len(dynamic):
                raise
            traced = _trace_again(call, fixed)
            if traced is None:
                raise
            self._numbers_traced = False
            return fixed, key, *traced

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"stabilize({self.f!r})"

    def __reduce__(self) -> Any:
        """A decorated function is found again by its name; another is stabilized again."""
        return self.__qualname__ if _named(self) is self else (self.restore, (self.f,))

    def rewritten(
        self, args: tuple, kwargs: dict[str, Any], rewriter: Rewriter, on_capture: Callable[[Any], None]
    ) -> jex.ClosedJaxpr:
        """The rewritten program for these arguments, not kept."""
        dynamic, call, key = self._split(args, kwargs, self._numbers_traced)
        _, _, closed, _ = self._traced(args, kwargs, dynamic, call, key)
        names = self._argument_names(args, kwargs)

        def named(capture: Capture) -> None:
            if capture.traced is closed and len(names) == len(capture.graph.inputs):
                capture.names.update(zip(capture.graph.inputs, names))
            on_capture(capture)

        return rewrite_program(closed, rewriter, named)

    def _argument_names(self, args: tuple, kwargs: dict[str, Any]) -> list[str]:
        count = len(args)
        static = {k % count if -count <= k < 0 else k for k in self.static_argnums}
        args = tuple(None if k in static else a for k, a in enumerate(args))  # None has no leaves
        kwargs = {n: None if n in self.static_argnames else v for n, v in kwargs.items()}
        return argument_names(self.f, args, kwargs, lambda leaf: is_array(leaf, self._numbers_traced))

    def _split(
        self, args: tuple, kwargs: dict[str, Any], numbers_traced: bool
    ) -> tuple[list, Callable[[list], Any], Any]:
        """The leaves that are traced; the call from them; and what the program depends on."""
        count = len(args)
        static = {k % count if -count <= k < 0 else k for k in self.static_argnums}
        frozen_args = tuple((k, a) for k, a in enumerate(args) if k in static)
        frozen_kwargs = tuple(sorted((n, v) for n, v in kwargs.items() if n in self.static_argnames))
        open_args = tuple(a for k, a in enumerate(args) if k not in static)
        open_kwargs = {n: v for n, v in kwargs.items() if n not in self.static_argnames}
        leaves, tree = jax.tree.flatten((open_args, open_kwargs))
        leaves = [leaf if isinstance(leaf, jax.Array) else _unwrapped(leaf) for leaf in leaves]
        traced = [k for k, leaf in enumerate(leaves) if is_array(leaf, numbers_traced)]
        chosen = set(traced)
        fixed = tuple((k, type(leaf), leaf) for k, leaf in enumerate(leaves) if k not in chosen)
        dynamic = [leaves[k] for k in traced]
        f = self.f

        def call(values: list) -> Any:
            filled = list(leaves)
            for k, value in zip(traced, values):
                filled[k] = value
            given, named = jax.tree.unflatten(tree, filled)
            given = iter(given)
            held = dict(frozen_args)
            positional = [held[k] if k in held else next(given) for k in range(count)]
            return f(*positional, **named, **dict(frozen_kwargs))

        call = functools.wraps(f, updated=())(call) if hasattr(f, "__name__") else call
        key = (
            tree,
            tuple(_described(leaf) for leaf in dynamic),
            _hashable(fixed, "an argument that is no array"),
            _hashable(tuple((k, type(a), a) for k, a in frozen_args), "a static argument"),
            _hashable(tuple((n, type(v), v) for n, v in frozen_kwargs), "a static argument"),
            _compat.trace_context(),
        )
        return dynamic, call, key


def _named(function: Any) -> Any:
    """What stands in the function's module under its name."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


def is_array(leaf: Any, numbers_traced: bool = True) -> bool:
    """True for what is traced: arrays and floating numbers. Integers and truth values are held fixed: they count,
    index, choose and give shapes. A counter that changes with each call is better passed as an array."""
    if isinstance(leaf, (bool, int)):
        return False
    if isinstance(leaf, (float, complex)):
        return numbers_traced
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind not in "OSU"
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))


def _unwrapped(leaf: Any) -> Any:
    """The array of an object that says how it becomes one."""
    convert = getattr(leaf, "__jax_array__", None)
    return leaf if convert is None else convert()


def _as_array(leaf: Any) -> Any:
    """A result that is an argument or a number comes out as an array, as every other."""
    return leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)


def _described(leaf: Any) -> Any:
    return leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)


def _hashable(value: Any, what: str) -> Any:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"stabilize: {what} is not hashable, so that the traced program could not be found again: {value!r:.200}"
        ) from None
    return value


def _trace(call: Callable[[list], Any], dynamic: list) -> tuple[jex.ClosedJaxpr, Any]:
    def flat(*values: Any) -> Any:
        return call(list(values))

    if hasattr(call, "__wrapped__"):
        flat = functools.wraps(call.__wrapped__, updated=())(flat)  # JAX's errors name the user's function
    closed, shape = jax.make_jaxpr(flat, return_shape=True)(*dynamic)
    return closed, jax.tree.structure(shape)


def _trace_again(call: Callable[[list], Any], dynamic: list) -> tuple[jex.ClosedJaxpr, Any] | None:
    try:
        return _trace(call, dynamic)
    except CONCRETE_ERRORS:
        return None
