"""Failures that people reported: the exact answer is the right one, or the reason why there is none."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special as jsp

from stablegrad.exact.error import within_contract
from stablegrad.truth import truth

ROWS = [json.loads(line) for line in (Path(__file__).parent / "reported.jsonl").read_text().splitlines()]


def number(v):
    return [number(x) for x in v] if isinstance(v, list) else float(v)


def build(source):
    scope = {"jax": jax, "jnp": jnp, "lax": lax, "jsp": jsp, "math": math}
    if source.startswith("lambda"):
        return eval(source, scope)
    exec(source, scope)
    return scope["f"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_reported(row):
    dtype = row["dtype"]
    arguments = {k: jnp.asarray(np.array(number(v)), dtype) for k, v in row["inputs"].items()}
    names = list(arguments)
    wrt = tuple(names.index(name) for name in row["diff_args"])
    found = truth(build(row["expr_jax"]), *arguments.values(), wrt=wrt)
    assert np.all(found.value_decided)
    assert np.all(within_contract(found.value, number(row["right_value"]["value"]), 0, dtype, 1.0))
    for k in wrt:
        right = np.array(number(row["right_value"]["grad"][names[k]]))
        if row["uniqueness"] == "convention" and not np.all(found.gradient_decided[k]):
            assert found.reasons == ("the one-sided derivatives differ",)
            continue
        assert np.all(found.gradient_decided[k]), found.reasons
        assert np.all(within_contract(found.gradient[k], right, 0, dtype, 1.0))
