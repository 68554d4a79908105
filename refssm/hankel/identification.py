"""A system from what went in and what came out: subspace identification.

With U_p, U_f the Hankel matrices of past and future inputs, r rows each, and Y_p, Y_f of outputs,

    Y_f = Γ X + T U_f,   Γ the rows C A^i,  X the states now,  T the response to future inputs

and X is a combination of the rows of U_p and Y_p. So Y_f, with U_f projected away, along U_p and
Y_p, has the columns of Γ [vanoverschee1996, verhaegen1994]. In the triangular factor of the rows
[U_f; U_p; Y_p; Y_f] this is the block of Y_f in the columns of U_p and Y_p. A follows from Γ one
row later, and B, D and the first state from a linear least squares fit of all outputs.
"""

import numpy as np


def subspace_realization(u, y, order, *, rows=None):
    """A, B, C and D with x_{k+1} = A x_k + B u_k, y_k ≈ C x_k + D u_k, from samples alone.

    `u` and `y` (l) are one input and one output, real, `order` states r; the result has shapes
    (r, r), (r), (r), (). The state at the first sample is unknown, and fitted too. `rows`, by
    default 2 r + 2, is the length of past and future. Data without noise give the system up to
    rounding errors, which grow like the size of Y_f over the smallest singular value that is kept.
    White noise of the outputs makes errors that fall like 1/√l. Units: those of y/u for C B and D.

    Raises ValueError if `u` and `y` are not two signals of one length with finite numbers, if
    `order` is not from 1 to rows − 1, if l is below 6 rows − 1, if `u` has fewer than 2 rows
    frequencies, so that other systems have the same outputs, or if the outputs have fewer states.
    Source: [vanoverschee1996], [verhaegen1994].

    >>> import numpy as np
    >>> from refssm import subspace_realization
    >>> u = np.random.default_rng(0).standard_normal(100)
    >>> x = np.concatenate([[0.0], np.convolve(u, 0.5 ** np.arange(100))[:99]])  # x/2 + u, later
    >>> A, B, C, D = subspace_realization(u, 3 * x - u, 1)
    >>> A.round(9).tolist(), (B * C).round(9).tolist(), D.round(9).tolist()
    ([[0.5]], [3.0], -1.0)
    """
    u, y = (_signal(name, a) for name, a in (("u", u), ("y", y)))
    if u.shape != y.shape:
        raise _refused(f"`y` must have the length of `u`, {u.size}, got {y.size}")
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    rows = 2 * int(order) + 2 if rows is None else rows
    if not (whole and 1 <= order < rows):
        raise _refused(f"`order` must be an integer from 1 to rows − 1 = {rows - 1}, got {order!r}")
    if u.size < 6 * rows - 1:
        raise _refused(f"wanted at least 6 rows − 1 = {6 * rows - 1} samples, got {u.size}")
    left, sigma = observed(u, y, rows)
    if not sigma[order - 1] > u.size * np.finfo(float).eps * np.linalg.norm(y):
        raise _refused(f"the outputs have fewer than {order} states")
    gamma = left[:, :order] * np.sqrt(sigma[:order])
    A, C = np.linalg.lstsq(gamma[:-1], gamma[1:])[0], gamma[0]
    B, D = _driven(A, C, u, y)
    return A, B, C, D


def observed(u, y, rows):
    """Left singular vectors and singular values of Y_f without U_f, along U_p and Y_p."""
    past_u, future_u = np.split(_hankel(u, 2 * rows), 2)
    past_y, future_y = np.split(_hankel(y, 2 * rows), 2)
    excited = np.linalg.svd(np.concatenate([past_u, future_u]), compute_uv=False)
    if not excited[-1] > u.size * np.finfo(float).eps * excited[0]:
        raise _refused(f"`u` must have at least 2 rows = {2 * rows} frequencies")
    stacked = np.concatenate([future_u, past_u, past_y, future_y])
    triangular = np.linalg.qr(stacked.T).R.T
    block = triangular[3 * rows :, rows : 3 * rows]
    left, sigma, _ = np.linalg.svd(block)
    return left, sigma


def _driven(A, C, u, y):
    """B and D of the least squares fit of y, with the first state as a third unknown."""
    n, l = C.size, u.size
    of_state, of_input, fit = C, np.zeros(n), np.empty((l, 2 * n + 1))
    for k in range(l):
        fit[k] = [*of_input, u[k], *of_state]  # y_k = of_input B + u_k D + of_state x_0
        of_input, of_state = of_input @ A + C * u[k], of_state @ A
    found = np.linalg.lstsq(fit, y)[0]
    return found[:n], found[n]


def _hankel(x, rows):
    """x_{i+j} with so many rows, and all columns."""
    return np.lib.stride_tricks.sliding_window_view(x, x.size - rows + 1)


def _signal(name, x):
    """One real signal in double precision."""
    x = np.asarray(x)
    if x.ndim != 1 or x.dtype.kind not in "iuf" or not np.isfinite(x).all():
        came = f"got {x.dtype} {x.shape}"
        raise _refused(f"`{name}` must be a signal (l) of finite real numbers, {came}")
    return x.astype(np.float64)


def _refused(told):
    return ValueError(f"subspace_realization: {told}")
