"""Plain, stabilized and exact results of one call side by side, in bits of error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import stablegrad
from stablegrad.command_line.call import Call
from stablegrad.command_line.compare import Results, Row, rows_of
from stablegrad.command_line.errors import one_line
from stablegrad.command_line.truth import Limits, exact_results


@dataclass
class Measurement:
    """All that the command shows about one call.

    Attributes:
        call: The call.
        rows: The table.
        report: What `stablegrad.explain` says, or None when it failed.
        notes: What was left out, or failed, and why.
        failed: Whether `stabilize` itself failed.
    """

    call: Call
    rows: list[Row] = field(default_factory=list)
    report: Any = None
    notes: list[str] = field(default_factory=list)
    failed: bool = False

    @property
    def plain_wrong(self) -> bool:
        """Whether the plain program is wrong somewhere."""
        return any(row.plain_wrong for row in self.rows)

    @property
    def stabilized_wrong(self) -> bool:
        """Whether the stabilized program is wrong somewhere, or could not be made."""
        return self.failed or any(row.stabilized_wrong for row in self.rows)

    @property
    def unknown(self) -> bool:
        """Whether nothing at all is known exactly."""
        return all(row.exact is None for row in self.rows)


def measure(
    call: Call, limits: Limits, *, gradient: bool = True, jit: bool = False, progress: Callable[[str], None]
) -> Measurement:
    """Run a call plainly, stabilized and exactly.

    Args:
        call: The function and its arguments.
        limits: How much may be evaluated exactly.
        gradient: Whether to look at derivatives too.
        jit: Whether the two float programs run under ``jax.jit``.
        progress: Is told what comes next.

    Raises:
        InputError: If the person's function raises.
    """
    measurement = Measurement(call)
    progress("plain")
    try:
        plain = _run(call, call.program, gradient, jit)
    except Exception as error:
        raise call.blame(error) from error
    progress("stabilized")
    stabilized = None
    try:
        measurement.report = stablegrad.explain(call.program_of_names)(**dict(zip(call.leaf_names, call.leaves)))
        stabilized = _run(call, stablegrad.stabilize(call.program), gradient, jit)
    except Exception as error:
        measurement.failed = True
        measurement.notes.append(f"stabilize failed, which is a bug of stablegrad: {one_line(error)}")
    progress("exact")
    exact = exact_results(call, limits, gradient)
    measurement.notes += exact.notes
    measurement.rows = rows_of(call, plain, stabilized, exact)
    return measurement


def _run(call: Call, program: Callable[..., Any], gradient: bool, jit: bool) -> Results:
    floats = [call.leaves[position] for position in call.float_positions]

    def of_floats(*floats: Any) -> Any:
        return call.program_of_floats(program, *floats)

    def with_gradient(*floats: Any) -> Any:
        values, pullback = jax.vjp(of_floats, *floats)
        return values, pullback(jax.tree_util.tree_map(jnp.ones_like, values))

    function = with_gradient if gradient else lambda *floats: (of_floats(*floats), ())
    values, gradients = (jax.jit(function) if jit else function)(*floats)
    return Results({name: np.asarray(v) for name, v in values.items()}, [np.asarray(g) for g in gradients])
