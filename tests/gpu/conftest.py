"""Tests of the GPU mirror: on the host build with NumPy arrays; `make test-gpu`: on a card."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("REFSSM_GPU", "host")  # set to nothing: CuPy arrays
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """On a card, skip what says something about the host build alone."""
    from host_only import reason_of

    from refssm_gpu._launching.kernel import on_host

    for item in items:
        if not on_host() and item.path.is_relative_to(HERE) and (why := reason_of(item)):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(autouse=True, scope="session")
def _compiler():
    """Skip everything, with the sentence that says what is missing, if nothing can run."""
    from refssm_gpu._host.build import NoCompiler, compiler
    from refssm_gpu._launching.kernel import on_host
    from refssm_gpu._launching.missing import NoCard, require_card

    if not on_host():
        try:
            require_card("this test")
        except NoCard as lack:
            pytest.skip(str(lack))
        return
    try:
        compiler()
    except NoCompiler as lack:
        pytest.skip(str(lack))


@pytest.fixture
def one_multiprocessor(monkeypatch):
    """Blocks as large as at large sizes: a card with many multiprocessors gets smaller ones."""
    from refssm_gpu._launching.kernel import on_host, target

    if on_host():
        monkeypatch.setattr(type(target()), "multiprocessors", 1)
