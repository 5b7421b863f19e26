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

        def check(mode, derivative, truths, eager):
            for name, run in (("eager", derivative), ("jit", jax.jit(derivative)))[not eager :]:
                label = f"{function.__name__} {mode} {name} {dtype}"
                for got, truth in zip(jax.tree.leaves(run(*arrays)), truths, strict=True):
                    assert_close(got, truth, arguments, dtype, label)

        check("value", function, [bounds(value, arguments, dtype, 4)], eager=True)
        truths = [bounds(one, arguments, dtype, 4) for one in gradient]
        for mode, derivative in first.items():
            check(mode, jax.vmap(derivative), truths, eager=mode == "reverse")
        truths = [bounds(one, arguments, dtype, second) for row in hessian or () for one in row]
        for mode, derivative in curvature.items() if hessian else ():
            check(mode, jax.vmap(derivative), truths, eager=len(curvature) > 1 and "forward over r" in mode)


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
    """The exact value at each point, infinite beyond the range, and `ulps * (1 + condition number)` ulp."""
    found = []
    for point in arguments:
        expected = truth(*point)
        information = np.finfo(dtype)
        # Subnormal numbers are flushed to zero by XLA on the CPU: the smallest normal number is no error.
        allowed = exact(information.tiny)
        if abs(expected) > exact(information.max):
            expected = mpmath.sign(expected) * mpmath.inf
        elif expected != 0:
            spacing = mpf(2) ** (mpmath.frexp(expected)[1] - 1) * exact(information.eps)
            allowed += ulps * (1 + condition(truth, point, expected)) * spacing
        found.append((expected, allowed))
    return found


def condition(truth, point, expected):
    """The sum of |x_k f_k / f| over the arguments, from a one-sided difference in high precision."""
    total = mpf(0)
    for k, x in enumerate(point):
        for step in (STEP, -STEP):
            moved = truth(*point[:k], x * (1 + step), *point[k + 1 :])
            if isinstance(moved, mpf) and mpmath.isfinite(moved):
                total += abs(moved - expected) / (STEP * abs(expected))
                break
    return total


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
        for run in (lambda f: f, jax.jit):
            values = np.asarray(run(function)(*points))
            found = {mode: [run(slope)(*points) for slope in slopes] for mode, slopes in modes.items()}
            for k, (arguments, value, gradient) in enumerate(rows):
                assert value is None or same(values[k], value), (arguments, values[k])
                for mode, partials in found.items():
                    slope = [float(partial[k]) for partial in partials]
                    assert gradient is None or same(slope, gradient), (arguments, mode, slope)


def same(a, b):
    """Equal, or both NaN; signs of zeros do not matter."""
    return bool(np.array_equal(np.asarray(a, float), np.asarray(b, float), equal_nan=True))
