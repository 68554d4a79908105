"""Structured cases: nearly alike, diagonal or symmetric arguments, and one strong decay."""

import numpy as np
import pytest
from judging import judged

from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import Case, Knob, fill
from refssm.conformance.cases.drawing import cases
from refssm.conformance.cases.kinds.structured import kinds_of
from refssm.conformance.checks.checks import PROFILES, checks_of
from refssm.conformance.checks.drawing import Drawing
from refssm.domains import (
    decays,
    log_decays,
    signals,
    solved_matrices,
    state_matrices,
    step_sizes,
    steps,
)
from refssm.domains.domain import STRUCTURED_TEXTURES

OF_KIND = [op for op in OPERATORS if kinds_of(op)]


def drawn(name, dtype, count=12, seed=0) -> list[Case]:
    op = operator_named(name)
    sampler = cases(op, dtype, of_structure=kinds_of(op))
    return [*Drawing(sampler).cases(count, seed)]


def filled(domain, map_, texture, shape, rank, dtype="float64", seed=1):
    knob = Knob(map_, texture, np.dtype(dtype).kind == "f")
    return fill(domain, knob, shape, rank, np.random.default_rng(seed), np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_members_of_a_batch_that_are_alike_differ_but_np_allclose_may_not_see_it(dtype):
    dt = filled(steps, "usual", "alike", (3,), 0, dtype)
    assert len(np.unique(dt)) == 3
    assert np.ptp(dt) < 0.04 * dt.min()
    assert np.allclose(filled(steps, "one", "alike", (3,), 0), 1)


def test_matrices_are_nearly_diagonal_or_symmetric_and_stay_so_in_their_domain():
    A = filled(state_matrices, "normal", "nearly diagonal", (2, 5, 5), 2)
    off = A * (1 - np.eye(5))
    assert off.any()
    assert np.allclose(A, A * np.eye(5))
    for dtype in ("float64", "complex128"):
        A = filled(state_matrices, "normal", "nearly symmetric", (2, 5, 5), 2, dtype)
        adjoint = A.conj().swapaxes(-1, -2)
        assert not np.array_equal(A, adjoint)
        assert np.allclose(A, adjoint, rtol=1e-4)


def test_an_impulse_comes_before_one_strong_decay():
    b = filled(signals, "one", "first", (2, 7, 3), 2)
    assert b[:, 0].all()
    assert not b[:, 1:].any()
    a = filled(decays, "slow", "decayed", (2, 7, 3), 2)
    assert (a[:, 1] > 0).all()
    assert (a[:, 1] < np.exp(-30)).all()
    assert (np.delete(a, 1, axis=1) > 0.8).all()
    assert (filled(log_decays, "slow", "lowered", (2, 7), 1)[:, 1] < -30).all()
    assert (filled(step_sizes, "usual", "stretched", (2, 7), 1)[:, 1] >= 3).all()


@pytest.mark.parametrize("op", OF_KIND, ids=str)
def test_structured_cases_can_be_drawn_wherever_they_are_declared(op):
    dtype = "complex64" if any(d.kind == "complex" for d in op.inputs.values()) else "float32"
    seen = drawn(op.name, dtype, count=6)
    textures = {knob.texture for case in seen for knob in case.knobs.values()}
    assert op.parameters or textures & {*STRUCTURED_TEXTURES}
    for case in seen:
        assert all(np.isfinite(a).all() for a in case.arrays)


def test_the_first_structured_case_is_simple_and_has_two_members():
    first, *_ = drawn("linear_scan", "float64")
    assert str(first) == "l=3 n=3 batch b=2 a:one/alike b:one/each seed=0".replace(
        "alike", "alike/real"
    ).replace("each", "each/real")


def test_one_usual_case_in_four_is_structured_and_none_of_float16_or_of_a_law():
    op, default = operator_named("selective_scan"), PROFILES["default"]
    for check in checks_of(op, default, ["float32"], vjp=True):
        drawing = check.cases()
        numbers = [n for n, kind in drawing._kinds(25) if n and kind is drawing.structured]
        assert numbers == ([5] if check.name in ("value", "gradient") else [])
    value, *_ = checks_of(op, default, ["float16"], vjp=False)
    assert value.cases().structured is None
    assert value.cases(preset="mamba").structured is None


@pytest.mark.long
def test_a_decay_taken_as_0_in_double_precision_alone_is_seen():
    right = operator_named("selective_scan").reference

    def flushed(u, dt, A, B, C):
        z = dt[..., None] * A[..., None, :]
        a = np.where(z.real < -40, 0, np.exp(z)).astype(z.dtype)
        b, s, y = (dt * u)[..., None] * B, 0, []
        for k in range(u.shape[-1]):
            s = a[..., k, :] * s + b[..., k, :]
            y.append((C[..., k, :] * s).sum(-1))
        return np.stack(y, axis=-1)

    how = {"types": ("float64",), "profile": "default"}
    assert judged("selective_scan", right, "value", **how)[0].verdict == "pass"
    (line,) = judged("selective_scan", flushed, "value", **how)
    assert line.failed


def first_of_near(x):
    """The first entry for all, where none differs by more than 1e-8 of it."""
    near = x.size and np.abs(x - x.flat[0]).max() <= 1e-8 * np.abs(x.flat[0])
    return np.full_like(x, x.flat[0]) if near else x


def diagonal_of_near(A):
    diagonal = A * np.eye(A.shape[-1], dtype=A.dtype)
    return diagonal if np.abs(A - diagonal).max(initial=0) <= 1e-10 else A


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "change"), [("linear_scan", first_of_near), ("dense_scan", diagonal_of_near)]
)
def test_a_shortcut_with_a_tolerance_near_the_roundoff_of_double_precision_is_seen(name, change):
    right = operator_named(name).reference
    (result,) = judged(
        name, lambda a, b: right(change(a), b), "value", types=("float64",), profile="default"
    )
    assert result.failed


@pytest.mark.parametrize("name", ["hippo_project", "selective_scan"])
def test_of_complex_cases_some_have_one_complex_argument(name):
    op = operator_named(name)
    drawing = Drawing(cases(op, "complex64"))
    seen = [tuple(map(np.iscomplexobj, case.arrays)) for case in drawing.cases(60, 2)]
    free = [i for i, d in enumerate(op.inputs.values()) if not d.real]
    alone = {tuple(i == kept for i in range(len(op.inputs))) for kept in free}
    assert alone <= set(seen)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_zero_pivot_is_one_of_a_stable_matrix_that_is_well_conditioned(n, dtype):
    pivots = set()
    for seed in range(8):
        A = filled(solved_matrices, "normal", "zero pivot", (2, n, n), 2, dtype, seed)
        assert (np.linalg.eigvals(A).real <= 0).all()
        for weight in (0.5, 1.0):
            M = np.eye(n) - weight * A
            pivots |= {weight} if (M[:, 0, 0] == 0).all() else set()
            assert (np.linalg.cond(M) < 100).all()
    assert pivots == {0.5, 1.0}


def test_cases_with_a_zero_pivot_have_steps_of_one_and_pivots_of_zero():
    cases = [
        case for case in drawn("discretize_bilinear", "float64", count=40)
        if case.knobs["A"].texture == "zero pivot"
    ]  # fmt: skip
    assert cases
    systems = [(case.arrays[0], case.arrays[2]) for case in cases]
    assert all((dt == 1).all() for _, dt in systems)
    assert any((A[..., 0, 0] == 2).all() for A, _ in systems)
    assert "zero pivot" not in {t for ts in state_matrices.structured.values() for t in ts}
