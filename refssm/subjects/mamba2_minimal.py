"""mamba2-minimal's `ssd`: the chunked scan of the Mamba-2 paper with a head axis on B and C."""

from refssm.subjects.clones import module
from refssm.subjects.mamba_block import CHUNKED_STATEFUL, REAL
from refssm.testing import implements

ssd = module("mamba2-minimal", "mamba2").ssd


LONGEST = 64  # the default of Mamba2Config; a chunk needs the square of its length


def whole_chunks(x):
    """The case with a chunk that fits, and its length cut to a multiple of the chunk."""
    l = x["x"].shape[-2]
    chunk = min(x["chunk"], LONGEST, l)
    if not chunk:
        return None
    kept = l - l % chunk
    cut = {k: x[k][..., :kept, :] for k in ("x", "B", "C")}
    return {**x, **cut, "log_a": x["log_a"][..., :kept], "chunk": chunk}


@implements("ssd_chunked_stateful", vjp=True, only=whole_chunks, layout=CHUNKED_STATEFUL, **REAL)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """ssd(…, chunk, initial_states)."""
    h = x.shape[3]
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    y, S = ssd(x.flatten(2, 3), log_a.flatten(2, 3), B, C, chunk, S0.flatten(1, 2)[:, None])
    return y.reshape(x.shape), S.reshape(S0.shape)
