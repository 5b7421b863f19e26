"""Tests that fail as yet are strict xfails, with the reason from `known.py`."""

import pytest

from rules.known import KNOWN


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/rules/" in item.nodeid:
            reason = KNOWN.get(item.nodeid.split("tests/rules/")[1])
            if reason:
                item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
