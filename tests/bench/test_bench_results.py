import json
from dataclasses import replace

import pytest
from timed import group, row, work

from docs.build.bars import BARS, BESIDE, beside, standing
from docs.build.benchmarks import recurrence_tables, tables
from refssm.bench.measuring.timing import Interval, Rates
from refssm.bench.results import document, lines
from refssm.bench.results.document import Document
from refssm.bench.results.rows import WorkRows, panels
from refssm.bench.work.sizes import size_of
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.usage_error import UsageError

MACHINE = {
    "processor": "one", "cores": 2, "system": "Linux", "threads": {"numba": 2}, "load": 0.5,
    "versions": {"numpy": "2.4"},
}  # fmt: skip
RATES = Rates(1e10, 1e11, 5e10)


def run(*groups, **more):
    return Document("2026-11-23T06:00:00Z", "refssm bench", {**MACHINE, **more}, RATES, [*groups])


def refused():
    failed = replace(row("torch: two"), status="failed", message="raised RuntimeError: no")
    return WorkRows(work(vjp=True), [*group().rows, failed])


def test_a_run_is_the_same_after_it_was_written_and_read(tmp_path):
    made = run(group(), refused())
    document.write(tmp_path / "run.json", made)
    assert document.read(tmp_path / "run.json") == made
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_numbers_that_are_not_finite_are_null(tmp_path):
    made = group()
    infinite = WorkRows(made.work, [replace(made.rows[0], ratio=float("inf"))])
    found = json.loads(document.text(run(infinite)), parse_constant=lambda name: 1 / 0)
    assert found["works"][0]["rows"][0]["ratio"] is None


BAD = {
    "nothing": (None, "No such file"),
    "no JSON": ("{", "not a readable run"),
    "another document": ('{"results": []}', "not a run of refssm bench"),
    "a list": ("[]", "not a run of refssm bench"),
    "a later schema": ('{"schema": 2}', "schema 2; this version reads schema 1"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_no_run_is_one_sentence(tmp_path, what):
    text, sentence = BAD[what]
    path = tmp_path / "run.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=sentence) as found:
        document.read(path)
    assert "\n" not in str(found.value)


def words(old, new):
    return {c.label: c.word for c in document.compared(run(old), [new])}


def test_doctored_times_are_faster_slower_same_or_undecided():
    steady = (1.0, 1.001, 1.002, 1.0, 0.999, 0.998, 1.0)
    old = group(mirror=steady, jax=steady)
    assert words(old, old) == {"mirror": "same", "jax: one": "same"}
    halved = group(mirror=[t / 2 for t in steady], jax=[t * 2 for t in steady])
    assert words(old, halved) == {"mirror": "faster", "jax: one": "slower"}
    spread = group(mirror=(0.5, 2, 1, 1, 1, 1, 1), jax=[t * 1.04 for t in steady])
    assert words(old, spread) == {"mirror": "undecided", "jax: one": "same"}
    slightly = group(mirror=[t * 1.05 for t in steady], jax=steady)
    assert words(old, slightly)["mirror"] == "undecided"


def test_rows_that_only_one_run_has_are_undecided_and_say_so():
    old, new = group(), refused()
    (first, *_), *_ = [list(document.compared(run(old), [new]))]
    assert (first.word, first.message) == ("undecided", "not in the old run")
    timed = WorkRows(new.work, [*group().rows, row("torch: two", *[1.0] * 7)])
    last = list(document.compared(run(new), [timed]))[-1]
    assert (last.word, last.message) == ("undecided", "failed in the old run")
    assert document.counts(list(document.compared(run(old), [old]))) == "2 same"


def test_another_machine_and_other_versions_are_said():
    new = {**MACHINE, "processor": "two", "versions": {"numpy": "2.5", "jax": "0.10"}}
    assert document.differences(MACHINE, MACHINE) == []
    assert document.differences(MACHINE, {**MACHINE, "load": 9}) == []
    assert document.differences(MACHINE, new) == [
        "processor: one before, two now",
        "versions: jax none before, 0.10 now",
        "versions: numpy 2.4 before, 2.5 now",
    ]


def at_bar(name, vjp=False, **times):
    size = size_of(operator_named(name), "paper")
    letters = {**size.batch, **size.core, **size.given}
    made = group(**times)
    mirror, *others = made.rows
    of = replace(made.work, name=name, size=letters, dtype=size.dtype, vjp=vjp)
    if formulas := BARS[name].formulas:
        others = [replace(r, label=f"{r.library}: {formulas[0]}") for r in others]
    return WorkRows(of, [replace(mirror, relative=1e-6), *others])


def stands(group, rates=None):
    """Where the mirror stands; there is a bar."""
    found = standing(group, rates)
    assert found is not None
    return found


def test_a_bar_is_met_or_missed_against_the_fastest_peer():
    slow = at_bar("selective_scan", jax=(3.5,) * 7)
    assert stands(slow).word == "met"
    faster = WorkRows(slow.work, [*slow.rows, row("torch: x", *[2.5] * 7, library="torch")])
    found = stands(faster)
    assert (found.against, found.word, found.came.value) == ("torch: x", "missed", 2.5)
    gradient = stands(at_bar("selective_scan", vjp=True, jax=(3.5,) * 7))
    assert (gradient.least, gradient.word) == (6, "missed")


def test_there_is_no_bar_at_another_size_or_without_a_peer():
    assert standing(group()) is None
    made = at_bar("selective_scan")
    assert standing(WorkRows(made.work, made.rows[:1])) is None
    assert standing(WorkRows(replace(made.work, dtype="float64"), made.rows)) is None


def test_not_significantly_slower_is_decided_by_the_interval():
    times = (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9)
    assert stands(at_bar("causal_convolution", jax=times)).word == "met"
    assert stands(at_bar("causal_convolution", jax=(0.9,) * 7)).word == "missed"


def test_a_bar_may_ask_for_an_error_and_a_time_in_copies():
    _, error = stands(at_bar("vandermonde_kernel_real")).others
    assert error == "error ≤ 3e-07: 1.0e-06, missed"
    made = at_bar("linear_scan", mirror=(3e-7,) * 7)
    (copies,) = stands(made, RATES).others  # 2 · 500 bytes at 1e10 a second: 1e-7
    assert copies == "≤ 2 copies: 3.0, missed"


def test_a_bar_of_the_formula_is_not_about_a_faster_method_which_is_said_beside():
    made = at_bar("cauchy_kernel", jax=(20.0,) * 7)
    rows = [*made.rows, row("jax: cauchy_unrolled", *[0.5] * 7, library="jax")]
    faster = WorkRows(made.work, rows)
    found = stands(faster)
    assert (found.against, found.came.value, found.word) == ("jax: cauchy_formula", 20.0, "met")
    assert found.others == ("the fastest peer, whatever its method: jax: cauchy_unrolled, 0.50×",)


def test_every_bar_asks_for_a_ratio_of_one_or_more():
    assert BARS
    ratios = [ratio for bar in BARS.values() for ratio in (bar.least(False), bar.least(True))]
    assert all(ratio >= 1 or ratio == 0 for ratio in ratios)
    assert all(bar.least(False) for bar in BARS.values())


@pytest.mark.parametrize(("ratio", "words"), [(4.5, "met met"), (3.0, "missed met"),
                                              (2.0, "missed missed")])  # fmt: skip
def test_a_bar_may_have_a_floor_which_is_said_beside(ratio, words):
    for vjp in (False, True):
        found = stands(at_bar("kimi_delta_rule_chunked", vjp, jax=(ratio,) * 7))
        (floor,) = found.others
        assert floor == f"floor 2.5×: {words.split()[1]}"
        assert (found.least, found.word) == (4, words.split()[0])


def test_a_bar_of_the_forward_call_alone_is_none_of_the_gradient():
    assert stands(at_bar("gated_delta_step", jax=(4.5,) * 7)).word == "met"
    assert standing(at_bar("gated_delta_step", vjp=True, jax=(4.5,) * 7)) is None


def mirror_at(name, seconds, vjp=False):
    """A group of one mirror at the size of the paper."""
    size = size_of(operator_named(name), "paper")
    of = replace(work(), name=name, size=size.letters, dtype=size.dtype, vjp=vjp)
    return WorkRows(of, [row("mirror", *[seconds] * 7, kind="mirror", library="numba")])


def test_a_bar_may_be_the_time_of_another_mirror_of_the_same_run():
    ((name, (other, most)),) = BESIDE.items()
    groups = [mirror_at(other, 9.0, vjp=True), mirror_at(other, 2.0)]
    for came, word in ((2.0 * most - 0.01, "met"), (2.0 * most + 0.01, "missed")):
        found = beside(mirror_at(name, came), groups)
        assert found is not None
        assert (found.came, found.word) == (came / 2, word)
        text = tables(run(mirror_at(name, came), *groups))
        assert f"| the mirror of `{other}` | 2 s |" in text
        assert f"| ≤ {most:g} times | {word} |" in text
    assert beside(mirror_at(name, 2.0, vjp=True), groups) is None
    assert beside(mirror_at(name, 2.0), groups[:1]) is None
    assert beside(groups[1], groups) is None


def test_the_page_says_which_bars_of_recurrences_wait_for_a_run():
    text = recurrence_tables([])
    assert "| `kimi_delta_rule_chunked` | ≥ 4× the fastest peer, VJP ≥ 4×, floor 2.5× |" in text
    assert "| `kimi_delta_step` | ≥ 4× the fastest peer |" in text
    assert "| `mamba2_scan` | ≤ 1.3 times as long as `ssd_chunked` |" in text
    assert "selective_scan" not in text
    made = run(at_bar("kimi_delta_step", jax=(4.5,) * 7))
    assert recurrence_tables([made]) == tables(made)
    assert recurrence_tables([made, made]).count(tables(made).strip()) == 2


def test_the_table_has_every_row_and_its_shares():
    made = at_bar("selective_scan", jax=(3.5,) * 7)
    failed = replace(row("torch: two"), status="failed", message="raised RuntimeError: no")
    text = "\n".join(lines.table(WorkRows(made.work, [*made.rows, failed]), RATES))
    assert "selective_scan float32   b=2 g=1 d=512 l=2048 n=16" in text
    assert "3.50× [3.50, 3.50]" in text
    assert "bar" not in text
    assert "torch: two   failed: raised RuntimeError: no" in text


def test_shares_are_of_the_rates_of_the_same_run():
    of = replace(work(), bytes=5_000_000_000, flops=2e10)
    cells = lines.cells(WorkRows(of, group().rows), group().rows[0], RATES)
    assert cells[5:7] == ("5 (50%)", "20 (20%)")
    assert (
        lines.cells(WorkRows(replace(of, flops=None), group().rows), group().rows[0], RATES)[6]
        == ""
    )


def test_times_have_a_unit():
    assert [lines.seconds(t) for t in (2.0, 0.0123, 4.5e-6)] == ["2 s", "12.3 ms", "4.5 µs"]
    assert lines.spread(row("x", 0.95, 0.95, 1.01, 1.01)) == "950 to 1010 ms"
    assert lines.times(Interval(12.34, 1.234, 123.4)) == "12.3× [1.23, 123]"


def test_the_picture_has_bits_of_the_largest_entry():
    made = at_bar("selective_scan")
    (panel,) = panels([made, refused()])
    (point,) = panel.points  # JAX's row has no accuracy
    assert point.bits == pytest.approx(19.93, abs=0.01)  # −log₂(1e-6)
    assert panel.digits == 24
