"""Recursions over probabilities, as a textbook writes them: functions of emission probabilities (time, state)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

STATES, STEPS = 5, 40
TRANSITION = jnp.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.6, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.2, 0.2],
                        [0.05, 0.05, 0.1, 0.7, 0.1], [0.1, 0.1, 0.3, 0.1, 0.4]])  # fmt: skip
BAND = jnp.eye(STATES) * 0.6 + jnp.eye(STATES, k=1) * 0.4  # from left to right: most transitions are impossible
START = jnp.full(STATES, 1 / STATES)
SKIP = jnp.array([False, False, True, False, True])


def forward(p, transition=TRANSITION):
    def step(a, e):
        return (a @ transition) * e, None

    a, _ = lax.scan(step, START, p)
    return jnp.log(jnp.sum(a))


def left_to_right(p):
    return forward(p, BAND)


def forward_einsum(p):
    a, _ = lax.scan(lambda a, e: (jnp.einsum("i,ij->j", a, TRANSITION) * e, None), START, p)
    return jnp.log(a.sum())


def forward_sum(p):
    a, _ = lax.scan(lambda a, e: ((a[:, None] * TRANSITION).sum(0) * e, None), START, p)
    return jnp.log(a.sum())


def written_out(p):
    a = START
    for t in range(p.shape[0]):
        a = (a @ TRANSITION) * p[t]
    return jnp.log(jnp.sum(a))


def fori_loop(p):
    a = lax.fori_loop(0, p.shape[0], lambda t, a: (a @ TRANSITION) * p[t], START)
    return jnp.log(a.sum())


def unrolled_by_scan(p):
    a, _ = lax.scan(lambda a, e: ((a @ TRANSITION) * e, None), START, p, unroll=4)
    return jnp.log(a.sum())


def backward(p):
    b, _ = lax.scan(lambda b, e: (TRANSITION @ (b * e), None), jnp.ones(STATES), p, reverse=True)
    return jnp.log(jnp.sum(START * b))


def posteriors(p):
    """Forward, backward, and the posterior of a state at each time: a quotient of what has left the range."""
    _, alphas = lax.scan(lambda a, e: ((a @ TRANSITION) * e,) * 2, START, p)
    _, betas = lax.scan(lambda b, e: (TRANSITION @ (b * e), b), jnp.ones(STATES), p, reverse=True)
    joint = alphas * betas
    gamma = joint / jnp.sum(joint, axis=-1, keepdims=True)
    return jnp.sum(gamma**2)


def log_of_stacked(p):
    _, alphas = lax.scan(lambda a, e: ((a @ TRANSITION) * e,) * 2, START, p)
    return jnp.mean(jnp.log(jnp.sum(alphas, axis=-1)))


def best_path(p):
    """Max-product: the probability of the best path."""
    a, _ = lax.scan(lambda a, e: (jnp.max(a[:, None] * TRANSITION, axis=0) * e, None), START, p)
    return jnp.log(jnp.max(a))


def ctc(p):
    """Alignments: stay, advance by one, or by two where a mask allows it."""
    start = jnp.zeros(STATES).at[:2].set(p[0, :2])

    def step(a, e):
        one = jnp.concatenate([jnp.zeros(1), a[:-1]])
        two = jnp.concatenate([jnp.zeros(2), a[:-2]])
        return (a + one + jnp.where(SKIP, two, 0)) * e, None

    a, _ = lax.scan(step, start, p[1:])
    return -jnp.log(a[-1] + a[-2])


def ctc_masked_by_product(p):
    start = p[0] * (jnp.arange(STATES) < 2)

    def step(a, e):
        two = jnp.roll(a, 2).at[:2].set(0)
        return e * (a + jnp.pad(a, (1, 0))[:-1] + SKIP * two), None

    a, _ = lax.scan(step, start, p[1:])
    return -jnp.log(a[-2:].sum())


def ctc_with_length(p):
    """Frames beyond a length change nothing."""
    start = p[0] * (jnp.arange(STATES) < 2)

    def step(a, te):
        t, e = te
        new = (a + jnp.pad(a, (1, 0))[:-1]) * e
        return jnp.where(t < STEPS - 3, new, a), None

    a, _ = lax.scan(step, start, (jnp.arange(1, p.shape[0]), p[1:]))
    return -jnp.log(a[-1] + a[-2])


def product_by_scan(p):
    q, _ = lax.scan(lambda q, e: (q * e[0], None), 1.0, p)
    return jnp.log(q)


def product_of_rows(p):
    q, _ = lax.scan(lambda q, e: (q * e, None), jnp.ones(STATES), p)
    return jnp.log(jnp.sum(q))


def product_by_while(p):
    _, q = lax.while_loop(lambda c: c[0] < STEPS, lambda c: (c[0] + 1, c[1] * p[c[0]]), (0, jnp.ones(STATES)))
    return jnp.log(jnp.sum(q))


def two_carries(p):
    """Blank and label apart, as some write it."""

    def step(carry, e):
        blank, label = carry
        return ((blank + label) * e[0], (label + 0.5 * blank) * e[1]), None

    (blank, label), _ = lax.scan(step, (p[0, 0], p[0, 1]), p[1:])
    return -jnp.log(blank + label)


def beside_others(p):
    """A carry that is scaled beside one that counts, one that sums and one that is normalised."""

    def step(carry, e):
        a, count, total, share = carry
        a = (a @ TRANSITION) * e
        share = share * e
        share = share / jnp.sum(share)
        return (a, count + 1, total + jnp.sum(e), share), None

    (a, count, total, share), _ = lax.scan(step, (START, 0, 0.0, START), p)
    return jnp.log(a.sum()) + 0.01 * total + jnp.sum(share**2) + count


def nested(p):
    """A loop over pairs of frames within a loop."""

    def outer(a, pair):
        a, _ = lax.scan(lambda a, e: ((a @ TRANSITION) * e, None), a, pair)
        return a, None

    a, _ = lax.scan(outer, START, p.reshape(STEPS // 2, 2, STATES))
    return jnp.log(a.sum())


def branching(p):
    """Another matrix at every other step."""

    def step(a, te):
        t, e = te
        a = lax.cond(t % 2 == 0, lambda a: a @ TRANSITION, lambda a: a @ TRANSITION.T, a)
        return a * e, None

    a, _ = lax.scan(step, START, (jnp.arange(p.shape[0]), p))
    return jnp.log(a.sum())


def normalised_each_step(p):
    """The usual cure: no rule has to do anything but keep it right."""

    def step(carry, e):
        a, total = carry
        a = (a @ TRANSITION) * e
        c = jnp.sum(a)
        return (a / c, total + jnp.log(c)), None

    (_, total), _ = lax.scan(step, (START, 0.0), p)
    return total


def jitted_helper(p):
    step = jax.jit(lambda a, e: (a @ TRANSITION) * e)
    a, _ = jax.jit(lambda p: lax.scan(lambda a, e: (step(a, e), None), START, p))(p)
    return jnp.log(jnp.sum(a))


def checkpointed(p):
    a, _ = lax.scan(jax.checkpoint(lambda a, e: ((a @ TRANSITION) * e, None)), START, p)
    return jnp.log(a.sum())


def batched(p):
    """Three sequences by vmap."""
    return jnp.sum(jax.vmap(forward)(jnp.stack([p, p[::-1], p * 0.5])))


def transition_from_logits(p):
    logits = jnp.log(TRANSITION) * 3
    return forward(p, jax.nn.softmax(logits, axis=1))


def sinkhorn(p):
    """Entropic transport between two histograms: the scaling factors leave the range at once."""
    kernel = jnp.exp(-((jnp.arange(STATES)[:, None] - jnp.arange(STATES)) ** 2) * 12.0)
    a = p[0] / p[0].sum()
    b = START

    def step(uv, _):
        u, v = uv
        u = a / (kernel @ v)
        return (u, b / (kernel.T @ u)), None

    (u, v), _ = lax.scan(step, (jnp.ones(STATES), jnp.ones(STATES)), None, length=60)
    return jnp.sum(u[:, None] * kernel * v * jnp.abs(jnp.arange(STATES)[:, None] - jnp.arange(STATES)))


PROGRAMS = {f.__name__: f for f in (
    forward, left_to_right, forward_einsum, forward_sum, written_out, fori_loop, unrolled_by_scan, backward, posteriors,
    log_of_stacked, best_path, ctc, ctc_masked_by_product, ctc_with_length, product_by_scan, product_of_rows,
    product_by_while, two_carries, beside_others, nested, branching, normalised_each_step, jitted_helper, checkpointed,
    batched, transition_from_logits, sinkhorn,
)}  # fmt: skip

# -- the probabilities -----------------------------------------------------------------------------------------------


def library(x):
    return jax.nn.softmax(x)


def quotient(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def plain_quotient(x):
    return jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True)


def by_logarithm(x):
    return jnp.exp(jax.nn.log_softmax(x))


def density(x):
    return jnp.exp(-0.5 * x**2) / jnp.sqrt(2 * jnp.pi)


def two_classes(x):
    return jax.nn.sigmoid(x - 2)


def given(x):
    """Numbers that the program is given: only their products leave the range."""
    return 1e-3 * (1.5 + jnp.sin(x))


EMISSIONS = {f.__name__: f for f in (library, quotient, plain_quotient, by_logarithm, density, two_classes, given)}
