"""Layouts: an author's order of axes, axes of length one, batch axes that the judge loops over."""

import re

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run, scan, verdicts

import refssm
from refssm._declaration.layout import Layout, arranged, canonical, parse, restored
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import call
from refssm.testing import Declaration

SCAN_OP, CONVOLUTION = operator_named("linear_scan"), operator_named("causal_convolution_direct")
ZOH = operator_named("discretize_zoh")


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_the_layout_that_show_prints_is_the_canonical_one(op):
    usual = canonical(op)
    assert parse(op, str(usual)) == usual
    assert usual.omitted == ()
    alone = Layout(op.input_dims, op.output_dims, op.batch_names)
    assert parse(op, str(alone)) == alone


NONE = {
    "too few arguments": (SCAN_OP, "b l n -> b l n", "must have 2 arguments and 1 outputs"),
    "no output": (SCAN_OP, "b l n, b l n", "as 'b l n, b l n -> b l n'"),
    "two arrows": (SCAN_OP, "b l n -> b l n -> b l n", "must have 2 arguments"),
    "an axis lost": (
        SCAN_OP,
        "b l n, b l n -> b l",
        "gives `x` the axes b l, wanted b l n in some",
    ),
    "an axis too many": (
        SCAN_OP,
        "b l n, b l n n -> b l n",
        "gives `b` the axes b l n n, wanted b",
    ),
    "a foreign name": (SCAN_OP, "b l n, b l s -> b l n", "gives `b` the axes b l s, wanted b l n"),
    "a batch axis in one only": (SCAN_OP, "b l n, l n -> l n", "`b` the axes l n, wanted b l n"),
    "one n of two": (ZOH, "d n, d n m, d -> d n n, d n m", "`A` the axes d n, wanted d n n"),
    "axes of a number": (ZOH, "n n, n m, n -> n n, n m", "`dt` the axes n, wanted no axes in some"),
    "nothing": (CONVOLUTION, ", l -> l", "gives `u` the axes none, wanted l in some order"),
}


@pytest.mark.parametrize("what", NONE)
def test_a_layout_that_is_none_is_one_sentence(what):
    op, text, sentence = NONE[what]
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        parse(op, text)
    assert str(refused.value).startswith(f"{op}: layout '{text}' ")


def test_arranged_moves_axes_and_restored_moves_them_back():
    a = np.arange(24.0).reshape(2, 3, 4)
    usual = ("b", "l", "n")
    for wanted in (("n", "b", "l"), ("l", "1", "b", "n"), ("1", "b", "l", "n", "1"), usual):
        there = arranged(a, usual, wanted)
        assert there.shape == tuple({"b": 2, "l": 3, "n": 4, "1": 1}[axis] for axis in wanted)
        assert np.array_equal(restored(there, wanted, usual), a)
        assert there.flags.c_contiguous
        assert there.flags.writeable
        assert not np.shares_memory(there, a)


def test_of_two_axes_of_one_name_the_first_stays_the_first():
    A = np.arange(18.0).reshape(2, 3, 3)
    there = arranged(A, ("d", "n", "n"), ("n", "n", "d"))
    assert np.array_equal(there[..., 1], A[1])
    assert np.array_equal(restored(there, ("n", "n", "d"), ("d", "n", "n")), A)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 1), (2, 2, 3, 4)])
def test_a_result_without_the_axes_of_its_layout_is_told(shape):
    with pytest.raises(ValueError, match=re.escape(f"shape {shape}, want axes 1 b l n")):
        restored(np.zeros(shape), ("1", "b", "l", "n"), ("b", "l", "n"))


def time_last(a, b):
    """A scan with axes (b, n, l)."""
    assert a.ndim == b.ndim == 3
    x, state = np.empty_like(b, dtype=np.result_type(a, b)), 0
    for k in range(b.shape[2]):
        x[:, :, k] = state = a[:, :, k] * state + b[:, :, k]
    return x


LAST = "b n l, b n l -> b n l"


def test_a_scan_with_time_last_is_right_in_its_layout_and_wrong_in_ours():
    results = judged("linear_scan", time_last, profile="default", types=("float32",), layout=LAST)
    assert set(verdicts(results).values()) == {"pass"}
    assert {"value", "nan", "prefix", "causal", "batch", "strides", "alias"} <= set(
        verdicts(results)
    )
    assert not any(r.sliced for r in results)
    (without,) = judged("linear_scan", time_last, "value")
    assert without.failed


def test_a_bug_in_another_layout_is_told_in_our_axes():
    def late(a, b):
        x = time_last(a, b)
        x[:, :, 64:65] += 1
        return x

    (result,) = judged("linear_scan", late, "value", layout=LAST)
    assert result.failed
    assert re.match(r"worst x\[\d, 64, \d+\]: got ", result.message)
    assert "every entry with l = 64 wrong" in result.message


def one_pair(u, k):
    assert u.ndim == k.ndim == 1
    y = np.zeros(len(u), np.result_type(u, k))
    for i in range(len(u)):
        y[i] = (k[i::-1] * u[: i + 1]).sum()
    return y


def one_pair_vjp(dy, u, k):
    du, dk = one_pair(dy[::-1], k.conj())[::-1], one_pair(dy[::-1], u.conj())[::-1]
    return (g if np.iscomplexobj(x) else g.real for g, x in ((du, u), (dk, k)))


def pairwise(*checks, forward=one_pair, vjp=None, dtypes=("float32",), **settings):
    back = (lambda *x: tuple(vjp(*x))) if vjp else None
    settings = {"layout": "l, l -> l", "dtypes": dtypes} | settings
    return judged(CONVOLUTION.name, forward, *checks, vjp=back, profile="default", **settings)


@pytest.mark.long
def test_a_function_of_core_arrays_is_called_slice_by_slice_and_its_gradients_summed():
    results = pairwise(vjp=one_pair_vjp)
    assert set(verdicts(results).values()) == {"pass"}
    assert {"gradient", "shift", "batch", "unchanged"} <= set(verdicts(results))
    assert not pairwise("gradient", vjp=one_pair_vjp, dtypes=("complex64",))[0].failed
    assert all(r.sliced for r in results if r.verdict == "pass")


def test_a_wrong_gradient_of_core_arrays_fails():
    def doubled(dy, u, k):
        du, dk = one_pair_vjp(dy, u, k)
        return du, 2 * dk

    def of_the_last_slice(dy, u, k):
        du, dk = one_pair_vjp(dy, u, k)
        return du, dk * (k[0] == u[0])

    for wrong in (doubled, of_the_last_slice):
        (result,) = pairwise("gradient", vjp=wrong)
        assert result.failed
        assert "dk[" in result.message


@pytest.mark.long
def test_one_batch_axis_may_be_left_out_and_the_other_kept():
    def rows(u, k):
        """For axes (d, l): the judge loops over the batch axis b."""
        assert u.ndim == k.ndim == 2
        return np.stack([one_pair(*pair) for pair in zip(u, k, strict=True)])

    def rows_vjp(dy, u, k):
        rows = [tuple(one_pair_vjp(*row)) for row in zip(dy, u, k, strict=True)]
        return (np.stack(column) for column in zip(*rows, strict=True))

    both = {"layout": "d l, d l -> d l"}
    results = pairwise("value", "gradient", "batch", forward=rows, vjp=rows_vjp, **both)
    assert verdicts(results) == dict.fromkeys(("value", "gradient", "batch"), "pass")
    turned = both | {"layout": "l d, d l -> d l"}
    assert pairwise("value", forward=rows, **turned)[0].failed
    right = pairwise("value", forward=lambda u, k: rows(u.T, k), **turned)
    assert verdicts(right) == {"value": "pass"}


def middle_out(A, B, dt):
    """State axis second to last, a step size of length one, and an axis of length one."""
    assert A.shape[0] == 1
    assert dt.ndim == 2
    assert dt.shape[1] == 1
    A, B = A[0].transpose(2, 0, 1), B.transpose(2, 1, 0)
    A_bar, B_bar = refssm.discretize_zoh(A, B, dt[:, 0])
    return A_bar.transpose(1, 2, 0), B_bar.transpose(2, 0, 1)[:, None]


MIDDLE = "1 n n d, m n d, d 1 -> n n d, m 1 d n"


@pytest.mark.long
def test_axes_of_length_one_and_two_axes_of_one_name():
    checks = ("value", "strides", "batch", "nan")
    given = {"layout": MIDDLE, "dtypes": ("complex64",)}
    assert verdicts(judged("discretize_zoh", middle_out, *checks, **given)) == dict.fromkeys(
        checks, "pass"
    )

    def transposed(A, B, dt):
        return middle_out(A.transpose(0, 2, 1, 3), B, dt)

    (wrong,) = judged("discretize_zoh", transposed, "value", **given)
    assert wrong.failed


@pytest.mark.long
def test_a_number_beside_core_matrices_has_no_axes():
    def one_step(A, B, dt):
        assert (A.ndim, B.ndim, dt.ndim) == (2, 2, 0)
        return refssm.discretize_zoh(A, B, dt)

    given = {"layout": "n n, n m, -> n n, n m", "dtypes": ("float32",)}
    results = judged("discretize_zoh", one_step, "value", "batch", "unchanged", **given)
    assert verdicts(results) == dict.fromkeys(("value", "batch", "unchanged"), "pass")


@pytest.mark.parametrize("layout", ["b l n, b l n -> b l n", LAST])
@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (0, 0), (2, 1), (1, 2)])
def test_batch_axes_broadcast_before_they_are_moved(layout, sizes):
    forward = time_last if layout == LAST else scan
    found = Found(SCAN_OP, forward, None, declared=Declaration(SCAN_OP.name, layout=layout))
    a, b = (np.full((n, 4, 3), 0.5) for n in sizes)
    outcome = call(found, [a, b], {})
    assert outcome.status == "ok", outcome.message
    assert np.array_equal(outcome.outputs[0], scan(a, b))


SHAPES = {
    "an axis lost": (
        lambda x: x[..., 0],
        r"`x` has shape \(2, 3\), want \(2, 3, 5\) for the axes b n l{here}",
    ),
    "an axis more": (
        lambda x: x[None],
        r"`x` has shape \(1, 2, 3, 5\), want \(2, 3, 5\) for the axes b n l"
        "{here}; a layout that fits: b n l, b n l -> 1 b n l",
    ),
    "our own order": (
        lambda x: x.swapaxes(1, 2),
        r"`x` has shape \(2, 5, 3\), want \(2, 3, 5\) for the axes b n l{here}; "
        r"a layout that fits: b n l, b n l -> b l n",
    ),
    "too short": (
        lambda x: x[:, :, 1:],
        r"`x` has shape \(2, 3, 4\), want \(2, 3, 5\) for the axes b n l{here}",
    ),
    "no array": (lambda x: x.tolist(), "`x` is a list, want an array"),
    "two outputs": (lambda x: (x, x), "`x` is a tuple, want an array"),
}


@pytest.mark.parametrize("what", SHAPES)
def test_a_wrong_shape_is_told_in_words(what):
    change, sentence = SHAPES[what]
    (result,) = judged("linear_scan", lambda a, b: change(time_last(a, b)), "value", layout=LAST)
    assert result.verdict == "wrong"
    here = r" \(test_layout\.py:\d+\)"
    assert re.fullmatch(sentence.replace("{here}", here), result.message)


def test_a_layout_with_an_axis_of_length_one_refuses_a_longer_one():
    def doubled(a, b):
        return np.stack([scan(a, b)] * 2)

    given = {"layout": "b l n, b l n -> 1 b l n"}
    (result,) = judged("linear_scan", doubled, "value", **given)
    assert re.fullmatch(r"`x` has shape \(2, .*\), want .* axes 1 b l n \(test.*\)", result.message)
    assert not judged("linear_scan", lambda a, b: scan(a, b)[None], "value", **given)[0].failed


@pytest.mark.parametrize("layout", ["", "b l n, b l n -> b l n", LAST])
@pytest.mark.parametrize("name", ["a", "b"])
def test_writing_to_an_input_is_told_in_every_layout(layout, name):
    def in_place(a, b):
        x = (time_last if layout == LAST else scan)(a, b)
        np.multiply({"a": a, "b": b}[name], 2, out={"a": a, "b": b}[name])
        return x

    (result,) = judged("linear_scan", in_place, "unchanged", layout=layout)
    assert (result.verdict, result.message) == ("wrong", f"the call wrote to its input `{name}`")


@pytest.mark.parametrize("layout", ["", "l, l -> l"])
@pytest.mark.parametrize("name", ["u", "k"])
def test_writing_to_what_the_slices_share_is_told(layout, name):
    def in_place(u, k):
        y = one_pair(u, k)
        np.multiply({"u": u, "k": k}[name], 2, out={"u": u, "k": k}[name])
        return y

    (result,) = pairwise("unchanged", forward=in_place, layout=layout)
    assert (result.verdict, result.message) == ("wrong", f"the call wrote to its input `{name}`")


@pytest.mark.long
def test_a_layout_on_the_command_line_stands_in_for_a_declared_one(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = SCAN.replace("def linear_scan", "def ours").replace("import numpy as np", "\n".join([
        "import numpy as np",
        "def linear_scan(a, b): return ours(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)",
    ]))  # fmt: skip
    name, quick = plugin(tmp_path, text), ("--profile", "quick")
    result, out, _ = run(capfd, "verify", name, *quick, "--layout", LAST)
    assert result == 0
    told = f"linear_scan: layout {LAST}; indices below are in the order b l n, b l n -> b l n"
    assert told in out.splitlines()
    assert run(capfd, "verify", name, *quick, "--check", "value")[0] == 1
    assert run(capfd, "verify", name, *quick, "--layout", "b l n, b l n -> b l n")[0] == 1
    result, _, err = run(capfd, "verify", name, *quick, "--layout", "b n, b n l -> b n l")
    assert result == 4
    assert err.strip() == (
        "refssm: linear_scan: layout 'b n, b n l -> b n l' gives `a` the axes b n, "
        "wanted b l n in some order: `l` is missing; did you mean 'b n l, b n l -> b n l'?"
    )
