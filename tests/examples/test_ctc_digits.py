"""The lines of digits: under 5 % of the labels wrong, and the picture is drawn."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "examples" / "ctc_digits.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("ctc_digits", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_under_five_percent_and_a_picture(example, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "line.png"
    assert example.main(["--out", str(picture)]) == 0
    out = capsys.readouterr().out
    assert float(out.split(" % of the labels")[0].split()[-1]) < 5
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_a_run_too_short(example, tmp_path: Path) -> None:
    assert example.main(["--steps", "3", "--out", str(tmp_path / "short.png")]) == 1


@pytest.mark.parametrize(
    ("a", "b", "right"), [([], [], 0), ([1, 2], [1, 2], 0), ([1], [2, 1], 1), ([1, 2, 3], [3], 2), ([1, 2], [2, 1], 2)]
)
def test_distance(example, a, b, right) -> None:
    assert example.distance(a, b) == right
