# pyright: reportMissingImports=false
"""Mamba-2's scan in JAX: chunks as masked matrix products, one chunk after another by lax.scan."""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.testing import implements

LONGEST = 256  # longest chunk, as in Mamba-2's configurations: it needs the square for each head
LAYOUT = "b l g h p, b l g h, b l g n, b l g n -> b l g h p"
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


@implements("ssd_chunked", framework="jax", ftz=True, vjp=True, layout=LAYOUT)
@partial(jax.jit, static_argnames="chunk")
def ssd_chunked(x, log_a, B, C, *, chunk):
    """From a zero state; the last chunk is padded with zeros, which keep the state."""
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
