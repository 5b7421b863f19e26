"""Functions of rows in every spelling: weighted log-sum-exp, mixtures, products of matrices, entropy, divergences.

Each acts on the last axis of `x` (a row or a batch of rows) and on arguments that all rows share. Spellings of one
quantity share the exact function, which sees one row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from spellings import jets
from spellings.jets import Jet
from spellings.softmax import SOFTMAXES

Array = jax.Array


@dataclass(frozen=True)
class OfRows:
    """`apply(x, *shared)`: (..., classes) to (...,); `exact(row, *shared)`; `points`: name to (rows, *shared)."""

    name: str
    apply: Callable[..., Array]
    exact: Callable[..., Jet]
    points: str


ROWS: dict[str, list[list[float]]] = {
    "ordinary": [[0.3, -1.2, 2.1], [-0.4, 0.9, -2.3]],
    "gap 200": [[200.0, -3.0, 1.5], [-100.0, 0.25, 100.0]],
    "gap 2000": [[-1000.0, 1000.0, 3.5], [2000.0, 1.0, 1999.0]],
    "ties": [[1.5, 1.5, 1.5], [-300.0, -300.0, -300.0]],
    "confident": [[20.0, -0.25, 0.5], [-3.0, 1.25, 18.5]],
    "all left": [[-20.0, -18.5, -25.0], [-30.0, -31.0, -29.5]],
    "all far left": [[-1000.0, -1001.5, -999.25], [-120.0, -119.0, -118.5]],
    "all far right": [[1000.0, 1001.5, 999.25], [90.0, 89.0, 95.0]],
}
WEIGHTS = [0.25, 2.0, 0.5]
OTHERS = {
    "ordinary": [0.5, -0.25, 1.5],
    "gap 200": [-100.0, 100.0, 3.0],
    "gap 2000": [500.0, -700.0, 1.0],
    "ties": [2.0, 2.0, 1.0],
    "confident": [19.0, 0.5, -1.0],
    "all left": [1.0, -2.0, 0.5],
    "all far left": [-900.0, -901.0, -902.5],
    "all far right": [700.0, 701.0, 699.0],
}
ORDERED = {  # rows (a, b) with a > b
    "ordinary": [[0.3, -1.2], [2.5, 2.0]],
    "near": [[1.0, 0.99999], [-30.0, -30.001]],
    "far apart": [[5.0, -120.0], [-1.0, -400.0]],
    "far right": [[1000.0, 999.0], [300.0, 100.0]],
    "far left": [[-1000.0, -1001.0], [-300.0, -900.0]],
}
DATA = {  # one point in two dimensions per row
    "ordinary": [[0.3, -1.2], [2.5, 0.5]],
    "outliers": [[30.0, 25.0], [-40.0, 3.0]],
    "far outliers": [[3000.0, 10.0], [-1.0, 500.0]],
}
MEANS, SCALES = ((0.0, 1.0), (2.0, -1.0), (-3.0, 0.5)), (1.0, 0.5, 2.0)


def points(kind: str) -> dict[str, Sequence[Any]]:
    """Arguments by name of the point."""
    return {
        "rows": {name: (rows,) for name, rows in ROWS.items()},
        "rows and weights": {name: (rows, WEIGHTS) for name, rows in ROWS.items()},
        "two logits": {name: (rows, OTHERS[name]) for name, rows in ROWS.items()},
        "pairs": {name: (rows,) for name, rows in ORDERED.items()},
        "data": {name: (rows,) for name, rows in DATA.items()},
    }[kind]


def _named(quantity: str, exact: Callable[..., Jet], kind: str, **spellings: Callable[..., Array]) -> Iterator[OfRows]:
    for name, apply in spellings.items():
        yield OfRows(f"{quantity}.{name}", apply, exact, kind)


# -- logarithms of sums --------------------------------------------------


def _lse(row: Sequence[Jet]) -> Jet:
    return jets.log(jets.total([jets.exp(x) for x in row]))


def _sums() -> Iterator[OfRows]:
    def shifted(x: Array) -> Array:
        m = jnp.max(x, axis=-1, keepdims=True)
        return jnp.log(jnp.sum(jnp.exp(x - m), axis=-1)) + m[..., 0]

    def centred(x: Array) -> Array:
        m = jnp.mean(x, axis=-1, keepdims=True)
        return jnp.log(jnp.sum(jnp.exp(x - m), axis=-1)) + m[..., 0]

    yield from _named(
        "logsumexp", _lse, "rows",
        plain=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1)),
        library=lambda x: special.logsumexp(x, axis=-1),
        shifted=shifted,
        centred=centred,
        unrolled=lambda x: jnp.log(jnp.exp(x[..., 0]) + jnp.exp(x[..., 1]) + jnp.exp(x[..., 2])),
        logaddexp=lambda x: jnp.logaddexp(x[..., 0], jnp.logaddexp(x[..., 1], x[..., 2])),
        dot=lambda x: jnp.log(jnp.exp(x) @ jnp.ones(3, x.dtype)),
        of_product=lambda x: jnp.log(jnp.sum(jnp.exp(0.5 * x) * jnp.exp(0.5 * x), axis=-1)),
        of_square=lambda x: jnp.log(jnp.sum(jnp.exp(0.5 * x) ** 2, axis=-1)),
        of_inverse=lambda x: jnp.log(jnp.sum(1 / jnp.exp(-x), axis=-1)),
        cumulative=lambda x: jnp.log(jnp.cumsum(jnp.exp(x), axis=-1))[..., -1],
        norm=lambda x: 2 * jnp.log(jnp.sqrt(jnp.sum(jnp.exp(0.5 * x) ** 2, axis=-1))),
    )  # fmt: skip
    yield from _named(
        "logmeanexp", lambda row: _lse(row) - jets.log_of(3), "rows",
        mean=lambda x: jnp.log(jnp.mean(jnp.exp(x), axis=-1)),
        sum_over_n=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1) / 3),
        minus_log_n=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1)) - jnp.log(3.0),
        product=lambda x: -jnp.log(3 / jnp.sum(jnp.exp(x), axis=-1)),
    )  # fmt: skip
    yield from _named(
        "free_energy", lambda row: _lse([x * -2 for x in row]) * -0.5, "rows",
        sum=lambda x: -0.5 * jnp.log(jnp.sum(jnp.exp(-2 * x), axis=-1)),
        power=lambda x: jnp.log(jnp.sum(jnp.exp(x) ** -2, axis=-1) ** -0.5),
        root=lambda x: -jnp.log(jnp.sqrt(jnp.sum(jnp.exp(x) ** -2.0, axis=-1))),
        inverse=lambda x: 0.5 * jnp.log(1 / jnp.sum(1 / jnp.exp(2 * x), axis=-1)),
    )  # fmt: skip
    yield from _named(
        "weighted_logsumexp",
        lambda row, w: jets.log(jets.total([a * jets.exp(x) for a, x in zip(w, row, strict=True)])), "rows and weights",
        sum=lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), axis=-1)),
        matmul=lambda x, w: jnp.log(jnp.exp(x) @ w),
        einsum=lambda x, w: jnp.log(jnp.einsum("...k,k->...", jnp.exp(x), w)),
        dot=lambda x, w: jnp.log(jnp.dot(jnp.exp(x), w)),
        log_weights=lambda x, w: jnp.log(jnp.sum(jnp.exp(x + jnp.log(w)), axis=-1)),
        library=lambda x, w: special.logsumexp(x, axis=-1, b=w),
        divided=lambda x, w: jnp.log(jnp.sum(jnp.exp(x) / (1 / w), axis=-1)),
    )  # fmt: skip
    yield from _named(
        "weighted_mean",
        lambda row, w: jets.log(
            jets.total([a * jets.exp(x) for a, x in zip(w, row, strict=True)]) / jets.total(w)
        ), "rows and weights",
        inside=lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), axis=-1) / jnp.sum(w)),
        normalised=lambda x, w: jnp.log(jnp.sum(w / jnp.sum(w) * jnp.exp(x), axis=-1)),
        matmul=lambda x, w: jnp.log(jnp.exp(x) @ (w / jnp.sum(w))),
        outside=lambda x, w: jnp.log(jnp.exp(x) @ w) - jnp.log(jnp.sum(w)),
    )  # fmt: skip
    mask = (True, False, True)
    yield from _named(
        "masked", lambda row: _lse(row[::2]), "rows",
        where=lambda x: jnp.log(jnp.sum(jnp.where(jnp.array(mask), jnp.exp(x), 0.0), axis=-1)),
        multiplied=lambda x: jnp.log(jnp.sum(jnp.array(mask, x.dtype) * jnp.exp(x), axis=-1)),
        sum_where=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1, where=jnp.array(mask))),
        infinite=lambda x: jnp.log(jnp.sum(jnp.exp(jnp.where(jnp.array(mask), x, -jnp.inf)), axis=-1)),
        indexed=lambda x: jnp.log(jnp.sum(jnp.exp(x)[..., jnp.array([0, 2])], axis=-1)),
        sliced=lambda x: jnp.log(jnp.sum(jnp.exp(x)[..., ::2], axis=-1)),
        matmul=lambda x: jnp.log(jnp.exp(x) @ jnp.array(mask, x.dtype)),
    )  # fmt: skip
    yield from _named(
        "with_constant", lambda row: jets.log(1 + jets.total([jets.exp(x) for x in row])), "rows",
        log=lambda x: jnp.log(1 + jnp.sum(jnp.exp(x), axis=-1)),
        log1p=lambda x: jnp.log1p(jnp.sum(jnp.exp(x), axis=-1)),
        logaddexp=lambda x: jnp.logaddexp(jnp.log(jnp.sum(jnp.exp(x), axis=-1)), 0.0),
        softplus=lambda x: jax.nn.softplus(jnp.log(jnp.sum(jnp.exp(x), axis=-1))),
    )  # fmt: skip
    yield from _named(
        "of_products",
        lambda row, u: _lse([x + y for x, y in zip(row, u, strict=True)]), "two logits",
        dot=lambda x, u: jnp.log(jnp.exp(x) @ jnp.exp(u)),
        sum=lambda x, u: jnp.log(jnp.sum(jnp.exp(x) * jnp.exp(u), axis=-1)),
        quotient=lambda x, u: jnp.log(jnp.sum(jnp.exp(x) / jnp.exp(-u), axis=-1)),
        einsum=lambda x, u: jnp.log(jnp.einsum("...k,k->...", jnp.exp(x), jnp.exp(u))),
        logaddexp=lambda x, u: jnp.logaddexp(
            jnp.log(jnp.exp(x[..., 0]) * jnp.exp(u[0])),
            jnp.log(jnp.exp(x[..., 1:]) @ jnp.exp(u[1:])),
        ),
    )  # fmt: skip


# -- mixtures of normal densities --------------------------------------------------


def _mixture_exact(row: Sequence[Jet]) -> Jet:
    terms = []
    for mean, scale in zip(MEANS, SCALES, strict=True):
        square = jets.total([((x - m) / scale) ** 2 for x, m in zip(row, mean, strict=True)])
        terms.append(jets.exp(square * -0.5) / (scale * scale))
    return jets.log(jets.total(terms) / 6) - jets.log_of(jets.pi)


def _mixtures() -> Iterator[OfRows]:
    def standardised(x: Array) -> Array:
        return (x[..., None, :] - jnp.array(MEANS, x.dtype)) / jnp.array(SCALES, x.dtype)[:, None]

    def volume(x: Array) -> Array:
        return 2 * math.pi * jnp.array(SCALES, x.dtype) ** 2

    def one_dimension(x: Array) -> Array:
        return jnp.exp(-0.5 * standardised(x) ** 2) / (math.sqrt(2 * math.pi) * jnp.array(SCALES, x.dtype)[:, None])

    def density(x: Array) -> Array:
        return jnp.exp(-0.5 * jnp.sum(standardised(x) ** 2, axis=-1)) / volume(x)

    third = 1 / 3
    yield from _named(
        "mixture", _mixture_exact, "data",
        mean=lambda x: jnp.log(jnp.mean(density(x), axis=-1)),
        sum=lambda x: jnp.log(jnp.sum(density(x) / 3, axis=-1)),
        product_of_dimensions=lambda x: jnp.log(jnp.mean(jnp.prod(one_dimension(x), axis=-1), axis=-1)),
        two_factors=lambda x: jnp.log(jnp.mean(one_dimension(x)[..., 0] * one_dimension(x)[..., 1], axis=-1)),
        matmul=lambda x: jnp.log(density(x) @ jnp.full(3, third, x.dtype)),
        exp_of_logs=lambda x: jnp.log(
            jnp.mean(jnp.exp(jnp.sum(jnp.log(one_dimension(x)), axis=-1)), axis=-1)
        ),
        loop=lambda x: jnp.log(sum(density(x)[..., k] for k in range(3)) / 3),
        logsumexp_of_log=lambda x: special.logsumexp(jnp.log(density(x) / 3), axis=-1),
        library=lambda x: jnp.log(
            jnp.mean(
                jnp.prod(
                    jax.scipy.stats.norm.pdf(standardised(x)) / jnp.array(SCALES, x.dtype)[:, None], axis=-1
                ),
                axis=-1,
            )
        ),
    )  # fmt: skip


# -- softmax and what is made of it --------------------------------------------------


def _softmax(row: Sequence[Jet]) -> list[Jet]:
    above = [jets.exp(x) for x in row]
    below = jets.total(above)
    return [a / below for a in above]


def _of_softmax(quantity: str, exact: Callable[..., Jet], kind: str, **outer: Callable[..., Array]) -> Iterator[OfRows]:
    """`outer(p, x, *shared)` for each spelling of softmax from one logit per class."""
    for softmax in SOFTMAXES:
        if softmax.binary:
            continue

        for name, f in outer.items():

            def apply(x: Array, *shared: Array, f: Callable = f, softmax: Callable = softmax.probabilities) -> Array:
                return f(functools.partial(softmax, axis=-1), x, *shared)

            yield OfRows(f"{quantity}.{name}_{softmax.name}", apply, exact, kind)


def _probabilities() -> Iterator[OfRows]:
    def entropy(row: Sequence[Jet]) -> Jet:
        return -jets.total([p * jets.log(p) for p in _softmax(row)])

    def unlikelihood(row: Sequence[Jet]) -> Jet:
        p = _softmax(row)
        return -jets.log(p[0] + p[2]) - jets.log(p[1] + p[2])

    def divergence(row: Sequence[Jet], other: Sequence[Jet]) -> Jet:
        return jets.total([p * jets.log(p / q) for p, q in zip(_softmax(row), _softmax(other), strict=True)])

    def cross_entropy(row: Sequence[Jet], other: Sequence[Jet]) -> Jet:
        return -jets.total([q * jets.log(p) for p, q in zip(_softmax(row), _softmax(other), strict=True)])

    def log_softmax(x: Array) -> Array:
        return x - jnp.log(jnp.sum(jnp.exp(x), axis=-1, keepdims=True))

    yield from _of_softmax(
        "entropy", entropy, "rows",
        plain=lambda softmax, x: -jnp.sum(softmax(x) * jnp.log(softmax(x)), axis=-1),
        xlogy=lambda softmax, x: -jnp.sum(special.xlogy(softmax(x), softmax(x)), axis=-1),
        library=lambda softmax, x: jnp.sum(special.entr(softmax(x)), axis=-1),
        dot=lambda softmax, x: -jnp.einsum("...i,...i->...", softmax(x), jnp.log(softmax(x))),
        log_softmax=lambda softmax, x: -jnp.sum(softmax(x) * log_softmax(x), axis=-1),
        of_inverse=lambda softmax, x: jnp.sum(softmax(x) * jnp.log(1 / softmax(x)), axis=-1),
    )  # fmt: skip
    yield from _of_softmax(
        "unlikelihood", unlikelihood, "rows",
        log=lambda softmax, x: -jnp.sum(jnp.log(1 - softmax(x))[..., 1::-1], axis=-1),
        log1p=lambda softmax, x: -jnp.log1p(-softmax(x)[..., 0]) - jnp.log1p(-softmax(x)[..., 1]),
        product=lambda softmax, x: -jnp.log(jnp.prod(1 - softmax(x)[..., :2], axis=-1)),
        multiplied=lambda softmax, x: -jnp.sum(jnp.array([1, 1, 0], x.dtype) * jnp.log(1 - softmax(x)), axis=-1),
    )  # fmt: skip
    yield from _of_softmax(
        "divergence", divergence, "two logits",
        quotient=lambda softmax, x, u: jnp.sum(softmax(x) * jnp.log(softmax(x) / softmax(u)), axis=-1),
        difference=lambda softmax, x, u: jnp.sum(
            softmax(x) * (jnp.log(softmax(x)) - jnp.log(softmax(u))), axis=-1
        ),
        apart=lambda softmax, x, u: jnp.sum(
            softmax(x) * jnp.log(softmax(x)) - softmax(x) * jnp.log(softmax(u)), axis=-1
        ),
        library=lambda softmax, x, u: jnp.sum(special.rel_entr(softmax(x), softmax(u)), axis=-1),
    )  # fmt: skip
    yield from _of_softmax(
        "distillation", cross_entropy, "two logits",
        log=lambda softmax, x, u: -jnp.sum(softmax(u) * jnp.log(softmax(x)), axis=-1),
        log_softmax=lambda softmax, x, u: -jnp.sum(softmax(u) * log_softmax(x), axis=-1),
        dot=lambda softmax, x, u: -(jnp.log(softmax(x)) @ softmax(u)),
    )  # fmt: skip
    yield from _of_softmax(
        "log_odds", lambda row: row[0] - row[1], "rows",
        quotient=lambda softmax, x: jnp.log(softmax(x)[..., 0] / softmax(x)[..., 1]),
        difference=lambda softmax, x: jnp.log(softmax(x)[..., 0]) - jnp.log(softmax(x)[..., 1]),
    )  # fmt: skip


# -- differences of two exponentials --------------------------------------------------


def _differences() -> Iterator[OfRows]:
    def log_difference(row: Sequence[Jet]) -> Jet:
        return jets.log(jets.exp(row[0]) - jets.exp(row[1]))

    yield from _named(
        "logdiffexp", log_difference, "pairs",
        plain=lambda x: jnp.log(jnp.exp(x[..., 0]) - jnp.exp(x[..., 1])),
        log1p=lambda x: x[..., 0] + jnp.log1p(-jnp.exp(x[..., 1] - x[..., 0])),
        log=lambda x: x[..., 0] + jnp.log(1 - jnp.exp(x[..., 1] - x[..., 0])),
        expm1=lambda x: x[..., 1] + jnp.log(jnp.expm1(x[..., 0] - x[..., 1])),
        exp_minus_1=lambda x: x[..., 1] + jnp.log(jnp.exp(x[..., 0] - x[..., 1]) - 1),
        product=lambda x: jnp.log(jnp.exp(x[..., 0]) * (1 - jnp.exp(x[..., 1]) / jnp.exp(x[..., 0]))),
        signed_sum=lambda x: jnp.log(jnp.sum(jnp.array([1, -1], x.dtype) * jnp.exp(x), axis=-1)),
        matmul=lambda x: jnp.log(jnp.exp(x) @ jnp.array([1, -1], x.dtype)),
        library=lambda x: special.logsumexp(x, axis=-1, b=jnp.array([1, -1], x.dtype)),
    )  # fmt: skip
    yield from _named(
        "log_sigmoid_difference",
        lambda row: jets.log(1 / (1 + jets.exp(-row[0])) - 1 / (1 + jets.exp(-row[1]))), "pairs",
        sigmoid=lambda x: jnp.log(jax.nn.sigmoid(x[..., 0]) - jax.nn.sigmoid(x[..., 1])),
        quotient=lambda x: jnp.log(1 / (1 + jnp.exp(-x[..., 0])) - 1 / (1 + jnp.exp(-x[..., 1]))),
        complement=lambda x: jnp.log((1 - jax.nn.sigmoid(x[..., 1])) - (1 - jax.nn.sigmoid(x[..., 0]))),
    )  # fmt: skip
    yield from _named(
        "pairwise", lambda row: jets.log(1 + jets.exp(row[1] - row[0])), "pairs",
        quotient=lambda x: -jnp.log(jnp.exp(x[..., 0]) / (jnp.exp(x[..., 0]) + jnp.exp(x[..., 1]))),
        sigmoid=lambda x: -jnp.log(jax.nn.sigmoid(x[..., 0] - x[..., 1])),
        difference=lambda x: jnp.logaddexp(x[..., 0], x[..., 1]) - x[..., 0],
        log1p=lambda x: jnp.log1p(jnp.exp(x[..., 1]) / jnp.exp(x[..., 0])),
        sum=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1)) - x[..., 0],
        logs=lambda x: jnp.log(jnp.sum(jnp.exp(x), axis=-1)) - jnp.log(jnp.exp(x[..., 0])),
    )  # fmt: skip


OF_ROWS = (*_sums(), *_mixtures(), *_probabilities(), *_differences())
