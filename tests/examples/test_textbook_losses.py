"""Each textbook loss fails in plain float32 JAX and comes out right from ``stabilize``, judged by mpmath."""

import functools
import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from stablegrad import stabilize
from stablegrad.truth import truth

FILE = Path(__file__).resolve().parents[2] / "examples" / "textbook_losses.py"
STEP = mpmath.mpf(10) ** -250


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("textbook_losses", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOSSES = load()
EXACT = load()
elementwise = lambda function: np.frompyfunc(function, 1, 1)  # noqa: E731
EXACT.jnp = SimpleNamespace(
    exp=elementwise(mpmath.exp),
    log=elementwise(mpmath.log),
    cosh=elementwise(mpmath.cosh),
    sqrt=mpmath.sqrt,
    pi=mpmath.pi,
    sum=np.sum,
    mean=lambda x: np.sum(x) / np.size(x),
    arange=np.arange,
    diagonal=np.diagonal,
    eye=lambda n: elementwise(mpmath.mpf)(np.eye(n)),
)

CASES = [
    (name, number, example)
    for name, examples in LOSSES.EXAMPLES.items()
    for number, example in enumerate(examples if isinstance(examples, list) else [examples])
]
IDS = [f"{name}-{number}" for name, number, _ in CASES]


def is_float(x) -> bool:
    return np.issubdtype(np.asarray(x).dtype, np.floating)


@functools.cache
def exact(name: str, number: int) -> dict[str, np.ndarray]:
    """Value, and gradient of the summed value by every float argument, by mpmath with 700 digits."""
    function = getattr(EXACT, name)
    (example,) = (example for n, i, example in CASES if (n, i) == (name, number))
    with mpmath.workdps(700):
        point = {k: elementwise(mpmath.mpf)(v.astype(float)) if is_float(v) else v for k, v in example.items()}
        result = {"value": np.asarray(function(**point)).astype(float)}
        for key, array in point.items():
            if is_float(example[key]):
                slopes = np.empty(array.shape)
                for index in np.ndindex(array.shape):
                    up, down = array.copy(), array.copy()
                    up[index] += STEP
                    down[index] -= STEP
                    rise = np.sum(function(**{**point, key: up})) - np.sum(function(**{**point, key: down}))
                    slopes[index] = float(rise / (2 * STEP))
                result[key] = slopes
    return result


def computed(function, example: dict) -> dict[str, np.ndarray]:
    """The same as JAX computes them."""
    floats = {k: jnp.asarray(v) for k, v in example.items() if is_float(v)}
    others = {k: jnp.asarray(v) for k, v in example.items() if not is_float(v)}
    value, pullback = jax.vjp(lambda z: function(**z, **others), floats)
    (gradient,) = pullback(jnp.ones_like(value))
    return {"value": value, **gradient}


def bits(got: np.ndarray, right: np.ndarray) -> float:
    """The largest log2(1 + distance in ulp) of float32; subnormal differences count as none."""
    with np.errstate(over="ignore"):
        got, right = np.asarray(got, np.float64), np.float64(np.asarray(right, np.float32))
    assert got.shape == right.shape
    tiny = float(np.finfo(np.float32).tiny)
    if not np.array_equal(np.isfinite(got), np.isfinite(right)):
        return np.inf
    ulp = np.spacing(np.maximum(np.abs(right), tiny).astype(np.float32)).astype(float)
    distance = np.where(np.abs(got - right) <= tiny, 0, np.abs(got - right) / ulp)
    return float(np.max(np.log2(1 + distance)))


def test_there_are_twenty_losses_and_each_has_an_example() -> None:
    functions = [n for n, f in vars(LOSSES).items() if callable(f) and not n.startswith("_")]
    assert len(functions) == 20
    assert list(LOSSES.EXAMPLES) == functions
    for name in functions:
        assert len(getattr(LOSSES, name).__doc__.splitlines()) == 1


@pytest.mark.parametrize(("name", "number", "example"), CASES, ids=IDS)
def test_the_exact_evaluator_agrees_with_mpmath(name: str, number: int, example: dict) -> None:
    right = exact(name, number)
    found = truth(lambda *z: getattr(LOSSES, name)(**dict(zip(example, z, strict=True))), *example.values())
    assert not found.undecided
    results = {"value": found.value, **dict(zip(example, found.gradient, strict=True))}
    # One bit: mpmath has 0.9 and pi themselves, the program has them as float32 holds them.
    assert max(bits(results[key], right[key]) for key in right) <= 1


@pytest.mark.parametrize(("name", "number", "example"), CASES, ids=IDS)
def test_plain_jax_fails(name: str, number: int, example: dict) -> None:
    right, plain = exact(name, number), computed(getattr(LOSSES, name), example)
    assert all(np.isfinite(r).all() for r in right.values())
    assert max(bits(plain[key], right[key]) for key in right) > 6


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("name", "number", "example"), CASES, ids=IDS)
def test_stabilized_is_right(name: str, number: int, example: dict, wrap) -> None:
    right, stable = exact(name, number), computed(wrap(stabilize(getattr(LOSSES, name))), example)
    assert {key: b for key in right if (b := bits(stable[key], right[key])) > 6} == {}
