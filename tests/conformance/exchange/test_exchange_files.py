"""Damaged folders of cases: one sentence each, and exit code 4."""

import json
import os
import shutil

import numpy as np
import pytest
from exchanging import answer, manifest, written
from judging import run

QUICK = ("--profile", "quick", "--dtype", "float32")
SMALL = ("--where", "l=1..5", "--where", "n=1..3", "--check", "value", "--check", "additive")
CASE = "linear_scan-value-float32-001"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Small cases of linear_scan with the right answers."""
    folder = written(tmp_path_factory.mktemp("pristine") / "cases", "--operator", "linear_scan",
                     *QUICK, *SMALL)  # fmt: skip
    answer(folder)
    return folder


@pytest.fixture
def folder(pristine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(pristine, tmp_path / "cases")


def complains(capfd, folder, *words):
    """Assert that judging prints one sentence with these words to stderr, with exit code 4."""
    result, out, err = run(capfd, "cases", "judge", folder.name)
    assert (result, out) == (4, "")
    assert err.startswith("refssm: cases")
    assert err.count("\n") == 1
    assert [word for word in words if word not in err] == []
    assert len(err) < 400


def changed(folder, change):
    """Change the manifest."""
    document = manifest(folder)
    result = change(document)
    text = json.dumps(document if result is None else result)
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def put(*path, value):
    """A change that puts a value at a place of the manifest."""

    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def gone(*path):
    """A change that removes a key."""

    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def doubled(document):
    document["cases"].append(document["cases"][0])


A, X = ("cases", 0, "inputs", 0), ("cases", 0, "outputs", 0)
BROKEN = {
    "a list": (lambda _: [], ["wanted object", "[]"]),
    "a number": (lambda _: 7, ["wanted object", "7"]),
    "another format": (put("format", value="npz"), ["format", "'refssm-cases'", "'npz'"]),
    "a later version": (put("version", value=2), ["version", "reads 1", "got 2"]),
    "a version in words": (put("version", value="1"), ["version", "'1'"]),
    "no cases": (gone("cases"), ["no key 'cases'"]),
    "an empty list of cases": (put("cases", value=[]), ["cases", "empty"]),
    "nothing judged": (put("judged", value=[]), ["judged", "empty"]),
    "a key that is not known": (put("extra", value=1), ["'extra'"]),
    "a seed in words": (put("seed", value="x"), ["seed", "wanted integer", "'x'"]),
    "a negative seed": (put("seed", value=-1), ["seed", "0 or more", "-1"]),
    "a profile of another name": (put("profile", value="slow"), ["profile", "quick", "'slow'"]),
    "ftz as a number": (put("ftz", value=1), ["ftz", "wanted boolean", "1"]),
    "a case that is no object": (put("cases", 0, value="x"), ["cases[0]", "wanted object"]),
    "a case without an id": (gone("cases", 0, "id"), ["cases[0]", "'id'"]),
    "the same case twice": (doubled, [CASE, "twice"]),
    "a case outside": (put("cases", 0, "id", value="../x"), ["cases[0].id", "'../x'"]),
    "an absolute case": (put("cases", 0, "id", value="/etc"), ["cases[0].id", "'/etc'"]),
    "a case with an empty name": (put("cases", 0, "id", value=""), ["cases[0].id", "''"]),
    "a folder that is absent": (put("cases", 0, "id", value="other"), ["other/a.npy", "no such"]),
    "an operator of another name": (
        put("cases", 0, "operator", value="linear_skan"),
        ["cases[0].operator", "linear_skan", "did you mean linear_scan"],
    ),
    "another operator": (put("cases", 0, "operator", value="ssd_recurrent"), ["cases[0].call"]),
    "a call of another operator": (put("cases", 0, "call", value="dense_scan"), ["cases[0].call"]),
    "a gradient of the same files": (
        put("cases", 0, "call", value="linear_scan_vjp"),
        ["does not fit linear_scan_vjp"],
    ),
    "a check of conduct": (put("cases", 0, "check", value="strides"), ["check", "'strides'"]),
    "a type that is not judged": (put("cases", 0, "dtype", value="int8"), ["dtype", "'int8'"]),
    "another type": (put("cases", 0, "dtype", value="float16"), ["inputs[0].dtype", "'float16'"]),
    "a keyword that there is not": (
        put("cases", 0, "statics", value={"l": 4}),
        ["cases[0]", "does not fit"],
    ),
    "a keyword in words": (put("cases", 0, "statics", value={"l": "4"}), ["statics.l", "number"]),
    "a contract of another name": (put("cases", 0, "contract", value="loose"), ["contract"]),
    "one input less": (put("cases", 0, "inputs", value=[]), ["does not fit linear_scan"]),
    "no output": (put("cases", 0, "outputs", value=[]), ["outputs", "empty"]),
    "an input outside": (put(*A, "file", value="../a.npy"), ["inputs[0].file", "'../a.npy'"]),
    "an absolute input": (put(*A, "file", value="/a.npy"), ["inputs[0].file", "'/a.npy'"]),
    "an input of another name": (put(*A, "file", value="c.npy"), ["c.npy", "no such file"]),
    "an output over an input": (put(*X, "file", value="a.npy"), ["outputs[0].file", "'a.npy'"]),
    "another shape": (put(*A, "shape", value=[1, 1, 7]), ["inputs[0].shape", "[1, 1, 7]"]),
    "a shape of fractions": (put(*A, "shape", value=[0.5]), ["shape", "wanted integer", "0.5"]),
    "a negative shape": (put(*A, "shape", value=[-1]), ["shape", "-1"]),
    "a shape beyond all machines": (put(*A, "shape", value=[10**30]), ["shape", "or less"]),
    "another output's shape": (put(*X, "shape", value=[2]), ["outputs[0].shape", "[2]"]),
    "other axes": (put(*A, "axes", value=["n"]), ["inputs[0].axes"]),
    "a name of another argument": (put(*A, "name", value="b"), ["inputs[0].name", "'b'"]),
    "a checksum in words": (put(*A, "sha256", value="yes"), ["sha256", "'yes'"]),
    "another checksum": (put(*A, "sha256", value="0" * 64), ["a.npy", "SHA-256", "00000000"]),
    "no checksum": (gone(*A, "sha256"), ["inputs[0]", "'sha256'"]),
    "no true values": (gone(*X, "want"), ["outputs[0]", "'want'"]),
    "a gauge outside": (put("cases", 0, "gauge", "file", value="../g.npz"), ["'../g.npz'"]),
    "a layout in other letters": (
        put("layouts", value={"linear_scan": "x y z"}),
        ["layouts.linear_scan", "x y z"],
    ),
    "a layout of nothing": (put("layouts", value={"no_scan": "b"}), ["layouts.no_scan"]),
    "a judgement of no case": (put("judged", 0, "calls", value=["x"]), ["judged[0]", "'x'"]),
    "a judgement of nothing": (put("judged", 0, "calls", value=[]), ["judged[0].calls", "empty"]),
    "a judgement of another operator": (
        put("judged", 0, "operator", value="dense_scan"),
        ["judged[0]", "not of dense_scan"],
    ),
    "a judgement in another type": (
        put("judged", 0, "dtype", value="float64"),
        ["judged[0].dtype", "'float64'"],
    ),
    "a knob that there is not": (put("judged", 0, "knobs", "a", "map", value="?"), ["knobs.a.map"]),
    "a knob of no argument": (put("judged", 0, "knobs", value={}), ["judged[0].knobs"]),
    "a size of no dimension": (put("judged", 0, "sizes", value={"q": 1}), ["sizes", "'q'"]),
    "a batch of no axis": (put("judged", 0, "batch", value={"q": 1}), ["batch", "'q'"]),
    "a seed beyond 32 bits": (put("judged", 0, "seed", value=2**32), ["seed", "4294967296"]),
}


@pytest.mark.parametrize(("change", "words"), BROKEN.values(), ids=BROKEN)
def test_a_manifest_that_is_not_ours_is_one_sentence(capfd, folder, change, words):
    changed(folder, change)
    complains(capfd, folder, "manifest.json" if ".npy" not in words[0] else "cases", *words)


TEXTS = {
    "empty": ("", "not JSON"),
    "half": ('{"format": "refssm-cases", "cases": [', "not JSON"),
    "words": ("hello", "not JSON"),
    "NaN": ('{"format": "refssm-cases", "version": 1, "seed": NaN}', "NaN is not a number"),
    "infinity": ('{"seed": -Infinity}', "-Infinity is not a number"),
    "a key twice": ('{"seed": 1, "seed": 2}', "'seed' appears twice"),
    "a deep nest": ("[" * 100000, "not JSON"),
    "a long number": ('{"seed": ' + "9" * 5000 + "}", "not JSON"),
    "bytes": (b"\xff\xfe\x00", "byte 0 is not UTF-8"),
}


@pytest.mark.parametrize(("text", "words"), TEXTS.values(), ids=TEXTS)
def test_a_manifest_that_is_no_json_is_one_sentence(capfd, folder, text, words):
    path = folder / "manifest.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    complains(capfd, folder, "manifest.json", words)


def test_a_folder_without_a_manifest_and_a_file_are_one_sentence(capfd, folder):
    (folder / "manifest.json").unlink()
    complains(capfd, folder, "manifest.json", "no such file", "refssm cases write")
    shutil.rmtree(folder)
    complains(capfd, folder, "no such file")
    folder.write_text("", encoding="utf-8")
    complains(capfd, folder, "cannot be read")


@pytest.mark.parametrize("name", ["a.npy", "x.want.npy", "x.allowed.npy", "gauge.npz"])
def test_a_file_that_was_changed_or_lost_is_one_sentence(capfd, folder, name):
    path = folder / CASE / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    complains(capfd, folder, name, "was changed", "SHA-256")
    path.unlink()
    complains(capfd, folder, name, "no such file")
    path.mkdir()
    complains(capfd, folder, name, "no such file")


def saved(**how):
    """A function that replaces the right output by a wrong one."""
    return lambda path: np.save(path, how["of"](np.load(path)), allow_pickle=True)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-2])


def longer(path):
    path.write_bytes(path.read_bytes() + b"\0")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def folder_instead(path):
    path.unlink()
    path.mkdir()


def promising(path):
    path.write_bytes(path.read_bytes().replace(b"(1, 1, 1)", b"(9**9,)  "))


def enormous(path):
    path.write_bytes(path.read_bytes().replace(b"(1, 1, 1)", b"(9999999,)"))


OUTPUTS = {
    "missing": (lambda path: path.unlink(), "error", "wrote no x.npy"),
    "truncated": (truncated, "wrong", "x.npy is truncated"),
    "too long": (longer, "wrong", "x.npy is too long"),
    "empty": (lambda path: path.write_bytes(b""), "wrong", "not a readable .npy file"),
    "text": (
        lambda path: path.write_text("1.0 2.0\n", encoding="utf-8"),
        "wrong",
        "not a readable .npy file",
    ),
    "a header of code": (promising, "wrong", "not a readable .npy file"),
    "a header beyond the file": (enormous, "wrong", "x.npy is truncated"),
    "a pipe": (pipe, "wrong", "x.npy is no file"),
    "a folder": (folder_instead, "wrong", "x.npy is no file"),
    "objects": (saved(of=lambda y: y.astype(object)), "wrong", "array of object"),
    "words": (saved(of=lambda y: y.astype("U3")), "wrong", "wanted numbers"),
    "integers": (saved(of=lambda y: y.astype("i4")), "wrong", "has type int32, want float32"),
    "half": (saved(of=lambda y: y.astype("f2")), "wrong", "narrower type float16"),
    "complex": (saved(of=lambda y: y.astype("c8")), "wrong", "has type complex64"),
    "an axis less": (saved(of=lambda y: y[0]), "wrong", "has shape (1, 1), want (1, 1, 1)"),
    "an axis more": (saved(of=lambda y: y[None]), "wrong", "has shape (1, 1, 1, 1)"),
    "one step more": (saved(of=lambda y: np.repeat(y, 2, 1)), "wrong", "has shape (1, 2, 1)"),
    "NaN": (saved(of=lambda y: y * np.nan), "wrong", "got nan (NaN), want finite"),
    "infinite": (saved(of=lambda y: y / np.float32(0) + 1), "wrong", "(infinite), want finite"),
    "off": (saved(of=lambda y: y + 1), "", "worst x[0, 0, 0]"),
}


@pytest.mark.parametrize(("spoil", "verdict", "words"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_that_is_none_is_told_in_the_line_of_its_check(
    capfd, folder, spoil, verdict, words
):
    with np.errstate(all="ignore"):
        spoil(folder / CASE / "x.npy")
    result, out, err = run(capfd, "cases", "judge", folder, "--check", "value", "--json")
    (told,) = json.loads(out)["results"]
    assert (result, err) == (1, "")
    assert told["verdict"] == verdict or not verdict
    assert words in told["message"]
    assert CASE in told["smallest"]
    assert "1 of" in told["notes"][-1]


@pytest.mark.parametrize(
    "spoil",
    [
        saved(of=lambda y: y.astype(">f4")),
        saved(of=np.asfortranarray),
        saved(of=lambda y: y.astype("f8")),
    ],
    ids=["big-endian", "column-major", "wider"],
)
def test_a_right_output_may_be_stored_in_any_order_and_wider(capfd, folder, spoil):
    for path in folder.glob("*/x.npy"):
        spoil(path)
    assert run(capfd, "cases", "judge", folder)[0] == 0


def test_no_output_at_all_is_skipped_and_leaves_nothing_to_judge(capfd, folder):
    for path in folder.glob("*/x.npy"):
        path.unlink()
    result, out, _ = run(capfd, "cases", "judge", folder)
    assert (result, out.count("there is no output for any of")) == (5, 2)


def test_a_case_may_be_asked_for_and_what_is_not_there_is_told(capfd, folder):
    assert "1 case " in run(capfd, "cases", "judge", "-v", folder, "--case", CASE)[1]
    for option, value in (("--case", "nine"), ("--operator", "dense_scan"), ("--check", "nan")):
        result, _, err = run(capfd, "cases", "judge", folder, option, value)
        assert (result, value in err) == (4, True)
    alone = next(c["id"] for c in reversed(manifest(folder)["cases"]) if c["check"] == "additive")
    options = ("--case", alone, "--check", "value")
    assert "no case matches" in run(capfd, "cases", "judge", folder, *options)[2]
