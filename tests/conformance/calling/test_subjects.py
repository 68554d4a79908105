"""Libraries as subjects, and declarations with `implements`."""

import numpy as np
import pytest

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import every
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs
from refssm.conformance.running.first_calls import first_calls
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN
from refssm.subjects.libraries import NAMES, target
from refssm.testing import implements

SCIPY = [found for place in target("scipy") for _, found in every(place)]


def test_scipy_stands_for_six_operators_some_of_them_twice():
    names = sorted(found.op.name for found in SCIPY)
    assert names == [
        "causal_convolution",
        "causal_convolution",
        "causal_convolution_direct",
        "discretize_bilinear",
        "discretize_zoh",
        "discretize_zoh",
        "linear_scan",
        "linear_scan",
        "linear_scan_from",
    ]
    assert NAMES[:6] == ("jit", "scipy", "jax", "torch", "accelerated-scan", "mambapy")


@pytest.mark.parametrize("found", SCIPY, ids=lambda f: f.forward.__name__)
def test_scipy_is_right_on_an_ordinary_case_of_each_type_it_is_for(found):
    for dtype in found.declared.dtypes or ("float32", "float64", "complex64", "complex128"):
        case = ordinary_case(found.op, dtype)
        candidate = Candidate(found.op, InProcess([found]), found.offer)
        assert first_calls(candidate, {dtype: case}).refused == {dtype: ""}
        arrays, statics = candidate.given(case)
        y = candidate.results(arrays, statics)
        assert grade_outputs(found.op, arrays, y, expect(found.op, arrays, statics)).ok


def declared(dtypes, **settings):
    """The results of a right scan that declares its types."""

    @implements("linear_scan", dtypes=dtypes)
    def scan(a, b):
        assert np.result_type(a, b).name in dtypes
        return LINEAR_SCAN.reference(a, b)

    found = Found(LINEAR_SCAN, scan, None, declared=scan.__refssm__)
    session = Session(
        InProcess([found]), "here", Settings(folder=None, only_checks=("value",), **settings)
    )
    return list(results_of(session))


@pytest.mark.long
def test_a_function_is_judged_in_the_types_it_declares():
    results = declared(("float64", "complex128"))
    assert [(r.dtype, r.verdict) for r in results] == [("float64", "pass"), ("complex128", "pass")]
    assert [r.dtype for r in declared(("complex128",), profile="quick")] == ["complex128"]


def test_asking_for_another_type_than_declared_is_a_skip_that_says_so():
    (result,) = declared(("float64",), types=("float32",))
    assert (result.verdict, result.message) == ("skipped", "declared only for float64")


def test_a_type_that_nobody_judges_cannot_be_declared():
    with pytest.raises(
        ValueError,
        match=r"^implements: unknown type 'float8'; did you mean float64\? wanted one of float32",
    ):
        implements("linear_scan", dtypes=("float8",))
