"""PyTorch's adapter: tensors in and out, views, autograd, and verdicts."""

import numpy as np
import pytest
from frameworks import SHAPES, identical, judged, ordinary
from judging import run

from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import NoDevice
from refssm.conformance.number_types import number_type
from refssm.testing import TYPES, Budget

torch = pytest.importorskip("torch")
ADAPTER = adapter("torch")


def scan(a, b):
    """A right scan, step by step."""
    x = torch.zeros_like(b[..., 0, :], dtype=torch.result_type(a, b))
    states = []
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        states.append(x)
    return torch.stack(states, -2)


def torch_judged(function, check, name="linear_scan", **settings):
    return judged(name, function, check, framework="torch", **settings)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_an_array_goes_in_and_comes_out_unchanged(dtype, shape):
    kind, a = number_type(dtype), ordinary(dtype, shape)
    x = ADAPTER.give(a, kind)
    assert x.dtype == getattr(torch, dtype)
    assert tuple(x.shape) == shape
    assert identical(ADAPTER.take(x, kind), a)


def test_what_goes_in_may_lie_anyhow_and_is_memory_of_its_own():
    a, kind = np.arange(24.0).reshape(2, 3, 4), number_type("float64")
    for lying in (a[:, ::-1], a.T, np.broadcast_to(a[:1], a.shape), a[..., ::2]):
        x = ADAPTER.give(lying, kind)
        assert x.is_contiguous()
        x += 1
        assert identical(ADAPTER.take(x, kind), lying + 1)
    assert a[0, 0, 0] == 0


def test_what_comes_out_may_be_lazy_and_need_a_gradient():
    a, kind = np.array([1 + 2j, 3 - 4j, 5j]), number_type("complex128")
    z = torch.tensor(a, requires_grad=True)
    assert identical(ADAPTER.take(z.conj(), kind), a.conj())
    assert identical(ADAPTER.take(z.conj().imag, kind), -a.imag)
    assert identical(ADAPTER.take(z[::2], kind), a[::2])


def column_major(shape):
    return np.empty(shape, np.int8, order="F").strides


PROMISED = {
    "": lambda x: x.is_contiguous() and x.storage_offset() == 0,
    "every other entry": lambda x: x.stride()[-1] == 2,
    "column-major": lambda x: x.stride() == column_major(x.shape),
    "padded rows": lambda x: x.stride() == (20, 5, 1),
    "half of an array": lambda x: x.stride() == (24, 4, 1),
    "offset in a buffer": lambda x: x.is_contiguous() and x.storage_offset() == 1,
    "expanded": lambda x: x.stride()[::2] == (0, 0) and x.stride()[1] > 0,
}


def given(dtype, shape, view):
    """Numbers of a type that are equal along the first and the last axis."""
    column = ordinary(dtype, (shape[1],))
    column[np.isnan(column)] = 2  # NaN is not equal to NaN
    a = np.broadcast_to(column[:, None], shape)
    return a, ADAPTER.give(a, number_type(dtype), view)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("view", ADAPTER.views)
def test_a_view_has_the_numbers_and_the_strides_it_promises(view, dtype):
    a, x = given(dtype, (2, 3, 4), view)
    assert identical(ADAPTER.take(x, number_type(dtype)), a)
    assert PROMISED[view](x)
    others = [name for name in ADAPTER.views if name != view]
    assert not any(PROMISED[view](given(dtype, (2, 3, 4), name)[1]) for name in others)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", ADAPTER.views)
def test_a_view_of_any_shape_has_the_numbers_of_the_original(view, shape):
    a, kind = ordinary("float32", shape), number_type("float32")
    assert identical(ADAPTER.take(ADAPTER.give(a, kind, view), kind), a)


@pytest.mark.parametrize("a", [(1, 1 + 1e-12), (0, 1e-60), (1e300, 2e300)], ids=str)
def test_an_expanded_view_tells_apart_what_only_double_precision_does(a):
    a, kind = np.array(a, float), number_type("float64")
    assert identical(ADAPTER.take(ADAPTER.give(a, kind, "expanded"), kind), a)


OUTPUTS = {
    "narrower": (lambda b: b.half(), "`x` has the narrower type float16, want float32"),
    "integers": (lambda b: b.long(), "`x` has type int64, want float32"),
    "booleans": (lambda b: b > 0, "`x` has type bool, want float32"),
    "complex": (lambda b: b + 0j, "`x` has type complex64, want float32"),
    "bfloat16": (lambda b: b.bfloat16(), "`x` is a bfloat16 array, want an array"),
    "transposed": (lambda b: b.mT, "`x` has shape ("),
    "a NumPy array": (lambda b: b.numpy(), "`x` is a ndarray, want "),
    "a list": (lambda b: b.tolist(), "`x` is a list, want an array"),
    "two": (lambda b: (b, b), "`x` is a tuple, want an array"),
    "nothing": (lambda b: None, "`x` is a NoneType, want an array"),
    "eight bits": (lambda b: b.to(torch.float8_e4m3fn), "`x` is a "),
    "sparse": (lambda b: b.to_sparse(), "`x` is a "),
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_an_output_that_is_none_is_wrong_and_told_in_words(what):
    spoilt, sentence = OUTPUTS[what]
    result = torch_judged(lambda a, b: spoilt(scan(a, b)), "value")
    assert result.verdict == "wrong"
    assert sentence in result.message


def test_a_wider_output_passes_with_a_note():
    result = torch_judged(lambda a, b: scan(a.double(), b.double()), "value")
    assert result.verdict == "pass"
    assert "`x` is float64, wider than float32" in result.notes


def test_a_bfloat16_kernel_may_return_the_float32_it_computes_in():
    def widened(a, b):
        return scan(a.float(), b.float())

    def rounded(a, b):
        return widened(a, b).bfloat16()

    held = {"dtype": "bfloat16", "accuracy": Budget(computes="float32")}
    result = torch_judged(widened, "value", **held)
    assert (result.verdict, result.dtype) == ("pass", "bfloat16")
    assert "`x` is wider than bfloat16" in result.notes
    result = torch_judged(rounded, "value", **held)
    assert (result.verdict, result.notes) == ("pass", ())
    result = torch_judged(lambda a, b: rounded(a, b).float(), "value", **held)
    assert result.verdict == "inaccurate"  # a wider type, but not as accurate as that type


def written(a, b):
    b *= 2
    return scan(a, b / 2)


def unsqueezed(a, b):
    return scan(a, b.unsqueeze_(0)[0])


def transposed(a, b):
    return scan(a, b.transpose_(-1, -2).mT)


@pytest.mark.parametrize("in_place", [written, unsqueezed, transposed])
def test_what_is_done_to_an_argument_in_place_is_seen(in_place):
    assert torch_judged(scan, "unchanged").verdict == "pass"
    result = torch_judged(in_place, "unchanged")
    assert result.verdict == "wrong"
    assert result.message == "the call wrote to its input `b`"


def test_writing_to_one_slice_is_seen():
    def one_sequence(a, b):
        for k in range(1, len(b)):
            b[k] += a[k] * b[k - 1]
        return b.clone()

    result = torch_judged(one_sequence, "unchanged", layout="l n, l n -> l n")
    assert result.message == "the call wrote to its input `b`"


BUFFER = torch.empty(2**16)


def buffered(a, b):
    x = scan(a, b)
    return torch.as_strided(BUFFER, x.shape, x.stride()).copy_(x)


SHARED = {
    "the argument": (lambda a, b: b, "`b`"),
    "a view of it": (lambda a, b: b[..., :1], "`b`"),
    "the other end of it": (lambda a, b: a[..., -1:], "`a`"),
    "an earlier output": (buffered, "the output of an earlier call"),
}


@pytest.mark.parametrize("what", SHARED)
def test_an_output_in_memory_that_is_not_its_own_is_seen(what):
    assert torch_judged(scan, "alias").verdict == "pass"
    function, whose = SHARED[what]
    result = torch_judged(function, "alias")
    assert result.verdict == "wrong"
    assert result.message.endswith(f"an output shares memory with {whose}")


def contiguous_strides(x):
    return torch.empty(x.shape).stride()


def packed(x):
    """The memory from the first number on, as if nothing else lay between its rows."""
    return x.as_strided(x.shape, contiguous_strides(x))


STRIDES = {
    "every other entry": packed,
    "offset in a buffer": lambda b: b.as_strided(b.shape, b.stride(), 0),
    "expanded": lambda b: b / (0 not in b.stride()),
    "column-major": lambda b: b if b.stride(-1) <= b.stride(0) or b.stride(-1) == 2 else -b,
    "padded rows": lambda b: packed(b) if b.stride(-1) == 1 else b,
    "half of an array": lambda b: packed(b) if b.stride()[-2:] == (b.shape[-1], 1) else b,
}


@pytest.mark.parametrize("view", STRIDES)
def test_a_kernel_that_takes_memory_as_it_lies_is_caught_by_that_view(view):
    assert torch_judged(scan, "strides").verdict == "pass"
    result = torch_judged(lambda a, b: scan(a, STRIDES[view](b)), "strides")
    assert result.verdict == "wrong"
    assert result.message.startswith(f"{view}: ")


def test_declining_is_no_failure_and_raising_is_one():
    def declines(a, b):
        raise NotImplementedError("not today")

    def raises(a, b):
        raise RuntimeError("boom")

    result = torch_judged(declines, "value")
    assert (result.verdict, result.message) == ("skipped", "declined all cases")
    result = torch_judged(raises, "value")
    assert result.verdict == "error"
    assert result.message.startswith("raised RuntimeError: boom (test_torch.py:")


@pytest.mark.parametrize("device", ["cuda:99", "nowhere"])
def test_a_device_that_is_not_there_is_told_in_one_line(device):
    with pytest.raises(NoDevice, match=rf"^torch has no device '{device}' here: [^\n]+$"):
        adapter("torch", device)


def test_the_command_skips_what_it_has_no_device_for(tmp_path, capfd):
    path = tmp_path / "my_ops.py"
    path.write_text("def linear_scan(a, b):\n    return b + 1", encoding="utf-8")
    framework = ["--framework", "torch", "--check", "value", "--profile", "quick"]
    result, out, _ = run(capfd, "verify", path, *framework, "--device", "cuda:99")
    assert result == 5
    assert "skip linear_scan   value [float32]: " in out
    assert "torch has no device 'cuda:99' here: " in out
    result, out, _ = run(capfd, "verify", path, *framework)
    assert result == 1  # judges if it finds one
    assert f"\ntorch {torch.__version__}, device cpu, flush to zero: no\n" in out


def written_over(detached=False):
    """A step whose new state is written over the old one, as kernels for decoding do."""

    def step(a, b, x):
        x.mul_(a.detach() if detached else a).add_(b)
        return x.clone()

    return step


def test_a_step_that_writes_over_its_state_has_a_gradient():
    assert torch_judged(written_over(), "gradient", "linear_step", vjp=True).verdict == "pass"
    detached = torch_judged(written_over(True), "gradient", "linear_step", vjp=True)
    assert detached.verdict == "wrong"
    assert torch_judged(written_over(), "unchanged", "linear_step").verdict == "wrong"
