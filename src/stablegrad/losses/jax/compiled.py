"""The compiled kernel as functions of JAX: float32, on CPUs. Elsewhere the same calls compute in JAX alone."""

import ctypes
import functools
import threading
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax

from stablegrad.losses.jax import pure
from stablegrad.losses.jax.lattice import Row
from stablegrad.losses.kernel.build import Kernel, built, switched_off

__all__ = ["chosen", "kernel", "loss_and_gradient", "loss_only", "posteriors"]

TARGET = "stablegrad_ctc"
SOURCES = ("ctc.c", "ctc_softmax.c", "ctc_lattice.c", "ctc_xla.c")
_lock = threading.Lock()


def kernel() -> Kernel:
    """The kernel, compiled and registered with JAX, or why there is none."""
    if switched_off():
        return Kernel(None, "STABLEGRAD_KERNELS is off")
    with _lock:
        return _registered()


def chosen(name: str, implementation: str | None, dtype: Any) -> bool:
    """Whether a call uses the kernel."""
    if implementation not in (None, "pure", "compiled"):
        raise ValueError(f"{name}: implementation must be None, 'pure' or 'compiled', not {implementation!r}.")
    if implementation == "pure":
        return False
    if dtype != jnp.float32:
        if implementation == "compiled":
            raise ValueError(f"{name}: the compiled kernel computes in float32, not in {dtype}.")
        return False
    found = kernel()
    if found.path is None and implementation == "compiled":
        raise RuntimeError(f"{name}: there is no compiled kernel: {found.reason}.")
    return found.path is not None


def loss_only(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    def on_cpu(scores, row):
        return _call(scores, row, kind, blank, result=False)[0]

    def elsewhere(scores, row):
        return pure.loss_only(scores, row, kind, blank)

    return lax.platform_dependent(scores, row, cpu=on_cpu, default=elsewhere)


def loss_and_gradient(scores: jax.Array, row: Row, kind: str, blank: int) -> tuple[jax.Array, jax.Array]:
    def on_cpu(scores, row):
        return _call(scores, row, kind, blank)

    def elsewhere(scores, row):
        return pure.loss_and_gradient(scores, row, kind, blank)

    return lax.platform_dependent(scores, row, cpu=on_cpu, default=elsewhere)


def posteriors(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    def on_cpu(scores, row):
        return _call(scores, row, kind, blank, posteriors=True)[1]

    def elsewhere(scores, row):
        return pure.posteriors(scores, row, kind, blank)

    return lax.platform_dependent(scores, row, cpu=on_cpu, default=elsewhere)


def _call(scores: jax.Array, row: Row, kind: str, blank: int, result: bool = True, posteriors: bool = False) -> Any:
    shapes = (scores.shape[:1], scores.shape) if result else (scores.shape[:1],)
    outputs = tuple(jax.ShapeDtypeStruct(shape, scores.dtype) for shape in shapes)
    call = jax.ffi.ffi_call(TARGET, outputs, vmap_method="broadcast_all")
    given = call(
        scores,
        row.labels,
        row.frames,
        row.lengths,
        are_logits=np.int32(kind == "logits"),
        blank=np.int32(blank),
        posteriors=np.int32(posteriors),
    )
    return tuple(_varying_as(scores, x) for x in given)


def _varying_as(like: jax.Array, x: jax.Array) -> jax.Array:
    """Inside shard_map: x, marked as different on the axes of the mesh over which `like` is."""
    axes = tuple(jax.typeof(like).manual_axis_type.varying - jax.typeof(x).manual_axis_type.varying)
    return lax.pcast(x, axes, to="varying") if axes else x


@functools.cache
def _registered() -> Kernel:
    found = built("ctc", SOURCES, include=(jax.ffi.include_dir(),), depends_on=f"jaxlib {jaxlib.__version__}")
    if found.path is None:
        return found
    try:
        function = ctypes.CDLL(str(found.path)).stablegrad_ctc_xla
    except (OSError, AttributeError) as error:
        return Kernel(None, f"{found.path} cannot be loaded: {error}", found.compiler, found.options)
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(function), platform="cpu")
    return found
