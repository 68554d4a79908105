"""Numba mirrors of refssm.linoss: one kernel for each direction, around products by BLAS.

A complex oscillator is two real ones side by side, with the same row of numbers: the matrices are
real. All states are stored, since the gradient of `C` reads every position. A single step is a scan
of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import gufunc, in_kind_of, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.rows import adjacent
from refssm.linoss import IM, IMEX, explicit, explicit_slopes, implicit, implicit_slopes

REAL = ("f4", "f8")


@part
def _advance(a, b, c, d, of_z, of_y, v, z, y, z_next, y_next):
    """z' = a z + b y + of_z v, y' = c z + d y + of_y v."""
    for n in range(v.size):
        old_z, old_y = z[n], y[n]
        z_next[n] = a[n] * old_z + b[n] * old_y + of_z[n] * v[n]
        y_next[n] = c[n] * old_z + d[n] * old_y + of_y[n] * v[n]


@part
def _begin(of_z, of_y, v, z_next, y_next):
    """The same from rest."""
    for n in range(v.size):
        z_next[n], y_next[n] = of_z[n] * v[n], of_y[n] * v[n]


@gufunc("(e,n),(l,n),(c,n),(l)->(l,c,n)", flag=3, kinds=REAL)
def scan(rows, v, x0, resets, x):
    """All states (z, y) from x0; `rows` has M₁₁, M₁₂, M₂₁, M₂₂ and the two weights of v."""
    a, b, c, d = adjacent(rows[0]), adjacent(rows[1]), adjacent(rows[2]), adjacent(rows[3])
    weights = adjacent(rows[4]), adjacent(rows[5])
    for k in range(v.shape[0]):
        now = adjacent(v[k])
        after = adjacent(x[k, 0]), adjacent(x[k, 1])
        if resets[k]:
            _begin(*weights, now, *after)
        elif k:
            _advance(
                a, b, c, d, *weights, now, adjacent(x[k - 1, 0]), adjacent(x[k - 1, 1]), *after
            )
        else:
            _advance(a, b, c, d, *weights, now, adjacent(x0[0]), adjacent(x0[1]), *after)


@part
def _turn_back(dy, a, b, c, d, of_z, of_y, v, z, y, reads, g_z, g_y, dv, drows):
    """One step backwards: g has the cotangent of the state after, then of that before."""
    for n in range(v.size):
        after_z, after_y = g_z[n], g_y[n] + dy[n]
        dv[n] = of_z[n] * after_z + of_y[n] * after_y
        drows[4, n] += after_z * v[n]
        drows[5, n] += after_y * v[n]
        if reads:
            drows[0, n] += after_z * z[n]
            drows[1, n] += after_z * y[n]
            drows[2, n] += after_y * z[n]
            drows[3, n] += after_y * y[n]
            g_z[n], g_y[n] = a[n] * after_z + c[n] * after_y, b[n] * after_z + d[n] * after_y
        else:
            g_z[n], g_y[n] = 0, 0


@gufunc(
    "(l,n),(c,n),(e,n),(l,n),(l,c,n),(c,n),(l)->(l,n),(e,n),(c,n)", flag=6, kinds=REAL
)  # fmt: skip
def scan_back(dy, dlast, rows, v, x, x0, resets, dv, drows, dx0):
    """Gradients for v, the rows and x0, from those of the positions and of the last state."""
    a, b, c, d = adjacent(rows[0]), adjacent(rows[1]), adjacent(rows[2]), adjacent(rows[3])
    of_z, of_y = adjacent(rows[4]), adjacent(rows[5])
    g_z, g_y = np.empty(v.shape[1], v.dtype), np.empty(v.shape[1], v.dtype)
    for n in range(v.shape[1]):
        g_z[n], g_y[n] = dlast[0, n], dlast[1, n]
        for i in range(drows.shape[0]):
            drows[i, n] = 0
    for k in range(v.shape[0] - 1, -1, -1):
        z, y = (x[k - 1, 0], x[k - 1, 1]) if k else (x0[0], x0[1])
        now = a, b, c, d, of_z, of_y, adjacent(v[k]), adjacent(z), adjacent(y), not resets[k]
        _turn_back(adjacent(dy[k]), *now, g_z, g_y, adjacent(dv[k]), drows)
    for n in range(v.shape[1]):
        dx0[0, n], dx0[1, n] = g_z[n], g_y[n]


def _reals(x, kind):
    """Real and imaginary parts side by side, if the kind is complex; rows of adjacent entries."""
    x = np.ascontiguousarray(x, kind)
    return x.view(np.finfo(kind).dtype) if kind.kind == "c" else x


def _again(x, kind):
    """The real numbers as entries of this kind."""
    return np.ascontiguousarray(x).view(kind) if kind.kind == "c" else x


class _Oscillators:
    """`run` and `back` of one variant, from the six rows and their derivatives."""

    def __init__(self, rows_of, slopes_of):
        self.rows_of, self.slopes_of = rows_of, slopes_of

    def run(self, arguments, x0, resets):
        """The outputs, and the last state if there is a first one."""
        A, B, C, dt, u = arguments
        x = self._states(arguments, x0, resets)[0]
        y = _real_part(x[..., 1, :] @ np.swapaxes(C, -1, -2))
        start = np.zeros((2, A.shape[-1]), x.dtype) if x0 is None else x0
        last = x[..., -1, :, :] if x.shape[-3] else start.astype(x.dtype)
        return y, in_kind_of(with_batch(last, 2, y.shape[:-2]), A, B, dt, u, x0)

    def back(self, cotangents, arguments, x0, resets):
        """Gradients for the arguments and x0."""
        A, B, C, dt, u = arguments
        x, v, rows, start, begins = self._states(arguments, x0, resets)
        dy, dlast = (*cotangents, np.zeros_like(start))[:2]
        d = dy @ C.conj()
        kind = np.result_type(d, dlast, x)
        given = (_reals(a, kind) for a in (d, dlast))
        states = (_reals(a, kind) for a in (v, x, start))
        found = scan_back(*given, _for_parts(rows, kind), *states, begins)
        dv, dx0 = (_again(found[i], kind) for i in (0, 2))
        drows = found[1]
        if kind.kind == "c":
            drows = drows.reshape(*drows.shape[:-1], -1, 2).sum(-1)
        by_A, by_dt = self.slopes_of(A, dt)
        gradients = (
            (by_A * drows).sum(-2),
            np.swapaxes(dv, -1, -2) @ u,
            np.swapaxes(dy, -1, -2) @ x[..., 1, :].conj(),
            (by_dt * drows).sum(-2),
            dv @ B.conj(),
            dx0,
        )
        return unbroadcast_each(gradients, (*arguments, start))

    def _states(self, arguments, x0, resets):
        """All states, B u_k, the rows, the first state and the resets."""
        A, B, _, dt, u = arguments
        rows, v = self.rows_of(A, dt), u @ np.swapaxes(B, -1, -2)
        rest = np.zeros((2, A.shape[-1]), B.dtype)
        start, begins = started(rest, x0, resets, u.shape[-2])
        kind = np.result_type(rows, v, start)
        given = _for_parts(rows, kind), _reals(v, kind), _reals(start, kind)
        return _again(scan(*given, begins), kind), v, rows, start, begins


def _for_parts(rows, kind):
    """The rows, twice for each complex number; entries of a row are adjacent, also where those of
    the arguments are not: NumPy stacks columns to columns.
    """
    rows = np.repeat(rows, 2, axis=-1) if kind.kind == "c" else rows
    return np.ascontiguousarray(rows, np.finfo(kind).dtype)


def _real_part(y):
    return y.real.copy() if y.dtype.kind == "c" else y


_IMPLICIT = _Oscillators(implicit, implicit_slopes)
_EXPLICIT = _Oscillators(explicit, explicit_slopes)
(
    (linoss_im, linoss_im_vjp),
    (linoss_im_stateful, linoss_im_stateful_vjp),
    (linoss_im_packed, linoss_im_packed_vjp),
    (linoss_im_step, linoss_im_step_vjp),
) = IM.mirrors(_IMPLICIT.run, _IMPLICIT.back, mirror)
(
    (linoss_imex, linoss_imex_vjp),
    (linoss_imex_stateful, linoss_imex_stateful_vjp),
    (linoss_imex_packed, linoss_imex_packed_vjp),
    (linoss_imex_step, linoss_imex_step_vjp),
) = IMEX.mirrors(_EXPLICIT.run, _EXPLICIT.back, mirror)
