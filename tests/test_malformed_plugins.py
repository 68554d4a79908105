"""Plug-ins that cannot be judged: one sentence that names the file, exit code 4, nothing left."""

import sys

import pytest
import test_command
import test_config
import test_exchange_files
import test_known_lists
import test_replay
import test_vectors_malformed
import test_verify_options
from judging import SCAN, plugin
from malformed import in_one_sentence, of_bytes, seeded
from malformed_plugins import ENDS, PLACES, TEXTS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in; no plug-in of another test is there, and none stays for the next."""
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
    """One sentence with these words, nothing printed beside it, nothing left behind."""
    before = sorted(folder.rglob("*"))
    _, out, err = in_one_sentence(capfd, "verify", target, *options, named=named)
    assert words in err
    assert out == ""
    assert sorted(folder.rglob("*")) == before


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
    options = ("--timeout", "0.1") if "return" in words else ()  # five times that to load
    target = plugin(folder, text)
    refused(capfd, folder, target, *options, named="my_ops.py: ", words=words)


def test_a_mutant_of_a_plugin_is_judged_or_refused_in_a_sentence(folder, capfd):
    one = ("--check", "alias", "--dtype", "float32", "--in-process")
    for rng in seeded("plugin", 60):
        sys.modules.pop("my_ops", None)
        (folder / "my_ops.py").write_bytes(of_bytes(SCAN.encode(), rng))
        asked = ("verify", "my_ops.py", *one)
        in_one_sentence(capfd, *asked, named="my_ops.py", codes=(0, 1, 4, 5))


def test_the_tables_hold_200_different_malformed_things():
    plugins = [*TEXTS, *PLACES, *ENDS]
    tables = {
        "manifests": [*test_exchange_files.BROKEN, *test_exchange_files.TEXTS],
        "vectors": [*test_vectors_malformed.MALFORMED, *test_vectors_malformed.TEXTS],
        "settings": [*test_config.MALFORMED, *test_config.WHOLE, *test_config.NAMED],
        "known failures": [*test_known_lists.MALFORMED],
        "kept failures": [*test_replay.SPOILED],
        "own arrays": [*test_verify_options.UNFIT],
        "commands": [*test_command.USAGE],
    }
    assert len(plugins) >= 60
    assert len({*TEXTS.values()}) + len(PLACES) + len(ENDS) == len(plugins)
    assert len(plugins) + sum(map(len, tables.values())) >= 200
