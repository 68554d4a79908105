"""Tests of facts: `rotation` says which of them a run takes, and it is printed first."""

import warnings

import numpy as np
import pytest
from rotation import ROTATION, TURNS, mark, one_of_each_kind, shares
from survivors import Marked

from refssm.conformance.judging import kept
from refssm.conformance.planted import planted_bugs


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Tests change references and rules: what they expect is computed, and not kept on disk."""
    monkeypatch.setattr(kept, "folder_of", lambda: None)


@pytest.fixture
def their_warnings_are_not_ours():
    """No warnings: wrong programs overflow, divide by zero and cast."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """A mark on all processes that are started; those that are left are killed at the end."""
    monkeypatch.chdir(tmp_path)
    mark = Marked(monkeypatch)
    yield mark
    mark.kill()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark(items)


def pytest_report_header(config):
    if not config.option.markexpr:
        return "every item runs; `make test` takes -m short"
    bugs = planted_bugs()
    return [
        f"REFSSM_ROTATION={ROTATION} (0 to {TURNS - 1}); `make test-all` runs every item",
        shares(len(bugs), len(one_of_each_kind(bugs))),
    ]
