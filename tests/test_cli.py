"""The command as a person runs it, with the real `stabilize` and the real truth."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stablegrad.cli import app

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "textbook_losses.py"
LOSS = """\
import jax.numpy as jnp


def loss(logits, labels, power=1):
    p = jnp.exp(logits) / jnp.sum(jnp.exp(logits), axis=-1, keepdims=True)
    return -jnp.mean(jnp.log(p[jnp.arange(len(labels)), labels])) ** power


def scaled(weights):
    return {"total": jnp.log(jnp.sum(jnp.exp(weights["a"]) * weights["b"])), "best": jnp.argmax(weights["a"])}


def cancels(x):
    return jnp.sum((x + 1e8) - 1e8)


EXAMPLES = {
    "scaled": {"weights": {"a": [100.0, 2.0], "b": [0.5, 2.0]}},
    "cancels": [{"x": [1.5]}],
}
"""


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a file puts its folder on the path; take it off again."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(autouse=True)
def no_width_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some runners of tests tell their processes a width; a command whose output goes to a file has none."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "my_losses.py"
    path.write_text(LOSS)
    return str(path)


def explain(*arguments: str):
    return CliRunner().invoke(app, ["explain", *arguments])


def test_help_and_version() -> None:
    assert explain("--help").exit_code == 0
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"stablegrad {importlib.metadata.version('stablegrad')}"


def test_textbook_losses_are_wrong_plainly_and_right_stabilized() -> None:
    result = explain(str(EXAMPLE), "--check")
    assert result.exit_code == 0, result.output
    assert "22 calls: plain wrong in 22, stabilized wrong in 0\n" in result.stdout
    assert "return -jnp.mean(jnp.sum(targets * jnp.log(p), axis=1))" in result.stdout
    assert result.stderr == ""


def test_one_function_under_jit_in_float64() -> None:
    result = explain(f"{EXAMPLE}::log_sum_exp", "--dtype", "float64", "--jit", "--input", "x=[1000.0, 999]", "--check")
    assert result.exit_code == 0, result.output
    assert "1000.313261687518" in result.stdout
    assert "1 call: plain wrong in 1, stabilized wrong in 0" in result.stdout


def test_examples_with_a_dict_and_an_integer_result(file: str) -> None:
    result = explain(f"{file}::scaled", "--check")
    assert result.exit_code == 0, result.output
    assert "value['total']" in result.stdout
    assert "gradient by weights['a'] at [" in result.stdout
    assert "best" not in result.stdout.replace('"best"', "")


def test_npz_and_inputs(file: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", logits=np.array([[3, 200.0], [1, -300]]))
    options = ["--npz", str(tmp_path / "inputs.npz"), "--input", "labels=[0, 1]", "--input", "power=2"]
    result = explain(file, *options, "--check")
    assert result.exit_code == 0, result.output
    assert "without inputs: scaled, cancels" in result.stdout
    assert "1 call: plain wrong in 1, stabilized wrong in 0" in result.stdout


def test_wide_inputs_are_sampled(file: str) -> None:
    options = ["--input", "logits=normal(32,10)*1e3", "--input", "labels=arange(32)*0", "--seed", "3"]
    result = explain(f"{file}::loss", *options)
    assert result.exit_code == 0, result.output
    assert "of 320 derivative entries checked, chosen at random" in result.stdout


def test_check_exits_with_one_when_a_result_is_wrong(file: str) -> None:
    wrong = explain(f"{file}::cancels", "--check")
    assert wrong.exit_code == 1, wrong.output
    assert "stabilized wrong in 1" in wrong.stdout
    assert explain(f"{file}::cancels").exit_code == 0


def test_as_a_process(file: str) -> None:
    script = Path(sys.executable).with_name("stablegrad")
    command = [str(script), "explain", f"{file}::scaled", "--no-gradient"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "stabilized wrong in 0" in result.stdout
    assert "gradient by" not in result.stdout
