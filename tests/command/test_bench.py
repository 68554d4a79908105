"""`refssm bench` as a user calls it: rows, files, comparisons, mistakes, Ctrl-C."""

import json
import re
from pathlib import Path

import pytest
from judging import SCAN, plugin, run

from docs.build import benchmarks
from refssm.bench.measuring import timing
from refssm.bench.measuring.timing import Rates
from refssm.bench.results import document

ROOT = Path(__file__).parents[2]
TWO = SCAN + SCAN.replace("linear_scan(", "by_chunks(").replace(
    "def by_chunks",
    "from refssm.testing import implements\n\n@implements('linear_scan')\ndef by_chunks",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing, "rates", lambda: Rates(1e10, 1e11, 5e10))
    return tmp_path


@pytest.mark.long
def test_a_run_prints_a_table_and_writes_a_file_that_the_next_one_compares(folder, capfd):
    call = ("bench", "linear_step", "--seconds", "0.01")
    result, out, err = run(capfd, *call, "--vjp", "--json", "run.json")
    assert (result, err) == (0, "")
    assert "linear_step float32   b=2 n=16" in out
    assert "linear_step_vjp float32" in out
    assert re.search(r"^  mirror .* 1 .*%", out, re.MULTILINE)
    found = document.read(folder / "run.json")
    assert [g.work.call for g in found.groups] == ["linear_step", "linear_step_vjp"]
    mirrors = [row for g in found.groups for row in g.rows if row.kind == "mirror"]
    assert all(len(row.seconds) >= 7 for row in mirrors)
    assert [p.name for p in folder.iterdir()] == ["run.json"]

    old = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for work in old["works"]:
        for row in work["rows"]:
            row["seconds"] = [1e3 * t for t in row["seconds"]]
    old["machine"]["processor"] = "another"
    (folder / "old.json").write_text(json.dumps(old), encoding="utf-8")
    result, out, err = run(capfd, *call, "--against", "old.json")
    assert (result, err) == (0, "")
    assert re.search(r"processor: another before, .* now", out)
    assert out.rstrip().endswith("2 faster")


@pytest.mark.long
def test_a_file_is_timed_beside_ours_and_drawn(folder, capfd):
    pytest.importorskip("matplotlib")
    name = plugin(folder, TWO)
    result, out, err = run(capfd, "bench", name, "--seconds", "0.01", "--plot", "two.svg")
    assert (result, err) == (0, "")
    labels = ("reference", "mirror", "my_ops.py::linear_scan", "my_ops.py::by_chunks")
    drawn = (folder / "two.svg").read_text(encoding="utf-8")
    assert all(label in out and label in drawn for label in labels)
    assert out.rstrip().endswith("two.svg")


@pytest.mark.long
def test_a_wrong_file_is_refused_and_the_exit_code_says_so(folder, capfd):
    name = plugin(folder, SCAN.replace("return x", "return x * 1.001"))
    result, out, _ = run(capfd, "bench", name, "--seconds", "0.01")
    assert result == 1
    assert "my_ops.py::linear_scan   refused: FAIL linear_scan/value[complex64]" in out
    assert re.search(r"^  mirror .* 1 ", out, re.MULTILINE)


@pytest.mark.long
def test_a_file_that_ends_the_process_is_refused_and_ends_no_run(folder, capfd):
    name = plugin(folder, SCAN.replace("    state = 0", "    import os; os._exit(3)"))
    result, out, _ = run(capfd, "bench", name, "--seconds", "0.01")
    assert result == 1
    assert "ended the process with exit code 3" in out
    assert re.search(r"^  mirror .* 1 ", out, re.MULTILINE)


@pytest.mark.long
def test_missing_libraries_are_one_line_each(capfd, monkeypatch):
    from refssm.bench.programs import program

    monkeypatch.setattr(program, "absent", lambda name: f"{name} is not installed: pip install it")
    result, out, _ = run(capfd, "bench", "linear_step", "--peers", "--seconds", "0.01")
    assert result == 0
    for name in program.PEERS:
        assert out.count(f"\n{name} is not installed: pip install it\n") == 1


MISTAKES = {
    ("linear_scam",): "`linear_scam` is neither an operator nor a file or module; did you mean",
    ("absent.py",): "absent.py: no such file",
    ("--sizes", "huge"): "unknown sizes 'huge'; wanted one of small, paper, large, one",
    ("--dtype", "int8"): "unknown type 'int8'; wanted one of float32, float64, complex64",
    ("--json", "nowhere/run.json"): "--json nowhere/run.json: No such file or directory",
    ("--json", "."): "--json .: ",
    ("--plot", "run.pdf"): "run.pdf: wanted a file name that ends in .png or .svg",
    ("--against", "absent.json"): "absent.json: not a readable run of refssm bench: No such file",
    ("--seconds", "-1"): "Invalid value for '--seconds'",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_sentence_before_anything_runs(folder, capfd, arguments):
    result, out, err = run(capfd, "bench", *arguments)
    assert (result, out) == (4, "")
    assert MISTAKES[arguments] in err
    assert len(err.strip().splitlines()) == 1
    assert [*folder.iterdir()] == []


@pytest.mark.long
def test_ctrl_c_prints_the_rows_so_far_and_leaves_no_file(folder, capfd, monkeypatch):
    whole = timing.interleaved
    works = []

    def second(*args):
        works.append(1)
        times = whole(*args)
        if len(works) == 2:
            raise KeyboardInterrupt
        return times

    monkeypatch.setattr(timing, "interleaved", second)
    (folder / "run.json").write_text("old", encoding="utf-8")
    call = ("bench", "linear_step", "--vjp", "--seconds", "0.01", "--json", "run.json")
    result, out, err = run(capfd, *call)
    assert result == 2
    assert err == "refssm: interrupted\n"
    assert "linear_step float32" in out
    assert "linear_step_vjp float32" in out  # the rows of the work that was interrupted
    assert (folder / "run.json").read_text(encoding="utf-8") == "old"
    assert [p.name for p in folder.iterdir()] == ["run.json"]


def test_an_interrupted_file_leaves_the_old_one_and_nothing_else(folder, monkeypatch):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(document, "text", interrupted)
    path = folder / "run.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        document.write(path, None)  # pyright: ignore[reportArgumentType]
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in folder.iterdir()] == ["run.json"]


@pytest.mark.long
def test_growth_adds_a_slope(folder, capfd, monkeypatch):
    from refssm.bench import growth

    monkeypatch.setattr(growth, "LENGTHS", (1024, 2048, 4096))
    result, out, _ = run(capfd, "bench", "linear_scan", "--growth", "--seconds", "0.01",
                         "--json", "run.json")  # fmt: skip
    assert result == 0
    assert re.search(r"^linear_scan   complex64   slope -?\d", out, re.MULTILINE)
    (found,) = document.read(folder / "run.json").growth
    assert found["lengths"] == [1024, 2048, 4096]


WRITERS = [
    benchmarks.OPERATORS,
    benchmarks.OF_RECURRENCES,
    benchmarks.TRAINING,
    benchmarks.ON_CARD,
]


@pytest.mark.parametrize("writer", WRITERS)
def test_the_page_of_benchmarks_is_written_between_its_marks(writer):
    text, (begin, end) = (
        (ROOT / benchmarks.PAGE).read_text(encoding="utf-8"),
        benchmarks.marks(writer),
    )
    written = benchmarks.page(text, "new", writer)
    before, _, rest = text.partition(begin)
    assert written.startswith(before + begin + "\nnew\n" + end)
    assert benchmarks.page(written, "new", writer) == written
    assert written.endswith(rest.partition(end)[2])
    with pytest.raises(ValueError, match="no marks"):
        benchmarks.page("no page", "new")


def test_the_page_of_benchmarks_is_what_its_run_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    if not benchmarks.RUN.is_file():
        pytest.skip("no run yet: make benchmarks")
    text = benchmarks.PAGE.read_text(encoding="utf-8")
    tables = benchmarks.tables(document.read(benchmarks.RUN), benchmarks.PICTURE.is_file())
    assert text == benchmarks.page(text, tables)
    recurrences = benchmarks.recurrence_tables(benchmarks.runs_of(benchmarks.RECURRENCES))
    assert text == benchmarks.page(text, recurrences, benchmarks.OF_RECURRENCES)
    steps = benchmarks.tables(document.read(benchmarks.STEPS))
    assert text == benchmarks.page(text, steps, benchmarks.TRAINING)
    card = benchmarks.card_tables(benchmarks.runs_of(benchmarks.CARD))
    assert text == benchmarks.page(text, card, benchmarks.ON_CARD)


def test_a_run_from_before_there_were_groups_has_its_bar():
    from timed import group

    from docs.build import bars
    from refssm.bench.work.sizes import size_of
    from refssm.selective_scan import SELECTIVE_SCAN

    size = size_of(SELECTIVE_SCAN, "paper")
    before = {name: n for name, n in {**size.batch, **size.core}.items() if name != "g"}
    for letters, bar in ((before, bars.BARS["selective_scan"]), ({**before, "n": 32}, None)):
        made = group(jax=(3.5,) * 7, name="selective_scan", **letters)
        work = type(made.work)(**{**vars(made.work), "dtype": size.dtype})
        assert bars.bar_of(type(made)(work, made.rows)) is bar


def test_the_page_has_every_bar_and_every_row_of_a_run():
    from timed import group, row

    from refssm.bench.results.rows import WorkRows
    from refssm.bench.work.sizes import size_of
    from refssm.selective_scan import SELECTIVE_SCAN

    size = size_of(SELECTIVE_SCAN, "paper")
    made = group(jax=(3.5,) * 7, name="selective_scan", **size.batch, **size.core)
    work = type(made.work)(**{**vars(made.work), "dtype": size.dtype})
    failed = type(row("x"))("torch: two", "peer", "torch", "failed", "raised RuntimeError: no")
    grown = {"name": "linear_scan", "dtype": "float32", "lengths": [1024, 2048],
             "seconds": [1e-3, 2e-3], "slope": 1.0}  # fmt: skip
    about = {"processor": "one", "cores": 2, "system": "Linux", "load": 0.1}
    about |= {"threads": {"numba": 2}, "versions": {"numpy": "2.4"}}
    groups = [
        WorkRows(work, [*made.rows, failed]),
        WorkRows(type(work)(**{**vars(work), "vjp": True}), [failed]),
    ]
    ran = document.Document("2026", "refssm bench", about, Rates(1e10, 1e11, 5e10), groups, [grown])
    text = benchmarks.tables(ran)
    told = "float32 b=2 g=1 d=512 l=2048 n=16"
    assert f"| `selective_scan` | {told} | 1 s | jax: one | 3.5 s |" in text
    assert "| 3× | met |" in text
    assert "no peer was timed" in text
    assert "- torch: two: failed, raised RuntimeError: no" in text
    assert "| `linear_scan` | float32 | 1 ms at l = 1024 | 2 ms at l = 2048 | 1.00 |  |" in text
    assert "copy 10.0 GB/s" in text
