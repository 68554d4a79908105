"""Tests of the GPU mirror: on the host build with NumPy arrays; `make test-gpu`: on a card."""

import os

import pytest

os.environ.setdefault("REFSSM_GPU", "host")  # set to nothing: CuPy arrays


@pytest.fixture(autouse=True, scope="session")
def _compiler():
    """Skip everything, with the sentence that says what to install, if nothing can compile."""
    from refssm_gpu._host.build import NoCompiler, compiler
    from refssm_gpu._launching.target import on_host

    if on_host():
        try:
            compiler()
        except NoCompiler as lack:
            pytest.skip(str(lack))
