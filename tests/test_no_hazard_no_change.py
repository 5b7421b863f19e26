"""What people use every day, and is right as it is, comes back operation for operation; also beside a hazard."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax, nn

from stablegrad import explain, stabilize

ROWS, WIDTH, HEADS = 4, 8, 2
CAUSAL = np.tril(np.ones((ROWS, ROWS), bool))


def array(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), "float32")


X, H, W = array(0, ROWS, WIDTH), array(1, ROWS, WIDTH), array(2, WIDTH, WIDTH)
ONE_HOT, LABELS = nn.one_hot(np.arange(ROWS), WIDTH), np.arange(ROWS)
PREDICTED = nn.log_softmax(H)


def layer_norm(x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def attention(x):
    q, k, v = ((x @ w).reshape(ROWS, HEADS, -1) for w in (W, W.T, W + 1))
    scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(WIDTH / HEADS)
    weights = nn.softmax(jnp.where(CAUSAL, scores, -1e9), axis=-1)
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(ROWS, WIDTH)


def perceptron(x):
    return nn.relu(nn.relu(x @ W + 1) @ W.T) @ W


def convolution_block(x):
    y = lax.conv_general_dilated(x[None, None], W[None, None, :3, :3], (1, 1), "SAME")
    mean, variance = jnp.mean(y, (0, 2, 3), keepdims=True), jnp.var(y, (0, 2, 3), keepdims=True)
    return nn.relu((y - mean) / jnp.sqrt(variance + 1e-5))


def gated_unit(x, h):
    z, r = nn.sigmoid(x @ W + h @ W.T), nn.sigmoid(x @ W.T + h @ W)
    n = jnp.tanh(x @ W + r * (h @ W))
    return (1 - z) * n + z * h


def gated_unit_other_way(x, h):
    z = nn.sigmoid(x @ W + h @ W.T)
    return z * jnp.tanh(x @ W + h) + h * (1.0 - z)


def gated_unit_negated(x, h):
    z = nn.sigmoid(x @ W + h @ W.T)
    return (-z + 1) * jnp.tanh(x @ W) + z * h


def transformer_block(x):
    x = x + attention(layer_norm(x))
    return x + nn.gelu(layer_norm(x) @ W) @ W.T


def adam(parameters, gradient):
    optimizer = optax.adam(1e-3)
    return optimizer.update(gradient, optimizer.init(parameters), parameters)[0]


def adam_by_hand(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (1 - 0.9)) / (jnp.sqrt(v / (1 - 0.999)) + 1e-8)


PROGRAMS = {
    "softmax": (nn.softmax, X),
    "softmax of the first axis": (lambda x: nn.softmax(x, axis=0), X),
    "softmax of one entry": (nn.softmax, X[:, :1]),
    "log_softmax": (nn.log_softmax, X),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=-1), X),
    "sigmoid": (nn.sigmoid, X),
    "log_sigmoid": (nn.log_sigmoid, X),
    "softplus": (nn.softplus, X),
    "gelu": (nn.gelu, X),
    "gelu, exact": (lambda x: nn.gelu(x, approximate=False), X),
    "silu": (nn.silu, X),
    "mish": (nn.mish, X),
    "glu": (nn.glu, X),
    "leaky_relu": (nn.leaky_relu, X),
    "layer norm": (layer_norm, X),
    "attention": (attention, X),
    "attention of jax.nn": (lambda x: nn.dot_product_attention(*[x[None, :, None]] * 3), X),
    "causal attention of jax.nn": (
        lambda x: nn.dot_product_attention(*[x.reshape(1, ROWS, HEADS, -1)] * 3, is_causal=True),
        X,
    ),
    "perceptron": (perceptron, X),
    "convolution block": (convolution_block, X),
    "gated unit": (gated_unit, X, H),
    "gated unit, the other way": (gated_unit_other_way, X, H),
    "gated unit, negated": (gated_unit_negated, X, H),
    "transformer block": (transformer_block, X),
    "Adam of optax": (adam, X, H),
    "Adam by hand": (adam_by_hand, X, H, H, H**2),
    "optax.softmax_cross_entropy": (optax.softmax_cross_entropy, X, ONE_HOT),
    "optax.softmax_cross_entropy_with_integer_labels": (optax.softmax_cross_entropy_with_integer_labels, X, LABELS),
    "optax.sigmoid_binary_cross_entropy": (optax.sigmoid_binary_cross_entropy, X, ONE_HOT),
    "optax.huber_loss": (optax.huber_loss, X, H),
    "optax.l2_loss": (optax.l2_loss, X, H),
    "optax.log_cosh": (optax.log_cosh, X, H),
    "optax.hinge_loss": (optax.hinge_loss, X, ONE_HOT),
    "optax.kl_divergence_with_log_targets": (optax.losses.kl_divergence_with_log_targets, PREDICTED, nn.log_softmax(X)),
}  # fmt: skip

# Of the same kind, but with a hazard in them: what `explain` says of it.
CHANGED = {
    "optax.kl_divergence": (optax.losses.kl_divergence, "untaken_branch", PREDICTED, ONE_HOT),  # log(0) of a target
    "optax.cosine_similarity": (optax.losses.cosine_similarity, "root_of_squares", X, H),  # the slope of norm(0)
    "optax.poly_loss_cross_entropy": (
        optax.losses.poly_loss_cross_entropy,
        "difference_that_cancels",  # 1 - softmax
        X,
        ONE_HOT,
    ),
    "optax.ctc_loss": (  # the slopes of logaddexp in logaddexp are off by the rounding of the logarithms themselves
        optax.losses.ctc_loss,
        "logaddexp_of_logarithms",
        X[None],
        jnp.zeros((1, ROWS)),
        np.array([[1, 2]]),
        jnp.zeros((1, 2)),
    ),
}


def equations(f, *args):
    """What each equation computes, in order: operation, types, and, where they are no functions, parameters."""
    jaxpr = jax.make_jaxpr(f)(*args).jaxpr
    return [
        (
            e.primitive.name,
            [str(v.aval) for v in (*e.invars, *e.outvars)],
            {k: p for k, p in e.params.items() if isinstance(p, (int, float, str, tuple))},
        )
        for e in jaxpr.eqns
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_unchanged(name):
    f, *args = PROGRAMS[name]
    found = explain(f)(*args)
    assert not found.rewrites, f"nothing is wrong here, but:\n{found}"
    assert equations(stabilize(f), *args) == equations(f, *args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_unchanged_beside_a_hazard(name):
    f, *args = PROGRAMS[name]

    def with_hazard(*args):
        return f(*args), jnp.log(1 + jnp.exp(jnp.sum(jnp.cos(args[0]))))

    assert {r.rule for r in explain(with_hazard)(*args).rewrites} == {"log_of_companion"}
    # All before the hazard, that is the cosine, is of the program, in its order; what nobody needs is dropped.
    after = equations(stabilize(with_hazard), *args)
    kept = after[: [name for name, *_ in after].index("cos")]
    before = iter(equations(f, *args))
    assert kept and all(equation in before for equation in kept)


@pytest.mark.parametrize("name", CHANGED)
def test_a_hazard_inside_a_library_s_loss_is_named(name):
    f, rule, *args = CHANGED[name]
    assert rule in {r.rule for r in explain(f)(*args).rewrites}
    np.testing.assert_allclose(stabilize(f)(*args), f(*args), rtol=1e-5)
