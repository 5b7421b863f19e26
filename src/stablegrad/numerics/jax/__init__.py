"""Stable functions for JAX, each with its own derivative rule, right in forward, reverse and second order."""

from stablegrad.numerics.jax.exponentials import expm1, log1p
from stablegrad.numerics.jax.log_domain import log1mexp, log_expm1, logaddexp, logdiffexp
from stablegrad.numerics.jax.others import log_one_minus_softmax, log_sum_others
from stablegrad.numerics.jax.products import mul_exp, times_log
from stablegrad.numerics.jax.reductions import logsumexp
from stablegrad.numerics.jax.sigmoids import log_cosh, log_sigmoid, sigmoid, softplus, tanh
from stablegrad.numerics.jax.softmaxes import log_softmax, one_minus_softmax, softmax

__all__ = [
    "expm1",
    "log1mexp",
    "log1p",
    "log_cosh",
    "log_expm1",
    "log_one_minus_softmax",
    "log_sigmoid",
    "log_softmax",
    "log_sum_others",
    "logaddexp",
    "logdiffexp",
    "logsumexp",
    "mul_exp",
    "one_minus_softmax",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
    "times_log",
]
