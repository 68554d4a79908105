"""`--resume`: a killed run continues, with the results of an uninterrupted one."""

import json
import os
import random
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from judging import SCAN, plugin, run

from refssm.conformance.calling.worker import Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.checks.piece import Piece, from_record
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.spreading.journal import Journal, _digest

CASES = os.environ.get("REFSSM_RESUMED_CASES", "200")  # 10000 by `make resume`
COMMAND = ("verify", "my_ops.py", "--json", "--check", "value", "--dtype", "float32")
# the number of tries ends shrinking, not a time limit; cases are last
COMMAND += ("--where", "l=1..9", "--explain", "1000000", "--cases", CASES)
SHORT = (*COMMAND[:-1], "20", "--resume")


def verdicts(out):
    return [result | {"seconds": 0} for result in json.loads(out)["results"]]


def records(folder):
    return sorted((folder / ".refssm").glob("run-*")) if (folder / ".refssm").exists() else []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


def killed_after(lines, folder, *options):
    """Kill a run when its record has `lines` lines; returns the number of lines then."""
    command = [sys.executable, "-m", "refssm", *COMMAND, "--resume", *options]
    # loky's own process, which ends after all others, warns of what a killed run left
    quiet: dict = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=folder, **quiet) as judge:
        while judge.poll() is None and recorded(folder) < lines:
            time.sleep(0.002)
        judge.kill()
    assert judge.returncode == -9, "it ended before it was killed"
    return recorded(folder)


def recorded(folder):
    return sum(path.read_bytes().count(b"\n") for path in records(folder))


@pytest.mark.long
@pytest.mark.parametrize(("workers", "kills"), [(1, 3), (2, 1)])
def test_a_run_that_is_killed_time_and_again_goes_on(workers, kills, folder, capfd):
    expected = run(capfd, *COMMAND)
    rng, pieces, done = random.Random(workers), int(CASES) // 10, 0
    for kill in range(kills):
        after = rng.randint(done + 1, pieces * (kill + 1) // (kills + 1))
        done = killed_after(after, folder, "--workers", str(workers))
        assert done >= after
    result, out, err = run(capfd, *COMMAND, "--resume")
    assert (result, err) == (expected[0], "")
    assert verdicts(out) == verdicts(expected[1])
    assert json.loads(out)["results"][0]["examples"] >= int(CASES)
    assert records(folder) == []


def interrupted(folder, capfd, monkeypatch, *command):
    """The record of a run that did not finish."""
    monkeypatch.setattr(
        "refssm.conformance.spreading.journal.KeptRecords.discard", lambda self: None
    )
    run(capfd, *command)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (record,) = records(folder)
    return record


@pytest.mark.long
def test_what_is_on_record_is_not_called_again(folder, capfd, monkeypatch):
    # the file is now wrong; the record says it is right
    counting = SCAN.replace(
        "    x = np.empty", "    open('calls', 'a').write('x')\n    x = np.empty"
    )
    plugin(folder, counting)
    interrupted(folder, capfd, monkeypatch, *SHORT)
    calls = Path("calls").stat().st_size
    result, _, _ = run(capfd, *SHORT)
    assert result == 0
    assert Path("calls").stat().st_size - calls < 10 < calls  # only the first test calls


LINE = b'{"check": "linear_scan/value[float32]", "part": 0, "cases": [["key", {"grade": "A"}]]}\n'


@pytest.mark.parametrize(
    "tail", [b'{"check": "linear_sc', b"\xff\xfe", b"[]\n", b'{"check": 1}\n', b"\n\n", b""]
)
def test_a_line_that_is_cut_off_or_none_does_not_count_and_the_next_is_whole(tail, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(LINE + tail)
    with closing(Journal(path)) as journal:
        assert [*journal.pieces] == [("linear_scan/value[float32]", 0)]
        journal.write(("linear_scan/value[float32]", 10), Piece((("other", None),)))
    with closing(Journal(path)) as journal:
        assert len(journal.pieces) == 2
        assert journal.pieces["linear_scan/value[float32]", 0].cases == (("key", Verdict("A")),)


@pytest.mark.long
def test_a_record_is_of_these_options_this_target_and_what_it_imports(folder):
    def digest(told=None, **settings):
        with Worker("my_ops.py", told=told) as worker:
            return _digest(Session(worker, worker.target, Settings(**settings)))

    plugin(folder, "scale = 1\n", "helper.py")
    plugin(folder, "import helper\n" + SCAN)
    digests = [digest(), digest({"ftz": True})]
    with Worker("my_ops.py") as worker:
        assert _digest(Session(worker, worker.target)) == digests[0]
        others = [{"seed": 1}, {"cases": 21}, {"profile": "quick"}, {"types": ("float32",)}]
        others += [{"where": Where(sizes={"l": (1, 9)})}, {"only_checks": ("value",)}]
        digests += [_digest(Session(worker, worker.target, Settings(**other))) for other in others]
    plugin(folder, "scale = 20\n", "helper.py")
    digests.append(digest())
    plugin(folder, "import helper\n\n" + SCAN)
    digests.append(digest())
    assert len({*digests}) == len(digests)


@pytest.mark.long
def test_the_sources_that_decide_are_part_of_it(folder, capfd, monkeypatch):
    record = interrupted(folder, capfd, monkeypatch, *SHORT)
    before = record.read_bytes()
    monkeypatch.setattr(
        "refssm.conformance.spreading.journal.versions_here", lambda: {"refssm": "of tomorrow"}
    )
    run(capfd, *SHORT)
    assert records(folder) == [record]
    assert record.read_bytes() == before


@pytest.mark.long
def test_a_failure_on_record_is_told_in_the_same_words(folder, capfd, monkeypatch):
    plugin(folder, SCAN.replace("return x", "return x * (1 + (b.shape[-2] == 5))"))
    _, expected, _ = run(capfd, *SHORT[:-1])
    interrupted(folder, capfd, monkeypatch, *SHORT)
    result, out, _ = run(capfd, *SHORT)
    assert result == 1
    assert verdicts(out) == verdicts(expected)


def test_a_folder_that_cannot_be_written_to_is_told(folder, capfd):
    Path(".refssm").write_text("a file", encoding="utf-8")
    result, out, err = run(capfd, *SHORT)
    assert (result, out) == (4, "")
    assert err.startswith("refssm: --resume cannot use its record .refssm/run-")
    assert len(err.splitlines()) == 1


def full_after(lines, monkeypatch, interrupted=False):
    """Records on a disk that has room for so many lines; Ctrl-C after the first without room."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    write = Journal.write

    def written(self, key, piece):
        self.lines = getattr(self, "lines", 0) + 1
        if self.lines == lines + 1:
            self._lines.close()
            self._lines = Path("/dev/full").open("a", encoding="utf-8")  # noqa: SIM115
        write(self, key, piece)
        if self.lost and interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "write", written)


def test_a_run_on_a_full_disk_goes_on_without_its_record(folder, capfd, monkeypatch):
    _, expected, _ = run(capfd, *SHORT[:-1])
    full_after(1, monkeypatch)
    result, out, err = run(capfd, *SHORT)
    assert (result, err) == (0, "")
    assert verdicts(out) == verdicts(expected)
    assert records(folder) == []


def test_ctrl_c_on_a_full_disk_says_what_the_record_has(folder, capfd, monkeypatch):
    full_after(0, monkeypatch, interrupted=True)
    result, _, err = run(capfd, *SHORT)
    assert result == 2
    told, last = err.splitlines()
    assert told.startswith("refssm: --resume will go on from there: .refssm/run-")
    assert told.endswith(".jsonl has only the first part of this run: No space left on device")
    assert last == "refssm: interrupted"


def test_a_record_takes_nothing_after_a_line_that_was_not_written(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    journal = Journal(tmp_path / "run.jsonl")
    own = journal._lines
    with suppress(OSError), Path("/dev/full").open("a", encoding="utf-8") as journal._lines:
        journal.write(("linear_scan/value[float32]", 0), Piece((("key", Verdict("A")),)))
    assert journal.lost
    journal._lines = own
    journal.write(("linear_scan/value[float32]", 1), Piece((("key", Verdict("A")),)))
    journal.close()
    assert (tmp_path / "run.jsonl").read_bytes() == b""


def test_a_piece_keeps_every_bit_on_its_way_through_json():
    verdict = Verdict("F", 1e999, 0.1 + 0.2, "y ≠ ±1", ("a", "b"), True, 64.0, died=True)
    piece = Piece((("l", None), ("m", Verdict("A")), ("k", verdict)), ("died", ""))
    again = from_record(json.loads(json.dumps(piece.record())))
    assert (again, again.died) == (piece, True)
