"""Calls that bind primitives which the numeric modules do not: random numbers, references, callbacks ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import io_callback
from jax.extend.random import threefry_2x32
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
X = jnp.array([0.5, 0.25, 0.75, 1.25])
KEY = jax.random.key(0)


def _reference(x: Any) -> Any:
    held = jax.new_ref(x)
    held[0] = x[1]
    return held[...] + jax.freeze(held)


def _random(key: Any) -> Any:
    first, second = jax.random.split(jax.random.clone(jax.random.fold_in(key, 1)))
    raw = jax.random.wrap_key_data(jax.random.key_data(second))
    return jax.random.normal(first, (3,)) + jax.random.gamma(raw, 2.0)


@jax.custom_vjp
def _own_backward(x: Any) -> Any:
    return jnp.sin(x)


_own_backward.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))


@jax.custom_jvp
def _own_forward(x: Any) -> Any:
    return jnp.sin(x)


_own_forward.defjvp(lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]))


def _window(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID")


def _effects(x: Any) -> Any:
    jax.debug.callback(lambda v: None, x)
    jax.debug.print("{}", x)
    return io_callback(np.sin, x, x, ordered=True) + jax.pure_callback(np.sin, x, x, vmap_method="sequential")


OTHER: dict[str, tuple[Callable[..., Any], tuple]] = {
    "jax.checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(x).sum())), (X,)),
    "jax.custom_jvp": (_own_forward, (X,)),
    "jax.custom_vjp": (_own_backward, (X,)),
    "jax.device_put": (lambda x: jax.device_put(x), (X,)),
    "jax.ad_checkpoint.checkpoint_name": (lambda x: checkpoint_name(x, "kept"), (X,)),
    "jax.random": (_random, (KEY,)),
    "jax.random.key": (lambda k: jax.random.normal(jax.random.key(k)), (1,)),
    "jax.extend.random": (lambda x: threefry_2x32(x, x), (jnp.zeros(2, jnp.uint32),)),
    "jax.new_ref": (_reference, (X,)),
    "jax.debug": (_effects, (X,)),
    "jax.jvp of a window": (lambda x: jax.jvp(_window, (x,), (x,)), (X,)),
    "jax.shard_map without types": (
        jax.shard_map(lambda x: x + lax.psum(x, "d"), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False),
        (X,),
    ),
    "jax.export": (lambda x: jax.export.export(jax.jit(jnp.sin))(x).call(x), (X,)),
    "jax.named_call": (jax.named_call(jnp.sin, name="wave"), (X,)),
    "jax.closure_convert": (lambda x: jax.closure_convert(lambda y: y * x, x)[0](x, x), (X,)),
}  # fmt: skip
