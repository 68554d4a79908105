"""Plug-ins that cannot be judged: one sentence that names the file, exit code 4, no files left."""

import sys
from pathlib import Path
from runpy import run_path

import pytest
from judging import SCAN, plugin
from malformed import in_one_sentence, of_bytes, seeded
from malformed_plugins import ENDS, PLACES, TEXTS

TESTS = Path(__file__).parents[2]


def files(folder):
    """The files in a folder, except bytecode."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, isolated from the plug-ins of other tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_ops", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", tmp_path)).startswith(str(tmp_path)):
            del sys.modules[name]


def refused(capfd, folder, target, *options, named, words):
    """Assert one sentence with these words, no output on stdout, and no files left behind."""
    before = files(folder)
    _, out, err = in_one_sentence(capfd, "verify", target, *options, named=named)
    assert words in err
    assert out == ""
    assert files(folder) == before


@pytest.mark.parametrize("what", TEXTS)
def test_a_plugin_that_cannot_be_loaded_is_one_sentence(what, folder, capfd):
    text, words = TEXTS[what]
    (folder / "my_ops.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(capfd, folder, "my_ops.py", "--in-process", named="my_ops.py: ", words=words)


@pytest.mark.parametrize("what", PLACES)
def test_a_target_that_is_none_is_one_sentence(what, folder, capfd):
    make, target, words = PLACES[what]
    make(folder)
    refused(capfd, folder, target, "--in-process", named="", words=words)


@pytest.mark.parametrize("what", ENDS)
def test_a_plugin_that_ends_the_process_it_is_loaded_in_is_one_sentence(what, folder, capfd):
    text, words = ENDS[what]
    options = ("--timeout", "0.1") if "return" in words else ()  # loading may last five times that
    target = plugin(folder, text)
    refused(capfd, folder, target, *options, named="my_ops.py: ", words=words)


@pytest.mark.long
def test_a_mutant_of_a_plugin_is_judged_or_refused_in_a_sentence(folder, capfd):
    one = ("--check", "alias", "--dtype", "float32", "--in-process")
    for rng in seeded("plugin", 60):
        sys.modules.pop("my_ops", None)
        (folder / "my_ops.py").write_bytes(of_bytes(SCAN.encode(), rng))
        asked = ("verify", "my_ops.py", *one)
        in_one_sentence(capfd, *asked, named="my_ops.py", codes=(0, 1, 4, 5))


def table(path, name):
    """A table from another test file."""
    return run_path(str(TESTS / path))[name]


def test_the_tables_hold_200_different_malformed_things():
    plugins = [*TEXTS, *PLACES, *ENDS]
    tables = {
        "manifests": [
            *table("conformance/exchange/test_exchange_files.py", "BROKEN"),
            *table("conformance/exchange/test_exchange_files.py", "TEXTS"),
        ],
        "vectors": [
            *table("conformance/vectors/test_vectors_malformed.py", "MALFORMED"),
            *table("conformance/vectors/test_vectors_malformed.py", "TEXTS"),
        ],
        "settings": [
            *table("conformance/project/test_config.py", "MALFORMED"),
            *table("conformance/project/test_config.py", "WHOLE"),
            *table("conformance/project/test_config.py", "NAMED"),
        ],
        "known failures": [*table("conformance/project/test_known_lists.py", "MALFORMED")],
        "kept failures": [*table("conformance/running/test_replay.py", "SPOILED")],
        "own arrays": [*table("command/test_verify_options.py", "UNFIT")],
        "commands": [*table("command/test_command.py", "USAGE")],
    }
    assert len(plugins) >= 60
    assert len({*TEXTS.values()}) + len(PLACES) + len(ENDS) == len(plugins)
    assert len(plugins) + sum(map(len, tables.values())) >= 200
