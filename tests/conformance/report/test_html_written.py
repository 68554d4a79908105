"""The file of `refssm verify --html`: complete or absent; rejected before the run if impossible."""

import json
import subprocess
import sys

import pytest
from judging import SCAN, plugin, run

from refssm.command import written as command
from refssm.conformance import file_errors as writing
from refssm.conformance.running import session

pytest.importorskip("jinja2", reason="the page is made by jinja2")
pytest.importorskip("matplotlib", reason="its pictures are drawn by matplotlib")


def files(folder):
    """The names in a folder, except the bytecode of the plug-in."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


REFUSED = {
    "no folder": ("nowhere/x.html", "--html nowhere/x.html: No such file or directory"),
    "a folder": (".", "--html .: wanted a file to write, got something else"),
    "a device": ("/dev/null", "--html /dev/null: wanted a file to write, got something else"),
    "a file as a folder": ("my_ops.py/x.html", "--html my_ops.py/x.html: Not a directory"),
    "a name too long": (f"{'x' * 300}.html", "File name too long"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_place_that_cannot_be_written_to_is_one_sentence_before_judging(folder, capfd, what):
    plugin(folder, SCAN)
    path, sentence = REFUSED[what]
    result, out, err = run(capfd, "verify", "my_ops.py", "--html", path)
    assert (result, out) == (4, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert files(folder) == ["my_ops.py"]


def test_an_unwritable_place_is_one_sentence(folder, capfd, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    plugin(folder, SCAN)
    monkeypatch.setattr(writing.tempfile, "mkstemp", refuse)  # root may write everywhere
    result, out, err = run(capfd, "verify", "my_ops.py", "--html", "x.html")
    assert (result, out) == (4, "")
    assert err == "refssm: --html x.html: Permission denied\n"


@pytest.mark.parametrize("absent", [("jinja2",), ("matplotlib",), ("jinja2", "matplotlib")])
def test_a_missing_library_is_named_with_its_extra_before_judging(
    folder, capfd, monkeypatch, absent
):
    plugin(folder, SCAN)
    monkeypatch.setattr(command, "find_spec", lambda name: None if name in absent else object())
    result, out, err = run(capfd, "verify", "my_ops.py", "--html", "x.html")
    assert (result, out) == (4, "")
    assert err == f"refssm: --html needs {' and '.join(absent)}: pip install {' '.join(absent)}\n"
    assert files(folder) == ["my_ops.py"]


@pytest.mark.long
def test_without_the_option_neither_library_is_loaded(folder):
    plugin(folder, SCAN)
    told = "print([m for m in ('jinja2', 'matplotlib') if m in sys.modules])"
    verify = "refssm.command.code(['verify', 'my_ops.py', '--check', 'zero', '--json'])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, refssm.command; {verify}; {told}"],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["while judging", "while writing"])
def test_ctrl_c_leaves_no_page_and_nothing_in_its_place(folder, capfd, monkeypatch, where):
    plugin(folder, SCAN)
    (folder / "report.html").write_text("the old one", encoding="utf-8")
    if where == "while judging":
        monkeypatch.setattr(session, "results_of", interrupted)
    else:
        monkeypatch.setattr(writing.os, "replace", interrupted)
    arguments = ("verify", "my_ops.py", "--check", "zero", "--html", "report.html")
    assert run(capfd, *arguments)[0] == 2
    assert files(folder) == ["my_ops.py", "report.html"]
    assert (folder / "report.html").read_text(encoding="utf-8") == "the old one"


def test_a_disk_that_is_full_costs_the_page_and_not_the_results(folder, capfd, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    plugin(folder, SCAN)
    monkeypatch.setattr(writing.os, "chmod", full)
    arguments = ("verify", "my_ops.py", "--check", "zero", "--html", "report.html", "--json")
    result, out, err = run(capfd, *arguments)
    assert result == 4
    assert json.loads(out)["results"][0]["verdict"] == "pass"
    assert err == "refssm: --html report.html: No space left on device\n"
    assert files(folder) == ["my_ops.py"]
