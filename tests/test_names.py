"""The stub is the only list of names: exports, families and the catalog follow from it."""

import ast
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import refssm
import refssm.scan
from refssm import catalog
from refssm._declaration.names import FAMILY_OF, STUB, export, listed
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS, families

ROOT = Path(__file__).parent.parent
NO_FAMILIES = ("command", "conformance", "enclosure", "experiments", "gallery", "jit", "oracle")


def declarations(root=ROOT):
    """Names of the declared operators, from the text of all files of the root."""
    files = [*root.glob("refssm/*.py"), *root.glob("refssm/*/*.py")]
    ours = [p for p in files if p.parent.name not in NO_FAMILIES]
    texts = "\n".join(path.read_text(encoding="utf-8") for path in ours)
    made = "|".join(
        ["Operator", *re.findall(r"^(\w+) = partial\(\n    Operator,", texts, re.MULTILINE)]
    )
    single = re.findall(rf"^([A-Z_0-9]+) = (?:{made})\(", texts, re.MULTILINE)
    forms = re.findall(
        r"^\(?\n?([A-Z_0-9, \n]+?),?\n?\)? = [A-Z_0-9]+\.operators", texts, re.MULTILINE
    )
    return single + [name for names in forms for name in re.findall(r"\w+", names)]


def test_the_catalog_holds_all_declarations_each_once_under_its_name():
    assert sorted(declarations()) == sorted(op.name.upper() for op in OPERATORS)
    values = [v for f in families() for v in vars(import_module(f"refssm.{f}")).values()]
    assert {op for op in values if isinstance(op, Operator)} == set(OPERATORS)


def test_a_declaration_that_the_list_lacks_is_an_error_that_says_so(tmp_path, monkeypatch):
    without = {name: family for name, family in FAMILY_OF.items() if name != "linear_step"}
    monkeypatch.setattr(catalog, "FAMILY_OF", without)
    with pytest.raises(ImportError, match=r"refssm.scan declares 'linear_step', which .* not list"):
        catalog.declared("scan")
    (tmp_path / "refssm/new_family").mkdir(parents=True)  # not in the list at all
    (tmp_path / "refssm/new_family/plain.py").write_text("NEW_STEP = Operator(\n", encoding="utf-8")
    assert declarations(tmp_path) == ["NEW_STEP"]


def test_all_names_are_exported_and_nothing_else():
    assert all(callable(getattr(refssm, name)) for name in refssm.__all__)
    assert set(refssm.__all__) < set(dir(refssm))
    with pytest.raises(AttributeError, match="module 'refssm' has no attribute 'nothing'"):
        _ = refssm.nothing


def seen_by_type_checkers(text):
    """The names that a stub exports, each with its family."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            family = (node.module or "").removeprefix("refssm.")
            yield from ((n.name if n.name == n.asname else "private", family) for n in node.names)


def test_type_checkers_see_the_names_that_are_exported():
    text = Path(STUB).read_text(encoding="utf-8")
    assert [*seen_by_type_checkers(text)] == [*listed(text).items()] == [*FAMILY_OF.items()]
    assert sorted(FAMILY_OF) == refssm.__all__


@pytest.mark.parametrize(
    "text",
    [
        "from refssm.scan import dense_scan as dense_scan",
        "from refssm.scan import (\n    dense_scan,\n)",
        "from refssm.scan import (\n    dense_scan as scan,\n)",
        "from refssm.scan import (\n    dense_scan as dense_scan\n)",
        "from refssm.scan import (\n    a as a, b as b,\n)",
        "from refssm.scan import (\n    a as a,\n    a as a,\n)",
    ],
)
def test_a_list_that_type_checkers_read_otherwise_is_seen(text):
    assert [*seen_by_type_checkers(text)] != [*listed(text).items()]


def test_every_listed_name_is_what_its_family_defines(monkeypatch):
    for name, family in FAMILY_OF.items():
        assert getattr(import_module(f"refssm.{family}"), name) is getattr(refssm, name)
    monkeypatch.setitem(FAMILY_OF, "nothing", "scan")
    with pytest.raises(AttributeError, match=r"lists 'nothing', which refssm.scan does not define"):
        _ = refssm.nothing


PACKAGES_OF_FAMILIES = [
    ".".join(path.relative_to(ROOT).parent.parts)
    for path in [*ROOT.glob("refssm/*/__init__.py"), *ROOT.glob("refssm/jit/*/__init__.py")]
    if path.parent.name in FAMILY_OF.values()
]


@pytest.mark.parametrize("name", PACKAGES_OF_FAMILIES)
def test_a_package_has_its_listed_names_and_declarations_and_no_other(name):
    package, family = import_module(name), name.rpartition(".")[2]
    ops = [op for op in OPERATORS if op.family == family]
    if ".jit." in name:
        ops = [op for op in ops if "jit" not in op.lacks]
        wanted = {f"{op}{end}" for op in ops for end in ("", "_vjp")}
    else:
        wanted = {n for n, f in FAMILY_OF.items() if f == family} | {op.name.upper() for op in ops}
    files = {path.stem for path in (ROOT / name.replace(".", "/")).glob("*.py")}
    public = {n for n in vars(package) if not n.startswith("__")}
    assert public - files == wanted - files
    assert sorted(wanted) == package.__all__
    assert all(not isinstance(getattr(package, n), ModuleType) for n in wanted)


def test_a_package_loses_what_its_files_only_use(monkeypatch):
    monkeypatch.setitem(FAMILY_OF, "new_step", "scan")
    here = {"new_step": ours("refssm.scan.new"), "helper": ours("refssm.scan.new"), "np": re}
    theirs = {"linear_step": ours("refssm.elsewhere"), "dense_scan": refssm.scan.dense}
    package = {"__name__": "refssm.scan", **here, **theirs}
    export(package)
    assert package["__all__"] == ["new_step"]
    assert package["dense"] is refssm.scan.dense  # a file
    assert not {"helper", "np", "linear_step", "dense_scan"} & {*package}


def ours(module):
    """A function with the given module name."""
    return FunctionType(ours.__code__, {"__name__": module})
