"""A stabilized function is called as the function is: arguments, results, statics, decorators, methods, errors."""

import copy
import dataclasses
import enum
import functools
import inspect
import pickle
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engines.jax.program import same
from stablegrad import stabilize

GAP = jnp.array([0.0, 1.0, 2000.0])
EXACT = np.array([-2000.0, -1999.0, 0.0])


def loss(x):
    """The logarithm of a softmax."""
    return jnp.log(jax.nn.softmax(x))


@stabilize
def decorated(x):
    return jnp.log(jax.nn.softmax(x))


stable_loss = stabilize(loss)


# -- what may be stabilized ----------------------------------------------------------------------------------------


class Callable:
    def __call__(self, x):
        return loss(x)


class Model:
    def __init__(self, scale):
        self.scale = scale

    @stabilize
    def method(self, x):
        return loss(x) * self.scale

    @staticmethod
    @stabilize
    def static(x):
        return loss(x)

    @classmethod
    @stabilize
    def of_class(cls, x):
        return loss(x)

    @stabilize(static_argnames="mode")
    def with_options(self, x, *, mode):
        return loss(x) if mode == "log" else x


FUNCTIONS = {
    "a function": lambda: stabilize(loss),
    "a decorated function": lambda: decorated,
    "a decorator with arguments": lambda: stabilize(static_argnums=())(loss),
    "a decorator called without": lambda: stabilize()(loss),
    "a lambda": lambda: stabilize(lambda x: loss(x)),
    "a callable object": lambda: stabilize(Callable()),
    "a partial": lambda: stabilize(functools.partial(lambda y, x: loss(x) * y, 1.0)),
    "a partial by name": lambda: stabilize(functools.partial(lambda x, y: loss(x) * y, y=1.0)),
    "a partial of a stabilized function": lambda: functools.partial(stabilize(lambda y, x: loss(x) * y), 1.0),
    "a bound method": lambda: stabilize(Model(1.0).method.func.f.__get__(Model(1.0))),
    "a stabilized method": lambda: Model(1.0).method,
    "a stabilized method of the class": lambda: functools.partial(Model.method, Model(1.0)),
    "a static method": lambda: Model.static,
    "a class method": lambda: Model.of_class,
    "a jitted function": lambda: stabilize(jax.jit(loss)),
    "a stabilized function": lambda: stabilize(stabilize(loss)),
    "a checkpointed function": lambda: stabilize(jax.checkpoint(loss)),
    "a wrapped function": lambda: stabilize(functools.wraps(loss)(lambda x: loss(x))),
}  # fmt: skip


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_what_may_be_stabilized(make):
    np.testing.assert_array_equal(make()(GAP), EXACT)
    np.testing.assert_array_equal(jax.jit(make())(GAP), EXACT)


def test_a_method_reads_its_own_object():
    np.testing.assert_array_equal(Model(2.0).method(GAP), 2 * EXACT)
    np.testing.assert_array_equal(Model(3.0).method(GAP), 3 * EXACT)
    np.testing.assert_array_equal(Model(3.0).with_options(GAP, mode="log"), EXACT)
    np.testing.assert_array_equal(Model(3.0).with_options(GAP, mode="same"), GAP)


def test_name_documentation_and_signature_are_those_of_the_function():
    assert stable_loss.__name__ == "loss"
    assert stable_loss.__doc__ == loss.__doc__
    assert stable_loss.__module__ == loss.__module__
    assert stable_loss.__wrapped__ is loss
    assert inspect.signature(stable_loss) == inspect.signature(loss)
    assert repr(stable_loss) == f"stabilize({loss!r})"
    assert "jit_loss" in jax.jit(stable_loss).lower(GAP).as_text()


def test_pickling_finds_a_decorated_function_by_its_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_pickling_a_module_level_function_stabilizes_it_again():
    again = pickle.loads(pickle.dumps(stable_loss))
    np.testing.assert_array_equal(again(GAP), EXACT)
    limited = stabilize(loss, disable="log_of_companion", static_argnames="n")
    again = pickle.loads(pickle.dumps(limited))
    np.testing.assert_array_equal(again(GAP), limited(GAP))
    assert again.static_argnames == ("n",)


def test_copying():
    np.testing.assert_array_equal(copy.deepcopy(stable_loss)(GAP), EXACT)
    np.testing.assert_array_equal(copy.copy(decorated)(GAP), EXACT)


# -- arguments and results -----------------------------------------------------------------------------------------


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Linear:
    """A module in the style of equinox: arrays and settings in one dataclass."""

    weight: jax.Array
    bias: jax.Array | None
    activation: str = dataclasses.field(metadata={"static": True}, default="none")

    @stabilize
    def __call__(self, x):
        y = x @ self.weight + (0 if self.bias is None else self.bias)
        return loss(y) if self.activation == "log_softmax" else y


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def tree_flatten(self):
        return (self.left, self.right), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def structured(tree, *more, key=2.0, **others):
    return {
        "log": loss(tree["x"]),
        "rest": [tree["y"] + 1, (more, None), Pair(key, others.get("z"))],
        "nothing": None,
    }


@pytest.mark.parametrize(
    "args, kwargs",
    [
        (({"x": GAP, "y": 2},), {}),
        (({"x": GAP, "y": 2.5}, 1, 2.0), {"key": jnp.arange(3)}),
        (({"x": GAP, "y": np.float32(2)}, None), {"z": GAP, "key": None}),
        (({"x": GAP, "y": True}, [GAP, None]), {"z": Pair(GAP, 1)}),
    ],
)
def test_any_trees_go_in_and_come_out(args, kwargs):
    stable = stabilize(structured)(*args, **kwargs)
    plain = jax.jit(structured)(*args, **kwargs)
    assert jax.tree.structure(stable) == jax.tree.structure(plain)
    np.testing.assert_array_equal(stable.pop("log"), EXACT)
    plain.pop("log")
    same(jax.tree.map(jnp.asarray, stable), plain)


@pytest.mark.parametrize("function", [lambda x: x, lambda x: 1.0, lambda x: (np.float32(2), x)[0]])
def test_results_are_arrays(function):
    assert isinstance(stabilize(function)(2.0), jax.Array)


def test_modules_with_arrays_and_settings():
    module = Linear(jnp.eye(3), None, "log_softmax")
    np.testing.assert_array_equal(module(GAP), EXACT)
    np.testing.assert_array_equal(Linear(jnp.eye(3), jnp.ones(3))(GAP), GAP + 1)
    slopes = jax.grad(lambda m: m(GAP)[0])(module)
    assert isinstance(slopes, Linear)
    np.testing.assert_array_equal(slopes.weight[2], [2000, 0, -2000])


class Mode(enum.Enum):
    LOG = 1
    SAME = 2


@pytest.mark.parametrize("value", ["log", Mode.LOG, (1, "log"), frozenset({"log"}), jnp.log, dict, b"log", 1 + 2j])
def test_arguments_that_are_no_arrays_are_passed_as_they_are(value):
    seen = []
    stabilize(lambda x, mode: (seen.append(mode), loss(x))[1])(GAP, value)
    if isinstance(value, (tuple, complex)):
        assert type(seen[0]) is type(value) or isinstance(value, complex)
    else:
        assert seen == [value]


def test_strings_decide():
    def choose(x, mode):
        return loss(x) if mode == "log" else x

    stable = stabilize(choose)
    np.testing.assert_array_equal(stable(GAP, "log"), EXACT)
    np.testing.assert_array_equal(stable(GAP, "same"), GAP)
    np.testing.assert_array_equal(stable(GAP, mode="log"), EXACT)
    np.testing.assert_array_equal(stable({"x": GAP, "mode": "log"}["x"], "log"), EXACT)


def test_static_arguments_by_place_and_by_name():
    def repeat(x, n, *, shape=(3,)):
        return jnp.stack([loss(x).reshape(shape)] * n)

    by_place = stabilize(repeat, static_argnums=1, static_argnames=("shape",))
    assert by_place(GAP, 2).shape == (2, 3)
    assert by_place(GAP, 3, shape=(3, 1)).shape == (3, 3, 1)
    assert stabilize(repeat, static_argnums=(-1,), static_argnames="shape")(GAP, 4, shape=(1, 3)).shape == (4, 1, 3)
    assert stabilize(repeat, static_argnames=["n", "shape"])(GAP, n=2, shape=(3,)).shape == (2, 3)


def test_a_static_argument_named_but_given_by_place():
    reshape = stabilize(lambda x, shape: loss(x).reshape(shape), static_argnames="shape")
    assert reshape(GAP, (3, 1)).shape == (3, 1)


@pytest.mark.parametrize("static", [{}, {"static_argnums": 1}])
def test_values_that_have_no_hash_are_named(static):
    with pytest.raises(TypeError, match=r"is not hashable.*\{1, 2\}"):
        stabilize(lambda x, s: x * len(s), **static)(GAP, {1, 2})


def test_static_numbers_of_another_type_are_other_values():
    scale = stabilize(lambda x, s: x * s, static_argnums=1)
    whole = jnp.arange(3)
    assert [scale(whole, s).dtype.name for s in (1, 1.0, True, 1j)] == ["int32", "float32", "int32", "complex64"]


def test_keys():
    def noisy(key, x):
        first, second = jax.random.split(key)
        return loss(x + jax.random.normal(first, x.shape)), jax.random.bits(second)

    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        value, bits = stabilize(noisy)(key, GAP)
        noise = jax.random.normal(jax.random.split(key)[0], GAP.shape)
        np.testing.assert_allclose(value, jax.nn.log_softmax(GAP + noise), rtol=1e-6)
        assert bits == jax.random.bits(jax.random.split(key)[1])


@pytest.mark.parametrize(
    "argument", [[0.0, 1.0, 2000.0], (0.0, 1.0, 2000.0), np.array([0.0, 1.0, 2000.0]), np.array([0, 1, 2000])]
)
def test_sequences_and_numpy_arrays(argument):
    def f(values):
        return loss(jnp.asarray(values, jnp.float32))

    np.testing.assert_array_equal(stabilize(f)(argument), EXACT)


def test_objects_that_jax_takes_for_arrays():
    class Wrapped:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    np.testing.assert_array_equal(stabilize(lambda x: loss(jnp.asarray(x)))(Wrapped(GAP)), EXACT)


def test_shapes_alone():
    shape = jax.ShapeDtypeStruct((2, 3), jnp.bfloat16)
    assert jax.eval_shape(stable_loss, shape) == jax.eval_shape(loss, shape)
    assert jax.eval_shape(jax.grad(lambda x: stable_loss(x).sum()), shape).shape == (2, 3)


@pytest.mark.parametrize("call", [lambda: stabilize(lambda: loss(GAP))(), lambda: stabilize(lambda x=GAP: loss(x))()])
def test_no_arguments(call):
    np.testing.assert_array_equal(call(), EXACT)


# -- Python numbers that must be known -----------------------------------------------------------------------------

KNOWN = {
    "a length": (lambda x, n: jnp.zeros(n) + x.sum(), 3),
    "a number of steps": (lambda x, n: functools.reduce(lambda c, _: c + x, range(n), 0 * x), 3),
    "a shape": (lambda x, n: x.reshape(n, 1), 3),
    "a truth value": (lambda x, n: 2 * x if n else x, True),
    "a position in a list": (lambda x, n: [x, 2 * x, 3 * x][n], 2),
    "a key of a table": (lambda x, n: {1: x, 2: 2 * x}[n], 2),
    "a power of Python's": (lambda x, n: x * float(n) ** 0.5, 2.0),
    "an axis": (lambda x, n: jnp.sum(x, axis=n), 0),
    "a format": (lambda x, n: x * len(f"{int(n)}"), 12),
    "a comparison": (lambda x, n: x if n > 1.5 else 2 * x, 2.0),
    "NumPy's": (lambda x, n: x * np.arange(n).sum(), 3),
}


@pytest.mark.parametrize("function, number", KNOWN.values(), ids=KNOWN.keys())
def test_numbers_that_must_be_known_are(function, number):
    same(stabilize(function)(GAP, number), function(GAP, number))
    same(stabilize(function)(GAP, n=number), function(GAP, number))


@pytest.mark.parametrize(
    "function, number",
    [(lambda x, n: x[:n], 2), (lambda x, n: x * (n % 7), 2**40)],
    ids=["the end of a slice", "a number that no array holds"],
)
def test_numbers_that_must_be_known_are_whatever_the_error(function, number):
    same(stabilize(function)(GAP, number), function(GAP, number))


def test_a_number_of_steps_of_a_loop_that_is_differentiated():
    def f(x, n):
        return lax.fori_loop(0, n, lambda i, c: jnp.sin(c), x)

    assert jax.grad(stabilize(f))(1.0, 3) == jax.grad(f)(1.0, 3)


def test_a_number_that_was_needed_once_is_another_program_for_another_value():
    f = stabilize(lambda x, n: x * len(range(n)))
    for n in (2, 3, 2, 5):
        np.testing.assert_array_equal(f(GAP, n), GAP * n)


def test_a_traced_number_that_must_be_known_is_jax_s_own_error():
    f = stabilize(lambda x, n: x * len(range(n)))
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(f)(GAP, 3)


# -- errors --------------------------------------------------------------------------------------------------------


class Mine(Exception):
    pass


@pytest.mark.parametrize("error", [Mine("my own"), ValueError("a value"), TypeError("a type"), KeyError("a key")])
@pytest.mark.parametrize("number", [(), (2,)])
def test_an_error_of_the_function_comes_through(error, number):
    def fails(x, n=0):
        raise error

    with pytest.raises(type(error)) as caught:
        stabilize(fails)(GAP, *number)
    assert caught.value is error


def test_an_error_names_the_function_and_the_line():
    def fails(x):
        return loss(x) @ jnp.ones((4, 4))

    with pytest.raises(TypeError) as caught:
        stabilize(fails)(GAP)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert ("fails", __file__) in [(f.name, f.filename) for f in frames]


def needs_values(logits):
    return loss(logits) if logits[0] > 0 else logits


def test_a_concrete_value_that_is_needed_is_jax_s_own_error():
    messages = []
    for f in (jax.jit(needs_values), stabilize(needs_values)):
        with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
            f(GAP)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "needs_values" in messages[1]
    assert "the argument logits" in messages[1]


def test_results_that_are_no_arrays_are_jax_s_own_error():
    with pytest.raises(TypeError, match=r"returned a value of type <class 'str'>"):
        stabilize(lambda x: "text")(GAP)


@pytest.mark.parametrize("arguments", [(), (GAP, GAP)])
def test_too_few_and_too_many_arguments_are_python_s_own_error(arguments):
    with pytest.raises(TypeError, match="positional argument"):
        stable_loss(*arguments)


def test_an_error_under_a_transformation_comes_through():
    def fails(x):
        raise Mine("inside")

    for transform in (jax.jit, jax.grad, jax.vmap, jax.checkpoint):
        with pytest.raises(Mine, match="inside"):
            transform(stabilize(fails))(GAP)


def test_after_an_error_the_function_works():
    broken = [True]

    def sometimes(x):
        if broken:
            raise Mine
        return loss(x)

    stable = stabilize(sometimes)
    with pytest.raises(Mine):
        stable(GAP)
    broken.clear()
    np.testing.assert_array_equal(stable(GAP), EXACT)
