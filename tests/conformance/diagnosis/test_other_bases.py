"""A bug in another basis than the reference's gets its name, and rounding does not."""

import numpy as np
import pytest
from selftest import naming_rate as naming

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.judging.expected import remembering
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration

LEGS = operator_named("nplr_legs")


def in_another_basis(op, *, n, **sizes):
    """The modes in another order, and other phases of the vectors."""
    w, P, B, V = op.reference(n=n, **sizes)
    i, phase = np.random.default_rng(n).permutation(n), np.exp(1j * np.arange(n))
    return w[i], phase.conj()[:, None] * P[i], phase.conj() * B[i], V[:, i] * phase


def judged(change, op=LEGS, **declared):
    """The result of `value`, where `change` is made to (w, P, B, V) in the other basis."""
    told = Declaration(op.name, **declared)
    found = Found(op, lambda **sizes: change(*in_another_basis(op, **sizes)), None, declared=told)
    asked = Settings(only_checks=("value",), shrink=False, folder=None, diagnose=True)
    with remembering():
        (line,) = results_of(Session(InProcess([found]), "here", asked))
    return line


def test_the_other_basis_is_right():
    assert not judged(lambda w, P, B, V: (w, P, B, V)).failed


BUGS = {
    "Vᵀ for V": lambda w, P, B, V: (w, P, B, V.T),
    "V* for V": lambda w, P, B, V: (w, P, B, V.conj()),
    "columns of V one on": lambda w, P, B, V: (w, P, B, np.roll(V, 1, 1)),
    "P in the original basis": lambda w, P, B, V: (w, V @ P, B, V),
    "B in the original basis": lambda w, P, B, V: (w, P, V @ B, V),
    "vectors with a largest entry of 1": lambda w, P, B, V: (w, P, B, V / np.abs(V).max(0)),
}


@pytest.mark.parametrize("what", BUGS)
def test_a_bug_in_another_basis_has_its_name(what):
    told = judged(BUGS[what]).looks_like
    assert what in told
    assert "put into the right outputs in their basis, it gives these in" in told


def test_what_no_bug_does_has_no_name():
    line = judged(lambda w, P, B, V: (w, P, B + 0.25 * np.roll(B, 1), V))
    assert line.failed
    assert line.looks_like == ""


def test_single_precision_is_told_by_its_errors_and_by_its_type():
    def rounded(*outputs):
        return tuple(x.astype(np.complex64).astype(complex) for x in outputs)

    assert "float32 (24 bits)" in judged(rounded).looks_like
    narrow = judged(lambda *outputs: tuple(x.astype(np.complex64) for x in outputs)).looks_like
    assert narrow.startswith("single precision returned")


def test_what_is_declared_in_single_precision_may_return_it():
    def wrong(w, P, B, V):
        return tuple(x.astype(np.complex64) for x in (w, P, B + 0.25 * np.roll(B, 1), V))

    line = judged(wrong, dtypes=("complex64",))
    assert line.failed
    assert "single" not in line.looks_like


def test_one_failing_case_is_too_few_for_a_precision():
    line = judged(lambda w, P, B, V: (w, P, B * (1 + 3e-8 * (len(w) == 5)), V))
    assert line.failed
    assert line.looks_like == ""


@pytest.mark.parametrize(
    "name",
    ["nplr_legs", "nplr_legt", "nplr_lagt", "nplr_fourier", "nplr_fourier_naive", "block_diagonal"],
)
def test_outputs_of_too_few_bits_have_no_bugs_name(name):
    told = [naming.named(d) for d in naming.inaccurate(operator_named(name))]
    assert told
    assert [(n.bug, n.told) for n in told if n.named or "put into" in n.told] == []
