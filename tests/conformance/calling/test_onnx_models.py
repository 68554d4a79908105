"""`refssm verify model.onnx`: models of one node, judged as the operator that they are."""

import numpy as np
import pytest
from judging import run
from onnx_models import attention, convolution, helper, onnx, saved

from refssm.conformance.calling import onnx_called
from refssm.conformance.calling.finding import find
from refssm.conformance.usage_error import UsageError

FEW = ("--in-process", "--profile", "quick", "--check", "value", "--check", "state", "--cases", "3")
HALF, DOUBLE = onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def operators(path):
    return [found.op.name for found in find(str(path))]


@pytest.mark.parametrize("state", [True, False])
@pytest.mark.parametrize(
    ("rule", "decay", "operator"),
    [
        ("gated_delta", "head", "gated_delta_rule"),
        ("gated_delta", "key", "kimi_delta_rule"),
        ("delta", "head", "delta_rule"),
        ("gated", "head", "ssd_recurrent"),
        ("gated", "key", "gated_linear_recurrence"),
        ("linear", "head", "gated_linear_recurrence"),
    ],
)
def test_the_operator_follows_from_rule_decay_and_state(path, rule, decay, operator, state):
    attention(path, rule, decay, axes=("B", "T", 4, "p"), state=state)
    assert operators(path) == [operator + "_stateful" * state]


def test_a_decay_whose_last_axis_is_free_is_both_operators(path):
    attention(path, decay="free")
    assert operators(path) == ["gated_delta_rule_stateful", "kimi_delta_rule_stateful"]
    (found,) = find(str(path), "kimi_delta_rule_stateful")
    assert found.op.name == "kimi_delta_rule_stateful"


@pytest.mark.parametrize(
    ("how", "operator"),
    [
        ({}, "causal_conv1d_stateful"),
        ({"state": False}, "causal_conv1d"),
        ({"activation": "swish", "bias": False}, "causal_conv1d_stateful"),
        ({"activation": "none", "bias": False}, "short_convolution_stateful"),
        ({"activation": "none", "state": False}, "short_convolution"),
    ],
)
def test_the_convolution_follows_from_activation_and_state(path, how, operator):
    assert operators(convolution(path, **how)) == [operator]


def test_a_scale_is_an_adapter_of_the_queries(path):
    def adapters(scale, rule="gated_delta"):
        attention(path, rule, change={"scale": scale})
        return [str(a) for found in find(str(path)) for a in found.declared.adapters]

    assert adapters(1.0) == []
    assert adapters(0.0) == ["scaled(q)"]
    assert adapters(0.25) == ["scaled(q, by=0.25)"]
    assert adapters(0.25, "gated") == ["scaled(C, by=0.25)"]


def judged(capfd, path, *options):
    return run(capfd, "verify", path, *FEW, *options)


@pytest.mark.long
def test_onnx_is_right_and_the_report_says_what_ran_the_model(path, capfd):
    attention(path, heads=(6, 2), change={"scale": 0.3})
    code, out, err = judged(capfd, f"{path}::evaluator")
    assert (code, err) == (0, "")
    assert out.startswith("PASS: gated_delta_rule_stateful")
    assert (
        f"scale 0.3, q_num_heads 6, kv_num_heads 2; run by onnx {onnx.__version__}'s reference"
        in out
    )


@pytest.mark.long
def test_axes_that_the_model_fixes_limit_the_cases(path, capfd):
    attention(path, decay="key", axes=(2, 3, 4, 5))
    code, out, err = judged(capfd, path)
    assert (code, err) == (0, "")
    assert "limited to l=3..3, n=4..4, p=5..5" in out
    code, out, err = judged(capfd, path, "--where", "n=5..9")
    assert (code, err) == (4, "refssm: --where n=5..9: the model fixes n=4\n")


@pytest.mark.long
def test_constant_weights_are_those_of_every_case_and_more_channels_more_calls(path, capfd):
    weights = np.arange(6.0).reshape(3, 2)
    convolution(path, weights=weights, axes=(1, 3, "T", 2), state=False)
    (found,) = find(str(path))
    case = {"u": np.ones((2, 5, 4)), "k": np.ones((5, 2)), "bias": np.zeros(5)}
    assert found.declared.only is not None
    kept = found.declared.only(case)
    assert isinstance(kept, dict)
    assert (kept["k"] == weights[[0, 1, 2, 0, 1]]).all()
    y = found.forward(*(np.float32(kept[name]) for name in case))
    linear = np.cumsum(kept["k"], -1)[:, [0, 1, 1, 1]]
    assert np.allclose(y, linear / (1 + np.exp(-linear)), rtol=1e-6)
    code, out, err = judged(capfd, path)
    assert (code, err) == (0, "")
    assert "present_state is not judged, since there is no past_state" in out


@pytest.mark.long
def test_a_bias_without_activation_is_listed_as_not_judged(path, capfd):
    code, out, _ = judged(capfd, convolution(path, activation="none"))
    assert (code, "; not judged: bias" in out) == (0, True)


@pytest.mark.long
def test_a_half_precision_model_may_have_a_state_in_float32(path, capfd):
    kinds = dict.fromkeys(("query", "key", "value", "decay", "beta", "output"), HALF)
    code, out, _ = judged(capfd, attention(path, kinds=kinds))
    assert (code, "[float16]" in out) == (0, True)


def _of_heads(name, change):
    """A change of one input of LinearAttention."""
    return lambda feeds: {**feeds, name: change(feeds[name])}


def _tiles(x):
    """Four heads in the order of 0, 2, 1, 3."""
    return x.reshape(*x.shape[:2], 2, 2, -1).swapaxes(2, 3).reshape(x.shape)


CHANGED = {
    "another scale": (lambda feeds: feeds, lambda y, S: (2 * y, S)),
    "the rule delta": (_of_heads("decay", np.zeros_like), None),
    "the rule gated": (_of_heads("beta", np.ones_like), None),
    "the state ignored": (_of_heads("past_state", np.zeros_like), None),
    "the decay of the first head": (_of_heads("decay", lambda g: g[..., :1] + 0 * g), None),
    "keys by another head": (_of_heads("key", lambda k: np.roll(k, k.shape[-1] // 2, -1)), None),
    "the state of another head": (lambda feeds: feeds, lambda y, S: (y, S[:, ::-1])),
    "readers in tiles": (_of_heads("query", _tiles), None),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_program_that_computes_another_node_than_the_model_has_is_wrong(
    path, capfd, monkeypatch, what
):
    before, after = CHANGED[what]
    right = onnx_called._run

    def planted(node, session, operator, feeds, **attributes):
        y, S = right(node, session, operator, before(feeds), **attributes)
        return after(y, S) if after else (y, S)

    monkeypatch.setattr(onnx_called, "_run", planted)
    attention(path, heads=(4, 2))
    code, out, _ = judged(capfd, f"{path}::evaluator", "--explain", "0", "--cases", "5")
    assert (code, out.startswith("WRONG")) == (1, True)


@pytest.mark.long
def test_a_failure_is_replayed_by_its_file(path, capfd, monkeypatch, tmp_path):
    right = onnx_called._run
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as planted:
        planted.setattr(onnx_called, "_run", lambda *a, **k: [2 * x for x in right(*a, **k)])
        attention(path, axes=("B", "T", 4, "p"))
        code, *_ = judged(capfd, path, "--check", "value", "--explain", "5")
        assert code == 1
        saved_ones = (tmp_path / ".refssm").glob("*_stateful-*.npz")
        kept = min(file for file in saved_ones if not file.stem.endswith("-last"))
        assert run(capfd, "replay", kept, "--in-process")[0] == 1
    assert run(capfd, "replay", kept, "--in-process")[0] == 0


def test_a_model_that_is_not_what_it_is_called_is_refused(path, capfd):
    attention(path, rule="delta")
    code, _, err = judged(capfd, path, "--as", "gated_delta_rule_stateful")
    assert code == 4
    assert "the node is delta_rule_stateful, not gated_delta_rule_stateful: LinearAtt" in err


def _two(path):
    nodes = [helper.make_node("Neg", ["query"], ["x"]), helper.make_node("Abs", ["x"], ["output"])]
    return saved(path, nodes, {"query": ["a", "b", "c"]}, ["output"])


def _one(path, kind):
    node = helper.make_node(kind, ["query"], ["output"])
    return saved(path, [node], {"query": ["a", "b", "c"]}, ["output"])


def _typed(path, kind):
    names = ("query", "key", "value", "decay", "beta", "past_state", *("output", "present_state"))
    return attention(path, kinds=dict.fromkeys(names, kind))


def _written(path, text):
    path.write_bytes(text)


REFUSED = {
    "text": (lambda p: _written(p, b"a file of text"), "not an ONNX model: "),
    "nothing": (lambda p: _written(p, b""), "not an ONNX model: it has no graph"),
    "two": (_two, "wanted a model of one node, LinearAttention or .*, got 2 nodes: Neg, Abs"),
    "Neg": (lambda p: _one(p, "Neg"), "the node is Neg; .*wanted LinearAttention or CausalConv"),
    "near": (lambda p: _one(p, "LinearAttn"), r"LinearAttn; did you mean LinearAttention\? want"),
    "double": (lambda p: _typed(p, DOUBLE), "checker refuses|has type double, wanted float, "),
    "rule": (
        lambda p: attention(p, change={"update_rule": "gated_dleta"}),
        r"update_rule: did you mean gated_delta\? wanted one of .*, got 'gated_dleta'",
    ),
    "name": (
        lambda p: attention(p, change={"updaterule": "delta"}),
        r"LinearAttention has no attribute 'updaterule'; did you mean update_rule\?",
    ),
    "heads": (
        lambda p: attention(p, change={"q_num_heads": 3}),
        "q_num_heads: wanted a multiple of kv_num_heads, got 3 for kv_num_heads 2",
    ),
    "no heads": (
        lambda p: attention(p, change={"kv_num_heads": 0}),
        "kv_num_heads: wanted a number of 1 or more, got 0",
    ),
    "infinite": (
        lambda p: attention(p, change={"scale": float("inf")}),
        "scale: wanted a finite number, got inf",
    ),
    "no decay": (
        lambda p: attention(p, inputs={"decay": None}),
        "update_rule 'gated_delta' wants the input decay: there is none",
    ),
    "beta": (
        lambda p: attention(p, "gated", inputs={"beta": ["B", "T", 2]}),
        "update_rule 'gated' has no beta: the node has one",
    ),
    "width": (
        lambda p: attention(p, inputs={"decay": ["B", "T", 3]}),
        "the last axis of decay has length 3, wanted 2, or 2 times the keys of a head",
    ),
    "sizes": (
        lambda p: attention(p, inputs={"query": ["B", "T", 7]}),
        "its last axes and numbers of heads do not fit each other: 7 of 2",
    ),
    "lengths": (
        lambda p: attention(p, inputs={"query": ["B", 3, "q"], "key": ["B", 4, "k"]}),
        "an axis of key has length 4, wanted 3",
    ),
    "activation": (
        lambda p: convolution(p, activation="relu"),
        "activation: wanted one of none, silu, swish, got 'relu'",
    ),
    "state": (
        lambda p: attention(p, outputs=["output"]),
        "the node's present_state is no output of the model",
    ),
    "narrow state": (
        lambda p: attention(p, kinds={"past_state": HALF, "present_state": HALF}),
        "past_state has type float16, wanted float32 or float32|checker refuses",
    ),
    "kinds": (
        lambda p: attention(p, kinds={"beta": HALF}),
        "wanted one type for all inputs, got query float32.*beta float16|checker refuses",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_cannot_be_judged_is_one_sentence(path, capfd, what):
    make, told = REFUSED[what]
    make(path)
    with pytest.raises(UsageError, match=f"^{path}: .*({told})"):
        find(str(path))
    code, out, err = judged(capfd, path)
    assert (code, out, err.count("\n")) == (4, "", 1)


def test_a_constant_past_state_is_refused(path):
    S = np.zeros((1, 2, 3, 4), np.float32)
    shapes = {"query": [1, "T", 6], "key": [1, "T", 6], "value": [1, "T", 8]}
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    outputs = ["output", "present_state"]
    node = helper.make_node(
        "LinearAttention", [*shapes, "past_state"], outputs, update_rule="linear", **heads
    )
    saved(path, [node], shapes, constants=[("past_state", S)])
    with pytest.raises(UsageError, match="its past_state is a constant: make it an input of the"):
        find(str(path))


def test_a_module_called_onnx_is_no_file(capfd):
    found, *_ = find("refssm.subjects.onnx::gated_delta")
    assert found.op.name == "gated_delta_rule"
    code, _, err = judged(capfd, "absent.onnx")
    assert (code, err) == (4, "refssm: absent.onnx: no such file or directory\n")


def test_what_runs_a_model_is_asked_by_name(path, capfd):
    attention(path)
    code, _, err = judged(capfd, f"{path}::evalator")
    assert code == 4
    assert "nothing called 'evalator' runs models; did you mean evaluator? wanted eval" in err
    code, _, err = judged(capfd, path, "--framework", "torch")
    assert (code, "--framework is for Python functions" in err) == (4, True)
