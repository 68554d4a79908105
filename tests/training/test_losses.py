"""Losses against closed forms, and their gradients against exact ones."""

import numpy as np
import pytest
from mpmath import mp
from training.derivatives import UNIT, adjoint

from refssm.training import losses

u = UNIT


@pytest.mark.parametrize("classes", [1, 2, 10])
def test_equal_logits_cost_the_logarithm_of_the_number_of_classes(classes):
    logits, labels = np.full((4, classes), 3.0), np.zeros(4, int)
    want = np.log(classes)
    assert abs(losses.cross_entropy(logits, labels) - want) <= 6 * u * max(1.0, want)


def test_a_sure_and_right_answer_costs_nothing_and_a_wrong_one_its_margin():
    logits = np.array([[1000.0, 0.0, -1000.0]])
    assert losses.cross_entropy(logits, np.array([0])) == 0
    assert losses.cross_entropy(logits, np.array([2])) == 2000


def test_large_logits_do_not_overflow_in_float32():
    logits = np.array([[3e38, -3e38], [-3e38, 3e38]], np.float32) / 2
    assert losses.cross_entropy(logits, np.array([0, 1])) == 0
    assert (losses.cross_entropy_grad(logits, np.array([0, 1])) == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_cross_entropy_is_softmax_minus_one_at_the_label(seed):
    rng = np.random.default_rng(seed)
    z, labels = 5 * rng.standard_normal((7, 4)), rng.integers(0, 4, 7)
    got = losses.cross_entropy_grad(z, labels)
    for k in range(7):
        row = [mp.mpf(float(x)) for x in z[k]]
        total = mp.fsum(map(mp.exp, row))
        for c in range(4):
            p, one = mp.exp(row[c]) / total, int(labels[k] == c)
            # the exponent has an error of u (|z − max| + 8), which is the relative error of p;
            # then the difference and the quotient
            charge = float(max(row) - row[c]) + 8 + 2
            assert abs(got[k, c] - float((p - one) / 7)) <= charge * u * float(p + one) / 7


def test_the_gradient_of_cross_entropy_sums_to_zero_over_the_classes():
    rng = np.random.default_rng(4)
    z, labels = rng.standard_normal((3, 5, 6)), rng.integers(0, 6, (3, 5))
    g = losses.cross_entropy_grad(z, labels)
    # each p errs by 16 u p (exponents below 8), the sum of p is 1, and one rounding a term
    assert np.abs(g.sum(-1)).max() <= (16 + 2 * 6) * u * 2 / labels.size


def test_the_gradient_of_the_squared_error_is_the_adjoint_of_its_derivative():
    rng = np.random.default_rng(5)
    y, target, t = (rng.standard_normal((4, 3)) for _ in range(3))

    def loss(y):
        return ((y - target) ** 2).mean()

    def vjp(dy, y):
        return (dy * losses.mean_squared_error_grad(y, target),)

    left, right, size = adjoint(loss, vjp, np.ones(()), [y], [t])
    assert abs(left - right) <= u * size
    assert abs(losses.mean_squared_error(y, target) - loss(y)) <= 13 * u * loss(y)


def test_the_squared_error_of_complex_numbers_counts_both_parts():
    y, target = np.array([1 + 1j, 2.0]), np.array([0j, 2 - 2j])
    assert abs(losses.mean_squared_error(y, target) - 3) <= 8 * u * 3
    assert losses.mean_squared_error_grad(y, target).tolist() == [1 + 1j, 2j]
