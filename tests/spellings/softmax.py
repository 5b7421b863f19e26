"""Softmax spelled in every way, times what stands between, times cross entropy spelled in every way.

`combinations()` composes three functions: a spelling of softmax (logits -> probabilities), what stands between, and a
loss (probabilities, targets -> a number). Each of the three also says what it is in exact arithmetic, once for all
combinations: `expected` composes those in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from spellings import jets
from spellings.bound import Exact, exact
from spellings.inputs import Case, cases
from spellings.jets import Jet

Array = jax.Array
SMOOTHING = 0.125  # a power of 2: the smoothed targets are exact in every dtype


@dataclass(frozen=True)
class Softmax:
    """`probabilities(x, axis)`; from one logit per row if `binary`, else from one per class, along `axis`."""

    name: str
    probabilities: Callable[[Array, int], Array]
    binary: bool = False


@dataclass(frozen=True)
class Between:
    """`apply(softmax, row_loss, x, y, t)` gives the losses of the rows; `logits` and `probabilities` do so exactly."""

    name: str
    apply: Callable[..., Array]
    logits: Callable[[list[Jet]], list[Jet]] = list
    probabilities: Callable[[list[Jet]], list[Jet]] = list


@dataclass(frozen=True)
class Loss:
    """`of_rows(p, y, t)` gives a number per row, `reduce` one number; `exact(p, y, t)` and `weight` do so exactly.

    `targets`: the loss reads `t`, so that rounding `t` changes it.
    """

    name: str
    of_rows: Callable[[Array, Array, Array], Array]
    exact: Callable[[list[Jet], int, list], Jet]
    reduce: Callable[[Array], Array] = jnp.mean
    weight: Callable[[int], float] = lambda rows: 1 / rows
    targets: bool = False


# -- six ways to write softmax --------------------------------------------------


def _library(x: Array, axis: int) -> Array:
    return jax.nn.softmax(x, axis=axis)


def _exp_over_sum(x: Array, axis: int) -> Array:
    return jnp.exp(x) / jnp.sum(jnp.exp(x), axis=axis, keepdims=True)


def _shifted(x: Array, axis: int) -> Array:
    e = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True))
    return e / jnp.sum(e, axis=axis, keepdims=True)


def _by_logsumexp(x: Array, axis: int) -> Array:
    return jnp.exp(x - jax.scipy.special.logsumexp(x, axis=axis, keepdims=True))


def _two_classes(z: Array, axis: int) -> Array:
    s = jax.nn.sigmoid(z)
    return jnp.stack([1 - s, s], axis=axis)


def _normalised_twice(x: Array, axis: int) -> Array:
    e = jnp.exp(x)
    p = e / jnp.sum(e, axis=axis, keepdims=True)
    return p / jnp.sum(p, axis=axis, keepdims=True)


SOFTMAXES = (
    Softmax("library", _library),
    Softmax("exp_over_sum", _exp_over_sum),
    Softmax("shifted", _shifted),
    Softmax("by_logsumexp", _by_logsumexp),
    Softmax("two_classes", _two_classes, binary=True),
    Softmax("normalised_twice", _normalised_twice),
)


# -- ten ways to write cross entropy --------------------------------------------------


def _one_hot(p: Array, y: Array) -> Array:
    return jax.nn.one_hot(y, p.shape[-1], dtype=p.dtype)


def _pick(a: Array, y: Array) -> Array:
    return a[jnp.arange(a.shape[0]), y] if a.ndim == 2 else a[y]


def _smoothed(p: Array, y: Array, t: Array) -> Array:
    target = (1 - SMOOTHING) * _one_hot(p, y) + SMOOTHING / p.shape[-1]
    return -jnp.sum(target * jnp.log(p), axis=-1)


def _smoothed_exact(p: list[Jet], y: int, t: list) -> Jet:
    n = len(p)
    return -jets.total([jets.log(q) * ((1 - SMOOTHING) * (k == y) + SMOOTHING / n) for k, q in enumerate(p)])


def _kullback_leibler_exact(p: list[Jet], y: int, t: list) -> Jet:
    return jets.total([s * jets.log(s / q) for q, s in zip(p, t, strict=True) if isinstance(s, Jet)])


def _weighted(p: list[Jet], t: list) -> list[Jet]:
    return [s * q for q, s in zip(p, t, strict=True) if isinstance(s, Jet)]


LOSSES = (
    Loss(
        "one_hot",
        lambda p, y, t: -jnp.sum(_one_hot(p, y) * jnp.log(p), axis=-1),
        lambda p, y, t: -jets.log(p[y]),
    ),
    Loss(
        "soft",
        lambda p, y, t: -jnp.sum(t * jnp.log(p), axis=-1),
        lambda p, y, t: -jets.total(_weighted([jets.log(q) for q in p], t)),
        targets=True,
    ),
    Loss("smoothed", _smoothed, _smoothed_exact),
    Loss("index_before_log", lambda p, y, t: -jnp.log(_pick(p, y)), lambda p, y, t: -jets.log(p[y])),
    Loss("index_after_log", lambda p, y, t: -_pick(jnp.log(p), y), lambda p, y, t: -jets.log(p[y])),
    Loss(
        "sum_inside_log",
        lambda p, y, t: -jnp.log(jnp.sum(t * p, axis=-1)),
        lambda p, y, t: -jets.log(jets.total(_weighted(p, t))),
        targets=True,
    ),
    Loss("log2", lambda p, y, t: -jnp.log2(_pick(p, y)), lambda p, y, t: -jets.log(p[y]) / jets.log_of(2)),
    Loss(
        "kullback_leibler",
        lambda p, y, t: jnp.sum(t * jnp.log(t / p), axis=-1),
        _kullback_leibler_exact,
        targets=True,
    ),
    Loss(
        "log_of_product",
        lambda p, y, t: _pick(p, y),
        lambda p, y, t: -jets.log(p[y]),
        reduce=lambda p: -jnp.log(jnp.prod(p)),
        weight=lambda rows: 1.0,
    ),
    Loss(
        "focal",
        lambda p, y, t: -((1 - _pick(p, y)) ** 2) * jnp.log(_pick(p, y)),
        lambda p, y, t: -((1 - p[y]) ** 2 * jets.log(p[y])),
    ),
)


# -- what stands between --------------------------------------------------

INVERSE_TEMPERATURE, PRIOR = 2.5, 0.25


def _nothing(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    return row(softmax.probabilities(x, -1), y, t)


def _reshape(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    """A batch of one sequence: (1, rows, classes), flattened for the loss."""
    p = softmax.probabilities(x[None], -1)
    return row(p.reshape(-1, p.shape[-1]), y, t)


def _batches_of_one(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    """A loop over batches of one row."""
    each = [slice(k, k + 1) for k in range(x.shape[0])]
    return jnp.concatenate([row(softmax.probabilities(x[k], -1), y[k], t[k]) for k in each])


def _transpose(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    """Classes first."""
    return row(softmax.probabilities(x.T, 0).T, y, t)


def _concatenate_and_split(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    """The probabilities of two views are collected, and the first view's taken apart again."""
    p = softmax.probabilities(x, -1)
    first, _ = jnp.split(jnp.concatenate([p, softmax.probabilities(0.5 * x, -1)]), 2)
    return row(first, y, t)


def _take(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    """The classes in another order."""
    p = softmax.probabilities(x, -1)
    return row(jnp.take(p, jnp.arange(p.shape[-1])[::-1], axis=-1), y, t)


def _vmap(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    return jax.vmap(lambda x, y, t: row(softmax.probabilities(x, -1), y, t))(x, y, t)


def _jitted_helper(softmax: Softmax, row: Callable, x: Array, y: Array, t: Array) -> Array:
    return row(_jitted(softmax)(x), y, t)


@functools.cache
def _jitted(softmax: Softmax) -> Callable[[Array], Array]:
    return jax.jit(lambda x: softmax.probabilities(x, -1))


def _before(change: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda softmax, row, x, y, t: row(softmax.probabilities(change(x), -1), y, t)


def _after(change: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda softmax, row, x, y, t: row(change(softmax.probabilities(x, -1)), y, t)


def _each(change: Callable[[Jet], Jet]) -> Callable[[list[Jet]], list[Jet]]:
    return lambda numbers: [change(number) for number in numbers]


BETWEEN = (
    Between("nothing", _nothing),
    Between("reshape", _reshape),
    Between("batches_of_one", _batches_of_one),
    Between("transpose", _transpose),
    Between("concatenate_and_split", _concatenate_and_split),
    Between("take", _take, probabilities=lambda p: p[::-1]),
    Between("vmap", _vmap),
    Between("jitted_helper", _jitted_helper),
    # JAX's own custom_jvp functions: logits out of a layer with an activation, probabilities known to be positive
    Between("relu_of_logits", _before(jax.nn.relu), logits=_each(jets.relu)),
    Between("softplus_of_logits", _before(jax.nn.softplus), logits=_each(lambda x: jets.log(1 + jets.exp(x)))),
    Between("relu_of_probabilities", _after(jax.nn.relu)),
    Between("temperature", _before(lambda x: x * INVERSE_TEMPERATURE), logits=_each(lambda x: x * INVERSE_TEMPERATURE)),
    Between("prior", _after(lambda p: PRIOR * p), probabilities=_each(lambda p: p * PRIOR)),
)


@dataclass(frozen=True)
class Combination:
    """One program: a softmax, what stands between, and a loss."""

    softmax: Softmax
    between: Between
    loss: Loss

    @property
    def name(self) -> str:
        return f"{self.softmax.name}-{self.between.name}-{self.loss.name}"

    def program(self, x: Array, y: Array, t: Array) -> Array:
        """The loss of rows of logits `x`, labels `y` and soft targets `t`, as a person writes it."""
        return self.loss.reduce(self.between.apply(self.softmax, self.loss.of_rows, x, y, t))

    def cases(self, dtype: str) -> tuple[Case, ...]:
        return cases(self.softmax.binary, dtype)

    def terms(self, case: Case) -> int:
        """The longest sum in the program."""
        return case.t.size

    def expected(self, case: Case) -> tuple[Exact, list[Exact]]:
        """The value and the derivatives by the entries of `case.x`, row after row."""
        return _expected(self.softmax.binary, self.between, self.loss, case)


@functools.cache
def _expected(binary: bool, between: Between, loss: Loss, case: Case) -> tuple[Exact, list[Exact]]:
    weight = loss.weight(len(case.y))
    value, gradient = None, []
    for x, y, t in zip(case.rows(), case.y.tolist(), case.t.tolist(), strict=True):
        known = [k for k, s in enumerate(t) if s != 0] if loss.targets else []
        t_of = {k: len(x) + i for i, k in enumerate(known)}

        def of_row(v: list[Jet], x: list = x, y: int = y, t: list = t, t_of: dict = t_of) -> Jet:
            logits = between.logits(v[: len(x)])
            p = between.probabilities(_softmax([v[0].constant(0.0), *logits] if binary else logits))
            return loss.exact(p, y, [v[t_of[k]] if k in t_of else 0.0 for k in range(len(t))])

        row_value, row_gradient = exact(of_row, [*x, *(t[k] for k in known)], len(x))
        value = row_value.scaled(weight) if value is None else value + row_value.scaled(weight)
        gradient += [g.scaled(weight) for g in row_gradient]
    assert value is not None
    return value, gradient


def _softmax(logits: list[Jet]) -> list[Jet]:
    above = [jets.exp(x) for x in logits]
    below = jets.total(above)
    return [a / below for a in above]


def excluded(softmax: Softmax, between: Between, loss: Loss) -> str | None:
    """Why a combination has no meaning; None for every other. All 780 have one."""
    return None


def combinations() -> Iterator[Combination]:
    for softmax in SOFTMAXES:
        for between in BETWEEN:
            for loss in LOSSES:
                if excluded(softmax, between, loss) is None:
                    yield Combination(softmax, between, loss)
