"""The two formal shapes that companions are written in: sums with rational coefficients, and scaled terms.

Both are exact: coefficients are fractions, so that opposite parts cancel before any number is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, magnitude, rational

ZERO, ONE, HALF = 0, 1, rational(0.5)
NOTHING: dict = {}  # shared, never written to


class Linear:
    """constant + sum of coefficient * node + sum of coefficient * log(number).

    Attributes:
        parts: node -> coefficient, none of them 0.
        constant: a rational number.
        logs: positive rational number -> the coefficient of its logarithm, none of them 0.
    """

    __slots__ = ("_key", "constant", "logs", "parts")

    def __init__(
        self,
        parts: dict[Node, Rational] | None = None,
        constant: Rational = ZERO,
        logs: dict[Rational, Rational] | None = None,
    ) -> None:
        # Never changed once they are here, so that sums may share them.
        self.parts: dict[Node, Rational] = NOTHING if parts is None else parts
        self.constant = constant
        self.logs: dict[Rational, Rational] = NOTHING if logs is None else logs
        self._key: tuple | None = None

    @property
    def key(self) -> tuple:
        if self._key is None:
            self._key = (frozenset(self.parts.items()), self.constant, frozenset(self.logs.items()))
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Linear)
            and self.parts == other.parts
            and self.constant == other.constant
            and self.logs == other.logs
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __bool__(self) -> bool:
        return bool(self.parts or self.constant or self.logs)

    def size(self) -> int:
        return len(self.parts) + bool(self.constant or self.logs)

    def plus(self, other: Linear, times: Rational = ONE) -> Linear:
        """self + times * other."""
        if not times or not (other.parts or other.constant or other.logs):
            return self
        if times == 1 and not (self.parts or self.constant or self.logs):
            return other
        return Linear(
            _merged(self.parts, other.parts, times) if other.parts else self.parts,
            self.constant + times * other.constant if other.constant else self.constant,
            _merged(self.logs, other.logs, times) if other.logs else self.logs,
        )

    @staticmethod
    def total(
        sums: Iterable[tuple[Linear, Rational]], constant: Rational = ZERO, logs: dict[Rational, Rational] | None = None
    ) -> Linear:
        """The sum of times * sum over the pairs (sum, times), in one pass."""
        parts: dict[Node, Rational] = {}
        numbers = NOTHING if logs is None else logs
        for one, times in sums:
            if not times:
                continue
            _merge(parts, one.parts, times)
            if one.constant:
                constant += times * one.constant
            if one.logs:
                numbers = _merged(numbers, one.logs, times)
        return Linear(parts, constant, numbers)

    def plus_part(self, node: Node, times: Rational) -> Linear:
        """self + times * node."""
        parts = dict(self.parts)
        total = parts.get(node, ZERO) + times
        if total:
            parts[node] = total
        else:
            parts.pop(node, None)
        return Linear(parts, self.constant, self.logs)

    def size_with(self, other: Linear, times: Rational) -> int:
        """The size of self + times * other."""
        if not times:
            return self.size()
        parts = self.parts
        count = len(parts)
        for part, k in other.parts.items():
            own = parts.get(part)
            if own is None:
                count += 1
            elif own == -times * k:
                count -= 1
        if not (other.constant or other.logs):
            return count + bool(self.constant or self.logs)
        return count + bool(self.constant + times * other.constant or _merged(self.logs, other.logs, times))

    def scaled(self, times: Rational) -> Linear:
        if times == 1:
            return self
        return Linear(
            _scaled(self.parts, times), self.constant and times * self.constant, _scaled(self.logs, times)
        ) if times else Linear()  # fmt: skip

    def without(self, node: Node) -> Linear:
        return Linear({n: c for n, c in self.parts.items() if n is not node}, self.constant, self.logs)

    def with_log(self, number: Rational, times: Rational = ONE) -> Linear:
        """self + times * log(number), number > 0."""
        return self if number == 1 else self.plus(Linear(logs={number: ONE}), times)


def _merged(a: dict, b: dict, times: Rational) -> dict:
    out = a.copy()
    _merge(out, b, times)
    return out


def _merge(out: dict, b: dict, times: Rational) -> None:
    """Add times * b to `out`."""
    once = times == 1
    for key, coefficient in b.items():
        added = coefficient if once else times if coefficient == 1 else times * coefficient
        if key not in out:
            out[key] = added
        elif total := out[key] + added:
            out[key] = total
        else:
            del out[key]


def _scaled(parts: dict, times: Rational) -> dict:
    return {key: times if k == 1 else times * k for key, k in parts.items()} if parts else parts


NO_EXPONENT = Linear()


def is_mask(node: Node) -> bool:
    """select(c, 1, 0), the factor that stands for a `where` with a 0 (`masks.py`)."""
    if node.op.name != "select" or len(node.inputs) != 3:
        return False
    cases = [case.value for case in node.inputs[1:] if case.op.name == "literal"]
    return len(cases) == 2 and {float(v) for v in cases} == {0.0, 1.0}


class Term:
    """coefficient * product of node ** power * exp(exponent)."""

    __slots__ = ("_key", "_log", "_multiple", "coefficient", "exponent", "factors")

    def __init__(
        self,
        coefficient: Rational = ONE,
        factors: dict[Node, Rational] | None = None,
        exponent: Linear | None = None,
    ) -> None:
        self.coefficient = coefficient
        self.factors: dict[Node, Rational] = NOTHING if factors is None else factors
        self.exponent = exponent if exponent is not None else NO_EXPONENT
        self._key: tuple | None = None
        self._log: Linear | None = None
        self._multiple: tuple[Rational, Term] | None = None  # (number, term) as `scaled` answered last

    @property
    def key(self) -> tuple:
        """What identifies the term up to its coefficient."""
        if self._key is None:
            self._key = (frozenset(self.factors.items()), self.exponent.key)
        return self._key

    @property
    def log(self) -> Linear:
        """log |term| of a term without factors, coefficient not 0."""
        if self._log is None:
            self._log = self.exponent.with_log(magnitude(self.coefficient))
        return self._log

    def times(self, other: Term) -> Term:
        factors = self.factors
        if other.factors:
            factors = _merged(factors, other.factors, ONE)
            for node in self.factors.keys() & other.factors.keys():
                if is_mask(node):
                    factors[node] = ONE  # 1 or 0 times itself
        return Term(self.coefficient * other.coefficient, factors, self.exponent.plus(other.exponent))

    def scaled(self, number: Rational) -> Term:
        if number == 1:
            return self
        if self._multiple is None or self._multiple[0] != number:
            self._multiple = number, Term(self.coefficient * number, self.factors, self.exponent)
        return self._multiple[1]

    def is_number(self) -> bool:
        return not self.factors and not self.exponent

    def is_exponential(self) -> bool:
        return not self.factors


def collect(terms: Iterable[Term]) -> list[Term]:
    """Equal terms added up; those that vanish dropped."""
    terms = list(terms)
    if len(terms) == 1:
        return terms if terms[0].coefficient else []
    totals: dict[tuple, Term] = {}
    for term in terms:
        found = totals.get(term.key)
        totals[term.key] = term if found is None else Term(
            found.coefficient + term.coefficient, term.factors, term.exponent
        )  # fmt: skip
    return [t for t in totals.values() if t.coefficient]


def times_all(left: Iterable[Term], right: Iterable[Term]) -> list[Term]:
    right = list(right)
    return collect(a.times(b) for a in left for b in right)
