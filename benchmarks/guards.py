"""What the guards of untaken branches cost: stabilized against plain, value and gradient under jit.

    python benchmarks/guards.py [--rounds N] [--check]

Plain is the program as it was written, whose gradient is NaN; the guard may add at most 5 percent to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from paired import Ratio, in_turn
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stablegrad import explain, stabilize

BAR = 1.05
SIZE = 8_000_000
ROW = 100


def values(size: int) -> jax.Array:
    """Half of them take the branch that fails."""
    return jax.random.normal(jax.random.key(0), (size,))


def counts(size: int) -> jax.Array:
    return jnp.maximum(values(size), 0)


def rows(size: int) -> jax.Array:
    return values(size).reshape(-1, ROW).at[::7].set(0)


def masked(size: int) -> jax.Array:
    x = values(size).reshape(-1, ROW)
    return jnp.where(x > 0, x, 0)


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[int], jax.Array]]] = {
    "where(x > 0, log(x), 0)": (lambda x: jnp.where(x > 0, jnp.log(x), 0), values),
    "where(x > 0, sqrt(x), 0)": (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0), values),
    "where(x > 0, x log(x), 0)": (lambda x: jnp.where(x > 0, x * jnp.log(x), 0), counts),
    "where(x != 0, sin(x) / x, 1)": (lambda x: jnp.where(x != 0, jnp.sin(x) / x, 1), counts),
    "where(x > 0, x ** 0.3, 0)": (lambda x: jnp.where(x > 0, x**0.3, 0), values),
    "where(|x| < 1, arccos(x), 0)": (lambda x: jnp.where(jnp.abs(x) < 1, jnp.arccos(x), 0), values),
    "nested": (lambda x: jnp.where(x > 0, jnp.where(x < 1, jnp.log(x) / jnp.sqrt(1 - x), 0), 0), values),
    "log(where(x > 0, x, 1))": (lambda x: jnp.log(jnp.where(x > 0, x, 1)), values),
    "nansum(log(x))": (lambda x: jnp.nansum(jnp.log(x)), values),
    "(x > 0) * log(x) masked": (lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0), axis=-1), masked),
    "mean of taken": (
        lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0), -1) / jnp.maximum(jnp.sum(x > 0, -1), 1),
        masked,
    ),
    "norms of rows": (lambda x: jnp.sqrt(jnp.sum(x**2, axis=-1)), rows),
    "unit rows, where": (
        lambda x: (
            jnp.where(jnp.sum(x**2, -1, keepdims=True) > 0, x / jnp.sqrt(jnp.sum(x**2, -1, keepdims=True)), 0)
            * values(ROW)
        ),
        rows,
    ),
}


def measure(f: Callable[[Any], Any], x: jax.Array, rounds: int) -> Ratio:
    programs = [jax.jit(jax.value_and_grad(lambda x, g=g: jnp.sum(g(x)))).lower(x).compile() for g in (stabilize(f), f)]
    return in_turn(*(lambda p=p: jax.block_until_ready(p(x)) for p in programs), rounds, warm=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a guard adds more than 5 percent")
    options = parser.parse_args()
    table = Table("program", "rewrites", "plain, ms", "stabilized / plain", title="value and gradient, median of pairs")
    over = []
    for name, (f, arguments) in track(list(CASES.items()), "measuring", console=Console(stderr=True)):
        x = arguments(SIZE)
        ratio = measure(f, x, options.rounds)
        over += [name] * (ratio.median > BAR)
        count = len(explain(f)(x).rewrites)
        table.add_row(name, str(count), f"{1e3 * min(ratio.baseline):.1f}", str(ratio))
    Console().print(table)
    print(f"over {BAR}: {', '.join(over) or 'none'}")
    return int(options.check and bool(over))


if __name__ == "__main__":
    sys.exit(main())
