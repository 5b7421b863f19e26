"""CTC against optax and torch: time, peak memory, error against float64, edge cases.

python benchmarks/ctc.py [--quick] [--write docs/ctc.md] [--check]

Value and gradient from float32 logits, in turn in one run, with a pause before each turn, so that no thread of another
library is still spinning. Memory is the peak of a process that does nothing else, less what it held before the call.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

FILE = Path(__file__).resolve().parents[1] / "tests" / "losses" / "reference.py"
_specification = importlib.util.spec_from_file_location("reference", FILE)
assert _specification is not None
assert _specification.loader is not None
reference = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(reference)

SIZES = (
    (150, 16, 32, 30),
    (500, 16, 64, 80),
    (1000, 8, 1000, 100),
    (1600, 4, 5000, 200),
)  # frames, rows, classes, labels
LIBRARIES = ("compiled", "pure", "optax", "torch")
WARM, TIMED = 2, 3  # calls of a turn: a training run calls again and again, so its caches and its memory are warm
PAUSE = 0.25  # seconds: longer than OpenMP's threads spin after their last work


def problem(size, scale=1.0):
    frames, rows, classes, labels = size
    random = np.random.default_rng(1)
    x = (random.standard_normal((rows, frames, classes)) * scale).astype(np.float32)
    return x, random.integers(1, classes, (rows, labels))


def prepared(library, x, labels, frames=None, lengths=None, blank=0):
    """A function without arguments that returns losses and gradient, on the library's own arrays."""
    rows, steps, _ = x.shape
    frames = np.full(rows, steps) if frames is None else frames
    lengths = np.full(rows, labels.shape[1]) if lengths is None else lengths
    if library == "torch":
        return torch_call(x, labels, frames, lengths, blank)
    import jax
    import jax.numpy as jnp

    if library == "optax":
        import optax

        frame_padding = jnp.asarray(np.arange(steps) >= frames[:, None], jnp.float32)
        label_padding = jnp.asarray(np.arange(labels.shape[1]) >= lengths[:, None], jnp.float32)

        def loss(x, labels):
            return optax.ctc_loss(x, frame_padding, labels, label_padding, blank_id=blank)
    else:
        from stablegrad.losses import ctc_loss

        def loss(x, labels):
            return ctc_loss(x, labels, frames, lengths, blank=blank, implementation=library)

    def total(x, labels):
        each = loss(x, labels)
        return jnp.sum(each), each

    step = jax.jit(jax.value_and_grad(total, has_aux=True))
    x, labels = jnp.asarray(x), jnp.asarray(labels, jnp.int32)

    def call():
        (_, each), gradient = jax.block_until_ready(step(x, labels))
        return each, gradient

    return call


def torch_call(x, labels, frames, lengths, blank):
    import torch

    logits = torch.tensor(np.ascontiguousarray(x.transpose(1, 0, 2)), requires_grad=True)
    labels, frames, lengths = torch.tensor(labels), torch.tensor(frames), torch.tensor(lengths)

    def call():
        logits.grad = None
        each = torch.nn.functional.ctc_loss(
            logits.log_softmax(-1), labels, frames, lengths, blank=blank, reduction="none"
        )
        each.sum().backward()
        return each.detach().numpy(), logits.grad.numpy().transpose(1, 0, 2)

    return call


def times(size, rounds):
    x, labels = problem(size)
    calls = {library: prepared(library, x, labels) for library in LIBRARIES}
    for call in calls.values():
        call(), call()
    taken = {library: [] for library in LIBRARIES}
    gc.disable()
    for number in range(rounds):
        order = LIBRARIES if number % 2 else LIBRARIES[::-1]
        for library in order:
            time.sleep(PAUSE)
            for _ in range(WARM):
                calls[library]()
            start = time.perf_counter()
            for _ in range(TIMED):
                calls[library]()
            taken[library].append((time.perf_counter() - start) / TIMED)
    gc.enable()
    return taken


def ratio(taken, slow, fast):
    paired = sorted(a / b for a, b in zip(taken[slow], taken[fast], strict=True))
    n = len(paired)
    return statistics.median(paired), paired[n // 4], paired[(3 * n) // 4]


def peak_memory(library, size):
    """Of a process of its own, in MiB, beyond inputs and libraries."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", library, *map(str, size)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def memory_of(library, size):
    prepared(library, *problem((10, 2, 8, 3)))()  # libraries and threads are there
    call = prepared(library, *problem(size))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    call(), call()
    print((resident("VmHWM") - before) / 1024)


def resident(what):
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1])


def errors(size, scale):
    """Largest relative error of a loss, and largest error of a gradient, against float64."""
    x, labels = problem(size, scale)
    right = [reference.loss_and_gradient(x[n], labels[n]) for n in range(len(x))]
    found = {}
    for library in LIBRARIES:
        each, gradient = prepared(library, x, labels)()
        loss = max(abs(float(e) - r) / r for e, (r, _) in zip(each, right, strict=True))
        slope = max(np.max(np.abs(np.asarray(g, np.float64) - s)) for g, (_, s) in zip(gradient, right, strict=True))
        found[library] = (loss, slope)
    return found


def edge_cases():
    """What each library makes of each: (name, x, labels, frames, right loss)."""
    x = np.random.default_rng(0).standard_normal((1, 4, 3)).astype(np.float32)
    minus, padded, infinite = x.copy(), x.copy(), x.copy()
    minus[0, 1, 0], padded[0, 3], infinite[0, 3, 1] = -np.inf, np.nan, np.inf
    confident = np.array([[[0, 17], [0, 17]]], np.float32)
    return (
        ("a logit -inf", minus, [[1, 2]], 4, None),
        ("NaN in padding", padded, [[1, 2]], 3, None),
        ("inf in padding", infinite, [[1, 2]], 3, None),
        ("an impossible target", x, [[1, 1, 1]], 4, np.inf),
        ("no frames", x, [[1]], 0, np.inf),
        ("a nearly certain target, loss 1.71e-15", confident, [[1]], 2, 1.7139082318155e-15),
    )


def right_at_edge(library, x, labels, frames, right):
    labels = np.array(labels)
    if right is None:
        with np.errstate(invalid="ignore", divide="ignore"):
            right = float(reference.enumerated(reference.log_softmax(x[0, :frames]), labels[0], 0)[0])
    each, gradient = prepared(library, x, labels, np.array([frames]))()
    value = float(np.asarray(each)[0])
    near = value == right or abs(value - right) <= 1e-5 * abs(right)
    finite = bool(np.isfinite(np.asarray(gradient)).all())
    still = not np.isinf(right) or not np.asarray(gradient).any()
    if near and finite and still:
        return "right"
    if not finite:
        return f"{int(np.isnan(np.asarray(gradient)).sum())} NaN in the gradient"
    return f"loss {value:.4g}" if not near else "a gradient"


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def report(rounds, sizes):
    """The page as lines, and what misses its bar."""
    import jax
    import optax
    import torch

    import stablegrad

    about = stablegrad.info()["ctc"]
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    missed = []
    lines = [
        "# CTC, measured",
        "",
        "Made by `python benchmarks/ctc.py --write docs/ctc.md`; value and gradient from float32 logits. *compiled*",
        "and *pure* are `stablegrad.losses.ctc_loss`.",
        "",
        f"- Processor: {processor()}; {platform.system()}, Python {platform.python_version()}",
        f"- Load average at the beginning: {os.getloadavg()[0]:.1f} (above 1, times mean little)",
        f"- jax {jax.__version__}, optax {optax.__version__}, torch {torch.__version__}",
        f"- Kernel: `{Path(about['compiler'] or '').name} {about['options']}`",
        "",
        "## Time",
        "",
        f"Medians of {rounds} rounds, milliseconds a call; ratios are medians of paired ratios, [half of the pairs].",
        f"In each round the libraries take turns: a pause, {WARM} calls that are not counted, {TIMED} that are.",
        "",
        "| frames, rows, classes, labels | compiled | pure | optax | torch "
        "| torch / compiled | optax / compiled | optax / pure |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for index, size in enumerate(sizes):
        taken = times(size, rounds)
        medians = " | ".join(f"{statistics.median(taken[library]) * 1e3:.2f}" for library in LIBRARIES)
        ratios = [ratio(taken, *pair) for pair in (("torch", "compiled"), ("optax", "compiled"), ("optax", "pure"))]
        bars = (10, 8, 1.8 if index >= 2 else 1)
        missed += [f"{size}: {r[0]:.2f} of {bar}" for r, bar in zip(ratios, bars, strict=True) if r[0] < bar]
        shown = " | ".join(f"{m:.1f} [{a:.1f}, {b:.1f}]" for m, a, b in ratios)
        lines.append(f"| {', '.join(map(str, size))} | {medians} | {shown} |")
        print(lines[-1], flush=True)
    lines += ["", "## Peak memory", "", "MiB beyond inputs and libraries, each in a process of its own.", ""]
    lines += ["| frames, rows, classes, labels | compiled | pure | optax | torch |", "|---|---|---|---|---|"]
    for size in sizes:
        used = [peak_memory(library, size) for library in LIBRARIES]
        lines.append(f"| {', '.join(map(str, size))} | {' | '.join(f'{u:.0f}' for u in used)} |")
        print(lines[-1], flush=True)
        missed += [f"{size}: memory of {n}" for n, u in zip(LIBRARIES[:2], used) if u > max(used[2:])]
    lines += ["", "## Error against float64", "", "Largest relative error of a loss; largest error in a gradient.", ""]
    lines += ["| frames, classes, labels, scale of logits | compiled | pure | optax | torch |", "|---|---|---|---|---|"]
    for (frames, _, classes, labels), scale in [(s, k) for s in sizes[:3] for k in (1, 10, 100)]:
        found = errors((frames, 2, classes, labels), scale)
        cells = " | ".join(f"{found[library][0]:.0e}; {found[library][1]:.0e}" for library in LIBRARIES)
        lines.append(f"| {frames}, {classes}, {labels}, {scale} | {cells} |")
        print(lines[-1], flush=True)
        missed += [f"error at {frames}, {scale}" for n in LIBRARIES[:2] if found[n][0] > 1e-6 or found[n][1] > 2e-5]
    lines += ["", "## Edges", "", "| | compiled | pure | optax | torch |", "|---|---|---|---|---|"]
    for name, *case in edge_cases():
        lines.append(f"| {name} | {' | '.join(right_at_edge(library, *case) for library in LIBRARIES)} |")
        print(lines[-1], flush=True)
    return lines, missed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two smaller sizes, few rounds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path, help="where the page goes")
    parser.add_argument("--check", action="store_true", help="exit status 1 when something is over its bar")
    parser.add_argument("--memory-of", nargs=5, metavar=("LIBRARY", "T", "N", "C", "S"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory_of:
        memory_of(options.memory_of[0], tuple(map(int, options.memory_of[1:])))
        return 0
    lines, missed = report(5 if options.quick else options.rounds, SIZES[:2] if options.quick else SIZES)
    for line in missed:
        print("missed:", line)
    if options.write:
        options.write.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
