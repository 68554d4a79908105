"""`only` is asked for the pieces of a sequence, for a size of zero and for sizes that disagree."""

import numpy as np
import pytest
from judging import judged, scan

import refssm
from refssm.conformance.checks.conduct.arguments import ALL_LEFT_OUT
from refssm.conformance.checks.time_laws import LEFT_OUT
from refssm.scan import LINEAR_SCAN_FROM

from_state = LINEAR_SCAN_FROM.reference
FLOAT = {"types": ("float32",), "profile": "default"}


def from_rest(x):
    return {**x, "x0": np.zeros_like(x["x0"])}


def padded(x):
    """The last third is padding: the state stays."""
    length, a, b = x["a"].shape[-2], x["a"].copy(), x["b"].copy()
    a[..., length - length // 3 :, :], b[..., length - length // 3 :, :] = 1, 0
    return {**x, "a": a, "b": b}


def in_eights(x):
    """Lengths that are multiples of eight."""
    steps = x["a"].shape[-2] // 8 * 8
    return {n: a[..., :steps, :] if n in "ab" else a for n, a in x.items()} if steps else None


def test_a_right_kernel_that_starts_from_rest_is_not_refused():
    def ignores(a, b, x0):
        return from_state(a, b, np.zeros_like(x0))

    results = judged("linear_scan_from", ignores, "split", "prefix", only=from_rest, **FLOAT)
    assert {r.check: (r.verdict, r.notes) for r in results} == {
        "split": ("pass", (LEFT_OUT,)),  # only where the first piece ends at zero is it compared
        "prefix": ("pass", ()),
    }


def test_a_right_kernel_of_padded_rows_is_judged_by_pieces_that_are_padded():
    results = judged("linear_scan_from", from_state, "split", "prefix", only=padded, **FLOAT)
    assert {r.check: (r.verdict, r.message) for r in results} == {
        "split": ("pass", ""),  # all the padding is in the second piece
        "prefix": ("skipped", LEFT_OUT),
    }


def late_carry(a, b, x0):
    """From step 8 on the state is too large, unless the sequence begins there."""
    x = from_state(a, b, x0)
    x[..., 8:, :] += x.dtype.type(1)
    return x


@pytest.mark.parametrize("only", [in_eights, padded])
def test_pieces_that_only_shortens_or_leaves_alone_are_still_compared(only):
    (right,) = judged("linear_scan_from", from_state, "split", only=only, **FLOAT)
    assert right.verdict == "pass"
    (wrong,) = judged("linear_scan_from", late_carry, "split", only=only, **FLOAT)
    assert wrong.failed


def test_a_late_input_that_only_would_change_is_not_compared():
    def begins_at_once(x):  # the first input is 1
        u = x["u"].copy()
        u[..., :1] = 1
        return {**x, "u": u}

    convolve = refssm.causal_convolution
    (result,) = judged("causal_convolution", convolve, "shift", only=begins_at_once, **FLOAT)
    assert (result.verdict, result.notes) == ("pass", (LEFT_OUT,))  # late taps are compared


def watching(asked, only):
    def watched(a, b):
        sizes = (a.shape[-2], b.shape[-2], a.shape[-1], b.shape[-1])
        asked.append((only({"a": a, "b": b}) is not None, sizes))
        return scan(a, b)

    return watched


def test_no_call_with_a_size_of_zero_gets_what_only_declines():
    def filled(x):
        return x if x["a"].size else None

    asked = []
    function = watching(asked, filled)
    (result,) = judged("linear_scan", function, "empty", only=filled, **FLOAT)
    assert all(taken for taken, _ in asked)
    assert result.verdict == "pass"
    assert [note.split(" with ")[1] for note in result.notes] == [
        "l=0, so that is not judged", "n=0, so that is not judged"]  # fmt: skip


def test_no_call_with_sizes_that_disagree_gets_what_only_declines():
    def alike(x):
        return x if x["a"].shape[-2:] == x["b"].shape[-2:] else None

    asked = []
    function = watching(asked, alike)
    (result,) = judged("linear_scan", function, "shapes", only=alike, **FLOAT)
    assert all(taken for taken, _ in asked)
    assert (result.verdict, result.message) == ("skipped", ALL_LEFT_OUT)


def test_sizes_that_disagree_reach_a_function_whose_only_does_not_look_at_them():
    def shortest(a, b):
        steps = min(a.shape[-2], b.shape[-2])
        return scan(a[..., :steps, :], b[..., :steps, :])

    (result,) = judged("linear_scan", shortest, "shapes", only=dict, **FLOAT)
    (note,) = result.notes
    assert note.startswith("no error for `a` with l=66")
