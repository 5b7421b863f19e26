"""Losses that are right at every edge, usable without the compiler: `stablegrad.losses.ctc_loss` and its companions.

They are those of `stablegrad.losses.jax`, imported when first asked for.
"""

from typing import Any

__all__ = [
    "CTCAlignment",
    "CTCDecoded",
    "ctc_alignment",
    "ctc_greedy_decode",
    "ctc_loss",
    "ctc_posteriors",
    "ctc_pseudo_cost",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stablegrad.losses import jax

    return getattr(jax, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
