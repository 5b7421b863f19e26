"""Compare stable functions with mpmath: value, gradient, second derivatives; eagerly and under jit."""

import contextlib

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from mpmath import mpf

PRECISION = 320  # bits: exp(-177) next to 1, and what cancels on top of that
POINTS = 96  # every grid has this size, so that eager operations compile once for all functions
STEP = mpf(2) ** -80

DTYPES = ("float32", "float64")


def in_dtype(dtype):
    """The context that a dtype needs, leaving the global setting alone."""
    return jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()


def grid(dtype, *columns):
    """POINTS points in `dtype`: each column is a function of a random generator (the same for all)."""
    made = []
    for column in columns:
        numbers = column(np.random.default_rng(7))
        made.append(np.resize(np.asarray(numbers, dtype), POINTS))
    return made


def assert_elementwise(function, value, gradient, hessian, points, dtype, second=16):
    """`value`, each of `gradient` and each of `hessian` (or None) take mpf arguments; points are columns."""
    numbers = tuple(range(len(points)))
    first = {"reverse": jax.grad(function, numbers), "forward": jax.jacfwd(function, numbers)}
    curvature = {"forward over reverse": jax.hessian(function, numbers)}
    if dtype == "float32":  # the same rules in either dtype, and compiling takes most of the time
        curvature["reverse over reverse"] = jax.jacrev(first["reverse"], numbers)
        curvature["forward over forward"] = jax.jacfwd(first["forward"], numbers)
    with in_dtype(dtype), mpmath.workprec(PRECISION):
        arrays = [jnp.asarray(column) for column in points]
        arguments = list(zip(*(map(exact, column) for column in points), strict=True))

        def check(derivatives, truths, eagerly):
            """All derivatives, by name, in one jitted program, and those named `eagerly` also without jit."""
            results = [("jit", jax.jit(lambda *x: {name: one(*x) for name, one in derivatives.items()})(*arrays))]
            results += [("eager", {name: derivatives[name](*arrays)}) for name in eagerly]
            for how, result in results:
                for name, tree in result.items():
                    for got, truth in zip(jax.tree.leaves(tree), truths, strict=True):
                        assert_close(got, truth, arguments, dtype, f"{function.__name__} {name} {how} {dtype}")

        check({"value": function}, [bounds(value, arguments, dtype, 4)], ["value"])
        truths = [bounds(one, arguments, dtype, 4) for one in gradient]
        check({name: jax.vmap(one) for name, one in first.items()}, truths, ["reverse"])
        if hessian:
            truths = [bounds(one, arguments, dtype, second) for row in hessian for one in row]
            eagerly = ["forward over reverse"] if dtype == "float32" else []
            check({name: jax.vmap(one) for name, one in curvature.items()}, truths, eagerly)


def assert_close(got, truth, arguments, dtype, label):
    """Each `got[i]` lies within the permitted error of its truth."""
    assert got.dtype == dtype, (label, got.dtype)
    worst = (0, None)
    for number, (expected, allowed), point in zip(np.asarray(got).tolist(), truth, arguments, strict=True):
        if not mpmath.isfinite(expected):
            error = 0 if number == expected else 2
        else:
            error = abs(mpf(number) - expected) / allowed if np.isfinite(number) else 2
        if error > worst[0]:
            worst = (error, f"{label}: at {[float(x) for x in point]} got {number!r}, expected {expected}")
    assert worst[0] <= 1, f"{worst[1]}, {float(worst[0]):.3g} times the bound"


def bounds(truth, arguments, dtype, ulps):
    """For each point the exact value, infinite beyond the range, and `ulps * (1 + condition number)` ulp."""
    return [bounds_of_list(lambda x: [truth(*x)], point, dtype, ulps)[0] for point in arguments]


def bounds_of_list(truth, point, dtype, ulps):
    """The same at one point for each entry of the list `truth(point)`.

    The condition number is the sum of |x_k f_k / f| over the arguments, from one-sided differences.
    """
    information = np.finfo(dtype)
    values = truth(point)
    moved = [list(map(abs, differences(truth, values, point, k))) for k in range(len(point))]
    found = []
    for expected, *changes in zip(values, *moved, strict=True):
        # Subnormal numbers are flushed to zero by XLA on the CPU: the smallest normal number is no error.
        allowed = exact(information.tiny)
        if abs(expected) > exact(information.max):
            expected = mpmath.sign(expected) * mpmath.inf
        elif expected != 0:
            spacing = mpf(2) ** (mpmath.frexp(expected)[1] - 1) * exact(information.eps)
            allowed += ulps * (1 + sum(changes) / abs(expected)) * spacing
        found.append((expected, allowed))
    return found


def differences(truth, values, point, k):
    """x_k times the derivatives by x_k, from the side where the function is real."""
    for step in (STEP, -STEP):
        moved = truth((*point[:k], point[k] * (1 + step), *point[k + 1 :]))
        if all(isinstance(one, mpf) and mpmath.isfinite(one) for one in moved):
            return [(b - a) / step for a, b in zip(values, moved, strict=True)]
    return [mpf(0)] * len(values)


def exact(number):
    return mpf(float(number))


def assert_edges(function, rows, dtype="float32"):
    """Each row is `(arguments, value, gradient)`, None leaving one open; eagerly and under jit.

    Forward mode goes by one argument at a time: a zero tangent of another that has an infinite slope is NaN.
    """
    with in_dtype(dtype):
        columns = [np.asarray(column, dtype) for column in zip(*(row[0] for row in rows), strict=True)]
        points = [jnp.asarray(np.resize(column, POINTS)) for column in columns]
        numbers = range(len(points))
        modes = {
            "reverse": [jax.vmap(jax.grad(function, k)) for k in numbers],
            "forward": [jax.vmap(jax.jacfwd(function, k)) for k in numbers],
        }

        def everything(*points):
            slopes = {mode: [slope(*points) for slope in partials] for mode, partials in modes.items()}
            return function(*points), slopes

        for run in (everything, jax.jit(everything)):
            values, found = jax.tree.map(np.asarray, run(*points))
            for k, (arguments, value, gradient) in enumerate(rows):
                assert value is None or same(values[k], value), (arguments, values[k])
                for mode, partials in found.items():
                    slope = [float(partial[k]) for partial in partials]
                    assert gradient is None or same(slope, gradient), (arguments, mode, slope)


def same(a, b):
    """Equal, or both NaN; signs of zeros do not matter."""
    return bool(np.array_equal(np.asarray(a, float), np.asarray(b, float), equal_nan=True))


def assert_vector(function, value, gradient, hessian, rows, dtype, hessian_as_a_whole=False, every_mode=False):
    """The same for a function of one row: `value(x)`, `gradient(x)`, `hessian(x)` are flat lists of mpf.

    `hessian_as_a_whole`: each second derivative is within 16 ulp of the largest one, not of itself;
    `every_mode`: second derivatives in all compositions of modes (compiling them takes most of the time).
    """
    first = {"reverse": jax.jacrev(function), "forward": jax.jacfwd(function)}
    curvature = {"forward over reverse": jax.jacfwd(first["reverse"])}
    if every_mode:
        curvature["reverse over reverse"] = jax.jacrev(first["reverse"])
        curvature["forward over forward"] = jax.jacfwd(first["forward"])
    with in_dtype(dtype), mpmath.workprec(PRECISION):

        def check(derivatives, truth, ulps, eagerly=(), as_a_whole=False):
            array = jnp.asarray(np.asarray(rows, dtype))
            points = [tuple(map(exact, row)) for row in np.asarray(array).tolist()]
            permitted = [bounds_of_list(truth, point, dtype, ulps) for point in points]
            if as_a_whole:
                largest = [max(allowed for _, allowed in entries) for entries in permitted]
                permitted = [[(e, most) for e, _ in es] for es, most in zip(permitted, largest, strict=True)]
            vmapped = {name: jax.vmap(one) for name, one in derivatives.items()}
            results = [("jit", jax.jit(lambda x: {name: one(x) for name, one in vmapped.items()})(array))]
            results += [("eager", {name: vmapped[name](array) for name in eagerly})]
            for how, result in results:
                for name, got in jax.tree.map(np.asarray, result).items():
                    for k, column in enumerate(got.reshape(len(points), -1).T):
                        label = f"{function.__name__} {name}[{k}] {how} {dtype}"
                        assert_close(column, [entries[k] for entries in permitted], points, dtype, label)

        check({"value": function}, value, 4, ["value"])
        check(first, gradient, 4, ["reverse"] if every_mode else [])
        if hessian:
            check(curvature, hessian, 16, as_a_whole=hessian_as_a_whole)
