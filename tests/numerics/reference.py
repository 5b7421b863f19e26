"""Compare stable functions with mpmath: value, gradient, second derivatives; eagerly and under jit."""

import contextlib

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from mpmath import mpf

PRECISION = 400  # bits: exp(-177) next to 1, and what cancels on top of that
POINTS = 96  # every grid has this size, so that eager operations compile once for all functions
STEP = mpf(2) ** -120

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


def assert_elementwise(function, value, gradient, hessian, points, dtype, second=16, curvature=True):
    """`value`, each of `gradient` and each of `hessian` take mpf arguments; points are columns of numbers."""
    arity = len(points)
    numbers = range(arity)
    with in_dtype(dtype), mpmath.workprec(PRECISION):
        arrays = [jnp.asarray(column) for column in points]
        arguments = list(zip(*(map(exact, column) for column in points), strict=True))
        derived = {
            "value": function,
            "reverse": jax.vmap(jax.grad(function, tuple(numbers))),
            "forward": jax.vmap(jax.jacfwd(function, tuple(numbers))),
        }
        if curvature:
            derived["forward over reverse"] = jax.vmap(jax.hessian(function, tuple(numbers)))
            derived["reverse over reverse"] = jax.vmap(
                jax.jacrev(jax.grad(function, tuple(numbers)), tuple(numbers))
            )
            derived["forward over forward"] = jax.vmap(
                jax.jacfwd(jax.jacfwd(function, tuple(numbers)), tuple(numbers))
            )
        for mode, derivative in derived.items():
            for name, run in (("eager", derivative), ("jit", jax.jit(derivative))):
                if name == "eager" and mode in ("forward", "reverse over reverse", "forward over forward"):
                    continue  # the same rules again, an operation at a time
                got = run(*arrays)
                label = f"{function.__name__} {mode} {name} {dtype}"
                if mode == "value":
                    assert_close(got, value, arguments, dtype, 4, label)
                elif mode in ("reverse", "forward"):
                    for one, partial in zip(got, gradient, strict=True):
                        assert_close(one, partial, arguments, dtype, 4, label)
                else:
                    for row, partials in zip(got, hessian, strict=True):
                        for one, partial in zip(row, partials, strict=True):
                            assert_close(one, partial, arguments, dtype, second, label)


def assert_close(got, truth, arguments, dtype, ulps, label):
    """Each `got[i]` lies within `ulps * (1 + condition number)` ulp of `truth(*arguments[i])`."""
    assert got.dtype == dtype, (label, got.dtype)
    worst = (0, None)
    for number, point in zip(np.asarray(got).tolist(), arguments, strict=True):
        error, expected = error_in_bounds(number, truth, point, dtype, ulps)
        if error > worst[0]:
            worst = (error, f"{label}: at {[float(x) for x in point]} got {number!r}, expected {expected}")
    assert worst[0] <= 1, f"{worst[1]}, {float(worst[0]):.3g} times the bound"


def error_in_bounds(number, truth, point, dtype, ulps):
    """The error of `number` in units of the permitted error, and the exact value."""
    expected = truth(*point)
    information = np.finfo(dtype)
    # Subnormal numbers are flushed to zero by XLA on the CPU: an error of the smallest normal number is free.
    allowed = mpf(float(information.tiny))
    if abs(expected) > exact(information.max):
        return (0 if number == float(mpmath.sign(expected) * mpmath.inf) else 2), expected
    if expected != 0:
        spacing = mpf(2) ** (mpmath.frexp(expected)[1] - 1) * exact(information.eps)
        allowed += ulps * (1 + condition(truth, point, expected)) * spacing
    if not np.isfinite(number):
        return 2, expected
    return abs(mpf(number) - expected) / allowed, expected


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


def everywhere(function, *points):
    """Value, gradient and Hessian at one point, eagerly and under jit, for assertions at the edges."""
    points = [jnp.asarray(point) for point in points]
    numbers = tuple(range(len(points)))
    for run in (lambda f: f, jax.jit):
        yield (
            float(run(function)(*points)),
            [float(g) for g in run(jax.grad(function, numbers))(*points)],
            [float(h) for row in run(jax.hessian(function, numbers))(*points) for h in row],
        )


def same(a, b):
    """Equal, or both NaN; signs of zeros do not matter."""
    return bool(np.array_equal(np.asarray(a, float), np.asarray(b, float), equal_nan=True))
