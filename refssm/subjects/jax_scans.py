# pyright: reportMissingImports=false
"""Recurrences and convolutions in JAX.

XLA flushes subnormal numbers to zero on the CPU: `ftz=True`.
"""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.testing import implements

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


def _after(first, second):
    """Two affine steps x ↦ a x + b composed to one; `first` is applied first."""
    return first[0] * second[0], first[1] * second[0] + second[1]


@implements("linear_scan", framework="jax", ftz=True)
@jax.jit
def associative_scan(a, b):
    """jax.lax.associative_scan along time, by a tree; its gradient is written by hand."""
    a, b = jnp.broadcast_arrays(a, b.astype(jnp.result_type(a, b)))
    return jax.lax.associative_scan(_after, (a, b), axis=-2)[1]


@jax.jit
def associative_scan_vjp(dx, a, b):
    """db by associative_scan(…, reverse=True), da_k = db_k conj(x_{k-1}): refssm's convention."""
    x = associative_scan(a, b)
    later = jnp.concatenate([a[..., 1:, :], jnp.zeros_like(a[..., :1, :])], axis=-2)
    later = jnp.conj(later).astype(x.dtype)
    pairs = later, dx.astype(x.dtype)
    # axis=-2 raises TypeError with reverse=True, see docs/findings.md
    _, db = jax.lax.associative_scan(_after, pairs, axis=x.ndim - 2, reverse=True)
    before = jnp.concatenate([jnp.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    da = db * jnp.conj(before)
    return _of_kind(da, a), _of_kind(db, b)


def _of_kind(gradient, primal):
    return gradient if jnp.iscomplexobj(primal) else gradient.real


def _scanned(a, b, x0):
    dtype = jnp.result_type(a, b, x0)

    def step(x, inputs):
        x = inputs[0] * x + inputs[1]
        return x, x

    time_first = (jnp.moveaxis(a, -2, 0), jnp.moveaxis(b, -2, 0).astype(dtype))
    _, x = jax.lax.scan(step, x0.astype(dtype), time_first)
    return jnp.moveaxis(x, 0, -2)


@implements("linear_scan", **DECLARED)
@jax.jit
def lax_scan(a, b):
    """jax.lax.scan step by step, from a zero state, with JAX's gradient."""
    return _scanned(a, b, jnp.zeros_like(b[..., 0, :]))


@implements("linear_scan_from", **DECLARED)
@jax.jit
def lax_scan_from(a, b, x0):
    """jax.lax.scan step by step, from x0."""
    return _scanned(a, b, x0)


def _after_dense(first, second):
    """Two affine steps x ↦ A x + b composed to one; `first` is applied first."""
    A, b = second
    A_first, b_first = first
    exact = jax.lax.Precision.HIGHEST
    carried = jnp.matmul(A, b_first[..., None], precision=exact)[..., 0]
    return jnp.matmul(A, A_first, precision=exact), carried + b


@implements("dense_scan", **DECLARED)
@jax.jit
def dense_scan(A, b):
    """jax.lax.associative_scan of the affine maps of all steps, which do not commute."""
    dtype = jnp.result_type(A, b)
    batch = jnp.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    l, n = b.shape[-2:]
    A = jnp.broadcast_to(A.astype(dtype)[..., None, :, :], (*batch, l, n, n))
    b = jnp.broadcast_to(b.astype(dtype), (*batch, l, n))
    return jax.lax.associative_scan(_after_dense, (A, b), axis=len(batch))[1]


BLOCK = 16  # steps of Mamba's scan
SCANNED = "b d l, b d l, d n, b n l, b n l"


def _step(x, inputs):
    x = inputs[0] * x + inputs[1]
    return x, x


def _selective(u, dt, A, B, C):
    """jax.lax.scan over blocks of steps, which the gradient computes again.

    Exponentials of a block are one large operation; only the recurrence itself goes step by step.
    """
    kind, (_, _, l) = jnp.result_type(u, dt, A, B, C), u.shape
    A = A.T[:, None]  # (n, 1, d)

    @jax.checkpoint
    def block(x, inputs):
        u, dt, B, C = inputs
        decays = jnp.exp(dt[:, None] * A).astype(kind)  # (block, n, b, d)
        drives = ((dt * u)[:, None] * B).astype(kind)
        x, states = jax.lax.scan(_step, x, jnp.broadcast_arrays(decays, drives))
        return x, (states * C).sum(1)

    def blocks(a):  # time first, steps of size 0 at the end
        a = jnp.pad(a, [(0, -l % BLOCK), *[(0, 0)] * (a.ndim - 1)])
        return a.reshape(-1, BLOCK, *a.shape[1:])

    by_time = [jnp.moveaxis(a, -1, 0) for a in (u, dt)]
    by_time += [jnp.transpose(a, (2, 1, 0))[..., None] for a in (B, C)]  # (l, n, b, 1)
    shape = A.shape[0], max(len(u), len(B)), max(u.shape[1], A.shape[-1])
    _, y = jax.lax.scan(block, jnp.zeros(shape, kind), [blocks(a) for a in by_time])
    return jnp.moveaxis(y.reshape(-1, *shape[1:])[:l], 0, -1)


@implements("selective_scan", layout=f"{SCANNED} -> b d l", **DECLARED)
@jax.jit
def selective_scan(u, dt, A, B, C):
    """The scan alone."""
    return _selective(u, dt, A, B, C)


@implements("mamba_scan", layout=f"{SCANNED}, d, b d l, d -> b d l", **DECLARED)
@jax.jit
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """The scan with bias and softplus before it, skip connection and gate after it."""
    y = _selective(u, jax.nn.softplus(dt + dt_bias[:, None]), A, B, C)
    return (y + D[:, None] * u) * jax.nn.silu(z)


LONGEST = 256  # longest chunk, as in Mamba-2's configurations: it needs the square for each head
HEADS = "b l g h p, b l g h, b l g n, b l g n -> b l g h p"
product = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


def _decays(log_a):
    """e^{log_a_{j+1} + … + log_a_i}, 0 above the diagonal: (b, q, g, h) -> (b, g, h, i, j)."""
    steps = jnp.moveaxis(log_a, 1, -1)[..., None]
    lower = jnp.tril(jnp.ones((log_a.shape[1],) * 2, bool))
    sums = jnp.cumsum(jnp.where(jnp.tril(lower, -1), steps, 0), axis=-2)
    return jnp.where(lower, jnp.exp(jnp.where(lower, sums, 0)), 0)


@jax.checkpoint
def _chunk(S, inputs):
    """The state after a chunk and the chunk's outputs: (b, g, h, p, n), (b, q, g, h, p)."""
    x, log_a, B, C = inputs
    decays, since_start = _decays(log_a), jnp.exp(jnp.cumsum(log_a, axis=1))
    weights = product("bign,bjgn->bgij", C, B)[:, :, None] * decays
    y = product("bghij,bjghp->bighp", weights, x)
    y += since_start[..., None] * product("bign,bghpn->bighp", C, S)
    to_end = jnp.moveaxis(decays[..., -1, :], -1, 1)[..., None]
    S = since_start[:, -1, ..., None, None] * S
    return S + product("bjghp,bjgn->bghpn", to_end * x, B), y


@implements("ssd_chunked", layout=HEADS, **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def ssd_chunked(x, log_a, B, C, *, chunk):
    """Chunks as masked matrix products, one after another by jax.lax.scan, from a zero state.

    The last chunk is padded with zeros, which keep the state.
    """
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    kind, l = jnp.result_type(x, log_a, B, C), x.shape[1]
    b, g = (max(a.shape[i] for a in (x, log_a, B, C)) for i in (0, 2))
    h, p, n = max(x.shape[3], log_a.shape[3]), x.shape[-1], B.shape[-1]

    def chunks(a, *heads):
        a = jnp.broadcast_to(a.astype(kind), (b, l, g, *heads))
        a = jnp.pad(a, [(0, 0), (0, -l % chunk), *[(0, 0)] * (a.ndim - 2)])
        return jnp.moveaxis(a.reshape(b, -1, chunk, *a.shape[2:]), 1, 0)

    pieces = chunks(x, h, p), chunks(log_a, h), chunks(B, n), chunks(C, n)
    _, y = jax.lax.scan(_chunk, jnp.zeros((b, g, h, p, n), kind), pieces)
    return jnp.moveaxis(y, 0, 1).reshape(b, -1, g, h, p)[:, :l]


@implements("causal_convolution", **DECLARED)
@jax.jit
def causal_convolution(u, k):
    """jnp.fft.rfft of twice the length if both arguments are real, fft if one is complex."""
    l = u.shape[-1]
    padded = max(2 * l, 1)
    if jnp.iscomplexobj(u) or jnp.iscomplexobj(k):
        return jnp.fft.ifft(jnp.fft.fft(u, padded) * jnp.fft.fft(k, padded))[..., :l]
    return jnp.fft.irfft(jnp.fft.rfft(u, padded) * jnp.fft.rfft(k, padded), padded)[..., :l]


@implements("short_convolution", **DECLARED)
@jax.jit
def shifted_inputs(u, k):
    """One fused loop over the shifted inputs."""
    l, t = u.shape[-1], k.shape[-1]
    past = jnp.pad(u, [*[(0, 0)] * (u.ndim - 1), (max(t - 1, 0), 0)])
    y = jnp.zeros(jnp.broadcast_shapes(u.shape, (*k.shape[:-1], l)), jnp.result_type(u, k))
    for j in range(t):
        y += k[..., j, None] * past[..., t - 1 - j : t - 1 - j + l]
    return y


@implements("causal_convolution_direct", layout="l, l -> l", **DECLARED)
@jax.jit
def causal_convolution_direct(u, k):
    """The first l entries of jnp.convolve, a direct sum, at the highest precision."""
    return jnp.convolve(u, k, precision=jax.lax.Precision.HIGHEST)[: u.shape[0]]


@implements("short_convolution", layout="b d l, d t -> b d l", **DECLARED)
@jax.jit
def depthwise(u, k):
    """lax.conv_general_dilated with one group per channel, as Flax writes it.

    It is a correlation, whose weights are the taps in reverse order.
    """
    d, t = k.shape
    if t == 0 or u.shape[1] != d:
        raise NotImplementedError("no taps, or channels that share an input")
    return jax.lax.conv_general_dilated(
        u.astype(jax.numpy.result_type(u, k)),
        k[:, None, ::-1].astype(jax.numpy.result_type(u, k)),
        window_strides=(1,),
        padding=[(t - 1, 0)],
        dimension_numbers=("NCH", "OIH", "NCH"),
        feature_group_count=d,
        precision=jax.lax.Precision.HIGHEST,
    )
