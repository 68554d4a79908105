"""mLSTM: a matrix of keys × values with exponential gates, and the sum of its keys.

    S_t = e^{log_f_t} S_{t-1} + e^{i_t} k_t v_tᵀ,    s_t = e^{log_f_t} s_{t-1} + e^{i_t} k_t,
    y_t = S_tᵀ q_t / max(|s_tᵀ q_t|, 1)

One head of xLSTM [beck2024xlstm, §2.3]. e^{i} may be any positive number, so S and s are kept
as e^{−m} times what they are, with m_t = max(log_f_t + m_{t-1}, i_t), and the 1 becomes e^{−m}. The
result does not depend on m. First one step, as in decoding; the forms over time are gated linear
attention with the values (v, 1), the gates log_f_t + m_{t-1} − m_t and the keys e^{i − m} k.
"""

from dataclasses import replace

import numpy as np

from refssm._declaration.contract import SCALED
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm._numerics.scales import as_excess, as_remains, as_scale, in_units, larger_vjp, parted
from refssm.domains import (
    chunk_sizes,
    denominators,
    exponential_gates,
    forget_gates,
    keys,
    log_scales,
    queries,
    real_signals,
    real_states,
)
from refssm.linear_attention.sweep import Sweep
from refssm.scan.linear import MARKS
from refssm.ssd.chunked import CHUNKED as SSD_BY_CHUNKS


def _read(num, a, m, eps):
    """num / (max(|a|, e^{−m}) + eps), and the denominator; without overflow for any m."""
    m = as_scale(m)
    low, one = np.exp(np.minimum(m, 0)), np.exp(-np.maximum(m, 0))
    d = np.maximum(low * np.abs(a), np.maximum(one, np.finfo(m.dtype).tiny)) + low * eps
    return low[..., None] * num / d[..., None], (low, one, d)


def _read_vjp(dy, num, a, m, eps):
    """dnum = dy/d,  dd = −Σ dy y/d,  da = ± dd where |a| is the larger;  and what is left for m."""
    y, (low, one, d) = _read(num, a, m, eps)
    dd = -(dy * y).sum(-1) / d
    da = low * larger_vjp(dd, low * a, one)
    return low[..., None] * dy / d[..., None], da, eps * low * dd if eps else 0 * dd


def _gates(i, log_f, m):
    """e^{log_f + m − m'}, e^{i − m'}, and m'."""
    after = np.maximum(log_f + m, i)
    scale = as_scale(after)
    return np.exp(log_f + as_scale(m) - scale), np.exp(i - scale), after


def mlstm_step(q, k, v, i, log_f, S, s, m, *, eps=0.0):
    """m' = max(log_f + m, i),  S ← e^{log_f + m − m'} S + e^{i − m'} k vᵀ,  s alike with k,
    y = Sᵀ q / (max(|sᵀ q|, e^{−m'}) + eps): one step, and the next state.

    Signature ``(n),(n),(p),(),(),(n,p),(n),()->(p),(n,p),(n),()``: as one step of `mlstm_stateful`;
    types, units and errors are the same. Source: [beck2024xlstm, §2.3].

    >>> import refssm
    >>> y, S, s, m = refssm.mlstm_step([2.0], [1.0], [3.0], 0.0, 0.0, [[1.0]], [1.0], 0.0)
    >>> y, S, s, m
    (array([2.]), array([[4.]]), array([2.]), array(0.))
    """
    f, g, m = _gates(i, log_f, m)
    S = f[..., None, None] * S + (g[..., None] * k)[..., :, None] * v[..., None, :]
    s = f[..., None] * s + g[..., None] * k
    num, a = einsum("...np,...n->...p", S, q), einsum("...n,...n->...", s, q)
    y, _ = _read(num, a, m, eps)
    batch = y.shape[:-1]
    return y, with_batch(S, 2, batch), with_batch(s, 1, batch), with_batch(m, 0, batch)


def mlstm_step_vjp(dy, dS_next, ds_next, dm_next, q, k, v, i, log_f, S, s, m, *, eps=0.0):
    """With d = max(|s'ᵀ q|, e^{−m'}) + eps and dd = −dy·y/d:  G = q dyᵀ/d + dS',
    h = ± q dd + ds' where |s'ᵀ q| is the larger, else ds';  dq = S' dy/d ± s' dd,
    dv = e^{i − m'} Gᵀ k,  dk = e^{i − m'} (G v + h),  di = k·dk,
    dS = e^{log_f + m − m'} G,  ds = e^{log_f + m − m'} h,  dlog_f = ΣS∘dS + s·ds,  dm = dlog_f.

    What is left for m', e = dm' − ΣS'∘dS' − s'·ds' + eps dd, goes to i, or to log_f and m, as i or
    log_f + m is larger. It is 0 for a loss that depends on e^m S and e^m s alone.

    Returns `(dq, dk, dv, di, dlog_f, dS, ds, dm)`, shaped like the arguments.
    """
    f, g, m_next = _gates(i, log_f, m)
    dS_next, ds_next = in_units(dS_next, m_next), in_units(ds_next, m_next)
    S_next = f[..., None, None] * S + (g[..., None] * k)[..., :, None] * v[..., None, :]
    s_next = f[..., None] * s + g[..., None] * k
    num, a = einsum("...np,...n->...p", S_next, q), einsum("...n,...n->...", s_next, q)
    dnum, da, of_eps = _read_vjp(dy, num, a, m_next, eps)
    G = q[..., :, None] * dnum[..., None, :] + dS_next
    h = q * da[..., None] + ds_next
    dq = einsum("...np,...p->...n", S_next, dnum) + s_next * da[..., None]
    dk = g[..., None] * (einsum("...np,...p->...n", G, v) + h)
    dv = g[..., None] * einsum("...np,...n->...p", G, k)
    dS, ds = f[..., None, None] * G, f[..., None] * h
    inner = (S * dS).sum((-1, -2)) + (s * ds).sum(-1)
    held = (S_next * dS_next).sum((-1, -2)) + (s_next * ds_next).sum(-1)
    cotangents = dy, dS_next, ds_next, dm_next
    of_eps = as_remains(of_eps, _sizes_of_step, cotangents, (q, k, v, i, log_f), (S, s, m))
    of_b, of_i = parted(as_excess(dm_next - held) + of_eps, log_f + m < i)
    di, db = (k * dk).sum(-1) + of_i, inner + of_b
    gradients = dq, dk, dv, di, db, dS, ds, db
    return unbroadcast_each(gradients, (q, k, v, i, log_f, S, s, m))


def _ready(k, v, log_g):
    """e^{log_g} as a matrix of one entry, and k vᵀ."""
    return np.exp(log_g)[..., None, None], k[..., :, None] * v[..., None, :]


def _after(a, write, S):
    """a S + k vᵀ."""
    return a * S + write


def _before(G, a, write):
    """a G."""
    del write
    return a * G


def _gated_vjp(dy, dS_next, q, k, v, log_g, S):
    """The VJP of a step with values (v, 1), where S has the column s and dy that of sᵀ q."""
    a, write = _ready(k, v, log_g)
    G = q[..., :, None] * dy[..., None, :] + dS_next
    gradients = (
        einsum("...np,...p->...n", _after(a, write, S), dy),
        einsum("...np,...p->...n", G, v),
        einsum("...np,...n->...p", G, k),
        (a * S * G).sum((-1, -2)),
        a * G,
    )
    return unbroadcast_each(gradients, (q, k, v, log_g, S))


SWEEP = Sweep(_ready, _after, _before, _gated_vjp, ranks=(2, 2, 2, 1), ready_ranks=(3, 3), gate=3)


def scales_of(i, log_f, m, resets, rest=0.0):
    """m before each step, `rest` where a sequence begins, and after each; so at the start if it is
    None.

    At least one number is after a step: with no step, the first.
    """
    shapes = [x.shape[:-1] for x in (i, log_f, *([] if resets is None else [resets]))]
    if m is None:
        batch, kind = np.broadcast_shapes(*shapes), np.result_type(i, log_f)
        m = np.zeros_like(log_f, shape=batch, dtype=kind) + rest
    else:
        m = with_batch(m, 0, np.broadcast_shapes(*shapes, m.shape))
        m = m.astype(np.result_type(i, log_f, m), copy=False)
    before, after = [], [m]
    for t in range(i.shape[-1]):
        before.append(kept(after[-1], resets, t, rest))
        after.append(np.maximum(log_f[..., t] + before[-1], i[..., t]))
    after = np.stack(after, axis=-1)
    return np.stack(before, axis=-1) if before else after[..., 1:], after[..., 1:], after[..., -1]


def kept(m, resets, t: int, rest=0.0):
    """m, or exactly `rest` where a sequence begins."""
    if resets is None or not (resets[..., t] != 0).any():
        return m
    return np.where(resets[..., t] != 0, rest, m)


def beside(S, s):
    """S with one more column, s."""
    batch = np.broadcast_shapes(S.shape[:-2], s.shape[:-1])
    return np.concatenate([with_batch(S, 2, batch), with_batch(s, 1, batch)[..., None]], axis=-1)


def with_ones(v):
    """The values (v, 1)."""
    return np.concatenate([v, np.zeros_like(v[..., :1], shape=(*v.shape[:-1], 1)) + 1], axis=-1)


class Attention:
    """`run` and `back` of the recurrence by those of gated linear attention with values (v, 1)."""

    def __init__(self, run, back):
        self._run, self._back = run, back

    def run(self, arguments, state, resets, *, eps=0.0):
        """The outputs, and the last state if there is a first one."""
        (_, m, m_last), given, start = self._given(arguments, state, resets)
        read, *last = self._run(given, start, resets)
        y, _ = _read(read[..., :-1], read[..., -1], m, eps)
        if state is None:
            return (y,)
        return y, last[0][..., :-1], last[0][..., -1], with_batch(m_last, 0, y.shape[:-2])

    def back(self, cotangents, arguments, state, resets, *, eps=0.0):
        """Gradients for the arguments and the state."""
        i, log_f = arguments[3:]
        (before, m, m_last), given, start = self._given(arguments, state, resets)
        read, *last = self._run(given, start, resets)
        dnum, da, of_eps = _read_vjp(cotangents[0], read[..., :-1], read[..., -1], m, eps)
        dread, dlast, left = beside(dnum, da), [], 0 * m_last
        if state is not None:
            _, dS, ds, dm = cotangents
            dlast = [in_units(beside(dS, ds), m_last)]
            left = as_excess(dm - (dlast[0] * last[0]).sum((-1, -2)))
        dq, dkeys, dv, db, *dstart = self._back((dread, *dlast), given, start, resets)
        di = (dkeys * given[1]).sum(-1)
        of_eps = as_remains(of_eps, self.sizes, cotangents, arguments, state, resets)
        left, of_b, of_i = shared(left, of_eps, log_f + before < i, resets)
        db, di = db + unbroadcast(of_b, db), di + unbroadcast(of_i, di)
        dk = np.exp(i - as_scale(m))[..., None] * dkeys
        gradients = unbroadcast_each((dq, dk, dv[..., :-1], di, db), arguments)
        if state is None:
            return gradients
        dS0 = dstart[0]
        inner = (dS0 * start).sum((-1, -2))
        dm0 = unbroadcast(left, inner) + inner
        return *gradients, *unbroadcast_each((dS0[..., :-1], dS0[..., -1], dm0), state)

    def sizes(self, cotangents, arguments, state, resets):
        """Of plain arrays, at each step: the moduli of the terms that cancel in what is left for m,
        Σ|S||G| + |s||h|; y/d, the derivative by d; the least m of any program; and how many terms
        are added.
        """
        (_, m, _), given, start = self._given(arguments, state, resets)
        read, *_ = self._run(given, start, resets)
        num, a = read[..., :-1], read[..., -1]
        dnum, da, _ = _read_vjp(cotangents[0], num, a, m, 0)
        y, (low, _, d) = _read(num, a, m, 0)
        dlast = [] if state is None else [np.abs(beside(*cotangents[1:3]))]
        q, k, v, log_g = given
        moduli = np.abs(q), np.abs(k), np.abs(v), log_g
        start = None if start is None else np.abs(start)
        dread = np.abs(beside(dnum, da))
        _, dkeys, _, of_b, *_ = self._back((dread, *dlast), moduli, start, resets)
        i, log_f = arguments[3:]
        least = scales_of(i, log_f, None if state is None else state[2], resets, rest=-np.inf)[1]
        total = (dkeys * moduli[1]).sum(-1) + of_b
        slopes = (low / d)[..., None] * y
        return total, slopes, least, (k.shape[-1] * v.shape[-1], k.shape[-2])

    @staticmethod
    def _given(arguments, state, resets):
        """m before and after each step and the last one; arguments and state of the other
        recurrence.
        """
        q, k, v, i, log_f = arguments
        S, s, m = (None, None, None) if state is None else state
        before, after, last = scales_of(i, log_f, m, resets)
        scale = as_scale(after)
        given = q, np.exp(i - scale)[..., None] * k, with_ones(v), log_f + as_scale(before) - scale
        if state is None:
            return (before, after, last), given, None
        start = beside(S, s)
        batch = np.broadcast_shapes(start.shape[:-2], last.shape)
        return (before, after, last), given, with_batch(start, 2, batch)


def shared(left, of_eps, below, resets):
    """What is left for m before the first step, and what of it log_f and i get at each step; it
    goes to i where log_f + m is `below` it.
    """
    of_b, of_i = [], []
    for t in range(below.shape[-1] - 1, -1, -1):
        left, to_i = parted(left + of_eps[..., t], below[..., t])
        of_b.insert(0, left)
        of_i.insert(0, to_i)
        left = kept(left, resets, t)
    if not of_b:
        return left, of_eps, of_eps
    return left, np.stack(of_b, axis=-1), np.stack(of_i, axis=-1)


ATTENTION = Attention(SWEEP.run, SWEEP.back)


def _sizes_of_step(cotangents, arguments, state):
    """`Attention.sizes` of one step."""
    q, k, v, i, log_f = arguments
    arguments = *(x[..., None, :] for x in (q, k, v)), i[..., None], log_f[..., None]
    dy, *others = cotangents
    given = (dy[..., None, :], *others), arguments, state
    total, slopes, least, counts = ATTENTION.sizes(*given, None)
    return total[..., 0], slopes, least[..., 0], counts


XLSTM = Recurrence(
    name="mlstm",
    step=Pair(mlstm_step, mlstm_step_vjp),
    run=ATTENTION.run,
    back=ATTENTION.back,
    signature="(l,n),(l,n),(l,p),(l),(l)->(l,p)",
    inputs={
        "q": queries,
        "k": keys,
        "v": real_signals,
        "i": exponential_gates,
        "log_f": forget_gates,
    },
    batch="b g, b g, b g h, b g h, b g h",
    state=(
        State("S", "n,p", "b g h", real_states),
        State("s", "n", "b g h", real_states),
        State("m", "", "b g h", log_scales),
    ),
    marks=MARKS,
    linear=("v,S->y", "v,S->S"),
    parameters={"eps": denominators},
    contract=SCALED,
    doc="""y_t = S_tᵀ q_t / max(|s_tᵀ q_t|, 1),  S_t = e^{log_f_t} S_{t-1} + e^{i_t} k_t v_tᵀ,
    s_t = e^{log_f_t} s_{t-1} + e^{i_t} k_t from rest.

    Signature ``(l,n),(l,n),(l,p),(l),(l)->(l,p)``: `q` the queries of one head, `k` its keys, one
    of them scaled before (by 1/√n in xLSTM), `v` its values, `i` the natural logarithms of the
    input gates, `log_f` those of the forget gates, at most 0 (logsigmoid of what the model
    computes); `l` time, `n` keys, `p` values; leading axes broadcast: heads of a group are a
    leading axis, which has length 1 in shared `q` and `k`. S and s are kept as e^{−m} times what
    they are, with m_t = max(log_f_t + m_{t-1}, i_t) and m = 0 from rest. `eps` is added to the
    denominator in these units, to max(|sᵀ q|, e^{−m}) (1e-6 in public code): with `eps` > 0 the
    result depends on m. Any of float32, float64 and longdouble; the result has their
    ``np.result_type``. Units: k, i and log_f have none, `y` those of v.

    Raises ValueError if sizes disagree or `eps` is negative, TypeError for other types. NaN and
    infinity propagate without warnings. Source: [beck2024xlstm, §2.3].
    """,
    vjp_doc="""As in `mlstm_step_vjp`, from the last step to the first.""",
    examples={
        "plain": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> refssm.mlstm(one, one, [[1.0], [2.0]], zero, zero).ravel()
        array([1. , 1.5])
        """,
        "stateful": """
        >>> y, S, s, m = refssm.mlstm_stateful(
        ...     [[2.0]], [[1.0]], [[3.0]], [0.0], [0.0], [[1.0]], [1.0], 0.0)
        >>> y, S, s, m
        (array([[2.]]), array([[4.]]), array([2.]), array(0.))
        """,
        "packed": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> refssm.mlstm_packed(one, one, [[1.0], [2.0]], zero, zero, [False, True]).ravel()
        array([1., 2.])
        """,
        "packed_stateful": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, S, s, m = refssm.mlstm_packed_stateful(one, one, [[1.0], [2.0]], zero, zero,
        ...     [[[3.0]], [[0.0]]], [[1.0], [0.0]], zero, [1, 2])
        >>> y.ravel(), S.ravel(), s.ravel(), m
        (array([2., 2.]), array([4., 2.]), array([2., 1.]), array([0., 0.]))
        """,
        "states": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, S, s, m = refssm.mlstm_states(one, one, [[1.0], [2.0]], zero, zero,
        ...     [[3.0]], [1.0], 0.0, [0, 1])
        >>> S.ravel(), s.ravel(), m
        (array([3., 4.]), array([1., 2.]), array([0., 0.]))
        """,
    },
    citation="beck2024xlstm, §2.3",
    citation_of_packed="beck2024xlstm, §2.3",
    tags={
        "plain": ("mLSTM", "xLSTM", "parallel_stabilized_simple"),
        "stateful": ("mLSTM with the last state", "mlstm_recurrent_sequence__native_fw"),
        "packed": ("mLSTM of packed sequences",),
        "packed_stateful": ("mLSTM of packed sequences with initial states",),
        "states": ("mLSTM with states at places",),
        "step": ("mLSTM decoding", "recurrent_step_stabilized_simple"),
    },
)
(
    MLSTM,
    MLSTM_STATEFUL,
    MLSTM_PACKED,
    MLSTM_PACKED_STATEFUL,
    MLSTM_STATES,
    MLSTM_STEP,
) = XLSTM.operators
(
    (mlstm, mlstm_vjp),
    (mlstm_stateful, mlstm_stateful_vjp),
    (mlstm_packed, mlstm_packed_vjp),
    (mlstm_packed_stateful, mlstm_packed_stateful_vjp),
    (mlstm_states, mlstm_states_vjp),
    (mlstm_step, mlstm_step_vjp),
) = XLSTM.public()


def _by_chunks(arguments, state, resets, *, eps=0.0, chunk):
    """As `run`, with the states of state-space duality by chunks, which has (p, n) for (n, p)."""

    def scan(given, start, resets):
        q, k, v, log_g = given
        start = None if start is None else np.moveaxis(start, -1, -2)
        y, *S = SSD_BY_CHUNKS.run((v, log_g, k, q), start, resets, chunk=chunk)
        return y, *(np.moveaxis(x, -1, -2) for x in S)

    return Attention(scan, None).run(arguments, state, resets, eps=eps)


def _back(cotangents, arguments, state, resets, *, eps=0.0, chunk):
    """The gradients of the recurrence, because it is the same function."""
    del chunk
    return ATTENTION.back(cotangents, arguments, state, resets, eps=eps)


XLSTM_CHUNKED = replace(
    XLSTM,
    name="mlstm_chunked",
    step=None,
    run=_by_chunks,
    back=_back,
    parameters={"eps": denominators, "chunk": chunk_sizes},
    same_as=XLSTM,  # its rounding errors define the bound
    traits=XLSTM.traits | {"matrix-product"},
    doc="""y_t = S_tᵀ q_t / max(|s_tᵀ q_t|, 1) as `mlstm`, `chunk` steps at a time, from rest.

    Signature ``(l,n),(l,n),(l,p),(l),(l)->(l,p)``: the same function as `mlstm` for every chunk
    size, which need not divide the length: attention within a chunk, the recurrence between them.
    Other arguments, types, units and errors are those of `mlstm`; ValueError if `chunk` is not an
    integer ≥ 1. Source: [beck2025tfla, §3].
    """,
    vjp_doc="""The gradients of `mlstm`, because it is the same function.""",
    examples={
        "plain": """
        >>> one, zero = [[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0]
        >>> refssm.mlstm_chunked(one, one, [[1.0], [2.0], [3.0]], zero, zero, chunk=2).ravel()
        array([1. , 1.5, 2. ])
        """,
        "stateful": """
        >>> y, S, s, m = refssm.mlstm_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[3.0]], [0.0], [0.0], [[1.0]], [1.0], 0.0, chunk=64)
        >>> y, S, s, m
        (array([[2.]]), array([[4.]]), array([2.]), array(0.))
        """,
        "packed": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> v, resets = [[1.0], [2.0]], [False, True]
        >>> refssm.mlstm_chunked_packed(one, one, v, zero, zero, resets, chunk=2).ravel()
        array([1., 2.])
        """,
        "packed_stateful": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, S, s, m = refssm.mlstm_chunked_packed_stateful(one, one, [[1.0], [2.0]], zero, zero,
        ...     [[[3.0]], [[0.0]]], [[1.0], [0.0]], zero, [1, 2], chunk=2)
        >>> y.ravel(), S.ravel(), s.ravel(), m
        (array([2., 2.]), array([4., 2.]), array([2., 1.]), array([0., 0.]))
        """,
    },
    citation="beck2025tfla, §3",
    citation_of_packed="beck2025tfla, §3",
    tags={
        "plain": ("mlstm_chunkwise__native_autograd", "chunkwise_simple", "TFLA"),
        "stateful": ("mLSTM chunkwise with the last state",),
        "packed": ("mLSTM chunks of packed sequences",),
        "packed_stateful": ("mLSTM chunks of packed sequences with initial states",),
    },
)
(
    MLSTM_CHUNKED,
    MLSTM_CHUNKED_STATEFUL,
    MLSTM_CHUNKED_PACKED,
    MLSTM_CHUNKED_PACKED_STATEFUL,
) = XLSTM_CHUNKED.operators
(
    (mlstm_chunked, mlstm_chunked_vjp),
    (mlstm_chunked_stateful, mlstm_chunked_stateful_vjp),
    (mlstm_chunked_packed, mlstm_chunked_packed_vjp),
    (mlstm_chunked_packed_stateful, mlstm_chunked_packed_stateful_vjp),
) = XLSTM_CHUNKED.public()
