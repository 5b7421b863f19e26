"""Which kernels are in use, and why."""

import sys

__all__ = ["info"]


def info() -> dict[str, object]:
    """What this installation computes with: versions, and for each kernel whether it is in use and why.

    A kernel that has not been asked for yet is looked for, and compiled if it can be.

    >>> sorted(info())
    ['ctc', 'jax', 'python', 'stablegrad']
    >>> sorted(info()["ctc"])
    ['compiler', 'implementation', 'options', 'path', 'reason']
    """
    from importlib.metadata import version

    try:
        import jax

        from stablegrad.losses.jax.compiled import kernel
    except ImportError:
        jax_version, ctc = None, {"implementation": None, "reason": "JAX is not installed"}
    else:
        found = kernel()
        cpu = "compiled" if found.path else "pure"
        beside = jax.default_backend()
        reason = found.reason if beside == "cpu" else f"{found.reason}; on {beside} programs take the pure one"
        jax_version = jax.__version__
        ctc = {
            "implementation": cpu if beside == "cpu" else "pure",
            "reason": reason,
            "path": str(found.path) if found.path else None,
            "compiler": found.compiler or None,
            "options": " ".join(found.options) or None,
        }
    return {"stablegrad": version("stablegrad"), "python": sys.version.split()[0], "jax": jax_version, "ctc": ctc}
