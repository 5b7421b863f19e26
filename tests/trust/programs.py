"""Random programs as expressions in two vectors, x and y: text, so that what was found can be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax, nn
from jax.scipy import special

SIZE = 3
NAMES = {"jnp": jnp, "nn": nn, "lax": lax, "special": special, "np": np, "jax": jax}
WEIGHTS = np.array([[1.0, 0.5, 0.25], [0.5, 2.0, 1.0], [0.25, 1.0, 4.0]], np.float32)

# In each {0} stands for a vector.
ELEMENTWISE = """
    jnp.exp({0}) | jnp.exp(-{0}) | jnp.expm1({0}) | jnp.log({0}) | jnp.log1p({0}) | jnp.sqrt({0}) | lax.rsqrt({0})
    nn.sigmoid({0}) | nn.softplus({0}) | nn.log_sigmoid({0}) | jnp.tanh({0}) | nn.silu({0}) | nn.gelu({0})
    nn.relu({0}) | jnp.cos({0}) | jnp.arcsinh({0}) | jnp.cbrt({0}) | jnp.log10({0})
    jnp.square({0}) | ({0})**3 | ({0})**-1 | ({0})**0.5 | ({0})**1.5 | jnp.abs({0}) | jnp.sign({0}) | jnp.exp2({0})
    -({0}) | (1 - {0}) | (1 + {0}) | ({0} - 1) | 2 * {0} | {0} / 3 | jnp.sin({0}) | jnp.cosh({0}) | jnp.sinh({0})
    jnp.clip({0}, 1e-7, 1.0) | jnp.maximum({0}, 0.0) | jnp.minimum({0}, 1.0) | jnp.where({0} > 0, {0}, 0.0)
    jnp.where({0} > 0, jnp.log({0}), 0.0) | 1 / (1 + jnp.exp(-{0})) | jnp.exp({0}) / (1 + jnp.exp({0}))
    special.erf({0}) | special.xlogy({0}, {0}) | jnp.log(jnp.exp({0})) | jnp.log2({0}) | jnp.arctan({0})
""".replace("\n", "|").split("|")
ROWS = """
    nn.softmax({0}) | nn.log_softmax({0}) | jnp.exp({0}) / jnp.sum(jnp.exp({0})) | {0} - jnp.max({0})
    {0} - nn.logsumexp({0}) | {0} / jnp.sum({0}) | {0} / jnp.linalg.norm({0}) | jnp.cumsum({0}) | {0} - jnp.mean({0})
    {0} / jnp.maximum(jnp.linalg.norm({0}), 1e-12) | jnp.exp({0} - jnp.max({0})) | {0} @ W | jnp.flip({0})
    ({0} - jnp.mean({0})) / jnp.sqrt(jnp.var({0}) + 1e-5) | jnp.where(jnp.arange(3) < 2, {0}, -jnp.inf)
    {0}[::-1] | jnp.concatenate([{0}[1:], {0}[:1]]) | jnp.stack([{0}, {0}]).T[:, 0] | {0}[jnp.array([2, 0, 1])]
    {0}.reshape(3, 1).sum(1) | jnp.pad({0}[:2], (0, 1)) | jnp.sort({0})
""".replace("\n", "|").split("|")
PAIRS = """
    {0} + {1} | {0} - {1} | {0} * {1} | {0} / {1} | jnp.maximum({0}, {1}) | jnp.minimum({0}, {1})
    jnp.logaddexp({0}, {1}) | jnp.where(x > y, {0}, {1}) | special.xlogy({0}, {1}) | jnp.hypot({0}, {1})
    {0} * jnp.log({1}) | {0} / (1 + {1}) | {0} * (1 - {1}) | jnp.exp({0} - {1})
""".replace("\n", "|").split("|")
ENDS = """
    {0} | {0} | {0} | jnp.sum({0}) | jnp.mean({0}) | jnp.max({0}) | jnp.prod({0}) | jnp.log({0}) | jnp.log1p({0})
    jnp.log(jnp.sum({0})) | nn.logsumexp({0}) | jnp.linalg.norm({0}) | jnp.sqrt(jnp.sum(jnp.square({0}))) | jnp.std({0})
    jnp.log(jnp.sum(jnp.exp({0}))) | -jnp.sum({0} * jnp.log({0})) | jnp.log({0}[1]) | jnp.sum({0} * {0}) | 1 / {0}
    -jnp.log({0})[0] | jnp.sum(jnp.where(y > 0, y * jnp.log({0}), 0.0)) | -jnp.mean(y * jnp.log({0}))
""".replace("\n", "|").split("|")


def _texts(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


ELEMENTWISE, ROWS, PAIRS, ENDS = map(_texts, (ELEMENTWISE, ROWS, PAIRS, ENDS))
VALUES = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-4, -1e-4, 1e-8, 10.0, -10.0, 20.0, -20.0, 50.0, -50.0, 89.0]
VALUES += [-89.0, 120.0, -120.0, 1e4, 1e-30, 1e-39, 1e30]
NOT_FINITE = [np.inf, -np.inf, np.nan]


Choose = Callable[[Sequence[Any]], Any]


def expression(choose: Choose) -> str:
    """One to three vectors combined, and what is made of them in the end."""
    text = _vector(choose)
    for _ in range(choose([0, 1, 1, 1, 2, 2])):
        text = "(" + choose(PAIRS).format(text, _vector(choose)) + ")"
    return choose(ENDS).format(text)


def _vector(choose: Choose) -> str:
    """x or y, through one or two operations."""
    text = choose("xy")
    for _ in range(choose([1, 2])):
        text = f"({choose(choose([ROWS, ELEMENTWISE, ELEMENTWISE, ELEMENTWISE])).format(text)})"
    return text


def rows(choose: Choose, count: int) -> np.ndarray:
    """Arguments, of shape (count, SIZE), at which programs break; every third row is a tie, every eighth may hold what
    is no number."""
    drawn = [[choose(VALUES + NOT_FINITE * 2 if k % 8 == 7 else VALUES) for _ in range(SIZE)] for k in range(count)]
    return np.array([[row[0]] * SIZE if k % 3 == 0 else row for k, row in enumerate(drawn)], np.float32)


@st.composite
def drawn(draw: Any, count: int) -> tuple[str, np.ndarray, np.ndarray]:
    """A program and `count` points, as a strategy."""

    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    return expression(choose), rows(choose, count), rows(choose, count)


def program(text: str) -> Callable[..., Any]:
    """The function of (x, y) that the expression is."""

    def f(x: Any, y: Any) -> Any:
        return eval(text, {**NAMES, "x": x, "y": y, "W": WEIGHTS.astype(x.dtype)})

    return f
