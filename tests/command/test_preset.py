"""`refssm verify --preset` and the list of presets."""

import re

import pytest
from judging import run

SCAN = "refssm.jit.scan::linear_scan"
LOST = """
import numpy as np
import refssm

def selective_scan(u, dt, A, B, C):
    y = refssm.selective_scan(u, dt, A, B, C)
    return np.where(np.arange(y.shape[-1]) < 64, y, y * np.float32(1.01)).astype(y.dtype)
"""


def test_show_lists_an_operators_presets(capfd):
    _, text, _ = run(capfd, "show", "dplr_kernel")
    assert "--preset NAME" in text
    assert "legs-64" in text
    assert "HiPPO-LegS as NPLR, n = 64" in text


@pytest.mark.long
def test_a_preset_alone_is_judged(capfd):
    code, text, _ = run(
        capfd, "verify", SCAN, "--preset", "lru-16", "--check", "value", "--dtype", "complex64"
    )
    assert code == 0
    assert "grade A" in text
    assert "25 cases" in text


@pytest.mark.long
def test_checks_that_draw_no_presets_are_skipped_and_say_why(capfd):
    _, text, _ = run(
        capfd, "verify", SCAN, "--preset", "griffin-16", "--dtype", "float32", "--profile", "quick"
    )
    assert "   value [float32]\n" in text
    assert "--preset draws cases of values and gradients only" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "legs64"], "unknown preset 'legs64': did you mean legs-64?"),
        (["--preset", "legs-64"], "no preset legs-64: its presets are lru-16, lru-64, s5-64"),
        (["--preset", "lru-16", "--dtype", "float32"], "no case of preset lru-16 in float32\n"),
        (
            ["--preset", "lru-16", "--where", "n=3..5", "--dtype", "complex64"],
            "no case of preset lru-16 in the ranges of --where\n",
        ),
    ],
)
def test_a_preset_that_cannot_be_drawn_is_one_sentence(capfd, arguments, sentence):
    code, text, complaint = run(capfd, "verify", SCAN, *arguments, "--check", "value")
    assert code != 0
    assert sentence in text + complaint


def test_a_preset_and_own_arrays_cannot_be_combined(capfd, tmp_path):
    arrays = str(tmp_path / "a.npz")
    code, _, text = run(capfd, "verify", SCAN, "--preset", "lru-16", "--inputs", arrays)
    assert code == 4
    assert "--preset draws cases and --inputs has its own" in text


@pytest.mark.long
def test_a_failure_names_its_preset_and_can_be_repeated(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(LOST, encoding="utf-8")
    code, text, _ = run(
        capfd, "verify", "mine.py", "--preset", "mamba-16", "--check", "value", "--dtype", "float32"
    )
    assert code == 1
    assert re.search(r"preset mamba-16: l=\d+ n=", text)
    (kept,) = (tmp_path / ".refssm").glob("*.npz")
    code, text, _ = run(capfd, "replay", str(kept), "mine.py")
    assert code == 1
    assert "FAIL selective_scan/value[float32]" in text
