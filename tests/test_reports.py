"""Failures that people reported: right when stabilized, however they are run."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special as jsp

from stablegrad import stabilize

ROWS = [json.loads(line) for line in (Path(__file__).parent / "cases" / "reported.jsonl").read_text().splitlines()]
ACCURATE = 1e-5
RIGHT_TOPICS = {"softmax-logsumexp", "sigmoid-bce", "log1p-expm1", "where-grad", "xlogy-kl", "hmm-ctc-ot"}
RIGHT_ROWS = {
    "mixture-density-underflow",
    "normal-logcdf-far-tail",
    "poisson-zero-rate",
    "multinomial-zero-count-zero-prob",
    "gamma-logpdf-boundary",
    "adam-step-through-sqrt",
    "cdist-with-self",
    "fourth-root-loss",
    "fp16-norm-overflow",
    "gauss-of-norm-zero",
    "geometric-mean-underflow",
    "matern32-diagonal",
    "norm-underflow",
    "power-exponent-gradient-zero-base",
    "product-gradient-by-division",
    "rmse-perfect-fit",
    "wgan-gradient-penalty-zero",
}
NO_RULE_YET = {
    "cancellation": "moments of nearly equal numbers",
    "half-precision": "scaled lengths",
    "log-density-tail": "differences of gamma functions and of distribution functions",
    "matrix": "decompositions of degenerate matrices",
    "norm-at-zero": "lengths and roots at zero",
    "overflow": "scaled lengths",
    "power-product": "roots and products at zero",
    "trig-geometry": "trigonometric functions near their turning points",
}
# People disagree, or the program itself is undefined: it only has to run.
POLICY = {"fp16-adam-eps-underflow", "constant-batch-std", "pearson-constant-input"}


def number(v):
    return [number(x) for x in v] if isinstance(v, list) else float(v)


def function(row):
    scope = {"jax": jax, "jnp": jnp, "lax": lax, "jsp": jsp, "math": math}
    if row["expr_jax"].startswith("lambda"):
        return eval(row["expr_jax"], scope)
    exec(row["expr_jax"], scope)
    return scope["f"]


def error(got, right, dtype):
    """Largest relative error; infinite for a wrong kind of number, 0 below the smallest normal one."""
    got, right = np.asarray(got, np.float64), np.asarray(number(right), np.float64)
    assert got.shape == right.shape
    with np.errstate(all="ignore"):
        right = right.astype(dtype).astype(np.float64)
        tiny, rounding = float(np.finfo(dtype).tiny), 4 * float(np.finfo(dtype).eps)
        same = (np.isnan(got) & np.isnan(right)) | (got == right)
        close = (np.abs(got - right) <= tiny) | ((right == 0) & (np.abs(got) <= rounding))
        relative = np.where(np.isfinite(got) & np.isfinite(right), np.abs(got - right) / np.abs(right), np.inf)
    return float(np.max(np.where(same | close, 0.0, relative), initial=0.0))


def routes(row):
    """(route, error of its value, error of its gradient) of the stabilized function."""
    dtype, right = row["dtype"], row["right_value"]
    args = {k: jnp.asarray(np.array(number(v)), dtype) for k, v in row["inputs"].items()}
    names, values = list(args), list(args.values())
    wrt = tuple(names.index(name) for name in row["diff_args"])
    f = stabilize(function(row))

    def value(got):
        return error(got, right["value"], dtype)

    def gradient(got):
        return max(error(g, right["grad"][name], dtype) for g, name in zip(got, row["diff_args"], strict=True))

    yield "call", value(f(*values)), 0.0
    yield "jit", value(jax.jit(f)(*values)), 0.0
    for name, wrap in (("value_and_grad", lambda g: g), ("jitted value_and_grad", jax.jit)):
        found = wrap(jax.value_and_grad(f, wrt))(*values)
        yield name, value(found[0]), gradient(found[1])
    yield "jacfwd", 0.0, gradient(jax.jacfwd(f, wrt)(*values))


def parameters():
    for row in ROWS:
        right = row["topic"] in RIGHT_TOPICS or row["id"] in RIGHT_ROWS
        marks = []
        if not right and row["id"] not in POLICY:
            reason = f"no rule yet: {row['topic']}: {NO_RULE_YET[row['topic']]}"
            marks = [pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)]
        yield pytest.param(row, id=row["id"], marks=marks)


@pytest.mark.parametrize("row", list(parameters()))
def test_reported(row):
    found = list(routes(row))
    limit = 4e-3 if row["dtype"] == "float16" else ACCURATE
    wrong = [f"{name}: value {v:.1e}, gradient {g:.1e}" for name, v, g in found if not max(v, g) <= limit]
    assert row["id"] in POLICY or not wrong, "; ".join(wrong)


@pytest.mark.parametrize("row", [r for r in ROWS if r["topic"] in RIGHT_TOPICS], ids=lambda row: row["id"])
def test_plain_is_wrong(row):
    """The rows are failures: value or gradient of the plain function is off, eagerly."""
    args = {k: jnp.asarray(np.array(number(v)), row["dtype"]) for k, v in row["inputs"].items()}
    wrt = tuple(list(args).index(name) for name in row["diff_args"])
    value, gradient = jax.value_and_grad(function(row), wrt)(*args.values())
    right = row["right_value"]
    errors = [error(value, right["value"], row["dtype"])]
    errors += [error(g, right["grad"][n], row["dtype"]) for g, n in zip(gradient, row["diff_args"], strict=True)]
    assert max(errors) > ACCURATE
