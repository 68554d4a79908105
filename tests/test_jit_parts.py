"""Parts of kernels, and kernels as one library: the same functions as Numba's own."""

# pyright: reportCallIssue=false
# (a part is called without its first parameter)

import numpy as np
import pytest
from numba import guvectorize, njit

from refssm.jit._compiling import cache as disk
from refssm.jit._compiling import gufunc, parts
from refssm.jit._compiling.gufunc import GufuncKernel
from refssm.jit._compiling.parts import part

SIGNATURE = "(l),()->(l)"
TYPES = [f"({t}[:], {t}[:], {t}[:])" for t in ("f4", "f8")]


def bounded(x, bound):
    if x < 0:
        raise ValueError("a number is negative")
    return (bound, True) if x > bound else (x, False)


def clipped(u, bound):
    y = np.empty_like(u)
    for i in range(u.size):
        y[i], _ = bounded_part(u[i], bound)
    return y


def total(u):
    found = 0.0
    for i in range(u.size):
        found += u[i]
    return found


bounded_part, clipped_part = part(bounded), part(clipped)
reordered, ordered = part(total, fastmath={"reassoc"}), part(total)


def doubled(u, bound, y):
    h = clipped_part(u, bound[0])
    for i in range(u.size):
        y[i] = h[i] + clipped_part(h, np.float64(9))[i]


def shares(u, bound, y):
    h, whole = clipped_part(u, bound[0]), ordered(u)
    for i in range(u.size):
        y[i] = h[i] / whole


def sums(u, bound, y):
    y[0], y[1] = ordered(u), reordered(u)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own; call it to forget what this process has compiled."""
    monkeypatch.setattr(disk, "of_these_sources", lambda: tmp_path)
    gufunc._loaded.cache_clear()
    return gufunc._loaded.cache_clear


def test_parts_return_numbers_tuples_and_arrays_and_serve_several_kernels_and_types(cache):
    first, second = GufuncKernel(doubled, TYPES, SIGNATURE), GufuncKernel(shares, TYPES, SIGNATURE)
    for kind in ("f4", "f8", "f4"):
        u = np.arange(1, 4, dtype=kind)
        assert first(u, np.array(2, kind)).tolist() == [2, 4, 4]
        assert np.array_equal(second(u, np.array(2, kind)), (np.minimum(u, 2) / 6).astype(kind))
        assert first(u, np.array(2, kind)).dtype == kind


def test_what_is_loaded_from_disk_is_what_was_compiled(cache, monkeypatch):
    u = np.arange(12.0).reshape(3, 4)[:, ::2]
    wanted = GufuncKernel(doubled, TYPES, SIGNATURE)(u, np.float64(5))
    cache()
    monkeypatch.delattr(parts, "compiled")
    assert np.array_equal(GufuncKernel(doubled, TYPES, SIGNATURE)(u, np.float64(5)), wanted)


@pytest.mark.parametrize("from_disk", [False, True])
def test_an_error_in_a_part_is_an_error_of_the_call(cache, from_disk):
    for _ in range(1 + from_disk):
        kernel = GufuncKernel(doubled, TYPES, SIGNATURE)
        with pytest.raises(ValueError, match=r"^a number is negative$"):
            kernel(np.array([1.0, -1.0]), np.float64(2))
        cache()


def test_a_division_by_zero_is_numpys(cache):
    with np.errstate(invalid="ignore"):
        y = GufuncKernel(shares, TYPES, SIGNATURE)(np.array([0.0]), np.float64(1))
    assert np.isnan(y).all()


def test_only_parts_that_allow_it_are_reordered(cache):
    u = np.random.default_rng(0).standard_normal(4096)
    y = GufuncKernel(sums, TYPES, SIGNATURE)(u, np.float64(0))
    assert y[0] == sum(u.tolist())
    assert abs(y[1] - y[0]) <= u.size * np.finfo(u.dtype).eps * abs(u).sum()


def test_a_kernel_is_what_numba_makes_of_it_for_all_strides_and_batches(cache):
    def loops(u, bound, y):
        for i in range(u.size):
            y[i] = min(u[i], bound[0]) + u[0]

    mine = GufuncKernel(loops, TYPES, SIGNATURE)
    theirs = guvectorize(TYPES, SIGNATURE, nopython=True)(loops)
    rng = np.random.default_rng(1)
    for shape in ((3,), (1,), (0, 3), (2, 1, 5), (2, 3, 4)):
        for kind in ("f4", "f8"):
            u = rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(kind)[..., ::-2]
            assert np.array_equal(mine(u, u.dtype.type(0)), theirs(u, u.dtype.type(0)))
    bounds = rng.standard_normal((2, 1))
    assert np.array_equal(mine(u, bounds), theirs(u, bounds))


def test_a_part_may_be_called_by_a_compiled_function_of_numba():
    @njit
    def call(u):
        return clipped_part(u, 2.0)

    assert call(np.array([1.0, 3.0])).tolist() == [1, 2]


def test_a_part_with_a_closure_is_refused():
    factor = 2.0

    def scaled(x):
        return factor * x

    with pytest.raises(AssertionError, match="names alone"):
        part(scaled)
