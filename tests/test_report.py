"""What a person reads: each rewrite with its line, before and after, and what was left as it was."""

import functools
import html
import re
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engines.jax.program import line_of
from engines.verified import verified_rewrites
from stablegrad import explain
from stablegrad.report import Explanation, Rewrite, Untouched, source_line

X = jnp.array([[0.5, 0.25, 0.75], [1.0, 2.0, 3.0]])
here = functools.partial(line_of, file=__file__)


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    verified_rewrites(monkeypatch)


def lines(report):
    return [(r.file, r.line) for r in report.rewrites]


# -- where -----------------------------------------------------------------------------------------------------------


def several_lines(x, t):
    shifted = x - 1.0
    p = jnp.exp(shifted) / jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True)
    picked = t * (
        jnp.log(p)  # the logarithm
    )
    other = jnp.log(  # the softplus
        1.0 + jnp.exp(x)
    )
    return picked.sum(), other  # fmt: skip


def test_a_rewrite_has_the_line_of_its_operation():
    report = explain(several_lines, disable=["cross_entropy", "product_with_logarithm"])(X, X)
    assert (__file__, here("the softplus")) in lines(report)
    assert (__file__, here("the logarithm")) in lines(report)


def test_the_text_of_the_line_is_shown():
    report = explain(several_lines)(X, X)
    (found,) = [r for r in report.rewrites if r.line == here("the softplus")]
    assert found.source == "other = jnp.log(  # the softplus"
    assert f"test_report.py:{found.line}  {found.source}" in str(report)


def helper(x):
    return jnp.log(1 + jnp.exp(x))  # inside the helper


def test_a_helper_has_its_own_line():
    assert set(lines(explain(lambda x: helper(x) + helper(2 * x))(X))) == {(__file__, here("inside the helper"))}


def test_a_jitted_helper_has_its_own_line():
    jitted = jax.jit(helper)
    assert set(lines(explain(lambda x: jitted(x) + jitted(2 * x))(X))) == {(__file__, here("inside the helper"))}


def test_a_function_of_jax_has_the_line_that_calls_it():
    def f(x):
        a = jnp.log(jax.nn.sigmoid(x))  # the first sigmoid
        return a, jnp.log(jax.nn.sigmoid(2 * x))  # the second sigmoid

    assert lines(explain(f)(X)) == [(__file__, here("the first sigmoid")), (__file__, here("the second sigmoid"))]


@pytest.mark.parametrize(
    "around",
    [
        lambda f: lambda x: lax.map(f, x),
        lambda f: lambda x: lax.scan(lambda c, r: (c + f(r), None), jnp.zeros(3), x)[0],
        lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
        lambda f: lambda x: lax.while_loop(lambda c: c.sum() < 9, f, x),
        lambda f: lambda x: lax.cond(x[0, 0] > 0, f, jnp.sin, x),
        lambda f: lambda x: jax.jit(f)(x),
        lambda f: jax.checkpoint(f),
        lambda f: jax.vmap(f),
    ],
    ids=["map", "scan", "fori", "while", "cond", "jit", "checkpoint", "vmap"],
)
def test_bodies_are_part_of_the_report(around):
    report = explain(around(helper))(X)
    assert set(lines(report)) == {(__file__, here("inside the helper"))}


def test_rewrites_are_in_the_order_of_the_lines():
    def f(x):
        a = jnp.log(jax.nn.softmax(x))
        b = jnp.log(1 + jnp.exp(x))
        return b, a, jnp.log(jax.nn.sigmoid(x))

    found = [line for _, line in lines(explain(f)(X))]
    assert found == sorted(found)
    assert len(found) == 3


def test_source_that_cannot_be_read_is_empty():
    scope = {"jnp": jnp}
    exec(compile("def f(x):\n    return jnp.log(1 + jnp.exp(x))\n", "<written in a string>", "exec"), scope)
    (found,) = explain(scope["f"])(X).rewrites
    assert (found.file, found.line, found.source) == ("<written in a string>", 2, "")
    assert source_line(None, None) == source_line("no/such/file.py", 3) == ""


# -- how often -------------------------------------------------------------------------------------------------------


def unrolled(x):
    for _ in range(7):
        x = jnp.sin(x) * 99
        x = jnp.log(1 + jnp.exp(x))  # in the loop
    return x


def test_every_round_of_an_unrolled_loop_is_counted():
    report = explain(unrolled)(X)
    assert {r.line for r in report.rewrites} == {here("in the loop")}
    assert sum(r.count for r in report.rewrites) == 7
    assert str(report).startswith("unrolled: 7 rewrites\n")


def test_an_unrolled_loop_is_one_entry():
    report = explain(unrolled)(X)
    assert [r.count for r in report.rewrites] == [7]
    assert "(x 7)" in str(report)


def test_equal_rewrites_at_one_line_are_one_entry():
    def f(xs):
        return [jnp.log(1 + jnp.exp(x)) for x in xs]  # in the list

    report = explain(f)([X, X + 1, X + 2])
    assert [(r.line, r.count) for r in report.rewrites] == [(here("in the list"), 3)]
    assert "(x 3)" in str(report)


def test_one_rewrite_is_not_counted():
    report = explain(helper)(X)
    assert str(report).startswith("helper: 1 rewrite\n")
    assert "(x " not in str(report)


# -- what was left as it was -----------------------------------------------------------------------------------------


def test_what_was_not_understood_is_named_with_its_reason():
    def f(x):
        y = lax.linalg.cholesky(x @ x.T + jnp.eye(2))  # the factor
        jax.debug.callback(lambda v: None, y)  # the effect
        return y

    report = explain(f)(X)
    found = {u.operation: (u.line, u.reason) for u in report.untouched}
    assert found["cholesky"] == (here("the factor"), "no rule knows this operation")
    assert found["debug_callback"] == (here("the effect"), "it has an effect")
    assert f"test_report.py:{here('the factor')}  cholesky: left as it was, no rule knows this operation" in str(report)


def test_a_derivative_rule_of_the_user_s_is_named():
    @jax.custom_jvp
    def mine(x):
        return jnp.log(1 + jnp.exp(x))

    mine.defjvp(lambda p, t: (mine(*p), t[0]))
    report = explain(lambda x: mine(x))(X)
    assert [u.reason for u in report.untouched] == ["it carries a derivative rule of its own"]


def test_equal_entries_are_counted():
    def f(x):
        for _ in range(3):
            x = lax.linalg.cholesky(x)
        return x

    assert [(u.operation, u.count) for u in explain(f)(jnp.eye(2)).untouched] == [("cholesky", 3)]


def test_complex_operations_are_named():
    assert [u.operation for u in explain(lambda x: jnp.abs(jnp.fft.fft(x)))(X).untouched] == ["fft"]


# -- text ------------------------------------------------------------------------------------------------------------

REPORT = Explanation(
    "loss<T>",
    (
        Rewrite("a_rule", "/home/me/loss.py", 3, "y = a < b", "log((a < b))", "b & c", "because <it> is so"),
        Rewrite("another", None, None, "", "before", "after", "a reason", 4),
    ),
    (Untouched("sort", "/home/me/loss.py", 9, "no rule", 2), Untouched("fft", None, None, "no rule")),
)


def test_the_text_of_a_report():
    assert str(REPORT) == repr(REPORT)
    assert str(REPORT).splitlines() == [
        "loss<T>: 5 rewrites",
        "  loss.py:3  y = a < b",
        "      before  log((a < b))",
        "      after   b & c",
        "      why     because <it> is so  [a_rule]",
        "  (no source)    (x 4)",
        "      before  before",
        "      after   after",
        "      why     a reason  [another]",
        "  loss.py:9  sort  (x 2): left as it was, no rule",
        "  (no source)  fft: left as it was, no rule",
    ]


def test_nothing_to_rewrite():
    assert str(Explanation("f")) == "f: nothing to rewrite"
    assert str(explain(jnp.sin)(X)).endswith(": nothing to rewrite")


def test_before_and_after_are_one_line_each():
    for r in explain(several_lines)(X, X).rewrites:
        assert "\n" not in r.before + r.after
        assert r.reason
        assert r.before != r.after


# -- notebook --------------------------------------------------------------------------------------------------------


class Balanced(HTMLParser):
    """Collects the text of table cells and checks that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.code = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        self.code += tag == "code"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


@pytest.mark.parametrize("report", [REPORT, Explanation("f"), explain(several_lines)(X, X)])
def test_a_notebook_shows_a_table(report):
    parser = Balanced()
    parser.feed(report._repr_html_())
    parser.close()
    assert not parser.open
    assert parser.cells[:4] == ["where", "before", "after", "why"]
    for r in report.rewrites:
        assert r.before in parser.cells
        assert r.after in parser.cells
        assert r.reason in parser.cells
    assert parser.code == 2 * len(report.rewrites)
    for u in report.untouched:
        assert f"{u.operation}: left as it was, {u.reason}" in parser.cells


def test_text_is_escaped():
    shown = REPORT._repr_html_()
    assert html.escape("because <it> is so") in shown
    assert "<it>" not in shown
    assert html.escape("loss<T>") in shown
    assert not re.search(r"[^;]&[^a-z#]", shown)


def test_numbers_of_every_kind_are_shown():
    def f(x):
        return jnp.log(jnp.exp(x) * jnp.float32(1 / 3) + np.float32(1e-8)), jnp.log(jnp.exp(x) * 3 + True)

    assert "0.333333" in str(explain(f)(X))


def test_arguments_have_the_names_that_the_function_gives_them():
    def loss(params, x, *rest, power=1.0):
        return jnp.log(jnp.exp(params["w"]) + jnp.exp(x) + jnp.exp(rest[0]) + jnp.exp(power))

    report = explain(loss)({"w": 1.0}, 2.0, 3.0, power=4.0)
    (rewrite,) = report.rewrites
    assert all(name in rewrite.before for name in ("params['w']", "x", "rest[0]", "power"))


def test_a_static_argument_has_no_name_to_give():
    report = explain(lambda n, x: jnp.log(1 + jnp.exp(x) * n), static_argnums=0)(2, 1.0)
    assert "exp(x)" in report.rewrites[0].before
