import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import laws

import refssm
from refssm.conformance.standard import C
from refssm.domains import even_mode_orders, laguerre_decays, mode_orders, windows
from refssm.nplr import NPLR_FOURIER, NPLR_FOURIER_NAIVE, NPLR_LAGT, NPLR_LEGS, NPLR_LEGT

U = 2.0**-53
WINDOWED = (NPLR_LEGT, NPLR_FOURIER, NPLR_FOURIER_NAIVE)


def sizes_of(op):
    """Numbers of states that `op` accepts; only small ones, because the work is cubic."""
    domain = even_mode_orders if op in (NPLR_FOURIER, NPLR_FOURIER_NAIVE) else mode_orders
    return st.sampled_from([n for n in domain.values if n <= 33])


def norm(x):
    return float(np.linalg.norm(x))


@pytest.mark.parametrize("op", WINDOWED, ids=str)
@given(data=st.data())
@laws
def test_a_window_is_a_unit_of_time(op, data):
    n, window = data.draw(sizes_of(op)), data.draw(st.sampled_from(windows.values))
    make = getattr(refssm, op.name)
    w, P, B, V = make(n=n, window=window)
    w1, P1, B1, V1 = make(n=n, window=1.0)
    assert np.array_equal(V, V1)
    for x, unit, factor in ((w, w1, window), (P, P1, np.sqrt(window)), (B, B1, window)):
        assert (np.abs(x * factor - unit) <= C * U * np.abs(unit)).all()  # a few roundings each


@given(data=st.data())
@laws
def test_the_rate_of_laguerre_shifts_the_poles_and_scales_the_input(data):
    n, beta = data.draw(sizes_of(NPLR_LAGT)), data.draw(st.sampled_from(laguerre_decays.values))
    w, P, B, V = refssm.nplr_lagt(n=n, beta=beta)
    w1, P1, B1, V1 = refssm.nplr_lagt(n=n)
    assert np.array_equal(w.imag, w1.imag)
    assert (w.real == -beta / 2).all()
    assert np.array_equal(P, P1)
    assert np.array_equal(V, V1)
    assert norm(B - np.sqrt(beta) * B1) <= C * U * norm(B)


@pytest.mark.parametrize("op", [NPLR_LEGS, *WINDOWED, NPLR_LAGT], ids=str)
@given(data=st.data())
@laws
def test_low_rank_takes_energy_at_the_rate_of_the_input(op, data):
    """A + Aᴴ = 2ρ − 2 P Pᴴ: every eigenvalue of A has Re ≤ ρ."""
    n = data.draw(sizes_of(op))
    w, P, _, _ = getattr(refssm, op.name)(n=n)
    A = np.diag(w) - P @ P.conj().T
    symmetric = (A + A.conj().T) / 2 - w.real[0] * np.eye(n)
    size = norm(w) + norm(P) ** 2
    assert np.linalg.eigvalsh(symmetric).max() <= C * n * U * size
    assert np.linalg.eigvals(A).real.max() <= w.real[0] + C * n * U * size
