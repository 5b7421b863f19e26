"""The digits: the plain run dies, the stabilized one passes 95 %, and both are drawn."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


@pytest.fixture(scope="module")
def digits():
    spec = importlib.util.spec_from_file_location("digits", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_targets(digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "digits.png"
    assert digits.main(["--out", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind in ("index", "one-hot", "smoothed"):
        plain, stabilized = (line for line in lines if line.startswith(kind))
        assert "plain" in plain
        assert "dead at step 2" in plain
        assert "alive after 660 steps" in stabilized
        assert float(stabilized.split(" % of")[0].split()[-1]) > 95
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_one_kind_of_target_and_a_run_too_short(digits, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert digits.main(["--targets", "one-hot", "--epochs", "1", "--out", str(tmp_path / "short.png")]) == 1
    out = capsys.readouterr().out
    assert "one-hot" in out
    assert "index" not in out


def test_what_a_person_can_get_wrong(digits, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        digits.main(["--targets", "two-hot"])
    assert caught.value.code == 2
    assert "--targets" in capsys.readouterr().err
