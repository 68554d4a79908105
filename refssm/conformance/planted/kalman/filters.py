"""Planted bugs in the Kalman filter and smoother: gains, covariances, densities, gradients."""

import numpy as np

from refssm.conformance.planted.planting import Planting, of_result
from refssm.kalman import KALMAN_FILTER, KALMAN_SMOOTHER
from refssm.kalman.filtering import applied, log_density, symmetric, transposed

FILTER, SMOOTHER = Planting(KALMAN_FILTER, "float32"), Planting(KALMAN_SMOOTHER, "float32")


def _times(factor):
    return lambda x: (factor * x).astype(x.dtype)


def _filtered(gain=lambda K, k: K, spread=None, ahead=None, innovation=None, first=None):
    """The filter step by step, with one part changed; means, covariances and −2 log p."""

    def run(A, C, Q, R, y, m0, P0):
        batch = np.broadcast_shapes(
            *(x.shape[: x.ndim - 2] for x in (A, C, Q, R, y, P0)), m0.shape[:-1]
        )
        m, P = (
            np.broadcast_to(m0, (*batch, m0.shape[-1])),
            np.broadcast_to(P0, (*batch, *P0.shape[-2:])),
        )
        means, spreads, halves = [], [], np.zeros(batch)
        for k in range(y.shape[-2]):
            if k or not first:
                m_before, m = m, applied(A, m)
                P = (ahead or (lambda A, P, Q: A @ P @ transposed(A) + Q))(A, P, Q)
                e = y[..., k, :] - applied(C, m_before if innovation else m)
            else:
                e = y[..., k, :] - applied(C, m)
            S = symmetric(C @ P @ transposed(C) + R)
            inverse = np.linalg.inv(np.where(np.isfinite(S), S, np.eye(S.shape[-1])))
            K = gain(P @ transposed(C) @ inverse, k)
            halves = halves + np.linalg.slogdet(S)[1] + (e * applied(inverse, e)).sum(-1)
            m = m + applied(K, e)
            P = (spread or (lambda P, K, C, R: P - K @ C @ P))(P, K, C, R)
            means.append(m)
            spreads.append(P)
        return means, spreads, halves

    return run


def _program(**changes):
    """A filter with one part changed, in the types and shapes of the right one."""
    run = _filtered(**changes)

    def wrong(right, *arrays):
        m, P, logp = right(*arrays)
        if not m.size or not arrays[4].size:
            return m, P, logp
        means, spreads, halves = run(*arrays)
        found = (
            np.stack(means, -2),
            np.stack(spreads, -3),
            log_density(halves, *arrays[4].shape[-2:]),
        )
        return tuple(x.astype(y.dtype) for x, y in zip(found, (m, P, logp), strict=True))

    return wrong


def _logp(change):
    """The filter with another logarithm; `change` gets it and the number of measured numbers."""

    def wrong(right, *arrays):
        m, P, logp = right(*arrays)
        return m, P, change(logp, arrays[4].shape[-2] * arrays[4].shape[-1]).astype(logp.dtype)

    return wrong


def _identity(X):
    return np.eye(X.shape[-1], dtype=X.dtype) + 0 * X


def _without_correlations(X):
    return np.where(np.eye(X.shape[-1]) > 0, X, 0)


def _joseph_without_noise(P, K, C, R):
    """(I − K C) P (I − K C)ᵀ: R forgotten."""
    J = np.eye(P.shape[-1]) - K @ C
    return J @ P @ transposed(J)


for _p in (FILTER, SMOOTHER):
    _p.usual()
    _p.plant(
        ("A_transposed", "Aᵀ for A", {"A": lambda A: A.mT.copy()}),
        ("A_forgotten", "x_k = x_{k−1} + w", {"A": _identity}),
        ("Q_doubled", "2 Q", {"Q": _times(2)}),
        ("R_squared", "a deviation taken for a variance: R²", {"R": lambda R: R @ R}),
        ("R_forgotten", "R/16", {"R": _times(1 / 16)}),
        ("Q_diagonal", "the diagonal of Q", {"Q": _without_correlations}),
        ("R_diagonal", "the diagonal of R", {"R": _without_correlations}),
        ("P0_diagonal", "the diagonal of P0", {"P0": _without_correlations}),
        ("prior_forgotten", "m0 = 0", {"m0": _times(0)}),
        ("P0_of_one", "P0 = I", {"P0": _identity}),
        ("one_late", "y of the step before", {"y": lambda y: np.roll(y, 1, -2)}),
        ("C_absolute", "|C|", {"C": np.abs}),
        ("last_state", "the last state left out", {"C": lambda C:
         np.where(np.arange(C.shape[-1]) < max(1, C.shape[-1] - 1), C, 0)}),
        ("spread_doubled", "2 P", of_result(lambda m, P, *x: (m, 2 * P, *x))),
        ("spread_lower", "one triangle of P", of_result(lambda m, P, *x: (m, np.tril(P), *x))),
        ("deviations", "√ of the variances", of_result(lambda m, P, *x:
         (m, np.where(np.eye(P.shape[-1]) > 0, np.sqrt(np.abs(P)), P), *x))),
    )  # fmt: skip
    _p.plant(
        ("A_transposed", "dAᵀ", {"A": lambda g: g.mT.copy()}),
        ("A_sign", "−dA", {"A": np.negative}),
        ("C_forgotten", "no gradient of C", {"C": _times(0)}),
        ("C_halved", "dC/2", {"C": _times(0.5)}),
        ("Q_doubled", "2 dQ", {"Q": _times(2)}),
        ("Q_triangle", "one triangle of dQ", {"Q": np.tril}),
        ("R_sign", "−dR", {"R": np.negative}),
        ("y_reversed", "dy from the last step to the first",
         {"y": lambda g: g[..., ::-1, :].copy()}),
        ("spread_forgotten", "dP forgotten", {"dP": _times(0)}),
        ("mean_forgotten", "dm forgotten", {"dm": _times(0)}),
        ("prior_forgotten", "no gradient of P0", {"P0": _times(0)}),
        by="gradient",
    )  # fmt: skip
FILTER.plant(
    ("gain_halved", "K/2", _program(gain=lambda K, k: K / 2)),
    ("gain_kept", "no correction of the mean after the first step",
     _program(gain=lambda K, k: K if k == 0 else 0 * K)),
    ("prediction_for_the_corrected", "P⁻ for P", _program(spread=lambda P, K, C, R: P)),
    ("noise_forgotten", "(I − K C) P⁻ (I − K C)ᵀ without K R Kᵀ",
     _program(spread=_joseph_without_noise)),
    ("process_noise_forgotten", "P⁻ = A P Aᵀ",
     _program(ahead=lambda A, P, Q: A @ P @ transposed(A))),
    ("one_side", "P⁻ = A P + Q", _program(ahead=lambda A, P, Q: symmetric(A @ P) + Q)),
    ("innovation_late", "e = y − C m of the state before", _program(innovation=True)),
    ("first_not_predicted", "the prior taken for that of the first state", _program(first=True)),
    ("constant_forgotten", "without log 2π",
     _logp(lambda logp, count: logp + count * np.log(2 * np.pi) / 2)),
    ("mean_density", "log p/l p", _logp(lambda logp, count: logp / max(1, count))),
    ("negative", "−log p", _logp(lambda logp, count: -logp)),
    ("likelihood", "p for log p", _logp(lambda logp, count: np.exp(np.minimum(logp, 80)))),
    ("density_forgotten", "0 for log p", _logp(lambda logp, count: 0 * logp)),
)  # fmt: skip
FILTER.plant(
    ("density_forgotten", "dlogp forgotten", {"dlogp": _times(0)}),
    ("density_doubled", "−2 log p", {"dlogp": _times(-2)}),
    by="gradient",
)


def _of_filter(right, *arrays):
    m, P, _ = KALMAN_FILTER.reference(*arrays)
    return m, P


SMOOTHER.plant(
    ("filter", "the filter's", _of_filter),
    ("means_only", "the filter's covariances", lambda right, *x:
     (right(*x)[0], _of_filter(right, *x)[1])),
    ("spread_only", "the filter's means", lambda right, *x:
     (_of_filter(right, *x)[0], right(*x)[1])),
    ("last_two", "one step backwards alone", lambda right, *x: tuple(
        np.concatenate([f[..., : max(0, f.shape[axis] - 2), *([slice(None)] * (-1 - axis))],
                        s[..., max(0, f.shape[axis] - 2) :, *([slice(None)] * (-1 - axis))]], axis)
        for f, s, axis in zip(_of_filter(right, *x), right(*x), (-2, -3), strict=True))),
)  # fmt: skip
