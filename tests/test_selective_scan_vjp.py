import numpy as np
import pytest
from calls import several
from selective import each_role, each_type, exact, usual

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare
from refssm.scan import linear_scan, linear_scan_vjp
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)
from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE

FAMILY = (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_STEP,
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    MAMBA_SCAN_PACKED,
    MAMBA_STEP,
)


@each_role
@pytest.mark.parametrize("op", FAMILY, ids=str)
@pytest.mark.parametrize("l", [0, 1, 2])
def test_inputs_stay_as_they_are_and_what_is_returned_is_new(op, role, l):
    arrays = usual(op, 1, batch={"b": 1, "d": 1}, l=l)
    outputs = several(op.implementation(role)(*map(np.array, arrays)))
    given = [*(y.copy() for y in outputs), *arrays]  # cotangents, then arguments
    before = [a.copy() for a in given]
    for a in given:
        a.flags.writeable = False
    returned = *several(op.implementation(role)(*arrays)), *op.vjp(role)(*given)
    assert all(map(np.array_equal, given, before))
    for x in returned:
        assert x is None or not any(np.shares_memory(x, a) for a in given)
        assert x is None or x.flags.writeable


@each_role
def test_the_gradient_by_hand(role):
    arrays = [2.0, 3.0], [5.0, 7.0], [0.0], [[11.0], [13.0]], [[17.0], [19.0]]
    du, ddt, dA, dB, dC = SELECTIVE_SCAN.vjp(role)([23.0, 29.0], *arrays)
    x = [2 * 5 * 11, 2 * 5 * 11 + 3 * 7 * 13]
    g = [17 * 23 + 19 * 29, 19 * 29]
    assert dC.ravel().tolist() == [x[0] * 23, x[1] * 29]
    assert dB.ravel().tolist() == [2 * 5 * g[0], 3 * 7 * g[1]]
    assert du.tolist() == [5 * 11 * g[0], 7 * 13 * g[1]]
    assert ddt.tolist() == [2 * 11 * g[0], 3 * 13 * g[1]]
    assert dA.tolist() == [7 * x[0] * g[1]]


@each_role
def test_the_gradient_of_a_state_by_hand(role):
    arrays = [2.0], [5.0], [0.0], [[11.0]], [[17.0]], [31.0]
    du, ddt, dA, dB, dC, dx0 = SELECTIVE_SCAN_STATEFUL.vjp(role)([23.0], [3.0], *arrays)
    g = 17 * 23 + 3
    assert (du.tolist(), ddt.tolist()) == ([5 * 11 * g], [2 * 11 * g])
    assert (dA.tolist(), dB.tolist(), dx0.tolist()) == ([5 * 31 * g], [[10 * g]], [g])
    assert dC.tolist() == [[(31 + 110) * 23]]


@each_role
@each_type
def test_the_gradient_is_that_of_the_linear_scan_through_decays_and_inputs(role, dtype):
    u, dt, A, B, C = arrays = usual(SELECTIVE_SCAN, 2, dtype)
    dy = usual(SELECTIVE_SCAN, 3, dtype)[0]
    a, b = np.exp(dt[:, None] * A), (dt * u)[:, None] * B
    da, db = linear_scan_vjp(C.conj() * dy[:, None], a, b)
    e = a.conj() * da  # the cotangent of dt A
    by_hand = (
        ((dt[:, None] * B).conj() * db).sum(-1),
        ((u[:, None] * B).conj() * db + A.conj() * e).sum(-1).real,
        (dt[:, None] * e).sum(0),
        (dt * u).conj()[:, None] * db,
        linear_scan(a, b).conj() * dy[:, None],
    )
    gauges = expect(SELECTIVE_SCAN, [dy, *arrays], vjp=SELECTIVE_SCAN.bare_vjp)
    for gradients in (by_hand, SELECTIVE_SCAN.vjp(role)(dy, *arrays)):
        for g, gauge, argument in zip(gradients, gauges, arrays, strict=True):
            assert compare(g, gauge, argument.dtype).grade == "A"


MARKS = {"ends": [3, 7], "places": [0, 5]}


def exact_marked(op, seed, batch):
    """Arguments with which nothing rounds, and marks of two sequences or places."""
    arrays = exact(op, seed, batch=batch, m=2)
    return [np.array(MARKS[n]) if n in MARKS else a for n, a in zip(op.inputs, arrays, strict=True)]


@each_role
@pytest.mark.parametrize("op", SELECTIVE.operators + MAMBA.operators, ids=str)
def test_channels_share_their_groups_b_and_c_and_the_gradients_are_sums_over_its_channels(op, role):
    sizes = {"b": 2, "g": 2, "d": 3}
    arrays = exact_marked(op, 1, sizes)
    outputs = several(op.implementation(role)(*arrays))
    cotangents = [np.roll(y, 1) for y in outputs]
    gradients = op.vjp(role)(*cotangents, *arrays)
    added = [None if g is None else np.zeros_like(g) for g in gradients]
    for place in np.ndindex(*sizes.values()):
        at = dict(zip(sizes, place, strict=True))  # of one channel
        own = [tuple(at.get(axis, 0) for axis in axes) for axes in op.batch_axes]
        alone = [a[i] for a, i in zip(arrays, own, strict=True)]
        of_one = several(op.implementation("reference")(*alone))
        assert all(np.array_equal(y[place], z) for y, z in zip(outputs, of_one, strict=True))
        parts = op.vjp("reference")(*(c[place] for c in cotangents), *alone)
        for whole, part, i in zip(added, parts, own, strict=True):
            if whole is not None:
                whole[i] += part
    for g, whole in zip(gradients, added, strict=True):
        assert np.array_equal(g, whole) if whole is not None else g is None


def test_channels_that_the_groups_do_not_divide_are_refused_with_the_argument():
    arrays = usual(SELECTIVE_SCAN, 4, batch={"b": 2, "g": 2, "d": 3})
    arrays[3] = np.repeat(arrays[3], 2, axis=1)  # four groups of B for two of u
    message = r"^selective_scan: leading axes do not broadcast: .*; `B` does not fit those before"
    with pytest.raises(ValueError, match=message):
        SELECTIVE_SCAN.implementation("reference")(*arrays)
