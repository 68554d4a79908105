"""Published sizes: every operator is drawn there at each seed, and what is wrong there is found."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refssm.catalog import judged
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.kinds.published import EQUAL
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import PROFILES, checks_of, default_types
from refssm.conformance.checks.drawing import BESIDE
from refssm.conformance.number_types import number_type
from refssm.conformance.running.sweeping import first_seed
from refssm.presets.published import BEYOND, why_not, wide
from refssm.testing import Declaration

DEFAULT = PROFILES["default"]
TILES = (5, 7, 10, 16, 20, 40, 80)
GRADED = ("value", "state", "gradient")


def checks(op, *names, types=()):
    found = checks_of(op, DEFAULT, types or default_types(op, DEFAULT), vjp=op.differentiable)
    return [check for check in found if check.name in (names or GRADED)]


def published(check, seed, where=None):
    """The cases of a check in published sizes, as a run with this seed draws them."""
    drawing = check.cases(between=where or {})
    pieces = [piece for piece in drawing.all_pieces(check.count) if piece.start >= BESIDE]
    return [s.case for piece in pieces for s in piece.samples(first_seed(check, seed))]


def long_ones(check, seed):
    """Its cases of long presets."""
    samples = [
        sample
        for piece in check.cases().pieces(check.count)
        if len(piece.numbers) == 1
        for sample in piece.samples(first_seed(check, seed))
    ]
    return [sample.case for sample in samples]


@pytest.mark.parametrize("op", judged(), ids=str)
def test_every_operator_is_drawn_in_published_sizes_or_says_why_not(op):
    dims, values = core_dims(op), checks(op, "value")
    for seed in range(5):
        reached, lengths = defaultdict(set), set()
        for check in values:
            cases = published(check, seed)
            if "l" in dims:
                longest = max(c.sizes["l"] for c in [*cases, *long_ones(check, seed)])
                assert longest > BEYOND or why_not(op, "l")
                lengths |= {c.sizes["l"] for c in cases}
            if "n" in dims:
                double = number_type(check.dtype).double and not op.constructor
                least = 1 if why_not(op, "n", double=double) else 128
                assert max((c.sizes["n"] for c in cases), default=1) >= least
            if op.batch_names:
                assert max(c.batch[op.batch_names[-1]] for c in cases) > 3
            for case in cases:
                for dim, size in case.sizes.items():
                    reached[dim].add(size)
        for sizes in wide(op, dims):
            assert all(size in reached[dim] for dim, size in sizes.items())
        if "l" in dims and "n" in dims and wide(op, dims):
            some = TILES if not why_not(op, "l") else TILES[2:]
            assert [k for k in some if not any(l % k == 0 for l in lengths)] == []


@pytest.mark.parametrize("name", ["ssd_chunked_stateful", "kimi_delta_rule", "mamba2_scan"])
def test_each_wide_size_of_states_and_channels_is_drawn_at_every_seed(name):
    op = operator_named(name)
    for seed in range(10):
        for check in checks(op):
            sizes = {(c.sizes["n"], c.sizes["p"]) for c in published(check, seed)}
            both = {(128, 64), (256, 128)}
            assert sizes & both
            if check.name == "value" and check.dtype == "float32":
                assert sizes >= both


def test_a_range_of_where_leaves_out_published_sizes_that_are_not_in_it():
    (check,) = checks(operator_named("ssd_recurrent"), "value", types=["float32"])
    assert {c.sizes["n"] for c in published(check, 0, {"n": (100, 200)})} == {128}
    assert published(check, 0, {"n": (5, 60)}) == []


def test_a_preset_that_was_asked_for_comes_alone():
    (check,) = checks(operator_named("ssd_recurrent"), "value", types=["float32"])
    assert check.cases(preset="mamba2-64").published == ()


@pytest.mark.parametrize("op", judged(), ids=str)
def test_some_case_of_every_operator_has_equal_sizes(op):
    (value, *_) = checks(op, "value")
    alike = {d for d in core_dims(op) if d in "lnpm"}
    if len(core_dims(op)) + len(op.batch_names) < 2:
        return
    cases = [c for c in published(value, 0) if {c.sizes[d] for d in alike} <= {EQUAL}]
    assert any({*c.batch.values()} <= {EQUAL} for c in cases)


# --- wrong programs: right at all smaller sizes -------------------------------------------------


def lost(name, argument, size, tail):
    """From so many entries of the last axis of an argument on, the last ones are lost."""
    op = operator_named(name)

    def program(*arrays, **statics):
        given = dict(zip(op.inputs, arrays, strict=True))
        if given[argument].shape[-1] >= size:
            given[argument] = given[argument].copy()
            given[argument][..., -tail:] = 0
        return op.reference(*given.values(), **statics)

    return op, program


def changed(name, change):
    """A program whose first output is changed."""
    op = operator_named(name)

    def program(*arrays, **statics):
        outputs = op.reference(*arrays, **statics)
        several = isinstance(outputs, tuple)
        first, *rest = outputs if several else (outputs,)
        first = change(np.array(first))
        return (first, *rest) if several else first

    return op, program


def of_one_byte(axis):
    """What an index of one byte along an axis gives."""

    def change(y):
        return np.take(y, np.arange(y.shape[axis]) % 256, axis=axis)

    return change


def fourth_channel(axis):
    def change(y):
        channels = np.moveaxis(y, axis, 0)
        channels[3:] *= 1.25
        return y

    return change


def full_tile(size, axis=-2):
    """The last tile is wrong where the length fills it."""

    def change(y):
        steps = np.moveaxis(y, axis, 0)
        if len(steps) % size == 0:
            steps[-size:] *= 1.25
        return y

    return change


def filters_of_one_byte():
    op = operator_named("spectral_filters")

    def program(**statics):
        values, filters = op.reference(**statics)
        return values, of_one_byte(-1)(filters)

    return op, program


def square_states():
    """States are taken transposed where that does not change their shape."""
    op = operator_named("mamba2_step")

    def program(*arrays, **statics):
        *others, S = arrays
        return op.reference(*others, S.mT if S.shape[-1] == S.shape[-2] else S, **statics)

    return op, program


def far_from_the_diagonal():
    """Entries more than 128 steps below the diagonal are lost."""
    op = operator_named("chunk_inverse")

    def program(L):
        X = op.reference(L)
        return np.where(np.tri(X.shape[-1], k=-129, dtype=bool), 0, X)

    return op, program


WRONG: dict[str, Any] = {
    "states of SSD": lost("ssd_recurrent_stateful", "C", 128, 64),
    "states of SSD by chunks": lost("ssd_chunked_stateful", "C", 128, 64),
    "states of Mamba-2": lost("mamba2_scan", "C", 128, 64),
    "keys of a delta rule": lost("delta_rule_stateful", "q", 128, 64),
    "keys of a delta rule by chunks": lost("gated_delta_rule_chunked", "q", 128, 64),
    "keys of Kimi": lost("kimi_delta_rule_chunked_stateful", "q", 256, 64),
    "channels of a head, 64": lost("ssd_recurrent", "x", 64, 16),
    "channels of a head, 128": lost("ssd_chunked", "x", 128, 64),
    "values of a delta rule": lost("kimi_delta_rule", "v", 128, 32),
    "states of a step": lost("ssd_step", "C", 128, 64),
    "byte of steps": changed("hippo_project_legs", of_one_byte(-2)),
    "byte of a filter": filters_of_one_byte(),
    "fourth channel": changed("selective_scan", fourth_channel(-2)),
    "fourth channel of a convolution": changed("short_convolution", fourth_channel(-2)),
    "fourth head": changed("ssd_chunked", fourth_channel(-3)),
    "square states": square_states(),
    "the far part of a chunk": far_from_the_diagonal(),
    "tile of 80": changed("linear_scan", full_tile(80)),
    "tile of 40": changed("delta_rule", full_tile(40)),
    "tile of 7": changed("linear_scan_from", full_tile(7)),
    "tile of 16 in a kernel": changed("diagonal_kernel_zoh", full_tile(16, -1)),
}


def failing(op, program, check, seed, vjp=None):
    """How many cases in published sizes a program fails, and of how many."""
    found = Found(op, program, vjp, declared=Declaration(op.name))
    candidate = Candidate(op, InProcess([found]), found.offer).judged_in(check.dtype)
    verdicts = [check.judging(candidate)(case) for case in published(check, seed)]
    return SimpleNamespace(wrong=sum(not v.ok for v in verdicts), of=len(verdicts))


@pytest.mark.parametrize("which", WRONG)
def test_what_is_wrong_in_published_sizes_only_is_found_at_every_seed(which):
    op, program = WRONG[which]
    check = checks(op, "value", types=default_types(op, DEFAULT)[:1])[0]
    for seed in range(3):
        assert failing(op, program, check, seed).wrong > 0
    right = failing(op, op.reference, check, 0)
    assert (right.wrong, right.of > 0) == (0, True)


@pytest.mark.parametrize("name", ["selective_scan", "kimi_delta_rule"])
def test_a_gradient_that_is_wrong_in_published_sizes_only_is_found(name):
    op = operator_named(name)

    def vjp(*arrays, **statics):
        gradients = [*op.bare_vjp(*arrays, **statics)]
        place = [*op.inputs].index("C" if "C" in op.inputs else "q")
        if gradients[place].shape[-1] >= 128:
            gradients[place] = gradients[place].copy()
            gradients[place][..., 64:] = 0
        return tuple(gradients)

    check = checks(op, "gradient", types=["float32"])[0]
    assert failing(op, op.reference, check, 1, vjp).wrong > 0
    assert failing(op, op.reference, check, 1, op.vjp()).wrong == 0
