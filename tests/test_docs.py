"""The output on the docs pages equals the output of the commands."""

import doctest
import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from docs.build import tables
from refssm.catalog import families
from refssm.command import code
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.project import keys

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path
    for path in ROOT.glob("docs/**/*.md")
    if ">>> " in path.read_text(encoding="utf-8")
    and path.name != "findings.md"  # its facts need certain versions
)
PLAIN = ("refssm.associative", "refssm.bounds", "refssm.testing")  # without operators
MODULES = (*(f"refssm.{family}" for family in families()), *PLAIN)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_of_a_page_run(page):
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried
    assert not failed


@pytest.fixture
def without_clock():
    """Hypothesis does not look at the clock: the machine may have other work."""
    before = settings.get_current_profile_name()
    slow = [HealthCheck.too_slow]
    settings.register_profile("without a clock", deadline=None, suppress_health_check=slow)
    settings.load_profile("without a clock")
    yield
    settings.load_profile(before)


@pytest.mark.usefixtures("without_clock")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_docstring_run(name):
    module = importlib.import_module(name)
    examples = [
        example
        for thing in vars(module).values()
        if callable(thing) and getattr(thing, "__module__", "").startswith(name)
        for example in doctest.DocTestFinder().find(thing, globs={**vars(module)})
    ]
    runner = doctest.DocTestRunner()
    assert sum(runner.run(example).attempted for example in examples)
    assert not runner.summarize(verbose=False).failed


@pytest.mark.long
def test_the_transcript_of_the_readme_is_what_the_command_prints(capfd, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = ["docs/examples/chunked_scan_wrong.py", "--check", "value"]
    assert code(["verify", *arguments]) == 1
    printed = capfd.readouterr().out
    shown = (
        (ROOT / "README.md").read_text(encoding="utf-8").split("$ refssm verify")[1].split("```")[0]
    )
    told = (
        "  worst x[0, 64, 0]: got 1, want 65",
        "  equally wrong in",
        "  as in float32: ",
        "  smallest: l=65 n=1; a=1",
        "  again: refssm replay .refssm/linear_scan-6",
    )
    lines = [x for x in shown.splitlines() if x.startswith(told) and "nan" not in x]
    assert len(lines) == 6
    assert [line for line in lines if line not in printed] == []
    assert shown.splitlines()[1].partition("   ")[0] == printed.partition("   ")[0]


def test_the_example_about_relative_errors_prints_what_the_readme_says(capfd):
    program = runpy.run_path(str(ROOT / "docs/examples/relative_error.py"))
    cancelled, slightly_off = program["main"]()
    assert cancelled.ok
    assert not slightly_off.ok
    assert capfd.readouterr().out.strip() in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_about_settings_shows_what_is_read_and_names_every_key(
    capfd, monkeypatch, tmp_path
):
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    table, listed = (b.partition("```")[0] for b in page.split("```toml\n")[1:])
    shown = page.split("```\n$ refssm verify --check value\n")[1].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text(table, encoding="utf-8")
    Path("refssm-known.toml").write_text(listed, encoding="utf-8")
    for name in ("kernels/scan.py", "my_package/ssd.py"):
        Path(name).parent.mkdir()
        Path(name).write_text(DECLINING, encoding="utf-8")
    assert code(["verify", "--check", "value"]) == 5
    printed = capfd.readouterr().out.splitlines()
    assert [line for line in shown.splitlines() if line not in printed] == []
    assert [key for key in keys.KEYS if f"`{key}`" not in page] == []


DECLINING = """
from refssm.testing import implements

@implements("linear_scan", dtypes="float32", only=lambda case: None)
def scan(a, b): ...
"""


OPERATOR_PAGES = sorted((ROOT / "docs/operators").glob("*.md"))


@pytest.mark.parametrize("path", OPERATOR_PAGES, ids=lambda p: p.name)
def test_the_tables_of_a_page_are_what_the_declarations_say(path):
    assert tables.page(path.read_text(encoding="utf-8")) == path.read_text(
        encoding="utf-8"
    )  # PYTHONPATH=tests python -m docs.build.tables


WRONG = """
## One step: `linear_step`

| | |
|---|---|
| formula | `x ← a x + b` |
| signature | `(n)->(n)` |
| traits | linear in `a`; not causal |
| layout | as above |

| call | `linear_step(a)` |

## Elsewhere

| | |
|---|---|
| traits | none |
"""
RIGHT = """
## One step: `linear_step`

| | |
|---|---|
| formula | `x ← a x + b` |
| call | `linear_step(a, b, x)`, signature `(n),(n),(n)->(n)` |
| layout | `b n, b n, b n -> b n` |
| signature | `(n)->(n)` |
| traits | linear in `b` and `x` together; not causal |

| call | `linear_step(a)` |

## Elsewhere

| | |
|---|---|
| traits | none |
"""


def test_a_table_keeps_what_people_wrote_and_nothing_that_a_declaration_says():
    assert tables.page(WRONG) == RIGHT


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("short_convolution", "causal, time-invariant, state, linear in `u` and in `k`"),
        ("bidirectional_convolution", "transform, linear in `u`, in `k` and `kr` together"),
        ("ssd_recurrent", "causal, state, linear in `x`, in `B` and in `C`"),
        ("hope_stream_stateful",
         "causal, state, linear in `u` and `x0` together, `y` linear in `h`"),
    ],
)  # fmt: skip
def test_traits_are_said_in_words(name, said):
    assert tables.traits(operator_named(name)) == said


def test_the_readme_has_every_exit_code_of_the_page_about_reports():
    page = (ROOT / "docs/judge_report.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    codes = re.findall(r"^\| (\d) \|", page, re.MULTILINE)
    (said,) = re.findall(
        r"Exit codes: .*?\.", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert codes == re.findall(r"\b(\d) ", said) == list("012345")


def test_every_page_that_the_readme_links_exists():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []


EXAMPLE = ROOT / "docs/examples/new_operator"
WHAT_FOLLOWS = """
import runpy
import refssm
from refssm.catalog import OPERATORS
from honest import implementations
from refssm.conformance.planted.response import BUGS
assert refssm.__file__.startswith({here!r}), refssm.__file__
op = next(op for op in OPERATORS if op.name == "impulse_response")
assert {{*refssm.__all__}} >= {{op.name, f"{{op}}_vjp"}}
assert all(callable(op.implementation(r)) for r in ("reference", "oracle", "enclosure", "jit"))
print(*(h.name for h in implementations() if h.op == op.name), len(BUGS))
for name, fact in runpy.run_path("tests/test_response.py").items():
    if name.startswith("test"):
        fact()
"""


@pytest.mark.long
def test_the_example_of_a_new_operator_is_judged_right_and_all_else_follows(tmp_path):
    pytest.importorskip("flint")
    for folder in ("refssm", "tests/honest"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pyc*"))
    for path in sorted(path for path in EXAMPLE.rglob("*.py*") if path.suffix in (".py", ".pyi")):
        place = tmp_path / path.relative_to(EXAMPLE)
        with place.open("a", encoding="utf-8") as file:  # two of them add to a file that is there
            file.write(path.read_text(encoding="utf-8"))
    with (tmp_path / "refssm/domains/__init__.py").open("a", encoding="utf-8") as exports:
        exports.write("\nfrom refssm.domains.systems import times\n")
    assert run(tmp_path, "-c", WHAT_FOLLOWS.format(here=str(tmp_path))).split() == [
        "reference", "numba", "pole_by_pole", "polar", "4"
    ]  # fmt: skip
    for module in ("refssm.response", "refssm.jit.response"):
        run(tmp_path, "-m", "refssm", "verify", module, "--profile", "quick")


def test_the_page_says_how_many_lines_each_file_of_its_example_has():
    page = (ROOT / "docs/adding_an_operator.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.pyi?)` \| (\d+) \|", page, re.MULTILINE)
    found = [path for path in EXAMPLE.rglob("*.py*") if path.suffix in (".py", ".pyi")]
    told = {EXAMPLE / name: int(lines) for name, lines in rows}
    assert told == {p: len(p.read_text(encoding="utf-8").splitlines()) for p in found}
    assert len(page.splitlines()) <= 200


def run(folder, *command):
    """The output of a separate Python process in a folder; it must exit with 0."""
    ended = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "tests")])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", ["hankel-rank", "initialisation", "memory"])
def test_the_tables_about_hankel_operators_are_what_the_experiments_print(
    capfd, monkeypatch, tmp_path, name
):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert code(["experiment", name]) == 0
    printed = capfd.readouterr().out.splitlines()
    page = (ROOT / "docs/hankel_and_hope.md").read_text(encoding="utf-8")
    blocks = page.split(f"$ refssm experiment {name}\n")[1:]
    shown = [line for block in blocks for line in block.split("```")[0].splitlines()]
    assert len(shown) > 5
    assert [line for line in shown if line not in printed] == []
