"""Kernels are compiled when they are first called, each for the types of the call."""

import itertools

import numpy as np
import pytest
from numba import guvectorize

from refssm.jit._compiling import gufunc
from refssm.jit._compiling.gufunc import GufuncKernel

SIGNATURE = "(l),(l)->(l)"
TYPES = [f"({t}[:], {t}[:], {t}[:])" for t in ("f4", "f8", "c8", "c16")]


def added(u, v, y):
    for i in range(u.size):
        y[i] = u[i] + v[i]


@pytest.fixture
def in_memory(monkeypatch):
    """What was built, in order; nothing is kept on disk."""
    names = []

    def kept(compile, load, name):
        names.append(name.removeprefix(f"{__name__}."))
        return compile()[0]

    monkeypatch.setattr(gufunc, "kept", kept)
    gufunc._loaded.cache_clear()
    return names


def test_nothing_is_compiled_before_the_first_call_and_then_only_the_types_of_the_call(in_memory):
    kernel = GufuncKernel(added, TYPES, SIGNATURE)
    assert in_memory == []
    for _ in range(2):
        kernel(np.ones(3, "f4"), np.ones(3, "f4"))
        kernel(np.ones(3, "c8"), np.ones(3, "f4"))
        kernel(np.ones(3, "f4"), np.ones(3, "c8"))
    assert in_memory == ["added.f4f4f4", "added.c8c8c8"]


def test_the_types_are_those_that_numpy_would_choose_among_all(in_memory):
    kernel, whole = GufuncKernel(added, TYPES, SIGNATURE), guvectorize(TYPES, SIGNATURE)(added)
    for kinds in itertools.product(("?", "f2", "f4", "f8", "c8", "c16", "i4"), repeat=2):
        u, v = (np.ones(2, kind) for kind in kinds)
        assert kernel(u, v).dtype == whole(u, v).dtype, kinds


def test_a_wrong_choice_is_seen(in_memory, monkeypatch):
    """The check itself: always the widest."""
    monkeypatch.setattr(GufuncKernel, "_of", lambda self, given: self.compiled([*self.types][-1]))
    with pytest.raises(AssertionError):
        test_the_types_are_those_that_numpy_would_choose_among_all([])


def test_types_that_no_form_accepts_are_named(in_memory):
    with pytest.raises(AssertionError, match=r"added has no form for .*complex128"):
        GufuncKernel(added, TYPES[:2], SIGNATURE)(np.ones(2, "c16"), np.ones(2))
