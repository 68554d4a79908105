"""Guard zones of the host build: a write or a read beside an array never stays unseen."""

import numpy as np
import pytest
from gpu.hosted import kernel
from gpu.test_host_launch import wide  # noqa: F401 (a fixture)

from refssm_gpu._host import arguments
from refssm_gpu._host.launch import HostError
from refssm_gpu._launching.kernel import Kernel

N = np.int64(64)
TYPES = ("float32", "float64")


def beside(tmp_path, E, place, value="E(1)"):
    """A kernel that writes to `out[place]`, an element outside of the array."""
    text = '#include "common/number.cuh"\ntemplate <class E> __global__ void beside(E* out) {\n'
    path = tmp_path / "beside.cuh"
    path.write_text(
        f"{text}out[threadIdx.x] = E(2);\nout[{place}] = {value};\n}}\n", encoding="utf-8"
    )
    return Kernel(str(path), "beside", ((E,),), 32, 32)


@pytest.mark.parametrize("E", TYPES)
@pytest.mark.parametrize(("place", "side"), [(32, "after its last"), (-1, "before its first")])
def test_a_write_beside_an_array_is_an_error_with_kernel_and_argument(tmp_path, E, place, side):
    out = np.zeros((4, 8), E)
    with pytest.raises(HostError) as caught:
        beside(tmp_path, E, place)((E,), (1,), out)
    told = str(caught.value)
    assert told.startswith(f"beside<{E}>: writes outside of argument 1 ({E} of shape (4, 8)), byte")
    assert f"{side} byte; python -m refssm_gpu._host.sanitize" in told
    assert int(told.partition("byte ")[2].split()[0]) <= out.itemsize
    assert (out == 2).all()


def test_a_write_up_to_a_page_away_is_an_error(tmp_path):
    run = beside(tmp_path, "float32", "32 + 1023")
    with pytest.raises(HostError, match="byte 4093 after its last byte"):
        run(("float32",), (1,), np.zeros(32, np.float32))


def test_an_empty_array_has_zones_too(tmp_path):
    with pytest.raises(HostError, match="byte 1 after its last byte"):
        beside(tmp_path, "float32", "0")(("float32",), (1,), np.zeros(0, np.float32))


@pytest.mark.parametrize("E", ["float16", "float32", "float64", "complex64", "complex128"])
def test_a_read_beside_an_array_is_nan_in_every_type(E):
    out = np.zeros(64, E)
    kernel("twice", E)(1, np.ones(63, E), out, N)
    assert np.isnan(out[63:]).all()
    np.testing.assert_array_equal(out[:63], np.full(63, 2, E))


def test_arrays_that_overlap_still_do():
    x = np.arange(65, dtype=np.float32)
    kernel("twice", "float32")(1, x[:64], x[:64], N)
    np.testing.assert_array_equal(x, [*(2 * np.arange(64)), 64])


def test_neighbours_in_one_array_are_kept_apart(tmp_path):
    both = np.zeros(64, np.float32)
    with pytest.raises(HostError, match=r"argument 1 \(float32 of shape \(32,\)\), byte 1 after"):
        beside(tmp_path, "float32", 32)(("float32",), (1,), both[:32])
    assert not both[32:].any()


@pytest.mark.parametrize("shift", range(4))
def test_a_copy_is_as_aligned_as_the_array(shift):
    array = np.zeros(64, np.float32)[shift:]
    piece = arguments._Piece.of(*arguments.spans([array])[0])
    start = piece.copy.ctypes.data + piece.inside
    assert (start - array.ctypes.data) % arguments.ZONE == 0
    assert piece.inside >= arguments.ZONE
    assert piece.copy.size - piece.inside - piece.size >= arguments.ZONE


def test_larger_arrays_are_not_copied(wide):  # noqa: F811
    of = arguments.Guarded((), (), ())
    assert of.back() == ""
    assert wide.nbytes > arguments.LARGEST
    kernel("twice", "float32")(1, wide, out := np.ones(64, np.float32), N)
    assert not out.any()
