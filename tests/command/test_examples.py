"""The guide's examples run; each line that it quotes appears again (verdict, check, grade)."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from refssm.command import code

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
RUNS = re.findall(
    r"^\$ refssm verify -v (docs/examples/\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)
QUOTED = {
    "pass": r"(pass) (\S+) +grade (\w)",
    "FAIL": r"(FAIL) (\S+) +grade (\w)",
    "skip": r"(skip) (\S+) +(\S.*)",
}


def told(text):
    """(verdict, check, grade) of each result line; of a skipped check the reason."""
    lines = (line.strip() for line in text.splitlines())
    found = (re.match(QUOTED[line[:4]], line) for line in lines if line[:4] in QUOTED)
    return {match.groups() for match in found if match}


def needs(target):
    """Skip with a reason if the framework of an example is not installed."""
    text = (ROOT / target.partition("::")[0]).read_text(encoding="utf-8")
    for name in re.findall(r'framework="(\w+)"', text):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def test_every_example_is_on_a_page():
    others = ("README.md", "docs/laws.md", "docs/layers.md", "docs/pytest.md")
    pages = PAGE + "".join((ROOT / page).read_text(encoding="utf-8") for page in others)
    names = [path.name for path in (ROOT / "docs/examples").glob("*.py")]
    assert len(names) >= 7
    assert [name for name in names if f"examples/{name}" not in pages] == []


@pytest.mark.long
@pytest.mark.parametrize(("target", "quoted"), RUNS, ids=[target for target, _ in RUNS])
def test_an_example_does_what_the_guide_says(target, quoted, tmp_path, monkeypatch, capfd):
    needs(target)
    monkeypatch.chdir(tmp_path)
    result = code(["verify", "-v", str(ROOT / target)])
    out, _ = capfd.readouterr()
    wanted = told(quoted)
    assert wanted
    assert wanted <= told(out)
    assert result == any(verdict == "FAIL" for verdict, *_ in wanted)


def test_the_guide_shows_five_examples_two_of_them_wrong():
    targets = {target.partition("::")[0] for target, _ in RUNS}
    assert len(targets) == 5
    assert sum("FAIL" in quoted for _, quoted in RUNS) == 2


def test_a_line_that_says_something_else_is_seen():
    assert told("pass linear_scan/value[float32]  grade A") != told(
        "FAIL linear_scan/value[float32]  grade F"
    )
    assert told("skip linear_scan/split[float32]   needs a") != told(
        "skip linear_scan/split[float32]   needs b"
    )
