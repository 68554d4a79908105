"""The reference passes every law and conduct check; a planted bug fails each."""

import numpy as np
import pytest

from refssm.catalog import OPERATORS, from_state
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import NAMES, gradient_at
from refssm.conformance.checks.conduct import CONDUCT
from refssm.conformance.checks.laws import LAWS, laws_of
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED
from refssm.ssd import SSD_RECURRENT, SSD_STEP
from refssm.testing import Declaration

scan, scan_from = LINEAR_SCAN.reference, LINEAR_SCAN_FROM.reference


def lines(check, *found, seed=0):
    """The results of one check."""
    session = Session(
        InProcess(found),
        "here",
        Settings(only_checks=(check,), shrink=False, folder=None, seed=seed),
    )
    return list(results_of(session))


def found(forward, resumed=None):
    """A linear scan, and its `_from` form if there is one."""
    given = [Found(LINEAR_SCAN, forward, None)]
    return [*given, Found(LINEAR_SCAN_FROM, resumed, None, judged=False)] if resumed else given


def grown(x, extra):
    """x plus something, in x's type."""
    return (x + extra).astype(x.dtype)


def on_fixed_point(b):
    """Round to multiples of 2^-12."""
    return (np.round(b * 4096) / 4096).astype(b.dtype)


CALLS = []


def changing(a, b):
    """The result depends on the call number."""
    CALLS.append(None)
    return scan(a, b) * np.float32(1 + 0.01 * (len(CALLS) % 2))


def in_place(a, b):
    """Writes to its input."""
    b *= 2
    return scan(a, b / 2)


def shared(a, b):
    """Returns the result in the memory of the input."""
    b[...] = scan(a, b.copy())
    return b


def scratch(a, b):
    """Writes to its input, then restores it."""
    a += 0
    return scan(a, b)


BUFFER = {}


def buffered(a, b):
    """All results of one shape share the same memory."""
    x = scan(a, b)
    kept = BUFFER.setdefault((x.shape, x.dtype), np.empty_like(x))
    kept[...] = x
    return kept


def shared_at_length_1(a, b):
    """Returns its input without a copy if there is nothing to compute."""
    return b if b.shape[-2] == 1 and a.dtype == b.dtype else scan(a, b)


def louder(u, k):
    """A gain that grows with time."""
    y = CAUSAL_CONVOLUTION_DIRECT.reference(u, k)
    return (y * (1 + 0.01 * np.arange(y.shape[-1]))).astype(y.dtype)


convolution = CAUSAL_CONVOLUTION_DIRECT.reference


def tiled(x, log_a, B, C, S):
    """Head h of all heads uses the B and C of group h mod G."""
    groups, heads = x.shape[-3:-1]
    order = np.arange(groups * heads).reshape(groups, heads) % groups
    pick = (..., order, 0, slice(None))
    return SSD_STEP.reference(x, log_a, B[pick], C[pick], S)


def detached(dx, a, b, x0):
    """Gradients that end where the piece begins."""
    *gradients, dx0 = LINEAR_SCAN_FROM.bare_vjp(dx, a, b, x0)
    return *gradients, 0 * dx0


def advancing():
    """A scan that keeps each state it was given, and overwrites it with the last one."""
    kept = {}

    def program(a, b, x0):
        state = kept.setdefault(x0.tobytes(), x0.copy())
        x = scan_from(a, b, state)
        if x.shape[-2]:
            state[...] = x[..., -1, :]
        return x

    return program


def of_four(a, b):
    """Each member of a batch reads the decays of one of the first four."""
    return scan(a[np.arange(len(a)) % 4] if a.ndim > 2 else a, b)


def ends_after_eight(dy, x, log_a, B, C):
    """The gradient of what heads share without those from the ninth on."""
    dx, dlog_a, _, dC = SSD_RECURRENT.bare_vjp(dy, x, log_a, B, C)
    first = dy.copy()
    first[..., 8:, :, :] = 0
    return dx, dlog_a, SSD_RECURRENT.bare_vjp(first, x, log_a, B, C)[2], dC


PLANTED = {
    "copies": found(of_four),
    "summed": [Found(SSD_RECURRENT, SSD_RECURRENT.reference, ends_after_eight)],
    "joined": [Found(LINEAR_SCAN_FROM, scan_from, detached)],
    "rollback": [Found(LINEAR_SCAN_FROM, advancing(), None)],
    "group": [Found(SSD_STEP, tiled, None)],
    "shift": [Found(CAUSAL_CONVOLUTION_DIRECT, louder, None)],
    "split": found(scan, lambda a, b, x0: scan_from(a, b, 0 * x0)),
    "nan": found(lambda a, b: scan(a, np.nan_to_num(b))),
    "prefix": found(lambda a, b: grown(scan(a, b), 0.01 * b.shape[-2])),
    "additive": found(lambda a, b: scan(a, np.abs(b))),
    "scaling": found(lambda a, b: scan(a, on_fixed_point(b))),
    "zero": found(lambda a, b: grown(scan(a, b), 1e-9)),
    "causal": found(lambda a, b: grown(scan(a, b), 0.01 * b[..., -1:, :])),
    "batch": found(lambda a, b: grown(scan(a, b), 0.01 * b.sum(axis=0) if b.ndim > 2 else 0)),
    "repeat": found(changing),
    "strides": found(lambda a, b: scan(a, b.ravel(order="K").reshape(b.shape))),
    "readonly": found(scratch),
    "unchanged": found(in_place),
    "alias": found(shared),
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_check_fails_the_bug_planted_for_it(check):
    line, *_ = lines(check, *PLANTED[check])
    assert line.check == check
    assert line.failed
    assert line.message


@pytest.mark.parametrize("check", [rule.name for rule in (*LAWS, *CONDUCT)])
def test_a_check_passes_the_reference(check):
    right = found(scan, scan_from)
    if check == "shift":
        right = [Found(CAUSAL_CONVOLUTION_DIRECT, convolution, None)]
    if check == "group":
        right = [Found(SSD_STEP, SSD_STEP.reference, None)]
    if check == "flags":
        right = [Found(LINEAR_SCAN_PACKED, LINEAR_SCAN_PACKED.reference, None)]
    if check == "summed":
        right = [Found(SSD_RECURRENT, SSD_RECURRENT.reference, SSD_RECURRENT.bare_vjp)]
    if check in ("joined", "rollback"):
        right = [Found(LINEAR_SCAN_FROM, scan_from, LINEAR_SCAN_FROM.bare_vjp)]
    line, *_ = lines(check, *right)
    assert line.verdict == "pass"
    assert line.notes in ((), ("no error for `a` with l=66 where the other arguments have l=33",))


def ring(buffers, least=0):
    """Outputs in turn in some buffers, if they have at least so many bytes."""
    memory, turn = {}, [0]

    def program(a, b):
        x = scan(a, b)
        if x.nbytes < least:
            return x
        turn[0] += 1
        mine = memory.setdefault((x.shape, x.dtype, turn[0] % buffers), np.empty_like(x))
        mine[...] = x
        return mine

    return program


@pytest.mark.parametrize(
    "forward", [buffered, shared_at_length_1, ring(2), ring(3), ring(1, 2**17), ring(3, 2**17)]
)
def test_other_ways_to_share_memory_are_seen(forward):
    line, *_ = lines("alias", *found(forward))
    assert line.verdict == "wrong"


def test_an_output_that_a_later_call_overwrites_is_seen_where_it_is_large():
    line, *_ = lines("alias", *found(ring(2, 2**17)))
    assert line.message == "at l=410 an output shares memory with the output of an earlier call"


def test_writing_to_a_slice_is_seen():
    def one_sequence(a, b):
        for k in range(1, len(b)):
            b[k] += a[k] * b[k - 1]
        return b.copy()

    (line,) = lines("unchanged", *found(one_sequence))
    assert line.sliced
    assert line.verdict == "wrong"


def test_every_check_with_a_verdict_has_a_planted_bug():
    # `flags` of operators with resets is tested in checks/test_every_type.py
    assert {*PLANTED, "shapes", "empty", "flags"} == {rule.name for rule in (*LAWS, *CONDUCT)}
    elsewhere = {"value", "state", "gradient", "against"}  # tested in planted/test_planted.py
    elsewhere.add("against_gradient")  # tested in command/test_gradients_asked.py
    elsewhere.add("lengths")  # tested in checks/test_lengths.py
    elsewhere.add("stream")  # of device arrays: tested in calling/test_cupy_streams.py
    assert {*PLANTED, "shapes", "empty", "flags", *elsewhere} == set(NAMES)


def test_a_wrong_shape_that_is_not_refused_is_a_note():
    (line,) = lines("shapes", *found(lambda a, b: scan(a[..., : b.shape[-2], :], b)))
    assert line.verdict == "pass"
    assert "no error for" in line.notes[0]


def test_an_empty_input_that_raises_is_a_note():
    (line,) = lines("empty", *found(lambda a, b: scan(a, b) + 0 * b[..., 0:1, :].max()))
    assert line.verdict == "pass"
    assert line.notes[0].startswith("with l=0 the call raised ValueError")


def test_nan_where_an_overflow_is_due_is_a_note_and_a_finite_number_is_not():
    def doubting(a, b):
        x = scan(a, b)
        return np.where(np.isinf(x) & np.isfinite(b).all() & np.isfinite(a).all(), np.nan, x)

    def clamping(a, b):
        x = scan(a, b)
        return np.where(np.isinf(x), np.finfo(x.dtype).max, x)

    (line,) = lines("nan", *found(doubting))
    assert line.verdict == "pass"
    assert "the outputs have NaN where the result is infinite; this is accepted" in line.notes
    (line,) = lines("nan", *found(clamping))
    assert line.verdict == "wrong"


def test_a_pole_met_exactly_may_be_nan_but_not_finite():
    cauchy = operator_named("cauchy_kernel")

    def by_conjugates(v, w, z):
        d = z[..., :, None] - w[..., None, :]
        return (v[..., None, :] * d.conj() / (d.real**2 + d.imag**2)).sum(-1)

    def masked(v, w, z):
        d = z[..., :, None] - w[..., None, :]
        return (v[..., None, :] * (d != 0) / np.where(d == 0, 1, d)).sum(-1)

    (line,) = lines("nan", Found(cauchy, by_conjugates, None))
    assert line.verdict == "pass"
    assert "the outputs have NaN where the result is infinite; this is accepted" in line.notes
    (line,) = lines("nan", Found(cauchy, masked, None))
    assert line.verdict == "wrong"
    assert "equal to a pole" in line.message


@pytest.mark.long
def test_exact_integers_must_come_out_exact():
    def nearly(a, b):
        x = scan(a, b)
        return np.nextafter(x, x + np.ones_like(x)) if x.dtype == np.float32 else x

    failed = [line for seed in range(3) for line in lines("value", *found(nearly), seed=seed)]
    failed = [line for line in failed if line.failed]
    assert any(line.message.startswith("exact integers: ") for line in failed)


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_laws_follow_from_the_traits(op):
    expected = {"batch"} if op.inputs else set()
    expected |= {"additive", "scaling", "zero"} if op.linear_in else set()
    expected |= {"nan"} if "transform" not in op.traits and op.inputs else set()
    expected |= {"prefix"} if "causal" in op.traits else set()
    expected |= {"causal"} if "causal" in op.traits and op.leading not in op.static else set()
    expected |= {"group"} if "g" in op.batch_names else set()
    expected |= {"shift"} if "time-invariant" in op.traits else set()
    expected |= {"split"} if "state" in op.traits else set()
    expected |= {"joined", "rollback"} if "state" in op.traits and from_state(op) else set()
    assert {law.name for law in laws_of(op)} == expected


@pytest.mark.long
def test_core_arrays_only_is_found_out_and_said():
    def one_sequence(a, b):
        x, state = np.empty_like(b, dtype=np.result_type(a, b)), 0
        for k in range(len(b)):
            x[k] = state = a[k] * state + b[k]
        return x

    session = Session(
        InProcess(found(one_sequence)), "here", Settings(profile="quick", folder=None)
    )
    results = list(results_of(session))
    assert [line for line in results if line.failed] == []
    assert all(line.sliced for line in results if line.verdict == "pass")


@pytest.mark.long
def test_a_batch_bug_is_not_taken_for_core_arrays_only():
    def first_member(a, b):
        return scan(np.broadcast_to(a[:1], a.shape) if a.ndim > 2 else a, b)

    (line, *_) = lines("value", *found(first_member))
    assert line.verdict == "wrong"
    assert not line.sliced


@pytest.mark.long
def test_what_only_projects_is_what_is_judged():
    def constant(x):
        return {**x, "a": np.broadcast_to(x["a"][..., :1, :], x["a"].shape).copy()}

    def needs_constant(a, b):
        assert (a == a[..., :1, :]).all()
        return scan(a, b)

    given = Found(LINEAR_SCAN, needs_constant, None, declared=Declaration(only=constant))
    assert [line.verdict for line in lines("value", given)] == ["pass"] * 4
    declining = Found(LINEAR_SCAN, scan, None, declared=Declaration(only=lambda x: None))
    assert {line.verdict for line in lines("value", declining)} == {"skipped"}
    failing = Found(LINEAR_SCAN, scan, None, declared=Declaration(only=lambda x: x["c"]))  # pyright: ignore[reportArgumentType]
    assert {line.verdict for line in lines("value", failing)} == {"error"}


def test_two_exact_cancellations_multiplied_are_not_taken_for_an_error():
    # x and its cotangent both return to 0 every fourth step; the soak found this
    a = np.full((8, 1), 1j, np.complex64)
    b = np.full((8, 1), 0.1 + 0.3j, np.complex64)
    given = Found(LINEAR_SCAN, scan, LINEAR_SCAN.bare_vjp)
    candidate = Candidate(LINEAR_SCAN, InProcess([given]), given.offer)
    dx = np.full_like(b, 0.1 + 0.7j)
    assert LINEAR_SCAN.bare_vjp(dx, a, b)[0][4] != 0
    assert gradient_at(candidate, [dx], [a, b], {}).ok
