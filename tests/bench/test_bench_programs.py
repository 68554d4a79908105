import sys

import numpy as np
import pytest
from judging import SCAN, plugin
from timed import program, scan

from refssm.bench.programs import program as programs
from refssm.bench.programs.calls import TimedCall
from refssm.bench.programs.program import (
    PEERS,
    Absent,
    Program,
    declared_type,
    ours,
    peers,
)
from refssm.bench.run import Bench, BenchSettings
from refssm.bench.work.sizes import size_of
from refssm.bench.work.targets import asked
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.usage_error import UsageError
from refssm.scan import LINEAR_SCAN

VARIANTS = (
    SCAN
    + """
from refssm.testing import implements

@implements("linear_scan")
def by_rows(a, b):
    return linear_scan(a, b)

def helper(a):
    return a
"""
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), {*sys.modules}
    yield tmp_path
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        if name == "my_ops":
            del sys.modules[name]


def test_all_functions_in_a_file_are_found_also_several_of_one_operator(folder):
    name = plugin(folder, VARIANTS)
    ((op, found),) = asked([name], "small")
    assert op is LINEAR_SCAN
    assert [p.label for p in found] == ["my_ops.py::linear_scan", "my_ops.py::by_rows"]
    ((_, one),) = asked([f"{name}::by_rows"], "small")
    assert [p.label for p in one] == ["my_ops.py::by_rows"]


def test_operators_and_files_may_be_mixed(folder):
    found = asked(["cauchy_kernel", plugin(folder, SCAN)], "small")
    assert [(op.name, len(own)) for op, own in found] == [("cauchy_kernel", 0), ("linear_scan", 1)]


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [((), "complex64"), (("float32",), "float32"), (("float32", "complex64"), "complex64"),
     (("float16", "float64"), "float64"), (("bfloat16",), "complex64")],
)  # fmt: skip
def test_a_file_that_declares_types_is_timed_in_one_of_them(folder, declared, dtype):
    mark = f"@implements('linear_scan', dtypes={declared})\ndef linear_scan"
    text = "from refssm.testing import implements\n" + SCAN.replace("def linear_scan", mark)
    ((op, own),) = asked([plugin(folder, text)], "small")
    assert declared_type(op, "complex64", own) == dtype
    (size,) = Bench(BenchSettings())._sizes(op, own)
    assert size == size_of(op, "small", dtype)
    (asked_for,) = Bench(BenchSettings(dtype="float64"))._sizes(op, own)
    assert asked_for.dtype == "float64"


BAD = {
    "linear_scam": "`linear_scam` is neither an operator nor a file or module; did you mean ",
    "nothing": "`nothing` is neither an operator nor a file or module; `refssm list` prints all",
    "absent.py": "absent.py: no such file",
    "no.such.module": "no.such.module: no such file, and no module of that name",
    "": "`` is neither an operator nor a file",
}


@pytest.mark.parametrize("target", BAD)
def test_a_target_that_is_nothing_is_one_sentence(target):
    with pytest.raises(UsageError) as found:
        asked([target], "small")
    assert str(found.value).startswith(BAD[target])
    assert "\n" not in str(found.value)


def test_a_file_without_operators_says_what_it_has(folder):
    with pytest.raises(UsageError, match="no function has the name of an operator"):
        asked([plugin(folder, "def f(x):\n    return x\n")], "small")


def test_the_reference_and_the_mirror_are_ours():
    assert [p.kind for p in ours(LINEAR_SCAN)] == ["reference", "mirror"]
    assert [p.library for p in ours(LINEAR_SCAN)] == ["numpy", "numba"]
    assert [p.kind for p in ours(operator_named("hippo_legs"))] == ["reference"]


def test_peers_are_the_plug_ins_that_name_the_operator_or_say_why_not(monkeypatch):
    monkeypatch.setattr(programs, "absent", lambda name: "" if name == "scipy" else f"no {name}")
    found = list(peers(LINEAR_SCAN))
    assert {*(p.label for p in found if isinstance(p, Program))} >= {
        "scipy: lfilter",
        "scipy: dlsim",
    }
    absent = [p for p in found if isinstance(p, Absent)]
    assert {(p.label, p.message) for p in absent} >= {("jax: jax_scans", "no jax")}
    assert programs.missing() == [f"no {name}" for name in PEERS if name != "scipy"]
    assert [p.label for p in peers(operator_named("hippo_legs"))] == []


def test_two_functions_of_a_library_have_two_labels():
    found = [p for p in peers(operator_named("causal_convolution")) if isinstance(p, Program)]
    mine = {p.label: p.target for p in found if p.library == "scipy"}
    assert mine == {
        f"scipy: {name}": f"refssm.subjects.scipy::{name}" for name in ("fftconvolve", "oaconvolve")
    }


def test_a_plug_in_that_cannot_be_imported_is_a_row(monkeypatch):
    def fails(target, told):
        raise UsageError(f"{target}: importing it raised ImportError: no symbol")

    monkeypatch.setattr(programs, "absent", lambda name: "")
    monkeypatch.setattr(programs, "every", fails)
    found = list(peers(LINEAR_SCAN))
    assert all(isinstance(p, Absent) and "importing it raised" in p.message for p in found)


def arrays():
    rng = np.random.default_rng(1)
    return [rng.random((2, 8, 3)).astype(np.float32) for _ in range(2)]


def test_a_layout_is_the_one_that_the_author_declares():
    def turned(a, b):
        assert a.shape == (2, 3, 8)
        return scan(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)

    own = program(turned, layout="b n l, b n l -> b n l")
    call = TimedCall(own, arrays(), {}, "float32")
    assert call(0)[0][0].shape == (2, 3, 8)
    assert np.array_equal(call.outputs()[0], scan(*arrays()))


def test_slice_by_slice_is_one_call_for_each_slice():
    shapes = []

    def core(a, b):
        shapes.append(a.shape)
        return scan(a, b)

    call = TimedCall(program(core), arrays(), {}, "float32", sliced=True)
    assert len(call(0)) == 2
    assert shapes == [(8, 3)] * 2
    assert np.array_equal(call.outputs()[0], scan(*arrays()))


TORCH = """
import torch
from refssm.testing import implements

@implements("linear_scan", framework="torch", vjp=True)
def linear_scan(a, b):
    seen.append(torch.is_grad_enabled())
    x, xs = torch.zeros_like(b[..., 0, :]), []
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        xs.append(x)
    return torch.stack(xs, -2)

seen = []
"""


@pytest.mark.long
def test_torch_is_called_without_a_record_forward_and_with_one_for_gradients(folder):
    pytest.importorskip("torch")
    ((_, (own,)),) = asked([plugin(folder, TORCH)], "small")
    seen = own.found.forward.__globals__["seen"]
    assert np.allclose(TimedCall(own, arrays(), {}, "float32").outputs()[0], scan(*arrays()))
    assert seen == [False]
    given = [np.ones((2, 8, 3), np.float32), *arrays()]
    gradients = TimedCall(own, given, {}, "float32", vjp=True).outputs()
    wanted = LINEAR_SCAN.bare_vjp(*given)
    assert all(np.allclose(g, w) for g, w in zip(gradients, wanted, strict=True))
    assert seen == [False, True]


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_jax_is_compiled_once_for_the_forward_call_and_for_the_gradient(dtype):
    pytest.importorskip("jax")
    found = [p for p in peers(LINEAR_SCAN) if isinstance(p, Program)]
    (own,) = [p for p in found if p.label == "jax: lax_scan"]
    given = [a.astype(dtype) for a in arrays()]
    call = TimedCall(own, given, {}, dtype)
    assert call.outputs()[0].dtype == np.dtype(dtype)
    assert np.allclose(call.outputs()[0], scan(*given))
    heads = [np.ones((2, 8, 3), dtype), *given]
    gradients = TimedCall(own, heads, {}, dtype, vjp=True).outputs()
    wanted = LINEAR_SCAN.bare_vjp(*heads)
    assert all(np.allclose(g, w) for g, w in zip(gradients, wanted, strict=True))
