"""Conjugate pairs of which one half is stored, in one list of modes or in several."""

import numpy as np
import pytest

from refssm._declaration.adapted import adapted
from refssm._numerics.pairs import folded, paired
from refssm.adapters import halves
from refssm.scan import DIAGONAL_SSM, DIAGONAL_SSM_BIDIRECTIONAL


def _numbers(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("blocks", [1, 2])
def test_folding_is_the_adjoint_of_pairing(blocks):
    rng = np.random.default_rng(0)
    x, y = _numbers(rng, 3, 4, 5), _numbers(rng, 3, 8, 5)
    one = np.vdot(paired(x, -2, blocks), y).real
    assert one == pytest.approx(np.vdot(x, folded(y, -2, blocks)).real)


def test_each_list_of_modes_has_its_conjugates_behind_it():
    found = paired(np.array([1j, 2j, 3j, 4j]), -1, 2)
    assert found.tolist() == [1j, 2j, -1j, -2j, 3j, 4j, -3j, -4j]


def test_halves_of_a_system_in_both_directions_are_two_lists_of_outputs():
    op, rng = adapted(DIAGONAL_SSM_BIDIRECTIONAL, [halves()]), np.random.default_rng(1)
    a, B, u = 0.9 * np.exp(1j * rng.random(2)), _numbers(rng, 2, 1), rng.standard_normal((6, 1))
    C, D = _numbers(rng, 1, 4), rng.standard_normal((1, 1))
    past = adapted(DIAGONAL_SSM, [halves()])
    ahead = past.reference(a, B, C[:, 2:], 0 * D, u[::-1])[::-1]
    right = past.reference(a, B, C[:, :2], D, u) + ahead
    np.testing.assert_allclose(op.reference(a, B, C, D, u), right, rtol=1e-12, atol=0)
