"""Twenty losses as a textbook prints them, with inputs at which plain JAX fails in float32.

Every formula is right on paper. At the inputs in ``EXAMPLES`` each of them gives NaN, an infinity or a wrong
number, in the value or in the gradient. See what goes wrong, and what ``stabilize`` makes of it, with

    stablegrad explain examples/textbook_losses.py
"""

import jax.numpy as jnp
import numpy as np


def cross_entropy_one_hot(logits, targets):
    """Categorical cross entropy: the mean of -sum(t log softmax(z))."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits), axis=1, keepdims=True)
    return -jnp.mean(jnp.sum(targets * jnp.log(p), axis=1))


def cross_entropy_index(logits, labels):
    """Categorical cross entropy with the right class given by its number."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits), axis=1, keepdims=True)
    return -jnp.mean(jnp.log(p[jnp.arange(len(labels)), labels]))


def cross_entropy_smoothed(logits, labels):
    """Categorical cross entropy with a tenth of the target spread over all classes."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits), axis=1, keepdims=True)
    targets = 0.9 * jnp.eye(logits.shape[1])[labels] + 0.1 / logits.shape[1]
    return -jnp.mean(jnp.sum(targets * jnp.log(p), axis=1))


def binary_cross_entropy(logits, targets):
    """Binary cross entropy: -t log s(z) - (1 - t) log(1 - s(z)), s the logistic function."""
    p = 1 / (1 + jnp.exp(-logits))
    return -jnp.mean(targets * jnp.log(p) + (1 - targets) * jnp.log(1 - p))


def focal_loss(logits, targets):
    """Focal loss: cross entropy weighted by the square of the probability of the wrong class."""
    p = 1 / (1 + jnp.exp(-logits))
    return -jnp.mean(targets * (1 - p) ** 2 * jnp.log(p) + (1 - targets) * p**2 * jnp.log(1 - p))


def logistic_regression(weights, inputs, signs):
    """Negative log-likelihood of logistic regression with labels -1 and 1."""
    return jnp.sum(jnp.log(1 + jnp.exp(-signs * (inputs @ weights))))


def log_sum_exp(x):
    """The logarithm of a sum of exponentials: a smooth maximum."""
    return jnp.log(jnp.sum(jnp.exp(x)))


def softplus(x):
    """A smooth hinge: log(1 + e^x), summed."""
    return jnp.sum(jnp.log(1 + jnp.exp(x)))


def log_one_minus_exp(log_p):
    """The log-probability that an event of log-probability log_p does not happen."""
    return jnp.sum(jnp.log(1 - jnp.exp(log_p)))


def log_diff_exp(log_a, log_b):
    """The logarithm of a difference of two numbers that are given by their logarithms."""
    return jnp.sum(jnp.log(jnp.exp(log_a) - jnp.exp(log_b)))


def log_odds(logits):
    """The log-odds of the first class: log(p / (1 - p)), p its softmax."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits))
    return jnp.log(p[0] / (1 - p[0]))


def entropy(logits):
    """The entropy of a softmax: -sum(p log p)."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits))
    return -jnp.sum(p * jnp.log(p))


def kl_divergence(p_logits, q_logits):
    """The Kullback-Leibler divergence between two softmaxes: sum(p log(p / q))."""
    p = jnp.exp(p_logits) / jnp.sum(jnp.exp(p_logits))
    q = jnp.exp(q_logits) / jnp.sum(jnp.exp(q_logits))
    return jnp.sum(p * jnp.log(p / q))


def perplexity(logits, labels):
    """The exponential of the mean negative log-probability of the right classes."""
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits), axis=1, keepdims=True)
    return jnp.exp(-jnp.mean(jnp.log(p[jnp.arange(len(labels)), labels])))


def contrastive(queries, keys):
    """InfoNCE: every query should find its own key among all of them, at temperature 0.01."""
    similarity = jnp.exp(queries @ keys.T / 0.01)
    p = similarity / jnp.sum(similarity, axis=1, keepdims=True)
    return -jnp.mean(jnp.log(p[jnp.arange(len(p)), jnp.arange(len(p))]))


def mixture_density(x, log_weights, means, log_scales):
    """Negative log-likelihood of points under a mixture of normal densities."""
    weights = jnp.exp(log_weights) / jnp.sum(jnp.exp(log_weights))
    z = (x[:, None] - means) / jnp.exp(log_scales)
    density = weights * jnp.exp(-0.5 * z**2) / (jnp.exp(log_scales) * jnp.sqrt(2 * jnp.pi))
    return -jnp.sum(jnp.log(jnp.sum(density, axis=1)))


def poisson(logits, counts):
    """Poisson loss, up to a constant, with the rate log(1 + e^z)."""
    rate = jnp.log(1 + jnp.exp(logits))
    return jnp.sum(rate - counts * jnp.log(rate))


def gumbel_link(logits, targets):
    """Binary likelihood with the Gumbel (complementary log-log) link, p = 1 - exp(-e^z)."""
    p = 1 - jnp.exp(-jnp.exp(logits))
    return -jnp.sum(targets * jnp.log(p) + (1 - targets) * jnp.log(1 - p))


def squashed_regression(x, targets):
    """Squared error of a hyperbolic tangent that is written through exponentials."""
    squashed = (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x))
    return jnp.mean((squashed - targets) ** 2)


def log_cosh(predictions, targets):
    """Log-cosh loss: nearly the square of a small error, nearly the size of a large one."""
    return jnp.mean(jnp.log(jnp.cosh(predictions - targets)))


def _array(*rows):
    return np.array(rows, np.float32)


_LOGITS = _array([12.0, -80.0, 3.0], [150.0, 40.0, -20.0])

EXAMPLES = {
    "cross_entropy_one_hot": {"logits": _LOGITS, "targets": _array([0, 0, 1], [0, 1, 0])},
    "cross_entropy_index": {"logits": _LOGITS, "labels": np.array([2, 1])},
    "cross_entropy_smoothed": {"logits": _LOGITS, "labels": np.array([2, 1])},
    "binary_cross_entropy": {"logits": _array(-120, 30, 2), "targets": _array(1, 0, 0)},
    "focal_loss": {"logits": _array(-120, 30, 2), "targets": _array(1, 0, 0)},
    "logistic_regression": {
        "weights": _array(30, -20),
        "inputs": _array([3, 1], [-2, 2], [0.1, 0.2]),
        "signs": _array(1, 1, -1),
    },
    "log_sum_exp": [{"x": _array(300, 299, 5)}, {"x": _array(-1000, -1001, -1002)}],
    "softplus": [{"x": _array(-30)}, {"x": _array(100, -3)}],
    "log_one_minus_exp": {"log_p": _array(-1e-9, -3, -50)},
    "log_diff_exp": {"log_a": _array(200, -300, 1), "log_b": _array(199, -301, -2)},
    "log_odds": {"logits": _array(40, 5, -30)},
    "entropy": {"logits": _array(60, 58, -80)},
    "kl_divergence": {"p_logits": _array(90, 88, 80), "q_logits": _array(-60, 50, 100)},
    "perplexity": {"logits": _array([2, -60, -5], [95, 10, 20]), "labels": np.array([2, 1])},
    "contrastive": {
        "queries": _array([1.0, 0.0], [0.6, 0.8]),
        "keys": _array([0.8, 0.6], [0.0, 1.0]),
    },
    "mixture_density": {
        "x": _array(0.5, 30.0),
        "log_weights": _array(0, 1),
        "means": _array(-1, 2),
        "log_scales": _array(0.0, -0.5),
    },
    "poisson": {"logits": _array(-20, 2, 100), "counts": _array(2, 5, 90)},
    "gumbel_link": {"logits": _array(-20, 0.5, 4), "targets": _array(1, 1, 0)},
    "squashed_regression": {"x": _array(0.5, 100), "targets": _array(0, 1)},
    "log_cosh": {"predictions": _array(250, -3), "targets": _array(0, 1)},
}
