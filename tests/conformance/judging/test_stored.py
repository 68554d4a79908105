"""States stored in a type of fewer digits: what `Budget(state=…)` allows, and what it does not."""

import numpy as np
import pytest
from judging import judged

from refssm.catalog import OPERATORS, resumed
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.checks.checks import types_of
from refssm.conformance.number_types import number_type
from refssm.testing import Budget, implements

FLOAT = {"dtypes": ("float32",)}


def kept_in(name, kind, *, grows=1.0):
    """The operator step by step, in single precision, with its state stored in another type."""
    op = operator_named(name)
    resumes = resumed(op)
    assert resumes is not None
    other, digits = operator_named(resumes.name), number_type(kind)
    axes = [dims.index("l") - len(dims) if "l" in dims else None for dims in other.input_dims]
    out = other.output_dims[0].index("l") - len(other.output_dims[0])

    def program(*args, **statics):
        *arguments, state = args
        size, y = statics.get("chunk", 1), []
        steps = next(a.shape[k] for a, k in zip(arguments, axes, strict=False) if k is not None)
        for k in range(0, steps, size):
            window = slice(k, k + size)
            piece = [
                a if axis is None else a[(..., window, *(slice(None),) * (-axis - 1))]
                for a, axis in zip(arguments, axes, strict=False)
            ]
            made, state = other.reference(*piece, state, **statics)
            state = digits.rounded(grows * state.astype(float), real=state.dtype.kind == "f")
            y.append(made)
        if not y:
            return other.reference(*args, **statics)
        return np.concatenate(y, axis=out), state

    return program


NAMES = ("gated_linear_recurrence_stateful", "selective_scan_stateful", "ssd_recurrent_stateful",
         "gated_delta_rule_stateful", "mamba2_scan_stateful", "ssd_chunked_stateful")  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_state_in_bfloat16_passes_where_it_is_declared_and_nowhere_else(name):
    program = kept_in(name, "bfloat16")
    declared = {"accuracy": Budget(state="bfloat16"), **FLOAT}
    for check in ("value", "state", "split"):
        (line,) = judged(name, program, check, **declared)
        assert line.verdict == "pass", (check, line.message)
    (line,) = judged(name, program, "value", **FLOAT)
    assert line.verdict in ("wrong", "inaccurate")


RECURRENCES = [op.name for op in OPERATORS if "state" in op.traits and resumed(op) is not None]


@pytest.mark.long
@pytest.mark.parametrize("name", RECURRENCES)
def test_every_reference_passes_every_check_of_a_quick_run_with_a_stored_state(name):
    """Also without steps and without states; adapters, shared axes and complex states."""
    op = operator_named(name)
    how = {"accuracy": Budget(state="float16"), "dtypes": (types_of(op)[0],)}
    lines = judged(name, op.reference, vjp=op.bare_vjp, cases=5, **how)
    assert {line.verdict for line in lines} <= {"pass", "skipped"}, [
        (line.check, line.message) for line in lines if line.failed
    ]
    assert {"value", "empty", "repeat"} <= {line.check for line in lines}


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("grows", [1.02, 0.98])
def test_a_bug_is_not_taken_for_a_rounding_of_the_state(name, grows):
    program = kept_in(name, "bfloat16", grows=grows)
    (line,) = judged(name, program, "value", accuracy=Budget(state="bfloat16"), **FLOAT)
    assert line.verdict in ("wrong", "inaccurate")


@pytest.mark.parametrize("name", NAMES[:1])
def test_a_state_with_more_digits_passes_and_one_with_fewer_does_not(name):
    how = {"accuracy": Budget(state="float16"), **FLOAT}
    assert judged(name, kept_in(name, "tf32"), "value", **how)[0].verdict == "pass"
    assert judged(name, kept_in(name, "bfloat16"), "value", **how)[0].verdict != "pass"


def test_gradients_from_stored_states_pass_where_they_are_declared():
    op, digits = operator_named("gated_linear_recurrence_stateful"), number_type("bfloat16")
    name = op.name
    forward = kept_in(name, "bfloat16")

    def back(dy, dS, q, k, v, log_g, S):
        steps, kept = q.shape[-2], [S]
        for t in range(steps):
            now = slice(t, t + 1)
            piece = [a[..., now, :] for a in (q, k, v, log_g)]
            _, S = op.reference(*piece, S)
            kept.append(digits.rounded(S.astype(float), real=True))
        found = []
        for t in range(steps - 1, -1, -1):
            now = slice(t, t + 1)
            piece = [a[..., now, :] for a in (q, k, v, log_g)]
            *own, dS = op.bare_vjp(dy[..., now, :], dS, *piece, kept[t])
            dS = digits.rounded(dS.astype(float), real=True)
            found.insert(0, own)
        return *(np.concatenate(part, axis=-2) for part in zip(*found, strict=True)), dS

    how = {"vjp": back, "profile": "default", "cases": 8, **FLOAT}
    (line,) = judged(name, forward, "gradient", accuracy=Budget(state="bfloat16"), **how)
    assert line.verdict == "pass", line.message
    (line,) = judged(name, forward, "gradient", **how)
    assert line.verdict != "pass"


def test_a_type_that_no_state_has_and_an_operator_without_states_are_one_sentence():
    with pytest.raises(ValueError, match="unknown type of a state 'int8'"):
        Budget(state="int8")
    for name in ("cauchy_kernel", "s5_layer"):
        with pytest.raises(ValueError, match=f"{name} is no recurrence with a form that starts"):
            implements(name, accuracy=Budget(state="bfloat16"))
