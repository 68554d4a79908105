"""Measured bounds: the errors of our own programs, in which no bad program can hide."""

from dataclasses import replace

import numpy as np
import pytest
from selftest.bounds import case_of, cotangents

from refssm import initial
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import Case
from refssm.conformance.gauges.gauge import TrackedCall, wide
from refssm.conformance.gauges.programs import GRADIENTS, OUTPUTS
from refssm.conformance.gauges.programs import measured as kept
from refssm.conformance.gauges.programs.linear_attention import dplr, states
from refssm.conformance.gauges.programs.measured import (
    COPIES,
    _copies,
    measured,
    measured_again,
)
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, grade_outputs, judge
from refssm.conformance.standard import Standard
from refssm.dplr.system import bilinear
from refssm.presets.catalog import presets_of

U = 2.0**-24


def legs(n, l, dtype="complex64", dt=0.01, d=1, seed=7):
    """The arguments of LegS with one dt."""
    op = operator_named("dplr_kernel")
    preset = next(p for p in presets_of(op) if p.name == f"legs-{n}")
    case = Case(op, np.dtype(dtype), {"l": l, "n": n, "r": 1}, {"d": d}, {}, seed, None, {}, preset)
    *arrays, steps = case.arrays
    return [*arrays, np.full_like(steps, dt)]


def at_nodes(z, w, P, Q, B, C, dt):
    """The published generating function in the arguments' type, C̃ in double precision."""
    l, kind = len(z), np.result_type(w, P)
    wide = (a.astype(np.result_type(a, np.float64)) for a in (w, P, Q, B, dt))
    A_bar = np.eye(w.shape[-1]) - bilinear(*wide)[0]
    power = np.linalg.matrix_power(A_bar, l)
    C_tilde = (C[..., None, :] @ (np.eye(w.shape[-1]) - power))[..., 0, :].astype(kind)
    z = z.astype(kind)[:, None]
    R = 1 / (2 * (1 - z) / dt[..., None, None] - (1 + z) * w[..., None, :])
    first = (C_tilde[..., None, :] * R * B[..., None, :]).sum(-1)
    left = ((C_tilde[..., None, :] * R) @ P)[..., 0]
    right = ((R * B[..., None, :]) @ Q.conj())[..., 0]
    middle = 1 + (1 + z[:, 0]) * np.einsum("...nr,...ln,...nr->...l", Q.conj(), R, P)
    K = 2 * (first - (1 + z[:, 0]) * left * right / middle)
    return np.fft.ifft(K).astype(kind)


def exact_nodes(*arrays, l):
    return at_nodes(np.exp(-2j * np.pi * np.arange(l) / l), *arrays)


def powers_of_one_root(*arrays, l):
    """Nodes as powers of one rounded root: the angle errs by l roundings."""
    kind = np.result_type(*arrays)
    root = np.exp(-2j * np.pi / l).astype(kind)
    return at_nodes(np.cumprod(np.concatenate([[1], np.full(l - 1, root)])), *arrays)


def in_the_eigenbasis(w, P, Q, B, C, dt, *, l):
    """Steps in the eigenvectors of Ā, which for LegS have a condition that grows as 2^n."""
    kind = np.result_type(w, P)
    E, x = bilinear(w, P, Q, B, dt)
    poles, V = np.linalg.eig((np.eye(w.shape[-1]) - E).astype(kind))
    v = (C[..., None, :] @ V)[..., 0, :] * np.linalg.solve(V, x[..., None])[..., 0]
    return (v[..., None] * poles[..., None] ** np.arange(l)).sum(-2).astype(kind)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.long
def test_nodes_as_powers_of_a_rounded_root_are_refused_and_exact_nodes_pass(dtype):
    arrays = legs(64, 4096, dtype)
    op = operator_named("dplr_kernel")
    (gauge,) = gauged = expect(op, arrays, {"l": 4096})
    assert gauge.derive is not None
    assert grade_outputs(op, arrays, (exact_nodes(*arrays, l=4096),), gauged).grade == "A"
    assert grade_outputs(op, arrays, (powers_of_one_root(*arrays, l=4096),), gauged).grade == "C"
    assert grade_outputs(op, arrays, (in_the_eigenbasis(*arrays, l=4096),), gauged).grade in "CF"


@pytest.mark.long
def test_the_derived_bound_passes_a_rounded_root_that_errs_by_10000_roundings():
    arrays, op = legs(64, 4096), operator_named("dplr_kernel")
    (gauge,) = expect(op, arrays, {"l": 4096})
    rounding = U * np.abs(gauge.value).max()

    def error(program):
        return np.abs(program(*arrays, l=4096) - gauge.value)

    bad = error(powers_of_one_root)
    assert bad.max() > 10_000 * rounding
    for program in (exact_nodes, *OUTPUTS["dplr_kernel"].values()):
        assert error(program).max() < bad.max() / 100
    assert gauge.derive is not None
    assert (bad <= 16 * U * gauge.derive()).all()


def test_an_error_above_a_hundredth_of_the_largest_value_is_wrong_and_not_inaccurate():
    arrays = legs(16, 64)
    op = operator_named("dplr_kernel")
    gauged = expect(op, arrays, {"l": 64})
    K = op.reference(*arrays, l=64)
    size = np.abs(K).max()
    off = np.where(np.arange(64) == 3, size, 0).astype(K.dtype)
    assert grade_outputs(op, arrays, (K + off / 1000,), gauged).grade == "C"
    assert grade_outputs(op, arrays, (K + off / 50,), gauged).grade == "F"


def worst_errors(call, exact, programs):
    """For each program, its largest error over the largest entry of the result, in units of u."""
    cores = kept._cores(call)
    copies, told = kept._copies(call.arrays, cores), {}
    full = kept._full(copies, cores)
    with np.errstate(all="ignore"):
        wanted = kept._results(exact, wide(copies), call.statics)
        for name, program in programs.items():
            for found in kept._of_programs({name: program}, full, call.statics):
                told[name] = max(
                    float(np.abs(kept._fitted(y, w) - w).max() / (U * kept._largest(w)))
                    for y, w in zip(found, wanted, strict=True)
                    if kept._largest(w) > 0
                )
    return told


def of_repeated_decays(op, case):
    """What the roundings of decays e^g add up to over time, in units of u.

    A gate of −1e-4 at all steps has the same rounding in each, 0.36 u, and 300 steps have 109 u. A
    program by chunks of 16 rounds one exponential for each pair of steps, and none of this adds up.
    """
    total = 0.0
    for name, dims, a in zip(op.inputs, op.input_dims, case.arrays, strict=True):
        if name in ("log_g", "log_w") and "l" in dims:
            decay = np.exp(a.astype(float))
            rounding = np.divide(np.exp(a) - decay, decay, where=decay > 0, out=0 * decay)
            total = max(total, np.abs(np.cumsum(rounding, axis=-2)).max(initial=0) / U)
    return total


def of_summed_angles(op, case):
    """What a running sum of Mamba-3's angles may err by, in units of u: all its partial sums.

    A program that takes the phase within a turn at each step does not add up hundreds of turns.
    """
    if "l" not in dict(zip(op.inputs, op.input_dims, strict=True)).get("angles", ()):
        return 0.0
    given = dict(zip(op.inputs, (a.astype(float) for a in case.arrays), strict=True))
    turned = np.pi * np.tanh(given["angles"]) * given["dt"][..., None]
    return np.abs(np.cumsum(turned, axis=-2)).sum(-2).max(initial=0)


def times_larger(call, programs, monkeypatch):
    """How many times larger the two sums of `apart` are than their difference at some step; 1
    without it.

    Each sum errs by roundings of the largest that it was: what a later step takes away stays.
    """
    program, told = programs.get("apart"), [1.0]

    def recorded(above, below, largest=None):
        sums = np.abs(above) + np.abs(below if largest is None else largest)
        size, left = (np.abs(x).max((-2, -1)) for x in (sums, above - below))
        told.append(np.divide(size, left, where=left > 0, out=0 * size).max(initial=1))
        return below

    if program is not None:
        copies = kept._copies(call.arrays, kept._cores(call))
        with monkeypatch.context() as patched, np.errstate(all="ignore"):
            patched.setattr(dplr, "farther", recorded)
            patched.setattr(states, "farther", recorded)
            program(*wide(kept._full(copies, kept._cores(call))), **call.statics)
    return max(told)


def within_16_of_the_best(op, exact, programs, called, monkeypatch):
    """Whether each program is, on every preset that is not too large."""
    for preset in presets_of(op):
        case = case_of(op, preset)
        if case is None:
            continue
        call = TrackedCall(op, called(case), case.statics, U, 0.0)
        found = worst_errors(call, exact, programs)
        least = max(min(found.values()), times_larger(call, programs, monkeypatch))
        most = 16 * least + of_repeated_decays(op, case) + of_summed_angles(op, case)
        assert max(found.values()) <= most, (preset.name, found)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_program_is_within_16_of_the_best_on_every_preset(name, monkeypatch):
    op = operator_named(name)
    within_16_of_the_best(op, op.reference, OUTPUTS[name], lambda case: case.arrays, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", GRADIENTS)
def test_every_program_of_a_gradient_is_within_16_of_the_best_on_every_preset(name, monkeypatch):
    op = operator_named(name)

    def called(case):
        return [*cotangents(op, case), *case.arrays]

    within_16_of_the_best(op, op.bare_vjp, GRADIENTS[name], called, monkeypatch)


def test_each_operator_has_three_programs_or_more():
    for programs in (*OUTPUTS.values(), *GRADIENTS.values()):
        assert len(programs) >= 3


def test_a_bound_is_a_power_of_two_or_the_value_itself_and_the_same_in_both_precisions():
    op = operator_named("dplr_kernel")
    single, double = (
        expect(op, legs(16, 100, dtype), {"l": 100})[0] for dtype in ("complex64", "complex128")
    )
    (k,) = set(np.asarray(single.k0, float).ravel())
    assert np.log2(k) == round(np.log2(k))
    assert k <= double.k0.max() * 4
    assert double.k0.max() <= k * 4


def test_copies_move_each_number_by_one_rounding_and_leave_zeros():
    w = np.array([0, 1 + 2j, -3e-5j], np.complex64)
    (copies,) = _copies([w], [1])
    assert copies.shape == (1 + COPIES, 3)
    assert np.array_equal(copies[0], w)
    assert (copies[1:, 0] == 0).all()
    parts, moved = w.view(np.float32), copies.view(np.float32)
    away = [np.nextafter(parts, np.float32(s * np.inf)) for s in (1, -1)]
    ones = (moved[1:] == away[0]) | (moved[1:] == away[1]) | (parts == 0)
    assert ones.all()
    assert not np.array_equal(copies[1], copies[2])
    assert np.array_equal(copies, _copies([w], [1])[0])


def test_copies_of_arrays_with_fewer_batch_axes_still_broadcast():
    w, dt = np.ones((2, 3, 5), np.complex64), np.ones(3, np.float32)
    copies = _copies([w, dt], [1, 0])
    assert [a.shape for a in copies] == [(4, 2, 3, 5), (4, 1, 3)]


def test_each_member_of_a_batch_has_a_bound_of_its_own():
    arrays = legs(16, 33, d=2)
    arrays[4] = arrays[4] * np.array([[1], [1e-6]], np.float32)
    (gauge,) = expect(operator_named("dplr_kernel"), arrays, {"l": 33})
    assert gauge.k0[1].max() < 1e-4 * gauge.k0[0].max()


def test_the_derived_bound_is_made_only_if_the_measured_one_fails():
    op, made = operator_named("dplr_kernel"), []
    arrays = legs(16, 33)
    call = TrackedCall(op, arrays, {"l": 33}, U, 0.0)

    def derive():
        made.append(True)
        return call.tracked(op.reference)

    (gauge,) = measured(call, op.reference, OUTPUTS[op.name], derive, entries=False)
    assert gauge.derive is not None
    K = op.reference(*arrays, l=33)
    assert compare(K, gauge, K.dtype).grade == "A"
    assert made == []
    assert compare(K * (1 + 2e-3), gauge, K.dtype).grade in "CF"
    assert made == [True]


def test_a_result_is_measured_on_more_copies_before_it_is_refused():
    op, arrays, calls = operator_named("dplr_kernel"), legs(16, 33), []

    def lucky_at_first(*arrays, l):
        calls.append(True)
        K = op.reference(*arrays, l=l)
        return K * np.float32(1 + (2**-16 if len(calls) > 2 else 0))

    programs = {"lucky": lucky_at_first}
    call = TrackedCall(op, arrays, {"l": 33}, U, 0.0)
    first = measured(
        call, op.reference, programs, lambda: call.tracked(op.reference), entries=False
    )
    (k0,) = measured_again(call, op.reference, programs, first)
    (gauge,) = (replace(g, more_copies=lambda: k0) for g in first)
    off = op.reference(*arrays, l=33) * np.float32(1 + 2**-13)
    assert not compare(off, first[0], off.dtype).ok
    assert compare(off, gauge, off.dtype).grade == "A"
    assert not compare(off * np.float32(1 + 2**-9), gauge, off.dtype).ok


@pytest.mark.parametrize(("times", "asked"), [(0.5, False), (4, True), (200, False)])
def test_more_copies_are_measured_only_near_the_bound(times, asked):
    op, arrays, calls = operator_named("dplr_kernel"), legs(16, 33), []
    (gauge,) = expect(op, arrays, {"l": 33})

    def again():
        calls.append(True)
        return gauge.k0

    K = op.reference(*arrays, l=33)
    off = (K + times * 16 * U * gauge.k0).astype(K.dtype)
    compare(off, replace(gauge, more_copies=again), K.dtype)
    assert bool(calls) == asked


@pytest.mark.long
def test_an_error_that_depends_on_one_rounding_is_not_refused():
    """With 1/w for w = −1e-4 rounded well in all copies, the bound is 20 times too small."""
    op = operator_named("dplr_kernel_aliased")
    preset = next(p for p in presets_of(op) if p.name == "fourier-64")
    for seed in range(12):
        sizes = {"l": 6, "n": 64, "r": 1}
        case = Case(op, np.dtype("complex128"), sizes, {"d": 2}, {}, seed, None, {}, preset)
        *arrays, steps = case.arrays
        assert judge(op, op.reference, *arrays, np.ones_like(steps), l=6).grade == "A"


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param([np.zeros(1)] * 6, id="zeros"),
        pytest.param([np.full(1, 1e30)] * 6, id="beyond single precision"),
    ],
)
def test_a_case_that_single_precision_cannot_hold_has_a_bound_anyway(arrays):
    op = operator_named("dplr_kernel")
    w, P, Q, B, C, _ = arrays
    shaped = [-w + 0j, P[:, None] + 0j, Q[:, None] + 0j, B + 0j, C + 0j, np.ones(())]
    gauged = expect(op, shaped, {"l": 3}, standard=Standard.of("complex128"))
    assert not np.isnan(gauged[0].k0).any()
    assert judge(op, op.reference, *shaped, l=3).grade in "AB-"


def test_presets_of_layers_and_of_the_judge_have_the_same_poles():
    w, *_ = legs(16, 4, "complex128")
    assert np.array_equal(w[0], initial.dplr("legs", n=16)["w"])
