"""The one table of operations: name, number of inputs, kind and traits.

An engine maps its own primitives to these names (`engines/<name>/names.py`); rules, facts and the exact evaluator
know operations by these names alone. `exact` names what the operation means over the real numbers: an entry of
`stablegrad.exact.meanings`, or None where the meaning is "what the engine does" (integer work, opaque operations).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["input", "literal", "constant", "arithmetic", "moving", "region", "opaque"]


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation.

    Attributes:
        name: canonical name, shared by the engines.
        kind: how the compiler treats it (see `docs/architecture.md`).
        elementwise: output element i depends on element i of each input alone.
        commutative: the inputs may be exchanged.
        emitted: a function of `stablegrad.numerics` that only rules create, never a captured program.
    """

    name: str
    kind: Kind
    elementwise: bool = False
    commutative: bool = False
    emitted: bool = False
    traits: frozenset[str] = field(default_factory=frozenset)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (get_op, (self.name,))


OPS: dict[str, Op] = {}


def get_op(name: str) -> Op:
    return OPS[name]


def _add(kind: Kind, names: str, **traits: object) -> None:
    for name in names.split():
        OPS[name] = Op(name, kind, **traits)  # type: ignore[arg-type]


_add("input", "input")
_add("literal", "literal")
_add("constant", "constant")

# Elementwise arithmetic of one input.
_add(
    "arithmetic",
    "neg exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt cbrt "
    "logistic abs sign floor ceil round is_finite erf erfc erf_inv lgamma digamma square integer_pow not "
    "bessel_i0e bessel_i1e conj real imag population_count clz reduce_precision",
    elementwise=True,
)
# ... of two
_add("arithmetic", "add mul max min eq ne and or xor logaddexp", elementwise=True, commutative=True)
_add(
    "arithmetic",
    "sub div rem pow atan2 nextafter lt le gt ge shift_left shift_right_arithmetic shift_right_logical complex "
    "igamma igammac igamma_grad_a random_gamma_grad zeta polygamma xlogy xlog1py relu logit",
    elementwise=True,
)
# ... of three and more
_add("arithmetic", "select clamp regularized_incomplete_beta", elementwise=True)
# A change of float width means the identity; integer to float is exact or rounds; float to integer is the engine's.
_add("arithmetic", "cast", elementwise=True)

# Reductions, scans and contractions along axes.
_add("arithmetic", "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin")
_add("arithmetic", "sort")
_add("arithmetic", "cumsum cumprod cummax cummin cumlogsumexp dot_general conv_general_dilated")
_add("arithmetic", "scatter_add scatter_mul scatter_max scatter_min reduce_window_sum reduce_window_max")
_add("arithmetic", "reduce_window_min select_and_gather_add select_and_scatter_add")

# Moving operations only copy elements. `arrange` is the normal form of broadcast, transpose, unit axes (arrange.py);
# the others keep the engine's own primitive and parameters, with a count of leading inputs that are data.
_add("moving", "arrange reshape move stop_gradient barrier")
_add("moving", "iota")

# Rewritten inside or kept whole.
_add("region", "scan while cond custom_jvp custom_vjp closed")
_add("opaque", "opaque")
# `output` picks one result of an operation with several.
_add("arithmetic", "output")

# What only rules write: functions of stablegrad.numerics, and the shift of a scaled sum.
_add(
    "arithmetic",
    "softplus log_sigmoid sigmoid log1mexp log_expm1 stable_logaddexp logdiffexp stable_expm1 exprel log1prel linex "
    "linex_near_0 "
    "log_cosh mul_exp times_log nonnegative require stable_asinh stable_acosh stable_atanh stable_tanh cosm1 "
    "stable_xlogy log_erfc shift_terms log_sum_terms log_sum_exp_terms log_softplus "
    "log1mexp_of_exp inverse_expm1 inverse_exprel pair_shift sum_of_pair difference_of_pair "
    "cosh_shift scaled_cosh log_near_1 norm_of_terms norm_of_terms_undefined_at_0 power_exp held_size log_of_1_and "
    "atanh_or "
    "require_finite stable_div sigmoid_cross_entropy sigmoid_slope sigmoid_gap sigmoid_step "
    "log_of_product log_of_quotient log_of_ratio power_times_log stable_xlog1py "
    "binary_exponent without_exponent aligned times_power_of_two scaled_value log_of_scaled mantissa_of_exp "
    "exponent_of_exp",
    elementwise=True,
    emitted=True,
)
# Which elements of a moved operand the asked elements of the result are copies of.
_add("arithmetic", "asked", emitted=True)
_add(
    "arithmetic",
    "logsumexp logsumexp_weighted log_softmax softmax log_sum_others log_one_minus_softmax one_minus_softmax "
    "norm norm_undefined_at_0 power_of_product product_of_others shift shift_weighted log_abs_product "
    "softmax_cross_entropy log_softmax_of_picks scaled_dot scaled_dot_exponent",
    emitted=True,
)
