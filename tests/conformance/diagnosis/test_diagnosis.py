"""Diagnosis of a failure: the planted bug with the same outputs, else the error pattern."""

import warnings

import numpy as np
import pytest
from judging import plugin, rounded_to, run, scan
from selftest import naming_rate as naming

from refssm import diagonal_kernel_zoh, discretize_euler
from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.judging.expected import remembering
from refssm.conformance.planted import planted_bugs
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Budget, Declaration

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


def looks_like(*of, **how):
    """The diagnosis for one implementation that fails one check."""
    return failure(*of, **how).looks_like


def failure(name, function, check="value", dtype="float32", vjp=None, wider=(), **declared):
    """The result of one implementation that fails one check."""
    found = Found(operator_named(name), function, vjp, declared=Declaration(name, **declared))
    how = {"only_checks": (check,), "types": (dtype, *wider), "shrink": False, "folder": None}
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "here", Settings(diagnose=True, **how)))
    assert line.failed, line
    return line


def associative(a, b):
    """Hillis and Steele's scan: the same products in another order."""
    a, x = np.broadcast_arrays(a, b)
    a, x, step = a.copy(), x.astype(np.result_type(a, b)), 1
    while step < x.shape[-2]:
        x[..., step:, :] = a[..., step:, :] * x[..., :-step, :] + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
        step *= 2
    return x


def in_blocks(size, carry):
    """A blocked scan: the associative scan in each block, and a carry between blocks."""

    def blocked(a, b):
        parts, before = [], 0
        for k in range(0, max(b.shape[-2], 1), size):
            here, driven = a[..., k : k + size, :], b[..., k : k + size, :].copy()
            if driven.shape[-2]:
                driven[..., 0, :] += here[..., 0, :] * carry(before)
            x = associative(here, driven)
            parts.append(x)
            before = x[..., -1, :] if x.shape[-2] else before
        return np.concatenate(parts, -2)

    return blocked


WRITTEN_ANOTHER_WAY = {
    "the carry lost": (in_blocks(64, lambda x: 0 * x), "the carry lost at chunks of 64"),
    "in a wider type": (
        lambda a, b: in_blocks(64, lambda x: 0 * x)(a, b).astype(np.float64),
        "the carry lost at chunks of 64",
    ),
    "a decay too late": (
        lambda a, b: associative(np.roll(a, 1, -2), b),
        "a_{k-1} in place of a_k",
    ),
    "from the end": (
        lambda a, b: associative(a[..., ::-1, :], b[..., ::-1, :])[..., ::-1, :],
        "scanned from the end",
    ),
    "one step too early": (
        lambda a, b: np.concatenate([0 * b[..., :1, :], associative(a, b)[..., :-1, :]], -2),
        "x_{k-1} returned for x_k",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "what"), WRITTEN_ANOTHER_WAY.values(), ids=WRITTEN_ANOTHER_WAY
)
def test_a_mistake_in_a_program_written_another_way_is_named(function, what):
    assert looks_like("linear_scan", function).startswith(
        f"{what}: this known bug, put into the reference"
    )


def euler_for_zoh(w, B, dt):
    """Mamba's rule instead of zero-order hold; in higher precision, entry by entry."""
    wide = np.exp(dt.astype(complex) * w.astype(complex))
    return wide.astype(np.result_type(w, dt)), (B.T * dt.T).T if B.ndim == 2 else dt[..., None] * B


def test_mambas_rule_is_named_where_zero_order_hold_is_wanted():
    op = operator_named("discretize_diagonal_zoh")
    told = looks_like(op.name, euler_for_zoh, dtype="complex64")
    assert told.startswith("Euler for ZOH: B̄ = dt B"), told


@pytest.mark.long
def test_a_wrong_gradient_is_named():
    def conjugate_forgotten(dx, a, b):
        later = np.concatenate([a[..., 1:, :], 0 * a[..., :1, :]], -2)  # not conjugated
        g = associative(later[..., ::-1, :], dx[..., ::-1, :])[..., ::-1, :]
        x = associative(a, b)
        before = np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], -2)
        return unbroadcast(before.conj() * g, a), unbroadcast(g, b)

    told = looks_like("linear_scan", scan, "gradient", "complex64", vjp=conjugate_forgotten)
    assert told.startswith("a for a* in the adjoint: this known bug"), told


INACCURATE = {
    "18 bits": lambda a, b: rounded_to(18, associative(a, b)),
    "noise": lambda a, b: associative(a, b) * (1 + 2e-5 * np.cos(np.arange(b.shape[-1]))),
    "arguments in 17 bits": lambda a, b: associative(rounded_to(17, a), rounded_to(17, b)),
}


@pytest.mark.parametrize("function", INACCURATE.values(), ids=INACCURATE)
def test_an_honest_program_of_too_few_bits_gets_no_bugs_name(function):
    def typed(a, b):
        return function(a, b).astype(np.result_type(a, b))

    told = looks_like("linear_scan", typed, accuracy=Budget(C=1))
    assert "planted" not in told
    assert not told.startswith("the state passed")


def test_single_precision_inside_is_told_by_its_bits():
    def narrow(a, b):
        return associative(a.astype("f"), b.astype("f")).astype(np.result_type(a, b))

    told = looks_like("linear_scan", narrow, dtype="float64")
    assert "float32" in told or "single precision" in told


# few roundings away the same error returns; the error is above its bound, or far below it
@pytest.mark.parametrize(
    "name",
    ["discretize_diagonal_zoh", *(pytest.param(op, marks=pytest.mark.long) for op in
                                  ("ssd_step", "dense_scan", "hankel_singular_values"))],
)  # fmt: skip
def test_single_precision_inside_another_program_is_told(name):
    (bug,) = (d for d in naming.replanted(operator_named(name)) if d.name == "single_inside")
    assert naming.named(bug).first


@pytest.mark.long
def test_few_bits_in_every_type_are_not_called_a_wrong_formula():
    def few(a, b):
        return rounded_to(8, associative(rounded_to(8, a), b)).astype(b.dtype)

    told = failure("linear_scan", few, wider=("float64",))
    assert "bfloat16" in told.looks_like
    assert told.hint == "equally wrong in float64"
    twice = failure("linear_scan", lambda a, b: 2 * associative(a, b), wider=("float64",))
    assert twice.hint == "equally wrong in float64: the formula is wrong, this is not rounding"


def spoiled(change):
    """The right states, changed by `change`."""

    def program(a, b):
        x = associative(a, b)
        return change(x).astype(x.dtype)

    return program


def tail(x):
    """Wrong after the last whole block of 32."""
    late = np.arange(x.shape[-2])[:, None] >= x.shape[-2] // 32 * 32
    return np.where(late & (x.shape[-2] > 32), x * 1.5 + 0.1, x)


PATTERNS = {
    "a factor": (spoiled(lambda x: 3 * x), "every entry is 3 times the right value"),
    "twice": (spoiled(lambda x: 2 * x), "every entry is twice the right value"),
    "minus": (spoiled(lambda x: -x), "every entry is minus the right value"),
    "one percent": (spoiled(lambda x: 1.01 * x), "every entry is 1.01 times the right value"),
    "a tail": (spoiled(tail), "only the steps after the last whole block of 32 are wrong"),
    "blocks of 48": (in_blocks(48, lambda x: 0 * x), "from one block of 48 to the next"),
    "one step": (
        spoiled(lambda x: x + (np.arange(x.shape[-2]) >= 17)[:, None]),
        "the first wrong step is step 17, whatever the length",
    ),
    "the first channel": (
        spoiled(lambda x: np.where(np.arange(x.shape[-1]) == 0, x, x + 1)),
        "all entries of axis n but the first are wrong",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("function", "what"), PATTERNS.values(), ids=PATTERNS)
def test_what_no_planted_bug_explains_is_told_by_its_pattern(function, what):
    told = looks_like("linear_scan", function)
    assert what in told or told.startswith(BUGS), told


# the same mistake, for operators with such a planted bug
BUGS = tuple(d.what for d in planted_bugs() if d.op == "linear_scan")


def one_later(w, B, C, dt, *, l):
    """K_{k+1} instead of K_k: wrong by a few percent if step sizes are small."""
    return diagonal_kernel_zoh(w, B, C, dt, l=l + 1)[..., 1:]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_wrong_formula_is_not_called_rounding_of_fewer_bits(dtype):
    assert "bits" not in looks_like("diagonal_kernel_zoh", one_later, dtype=dtype)


def test_nobody_is_shown_the_warnings_of_planted_bugs():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert looks_like("diagonal_kernel_zoh", one_later) is not None
    assert [str(w.message) for w in told] == []


@pytest.mark.parametrize("length", [0, 40], ids=["always", "from 40 steps on"])
def test_a_mistake_that_raises_is_no_planted_bug_that_does(length):
    def mistaken(a, b):
        return associative(a, b) if b.shape[-2] < length else nowhere(a, b)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    assert looks_like("linear_scan", mistaken) == ""


def test_an_answer_that_changes_is_told_as_such():
    calls = [0]

    def unsteady(a, b):
        calls[0] += 1
        return associative(a, b) + np.float32(calls[0] % 2)

    told = looks_like("linear_scan", unsteady, "repeat")
    assert "the same call gives different outputs" in told or "depends on the call" in told


@pytest.mark.long
@pytest.mark.parametrize("name", ["discretize_foh", "gramians_discrete"])
def test_noise_that_is_the_same_in_every_call_does_not_depend_on_the_call(name):
    rough = [naming.named(d) for d in naming.inaccurate(operator_named(name))]
    assert any(n.caught for n in rough)
    assert not [n.told for n in rough if "depends on the call" in n.told]


NEAR_A_BUG = [  # honest, but by chance with the same error as a planted bug
    ("discretize_diagonal_zoh", "inaccurate_noise"),
    ("mamba_scan", "inaccurate_arguments"),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "program"), NEAR_A_BUG)
def test_an_honest_program_no_nearer_to_a_bug_than_to_the_truth_gets_no_bugs_name(name, program):
    rough = [d for d in naming.inaccurate(operator_named(name)) if d.name == program]
    told = [naming.named(d) for d in rough]
    assert [n.caught for n in told] == [True]
    assert not told[0].named, told[0].told


def test_outputs_in_another_order_are_named_though_they_have_no_distance():
    def swapped(A, B, dt):
        return discretize_euler(A, B, dt)[::-1]

    assert looks_like("discretize_euler", swapped).startswith("Ā after B̄: this known bug")


@pytest.mark.long
def test_the_command_says_what_a_failure_looks_like(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = "import numpy as np\ndef linear_scan(a, b):\n    x = np.zeros(b.shape, a.dtype)\n"
    text += "    for k in range(b.shape[-2]):\n        c = a[..., k, :] * (k % 64 > 0)\n"
    text += "        x[..., k, :] = c * x[..., k - 1, :] + b[..., k, :]\n    return x\n"
    result, out, _ = run(capfd, "verify", plugin(tmp_path, text), "--dtype", "float32")
    assert result == 1
    assert "  looks like: the carry lost at chunks of 64" in out
