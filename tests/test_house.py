"""The house: what is in the wheel is reached, names stand once, imports have no circle, and it does
not grow by itself."""

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from refssm._declaration.names import FAMILY_OF

pytestmark = pytest.mark.short

ROOT = Path(__file__).parent.parent
WHEEL = sorted([*ROOT.glob("refssm/**/*.py"), *ROOT.glob("refssm_gpu/**/*.py")])
MOST_IN_ROOT = 24
# role folders: a file a library
ONE_FILE_EACH = ("refssm/subjects",)
# what a user starts: imports, commands, the pytest plug-in
ENTRIES = ("refssm", "refssm.__main__", "refssm.command", "refssm.conformance.pytest_plugin")
ENTRIES += ("refssm_gpu",)
# imports by a name that is made while the program runs: the importing module, and what it reaches
BY_NAME = {
    "refssm": r"refssm\.(" + "|".join({*FAMILY_OF.values()}) + ")",
    "refssm._declaration.on_demand": r"(refssm|refssm\.jit|refssm_gpu)\.("
    + "|".join({*FAMILY_OF.values()})
    + ")",
    "refssm._declaration.operator": r"(refssm\.(oracle|enclosure|jit)|refssm_gpu)\.[a-z]\w*",
    "refssm._declaration.adapted": r"refssm\.(oracle|enclosure)\.adapters",
    "refssm.catalog": r"refssm\.layers\.catalog",
    "refssm.conformance.planted": r"refssm\.conformance\.planted\.[a-z]\w*",
    "refssm.bench.training.steps": r"refssm\.bench\.training\.jax_models",
    "refssm.command.plot": r"refssm\.gallery\.[a-z]\w*",
    "refssm.experiments.catalog": r"refssm\.experiments\.(trained\.)?[a-z]\w*",
    # modules in a table of names
    "refssm.conformance.calling.links": r"refssm\.conformance\.calling\.child",
    "refssm.conformance.calling.adapters": r"refssm\.conformance\.calling\.adapters\.\w+",
    "refssm.subjects.libraries": r"refssm\.subjects\.\w+",
    "refssm_gpu._launching.kernel": r"refssm_gpu\.(_launching\.card|_host\.(launch|build))",
    "refssm_gpu._host.launch": r"refssm_gpu\._host\.sanitize",  # the message of a failed launch
}
# public, though nothing imports it: the page that says so
DOCUMENTED = {
    "refssm.jit.__main__": ("python -m refssm.jit", "docs/configuration.md"),
    "refssm.layers.attention.pruning": (
        "refssm.layers.attention.pruning",
        "docs/layers/attention.md",
    ),
    "refssm.layers.attention.sorting": (
        "refssm.layers.attention.sorting",
        "docs/layers/attention.md",
    ),
    "refssm.layers.reading": ("refssm.layers.reading", "docs/layers/mamba.md"),
}


def named(path, root):
    """The dotted name of a file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(root, paths):
    """For each module all modules that it imports: lazily and for type checkers, too."""
    files = {named(path, root): path for path in paths}

    def known(name):
        while name and name not in files:
            name = name.rpartition(".")[0]
        return name

    def members(path):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    return {m: {known(n) for n in members(path)} - {m, ""} for m, path in files.items()}


def reached(graph, starts):
    """All modules that these import, directly or not, with the packages that they are in."""
    seen, ahead = set(), [*starts]
    while ahead:
        module = ahead.pop()
        if module in seen or module not in graph:
            continue
        seen.add(module)
        ahead += graph[module]
        ahead.append(module.rpartition(".")[0])
        if module in BY_NAME:
            ahead += [m for m in graph if re.fullmatch(BY_NAME[module], m)]
    return seen


def circle(graph):
    """The modules of an import circle, or an empty list. A package may import its own files."""
    inner = {m: {n for n in seen if not m.startswith(f"{n}.")} for m, seen in graph.items()}
    try:
        return [*TopologicalSorter(inner).static_order()] and []
    except CycleError as error:
        return error.args[1]


def test_every_module_of_the_wheel_is_reached_from_what_a_user_starts():
    graph = imports_of(ROOT, WHEEL)
    assert set(BY_NAME) <= set(graph)
    assert sorted({*graph} - reached(graph, [*ENTRIES, *DOCUMENTED])) == []
    assert sorted({*DOCUMENTED} & reached(graph, ENTRIES)) == []  # each entry is needed
    for said, page in DOCUMENTED.values():
        assert said in (ROOT / page).read_text(encoding="utf-8"), said


def test_imports_have_no_circle():
    assert circle(imports_of(ROOT, WHEEL)) == []


def test_an_unreached_module_and_a_circle_are_seen(tmp_path):
    planted = {
        "refssm/__init__.py": "",
        "refssm/scan.py": "import refssm.used",
        "refssm/used.py": "",
        "refssm/conformance/alone.py": "import refssm.scan",
        "refssm/jit/one.py": "def f():\n    from refssm.jit import other",
        "refssm/jit/other.py": "if TYPE_CHECKING:\n    from refssm.jit.one import One",
    }
    for name, text in planted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    graph = imports_of(tmp_path, sorted(tmp_path.rglob("*.py")))
    assert "refssm.conformance.alone" in {*graph} - reached(graph, ["refssm"])
    assert "refssm.used" in reached(graph, ["refssm"])
    assert {*circle(graph)} == {"refssm.jit.one", "refssm.jit.other"}


def classes(paths):
    """The names of all classes, one entry a definition."""
    nodes = (n for path in paths for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))


def test_a_class_name_stands_once():
    assert [name for name, count in classes(WHEEL).items() if count > 1] == []


def test_two_classes_of_one_name_are_seen(tmp_path):
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text("class Same:\n    pass\n", encoding="utf-8")
    assert classes(tmp_path.glob("*.py")) == {"Same": 2}


def test_the_root_has_few_files():
    assert len([*ROOT.glob("refssm/*.py")]) <= MOST_IN_ROOT


def test_no_folder_has_more_than_20_files():
    folders = Counter(path.parent for path in WHEEL if path.name != "__init__.py")
    many = {str(f.relative_to(ROOT)): n for f, n in folders.items() if n > 20}
    assert {f: n for f, n in many.items() if f not in ONE_FILE_EACH} == {}


def budget(*arguments):
    """What the command prints, and its exit code."""
    command = [sys.executable, "docs/build/budget.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    return done.stdout + done.stderr, done.returncode


def test_the_house_is_within_its_budget():
    said, code = budget()
    assert code == 0, said


def test_a_room_above_its_budget_is_refused_with_the_room_and_the_numbers(tmp_path):
    text = (ROOT / "docs/build/budget.csv").read_text(encoding="utf-8")
    tight = re.sub(r"^refssm/oracle,\d+", "refssm/oracle,3", text, flags=re.MULTILINE)
    (tmp_path / "budget.csv").write_text(tight, encoding="utf-8")
    said, code = budget(str(tmp_path / "budget.csv"))
    assert code == 1
    assert re.search(r"refssm/oracle: \d+ lines, the budget is 3", said)
