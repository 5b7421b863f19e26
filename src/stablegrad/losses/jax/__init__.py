"""Losses for JAX."""
