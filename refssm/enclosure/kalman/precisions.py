"""Enclosures for refssm.kalman: precisions, which are those of a chain of all states.

p(x_{−1}, x_0, …, x_k | y_0 … y_k) ∝ exp(−½ xᵀ Λ x + ηᵀ x),   x_i ~ N((Λ⁻¹η)_i, (Λ⁻¹)_ii)
"""

from flint import acb, acb_mat, arb

from refssm.enclosure.algebra import column, dot, matrix


def kalman_filter(A, C, Q, R, y, m0, P0):
    """The last state of each chain; log p(y) by the density of each measurement."""
    made = [_of_chain(A, C, Q, R, y[: k + 1], m0, P0)[-1] for k in range(len(y))]
    logp, before = arb(0), [(m0, _rows(_symmetric(P0))), *made]
    for (m, P), y_k in zip(before, y, strict=False):
        logp += _log_density(A, C, Q, R, y_k, m, P)
    return [m for m, _ in made], [P for _, P in made], logp


def kalman_smoother(A, C, Q, R, y, m0, P0):
    """All states of the chain of all measurements but the one before the first."""
    made = _of_chain(A, C, Q, R, y, m0, P0)[1:] if y else []
    return [m for m, _ in made], [P for _, P in made]


def _of_chain(A, C, Q, R, y, m0, P0):
    """Mean and covariance of each of the states, from the one before the first step on."""
    n, l = len(m0), len(y)
    if not n:
        return [([], [])] * (l + 1)
    A, of_Q, of_R, of_P = matrix(A), _symmetric(Q).inv(), _inverse(R), _symmetric(P0).inv()
    seen = matrix(C).transpose() * of_R if C else acb_mat(n, 0)
    information = seen * matrix(C) if C else acb_mat(n, n)
    Lambda, eta = acb_mat(n * (l + 1), n * (l + 1)), acb_mat(n * (l + 1), 1)
    _add(Lambda, 0, 0, of_P)
    _add(eta, 0, 0, of_P * column(m0))
    for k in range(1, l + 1):
        _add(Lambda, k - 1, k - 1, A.transpose() * of_Q * A)
        _add(Lambda, k, k, of_Q + information)
        _add(Lambda, k, k - 1, -of_Q * A)
        _add(Lambda, k - 1, k, -A.transpose() * of_Q)
        _add(eta, k, 0, seen * column(y[k - 1]) if C else acb_mat(n, 1))
    spread = Lambda.inv()
    mean = spread * eta
    return [
        (
            [mean[k * n + i, 0].real for i in range(n)],
            [[spread[k * n + i, k * n + j].real for j in range(n)] for i in range(n)],
        )
        for k in range(l + 1)
    ]


def _add(X, k, j, block):
    """Add to one block."""
    height, width = block.nrows(), block.ncols()
    for a in range(height):
        for b in range(width):
            X[k * height + a, j * width + b] += block[a, b]


def _log_density(A, C, Q, R, y, m, P):
    """log N(y; C A m, C (A P Aᵀ + Q) Cᵀ + R)."""
    if not y:
        return arb(0)
    S, off = _symmetric(R), column(y)
    if m:
        A, C = matrix(A), matrix(C)
        S += C * (A * matrix(P) * A.transpose() + _symmetric(Q)) * C.transpose()
        off -= C * A * column(m)
    square = dot(off.entries(), (S.inv() * off).entries())
    return -(square + S.det().log() + len(y) * (2 * acb.pi()).log()).real / 2


def _symmetric(rows):
    """(X + Xᵀ)/2."""
    X = matrix(rows)
    return (X + X.transpose()) * acb(0.5)


def _inverse(rows):
    """The inverse of the symmetric part of a matrix, which may be empty."""
    return _symmetric(rows).inv() if rows else acb_mat(0, 0)


def _rows(X):
    """Nested lists of real balls."""
    return [[x.real for x in X.entries()[k * X.ncols() : (k + 1) * X.ncols()]]
            for k in range(X.nrows())]  # fmt: skip
