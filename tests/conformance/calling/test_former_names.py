"""Plug-ins by the names that they had before each library had one file."""

import ast
import json

import numpy as np
import pytest
from judging import LATE, plugin, run

from refssm.conformance.diagnosis.script import STORY
from refssm.subjects import former
from refssm.subjects.clones import CLONES
from refssm.subjects.libraries import KERNELS, MODULES, SUBJECTS

FILES = {name for table in (MODULES, KERNELS) for names in table.values() for name in names}
OLD = f"{former.BEFORE}scipy_dlsim"


def operators(file):
    """The operator of each function of a plug-in, without importing its library."""
    path = former.__file__.replace("former.py", f"{file}.py")
    found = {}
    with open(path, encoding="utf-8") as text:
        for node in ast.parse(text.read()).body:
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "implements":
                    found[node.name] = mark.args[0].value
    return found


def test_every_former_name_is_of_a_plugin_of_today():
    assert {place.file for place in former.places().values()} < FILES  # later ones have none
    assert set(CLONES) <= set(MODULES)


@pytest.mark.parametrize("table", [MODULES, KERNELS], ids=["libraries", "kernels"])
def test_no_two_functions_of_a_library_have_one_operator_and_one_name(table):
    for files in table.values():
        named = [pair for file in files for pair in operators(file).items()]
        assert len({*named}) == len(named)


@pytest.mark.parametrize("old", former.places())
def test_a_former_name_leads_to_a_function_of_the_same_operator(old):
    place = former.places()[old]
    there = operators(place.file)
    for name, function in place.functions.items():
        assert there[function] == (name if old != "s4_toeplitz" else "causal_convolution")
        later = former.now(f"{former.BEFORE}{old}::{name}_from").partition("::")[2]
        assert later == f"{function}_from"


@pytest.mark.parametrize(
    ("old", "operator", "new"),
    [
        (OLD, "", "scipy"),
        (OLD, "linear_scan", "scipy::dlsim"),
        (f"{OLD}::linear_scan", "causal_convolution", "scipy::dlsim"),
        (f"{former.BEFORE}scipy_signal::linear_scan_from", "", "scipy::lfilter_from"),
        (f"{former.BEFORE}jax_dplr", "dplr_kernel_aliased", "jax_kernels::dplr_kernel_aliased"),
        (f"{former.BEFORE}s4_toeplitz::plain", "causal_convolution", "s4::toeplitz"),
        ("refssm/conformance/subjects/dss_kernel.py", "", "dss"),
    ],
)
def test_a_former_target_is_one_of_today(old, operator, new):
    assert former.now(old, operator) == f"{SUBJECTS}.{new}"


def test_other_targets_stay_as_they_are():
    for target in (
        "my_ops.py::linear_scan",
        "numpy",
        f"{former.BEFORE}nobody",
        f"{SUBJECTS}.scipy",
    ):
        assert former.now(target, "linear_scan") == target


def test_verify_takes_a_former_name_and_says_todays(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ("--check", "value", "--profile", "quick", "--cases", "2")
    code, out, err = run(capfd, "verify", f"{OLD}::linear_scan", *few)
    assert (code, f"refssm: {OLD}::linear_scan is now {SUBJECTS}.scipy::dlsim" in err) == (0, True)
    assert f"{SUBJECTS}.scipy::dlsim   profile quick" in out


@pytest.mark.long
def test_a_failure_that_was_saved_under_a_former_name_is_replayed(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, LATE)
    run(capfd, "verify", "my_ops.py", "--check", "value", "--dtype", "float64")
    (saved,) = (tmp_path / ".refssm").glob("*.npz")
    arrays = dict(np.load(saved))
    story = json.loads(str(arrays[STORY]))
    arrays[STORY] = np.array(json.dumps(story | {"target": OLD}))
    np.savez(tmp_path / "saved.npz", **arrays)
    code, out, err = run(capfd, "replay", "saved.npz")
    assert (code, f"refssm: {OLD} is now {SUBJECTS}.scipy::dlsim" in err) == (0, True)
    assert out.startswith("pass linear_scan/value[float64]")
