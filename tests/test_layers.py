"""Imports go one way: graph <- facts <- rules <- rewrite <- api, and only the engines know a framework."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = "stablegrad"

# What each part may import of the package. A part is a folder or a file right under the package; a key with a
# dot is a file within a part that may do more than the rest of it. A new part needs a line here.
ALLOWED = {
    "graph": {"graph"},
    "facts": {"graph", "facts"},
    "policy": set(),
    "rules": {"graph", "facts", "rules"},
    "rules.conventions": {"graph", "facts", "rules", "policy"},
    "rewrite": {"graph", "facts", "rules", "rules.conventions", "policy", "rewrite"},
    "numerics": {"numerics"},
    "losses": {"numerics", "losses"},
    "engines": {"graph", "numerics", "engines"},
    "exact": {"graph", "facts", "exact"},
    "truth": {"graph", "exact", "engines", "truth"},
    "report": {"graph", "rewrite", "report"},
    "diagnose": {"graph", "facts", "exact", "engines", "truth", "report", "diagnose"},
    "api": {
        "graph",
        "facts",
        "rules",
        "rewrite",
        "policy",
        "numerics",
        "engines",
        "exact",
        "report",
        "diagnose",
        "api",
    },
    "__init__": {"api", "policy", "report", "rewrite", "numerics", "losses", "diagnose"},
    "command_line": {"__init__", "report", "truth", "command_line"},
    "cli": {"command_line"},
}
# The parts that reason about programs of any framework.
WITHOUT_FRAMEWORK = {"graph", "facts", "rules", "rewrite", "exact"}
FRAMEWORKS = {"jax", "jaxlib", "torch", "pytensor"}
FILES = sorted((SOURCE / PACKAGE).rglob("*.py"))


def layer(module: str) -> str:
    """The key of `ALLOWED` that a module of the package falls under."""
    _, *parts = module.split(".")
    if not parts:
        return "__init__"
    return ".".join(parts[:2]) if ".".join(parts[:2]) in ALLOWED else parts[0]


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """The modules that a file imports anywhere, in functions and under TYPE_CHECKING too, by full name."""
    found = set()
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{name}.{alias.name}"
                found.add(inner if is_module(inner) else name)
    return found


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def violations(path: Path) -> list[str]:
    own = layer(module_of(path))
    if own not in ALLOWED:
        return [f"{own} is a part that ALLOWED does not name"]
    found = []
    for name in sorted(imports(path)):
        top = name.split(".")[0]
        if top == PACKAGE and layer(name).split(".")[0] not in ALLOWED[own]:
            found.append(f"{own} imports {name}")
        if top in FRAMEWORKS and own in WITHOUT_FRAMEWORK:
            found.append(f"{own} imports {name}: only the engines know a framework")
    return found


@pytest.mark.parametrize("path", FILES, ids=[module_of(path) for path in FILES])
def test_imports_go_one_way(path: Path) -> None:
    assert violations(path) == []


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("graph/node.py", "from stablegrad.facts import Facts", "graph imports stablegrad.facts"),
        ("facts/new.py", "from ..rules import log", "facts imports stablegrad.rules"),
        ("rules/log.py", "def f():\n    import jax.numpy", "rules imports jax.numpy: only the engines"),
        ("rules/log.py", "from stablegrad import api", "rules imports stablegrad.api"),
        ("rules/log.py", "import stablegrad", "rules imports stablegrad"),
        ("exact/series.py", "import torch", "exact imports torch: only the engines"),
        ("engines/jax/emit.py", "from stablegrad.rules import log", "engines imports stablegrad.rules"),
        ("novelty/new.py", "", "novelty is a part that ALLOWED does not name"),
    ],
)
def test_the_check_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, source: str, expected: str) -> None:
    for name in ("api", "rules", "facts", "graph"):
        (tmp_path / PACKAGE / name).mkdir(parents=True)
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    path = tmp_path / PACKAGE / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    (found,) = violations(path)
    assert found.startswith(expected)
