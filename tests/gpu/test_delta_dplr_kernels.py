"""The kernels of delta_dplr: columns in blocks, lanes along keys, pieces of time, resets."""

from importlib import import_module

import numpy as np
import pytest
from kernel_bounds import assert_right
from on_target import given, taken
from planting_kernels import plant

from refssm.conformance.judging.grading import Grader
from refssm.domains import unit_keys
from refssm.linear_attention.delta_dplr import (
    DELTA_DPLR,
    DELTA_DPLR_PACKED,
    DELTA_DPLR_STATEFUL,
)
from refssm_gpu import linear_attention as mirrors
from refssm_gpu._host.settings import settings

OPERATORS = (DELTA_DPLR, DELTA_DPLR_STATEFUL, DELTA_DPLR_PACKED)
KERNEL = "delta_dplr.cuh"
LAUNCHING = import_module("refssm_gpu.linear_attention.delta_dplr")


def arguments(op, l, n, p, kind="float32"):
    """Arguments as in RWKV-7; every third step begins a sequence."""
    r, sizes = np.random.default_rng(l + n), {"l": l, "n": n, "p": p}
    key = unit_keys(4 * r.standard_normal((2, l, n)))
    made = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        x = r.standard_normal((2, *(sizes[d] for d in dims)))
        if name == "resets":
            made.append(np.broadcast_to(np.arange(l) % 3 == 2, (2, l)).copy())
            continue
        x = -np.abs(x) if name == "log_g" else -key if name == "a" else x
        x = key * r.random(key.shape) if name == "b" else x
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


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_both_types_are_right(kind):
    check(DELTA_DPLR_STATEFUL, 9, 8, 6, kind=kind)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("recalled += s * widen(a[later", "recalled += 2 * s * widen(a[later"),
        ("if (begins) z = zero<E>();", ""),
        ("E s = begins ? zero<E>()", "E s = begins && n ? zero<E>()"),
        ("exp(widen(log_g[at])) * s", "exp(widen(log_g[t * size.n])) * s"),
        ("widen(b[at]) * z", "widen(b[at]) * z * exp(widen(log_g[at]))"),
    ],
)
def test_a_changed_term_is_seen(monkeypatch, tmp_path, old, new):
    plant(monkeypatch, tmp_path, LAUNCHING, ["_STATES"], KERNEL, old, new)
    wrong = []
    for op in OPERATORS:
        try:
            check(op, 7, 5, 3)
        except AssertionError:
            wrong.append(op)
    assert wrong
