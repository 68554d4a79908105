import numpy as np

import refssm


def test_at_the_start_it_is_the_sum_of_the_residues():
    assert refssm.impulse_response([2.0, 3.0], [-1.0, -5.0], [0.0]) == [5.0]


def test_a_pair_of_conjugate_poles_has_a_real_response():
    v, w = np.array([1 - 2j, 1 + 2j]), np.array([-1 + 3j, -1 - 3j])
    assert (refssm.impulse_response(v, w, [0.0, 0.5, 2.0]).imag == 0).all()
