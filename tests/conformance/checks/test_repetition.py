"""Twenty equal calls give equal bits; a planted bug fails the check, which says by how much."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from judging import SCAN, judged, plugin

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.calling.worker import Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.scan import LINEAR_SCAN
from refssm.testing import Declaration

scan = LINEAR_SCAN.reference
NPLR_LEGS = operator_named("nplr_legs")
CALLS = []


def line(forward, where=None, op=LINEAR_SCAN, vjp=None, **declared):
    """The result of the check on an implementation, by default of a linear scan."""
    found = Found(op, forward, vjp, declared=Declaration(op.name, **declared))
    where = where or Where()
    asked = Settings(only_checks=("repeat",), shrink=False, folder=None, where=where)
    return list(results_of(Session(InProcess([found]), "here", asked)))[-1]


def changing(a, b):
    """Every second result is 1 % larger."""
    CALLS.append(None)
    return scan(a, b) * np.float32(1 + 0.01 * (len(CALLS) % 2))


def tired(a, b):
    """Calls differ in the last bit."""
    CALLS.append(None)
    return np.nextafter(scan(a, b), np.float32(len(CALLS) % 2))


def one_more_block(a, b):
    """Calls differ in the last bit, where the input has a second block of 128 steps."""
    return tired(a, b) if b.shape[-2] > 128 else scan(a, b)


KEPT_BY_ADDRESS = (
    SCAN.replace("def linear_scan", "def right")
    + """
KEPT = {}

def linear_scan(a, b):
    key = a.ctypes.data, b.ctypes.data, b.shape
    if key not in KEPT:
        KEPT.clear()
        KEPT[key] = right(a, b)
    return KEPT[key].copy()
"""
)
TWICE = "10 of 19 later calls differ from the first, by at most 2 units in the last place"


def test_calls_that_differ_in_the_last_bit_are_wrong_and_say_how_many_and_by_how_much():
    seen = line(tired)
    assert (seen.verdict, seen.grade) == ("wrong", "F")
    assert seen.message.startswith(f"{TWICE} (`x`[")
    assert seen.kind == "results of equal calls"
    assert seen.message.endswith("as with atomic additions, declare deterministic=False")


def test_calls_that_differ_for_longer_inputs_only_are_wrong_too():
    seen = line(one_more_block)
    assert seen.verdict == "wrong"
    assert seen.message.startswith(f"at l=257 {TWICE} (`x`[")


def test_calls_that_differ_within_tolerance_are_a_note_where_that_is_declared():
    for forward, places in ((tired, ("", "at l=257 ")), (one_more_block, ("at l=257 ",))):
        seen = line(forward, deterministic=False)
        assert seen.verdict == "pass"
        pairs = zip(seen.notes, places, strict=True)
        assert all(note.startswith(at + TWICE) for note, at in pairs)


def test_calls_that_differ_by_more_than_the_tolerance_fail_whatever_is_declared():
    seen = line(changing, deterministic=False)
    assert seen.failed
    assert seen.message.startswith("10 of 19 later calls differ from the first: ")
    assert seen.kind == "results of equal calls"


def test_a_sign_of_zero_that_changes_is_a_change_of_bits():
    def signed(a, b):
        CALLS.append(None)
        return scan(a, b) * 0 * (-1) ** len(CALLS)

    seen = line(signed)
    assert seen.verdict == "wrong"
    assert "by at most 0 units in the last place" in seen.message


def test_a_length_that_is_declined_is_tried_in_whole_blocks():
    seen = []

    def whole(a, b):
        if b.shape[-2] not in (33, 256):
            raise NotImplementedError
        seen.append(b.shape[-2])
        return scan(a, b)

    assert line(whole).verdict == "pass"
    # twenty, one with other values, and four on arrays that get new values; then one argument new
    assert (seen.count(33), seen.count(256)) == (25 + 5, 25)


def test_a_parameter_that_is_declined_gets_its_other_values():
    seen = set()

    def even(*, n):
        if n % 2:
            raise NotImplementedError
        seen.add(n)
        return NPLR_LEGS.reference(n=n)

    assert line(even, op=NPLR_LEGS).verdict == "pass"
    assert seen == {2}
    assert line(lambda *, n: {}[n], op=NPLR_LEGS).verdict != "pass"


def by_address():
    """A scan whose decays are kept by their address, as kernels keep tables by `data_ptr`."""
    table = {}

    def program(a, b):
        key = a.ctypes.data, a.shape
        if key not in table:
            table.clear()
            table[key] = a.copy()
        return scan(table[key], b)

    return program


def by_value():
    """A scan that keeps the last result with the arguments that it was for."""
    kept = []

    def program(a, b):
        if not kept or not all(map(np.array_equal, kept[0], (a, b))):
            kept[:] = [(a.copy(), b.copy()), scan(a, b)]
        return kept[1].copy()

    return program


def test_what_is_kept_by_address_is_seen_and_what_is_kept_by_value_is_right():
    seen = line(by_address())
    assert seen.verdict == "wrong"
    # where the allocator gives a new array the place of an old one, a usual call is wrong already
    new = re.match(
        r"with new values in the arrays of an earlier call: worst x\[.*\?$", seen.message
    )
    assert new or re.match(r"\d+ of \d+ later calls differ from the first: worst x\[", seen.message)
    assert line(by_value()).verdict == "pass"


@pytest.mark.long
def test_what_is_kept_by_address_is_seen_in_a_child_too_and_is_no_run_to_run_difference(tmp_path):
    plugin(tmp_path, KEPT_BY_ADDRESS)
    with Worker(str(tmp_path / "my_ops.py")) as worker:
        asked = Settings(only_checks=("repeat",), folder=None, diagnose=True)
        *_, seen = results_of(Session(worker, "here", asked))
    assert seen.verdict == "wrong"
    assert "kept by the identity of the arguments" in seen.looks_like
    assert "uninitialised" not in seen.looks_like


def keyed(*names):
    """A scan that keeps its last result for these arguments only."""
    kept = {}

    def program(a, b):
        key = tuple({"a": a, "b": b}[name].tobytes() for name in names), b.shape
        if kept.get("key") != key:
            kept.update(key=key, x=scan(a, b))
        return kept["x"].copy()

    return program


@pytest.mark.parametrize(("key", "missing"), [("a", "b"), ("b", "a")])
def test_what_is_kept_for_a_key_without_an_argument_is_seen(key, missing):
    seen = line(keyed(key))
    assert seen.verdict == "wrong"
    assert seen.message.startswith(f"with a new value of `{missing}` alone: worst x[")
    assert seen.message.endswith("; is something kept that depends on it?")
    assert line(keyed("a", "b")).verdict == "pass"


def test_an_inaccurate_function_is_not_said_to_keep_something():
    assert line(lambda a, b: scan(a, b) * np.float32(1.01)).verdict == "pass"


def test_a_limit_on_the_length_is_kept():
    seen = []

    def counted(a, b):
        seen.append(b.shape[-2])
        return scan(a, b)

    where = Where(sizes={"l": (1, 100)})
    assert line(counted, where).verdict == "pass"
    assert max(seen) == 100


def convolved(order):
    """A direct convolution whose products are added by threads, in an order."""

    def program(u, k):
        l = u.shape[-1]
        with ThreadPoolExecutor(4) as threads:
            shifted = [np.zeros(np.broadcast_shapes(u.shape, k.shape), u.dtype) for _ in range(l)]

            def fill(j):
                shifted[j][..., j:] = k[..., j : j + 1] * u[..., : l - j]

            list(threads.map(fill, range(l)))
        return sum(shifted[j] for j in order(l))

    return program


GENERATOR = np.random.default_rng(24)


@pytest.mark.parametrize(
    ("order", "verdict"),
    [(range, "pass"), (GENERATOR.permutation, "wrong")],
    ids=["partial sums in their order", "as threads finish"],
)
def test_threads_that_add_in_any_order_are_seen_and_threads_that_do_not_are_not(order, verdict):
    seen = line(convolved(order), op=CAUSAL_CONVOLUTION_DIRECT)
    assert seen.verdict == verdict
    if verdict == "wrong":
        assert "in the last place" in seen.message


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped cannot be removed there")
def test_an_earlier_output_that_changes_is_not_said_to_share_memory(tmp_path):
    (tmp_path / "buffer").write_bytes(bytes(2**20))

    def mapped(a, b):
        x = scan(a, b)
        y = np.memmap(tmp_path / "buffer", x.dtype, "r+", shape=x.shape)  # at an address of its own
        y[...] = x
        return np.asarray(y)

    (result,) = judged("linear_scan", mapped, "alias", types=("float32",))
    assert result.verdict == "wrong"
    assert result.message == "a later call changes the output of an earlier one"
