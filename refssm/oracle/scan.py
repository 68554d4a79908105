"""Oracles for refssm.scan."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def linear_step(a, b, x):
    """a x + b."""
    return [s * t + r for s, t, r in zip(a, x, b, strict=True)]


def _state_and_output(a, b, x):
    x = linear_step(a, b, x)
    return x, x


linear_scan, _from_state, linear_scan_packed, _packed_from, _, linear_scan_reversed = forms(
    _state_and_output, "11", lambda a, b: [0] * len(b[0]) if b else []
)


def linear_scan_from(a, b, x0):
    """x_k = a_k x_{k-1} + b_k, x_{-1} = x0."""
    return _from_state(a, b, x0)[0]


def linear_scan_packed_from(a, b, x0, ends):
    """The same for each sequence."""
    return _packed_from(a, b, x0, ends)[0]


def dense_scan(A, b):
    """x_k = A x_{k-1} + b_k, x_{-1} = 0."""
    return dense_scan_from(A, b, [0] * len(A))


def dense_scan_from(A, b, x0):
    """x_k = A x_{k-1} + b_k, x_{-1} = x0."""
    x = [x0]
    for b_k in b:
        x.append([y + r for y, r in zip(_product(A, x[-1]), b_k, strict=True)])
    return x[1:]


def dense_step(A, b, x):
    """A x + b."""
    return [y + r for y, r in zip(_product(A, x), b, strict=True)]


dense_scan_varying, _dense_from, dense_scan_varying_packed, *_ = forms(
    lambda A, b, x: 2 * (dense_step(A, b, x),), "11", lambda A, b: [0] * len(b[0]) if b else []
)


def dense_scan_varying_from(A, b, x0):
    """x_k = A_k x_{k-1} + b_k, x_{-1} = x0."""
    return _dense_from(A, b, x0)[0]


def diagonal_ssm(a, B, C, D, u):
    """y_k = C x_k + D u_k, x_k = a x_{k-1} + B u_k, x_{-1} = 0."""
    return diagonal_ssm_stateful(a, B, C, D, u, [0] * len(a))[0]


def diagonal_ssm_stateful(a, B, C, D, u, x0):
    """The same from x_{-1} = x0; and the last state."""
    return diagonal_ssm_varying_stateful([a] * len(u), B, C, D, u, x0)


def diagonal_ssm_varying(a, B, C, D, u):
    """The same with a_k for a, x_{-1} = 0."""
    return diagonal_ssm_varying_stateful(a, B, C, D, u, [0] * len(B))[0]


def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    """The same with a_k for a; and the last state."""
    x = linear_scan_from(a, [_product(B, u_k) for u_k in u], x0)
    return _outputs(C, x, D, u), x[-1] if x else x0


def diagonal_ssm_real(a, B, C, D, u):
    """y_k = 2 Re(C x_k) + D u_k, x_{-1} = 0."""
    return diagonal_ssm_real_stateful(a, B, C, D, u, [0] * len(a))[0]


def diagonal_ssm_real_stateful(a, B, C, D, u, x0):
    """The same from x_{-1} = x0; and the last state."""
    x = linear_scan_from([a] * len(u), [_product(B, u_k) for u_k in u], x0)
    y = [
        [2 * s.real + t.real for s, t in zip(_product(C, x_k), _product(D, u_k), strict=True)]
        for x_k, u_k in zip(x, u, strict=True)
    ]
    return y, x[-1] if x else x0


def diagonal_ssm_bidirectional(a, B, C, D, u):
    """y_k = C [x_k; z_k] + D u_k, with z the same scan from the end."""
    b = [_product(B, u_k) for u_k in u]
    x = linear_scan([a] * len(u), b)
    z = linear_scan([a] * len(u), b[::-1])[::-1]
    return _outputs(C, [[*x_k, *z_k] for x_k, z_k in zip(x, z, strict=True)], D, u)


def _outputs(C, x, D, u):
    return [
        [s + t for s, t in zip(_product(C, x_k), _product(D, u_k), strict=True)]
        for x_k, u_k in zip(x, u, strict=True)
    ]


def _product(A, x):
    """A x."""
    return [mp.fsum(a * y for a, y in zip(row, x, strict=True)) for row in A]
