"""Every mirror on the GPU is right at a length of many chunks, and no multiple of one."""

import pytest
from kernel_judging import MIRRORED

from refssm.bench.work.sizes import QUADRATIC
from refssm.conformance.calling.finding import find
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.ranges import parse
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import types_of
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

LENGTH = 5003
CASES = 2  # the first one is simple, the second one random
LONG = [op for op in MIRRORED if "l" in core_dims(op) and op.name not in QUADRATIC]


@pytest.mark.long
@pytest.mark.parametrize("op", LONG, ids=str)
def test_values_and_gradients_have_grade_a(op):
    module = op.implementation("gpu").__module__
    (mirror,) = (f for f in find(f"{module}::{op.name}") if f.op.form == op.form)
    limits = (f"l={LENGTH}..{LENGTH}",)
    single = tuple(t for t in types_of(op) if t in ("float32", "complex64"))[-1:]
    settings = Settings(
        cases=CASES, types=single, only_checks=("value", "gradient"), where=parse(limits, (op,)),
        limits=limits, folder=None, shrink=False, hints=False,
    )  # fmt: skip
    results = list(results_of(Session(InProcess([mirror]), "here", settings)))
    assert {r.check for r in results} == {"value", "gradient"}
    assert [(r.check, r.dtype, r.grade) for r in results if r.grade != "A"] == []
