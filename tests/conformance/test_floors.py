"""The judge is layered in floors: no file imports from a later floor, and imports have no cycle."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]

# the packages of the judge, from the lowest floor up; docs/architecture.md describes them
FLOORS = (
    ("usage_error", "number_types", "file_errors", "record_lines"),
    ("gauges",),
    ("standard", "cases"),
    ("judging",),
    ("calling",),
    ("checks",),
    ("planted", "report", "project"),
    ("diagnosis", "doctor"),
    ("running", "own_laws"),
    ("spreading", "exchange", "vectors", "pytest_plugin"),
)
JUDGE = "refssm.conformance."


def of_judge(root):
    """The judge's modules by name, with the judge's modules that each imports (also lazily)."""
    paths = {_name(path, root): path for path in root.glob("refssm/conformance/**/*.py")}

    def known(name):
        while name and name not in paths:
            name = name.rpartition(".")[0]
        return name

    return {
        name: {known(n) for n in _members(path)} - {name, "", JUDGE.rstrip(".")}
        for name, path in paths.items()
    }


@cache
def _members(path):
    """What a file imports, each name with the module that it is taken from."""
    members = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            members += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            members += [f"{node.module}.{alias.name}" for alias in node.names]
    return members


def _name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor_of(module):
    """The floor of a module of the judge; StopIteration if its package is on none."""
    room = module.removeprefix(JUDGE).partition(".")[0]
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def through_testing(paths):
    """Files that import `refssm.testing`, which imports the judge."""
    return [p for p in paths if any(m.startswith("refssm.testing") for m in _members(p))]


def upwards(graph):
    """Imports from a higher floor."""
    edges = [(a, b) for a, seen in graph.items() if a.startswith(JUDGE) for b in seen]
    return [f"{a} -> {b}" for a, b in edges if floor_of(b) > floor_of(a)]


def circle(graph):
    """The modules of an import cycle, or an empty list."""
    try:
        return [*TopologicalSorter(graph).static_order()] and []
    except CycleError as error:
        return error.args[1]


def test_the_floors_of_the_judge_only_look_down():
    assert upwards(of_judge(ROOT)) == []


def test_the_judge_has_no_import_circle():
    assert circle(of_judge(ROOT)) == []


def test_the_judge_does_not_import_what_authors_import():
    assert through_testing(ROOT.glob("refssm/subjects/*.py"))  # the search works
    assert through_testing(ROOT.glob("refssm/conformance/**/*.py")) == []


def test_an_import_upwards_and_a_circle_are_seen_lazy_and_typing_imports_too(tmp_path):
    planted = {
        "cases/case.py": "def f():\n    from refssm.conformance.checks.laws import LAWS",
        "checks/laws.py": "from refssm.conformance.checks import sweep",
        "checks/sweep.py": "if TYPE_CHECKING:\n    from refssm.conformance.checks.laws import LAWS",
    }
    for name, text in planted.items():
        path = tmp_path / "refssm/conformance" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    graph = of_judge(tmp_path)
    assert upwards(graph) == [f"{JUDGE}cases.case -> {JUDGE}checks.laws"]
    assert {*circle(graph)} == {f"{JUDGE}checks.laws", f"{JUDGE}checks.sweep"}


def test_no_folder_of_the_judge_has_more_than_12_files():
    folders = {path.parent for path in ROOT.glob("refssm/conformance/**/*.py")}
    files = {
        folder: [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        for folder in folders
    }
    assert [f"{folder}: {len(there)}" for folder, there in files.items() if len(there) > 12] == []


def test_the_page_of_the_architecture_has_the_floors_of_the_judge():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| (`[^|]+) \| ", page, re.MULTILINE)
    told = [tuple(re.findall(r"`(\w+)(?:/|\.py)`", row)) for row in rows]
    assert tuple(rooms for rooms in told if rooms) == FLOORS
