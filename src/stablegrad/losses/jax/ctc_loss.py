"""The loss of connectionist temporal classification, and its surrogate."""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from stablegrad.losses.jax import compiled
from stablegrad.losses.jax.arguments import Arguments, arguments
from stablegrad.losses.jax.derivatives import loss_of_rows, posteriors_of_rows
from stablegrad.losses.jax.lattice import INVALID

__all__ = ["Implementation", "Kind", "Reduction", "ctc_loss", "ctc_posteriors", "ctc_pseudo_cost", "reduced"]

Kind = Literal["logits", "log_probs"]
Reduction = Literal["none", "sum", "mean", "mean_per_label"]
Implementation = Literal["pure", "compiled"]


def ctc_loss(
    inputs: ArrayLike,
    labels: ArrayLike,
    input_lengths: ArrayLike | None = None,
    label_lengths: ArrayLike | None = None,
    *,
    kind: Kind = "logits",
    blank: int = 0,
    reduction: Reduction = "none",
    zero_infinity: bool = False,
    implementation: Implementation | None = None,
) -> jax.Array:
    """-log of the probability that frames of class probabilities spell the labels.

    An alignment gives each frame a class; it spells the labels if they are left after runs of the same class are
    merged and blanks are dropped. The loss is -log(sum over alignments of the product over frames of y_t(class)), with
    y = softmax(inputs), or exp(inputs) for log-probabilities.

    Args:
      inputs: (..., frames, classes), as `kind` says. float16 and bfloat16 are computed in float32.
      labels: (..., labels), integers; what lies beyond a row's length may be anything.
      input_lengths, label_lengths: how many frames and labels of each row count, (...); all by default. Frames beyond
        may hold anything, NaN and inf included, and have gradient 0.
      kind: "logits", unnormalised; or "log_probs", taken as they are, with the gradient by each log-probability for
        itself: minus the posterior.
      blank: the class that stands for no label.
      reduction: "none" (one loss a row), "sum", "mean" over rows, or "mean_per_label": each loss over the number of
        its labels (1 for none), then the mean over rows, which is torch's "mean".
      zero_infinity: 0 in place of an infinite loss.
      implementation: "pure" or "compiled"; by default the compiled kernel where there is one (`stablegrad.info()`), on
        CPUs and for float32 inside.

    Edges: labels that no alignment spells (too few frames, all ways through a logit -inf) have loss inf and gradient 0.
    A frame of logits all -inf, or with an inf or NaN, makes its row NaN. Labels that are no class or the blank, and
    lengths out of range, raise ValueError where their values are known; where they are traced, that row alone is NaN
    in loss and gradient.

    Sums are held as mantissa and exponent for each state, so that float32 keeps its digits at any number of frames and
    any scale of logits; the loss of a target that is nearly certain is summed from what else could be put out, and
    keeps its digits too. Losses above 3e6 in float32 are right, but their gradients may not tell alignments apart that
    differ by less than the loss's own rounding.

    Forward and reverse mode, and derivatives of any order, under vmap, jit, scan and sharding.

    A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist temporal classification: labelling unsegmented
    sequence data with recurrent neural networks", ICML 2006.

    >>> x = jax.numpy.log(jax.numpy.array([[0.7, 0.3]] * 4))
    >>> print(f"{ctc_loss(x, jax.numpy.array([0, 0]), blank=1):.6f}")  # 3 (.7 .3)^2 + 2 * .7^3 .3
    1.084414
    """
    given = arguments("ctc_loss", inputs, labels, input_lengths, label_lengths, kind, blank)
    kernel = compiled.chosen("ctc_loss", implementation, given.scores.dtype)
    loss = _loss(given.scores, given.row, kind, int(blank), kernel)
    if zero_infinity:
        loss = jnp.where(loss == jnp.inf, 0, loss)
    loss = loss.astype(given.dtype).reshape(given.batch)
    return reduced("ctc_loss", loss, given, reduction)


def ctc_pseudo_cost(
    inputs: ArrayLike,
    labels: ArrayLike,
    input_lengths: ArrayLike | None = None,
    label_lengths: ArrayLike | None = None,
    *,
    kind: Kind = "logits",
    blank: int = 0,
    reduction: Reduction = "none",
    implementation: Implementation | None = None,
) -> jax.Array:
    """A surrogate with the gradient of `ctc_loss`: the cross entropy of the inputs against their own posteriors.

    -sum over frames and classes of posterior * log y, the posteriors held constant. Its gradient is that of the loss;
    its value is the loss plus the entropy of the alignments as if frames were independent, an upper bound. Train with
    it beside the true loss as a monitor, as users of Lasagne-CTC do. Its second derivatives are those of the cross
    entropy, not of the loss. Impossible targets cost inf and have gradient 0. Arguments as for `ctc_loss`.

    >>> x, labels = jax.numpy.array([[1.0, 2.0], [0.5, 0.0], [0.0, 3.0]]), jax.numpy.array([1])
    >>> difference = jax.grad(ctc_loss)(x, labels) - jax.grad(ctc_pseudo_cost)(x, labels)
    >>> print(float(abs(difference).max()) < 1e-6)
    True
    """
    given = arguments("ctc_pseudo_cost", inputs, labels, input_lengths, label_lengths, kind, blank)
    kernel = compiled.chosen("ctc_pseudo_cost", implementation, given.scores.dtype)
    cost = _pseudo_cost(given.scores, given.row, kind, int(blank), kernel)
    return reduced("ctc_pseudo_cost", cost.astype(given.dtype).reshape(given.batch), given, reduction)


def ctc_posteriors(
    inputs: ArrayLike,
    labels: ArrayLike,
    input_lengths: ArrayLike | None = None,
    label_lengths: ArrayLike | None = None,
    *,
    kind: Kind = "logits",
    blank: int = 0,
    implementation: Implementation | None = None,
) -> jax.Array:
    """The probability of each class at each frame, given that the labels are spelled: (..., frames, classes).

    Every frame that counts sums to 1; all 0 for frames that do not, and for labels that no alignment spells. The
    gradient of `ctc_loss` is softmax - posterior. Arguments as for `ctc_loss`.

    >>> ctc_posteriors(jax.numpy.zeros((3, 2)), jax.numpy.array([1])).round(3).tolist()
    [[0.5, 0.5], [0.333..., 0.667...], [0.5, 0.5]]
    """
    given = arguments("ctc_posteriors", inputs, labels, input_lengths, label_lengths, kind, blank)
    kernel = compiled.chosen("ctc_posteriors", implementation, given.scores.dtype)
    share = _posteriors(given.scores, given.row, kind, int(blank), kernel)
    return share.astype(given.dtype).reshape(*given.batch, *given.scores.shape[1:])


def reduced(name: str, loss: jax.Array, given: Arguments, reduction: str) -> jax.Array:
    """One loss a row put together as `reduction` says."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return jnp.sum(loss)
    if reduction == "mean":
        return jnp.mean(loss)
    if reduction == "mean_per_label":
        lengths = jnp.maximum(given.row.lengths, 1).reshape(given.batch)
        return jnp.mean(loss / lengths.astype(loss.dtype))
    raise ValueError(f"{name}: reduction must be 'none', 'sum', 'mean' or 'mean_per_label', not {reduction!r}.")


@functools.partial(jax.jit, static_argnums=(2, 3, 4), inline=True)
def _loss(scores, row, kind, blank, kernel):
    return loss_of_rows(scores, row, kind, blank, kernel)


@functools.partial(jax.jit, static_argnums=(2, 3, 4), inline=True)
def _posteriors(scores, row, kind, blank, kernel):
    return posteriors_of_rows(scores, row, kind, blank, kernel)


@functools.partial(jax.jit, static_argnums=(2, 3, 4), inline=True)
def _pseudo_cost(scores, row, kind, blank, kernel):
    share = lax.stop_gradient(posteriors_of_rows(scores, row, kind, blank, kernel))
    counts = share != 0  # NaN counts
    frame = (jnp.arange(scores.shape[1]) < row.frames[:, None])[:, :, None]
    possible = jnp.any(counts, axis=(1, 2)) | (row.frames == 0) & (row.lengths == 0)
    inside = jnp.where(frame, scores, 0)
    log_probabilities = jax.nn.log_softmax(inside, axis=2) if kind == "logits" else inside
    cost = -jnp.sum(jnp.where(counts, share * jnp.where(counts, log_probabilities, 0), 0), axis=(1, 2))
    cost = jnp.where(possible, cost, jnp.inf)
    # A row that is not valid is NaN in value and gradient, padding included.
    return jnp.where(row.frames == INVALID, jnp.sum(share * scores, axis=(1, 2)), cost)
