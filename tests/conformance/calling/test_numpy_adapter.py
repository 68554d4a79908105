"""NumPy's adapter: the arrays that the called function receives."""

import numpy as np
import pytest
from frameworks import SHAPES, called, identical, judged, ordinary
from judging import run

from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import VIEWS, NoDevice, Unusable
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.number_types import number_type
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN

ADAPTER = adapter("numpy")
SINGLE, BFLOAT16 = number_type("float32"), number_type("bfloat16")
scan = LINEAR_SCAN.reference


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "float16", "bfloat16"])
def test_an_array_goes_in_and_comes_out_unchanged(dtype, shape):
    kind, a = number_type(dtype), ordinary(dtype, shape)
    x = ADAPTER.give(a, kind)
    assert (x.dtype.name, x.shape) == (dtype, shape)
    assert identical(ADAPTER.take(x, kind), a)
    assert identical(ADAPTER.take(x.astype(x.dtype.newbyteorder()), kind), a)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_any_shape_has_the_numbers_of_the_original(view, shape):
    a = ordinary("float32", shape)
    x = ADAPTER.give(a, SINGLE, view)
    assert isinstance(x, np.ndarray)  # not a scalar
    assert x.shape == shape
    assert identical(ADAPTER.take(x, SINGLE), a)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_in_bfloat16_has_the_numbers_of_the_original(view, shape):
    a = ordinary("bfloat16", shape)
    x = ADAPTER.give(a, BFLOAT16, view)
    assert (x.dtype.name, x.shape) == ("bfloat16", shape)
    assert identical(ADAPTER.take(x, BFLOAT16), a)


def test_copies_memory_and_equality_of_bfloat16_are_seen():
    x = ADAPTER.give(ordinary("bfloat16", (2, 6)), BFLOAT16)  # with NaN and a signed zero
    y = ADAPTER.copied(x)
    assert ADAPTER.same(x, y)
    assert ADAPTER.share(x, x[:, 1:])
    assert not ADAPTER.share(x, y)
    y[1, 5] += 1
    assert not ADAPTER.same(x, y)
    flags = np.array([True, False])
    assert ADAPTER.give(flags, BFLOAT16).dtype == bool


STRIDES = {
    "": (48, 16, 4),
    "every other entry": (96, 32, 8),
    "negative strides": (-48, -16, -4),
    "column-major": (4, 8, 24),
    "padded rows": (80, 20, 4),
    "half of an array": (96, 16, 4),
    "offset in a buffer": (48, 16, 4),
    "expanded": (0, 16, 0),
    "read-only": (48, 16, 4),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_strides_and_the_flags_it_promises(view):
    column = ordinary("float32", (8,))[4:7, None]  # equal along the first and the last axis
    x = ADAPTER.give(np.broadcast_to(column, (2, 3, 4)).copy(), SINGLE, view)
    assert x.strides == STRIDES[view]
    assert x.flags.writeable == (view not in ("expanded", "read-only"))
    assert (x.base is not None and x.base.ndim == 1) == (view == "offset in a buffer")


def pitch_ignored(inner):
    """A scan that computes the strides of b if the inner ones are as `inner` asks."""

    def program(a, b):
        packed = np.empty(b.shape, b.dtype).strides
        return scan(a, np.lib.stride_tricks.as_strided(b, b.shape, packed) if inner(b) else b)

    return program


IGNORED = {
    "padded rows": lambda b: b.strides[-1] == b.itemsize,
    "half of an array": lambda b: b.strides[-2:] == (b.shape[-1] * b.itemsize, b.itemsize),
}


@pytest.mark.parametrize("view", IGNORED)
def test_a_kernel_that_computes_a_pitch_is_caught_by_that_view(view):
    found = Found(LINEAR_SCAN, pitch_ignored(IGNORED[view]), None)
    asked = Settings(only_checks=("strides",), shrink=False, folder=None)
    seen = list(results_of(Session(InProcess([found]), "here", asked)))[-1]
    assert (seen.verdict, seen.message.split(": ")[0]) == ("wrong", view)


def test_outputs_of_other_kinds_are_told_by_their_type():
    assert ADAPTER.take(np.array([None]), SINGLE) == Unusable("array of object")
    assert ADAPTER.take(np.array(["a"]), SINGLE) == Unusable("array of <U1")
    assert ADAPTER.take([1.0], SINGLE) == Unusable("list")
    assert ADAPTER.take(1.0, SINGLE) == Unusable("float")
    assert identical(ADAPTER.take(np.float32(1), SINGLE), np.array(1, np.float32))


def test_there_is_one_memory_and_no_autodiff():
    with pytest.raises(NoDevice, match=r"^numpy has no device 'cuda': --framework torch, jax or"):
        adapter("numpy", "cuda")
    with pytest.raises(NotImplementedError, match=r"^numpy has no autodiff$"):
        ADAPTER.pullback(scan, [], [], {})


def test_a_device_that_no_framework_knows_is_a_usage_error_and_not_a_skip(tmp_path, capfd):
    path = tmp_path / "my_ops.py"
    path.write_text("def linear_scan(a, b):\n    return b", encoding="utf-8")
    how = ("--check", "value", "--profile", "quick", "--device")
    code, _, err = run(capfd, "verify", path, *how, "GPU0")
    assert (code, err.startswith("refssm: unknown device 'GPU0' for framework 'numpy'")) == (
        4,
        True,
    )
    code, out, _ = run(capfd, "verify", path, *how, "cuda")
    assert (code, "'cuda': --framework torch, jax or cupy makes arrays" in out) == (5, True)


def test_a_library_that_is_not_installed_is_an_import_error(monkeypatch):
    monkeypatch.setattr("refssm.conformance.calling.adapters.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"^torch is not installed: pip install torch$"):
        adapter("torch")
    told = r"^cupy is not installed: pip install 'cupy-cuda13x\[ctk\]', or 'cupy-cuda12x\[ctk\]' "
    with pytest.raises(ImportError, match=told):
        adapter("cupy")


LAYOUTS = ["", "b l n, b l n -> b l n", "b n l, b n l -> b n l", "l n, l n -> l n"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments_may_be_written_to_in_every_layout(layout):
    seen = set()

    def scratch(a, b):
        seen.add(a.flags.writeable and b.flags.writeable)
        x = scan(a.mT, b.mT).mT if "n l" in layout else scan(a, b)
        return np.ascontiguousarray(x)

    assert judged("linear_scan", scratch, "value", layout=layout).verdict == "pass"
    assert seen == {True}


def summed(v, w, z):
    return (v / (z[..., :, None] - w[..., None, :])).sum(-1)


@pytest.mark.parametrize("layout", ["", "n, n, l -> l"])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_writing_to_an_argument_of_one_slice_is_seen(layout, written):
    def one_channel(v, w, z):
        if v.ndim > 1:
            raise ValueError("one at a time")
        k = summed(v, w, z)
        (v, w, z)[written][...] += 1
        return k

    def right(v, w, z):
        return summed(v, w, z)

    settings = {"dtype": "complex64", "layout": layout}
    assert judged("cauchy_kernel", right, "unchanged", **settings).verdict == "pass"
    result = judged("cauchy_kernel", one_channel, "unchanged", **settings)
    assert result.message == f"the call wrote to its input `{'vwz'[written]}`"


def test_a_call_says_which_arguments_it_wrote_to_and_which_it_returned():
    def both(a, b):
        a += 1
        return b[..., ::2]

    ones = np.ones((2, 3, 4), np.float32)
    outcome = called(both, [ones.copy(), ones.copy()], framework="numpy")
    assert (outcome.status, outcome.changed, outcome.aliased) == ("ok", (0,), (1,))
    outcome = called(scan, [ones, ones], framework="numpy", after=[2 * ones, ones])
    assert (outcome.status, outcome.changed, outcome.aliased) == ("ok", (), ())
