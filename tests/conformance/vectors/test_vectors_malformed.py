import json
from copy import deepcopy
from pathlib import Path

import pytest
from judging import SCAN, plugin, run

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.vectors import making
from refssm.conformance.vectors.document import checksum, text_of

SCANS = Path(__file__).parents[2] / "vectors" / "linear_scan.json"


def saved(folder, document):
    """Save a document with its correct checksum."""
    path = folder / "changed.json"
    try:
        total = checksum(document)
    except UnicodeEncodeError:
        total = ""
    path.write_text(json.dumps(document | {"sha256": total}).replace("Infinity", "1e999"), "utf-8")
    return path


def changed(*keys, to):
    """A change inside the document; `to` is a value, a function, or del."""

    def change(document):
        inside = document
        for key in keys[:-1]:
            inside = inside[key]
        if to is del_:
            del inside[keys[-1]]
        else:
            inside[keys[-1]] = to(inside[keys[-1]]) if callable(to) else to

    return change


def del_():
    """Marker for removing a key."""


def twice(document):
    document["cases"].append(document["cases"][0] | {"name": "other"})


C0, B = ("cases", 0), ("cases", 0, "inputs", "b")
X = ("cases", 0, "outputs", "x_next")
MALFORMED = {
    "format": (changed("format", to="refssm-vectors/9"), "format: wanted 'refssm-vectors/1'"),
    "no_format": (changed("format", to=del_), "wanted the key 'format'"),
    "unknown_key": (changed("author", to="me"), "got also the key 'author'"),
    "operator": (changed("operator", to="linear_scam"), 'got "linear_scam"'),
    "operator_null": (changed("operator", to=None), "operator: wanted a name"),
    "operator_list": (changed("operator", to=[1]), "operator: wanted a name"),
    "other_operator": (changed("operator", to="linear_scan"), "signature: wanted"),
    "signature": (changed("signature", to="(n)->(n)"), 'got "(n)->(n)"'),
    "seed": (changed("seed", to=-1), "seed: wanted a whole number"),
    "seed_true": (changed("seed", to=True), "seed: wanted a whole number"),
    "cases": (changed("cases", to={}), "cases: wanted a list"),
    "no_cases": (changed("cases", to=[]), "cases: wanted at least one"),
    "case": (changed(*C0, to=7), "cases[0]: wanted an object, got 7"),
    "no_name": (changed(*C0, "name", to=""), "cases[0].name: wanted a text"),
    "same_name": (changed("cases", 1, "name", to="float32-1"), "appears twice"),
    "same_arguments": (twice, "the same arguments as cases[0]"),
    "dtype": (changed(*C0, "dtype", to="float8"), "cases[0].dtype: wanted one of float32"),
    "u": (changed(*C0, "u", to="0x1p-23"), "cases[0].u: wanted '0x1p-24'"),
    "allowed": (changed(*C0, "allowed", to=1e9), "cases[0].allowed: wanted 16"),
    "catches": (changed(*C0, "catches", to=["sign"]), "cases[0].catches: wanted"),
    "unknown_bug": (changed(*C0, "catches", to={"luck": "bad"}), "wanted a planted bug of"),
    "renamed_bug": (changed(*C0, "catches", "sign", to="other words"), "got 'other words'"),
    "parameters": (changed(*C0, "parameters", to={"l": 3}), "parameters: wanted no key"),
    "parameters_null": (changed(*C0, "parameters", to=None), "parameters: wanted an object"),
    "no_input": (changed(*B, to=del_), "inputs: wanted the key 'b'"),
    "kind": (changed(*B, "kind", to="quaternion"), "inputs.b.kind: wanted real"),
    "complex_in_float32": (changed(*B, "kind", to="complex"), "inputs.b.kind: wanted real"),
    "shape": (changed(*B, "shape", to="2x3"), "inputs.b.shape: wanted a list"),
    "shape_negative": (changed(*B, "shape", to=[-1]), "shape: wanted a whole number"),
    "shape_huge": (changed(*B, "shape", to=[10**9, 10**9]), "values: wanted 1000000000000000000"),
    "shape_other": (changed(*B, "shape", to=lambda s: s[::-1]), "cases[0].inputs: linear_step"),
    "axes": (changed(*B, "shape", to=[1] * 99), "shape: wanted at most 16 axes, got 99"),
    "half_a_pair": (changed(*C0, "name", to="\ud800"), "half of a pair"),
    "deep": (changed(*C0, "u", to=[[[[[[[[]]]]]]]]), "cases[0].u: wanted '0x1p-24'"),
    "infinite": (changed(*C0, "allowed", to=float("inf")), "cases[0].allowed: wanted 16"),
    "too_few": (changed(*B, "values", to=lambda v: v[1:]), "inputs.b.values: wanted"),
    "decimal": (changed(*B, "values", 0, to="0.5"), "values[0]: wanted a hexadecimal number"),
    "number": (changed(*B, "values", 0, to=0.5), "values[0]: wanted a hexadecimal number"),
    "word_nan": (changed(*B, "values", 0, to="nan"), "values[0]: wanted a hexadecimal number"),
    "overflow": (changed(*B, "values", 0, to="0x1p+9999"), "a number of double precision"),
    "too_wide": (changed(*B, "values", 0, to="0x1.0000000001p+0"), "a number of float32"),
    "spelling": (changed(*B, "values", 0, to="0x1.80p+0"), "wanted the spelling 0x1.8p+0"),
    "flag": (changed(*B, "values", 0, to=True), "values[0]: wanted a hexadecimal number"),
    "no_output": (changed(*X, to=del_), "outputs: wanted the key 'x_next'"),
    "output_shape": (changed(*X, "shape", to=[1]), "outputs.x_next.shape: wanted"),
    "output_kind": (changed(*X, "kind", to="complex"), "outputs.x_next.kind: wanted 'real'"),
    "no_k0": (changed(*X, "k0", to=del_), "outputs.x_next: wanted the key 'k0'"),
    "k0_small": (changed(*X, "k0", 0, to="0x0p+0"), "k0[0]: wanted |y| or more"),
    "k1_negative": (changed(*X, "k1", 0, to="-0x1p+0"), "k1[0]: wanted |y| or more"),
    "rounded": (changed(*X, "float32", 0, to="0x1p+100"), "float32[0]: wanted"),
    "float64_missing": (changed(*X, "float64", to=del_), "wanted the key 'float64'"),
}


@pytest.fixture(scope="module")
def document():
    """A small file, as JSON."""
    pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")
    return json.loads(text_of(making.made(operator_named("linear_step"), 0, 1, 3)))


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_one_sentence(kind, document, tmp_path, capfd):
    change, fragment = MALFORMED[kind]
    document = deepcopy(document)
    change(document)
    path = saved(tmp_path, document)
    code, out, err = run(capfd, "vectors", "lint", path)
    assert (code, out) == (4, "")
    assert err.startswith(f"refssm: {path}: ")
    assert fragment in err
    assert err.count("\n") == 1


TEXTS = {
    "empty": (b"", "wanted JSON"),
    "binary": (b"\x93NUMPY\xff\xfe", "UTF-8"),
    "half": (b'{"format": "refssm-vect', "wanted JSON"),
    "list": (b"[]", "the document: wanted an object"),
    "nan": (b'{"format": NaN}', "got NaN"),
    "deep": (b"[" * 200_000, "JSON"),
    "long_number": (b'{"format": ' + b"9" * 5000 + b"}", "JSON"),
    "twice": (b'{"format": 1, "format": 2}', "the key 'format' appears twice"),
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("command", ["lint", "check"])
def test_what_is_no_document_is_one_sentence(kind, command, tmp_path, capfd):
    text, fragment = TEXTS[kind]
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    target = [plugin(tmp_path, SCAN)] * (command == "check")
    code, _, err = run(capfd, "vectors", command, path, *target)
    assert code == 4
    assert fragment in err
    assert err.startswith(f"refssm: {path}: ")


def test_a_changed_number_shows_by_the_checksum(document, tmp_path, capfd):
    document = deepcopy(document)
    document["seed"] = 5
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document), "utf-8")
    code, _, err = run(capfd, "vectors", "lint", path)
    assert (code, "sha256: wanted" in err) == (4, True)


def test_one_bad_file_does_not_hide_the_others(tmp_path, capfd):
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    code, out, err = run(capfd, "vectors", "lint", tmp_path, SCANS)
    assert (code, out.count("ok "), err.count("bad.json")) == (4, 1, 1)


@pytest.mark.parametrize("place", ["absent.json", "."])
def test_a_place_without_vectors_is_one_sentence(place, tmp_path, capfd):
    code, _, err = run(capfd, "vectors", "lint", tmp_path / place)
    assert code == 4
    assert "no such file" in err or "without a .json file" in err
