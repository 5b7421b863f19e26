"""Compile a kernel on first use and keep it in the user's cache.

A library is kept under a key of everything that it depends on: the sources, the compiler, its options, the processor
and whatever the caller adds (jaxlib's version for what is bound to XLA). Without a compiler, or where compiling fails,
there is no kernel, and a reason; nothing requires one. `STABLEGRAD_KERNELS=off` asks for none.
"""

import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

__all__ = ["Kernel", "built", "cache_directory", "switched_off"]

Strings: TypeAlias = tuple[str, ...]

SOURCES = Path(__file__).resolve().parent
OPTIONS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread")
# The first that the compiler accepts: some know the processor by another name, some not at all.
FOR_THIS_PROCESSOR = (("-march=native",), ("-mcpu=native",), ())


@dataclass(frozen=True)
class Kernel:
    """A library that can be loaded, or why there is none."""

    path: Path | None
    reason: str
    compiler: str = ""
    options: tuple[str, ...] = ()


def switched_off() -> bool:
    return os.environ.get("STABLEGRAD_KERNELS", "").lower() in {"off", "0", "no", "false"}


def cache_directory() -> Path:
    """`STABLEGRAD_CACHE`, or a folder of the user's cache."""
    given = os.environ.get("STABLEGRAD_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stablegrad"


def built(name: str, sources: Strings, include: Strings = (), depends_on: str = "") -> Kernel:
    """The library `name` of these sources, from the cache or compiled now."""
    if switched_off():
        return Kernel(None, "STABLEGRAD_KERNELS is off")
    compiler = _compiler()
    if compiler is None:
        return Kernel(None, "no C compiler was found (cc, gcc, clang, or the one that CC names)")
    try:
        directory = _own_directory(cache_directory())
        failure = ""
        for processor in FOR_THIS_PROCESSOR:
            options = (*OPTIONS, *processor)
            key = _key(sources, compiler, options, include, depends_on)
            path = directory / f"{name}-{key}.so"
            if path.is_file():
                return Kernel(path, "compiled before, from the cache", compiler, options)
            failure = _compile(path, sources, compiler, options, include)
            if not failure:
                return Kernel(path, "compiled on first use", compiler, options)
        return Kernel(None, f"{compiler} failed: {failure}", compiler)
    except (OSError, subprocess.SubprocessError) as error:
        return Kernel(None, f"it could not be compiled: {error}", compiler)


def _compiler() -> str | None:
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return found
    return None


def _own_directory(directory: Path) -> Path:
    """The folder, made if need be. Nobody else may write where code is loaded from."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = directory.stat()
    if about.st_uid != os.getuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others can write to {directory}")
    return directory


def _key(sources: Strings, compiler: str, options: Strings, include: Strings, depends_on: str) -> str:
    digest = hashlib.sha256()
    for file in sorted({*sources, *(path.name for path in SOURCES.glob("*.h"))}):
        digest.update(file.encode() + b"\0" + (SOURCES / file).read_bytes())
    for part in (_version_of(compiler), *options, *include, _processor(), depends_on):
        digest.update(b"\0" + part.encode())
    return digest.hexdigest()[:24]


@functools.cache
def _version_of(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout


@functools.cache
def _processor() -> str:
    parts = [platform.machine(), platform.processor()]
    information = Path("/proc/cpuinfo")
    if information.is_file():
        lines = information.read_text(errors="replace").splitlines()
        parts += [
            next((x for x in lines if x.lower().startswith(key)), "") for key in ("model name", "flags", "features")
        ]
    return "\n".join(parts)


def _compile(path: Path, sources: Strings, compiler: str, options: Strings, include: Strings) -> str:
    """Compile to `path`, all at once; what the compiler said if it failed."""
    handle, temporary = tempfile.mkstemp(suffix=".so", dir=path.parent)
    os.close(handle)
    try:
        command = [compiler, *options, *(f"-I{folder}" for folder in include), "-o", temporary]
        command += [str(SOURCES / file) for file in sources] + ["-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return lines[0] if lines else f"exit status {done.returncode}"
        os.chmod(temporary, 0o700)
        os.replace(temporary, path)
        return ""
    finally:
        Path(temporary).unlink(missing_ok=True)
