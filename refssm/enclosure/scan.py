"""Enclosures for refssm.scan: every state as the sum of the decayed inputs."""

from refssm.enclosure.algebra import column, matrix
from refssm.enclosure.recurrence import forms


def _linear(arguments, x0, resets):
    """x_k = Σ_{j≤k} (Π_{j<i≤k} a_i) b_j back to the last reset, plus (Π_{i≤k} a_i) x0."""
    a, b = arguments
    x = _sums(a, b, x0, resets)
    return x, x[-1] if x else x0


def _sums(a, b, x0, resets=()):
    """The sums, from the last input back to the first; plus x0 if no reset lies between."""
    starts = [*resets] or [False] * len(b)
    return [[_left(n, a, b, starts, k, start) for n, start in enumerate(x0)] for k in range(len(b))]


def _left(n, a, b, starts, k, x0):
    decay, total = 1, 0
    for j in range(k, -1, -1):
        total += decay * b[j][n]
        if starts[j]:
            return total
        decay *= a[j][n]
    return total + decay * x0


linear_scan, _from_state, linear_scan_packed, _packed_from, _, linear_scan_reversed, _step = forms(
    _linear, "11", lambda a, b: [0] * len(b[0]) if b else []
)


def linear_scan_from(a, b, x0):
    """The states alone."""
    return _from_state(a, b, x0)[0]


def linear_scan_packed_from(a, b, x0, ends):
    """The states alone."""
    return _packed_from(a, b, x0, ends)[0]


def linear_step(a, b, x):
    """The state alone."""
    return _step(a, b, x)[0]


def dense_scan(A, b):
    """x_k = Σ_{j≤k} A^{k−j} b_j."""
    return dense_scan_from(A, b, [0] * len(A))


def dense_scan_from(A, b, x0):
    """The same plus A^{k+1} x0."""
    if not A:
        return [[] for _ in b]
    powers = [matrix(A) ** 0]
    for _ in b:
        powers.append(powers[-1] * matrix(A))
    driven = [column(x0), *map(column, b)]
    sums = [
        sum((powers[k - j] * driven[j] for j in range(k)), driven[k]) for k in range(1, len(driven))
    ]
    return [x.entries() for x in sums]


def _dense(arguments, x0, resets):
    """x_k = Σ_j (A_k ⋯ A_{j+1}) b_j back to the last reset, plus (A_k ⋯ A_0) x0."""
    A, b = arguments
    x = [_dense_state(A[: k + 1], b[: k + 1], x0, resets) for k in range(len(b))]
    return x, x[-1] if x else x0


def _dense_state(A, b, x0, resets):
    k = len(b) - 1
    if not b[k]:
        return []
    product, total = matrix(A[k]) ** 0, column(b[k])
    while not resets[k]:
        product *= matrix(A[k])
        k -= 1
        total += product * column(b[k] if k >= 0 else x0)
        if k < 0:
            break
    return total.entries()


dense_scan_varying, _dense_from, dense_scan_varying_packed, *_, _dense_step = forms(
    _dense, "11", lambda A, b: [0] * len(b[0]) if b else []
)


def dense_scan_varying_from(A, b, x0):
    """The states alone."""
    return _dense_from(A, b, x0)[0]


def dense_step(A, b, x):
    """The state alone."""
    return _dense_step(A, b, x)[0]


def diagonal_ssm(a, B, C, D, u):
    """y_k = D u_k + Σ_{j≤k} C diag(a)^{k−j} B u_j."""
    return diagonal_ssm_stateful(a, B, C, D, u, [0] * len(a))[0]


def diagonal_ssm_stateful(a, B, C, D, u, x0):
    """The same plus the decayed x0; and the last state."""
    return diagonal_ssm_varying_stateful([a for _ in u], B, C, D, u, x0)


def diagonal_ssm_varying(a, B, C, D, u):
    """The same with products of the decays since j instead of powers."""
    return diagonal_ssm_varying_stateful(a, B, C, D, u, [0] * len(B))[0]


def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    """The same from a state; and the last state."""
    x = _sums(a, [_applied(B, u_k) for u_k in u], x0)
    return _seen(C, x, D, u), x[-1] if x else x0


def diagonal_ssm_real(a, B, C, D, u):
    """C x + (C x)*, plus the real part of D u."""
    return diagonal_ssm_real_stateful(a, B, C, D, u, [0] * len(a))[0]


def diagonal_ssm_real_stateful(a, B, C, D, u, x0):
    """The same from a state; and the last state."""
    x = _sums([a for _ in u], [_applied(B, u_k) for u_k in u], x0)
    twice = [[2 * c for c in row] for row in C]
    y = [[(y_p + 0).real for y_p in row] for row in _seen(twice, x, D, u)]
    return y, x[-1] if x else x0


def diagonal_ssm_bidirectional(a, B, C, D, u):
    """C times the sums over the past, plus C times the sums over the future."""
    b, n = [_applied(B, u_k) for u_k in u], len(a)
    past, rest = _sums([a for _ in u], b, [0] * n), [0] * len(C)
    y = _seen([row[:n] for row in C], past, D, u)
    for k in range(len(u)):
        ahead = [sum(a[i] ** (j - k) * b[j][i] for j in range(k, len(u))) for i in range(n)]
        rest = _applied([row[n:] for row in C], ahead)
        y[k] = [s + t for s, t in zip(y[k], rest, strict=True)]
    return y


def _seen(C, x, D, u):
    """[C D] [x; u]."""
    both = [[*row, *more] for row, more in zip(C, D, strict=True)]
    return [_applied(both, [*x_k, *u_k]) for x_k, u_k in zip(x, u, strict=True)]


def _applied(A, x):
    """Σ_k x_k times column k of A."""
    y = [0] * len(A)
    for k, x_k in enumerate(x):
        y = [y_i + row[k] * x_k for y_i, row in zip(y, A, strict=True)]
    return y
