"""Programs and folders of cases whose layout merges axes."""

import json
import sys

import numpy as np
import pytest
from exchanging import answer, judged, manifest, written
from jsonschema import Draft202012Validator
from judging import run

from refssm.conformance.exchange.manifest import load, schema
from refssm.conformance.usage_error import UsageError
from refssm.scan import LINEAR_SCAN

FLAT = "l (b n), l (b n) -> l (b n)"
SMALL = ("--profile", "quick", "--dtype", "float32", "--where", "l=1..9")
PROGRAM = """import sys
import numpy as np
folder = sys.argv[1]
words = dict(line.rsplit(" ", 1) for line in open(folder + "/case.txt"))
members, n = int(words["size b"]), int(words["size n"])
a, b = np.load(folder + "/a.npy"), np.load(folder + "/b.npy")
assert a.shape == b.shape and a.shape[1] == members * n
x, state = np.empty_like(b), 0
for k in range(len(b)):
    x[k] = state = a[k] * state + b[k]
np.save(folder + "/x.npy", CHANGED)
"""
CHANGED = {
    "x": 0,
    "x.reshape(-1, members, n).swapaxes(1, 2).reshape(x.shape)": 1,
    "x.reshape(-1, members, n)": 1,
    "x.reshape(-1, members, n).swapaxes(0, 1)": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Cases of value and gradient; the answers are those of the test that ran last."""
    place = tmp_path_factory.mktemp("merged") / "cases"
    checks = ("--check", "value", "--check", "gradient", "--check", "batch")
    return written(place, "--operator", "linear_scan", "--layout", FLAT, "--vjp", *SMALL, *checks)


def forward(a, b):
    return LINEAR_SCAN.reference(a, b)  # every column is a sequence


def swapped(x):
    """The axis (b n) in another order, if it has an even length."""
    return x if x.shape[1] % 2 else x.reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape)


def wrong(folder):
    return {name.partition("[")[0] for name, r in judged(folder).items() if r.failed}


@pytest.mark.long
def test_files_of_merged_axes_are_judged_as_others_and_another_order_fails(folder):
    answer(folder, forward, LINEAR_SCAN.bare_vjp)
    assert {r.verdict for r in judged(folder).values()} == {"pass"}
    answer(folder, lambda a, b: swapped(forward(a, b)), LINEAR_SCAN.bare_vjp)
    assert wrong(folder) == {"value", "batch"}
    for i in (0, 1):

        def vjp(dx, a, b, i=i):
            pair = LINEAR_SCAN.bare_vjp(dx, a, b)
            return tuple(swapped(g) if i == j else g for j, g in enumerate(pair))

        answer(folder, forward, vjp)
        assert wrong(folder) == {"gradient"}


@pytest.mark.long
def test_an_answer_with_the_axes_of_the_catalog_does_not_fit(folder):
    document = manifest(folder)
    sizes = {case["id"]: case["merged"] for case in document["cases"]}
    answer(folder, forward, LINEAR_SCAN.bare_vjp)
    for case in document["cases"]:
        for output in case["outputs"]:
            path, shape = folder / case["id"] / output["file"], sizes[case["id"]]
            x = np.load(path).reshape(-1, shape["b"], shape["n"]).swapaxes(0, 1)
            np.save(path, x)
    assert wrong(folder) == {"value", "gradient", "batch"}
    assert judged(folder, "value")["value[float32]"].message.endswith("want axes l (b n)")


def test_the_manifest_has_the_layout_and_the_sizes_of_merged_axes(folder):
    document = manifest(folder)
    Draft202012Validator(schema()).validate(document)
    assert document["layouts"] == {"linear_scan": FLAT}
    for case in document["cases"]:
        assert set(case["merged"]) == {"b", "n"}
        for slot in (*case["inputs"], *case["outputs"]):
            assert slot["axes"] == ["l", "(b n)"]
            assert slot["shape"][1] == case["merged"]["b"] * case["merged"]["n"]
        text = (folder / case["id"] / "case.txt").read_text(encoding="utf-8")
        assert f"size b {case['merged']['b']}\n" in text
        assert f"b*n={case['inputs'][0]['shape'][1]}\n" in text
        assert all(line.count(" ") >= 1 for line in text.splitlines())
    assert all(stored.call.sizes for stored in load(folder).cases.values())


@pytest.mark.parametrize("merged", [None, {"b": 2}, {"b": 1000, "n": 1}])
def test_a_manifest_with_other_sizes_is_refused(folder, merged):
    name = folder / "manifest.json"
    before = name.read_text(encoding="utf-8")
    document = json.loads(before)
    case = next(c for c in document["cases"] if c["merged"]["n"] > 1 and c["merged"]["b"] == 3)
    case["merged"] = merged
    if merged is None:
        del case["merged"]
    try:
        name.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(UsageError, match="does not fit linear_scan"):
            load(folder)
    finally:
        name.write_text(before, encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("changed", CHANGED)
def test_a_program_gets_the_sizes_of_merged_axes(changed, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scan.py").write_text(PROGRAM.replace("CHANGED", changed), encoding="utf-8")
    command = ("verify", "--exec", f"{sys.executable} scan.py {{case}}", "--as", "linear_scan")
    options = (*SMALL, "--check", "value", "--layout", FLAT)
    code, out, _ = run(capfd, *command, *options)
    assert code == CHANGED[changed]
    fits = {2: "l b n", 3: "b l n"}.get([*CHANGED].index(changed), "")
    assert ("a layout that fits: " in out) == bool(fits)
    assert not fits or f"a layout that fits: l (b n), l (b n) -> {fits}\n" in out
