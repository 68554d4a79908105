"""The kernels of linear attention: columns in blocks, lanes along keys, pieces of time, resets."""

import numpy as np
import pytest
from kernel_bounds import assert_right
from on_target import given, taken
from planting_kernels import plant

import refssm
from refssm.conformance.judging.grading import Grader
from refssm.domains import unit_keys
from refssm.linear_attention import (
    DELTA_RULE_STATEFUL,
    GATED_DELTA_RULE_PACKED,
    GATED_LINEAR_RECURRENCE,
    KIMI_DELTA_RULE_STATEFUL,
    RWKV6_PACKED,
    RWKV6_STATEFUL,
)
from refssm_gpu import linear_attention as mirrors
from refssm_gpu._host.settings import settings
from refssm_gpu.linear_attention import passes

OPERATORS = (
    GATED_LINEAR_RECURRENCE,
    DELTA_RULE_STATEFUL,
    GATED_DELTA_RULE_PACKED,
    KIMI_DELTA_RULE_STATEFUL,
    RWKV6_STATEFUL,
    RWKV6_PACKED,
)
KERNEL = "linear_attention.cuh"


def arguments(op, l, n, p, batch=(2,), kind="float32"):
    """Arguments as in a model; every third step begins a sequence."""
    r, sizes = np.random.default_rng(l + n), {"l": l, "n": n, "p": p}
    made = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        x = r.standard_normal((*batch, *(sizes[d] for d in dims)))
        if name == "resets":
            made.append(np.broadcast_to(np.arange(l) % 3 == 2, (*batch, l)).copy())
            continue
        x = unit_keys(x) if name == "k" else x
        x = -np.abs(x) if name in ("log_g", "log_w") else np.abs(x) % 2 if name == "beta" else x
        made.append(x.astype(kind))
    return made


def check(op, l, n, p, **how):
    """The operator and its gradients at one size."""
    arrays = arguments(op, l, n, p, **how)
    assert_right(op, getattr(mirrors, op.name), *arrays)
    y = op.reference(*arrays)
    y = y if isinstance(y, tuple) else (y,)
    r = np.random.default_rng(n)
    cotangents = [r.standard_normal(x.shape).astype(x.dtype) for x in y]
    gradients = taken(getattr(mirrors, f"{op.name}_vjp")(*given(*cotangents, *arrays)))
    kept = [g for g in gradients if g is not None]
    verdict = Grader(op).gradients(kept, cotangents, arrays, {})
    assert verdict.ok, verdict


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_warps_of_keys_and_blocks_of_columns_do_not_show(op, order):
    with settings(order=order):
        for n, p in ((1, 1), (31, 3), (32, 4), (33, 5), (65, 9)):
            check(op, 5, n, p)


@pytest.mark.parametrize("op", OPERATORS, ids=str)
@pytest.mark.parametrize("l", [1, 2, 16, 17, 26])
def test_pieces_of_time_do_not_show(op, l):
    check(op, l, 5, 3)


@pytest.mark.parametrize("op", [KIMI_DELTA_RULE_STATEFUL, RWKV6_STATEFUL], ids=str)
@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_all_types_are_right(op, kind):
    check(op, 9, 8, 6, kind=kind)


def test_heads_share_queries_and_keys():
    q, k, v, log_g = (x[0] for x in arguments(GATED_LINEAR_RECURRENCE, 6, 4, 3, batch=(1,)))
    heads = [np.stack([x, -x, 2 * x]) for x in (v, log_g)]
    heads[1] = -np.abs(heads[1])
    got = taken(mirrors.gated_linear_recurrence(*given(q, k, *heads)))
    assert np.allclose(got, refssm.gated_linear_recurrence(q, k, *heads), rtol=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("recalled += z * widen", "recalled += now[n] * 2 * widen"),
        ("u *= widen(at.beta[t])", "u *= one<E>()"),
        ("z = begins ? zero<E>()", "z = begins && n ? zero<E>()"),
        ("size.gates > 1 ? n : 0", "size.gates > 1 ? n / 2 : 0"),
    ],
)
def test_a_changed_term_is_seen(monkeypatch, tmp_path, old, new):
    plant(monkeypatch, tmp_path, passes, ["_STATES"], KERNEL, old, new)
    wrong = []
    for op in OPERATORS:
        try:
            check(op, 7, 5, 3)
        except AssertionError:
            wrong.append(op)
    assert wrong
