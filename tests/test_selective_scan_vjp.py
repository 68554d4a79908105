import numpy as np
import pytest
from calls import several
from selective import each_role, each_type, usual

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
