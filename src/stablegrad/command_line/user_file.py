"""Load a person's file and find its functions and the lines where things stand in it."""

import ast
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from stablegrad.command_line.errors import InputError, one_line


@dataclass(frozen=True)
class UserFile:
    """A person's file after it ran as a module.

    Attributes:
        name: The file as the person named it; every message uses this.
        path: The same, absolute.
        module: What the file defines.
        tree: Its syntax tree, for the lines of definitions.
    """

    name: str
    path: str
    module: ModuleType
    tree: ast.Module

    def line_of(self, name: str) -> int | None:
        """The last line at the file's outermost level that defines `name`, or None."""
        found = None
        for statement in self.tree.body:
            if name in _defined_names(statement):
                found = statement.lineno
        return found

    def line_in_mapping(self, name: str, key: str) -> int | None:
        """The line of the entry `key` in the dict display assigned to `name`; else the line of `name`."""
        for statement in self.tree.body:
            value = getattr(statement, "value", None)
            if name in _defined_names(statement) and isinstance(value, ast.Dict):
                for entry in value.keys:
                    if isinstance(entry, ast.Constant) and entry.value == key:
                        return entry.lineno
        return self.line_of(name)

    def line_of_error(self, error: BaseException) -> int | None:
        """The innermost line of this file that the exception, or the one it was raised from, went through."""
        chain: BaseException | None = error
        while chain is not None:
            frames = traceback.extract_tb(chain.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == self.path]
            if lines:
                return lines[-1]
            chain = chain.__cause__ or chain.__context__
        return None


def _defined_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def load(name: str) -> UserFile:
    """Run a file as a module, with its folder first on the path, as Python runs a script.

    Args:
        name: The path of a Python file.

    Raises:
        InputError: If there is no such file, it is not Python, or running it raises.
    """
    path = Path(name).resolve()
    if not path.is_file():
        kind = "a folder, not a file" if path.is_dir() else "no such file"
        raise InputError(f"{kind}; give the path of a Python file that defines your functions", name)
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise InputError(f"syntax error: {error.msg}", name, error.lineno) from error
    except ValueError as error:
        raise InputError(f"not a Python file: {error}", name) from error

    module_name = path.stem
    while module_name in sys.modules:
        module_name += "_"
    # A loader by name, so that a file of any suffix is read as Python.
    loader = importlib.machinery.SourceFileLoader(module_name, str(path))
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    file = UserFile(name, str(path), module, tree)
    sys.modules[module_name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"running the file raised {one_line(error)}", name, file.line_of_error(error)) from error
    return file


def public_functions(file: UserFile) -> dict[str, Callable[..., Any]]:
    """The functions that the file itself defines under a public name, in the order of the file.

    Wrapped functions count (``jax.jit``, ``functools.partial`` of the file's own functions, and so on);
    classes and what was imported do not.
    """
    found = {
        name: value
        for name, value in vars(file.module).items()
        if not name.startswith("_") and _is_own_function(value, file.module.__name__)
    }
    return dict(sorted(found.items(), key=lambda item: file.line_of(item[0]) or 0))


def _is_own_function(value: Any, module_name: str) -> bool:
    if not callable(value) or inspect.isclass(value):
        return False
    inner = inspect.unwrap(getattr(value, "func", value))
    return getattr(inner, "__module__", None) == module_name


def named_function(file: UserFile, name: str) -> Callable[..., Any]:
    """The function that FILE::FUNCTION asks for.

    Args:
        file: The loaded file.
        name: A name in it; ``Class.method`` reaches a static method.

    Raises:
        InputError: If there is no such name, or it is not a function.
    """
    value: Any = file.module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = ", ".join(public_functions(file)) or "none"
            raise InputError(f"no function {name!r} here; the functions are: {known}", file.name) from None
    if not callable(value) or inspect.isclass(value):
        kind = "a class" if inspect.isclass(value) else f"of type {type(value).__name__}"
        line = file.line_of(name.split(".")[0])
        raise InputError(f"{name!r} is {kind}, not a function", file.name, line)
    return value
