"""The derivative structure that the pure and the compiled computation share.

The loss is a `jax.custom_jvp` whose tangent is the sum of gradient times tangent: forward and reverse mode, and nothing
is computed twice. The gradient has a derivative of its own, always that of the pure computation, so that every order
exists.
"""

import functools

import jax
import jax.numpy as jnp

from stablegrad.losses.jax import compiled, pure
from stablegrad.losses.jax.lattice import Row

__all__ = ["loss_of_rows", "posteriors_of_rows"]


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def loss_of_rows(scores: jax.Array, row: Row, kind: str, blank: int, kernel: bool) -> jax.Array:
    """The loss of each row, (N,); `kernel`: by the compiled kernel where the program runs on a CPU."""
    if kernel:
        return compiled.loss_only(scores, row, kind, blank)
    return pure.loss_only(scores, row, kind, blank)


@loss_of_rows.defjvp
def _loss_rule(kind, blank, kernel, primals, tangents):
    loss, gradient = _loss_and_gradient(*primals, kind, blank, kernel)
    return loss, jnp.sum(gradient * tangents[0], axis=(1, 2))


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def _loss_and_gradient(scores, row, kind, blank, kernel):
    if kernel:
        return compiled.loss_and_gradient(scores, row, kind, blank)
    return pure.loss_and_gradient(scores, row, kind, blank)


@_loss_and_gradient.defjvp
def _gradient_rule(kind, blank, kernel, primals, tangents):
    scores, row = primals
    loss, gradient = _loss_and_gradient(scores, row, kind, blank, kernel)
    _, bend = jax.jvp(lambda scores: pure.gradient_of(scores, row, kind, blank), (scores,), (tangents[0],))
    return (loss, gradient), (jnp.sum(gradient * tangents[0], axis=(1, 2)), bend)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def posteriors_of_rows(scores: jax.Array, row: Row, kind: str, blank: int, kernel: bool) -> jax.Array:
    """The share of alignments that give each class at each frame, (N, T, C)."""
    if kernel:
        return compiled.posteriors(scores, row, kind, blank)
    return pure.posteriors(scores, row, kind, blank)


@posteriors_of_rows.defjvp
def _posteriors_rule(kind, blank, kernel, primals, tangents):
    scores, row = primals
    share = posteriors_of_rows(scores, row, kind, blank, kernel)
    _, bend = jax.jvp(lambda scores: pure.posteriors_of(scores, row, kind, blank), (scores,), (tangents[0],))
    return share, bend
