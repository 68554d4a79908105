"""`.ci/gpu` with stand-ins for Python and compute-sanitizer: how each part ends is said."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from refssm_gpu._launching import missing

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "gpu"
PARTS = ("tests", "planted", "memcheck", "racecheck", "card", "judge", "benchmark")
PYTHON = """#!/bin/sh
echo "$REFSSM_GPU|$*" >>"$SEEN"
case "$*" in
  *needed_wheels*|*require_card*|*refssm.jit*|*"pip install"*) exit 0 ;;
  *test_on_a_card*) exit ${CARD:-0} ;;
  *"-m pytest"*) echo "3 failed"; exit ${TESTS:-0} ;;
  *judging_in_turn.py*) exit ${JUDGE:-0} ;;
  *"--device gpu"*) [ -z "$SLOW" ] || exec sleep 60; exit 0 ;;
esac
exit 77
"""
SANITIZER = """#!/bin/sh
echo "sanitizer|$*" >>"$SEEN"
case "$*" in *"launching.py "[0-9]*) exit ${REPORTED:-9} ;; esac
exit ${CHECK:-0}
"""


@pytest.fixture
def machine(tmp_path):
    """Runs the script on a machine with these programs; gives its exit code, output, and calls."""

    def run(*arguments, sanitizer=True, **answers):
        programs = tmp_path / "programs"
        programs.mkdir()
        for name, text in (("python3", PYTHON), ("compute-sanitizer", SANITIZER)):
            if name == "python3" or sanitizer:
                (programs / name).write_text(text, encoding="utf-8")
                (programs / name).chmod(0o755)
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "SEEN": str(tmp_path / "seen")}
        environment |= {"PYTHON": "python3"}  # not this checkout's environment
        done = subprocess.run(
            [str(SCRIPT), *arguments],
            capture_output=True,
            encoding="utf-8",
            env=environment | answers,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, (tmp_path / "seen").read_text(encoding="utf-8")

    return run


def table(folder):
    """The rows of the table by part."""
    lines = (folder / "table.txt").read_text(encoding="utf-8").split("\n")
    return {line.split()[0]: line.partition(" s  ")[2] for line in lines if line}


def test_all_parts_run_on_the_card_and_their_logs_stay(machine, tmp_path):
    out = tmp_path / "out"
    code, said, seen = machine(str(tmp_path / "none"), str(out))
    assert code == 0
    assert table(out) == dict.fromkeys(PARTS, "passed")
    assert {p.name for p in out.iterdir()} == {*(f"{p}.log" for p in PARTS), "table.txt"}
    assert said.rstrip().endswith("passed")
    calls = [line for line in seen.split("\n") if line]
    assert all(line.startswith(("|", "sanitizer|")) for line in calls)  # REFSSM_GPU is empty
    assert f"--json {out}/benchmarks_gpu.json" in seen
    for tool in ("memcheck --report-api-errors no", "racecheck"):
        assert f"--error-exitcode 9 --tool {tool} python3 tests/gpu/launching.py\n" in seen
    assert "pip install" not in seen


def test_a_part_that_fails_does_not_end_the_others_and_the_worst_code_is_the_scripts(
    machine, tmp_path
):
    code, _, _ = machine("none", str(tmp_path / "out"), TESTS="1", CHECK="9")
    assert code == 9
    found = table(tmp_path / "out")
    assert found["tests"] == "FAILED, exit code 1"
    assert found["memcheck"] == found["racecheck"] == "FAILED, exit code 9"
    assert found["benchmark"] == "passed"
    assert "3 failed" in (tmp_path / "out" / "tests.log").read_text(encoding="utf-8")


def test_a_part_that_takes_too_long_is_stopped(machine, tmp_path):
    begun = time.monotonic()
    code, _, _ = machine("none", str(tmp_path / "out"), SLOW="1", BENCH_SECONDS="1")
    assert time.monotonic() - begun < 30
    assert code == 124
    assert table(tmp_path / "out")["benchmark"] == "stopped after its time limit"


def test_a_sanitizer_that_does_not_report_a_planted_bug_is_a_failure(machine, tmp_path):
    code, _, seen = machine("none", str(tmp_path / "out"), REPORTED="0")
    assert code == 1
    assert table(tmp_path / "out")["planted"] == "FAILED, exit code 1"
    log = (tmp_path / "out" / "planted.log").read_text(encoding="utf-8")
    assert log == "memcheck did not report the planted bug 10\n"
    assert "--tool memcheck python3 tests/gpu/launching.py 10\n" in seen


def test_a_sanitizer_that_is_not_there_is_told(machine, tmp_path):
    code, _, _ = machine("none", str(tmp_path / "out"), sanitizer=False)
    assert code == 127
    assert table(tmp_path / "out")["racecheck"] == "not run: compute-sanitizer is not here"


def test_wheels_are_installed_without_a_network_into_a_folder_that_goes_away(machine, tmp_path):
    (tmp_path / "one-1.0-py3-none-any.whl").write_bytes(b"")
    _, _, seen = machine(str(tmp_path), str(tmp_path / "out"))
    (call,) = [line for line in seen.split("\n") if "pip install" in line]
    assert "--no-index --no-deps" in call
    assert call.endswith("/one-1.0-py3-none-any.whl")
    assert not Path(call.partition("--target ")[2].split()[0]).exists()


def test_without_a_card_or_cupy_it_says_so_and_ends(tmp_path):
    if not missing._lack():
        pytest.skip("there is a card here")
    environment = dict(os.environ) | {"PYTHON": sys.executable, "OUT": str(tmp_path / "out")}
    done = subprocess.run(
        [str(SCRIPT)], capture_output=True, encoding="utf-8", env=environment, check=False
    )
    assert done.returncode == 3
    assert done.stdout == f".ci/gpu runs on a CUDA GPU, and {missing._lack()}\n"


@pytest.fixture
def wheels():
    """The program that says which wheels are needed."""
    place = ROOT / ".ci" / "needed_wheels.py"
    spec = importlib.util.spec_from_file_location("needed_wheels", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheels_are_those_that_are_not_there_and_what_they_need(wheels, monkeypatch):
    needs = {"a": ["b>=1", 'c; extra == "more"'], "b": ["D_e (>2)"], "d-e": [], "cupy": None}
    needs["d-e"] += ['colorama; sys_platform == "win32"', 'tomli; python_version < "3.11"']
    monkeypatch.setattr(wheels, "requires", needs.__getitem__)
    assert wheels.needed(["a>=2; python_version > '3'", "cupy[ctk]"], set()) == {
        "a",
        "b",
        "cupy",
        "d-e",
    }
    assert wheels.needed(["a", "cupy[ctk]"], {"b", "cupy"}) == {"a"}


@pytest.mark.parametrize("form", ["{}", "{}==1.0", "{} @ file:///wheels/one.whl"])
def test_a_file_of_names_may_have_versions(wheels, tmp_path, capsys, form):
    assert wheels.main([str(write(tmp_path, []))]) == 0
    needed = capsys.readouterr().out.split()
    assert not {"colorama", "tomli", "exceptiongroup"} & set(needed)
    assert {"numpy", "finufft"} <= set(needed)
    some = [form.format(name) for name in needed if name != "finufft"]
    assert wheels.main([str(write(tmp_path, some))]) == 0
    assert capsys.readouterr().out == "finufft\n"


def write(folder, lines):
    path = folder / "names.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_help_is_the_head_of_the_script_and_nothing_runs(machine):
    said = subprocess.run(
        [str(SCRIPT), "--help"], capture_output=True, encoding="utf-8", check=True, cwd="/"
    ).stdout.splitlines()
    assert said[0].startswith(".ci/gpu [WHEELS [OUTPUT]]: all that needs a card")
    assert any("--wheels NAMES" in line for line in said)
    assert not any(line.startswith(("#", "set", "root=")) for line in said)


@pytest.mark.parametrize("there", [True, False])
def test_python_is_that_of_the_environment_in_the_checkout_if_it_is_there(tmp_path, there):
    script, own = tmp_path / "clone" / ".ci" / "gpu", tmp_path / "clone" / ".venv" / "bin"
    for folder in (script.parent, own, tmp_path / "programs"):
        folder.mkdir(parents=True)
    shutil.copy(SCRIPT, script)
    for folder in (own, tmp_path / "programs") if there else (tmp_path / "programs",):
        program = folder / ("python" if folder == own else "python3")
        program.write_text('#!/bin/sh\necho "$0 $*"\n', encoding="utf-8")
        program.chmod(0o755)
    done = subprocess.run(
        [str(script), "--wheels", "names.txt"], capture_output=True, encoding="utf-8", check=True,
        env={"PATH": f"{tmp_path / 'programs'}:/usr/bin:/bin"}, cwd=tmp_path,
    )  # fmt: skip
    which = own / "python" if there else tmp_path / "programs" / "python3"
    assert done.stdout == f"{which} {script.parent}/needed_wheels.py names.txt\n"


def test_what_is_missing_here_is_named(wheels, monkeypatch, capsys):
    assert wheels.main([]) == 0
    monkeypatch.setattr(wheels, "distributions", lambda: iter(()))
    assert wheels.main([]) == 1
    assert "carry their wheels: array-api-compat einops filelock finufft" in capsys.readouterr().out


def test_the_judge_goes_on_where_an_earlier_run_ended_and_says_how_far_it_came(monkeypatch, capsys):
    import judging_in_turn as judging

    assert judging.in_turn(list("abcdef"), 12) == list("cdefab")  # a third of 36 turns
    families = judging.families()
    assert {judging.in_turn(families, r)[0] for r in range(36)} == {*families}
    monkeypatch.setattr(judging, "families", lambda: list("abcdef"))
    monkeypatch.setattr(judging, "in_turn", lambda names: names)
    told = "families judged with the default profile"
    for codes, exit_code, line in (
        ([0] * 6, 0, f"6 of 6 {told}"),
        ([0, 1, 0, None, None, None], 1, f"3 of 6 {told}; failed: b; no time left for: d, e, f"),
        ([0, None, None, None, None, None], 0, f"1 of 6 {told}; no time left for: b, c, d, e, f"),
        ([None] * 6, 124, f"0 of 6 {told}; no time left for: a, b, c, d, e, f"),
    ):
        answers = iter(codes)
        monkeypatch.setattr(judging, "judge", lambda family, seconds, a=answers: next(a))
        assert judging.main(60) == exit_code
        assert capsys.readouterr().out == f"{line}\n"


def test_the_judge_stops_a_family_that_does_not_end_in_time(monkeypatch, capsys):
    import judging_in_turn as judging

    monkeypatch.setattr(judging, "families", lambda: ["slow", "quick"])
    monkeypatch.setattr(judging, "in_turn", lambda names: names)
    clock = [0.0]

    def judge(family, seconds):
        clock[0] += seconds if family == "slow" else 1
        return None if family == "slow" else 0

    monkeypatch.setattr(judging, "monotonic", lambda: clock[0])
    monkeypatch.setattr(judging, "judge", judge)
    assert judging.main(60) == 124  # the slow one was first, nothing is left for the other
    assert "no time left for: slow, quick" in capsys.readouterr().out
    monkeypatch.setattr(judging, "in_turn", lambda names: names[::-1])
    clock[0] = 0.0
    assert judging.main(60) == 0
    assert "1 of 2 families" in capsys.readouterr().out
