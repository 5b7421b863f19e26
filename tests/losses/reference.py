"""CTC in NumPy and float64: by enumeration of every path, and by the recursion in the log domain."""

import itertools

import numpy as np


def collapse(path, blank):
    """What a path spells: runs merged, blanks dropped."""
    return [int(c) for c, _ in itertools.groupby(path) if c != blank]


def log_softmax(x):
    x = np.asarray(x, np.float64)
    peak = np.max(x, axis=-1, keepdims=True)
    return x - peak - np.log(np.sum(np.exp(x - peak), axis=-1, keepdims=True))


def paths(frames, classes, labels, blank):
    """Every path of classes that spells the labels."""
    return [p for p in itertools.product(range(classes), repeat=frames) if collapse(p, blank) == list(labels)]


def enumerated(log_y, labels, blank):
    """Loss, posteriors and the best path's log-probability, from all paths."""
    frames, classes = log_y.shape
    found = paths(frames, classes, labels, blank)
    weights = np.array([np.exp(sum(log_y[t, c] for t, c in enumerate(p))) for p in found])
    share = np.zeros((frames, classes))
    for path, weight in zip(found, weights):
        share[np.arange(frames), list(path)] += weight
    total = weights.sum()
    return -np.log(total), share / total, np.log(weights.max())


def loss_and_gradient(x, labels, blank=0):
    """The loss and its gradient by the logits (T, C), by recursion in float64."""
    log_y = log_softmax(x)
    frames, classes = log_y.shape
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    jump = np.zeros(len(states), bool)
    jump[3::2] = states[3::2] != states[1:-2:2]
    emit = log_y[:, states]

    def run(emit, jump):
        alpha = np.full((frames, len(states)), -np.inf)
        alpha[0, :2] = emit[0, :2]
        for t in range(1, frames):
            before = alpha[t - 1]
            ways = np.logaddexp(before, np.concatenate([[-np.inf], before])[:-1])
            jumps = np.where(jump, np.concatenate([[-np.inf] * 2, before])[: len(states)], -np.inf)
            alpha[t] = np.logaddexp(ways, jumps) + emit[t]
        return alpha

    alpha = run(emit, jump)
    reverse_jump = np.concatenate([[False] * 2, jump[::-1]])[: len(states)]
    beta = run(emit[::-1, ::-1], reverse_jump)[::-1, ::-1]
    total = np.logaddexp.reduce(alpha[-1, -2:])
    share = np.zeros((frames, classes))
    np.add.at(share.T, states, np.exp(alpha + beta - emit - total).T)
    return -total, np.exp(log_y) - share
