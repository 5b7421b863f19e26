"""Conventions at points where the mathematics has no answer, or people disagree about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints


@dataclass(frozen=True)
class Policy:
    """What `stabilize` returns where there is no value or no derivative.

    Each field is one choice. With the defaults a slope is given where there is a usual subgradient, and a value is left
    undefined, NaN, where the engine leaves it so.

    Args:
        norm_slope_at_zero: the derivative of a length, `norm(x)` or `sqrt(sum(x**2))` in any spelling, where x is 0.
            "zero": the subgradient of least size. "undefined": NaN, as of the exact square root.
        empty_softmax: a row of a softmax, `softmax(x)` or `exp(x) / sum(exp(x))`, whose entries are all -inf: a query
            that may attend to nothing. "undefined": NaN, as 0 / 0. "zero": all 0, with derivative 0.
        zero_over_zero: a quotient of two zeros: the Dice score of two empty masks, the cosine of a zero vector.
            "undefined": NaN. "zero" and "one": that value, with derivative 0.

    Raises:
        ValueError: a value that the field does not have; the message lists those that it has.

    >>> from stablegrad import Policy
    >>> Policy(empty_softmax="zero")
    Policy(norm_slope_at_zero='zero', empty_softmax='zero', zero_over_zero='undefined')
    """

    norm_slope_at_zero: Literal["zero", "undefined"] = "zero"
    empty_softmax: Literal["undefined", "zero"] = "undefined"
    zero_over_zero: Literal["undefined", "zero", "one"] = "undefined"

    def __post_init__(self) -> None:
        hints = get_type_hints(Policy)
        for field in dataclasses.fields(self):
            value, allowed = getattr(self, field.name), get_args(hints[field.name])
            if not isinstance(value, str) or value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise ValueError(f"Policy: {field.name} is one of {listed}; it was given {value!r:.80}")


def checked_policy(policy: Any) -> Policy:
    """The policy, the default one for None."""
    if policy is None:
        return Policy()
    if not isinstance(policy, Policy):
        fields = ", ".join(field.name for field in dataclasses.fields(Policy))
        raise TypeError(
            f"policy is a stablegrad.Policy, such as Policy(norm_slope_at_zero='zero'), with the fields {fields}; "
            f"it was given {type(policy).__name__}: {policy!r:.80}"
        )
    return policy
