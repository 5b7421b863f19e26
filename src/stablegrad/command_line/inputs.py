"""Fit the inputs that a person gives to the parameters of a function."""

import inspect
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from stablegrad.command_line.array_expression import ExpressionError, evaluate
from stablegrad.command_line.call import Call, is_array
from stablegrad.command_line.errors import InputError, one_line
from stablegrad.command_line.user_file import UserFile


def read_npz(name: str) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` file by name.

    Raises:
        InputError: If it is missing, is no ``.npz`` file, or holds Python objects.
    """
    try:
        if not zipfile.is_zipfile(name):
            raise _no_archive(name)
        with np.load(name, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise InputError("no such file (asked for by --npz)", name) from None
    except ValueError as error:
        held = "it holds Python objects" if "pickle" in str(error) else one_line(error)
        raise InputError(f"not an .npz file of plain arrays: {held}", name) from error
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"not an .npz file of plain arrays: {one_line(error)}", name) from error


def _no_archive(name: str) -> InputError:
    """What a file is that is not the archive that numpy.savez writes."""
    with open(name, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            return InputError("this is a single array; save with numpy.savez and argument names", name)
    how = "write one with numpy.savez(FILE, x=...), the names those of the parameters"
    return InputError(f"not an .npz file of plain arrays; {how}", name)


def read_expressions(texts: Sequence[str], seed: int) -> dict[str, Any]:
    """The arrays that ``--input name=expression`` options stand for, by name.

    Raises:
        InputError: If one is not of that form.
    """
    generator = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, expression = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise InputError(f"--input {text!r}: write NAME=EXPRESSION, such as x=normal(32,10)*1e3")
        if name in found:
            raise InputError(f"--input {text!r}: {name} is given twice")
        try:
            found[name] = evaluate(expression, generator)
        except ExpressionError as error:
            raise InputError(f"--input {text!r}: {error}") from None
    return found


def converted(value: Any, dtype: np.dtype | None) -> Any:
    """An argument as the function gets it.

    Arrays, floats and lists of numbers become arrays; tuples, dicts and registered pytrees keep their
    structure; integers, booleans, strings and other objects stay as they are, as constants of the program.

    Args:
        value: What the person gave.
        dtype: The type that every floating-point array is cast to; None leaves a type as JAX would: float64
            becomes float32.
    """
    if is_array(value):
        return _cast(value, dtype)
    if isinstance(value, float):
        return _cast(np.asarray(value), dtype)
    if isinstance(value, list):
        try:
            array = np.array(value)
        except ValueError:  # rows of different length: a list of arrays
            array = np.array(None)
        return _cast(array, dtype) if array.dtype.kind in "biuf" else [converted(part, dtype) for part in value]
    if isinstance(value, dict):
        return {key: converted(part, dtype) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [converted(part, dtype) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return jax.tree_util.tree_map(lambda leaf: leaf if leaf is value else converted(leaf, dtype), value)


def _cast(array: Any, dtype: np.dtype | None) -> Any:
    if not isinstance(array, np.ndarray | np.generic) and array.dtype.name not in ("float32", "float64"):
        return array  # a typed random key, or a narrow float that was chosen on purpose
    array = np.asarray(array)
    if array.dtype.kind in "iu":
        # canonicalize: JAX's own choice between 32 and 64 bits
        return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
    if array.dtype.kind == "f" and dtype is not None:
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
    return array


def calls_from_examples(
    file: UserFile, functions: Mapping[str, Callable[..., Any]], dtype: np.dtype | None
) -> list[Call]:
    """One call for each example in the file's ``EXAMPLES`` of the functions asked for.

    ``EXAMPLES`` maps a function's name to its arguments, a dict by name or a tuple by position, or to a list
    of several of these.

    Raises:
        InputError: If ``EXAMPLES`` is not of that form, names no function of the file, or does not fit one.
    """
    examples = getattr(file.module, "EXAMPLES", {})
    if not isinstance(examples, Mapping):
        kind = type(examples).__name__
        message = f"EXAMPLES is of type {kind}; it has to be a dict from function name to arguments"
        raise InputError(message, file.name, file.line_of("EXAMPLES"))
    for key in examples:
        if not callable(getattr(file.module, str(key), None)):
            line = file.line_in_mapping("EXAMPLES", str(key))
            raise InputError(f"EXAMPLES names {key!r}, which is no function of this file", file.name, line)
    calls = []
    for name, function in functions.items():
        if name not in examples:
            continue
        given = examples[name]
        several = isinstance(given, list)
        if several and not given:
            raise _misfit(file, name, "is an empty list; give a dict of arguments by name or a tuple of arguments")
        for number, example in enumerate(given if several else [given], start=1):
            label = f"example {number} of {len(given)}" if several and len(given) > 1 else ""
            calls.append(_fit(file, name, function, example, label, dtype))
    return calls


def _misfit(file: UserFile, name: str, problem: str) -> InputError:
    return InputError(f"EXAMPLES[{name!r}] {problem}", file.name, file.line_in_mapping("EXAMPLES", name))


def _fit(
    file: UserFile, name: str, function: Callable[..., Any], example: Any, label: str, dtype: np.dtype | None
) -> Call:
    signature = _signature(file, name, function)
    place = f" ({label})" if label else ""
    try:
        if isinstance(example, Mapping):
            bound = signature.bind(**example)
        elif isinstance(example, tuple):
            bound = signature.bind(*example)
        else:
            form = f"a {type(example).__name__}"
            raise _misfit(file, name, f"is {form}{place}; give a dict of arguments by name or a tuple of arguments")
    except TypeError as error:
        raise _misfit(file, name, f"does not fit {name}{signature}{place}: {error}") from error
    return _call(file, name, function, bound, label, dtype, f"EXAMPLES[{name!r}]{place}")


def _signature(file: UserFile, name: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InputError(f"the parameters of {name} cannot be told: {error}", file.name, file.line_of(name)) from error


def _call(
    file: UserFile,
    name: str,
    function: Callable[..., Any],
    bound: inspect.BoundArguments,
    label: str,
    dtype: np.dtype | None,
    source: str,
) -> Call:
    for key, value in bound.arguments.items():
        for leaf in jax.tree_util.tree_leaves(value):
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biufcV":
                problem = f"{source}: {key} is an array of type {leaf.dtype}; it has to hold numbers"
                line = file.line_in_mapping("EXAMPLES", name) if source.startswith("EXAMPLES") else None
                raise InputError(problem, file.name, line)
        bound.arguments[key] = converted(value, dtype)
    return Call(file, name, function, bound, label)


def calls_from_options(
    file: UserFile,
    functions: Mapping[str, Callable[..., Any]],
    given: Mapping[str, Any],
    dtype: np.dtype | None,
    must_be_used: Sequence[str] = (),
) -> list[Call]:
    """One call for each function all of whose required parameters were given by ``--npz`` or ``--input``.

    Args:
        file: The file.
        functions: The functions asked for, by name.
        given: Values by parameter name.
        dtype: As for `converted`.
        must_be_used: The names that a person typed; each has to be a parameter of some function.

    Raises:
        InputError: If no function can be called so, or a name that was typed is no parameter of any.
    """
    calls: list[Call] = []
    missing: dict[str, list[str]] = {}
    parameters: set[str] = set()
    for name, function in functions.items():
        signature = _signature(file, name, function)
        by_name = {
            key: parameter
            for key, parameter in signature.parameters.items()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        parameters.update(by_name)
        lacking = [key for key, p in by_name.items() if p.default is p.empty and key not in given]
        if lacking:
            missing[name] = lacking
            continue
        positional = [key for key, p in by_name.items() if p.kind is p.POSITIONAL_ONLY and key in given]
        keywords = {key: given[key] for key in by_name if key in given and key not in positional}
        bound = signature.bind(*(given[key] for key in positional), **keywords)
        if bound.arguments:
            calls.append(_call(file, name, function, bound, "", dtype, "the inputs"))
    unknown = [name for name in must_be_used if name not in parameters]
    if unknown:
        known = ", ".join(sorted(parameters)) or "none"
        message = f"--input {unknown[0]}: no function has that parameter; the parameters are: {known}"
        raise InputError(message, file.name)
    if not calls:
        lines = "; ".join(f"{name} lacks {', '.join(lacking)}" for name, lacking in missing.items())
        one = next(iter(missing), None) if len(functions) == 1 else None
        raise InputError(
            f"no function can be called with the inputs given: {lines or 'there is no function'}",
            file.name,
            file.line_of(one) if one else None,
        )
    return calls
