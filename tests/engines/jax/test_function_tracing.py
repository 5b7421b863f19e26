"""When a stabilized function is traced, and when it is not: as jax.jit does it. No tracer outlives its trace."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engines.jax.program import double_precision
from stablegrad import explain, stabilize
from stablegrad.engines.jax import function as engine_function

GAP = jnp.array([0.0, 1.0, 2000.0])
EXACT = np.array([-2000.0, -1999.0, 0.0])


def loss(x):
    return jnp.log(jax.nn.softmax(x))


def softplus(x):
    return jnp.log(1 + jnp.exp(x))


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, function):
        self.function, self.traces = function, 0

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return self.function(*args, **kwargs)


def traces(function, *calls):
    """How often each call traces."""
    counted = Counted(function)
    stable, counts = stabilize(counted), []
    for args in calls:
        before = counted.traces
        stable(*args)
        counts.append(counted.traces - before)
    return counts


# -- traced once ---------------------------------------------------------------------------------------------------


def test_a_repeated_plain_call_does_not_trace_again():
    assert traces(loss, (GAP,), (GAP,), (GAP + 1,), (np.zeros(3, np.float32),)) == [1, 0, 0, 0]


def test_trees_and_keyword_arguments_of_one_kind_do_not_trace_again():
    def f(tree, *, scale=1.0):
        return loss(tree["x"]) * scale

    counted = Counted(f)
    stable = stabilize(counted)
    for scale in (1.0, 2.0, 3.5):
        stable({"x": GAP}, scale=scale)
    assert counted.traces == 1
    stable({"x": GAP, "y": GAP}, scale=2.0)
    assert counted.traces == 2


def test_floating_numbers_are_arguments_and_do_not_trace_again():
    assert traces(lambda x, n: loss(x) * n, (GAP, 1.0), (GAP, 2.5), (GAP, -0.0), (GAP, np.nan)) == [1, 0, 0, 0]


def test_whole_numbers_and_truth_values_are_held_fixed():
    assert traces(lambda x, n: loss(x) * n, (GAP, 1), (GAP, 2), (GAP, 1), (GAP, True), (GAP, True)) == [1, 1, 0, 1, 0]


def test_a_method_does_not_trace_again_for_the_same_object():
    count = []

    class Model:
        @stabilize
        def f(self, x):
            count.append(1)
            return loss(x)

    model = Model()
    model.f(GAP)
    model.f(GAP)
    assert len(count) == 1
    Model().f(GAP)
    assert len(count) == 2


def test_under_jit_the_function_is_traced_when_jit_traces():
    counted = Counted(loss)
    jitted = jax.jit(stabilize(counted))
    jitted(GAP)
    jitted(GAP + 1)
    assert counted.traces == 1


def test_loops_over_gradients_trace_once():
    counted = Counted(lambda x: loss(x).sum())
    stable = stabilize(counted)
    for k in range(4):
        jax.grad(stable)(GAP + k)
    assert counted.traces <= 1


# -- traced again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [jnp.zeros(4), jnp.zeros((3, 1)), jnp.zeros(3, jnp.float16), jnp.zeros(3, jnp.int32), 1.0, np.float32(1)],
    ids=["shape", "rank", "float16", "int32", "weak type", "scalar"],
)
def test_another_shape_dtype_or_weak_type_traces_again(other):
    def f(x):
        return jnp.log(1 + jnp.exp(x * 1.0))

    assert traces(f, (GAP,), (other,), (GAP,), (other,)) == [1, 1, 0, 0]


def test_a_static_value_traces_again():
    assert traces(lambda x, mode: loss(x), (GAP, "a"), (GAP, "b"), (GAP, "a")) == [1, 1, 0]


def test_a_number_that_must_be_known_traces_again():
    counts = traces(lambda x, n: loss(x) * len(range(n)), (GAP, 2), (GAP, 2), (GAP, 3), (GAP, 3))
    assert counts[0] in (1, 2)
    assert counts[1:] == [0, 1, 0]


def test_wider_types_trace_again():
    counted = Counted(loss)
    stable = stabilize(counted)
    assert stable(np.asarray(GAP)).dtype == jnp.float32
    with double_precision():
        wide = stable(np.array([0.0, 1.0, 2000.0]))
        assert wide.dtype == jnp.float64
        np.testing.assert_array_equal(wide, EXACT)
        assert stable(np.float32(GAP)).dtype == jnp.float32
    assert stable(np.asarray(GAP)).dtype == jnp.float32
    assert counted.traces >= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_wide_only_where_wide_types_are_on(dtype):
    stable = stabilize(lambda x: jnp.log(1 + jnp.exp(x)))
    narrow = stable(1.5)
    with double_precision():
        assert stable(1.5).dtype == jnp.float64
    assert stable(1.5).dtype == narrow.dtype == jnp.float32


def test_a_setting_that_the_trace_depends_on_traces_again():
    counted = Counted(lambda x: loss(x @ x.T))
    stable = stabilize(counted)
    matrix = jnp.eye(3)
    stable(matrix)
    with jax.default_matmul_precision("highest"):
        stable(matrix)
    assert counted.traces == 2


def test_the_name_of_an_axis_is_part_of_the_program():
    stable = stabilize(lambda x: lax.psum(loss(x), "i"))
    total = jax.vmap(stable, axis_name="i")(jnp.stack([GAP, GAP]))
    np.testing.assert_array_equal(total, np.stack([2 * EXACT] * 2))
    with pytest.raises(NameError, match="unbound axis name"):
        stable(GAP)


# -- what the function closes over ---------------------------------------------------------------------------------


def test_a_closed_over_value_is_read_when_the_function_is_traced_as_jit_does():
    scale = [1.0]

    def f(x):
        return loss(x) * scale[0]

    stable, jitted = stabilize(f), jax.jit(f)
    assert float(stable(GAP)[1]) == -1999
    jitted(GAP)
    scale[0] = 2.0
    assert float(stable(GAP)[1]) == -1999
    assert float(stable(GAP[:2])[0]) == pytest.approx(2 * float(jax.nn.log_softmax(GAP[:2])[0]))


def test_a_closed_over_tracer_is_never_kept():
    calls = []

    def f(x):
        calls.append(1)
        return loss(x * calls_scale[0]).sum()

    calls_scale = [None]
    stable = stabilize(f)

    def outer(w):
        calls_scale[0] = w
        return stable(GAP)

    first = jax.grad(outer)(2.0)
    second = jax.grad(outer)(2.0)
    assert first == second
    assert len(calls) == 2


@pytest.mark.parametrize("transform", [jax.grad, jax.jit, jax.jacfwd, jax.checkpoint, lambda f: jax.vmap(f)])
def test_no_tracer_leaks(transform):
    with jax.checking_leaks():
        stable = stabilize(lambda x, w: softplus(x * w).sum())
        argument = jnp.ones(2) if transform not in (jax.grad, jax.jit, jax.jacfwd, jax.checkpoint) else 2.0
        transform(lambda w: stable(GAP, w))(argument)
        transform(lambda w: stabilize(lambda x: softplus(x * w).sum())(GAP))(argument)
        transform(lambda w: stable(GAP, w))(argument)


def test_no_tracer_leaks_out_of_loops_and_branches():
    def f(x, w):
        total, _ = lax.scan(lambda c, r: (c + softplus(r * w).sum(), None), 0.0, x)
        return lax.cond(total > 0, lambda y: softplus(y).sum() + total, lambda y: w * total, x[0])

    with jax.checking_leaks():
        stable = stabilize(f)
        rows = jnp.stack([GAP, GAP])
        first = jax.jit(jax.value_and_grad(stable, argnums=1))(rows, 2.0)
        jax.grad(lambda w: stable(rows, w) ** 2)(2.0)
        again = jax.jit(jax.value_and_grad(stable, argnums=1))(rows, 2.0)
    np.testing.assert_array_equal(first[0], again[0])


def test_programs_of_a_function_that_is_gone_go_too():
    stable = stabilize(lambda x: loss(x))
    stable(GAP)
    gone = weakref.ref(stable)
    del stable
    gc.collect()
    assert gone() is None


def test_the_number_of_programs_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(engine_function, "MOST_KEPT", 3)
    counted = Counted(lambda x, mode: x)
    stable = stabilize(counted)
    for k in range(10):
        stable(GAP, str(k))
    assert len(stable._programs) <= 3
    assert counted.traces == 10


# -- other ---------------------------------------------------------------------------------------------------------


def test_explaining_computes_nothing_and_keeps_nothing():
    counted = Counted(loss)
    report = explain(counted)(jax.ShapeDtypeStruct((1 << 20, 1 << 20), jnp.float32))
    assert report.rewrites
    assert counted.traces == 1


def test_collection_of_garbage_is_as_it_was():
    was = gc.isenabled()
    stabilize(loss)(GAP)
    assert gc.isenabled() == was
    gc.disable()
    try:
        stabilize(loss)(GAP)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_several_threads():
    stable, results = stabilize(loss), []
    workers = [
        threading.Thread(target=lambda n=n: results.append(np.asarray(stable(jnp.concatenate([GAP, GAP[:n]])))[:3]))
        for n in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4
    assert gc.isenabled()


def test_donation_around():
    donating = jax.jit(stabilize(loss), donate_argnums=0)
    np.testing.assert_array_equal(donating(GAP * 1), EXACT)


def test_a_placed_argument_stays_where_it_is():
    device = jax.devices()[0]
    result = stabilize(loss)(jax.device_put(GAP, device))
    assert result.devices() == {device}
