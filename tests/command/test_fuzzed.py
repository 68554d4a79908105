"""The command under made inputs: a documented exit code, never that of a bug, never a traceback."""

import json
import shutil
import subprocess
import sys

import pytest
import typer
from exchanging import two_small_cases
from fuzzing import arrays, command_lines, manifests, plugins, settings
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from judging import SCAN, plugin, run
from malformed import as_json

from refssm.command.application import app

FEW, MANY = 8, 110  # made inputs of each kind: 5 · 110 = 550 in the long run
ENDS = (0, 1, 4, 5)  # not 2: nobody interrupts; not 3: that is a bug of refssm
QUICK = ("--profile", "quick", "--check", "alias", "--dtype", "float32", "--in-process")
HEAVY = {"bench", "train", "experiment"}  # minutes of work where their options are right
GROUP = typer.main.get_command(app)


def _options(command):
    own = [name for parameter in command.params for name in parameter.opts]
    return own + [n for c in getattr(command, "commands", {}).values() for n in _options(c)]


OPTIONS = sorted({name for name in _options(GROUP) if name.startswith("-")} - {"--dask"})


def fuzzed(count, strategy):
    """A test of `count` made inputs, the same in every run."""
    how = hypothesis_settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.nested_given],
    )
    return lambda test: how(given(strategy)(test))


def ends_well(capfd, *arguments):
    """Run the command: a documented code; one sentence if it is 4."""
    capfd.readouterr()
    result, _, err = run(capfd, *arguments)
    assert result in ENDS, (arguments, result, err)
    assert "bug of refssm" not in err
    if result == 4:
        assert err.startswith("refssm: "), err
        assert len(err) < 1100, err
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A folder of two small cases, and its manifest."""
    return two_small_cases(tmp_path_factory.mktemp("fuzzed") / "cases")


COUNTS = [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.long)]


@pytest.mark.parametrize("count", COUNTS)
def test_made_command_lines_end_with_a_documented_code(count, folder, capfd):
    @fuzzed(count, command_lines(OPTIONS))
    def made(words):
        if not HEAVY & {*words}:
            # after the made words, so that a run that they start ends soon
            quick = QUICK if words[:1] == ["verify"] else ()
            ends_well(capfd, *words[:1], "--no-config" if quick else "", *words[1:], *quick)

    made()


@pytest.mark.parametrize("count", COUNTS)
def test_made_settings_end_with_a_documented_code(count, folder, capfd):
    @fuzzed(count, settings)
    def made(text):
        (folder / "pyproject.toml").write_bytes(text)
        ends_well(capfd, "verify", "my_ops.py", *QUICK)

    made()


@pytest.mark.parametrize("count", COUNTS)
def test_made_manifests_end_with_a_documented_code(count, cases, folder, capfd):
    pristine, tree = cases
    shutil.copytree(pristine, folder / "cases")

    @fuzzed(count, manifests(tree))
    def made(text):
        (folder / "cases" / "manifest.json").write_bytes(text)
        ends_well(capfd, "cases", "judge", "cases")

    made()


@pytest.mark.parametrize("count", COUNTS)
def test_made_plugins_end_with_a_documented_code(count, folder, capfd):
    numbers = iter(range(10**6))

    @fuzzed(count, plugins)
    def made(text):
        name = f"made_{next(numbers)}.py"  # another module each time
        (folder / name).write_bytes(text)
        try:
            ends_well(capfd, "verify", name, "--no-config", *QUICK)
        finally:
            sys.modules.pop(name.removesuffix(".py"), None)
            sys.path[:] = [place for place in sys.path if place != str(folder)]

    made()


@pytest.mark.parametrize("count", COUNTS)
def test_made_files_of_arrays_end_with_a_documented_code(count, folder, capfd):
    @fuzzed(count, arrays)
    def made(text):
        name = "x.npz" if text.startswith(b"PK") else "x.npy"
        (folder / name).write_bytes(text)
        alone = ("verify", "--as", "linear_scan", "--no-config", "--output", name)
        ends_well(capfd, *alone, "--inputs", name)
        ends_well(capfd, "replay", name, "my_ops.py", "--in-process")

    made()


@pytest.mark.long
def test_made_plugins_end_with_a_documented_code_in_a_process_of_their_own(folder):
    made = []
    fuzzed(3, plugins)(lambda text: made.append(text))()
    for text in made:
        (folder / "made.py").write_bytes(text)
        call = [sys.executable, "-m", "refssm", "verify", "made.py", "--no-config", *QUICK[:-1]]
        ran = subprocess.run([*call, "--json"], capture_output=True, timeout=120)
        assert ran.returncode in ENDS, (text, ran.stderr)
        assert b"Traceback" not in ran.stderr
        if ran.returncode != 4:
            assert json.loads(ran.stdout)["schema"] == 3


def test_the_made_manifests_start_from_one_that_is_judged(cases, capfd, tmp_path):
    pristine, tree = cases
    folder = shutil.copytree(pristine, tmp_path / "cases")
    (folder / "manifest.json").write_bytes(as_json(tree))
    assert run(capfd, "cases", "judge", folder)[0] == 0
