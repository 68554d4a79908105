"""A diagnosis says nothing that is untrue: each sentence beside a program that once got it."""

import numpy as np
import pytest
from judging import rounded_to

from refssm import hippo_legs
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess, Outcome
from refssm.conformance.diagnosis import hints, roughness
from refssm.conformance.diagnosis.pattern import _run_to_run
from refssm.conformance.diagnosis.roughness import _distinct
from refssm.conformance.diagnosis.transcript import Episode, SpokenCall
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration

EXPECTED = {name: operator_named(name).reference for name in ("linear_scan", "causal_convolution")}


pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


def failure(name, function, check="value", dtype="float32", wider=()):
    """The result of one implementation that fails one check, made smaller as by default."""
    declared = Declaration(name, dtypes=(dtype, *wider))
    found = Found(operator_named(name), function, None, declared=declared)
    how = {"only_checks": (check,), "types": (dtype, *wider), "folder": None, "diagnose": True}
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "", Settings(**how)))
    assert line.failed, line
    return line


def by_fft(u, k):
    n = 2 * u.shape[-1]
    spectra = np.fft.fft(u, n) * np.fft.fft(k, n)
    return np.fft.ifft(spectra)[..., : u.shape[-1]]


def typed(y, *arguments):
    kind = np.result_type(*arguments)
    return (y if kind.kind == "c" else np.real(y)).astype(kind)


def window(u, k):
    """Taps from 1024 on are left out."""
    near = np.where(np.arange(k.shape[-1]) < 1024, k, 0)
    return typed(by_fft(u, near), u, k) if u.shape[-1] else EXPECTED["causal_convolution"](u, k)


def damped(a, b):
    """Inputs that are too small by up to 2^-8, which is no rounding."""
    steps = np.arange(b.shape[-2])[:, None]
    return EXPECTED["linear_scan"](a, (b * (1 - 2.0**-8 * np.sin(1 + steps) ** 2)).astype(b.dtype))


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_cut_off_is_not_told_as_arithmetic_of_few_bits(dtype):
    told = failure("causal_convolution", window, dtype=dtype).looks_like
    assert "bits" not in told
    assert "state" not in told  # a convolution has none


def in_bfloat16(a, b):
    return EXPECTED["linear_scan"](rounded_to(8, a), rounded_to(8, b))


@pytest.mark.long
def test_without_calls_of_neighbours_a_kernel_cut_off_would_be_told_as_few_bits(monkeypatch):
    assert "bfloat16" in failure("linear_scan", in_bfloat16).looks_like
    monkeypatch.setattr(roughness, "ROUGH", 2.0)  # nothing changes by twice its size
    assert "bits" not in failure("linear_scan", in_bfloat16).looks_like
    monkeypatch.setattr(roughness, "ROUGH", -1.0)  # every error passes for rounding
    assert "bits" in failure("linear_scan", damped).looks_like


def late_reset(a, b):
    """The carry is lost at step 40."""
    a = a.copy()
    a[..., 40:41, :] = 0
    return EXPECTED["linear_scan"](a, b)


@pytest.mark.long
def test_a_lost_carry_is_not_half_of_a_spectrum():
    assert "spectrum" not in failure("linear_scan", late_reset).looks_like


def stale():
    """The spectrum of the kernel is kept by shape and type."""
    kept = {}

    def program(u, k):
        if not u.size or not k.size:
            return EXPECTED["causal_convolution"](u, k)
        n = 2 * u.shape[-1]
        spectrum = kept.setdefault((k.shape, k.dtype), np.fft.fft(k, n))
        return typed(np.fft.ifft(np.fft.fft(u, n) * spectrum)[..., : u.shape[-1]], u, k)

    return program


@pytest.mark.long
def test_a_stale_cache_is_not_called_rounding():
    line = failure("causal_convolution", stale(), dtype="complex64", wider=("complex128",))
    assert "right in" not in line.hint


@pytest.mark.long
def test_without_the_calls_between_a_stale_cache_would_be_called_rounding(monkeypatch):
    monkeypatch.setattr(hints, "_others", lambda arrays: arrays)
    line = failure("causal_convolution", stale(), dtype="complex64", wider=("complex128",))
    assert "right in complex128" in line.hint


def overflowing(a, b):
    """Each step through its square, which overflows in single precision."""
    x = EXPECTED["linear_scan"](a, b)
    return (np.sign(x) * np.sqrt(np.square(x * x.dtype.type(1e18)))).astype(x.dtype) / x.dtype.type(
        1e18
    )


@pytest.mark.long
def test_an_overflow_is_not_called_rounding():
    line = failure("linear_scan", overflowing, wider=("float64",))
    assert "rounding" not in line.hint


def with_eight_terms(a, b):
    """Too small by a smooth part in single precision, as a sum of too few terms is."""
    x = EXPECTED["linear_scan"](a, b)
    single = np.finfo(x.dtype).dtype == np.float32
    return x * x.dtype.type(1 - 2.0**-13 if single else 1)


@pytest.mark.long
def test_another_path_in_single_precision_is_not_called_rounding():
    line = failure("linear_scan", with_eight_terms, wider=("float64",))
    assert line.verdict == "inaccurate"
    assert line.hint == (
        "right in float64: float32 has too few digits for it, or takes another path"
    )


def in_sixteen_bits(a, b):
    x = EXPECTED["linear_scan"](a, b)
    return rounded_to(16, x) if x.dtype == np.float32 else x


@pytest.mark.long
def test_roundings_in_single_precision_are_called_so():
    line = failure("linear_scan", in_sixteen_bits, wider=("float64",))
    assert line.hint == "right in float64: these are rounding errors, the formula is right"


def of_a_block(a, b):
    """Wrong from the ninth step on; where it is, it writes to its argument, too."""
    x = EXPECTED["linear_scan"](a, b)
    if x.shape[-2] > 8:
        x[..., 8:, :] *= x.dtype.type(1.5)
        a[..., -1:, :] = 0.25
    return x


@pytest.mark.long
@pytest.mark.parametrize("check", ["value", "unchanged"])
def test_a_written_input_is_the_reason_and_no_pattern_of_entries(check):
    line = failure("linear_scan", of_a_block, check)
    assert line.message == "the call wrote to its input `a`"
    assert line.looks_like == ""


def unsteady():
    calls = [0]

    def program(a, b):
        calls[0] += 1
        wrong = b.dtype == np.float32 and calls[0] % 3
        return EXPECTED["linear_scan"](a, b) * b.dtype.type(1.5 if wrong else 1)

    return program


@pytest.mark.long
def test_nothing_is_said_of_a_failure_that_does_not_come_again():
    assert failure("linear_scan", unsteady(), wider=("float64",)).hint == ""


@pytest.mark.long
def test_rounding_in_every_type_is_not_called_a_wrong_formula():
    def in_twelve_bits(a, b):
        return rounded_to(12, EXPECTED["linear_scan"](a, b))

    line = failure("linear_scan", in_twelve_bits, wider=("float64",))
    assert "formula is wrong" not in line.hint


@pytest.mark.long
def test_a_wrong_formula_is_called_so():
    line = failure("linear_scan", late_reset, wider=("float64",))
    assert line.hint.endswith("the formula is wrong, this is not rounding")


@pytest.mark.long
def test_a_nan_of_a_masked_product_is_told_as_such():
    def masked(a, b):
        x, steps = np.zeros(b.shape, np.result_type(a, b)), np.arange(b.shape[-2])
        for t in steps:
            decays = [np.prod(a[..., s + 1 : t + 1, :], -2) for s in steps]
            mask = (steps <= t).astype(x.dtype)
            x[..., t, :] = sum(mask[s] * decays[s] * b[..., s, :] for s in steps)
        return x

    line = failure("linear_scan", masked, "nan")
    assert "0 times NaN is NaN" in line.hint or "0 · NaN" in line.looks_like


def heard(*calls):
    """An episode of these calls; each has another output."""
    return Episode(
        Verdict("A"),
        [
            SpokenCall([*arrays], statics, vjp, view, None, Outcome("ok", (np.full(2, float(i)),)))
            for i, (arrays, statics, vjp, view) in enumerate(calls)
        ],
    )


def test_an_inaccurate_constructor_which_has_no_arrays_is_explained():
    def noisy(*, n):
        rng = np.random.default_rng(n)
        return tuple(a * (1 + 2.0**-47 * rng.uniform(-1, 1, a.shape)) for a in hippo_legs(n=n))

    # it ended in an exception of ours
    assert failure("hippo_legs", noisy, dtype="float64").verdict == "inaccurate"


def test_only_calls_with_the_same_arguments_static_ones_too_are_the_same_call():
    a, wide, table = np.zeros(4, "f4"), np.zeros(2), np.zeros((2, 2), "f4")
    assert a.tobytes() == wide.tobytes() == table.tobytes()
    call = ([a], {"l": 3}, False, "")
    others = [([a], {"l": 4}, False, ""), ([a], {"l": 3}, True, "")]
    others += [([x], {"l": 3}, False, "") for x in (wide, table, a + 1)]
    assert not _run_to_run([heard(call, *others, ([a], {"l": 3}, False, "reversed"))])
    assert not _run_to_run([heard(call), heard(call)])
    assert _run_to_run([heard(*others, call, call)])
    assert len(_distinct([c[:3] for c in (call, *others, call)])) == 6


@pytest.mark.long
def test_other_numbers_without_a_gramian_end_the_second_call():
    right = operator_named("hankel_singular_values").reference

    def ascending(A, B, C):
        return right(A, B, C)[..., ::-1]

    line = failure("hankel_singular_values", ascending, dtype="float32", wider=("float64",))
    assert (line.verdict, line.smallest[:3]) == ("wrong", "n=2")


def of_rounded_sigmoid(rounded=lambda p: p):
    """EMA whose gradients by δ and α have the factor p (1 − p) with rounded p, as PyTorch's."""
    op = operator_named("ema_kernel")

    def gradient(dk, delta, alpha, beta, gamma, *, l):
        d, da, *others = op.bare_vjp(dk, delta, alpha, beta, gamma, l=l)
        lost = [(1 - rounded(1 / (1 + np.exp(-t)))) * (1 + np.exp(t)) for t in (delta, alpha)]
        return d * lost[0].astype(d.dtype), da * lost[1].astype(d.dtype), *others

    return op.reference, gradient


@pytest.mark.parametrize(
    ("dtype", "wider", "told", "seed"),  # of these cases the first that fails lost so many digits
    [
        ("float32", "float64", "as many digits are lost in float64: roundings that grow", 0),
        ("float64", "float32", "as many digits are lost in float32: roundings that grow", 2),
    ],
)
def test_digits_that_cancel_in_both_precisions_are_not_told_as_a_narrower_type(
    dtype, wider, told, seed
):
    forward, vjp = of_rounded_sigmoid()
    assert looks_like(forward, vjp, dtype, wider, seed).startswith(told)


def test_digits_that_cancel_in_rare_cases_are_not_told_as_a_narrower_type():
    assert looks_like(*of_rounded_sigmoid(), "float32", "") == ""  # the only precision judged


def test_a_narrower_type_inside_is_told_where_both_precisions_are_judged():
    def half(p):
        return p.astype(np.float16).astype(p.dtype)

    told = looks_like(*of_rounded_sigmoid(half), "float32", "float64")
    assert "as many digits" not in told


def looks_like(forward, vjp, dtype, wider, seed=0):
    types = (dtype, wider) if wider else (dtype,)
    found = Found(
        operator_named("ema_kernel"), forward, vjp, declared=Declaration("ema_kernel", dtypes=types)
    )
    how = {"only_checks": ("gradient",), "types": types, "folder": None, "diagnose": True}
    settings = Settings(shrink=False, seed=seed, **how)
    with remembering():
        lines = [*results_of(Session(InProcess([found]), "", settings))]
    (line,) = [r for r in lines if r.dtype == dtype]
    assert line.failed
    return line.looks_like
