"""Random problems for the compiled kernel under AddressSanitizer and UBSan.

PYTHONPATH=src:tests python -m losses.fuzz [--cases 100000] [--seed 1] [--plain]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stablegrad.losses.kernel.build import SOURCES

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
# The vectors that a processor lacks are not run: 16 lanes, 8 and 4 are different code.
KERNEL = ("ctc.c", "ctc_softmax.c", "ctc_lattice.c")


def compiled(folder: Path, compiler: str, options: tuple[str, ...]) -> Path:
    """The driver and the kernel as one program."""
    program = folder / "fuzz"
    sources = [Path(__file__).with_name("fuzz.c"), *(SOURCES / file for file in KERNEL)]
    command = [compiler, "-std=gnu11", *options, f"-I{SOURCES}", "-pthread", "-o", program, *sources, "-lm"]
    subprocess.run(command, check=True)
    return program


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without the sanitizers")
    parser.add_argument("--compiler", default=os.environ.get("CC", "cc"))
    parser.add_argument("--processor", default="-march=native")
    options = parser.parse_args(arguments)
    flags = ("-O2", options.processor, *(() if options.plain else SANITIZERS))
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder), options.compiler, flags)
        start = time.perf_counter()
        status = subprocess.run([program, str(options.cases), str(options.seed)]).returncode
        print(f"{' '.join(flags)}: exit status {status} after {time.perf_counter() - start:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
