"""Arrays from a small expression language: ``normal(32, 10) * 1e3``.

The text is parsed to a syntax tree, and only the nodes named here are computed: nothing a person types is
evaluated as Python.

    numbers, lists       2, -1e3, [1, 2, 3], [[0, 1], [1, 0]]
    constants            pi, e, inf, nan
    operators            + - * / **, and a sign before a term
    functions            normal(shape), uniform(shape): the standard normal, and uniform on [0, 1)
                         zeros(shape), ones(shape), full(shape, value)
                         arange(n), arange(start, stop, step), linspace(start, stop, n)
                         one_hot(i, j, ..., classes): one row for each index
                         exp(x)

A shape is a few integers, ``normal(32, 10)``, or one tuple, ``full((32, 10), 2)``.
"""

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LARGEST_SIZE = 10_000_000
CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: np.float_power,  # never an integer power, which could grow without end
}


class ExpressionError(ValueError):
    """The text is not an expression of this language; the message says where and why."""


def evaluate(text: str, generator: np.random.Generator) -> Any:
    """The array or number that an expression stands for.

    Args:
        text: The expression.
        generator: The source of random numbers for ``normal`` and ``uniform``.

    Returns:
        A float64 or int64 array, or a Python int or float when the expression is a bare number. Overflow
        gives infinities as IEEE arithmetic does; there are no warnings.

    Raises:
        ExpressionError: If the text is not of the language, or would make more than ten million elements.

    Example:
        >>> evaluate("[1, 2] * 1e3 - 1", np.random.default_rng(0))
        array([ 999., 1999.])
        >>> evaluate("one_hot(2, 0, 3)", np.random.default_rng(0))
        array([[0., 0., 1.],
               [1., 0., 0.]])
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ExpressionError(f"not an expression: {error.msg} at column {error.offset}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"not an expression: {error}") from None
    try:
        with np.errstate(all="ignore"):
            result = _Evaluator(generator).value(tree.body)
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    if isinstance(result, np.ndarray | np.generic) and np.ndim(result) == 0 and not isinstance(tree.body, ast.Call):
        return result.item()
    return result


class _Evaluator:
    def __init__(self, generator: np.random.Generator) -> None:
        self.functions: dict[str, Callable[..., Any]] = {
            "normal": lambda *shape: generator.standard_normal(_shape(shape)),
            "uniform": lambda *shape: generator.random(_shape(shape)),
            "zeros": lambda *shape: np.zeros(_shape(shape)),
            "ones": lambda *shape: np.ones(_shape(shape)),
            "full": lambda shape, value: np.full(_shape([shape]), value),
            "arange": _arange,
            "linspace": _linspace,
            "one_hot": _one_hot,
            "exp": np.exp,
        }

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                if abs(number) >= 2**63 and isinstance(number, int):
                    raise ExpressionError(f"the integer at column {node.col_offset + 1} is too large; write 1e20")
                return number
            case ast.Name(id=name):
                if name not in CONSTANTS:
                    known = ", ".join([*CONSTANTS, *self.functions])
                    raise ExpressionError(f"unknown name {name!r} at column {node.col_offset + 1}; known: {known}")
                return CONSTANTS[name]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.binary(node, np.multiply, self.value(operand), -1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self.binary(node, OPERATORS[type(op)], self.value(left), self.value(right))
            case ast.List(elts=elements):
                return self.array(node, [self.value(element) for element in elements])
            case ast.Tuple(elts=elements):
                return tuple(self.value(element) for element in elements)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in self.functions:
                return self.call(node, name, [self.value(argument) for argument in arguments])
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if not keywords or name not in self.functions:
                raise ExpressionError(f"unknown function {name!r}; known: {', '.join(self.functions)}")
        text = ast.unparse(node)
        raise ExpressionError(
            f"{text!r} at column {node.col_offset + 1} is not part of this language; {self.hint(node)}"
        )

    def hint(self, node: ast.expr) -> str:
        """What to write instead of something that is not of the language."""
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Attribute(attr=name):
                if name in self.functions or name in CONSTANTS:
                    return f"write {name} alone, without a module"
            case ast.Call(func=ast.Name(id=name)) if name in self.functions:
                return f"give {name} its arguments by position"
        return f"it has numbers, lists, + - * / **, {', '.join([*CONSTANTS, *self.functions])}"

    def binary(self, node: ast.expr, operator: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        if isinstance(left, tuple) or isinstance(right, tuple):
            raise ExpressionError(f"a shape in {ast.unparse(node)!r} is no number")
        try:
            shape = np.broadcast_shapes(np.shape(left), np.shape(right))
        except ValueError:
            shapes = f"{np.shape(left)} and {np.shape(right)}"
            raise ExpressionError(f"the shapes {shapes} in {ast.unparse(node)!r} do not fit together") from None
        _check_size(shape)
        return operator(left, right)

    def array(self, node: ast.expr, elements: list[Any]) -> np.ndarray:
        if any(isinstance(element, tuple) for element in elements):
            raise ExpressionError(f"a tuple in the list {ast.unparse(node)!r}; write lists of lists")
        try:
            return np.array(elements)
        except ValueError:
            raise ExpressionError(f"the rows of {ast.unparse(node)!r} differ in shape") from None

    def call(self, node: ast.expr, name: str, arguments: list[Any]) -> Any:
        try:
            return self.functions[name](*arguments)
        except ExpressionError as error:
            raise ExpressionError(f"{ast.unparse(node)!r}: {error}") from None
        except (TypeError, ValueError, ZeroDivisionError):
            message = f"{name} does not take the arguments of {ast.unparse(node)!r}"
            raise ExpressionError(message) from None


def _integer(number: Any) -> int:
    if isinstance(number, tuple) or np.ndim(number) or number != number or abs(number) > 2**62 or number != int(number):
        raise ExpressionError(f"{number} is no integer")
    return int(number)


def _shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        sizes = sizes[0]
    shape = tuple(_integer(size) for size in sizes)
    if any(size < 0 for size in shape):
        raise ExpressionError(f"a negative size in the shape {shape}")
    _check_size(shape)
    return shape


def _check_size(shape: tuple[int, ...]) -> None:
    if math.prod(shape) > LARGEST_SIZE:
        raise ExpressionError(f"more than {LARGEST_SIZE} elements")


def _arange(*limits: Any) -> np.ndarray:
    start, stop, step = ([0, *limits, 1] if len(limits) == 1 else [*limits, 1])[:3]
    if len(limits) not in (1, 2, 3) or not all(math.isfinite(x) for x in (start, stop, step)) or step == 0:
        raise ValueError
    _check_size((max(0, math.ceil((stop - start) / step)),))
    return np.arange(start, stop, step)


def _linspace(start: Any, stop: Any, number: Any) -> np.ndarray:
    (size,) = _shape([number])
    return np.linspace(start, stop, size)


def _one_hot(*arguments: Any) -> np.ndarray:
    *indices, classes = arguments
    if len(indices) == 1 and isinstance(indices[0], np.ndarray | tuple):
        indices = list(np.ravel(indices[0]))
    rows, columns = [_integer(index) for index in indices], _integer(classes)
    _shape((len(rows), columns))
    if any(not 0 <= index < columns for index in rows):
        raise ExpressionError(f"an index outside 0 to {columns - 1}")
    return np.equal(np.reshape(rows, (-1, 1)), np.arange(columns)).astype(float)
