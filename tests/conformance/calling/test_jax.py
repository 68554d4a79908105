"""JAX's adapter: arrays in and out, double precision, donation, and verdicts."""

import numpy as np
import pytest
from frameworks import SHAPES, called, identical, judged, ordinary
from judging import run

from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import NoDevice
from refssm.conformance.number_types import number_type
from refssm.testing import TYPES, Budget

jax = pytest.importorskip("jax")
jnp = jax.numpy
ADAPTER = adapter("jax")
FAILING = ("wrong", "inaccurate")
SHORT = {"l": (1, 16), "n": (1, 3)}  # JAX compiles once per shape


@jax.jit
def scan(a, b):
    """A right scan, step by step."""

    def step(x, inputs):
        x = inputs[0] * x + inputs[1]
        return x, x

    dtype = jnp.result_type(a, b)
    time_first = jnp.moveaxis(a.astype(dtype), -2, 0), jnp.moveaxis(b.astype(dtype), -2, 0)
    _, x = jax.lax.scan(step, jnp.zeros_like(time_first[1][0]), time_first)
    return jnp.moveaxis(x, 0, -2)


def jax_judged(function, check, name="linear_scan", **settings):
    return judged(name, function, check, framework="jax", **{"ftz": True, **settings})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_an_array_goes_in_and_comes_out_unchanged(dtype, shape):
    kind, a = number_type(dtype), ordinary(dtype, shape)
    with ADAPTER.inside(kind):
        x = ADAPTER.give(a, kind)
        assert x.dtype.name == dtype
        assert x.shape == shape
        assert identical(ADAPTER.take(x, kind), a)


def test_what_goes_in_may_lie_anyhow_and_is_memory_of_its_own():
    a, kind = np.arange(24, dtype=np.float32).reshape(2, 3, 4), number_type("float32")
    for lying in (a[:, ::-1], a.T, np.broadcast_to(a[:1], a.shape), a[..., ::2], a):
        before = lying.copy()
        x = ADAPTER.give(lying, kind)
        a += 1
        assert identical(ADAPTER.take(x, kind), before)


def test_what_comes_out_may_be_written_to():
    kind = number_type("float32")
    y = ADAPTER.take(ADAPTER.give(np.ones(3, np.float32), kind), kind)
    y += 1
    assert y.tolist() == [2, 2, 2]


def test_there_are_no_views_and_nothing_shares_memory():
    assert [*ADAPTER.views] == [""]
    result = jax_judged(scan, "strides")
    assert (result.verdict, result.message) == ("skipped", "jax arrays have no strides")
    result = jax_judged(scan, "readonly")
    assert (result.verdict, result.message) == ("skipped", "jax has no read-only arrays")
    result = jax_judged(scan, "alias")
    assert (result.verdict, result.message) == ("skipped", "jax arrays cannot be written to")


WIDE = {"float32": False, "complex64": False, "bfloat16": False, "float64": True,
        "complex128": True}  # fmt: skip


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
def test_double_precision_is_on_where_it_is_judged_and_nowhere_else(dtype, outside):
    seen = []

    def watching(a, b):
        seen.extend([jnp.zeros(3).dtype.name, jnp.arange(3).dtype.name, b.dtype.name])
        return jnp.zeros(b.shape) + b.real

    b = np.ones((2, 3), number_type(dtype).carrier)
    with jax.enable_x64(outside):
        outcome = called(watching, [b, b], framework="jax", dtype=dtype)
        assert jax.config.jax_enable_x64 == outside
    wanted = ("float64", "int64") if WIDE[dtype] else ("float32", "int32")
    assert seen == [*wanted, dtype]
    (y,) = outcome.outputs
    assert y.dtype == ("float64" if dtype == "bfloat16" else wanted[0])  # float64 stores wider


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_that_makes_zeros_is_right_in_both_precisions(dtype):
    def scratch(a, b):
        return jnp.zeros(b.shape) + scan(a, b)

    result = jax_judged(scratch, "value", dtype=dtype, sizes=SHORT)
    assert (result.verdict, result.notes) == ("pass", ())


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_single_precision_where_double_is_judged_is_told(dtype):
    def narrow(a, b):
        return scan(a, b).astype(jnp.complex64 if dtype == "complex128" else jnp.float32)

    result = jax_judged(narrow, "value", dtype=dtype)
    assert result.verdict == "wrong"
    assert "`x` has the narrower type" in result.message
    result = jax_judged(lambda a, b: narrow(a, b).astype(dtype), "value", dtype=dtype)
    assert result.verdict in ("inaccurate", "wrong")


OUTPUTS = {
    "narrower": (lambda b: b.astype(jnp.float16), "`x` has the narrower type float16"),
    "integers": (lambda b: b.astype(int), "`x` has type int32, want float32"),
    "booleans": (lambda b: b > 0, "`x` has type bool, want float32"),
    "complex": (lambda b: b + 0j, "`x` has type complex64, want float32"),
    "bfloat16": (lambda b: b.astype(jnp.bfloat16), "`x` is a bfloat16 array, want an array"),
    "eight bits": (lambda b: b.astype(jnp.float8_e4m3fn), "`x` has "),
    "transposed": (lambda b: b.mT, "`x` has shape ("),
    "objects": (lambda b: np.asarray(b).astype(object), "`x` has type object, want float32"),
    "random keys": (lambda b: jax.random.key(0), "`x` is an array of key<"),
    "a list": (lambda b: b.tolist(), "`x` is a list, want an array"),
    "two": (lambda b: (b, b), "`x` is a tuple, want an array"),
    "nothing": (lambda b: None, "`x` is a NoneType, want an array"),
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_an_output_that_is_none_is_wrong_and_told_in_words(what):
    spoilt, sentence = OUTPUTS[what]
    result = jax_judged(lambda a, b: spoilt(scan(a, b)), "value")
    assert result.verdict == "wrong"
    assert sentence in result.message


def test_an_array_of_numpy_is_taken_for_one_of_jax():
    result = jax_judged(lambda a, b: np.asarray(scan(a, b)), "value", sizes=SHORT)
    assert result.verdict == "pass"


def test_a_bfloat16_kernel_may_return_the_float32_it_computes_in():
    def widened(a, b):
        return scan(a.astype(jnp.float32), b.astype(jnp.float32))

    def rounded(a, b):
        return widened(a, b).astype(jnp.bfloat16)

    held = {"dtype": "bfloat16", "accuracy": Budget(computes="float32"), "sizes": SHORT}
    result = jax_judged(widened, "value", **held)
    assert (result.verdict, result.dtype) == ("pass", "bfloat16")
    assert result.notes == ("`x` is wider than bfloat16",)
    result = jax_judged(rounded, "value", **held)
    assert (result.verdict, result.notes) == ("pass", ())
    result = jax_judged(lambda a, b: rounded(a, b).astype(jnp.float32), "value", **held)
    assert result.verdict == "inaccurate"  # a wider type, but not as accurate as that type


DONATING = jax.jit(lambda a, b: scan(a, b), donate_argnums=(1,))


def test_a_donated_argument_is_one_that_was_written_to():
    assert jax_judged(scan, "unchanged").verdict == "pass"
    result = jax_judged(DONATING, "unchanged")
    assert result.verdict == "wrong"
    assert result.message == "the call wrote to its input `b`"
    ones = np.ones((2, 3, 4), np.float32)
    assert called(DONATING, [ones, ones], framework="jax").changed == (1,)
    assert called(scan, [ones, ones], framework="jax").changed == ()


def test_a_donated_slice_is_seen():
    result = jax_judged(DONATING, "unchanged", layout="l n, l n -> l n")
    assert result.verdict == "wrong"
    assert result.message == "the call wrote to its input `b`"


def test_subnormal_numbers_flushed_to_zero_are_told_apart_from_errors():
    if "flush to zero: yes" not in ADAPTER.about():
        pytest.skip(f"nothing is flushed here: {ADAPTER.about()}")
    result = jax_judged(scan, "value", ftz=False)
    assert result.verdict in FAILING  # wrong where zeros are, inaccurate where a few bits stay
    assert result.hint == "passes if subnormal numbers may be flushed to zero: declare ftz=True"
    result = jax_judged(lambda a, b: scan(a, b) + 1e-30, "value")
    assert result.verdict in FAILING


def test_declining_is_no_failure_and_raising_is_one():
    def declines(a, b):
        raise NotImplementedError("not today")

    def raises(a, b):
        raise RuntimeError("boom")

    for function in (declines, jax.jit(declines)):
        result = jax_judged(function, "value")
        assert (result.verdict, result.message) == ("skipped", "declined all cases")
    result = jax_judged(jax.jit(raises), "value")
    assert result.verdict == "error"
    assert result.message.startswith("raised RuntimeError: boom (test_jax.py:")


@pytest.mark.parametrize("device", ["cpu:99", "nowhere", "cpu:x"])
def test_a_device_that_is_not_there_is_told_in_one_line(device):
    with pytest.raises(NoDevice, match=rf"^jax has no device '{device}' here: [^\n]+$"):
        adapter("jax", device)


def test_the_command_skips_what_it_has_no_device_for(tmp_path, capfd):
    path = tmp_path / "my_ops.py"
    path.write_text("def linear_scan(a, b):\n    return b + 1", encoding="utf-8")
    framework = ["--framework", "jax", "--check", "value", "--profile", "quick"]
    result, out, _ = run(capfd, "verify", path, *framework, "--device", "cpu:99")
    assert result == 5
    assert "skip linear_scan   value [float32]: " in out
    assert "jax has no device 'cpu:99' here: " in out
    result, out, _ = run(capfd, "verify", path, *framework)
    assert result == 1  # judges if it finds one
    assert f"\njax {jax.__version__}, device " in out
