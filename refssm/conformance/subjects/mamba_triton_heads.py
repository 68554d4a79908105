# pyright: reportMissingImports=false
"""Mamba-2's chunked scan in Triton's interpreter, with groups, heads, states and a first state.

It takes steps and a rate for each head where ours takes logarithms of decays and inputs that have
the step in them. The cases are such that the quotients are exact: decays of a head are one rate
times powers of two.
"""

import numpy as np
import torch

from refssm.conformance.clones import module
from refssm.conformance.subjects.triton_interpreter import SSD, few
from refssm.testing import implements

ssd = module("mamba", "mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined


def exact_steps(x):
    """The case with decays -m 2^k, one m in [1/2, 1) for each head, and at most 70 steps."""
    x = {**few(SSD, b=2, g=2, h=2, l=70)(x), "chunk": min(max(x["chunk"], 8), 64)}
    m, k = np.frexp(np.abs(x["log_a"]))
    m = m.reshape(-1, *m.shape[-3:])[:1, ..., :1]
    m = np.broadcast_to(np.where(m == 0, np.float32(0.75), m), x["log_a"].shape)
    return {**x, "log_a": -np.ldexp(m, np.clip(k, -20, 7)).astype(x["log_a"].dtype)}


@implements(
    "ssd_chunked_stateful",
    framework="torch",
    dtypes=("float32",),
    only=exact_steps,
    layout="b l g h p, b l g h, b l g n, b l g n, b g h p n -> b l g h p, b g h p n",
)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """mamba_chunk_scan_combined."""
    log_a = log_a.flatten(2)
    A = -torch.frexp(log_a[:1].abs().nan_to_num(1, 1, 1).amax((0, 1))).mantissa
    dt = log_a / A
    more = {"initial_states": S0.flatten(1, 2), "return_final_states": True}
    y, S = ssd(x.flatten(2, 3) / dt[..., None], dt, A, B, C, chunk, **more)
    return y.reshape(x.shape), S.reshape(S0.shape)
