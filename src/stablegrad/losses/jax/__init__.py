"""Losses for JAX, usable without the compiler."""

from stablegrad.losses.jax.ctc_alignment import CTCAlignment, ctc_alignment
from stablegrad.losses.jax.ctc_greedy_decode import CTCDecoded, ctc_greedy_decode
from stablegrad.losses.jax.ctc_loss import ctc_loss, ctc_posteriors, ctc_pseudo_cost

__all__ = [
    "CTCAlignment",
    "CTCDecoded",
    "ctc_alignment",
    "ctc_greedy_decode",
    "ctc_loss",
    "ctc_posteriors",
    "ctc_pseudo_cost",
]
