"""Features for recurrences: last states, flags, parameters, shared axes, sizes like 2n."""

import subprocess
import sys

import numpy as np
import pytest
from judging import judged

import refssm
from refssm._declaration.layout import canonical, in_layout, parse
from refssm.catalog import OPERATORS, from_state, resumed
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.law import hold
from refssm.conformance.checks.time_laws import split
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import DIAGONAL_SSM_BIDIRECTIONAL, LINEAR_SCAN_PACKED
from refssm.selective_scan import SELECTIVE_SCAN, SELECTIVE_SCAN_STATEFUL
from refssm.ssd import SSD_CHUNKED, SSD_RECURRENT
from refssm.testing import Declaration

stateful = SELECTIVE_SCAN_STATEFUL.reference


def results(op, forward, *checks, vjp=None, others=(), layout="", types=("float32",)):
    """The judge's results for one function, by default in float32."""
    found = [Found(op, forward, vjp, declared=Declaration(layout=layout)), *others]
    session = Session(
        InProcess(found),
        "here",
        Settings(folder=None, shrink=False, only_checks=checks, types=types),
    )
    return list(results_of(session))


def state_off(*args):
    """Right outputs, but a last state without its newest input."""
    y, x = stateful(*args)
    return y, x - (args[1] * args[0])[..., -1:] * args[3][..., -1, :]


def output_off(*args):
    y, x = stateful(*args)
    return -y, x


def test_a_wrong_last_state_fails_the_check_state_and_no_other():
    lines = {r.check: r for r in results(SELECTIVE_SCAN_STATEFUL, state_off, "value", "state")}
    assert lines["value"].verdict == "pass"
    assert lines["state"].verdict == "wrong"
    assert lines["state"].message.startswith("worst x[")


def test_a_wrong_output_fails_the_check_value_and_no_other():
    lines = {r.check: r for r in results(SELECTIVE_SCAN_STATEFUL, output_off, "value", "state")}
    assert lines["value"].verdict == "wrong"
    assert lines["state"].verdict == "pass"


def test_nan_in_the_last_state_fails():
    def forgetful(*args):
        y, x = stateful(*args)
        return y, x * np.nan

    (line,) = results(SELECTIVE_SCAN_STATEFUL, forgetful, "state")
    assert line.verdict == "wrong"


def test_split_sees_a_state_that_does_not_carry_on():
    plain = SELECTIVE_SCAN.reference
    wrong = Found(SELECTIVE_SCAN_STATEFUL, state_off, None, judged=False)
    right = Found(SELECTIVE_SCAN_STATEFUL, stateful, None, judged=False)
    assert results(SELECTIVE_SCAN, plain, "split", others=[right])[0].verdict == "pass"
    assert results(SELECTIVE_SCAN, plain, "split", others=[wrong])[0].verdict == "wrong"
    (skipped,) = results(SELECTIVE_SCAN, plain, "split")
    assert skipped.message == "needs selective_scan_stateful"


def test_a_float32_state_of_a_float16_kernel_is_given_back_as_float32():
    given = set()

    def kernel(*args, carries=1.0):
        given.add((args[0].dtype.name, args[-1].dtype.name))
        y, x = stateful(*(a.astype(np.float32) for a in args))
        return y.astype(np.float16), np.float32(carries) * x

    def forgetful(*args):
        return kernel(*args, carries=0.5)

    for forward, verdict in ((kernel, "pass"), (forgetful, "wrong")):
        given.clear()
        (line,) = results(SELECTIVE_SCAN_STATEFUL, forward, "split", types=("float16",))
        assert line.verdict == verdict
        assert given == {("float16", "float16"), ("float16", "float32")}


def test_split_compares_the_last_state_of_the_whole_with_that_of_the_pieces():
    case = ordinary_case(SELECTIVE_SCAN_STATEFUL, "float32", sizes=(9, 2))

    def whole_off(*args):
        return (state_off if args[0].shape[-1] == 9 else stateful)(*args)

    for forward, ok in ((stateful, True), (whole_off, False)):
        given = Found(SELECTIVE_SCAN_STATEFUL, forward, None)
        candidate = Candidate(SELECTIVE_SCAN_STATEFUL, InProcess([given]), given.offer)
        verdict = hold(split, candidate, case)
        assert verdict.ok == ok
        assert ok or "worst x[" in verdict.message


def back_off(*args):
    """Gradients that are right but for that of the first state."""
    *gradients, dx0 = SELECTIVE_SCAN_STATEFUL.bare_vjp(*args)
    return *gradients, 0 * dx0


class Advanced:
    """A kernel that keeps the state it was given, and overwrites it with the last one."""

    def __init__(self):
        self.kept = {}

    def __call__(self, *args):
        state = self.kept.setdefault(args[-1].tobytes(), args[-1].copy())
        y, x = stateful(*args[:-1], state)
        state[...] = x
        return y, x


@pytest.mark.parametrize(
    "name",
    [
        "linear_scan_from",
        "selective_scan_stateful",
        "delta_rule_chunked_stateful",
        "mamba2_scan_stateful",
    ],
)
def test_two_pieces_of_a_reference_give_its_gradients_and_rejected_steps_leave_no_trace(name):
    op = operator_named(name)
    lines = results(op, op.reference, "joined", "rollback", vjp=op.bare_vjp)
    assert [(line.check, line.verdict) for line in lines] == [
        ("joined", "pass"), ("rollback", "pass")]  # fmt: skip


def test_a_first_state_without_a_gradient_fails_the_check_joined():
    (line,) = results(SELECTIVE_SCAN_STATEFUL, stateful, "joined", vjp=back_off)
    assert line.verdict == "wrong"
    assert results(SELECTIVE_SCAN_STATEFUL, stateful, "joined") == []  # without a VJP


def test_rejected_steps_that_stay_in_the_state_fail_the_check_rollback():
    (line,) = results(SELECTIVE_SCAN_STATEFUL, Advanced(), "rollback")
    assert line.verdict == "wrong"


def test_each_operator_with_a_state_is_resumed_by_one_that_takes_it_last():
    for op in OPERATORS:
        other = resumed(op)
        assert (
            ("state" not in op.traits)
            or (other is not None and from_state(other))
            or ("_packed" in op.name)
        )
        if other is not None and other is not op:
            assert [*other.inputs][: len(op.inputs)] == [*op.inputs]


def test_resets_are_flags_or_integers_and_nothing_else():
    ones = np.ones((3, 1))
    for flags in ([False, True, False], np.array([0, 1, 0], "u1"), [0, 7, 0]):
        x = refssm.linear_scan_packed(ones, ones, flags)
        assert x.ravel().tolist() == [1, 1, 2]
    for flags in ([0.0, 1.0, 0.0], [0j, 1j, 0j]):
        with pytest.raises(
            TypeError, match=r"^linear_scan_packed: `resets` has dtype .* true or f"
        ):
            refssm.linear_scan_packed(ones, ones, flags)


def test_flags_take_no_part_in_the_precision():
    ones = np.ones((3, 1), np.float32)
    assert refssm.linear_scan_packed(ones, ones, [0, 1, 0]).dtype == np.float32
    gradients = refssm.linear_scan_packed_vjp(ones, ones, ones, [0, 1, 0])
    assert gradients[2] is None
    assert [g.dtype for g in gradients[:2]] == [np.float32] * 2


@pytest.mark.long
def test_a_vjp_may_answer_anything_for_a_flag_but_must_answer():
    right = LINEAR_SCAN_PACKED.bare_vjp
    for last in (None, np.zeros(3)):
        vjp = lambda *args, last=last: (*right(*args)[:2], last)  # noqa: E731
        (line,) = results(LINEAR_SCAN_PACKED, LINEAR_SCAN_PACKED.reference, "gradient", vjp=vjp)
        assert line.verdict == "pass"
    (line,) = results(
        LINEAR_SCAN_PACKED, LINEAR_SCAN_PACKED.reference, "gradient",
        vjp=lambda *args: right(*args)[:2],
    )  # fmt: skip
    assert line.message == "returned 2, want a tuple of 3"


@pytest.mark.parametrize("packed", [tuple, list, lambda gradients: gradients[0]])
def test_a_gradient_of_one_argument_comes_alone_or_in_a_tuple(packed):
    op = operator_named("chunk_inverse")
    (line,) = results(op, op.reference, "gradient", vjp=lambda *args: packed(op.bare_vjp(*args)))
    assert line.verdict == "pass"


@pytest.mark.parametrize(("name", "place"), [("dt", 1), ("z", 6), ("dt_bias", 7)])
def test_a_complex_number_where_a_real_one_is_meant_is_refused(name, place):
    arguments = [[1.0], [1.0], [0.0], [[1.0]], [[1.0]], 1.0, [1.0], 0.0]
    arguments[place] = np.asarray(arguments[place]) * 1j
    with pytest.raises(
        TypeError, match=rf"^mamba_scan: `{name}` has dtype complex128, wanted a re"
    ):
        refssm.mamba_scan(*arguments)


@pytest.mark.parametrize("chunk", [0, -1, 2.0, True, None])
def test_a_chunk_is_an_integer_from_1_on(chunk):
    with pytest.raises(ValueError, match=r"^ssd_chunked: `chunk` must be an integer >= 1, got "):
        refssm.ssd_chunked([[1.0]], [0.0], [[1.0]], [[1.0]], chunk=chunk)


def test_a_parameter_is_drawn_with_the_case_and_told_with_it():
    def fixed_64(x, log_a, B, C, *, chunk):
        y = SSD_RECURRENT.reference(x, log_a, B, C)
        return y if chunk == 64 else y * np.float32(1.5)

    (line,) = results(SSD_CHUNKED, fixed_64, "value")
    assert line.verdict == "wrong"
    assert " chunk=" in line.smallest
    assert "chunk=64" not in line.smallest


def test_twice_n_is_checked_and_told():
    with pytest.raises(ValueError, match=r"`C` has 2n=1, wanted 2 for n=1 "):
        refssm.diagonal_ssm_bidirectional([0.5], [[1.0]], [[1.0]], [[0.0]], [[1.0]])
    case = ordinary_case(DIAGONAL_SSM_BIDIRECTIONAL, "float32")
    assert case.arrays[2].shape[-1] == 2 * case.sizes["n"]


def test_axes_that_an_argument_lacks_have_length_one_and_may_be_left_out_of_a_layout():
    assert str(canonical(SELECTIVE_SCAN)) == (
        "b g d l, b g d l, g d n, b g 1 l n, b g 1 l n -> b g d l"
    )
    assert str(canonical(SSD_RECURRENT)) == "b g h l p, b g h l, b g 1 l n, b g 1 l n -> b g h l p"
    text = "b l d, b l d, d n, b n l, b l n -> b l d"
    own = parse(in_layout(SELECTIVE_SCAN, text), text)
    assert own.inputs[3] == ("b", "n", "l")
    assert own.omitted == ()


def mamba_ssm_layout(u, dt, A, B, C):
    """u, dt (b, l, d), A (d, n), B and C (b, l, n): the layout of the mamba_ssm kernels."""
    u, dt = u.swapaxes(-1, -2), dt.swapaxes(-1, -2)
    return SELECTIVE_SCAN.reference(u, dt, A, B[:, None], C[:, None]).swapaxes(-1, -2)


def test_a_kernel_is_judged_in_its_own_layout_with_what_channels_share():
    layout = "b l d, b l d, d n, b l n, b l n -> b l d"
    lines = results(SELECTIVE_SCAN, mamba_ssm_layout, "value", "batch", layout=layout)
    assert [line.verdict for line in lines] == ["pass", "pass"]

    def first_batch(u, dt, A, B, C):
        return mamba_ssm_layout(u, dt, A, B[:1] + 0 * B, C)

    assert any(r.failed for r in results(SELECTIVE_SCAN, first_batch, "value", layout=layout))


@pytest.mark.long
def test_gradients_of_what_channels_share_come_back_in_that_layout():
    layout = "b l d, b l d, d n, b l n, b l n -> b l d"

    def vjp(dy, u, dt, A, B, C):
        turned = (a.swapaxes(-1, -2) for a in (dy, u, dt))
        du, ddt, dA, dB, dC = SELECTIVE_SCAN.bare_vjp(*turned, A, B[:, None], C[:, None])
        return du.swapaxes(-1, -2), ddt.swapaxes(-1, -2), dA, dB[:, 0], dC[:, 0]

    (line,) = results(SELECTIVE_SCAN, mamba_ssm_layout, "gradient", vjp=vjp, layout=layout)
    assert line.verdict == "pass"


def test_an_operator_is_not_hidden_by_the_family_of_its_name():
    program = (
        "import refssm.selective_scan, refssm\n"
        "from refssm.catalog import OPERATORS\n"
        "print(refssm.selective_scan([1.0], [2.0], [0.0], [[1.0]], [[1.0]]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert ran.stdout.strip() == "[2.]"


def test_a_last_state_has_the_batch_axes_that_only_the_outputs_see():
    C = np.ones((5, 1, 1))
    y, x = refssm.selective_scan_stateful([1.0], [1.0], [0.0], [[1.0]], C, [2.0])
    assert (y.shape, x.shape) == ((5, 1), (5, 1))
    assert x.flags.writeable


def test_a_gradient_that_is_small_beside_the_others_is_certified_too():
    args = [np.array([1.0]), np.array([1.0]), np.array([-1.0])]
    args += [np.array([[1e6]]), np.array([[1e-6]])]
    right = SELECTIVE_SCAN.bare_vjp(np.ones(1), *args)
    bounds = expect(SELECTIVE_SCAN, [np.ones(1), *args], vjp=SELECTIVE_SCAN.bare_vjp)
    assert all(compare(g, b, g.dtype).ok for g, b in zip(right, bounds, strict=True))
    off = [right[0], right[1], right[2], right[3] * (1 + 2.0**-40), right[4]]
    graded = [compare(g, b, g.dtype).ok for g, b in zip(off, bounds, strict=True)]
    assert graded == [True, True, True, False, True]


def test_a_state_lost_by_an_empty_piece_is_wrong():
    def resetting(*arrays):
        y, x = stateful(*arrays)
        return y, x if y.shape[-2] else np.zeros_like(x)

    stateful = operator_named("diagonal_ssm_stateful").reference
    for function, verdict in ((stateful, "pass"), (resetting, "wrong")):
        (line,) = judged("diagonal_ssm_stateful", function, "empty", types=("float32",))
        assert line.verdict == verdict
    assert line.message.startswith("with l=0: worst x")
