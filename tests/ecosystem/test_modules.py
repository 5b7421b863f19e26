"""Modules of equinox and flax: as arguments, with stabilized methods, under their own transformations."""

import equinox as eqx
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from ecosystem.losses import LABELS, cross_entropy
from stablegrad import explain, stabilize

X = np.array([[900.0, -3.0], [1.0, 400.0]], np.float32)


class Classifier(eqx.Module):
    layer: eqx.nn.Linear
    name: str = eqx.field(static=True)

    @stabilize
    def loss(self, x, labels):
        return cross_entropy(jax.vmap(self.layer)(x), labels)


def classifier():
    return Classifier(eqx.nn.Linear(2, 3, key=jax.random.key(0)), "digits")


def by_module(model, x, labels):
    return cross_entropy(jax.vmap(model.layer)(x), labels)


def finite(tree):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array)))


def test_an_equinox_module_as_an_argument():
    assert not finite(eqx.filter_grad(by_module)(classifier(), X, LABELS))
    slopes = eqx.filter_grad(stabilize(by_module))(classifier(), X, LABELS)
    assert finite(slopes) and np.abs(slopes.layer.weight).max() > 0
    jitted = eqx.filter_jit(eqx.filter_grad(stabilize(by_module)))(classifier(), X, LABELS)
    np.testing.assert_allclose(jitted.layer.weight, slopes.layer.weight, rtol=1e-5)
    assert explain(by_module)(classifier(), X, LABELS).rewrites


def test_a_stabilized_method_of_an_equinox_module():
    model = classifier()
    assert np.isfinite(model.loss(X, LABELS))
    assert finite(eqx.filter_grad(lambda m: m.loss(X, LABELS))(model))


def test_equinox_transformations_inside_and_around():
    inside = stabilize(lambda model: eqx.filter_vmap(lambda x, t: by_module(model, x[None], t[None]))(X, LABELS).mean())
    around = eqx.filter_vmap(lambda x, t: stabilize(by_module)(classifier(), x[None], t[None]))(X, LABELS).mean()
    expected = stabilize(by_module)(classifier(), X, LABELS)
    np.testing.assert_allclose(inside(classifier()), expected, rtol=1e-6)
    np.testing.assert_allclose(around, expected, rtol=1e-6)


def test_a_flax_linen_module():
    model = flax.linen.Dense(3)
    params = model.init(jax.random.key(0), X)

    def loss(params, x, labels):
        return cross_entropy(model.apply(params, x), labels)

    assert not finite(jax.grad(loss)(params, X, LABELS))
    assert finite(jax.jit(jax.grad(stabilize(loss)))(params, X, LABELS))


def test_a_flax_nnx_module():
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))

    def loss(model, x, labels):
        return stabilize(cross_entropy)(model(x), labels)

    slopes = nnx.jit(nnx.grad(loss))(model, X, LABELS)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_a_flax_nnx_module_split():
    graph, state = nnx.split(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))

    def loss(state, x, labels):
        return cross_entropy(nnx.merge(graph, state)(x), labels)

    slopes = jax.jit(jax.grad(stabilize(loss)))(state, X, LABELS)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
