"""How much a plain program loses by rounding: Monte Carlo arithmetic.

At one point the rounding errors of a program may cancel, or be 0, by chance. Here each operation that rounds has its
result moved by half a unit in the last place, up or down at random; the largest error over some runs is what the
program loses there (Parker, Monte Carlo Arithmetic, UCLA 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

RUNS = 12
ROUNDS = frozenset(
    "add sub mul div exp exp2 expm1 log log1p sqrt rsqrt cbrt tanh logistic sin cos tan sinh cosh asinh acosh atanh "
    "asin acos atan atan2 pow integer_pow square erf erfc erf_inv lgamma digamma reduce_sum reduce_prod dot_general "
    "cumsum cumprod cumlogsumexp add_any".split()
)
BODIES = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


def results(f: Callable[..., Any], arguments: Sequence[Any], runs: int = RUNS) -> list[list[np.ndarray]]:
    """The results of `f`, a flat list, in each of some runs with random rounding."""
    closed = jax.make_jaxpr(f)(*arguments)
    change = _at_random(np.random.default_rng(0))
    return [[np.asarray(one) for one in _run(closed, arguments, change)] for _ in range(runs)]


def without_own_nan(f: Callable[..., Any], arguments: Sequence[Any]) -> list[np.ndarray]:
    """The results of `f` where 0 * inf, 0 / 0, inf - inf and their like are 0.

    NaN is left where an argument is NaN, or a function is not defined at what it is given: the logarithm of a negative
    number, say.
    """
    return [np.asarray(one) for one in _run(jax.make_jaxpr(f)(*arguments), arguments, _zero_for_new_nan)]


def _zero_for_new_nan(name: str, inputs: list[Any], out: list[Any]) -> list[Any]:
    if name not in ("mul", "div", "add", "sub", "reduce_sum", "dot_general", "cumsum"):
        return out
    if any(np.isnan(np.asarray(one, np.float64)).any() for one in inputs):
        return [_zero_unless_given(one, inputs) for one in out]
    return [jax.numpy.where(jax.numpy.isnan(one), 0, one) for one in out]


def _zero_unless_given(one: Any, inputs: list[Any]) -> Any:
    """Elementwise: NaN stays where an operand is NaN. Along axes it stays everywhere."""
    if any(np.shape(i) not in ((), np.shape(one)) for i in inputs):
        return one
    given = np.any([np.broadcast_to(np.isnan(np.asarray(i)), np.shape(one)) for i in inputs], axis=0)
    return jax.numpy.where(jax.numpy.isnan(one) & ~given, 0, one)


def _run(closed: Any, arguments: Sequence[Any], change: Callable[[str, list[Any], list[Any]], list[Any]]) -> list[Any]:
    """`closed`, each operation's results as `change` makes them of its name, its inputs and its results."""
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(closed.jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else values[atom]

    for eqn in closed.jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        body = eqn.params.get(BODIES.get(eqn.primitive.name, ""))
        if body is not None:
            out = _run(body, inputs, change)
        else:
            out = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
            out = change(eqn.primitive.name, inputs, out if eqn.primitive.multiple_results else [out])
        values.update(zip(eqn.outvars, out, strict=True))
    return [read(v) for v in closed.jaxpr.outvars]


def _at_random(draw: np.random.Generator) -> Callable[[str, list[Any], list[Any]], list[Any]]:
    return lambda name, inputs, out: [_moved(one, draw) for one in out] if name in ROUNDS else out


def _moved(one: Any, draw: np.random.Generator) -> Any:
    if not np.issubdtype(one.dtype, np.floating):
        return one
    step = float(np.finfo(one.dtype).eps) / 2
    factor = 1 + step * draw.choice([-1.0, 1.0], np.shape(one))
    return jax.numpy.asarray(np.asarray(one, np.float64) * factor, one.dtype)
