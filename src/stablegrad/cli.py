"""The ``stablegrad`` command."""

import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

try:
    import typer
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
except ModuleNotFoundError as error:  # pragma: no cover: the tests run with both
    sys.exit(f"stablegrad: the command line needs {error.name}; pip install 'stablegrad[jax,diagnose]'")

from stablegrad.command_line.errors import InputError, one_line

if TYPE_CHECKING:
    from stablegrad.command_line.call import Call
    from stablegrad.command_line.measure import Measurement

# What a table needs when it is printed to a file or a pipe, which have no width of their own.
WIDTH_WITHOUT_TERMINAL = 140

app = typer.Typer(
    name="stablegrad",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Values and gradients that stay finite and accurate.",
)


FLOAT_TYPES = ("float32", "float64")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"stablegrad {importlib.metadata.version('stablegrad')}")
        raise typer.Exit


@app.callback()
def _several_commands(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version.")
    ] = False,
) -> None:
    """Values and gradients that stay finite and accurate."""


@app.command()
def explain(
    target: Annotated[str, typer.Argument(metavar="FILE[::FUNCTION]", help="A Python file, and one function.")],
    npz: Annotated[
        Path | None, typer.Option("--npz", help="Inputs: an .npz file, its names those of the parameters.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=EXPRESSION", help="An input: x=normal(32,10)*1e3. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of normal and uniform, and of samples.")] = 0,
    dtype: Annotated[
        str | None,
        typer.Option(metavar=f"[{'|'.join(FLOAT_TYPES)}]", help="Cast every floating-point input. Default: float32."),
    ] = None,
    gradient: Annotated[bool, typer.Option("--gradient/--no-gradient", help="Whether to look at derivatives.")] = True,
    jit: Annotated[bool, typer.Option("--jit", help="Run the plain and the stabilized program under jax.jit.")] = False,
    entries: Annotated[
        int,
        typer.Option("--exact-entries", min=0, help="Derivative entries checked exactly; of more, a sample."),
    ] = 64,
    seconds: Annotated[
        float,
        typer.Option("--exact-seconds", min=0, help="Bound on the estimated time of one exact evaluation."),
    ] = 20,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 when a stabilized result is wrong.")] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="On a bug of stablegrad, show where it happened.")
    ] = False,
) -> None:
    """Show what goes wrong in each function of FILE, and what stabilize makes of it.

    Inputs come from the file's EXAMPLES, a dict from function name to a dict of arguments by name, a tuple
    of arguments, or a list of several of these; or from --npz and --input. The exit status is 0, or 1 with
    --check when a stabilized result is wrong, or 2 when the file or the inputs cannot be used.
    """
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=WIDTH_WITHOUT_TERMINAL)
    try:
        with _float_type(dtype):
            with console.status(f"loading {target}"):
                calls, without = _calls(target, npz, inputs or [], seed, dtype)
            if without:
                text = f"without inputs: {', '.join(without)}\n"
                console.print(text, style="dim", markup=False, highlight=False)
            measurements = _measure(calls, (entries, seconds, seed), gradient, jit, console)
    except InputError as error:
        _fail(str(error))
    except Exception as error:
        if traceback:
            raise
        _fail(f"{target}: {one_line(error)}; this is a bug of stablegrad, --traceback shows where")
    if check and any(measurement.stabilized_wrong for measurement in measurements):
        raise typer.Exit(1)


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(f"stablegrad: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(2)


@contextlib.contextmanager
def _float_type(dtype: str | None) -> Iterator[None]:
    """Let JAX hold float64 while `dtype` asks for it."""
    if dtype is not None and dtype not in FLOAT_TYPES:
        raise InputError(f"--dtype {dtype}: the types are {' and '.join(FLOAT_TYPES)}")
    try:
        import jax
    except ModuleNotFoundError:
        raise InputError("explain needs JAX; pip install 'stablegrad[jax,diagnose]'") from None
    if dtype is None:
        yield
    else:
        with jax.enable_x64(dtype == "float64"):
            yield


def _calls(
    target: str, npz: Path | None, inputs: list[str], seed: int, dtype: str | None
) -> "tuple[list[Call], list[str]]":
    """Load the file and fit the inputs to its functions; also the names of functions that got none.

    Every mistake of the person's shows here, before anything is computed.
    """
    import numpy as np

    from stablegrad.command_line.inputs import (
        calls_from_examples,
        calls_from_options,
        read_expressions,
        read_npz,
    )
    from stablegrad.command_line.user_file import load, named_function, public_functions

    name, separator, function = target.rpartition("::")
    file = load(name if separator else target)
    functions = {function: named_function(file, function)} if separator else public_functions(file)
    if not functions:
        raise InputError("this file defines no public function", file.name)
    float_type = np.dtype(dtype) if dtype else None
    if npz or inputs:
        typed = read_expressions(inputs, seed)
        given = {**(read_npz(str(npz)) if npz else {}), **typed}
        calls = calls_from_options(file, functions, given, float_type, list(typed))
    else:
        calls = calls_from_examples(file, functions, float_type)
    if not calls:
        what = f"{function} has no inputs" if separator else "no function has inputs"
        line = file.line_of(function) if separator else file.line_of("EXAMPLES")
        how = "add it to EXAMPLES in the file" if line else "define EXAMPLES = {function name: arguments} in the file"
        raise InputError(f"{what}; {how}, or give --npz FILE or --input NAME=EXPRESSION", file.name, line)
    for call in calls:
        if not call.check():
            message = f"{call.name} returns no floating-point number, so there is nothing to compare"
            raise InputError(message, file.name, call.line)
    return calls, [other for other in functions if other not in {call.name for call in calls}]


def _measure(
    calls: "Sequence[Call]", limits: tuple[int, float, int], gradient: bool, jit: bool, console: Console
) -> "list[Measurement]":
    """Measure and show one call after the other, with a progress line where there is a terminal."""
    from stablegrad.command_line.measure import measure
    from stablegrad.command_line.table import show, summary
    from stablegrad.command_line.truth import Limits

    live = console if console.is_terminal else Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    measurements = []
    with Progress(*columns, console=live, transient=True, disable=not live.is_terminal) as progress:
        task = progress.add_task("", total=len(calls))
        for call in calls:

            def stage(text: str, name: str = call.name) -> None:
                progress.update(task, description=f"{name}: {text}")

            measurement = measure(call, Limits(*limits), gradient=gradient, jit=jit, progress=stage)
            measurements.append(measurement)
            show(measurement, console)
            progress.advance(task)
    console.print(summary(measurements))
    return measurements


def main() -> None:
    """Run the command; the entry point that is installed as ``stablegrad``."""
    app()


if __name__ == "__main__":
    main()
