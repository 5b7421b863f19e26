"""How much a result moves when its inputs do: the error that no arithmetic of that precision can avoid."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stablegrad.command_line.call import Call
from stablegrad.command_line.compare import Results

STEP = 2.0**-30
PROBES = 8


def condition_numbers(
    call: Call, program: Callable[..., Any], gradient: bool, seed: int = 0
) -> Results | None:
    """Estimates of the relative condition number of each element of the results and of the gradient.

    The inputs are all moved at once by one part in 2**30, with signs drawn at random, in float64; the
    estimate is the largest of eight relative changes over the step. It is at most the condition number.

    Args:
        call: The function and its arguments.
        program: The stabilized program of the call's leaves.
        gradient: Whether the gradient's are wanted.
        seed: Of the signs.

    Returns:
        Arrays of the shapes of the results; 0 where nothing can be said. None when the program cannot be run
        so.
    """
    generator = np.random.default_rng(seed)

    def results(*floats: Any) -> Any:
        values, pullback = jax.vjp(lambda *z: call.program_of_floats(program, *z), *floats)
        return values, pullback(jax.tree_util.tree_map(jnp.ones_like, values)) if gradient else ()

    try:
        with jax.enable_x64(True):
            points = []
            for position in call.float_positions:
                leaf = np.asarray(call.leaves[position], np.float64)
                signs = generator.choice([-1.0, 1.0], (PROBES + 1, *leaf.shape))
                signs[0] = 0
                points.append(jnp.asarray(leaf * (1 + STEP * signs)))
            values, gradients = jax.tree_util.tree_map(np.asarray, jax.vmap(results)(*points))
    except Exception:  # the float32 run, which did not fail, is what counts; this only excuses its last bits
        return None
    return Results({name: _change(v) for name, v in values.items()}, [_change(g) for g in gradients])


def _change(stacked: np.ndarray) -> np.ndarray:
    first, moved = np.asarray(stacked[0], np.float64), np.asarray(stacked[1:], np.float64)
    with np.errstate(all="ignore"):
        change = np.max(np.abs(moved - first), axis=0) / (STEP * np.abs(first))
    return np.where(np.isfinite(change), change, 0.0)
