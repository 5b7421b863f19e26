"""The public barrier on arrays of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def keep(x: Any) -> Any:
    """See `stablegrad.keep`."""
    leaves, tree = jax.tree.flatten(x)
    for leaf in leaves:
        if not isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
            raise TypeError(
                f"keep takes arrays, numbers and pytrees of them, but was given {type(leaf).__name__}: {leaf!r:.80}"
            )
    return jax.tree.unflatten(tree, lax.optimization_barrier([jnp.asarray(leaf) for leaf in leaves]) if leaves else [])
