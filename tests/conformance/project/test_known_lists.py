"""The file of known failures: valid contents, and which results its entries match."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from judging import SCAN, plugin, run
from listing import FAR, PAST, VALUE, entry, listed, result

from refssm.conformance.judging.result import Result
from refssm.conformance.project import known_failures as known
from refssm.conformance.project import pyproject as config
from refssm.conformance.usage_error import UsageError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN)
    return tmp_path


MALFORMED = {
    "no TOML": ("[[known]\n", "known.toml: not valid TOML: Expected ']]'"),
    "one bracket": (
        "[known]\nid = 'x'\n",
        "wanted tables [[known]], with two brackets on each side",
    ),
    "another table": ("[[knwon]]\nid = 'x'\n", "wanted tables [[known]], got 'knwon'"),
    "words": ("known = 'linear_scan'\n", "with two brackets on each side"),
    "a list of words": ("known = ['linear_scan']\n", "with two brackets on each side"),
    "no id": (f"[[known]]\nreason = 'x'\nexpires = {FAR}\n", "entry 1: `id` is missing; wanted id"),
    "no reason": (f"[[known]]\nid = '{VALUE}'\nexpires = {FAR}\n", "entry 1: `reason` is missing"),
    "no day": (f"[[known]]\nid = '{VALUE}'\nreason = 'x'\n", "entry 1: `expires` is missing"),
    "an empty reason": (entry(reason="  "), f"entry 1 ({VALUE}): `reason`: wanted a text"),
    "a reason of several lines": (entry(reason=r"a\nb"), "`reason`: wanted a text"),
    "a reason that is a number": (entry().replace('"carries too much"', "3"), "got 3"),
    "an unknown key": (entry() + "until = 3\n", "entry 1: unknown key 'until'; wanted id"),
    "a key with a slip": (entry() + "reasn = 'x'\n", "unknown key 'reasn'; did you mean reason?"),
    "a day in quotes": (entry(expires=f"'{FAR}'"), "a date without quotes, as 2027-01-31, got"),
    "a time of the day": (
        entry(expires=f"{FAR}T00:00:00"),
        "`expires`: wanted a date without quotes",
    ),
    "no such day": (entry(expires="2027-02-30"), "not valid TOML"),
    "a number as a day": (entry(expires="2027"), "got 2027"),
    "no check": (
        entry("linear_scan"),
        "entry 1: wanted an id operator/check[dtype], got 'linear_scan'",
    ),
    "no type": (entry("linear_scan/value"), "wanted an id operator/check[dtype]"),
    "a slip in the operator": (entry("liner_scan/value[float32]"), "did you mean linear_scan?"),
    "a slip in the check": (
        entry("linear_scan/vlaue[float32]"),
        "unknown check 'vlaue'; did you mean",
    ),
    "a slip in the type": (
        entry("linear_scan/value[float]"),
        "unknown type 'float'; did you mean float",
    ),
    "a pattern of nothing": (entry("linear_*z/value[*]"), "unknown operator 'linear_*z'"),
    "an id that is a number": (entry().replace(f'"{VALUE}"', "7"), "entry 1: `id`: wanted a text"),
    "an empty implementation": (
        entry().replace("reason", "implementation=''\nreason", 1),
        "got ''",
    ),
    "the same twice": (entry() + entry(), f"{VALUE} is listed twice"),
    "the second": (entry() + entry("x"), "entry 2: wanted an id operator/check[dtype], got 'x'"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_list_is_one_sentence_and_exit_code_4(folder, capfd, what):
    text, sentence = MALFORMED[what]
    listed(text)
    code, out, err = run(capfd, "verify", "my_ops.py", "--known", "known.toml")
    assert code == 4
    assert err.startswith("refssm: known.toml: ")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_a_list_that_is_not_there_is_one_sentence(folder, capfd):
    code, _, err = run(capfd, "verify", "my_ops.py", "--known", "nowhere.toml")
    assert (code, err) == (4, "refssm: nowhere.toml: No such file or directory\n")


def test_an_entry_holds_on_its_last_day_and_no_longer(folder):
    path = folder / listed(entry(expires="2026-02-28"))
    for today, failed in ((date(2026, 2, 28), False), (date(2026, 3, 1), True)):
        found = known.read(path, today)
        assert found.marked(result()).failed == failed
        assert bool(found.complaints()) == failed


def test_of_two_entries_the_one_that_still_holds_counts(folder):
    path = folder / listed(entry(expires=PAST), entry("linear_scan/*[float32]"))
    found = known.read(path)
    assert found.marked(result()).expires == FAR
    assert len(found.complaints()) == 1  # the first entry is still expired


NAMES = {
    "my_ops.py": ("my_ops.py", "my_ops.py::scan", "./my_ops.py::scan"),
    "my_ops.py::scan": ("my_ops.py::scan", "./my_ops.py::scan"),
    "ops/my_ops.py": ("ops/my_ops.py",),
    "pkg.ops": ("pkg.ops", "pkg.ops:scan"),
    "pkg.*:scan": ("pkg.ops:scan",),
    "*": ("my_ops.py", "pkg.ops"),
}


@pytest.mark.parametrize("implementation", NAMES)
def test_an_implementation_is_named_by_its_target_with_or_without_its_function(
    folder, implementation
):
    (folder / "ops").mkdir()
    plugin(folder, "", "ops/my_ops.py")
    path = folder / listed(entry(implementation=implementation))
    targets = {name for names in NAMES.values() for name in names}
    meant = {t for t in targets if not known.read(path).marked(result(implementation=t)).failed}
    assert meant == (targets if implementation == "*" else set(NAMES[implementation]))


def test_a_list_names_files_from_its_own_folder(folder, monkeypatch):
    path = folder / listed(entry(implementation="my_ops.py"))
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert not known.read(path).marked(result(implementation="../my_ops.py")).failed


def test_brackets_of_an_id_are_brackets(folder):
    path = folder / listed(entry("linear_scan/value[*32]"))
    assert not known.read(path).marked(result()).failed
    assert known.read(path).marked(result(id="linear_scan/value[float64]")).failed


def test_only_failures_are_known(folder):
    path = folder / listed(entry())
    for verdict in ("wrong", "inaccurate", "error"):
        assert known.read(path).marked(result(verdict)).known == "carries too much"
    for verdict in ("pass", "skipped"):
        assert known.read(path).marked(result(verdict)) == result(verdict)


def test_a_skeleton_is_valid_toml_whatever_a_message_holds(folder):
    awkward = 'raised "x\x00\x1b[1m\\"\n# [[known]]'
    odd = Result("linear_scan", 'my "ops\\.py', "value", "float32", "error", message=awkward)
    path = folder / listed(known.skeleton([odd]).replace('reason = ""', 'reason = "x"'))
    (only,) = known.read(path).entries
    assert only.implementation == odd.implementation
    with pytest.raises(UsageError, match="wanted a text"):
        known.read(folder / listed(known.skeleton([odd])))


@pytest.mark.parametrize("what", ["settings", "list"])
def test_whatever_becomes_of_a_file_it_is_read_or_refused_in_a_sentence(folder, what):
    page = (Path(__file__).parents[3] / "docs/configuration.md").read_text(encoding="utf-8")
    table, listing = (b.partition("```")[0].encode() for b in page.split("```toml\n")[1:])
    whole = {"settings": table, "list": listing}[what]
    read = {"settings": config.named, "list": known.read}[what]
    rng, path, told = np.random.default_rng(8), folder / "changed.toml", []
    for _ in range(400):
        text = bytearray(whole)
        for place in rng.integers(len(text), size=rng.integers(1, 4)):
            kind = rng.integers(4)
            if kind == 0:
                text[place : place + int(rng.integers(1, 30))] = b""
            elif kind == 1:
                text[place : place + 1] = bytes(rng.integers(256, size=2, dtype=np.uint8))
            elif kind == 2:
                text[place:place] = text[: int(rng.integers(len(text)))]
            else:
                text[place : place + 1] = rng.choice([b"[", b"]", b'"', b"=", b"\n", b"*", b"{"])
        path.write_bytes(bytes(text))
        try:
            read(path)
        except UsageError as error:
            told.append(str(error))
    assert len(told) > 200
    assert [sentence for sentence in told if "changed.toml" not in sentence] == []
