"""What one run of the judge computed the next run reads from disk."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from refssm import oracle
from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.written import packed, unpacked
from refssm.conformance.judging import expected, kept
from refssm.conformance.judging.expected import expect
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.standard import Standard
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_IMPULSE
from refssm.krylov import KRYLOV_KERNEL
from refssm.scan import LINEAR_SCAN
from refssm.testing import Budget

FOLDER_OF = kept.folder_of
ARRAYS = {
    "wide": np.array([1 / np.longdouble(3), -np.inf]),
    "one": np.array(2.5),
    "none": np.zeros((0, 3), np.complex64),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of this test's own, which is used."""
    monkeypatch.setattr(kept, "folder_of", lambda: tmp_path)
    monkeypatch.setattr(kept, "WORTH", 0)
    monkeypatch.setattr(kept, "_written", 0)
    with kept.keeping():
        yield tmp_path


def made(made_of=b"this", arrays=ARRAYS):
    """How often the arrays had to be made."""
    file = kept.KeptFile(lambda: made_of)
    found = file.arrays()
    if found is None:
        file.keep(lambda: arrays)
        return 1
    assert same(found, arrays)
    return 0


def same(one, other):
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name])
        for name in one
    )


def test_arrays_are_made_once_and_then_read(folder):
    assert [made(), made()] == [1, 0]
    assert len(list(folder.iterdir())) == 1


def test_other_arguments_and_other_sources_have_other_files(folder, monkeypatch):
    assert [made(b"this"), made(b"that")] == [1, 1]
    monkeypatch.setattr(kept, "_state", lambda: "other sources")
    assert made(b"this") == 1


@pytest.fixture
def sources(tmp_path_factory, monkeypatch):
    """A folder in place of refssm's own sources."""
    root = tmp_path_factory.mktemp("sources")
    for name in (*DECIDE, *DO_NOT):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(kept, "PACKAGE", root)
    yield root
    kept._state.cache_clear()


DECIDE = (
    *("cauchy.py", "oracle/cauchy.py", "enclosure/balls.py", "presets/cauchy.py"),
    *("conformance/standard.py", "conformance/gauges/dplr.py", "conformance/judging/grading.py"),
)
DO_NOT = ("jit/cauchy.py", "command/show.py", "conformance/report/lines.py")


def named_by():
    """The file's name for the same arguments, with all that decides read again."""
    kept._state.cache_clear()
    return kept.place_of(b"arguments")


@pytest.mark.usefixtures("folder")
def test_a_changed_source_gives_another_name(sources):
    for name in (*DECIDE, *DO_NOT):
        before = named_by()
        (sources / name).write_text("x = 2\n", encoding="utf-8")
        assert (named_by() != before) == (name in DECIDE), name
    before = named_by()
    (sources / "cauchy.py").rename(sources / "other.py")
    assert named_by() != before


@pytest.mark.usefixtures("folder", "sources")
def test_another_library_or_another_machine_gives_another_name(monkeypatch):
    before = named_by()
    for name in kept.LIBRARIES:
        with monkeypatch.context() as patch:
            patch.setattr(kept, "version", lambda n, name=name: "0" if n == name else "1")
            other = named_by()
            patch.setattr(kept, "version", lambda n: "1")
            assert other != named_by(), name
    for module, name in ((sys, "version"), (sys, "platform")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, "another")
            assert named_by() != before
    with monkeypatch.context() as patch:
        patch.setattr(kept.platform, "machine", lambda: "another")
        assert named_by() != before
    assert named_by() == before


IMPORTED = """
import sys
from pathlib import Path
from refssm.conformance.gauges import programs
from refssm.conformance.judging import expected, kept
from refssm.catalog import OPERATORS
from refssm.oracle import evaluate
ours = [m for name, m in sys.modules.items() if name.startswith("refssm")]
files = [getattr(m, "__file__", None) for m in ours]
places = [Path(file).relative_to(kept.PACKAGE) for file in files if file]
print(len(places), *(place for place in places if not kept.decides(place)))
"""


def test_no_file_that_expected_values_import_is_left_out_of_the_hash():
    ran = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, encoding="utf-8")
    count, *apart = ran.stdout.split()
    assert int(count) > 100, ran.stderr
    assert not apart


def test_the_allowed_ratio_has_a_file_of_its_own_where_it_decides_the_bound(folder):
    op, k0 = CAUSAL_CONVOLUTION_DIRECT, []
    arrays = ordinary_case(op, "float32").arrays
    for C in (16, 64, 16):
        held = Standard.of("float16", Budget(C=C, computes="float32"), ftz=True)
        k0.append(expect(op, arrays, standard=held)[0].k0)
    assert np.array_equal(k0[0], k0[2])
    assert (k0[1] < k0[0]).all()
    assert len(list(folder.iterdir())) == 2


def test_outside_of_a_run_nothing_is_kept(folder):
    with kept.keeping():
        pass
    kept._keeping -= 1
    try:
        assert [made(), made()] == [1, 1]
    finally:
        kept._keeping += 1
    assert not list(folder.iterdir())


def test_what_is_made_as_quickly_as_read_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(kept, "WORTH", 4)
    assert [made(), made()] == [1, 1]


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "longer"])
def test_a_damaged_file_is_made_anew(folder, damage):
    made()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    changed = bytes([*whole[:-1], whole[-1] ^ 1])
    file.write_bytes(
        {"cut": whole[:-9], "empty": b"", "changed": changed}.get(damage, whole + b".")
    )
    assert [made(), made()] == [1, 0]
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path / "file"))
    assert FOLDER_OF() is None
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path / "new"))
    assert FOLDER_OF() == tmp_path / "new" / "expected"


@pytest.mark.skipif(sys.platform == "win32", reason="a process's directory stays there")
def test_a_relative_folder_in_a_directory_that_was_removed_is_no_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("REFSSM_CACHE_DIR", "cache")
    assert FOLDER_OF() is None


def test_files_that_cannot_be_removed_do_not_count_as_room(folder, monkeypatch):
    monkeypatch.setattr(kept, "ROOM", kept.LOOK + 3_000)
    for i in range(6):
        (folder / f"{i}").write_bytes(bytes(1_000))
        os.utime(folder / f"{i}", (i, i))

    def unlink_some(path, missing_ok=False):
        if path.name in "012":
            raise PermissionError(path)
        os.unlink(path)

    monkeypatch.setattr(kept.Path, "unlink", unlink_some)
    kept._make_room(folder)
    assert sorted(file.name for file in folder.iterdir()) == ["0", "1", "2"]


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    monkeypatch.setattr(kept, "folder_of", lambda: folder / "absent")
    assert [made(), made()] == [1, 1]


def test_what_was_not_read_for_the_longest_time_is_removed(folder, monkeypatch):
    content = {"a": np.arange(1000.0)}
    monkeypatch.setattr(kept, "ROOM", 50_000)  # six files
    monkeypatch.setattr(kept, "LOOK", 8_000)  # each file
    for i in range(20):
        assert made(b"%d" % i, content) == 1
        place = kept.place_of(b"%d" % i)
        assert place is not None
        os.utime(place, (i, i))  # clocks of some disks are coarse
        assert made(b"0", content) == 0  # read each time: it is never the oldest
    assert made(b"19", content) == 0
    assert sum(file.stat().st_size for file in folder.iterdir()) <= kept.ROOM
    assert made(b"1", content) == 1


WRITER = """
import sys
from pathlib import Path
import numpy as np
from refssm.conformance.judging import kept
place, number = Path(sys.argv[1]), 0
for i in range(300):
    kept.write(place, {"a": np.arange(20000.0)})
    read = kept.read(place)
    assert read is None or np.array_equal(read["a"], np.arange(20000.0))
    number += read is None
print(number)
"""


@pytest.mark.long
def test_several_processes_see_whole_files(tmp_path):
    start = [sys.executable, "-c", WRITER, str(tmp_path / "file")]
    running = [subprocess.Popen(start, stdout=subprocess.PIPE, encoding="utf-8") for _ in range(3)]
    for process in running:
        assert process.communicate(timeout=60)[0] == "0\n"
        assert process.returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("op", [CAUCHY_KERNEL, DISCRETIZE_IMPULSE, KRYLOV_KERNEL], ids=str)
def test_gauges_come_back_as_they_were(op):
    case = ordinary_case(op, "complex128", (4, 3, 3, 2))
    gauged = bounds(op, case.arrays, case.statics, None, unit=2.0**-53, floor=0.0)
    arrays = packed(gauged)
    assert arrays is not None
    again = unpacked(arrays)
    assert same(arrays, packed(again))
    for before, after in zip(gauged, again, strict=True):
        if before.derive is not None:
            assert after.derive is not None
            assert np.array_equal(before.derive(), after.derive())
        if before.measure is not None:
            assert after.measure is not None
            wrong = before.value + 1
            assert np.array_equal(before.measure.of(wrong), after.measure.of(wrong))


def test_a_residual_is_not_kept():
    case = ordinary_case(DISCRETIZE_BILINEAR, "float64", (4, 3, 3, 2))
    assert packed(bounds(DISCRETIZE_BILINEAR, case.arrays, {}, None, unit=1.0, floor=0.0)) is None


def test_a_second_run_asks_no_oracle_and_gives_the_same_results(folder, monkeypatch):
    monkeypatch.setattr(expected, "find_spec", lambda name: None)
    first, certified = _results(), len(list(folder.iterdir()))
    monkeypatch.setattr(expected, "_quickest", lambda *_: 1 / 0)
    monkeypatch.setattr(expected, "bounds", lambda *_, **__: 1 / 0)
    assert _results() == first
    assert len(list(folder.iterdir())) == certified


def _results():
    found = [Found(CAUCHY_KERNEL, CAUCHY_KERNEL.reference, CAUCHY_KERNEL.bare_vjp)]
    asked = Settings(only_checks=("value", "gradient"), cases=5, folder=None)
    results = results_of(Session(InProcess(found), "here", asked))
    return [(r.check, r.dtype, r.grade, r.ratio) for r in results]


def test_a_certificate_is_always_made_from_the_oracle(folder, monkeypatch):
    case = ordinary_case(LINEAR_SCAN, "float64")
    expect(LINEAR_SCAN, case.arrays)
    asked, evaluate = [], oracle.evaluate
    monkeypatch.setattr(oracle, "evaluate", lambda *args: asked.append(1) or evaluate(*args))
    expected.expect_of_oracle(LINEAR_SCAN, case.arrays)
    assert asked


def test_the_hash_of_the_sources_needs_little_time():
    kept._state.cache_clear()
    started = time.perf_counter()
    kept._state()
    assert time.perf_counter() - started < 2
