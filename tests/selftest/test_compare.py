"""The comparison with other checks: each accepts what it should, and misses what the page says."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import typer

import refssm
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.checks.checks import types_of
from selftest import compare
from selftest.comparing import chunks, differences, inputs, page, published, rows
from selftest.comparing.programs import (
    APART,
    GROUPS,
    NAMES,
    RIGHT,
    TASK,
    Program,
    of_tasks,
    others,
    programs_of,
)
from selftest.comparing.recipes import near, trial
from selftest.comparing.rows import Row

ROOT = Path(__file__).parents[2]
METHODS = {method.name: method for method in compare.METHODS}
RECIPES = {recipe.name: recipe for recipe in published.RECIPES}
SCAN, SSD = operator_named("linear_scan"), operator_named("ssd_chunked")


def scan_program(forward, vjp=SCAN.bare_vjp, group="results") -> Program:
    found = Found(SCAN, forward, vjp)
    return Program(SCAN, "made_up", "float32", group, "made up", found)


def planted(operator: str, name: str) -> Program:
    return next(p for p in programs_of(operator) if p.name == name)


def all_but_the_judge_long(names):
    """The judge's runs take seconds."""
    marks = {True: [pytest.mark.long], False: []}
    return [pytest.param(n, marks=marks["refssm" in n]) for n in names]


@pytest.mark.parametrize("name", all_but_the_judge_long(METHODS))
def test_each_check_accepts_the_reference_and_catches_a_gross_error(name):
    right = scan_program(SCAN.reference, group=RIGHT)
    wrong = scan_program(lambda a, b: 2 * SCAN.reference(a, b))
    assert compare.verdict(METHODS[name], right)[0] == "accepted"
    assert compare.verdict(METHODS[name], wrong)[0] == "caught"


@pytest.mark.parametrize(
    ("name", "operator", "bug"),
    [
        ("torch.allclose", "linear_scan", "carry_lost_256"),  # its length is 128
        ("torch assert_close", "linear_scan", "nan_swallowed"),
        ("mamba_ssm", "selective_scan", "ragged_tail"),  # its lengths are multiples of 32
        ("fla assert_close", "linear_scan", "tf32"),
        ("KernelBench", "linear_scan", "vjp_sign"),  # it compares no gradients
        ("jax check_grads", "linear_scan", "strides_ignored"),
        ("GPU MODE", "chunk_outputs", "state_missing"),  # its gates leave nothing of a state
        ("GPU MODE", "chunk_states", "W_S_missing"),
    ],
)
def test_each_check_misses_what_it_is_said_to_miss(name, operator, bug):
    assert compare.verdict(METHODS[name], planted(operator, bug))[0] == "missed"


@pytest.mark.long
@pytest.mark.parametrize("bug", ["carry_lost_256", "nan_swallowed", "vjp_sign", "strides_ignored"])
def test_the_judge_catches_what_others_miss_and_quick_no_gradient(bug):
    program = planted("linear_scan", bug)
    assert compare.verdict(METHODS["refssm default"], program)[0] == "caught"
    quick = compare.verdict(METHODS["refssm quick"], program)[0]
    assert quick == ("missed" if program.group == "gradients" else "caught")


def test_the_published_numbers():
    assert published.ALLCLOSE == (1e-5, 1e-8)
    assert published.ASSERT_CLOSE == (1.3e-6, 1e-5)
    assert published.MAMBA_OUTPUT == (6e-4, 2e-3)
    assert published.MAMBA == {
        "du": (1.2e-3, 4e-3),
        "ddt": (3e-3, 2e-2),
        "dA": (1e-3, 1e-2),
        "dB": (6e-4, 2e-3),
        "dC": (6e-4, 2e-3),
    }
    assert (published.MAMBA_GRADIENT, published.MAMBA_SSD) == ((1e-3, 2e-3), (1e-2, 3e-3))
    assert (published.FLA, published.FLA_CONVOLUTION) == (5e-3, 1e-3)
    assert (published.FLA_NO_ERROR, published.FLA_NO_ERROR_OF_DECAY) == (1e-6, 2e-4)
    assert (published.FLA_DELTA["y"], published.FLA_DELTA["dlog_g"]) == (5e-3, 2e-2)
    assert (published.KERNELBENCH, published.GPU_MODE) == (1e-4, 1e-3)
    assert len(RECIPES["KernelBench"].sizes) == 5
    assert (differences.EPS, differences.TOLERANCE) == (1e-4, 2e-3)
    lengths = [sizes["l"] for sizes in RECIPES["mamba_ssm"].sizes]
    assert lengths == [128, 256, 512, 1024, 2048, 4096]


def test_tolerances_are_inclusive_and_nan_is_never_near():
    one = np.array([1.0], np.float32)
    assert near(one + np.float32(0.5), one, 0.25, 0.25) == ""
    assert "1 of 1 entries" in near(one + np.float32(0.75), one, 0.25, 0.25)
    assert near(np.array([np.inf], np.float32), np.array([np.inf], np.float32), 0.1, 0.1) == ""
    assert near(np.array([np.nan], np.float32), np.array([np.nan], np.float32), 0.1, 0.1)
    assert near(np.array([np.nan], np.float32), one, 0.1, 0.1)


def test_the_ratio_of_fla_is_of_the_whole_array():
    truth = np.ones(100, np.float32)
    found = truth.copy()
    found[0] += 0.04  # RMS error 0.004 of the RMS
    assert published.fla_close(SCAN, "x", found, truth) == ""
    found[0] += 0.02
    assert published.fla_close(SCAN, "x", found, truth).startswith("RMS error 0.006")
    assert published.fla_close(SCAN, "x", truth * np.float32(np.nan), truth) == "NaN"
    assert (
        published.fla_close(SCAN, "x", np.array([9e-7], np.float32), np.array([0], np.float32))
        == ""
    )


def test_shape_type_and_raising_are_caught():
    def raising(a, b):
        raise RuntimeError

    recipe = RECIPES["torch.allclose"]
    shorter = scan_program(lambda a, b: SCAN.reference(a, b)[..., :-1, :])
    wider = scan_program(lambda a, b: SCAN.reference(a, b).astype(float))
    assert "shape" in recipe.run(shorter)[0]
    assert "type float64" in recipe.run(wider)[0]
    assert recipe.run(scan_program(raising))[0] == "raises RuntimeError"


def test_a_program_that_declines_is_neither_accepted_nor_refused():
    def declining(a, b):
        raise NotImplementedError

    told = compare.verdict(RECIPES["torch.allclose"], scan_program(declining, group=RIGHT))
    assert told[0] == "declined"


@pytest.mark.parametrize("operator", NAMES)
def test_inputs_are_repeatable_and_of_single_precision(operator):
    op = operator_named(operator)
    for recipe in RECIPES.values():
        dtype = "complex64" if "complex64" in types_of(op) else "float32"
        made = trial(recipe, op, dtype, 0)
        sizes = recipe.sizes_for(op)[0]
        again = inputs.trial_of(op, dtype, sizes, recipe.draws, 0, recipe.together)
        assert all(map(np.array_equal, made.arrays, again.arrays))
        assert {a.dtype.name for a in made.arrays} <= {"float32", "complex64"}
        assert all(np.isfinite(y).all() for y in made.outputs.arrays)


def test_a_checks_own_draw_comes_before_the_usual_one():
    draws = RECIPES["KernelBench"].draws
    assert inputs.draw_of(SSD, "log_a", draws) is inputs.normal
    assert inputs.draw_of(SSD, "x", draws) is inputs.uniform
    assert inputs.draw_of(SCAN, "a", draws) is inputs.decay
    assert inputs.draw_of(SCAN, "b", {}) is inputs.normal
    rwkv6 = operator_named("rwkv6_chunked")
    assert inputs.draw_of(rwkv6, "k", {}) is inputs.normal  # an operator's before its family's


def test_groups_are_by_check_and_by_error():
    groups = {p.name: p.group for p in programs_of("linear_scan")}
    assert groups["sign"] == "results"
    assert groups["tf32"] == "precision"
    assert groups["carry_lost_64"] == "borders"
    assert groups["nan_swallowed"] == "special"
    assert groups["writes_scratch"] == "conduct"
    assert groups["vjp_sign"] == "gradients"
    assert groups["reference"] == RIGHT


@pytest.mark.parametrize("program", others(), ids=lambda p: p.name)
def test_a_reported_mistake_is_wrong_where_its_description_says(program):
    where = {
        "vllm_21783": {"l": 64},
        "flash-linear-attention_906": {"l": 2**16 + 1, "b": 1, "d": 1, "t": 2},
        "flash-linear-attention_1140": {"l": 2, "t": 5},
    }
    sizes = {"l": 16, "n": 4, "chunk": 64 if program.name.startswith("vllm") else 4}
    made = inputs.trial_of(program.op, "float32", sizes | where.get(program.name, {}), {}, seed=0)
    gradient = program.forward is program.op.reference
    off = [
        inputs.timed(called, given, made.statics).arrays
        for called, given in (
            (program.forward, made.arrays),
            (program.vjp, [*made.cotangents, *made.arrays]),
        )
    ]
    truth = made.outputs.arrays, made.gradients.arrays
    wrong = [not all(map(np.array_equal, a, b)) for a, b in zip(off, truth, strict=True)]
    assert [y.shape for a in off for y in a] == [y.shape for a in truth for y in a]
    if program.name == "flash-linear-attention_1138":  # only if the cotangent is not contiguous
        given = [*map(np.asfortranarray, made.cotangents), *made.arrays]
        wrong[1] = not np.array_equal(program.vjp(*given)[2], made.gradients.arrays[2])
    assert wrong == [not gradient, gradient]


def gates_summed_once(rng, sizes):
    """The sequences of GPU MODE's tasks with the gates that are summed there."""
    drawn = chunks.of_gpu_mode(rng, sizes)
    g = drawn["log_g"]
    steps = np.diff(g.reshape(*g.shape[:2], -1), axis=-1, prepend=0)
    return drawn | {"log_g": steps.reshape(g.shape)}


@pytest.mark.parametrize("program", of_tasks()[:2], ids=lambda p: p.name)
def test_their_gates_hide_what_passes_from_chunk_to_chunk_and_gates_summed_once_do_not(program):
    theirs = RECIPES["GPU MODE"]
    once = dataclasses.replace(theirs, together=gates_summed_once)
    found = Found(program.op, program.op.reference, program.op.bare_vjp)
    right = dataclasses.replace(program, group=RIGHT, found=found)
    assert compare.verdict(theirs, program)[0] == "missed"
    assert compare.verdict(once, program)[0] == "caught"
    assert compare.verdict(once, right)[0] == "accepted"


def test_the_stages_of_a_chunk_are_given_what_the_stages_before_them_make():
    drawn = chunks.usual(np.random.default_rng(0), {"b": 1, "h": 2, "c": 3, "l": 4, "n": 5, "p": 2})
    q, v = drawn["q"], drawn["v"]
    given = chunks.arguments("chunk_outputs", drawn)
    rows = [drawn[name].reshape(1, 2, 12, -1) for name in ("q", "k", "v")]
    heads = [drawn[name].reshape(1, 2, 12) for name in ("log_g", "beta")]
    y, _ = refssm.gated_delta_rule_stateful(*rows, *heads, drawn["S"])
    assert np.allclose(refssm.chunk_outputs(**given), y.reshape(v.shape), 1e-12, 1e-12)
    assert given["q"] is q


def made_up_row(program="bug", group="results", word="caught", reasons=""):
    cells = dict.fromkeys(METHODS, word if word == "declined" else f"{word} 0.5")
    return Row("linear_scan", program, "float32", group, "b late", cells, reasons, "2026-11-26", "")


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "compare.csv"
    assert rows.read(path) == []
    told = [made_up_row(), made_up_row("x", RIGHT, "refused", "torch.allclose: y: off | b: c, d")]
    rows.write(path, told)
    assert rows.read(path) == told


def test_a_new_check_has_no_cell_until_it_is_run(tmp_path):
    path, old, new = tmp_path / "compare.csv", made_up_row(), made_up_row("new")
    without = {name: cell for name, cell in old.cells.items() if name != "GPU MODE"}
    rows.write(path, [old._replace(cells=without), new])
    told = rows.read(path)
    assert told[0].cells == without | {"GPU MODE": ""}
    assert told[0].verdict("GPU MODE") == ""
    assert told[1] == new


def test_kept_cells_are_not_run_again():
    program, ran = scan_program(lambda a, b: 2 * SCAN.reference(a, b)), "torch.allclose"
    kept = made_up_row("made_up", word="missed")
    found = compare.cells_but([kept], ran)
    (row,) = compare.rows_of([program], found)
    assert {name for name in METHODS if row.cells[name] != kept.cells[name]} == {ran}
    assert row.verdict(ran) == "caught"
    with pytest.raises(typer.BadParameter, match="no check is called lint"):
        compare.cells_but([kept], "lint")


def test_the_page_counts_and_gives_an_example_and_a_reason():
    told = [
        made_up_row(),
        made_up_row("other", "borders", "missed"),
        made_up_row("tree", RIGHT, "refused", "torch.allclose: y: off | fla assert_close: z"),
        made_up_row("loop", RIGHT, "declined"),
    ]
    text = page.page(told, compare.METHODS)
    assert "| torch.allclose | **1** | 1 | 0 | 0 |" in text
    assert "- borders: 1 of 1, such as `linear_scan`: b late" in text
    assert "  - `linear_scan`, tree: y: off" in text
    assert "| caught, of 0 |" in text
    text = page.page([*told, made_up_row("apart", APART)], compare.METHODS)
    assert "| `linear_scan` | b late | caught |" in text
    assert "| caught, of 1 |  | **1** |" in text


def test_the_page_of_the_docs_is_made_of_its_file():
    told = rows.read(ROOT / rows.PATH)
    own = [row.operator for row in told if row.group not in (APART, TASK)]
    assert [*dict.fromkeys(own)] == [*NAMES]
    assert [row.program for row in told if row.group == APART] == [p.name for p in others()]
    assert [row.program for row in told if row.group == TASK] == [p.name for p in of_tasks()]
    assert {row.group for row in told} == {*GROUPS, RIGHT, APART, TASK}
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert text == page.page(told, compare.METHODS)


def test_the_reference_of_ssd_is_compared_without_gradients_by_mamba():
    assert not RECIPES["mamba_ssm"].has_gradient(SSD)
    assert RECIPES["mamba_ssm"].has_gradient(SCAN)


def test_the_figures_of_the_readme_are_those_of_the_page():
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    head = next(line for line in lines if line and line[0] == "check")
    wrong, right = (re.findall(r"of (\d+)", head[i])[0] for i in (1, 9))
    cells = {line[0]: line for line in lines if len(line) == len(head)}
    others = [
        line for name, line in cells.items() if "check" not in (name, "") and line[1].isdigit()
    ]
    judge = cells["refssm default"]
    others = [line for line in others if not line[0].startswith("refssm")]
    caught, refused = ([int(line[i]) for line in others] for i in (1, 9))
    assert f"Of {wrong} wrong kernels" in readme
    assert f"catch {min(caught)} to {max(caught)}" in readme
    assert f"refuse up to {max(refused)} of {right} right ones" in readme
    assert (judge[1], judge[9]) == (wrong, "0")
    reports = next(line for line in lines if line and line[0] == "caught, of 12")
    *theirs, _, ours = map(int, reports[2:])
    assert f"they catch {min(theirs)} to {max(theirs)}, the judge {ours}" in readme
