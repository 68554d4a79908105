"""Streams that are closed, full, or that nobody reads, and an early Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name

import pytest
from exchanging import two_small_cases
from jsonschema import Draft202012Validator
from judging import LATE, SCAN, plugin, run

from refssm.command import terminal
from refssm.conformance.usage_error import UsageError

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    files("refssm.conformance.report").joinpath("results.schema.json").read_text(encoding="utf-8")
)
ONE = "my_ops.py --check alias --dtype float32 --profile quick --no-config"
LONG = 120.0  # seconds after which a run counts as hanging


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


@pytest.fixture
def signals():
    """The handlers of signals as they were before."""
    before = {number: signal.getsignal(number) for number in terminal.SIGNALS}
    for number in before:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def in_shell(command):
    """Exit code and what comes through the streams that the shell leaves open."""
    refssm = f"{sys.executable} -m refssm"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", "-c", command.replace("refssm ", f"{refssm} ", 1)],
        env=environment, capture_output=True, encoding="utf-8", timeout=LONG,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


FULL = "refssm: the output could not be written: No space left on device\n"
SHELL = {
    "closed": (f"refssm verify {ONE} >&-", 0, ""),
    "all closed": ("refssm verify nowhere.py <&- >&- 2>&-", 4, ""),
    "full": (f"refssm verify {ONE} > /dev/full", 0, FULL),
    "full of JSON": (f"refssm verify {ONE} --json > /dev/full", 0, FULL),
    "errors full": ("refssm verify nowhere.py 2> /dev/full", 4, ""),
    "a list, full": ("refssm list > /dev/full", 0, FULL),
    "help, full": ("refssm --help > /dev/full", 0, FULL),
    "nobody reads": (f"refssm verify {ONE} | true; exit ${{PIPESTATUS[0]}}", 0, ""),
    "one line is read": ("refssm list | head -1 > /dev/null; exit ${PIPESTATUS[0]}", 0, ""),
}


@pytest.mark.long
@pytest.mark.parametrize("what", SHELL)
def test_output_that_cannot_be_written_leaves_the_exit_code_and_no_traceback(what, folder):
    if not os.path.exists("/dev/full") and "full" in SHELL[what][0]:
        pytest.skip("there is no /dev/full here")
    command, code, told = SHELL[what]
    assert in_shell(command) == (code, "", told)


@pytest.mark.long
def test_a_wrong_function_is_wrong_where_nobody_reads(folder):
    plugin(folder, LATE.replace("64:65", "3:4"))
    call = ONE.replace("alias", "value")
    result, _, err = in_shell(f"refssm verify {call} | true; exit ${{PIPESTATUS[0]}}")
    assert (result, err) == (1, "")


def interrupted(capfd, *arguments):
    """The document of a run that ends by Ctrl-C."""
    result, out, err = run(capfd, *arguments)
    document = json.loads(out)
    assert result == 2
    assert err.strip() == "refssm: interrupted"
    assert [e.message for e in Draft202012Validator(SCHEMA).iter_errors(document)] == []
    assert document["interrupted"]
    return document


def test_ctrl_c_before_the_options_are_read_waits_for_the_document(folder, capfd, signals):
    terminal.hold()
    os.kill(os.getpid(), signal.SIGINT)
    document = interrupted(capfd, "verify", *ONE.split(), "--json", "--seed", 3)
    assert (document["seed"], document["results"]) == (3, [])


def test_a_second_ctrl_c_does_not_wait(signals):
    terminal.hold()
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_ignored_signal_stays_ignored(signals):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminal.hold()
    terminal.release()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_ctrl_c_while_a_document_is_printed_waits_for_its_end(signals):
    printed = []

    def document():
        with terminal.held():
            os.kill(os.getpid(), signal.SIGINT)
            printed.append("whole")

    with pytest.raises(KeyboardInterrupt):
        document()
    assert printed == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


STAGES = {
    "the targets": "refssm.command.checked.targets",
    "the test of the judge": "refssm.conformance.judging.certificate.refuse_if_wrong",
    "the import": "refssm.command.verify.worker_of",
    "a check": "refssm.conformance.running.sweeping.Sweeping.result",
    "keeping a failure": "numpy.savez",
}


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_any_stage_prints_the_document(stage, folder, capfd, monkeypatch):
    def stop(*given, **more):
        raise KeyboardInterrupt

    plugin(folder, LATE.replace("64:65", "3:4"))
    monkeypatch.setattr(STAGES[stage], stop)
    call = ONE.replace("alias", "value").split()
    options = ("--json", "--html", "page.html", "--write-known", "known.toml")
    document = interrupted(capfd, "verify", *call, *options)
    assert document["results"] == []
    left = {path.name for path in folder.rglob("*")} - {"__pycache__", ".refssm", ".gitignore"}
    assert {name for name in left if not name.endswith(".pyc")} == {"my_ops.py"}


def after_the_first(results):
    """The same generator of results, in which Ctrl-C comes after the first."""

    def stopped(*given, **more):
        yield next(results(*given, **more))
        raise KeyboardInterrupt

    return stopped


def test_ctrl_c_prints_the_results_so_far_of_cases_and_vectors(folder, capfd, monkeypatch):
    two_small_cases(folder / "cases")
    vectors = ("vectors", "check", ROOT / "tests" / "vectors" / "linear_scan.json")
    for place, command in {
        "refssm.conformance.exchange.judging.judge": ("cases", "judge", folder / "cases"),
        "refssm.conformance.vectors.check.judged": (*vectors, folder / "my_ops.py"),
    }.items():
        monkeypatch.setattr(place, after_the_first(resolve_name(place)))
        capfd.readouterr()
        document = interrupted(capfd, *command, "--json")
        assert [r["verdict"] for r in document["results"]] == ["pass"]
        code, out, _ = run(capfd, *command)
        assert code == 2
        assert out.startswith("INTERRUPTED: PASS so far: linear_scan")


def test_ctrl_c_in_a_replay_prints_a_document_without_results(folder, capfd, monkeypatch):
    plugin(folder, LATE)
    _, out, _ = run(capfd, "verify", *ONE.replace("alias", "value").split(), "--json")
    (stored,) = (folder / ".refssm").glob("*.npz")
    seed = json.loads(out)["seed"]

    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("refssm.conformance.running.replay.again", stop)
    document = interrupted(capfd, "replay", stored, "--json")
    assert (document["seed"], document["results"]) == (seed, [])


@pytest.mark.long
@pytest.mark.parametrize("after", [0.1, 0.6, 1.5])
def test_a_real_ctrl_c_soon_after_the_start_prints_the_document(after, folder):
    plugin(folder, "import time\ntime.sleep(1000)\n" + SCAN)
    main = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    main += "from refssm.command import main\nprint('on', flush=True)\nmain()"
    process = subprocess.Popen(
        [sys.executable, "-c", main, "verify", *ONE.split(), "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONG)
    finally:
        process.kill()
    assert (process.returncode, err.strip()) == (2, "refssm: interrupted")
    document = json.loads(out)
    assert document["interrupted"]
    assert [e.message for e in Draft202012Validator(SCHEMA).iter_errors(document)] == []


def told_codes(path, row):
    """Exit codes and their meanings in a page."""
    return dict(re.findall(row, path.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_exit_codes_of_the_readme_are_those_of_the_page_on_reports():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("Exit codes: ")[2]
    there = " ".join(readme.partition("\n\n")[0].split()).removesuffix(".")
    page = told_codes(ROOT / "docs/judge_report.md", r"^\| ([0-9]) \| (.*) \|$")
    assert "; ".join(f"{code} {meaning}" for code, meaning in page.items()) == there
    assert [*page] == [*map(str, range(6))]


EXITS = {
    0: (SCAN, "alias", None),
    1: (LATE.replace("64:65", "3:4"), "value", None),
    2: (SCAN, "alias", KeyboardInterrupt()),
    3: (SCAN, "alias", ValueError("planted")),
    4: (SCAN, "alias", UsageError("planted")),
    5: (SCAN, "gradient", None),
}


@pytest.mark.parametrize("code", EXITS)
def test_each_exit_code_is_that_of_its_kind_of_run(code, folder, capfd, monkeypatch):
    text, check, raised = EXITS[code]
    plugin(folder, text)

    def planted():
        if raised is not None:
            raise raised

    monkeypatch.setattr("refssm.conformance.judging.certificate.refuse_if_wrong", planted)
    call = ONE.replace("alias", check).split()
    assert run(capfd, "verify", *call, "--in-process")[0] == code
