"""A recurrence is declared once: what follows from it."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.scan.dense import DENSE_VARYING
from refssm.scan.linear import LINEAR
from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.mamba2 import MAMBA2
from refssm.ssd.recurrent import SSD

ALL = (LINEAR, SELECTIVE, MAMBA, SSD, CHUNKED, MAMBA2, DENSE_VARYING)
STEPS = (LINEAR, SELECTIVE, MAMBA, SSD, MAMBA2, DENSE_VARYING)
WRITTEN = [(op, recurrence) for recurrence in ALL for op in recurrence.operators]


def _endings(recurrence):
    return [op.name.removeprefix(recurrence.name) for op in recurrence.operators]


def test_an_operator_follows_for_each_form_with_tags_and_the_step_where_it_is_declared():
    both = ["", "_stateful", "_packed", "_packed_stateful", "_states"]
    assert _endings(LINEAR) == [
        "", "_from", "_packed", "_packed_from", "_reversed", "linear_step"
    ]  # fmt: skip
    assert _endings(MAMBA) == [*both, "_reversed", "mamba_step"]
    assert _endings(CHUNKED) == both
    assert _endings(MAMBA2) == [*both, "mamba2_step"]
    assert _endings(DENSE_VARYING) == ["", "_from", "_packed", "dense_step"]


def test_signatures_add_the_state_or_the_resets_and_a_step_loses_the_time():
    assert [op.signature for op in SSD.operators] == [
        "(l,p),(l),(l,n),(l,n)->(l,p)",
        "(l,p),(l),(l,n),(l,n),(p,n)->(l,p),(p,n)",
        "(l,p),(l),(l,n),(l,n),(l)->(l,p)",
        "(l,p),(l),(l,n),(l,n),(m,p,n),(m)->(l,p),(m,p,n)",
        "(l,p),(l),(l,n),(l,n),(p,n),(m)->(l,p),(m,p,n)",
        "(l,p),(l),(l,n),(l,n)->(l,p)",
        "(p),(),(n),(n),(p,n)->(p),(p,n)",
    ]
    assert [op.signature for op in LINEAR.operators] == [
        "(l,n),(l,n)->(l,n)",
        "(l,n),(l,n),(n)->(l,n)",
        "(l,n),(l,n),(l)->(l,n)",
        "(l,n),(l,n),(m,n),(m)->(l,n)",
        "(l,n),(l,n)->(l,n)",
        "(n),(n),(n)->(n)",
    ]


def test_linearity_is_together_with_the_state_or_of_one_output():
    plain, stateful, packed, sequences, at_places, reverse, step = (
        op.traits for op in MAMBA.operators
    )
    assert plain == {"causal", "state", "linear:u", "linear:B,D", "linear:C,D"}
    assert stateful == {"causal", "state", "linear:u,x0", "linear:C,D->y"}
    assert packed == plain - {"state"}
    assert sequences == at_places == stateful - {"state"}
    assert reverse == plain - {"state", "causal"} | {"anticausal"}
    assert step == {"linear:u,x", "linear:C,D->y"}


@pytest.mark.parametrize(("op", "recurrence"), WRITTEN, ids=lambda x: getattr(x, "name", ""))
def test_each_form_has_its_own_docstring_with_signature_source_and_example(op, recurrence):
    doc = op.reference.__doc__
    assert f"``{op.signature}``" in doc
    assert f"[{op.citation}]" in " ".join(doc.split())
    assert f">>> refssm.{op.name}(" in doc or f"refssm.{op.name}(" in doc
    assert "{" not in re.sub(r"[_^]\{[^}]*\}|\{y\[0\]:\.6f\}", "", doc)  # no place is left open
    assert [*inspect.signature(op.reference).parameters] == [*op.inputs, *op.static]
    vjp = inspect.signature(op.bare_vjp).parameters
    assert [*vjp] == [*(f"d{y}" for y in op.outputs), *op.inputs, *op.static]


def test_a_keyword_has_the_default_of_run_or_of_the_step_in_every_form_and_role():
    for op in MAMBA2.operators:
        assert op.defaults == {"dt_min": 0.0, "dt_max": np.inf}
        for function in (op.vjp(), op.implementation("jit"), op.vjp("jit")):
            keywords = inspect.signature(function).parameters
            assert (keywords["dt_min"].default, keywords["dt_max"].default) == (0.0, np.inf)
    assert not any(op.defaults for op in CHUNKED.operators)


def test_by_steps_a_keyword_reaches_the_step_and_chunk_does_not():
    from refssm.conformance.cases.case import ordinary_case

    assert MAMBA2.step is not None
    stateful, limits = MAMBA2.operators[1], {"dt_min": 0.25, "dt_max": 0.5}
    *arrays, S0 = ordinary_case(stateful, "float64").arrays
    by_steps = MAMBA2.by_steps(*MAMBA2.step)
    wanted = stateful.reference(*arrays, S0, **limits)
    for one, other in zip(by_steps.run(arrays, S0, None, chunk=4, **limits), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    cotangents = tuple(map(np.ones_like, wanted))
    told = by_steps.back(cotangents, arrays, S0, None, chunk=4, **limits)
    gradients = stateful.bare_vjp(*cotangents, *arrays, S0, **limits)
    for one, other, a in zip(told, gradients, (*arrays, S0), strict=True):
        np.testing.assert_allclose(one.reshape(a.shape), other, rtol=1e-11, atol=1e-11)


def test_a_formula_that_does_not_end_from_rest_is_refused():
    wrong = replace(LINEAR, doc="x_k = a_k x_{k-1} + b_k.\n\nSignature …")
    with pytest.raises(AssertionError, match=r"linear_scan: its formula ends with 'from rest\.'"):
        _ = wrong.operators


def test_nan_in_the_decay_at_a_reset_does_not_reach_the_new_sequence():
    a = np.array([[0.5], [np.nan], [0.5]])
    x = refssm.linear_scan_packed(a, np.ones((3, 1)), [False, True, False])
    assert x.ravel().tolist() == [1.0, 1.0, 1.5]


@pytest.mark.parametrize("recurrence", STEPS, ids=lambda r: r.name)
def test_the_step_by_a_scan_of_length_1_is_the_step_by_hand(recurrence):
    from refssm.conformance.cases.case import ordinary_case

    step = recurrence.operators[-1]
    made = recurrence._step_by_scan(recurrence.run, recurrence.back)
    arrays = ordinary_case(step, "float64").arrays
    wanted, got = step.reference(*arrays), made.forward(*arrays)
    pairs = zip(wanted, got, strict=True) if isinstance(wanted, tuple) else [(wanted, got)]
    for one, other in pairs:
        np.testing.assert_array_almost_equal_nulp(one, other, nulp=4)
