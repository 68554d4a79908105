"""Tests of laws: a run takes the same share of them as of the facts."""

import pytest
from rotation import mark


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark(items)
