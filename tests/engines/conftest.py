"""Every rewrite that these tests cause is verified."""

import pytest

from engines.verified import verified_rewrites


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    verified_rewrites(monkeypatch)
