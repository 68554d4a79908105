"""mamba.np's `MambaBlock.selective_scan`, with its `softplus` and `silu`, in NumPy."""

from refssm.subjects.clones import module
from refssm.testing import implements

mamba = module("mamba.np", "mamba")


@implements(
    "mamba_scan",
    dtypes=("float32", "float64"),
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    no_block = None
    steps = mamba.softplus(dt + dt_bias)
    return mamba.MambaBlock.selective_scan(no_block, u, steps, A, B, C, D) * mamba.silu(z)


@implements("short_convolution", dtypes=("float32", "float64"), layout="b l d, d t -> b l d")
def short_convolution(u, k):
    """MambaConv1d without a bias: its weights are the taps in reverse order."""
    return mamba.MambaConv1d(k[:, None, ::-1], None)(u)
