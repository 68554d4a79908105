# pyright: reportMissingImports=false
"""Golden vectors as ONNX's backend tests: written, and read back by onnx's own loader."""

import json
import sys

import numpy as np
import pytest
from judging import run

from refssm.conformance.vectors import onnx_cases

FEW = ("--format", "onnx", "--count", "2", "--longest", "5")
KNOWN = [op.name for op in onnx_cases.with_node()]


@pytest.fixture
def onnx():
    pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")
    return pytest.importorskip("onnx", minversion="1.23", reason="needs onnx: '.[onnx]'")


def written(capfd, folder, *operators):
    names = [word for name in operators for word in ("--operator", name)]
    code, out, err = run(capfd, "vectors", "write", folder, *names, *FEW)
    assert (code, err) == (0, "")
    return out


def cases(folder, kind):
    """The cases of an operator as onnx's loader finds them, each with its model and arrays."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    def tensors(case, name):
        data = folder / kind / case.name / "test_data_set_0"
        return [
            onnx.numpy_helper.to_array(onnx.load_tensor(path))
            for path in sorted(data.glob(f"{name}_*.pb"))
        ]

    for case in load_model_tests(str(folder), kind):
        model = onnx.load(f"{case.model_dir}/model.onnx")
        onnx.checker.check_model(model, full_check=True)
        feeds = zip((x.name for x in model.graph.input), tensors(case, "input"), strict=True)
        yield case, model, dict(feeds), tensors(case, "output"), tensors(case, "allowed")


def right(case, outputs, wanted):
    """Whether onnx's runner accepts the outputs."""
    from onnx.backend.test.runner import Runner

    try:
        Runner.assert_similar_outputs(wanted, outputs, case.rtol, case.atol)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", KNOWN)
def test_onnx_s_evaluator_passes_the_cases_as_its_loader_reads_them(name, tmp_path, capfd, onnx):
    from onnx.reference import ReferenceEvaluator

    out = written(capfd, tmp_path, name)
    assert out.startswith(f"{tmp_path / name}   ")
    read = list(cases(tmp_path, name))
    assert len(read) >= 1
    for case, model, feeds, wanted, allowed in read:
        assert case.name.startswith(f"test_{name}_")
        outputs = ReferenceEvaluator(model).run(None, feeds)
        assert len(outputs) == len(wanted) == len(allowed) == 1 + name.endswith("_stateful")
        assert right(case, outputs, wanted)
        for y, exact, bound in zip(outputs, wanted, allowed, strict=True):
            assert (
                (y.shape, y.dtype)
                == (exact.shape, exact.dtype)
                == (bound.shape, np.dtype("float32"))
            )
            assert (np.abs(y - exact.astype(float)) <= bound).all()


@pytest.mark.long
def test_a_wrong_rule_scale_or_order_of_taps_fails(tmp_path, capfd, onnx):
    from onnx.reference import ReferenceEvaluator

    names = ("gated_delta_rule_stateful", "causal_conv1d_stateful")
    written(capfd, tmp_path, *names)

    def caught(kind, change):
        found = []
        for case, model, feeds, wanted, _ in cases(tmp_path, kind):
            change(model, feeds)
            found.append(not right(case, ReferenceEvaluator(model).run(None, feeds), wanted))
        return any(found)

    def scale(model, feeds):
        next(a for a in model.graph.node[0].attribute if a.name == "scale").f = 0.0

    def no_decay(model, feeds):
        feeds["decay"] = np.zeros_like(feeds["decay"])

    def reversed_taps(model, feeds):
        feeds["weight"] = feeds["weight"][..., ::-1]

    def unchanged(model, feeds):
        pass

    assert caught(names[0], scale)
    assert caught(names[0], no_decay)
    assert caught(names[1], reversed_taps)
    assert not any(caught(name, unchanged) for name in names)


@pytest.mark.long
def test_the_same_command_writes_the_same_bytes_and_replaces_what_is_there(tmp_path, capfd, onnx):
    def files(folder):
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        return {str(p.relative_to(folder)): p.read_bytes() for p in paths}

    written(capfd, tmp_path / "a", "short_convolution")
    (first,) = (tmp_path / "a/short_convolution").glob("*_1")
    (first / "test_data_set_0/input_9.pb").write_bytes(b"of another run")
    written(capfd, tmp_path / "a", "short_convolution")
    written(capfd, tmp_path / "b", "short_convolution")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    told = json.loads((first / "data.json").read_text("utf-8"))
    assert 0 < told["rtol"] < 1e-5


def test_the_operators_with_a_node_are_fourteen():
    assert sorted(KNOWN) == sorted(
        f"{name}{end}"
        for end in ("", "_stateful")
        for name in (
            "gated_linear_recurrence", "ssd_recurrent", "delta_rule", "gated_delta_rule",
            "kimi_delta_rule", "short_convolution", "causal_conv1d",
        )
    )  # fmt: skip


def test_an_operator_without_a_node_and_a_format_that_is_none_are_one_sentence(
    tmp_path, capfd, onnx
):
    asked = ("vectors", "write", tmp_path, "--operator", "linear_scan", "--format")
    code, _, err = run(capfd, *asked, "onnx")
    assert (code, err.startswith("refssm: linear_scan is no operator of ONNX; wanted")) == (4, True)
    code, _, err = run(capfd, *asked, "onx")
    assert (code, err) == (4, "refssm: unknown format 'onx'; wanted one of json, onnx\n")


@pytest.mark.parametrize("asked", [("verify", "model.onnx", "--in-process"), ("vectors", "write")])
def test_without_onnx_a_sentence_says_what_to_install(tmp_path, capfd, monkeypatch, asked):
    if asked[0] == "vectors":
        pytest.importorskip("flint", reason="vectors need python-flint: '.[flint]'")
        asked = (*asked, tmp_path, "--format", "onnx", "--operator", "delta_rule")
    monkeypatch.setitem(sys.modules, "onnx", None)
    code, _, err = run(capfd, *asked)
    assert (code, "needs the package onnx" in err, "'refssm[onnx]'" in err) == (4, True, True)
