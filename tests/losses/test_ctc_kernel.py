"""The compiled kernel: built, cached, hidden, switched off; the same as the pure computation; random problems."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablegrad
from losses import fuzz
from stablegrad.losses import ctc_loss
from stablegrad.losses.jax.compiled import kernel
from stablegrad.losses.kernel import build

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
WITHOUT_KERNEL = """
import sys
import jax, jax.numpy as jnp, stablegrad
from stablegrad.losses import ctc_loss
about = stablegrad.info()["ctc"]
x = jnp.log(jnp.array([[0.7, 0.3]] * 4))
value, gradient = jax.value_and_grad(lambda x: ctc_loss(x, jnp.array([0, 0]), blank=1))(x)
print(about["implementation"], round(float(value), 5), about["reason"], sep="|")
try:
    ctc_loss(x, jnp.array([0, 0]), blank=1, implementation="compiled")
except RuntimeError as error:
    print(error)
"""


def run(program, **environment):
    environment = os.environ | {"PYTHONPATH": SOURCE, "JAX_PLATFORMS": "cpu"} | environment
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_it_is_used_here():
    found = kernel()
    assert found.path is not None, found.reason
    assert found.path.is_file()
    about = stablegrad.info()["ctc"]
    assert about["implementation"] == "compiled"
    assert about["path"] == str(found.path)
    assert "-O3" in about["options"]


def test_without_a_compiler(tmp_path):
    """Nothing on PATH: the pure computation, and the reason."""
    line, refused = run(WITHOUT_KERNEL, PATH=str(tmp_path), STABLEGRAD_CACHE=str(tmp_path / "cache"), CC="")
    assert line.startswith("pure|1.08441|no C compiler was found")
    assert "there is no compiled kernel: no C compiler was found" in refused
    assert not (tmp_path / "cache").exists()


def test_switched_off(tmp_path):
    line, refused = run(WITHOUT_KERNEL, STABLEGRAD_KERNELS="off", STABLEGRAD_CACHE=str(tmp_path))
    assert line == "pure|1.08441|STABLEGRAD_KERNELS is off"
    assert "STABLEGRAD_KERNELS is off" in refused
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_fails(tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'cc: out of order' >&2\nexit 1\n")
    compiler.chmod(0o755)
    line, _ = run(WITHOUT_KERNEL, CC=str(compiler), STABLEGRAD_CACHE=str(tmp_path / "cache"))
    assert line.startswith("pure|1.08441|")
    assert "cc: out of order" in line
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_others_can_write_to(tmp_path):
    tmp_path.chmod(0o777)
    line, _ = run(WITHOUT_KERNEL, STABLEGRAD_CACHE=str(tmp_path))
    assert line.startswith("pure|1.08441|it could not be compiled: others can write to")


def test_compiled_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("STABLEGRAD_CACHE", str(tmp_path))
    sources = ("ctc.c", "ctc_softmax.c", "ctc_lattice.c")
    first = build.built("ctc", sources)
    assert first.reason == "compiled on first use"
    stamp = first.path.stat().st_mtime_ns
    second = build.built("ctc", sources)
    assert second.path == first.path
    assert second.reason == "compiled before, from the cache"
    assert second.path.stat().st_mtime_ns == stamp
    other = build.built("ctc", sources, depends_on="another version")
    assert other.path != first.path
    assert len(list(tmp_path.iterdir())) == 2


def problems():
    """One shape, so that the pure computation is compiled once; lengths, labels and scales of all kinds."""
    random = np.random.default_rng(7)
    rows, frames, classes, count = 5, 90, 37, 30
    for number in range(25):
        scale = 10.0 ** random.uniform(-1, 3)
        x = (random.standard_normal((rows, frames, classes)) * scale).astype(np.float32)
        blank = (0, 36, 11)[number % 3]
        labels = (blank + random.integers(1, (3, classes)[number % 2], (rows, count))) % classes
        if number % 3 == 0:
            x[random.uniform(size=x.shape) < 0.02] = -np.inf
        yield x, labels, random.integers(0, frames + 1, rows), random.integers(0, count // 2, rows), blank


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_the_same_as_the_pure_computation(kind):
    for x, labels, frames, lengths, blank in problems():
        x = jax.nn.log_softmax(x) if kind == "log_probs" else x
        options = {"kind": kind, "blank": blank}

        def both(implementation, x=x, rest=(labels, frames, lengths), options=options):
            loss, pull = jax.vjp(lambda x: ctc_loss(x, *rest, implementation=implementation, **options), jnp.asarray(x))
            return np.asarray(loss), np.asarray(pull(jnp.ones_like(loss))[0])

        (loss, gradient), (right, slope) = both("compiled"), both("pure")
        assert np.isfinite(loss).any()
        np.testing.assert_allclose(loss, right, rtol=1e-6)
        np.testing.assert_allclose(gradient, slope, rtol=0, atol=4e-5)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC") or "cc")
    assert compiler
    return fuzz.compiled(tmp_path_factory.mktemp("fuzz"), compiler, ("-O2", "-march=native"))


def test_a_thousand_random_problems(driver):
    done = subprocess.run([driver, "1000", "7"], capture_output=True, text=True)
    assert done.stdout == "1000 cases, 0 failed\n"
    assert done.returncode == 0


def test_without_wide_vectors(tmp_path):
    """The code for processors with vectors of four."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    flags = ("-O2", "-mno-avx") if os.uname().machine == "x86_64" else ("-O2",)
    program = fuzz.compiled(tmp_path, compiler, flags)
    done = subprocess.run([program, "1000", "8"], capture_output=True, text=True)
    assert done.stdout == "1000 cases, 0 failed\n"
