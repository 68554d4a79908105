"""CuPy mirrors of refssm.xlstm: gates in log₂ l passes, then the kernels of linear attention.

The step from m_{t-1} to m_t is m ↦ max(log_f_t + m, i_t); two of them are one of the same kind with
the sum of log_f, so that all m follow by doubling. Then the recurrence is gated linear attention
with values (v, 1), gates log_f_t + m_{t-1} − m_t and keys e^{i_t − m_t} k_t
(`refssm_gpu.linear_attention.passes`). What is left for m at each step goes to i or log_f of a step
before; where it goes is a linear scan.
"""

import numpy as np

from refssm.xlstm import XLSTM, XLSTM_CHUNKED
from refssm_gpu._launching.arrays import Array, common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu.linear_attention.passes import scan as attention
from refssm_gpu.linear_attention.passes import scan_back as attention_back
from refssm_gpu.scan.linear import scan


def _scales(i: Array, log_f: Array, m: Array, resets: Array | None) -> tuple[Array, Array]:
    """m before and after each step, by doubling; m before is 0 where a sequence begins."""
    xp, l = namespace(i), i.shape[-1]
    batch = np.broadcast_shapes(
        i.shape[:-1], log_f.shape[:-1], m.shape, () if resets is None else resets.shape[:-1]
    )
    total = xp.broadcast_to(log_f, (*batch, l))
    most = xp.broadcast_to(i, (*batch, l))
    begins = xp.zeros((*batch, l), dtype=bool)
    if resets is not None:
        begins = xp.broadcast_to(resets != 0, (*batch, l))
        most = xp.where(begins, xp.maximum(total, most), most)
    reach = 1
    while reach < l:
        start = (..., slice(None, reach))
        old, new = (..., slice(None, -reach)), (..., slice(reach, None))
        own = begins[new]
        joined = xp.where(own, most[new], xp.maximum(most[old] + total[new], most[new]))
        most = xp.concat([most[start], joined], axis=-1)
        total = xp.concat([total[start], total[old] + total[new]], axis=-1)
        begins = xp.concat([begins[start], own | begins[old]], axis=-1)
        reach *= 2
    first = xp.broadcast_to(m[..., None], (*batch, 1))
    after = xp.where(begins, most, xp.maximum(total + first, most))
    before = xp.concat([first, after[..., :-1]], axis=-1)[..., :l]
    if resets is not None:
        before = xp.where(resets != 0, xp.zeros_like(before), before)
    return before, after


def _completed(arguments, state, resets):
    """m before the first step, before and after each; what linear attention gets."""
    q, k, v, i, log_f = arguments
    xp, kind = namespace(q), common(*arguments, *(state or ()))
    given = [xp.astype(x, kind, copy=False) for x in (*arguments, *(state or ()))]
    q, k, v, i, log_f, *start = given
    m = start[2] if state else xp.zeros((), dtype=kind)
    before, after = _scales(i, log_f, m, resets)
    ones = xp.ones((*v.shape[:-1], 1), dtype=kind)
    told = {
        "q": q,
        "k": xp.exp(i - after)[..., None] * k,
        "v": xp.concat([v, ones], axis=-1),
        "log_g": (log_f + before - after)[..., None],
        "beta": None,
        "S0": _beside(start[0], start[1], m.shape) if state else None,
        "resets": resets,
    }
    return (m, before, after), told


def _beside(S: Array, s: Array, leading: tuple[int, ...] = ()) -> Array:
    """S with one more column, s; with these leading axes, too."""
    xp, batch = namespace(S), np.broadcast_shapes(S.shape[:-2], s.shape[:-1], leading)
    S = xp.broadcast_to(S, (*batch, *S.shape[-2:]))
    return xp.concat([S, xp.broadcast_to(s, (*batch, s.shape[-1]))[..., None]], axis=-1)


def _floor(m: Array) -> tuple[Array, Array]:
    """e^{min(m, 0)} and e^{−max(m, 0)}, at least a normal number."""
    xp, zero = namespace(m), namespace(m).zeros_like(m)
    least = xp.full_like(m, float(xp.finfo(m.dtype).smallest_normal))
    return xp.exp(xp.minimum(m, zero)), xp.maximum(xp.exp(-xp.maximum(m, zero)), least)


def _run(arguments, state, resets, *, eps=0.0, chunk=0):
    """The outputs, and the last state if there is a first one."""
    del chunk
    (m, _, after), told = _completed(arguments, state, resets)
    xp = namespace(m)
    read, S = attention(told)
    low, one = _floor(after)
    d = xp.maximum(low * xp.abs(read[..., -1]), one) + low * eps
    y = low[..., None] * read[..., :-1] / d[..., None]
    if not state:
        return (y,)
    last = xp.concat([xp.broadcast_to(m[..., None], (*after.shape[:-1], 1)), after], axis=-1)
    last = xp.broadcast_to(last[..., -1], S.shape[:-2])
    return y, S[..., :-1], S[..., -1], last


def _back(cotangents, arguments, state, resets, *, eps=0.0, chunk=0):
    """Gradients for the arguments and the state."""
    del chunk
    dy, *dlast = cotangents
    primals = *arguments, *(state or ())
    if not dy.shape[-2]:
        return _nothing(arguments, state, dlast)
    (_, before, after), told = _completed(arguments, state, resets)
    xp = namespace(dy)
    read, S = attention(told)
    dread, of_eps = _read_back(dy, read, after, eps)
    dS = _beside(dlast[0], dlast[1]) if dlast else None
    found = attention_back(dread, dS, told)
    dkeys, db = found["k"], found["log_g"][..., 0]
    di = xp.sum(dkeys * told["k"], axis=-1)
    dk, dm = xp.exp(arguments[3] - after)[..., None] * dkeys, None
    if dlast or eps:
        left = dlast[2] - xp.sum(dS * S, axis=(-2, -1)) if dlast else xp.zeros((), dtype=dy.dtype)
        of_b, of_i, left = _shared(left, of_eps, arguments[4] + before < arguments[3], resets)
        of_b, of_i = unbroadcast_and_round((of_b, of_i), (db, di))
        db, di, dm = db + of_b, di + of_i, left
    gradients = [found["q"], dk, found["v"][..., :-1], di, db]
    if state:
        dS0 = found["S0"]
        inner = xp.sum(dS0 * told["S0"], axis=(-2, -1))
        dm = unbroadcast_and_round((dm,), (inner,))[0] + inner
        gradients += [dS0[..., :-1], dS0[..., -1], dm]
    return unbroadcast_and_round(gradients, primals)


def _nothing(arguments, state, dlast):
    """The gradients of no step."""
    xp = namespace(*arguments)
    zeros = [xp.zeros(x.shape, dtype=x.dtype) for x in arguments]
    return (*zeros, *(unbroadcast_and_round(dlast, state) if state else ()))


def _read_back(dy, read, m, eps):
    """The cotangent of (Sᵀ q, sᵀ q), and what eps leaves for m at each step."""
    xp = namespace(dy)
    low, one = _floor(m)
    num, a = read[..., :-1], low * read[..., -1]
    below = xp.abs(a) < one  # NaN is not below: it stays
    d = xp.where(below, one, xp.abs(a)) + low * eps
    dnum = low[..., None] * dy / d[..., None]
    dd = -xp.sum(dy * (low[..., None] * num / d[..., None]), axis=-1) / d
    da = xp.where(below, xp.zeros_like(dd), low * dd * xp.sign(a))
    return xp.concat([dnum, da[..., None]], axis=-1), eps * low * dd if eps else xp.zeros_like(dd)


def _shared(left, of_eps, below, resets):
    """What log_f and i get of what is left for m, and what is left before the first step."""
    xp = namespace(of_eps)
    below = xp.broadcast_to(below, of_eps.shape)
    passes = ~below
    if resets is not None:
        passes = passes & (resets == 0)
    passes = xp.astype(passes, of_eps.dtype)
    later = xp.concat([passes[..., 1:], xp.ones_like(passes[..., :1])], axis=-1)
    start = xp.broadcast_to(left, of_eps.shape[:-1])[..., None]
    turned = (x[..., ::-1, None] for x in (later, of_eps))
    total = scan(*turned, start, at_rest=False)[..., ::-1, 0]
    of_b = xp.where(below, xp.zeros_like(total), total)
    return of_b, total - of_b, of_b[..., 0]


(
    (mlstm, mlstm_vjp),
    (mlstm_stateful, mlstm_stateful_vjp),
    (mlstm_packed, mlstm_packed_vjp),
    (mlstm_packed_stateful, mlstm_packed_stateful_vjp),
    (mlstm_states, mlstm_states_vjp),
    (mlstm_step, mlstm_step_vjp),
) = XLSTM.mirrors(_run, _back, mirror)
(
    (mlstm_chunked, mlstm_chunked_vjp),
    (mlstm_chunked_stateful, mlstm_chunked_stateful_vjp),
    (mlstm_chunked_packed, mlstm_chunked_packed_vjp),
    (mlstm_chunked_packed_stateful, mlstm_chunked_packed_stateful_vjp),
) = XLSTM_CHUNKED.mirrors(_run, _back, mirror)
