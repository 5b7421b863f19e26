"""A call of every public function of JAX that computes with arrays, so that every primitive a user can meet is met.

`CALLS` maps a function's full name to a function without arguments that traces it. The functions of one kind of
argument stand together; `NOT_ARRAYS` names those that compute no array, with the reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from engines.jax.other_calls import OTHER
from engines.jax.special_calls import NOT_ARRAYS, SPECIAL

X = jnp.array([0.5, 0.25, 0.75, 1.25])
MATRIX = jnp.eye(4) + 0.1 * jnp.arange(16.0).reshape(4, 4)
WHOLE = jnp.array([1, 2, 0, 3])
FLAGS = jnp.array([True, False, True, True])
COMPLEX = X * (1 + 1j)

# (module, arguments, names). Arguments that are Python numbers or tuples are static.
BY_ARGUMENTS: list[tuple[str, tuple, str]] = [
    ("jax.numpy", (X,), """
        abs absolute acos acosh amax amin angle arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort
        around array asarray asin asinh atan atanh atleast_1d atleast_2d atleast_3d average block broadcast_arrays cbrt
        ceil clip column_stack conj conjugate copy corrcoef cos cosh count_nonzero cov cumprod cumsum cumulative_prod
        cumulative_sum deg2rad degrees diag diagflat diff dstack ediff1d empty_like exp exp2 expm1 fabs flip flipud
        floor frexp gradient histogram histogram_bin_edges hstack i0 imag iscomplex isfinite isinf isnan isneginf
        isposinf isreal ix_ lexsort log log10 log1p log2 max mean median meshgrid min modf nan_to_num nanargmax
        nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar negative ones_like
        poly polyder polyint positive prod ptp rad2deg radians ravel real reciprocal rint round sign signbit sin sinc
        sinh sort sort_complex spacing sqrt square squeeze stack std sum tan tanh transpose trapezoid trunc unstack
        unwrap vander var vstack zeros_like"""),
    ("jax.numpy", (X, X), """
        add allclose append arctan2 array_equal array_equiv atan2 convolve copysign correlate digitize divide divmod dot
        equal float_power floor_divide fmax fmin fmod full_like geomspace greater greater_equal heaviside histogram2d
        hypot inner isclose isin kron less less_equal linspace logaddexp logaddexp2 logspace matmul maximum minimum mod
        multiply nanpercentile nanquantile nextafter not_equal outer percentile polyadd polydiv polymul polysub polyval
        pow power quantile remainder roll searchsorted subtract true_divide vdot vecdot"""),
    ("jax.numpy", (FLAGS,), "all any logical_not"),
    ("jax.numpy", (FLAGS, FLAGS), "logical_and logical_or logical_xor"),
    ("jax.numpy", (5,), """
        arange bartlett blackman diag_indices eye hamming hanning identity tri tril_indices triu_indices"""),
    ("jax.numpy", (X, 2), "argpartition array_split delete hsplit pad partition repeat resize split tile"),
    ("jax.numpy", (MATRIX, 2), "vsplit"),
    ("jax.numpy", (WHOLE, WHOLE), """
        bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm left_shift right_shift"""),
    ("jax.numpy", (X, WHOLE), "ldexp take take_along_axis"),
    ("jax.numpy", (WHOLE,), "bitwise_count bitwise_invert bitwise_not invert packbits"),
    ("jax.numpy", ((3, 4),), "empty indices ones zeros"),
    ("jax.numpy", (MATRIX,), """
        concat concatenate diag_indices_from diagonal fliplr histogramdd matrix_transpose rot90 trace tril
        tril_indices_from triu triu_indices_from"""),
    ("jax.numpy", (MATRIX, 0), "expand_dims rollaxis"),
    ("jax.numpy", (MATRIX, 0, 1), "insert moveaxis swapaxes"),
    ("jax.numpy", (FLAGS, X, X), "where"),
    ("jax.numpy", (X, X, X), "interp"),
    ("jax.numpy", (MATRIX, X), "matvec"),
    ("jax.numpy", (MATRIX, MATRIX), "tensordot"),
    ("jax.numpy", (X, MATRIX), "vecmat"),
    ("jax.numpy", (X, (2, 2)), "reshape"),
    ("jax.numpy.linalg", (MATRIX,), """
        cholesky cond det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_transpose pinv qr slogdet svd
        svdvals trace matrix_rank norm vector_norm"""),
    ("jax.numpy.linalg", (MATRIX, X), "lstsq solve"),
    ("jax.numpy.linalg", (MATRIX, MATRIX), "tensordot"),
    ("jax.numpy.linalg", (X, X), "matmul outer vecdot"),
    ("jax.numpy.linalg", (MATRIX, 2), "matrix_power"),
    ("jax.numpy.fft", (MATRIX,), """
        fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn"""),
    ("jax.numpy.fft", (5,), "fftfreq rfftfreq"),
    ("jax.nn", (X,), """
        celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid log_softmax
        log1mexp logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus
        sparse_sigmoid squareplus standardize swish tanh"""),
    ("jax.nn", (WHOLE, 4), "one_hot"),
    ("jax.scipy.special", (X,), """
        dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit factorial fresnel gamma gammaln gammasgn i0 i0e i1 i1e
        log_ndtr log_softmax loggamma logit logsumexp ndtr ndtri sici softmax spence"""),
    ("jax.scipy.special", (COMPLEX,), "wofz"),
    ("jax.scipy.special", (X, X), """
        beta betaln boxcox boxcox1p comb expn gammainc gammaincc kl_div owens_t poch rel_entr xlog1py xlogy zeta"""),
    ("jax.scipy.special", (X, X, X), "betainc hyp1f1"),
    ("jax.scipy.special", (X, X, X, X), "hyp2f1"),
    ("jax.scipy.special", (X, 2), "multigammaln"),
    ("jax.scipy.special", (WHOLE, X), "polygamma"),
    ("jax.scipy.special", (5,), "bernoulli"),
    ("jax.lax", (X,), """
        abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh cumlogsumexp cummax cummin
        cumprod cumsum dce_sink digamma erf erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg
        optimization_barrier reciprocal round rsqrt sign sin sinh sort sqrt square stage stop_gradient tan tanh
        unstack"""),
    ("jax.lax", (COMPLEX,), "conj imag real"),
    ("jax.lax", (X, X), """
        add atan2 broadcast_like complex div dot eq ge gt igamma igamma_grad_a igammac le lt max min mul ne nextafter
        pow random_gamma_grad rem sort_key_val sub zeta"""),
    ("jax.lax", (X, 2), "approx_max_k approx_min_k broadcast_to_rank full_like integer_pow top_k"),
    ("jax.lax", (MATRIX, 1), "collapse dynamic_index_in_dim index_in_dim"),
    ("jax.lax", (MATRIX[None], MATRIX[None]), "batch_matmul"),
    ("jax.lax", (X, X, X), "betainc clamp"),
    ("jax.lax", (WHOLE, WHOLE), """
        bitwise_and bitwise_or bitwise_xor mulhi shift_left shift_right_arithmetic shift_right_logical"""),
    ("jax.lax", (WHOLE,), "bitwise_not clz population_count"),
    ("jax.lax", (X, (2, 2)), "broadcast reshape split"),
    ("jax.lax", (MATRIX, 0, 1), "dynamic_slice_in_dim slice_in_dim"),
    ("jax.lax", (FLAGS, X, X), "select select_n"),
    ("jax.lax", ((3, 4), 1.0), "full"),
    ("jax.lax.linalg", (MATRIX,), "cholesky eig eigh hessenberg lu qdwh qr schur svd tridiagonal"),
    ("jax.lax.linalg", (MATRIX, X), "cholesky_update householder_product"),
    ("jax.lax.linalg", (MATRIX, MATRIX), "symmetric_product triangular_solve"),
]  # fmt: skip


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _is_array(argument: Any) -> bool:
    return not isinstance(argument, (int, float, tuple))


def trace(function: Callable[..., Any], arguments: tuple) -> list[jex.ClosedJaxpr]:
    """The program of the call and, for floats, of its gradient where there is one."""
    places = [k for k, a in enumerate(arguments) if _is_array(a)]
    given = [arguments[k] for k in places]

    def call(*arrays: Any) -> Any:
        whole = list(arguments)
        for k, array in zip(places, arrays, strict=True):
            whole[k] = array
        return function(*whole)

    programs = [jax.make_jaxpr(call)(*given)]
    floats = tuple(k for k, a in enumerate(given) if jnp.asarray(a).dtype == jnp.float32)
    results = [v for v in programs[0].out_avals if getattr(v, "dtype", None) == jnp.float32]
    if floats and results:

        def total(*arrays: Any) -> Any:
            return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(call(*arrays)) if leaf.dtype == jnp.float32)

        try:
            programs.append(jax.make_jaxpr(jax.grad(total, argnums=floats))(*given))
        except (NotImplementedError, ValueError, TypeError, AttributeError):  # it has no reverse-mode derivative
            pass
    return programs


def _calls() -> dict[str, Callable[[], list[jex.ClosedJaxpr]]]:
    calls: dict[str, Callable[[], list[jex.ClosedJaxpr]]] = {}
    for module, arguments, names in BY_ARGUMENTS:
        for name in names.split():
            full = f"{module}.{name}"
            calls[full] = lambda full=full, arguments=arguments: trace(_function(full), arguments)
    for name, (function, arguments) in {**SPECIAL, **OTHER}.items():
        calls[name] = lambda function=function, arguments=arguments: trace(function, arguments)
    return calls


CALLS = _calls()
MODULES = ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.nn", "jax.scipy.special", "jax.lax", "jax.lax.linalg")


def public_functions() -> set[str]:
    """Every public function of the modules."""
    found = set()
    for module in map(importlib.import_module, MODULES):
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, type):
                found.add(f"{module.__name__}.{name}")
    return {name for name in found if name.rpartition(".")[2] not in NOT_ARRAYS}
