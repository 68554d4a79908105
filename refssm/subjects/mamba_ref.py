"""Mamba's references at its newest commit: scan, step, and the paper's listing in chunks."""

import refssm.subjects.triton_interpreter  # noqa: F401  (its package imports kernels)
from refssm.subjects.clones import module
from refssm.testing import implements

scan = module("mamba", "mamba_ssm.ops.selective_scan_interface").selective_scan_ref
step = module("mamba", "mamba_ssm.ops.triton.selective_state_update").selective_state_update_ref
ssd = module("mamba", "mamba_ssm.modules.ssd_minimal").ssd_minimal_discrete
SCANNED, STEP = "b d l, b d l, d n, b n l, b n l", "b d, b d, d n, b n, b n"
HEADS = "b l g h p, b l g h, b l g n, b l g n"
F4, REAL = ("float32",), ("float32", "float64")


def steps(x):
    """The case if it has a step."""
    return x if x["u"].shape[-1] else None


def whole_chunks(x):
    """The case with its length cut to a multiple of the chunk, at most 256 as in Mamba2."""
    l, chunk = x["x"].shape[-2], x["chunk"]
    kept = l - l % chunk
    if not kept or chunk > 256:
        return None
    cut = {k: x[k][..., :kept, :] for k in ("x", "B", "C")}
    return {**x, **cut, "log_a": x["log_a"][..., :kept]}


@implements(
    "selective_scan",
    framework="torch",
    vjp=True,
    dtypes=F4,
    only=steps,
    layout=f"{SCANNED} -> b d l",
)
def selective_scan(u, dt, A, B, C):
    """selective_scan_ref."""
    return scan(u, dt, A, B, C)


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=F4,
    only=steps,
    layout=f"{SCANNED}, d, b d l, d -> b d l",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """selective_scan_ref with bias, softplus, skip connection and gate."""
    return scan(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements("selective_step", framework="torch", dtypes=REAL, layout=f"{STEP}, b d n -> b d, b d n")
def selective_step(u, dt, A, B, C, x):
    """selective_state_update_ref, which overwrites the old state with the new one."""
    x = x.clone()
    return step(x, u, dt, A, B, C), x


@implements(
    "mamba_step",
    framework="torch",
    dtypes=REAL,
    layout=f"{STEP}, d, b d, d, b d n -> b d, b d n",
)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update_ref with bias, softplus, skip connection and gate."""
    x = x.clone()
    return step(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


@implements(
    "ssd_chunked_stateful",
    framework="torch",
    vjp=True,
    dtypes=REAL,
    only=whole_chunks,
    layout=f"{HEADS}, b g h p n -> b l g h p, b g h p n",
)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """ssd_minimal_discrete."""
    h = x.shape[3]
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    y, S = ssd(x.flatten(2, 3), log_a.flatten(2, 3), B, C, chunk, S0.flatten(1, 2)[:, None])
    return y.reshape(x.shape), S.reshape(S0.shape)
