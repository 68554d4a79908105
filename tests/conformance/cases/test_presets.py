"""Presets: systems that models start from, as cases of the judge."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judging import shrunk

from refssm import initial
from refssm._declaration.signature import length_of
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.kinds.presets import DEEP, LENGTHS, longest_preset, usable
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.cases.stacking import free_arguments, of_complex
from refssm.conformance.checks.checks import PROFILES, checks_of, types_of
from refssm.conformance.checks.drawing import LONG, PIECE, PRESETS, Drawing
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.diagnosis.shrinking import admitted, tiny_cases
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.layers.catalog import OPERATORS as OF_LAYERS
from refssm.presets.catalog import PRESETS as BY_NAME
from refssm.presets.catalog import alike, presets_of

WITH_PRESETS = [op for op in (*OPERATORS, *OF_LAYERS) if presets_of(op)]
EACH = pytest.mark.parametrize("op", WITH_PRESETS, ids=str)


def drawn(op, dtype, check="value", seed=3, profile="default"):
    """The cases of one check."""
    checks = checks_of(op, PROFILES[profile], [dtype], vjp=op.differentiable)
    (chosen,) = [c for c in checks if c.name == check]
    found = [*chosen.cases().cases(chosen.count, seed)]
    assert len({*map(str, found)}) == chosen.count
    return found


def test_presets_are_of_operators_and_have_names_of_their_own():
    assert not set(BY_NAME) - {op.name for op in (*OPERATORS, *OF_LAYERS)}
    assert all(presets_of(op) for op in OF_LAYERS)
    for presets in BY_NAME.values():
        names = [preset.name for preset in presets]
        assert len(set(names)) == len(names)
        assert all(preset.summary for preset in presets)


def test_presets_that_differ_in_what_their_length_is_are_refused_where_they_are_declared():
    kernel, *_ = BY_NAME["ema_kernel"]
    with pytest.raises(AssertionError, match=r"ema_kernel: `along` .*, got \['kernel', 'scan'\]"):
        alike("ema_kernel", (kernel, replace(kernel, along="scan")))


@EACH
def test_every_preset_draws_finite_arrays_of_the_operators_shapes(op):
    for preset in presets_of(op):
        case_sizes = dict.fromkeys(core_dims(op), 5) | dict(preset.sizes)
        arrays = preset.draw(np.random.default_rng(2), case_sizes)
        missing = free_arguments(op, preset)  # asserts the shapes
        for i, name in enumerate(op.inputs):
            if name in missing:
                continue
            want = tuple(length_of(d, case_sizes) for d in op.input_dims[i])
            assert np.shape(arrays[name]) == want
            assert np.isfinite(arrays[name]).all()


@EACH
def test_a_quarter_of_the_cases_is_of_presets(op):
    dtype = types_of(op)[0] if not all(of_complex(op, p) for p in presets_of(op)) else "complex64"
    dtype = dtype if dtype in types_of(op) else types_of(op)[-2]
    cases = drawn(op, dtype)
    of_presets = [case for case in cases if case.preset]
    assert len(of_presets) >= len(cases) / PRESETS
    assert len({str(case) for case in of_presets}) > len(of_presets) / 2


@pytest.mark.parametrize(
    ("name", "dtype", "long"),
    [
        ("causal_convolution", "float32", (2048, 3001)),
        ("selective_scan", "float32", (1024, 1537)),
        ("ssd_chunked", "float64", (1024, 1537)),
        ("dplr_kernel", "complex64", (3001,)),
        ("linear_scan", "complex64", (1537,)),
        ("diagonal_kernel_zoh", "complex128", (4115,)),
    ],
)
def test_two_cases_of_a_real_type_are_long_and_one_of_a_complex_type(name, dtype, long):
    presets = [case for case in drawn(operator_named(name), dtype) if case.preset]
    lengths = tuple(case.sizes["l"] for case in presets)
    assert lengths[-len(long) :] == long
    assert max(lengths[: -len(long)]) <= 256


def test_a_thorough_run_goes_to_16384_and_to_a_length_that_no_block_divides():
    op = operator_named("vandermonde_kernel")
    lengths = {
        case.sizes["l"]
        for seed in range(3)
        for case in drawn(op, "complex64", seed=seed, profile="thorough")
    }
    assert {12001, 16384} <= lengths
    assert longest_preset(op, "complex64", deep=True) == 16384
    assert longest_preset(op, "complex64") == 3001
    for pair in (*LENGTHS.values(), *DEEP.values()):
        assert not pair or any(l % 2 for l in pair)


@EACH
def test_all_presets_of_an_operator_agree_on_what_its_length_is(op):
    assert len({preset.along for preset in presets_of(op)}) == 1


def test_all_arguments_of_one_member_come_from_one_draw():
    op = operator_named("dplr_kernel")
    preset = next(p for p in presets_of(op) if p.name == "legs-16")
    sizes = {"l": 4, "n": 16, "r": 1}
    case = Case(op, np.dtype("complex128"), sizes, {"d": 3}, {}, 5, None, {}, preset)
    w, P, Q, B, _, dt = case.arrays
    system = initial.dplr("legs", n=16)
    assert np.array_equal(w, np.broadcast_to(system["w"], (3, 16)))
    assert np.array_equal(P, Q)
    assert np.array_equal(B[2], system["B"])
    assert len(set(dt)) == 3
    assert ((dt >= initial.DT_MIN) & (dt <= initial.DT_MAX)).all()


def test_values_are_rounded_to_the_judged_type_and_real_where_that_is_asked():
    op = operator_named("selective_scan")
    (preset,) = presets_of(op)
    sizes, batch = {"l": 7, "n": 16}, {"b": 2, "g": 3, "d": 2}
    u, dt, A, B, C = Case(op, np.dtype("float32"), sizes, batch, {}, 1, None, {}, preset).arrays
    assert {x.dtype for x in (u, dt, A, B, C)} == {np.dtype("float32")}
    assert u.shape == dt.shape == (2, 3, 2, 7)
    assert np.array_equal(A, np.broadcast_to(-np.arange(1.0, 17), (3, 2, 16)))
    assert B.shape == C.shape == (2, 3, 1, 7, 16)


def test_packed_presets_have_more_than_256_sequences_where_they_are_long():
    for name in ("linear_scan_packed", "mamba_scan_packed", "ssd_chunked_packed"):
        op = operator_named(name)
        for case in drawn(op, "float32")[-LONG:]:
            resets = case.arrays[-1]
            assert resets.dtype == bool
            assert (resets.sum(-1) > 256).all()


def test_a_complex_preset_needs_a_complex_type():
    op = operator_named("linear_scan")
    real = {p.name for p in usable(op, "float32", entries=2**16)}
    both = {p.name for p in usable(op, "complex64", entries=2**16)}
    assert real == {"griffin-16", "averages-16"}
    assert both > real


def test_states_before_the_first_step_are_zeros_or_go_on():
    op = operator_named("linear_scan_from")
    starts = {bool(case.arrays[2].any()) for case in drawn(op, "float64") if case.preset}
    assert starts == {False, True}


def test_chunks_of_presets_are_those_of_models():
    cases = [case for case in drawn(operator_named("ssd_chunked"), "float32") if case.preset]
    assert min(case.parameters["chunk"] for case in cases) >= 64


def test_the_shorter_of_two_long_cases_is_one_chunk():
    for dtype in ("float32", "float64"):
        short, long = drawn(operator_named("ssd_chunked"), dtype)[-LONG:]
        assert short.parameters["chunk"] >= short.sizes["l"] == 1024
        assert long.parameters["chunk"] < long.sizes["l"]


def test_a_size_that_a_preset_does_not_have_is_not_tried_when_a_failure_is_made_smaller():
    op = operator_named("dplr_kernel")
    preset = next(p for p in presets_of(op) if p.name == "fourier-16")
    sizes = {"l": 3, "n": 16, "r": 1}
    case = Case(op, np.dtype("complex128"), sizes, {"d": 1}, {}, 0, None, {}, preset)
    assert list(tiny_cases(case, {})) == []  # one mode: the constructor wants an even number
    other = replace(case, preset=next(p for p in presets_of(op) if p.name == "legs-16"))
    assert [attempt.sizes["n"] for attempt in tiny_cases(other, {})] == [1] * 12


@pytest.mark.parametrize("name", ["mamba_layer", "mamba_layer_stateful"])
def test_a_failure_in_a_layers_start_is_made_smaller_only_where_its_sizes_belong_together(name):
    op = operator_named(name)
    case = next(case for case in drawn(op, "float32") if case.preset)
    assert not admitted(replace(case, sizes={**case.sizes, "h": 2}))  # `init` makes e = 2h
    assert not admitted(replace(case, sizes={**case.sizes, "e": 4}))
    lengths = (replace(case, sizes={**case.sizes, "l": l}) for l in (1, 5))
    attempts = [*tiny_cases(case, {}), *lengths]
    assert all(
        op.sizes(*attempt.arrays).items() >= attempt.sizes.items()
        for attempt in attempts
        if admitted(attempt)
    )
    assert admitted(attempts[-1])


def test_a_failing_start_of_a_layer_with_a_state_keeps_the_sizes_that_init_derives():
    op = operator_named("mamba_layer_stateful")

    def wrong(*arrays):
        y, *states = op.reference(*arrays)
        return (2 * y, *states)

    how = {"only_checks": ("value",), "types": ("float32",), "shrink": True, "preset": "start"}
    settings = Settings(folder=None, profile="quick", **how)
    (result,) = results_of(Session(InProcess([Found(op, wrong, None)]), "here", settings))
    assert result.verdict == "wrong"
    assert " h=4 e=8 t=4 " in result.smallest


def test_a_range_of_where_excludes_presets_of_other_sizes():
    op = operator_named("dplr_kernel")
    found = usable(op, "complex64", entries=2**16, between={"n": (20, 70)})
    assert {preset.sizes["n"] for preset in found} == {32, 64}


def test_pieces_hold_every_case_once_and_presets_come_last():
    names: Any = ("usual", "presets", ("long", "longer"))
    drawing = Drawing(*names)
    assert [piece[:-1] for piece in drawing.pieces(25)] == [
        (0, "usual", range(10), 20), (10, "usual", range(10, 20), 20), (20, "presets", range(3), 3),
        (23, "long", range(1), 1), (24, "longer", range(1), 1),
    ]  # fmt: skip
    for count in range(1, 60):
        kinds = drawing._kinds(count)
        assert sum(number for number, _ in kinds) == count
        of_presets = sum(number for number, kind in kinds if kind != "usual")
        assert of_presets >= count / PRESETS or (of_presets == 0 and count < PRESETS)
    usual = Drawing(drawing.usual)
    for turn in (0, 2):
        pieces = [(piece.start, len(piece.numbers)) for piece in usual.pieces(25, turn)]
        assert pieces == [(25 * turn, PIECE), (25 * turn + 10, PIECE), (25 * turn + 20, 5)]


def test_a_failure_in_a_preset_is_found_and_shrinks_to_a_small_length():
    op = operator_named("selective_scan")

    def wrong_from_five(case):
        return Verdict("F", message="no") if case.preset and case.sizes["l"] >= 16 else Verdict("A")

    checks = checks_of(op, PROFILES["default"], ["float32"], vjp=False)
    drawing = checks[0].cases()
    swept = sweep(drawing, wrong_from_five, count=25, seed_=1)
    case = shrunk(swept, wrong_from_five).case
    assert case.preset is not None
    assert case.sizes["l"] == 16
    assert not wrong_from_five(case).ok
