"""The README's commands are those that are run, and the names that it gives exist."""

import re
import stat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPT = ROOT / ".ci" / "run"


def test_ci_runs_the_readme_command_word_for_word() -> None:
    command = SCRIPT.read_text(encoding="utf-8").splitlines()[-1]
    assert command.endswith("-m pytest -n 2")
    assert f"```sh\n{command}\n```" in README


def test_ci_script_is_executable() -> None:
    assert SCRIPT.stat().st_mode & stat.S_IXUSR


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_files_named_in_commands_exist() -> None:
    named = re.findall(r"examples/\w+\.py", README)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
