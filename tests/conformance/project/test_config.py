"""`[tool.refssm]`: its settings, what overrides it, what is rejected, what is reported."""

import json
import shlex

import numpy as np
import pytest
from judging import SCAN, plugin, run

from refssm.conformance.project import keys
from refssm.conformance.project import pyproject as config
from refssm.conformance.usage_error import UsageError

QUICK = ("--check", "alias", "--dtype", "float32")
TWICE = SCAN.replace("return x", "return 2 * x")
LAST = "b n l, b n l -> b n l"
TURNED = """
from refssm import linear_scan as ours

def linear_scan(a, b):
    x = ours(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2).copy()
    x[..., 16:] = 0
    return x
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


def configure(folder, text, name="pyproject.toml"):
    (folder / name).write_text(f"[tool.refssm]\n{text}\n", encoding="utf-8")


def words_again(out):
    """The arguments of the first `again:` line."""
    line = next(line for line in out.splitlines() if "again: refssm " in line)
    return shlex.split(line.split("again: refssm ")[1])


def worst(out):
    return next(x for x in out.splitlines() if x.startswith("  ") and "worst x[" in x)


def test_a_bare_command_judges_the_targets_of_the_file_as_the_file_says(folder, capfd):
    configure(
        folder,
        'targets = "my_ops.py"\nprofile = "quick"\nseed = 3\ntimeout = 5\n'
        'checks = ["alias"]\ndtypes = ["float32"]',
    )
    result, out, _ = run(capfd, "verify")
    assert result == 0
    assert "my_ops.py   profile quick, seed 3" in out
    told = "pyproject.toml: profile quick, seed 3, dtypes float32, checks alias, timeout 5"
    assert told in out.splitlines()
    assert out.startswith("PASS: linear_scan (my_ops.py): ")


def test_the_command_line_comes_before_the_file(folder, capfd):
    configure(folder, 'profile = "quick"\nseed = 3\ndtypes = ["float64"]\nchecks = ["value"]')
    result, out, _ = run(capfd, "verify", "my_ops.py", *QUICK, "--seed", 4)
    assert result == 0
    assert "profile quick, seed 4" in out
    assert "alias [float32]\n" in out
    told = "command line: dtype float32, check alias, seed 4; pyproject.toml: profile quick"
    assert told in out.splitlines()


def test_nothing_is_told_where_nothing_differs(folder, capfd):
    result, out, _ = run(capfd, "verify", "my_ops.py", "--seed", 0, *QUICK)
    assert result == 0
    assert "seed 0" in out
    assert "command line: dtype float32, check alias" in out.splitlines()
    assert "pyproject" not in out


def test_the_nearest_file_with_the_table_counts_and_names_paths_from_its_own_folder(
    folder, capfd, monkeypatch
):
    inner = folder / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'other'\n", encoding="utf-8")
    configure(folder, 'targets = ["my_ops.py"]\nchecks = "alias"\ndtypes = "float32"')
    monkeypatch.chdir(inner)
    result, out, _ = run(capfd, "verify")
    assert result == 0
    assert "../my_ops.py   profile" in out
    assert "../pyproject.toml: " in out
    configure(inner, 'profile = "quick"')
    assert config.nearest(inner).values == {"profile": "quick"}


@pytest.mark.long
def test_another_file_may_be_named_and_none_may_be_wanted(folder, capfd):
    configure(folder, 'profile = "nonsense"')
    configure(folder, 'profile = "quick"', "other.toml")
    call = ("verify", "my_ops.py", *QUICK)
    assert run(capfd, *call)[0] == 4
    result, out, _ = run(capfd, *call, "--config", "other.toml", "--json")
    assert result == 0
    assert (json.loads(out)["profile"], json.loads(out)["config"]) == ("quick", "other.toml")
    result, out, _ = run(capfd, *call, "--no-config", "--json")
    assert result == 0
    assert (json.loads(out)["profile"], json.loads(out)["config"]) == ("default", None)
    for both in (
        ("--config", "other.toml", "--no-config"),
        ("--no-config", "--config", "other.toml"),
    ):
        result, _, err = run(capfd, *call, *both)
        assert result == 4
        assert "--config and --no-config cannot be combined: leave one out" in err


def test_whoever_names_a_target_judges_nothing_else(folder, capfd):
    plugin(folder, TWICE, "twice.py")
    configure(folder, 'targets = ["twice.py"]\nsubjects = ["scipy"]')
    result, out, _ = run(capfd, "verify", "my_ops.py", *QUICK)
    assert result == 0
    assert "twice.py" not in out
    assert "refssm.subjects" not in out


@pytest.mark.long
def test_a_declaration_comes_before_the_file_and_the_command_line_before_both(folder, capfd):
    """A layout in the file applies to functions without a declaration."""
    declared = f"from refssm.testing import implements\n{SCAN}".replace(
        "def linear", '@implements("linear_scan", layout="b l n, b l n -> b l n")\ndef linear'
    )
    plugin(folder, declared, "declared.py")
    plugin(folder, TURNED, "turned.py")
    configure(folder, f'layout = "{LAST}"\nftz = true')
    call = ("--check", "value", "--dtype", "float32", "--profile", "quick")
    assert run(capfd, "verify", "declared.py", *call)[0] == 0
    result, out, _ = run(capfd, "verify", "turned.py", *call)
    assert result == 1
    assert f"linear_scan: layout {LAST}; indices below are in the order b l n" in out
    assert "subnormal numbers may be flushed to zero" in out
    _, out, _ = run(capfd, "verify", "turned.py", *call, "--no-ftz", "--layout", LAST)
    assert "flushed to zero" not in out
    assert run(capfd, "verify", "declared.py", *call, "--layout", LAST)[0] == 1


@pytest.mark.long
@pytest.mark.parametrize("check", ["value", "causal"])
def test_a_failure_under_a_file_is_seen_again_without_it(folder, capfd, check):
    text = {"value": "x[..., 16:] = 0", "causal": "x[..., 0] += b.sum(-1)"}[check]
    plugin(folder, TURNED.replace("x[..., 16:] = 0", text))
    (folder / "known.toml").write_text("", encoding="utf-8")
    configure(
        folder,
        f'layout = "{LAST}"\nseed = 5\nprofile = "quick"\ntimeout = 30\nwhere = "l=1..80"\n'
        'targets = "my_ops.py"\nsubjects = "jit"\nknown-failures = "known.toml"',
    )
    call = ("verify", "my_ops.py", "--check", check, "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 1
    words = words_again(out)
    assert words[0] == "replay"
    configure(folder, 'seed = "the file changed meanwhile"')
    result, repeated, _ = run(capfd, *words)
    assert result == 1
    assert worst(out) in repeated


def test_own_arrays_are_judged_whatever_checks_the_file_names(folder, capfd):
    a = np.full((3, 4, 1), 0.5, np.float32)
    np.savez("mine.npz", a=a, b=a)
    (folder / "known.toml").write_text("nonsense", encoding="utf-8")
    configure(folder, 'checks = ["alias"]\ndtypes = ["float64"]\nknown-failures = "known.toml"')
    result, out, _ = run(capfd, "verify", "my_ops.py", "--inputs", "mine.npz")
    assert result == 0
    assert "value [float32]\n" in out
    assert "pyproject.toml: " not in out
    result, _, err = run(
        capfd, "verify", "my_ops.py", "--inputs", "mine.npz", "--known", "known.toml"
    )
    assert result == 4
    assert "leave --known out" in err


@pytest.mark.long
def test_a_range_of_the_file_narrows_what_has_it(folder, capfd):
    configure(folder, 'where = ["l=3..5", "dt=1e-3..1e-1"]')
    result, out, _ = run(capfd, "verify", "my_ops.py", "--check", "value", "--dtype", "float32")
    assert result == 0
    assert "limited to l=3..5" in out
    _, out, _ = run(capfd, "verify", "my_ops.py", *QUICK, "--where", "l=7..9")
    assert "limited to l=7..9" in out


TABLE = "pyproject.toml: [tool.refssm]"
KEY = TABLE + " "
MALFORMED = {
    "unknown key": (
        "profle = 'quick'",
        TABLE + ": unknown key 'profle'; did you mean profile? wanted",
    ),
    "underscore": ("known_failures = 'x'", "did you mean known-failures?"),
    "nothing near": ("zzz = 1", TABLE + ": unknown key 'zzz'; wanted targets, subjects, profile"),
    "profile": (
        "profile = 'quik'",
        "one of quick, default, thorough, got 'quik'; did you mean quick?",
    ),
    "a profile of another type": ("profile = 3", "wanted one of quick, default, thorough, got 3"),
    "negative seed": ("seed = -1", KEY + "seed: wanted a whole number of 0 or more, got -1"),
    "half a seed": ("seed = 1.5", "got 1.5"),
    "a true seed": ("seed = true", "seed: wanted a whole number of 0 or more, got True"),
    "a seed in words": ("seed = '3'", "got '3'"),
    "type": ("dtypes = ['float23']", "got ['float23']; did you mean float32?"),
    "types as a number": ("dtypes = 32", "dtypes: wanted a list of float32"),
    "no types": ("dtypes = []", "got []"),
    "types of types": ("dtypes = [['float32']]", "got [['float32']]"),
    "check": ("checks = 'vlaue'", "did you mean value?"),
    "framework": ("framework = 'pytorch'", "did you mean torch?"),
    "device": ("device = 0", 'wanted a device such as "cuda", got 0'),
    "an empty device": ("device = ''", "got ''"),
    "layout": ("layout = ['b l n']", "wanted a layout such as"),
    "flag": ("ftz = 'yes'", KEY + "ftz: wanted true or false, got 'yes'"),
    "another flag": ("vjp = 1", "vjp: wanted true or false, got 1"),
    "no time": ("timeout = 0", "wanted seconds between 0.1 and 1e6, got 0"),
    "no number": ("timeout = nan", "got nan"),
    "for ever": ("timeout = inf", "got inf"),
    "a time in words": ("timeout = '60s'", "got '60s'"),
    "targets": ("targets = [1]", "targets: wanted a list of files and modules, got [1]"),
    "a target of nothing": ('targets = "my\\u0000ops.py"', "targets: wanted"),
    "subject": ("subjects = ['numpy']", "wanted a list of jit, scipy"),
    "a list of failures": ("known-failures = ['a']", "wanted the path of a file, got ['a']"),
    "a range of nothing": ("where = 'dtt=1..2'", "no operator has an argument or a size 'dtt'"),
    "no range": ("where = 'dt'", "'dt' is not NAME=LOW..HIGH"),
    "an empty range": ("where = ['dt=2..1']", "LOW must not exceed HIGH"),
    "no TOML": ("profile = ", "pyproject.toml: not valid TOML: Invalid value (at line 2"),
    "twice": ("seed = 1\nseed = 2", "not valid TOML: Cannot overwrite a value"),
    "a huge number": (f"seed = {'9' * 5000}", "not valid TOML"),
    "deep": (f"seed = {'[' * 5000}", "not valid TOML"),
    "a table": ("[tool.refssm.seed]\nx = 1", "wanted a whole number of 0 or more, got {'x': 1}"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_table_is_one_sentence_and_exit_code_4(folder, capfd, what):
    text, sentence = MALFORMED[what]
    configure(folder, text)
    result, out, err = run(capfd, "verify", "my_ops.py")
    assert result == 4
    assert sentence in err
    assert len(err) < 700  # the names of all subjects are among them
    assert len(err.strip().splitlines()) == 1
    assert out == ""


WHOLE = {
    "no table": (b"[tool]\nrefssm = 3\n", "[tool.refssm]: wanted a table, got 3"),
    "an array of tables": (b"[[tool.refssm]]\nseed = 3\n", "[tool.refssm]: wanted a table, got [{"),
    "not UTF-8": (b"[tool.refssm]\nprofile = '\xff'\n", "byte 25 is not UTF-8"),
    "zeros": (b"\0" * 9, "pyproject.toml: not valid TOML"),
}


@pytest.mark.parametrize("what", WHOLE)
def test_a_file_that_cannot_be_read_is_one_sentence_and_exit_code_4(folder, capfd, what):
    content, sentence = WHOLE[what]
    (folder / "pyproject.toml").write_bytes(content)
    result, _, err = run(capfd, "verify", "my_ops.py")
    assert result == 4
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


NAMED = {
    "absent": ("nowhere.toml", "nowhere.toml: No such file or directory"),
    "a folder": (".", ".: Is a directory"),
    "no table": ("plain.toml", "plain.toml has no table [tool.refssm]"),
}


@pytest.mark.parametrize("what", NAMED)
def test_a_named_file_without_the_table_is_one_sentence(folder, capfd, what):
    name, sentence = NAMED[what]
    (folder / "plain.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    result, _, err = run(capfd, "verify", "my_ops.py", "--config", name)
    assert result == 4
    assert err == f"refssm: {sentence}\n"


@pytest.mark.parametrize("text", ["tool = 3", "", "[tool.other]\nseed = 'x'", "[project]"])
def test_a_file_that_is_not_about_us_is_passed_by(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    assert not config.nearest(folder)


def test_a_layout_of_the_file_that_does_not_fit_says_whence_it_is(folder, capfd):
    configure(folder, "layout = 'b x, b x -> b x'")
    result, _, err = run(capfd, "verify", "my_ops.py")
    assert result == 4
    assert err.strip().endswith("(from [tool.refssm])")


def test_every_key_has_a_reader_that_refuses(folder):
    for key in keys.KEYS:
        (folder / "pyproject.toml").write_text(
            f"[tool.refssm]\n{key} = 1979-05-27\n", encoding="utf-8"
        )
        with pytest.raises(UsageError, match=key):
            config.nearest(folder)
