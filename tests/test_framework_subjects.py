"""Libraries of JAX and PyTorch as subjects: right on an ordinary case, gradients too."""

import numpy as np
import pytest

from refssm.conformance.candidate import Candidate
from refssm.conformance.cases import ordinary_case
from refssm.conformance.plugin import find
from refssm.conformance.subjects import absent, target
from refssm.conformance.worker import InProcess

SUBJECTS = [(n, t) for n in ("jax", "torch", "accelerated-scan", "mambapy") for t in target(n)]
WRONG = {("mambapy_pscan", "complex64"), ("mambapy_pscan", "complex128")}  # docs/findings.md


def implementations(subject, module):
    """What a file of a subject holds; a skip where the library is not installed."""
    if absent(subject):
        pytest.skip(absent(subject))
    return find(module)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize(
    ("subject", "module"), SUBJECTS, ids=[t.split(".")[-1] for _, t in SUBJECTS]
)
def test_a_library_is_right_on_an_ordinary_case(subject, module, dtype):
    for found in implementations(subject, module):
        candidate = Candidate(found.op, InProcess([found]), found.offer)
        case = ordinary_case(found.op, dtype)
        assert candidate.probe({dtype: case}) == {dtype: ""}
        candidate = candidate.judged_in(dtype)
        assert candidate.value(case.arrays, case.statics).verdict == "pass"
        assert candidate.has_vjp
        shapes, types = found.op.output_shapes(*case.arrays), found.op.output_types(*case.arrays)
        ones = [np.ones(s, t) for s, t in zip(shapes, types, strict=True)]
        verdict = candidate.gradient(ones, case.arrays, case.statics).verdict
        assert verdict == ("wrong" if (module.split(".")[-1], dtype) in WRONG else "pass")


@pytest.mark.parametrize("subject", ["jax", "torch", "accelerated-scan", "mambapy"])
def test_a_library_that_is_not_installed_is_told_with_how_to_get_it(subject, monkeypatch):
    monkeypatch.setattr("refssm.conformance.subjects.find_spec", lambda name: None)
    module = subject.replace("-", "_")
    assert absent(subject) == f"{module} is not installed: pip install {subject}"
    assert absent("jit") == ""


def test_one_step_is_declined_where_the_library_cannot():
    (found,) = implementations("accelerated-scan", target("accelerated-scan")[0])
    candidate = Candidate(found.op, InProcess([found]), found.offer)
    ones = [np.ones((2, 1, 3), np.float32)] * 2
    assert candidate.outcome(ones, {}).status == "declined"
    ones = [np.ones((2, 2, 3), np.float32)] * 2
    assert candidate.outcome(ones, {}).status == "ok"
