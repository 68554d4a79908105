"""Files that are none, that have no end, or that cannot be written: one sentence, never a hang."""

import errno
import io
import json
import os
import warnings
import zipfile

import numpy as np
import pytest
from judging import LATE, SCAN, plugin, run
from malformed import in_one_sentence
from numpy.lib import format as npy

from refssm.conformance import file_errors
from refssm.conformance.diagnosis import failure
from refssm.conformance.exchange import files

DEEP, LARGE = 100_000, 2**20
ONE = ("--check", "value", "--dtype", "float32", "--profile", "quick")


def header(shape):
    """The first bytes of an .npy file of float32 numbers, without the numbers."""
    stream = io.BytesIO()
    told = {"descr": "<f4", "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(stream, told)
    return stream.getvalue()


def bomb(path):
    """An archive of few bytes with an array of more than `LARGE`."""
    count = LARGE // 4 + 1
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header((count,)) + bytes(4 * count))


def claimed(path):
    """An archive whose array says that it has 10^15 numbers."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header((10**15,)))


MADE = {
    "a pipe": os.mkfifo,
    "zeros without end": lambda path: path.symlink_to("/dev/zero"),
    "noise without end": lambda path: path.symlink_to("/dev/urandom"),
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: path.touch(),
    "not there": lambda path: None,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "words": lambda path: path.write_text("only words", encoding="utf-8"),
    "no UTF-8": lambda path: path.write_bytes(b"[tool.refssm]\nlayout = '\xff'\n"),
    "brackets": lambda path: path.write_text("[" * DEEP + "]" * DEEP, encoding="utf-8"),
    "an array of brackets": lambda path: path.write_text(
        f"[tool.refssm]\nseed = {'[' * DEEP}{']' * DEEP}\n", encoding="utf-8"
    ),
    "a deep table": lambda path: path.write_text(
        f"[tool.refssm.seed.{'.'.join('a' * DEEP)}]\n", encoding="utf-8"
    ),
    "too large": lambda path: os.truncate(_touched(path), 2**40),
    "a pickle": lambda path: path.write_bytes(_saved(np.array([{}], object))),
    "a header alone": lambda path: path.write_bytes(header((10**15,))),
    "a claim in an archive": claimed,
    "an archive that grows": bomb,
}
USES = {
    "configuration": ("x.toml", "verify", "my_ops.py", "--config", "x.toml"),
    "settings": ("pyproject.toml", "verify", "my_ops.py"),
    "known failures": ("x.toml", "verify", "my_ops.py", "--no-config", "--known", "x.toml"),
    "result": (
        "x.npz", "verify", "--output", "x.npz", "--as", "linear_scan", "--inputs", "mine.npz",
        "--no-config",
    ),
    "inputs": (
        "x.npz", "verify", "my_ops.py", "--inputs", "x.npz", "--no-config", "--in-process",
    ),
    "failure": ("x.npz", "replay", "x.npz"),
    "manifest": ("manifest.json", "cases", "judge", "."),
    "vectors": ("x.json", "vectors", "lint", "x.json"),
    "benchmarks": ("x.json", "bench", "--against", "x.json"),
}  # fmt: skip
ALLOWED = {("settings", "not there"), ("settings", "nothing"), ("known failures", "nothing")}


def _touched(path):
    path.touch()
    return path


def _saved(a):
    stream = io.BytesIO()
    np.save(stream, a)
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", MADE)
def test_a_file_that_is_none_or_has_no_end_is_one_sentence(what, use, folder, capfd, monkeypatch):
    monkeypatch.setattr(file_errors, "ARRAYS", LARGE)
    if (use, what) in ALLOWED:
        pytest.skip("that is an ordinary file there")
    name, *arguments = USES[use]
    a = np.full((1, 4, 2), 0.5, np.float32)
    np.savez(folder / "mine.npz", a=a, b=a)
    MADE[what](folder / name)
    result, _, err = run(capfd, *arguments)
    assert result == 4, err
    assert name in err
    assert err.startswith("refssm: ")
    assert err.count("\n") == 1
    assert len(err) < 1100


def test_a_long_name_is_cut_and_its_reason_is_not(folder, capfd):
    name = "x" * 5000
    for arguments in (
        ("replay", f"{name}.npz"),
        ("verify", "my_ops.py", "--config", name),
        ("verify", "my_ops.py", "--write-known", name),
        ("verify", "my_ops.py", "--html", name),
        ("new", "linear_scan", "--output", name),
        ("cases", "judge", name),
        ("vectors", "lint", name),
    ):
        _, _, err = in_one_sentence(capfd, *arguments, named="xxx")
        assert "too long" in err, err


def test_a_name_with_a_nul_is_one_sentence(folder, capfd):
    for arguments in (
        ("replay", "a\0b.npz"),
        ("verify", "my_ops.py", "--config", "a\0b"),
        ("verify", "a\0b.py", "--no-config", "--in-process"),
        ("new", "linear_scan", "--output", "a\0b"),
        ("cases", "judge", "a\0b"),
        ("vectors", "lint", "a\0b"),
    ):
        in_one_sentence(capfd, *arguments, named="")


@pytest.mark.parametrize("arguments", [("verify",), ("vectors", "lint", "x.json")])
def test_a_removed_working_directory_is_one_sentence(arguments, tmp_path, monkeypatch, capfd):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    in_one_sentence(capfd, *arguments, named="")


def failing(folder, capfd, *options):
    plugin(folder, LATE.replace("64:65", "3:4"))
    result, out, err = run(capfd, "verify", "my_ops.py", "--no-config", *ONE, *options)
    assert result == 1
    assert err == ""
    assert "FAIL linear_scan/value[float32]" in out
    assert out.startswith("WRONG: linear_scan (")
    return next(line for line in out.splitlines() if "failing: " in line or "smallest: " in line)


IN_THE_WAY = {
    "a file": (lambda path: path.touch(), "Not a directory|File exists"),
    "a link to nowhere": (lambda path: path.symlink_to("nowhere/at/all"), "File exists"),
}


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_where_failures_cannot_be_kept_they_are_reported(what, folder, capfd):
    make, why = IN_THE_WAY[what]
    make(folder / ".refssm")
    line = failing(folder, capfd, "--in-process")
    assert any(line.endswith(f": {reason})") for reason in why.split("|")), line
    assert "(not saved: .refssm/linear_scan-" in line


@pytest.mark.parametrize("after", [0, 1], ids=["the arrays", "the script"])
def test_a_full_disk_loses_no_line_and_leaves_no_half_file(after, folder, capfd, monkeypatch):
    whole, began = failure.whole, []

    def full(path):
        began.append(path)
        if len(began) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path)

    monkeypatch.setattr(failure, "whole", full)
    line = failing(folder, capfd)
    name = "linear_scan-" if after == 0 else "repro_"
    assert f"(not saved: .refssm/{name}" in line
    assert line.endswith("No space left on device)")
    kept = {path.suffix for path in (folder / ".refssm").iterdir()} - {""}
    assert kept <= {".npz"}
    assert not [*folder.rglob("*partial*")]


def test_a_write_that_fails_leaves_no_half_file(tmp_path):
    def half(path):
        path.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device")

    place = tmp_path / "a.npz"
    with pytest.raises(OSError, match="No space"), file_errors.whole(place) as partial:
        half(partial)
    assert [*tmp_path.iterdir()] == []


def test_what_the_machine_refuses_is_no_bug_of_refssm(capfd, monkeypatch):
    def refused():
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere")

    monkeypatch.setattr("refssm.conformance.judging.certificate.refuse_if_wrong", refused)
    arguments = ("verify", "refssm.jit.scan", "--no-config")
    in_one_sentence(capfd, *arguments, named="somewhere: No space left on device")


def test_a_list_that_cannot_be_written_comes_after_the_document(folder, capfd, monkeypatch):
    def refused(path, option, text):
        raise file_errors.UsageError(f"{option} {path}: No space left on device")

    plugin(folder, LATE.replace("64:65", "3:4"))
    monkeypatch.setattr(file_errors, "write_whole", refused)
    options = (*ONE, "--no-config", "--in-process", "--json", "--write-known", "new.toml")
    result, out, err = run(capfd, "verify", "my_ops.py", *options)
    assert result == 4
    assert json.loads(out)["results"][0]["verdict"] == "wrong"
    assert err == "refssm: --write-known new.toml: No space left on device\n"


def test_a_file_of_a_case_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(header((2**40,)))
    os.truncate(path, len(header((2**40,))) + 2**42)
    with pytest.raises(files.Unreadable, match="wanted at most"):
        files.read(path)


def test_sizes_whose_product_overflows_are_one_sentence(folder, capfd):
    (folder / "x.npz").write_bytes(header((0, 2**63)) + bytes(64))
    in_one_sentence(capfd, "replay", "x.npz", named="x.npz: not a readable .npz file")


def test_a_function_that_raises_any_class_in_this_process_is_an_error(folder, capfd):
    plugin(folder, "def linear_scan(a, b):\n    raise BaseException('odd')\n")
    result, out, _ = run(capfd, "verify", "my_ops.py", *ONE, "--in-process", "--no-config")
    assert result == 1
    assert "raised BaseException: odd (my_ops.py:2)" in out


@pytest.mark.parametrize("read", [lambda path: file_errors.arrays(path)[""], files.read])
def test_a_file_of_python_2_is_read_without_a_word(read, tmp_path):
    path = tmp_path / "x.npy"
    sized = header((1,)).replace(b"(1,), ", b"(1L,),") + np.array([7], np.float32).tobytes()
    path.write_bytes(sized)
    assert b"1L" in sized
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert read(path).tolist() == [7]
    assert told == []
