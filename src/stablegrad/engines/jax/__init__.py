"""The JAX engine: capture, names of primitives, emission."""
