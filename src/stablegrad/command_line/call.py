"""One function at one point: which leaves are differentiated, and what its own failures look like."""

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stablegrad.command_line.errors import InputError, message_of, one_line
from stablegrad.command_line.user_file import UserFile

NEEDS_CONCRETE_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class _NotArrays(Exception):
    """A function returned something other than arrays; the message says what."""


@dataclass(frozen=True)
class Call:
    """A function of a person's file with the arguments that it is looked at with.

    Attributes:
        file: The file.
        name: The function's name in it.
        function: The function.
        arguments: Its arguments by name: any pytrees. Arrays and floats are inputs of the program; integers,
            booleans, strings and other objects are constants of it.
        label: What tells this example from the function's others, or "".
    """

    file: UserFile
    name: str
    function: Callable[..., Any]
    arguments: inspect.BoundArguments
    label: str = ""

    @functools.cached_property
    def line(self) -> int | None:
        """The line where the function is defined."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        if code is not None and code.co_filename == self.file.path:
            return code.co_firstlineno
        return self.file.line_of(self.name.split(".")[0])

    @functools.cached_property
    def _flat(self) -> tuple[list[tuple[Any, Any]], Any]:
        return jax.tree_util.tree_flatten_with_path(list(self.arguments.arguments.values()))

    @functools.cached_property
    def leaves(self) -> list[jax.Array]:
        """The array leaves of the arguments: the inputs of `program`."""
        return [jnp.asarray(leaf) for _, leaf in self._flat[0] if is_array(leaf)]

    @functools.cached_property
    def float_positions(self) -> list[int]:
        """Which of `leaves` are of a floating-point type."""
        return [i for i, leaf in enumerate(self.leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    @functools.cached_property
    def leaf_names(self) -> list[str]:
        """A name for each of `leaves`: ``logits``, ``weights[0]['bias']``."""
        names = list(self.arguments.arguments)
        return [names[path[0].idx] + jax.tree_util.keystr(path[1:]) for path, leaf in self._flat[0] if is_array(leaf)]

    def program_of_names(self, **leaves: Any) -> dict[str, Any]:
        """`program` with its leaves by `leaf_names`."""
        return self.program(*(leaves[name] for name in self.leaf_names))

    def program(self, *leaves: Any) -> dict[str, Any]:
        """The function of its array leaves alone; its float results by name (``""`` for a lone array)."""
        supplied = iter(leaves)
        flat = [next(supplied) if is_array(leaf) else leaf for _, leaf in self._flat[0]]
        values = jax.tree_util.tree_unflatten(self._flat[1], flat)
        by_name = OrderedDict(zip(self.arguments.arguments, values, strict=True))
        filled = inspect.BoundArguments(self.arguments.signature, by_name)
        try:
            result = self.function(*filled.args, **filled.kwargs)
        except SystemExit as error:
            raise RuntimeError(f"it calls sys.exit({error.code!r}); a loss has to return") from error
        return _float_results(result)

    def program_of_floats(self, program: Callable[..., Any], *floats: Any) -> Any:
        """`program`, or what `stabilize` made of it, as a function of the float leaves alone."""
        leaves: list[Any] = list(self.leaves)
        for position, leaf in zip(self.float_positions, floats, strict=True):
            leaves[position] = leaf
        return program(*leaves)

    def blame(self, error: Exception) -> InputError:
        """What a person is told when their function raised `error`."""
        line = self.file.line_of_error(error)
        if isinstance(error, _NotArrays):
            return InputError(f"{self.name} {error}", self.file.name, self.line)
        if isinstance(error, NEEDS_CONCRETE_VALUES) or "concrete value" in message_of(error):
            message = (
                f"{self.name} needs concrete values here ({type(error).__name__}), so JAX cannot trace it; "
                "use jnp.where or lax.cond for a Python branch, jnp for numpy and float(); "
                "give an argument that is a setting as a Python int, bool or str"
            )
            return InputError(message, self.file.name, line or self.line)
        return InputError(f"{self.name} raised {one_line(error)}", self.file.name, line or self.line)

    def check(self) -> list[str]:
        """Trace the function once, without computing anything, and return the names of its float results.

        Raises:
            InputError: If the function raises, needs concrete values, or returns something that is no array.
        """
        try:
            return list(jax.eval_shape(self.program, *self.leaves))
        except Exception as error:
            raise self.blame(error) from error


def is_array(leaf: Any) -> bool:
    """Whether an argument's leaf is an input of the program, rather than a constant of it."""
    return isinstance(leaf, np.ndarray | np.generic | jax.Array)


def _float_results(result: Any) -> dict[str, Any]:
    flat, _ = jax.tree_util.tree_flatten_with_path(result, is_leaf=lambda leaf: leaf is None)
    if not flat:
        raise _NotArrays(f"returns {result!r}: no array at all")
    found = {}
    for path, leaf in flat:
        if leaf is None or not (is_array(leaf) or isinstance(leaf, bool | int | float | complex)):
            text = "None (is a return statement missing?)" if leaf is None else f"a value of type {type(leaf).__name__}"
            place = f" at {jax.tree_util.keystr(path)}" if path else ""
            raise _NotArrays(f"returns {text}{place}; it has to return arrays")
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            found[jax.tree_util.keystr(path)] = leaf
    return found


def sizes(leaves: Sequence[jax.Array]) -> int:
    """How many elements some arrays have together."""
    return sum(leaf.size for leaf in leaves)
