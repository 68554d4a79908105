"""Text is UTF-8 wherever it is read or written, whatever the locale says."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("refssm", "refssm_gpu", "tests", "property_tests", "docs")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PLACE = {"read_text": 0, "write_text": 1}  # of `encoding` among the arguments
SUBPROCESS = ("run", "Popen", "check_output")


def without_encoding(text):
    """Lines that read or write text in the encoding of the locale."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and "encoding" not in {k.arg for k in node.keywords}:
            yield from [node.lineno] * _reads_text(node)


def _reads_text(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    arguments = {k.arg: k.value for k in call.keywords}
    if name in PLACE:
        return len(call.args) <= PLACE[name]
    if name in SUBPROCESS:
        return "text" in arguments or "universal_newlines" in arguments
    if name == "open" and isinstance(call.func, ast.Attribute):  # of a path; others are our own
        modes = [*call.args, *(v for k, v in arguments.items() if k == "mode")]
        return all(isinstance(m, ast.Constant) and "b" not in str(m.value) for m in modes)
    if name in ("open", "fdopen"):
        modes = [*call.args[1:2], *(v for k, v in arguments.items() if k == "mode")]
        return all(isinstance(m, ast.Constant) and "b" not in str(m.value) for m in modes)
    if name == "NamedTemporaryFile":
        return any("b" not in str(getattr(m, "value", "b")) for m in call.args[:1])
    return False


@pytest.mark.long
def test_every_text_that_is_read_or_written_is_utf_8():
    found = {path: [*without_encoding(path.read_text(encoding="utf-8"))] for path in FILES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("p.read_text()\np.read_text('utf-8')\np.read_text(encoding='utf-8')", [1]),
        ("p.write_text('x')\np.write_text('x', 'utf-8')", [1]),
        ("open(p)\nopen(p, 'rb')\nopen(p, 'w')\nopen(p, 'w', encoding='utf-8')", [1, 3]),
        ("p.open()\np.open('a')\np.open('rb')\nos.open(p, 0)\nours.open(x)", [1, 2]),
        ("run(c, text=True)\nrun(c)\nrun(c, encoding='utf-8')", [1]),
    ],
)
def test_the_walk_sees_a_text_without_an_encoding(text, lines):
    assert sorted(without_encoding(text)) == lines
