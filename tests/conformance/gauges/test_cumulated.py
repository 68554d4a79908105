"""The second gauge: cumulated forms are right, and bound what differences of sums attain."""

import numpy as np
import pytest

from refssm._declaration.arguments import several
from refssm.catalog import OPERATORS, named
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.gauges.columns import OF
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.cumulated import FORMS, sums
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.judging.grading import judge

TRANSFORMED = {
    f"{name}{of}" for name in ("short_convolution", "causal_conv1d") for of in ("", "_stateful")
}
BOTH = [(name, dtype) for name in FORMS for dtype in ("float64", "complex128")]


def called(name, dtype):
    """The operator, an ordinary call, and cotangents."""
    op, rng = named(name), np.random.default_rng(5)
    assert op is not None
    case = ordinary_case(op, dtype, sizes=(37, 5, 4, 2))
    outputs = several(op.reference(*case.arrays, **case.statics))
    cotangents = [rng.standard_normal(y.shape).astype(y.dtype) for y in outputs]
    return op, case, outputs, cotangents


def apart(got, wanted):
    """The largest difference, relative to the largest entry of each array."""
    pairs = [(g, w) for g, w in zip(got, wanted, strict=True) if w is not None]
    return max(np.abs(g - w).max() / np.abs(w).max() for g, w in pairs)


@pytest.mark.parametrize(("name", "dtype"), BOTH)
def test_a_cumulated_form_gives_the_outputs_and_gradients_of_its_operator(name, dtype):
    op, case, outputs, cotangents = called(name, dtype)
    form = FORMS[name]
    rounding = 64 * np.finfo(np.float64).eps  # of e^L with |L| below 64
    assert apart(several(form.forward(*case.arrays, **case.statics)), outputs) < rounding
    given = (*cotangents, *case.arrays)
    pulled = op.bare_vjp(*given, **case.statics)
    assert apart(form.vjp(*given, **case.statics), pulled) < rounding


@pytest.mark.parametrize(("name", "dtype"), BOTH)
def test_the_second_gauge_has_a_bound_for_each_entry_of_the_first(name, dtype):
    op, case, _, cotangents = called(name, dtype)
    how = {"unit": 2.0**-24, "floor": 1e-38}
    for vjp, given in ((None, case.arrays), (op.bare_vjp, [*cotangents, *case.arrays])):
        for gauge in bounds(op, given, case.statics, vjp, **how):
            assert gauge.cumulated is not None
            whole, terms = gauge.cumulated.whole(), gauge.cumulated.of_terms()
            assert whole.shape == terms.shape == gauge.k0.shape
            assert np.isfinite(whole).all()
            assert (terms <= whole).all()


def test_every_sequence_operator_with_one_decay_per_step_has_a_cumulated_form():
    varying = {"a", "log_a", "dt"}
    timed = {
        op.name
        for op in OPERATORS
        for name, dims in zip(op.inputs, op.input_dims, strict=True)
        if name in varying and op.leading == "l" and "l" in dims and op.family != "discretize"
    }
    whole = ("gated_linear_recurrence", "rwkv6", "mlstm")
    keyed = {op.name for op in OPERATORS if op.name.startswith(whole) and op.form != "step"}
    gated = {op.name for op in OPERATORS if op.family == "gated_units" and op.leading == "l"}
    delta_rules = {op.name for op in OPERATORS if op.contract.measures_columns}
    assert delta_rules == set(OF)  # their bounds of columns have a second one of their own
    assert (timed | keyed | gated | TRANSFORMED) - delta_rules == set(FORMS)


def test_a_sum_of_decayed_inputs_has_the_errors_of_the_exponents():
    L, b = np.array([[-100.0], [-200.0], [-200.5]]), np.ones((3, 1))
    first = np.zeros(3, bool)
    (gauge,) = gauges(lambda L, b: sums.decayed_sums(L, b, first), L, b, unit=2.0**-24)
    np.testing.assert_allclose(gauge.value, sums.decayed_sums(L, b, first))
    np.testing.assert_allclose(gauge.value.ravel()[-1], 1 + np.exp(-0.5) + np.exp(-100.5))
    (exact, off) = gauge.k0.ravel()[-1], gauge.k1.ravel()[-1]
    assert 300 * np.exp(-0.5) < off < 500  # |L_t| + |L_s| roundings of L, times e^{-1/2}
    assert exact < 20  # L as given


def test_an_exponential_without_digits_gets_no_allowance_for_its_exponent():
    L, b = np.array([[-1e6], [-1e6 - 0.5]]), np.ones((2, 1))
    first = np.zeros(2, bool)
    for unit, limit in ((2.0**-53, 1e6), (2.0**-24, 20)):
        (gauge,) = gauges(lambda L, b: sums.decayed_sums(L, b, first), L, b, unit=unit)
        assert (gauge.k1[1] < limit * 2).all()
        assert (gauge.k1[1] > limit / 4).all()


def test_sequences_of_a_packed_row_do_not_mix():
    first = np.array([False, False, True, False])
    L, b = np.log(0.5) * np.arange(1.0, 5)[:, None], np.ones((4, 1))
    (gauge,) = gauges(lambda L, b: sums.decayed_sums(L, b, first), L, b, unit=2.0**-24)
    np.testing.assert_allclose(gauge.value.ravel(), [1, 1.5, 1, 1.5])
    np.testing.assert_allclose(sums.decayed_sums(L, b, first).ravel(), [1, 1.5, 1, 1.5])


@pytest.mark.parametrize("decays", [1, 3])
@pytest.mark.parametrize("begins", [0, 0.01])
def test_gradients_of_logarithms_summed_by_chunks_are_those_summed_over_the_row(decays, begins):
    rng, l, n = np.random.default_rng(0), 2 * sums.CHUNK + 100, 3
    log_a, b = -0.05 * rng.random((2, l, decays)), rng.standard_normal((2, l, n))
    d, x0 = rng.standard_normal((2, l, n)), rng.standard_normal((2, n))
    first = rng.random((2, l)) < begins
    given = d, log_a, b, sums.CUMULATED.states(log_a, b, x0, first), first, sums.log_sums
    pulled, wanted = sums.pulled_back(*given), sums.pulled_back(*given, chunk=l)
    assert apart(pulled, wanted) < 64 * np.finfo(np.float64).eps


def test_a_gradient_summed_over_a_long_row_is_refused_and_one_summed_by_chunks_is_not():
    """Small entries before large ones: the sum over the row has the roundings of the large ones."""
    op, rng, l = operator_named("ssd_recurrent"), np.random.default_rng(1), 2048
    size = np.where(np.arange(l) < l // 2, 1e-4, 1)[:, None]
    dy, x, B, C = (rng.standard_normal((l, n)).astype(np.float32) for n in (2, 2, 3, 3))
    dy, x, log_a = dy * size.astype("f"), x * size.astype("f"), np.full(l, -1, np.float32)
    given = [dy, x, log_a, B, C]
    right, wide = op.bare_vjp(*given)[1], op.bare_vjp(*(a.astype(float) for a in given))
    dB, dC = (g.astype(np.float32) for g in wide[2:])
    of_steps = (C * dC - B * dB).sum(-1)  # dL
    gauge = bounds(op, given, {}, op.bare_vjp, unit=2.0**-24, floor=1e-38)[1]
    assert gauge.cumulated is not None
    allowed = 16 * 2.0**-24 * np.maximum(gauge.k1, gauge.cumulated.whole())
    from_the_end = np.flip(np.cumsum(np.flip(of_steps)))
    assert (np.abs(right - wide[1]) <= allowed).all()
    assert (np.abs(from_the_end - wide[1]) > allowed)[: l // 4].any()
    for begin in (0, 40, 63):  # chunks of 64 and of 256 steps, which may begin anywhere
        for size in (64, 256):
            by_chunks = right.copy()
            for start in range(begin, l, size):
                w = slice(start, start + size)
                after = right[w.stop] if w.stop < l else np.float32(0)
                by_chunks[w] = np.flip(np.cumsum(np.flip(of_steps[w]))) + after
            assert (np.abs(by_chunks - wide[1]) <= allowed).all()


@pytest.mark.long
@pytest.mark.parametrize("name", ["gated_linear_recurrence", "rwkv6"])
def test_gradients_of_each_keys_gates_are_summed_by_chunks_too(name):
    """As above; RWKV-6 without its bonus reads the state before its step."""
    op, rng, l = operator_named(name), np.random.default_rng(1), 4 * sums.CHUNK
    size = np.where(np.arange(l) < 2 * sums.CHUNK, 1e-4, 1)[:, None]
    dy, q, k, v = (rng.standard_normal((l, 2)).astype(np.float32) for _ in range(4))
    log_g = np.full((l, 2), -1, np.float32)
    given = [dy * size.astype("f"), q, k, v * size.astype("f"), log_g]
    given += [np.zeros(2, np.float32)] if name == "rwkv6" else []
    right, wide = op.bare_vjp(*given)[3], op.bare_vjp(*(a.astype(float) for a in given))
    dq, dk = (g.astype(np.float32) for g in wide[:2])
    of_reads = np.roll(q * dq, -1, 0) * (np.arange(l) < l - 1)[:, None]
    of_steps = (of_reads if name == "rwkv6" else q * dq) - k * dk  # dL
    gauge = bounds(op, given, {}, op.bare_vjp, unit=2.0**-24, floor=1e-38)[3]
    assert gauge.cumulated is not None
    allowed = 16 * 2.0**-24 * np.maximum(gauge.k1, gauge.cumulated.whole())
    by_chunks, from_the_end = right.copy(), np.flip(np.cumsum(np.flip(of_steps, 0), 0), 0)
    for start in range(0, l, 64):
        w = slice(start, start + 64)
        after = right[w.stop] if w.stop < l else np.float32(0)
        by_chunks[w] = np.flip(np.cumsum(np.flip(of_steps[w], 0), 0), 0) + after
    assert (np.abs(by_chunks - wide[3]) <= allowed).all()
    assert (np.abs(from_the_end - wide[3]) > allowed)[: l // 4].any()


@pytest.mark.parametrize("name", ["ssd_recurrent_stateful", "gated_linear_recurrence_stateful"])
def test_a_wrong_last_state_of_no_steps_is_refused(name):
    """The cumulated form is asked for, and has nothing to sum: the state stays as it was."""
    op = operator_named(name)
    arrays = ordinary_case(op, "float32", (0, 3, 2, 2)).arrays
    arrays[-1] = np.ones_like(arrays[-1])
    assert judge(op, op.reference, *arrays).grade == "A"

    def wrong(*arrays):
        y, S = op.reference(*arrays)
        return y, 0 * S

    assert judge(op, wrong, *arrays).grade == "F"


def by_transform(u, k):
    """Zero-padded, in the precision of the input, as scipy.signal.fftconvolve."""
    length = u.shape[-1] + k.shape[-1] - 1
    spectrum = np.fft.rfft(u, length) * np.fft.rfft(k, length)
    return np.fft.irfft(spectrum, length)[..., : u.shape[-1]].astype(u.dtype)


def test_a_short_convolution_by_transforms_is_right_in_norm_and_a_missing_tap_is_not():
    op, rng = operator_named("short_convolution"), np.random.default_rng(3)
    u = rng.standard_normal((2, 40)).astype(np.float32)
    u[:, 10:] *= np.float32(1e-6)
    k = rng.standard_normal((2, 4)).astype(np.float32)
    assert judge(op, by_transform, u, k).grade == "N"
    cut = k * np.array([1, 1, 1, 0], np.float32)
    assert judge(op, lambda u, k: by_transform(u, cut), u, k).grade == "F"
    assert judge(op, lambda u, k: by_transform(u, k) * np.float32(1.0001), u, k).grade in "CF"


def test_gradients_of_a_short_convolution_by_transforms_err_within_the_second_gauge_alone():
    op, rng, unit = operator_named("short_convolution"), np.random.default_rng(3), 2.0**-24
    dy, u, k = (rng.standard_normal(size).astype(np.float32) for size in (40, 40, 4))
    dy[:30] *= np.float32(1e-6)
    u[30:] *= np.float32(1e-6)  # each product of a large entry with a large one is too far apart
    given, length = [dy, u, k], 64
    wide, spectra = (
        op.bare_vjp(*(a.astype(float) for a in given)),
        [np.fft.rfft(a, length) for a in given],
    )
    found = [
        np.fft.irfft(spectra[0] * np.conj(other), length)[:count].astype(np.float32)
        for other, count in ((spectra[2], 40), (spectra[1], 4))
    ]
    gauges = bounds(op, given, {}, op.bare_vjp, unit=unit, floor=1e-38)
    for gradient, exact, gauge in zip(found, wide, gauges, strict=True):
        assert gauge.cumulated is not None
        error = np.abs(gradient - exact)
        assert (error <= 16 * unit * gauge.cumulated.whole()).all()
        assert (error > 16 * unit * gauge.k0).any()
