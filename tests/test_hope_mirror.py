"""Details of HOPE's Numba mirrors: blocks of nodes, a nonuniform FFT, half of the nodes."""

import numpy as np
import pytest
from test_hope import normal

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.hope import HOPE_KERNEL, HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.jit.hope import warped

OPERATORS = (HOPE_TRANSFER, HOPE_KERNEL, HOPE_KERNEL_ALIASED)
each = pytest.mark.parametrize("op", OPERATORS, ids=str)
each_kind = pytest.mark.parametrize("kind", [float, complex])


def right(op, h, dt, l):
    """Assert grade A, and that each gradient is within the judge's bound of the reference's."""
    assert judge(op, op.implementation("jit"), h, dt, l=l).grade == "A"
    y = op.reference(h, dt, l=l)
    dk = normal(y.size, seed=1, kind=complex if y.dtype.kind == "c" else float).reshape(y.shape)
    gauged = expect(op, [dk, h, dt], {"l": l}, op.bare_vjp)
    found = op.vjp("jit")(dk, h, dt, l=l)
    return all(compare(g, gauge, g.dtype).ok for g, gauge in zip(found, gauged, strict=True))


@pytest.mark.parametrize("l", [1, 2, 255, 256, 257, 600])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 31])
@each_kind
@each
def test_any_number_of_parameters_and_of_blocks(op, kind, n, l):
    assert right(op, normal(n, kind=kind), np.float64(0.02), l)


@pytest.mark.parametrize("l", [127, 128, 129, 253, 254, 510])
@pytest.mark.parametrize("n", [15, 16, 17, 64, 65, 80])
@each_kind
@pytest.mark.parametrize("op", [HOPE_TRANSFER, HOPE_KERNEL_ALIASED], ids=str)
def test_groups_of_parameters_and_blocks_of_nodes_meet_without_a_gap(op, kind, n, l):
    assert right(op, normal(n, kind=kind), np.float64(0.02), l)


@pytest.mark.long
@pytest.mark.parametrize("l", [1, 2, 7, 64])
@each_kind
@pytest.mark.parametrize("op", [HOPE_TRANSFER, HOPE_KERNEL_ALIASED], ids=str)
def test_many_parameters_go_through_a_nonuniform_transform(op, kind, l, monkeypatch):
    assert right(op, normal(warped.MANY, kind=kind), np.float64(0.3), l)
    monkeypatch.setattr(warped, "MANY", 1)
    assert all(right(op, normal(n, kind=kind), np.float64(0.3), l) for n in (1, 2, 9))


@each
def test_rows_of_a_batch_have_steps_of_their_own(op, monkeypatch):
    h, dt = normal(3 * 5).reshape(3, 1, 5), np.array([0.1, 7.0])
    assert right(op, h, dt, 12)
    monkeypatch.setattr(warped, "MANY", 1)
    assert right(op, h, dt, 12)


@pytest.mark.parametrize("MANY", [1, 1024])
@each
def test_nothing_is_made_of_nothing(op, MANY, monkeypatch):
    monkeypatch.setattr(warped, "MANY", MANY)
    mirror, vjp = op.implementation("jit"), op.vjp("jit")
    assert mirror(np.ones((2, 3)), 1.0, l=0).shape == (2, 0)
    assert mirror(np.ones((2, 0)), 1.0, l=4).tolist() == [[0] * 4] * 2
    dh, ddt = vjp(np.ones((2, 0)), np.ones((2, 3)), 1.0, l=0)
    assert dh.tolist() == [[0] * 3] * 2
    assert ddt == 0


def test_the_tables_of_a_length_are_not_written_to():
    with pytest.raises(ValueError, match="read-only"):
        warped.angles(8)[0][0] = 1
