"""`refssm verify`, `show` and `list` for somebody's block, and what the page says of it."""

from pathlib import Path

import pytest
from judging import run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/lru_block.py"
PAGE = (ROOT / "docs/layers.md").read_text(encoding="utf-8")


def test_the_block_of_the_page_is_the_example():
    code = EXAMPLE.read_text(encoding="utf-8")
    assert PAGE.split("```python\n")[1].partition("```")[0].strip() in code


@pytest.mark.long
def test_the_example_of_the_page_passes(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capfd, "verify", "-v", EXAMPLE)
    assert code == 0
    for check in ("lru_layer/value[complex64]", "lru_layer/split", "lru_layer_stateful/state"):
        assert f"pass {check}" in out


def test_a_block_of_another_name_is_judged_as_the_layer_that_is_named(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.read_text(encoding="utf-8").replace("lru_layer(", "forward(")
    Path("block.py").write_text(text, encoding="utf-8")
    options = ["--as", "lru_layer", "--check", "value", "--dtype", "complex64"]
    code, out, _ = run(capfd, "verify", "-v", "block.py::forward", *options)
    assert (code, "pass lru_layer/value[complex64]" in out) == (0, True)


@pytest.mark.long
def test_a_block_that_forgets_its_state_fails_the_law_split(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.read_text(encoding="utf-8").replace(", x\n", ", 0 * x\n")
    Path("block.py").write_text(text, encoding="utf-8")
    code, out, _ = run(capfd, "verify", "block.py", "--check", "split", "--dtype", "complex64")
    assert code == 1
    assert "FAIL lru_layer/split[complex64]" in out


def test_a_misspelt_layer_is_told_with_the_nearest_name(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("block.py").write_text("def forward(u): ...\n", encoding="utf-8")
    code, _, err = run(capfd, "verify", "block.py::forward", "--as", "mamba_layr")
    assert (code, "did you mean mamba_layer?" in err) == (4, True)


def test_layers_are_listed_and_shown(capfd):
    code, out, _ = run(capfd, "list")
    assert code == 0
    assert "mamba_layer_stateful" in out
    code, out, _ = run(capfd, "show", "s5_layer")
    assert code == 0
    assert "s5_layer(u, w, log_dt, B, C, D, W, b)" in out
    assert "split[complex64]" in out
