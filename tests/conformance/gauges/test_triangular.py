"""The bound of a triangular inverse: right programs keep it, powers of the matrix do not."""

import numpy as np
import pytest
from honest.linear_attention.stages import IMPLEMENTATIONS

from refssm._numerics.triangular import unit_lower_inverse
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.domains.linear_attention import products_from_keys

U = 2.0**-24
RIGHT = [h for h in IMPLEMENTATIONS if h.op == "chunk_inverse"]


def bounds(L):
    """K0 and K1 of the inverse, in units of u."""
    errors = np.stack([0 * L, np.abs(L)], axis=-1).astype(float)
    with tracing(unit=U, floor=0.0):
        found = unit_lower_inverse(Tracked(L.astype(float), errors)).errors
    return found[..., 0], found[..., 1]


def drawn(seed, l):
    """L of keys: overlapping ones, and the same key at all steps."""
    rows = np.random.default_rng(seed).uniform(0, 1, (2, l, l))
    rows[1] = 1
    return products_from_keys(rows).astype(np.float32)


def product_of_powers(L):
    """(I − L)(I + L²)(I + L⁴)…."""
    I, power = np.eye(L.shape[-1], dtype=L.dtype), -L
    X = I + power
    for _ in range(int(np.log2(L.shape[-1]))):
        power = power @ power
        X = X @ (I + power)
    return X


@pytest.mark.parametrize("l", [2, 16, 64])
@pytest.mark.parametrize("honest", RIGHT, ids=str)
def test_right_programs_in_single_precision_stay_within_the_bound(honest, l):
    for seed in range(5):
        L = drawn(seed, l)
        k0, _ = bounds(L)
        exact = unit_lower_inverse(L.astype(float))
        assert (np.abs(honest.forward(L) - exact) <= U * np.maximum(k0, np.abs(exact))).all()


def test_a_matrix_that_was_rounded_has_an_inverse_within_the_larger_bound():
    for seed in range(5):
        L = drawn(seed, 32)
        moved = L.astype(float) * (1 + U * np.random.default_rng(seed).choice([-1, 1], L.shape))
        error = np.abs(unit_lower_inverse(moved) - unit_lower_inverse(L.astype(float)))
        k0, k1 = bounds(L)
        assert (error <= 2 * U * (k1 - k0)).all()  # of first order


def test_a_product_of_powers_of_the_same_key_exceeds_the_bound():
    L = drawn(0, 64)
    k0, _ = bounds(L)
    error = np.abs(product_of_powers(L) - unit_lower_inverse(L.astype(float)))[1]
    assert error.max() > 1e6 * U * k0[1].max()


def test_the_bound_is_not_that_of_each_operation():
    k0, _ = bounds(drawn(0, 64))
    assert k0[1].max() < 1e6  # moduli of a substitution are about 3^63
