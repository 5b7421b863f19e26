"""The 30 records, by the pure and by the compiled computation: loss, gradient, Hessian and error."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad.losses import ctc_loss

RECORDS = [json.loads(line) for line in (Path(__file__).parent / "ctc.jsonl").read_text().splitlines()]
LOSS, GRADIENT = 1e-6, 2e-5  # relative; largest entry


def of_kinds(*kinds):
    chosen = [r for r in RECORDS if r["kind"] in kinds]
    assert chosen
    return pytest.mark.parametrize("record", chosen, ids=[r["name"] for r in chosen])


implementations = pytest.mark.parametrize("implementation", ["pure", "compiled"])


def numbers(rows, record):
    return np.array([[float(v) for v in row] for row in rows]).reshape(record["T"], record["C"])


def assert_loss(found, right):
    if np.isinf(right):
        assert found == right
    else:
        assert abs(float(found) - right) <= LOSS * abs(right)


def test_all_are_there():
    assert len(RECORDS) == 30
    assert {r["kind"] for r in RECORDS} == {"logits", "log_probs", "generator", "generator_random", "invalid"}


@implementations
@of_kinds("logits", "log_probs")
def test_loss_and_gradient(record, implementation):
    x = jnp.asarray(numbers(record["x"], record), jnp.float32)
    labels = np.array(record["target"], int)

    def loss(x):
        return ctc_loss(
            x,
            labels,
            record["input_length"],
            kind=record["kind"],
            blank=record["blank"],
            implementation=implementation,
        )

    right = numbers(record["grad_logits"] or record["grad_log_probs"], record)
    assert_loss(loss(x), float(record["loss"]))
    for differentiate in (jax.value_and_grad, lambda f: jax.jit(jax.value_and_grad(f))):
        value, gradient = differentiate(loss)(x)
        assert_loss(value, float(record["loss"]))
        assert np.max(np.abs(np.asarray(gradient, float) - right), initial=0) <= GRADIENT


@implementations
@of_kinds("logits")
def test_gradient_by_log_probabilities(record, implementation):
    x = numbers(record["x"], record)
    with np.errstate(invalid="ignore"):
        peak = np.max(x, axis=1, keepdims=True)
        log_y = x - peak - np.log(np.sum(np.exp(x - peak), axis=1, keepdims=True))
    log_y = jnp.asarray(log_y, jnp.float32)
    labels = np.array(record["target"], int)

    def loss(log_y):
        return ctc_loss(
            log_y,
            labels,
            record["input_length"],
            kind="log_probs",
            blank=record["blank"],
            implementation=implementation,
        )

    gradient = jax.grad(loss)(log_y)
    # Rounding log-probabilities to float32 moves the posterior: by half an ulp of the largest, a frame.
    finite = np.asarray(log_y)[np.isfinite(log_y)]
    rounded = 0 if not finite.size else 2 * record["T"] * np.max(np.abs(finite)) * 2.0**-24
    right = numbers(record["grad_log_probs"], record) if record.get("grad_log_probs") else None
    assert right is not None
    assert np.max(np.abs(np.asarray(gradient, float) - right)) <= GRADIENT + rounded


@implementations
@of_kinds("generator")
def test_closed_forms(record, implementation):
    x = jnp.zeros((record["T"], record["C"]))
    labels = np.full(record["S"], 1)
    assert_loss(ctc_loss(x, labels, implementation=implementation), record["loss"])


@implementations
@of_kinds("generator_random")
def test_sizes_and_scales(record, implementation):
    frames, rows, classes, count = (record[k] for k in "TNCS")
    random = np.random.default_rng(1)
    x = (random.standard_normal((frames, rows, classes)) * record["scale"]).astype(np.float32)
    labels = random.integers(1, classes, (rows, count))

    def loss(x):
        each = ctc_loss(x, labels, implementation=implementation)
        return jnp.sum(each), each

    (_, each), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(jnp.asarray(x.transpose(1, 0, 2)))
    for found, right in zip(each, record["loss"], strict=True):
        assert_loss(found, right)
    gradient = np.asarray(gradient, np.float64).transpose(1, 0, 2)
    picked = gradient.reshape(-1)[record["grad_logits_flat_index"]]
    assert np.max(np.abs(picked - record["grad_logits_value"])) <= GRADIENT
    assert abs(np.sqrt(np.sum(gradient**2)) / record["grad_l2"] - 1) <= 1e-5
    assert np.max(np.abs(gradient.sum(axis=2))) <= GRADIENT


@implementations
@of_kinds("invalid")
def test_invalid_labels_raise(record, implementation):
    with pytest.raises(ValueError, match=r"labels\[1\] = 7 is none of the 3 classes"):
        ctc_loss(numbers(record["x"], record), np.array(record["target"]), implementation=implementation)


@implementations
def test_hessian(implementation):
    (record,) = [r for r in RECORDS if "hessian_logits" in r]
    x = jnp.asarray(numbers(record["x"], record), jnp.float32)

    def loss(x):
        return ctc_loss(x.reshape(3, 3), jnp.array(record["target"]), implementation=implementation)

    right = np.array(record["hessian_logits"]).reshape(9, 9)
    for hessian in (jax.hessian(loss), jax.jit(jax.jacrev(jax.jacrev(loss))), jax.jacfwd(jax.jacfwd(loss))):
        assert np.max(np.abs(hessian(x.reshape(-1)) - right)) <= 1e-5
