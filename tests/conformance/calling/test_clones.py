"""Clones of public repositories: found in a folder, imported without traces, told when absent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from selftest.subjects import told

from refssm.conformance.calling.finding import every
from refssm.subjects import clones
from refssm.subjects.clones import CLONES, VARIABLE, Clone, alone, definitions, module
from refssm.subjects.libraries import NAMES, absent, target

ALL = [(name, place) for name in CLONES for place in target(name)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of two clones that both call their package `src`."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # `make` sets it
    found = {n: Clone(f"owner/{n}", "0" * 40, ()) for n in ("one", "two", "gone")}
    monkeypatch.setattr(clones, "CLONES", found)
    for name in ("one", "two"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src/model.py").write_text(
            f"from src.part import part\ndef which():\n    return part + {name!r}\n", "utf-8"
        )
        (tmp_path / name / "src/part.py").write_text("part = 'of '\n", "utf-8")
    return tmp_path


def test_two_clones_with_a_package_of_one_name_do_not_meet(folder):
    assert module("one", "src.model").which() == "of one"
    assert module("two", "src.model").which() == "of two"
    assert not [m for m in sys.modules if m.partition(".")[0] == "src"]
    assert str(folder / "one") not in sys.path
    assert not list(folder.rglob("__pycache__"))


def test_a_folder_without_init_in_a_folder_without_init(folder):
    inner = folder / "one/src/deep/inner"
    inner.mkdir(parents=True)
    (inner / "leaf.py").write_text("leaf = 'of one'\n", "utf-8")
    for _ in range(2):
        assert module("one", "src.deep.inner.leaf").leaf == "of one"
    assert not [m for m in sys.modules if m.partition(".")[0] == "src"]


def test_a_module_that_stays_can_import_its_package_when_it_is_called(folder):
    (folder / "two/src/late.py").write_text("def late():\n    from src.part import part\n", "utf-8")
    try:
        module("two", "src.late", stays=True).late()
    finally:
        for kept in [m for m in sys.modules if m.partition(".")[0] == "src"]:
            del sys.modules[kept]
    with pytest.raises(ModuleNotFoundError):
        module("two", "src.late").late()


def test_one_file_is_loaded_without_the_package_around_it(folder):
    (folder / "one/src/__init__.py").write_text("import a_package_nobody_has\n", "utf-8")
    with pytest.raises(ModuleNotFoundError):
        module("one", "src.part")
    assert alone("one", "src/part.py").part == "of "
    assert not [m for m in sys.modules if m.partition(".")[0] == "src"]
    with pytest.raises(ImportError, match="git clone"):
        alone("gone", "src/part.py")


def test_functions_are_read_from_a_file_that_imports_too_much(folder):
    text = "import a_package_nobody_has\ndef double(x):\n    return add(x, x) + given\n"
    (folder / "one/test_it.py").write_text(text + "def add(x, y):\n    return x + y\n", "utf-8")
    assert definitions("one", "test_it.py", "double", "add", given=1).double(3) == 7
    with pytest.raises(KeyError, match="triple"):
        definitions("one", "test_it.py", "triple")


def test_a_source_package_is_told_by_its_version(folder):
    (folder / "one/PKG-INFO").write_text("Metadata-Version: 2.4\nVersion: 1.2\n", "utf-8")
    assert next(told(folder)) == "one   there     at v1.2; judged at 0000000000"


def test_a_clone_that_is_not_there_is_told_with_the_command_that_gets_it(folder):
    with pytest.raises(ImportError, match=r"git clone https://github\.com/owner/gone"):
        module("gone", "src.model")
    lines = list(told(folder))
    assert lines[2].startswith("gone  missing   git clone https://github.com/owner/gone")
    assert "checkout " + "0" * 40 in lines[2]
    assert lines[0] == "one   there     at no commit; judged at 0000000000"


def test_a_clone_lacking_a_package_is_told_with_its_name(folder, monkeypatch):
    lacking = Clone("owner/one", "0" * 40, (), ("a_package_nobody_has",))
    monkeypatch.setitem(clones.CLONES, "one", lacking)
    assert clones.absent("one") == "one needs a_package_nobody_has: pip install it"


def test_a_clone_with_the_name_of_a_package_has_another_name_as_a_subject(folder, monkeypatch):
    named = Clone("owner/one", "0" * 40, (), subject="owner-one")
    monkeypatch.setattr(clones, "CLONES", {"owner-one": named})
    assert module("owner-one", "src.model").which() == "of one"
    assert list(told(folder)) == ["owner-one  there     at no commit; judged at 0000000000"]


def test_make_subjects_asks_for_a_folder():
    command = [sys.executable, "-m", "selftest.subjects", ""]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=path)
    assert done.returncode == 2
    assert "give the folder of the clones" in done.stderr


def test_every_repository_is_a_subject():
    assert set(CLONES) <= set(NAMES)
    assert all(re.fullmatch(r"[0-9a-f]{40}|v[0-9.]+", clone.commit) for clone in CLONES.values())


@pytest.mark.filterwarnings("default")  # what their packages warn of is not ours to mend
@pytest.mark.parametrize(("name", "place"), ALL, ids=[p.rpartition(".")[2] for _, p in ALL])
def test_a_plugin_declares_operators_or_says_what_is_missing(name, place):
    if absent(name):
        pytest.skip(absent(name))
    assert every(place)
