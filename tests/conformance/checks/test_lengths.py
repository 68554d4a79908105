"""The check `lengths`: rows of a batch that end at steps of their own."""

import re
import subprocess
import sys

import numpy as np
import pytest
from judging import judged, run

import refssm
from refssm import catalog
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.checks.checks import types_of
from refssm.testing import implements

FLOAT = {"dtypes": ("float32",)}


def inside(u, lengths, left):
    """Which steps belong to a row, for arrays (row, …, step)."""
    steps = np.arange(u.shape[-1])
    rows = lengths.reshape(-1, *[1] * (u.ndim - 1))
    return steps >= u.shape[-1] - rows if left else steps < rows


def scan(a, b, *, lengths, left=False, by_product=False):
    """x_t = a_t x_{t-1} + b_t: a decay of 1 and an input of 0 beyond the end of a row."""
    mask = inside(b[..., 0], lengths, left)[..., None]
    if by_product:
        return refssm.linear_scan(1 + mask * (a - 1), mask * b)
    return refssm.linear_scan(np.where(mask, a, 1), np.where(mask, b, 0))


def scan_vjp(dx, a, b, *, lengths, left=False):
    mask = inside(b[..., 0], lengths, left)[..., None]
    kept, driven = np.where(mask, a, 1), np.where(mask, b, 0)
    da, db = refssm.linear_scan_vjp(dx, kept, driven)
    return np.where(mask, da, 0).astype(a.dtype), np.where(mask, db, 0).astype(b.dtype)


def selective(*args, lengths, own_end=True):
    """A step of 0 keeps the state; without a mask the last state is that of the padded row."""
    u, dt, A, B, C, x0 = args
    mask = inside(u, lengths, left=False)
    u, dt = np.where(mask, u, 0), np.where(mask, dt, 0 if own_end else 1)
    B, C = (np.where(mask[..., :1, :, None], M, 0) for M in (B, C))
    return refssm.selective_scan_stateful(u, dt.astype(u.dtype), A, B, C, x0)


def verdict(name, function, *checks, types=("float32",), **declared):
    (line,) = judged(name, function, *checks, lengths="lengths", types=types, **declared)
    return line


@pytest.mark.parametrize("left", [False, True])
def test_a_scan_that_masks_what_is_beyond_passes(left):
    def masked(a, b, *, lengths):
        return scan(a, b, lengths=lengths, left=left)

    how = {"padding": "left" if left else "right"}
    assert verdict("linear_scan", masked, "lengths", **how).verdict == "pass"
    assert verdict("linear_scan", masked, "value", **how).verdict == "pass"


@pytest.mark.parametrize("left", [False, True])
def test_rows_that_are_padded_on_the_other_side_are_refused(left):
    def masked(a, b, *, lengths):
        return scan(a, b, lengths=lengths, left=not left)

    line = verdict("linear_scan", masked, "lengths", padding="left" if left else "right")
    assert line.verdict == "wrong"
    assert "row " in line.message


def test_a_mask_by_a_product_lets_nan_within_and_is_refused():
    line = verdict("linear_scan", lambda a, b, *, lengths: scan(a, b, lengths=lengths,
                   by_product=True, left=True), "lengths", padding="left")  # fmt: skip
    assert line.verdict == "wrong"
    assert "NaN" in line.message


def test_the_last_state_is_that_at_the_rows_own_end():
    assert verdict("selective_scan_stateful", selective, "lengths").verdict == "pass"

    def at_the_end_of_all(*args, lengths):
        return selective(*args, lengths=lengths, own_end=False)

    line = verdict("selective_scan_stateful", at_the_end_of_all, "lengths")
    assert line.verdict == "wrong"
    assert "worst x[" in line.message


@pytest.mark.parametrize(("kept", "wanted"), [(1, "pass"), (0.5, "wrong")])
def test_gradients_within_the_rows_are_judged(kept, wanted):
    def back(dx, a, b, *, lengths):
        da, db = scan_vjp(dx, a, b, lengths=lengths)
        full = lengths.min() == b.shape[-2]  # right where all rows have all steps
        return da, db if full else kept * db

    def forward(a, b, *, lengths):
        return scan(a, b, lengths=lengths)

    how = {"lengths": "lengths", "vjp": back, **FLOAT}
    assert judged("linear_scan", forward, "lengths", **how)[0].verdict == wanted


def test_a_carry_that_is_lost_in_long_rows_only_is_said_with_the_length():
    def forgets(a, b, *, lengths):
        mask = inside(b[..., 0], lengths, left=True)[..., None]
        a = np.where(mask, a, 1)
        a[..., 256:, :] = np.where(lengths[:, None, None] < b.shape[-2], 0, a[..., 256:, :])
        return refssm.linear_scan(a, np.where(mask, b, 0))

    line = verdict("linear_scan", forgets, "lengths", padding="left")
    assert line.verdict == "wrong"
    assert line.message.startswith("at l=257 row ")


WITH_ROWS = [op.name for op in catalog.judged() if op.rows]


@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_causal_reference_needs_no_mask_on_the_right_but_for_what_is_of_all_steps(name):
    op = operator_named(name)

    def unmasked(*arrays, lengths, **statics):
        del lengths
        return op.reference(*arrays, **statics)

    line = verdict(name, unmasked, "lengths", types=(types_of(op)[0],))
    # a transform has NaN everywhere; a last state, or a sum over time, is that of the padding
    of_all = [dims for dims in op.output_dims if op.leading not in dims]
    wrong = "transform" in op.traits or bool(of_all)
    assert line.verdict == ("wrong" if wrong else "pass")


SOURCE = """
import numpy as np
import refssm
from refssm.testing import implements

@implements("linear_scan", lengths="seq_lens", padding="left", dtypes=("float32",))
def padded(a, b, *, seq_lens):
    inside = (np.arange(b.shape[-2]) >= b.shape[-2] - seq_lens[:, None])[..., None]
    return refssm.linear_scan(np.where(inside, a, 1), RIGHT)
"""


def judged_file(folder, capfd, right, *checks):
    """The command's output for a file, and its exit code."""
    (folder / "rows.py").write_text(SOURCE.replace("RIGHT", right), encoding="utf-8")
    code, out, err = run(capfd, "verify", "rows.py", *(f"--check={c}" for c in checks))
    assert not err
    return code, out


@pytest.mark.long
def test_a_file_with_lengths_is_judged_replayed_and_repeated_by_its_script(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    checks = "lengths", "value"
    code, out = judged_file(tmp_path, capfd, "np.where(inside, b, 0)", *checks)
    assert (code, out.partition(":")[0]) == (0, "PASS")
    code, out = judged_file(tmp_path, capfd, "np.where(inside, b, 0) * 1.25", *checks)
    assert code == 1
    assert "looks like" not in out.partition("/lengths")[2]
    assert re.search(r"/lengths.*\n  row \d of length \d", out)
    ((script,), saved) = (sorted(tmp_path.glob(f".refssm/{name}")) for name in ("*.py", "*.npz"))
    assert subprocess.run([sys.executable, script], capture_output=True).returncode == 1
    for path in saved:
        assert run(capfd, "replay", str(path), "rows.py")[0] == 1


def test_an_argument_that_the_function_does_not_have_is_one_sentence(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = SOURCE.replace("RIGHT", "b").replace('"seq_lens"', '"rows"')
    (tmp_path / "rows.py").write_text(text, encoding="utf-8")
    code, _, err = run(capfd, "verify", "rows.py")
    assert code == 4
    assert "cannot be called as linear_scan(a, b, rows=…)" in err


def test_a_function_without_lengths_has_no_such_check():
    assert judged("linear_scan", refssm.linear_scan, "lengths", **FLOAT) == []


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"lengths": 3}, "`lengths` must be a string, got 3"),
        ({"lengths": "n", "padding": "both"}, "unknown padding 'both'"),
        ({"lengths": "n", "layout": "l n, l n -> l n"}, "the layout must have the axis b"),
    ],
)
def test_a_wrong_declaration_of_lengths_is_one_sentence(declared, told):
    with pytest.raises(ValueError, match=told):
        implements("linear_scan", **declared)


def test_an_operator_without_rows_has_no_lengths():
    with pytest.raises(ValueError, match="cauchy_kernel has no rows of steps"):
        implements("cauchy_kernel", lengths="n")
