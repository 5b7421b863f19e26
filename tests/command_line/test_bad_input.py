"""What a person can get wrong: one message that names their file and line, exit status 2, no traceback."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stablegrad.cli import app

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"  # five lines


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a file puts its folder on the path; take it off again."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def explain(*arguments: str):
    return CliRunner().invoke(app, ["explain", *arguments])


def assert_one_message(result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout.strip() == ""
    assert result.stderr.startswith("stablegrad: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert "bug of stablegrad" not in result.stderr
    for part in parts:
        assert part in result.stderr


# Each case: its name, the file, the function asked for or "", the line named or None, part of the message.
CASES = [
    ("syntax", "def f(x):\n    return x +\n", "", 2, "syntax error: invalid syntax"),
    (
        "import",
        "import no_such_module_anywhere\n",
        "",
        1,
        "running the file raised ModuleNotFoundError: No module",
    ),
    ("exit", "x = 1\nraise SystemExit('usage')\n", "", 2, "running the file raised SystemExit: usage"),
    ("nothing defined", "x = 1\n", "", None, "this file defines no public function"),
    (
        "missing function",
        "def f(x):\n    return x\n",
        "g",
        None,
        "no function 'g' here; the functions are: f",
    ),
    ("not a function", "x = 1\ny = [2.0]\n", "y", 2, "'y' is of type list, not a function"),
    ("class", "class A:\n    pass\n", "A", 1, "'A' is a class, not a function"),
    ("no inputs", "def f(x):\n    return x\n", "", None, "no function has inputs; define EXAMPLES"),
    ("no inputs, named", "x = 1\ndef f(x):\n    return x\n", "f", 2, "f has no inputs; add it to EXAMPLES"),
    (
        "examples no mapping",
        "def f(x):\n    return x\n\n\nEXAMPLES = [1.0]\n",
        "",
        5,
        "EXAMPLES is of type list; it has to be a dict",
    ),
    (
        "examples of nothing",
        'def f(x):\n    return x\n\n\nEXAMPLES = {\n    "f": (1.0,),\n    "g": (1.0,),\n}\n',
        "",
        7,
        "EXAMPLES names 'g', which is no function of this file",
    ),
    (
        "examples misfit by name",
        'def f(x, y):\n    return x\n\n\nEXAMPLES = {\n    "f": {"x": 1.0},\n}\n',
        "",
        6,
        "EXAMPLES['f'] does not fit f(x, y): missing a required argument: 'y'",
    ),
    (
        "examples misfit by position",
        'def f(x):\n    return x\n\n\nEXAMPLES = {"f": [(1.0,), (1.0, 2.0)]}\n',
        "",
        5,
        "EXAMPLES['f'] does not fit f(x) (example 2 of 2): too many positional arguments",
    ),
    (
        "examples a bare array",
        HEAD + 'def f(x):\n    return x\n\n\nEXAMPLES = {"f": np.ones(3)}\n',
        "",
        10,
        "EXAMPLES['f'] is a ndarray; give a dict of arguments by name or a tuple of arguments",
    ),
    (
        "examples empty",
        'def f(x):\n    return x\nEXAMPLES = {"f": []}\n',
        "",
        3,
        "EXAMPLES['f'] is an empty list",
    ),
    (
        "examples of strings",
        HEAD + 'def f(x):\n    return x\nEXAMPLES = {"f": (np.array(["a"]),)}\n',
        "",
        8,
        "x is an array of type <U1; it has to hold numbers",
    ),
    (
        "raises",
        HEAD + 'def helper(x):\n    raise ValueError("too\\nbad")\ndef f(x):\n    return helper(x)\n'
        'EXAMPLES = {"f": (1.0,)}\n',
        "",
        7,
        "f raised ValueError: too bad",
    ),
    (
        "raises with a message that raises",
        HEAD + 'class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError("bad str")\n'
        'def f(x):\n    raise Odd()\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        10,
        "f raised Odd: (no message: its __str__ raises RuntimeError)",
    ),
    (
        "running it raises with a message that raises",
        'class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError("bad str")\nraise Odd()\n',
        "",
        4,
        "running the file raised Odd: (no message",
    ),
    (
        "stops",
        HEAD + 'import sys\ndef f(x):\n    sys.exit(5)\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        HEAD.count("\n") + 3,
        "f raised RuntimeError: it calls sys.exit(5); a loss has to return",
    ),
    (
        "shapes",
        HEAD + 'def f(x):\n    return x @ jnp.ones((4, 2))\nEXAMPLES = {"f": (np.ones(3),)}\n',
        "",
        7,
        "f raised TypeError: ",
    ),
    (
        "returns a string",
        HEAD + 'def f(x):\n    return "loss"\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        6,
        "f returns a value of type str; it has to return arrays",
    ),
    (
        "returns a string inside",
        HEAD + 'def f(x):\n    return {"loss": x, "name": "f"}\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        6,
        "f returns a value of type str at ['name']",
    ),
    (
        "returns None",
        HEAD + '@jax.named_call\ndef f(x):\n    x * 2\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        6,
        "f returns None (is a return statement missing?)",
    ),
    (
        "returns nothing",
        HEAD + 'def f(x):\n    return []\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        6,
        "f returns []: no array at all",
    ),
    (
        "returns integers",
        HEAD + 'def f(x):\n    return jnp.argmax(x)\nEXAMPLES = {"f": ([1.0, 2.0],)}\n',
        "",
        6,
        "f returns no floating-point number",
    ),
    (
        "branches",
        HEAD + 'def f(x):\n    if x > 0:\n        return x\n    return -x\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        7,
        "f needs concrete values here (TracerBoolConversionError), so JAX cannot trace it",
    ),
    (
        "uses numpy",
        HEAD + 'def f(x):\n    y = x * 2\n    return np.log(y)\nEXAMPLES = {"f": (1.0,)}\n',
        "",
        8,
        "f needs concrete values here (TracerArrayConversionError)",
    ),
    (
        "indexes by a mask",
        HEAD + 'def f(x):\n    return x[x > 0].sum()\nEXAMPLES = {"f": ([1.0],)}\n',
        "",
        7,
        "f needs concrete values here (NonConcreteBooleanIndexError)",
    ),
    (
        "uses an array as a size",
        HEAD + 'def f(x, n):\n    return x * jnp.ones(n)\nEXAMPLES = {"f": (1.0, np.array(3))}\n',
        "",
        7,
        "give an argument that is a setting as a Python int, bool or str",
    ),
]


@pytest.mark.parametrize(("source", "function", "line", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_file(tmp_path: Path, source: str, function: str, line: int | None, message: str) -> None:
    path = tmp_path / "losses.py"
    path.write_text(source)
    result = explain(f"{path}::{function}" if function else str(path))
    assert_one_message(result, f"{path}:{line}: " if line else f"{path}: ", message)


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "missing.py"
    assert_one_message(explain(str(path)), f"{path}: no such file")
    assert_one_message(explain(f"{path}::f"), f"{path}: no such file")
    assert_one_message(explain(str(tmp_path)), f"{tmp_path}: a folder, not a file")


def test_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(b"\x00\xff\xfe")
    assert_one_message(explain(str(path)), f"{path}")


@pytest.fixture
def loss(tmp_path: Path) -> str:
    path = tmp_path / "loss.py"
    path.write_text(HEAD + "def loss(x, y):\n    return x * y\ndef other(z, n=2):\n    return z\n")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x"], "--input 'x': write NAME=EXPRESSION"),
        (["--input", "x y=1.0"], "write NAME=EXPRESSION"),
        (["--input", "x=1.0", "--input", "x=2.0"], "x is given twice"),
        (["--input", "x=sin(1)"], "--input 'x=sin(1)': unknown function 'sin'"),
        (
            ["--input", "x=1.0"],
            "no function can be called with the inputs given: loss lacks y; other lacks z",
        ),
        (["--input", "w=1.0"], "--input w: no function has that parameter; the parameters are: n, x, y, z"),
        (["--input", "x=np.zeros(3)"], "'np.zeros(3)' at column 1 is not part of this language; write zeros alone"),
        (["--dtype", "int7", "--input", "x=1.0"], "--dtype int7: the types are float32 and float64"),
        (["--npz", "missing.npz"], "missing.npz: no such file (asked for by --npz)"),
    ],
)
def test_options(loss: str, arguments: list[str], message: str) -> None:
    assert_one_message(explain(loss, *arguments), message)


def test_options_for_one_function_name_its_line(loss: str) -> None:
    assert_one_message(explain(f"{loss}::loss", "--input", "x=1.0"), f"{loss}:6: ", "loss lacks y")


def test_npz(loss: str, tmp_path: Path) -> None:
    objects, single, text = tmp_path / "objects.npz", tmp_path / "single.npy", tmp_path / "text.npz"
    np.savez(objects, x=np.array([None, 1], object), y=np.ones(2))
    np.save(single, np.ones(2))
    text.write_text("no archive")
    assert_one_message(explain(loss, "--npz", str(objects)), "objects.npz: not an .npz file of plain arrays")
    assert_one_message(explain(loss, "--npz", str(single)), "single.npy: this is a single array")
    result = explain(loss, "--npz", str(text))
    assert_one_message(result, "text.npz: not an .npz file of plain arrays; write one with numpy.savez")
    for path in (text, objects):
        assert "pickle" not in explain(loss, "--npz", str(path)).stderr
    np.savez(tmp_path / "strings.npz", x=np.array(["a"]), y=np.ones(2))
    message = "the inputs: x is an array of type <U1; it has to hold numbers"
    assert_one_message(explain(loss, "--npz", str(tmp_path / "strings.npz")), message)


def test_as_a_process(tmp_path: Path) -> None:
    path = tmp_path / "branches.py"
    path.write_text(HEAD + 'def f(x):\n    if x > 0:\n        return x\n    return -x\n\n\nEXAMPLES = {"f": (1.0,)}\n')
    command = [sys.executable, "-m", "stablegrad.cli", "explain", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"stablegrad: {path}:7: f needs concrete values here")
    assert result.stderr.count("\n") == 1
