"""Layouts with merged axes, `(g h)`, as in einops: h varies fastest."""

import re

import numpy as np
import pytest
from einops import rearrange
from judging import ONE_SEQUENCE, judged, plugin, run, scan, verdicts

from refssm._declaration.layout import arranged, canonical, length, parse, restored, single
from refssm.discretize.hold import DISCRETIZE_ZOH
from refssm.scan import DIAGONAL_SSM_BIDIRECTIONAL, LINEAR_SCAN
from refssm.ssd.recurrent import SSD_RECURRENT
from refssm.testing import implements

FLAT = "l (b n), l (b n) -> l (b n)"  # all channels of all members beside each other
HEADS = "b l (g h p), b l g h, b l g n, b l g n -> b l (g h p)"


def flat(a, b):
    assert a.ndim == b.ndim == 2
    return scan(a, b)


def flat_vjp(dx, a, b):
    return LINEAR_SCAN.bare_vjp(dx, a, b)


def swapped(x):
    """The axis (b n) in the order (n b), for two members."""
    return x.reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape)


def swapped_vjp(i):
    """The gradient of `flat`, with that of argument i in the order (n b)."""

    def vjp(dx, a, b):
        gradients = flat_vjp(dx, a, b)
        return tuple(swapped(g) if i == j else g for j, g in enumerate(gradients))

    return vjp


def of_two(function, **more):
    """Results for batches of two only, so that a wrong order can be planted."""
    only = {"only": lambda case: case if case["b"].shape[0] == 2 else None}
    how = {"profile": "default", "cases": 12, "layout": FLAT, "types": ("float32",)}
    return judged("linear_scan", function, "value", "gradient", **(how | only | more))


def test_merged_axes_are_those_of_einops():
    a = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    usual: tuple[str, ...] = ("b", "g", "h", "l")
    for text in ("b l (g h)", "(l b) h g", "(h b l g)", "b 1 (g l) h"):
        layout = rearrange(a, f"b g h l -> {text}")
        wanted = tuple(re.findall(r"\(.*?\)|\w+", text))
        there = arranged(a, usual, wanted)
        assert np.array_equal(there, layout)
        assert there.flags.c_contiguous
        assert not np.shares_memory(there, a)
        sizes: dict[str, int] = dict(zip(usual, a.shape, strict=True))
        assert np.array_equal(restored(there, wanted, usual, sizes), a)
        assert there.shape == tuple(length(axis, sizes) for axis in wanted)


def test_one_unknown_size_of_a_merged_axis_follows_from_the_others():
    a = np.arange(24.0).reshape(4, 6)
    assert restored(a, ("l", "(b n)"), ("b", "l", "n"), {"b": 2}).shape == (2, 4, 3)
    with pytest.raises(ValueError, match=r"want axes l \(b n\) with b=4"):
        restored(a, ("l", "(b n)"), ("b", "l", "n"), {"b": 4})
    with pytest.raises(ValueError, match=r"want axes l \(b n\) with b=2, n=5"):
        restored(a, ("l", "(b n)"), ("b", "l", "n"), {"b": 2, "n": 5})
    with pytest.raises(ValueError, match="the sizes of b and n are unknown"):
        restored(a, ("l", "(b n)"), ("b", "l", "n"))


@pytest.mark.parametrize(
    ("op", "text", "plain"),
    [
        (SSD_RECURRENT, HEADS, HEADS),
        (LINEAR_SCAN, " l  (b   n),l (b n)->l ( b n ) ", FLAT),
        (LINEAR_SCAN, "(l) b (n 1) (), b l n -> b l n", "l b n 1, b l n -> b l n"),
        (DISCRETIZE_ZOH, "(d n n), d (n m), d -> (n d n), (d n m)", None),
    ],
)
def test_a_layout_with_merged_axes_is_read_and_written_alike(op, text, plain):
    layout = parse(op, text)
    assert str(layout) == (plain or text)
    assert parse(op, str(layout)) == layout
    assert [sorted(single(axes)) for axes in layout.inputs] == [
        sorted(single(axes)) for axes in canonical(op).inputs
    ]


WANTED = "wanted b l n in some order"
REFUSED = {
    "an ellipsis": ("... l n", f"the axes ... l n, {WANTED}: an ellipsis is not supported"),
    "one dot": ("b l . n", f"the axes b l . n, {WANTED}: Expression may contain dots only"),
    "a character": ("b l% n", f"the axes b l% n, {WANTED}: Unknown character '%'"),
    "twice": ("b b l n", f"the axes b b l n, {WANTED}"),
    "twice merged": ("l (b b n)", f"the axes l (b b n), {WANTED}"),
    "nested": ("l ((b n))", f"the axes l ((b n)), {WANTED}: Axis composition is one-level"),
    "open": ("l (b n", f"the axes l (b n, {WANTED}: Imbalanced parentheses"),
    "closed": ("l b n)", f"the axes l b n), {WANTED}: Brackets are not balanced"),
    "foreign and merged": ("b l (h n)", f"the axes b l (h n), {WANTED}"),
    "a keyword": ("b l in", f"the axes b l in, {WANTED}"),
    "an underscore": ("b l n_", f"the axes b l n_, {WANTED}: Invalid axis identifier: n_: axis"),
    "a length": ("b l 3", f"the axes b l 3, {WANTED}"),
    "a length of 0": ("b l 0", f"the axes b l 0, {WANTED}: Anonymous axis should have positive"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_axes_that_are_none_are_one_sentence_at_declaration(what):
    group, sentence = REFUSED[what]
    text = f"b l n, {group} -> b l n"
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        implements("linear_scan", layout=text)
    assert str(refused.value).startswith(f"linear_scan: layout {text!r} gives `b` ")
    assert "\n" not in str(refused.value)


def test_a_name_with_a_number_may_be_merged():
    text = "n, n m, (p 2n), p m, l m -> (l p)"
    assert str(parse(DIAGONAL_SSM_BIDIRECTIONAL, text)) == text


@pytest.mark.long
def test_merged_channels_are_split_again():
    results = judged("linear_scan", flat, vjp=flat_vjp, profile="default", cases=12, layout=FLAT)
    ran = verdicts(results)
    assert {*ran.values()} == {"pass"}
    assert {"value", "gradient", "batch", "causal", "strides", "empty", "shapes"} <= {*ran}


@pytest.mark.long
def test_two_members_that_are_merged_in_the_other_order_fail():
    right = of_two(flat, vjp=flat_vjp)
    assert [r.verdict for r in right] == ["pass", "pass"]
    by_check = {r.check: r for r in of_two(lambda a, b: swapped(scan(a, b)), vjp=flat_vjp)}
    assert by_check["value"].verdict == "wrong"
    assert by_check["gradient"].verdict == "pass"
    for i in (0, 1):
        by_check = {r.check: r for r in of_two(flat, vjp=swapped_vjp(i))}
        assert by_check["value"].verdict == "pass"
        assert by_check["gradient"].verdict == "wrong"
        assert f"worst d{'ab'[i]}[" in by_check["gradient"].message


def by_heads(order):
    """State-space duality whose x has one merged axis, in this order."""

    def forward(x, log_a, B, C):
        g, h = log_a.shape[2:]
        x = rearrange(x, f"b l {order} -> b g h l p", g=g, h=h)
        log_a = rearrange(log_a, "b l g h -> b g h l")
        B, C = (rearrange(a, "b l g n -> b g 1 l n") for a in (B, C))
        return rearrange(SSD_RECURRENT.reference(x, log_a, B, C), f"b g h l p -> b l {order}")

    return forward


@pytest.mark.long
@pytest.mark.parametrize("order", ["(g h p)", "(h g p)", "(g p h)", "(p h g)"])
def test_heads_and_channels_in_one_axis_are_right_in_one_order_only(order):
    (result,) = judged("ssd_recurrent", by_heads(order), "value", layout=HEADS)
    assert result.failed == (order != "(g h p)")
    told = HEADS.replace("(g h p)", order)
    assert not judged("ssd_recurrent", by_heads(order), "value", layout=told)[0].failed


def test_the_batch_may_share_an_argument_with_merged_axes():
    text = "(l n), l (b n) -> l b n"  # no b in the first

    def by_time(a, b):
        x, state = np.empty(b.shape, np.result_type(a, b)), 0
        for k in range(len(b)):
            x[k] = state = a[k] * state + b[k]
        return x

    def forward(a, b):
        n = a.size // len(b)
        return by_time(a.reshape(len(b), 1, n), b.reshape(len(b), -1, n))

    def vjp(dx, a, b):
        n = a.size // len(b)
        apart = rearrange(b, "l (b n) -> b l n", n=n), rearrange(dx, "l b n -> b l n")
        whole = np.broadcast_to(a.reshape(len(b), n), apart[0].shape)
        da, db = LINEAR_SCAN.bare_vjp(apart[1], whole, apart[0])
        return da.sum(0).reshape(-1), rearrange(db, "b l n -> l (b n)")

    def unsummed(dx, a, b):
        da, _ = vjp(dx[:, :1], a, b[:, : a.size // len(b)])
        return da, vjp(dx, a, b)[1]

    how = {"layout": text, "profile": "default", "cases": 12, "types": ("float32",)}
    results = judged("linear_scan", forward, "value", "gradient", "batch", vjp=vjp, **how)
    assert verdicts(results) == {"value": "pass", "gradient": "pass", "batch": "pass"}
    results = judged("linear_scan", forward, "value", "gradient", vjp=unsummed, **how)
    assert verdicts(results) == {"value": "pass", "gradient": "wrong"}


def saved(folder, **more):
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 1, (6, 8)).astype(np.float32) for _ in "ab")
    np.savez(folder / "own.npz", a=a, b=b, **more)
    return scan(a, b)


@pytest.mark.long
def test_saved_arrays_need_the_sizes_of_merged_axes(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = plugin(tmp_path, ONE_SEQUENCE)
    command = ("verify", mine, "--layout", FLAT, "--inputs", "own.npz")
    saved(tmp_path)
    code, _, err = run(capfd, *command)
    assert (code, err.strip()) == (4, (
        "refssm: own.npz: `a` with the axes l (b n) cannot be split: no array has b or n as an "
        "axis of its own; add the size to the file, as the number `size/b`"
    ))  # fmt: skip
    saved(tmp_path, **{"size/b": 3})
    code, _, err = run(capfd, *command)
    assert (code, "`a` has shape (6, 8), want axes l (b n) with b=3" in err) == (4, True)
    saved(tmp_path, **{"size/b": 2})
    code, out, _ = run(capfd, *command, "-v")
    assert (code, "pass linear_scan/value" in out) == (0, True)


def test_a_saved_output_is_split_as_the_inputs_are(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = saved(tmp_path, **{"size/b": 2})
    swapped = x.reshape(6, 2, 4).swapaxes(1, 2).reshape(6, 8)
    command = ("verify", "--as", "linear_scan", "--layout", FLAT, "--inputs", "own.npz")
    for name, y, wanted in (("right", x, 0), ("swapped", swapped, 1), ("short", x[:, :6], 1)):
        np.save(f"{name}.npy", y)
        assert run(capfd, *command, "--output", f"{name}.npy")[0] == wanted, name
    np.save("split.npy", x.reshape(6, 2, 4))
    code, _, err = run(capfd, *command, "--output", "split.npy")
    assert (code, "split.npy has shape (6, 2, 4), want axes l (b n)" in err) == (4, True)
