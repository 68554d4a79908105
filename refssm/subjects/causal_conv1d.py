# pyright: reportMissingImports=false, reportCallIssue=false
"""causal-conv1d: a short convolution by a CUDA extension, with its own gradient."""

from causal_conv1d import causal_conv1d_fn

from refssm.testing import implements

WIDTHS = (2, 3, 4)  # that the extension has


@implements(
    "short_convolution",
    framework="torch",
    device="cuda",
    vjp=True,
    dtypes=("float32",),
    layout="b d l, d t -> b d l",
)
def short_convolution(u, k):
    """causal_conv1d_fn is a correlation: its weights are the taps in reverse order."""
    if k.shape[-1] not in WIDTHS or 0 in u.shape:
        raise NotImplementedError("two to four taps, and at least one step")
    return causal_conv1d_fn(u, k.flip(-1).contiguous())
