"""Stable elementary functions, one subpackage per engine: `stablegrad.numerics.jax`.

This module imports no engine, so that `import stablegrad` stays light.
"""
