"""Normal plus low rank as a system: responses, transfer functions, and a wrong use."""

from math import comb

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm.conformance.standard import C
from refssm.hippo import hippo_legs
from refssm.nplr import nplr_legs

U = 2.0**-53


def norm(x):
    return float(np.linalg.norm(x))


def test_clipping_the_imaginary_part_of_the_input_depends_on_the_phase_and_ours_has_none():
    n = 64
    _, _, B, V = nplr_legs(n=n)
    other = -1j * B  # for iV, which is equally right

    def clipped(x):
        return x.real + 1j * np.clip(x.imag, -2, 2)

    assert np.array_equal(clipped(B), B)
    b = np.sqrt(2 * np.arange(n) + 1)
    assert norm(1j * V @ other - b) <= C * n * U * norm(b)
    assert norm(1j * V @ clipped(other) - b) > norm(b) - 2 * np.sqrt(n) - C * n * U * norm(b)


@pytest.mark.parametrize("n", [8, 9])
def test_one_of_each_pair_and_half_of_a_real_mode_are_enough(n):
    w, _, B, V = nplr_legs(n=n)
    v, stored = V[0] * B, w.imag >= 0
    weights = np.where(w.imag == 0, 0.5, 1.0)
    half = refssm.vandermonde_kernel_real((v * weights)[stored], w[stored] / 64, l=50)
    whole = refssm.vandermonde_kernel(v, w / 64, l=50)
    # real parts and sums of the same n terms with modulus at most |v|; phases up to 50 |w|/64
    assert norm(half - whole) <= np.sqrt(50) * U * float((np.abs(v) * (C * n + np.abs(w))).sum())


def response(n):
    """States 0 … 3 at t = 1 for u = 1: of LegS, and of its normal part with B/2."""
    A, _ = hippo_legs(n=4)  # lower triangular: the first states do not depend on the others
    full = np.eye(4)[0] - refssm.discretize_zoh(A, np.zeros((4, 1)), 1.0)[0][:, 0]
    w, _, B, V = nplr_legs(n=n)
    return full, (V[:4] * (np.expm1(w) / w)) @ (B / 2)


def test_the_response_of_the_normal_part_tends_to_that_of_legs():
    gaps = [float(np.abs(np.subtract(*response(n))).max()) for n in (16, 64)]
    assert [f"{gap:.0e}" for gap in gaps] == ["8e-03", "3e-04"]


def test_its_transfer_function_does_not():
    for n, wanted in ((16, "0.6386"), (64, "0.6367"), (128, "0.6367")):
        w, _, B, V = nplr_legs(n=n)
        frequency = w[-1].imag  # the largest difference is here
        normal = (V[0] * B / 2 / (1j * frequency - w)).sum()
        legs = 1 / (1j * frequency + 1)
        assert f"{abs(normal - legs):.4f}" == wanted
        assert abs(normal - legs) > 2 / np.pi


def test_the_eigenvectors_of_legs_itself_have_a_condition_of_1e23():
    n = 32
    with mp.workdps(80):
        q = [mp.sqrt(2 * i + 1) for i in range(n)]
        entries = [
            [(-1) ** (i - j) * q[i] * comb(i + j, 2 * j) for j in range(n)] for i in range(n)
        ]
        A = [[-(i + 1) if i == k else -q[i] * q[k] * (i > k) for k in range(n)] for i in range(n)]
        V, values = mp.matrix(entries), mp.diag([-(j + 1) for j in range(n)])
        assert mp.norm(mp.matrix(A) * V - V * values) < mp.mpf(10) ** -50
        for j in range(n):
            V[:, j] /= mp.norm(V[:, j])
        condition = mp.norm(V) * mp.norm(mp.inverse(V))
    assert f"{float(condition):.0e}" == "1e+23"
