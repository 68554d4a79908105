"""RWKV-6 in array code around gated linear attention, whose queries come one step late.

    y_t = S_{t-1}ᵀ r_t + (Σ_n r_tn u_n k_tn) v_t

float16 and bfloat16 are computed in float32 and rounded once at the end.
"""

from typing import Any

from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._launching.arrays import (
    Array,
    accumulated,
    folded,
    in_type_of,
    namespace,
    unbroadcast,
    unbroadcast_and_round,
    unbroadcast_each,
)


class ReadsBefore:
    """`run` and `back` of r, k, v, log_w, u, from a mirror of gated linear attention."""

    def __init__(self, after: Any):
        self.after = after  # has `run` and `back`

    def run(self, arguments, S0, resets, **statics):
        """The outputs, and the last state if there is a first one."""
        (r, k, v, log_w, u), start, begins = self._widened(arguments, S0, resets)
        xp = namespace(r)
        given = _next(r, begins), k, v, log_w
        late, *last = self.after.run(given, start, resets, **statics)
        own = xp.sum(u[..., None, :] * k * r, axis=-1, keepdims=True) * v
        rows = [own, late] if start is None else [own, late, start, u[..., None, :]]
        batch = batch_of(rows, [2] * len(rows))
        late, own = along(late, batch, 2), along(own, batch, 2)
        y = own + xp.concat([self._read(r, start, begins, late), _seen(late, begins)], axis=-2)
        y = in_type_of(y, *arguments, *([] if S0 is None else [S0]))
        if S0 is None:
            return (y,)
        return y, along(in_type_of(last[0], *arguments[1:4], S0), batch, 2)

    def back(self, cotangents, arguments, S0, resets, **statics):
        """Gradients for the arguments, and for S0 if there is one."""
        (r, k, v, log_w, u), start, begins = self._widened(arguments, S0, resets)
        xp, (dy, *dS) = namespace(r), self._wide(cotangents)
        given = _next(r, begins), k, v, log_w
        rows = [*given, begins] if start is None else [*given, begins, start]
        batch = batch_of(rows, [2] * len(rows))  # without axes that only `u` has
        later = [folded(x, (*batch, *x.shape[-2:])) for x in (_next(dy, begins), *dS)]
        late, dk, dv, dlog_w, *dS0 = self.after.back(later, given, start, resets, **statics)
        first = xp.zeros_like(r[..., :1, :])
        if start is not None:
            dy_0, r_0 = (_unless_begun(x[..., :1, :], begins) for x in (dy, r))
            of_r = _unless_begun(dy_0 @ xp.matrix_transpose(start), begins)
            first = unbroadcast(of_r, r[..., :1, :])
            dS0 = [dS0[0] + unbroadcast(xp.matrix_transpose(r_0) @ dy_0, start)]
        dr = xp.concat([first, unbroadcast(_seen(late, begins), r[..., 1:, :])], axis=-2)
        along_v = xp.sum(dy * v, axis=-1, keepdims=True)
        bonus, of_u = u[..., None, :], along_v * k * r
        own = (
            along_v * bonus * k,
            along_v * bonus * r,
            xp.sum(bonus * k * r, -1, keepdims=True) * dy,
        )
        dr, dk, dv = (
            x + more for x, more in zip((dr, dk, dv), unbroadcast_each(own, (r, k, v)), strict=True)
        )
        gradients = dr, dk, dv, dlog_w, unbroadcast(xp.sum(of_u, axis=-2), u)
        more = [] if S0 is None else [S0]
        return unbroadcast_and_round((*gradients, *dS0[: len(more)]), (*arguments, *more))

    def _widened(self, arguments, S0, resets):
        """Arguments and state in the type of computation, and where a sequence begins."""
        r, xp = arguments[0], namespace(arguments[0])
        resets = xp.zeros((r.shape[-2],), dtype=xp.bool) if resets is None else resets != 0
        return self._wide(arguments), None if S0 is None else self._wide([S0])[0], resets[..., None]

    @staticmethod
    def _wide(arrays):
        """Halves in single precision."""
        return [namespace(x).astype(x, accumulated(x.dtype), copy=False) for x in arrays]

    @staticmethod
    def _read(r, S0, begins, like):
        """S0ᵀ r_0, or 0, with the leading axes of `like`."""
        if S0 is None:
            return namespace(r).zeros_like(like[..., :1, :])
        return along(_unless_begun(r[..., :1, :] @ S0, begins), like.shape[:-2], 2)


def _next(x: Array, begins: Array) -> Array:
    """x one step later, 0 at the last step and where the next step begins a sequence."""
    xp = namespace(x)
    later = xp.where(begins[..., 1:, :], 0.0, x[..., 1:, :])
    return xp.concat([later, along(xp.zeros_like(x[..., :1, :]), later.shape[:-2], 2)], axis=-2)


def _seen(x: Array, begins: Array) -> Array:
    """x without the last step, 0 where the next step begins a sequence."""
    return namespace(x).where(begins[..., 1:, :], 0.0, x[..., :-1, :])


def _unless_begun(x: Array, begins: Array) -> Array:
    """x of step 0, or 0 if a sequence begins there."""
    return namespace(x).where(begins[..., :1, :], 0.0, x)


__all__ = ["ReadsBefore"]
