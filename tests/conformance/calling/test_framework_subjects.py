"""JAX and PyTorch libraries as subjects: right in an ordinary case, with gradients."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.finding import every
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import gradient_at, value_at
from refssm.conformance.running.first_calls import first_calls
from refssm.subjects.clones import CLONES
from refssm.subjects.libraries import MODULES, NEEDS, absent, target

LIBRARIES = [n for n in MODULES if n != "scipy" and n not in CLONES]
SUBJECTS = [(n, t) for n in LIBRARIES for t in target(n)]
# see docs/findings.md
WRONG_GRADIENTS = {
    ("mambapy", "linear_scan", "complex64"): "wrong",
    ("mambapy", "linear_scan", "complex128"): "wrong",
    ("s5_pytorch", "discretize_diagonal_zoh", "float32"): "inaccurate",
    ("s5_pytorch", "discretize_diagonal_zoh", "float64"): "inaccurate",
    ("s5_pytorch", "discretize_diagonal_zoh", "complex128"): "inaccurate",
    ("s5_pytorch", "s5_layer", "complex64"): "inaccurate",  # through the same rule
    ("jax_kernels", "dplr_resolvents", "float32"): "inaccurate",
    ("lrnnx", "discretize_diagonal_zoh", "float32"): "inaccurate",
    ("lrnnx", "discretize_diagonal_zoh", "float64"): "inaccurate",
    ("lrnnx", "discretize_diagonal_zoh", "complex128"): "inaccurate",
}
WRONG_VALUES = {("lrnnx", "discretize_diagonal_bilinear"): "wrong"}
WITHOUT_GRADIENTS = {"control"}
ALSO = dict.fromkeys(("gramians", "gramians_discrete", "hankel_singular_values"), "slycot")
# the library writes the state in place, which autograd rejects
STEPPED = {"selective_step", "mamba_step", "mamba2_step", "ssd_step"}
STEPPED |= {"short_convolution_step", "short_convolution_stateful", "mamba_layer_stateful"}


def implementations(subject, module):
    """The implementations in a subject's file by name; skips if the library is not installed."""
    if absent(subject):
        pytest.skip(absent(subject))
    with warnings.catch_warnings():  # warnings of the library, at import
        warnings.simplefilter("ignore")
        return {place.rpartition("::")[2]: found for place, found in every(module)}


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "complex128"])
@pytest.mark.parametrize(
    ("subject", "module"), SUBJECTS, ids=[t.split(".")[-1] for _, t in SUBJECTS]
)
def test_a_library_is_right_on_an_ordinary_case(subject, module, dtype):
    lacking = set()
    for name, found in implementations(subject, module).items():
        if dtype not in (found.offer.dtypes or (dtype,)):
            continue
        op, file = found.op, module.split(".")[-1]
        if op.name in ALSO and find_spec(ALSO[op.name]) is None:
            lacking.add(ALSO[op.name])
            continue
        candidate = Candidate(op, InProcess([found]), found.offer)
        case = ordinary_case(op, dtype)
        assert first_calls(candidate, {dtype: case}).refused == {dtype: ""}
        candidate = candidate.judged_in(dtype)
        arrays, statics = candidate.given(case)
        verdict = value_at(candidate, arrays, statics).verdict
        assert verdict == WRONG_VALUES.get((file, name), "pass")
        assert candidate.has_vjp or op.name in STEPPED or subject in WITHOUT_GRADIENTS
        if candidate.has_vjp and verdict == "pass":
            shapes, types = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
            ones = [np.ones(s, t) for s, t in zip(shapes, types, strict=True)]
            verdict = gradient_at(candidate, ones, arrays, statics).verdict
            assert verdict == WRONG_GRADIENTS.get((file, name, dtype), "pass")
    if lacking:
        pytest.skip(f"all but what needs {', '.join(lacking)}: pip install it")


@pytest.mark.parametrize("subject", LIBRARIES)
def test_a_library_that_is_not_installed_is_told_with_how_to_get_it(subject, monkeypatch):
    monkeypatch.setattr("refssm.subjects.libraries.find_spec", lambda name: None)
    module = NEEDS.get(subject, subject)
    assert absent(subject) == f"{module} is not installed: pip install {subject}"
    assert absent("jit") == ""


def test_one_step_is_declined_where_the_library_cannot():
    (found,) = implementations("accelerated-scan", target("accelerated-scan")[0]).values()
    candidate = Candidate(found.op, InProcess([found]), found.offer)
    ones = [np.ones((2, 1, 3), np.float32)] * 2
    assert candidate.outcome(ones, {}).status == "declined"
    ones = [np.ones((2, 2, 3), np.float32)] * 2
    assert candidate.outcome(ones, {}).status == "ok"


@pytest.mark.parametrize("subject", ["jax", "torch"])
def test_every_operator_of_the_benchmark_has_a_peer(subject):
    names = {
        found.op.name
        for module in target(subject)
        for found in implementations(subject, module).values()
    }
    assert names >= {
        "vandermonde_kernel_real",
        "resolvent_at_roots",
        "cauchy_kernel",
        "dplr_kernel",
        "dplr_kernel_aliased",
        "linear_scan",
        "selective_scan",
        "mamba_scan",
        "ssd_chunked",
        "short_convolution",
        "causal_convolution",
        "hope_transfer",
    }


def test_resolvents_decline_a_mode_that_does_not_decay():
    found = implementations("jax", "refssm.subjects.jax_kernels")["dplr_resolvents"]
    case = {"w": np.array([[-0.5 + 3j, -1.0]])}
    only = found.declared.only
    assert only is not None
    assert only(case) is case
    assert only({"w": np.array([[-0.5, 0.0]])}) is None
