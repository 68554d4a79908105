"""Mutated files: judged if they still make sense, otherwise one sentence and exit code 4."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from exchanging import two_small_cases
from judging import LATE, SCAN, plugin, run
from malformed import as_json, in_one_sentence, of_bytes, of_tree, seeded, toml

from refssm.conformance.diagnosis.script import STORY
from refssm.conformance.vectors.document import checksum

MANY = 30  # of each kind; several thousand passed in a manual run
ANY = (0, 1, 4, 5)  # a verdict, or a sentence
ONE = ("--check", "alias", "--dtype", "float32", "--in-process")
SCANS = Path(__file__).parents[1] / "vectors" / "linear_scan.json"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Two small cases with right outputs, and a minimal manifest."""
    folder, tree = two_small_cases(tmp_path_factory.mktemp("mutants") / "cases")
    (folder / "manifest.json").write_bytes(as_json(tree))
    return folder


@pytest.fixture
def cases(pristine, folder):
    return shutil.copytree(pristine, folder / "cases")


@pytest.mark.long
@pytest.mark.parametrize("of", ["keys", "bytes"])
def test_a_mutant_of_a_manifest_is_judged_or_refused_in_a_sentence(of, cases, capfd):
    path, told = cases / "manifest.json", 0
    whole = path.read_bytes()
    for rng in seeded(f"manifest {of}", MANY):
        tree = json.loads(whole)
        path.write_bytes(as_json(of_tree(tree, rng)) if of == "keys" else of_bytes(whole, rng))
        told += in_one_sentence(capfd, "cases", "judge", "cases", named="cases", codes=ANY)[0] == 4
    assert told > MANY // 2


@pytest.mark.long
@pytest.mark.parametrize("believed", [False, True], ids=["as it is", "with its checksum"])
def test_a_mutant_of_a_file_of_a_case_is_judged_or_refused_in_a_sentence(believed, cases, capfd):
    listed = cases / "manifest.json"
    text, files = listed.read_text(encoding="utf-8"), sorted(cases.glob("*/*.np[yz]"))
    for rng in seeded(f"file {believed}", MANY):
        path = rng.choice(files)
        whole = path.read_bytes()
        path.write_bytes(of_bytes(whole, rng))
        sums = [hashlib.sha256(data).hexdigest() for data in (whole, path.read_bytes())]
        listed.write_text(text.replace(*sums) if believed else text, encoding="utf-8")
        in_one_sentence(capfd, "cases", "judge", "cases", named="cases", codes=ANY)
        path.write_bytes(whole)


def test_a_gauge_that_is_no_archive_is_one_sentence_though_its_checksum_is_right(cases, capfd):
    path, listed = next(iter(sorted(cases.glob("*/gauge.npz")))), cases / "manifest.json"
    whole = path.read_bytes()
    for other in (b"", b"no archive", whole[:-9], whole.replace(b"peak0", b"peek0")):
        path.write_bytes(other)
        sums = [hashlib.sha256(data).hexdigest() for data in (whole, other)]
        listed.write_text(listed.read_text(encoding="utf-8").replace(*sums), encoding="utf-8")
        in_one_sentence(capfd, "cases", "judge", "cases", named="gauge.npz")
        whole = other


@pytest.mark.parametrize("of", ["keys", "keys, with its checksum", "bytes"])
def test_a_mutant_of_vectors_is_judged_or_refused_in_a_sentence(of, folder, capfd):
    whole, path = SCANS.read_bytes(), folder / "v.json"
    tree = json.loads(whole)
    tree["cases"] = tree["cases"][:2]
    told = 0
    for rng in seeded(f"vectors {of}", MANY):
        mutant = of_tree(tree, rng)
        if "checksum" in of and "\\ud800" not in json.dumps(mutant):
            mutant["sha256"] = checksum(mutant)
        path.write_bytes(of_bytes(whole, rng) if of == "bytes" else as_json(mutant))
        command = ["lint", "v.json"]
        if rng.random() < 0.3:
            command = ["check", "v.json", "my_ops.py", "--in-process"]
        told += in_one_sentence(capfd, "vectors", *command, named="v.json", codes=ANY)[0] == 4
    assert told > MANY // 2


def table(name, tree):
    """A table in TOML syntax; unpaired surrogates are allowed."""
    lines = [f"{json.dumps(key)} = {toml(value)}\n" for key, value in tree.items()]
    return f"{name}\n{''.join(lines)}".encode("utf-8", "surrogatepass")


SETTINGS = {
    "targets": ["my_ops.py"], "profile": "quick", "seed": 3, "timeout": 5.0, "checks": ["alias"],
    "dtypes": ["float32"], "where": ["l=1..9"], "framework": "numpy", "device": "cpu",
    "layout": "b l n, b l n -> b l n", "vjp": False, "ftz": False,
}  # fmt: skip
ENTRY = {"id": "linear_scan/nan[*]", "reason": "x", "expires": None, "implementation": "my_ops.py"}


@pytest.mark.parametrize("of", ["keys", "bytes"])
def test_a_mutant_of_settings_is_taken_or_refused_in_a_sentence(of, folder, capfd):
    whole, told = table("[tool.refssm]", SETTINGS), 0
    for rng in seeded(f"settings {of}", MANY):
        mutant = table("[tool.refssm]", of_tree(SETTINGS, rng))
        (folder / "pyproject.toml").write_bytes(mutant if of == "keys" else of_bytes(whole, rng))
        asked = ("verify", "my_ops.py", *ONE)
        result, _, err = in_one_sentence(capfd, *asked, named="", codes=ANY)
        assert result != 4 or "pyproject.toml" in err or err.endswith("(from [tool.refssm])\n")
        told += result == 4
    assert told > MANY // 2


@pytest.mark.parametrize("of", ["keys", "bytes"])
def test_a_mutant_of_known_failures_is_taken_or_refused_in_a_sentence(of, folder, capfd):
    whole, told = table("[[known]]", ENTRY), 0
    for rng in seeded(f"known {of}", MANY):
        mutant = table("[[known]]", of_tree(ENTRY, rng))
        (folder / "known.toml").write_bytes(mutant if of == "keys" else of_bytes(whole, rng))
        asked = ("verify", "my_ops.py", *ONE, "--known", "known.toml")
        told += in_one_sentence(capfd, *asked, named="known.toml", codes=ANY)[0] == 4
    assert told > MANY // 2


@pytest.fixture
def failures(folder, capfd):
    """Two stored failures: one with its arrays, one with its case."""
    plugin(folder, LATE.replace("64:65", "3:4"), "late.py")
    checks = ("--check", "value", "--check", "additive")
    options = ("--dtype", "float32", "--profile", "quick", "--in-process", "--json")
    _, out, _ = run(capfd, "verify", "late.py", *checks, *options)
    kept = [r["counterexample"] for r in json.loads(out)["results"] if r["counterexample"]]
    assert kept
    return kept


@pytest.mark.long
@pytest.mark.parametrize("of", ["keys", "bytes", "arrays"])
def test_a_mutant_of_a_kept_failure_is_replayed_or_refused_in_a_sentence(
    of, folder, failures, capfd
):
    for rng in seeded(f"replay {of}", MANY):
        path = Path(rng.choice(failures))
        with np.load(path) as stored:
            arrays = dict(stored)
        if of == "keys":
            story = of_tree(json.loads(str(arrays[STORY][()])), rng)
            arrays[STORY] = np.array(json.dumps(story))
        elif of == "arrays":
            name = rng.choice([*arrays])
            arrays |= {name: rng.choice(array_mutants(arrays[name]))}
        np.savez(folder / "r.npz", **arrays)
        if of == "bytes":
            (folder / "r.npz").write_bytes(of_bytes(path.read_bytes(), rng))
        asked = ("replay", "r.npz", "late.py", "--in-process")
        in_one_sentence(capfd, *asked, named="", codes=ANY)


def array_mutants(a):
    """Possible wrong forms of an array."""
    other = [a.ravel(), a[None], np.array(7), np.array("word"), np.array([1], "M8[s]")]
    other += [np.zeros(2, [("x", "f4")]), np.zeros((0, 0)), np.array([None, ""], "U4")]
    if a.dtype.kind == "f":
        other += [a.astype(t) for t in ("f8", "f2", "c8", "i4", "?", ">f4", "longdouble")]
        other += [a * np.nan, np.repeat(a, 2, -1)]
    return other


@pytest.mark.long
@pytest.mark.parametrize("name", ["mine.npz", "x.npy"])
def test_a_mutant_of_own_arrays_is_judged_or_refused_in_a_sentence(name, folder, capfd):
    a = np.full((1, 4, 2), 0.5, np.float32)
    np.save(folder / "x.npy", a)
    np.savez(folder / "mine.npz", a=a, b=a)
    whole = (folder / name).read_bytes()
    asked = ("verify", "--output", "x.npy", "--as", "linear_scan", "--inputs", "mine.npz")
    for rng in seeded(name, MANY):
        (folder / name).write_bytes(of_bytes(whole, rng))
        in_one_sentence(capfd, *asked, named=name, codes=ANY)
