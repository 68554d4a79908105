"""CuPy mirrors of refssm.linoss: array code, in log₂ l rounds, around products by cuBLAS.

A round composes each step with the one so many steps before it: a power of M for each oscillator,
and no state from before the beginning of a sequence.
"""

import numpy as np

from refssm.linoss import IM, IMEX
from refssm_gpu._algebra.parts import adjoint, conj
from refssm_gpu._launching.arrays import (
    Array,
    is_complex,
    namespace,
    transposed,
    unbroadcast_each,
)
from refssm_gpu._launching.checked import mirror


def _mapped(M: Array, x: Array) -> Array:
    """M x_k for every k."""
    return x @ transposed(M)


def _outer(y: Array, x: Array) -> Array:
    """Σ_k y_k x_kᴴ."""
    return transposed(y) @ conj(x)


def _implicit(A: Array, dt: Array) -> tuple[Array, ...]:
    """M₁₁, M₁₂, M₂₁, M₂₂ and the weights of B u."""
    S = 1 / (1 + dt * dt * A)
    return S, -dt * A * S, dt * S, S, dt * S, dt * dt * S


def _implicit_back(A: Array, dt: Array, d: tuple[Array, ...]) -> tuple[Array, Array]:
    """The cotangents of A and dt from those of the six."""
    S = 1 / (1 + dt * dt * A)
    S2, closed = S * S, (1 - dt * dt * A) * S * S
    both, force, weights = d[0] + d[3], d[1], d[2] + d[4]
    dA = -dt * S2 * (dt * both + force + dt * dt * weights + dt * dt * dt * d[5])
    ddt = -2 * dt * A * S2 * both - A * closed * force + closed * weights + 2 * dt * S2 * d[5]
    return dA, ddt


def _explicit(A: Array, dt: Array) -> tuple[Array, ...]:
    one = namespace(A).ones_like(dt * A)
    return one, -dt * A, dt * one, 1 - dt * dt * A, dt * one, dt * dt * one


def _explicit_back(A: Array, dt: Array, d: tuple[Array, ...]) -> tuple[Array, Array]:
    dA = -dt * d[1] - dt * dt * d[3]
    return dA, -A * d[1] + d[2] - 2 * dt * A * d[3] + d[4] + 2 * dt * d[5]


def _swung(M: tuple[Array, ...], z: Array, y: Array, begins: Array) -> tuple[Array, Array]:
    """States (z, y) from inputs (z, y), (…, l, n): nothing passes where a sequence begins."""
    xp, step = namespace(z), 1
    a, b, c, d = (x[..., None, :] for x in M)
    while step < z.shape[-2]:
        old_z, old_y = z[..., :-step, :], y[..., :-step, :]
        ended = begins[..., step:, None]
        more_z = xp.where(ended, xp.zeros_like(old_z), a * old_z + b * old_y)
        more_y = xp.where(ended, xp.zeros_like(old_y), c * old_z + d * old_y)
        z = xp.concat([z[..., :step, :], z[..., step:, :] + more_z], axis=-2)
        y = xp.concat([y[..., :step, :], y[..., step:, :] + more_y], axis=-2)
        later = begins[..., step:] | begins[..., :-step]
        begins = xp.concat([begins[..., :step], later], axis=-1)
        a, b, c, d = a * a + b * c, a * b + b * d, c * a + d * c, c * b + d * d
        step *= 2
    return z, y


class _DoubledOscillators:
    """`run` and `back` of one variant."""

    def __init__(self, rows_of, rows_back):
        self.rows_of, self.rows_back = rows_of, rows_back

    def run(self, arguments, x0, resets):
        """The outputs, and the last state if there is a first one."""
        C, xp = arguments[2], namespace(arguments[4])
        z, y, *_ = self._states(arguments, x0, resets)
        out = _real(_mapped(C, y))
        if x0 is None:
            return (out,)
        last = xp.stack([z[..., -1, :], y[..., -1, :]], axis=-2) if z.shape[-2] else x0
        last = xp.broadcast_to(last, (*out.shape[:-2], *last.shape[-2:]))
        return out, xp.astype(last, z.dtype, copy=True)

    def back(self, cotangents, arguments, x0, resets):
        """Gradients for the arguments and x0."""
        A, B, C, dt, u = arguments
        xp = namespace(u)
        z, y, v, rows, start, begins = self._states(arguments, x0, resets)
        d_y = _mapped(adjoint(C), cotangents[0])
        batch = np.broadcast_shapes(d_y.shape[:-2], z.shape[:-2])  # C may have axes of its own
        d_y = xp.broadcast_to(d_y, (*batch, *z.shape[-2:]))
        d_y = xp.astype(d_y, xp.result_type(d_y, z), copy=False)
        of_z, of_y, dx0 = self._cotangents(d_y, cotangents[1:], rows, start, begins)
        before = _before(z, y, start, begins)
        pairs = [(g, x) for g in (of_z, of_y) for x in before] + [(of_z, v), (of_y, v)]
        d_rows = tuple(xp.sum(_real(g * conj(x)), axis=-2) for g, x in pairs)
        dv = rows[4][..., None, :] * of_z + rows[5][..., None, :] * of_y
        dA, ddt = self.rows_back(A, dt, d_rows)
        gradients = dA, _outer(dv, u), _outer(cotangents[0], y), ddt, _mapped(adjoint(B), dv)
        if x0 is None:
            return unbroadcast_each(gradients, arguments)
        return unbroadcast_each((*gradients, dx0), (*arguments, x0))

    def _cotangents(self, d_y, dlast, rows, start, begins):
        """Those of all states, from those of the positions and the last state; and of x0."""
        xp, (a, b, c, d) = namespace(d_y), (x[..., None, :] for x in rows[:4])
        d_z = xp.zeros_like(d_y)
        if dlast:
            last = xp.astype(dlast[0], xp.result_type(dlast[0], d_y), copy=False)
            if not d_y.shape[-2]:
                return d_z, d_y, last
            d_z = xp.concat([d_z[..., :-1, :], d_z[..., -1:, :] + last[..., :1, :]], axis=-2)
            d_y = xp.concat([d_y[..., :-1, :], d_y[..., -1:, :] + last[..., 1:, :]], axis=-2)
        if not d_y.shape[-2]:
            return d_z, d_y, start
        none, later = xp.zeros_like(begins[..., :1]), xp.flip(begins[..., 1:], axis=-1)
        ended = xp.concat([none, later], axis=-1)
        MT = rows[0], rows[2], rows[1], rows[3]
        turned = _swung(MT, xp.flip(d_z, axis=-2), xp.flip(d_y, axis=-2), ended)
        of_z, of_y = (xp.flip(g, axis=-2) for g in turned)
        first = of_z[..., :1, :], of_y[..., :1, :]
        carried = [a * first[0] + c * first[1], b * first[0] + d * first[1]]
        kept = [xp.where(begins[..., :1, None], xp.zeros_like(g), g) for g in carried]
        return of_z, of_y, xp.concat(kept, axis=-2)

    def _states(self, arguments, x0, resets):
        """Velocities, positions, B u_k, the six rows, the first state, where sequences begin."""
        A, B, _, dt, u = arguments
        xp, rows, v = namespace(u), self.rows_of(A, dt), _mapped(B, u)
        kind, l = xp.result_type(v, rows[0], *([] if x0 is None else [x0])), u.shape[-2]
        start = xp.zeros((2, A.shape[-1]), dtype=kind) if x0 is None else x0
        begins = (xp.arange(l) == 0) & (x0 is None)
        begins = begins if resets is None else begins | xp.astype(resets, xp.bool)
        z, y = rows[4][..., None, :] * v, rows[5][..., None, :] * v
        batch = np.broadcast_shapes(z.shape[:-2], start.shape[:-2], begins.shape[:-1])
        wide = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (z, y))
        z, y = (xp.astype(x, kind, copy=False) for x in wide)
        begins = xp.broadcast_to(begins, (*batch, l))
        if x0 is not None and l:
            a, b, c, d = (x[..., None, :] for x in rows[:4])
            of_z, of_y = start[..., :1, :], start[..., 1:, :]
            first = begins[..., :1, None]
            more = [xp.where(first, xp.zeros_like(z[..., :1, :]), x)
                    for x in (a * of_z + b * of_y, c * of_z + d * of_y)]  # fmt: skip
            z = xp.concat([z[..., :1, :] + more[0], z[..., 1:, :]], axis=-2)
            y = xp.concat([y[..., :1, :] + more[1], y[..., 1:, :]], axis=-2)
        return *_swung(rows[:4], z, y, begins), v, rows, start, begins


def _before(z: Array, y: Array, start: Array, begins: Array) -> list[Array]:
    """Velocities and positions before each step; 0 where a sequence begins."""
    xp = namespace(z)
    found = []
    for x, first in ((z, start[..., :1, :]), (y, start[..., 1:, :])):
        first = xp.broadcast_to(first, (*x.shape[:-2], 1, x.shape[-1]))
        first = xp.astype(first, x.dtype, copy=False)
        earlier = xp.concat([first, x], axis=-2)[..., : x.shape[-2], :]
        found.append(xp.where(begins[..., None], xp.zeros_like(earlier), earlier))
    return found


def _real(x: Array) -> Array:
    return namespace(x).real(x) if is_complex(x) else x


_IMPLICIT, _EXPLICIT = (
    _DoubledOscillators(_implicit, _implicit_back),
    _DoubledOscillators(_explicit, _explicit_back),
)
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
