"""A short convolution with a bias and SiLU: what stands before a selective scan or a delta rule.

    y_i = silu(Σ_{j<t} k_j u_{i−j} + b),    silu(a) = a σ(a)

`k_0` multiplies the newest input, as in `short_convolution`: a framework's weights are k in reverse
order. Published code computes it in one kernel, `causal_conv1d` [gu2023mamba, §3.4]. The state is
that of `short_convolution`, the last t inputs, before the bias and before SiLU.
"""

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm.activations import silu, silu_vjp
from refssm.convolution.short import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.domains import channel_biases, real_signals, real_taps, resets


def causal_conv1d(u, k, bias):
    """y_i = silu(Σ_{j<t} k_j u_{i−j} + bias), with u = 0 before the first input.

    Signature ``(l),(t),()->(l)``: `u` the signal of one channel, `k` its taps, the first for the
    newest input, `bias` its bias; `l` time, `t` taps, in any proportion; leading axes broadcast.
    float32, float64 or longdouble. Units: `u` times `k` and `bias` have none, nor has the result.

    Raises ValueError if sizes disagree, TypeError for other types. NaN at time j reaches the
    outputs j to j + t − 1. Source: [gu2023mamba, §3.4].

    >>> import refssm
    >>> refssm.causal_conv1d([1.0, 0.0, 2.0], [30.0, 50.0], 10.0)
    array([40., 60., 70.])
    """
    return silu(SHORT_CONVOLUTION.reference(u, k) + bias[..., None])


def causal_conv1d_vjp(dy, u, k, bias):
    """With a_i = Σ_j k_j u_{i−j} + bias and g_i = dy_i silu'(a_i): as the convolution's, from g.

    du_i = Σ_{j<t} k_j g_{i+j}, dk_j = Σ_i u_{i−j} g_i and dbias = Σ_i g_i. Returns
    `(du, dk, dbias)`, shaped like the arguments.
    """
    g = silu_vjp(dy, SHORT_CONVOLUTION.reference(u, k) + bias[..., None])
    du, dk = SHORT_CONVOLUTION.bare_vjp(g, u, k)
    return du, dk, unbroadcast(g.sum(-1), bias)


CAUSAL_CONV1D = Operator(
    reference=causal_conv1d,
    signature="(l),(t),()->(l)",
    inputs={"u": real_signals, "k": real_taps, "bias": channel_biases},
    batch="b d, d, d",
    traits=frozenset({"causal", "time-invariant", "state"}),
    citation="gu2023mamba, §3.4",
    tags=(
        "causal_conv1d_fn activation silu",
        "causal_conv1d_ref bias silu",
        "fla ShortConvolution",
        "Mamba conv1d with silu",
    ),
)
causal_conv1d = CAUSAL_CONV1D.checked(causal_conv1d)
causal_conv1d_vjp = CAUSAL_CONV1D.checked_vjp(causal_conv1d_vjp)


def causal_conv1d_packed(u, k, bias, resets):
    """y_i = silu(Σ_{j<t} k_j u_{i−j} + bias), the sum only over inputs since the last reset.

    Signature ``(l),(t),(),(l)->(l)``: as `causal_conv1d`, for packed sequences. `resets` is true,
    or an integer that is not 0, at the first step of each; the very first step needs none. Inputs
    before are dropped, not multiplied by 0, so nothing leaks, not even NaN. TypeError if `resets`
    has another type. Source: [lu2023structured].

    >>> import refssm
    >>> refssm.causal_conv1d_packed([1.0, 1.0, 1.0], [30.0, 50.0], 10.0, [False, False, True])
    array([40., 90., 40.])
    """
    return silu(SHORT_CONVOLUTION_PACKED.reference(u, k, resets) + bias[..., None])


def causal_conv1d_packed_vjp(dy, u, k, bias, resets):
    """As in `causal_conv1d_vjp`; nothing flows back over a reset.

    Returns `(du, dk, dbias, None)`, shaped like `u`, `k` and `bias`.
    """
    a = SHORT_CONVOLUTION_PACKED.reference(u, k, resets) + bias[..., None]
    g = silu_vjp(dy, a)
    du, dk, _ = SHORT_CONVOLUTION_PACKED.bare_vjp(g, u, k, resets)
    return du, dk, unbroadcast(g.sum(-1), bias), None


CAUSAL_CONV1D_PACKED = Operator(
    reference=causal_conv1d_packed,
    signature="(l),(t),(),(l)->(l)",
    inputs={"u": real_signals, "k": real_taps, "bias": channel_biases, "resets": resets},
    batch="b d, d, d, b",
    traits=frozenset({"causal"}),
    citation="lu2023structured",
    tags=("causal_conv1d_fn seq_idx activation silu", "causal_conv1d cu_seqlens silu"),
)
causal_conv1d_packed = CAUSAL_CONV1D_PACKED.checked(causal_conv1d_packed)
causal_conv1d_packed_vjp = CAUSAL_CONV1D_PACKED.checked_vjp(causal_conv1d_packed_vjp)


def causal_conv1d_stateful(u, k, bias, s0):
    """y_i = silu(Σ_{j<t} k_j u_{i−j} + bias), u_{−1}, u_{−2}, … from s0, and the last t inputs.

    Signature ``(l),(t),(),(t)->(l),(t)``: as `causal_conv1d`; `s0` the t inputs before, the newest
    at the end, in the units of `u`. The first of them is not used; decoders store t inputs anyway.
    The next piece or `causal_conv1d_step` starts from the returned state. Source: [gu2023mamba,
    §3.4].

    >>> import refssm
    >>> refssm.causal_conv1d_stateful([2.0], [30.0, 50.0], 10.0, [7.0, 1.0])
    (array([120.]), array([1., 2.]))
    """
    y, s = SHORT_CONVOLUTION_STATEFUL.reference(u, k, s0)
    y = silu(y + bias[..., None])
    return y, with_batch(s, 1, y.shape[:-1])


def causal_conv1d_stateful_vjp(dy, ds, u, k, bias, s0):
    """As in `causal_conv1d_vjp`, with cotangent ds on the last inputs; ds0 gets the rest.

    Returns `(du, dk, dbias, ds0)`, shaped like `u`, `k`, `bias` and `s0`.
    """
    a = SHORT_CONVOLUTION_STATEFUL.reference(u, k, s0)[0] + bias[..., None]
    g = silu_vjp(dy, a)
    du, dk, ds0 = SHORT_CONVOLUTION_STATEFUL.bare_vjp(g, ds, u, k, s0)
    return du, dk, unbroadcast(g.sum(-1), bias), ds0


CAUSAL_CONV1D_STATEFUL = Operator(
    reference=causal_conv1d_stateful,
    signature="(l),(t),(),(t)->(l),(t)",
    form="stateful",
    inputs={"u": real_signals, "k": real_taps, "bias": channel_biases, "s0": real_signals},
    outputs=("y", "s"),
    batch="b d, d, d, b d",
    traits=frozenset({"causal", "state"}),
    citation="gu2023mamba, §3.4",
    tags=("causal_conv1d_fn initial_states activation silu", "ggml_ssm_conv silu"),
)
causal_conv1d_stateful = CAUSAL_CONV1D_STATEFUL.checked(causal_conv1d_stateful)
causal_conv1d_stateful_vjp = CAUSAL_CONV1D_STATEFUL.checked_vjp(causal_conv1d_stateful_vjp)


def causal_conv1d_step(u, k, bias, s):
    """s ← (s_1, …, s_{t−1}, u),  y = silu(Σ_{j<t} k_j s_{t−1−j} + bias): one input.

    Signature ``(),(t),(),(t)->(),(t)``: as one step of `causal_conv1d_stateful`; the last output is
    the next state. Source: [gu2023mamba, §3.4].

    >>> import refssm
    >>> refssm.causal_conv1d_step(2.0, [30.0, 50.0], 10.0, [7.0, 1.0])
    (array(120.), array([1., 2.]))
    """
    y, s = SHORT_CONVOLUTION_STEP.reference(u, k, s)
    y = silu(y + bias)
    return y, with_batch(s, 1, y.shape)


def causal_conv1d_step_vjp(dy, ds_next, u, k, bias, s):
    """As in `causal_conv1d_stateful_vjp`, for one step.

    Returns `(du, dk, dbias, ds)`, shaped like `u`, `k`, `bias` and `s`.
    """
    g = silu_vjp(dy, SHORT_CONVOLUTION_STEP.reference(u, k, s)[0] + bias)
    du, dk, ds = SHORT_CONVOLUTION_STEP.bare_vjp(g, ds_next, u, k, s)
    return du, dk, unbroadcast(g, bias), ds


CAUSAL_CONV1D_STEP = Operator(
    reference=causal_conv1d_step,
    signature="(),(t),(),(t)->(),(t)",
    form="step",
    inputs={"u": real_signals, "k": real_taps, "bias": channel_biases, "s": real_signals},
    outputs=("y", "s_next"),
    batch="b d, d, d, b d",
    citation="gu2023mamba, §3.4",
    tags=("causal_conv1d_update activation silu", "conv_state silu"),
)
causal_conv1d_step = CAUSAL_CONV1D_STEP.checked(causal_conv1d_step)
causal_conv1d_step_vjp = CAUSAL_CONV1D_STEP.checked_vjp(causal_conv1d_step_vjp)
