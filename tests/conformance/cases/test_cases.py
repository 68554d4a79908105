"""Cases: what knobs and seed determine, and how sweeps shrink cases."""

from dataclasses import replace

import numpy as np
import pytest
from calls import WITH_ARGUMENTS

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import MEDLEY, Case, Knob, beside, fill, ordinary_case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.cases.drawing import ENTRIES, LONG, SIZES, TAME_SIZE, cases
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.diagnosis.failure import show
from refssm.conformance.diagnosis.shrinking import simplified
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.domains import decays, signals, transitions
from refssm.krylov import KRYLOV_KERNEL
from refssm.norms import GATED_RMS_NORM
from refssm.scan import LINEAR_SCAN


def drawn(op, dtype="float32", count=40, seed=0, **settings):
    """Cases as a sweep draws them."""
    return [*Drawing(cases(op, dtype, **settings)).cases(count, seed)]


@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_a_seed_means_one_thing(op):
    dtype = "complex64"
    first, second = drawn(op, dtype), drawn(op, dtype)
    assert [str(c) for c in first] == [str(c) for c in second]
    assert [str(c) for c in first] != [str(c) for c in drawn(op, dtype, seed=1)]
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one.arrays, other.arrays, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_cases_are_of_the_declared_sizes_types_and_batch_axes(op):
    for case in drawn(op, "complex64"):
        assert np.prod([*case.sizes.values(), *case.batch.values()]) <= ENTRIES
        assert set(case.sizes.values()) <= {*SIZES, *(LONG if op.static else ())}
        for name, value in case.parameters.items():
            whole = case.sizes.get(getattr(op.parameters[name], "divides", ""))
            assert value in {*op.parameters[name].values, whole}
        assert set(case.statics) == set(op.static)
        op.sizes(*case.arrays, **case.statics)
        for a, domain in zip(case.arrays, op.inputs.values(), strict=True):
            discrete = {"flag": (np.bool_,), "offsets": (np.int64,)}
            kinds = discrete.get(domain.kind, (np.complex64, np.float32))
            assert a.dtype in kinds
            assert domain.kind != "complex" or a.dtype == np.complex64
            assert np.isfinite(a).all()


def test_a_number_that_must_divide_a_size_does_after_every_change_of_the_size():
    seen = [c for seed in range(4) for c in drawn(GATED_RMS_NORM, seed=seed)]
    groups = {c.sizes["n"] // c.parameters["group"] for c in seen}
    assert {1, 2, 4} <= groups
    assert max(groups) >= 64
    for case in seen:
        for n in (1, 7, 60, case.sizes["n"]):
            smaller = replace(case, sizes={"n": n})
            assert n % smaller.parameters["group"] == 0
            GATED_RMS_NORM.sizes(*smaller.arrays, **smaller.statics)
    one = replace(seen[0], sizes={"n": 12}, parameters={"eps": 1.0, "group": 5})
    assert one.parameters == {"eps": 1.0, "group": 12}


def test_many_lengths_and_every_map_are_reached():
    seen = [c for seed in range(4) for c in drawn(LINEAR_SCAN, seed=seed)]
    assert len({c.sizes["l"] for c in seen}) >= 15
    assert {c.knobs["a"].map for c in seen} == {*decays.maps, MEDLEY}
    assert {c.knobs["b"].texture for c in seen} == {*signals.textures, MEDLEY}


def filled(texture, map_="normal", shape=(2, 50, 3), dtype="float32", domain=signals):
    knob = Knob(map_, texture, np.dtype(dtype).kind == "f")
    return fill(domain, knob, shape, 2, np.random.default_rng(3), np.dtype(dtype))


def test_textures_arrange_what_they_say():
    assert (filled("constant") == filled("constant")[:, :1]).all()
    assert (np.abs(filled("channel")) == np.abs(filled("channel")[:, :1])).all()
    assert (np.count_nonzero(filled("impulse"), axis=1) == 1).all()
    assert (np.nonzero(filled("late"))[1] >= 48).all()
    assert 0 < np.count_nonzero(filled("gaps") == 0) < 150
    assert (np.abs(filled("subnormal")) < np.finfo(np.float32).tiny).all()
    assert len(np.unique(filled("each"))) == 300


def test_a_medley_gives_every_channel_a_texture_of_its_own():
    x = filled(MEDLEY, MEDLEY, shape=(3, 50, 30))
    constant = (x == x[:, :1]).all(axis=1)
    impulses = np.count_nonzero(x, axis=1) == 1
    assert constant.any()
    assert impulses.any()
    assert not (constant | impulses).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_cycle_has_one_entry_in_each_row_and_column(dtype):
    A = filled("cycle", "unit", shape=(3, 9, 9), dtype=dtype, domain=transitions)
    for axis in (-1, -2):
        assert (np.count_nonzero(A, axis=axis) == 1).all()
    assert not np.array_equal(A[0] != 0, A[1] != 0)


def test_the_powers_of_a_tame_matrix_keep_their_size():
    tame = drawn(KRYLOV_KERNEL, "complex64", tame=True)
    assert len({case.knobs["A"].map for case in tame}) > 1
    for case in (*tame, ordinary_case(KRYLOV_KERNEL, "complex64")):
        A = case.arrays[0].astype(complex)
        sizes = np.abs(np.linalg.matrix_power(A, TAME_SIZE)).sum(-1)
        assert np.abs(sizes - 1).max() < 3 * TAME_SIZE * np.finfo(np.float32).eps


def test_values_are_rounded_to_the_type_and_then_exact():
    single, double = filled("each"), filled("each", dtype="float64")
    np.testing.assert_array_equal(single, double.astype(np.float32))


def test_nodes_beside_poles_are_near_and_never_on_them():
    case = ordinary_case(CAUCHY_KERNEL, "complex64", sizes=(200, 7))
    _, w, z = case.arrays
    near = beside(w, z, np.random.default_rng(0))
    distance = np.abs(near[..., None] - w.reshape(-1)).min(axis=-1)
    assert near.dtype == z.dtype
    assert (distance > 0).all()
    assert (distance < 0.2).all()
    assert distance.min() < 1e-5


def test_a_node_that_rounding_would_put_on_a_pole_stays_where_it_was():
    poles, nodes = np.full((1, 3), 1e9 + 1e9j, "c8"), np.arange(4).astype("c8")
    assert np.array_equal(beside(poles, nodes, np.random.default_rng(0)), nodes)


def test_a_size_without_room_is_cut_to_the_largest_that_has_it():
    wide = {(case.seed, case.sizes["l"]) for case in drawn(LINEAR_SCAN)}
    narrow = {(case.seed, case.sizes["l"]) for case in drawn(LINEAR_SCAN, entries=100)}
    assert narrow == {(seed, 65 if l > 100 else l) for seed, l in wide}


def test_exact_cases_hold_small_integers():
    integer = Knob("integer", "each", True)
    case = Case(
        LINEAR_SCAN,
        np.dtype("f4"),
        {"l": 9, "n": 2},
        {"b": 1},
        {"a": Knob("compass", "gaps", True), "b": integer},
        5,
    )
    assert case.exact
    assert all((a == np.round(a)).all() for a in case.arrays)
    knobs = {**case.knobs, "b": replace(integer, texture="subnormal")}
    assert not replace(case, knobs=knobs).exact


def test_a_lost_process_is_not_called_again():
    calls = []

    def crash(case):
        calls.append(case)
        dead = Verdict("F", message="killed the process by SIGSEGV", error=True, died=True)
        return dead if case.sizes["l"] > 5 else Verdict("A")

    swept = sweep(Drawing(cases(LINEAR_SCAN, "float32")), crash, count=50, seed_=1)
    assert len(swept.failures) == 1
    assert sum(case.sizes["l"] > 5 for case in calls) == 1


def test_a_changing_answer_still_gets_one_story():
    answers = iter(range(10**6))

    def flaky(case):
        return wrong("sometimes") if next(answers) % 3 else Verdict("A")

    assert sweep(Drawing(cases(LINEAR_SCAN, "float32")), flaky, count=20, seed_=1).failures


def test_declined_cases_are_counted_and_not_judged():
    def declining(case):
        if case.sizes["l"] % 2:
            raise Declined
        return Verdict("A", ratio=1.0)

    swept = sweep(Drawing(cases(LINEAR_SCAN, "float32")), declining, count=40, seed_=2)
    assert swept.examples == 40
    assert 0 < swept.declined < 40
    assert swept.verdict.grade == "A"


def test_arrays_are_simplified_as_far_as_the_failure_allows():
    case = ordinary_case(LINEAR_SCAN, "float32", sizes=(9, 2))
    slow = [0.9 + 0 * case.arrays[0], case.arrays[1]]

    def large_decay(arrays):
        return bool(arrays[0].mean() >= 0.9)  # no redraw of ordinary decays is this large

    arrays, anything = simplified(case, slow, large_decay)
    assert anything == {"b"}
    assert (arrays[0] == 1).all()
    shown = [show("a", arrays[0], False), show("b", arrays[1], True)]
    assert shown == ["a=1 throughout", "b=0 throughout (other values fail too)"]


def test_an_argument_that_is_one_throughout_is_not_made_less_simple():
    case = ordinary_case(LINEAR_SCAN, "float32", sizes=(9, 2))
    ones = [np.ones_like(a) for a in case.arrays]
    arrays, _ = simplified(case, ones, lambda arrays: all(a.flat[0] == 1 for a in arrays))
    assert all((a == 1).all() for a in arrays)


def test_an_argument_whose_redraw_is_the_same_or_of_another_shape_is_not_told_to_hardly_matter():
    case = ordinary_case(LINEAR_SCAN, "float32", sizes=(9, 2))
    same = replace(case, knobs={**case.knobs, "a": Knob("one", "each", True)})
    assert simplified(same, same.arrays, lambda arrays: True)[1] == {"b"}
    short = [case.arrays[0][..., :4, :], case.arrays[1]]
    assert simplified(case, short, lambda arrays: True)[1] == {"b"}


def test_the_largest_entry_alone_is_tried():
    case = ordinary_case(LINEAR_SCAN, "float32", sizes=(9, 2))
    b = case.arrays[1]
    place = np.unravel_index(np.argmax(np.abs(b)), b.shape)
    (_, simple), _ = simplified(case, case.arrays, lambda arrays: arrays[1][place] == b[place])
    assert np.flatnonzero(simple).tolist() == [np.argmax(np.abs(b))]


def test_single_entries_and_short_arrays_are_shown_whole():
    x = np.zeros((1, 5, 2))
    x[0, 3, 1] = np.inf
    assert show("x", x, False) == "x=0 but x[0, 3, 1]=inf"
    assert show("x", np.array([1.0, 2.5]), False) == "x=[1, 2.5]"
    assert show("x", np.array([1 + 2j]), False) == "x=1+2j"
    assert show("x", np.arange(9.0), False) == "x: 9 numbers from 0"
    assert show("x", np.zeros(0), False) == "x=[]"


def test_an_output_without_entries_has_a_cotangent_of_its_shape():
    op = operator_named("rwkv6_states")
    for seed in range(12):  # four styles: random, one-hot, one number for all, column-major
        case = ordinary_case(op, "float32", seed=seed)
        *arrays, places = case.arrays
        arrays.append(places[..., :0])
        made, _ = cotangents_of(case, arrays, case.statics, ())
        assert [d.shape for d in made] == [*op.output_shapes(*arrays, **case.statics)]
