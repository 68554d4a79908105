"""A recurrence that reads its state before it writes, from gated linear attention.

    y_t = S_{t-1}ᵀ r_t + (Σ_n r_tn u_n k_tn) v_t

The first term is what gated linear attention answers to r_t one step earlier, the second one
belongs to the step alone. So every way to compute that recurrence computes this one, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.scan.blocks import no_resets


@dataclass(frozen=True)
class ReadsFirst:
    """`run` and `back` of r, k, v, log_w, u, from those of gated linear attention."""

    run_after: Callable
    back_after: Callable

    def run(self, arguments, S0, resets, **statics):
        """The outputs, and the last state if there is a first one."""
        r, k, v, log_w, u = arguments
        begins = _begins(r, resets)
        late, *last = self.run_after((_next(r, begins), k, v, log_w), S0, resets, **statics)
        first = _read_at_start(r, S0, begins, late)
        of_bonus = einsum("...ln,...ln->...l", _with_bonus(u, k), r)[..., None] * v
        y = _one_later(late, begins, with_batch(first, 2, late.shape[:-2])) + of_bonus
        return (y,) if S0 is None else (y, with_batch(last[0], 2, y.shape[:-2]))

    def back(self, cotangents, arguments, S0, resets, **statics):
        """Gradients for the arguments and S0."""
        r, k, v, log_w, u = arguments
        dy, *dS = cotangents
        begins = _begins(r, resets)
        given = (_next(r, begins), k, v, log_w)
        batch = _batch((*given, begins, *([] if S0 is None else [S0])))
        later = [_without_axes_of_bonus(x, batch) for x in (_next(dy, begins), *dS)]
        late, dk, dv, dlog_w, dS0 = self.back_after(later, given, S0, resets, **statics)
        dr, dstart = _started_back(dy, r, S0, begins)
        dr = np.concatenate([dr, unbroadcast(_seen(late, begins), r)[..., :-1, :]], axis=-2)
        if S0 is not None:
            dS0 = dS0 + unbroadcast(dstart, S0)
        of_bonus = _bonus_back(dy, r, k, v, u)
        *of_each, du = unbroadcast_each(of_bonus, (r, k, v, u))
        dr, dk, dv = (x + more for x, more in zip((dr, dk, dv), of_each, strict=True))
        return dr, dk, dv, dlog_w, du, dS0


def _begins(r, resets):
    """True where a sequence begins, with an axis for keys or values."""
    return (no_resets(r.shape[-2]) if resets is None else resets != 0)[..., None]


def _batch(arrays):
    """The leading axes of arrays with two axes of their own."""
    return np.broadcast_shapes(*(x.shape[:-2] for x in arrays))


def _without_axes_of_bonus(x, batch):
    """A cotangent, summed over the leading axes that only `u` has."""
    return unbroadcast(x, np.broadcast_to(np.zeros(()), (*batch, *x.shape[-2:])))


def _next(x, begins):
    """x one step later, 0 at the last step and where the next step begins a sequence."""
    later = np.where(begins[..., 1:, :], 0, x[..., 1:, :]) if begins.any() else x[..., 1:, :]
    return np.concatenate([later, np.zeros_like(later, shape=_row(later, x))], axis=-2)


def _row(like, x):
    """The shape of a row for one step, or for none if there is no step."""
    return *like.shape[:-2], min(1, x.shape[-2]), x.shape[-1]


def _seen(x, begins):
    """x, 0 where the next step begins a sequence; selected, so NaN does not pass."""
    if not begins.any():
        return x
    ends = np.concatenate([begins[..., 1:, :], begins[..., :1, :]], axis=-2)
    return np.where(ends, 0, x)  # that of the last step is not used


def _one_later(x, begins, first):
    """x one step later, after `first`; 0 where a sequence begins."""
    return np.concatenate([first, _seen(x, begins)[..., :-1, :]], axis=-2)


def _read_at_start(r, S0, begins, like):
    """S0ᵀ r_0, or 0."""
    if S0 is None:
        return np.zeros_like(like[..., :1, :])
    return _unless_begun(einsum("...np,...ln->...lp", S0, r[..., :1, :]), begins)


def _unless_begun(x, begins):
    """x of step 0, or 0 if a sequence begins there."""
    return np.where(begins[..., :1, :], 0, x) if begins.any() else x


def _started_back(dy, r, S0, begins):
    """The gradients for r_0 and S0, of S0ᵀ r_0."""
    first, start = (_unless_begun(x[..., :1, :], begins) for x in (dy, r))
    if S0 is None:
        return np.zeros_like(r[..., :1, :]), None
    of_r = _unless_begun(einsum("...np,...lp->...ln", S0, first), begins)
    return unbroadcast(of_r, r[..., :1, :]), einsum("...ln,...lp->...np", start, first)


def _with_bonus(u, k):
    """u ∘ k_t."""
    return u[..., None, :] * k


def _bonus_back(dy, r, k, v, u):
    """The gradients of (Σ_n r_n u_n k_n) v for r, k, v and u."""
    along = einsum("...lp,...lp->...l", dy, v)[..., None]
    weight = einsum("...ln,...ln->...l", _with_bonus(u, k), r)[..., None]
    du = (along * k * r).sum(-2)
    return along * _with_bonus(u, k), along * _with_bonus(u, r), weight * dy, du


__all__ = ["ReadsFirst"]
