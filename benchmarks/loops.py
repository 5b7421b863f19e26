"""Recursions over probabilities in a scan, stabilized, against the log-domain scan that one writes by hand.

    python benchmarks/loops.py [--rounds N] [--check]

Time of value and gradient under jit, and the error of both against the log-domain scan in float64. CTC may take 1.4
times as long as by hand, the HMM, whose step is a matrix product, 0.7 times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from paired import in_turn
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stablegrad import stabilize

NEVER = -1e30


def extended(labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The labels with blanks between them, and where a state may be entered from two before it."""
    states = jnp.zeros(2 * labels.shape[0] + 1, int).at[1::2].set(labels)
    jumps = (states[2:] != 0) & (states[2:] != states[:-2])
    return states, jnp.concatenate([jnp.zeros(2, bool), jumps])


def ctc(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """As a textbook has it: probabilities, masks by `where`."""
    states, jumps = extended(labels)
    y = jax.nn.softmax(logits)[:, states]
    start = jnp.zeros(states.shape[0]).at[:2].set(y[0, :2])

    def step(a: jax.Array, y: jax.Array) -> tuple[jax.Array, None]:
        one = jnp.concatenate([jnp.zeros(1), a[:-1]])
        two = jnp.concatenate([jnp.zeros(2), a[:-2]])
        return (a + one + jnp.where(jumps, two, 0)) * y, None

    a, _ = lax.scan(step, start, y[1:])
    return -jnp.log(a[-1] + a[-2])


def ctc_by_hand(logits: jax.Array, labels: jax.Array) -> jax.Array:
    states, jumps = extended(labels)
    y = jax.nn.log_softmax(logits)[:, states]
    start = jnp.full(states.shape[0], NEVER, y.dtype).at[:2].set(y[0, :2])

    def step(a: jax.Array, y: jax.Array) -> tuple[jax.Array, None]:
        one = jnp.concatenate([jnp.full(1, NEVER, y.dtype), a[:-1]])
        two = jnp.where(jumps, jnp.concatenate([jnp.full(2, NEVER, y.dtype), a[:-2]]), NEVER)
        return jax.nn.logsumexp(jnp.stack([a, one, two]), axis=0) + y, None

    a, _ = lax.scan(step, start, y[1:])
    return -jnp.logaddexp(a[-1], a[-2])


def batch(loss: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    return lambda logits, labels: jnp.mean(jax.vmap(loss)(logits, labels))


def hmm(logits: jax.Array, transition: jax.Array) -> jax.Array:
    matrix, emission = jax.nn.softmax(transition, axis=1), jax.nn.softmax(logits)
    states = transition.shape[0]
    a, _ = lax.scan(lambda a, e: ((a @ matrix) * e, None), jnp.ones(states) / states, emission)
    return jnp.log(jnp.sum(a))


def hmm_by_hand(logits: jax.Array, transition: jax.Array) -> jax.Array:
    matrix, emission = jax.nn.log_softmax(transition, axis=1), jax.nn.log_softmax(logits)
    states = transition.shape[0]

    def step(a: jax.Array, e: jax.Array) -> tuple[jax.Array, None]:
        return jax.nn.logsumexp(a[:, None] + matrix, axis=0) + e, None

    a, _ = lax.scan(step, jnp.full(states, -np.log(states), emission.dtype), emission)
    return jax.nn.logsumexp(a)


@dataclass(frozen=True)
class Case:
    name: str
    naive: Callable[..., jax.Array]
    by_hand: Callable[..., jax.Array]
    arguments: tuple[Any, ...]
    by: tuple[int, ...]
    bar: float


def ctc_case(rows: int, frames: int, classes: int, count: int, scale: float) -> Case:
    random = np.random.default_rng(0)
    logits = (scale * random.normal(size=(rows, frames, classes))).astype(np.float32)
    labels = random.integers(1, classes, (rows, count))
    name = f"CTC, {rows} x {frames} frames, {classes} classes, {count} labels, scale {scale:g}"
    return Case(name, batch(ctc), batch(ctc_by_hand), (logits, labels), (0,), 1.4)


def hmm_case(frames: int, states: int) -> Case:
    random = np.random.default_rng(0)
    arguments = tuple(random.normal(size=(n, states)).astype(np.float32) for n in (frames, states))
    return Case(f"HMM, {frames} frames, {states} states", hmm, hmm_by_hand, arguments, (0, 1), 0.7)


def cases() -> list[Case]:
    return [
        ctc_case(16, 150, 32, 30, 1),
        ctc_case(16, 500, 64, 80, 1),
        ctc_case(4, 2000, 32, 200, 100),
        hmm_case(10_000, 64),
    ]


def compiled(loss: Callable[..., jax.Array], case: Case, arguments: tuple[Any, ...]) -> Any:
    return jax.jit(jax.value_and_grad(loss, case.by)).lower(*arguments).compile()


def errors(case: Case, got: Any) -> tuple[float, float]:
    """Relative error of the value, largest error of the gradient, against the scan by hand in float64."""
    with jax.enable_x64(True):
        arguments = tuple(a.astype(np.float64) if a.dtype == np.float32 else a for a in case.arguments)
        value, slopes = jax.device_get(compiled(case.by_hand, case, arguments)(*arguments))
    off = max(float(np.abs(np.asarray(g, np.float64) - s).max()) for g, s in zip(got[1], slopes, strict=True))
    return abs(float(got[0]) / float(value) - 1), off


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--check", action="store_true", help="exit with 1 when one takes longer than it may")
    options = parser.parse_args()
    table = Table("scan", "by hand, ms", "stabilized / by hand", "may be", "error of value; gradient", "by hand")
    over = []
    for case in track(cases(), "measuring", console=Console(stderr=True), transient=True):
        programs = [compiled(loss, case, case.arguments) for loss in (stabilize(case.naive), case.by_hand)]
        runs = [lambda p=p, a=case.arguments: jax.block_until_ready(p(*a)) for p in programs]
        ratio = in_turn(*runs, options.rounds, warm=2)
        found = ["{:.0e}; {:.0e}".format(*errors(case, run())) for run in runs]
        table.add_row(case.name, f"{1e3 * min(ratio.baseline):.1f}", str(ratio), f"{case.bar:g}", *found)
        over += [case.name] * (ratio.median > case.bar)
    Console(width=160).print(table)
    print("over: " + ("; ".join(over) or "none"))
    return int(options.check and bool(over))


if __name__ == "__main__":
    sys.exit(main())
