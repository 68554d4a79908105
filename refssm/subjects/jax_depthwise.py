# pyright: reportMissingImports=false
"""lax.conv_general_dilated with one group per channel: a short convolution as Flax writes it."""

import jax

from refssm.testing import implements


@implements(
    "short_convolution",
    framework="jax",
    ftz=True,
    vjp=True,
    layout="b d l, d t -> b d l",
)
@jax.jit
def short_convolution(u, k):
    """A correlation, whose weights are the taps in reverse order."""
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
