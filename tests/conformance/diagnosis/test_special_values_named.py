"""Names of mistakes that show in overflow, in NaN and in the type, written as their authors do."""

import numpy as np
import pytest
from judging import looks_like

from refssm import cauchy_kernel, diagonal_kernel_bilinear, mamba2_step

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


def vandermonde(v, x, l):
    """Σ_n v_n e^{x_n j}."""
    k = (v[..., None] * np.exp(x[..., None] * np.arange(l))).sum(-2)
    return k.astype(np.result_type(v, x))


def kernel_by_powers(base):
    """Σ_n v_n base(x_n)^j with each power by multiplication, as a loop over j makes it."""

    def program(v, x, l):
        kind = np.result_type(v, x)
        step, power, k = base(x), np.ones_like(x), []
        for _ in range(l):
            k.append((v * power).sum(-1))
            power = power * step
        return np.stack(k, -1).astype(kind) if k else np.zeros((*x.shape[:-1], 0), kind)

    return program


def test_a_mistake_that_overflows_is_named_though_another_program_overflows_elsewhere():
    def euler(v, x, l):
        j = np.arange(l)
        size = np.exp(j * np.log(np.abs(1 + x))[..., None])
        return (
            (v[..., None] * size * np.exp(1j * j * np.angle(1 + x)[..., None]))
            .sum(-2)
            .astype(np.result_type(v, x))
        )

    told = looks_like("vandermonde_kernel", euler, dtype="complex64")
    assert told.startswith("(1 + x)^j for e^{xj}: this known bug")
    assert "gives the same finite outputs in" in told


def test_the_outputs_are_the_same_ones_where_they_overflow_alike():
    told = looks_like("vandermonde_kernel", kernel_by_powers(lambda x: 1 + x), dtype="complex64")
    assert "(1 + x)^j for e^{xj}" in told


def test_a_right_program_whose_intermediates_overflow_gets_no_name_of_a_bug_that_does():
    def quotient(v, x, l):  # e^{xj} = 1/e^{−xj}: the right numbers until e^{−xj} overflows
        kind = np.result_type(v, x)
        k = (v[..., None] / np.exp(-x[..., None] * np.arange(l, dtype=kind))).sum(-2)
        return np.where(np.abs(k) < 1e-30, np.nan, k).astype(kind)

    told = looks_like("vandermonde_kernel", quotient, dtype="complex64")
    assert "known bug" not in told


def test_nan_that_another_program_replaces_by_zero_is_named():
    def swallowed(a, B, C, D, u):
        a, B, C, D, u = map(np.nan_to_num, (a, B, C, D, u))
        x, y = 0, []
        for t in range(u.shape[-2]):
            x = a * x + (B @ u[..., t, :, None])[..., 0]
            y.append((C @ x[..., None] + D @ u[..., t, :, None])[..., 0])
        return np.stack(y, -2)

    told = looks_like("diagonal_ssm", swallowed, check="nan")
    assert told.startswith("NaN replaced by zero")


def test_nan_that_becomes_one_is_not_called_zero():
    def ones(v, w, z):
        return cauchy_kernel(*(np.where(np.isnan(a), 1, a) for a in (v, w, z)))

    assert "replaced by zero" not in looks_like("cauchy_kernel", ones, "nan", "complex64")


def test_two_mistakes_are_not_told_as_one_where_only_the_other_gives_nan():
    def half_and_nan(v, x, l):
        k = vandermonde(v, x, l).real
        k[..., 20:] = np.nan
        return k

    assert "known bug" not in looks_like("vandermonde_kernel_real", half_and_nan)


def test_right_values_between_nan_are_no_evidence_for_a_bug_with_nan_elsewhere():
    def last_lost(w, B, C, dt, l):
        k = diagonal_kernel_bilinear(w, B, C, dt, l=l)
        k[..., l - 1 :] = np.nan
        return k

    assert "known bug" not in looks_like("diagonal_kernel_bilinear", last_lost)


def test_outputs_that_are_nan_throughout_are_named_by_what_makes_them_nan():
    def undefined(w, B, C, dt, l):
        z = w * dt[..., None]
        return vandermonde(C * np.expm1(z) / w * B, z, l)

    told = looks_like("diagonal_kernel_zoh", undefined)
    assert told.startswith("NaN for w = 0")


def test_a_complex_array_for_real_values_is_named_and_nothing_else_is():
    def complex_result(v, x, l):
        return 2 * vandermonde(v, x, l).real.astype(np.complex64)

    told = looks_like("vandermonde_kernel_real", complex_result, dtype="complex64")
    assert told.startswith("a complex result: this known bug")


def test_a_cause_that_explains_nan_alone_is_not_named():
    """The limit is there, before the softplus: without any limit the values are others."""

    def limited(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min=0.0, dt_max=np.inf):
        below = np.minimum(dt + dt_bias, x.dtype.type(dt_max)) - dt_bias
        return mamba2_step(x, below, A, B, C, D, z, dt_bias, S, dt_min=dt_min)

    assert looks_like("mamba2_step", limited, check="nan") == ""
