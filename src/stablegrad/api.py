"""The public functions: `stabilize` and `explain`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from stablegrad.graph.node import Graph, Node
from stablegrad.graph.printing import expression, without_leaves
from stablegrad.policy import Policy, checked_policy
from stablegrad.report import Explanation, Rewrite, Untouched, source_line
from stablegrad.rewrite import SECOND_WALK, Rewriting, rewrite
from stablegrad.rules import RULES
from stablegrad.rules.recursions import recursion

F = TypeVar("F", bound=Callable[..., Any])


@overload
def stabilize(
    f: F,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    disable: str | Iterable[str] = ...,
    policy: Policy | None = ...,
) -> F: ...
@overload
def stabilize(
    f: None = None,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    disable: str | Iterable[str] = ...,
    policy: Policy | None = ...,
) -> Callable[[F], F]: ...
def stabilize(
    f: Any = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    disable: str | Iterable[str] = (),
    policy: Policy | None = None,
) -> Any:
    """The same mathematics as `f`, with value and gradient finite and accurate.

    A function, method or decorator. The result is called as `f` is, with any pytrees of arrays as arguments, and
    returns what `f` returns: the same structure, shapes, dtypes and weak types. It may stand under and over `jax.jit`,
    `vmap`, `grad`, `jvp`, `jacfwd`, `hessian`, `checkpoint`, `eval_shape` and the loops of `jax.lax`; the derivative is
    right when the derivative is taken of the stabilized function (`jax.grad(stabilize(loss))`).

    Args:
        f: a function of JAX arrays. Arguments that are no arrays or numbers (strings, None, functions) are static.
        static_argnums: positions of arguments that are Python values, as in `jax.jit`. They must be hashable.
        static_argnames: names of such arguments.
        disable: names of rules that are switched off (`stablegrad.rule_names()` lists them).
        policy: a `Policy`: conventions where there is no value or no derivative.

    `stabilize.options(...)` takes the same and gives a decorator.

    Returns:
        a function with the signature of `f`. Values that `f` closes over are read when it is traced, once per
        combination of argument shapes, dtypes and static values, as `jax.jit` does.

    Raises:
        TypeError: `f` is not callable, or `policy` no `Policy`.
        ValueError: a name in `disable` is not a rule.
        Errors that `f` itself raises come through unchanged.

    >>> import jax, jax.numpy as jnp, stablegrad
    >>> loss = lambda x: -jnp.log(jax.nn.softmax(x))[0]
    >>> x = jnp.array([-200.0, 0.0])
    >>> print(loss(x), jax.grad(loss)(x))
    inf [nan nan]
    >>> print(stablegrad.stabilize(loss)(x), jax.grad(stablegrad.stabilize(loss))(x))
    200.0 [-1.  1.]
    """
    disabled = _rule_names(disable)
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "disable": disable,
        "policy": checked_policy(policy),
    }
    if f is None:
        return functools.partial(stabilize, **options)
    if not callable(f):
        raise TypeError(f"stabilize takes a function, but was given {type(f).__name__}: {f!r:.80}")
    from stablegrad.engines.jax.function import Stabilized

    restore = functools.partial(stabilize, **options)
    return Stabilized(
        f, _static(static_argnums), _static(static_argnames), _rewriter(disabled, options["policy"]), restore
    )


def options(**chosen: Any) -> Callable[[F], F]:
    """`stabilize` with these options, as a decorator to be used many times.

    Args:
        chosen: what `stabilize` takes besides the function: static_argnums, static_argnames, disable, policy.

    Raises:
        TypeError: an option that there is not; the message lists those that there are.
        What `stabilize` raises for wrong values, at once.

    >>> import stablegrad
    >>> stable = stablegrad.stabilize.options(disable="untaken_branch")
    >>> f = stable(lambda x: x)
    """
    known = tuple(inspect.signature(stabilize).parameters)[1:]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise TypeError(f"stabilize has no option {', '.join(map(repr, unknown))}; there are: {', '.join(known)}")
    return stabilize(**chosen)


stabilize.options = options  # type: ignore[attr-defined]


def keep(x: Any) -> Any:
    """`x` as it was computed: rules do not look through it, nor does the engine's compiler simplify across it.

    For arithmetic that is meant as it stands: an error that is added up by subtractions, or a logarithm of a rounded
    probability. What computes `x` may still be rewritten, by itself.

    Args:
        x: arrays or numbers, or a pytree of them, of any shape and dtype. Values, shapes, dtypes and derivatives stay.

    Raises:
        TypeError: a leaf that is neither an array nor a number.

    >>> import jax.numpy as jnp
    >>> from stablegrad import explain, keep
    >>> len(explain(lambda x: jnp.log(keep(jnp.exp(x))))(1.0).rewrites)
    0
    """
    from stablegrad.engines.jax.barrier import keep as keep_arrays

    return keep_arrays(x)


def explain(f: Any, **options: Any) -> Callable[..., Explanation]:
    """What `stabilize` does to `f`: a function that takes the arguments of `f` and returns a report.

    Nothing is computed; the arguments may be arrays or `jax.ShapeDtypeStruct`. `options` are those of `stabilize`.

    >>> import jax, jax.numpy as jnp, stablegrad
    >>> report = stablegrad.explain(lambda x: jnp.log(1.0 + jnp.exp(x)))(1.0)
    >>> print(report.rewrites[0].before, "->", report.rewrites[0].after)
    log((exp(x) + 1)) -> softplus(x)
    """
    from stablegrad.engines.jax.function import Stabilized

    stabilized = f if isinstance(f, Stabilized) and not options else stabilize(f, **options)

    @functools.wraps(f, updated=())
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        rewritings: list[Rewriting] = []
        opaque: list[tuple[str, Any, str]] = []
        names: dict[Node, str] = {}

        def rewriter(graph: Graph, roots: list[Node]) -> dict[Node, Node]:
            found = stabilized.rewriter.rewriting(graph, roots)
            rewritings.append(found)
            return found.replaced

        def captured(capture: Any) -> None:
            opaque.extend(capture.opaque)
            names.update(capture.names)

        stabilized.rewritten(args, kwargs, rewriter, captured)
        name = getattr(f, "__name__", type(f).__name__)
        return Explanation(name, _rewrites(rewritings, names), _untouched(opaque))

    return explained


def rule_names() -> tuple[str, ...]:
    """The names of all rules, as `disable` takes them."""
    return tuple(sorted({name for rules in RULES.values() for name, _ in rules} | SECOND_WALK))


def _rule_names(disable: str | Iterable[str]) -> frozenset[str]:
    names = frozenset([disable] if isinstance(disable, str) else disable)
    unknown = sorted(names - set(rule_names()))
    if unknown:
        raise ValueError(f"no rule is named {', '.join(map(repr, unknown))}; there are: {', '.join(rule_names())}")
    return names


def _static(value: Any) -> tuple:
    return (value,) if isinstance(value, (int, str)) else tuple(value)


class _rewriter:
    """The rule book as the engine calls it."""

    def __init__(self, disabled: frozenset[str], policy: Policy) -> None:
        self.disabled, self.policy = disabled, policy
        self.carries_scaled = recursion.__name__ not in disabled

    def rewriting(self, graph: Graph, roots: list[Node]) -> Rewriting:
        return rewrite(graph, roots, self.disabled, self.policy)

    def __call__(self, graph: Graph, roots: list[Node]) -> dict[Node, Node]:
        return self.rewriting(graph, roots).replaced


def _rewrites(rewritings: list[Rewriting], names: dict[Node, str]) -> tuple[Rewrite, ...]:
    """Each rewrite once, with how often it happened at its line: rounds of an unrolled loop differ only deep inside."""
    counted: Counter[tuple[Any, ...]] = Counter()
    first: dict[tuple[Any, ...], Rewrite] = {}
    for found in rewritings:
        for rule, node, replacement, reason in found.records:
            if node.op.name == "binary_exponent":
                continue  # the other half of a value that a loop carries
            if node.op.name == "without_exponent":
                (node,) = node.inputs
            place = node.source
            file, line = (place.file, place.line) if place is not None else (None, None)
            short = tuple(without_leaves(expression(n, depth=3)) for n in (node, replacement))
            key = (rule, file, line, reason, *short)
            text = source_line(file, line)
            before, after = expression(node, names=names), expression(replacement, names=names)
            first.setdefault(key, Rewrite(rule, file, line, text, before, after, reason))
            counted[key] += 1
    ordered = sorted(first.items(), key=lambda item: (item[1].file or "", item[1].line or 0))
    return tuple(dataclasses.replace(r, count=counted[key]) for key, r in ordered)


def _untouched(opaque: list[tuple[str, Any, str]]) -> tuple[Untouched, ...]:
    counted: Counter[Untouched] = Counter()
    for operation, place, reason in opaque:
        file, line = (place.file, place.line) if place is not None else (None, None)
        counted[Untouched(operation, file, line, reason)] += 1
    return tuple(dataclasses.replace(u, count=n) for u, n in counted.items())


__all__ = ["Policy", "explain", "keep", "rule_names", "stabilize"]
