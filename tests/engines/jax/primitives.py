"""The standing of every primitive that JAX 0.10.2 has: what the compiler makes of each, as data.

Names are those that a program prints. A primitive that is missing here fails `test_primitives.py`.
"""

# Known by name to rules, facts and the exact evaluator.
ARITHMETIC = """
    abs acos acosh add add_any and argmax argmin asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz
    complex conj conv_general_dilated convert_element_type cos cosh cumlogsumexp cummax cummin cumprod cumsum digamma
    div dot_general eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag integer_pow
    is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or polygamma population_count pow real
    reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum reduce_window_max
    reduce_window_min reduce_window_sum reduce_xor regularized_incomplete_beta rem round rsqrt scatter-add scatter-max
    scatter-min scatter-mul scatter-sub select_and_gather_add select_and_scatter_add select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sort sqrt square sub tan tanh xor zeta
""".split()

# Elements are copied about; what holds for an element holds for its copy.
MOVING = """
    broadcast_in_dim concatenate copy device_put dynamic_slice dynamic_update_slice gather iota name
    optimization_barrier pad reshape rev scatter sharding_constraint slice split squeeze stack stop_gradient tile
    transpose unstack
""".split()

# Read through (jit, remat), or rewritten inside (the loops and branches), or with a meaning of their own (JAX's own
# custom derivatives).
REGION = "jit remat2 scan while cond custom_jvp_call custom_vjp_call".split()

# Bodies that are passed on whole.
KEPT_WHOLE = {
    "shard_map": "its values carry a mesh that a new equation would have to carry too",
    "custom_linear_solve": "what it solves stands in four bodies that must agree with each other",
    "composite": "a backend may put an implementation of its own in its place",
    "call": "bound by no public function",
    "closed_call": "bound by no public function",
    "call_exported": "the program in it was compiled elsewhere",
    "custom_lin": "lives while a derivative is taken, in no program",
}

# Numeric, and not understood: the number that the tests bound.
OPAQUE_NUMERIC = {
    "approx_top_k": "picks by an approximate search",
    "eq_to": "compares bits",
    "fft": "complex",
    "le_to": "compares bits",
    "lt_to": "compares bits",
    "mulhi": "whole numbers",
    "ragged_dot_general": "sums over groups of sizes that are data",
    "reduce": "folds a function of the user's",
    "reduce_window": "folds a function of the user's",
    "scaled_dot": "works on scaled blocks of small floats",
    "scaled_matmul_wrapper": "works on scaled blocks of small floats",
    "select_and_scatter": "folds functions of the user's",
    "top_k": "has several results that move together",
}
MOST_OPAQUE_NUMERIC = 13

# No numbers that a rule could say anything about.
OPAQUE_OTHER = {
    "linear algebra": """
        cholesky cholesky_update eig eigh hessenberg householder_product lu lu_pivots_to_permutation ormqr qr schur svd
        symmetric_product triangular_solve tridiagonal tridiagonal_solve""",
    "random numbers": """
        random_bits random_clone random_fold_in random_gamma random_seed random_split random_unwrap random_wrap
        rng_bit_generator rng_uniform threefry2x32""",
    "bits": "bitcast_convert_type",
    "memory without values": "empty empty2",
    "between devices": """
        all_gather all_to_all axis_index pbroadcast pmax pmin ppermute psum psum_invariant pvary ragged_all_to_all
        reduce_scatter reshard""",
    "tokens and order": "after_all create_token dce_sink stage",
    "references": "addupdate freeze get new_ref swap",
    "calls back to Python": "debug_callback debug_print io_callback pure_callback",
    "which platform": "platform_index",
}

# Primitives that are understood except in a form that is not, with the reason.
SOMETIMES_OPAQUE = {
    "gather": "elements outside are filled with a number that is none of the operand's",
    "sort": "several arrays are sorted together",
}
