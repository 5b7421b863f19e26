"""Stable functions for JAX, each with its own derivative rule, right in forward, reverse and second order."""

from stablegrad.numerics.jax.cross_entropies import log_softmax_of_picks, sigmoid_cross_entropy, softmax_cross_entropy
from stablegrad.numerics.jax.exponentials import expm1, log1p
from stablegrad.numerics.jax.hyperbolic import acosh, asinh, atanh
from stablegrad.numerics.jax.log_domain import log1mexp, log_expm1, logaddexp, logdiffexp
from stablegrad.numerics.jax.normal import log_erfc, log_ndtr
from stablegrad.numerics.jax.norms import norm
from stablegrad.numerics.jax.others import log_one_minus_softmax, log_sum_others
from stablegrad.numerics.jax.powers import power_exp
from stablegrad.numerics.jax.products import (
    log_abs_product,
    log_of_product,
    log_of_quotient,
    mul_exp,
    times_log,
    xlog1py,
    xlogy,
)
from stablegrad.numerics.jax.quotients import divide, exprel, linex, log1prel
from stablegrad.numerics.jax.reductions import log_matmul_exp, logsumexp, logsumexp_weighted
from stablegrad.numerics.jax.sigmoids import log_cosh, log_sigmoid, sigmoid, sigmoid_difference, softplus, tanh
from stablegrad.numerics.jax.softmaxes import log_softmax, one_minus_softmax, softmax
from stablegrad.numerics.jax.trigonometric import cosm1

__all__ = [
    "acosh",
    "asinh",
    "atanh",
    "cosm1",
    "divide",
    "expm1",
    "exprel",
    "linex",
    "log1mexp",
    "log1p",
    "log1prel",
    "log_abs_product",
    "log_cosh",
    "log_erfc",
    "log_expm1",
    "log_matmul_exp",
    "log_ndtr",
    "log_of_product",
    "log_of_quotient",
    "log_one_minus_softmax",
    "log_sigmoid",
    "log_softmax",
    "log_softmax_of_picks",
    "log_sum_others",
    "logaddexp",
    "logdiffexp",
    "logsumexp",
    "logsumexp_weighted",
    "mul_exp",
    "norm",
    "one_minus_softmax",
    "power_exp",
    "sigmoid",
    "sigmoid_cross_entropy",
    "sigmoid_difference",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "tanh",
    "times_log",
    "xlog1py",
    "xlogy",
]
