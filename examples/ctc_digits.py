"""Read lines of handwritten digits without being told where each digit stands: training with CTC.

A line is made of 3 to 6 digits from scikit-learn's bundled images (8 by 8 pixels, no download), with random gaps and
shifts. A small convolutional network looks at the line column by column and gives each column eleven logits, blank
and ten digits; `stablegrad.losses.ctc_loss` needs the digits alone. No image in a test line is in a line of training.
The picture shows a test line, the posteriors given its digits, and the forced alignment.

    python examples/ctc_digits.py                     # under 5 % of labels wrong, in minutes on a CPU
    python examples/ctc_digits.py --steps 300 --out line.png
"""

import argparse
import sys
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from stablegrad.losses import ctc_alignment, ctc_greedy_decode, ctc_loss, ctc_posteriors

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MOST_DIGITS = 6
WIDTH = 80  # columns of a line, padding included
CHANNELS = 48
BATCH_SIZE = 32
BLANK = 10


def lines(generator, images, digits, count: int):
    """Images (count, 10, WIDTH), labels, and how many columns and labels of each count."""
    pixels = np.zeros((count, 10, WIDTH), np.float32)
    labels = np.zeros((count, MOST_DIGITS), np.int32)
    columns, lengths = np.zeros(count, np.int32), generator.integers(3, MOST_DIGITS + 1, count)
    for n in range(count):
        at = int(generator.integers(0, 4))
        for k in range(lengths[n]):
            chosen = generator.integers(len(images))
            top = generator.integers(0, 3)
            pixels[n, top : top + 8, at : at + 8] = np.maximum(pixels[n, top : top + 8, at : at + 8], images[chosen])
            labels[n, k] = digits[chosen]
            at += 8 + int(generator.integers(-1, 6))
        columns[n] = min(at + 2, WIDTH)
    pixels += 0.05 * generator.standard_normal(pixels.shape).astype(np.float32)
    return pixels, labels, columns, lengths.astype(np.int32)


def initial_weights(key):
    """Three convolutions along the line and a dense layer for each column; He's initialisation."""
    shapes = ((5, 10, CHANNELS), (5, CHANNELS, CHANNELS), (5, CHANNELS, CHANNELS), (1, CHANNELS, 11))
    keys = jax.random.split(key, len(shapes))
    return [
        (jnp.sqrt(2 / (shape[0] * shape[1])) * jax.random.normal(k, shape), jnp.zeros(shape[2]))
        for k, shape in zip(keys, shapes, strict=True)
    ]


def logits(weights, pixels):
    """(lines, columns, 11): what stands at each column."""
    x = pixels.transpose(0, 2, 1)
    for number, (kernel, bias) in enumerate(weights):
        x = jax.lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")) + bias
        x = jax.nn.relu(x) if number + 1 < len(weights) else x
    return x


def distance(a: Sequence[int], b: Sequence[int]) -> int:
    """Levenshtein's distance: how many labels to insert, delete or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def label_error_rate(weights, test) -> float:
    """The distance of what is read to what is written, per label."""
    pixels, labels, columns, lengths = test
    read = ctc_greedy_decode(logits(weights, pixels), columns, blank=BLANK)
    wrong = sum(
        distance(np.asarray(line[:count]).tolist(), label[:length].tolist())
        for line, count, label, length in zip(read.labels, read.lengths, labels, lengths, strict=True)
    )
    return wrong / int(lengths.sum())


def draw(weights, test, losses, path: str) -> None:
    """A test line with the columns of each digit, the posteriors given its digits, and the loss in training."""
    pixels, labels, columns, lengths = (part[:1] for part in test)
    scores = logits(weights, pixels)
    share = np.asarray(ctc_posteriors(scores, labels, columns, lengths, blank=BLANK)[0])
    found = ctc_alignment(scores, labels, columns, lengths, blank=BLANK)
    figure, (above, middle, below) = plt.subplots(3, 1, figsize=(9, 7), gridspec_kw={"height_ratios": (1, 1.4, 1.2)})
    above.imshow(pixels[0], cmap="gray_r", aspect="auto", extent=(0, WIDTH, 10, 0))
    middle.imshow(share.T, cmap="Blues", aspect="auto", extent=(0, WIDTH, 10.5, -0.5), vmin=0, vmax=1)
    for n in range(lengths[0]):
        start, end = int(found.starts[0, n]), int(found.ends[0, n])
        for axes in (above, middle):
            axes.axvspan(start, end, color="tab:red", alpha=0.25)
        above.annotate(
            str(labels[0, n]), ((start + end) / 2, -0.6), ha="center", color="tab:red", annotation_clip=False
        )
    above.set(yticks=[], xlim=(0, WIDTH))
    middle.set(yticks=range(11), yticklabels=[*map(str, range(10)), "blank"], ylabel="posterior", xlim=(0, WIDTH))
    middle.set_xlabel("column; red: the columns that the best alignment gives each digit")
    below.plot(losses)
    below.set(xlabel="step", ylabel="loss a line", yscale="log")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, read the test lines, draw; 1 when 5 % of the labels or more are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="ctc_digits.png", help="where the picture goes")
    options = parser.parse_args(arguments)

    data = load_digits()
    images = data.images.astype(np.float32) / 16
    train_images, test_images, train_digits, test_digits = train_test_split(
        images, data.target, test_size=0.2, random_state=0, stratify=data.target
    )
    generator = np.random.default_rng(options.seed)
    test = lines(np.random.default_rng(1), test_images, test_digits, 400)
    weights = initial_weights(jax.random.key(options.seed))
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-3, options.steps))
    state = optimizer.init(weights)

    @jax.jit
    def step(weights, state, pixels, labels, columns, lengths):
        def loss(weights):
            scores = logits(weights, pixels)
            return ctc_loss(scores, labels, columns, lengths, blank=BLANK, reduction="mean", zero_infinity=True)

        value, gradient = jax.value_and_grad(loss)(weights)
        change, state = optimizer.update(gradient, state)
        return value, optax.apply_updates(weights, change), state

    console, losses = Console(), []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("training", total=options.steps)
        for number in range(options.steps):
            value, weights, state = step(weights, state, *lines(generator, train_images, train_digits, BATCH_SIZE))
            losses.append(float(value))
            progress.update(task, completed=number + 1, description=f"training, loss {value:.3f}")
    rate = label_error_rate(weights, test)
    draw(weights, test, losses, options.out)
    console.print(f"{100 * rate:.1f} % of the labels of 400 test lines wrong, loss {losses[-1]:.3f}", highlight=False)
    console.print(f"a line and its alignment drawn to {options.out}", highlight=False)
    return 0 if rate < 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
