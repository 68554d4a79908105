"""Enclosures for refssm.linoss: every position as a sum over the past, with powers of M.

x_k = M^{k+1} x0 + Σ_{j≤k} M^{k−j} F_j back to the last reset; of a matrix of two rows with trace t
and determinant d, M^{j+2} = t M^{j+1} − d M^j.
"""

from refssm.enclosure.recurrence import forms


def _implicit(a, h):
    """S^-1 M and its weights, divided by 1 + h² a at the end."""
    S = 1 / (1 + h * h * a)
    return (S, -h * a * S, h * S, S), (h * S, h * h * S)


def _explicit(a, h):
    return (1, -h * a, h, 1 - h * h * a), (h, h * h)


def _powers(M, count):
    """The first `count` powers."""
    trace, determinant = M[0] + M[3], M[0] * M[3] - M[1] * M[2]
    powers = [(1, 0, 0, 1), M]
    while len(powers) < count:
        powers.append(
            tuple(trace * x - determinant * y for x, y in zip(*powers[:-3:-1], strict=True))
        )
    return powers


def _sums(rows_of):
    def sums(arguments, x0, resets):
        A, B, C, dt, u = arguments
        v = [[_dot(row, u_k) for row in B] for u_k in u]
        states = []
        for n, (a, h) in enumerate(zip(A, dt, strict=True)):
            M, weights = rows_of(a, h)
            powers, start = _powers(M, len(u) + 2), [x[n] for x in x0]
            states.append([_state(powers, weights, v, start, resets, k, n) for k in range(len(u))])
        y = [[(_dot(row, [s[k][1] for s in states]) + 0).real for row in C] for k in range(len(u))]
        last = [[s[-1][i] for s in states] for i in (0, 1)] if u else x0
        return y, last

    return sums


def _state(powers, weights, v, x0, resets, k, n):
    """(z, y) after step k."""
    z = y = 0
    for j in range(k, -1, -1):
        P = powers[k - j]
        z = z + (P[0] * weights[0] + P[1] * weights[1]) * v[j][n]
        y = y + (P[2] * weights[0] + P[3] * weights[1]) * v[j][n]
        if resets[j]:
            return z, y
    P = powers[k + 1]
    return z + P[0] * x0[0] + P[1] * x0[1], y + P[2] * x0[0] + P[3] * x0[1]


def _dot(row, x):
    return sum((a * b for a, b in zip(row, x, strict=True)), 0)


def _rest(A, B, C, dt, u):
    return [[0] * len(A), [0] * len(A)]


linoss_im, linoss_im_stateful, linoss_im_packed, *_, linoss_im_step = forms(
    _sums(_implicit), "00001", _rest
)
linoss_imex, linoss_imex_stateful, linoss_imex_packed, *_, linoss_imex_step = forms(
    _sums(_explicit), "00001", _rest
)
