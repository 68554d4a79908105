import numpy as np
import pytest

import refssm
from refssm import initial
from refssm.layers.s4 import S4_LAYER

U = 2.0**-53


def counted(p):
    """Real numbers in all parameters."""
    return sum(a.size * (2 if np.iscomplexobj(a) else 1) for a in p.arrays().values())


def test_its_parameters_are_counted():
    h, n = 128, 64
    system = h + 2 * h * n + 3 * 2 * h * n  # dt; w; P, B and C
    p = S4_LAYER.init(np.random.default_rng(0), h=h, n=n)
    assert counted(p) == system + h + (h + 1) * 2 * h == 98816


@pytest.mark.parametrize(
    ("measure", "rank"), [("legs", 1), ("legt", 2), ("lagt", 1), ("fourier", 1)]
)
def test_every_measure_starts_with_its_own_system(measure, rank):
    p = S4_LAYER.init(np.random.default_rng(0), h=2, n=6, measure=measure)
    system = initial.dplr(measure, n=6)
    assert p.P.shape == (2, 6, rank)
    assert np.array_equal(p.frequency[1], system["w"].imag)
    assert np.array_equal(p.P[1], system["P"])
    assert np.array_equal(p.B[1], system["B"])
    rates = np.exp(p.log_rate[1])
    assert np.abs(rates - np.maximum(-system["w"].real, 1e-4)).max() <= 8 * U


def test_its_first_kernel_is_that_of_the_real_hippo_matrix():
    """K_k = C₀ Ā^k B̄ with the dense matrices of LegS, C₀ = C Vᴴ."""
    h, n, l = 2, 8, 12
    p = S4_LAYER.init(np.random.default_rng(0), h=h, n=n)
    A, B = refssm.hippo_legs(n=n)
    C = (p.C @ initial.dplr("legs", n=n)["V"].conj().T).real
    A_bar, B_bar = refssm.discretize_bilinear(A, B[:, None], np.exp(p.log_dt))
    dense = np.stack([C[i] @ np.linalg.matrix_power(A_bar[i], k) @ B_bar[i, :, 0]
                      for i in range(h) for k in range(l)]).reshape(h, l)  # fmt: skip
    w = -np.exp(p.log_rate) + 1j * p.frequency
    ours = refssm.dplr_kernel(w, p.P, p.P, p.B, p.C, np.exp(p.log_dt), l=l)
    # both compute with unitary bases: l products of n terms, of the norms of C, A and B
    size = np.linalg.norm(C, axis=-1).max() * np.linalg.norm(B) * np.linalg.norm(A)
    assert np.abs(ours - dense).max() <= l * n * U * size
    assert np.abs(ours.imag).max() <= l * n * U * size


def test_an_unknown_measure_names_the_known_ones():
    with pytest.raises(ValueError, match="legs, legt, lagt, fourier, got 'lmu'"):
        S4_LAYER.init(np.random.default_rng(0), h=1, measure="lmu")
