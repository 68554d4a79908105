"""Output for programs: `--json` and its schema; and the header for people."""

import copy
import json
import platform
import shlex
from dataclasses import fields, replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from judging import LATE, SCAN, judged, plugin, rounded_to, run, scan

from refssm.conformance.judging.result import Result
from refssm.conformance.report import records

SCHEMA = json.loads(
    files("refssm.conformance.report").joinpath("results.schema.json").read_text(encoding="utf-8")
)
VECTORS = Path(__file__).parents[2] / "vectors" / "linear_scan.json"
MORE = {"config": None, "interrupted": False, "known_failures": None, "complaints": []}


@pytest.fixture(scope="module")
def problems():
    """Errors of a document against the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    made = jsonschema.Draft202012Validator(SCHEMA, format_checker=checker)
    return lambda document: [error.message for error in made.iter_errors(document)]


def raising(a, b):
    raise KeyError("lost")


def nothing(a, b):
    return np.full(np.broadcast_shapes(a.shape, b.shape), np.nan, b.dtype)


def coarse(a, b):
    return rounded_to(12, scan(a, b))


def one_step(case):
    return {name: a[..., :1, :] for name, a in case.items()}


def first_step(a, b):
    return b + 0 * a


@pytest.fixture(scope="module")
def document():
    """Real results with every verdict."""
    results = [
        result
        for function in (scan, coarse, nothing, raising)
        for result in judged("linear_scan", function, "value", "split", "repeat")
    ]
    results += judged("linear_scan", first_step, "value", only=one_step)
    results += [replace(r, known="listed", expires="2027-01-31") for r in results if r.failed]
    return json.loads(records.document(results, 0, "quick", **MORE))


def test_the_schema_is_one():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_real_results_of_every_verdict_are_as_the_schema_says(problems, document):
    seen = {line["verdict"] for line in document["results"]}
    assert seen == set(SCHEMA["$defs"]["result"]["properties"]["verdict"]["enum"])
    assert problems(document) == []


@pytest.mark.long
def test_what_the_command_prints_is_as_the_schema_says(problems, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, LATE)
    result, out, _ = run(capfd, "verify", "my_ops.py", "--profile", "quick", "--json")
    assert result == 1
    assert problems(json.loads(out)) == []


def known_list(folder, text):
    (folder / "known.toml").write_text(text, encoding="utf-8")


@pytest.mark.long
def test_documents_of_every_command_and_with_complaints_are_as_the_schema_says(
    problems, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, LATE.replace("64:65", "3:4"))
    one = ("--check", "value", "--dtype", "float32", "--profile", "quick")
    entry = '[[known]]\nid = "linear_scan/{}[float32]"\nreason = "why"\nexpires = {}\n'
    known_list(tmp_path, entry.format("value", "2001-01-01"))
    result, out, _ = run(capfd, "verify", "my_ops.py", *one, "--json", "--known", "known.toml")
    verified = json.loads(out)
    assert (result, len(verified["complaints"])) == (1, 1)
    (tmp_path / "right.py").write_text(SCAN, encoding="utf-8")
    run(capfd, "cases", "write", "cases", "--operator", "linear_scan", *one)
    calls = {
        ("replay", verified["results"][0]["counterexample"], "my_ops.py"): 1,
        ("verify", "right.py", "--check", "gradient"): 5,
        ("cases", "judge", "cases"): 5,
        ("vectors", "check", VECTORS, "right.py"): 0,
    }
    documents = [verified]
    for call, code in calls.items():
        result, out, _ = run(capfd, *call, "--json")
        assert result == code
        documents.append(json.loads(out))
    assert [problems(document) for document in documents] == [[]] * len(documents)


def test_the_schema_names_every_field_of_a_result():
    declared = SCHEMA["$defs"]["result"]
    left_out = "evidence", "reached"  # arrays, and sizes that only a line of text has
    names = [field.name for field in fields(Result) if field.name not in left_out]
    names.append("again")  # made from the others
    assert sorted(declared["properties"]) == sorted(declared["required"]) == sorted(names)


@pytest.mark.long
def test_every_failure_has_the_command_that_judges_it_once_more(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    raising = "def linear_scan(a, b):\n    raise KeyError('lost')\n"
    plugin(tmp_path, raising)
    checks = ("--check", "value", "--check", "prefix", "--check", "alias", "--dtype", "float32")
    _, out, _ = run(capfd, "verify", "my_ops.py", "--json", *checks)
    results = json.loads(out)["results"]
    assert [r["check"] for r in results] == ["value", "prefix", "alias"]
    for result in results:
        program, *words = shlex.split(result["again"])
        code, out, _ = run(capfd, *words)
        assert (program, code) == ("refssm", 1)
        assert f"linear_scan/{result['check']}[float32]" in out


def test_a_pass_has_no_command_to_see_it_again(document):
    assert {r["again"] for r in document["results"] if r["verdict"] == "pass"} == {None}


CHANGES = {
    "no version": lambda d: d.pop("refssm"),
    "an unknown key": lambda d: d.update(extra=1),
    "another version of the schema": lambda d: d.update(schema=1),
    "a pass that is tolerated": lambda d: d["results"][0].update(tolerated=True),
    "a pass with another failure": lambda d: d["results"][0].update(also=[{}]),
    "a negative seed": lambda d: d.update(seed=-1),
    "no list": lambda d: d.update(results={}),
    "an empty complaint": lambda d: d.update(complaints=[""]),
    "an unknown verdict": lambda d: d["results"][0].update(verdict="ok"),
    "a pass of grade F": lambda d: d["results"][0].update(grade="F"),
    "a ratio in words": lambda d: d["results"][0].update(ratio="inf"),
    "an unknown key of a line": lambda d: d["results"][0].update(extra=1),
    "a line without its check": lambda d: d["results"][0].pop("check"),
    "a pass that is a known failure": lambda d: d["results"][0].update(known="why"),
    "a day in words": lambda d: d["results"][-1].update(expires="soon"),
    "an empty counterexample": lambda d: d["results"][0].update(counterexample=""),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_schema_refuses_what_it_does_not_say(problems, document, what):
    changed = copy.deepcopy(document)
    CHANGES[what](changed)
    assert problems(changed)


def header(capfd, folder, text, *options):
    plugin(folder, text)
    call = ("verify", "my_ops.py", "-v", "--check", "alias", "--dtype", "float32", *options)
    result, out, _ = run(capfd, *call)
    assert result == 0
    return out.partition("\npass ")[0]


def test_the_header_names_versions_machine_device_and_flags(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    told = header(capfd, tmp_path, SCAN)
    for name in ("refssm", "numpy", "scipy"):
        assert f"{name} {version(name)}, " in told
    assert f"Python {platform.python_version()}, {platform.system()} {platform.machine()}" in told
    assert "numpy arrays, device cpu, flush to zero: no" in told.splitlines()


# a library built with -ffast-math sets these two bits of the register MXCSR when it is loaded
FLUSHING = """
import ctypes
state = (ctypes.c_uint8 * 32)()  # glibc's fenv_t, whose last four bytes are the register
math = ctypes.CDLL("libm.so.6")
math.fegetenv(state)
flags = int.from_bytes(bytes(state[28:32]), "little") | 0x8040
state[28:32] = flags.to_bytes(4, "little")
math.fesetenv(state)
"""


def test_the_header_measures_whether_the_process_flushes_subnormal_numbers(
    tmp_path, monkeypatch, capfd
):
    if (platform.libc_ver()[0], platform.machine()) != ("glibc", "x86_64"):
        pytest.skip("the register is set as glibc does it on x86-64")
    monkeypatch.chdir(tmp_path)
    told = header(capfd, tmp_path, FLUSHING + SCAN)
    assert "numpy arrays, device cpu, flush to zero: yes" in told.splitlines()
