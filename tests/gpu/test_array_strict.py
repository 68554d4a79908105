"""Array-level mirrors on another library's arrays: the standard only, and nothing read back."""

import ast
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from array_level import ARRAY_LEVEL, arguments, bare, cotangents
from rotation import ROTATION

import refssm_gpu
from refssm.conformance.cases.case import core_dims
from refssm.conformance.checks.checks import types_of
from refssm.krylov import KRYLOV_KERNEL
from refssm_gpu._launching.arrays import namespace

strict = pytest.importorskip("array_api_strict", reason="pip install array-api-strict")

READING = (
    "__array__",
    "__bool__",
    "__buffer__",
    "__complex__",
    "__dlpack__",
    "__float__",
    "__index__",
    "__int__",
    "__iter__",
)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):  # as a public function has it
        yield


def outputs(function, arrays, statics):
    """The outputs for array_api_strict's arrays, still as such."""
    y = function(*map(strict.asarray, arrays), **statics)
    return y if isinstance(y, tuple) else (y,)


def unwrapped(y):
    return [np.asarray(x._array) for x in y if x is not None]  # a flag has no gradient


def both(op, dtype):
    """Each function of an operator with its arguments."""
    arrays, statics = arguments(op, dtype)
    yield bare(op), arrays, statics
    yield bare(op, vjp=True), [*cotangents(op, arrays, statics), *arrays], statics


def several(y):
    return y if isinstance(y, tuple) else (y,)


@pytest.mark.parametrize("op", ARRAY_LEVEL, ids=str)
def test_another_library_gives_the_same_bits(op):
    for dtype in types_of(op):
        for function, arrays, statics in both(op, dtype):
            ours = [x for x in several(function(*arrays, **statics)) if x is not None]
            theirs = outputs(function, arrays, statics)
            for x, y in zip(ours, unwrapped(theirs), strict=True):
                assert x.dtype == y.dtype
                assert x.shape == y.shape
                assert np.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("op", ARRAY_LEVEL, ids=str)
def test_nothing_is_read_back_and_no_branch_depends_on_a_value(op, monkeypatch):
    types = types_of(op)
    for function, arrays, statics in both(op, types[ROTATION % len(types)]):
        given = [strict.asarray(x) for x in arrays]
        with monkeypatch.context() as patch:
            _forbid_reading(patch, given[0])
            function(*given, **statics)


def _forbid_reading(patch, x):
    def refused(*_, **__):
        raise AssertionError("an array on the card is read by the host")

    for name in READING:
        if hasattr(type(x), name):
            patch.setattr(type(x), name, refused)


WRONG = {
    "a function of NumPy": lambda A, B, C, *, l: np.exp(C) * B,
    "a function that the standard lacks": lambda A, B, C, *, l: namespace(A).einsum("n,n", B, C),
    "a method of NumPy's arrays": lambda A, B, C, *, l: (C * B).sum(-1),
    "a method that conjugates": lambda A, B, C, *, l: (C * B).conj(),
    "a copy in another type": lambda A, B, C, *, l: A.astype(np.complex64),
    "numbers read one by one": lambda A, B, C, *, l: [float(x) for x in C],
    "a branch on a value": lambda A, B, C, *, l: C if namespace(A).any(B == 0) else B,
    "a loop as long as a value": lambda A, B, C, *, l: range(namespace(A).argmax(abs(B))),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_mirror_that_leaves_the_standard_or_reads_back_fails_here(wrong, monkeypatch):
    arrays, statics = arguments(KRYLOV_KERNEL)
    given = [strict.asarray(x) for x in arrays]
    with monkeypatch.context() as patch:
        _forbid_reading(patch, given[0])
        with pytest.raises((AssertionError, AttributeError, TypeError)):
            WRONG[wrong](*given, **statics)


# ---- the number of steps


def made(function, arrays, statics, monkeypatch):
    """How many arrays a call makes: one for each launch on a card, at least."""
    given = [strict.asarray(x) for x in arrays]
    kind, count = type(given[0]), 0
    original = kind._new.__func__

    def counting(cls, *args, **kwargs):
        nonlocal count
        count += 1
        return original(cls, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_new", classmethod(counting))
        function(*given, **statics)
    return count


IN_TIME = [op for op in ARRAY_LEVEL if op.leading == "l"]
SHORT, LONG = 16, 256


@pytest.mark.parametrize("op", IN_TIME, ids=str)
def test_sixteen_times_the_length_takes_less_than_four_times_the_launches(op, monkeypatch):
    sizes = [_sizes(op, l) for l in (SHORT, LONG)]
    for vjp in (False, True):
        counts = []
        for size in sizes:
            arrays, statics = arguments(op, "float64", size)
            if vjp:
                arrays = [*cotangents(op, arrays, statics), *arrays]
            counts.append(made(bare(op, vjp), arrays, statics, monkeypatch))
        assert counts[1] < 4 * counts[0]


def _sizes(op, l):
    """Sizes in the order of `ordinary_case`: the length, and 3 for all others."""
    return [l if dim == "l" else 3 for dim in core_dims(op)]


def test_a_loop_over_time_takes_sixteen_times_as_many(monkeypatch):
    def loop(A, B, C, *, l):
        x = B
        for _ in range(l):
            x = (A @ x[..., None])[..., 0]
        return x

    counts = []
    for l in (SHORT, LONG):
        arrays, statics = arguments(KRYLOV_KERNEL, "float64", _sizes(KRYLOV_KERNEL, l))
        counts.append(made(loop, arrays, statics, monkeypatch))
    assert counts[1] >= 15 * counts[0]


# ---- CuPy has the same names


def names_used():
    """Attributes of `xp`, and of calls of `namespace`, in the families with array-level mirrors."""
    places = {"_algebra", *(op.family for op in ARRAY_LEVEL)}
    for path in sorted(Path(refssm_gpu.__file__).parent.rglob("*.py")):
        if places.isdisjoint({path.stem, path.parent.name}):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and _is_namespace(node.value):
                yield node.attr


def _is_namespace(node):
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "namespace"
    return getattr(node, "id", "") == "xp"


def test_cupy_has_every_function_that_these_mirrors_use():
    pytest.importorskip("cupy", reason="pip install -e '.[gpu]' from a clone")
    library = import_module("array_api_compat.cupy")
    used = {*names_used()}
    assert {"matmul", "cumulative_prod", "linalg", "fft"} <= used
    assert {name for name in used if not hasattr(library, name)} == set()
