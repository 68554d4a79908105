"""`refssm list`: one line for each operator, and the same for programs."""

import json

import jsonschema
import pytest
from judging import run

from refssm.catalog import judged

TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
KEYS = {
    **dict.fromkeys(("name", "family", "signature", "citation", "layout", "formula"), TEXT),
    **dict.fromkeys(("inputs", "parameters", "outputs", "tags"), TEXTS),
    "gradient": {"type": "boolean"},
}
OPERATOR = {"properties": KEYS, "required": [*KEYS], "additionalProperties": False}
# as docs/configuration.md describes it
DOCUMENT = {
    "properties": {"schema": {"const": 1}, "operators": {"type": "array", "items": OPERATOR}},
    "required": ["schema", "operators"],
    "additionalProperties": False,
}


def test_every_operator_has_one_line_in_its_family_and_the_columns_fit(capfd):
    result, out, err = run(capfd, "list")
    assert (result, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(shown) == sorted(op.name for op in judged())
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads == [*dict.fromkeys(op.family for op in judged())]
    assert "linear_scan_from (l,n),(l,n),(n)->(l,n) rnn_scan" in " ".join(out.split())
    family = out.split("\ncauchy\n")[1].split("\n\n")[0].splitlines()
    assert {line.index("(n)") for line in family} == {22}  # the columns are aligned
    tags = ("cauchy_m", "cauchy_conj", "Cauchy")
    assert {line.index(text) for line, text in zip(family, tags, strict=True)} == {39}


def test_words_limit_the_list(capfd):
    result, out, _ = run(capfd, "list", "scan", "packed")
    assert result == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == [
        "linear_scan_packed",
        "linear_scan_packed_from",
        "dense_scan_varying_packed",
        "selective_scan_packed",
        "selective_scan_packed_stateful",
        "mamba_scan_packed",
        "mamba_scan_packed_stateful",
        "mamba2_scan_packed",
        "mamba2_scan_packed_stateful",
    ]
    result, out, _ = run(capfd, "list", "lAyers")
    assert [line for line in out.splitlines() if line[:1] not in ("", " ")] == ["layers"]


def test_words_that_nothing_has_name_the_nearest(capfd):
    result, out, err = run(capfd, "list", "selectve_scan")
    assert (result, out) == (4, "")
    assert "no operator has 'selectve_scan' in its names; the nearest are selective_scan" in err


@pytest.mark.parametrize("words", [(), ("scan",)])
def test_the_document_for_programs_has_its_shape(capfd, words):
    result, out, err = run(capfd, "list", *words, "--json")
    assert (result, err) == (0, "")
    told = json.loads(out)
    jsonschema.validate(told, DOCUMENT)
    assert (len(told["operators"]) == len(judged())) == (not words)
    scan = next(op for op in told["operators"] if op["name"] == "linear_scan")
    assert (scan["inputs"], scan["layout"]) == (["a", "b"], "b l n, b l n -> b l n")
    with pytest.raises(jsonschema.ValidationError):  # the shape is checked
        jsonschema.validate(told | {"operators": [scan | {"name": 3}]}, DOCUMENT)
