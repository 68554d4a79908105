"""The kernels of state-space duality: tiles, chunks and rows that are computed again, exactly.

Decays are 0 and 1, other inputs small whole numbers: every order of additions gives the same.
Rounding errors are judged in test_mirrors_judged.py.
"""

# pyright: reportCallIssue=false, reportOptionalIterable=false, reportOptionalSubscript=false
# pyright: reportArgumentType=false
# (how many arrays a list of arguments holds, and that outputs are no tuple, pyright cannot see)

import numpy as np
import pytest
from kernel_bounds import dtype_of
from on_target import given, taken
from planting_kernels import plant

import refssm
from refssm_gpu import ssd
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import target
from refssm_gpu.ssd import passes

KINDS = ("float32", "complex64", "float16")
OTHERS = [pytest.param(k, marks=pytest.mark.long) for k in ("float64", "complex128", "bfloat16")]
SIZES = [(1, 1, 1), (63, 5, 64), (64, 64, 3), (65, 3, 65), (31, 65, 1), (130, 2, 17)]  # l, p, n


def whole(l, p, n, kind="float32", batch=(2, 1, 2), seed=0):
    """x, log_a, B, C, S0 and resets; B, C and resets are those of a group."""
    r, dtype = np.random.default_rng(seed), dtype_of(kind)
    group = (*batch[:-1], 1)

    def numbers(*shape):
        drawn = r.integers(-1, 2, shape)
        return (drawn + 1j * r.integers(-1, 2, shape) if dtype.kind == "c" else drawn).astype(dtype)

    x, B, C = numbers(*batch, l, p), numbers(*group, l, n), numbers(*group, l, n)
    log_a = np.where(r.random((*batch, l)) < 0.05, -np.inf, 0).astype(dtype)
    return x, log_a, B, C, numbers(*batch, p, n), r.random((batch[0], 1, 1, l)) < 0.05


def wide(arrays):
    """The arrays as the reference takes them."""
    return tuple(a if a.dtype.kind in "bc" else a.astype(np.float64) for a in arrays)


def agree(got, want):
    """All outputs are equal, after one rounding of the reference's."""
    for mine, theirs in zip(got, want, strict=True):
        if theirs is None:
            assert mine is None
            continue
        same = mine == theirs.astype(mine.dtype)
        assert mine.shape == theirs.shape
        assert (same | ((mine != mine) & (theirs != theirs))).all()


def forward_agrees(l, p, n, kind="float32", seed=0, batch=(2, 1, 2)):
    """Outputs and last states, from a state and packed."""
    *arguments, S0, resets = whole(l, p, n, kind, batch, seed)
    from_state = (*arguments, S0)
    want = refssm.ssd_recurrent_stateful(*wide(from_state))
    agree(taken(ssd.ssd_recurrent_stateful(*given(*from_state))), want)
    want = refssm.ssd_recurrent_packed(*wide(arguments), resets)
    agree((taken(ssd.ssd_recurrent_packed(*given(*arguments, resets))),), (want,))


def gradients_agree(l, p, n, kind="float32", seed=0, batch=(2, 1, 2)):
    """Gradients, from a state and packed; the last states are cotangents of the right shapes."""
    *arguments, S0, resets = whole(l, p, n, kind, batch, seed)
    dy, *_, dS, _ = whole(l, p, n, kind, batch, seed + 1)
    from_state = (dy, dS, *arguments, S0)
    want = refssm.ssd_recurrent_stateful_vjp(*wide(from_state))
    agree(taken(ssd.ssd_recurrent_stateful_vjp(*given(*from_state))), want)
    want = refssm.ssd_recurrent_packed_vjp(*wide((dy, *arguments)), resets)
    agree(taken(ssd.ssd_recurrent_packed_vjp(*given(dy, *arguments, resets))), want)


def in_every_order(fact, kind):
    """A fact at a size with several chunks, in three orders of threads."""
    for order in (0, 1, 7):
        with settings(order=order):
            fact(130, 6, 40, kind)


@pytest.fixture
def once(monkeypatch):
    """Refuse rows that are marked to be computed again, which would hide what chunks do wrong."""

    def watched(kernel):
        def launched(instance, grid, *arguments):
            marks = [a for a in arguments if getattr(a, "dtype", None) == np.uint32]
            assert not any(a.any() for a in marks), "a row is marked"
            kernel(instance, grid, *arguments)

        return launched

    for name in ("_STEPS", "_STEPS_BACK"):
        monkeypatch.setattr(passes, name, watched(getattr(passes, name)))


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("order", [0, 1, 7])
def test_tiles_and_chunks_do_not_show(size, order):
    with settings(order=order):
        forward_agrees(*size)
        gradients_agree(*size)


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_every_type_is_exact_where_rounding_cannot_occur(kind):
    forward_agrees(70, 5, 34, kind)
    gradients_agree(70, 5, 34, kind)


@pytest.mark.parametrize("size", [(0, 2, 3), (5, 0, 3), (5, 2, 0), (0, 0, 0)], ids=str)
def test_empty_sizes_have_the_shapes_of_the_reference(size):
    forward_agrees(*size)
    gradients_agree(*size)


@pytest.mark.parametrize("multiprocessors", [1, 1000])
def test_heads_that_share_a_block_get_what_they_get_alone(monkeypatch, multiprocessors):
    monkeypatch.setattr(type(target()), "multiprocessors", multiprocessors)
    forward_agrees(100, 3, 4, batch=(2, 2, 6))
    gradients_agree(100, 3, 4, batch=(2, 2, 6))


def test_blocks_take_several_heads_only_where_they_are_many(monkeypatch):
    for multiprocessors, heads in ((1, 6), (1000, 1)):
        monkeypatch.setattr(type(target()), "multiprocessors", multiprocessors)
        *arguments, _, _ = whole(100, 3, 4, batch=(2, 2, 6))
        assert passes._heads(passes._rows(*given(*arguments), None, None), 2) == heads


def test_broadcast_batches_of_every_kind_agree_with_the_reference():
    shapes = [((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1, 1), ()), ((), (2, 3)), ((4,), (3, 1))]
    for own, shared in shapes:
        x, log_a, B, C, S0, _ = whole(9, 3, 5, batch=(*own, 1))
        x, S0 = x[..., 0, :, :], S0[..., 0, :, :]
        B, C = (np.broadcast_to(a[(0,) * (a.ndim - 2)], (*shared, *a.shape[-2:])) for a in (B, C))
        arguments = x, log_a[(0,) * (log_a.ndim - 1)], B, C, S0
        got = taken(ssd.ssd_recurrent_stateful(*given(*arguments)))
        agree(got, refssm.ssd_recurrent_stateful(*arguments))
        cotangents = tuple(np.ones_like(a) for a in got)
        agree(
            taken(ssd.ssd_recurrent_stateful_vjp(*given(*cotangents, *arguments))),
            refssm.ssd_recurrent_stateful_vjp(*cotangents, *arguments),
        )


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_the_recurrence_over_one_step(kind):
    *arguments, S, _ = whole(1, 7, 130, kind)
    dy, *_, dS, _ = whole(1, 7, 130, kind, seed=1)
    x, log_a, B, C = arguments
    one = x[..., 0, :], log_a[..., 0], B[..., 0, :], C[..., 0, :], S
    agree(taken(ssd.ssd_step(*given(*one))), refssm.ssd_step(*wide(one)))
    back = (dy[..., 0, :], dS, *one)
    agree(taken(ssd.ssd_step_vjp(*given(*back))), refssm.ssd_step_vjp(*wide(back)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("which", range(5), ids=["x", "log_a", "B", "C", "S0"])
def test_nan_and_infinity_are_seen_where_the_recurrence_has_them(which, value):
    *arguments, S0, resets = whole(70, 3, 4)
    changed = [*arguments, S0]
    changed[which] = changed[which].copy()
    changed[which][0, 0, 0, 40 if which < 4 else 2] = value  # a step, or a row of the state
    with np.errstate(all="ignore"):
        agree(
            taken(ssd.ssd_recurrent_stateful(*given(*changed))),
            refssm.ssd_recurrent_stateful(*changed),
        )
        agree(
            (taken(ssd.ssd_recurrent_packed(*given(*changed[:4], resets))),),
            (refssm.ssd_recurrent_packed(*changed[:4], resets),),
        )
        cotangents = tuple(np.ones_like(a) for a in (arguments[0], S0))
        agree(
            taken(ssd.ssd_recurrent_stateful_vjp(*given(*cotangents, *changed))),
            refssm.ssd_recurrent_stateful_vjp(*cotangents, *changed),
        )


def test_rows_without_nan_do_not_change_where_others_have_it():
    r = np.random.default_rng(3)
    x, B, C = (r.standard_normal((3, 1, 1, 70, n)).astype(np.float32) for n in (4, 5, 5))
    log_a = -r.random((3, 1, 1, 70)).astype(np.float32)
    before = taken(ssd.ssd_recurrent(*given(x, log_a, B, C)))
    x[1, 0, 0, 69, 0] = np.nan
    after = taken(ssd.ssd_recurrent(*given(x, log_a, B, C)))
    assert np.array_equal(after[[0, 2]], before[[0, 2]])
    assert np.isnan(after[1, 0, 0, 69, 0])
    assert np.isfinite(after[1, 0, 0, :69]).all()


def test_halves_keep_their_state_in_single_precision():
    """1 + 2⁻¹² many times: a state in float16 would stay at 1."""
    x = np.full((4096, 1), 2.0**-12, np.float16)
    x[0] = 1
    one = np.ones_like(x)
    y = taken(ssd.ssd_recurrent(*given(x, np.zeros(4096, np.float16), one, one)))
    assert y[-1, 0] == np.float16(1 + 4095 * 2.0**-12)


def test_a_larger_size_agrees_with_the_mirror_on_the_processor():
    from refssm.jit.ssd import ssd_recurrent_packed, ssd_recurrent_packed_vjp

    *arguments, _, resets = whole(300, 70, 130, batch=(1, 1, 3))
    dy = arguments[0][::-1]
    y = taken(ssd.ssd_recurrent_packed(*given(*arguments, resets)))
    agree((y,), (ssd_recurrent_packed(*arguments, resets),))
    got = taken(ssd.ssd_recurrent_packed_vjp(*given(dy, *arguments, resets)))
    agree(got, ssd_recurrent_packed_vjp(dy, *arguments, resets))


# type, kernels with the bug, the fact that shows it
OUTPUTS = "float32", ["_OUTPUTS"], forward_agrees
OF_HALVES = "float16", ["_OUTPUTS"], forward_agrees
PASS = "float32", ["_PASS"], forward_agrees
STATES = "complex64", ["_STATES"], gradients_agree
GRADIENTS = "float32", ["_GRADIENTS"], gradients_agree
GRADIENTS_OF_HALVES = "float16", ["_GRADIENTS"], gradients_agree
# and the file, the right text, the wrong text
BUGS = {
    "no_barrier_before_a_slice_is_read": (
        *OUTPUTS, "tiles.cuh",
        "        __syncthreads();\n        of_a.fetch", "        of_a.fetch",
    ),
    "a_slice_overwritten_while_it_is_read": (
        *OUTPUTS, "tiles.cuh",
        "        sums.multiply(left, right);\n        __syncthreads();",
        "        sums.multiply(left, right);",
    ),
    "the_last_step_left_out": (*OUTPUTS, "tiles.cuh", "k < end ? from.f", "k + 1 < end ? from.f"),
    "the_first_head_for_all": (
        *OUTPUTS, "ssd_forward.cuh",
        "at(size, first_row + h, chunk)", "at(size, first_row, chunk)",
    ),
    "later_steps_are_seen": (
        *OUTPUTS, "ssd.cuh",
        "E w = zero<E>();\n            for", "E w = one<E>();\n            for",
    ),
    "resets_are_ignored": (
        *OUTPUTS, "ssd.cuh",
        "begins ? zero<E>() : conj_if", "begins && false ? zero<E>() : conj_if",
    ),
    "the_state_of_the_next_chunk": (
        *PASS, "ssd_states.cuh",
        "own[c * entries] = S;\n            S = decay[c] * S + added[k];",
        "S = decay[c] * S + added[k];\n            own[c * entries] = S;",
    ),
    "numbers_of_another_lane": (
        *OF_HALVES, "tiles.cuh",
        "{a[0], a[8], a[4 * STRIDE]", "{a[0], a[4 * STRIDE], a[8]",
    ),
    "not_conjugate": (*STATES, "ssd_states.cuh", "conj_if<BACK>(widen(number))", "widen(number)"),
    "crossing_terms_lost": (*GRADIENTS, "ssd_back.cuh", "both + crossing[t]", "both"),
    "half_of_a_sum_forgotten": (
        *GRADIENTS_OF_HALVES, "ssd_back.cuh",
        "for (int s = 0; s < SIDES; ++s)", "for (int s = 0; s < 1; ++s)",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("once", "one_multiprocessor")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    kind, kernels, fact, *change = BUGS[bug]
    plant(monkeypatch, tmp_path, passes, kernels, *change)
    with pytest.raises((AssertionError, HostError)):
        in_every_order(fact, kind)


def test_a_row_that_is_not_marked_is_seen(monkeypatch, tmp_path):
    change = "ssd.cuh", "atomicAdd(marks + row, 1u)", "atomicAdd(marks + row, 0u)"
    plant(monkeypatch, tmp_path, passes, ["_OUTPUTS", "_PASS"], *change)
    with pytest.raises(AssertionError):
        test_rows_without_nan_do_not_change_where_others_have_it()


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_planted_bug_the_facts_hold(kind):
    in_every_order(forward_agrees, kind)
    in_every_order(gradients_agree, kind)
