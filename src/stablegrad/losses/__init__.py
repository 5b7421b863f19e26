"""Losses."""
from stablegrad.losses.jax.ctc_loss import *
