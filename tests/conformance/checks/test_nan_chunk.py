"""NaN within a chunk of a scan that multiplies masked matrices: declared it is a note."""

import numpy as np
import pytest
from judging import judged, run

import refssm
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.special_values import IN_BLOCK
from refssm.conformance.judging.result import SPREADS
from refssm.conformance.report.lines import header
from refssm.conformance.report.verdict import verdict_of
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration, implements

CHUNK = 8


def spread(function, axis, order=1):
    """The function; earlier outputs of a chunk have 0 times its later inputs, by a masked product.

    `axis` is the time axis of inputs and outputs, from their ends.
    """

    def masked(*arrays):
        y = np.moveaxis(function(*arrays).copy(), axis, 0)[::order]
        u = np.moveaxis(arrays[-1] if axis == -2 else arrays[0], axis, 0)[::order]
        for start in range(0, len(y), CHUNK):
            chunk = slice(start, start + CHUNK)
            later = np.cumsum(0 * u[chunk][::-1], 0)[::-1][1:]
            y[chunk][:-1] += later
        return np.ascontiguousarray(np.moveaxis(y[::order], 0, axis))

    return masked


SCANS = {
    "linear_scan": spread(refssm.linear_scan, -2),
    "linear_scan_reversed": spread(refssm.linear_scan_reversed, -2, -1),
    "selective_scan": spread(refssm.selective_scan, -1),
    "mamba_scan": spread(refssm.mamba_scan, -1),
}
FLOAT = {"types": ("float32",), "profile": "default"}


@pytest.mark.long
@pytest.mark.parametrize("name", SCANS)
def test_a_declared_chunk_passes_with_a_note(name):
    (line,) = judged(name, SCANS[name], "nan", nan_chunk=CHUNK, **FLOAT)
    assert line.verdict == "pass"
    assert IN_BLOCK in line.notes


@pytest.mark.parametrize("declared", [0, 1, CHUNK // 2, CHUNK + 1])
def test_without_the_right_chunk_it_is_wrong(declared):
    (line,) = judged("linear_scan", SCANS["linear_scan"], "nan", nan_chunk=declared, **FLOAT)
    assert line.verdict == "wrong"


def told(name, function):
    """The results of two checks as the command has them, and the verdict of the run."""
    found = Found(operator_named(name), function, None, declared=Declaration(name))
    asked = Settings(only_checks=("nan", "value"), types=("float32",), cases=10, diagnose=True,
                     folder=None)  # fmt: skip
    results = list(results_of(Session(InProcess([found]), "here", asked)))
    return {r.check: r for r in results}, verdict_of(results)


@pytest.mark.long
@pytest.mark.parametrize("name", SCANS)
def test_an_undeclared_chunk_is_told_in_one_line_and_how_to_declare_it(name):
    results, verdict = told(name, SCANS[name])
    assert results["value"].verdict == "pass"
    assert results["nan"].looks_like == SPREADS
    assert "declare nan_chunk=64" in results["nan"].hint
    assert verdict.line == f"WRONG: {name} (here): right on finite inputs; {SPREADS}"


@pytest.mark.long
def test_nothing_is_right_on_finite_inputs_where_another_check_fails():
    def doubled(a, b):
        return 2 * SCANS["linear_scan"](a, b)

    _, verdict = told("linear_scan", doubled)
    assert "right on finite inputs" not in verdict.line


def test_a_number_in_place_of_nan_is_wrong_in_a_declared_chunk_too():
    def without(a, b):
        return refssm.linear_scan(a, np.nan_to_num(b))

    (line,) = judged("linear_scan", without, "nan", nan_chunk=CHUNK, **FLOAT)
    assert line.verdict == "wrong"


@pytest.mark.parametrize("value", [-1, 2.0, "64", True])
def test_a_chunk_that_is_no_number_of_steps_is_refused(value):
    with pytest.raises(ValueError, match="`nan_chunk` must be a number of steps"):
        implements("linear_scan", nan_chunk=value)


def test_the_settings_of_a_run_say_the_declared_chunk():
    declared = Declaration("linear_scan", nan_chunk=64)
    found = Found(operator_named("linear_scan"), refssm.linear_scan, None, declared=declared)
    told = header("here", "quick", 0, [found.offer], "", [])
    assert "linear_scan: NaN may spread within chunks of 64 steps" in told


def test_infinity_times_a_masked_zero_is_nan_in_its_block():
    def outputs(q, k, v, g, S):  # decays are multiplied, also where they are 0
        l = q.shape[-2]
        D = np.exp(np.where(np.tri(l, dtype=bool), g[..., :, None] - g[..., None, :], -np.inf))
        return (np.exp(g)[..., None] * q) @ S + ((q @ k.mT) * D) @ v

    (line,) = judged("chunk_outputs", outputs, "nan", **FLOAT)
    assert line.verdict == "pass"
    assert IN_BLOCK in line.notes

    def without(q, *others):
        return np.nan_to_num(outputs(q, *others), posinf=1, neginf=1)

    (line,) = judged("chunk_outputs", without, "nan", **FLOAT)
    assert line.verdict == "wrong"


def test_a_chunk_of_an_operator_without_steps_is_refused():
    with pytest.raises(ValueError, match="cauchy_kernel has no steps in order"):
        implements("cauchy_kernel", nan_chunk=64)


MIXED = """
import numpy as np
import refssm

def ssd_recurrent(x, log_a, B, C):
    which = np.arange(B.shape[1])[::-1]  # the groups in reverse order
    return refssm.ssd_recurrent(x, log_a, B[:, which], C[:, which])
"""


@pytest.mark.long
def test_groups_that_are_mixed_up_are_not_called_zero_times_nan(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed.py").write_text(MIXED, encoding="utf-8")
    asked = ("--check", "nan", "--dtype", "float32", "--in-process", "--no-config")
    _, out, _ = run(capfd, "verify", "mixed.py", *asked)
    assert out.startswith("WRONG")
    assert "0 times NaN" not in out
