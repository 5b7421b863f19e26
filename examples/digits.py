"""Train on handwritten digits with the loss as the textbook writes it: plainly, and through ``stabilize``.

A network of one hidden layer of ReLU units, He's initialisation, plain stochastic gradient descent, and the
1797 digits of 8 by 8 pixels that scikit-learn brings along, at their raw values from 0 to 16. Nobody scaled
the pixels and nobody subtracted the maximum before ``exp``: the plain run dies of NaN within its first steps.
The stabilized run differs in one word and classifies more than 95 % of the test digits.

    python examples/digits.py                        # targets as class numbers, one-hot and smoothed, in turn
    python examples/digits.py --targets one-hot --out one-hot.png
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from stablegrad import stabilize

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CLASSES = 10
HIDDEN_UNITS = 128
LEARNING_RATE = 0.03
BATCH_SIZE = 64


def logits(weights, images):
    """The network: one hidden layer of ReLU units."""
    (w1, b1), (w2, b2) = weights
    return jax.nn.relu(images @ w1 + b1) @ w2 + b2


def probabilities(weights, images):
    """Softmax as it is printed: every exponential over the sum of all."""
    z = logits(weights, images)
    return jnp.exp(z) / jnp.sum(jnp.exp(z), axis=1, keepdims=True)


def index_loss(weights, images, labels):
    """Cross entropy that looks up the probability of the right class."""
    p = probabilities(weights, images)
    return -jnp.mean(jnp.log(p[jnp.arange(len(labels)), labels]))


def one_hot_loss(weights, images, labels):
    """Cross entropy with a target of 1 for the right class and 0 for the others."""
    p = probabilities(weights, images)
    targets = jnp.eye(CLASSES)[labels]
    return -jnp.mean(jnp.sum(targets * jnp.log(p), axis=1))


def smoothed_loss(weights, images, labels):
    """Cross entropy with a tenth of the target spread over all classes."""
    p = probabilities(weights, images)
    targets = 0.9 * jnp.eye(CLASSES)[labels] + 0.1 / CLASSES
    return -jnp.mean(jnp.sum(targets * jnp.log(p), axis=1))


LOSSES = {"index": index_loss, "one-hot": one_hot_loss, "smoothed": smoothed_loss}


@dataclass
class Run:
    """What one training run left behind."""

    losses: list[float] = field(default_factory=list)  # one a step, all finite
    accuracies: list[tuple[int, float]] = field(default_factory=list)  # (step, share of the test digits)
    died_at: int | None = None  # the step whose loss or weights were not finite


def initial_weights(key, pixels: int):
    """He's initialisation, made for inputs of variance 1; the raw pixels' mean square is 60."""
    first, second = jax.random.split(key)
    w1 = jnp.sqrt(2 / pixels) * jax.random.normal(first, (pixels, HIDDEN_UNITS))
    w2 = jnp.sqrt(2 / HIDDEN_UNITS) * jax.random.normal(second, (HIDDEN_UNITS, CLASSES))
    return (w1, jnp.zeros(HIDDEN_UNITS)), (w2, jnp.zeros(CLASSES))


def train(loss: Callable, digits: Sequence, epochs: int, seed: int, advance: Callable[[], None]) -> Run:
    """Descend along the gradient of `loss`; stop at the first step that is not finite."""
    train_images, test_images, train_labels, test_labels = digits
    weights = initial_weights(jax.random.key(seed), train_images.shape[1])
    generator = np.random.default_rng(seed)

    @jax.jit
    def step(weights, images, labels):
        value, gradient = jax.value_and_grad(loss)(weights, images, labels)
        return value, jax.tree.map(lambda w, g: w - LEARNING_RATE * g, weights, gradient)

    @jax.jit
    def accuracy(weights):
        return jnp.mean(jnp.argmax(logits(weights, test_images), axis=1) == test_labels)

    run, count = Run(), 0
    run.accuracies.append((0, float(accuracy(weights))))
    for _ in range(epochs):
        order = generator.permutation(len(train_images))
        for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            value, weights = step(weights, train_images[batch], train_labels[batch])
            count += 1
            if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((value, weights))):
                run.died_at = count
                run.accuracies.append((count, float(accuracy(weights))))
                return run
            run.losses.append(float(value))
        run.accuracies.append((count, float(accuracy(weights))))
        advance()
    return run


def draw(runs: dict[str, tuple[Run, Run]], path: str) -> None:
    """One column for each kind of target: the loss above, the accuracy on the test digits below."""
    figure, axes = plt.subplots(2, len(runs), figsize=(4.2 * len(runs), 6), squeeze=False, sharex=True)
    for (kind, pair), (above, below) in zip(runs.items(), axes.T, strict=True):
        for run, name, colour in zip(pair, ("plain", "stabilized"), ("tab:red", "tab:blue"), strict=True):
            dead = run.died_at is not None
            steps, losses = np.arange(1, len(run.losses) + 1), np.maximum(run.losses, 1e-4)
            above.plot(steps, losses, color=colour, label=name, marker="o", markersize=1.5, zorder=2 + dead)
            below.plot(*np.array(run.accuracies).T, color=colour, label=name, marker="o", markersize=3)
            if dead:
                end = (run.died_at, losses[-1] if run.losses else 1.0)
                label = f"NaN at step {run.died_at}"
                above.scatter(*end, color=colour, marker="x", s=80, zorder=3)
                above.annotate(label, end, (8, 8), textcoords="offset points", color=colour)
                below.scatter(*run.accuracies[-1], color=colour, marker="x", s=80, zorder=3)
        above.set(title=f"{kind} targets", yscale="log", xscale="symlog", ylabel="training loss")
        below.set(xlabel="step", ylabel="accuracy on test digits", ylim=(0, 1.02))
        below.axhline(0.95, color="grey", linewidth=0.8, linestyle=":")
        below.legend(loc="center right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, draw, and say how it went; 1 when a stabilized run stays under 95 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", choices=[*LOSSES, "all"], default="all", help="form of the targets")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits.png", help="where the picture goes")
    options = parser.parse_args(arguments)

    data = load_digits()
    digits = train_test_split(
        data.data.astype(np.float32), data.target, test_size=0.2, random_state=0, stratify=data.target
    )
    kinds = list(LOSSES) if options.targets == "all" else [options.targets]
    console, runs, passed = Console(), {}, True
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("training", total=2 * options.epochs * len(kinds))
        for kind in kinds:
            pair = []
            for name, loss in (("plain", LOSSES[kind]), ("stabilized", stabilize(LOSSES[kind]))):
                done = progress.tasks[0].completed
                progress.update(task, description=f"{kind} targets, {name} loss")
                pair.append(train(loss, digits, options.epochs, options.seed, lambda: progress.advance(task)))
                progress.update(task, completed=done + options.epochs)
            runs[kind] = (pair[0], pair[1])
    for kind, (plain, stabilized) in runs.items():
        for name, run in (("plain", plain), ("stabilized", stabilized)):
            end = f"dead at step {run.died_at}" if run.died_at else f"alive after {len(run.losses)} steps"
            share = f"{100 * run.accuracies[-1][1]:.1f} % of the test digits right"
            console.print(f"{kind:9} {name:11} {end}, {share}", highlight=False)
        passed = passed and stabilized.died_at is None and stabilized.accuracies[-1][1] > 0.95
    draw(runs, options.out)
    console.print(f"curves drawn to {options.out}", highlight=False)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
