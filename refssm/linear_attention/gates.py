"""Gates of delta rules: logarithms of decays, and how much is written.

    log_g = −e^{A_log} softplus(a + dt_bias),    beta = σ(b)

A step of softplus(a + dt_bias) at the rate −e^{A_log} [dao2024mamba2]; time and batch are leading
axes. First one decay a head [yang2024gated], then one for each key [kimi2025linear], last the same
between bounds.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import sigmoid, sigmoid_vjp, softplus
from refssm.domains import biases, gate_floors, log_rates, logits, preactivations


def gated_delta_gates(a, b, A_log, dt_bias):
    """log_g_n = −e^{A_log_n} softplus(a_n + dt_bias_n),  beta_n = σ(b_n): `n` heads.

    Signature ``(n),(n),(n),(n)->(n),(n)``: `a` and `b` of one step, `A_log` the logarithms of the
    rates, `dt_bias` the biases of the steps; leading axes broadcast: time and batch, which `A_log`
    and `dt_bias` do not have. float32, float64 or longdouble; the results have their
    ``np.result_type``. All arguments are real and have no unit. log_g ≤ 0, 0 ≤ beta ≤ 1.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.1].

    >>> import refssm
    >>> log_g, beta = refssm.gated_delta_gates([0.0], [0.0], [0.0], [0.0])
    >>> log_g.round(4).tolist(), beta.tolist()
    ([-0.6931], [0.5])
    """
    log_g, beta = _decays(a, A_log, dt_bias), sigmoid(b)
    batch = np.broadcast_shapes(log_g.shape[:-1], beta.shape[:-1])
    return with_batch(log_g, 1, batch), with_batch(beta, 1, batch)


def gated_delta_gates_vjp(dlog_g, dbeta, a, b, A_log, dt_bias):
    """∂log_g/∂a = ∂log_g/∂dt_bias = −e^{A_log} σ(a + dt_bias),  ∂log_g/∂A_log = log_g,
    ∂beta/∂b = σ(b) σ(−b).

    Returns `(da, db, dA_log, ddt_bias)`, shaped like the arguments.
    """
    through, dA_log = _through_decays(dlog_g, a, A_log, dt_bias)
    gradients = through, sigmoid_vjp(dbeta, b), dA_log, through.copy()
    return unbroadcast_each(gradients, (a, b, A_log, dt_bias))


def _decays(a, A_log, dt_bias):
    """−e^{A_log} softplus(a + dt_bias)."""
    return -np.exp(A_log) * softplus(a + dt_bias)


def _through_decays(dlog_g, a, A_log, dt_bias):
    """The cotangents of a + dt_bias and of A_log, before the sums over broadcast axes."""
    rate, before = -np.exp(A_log), a + dt_bias
    return dlog_g * (rate * sigmoid(before)), dlog_g * (rate * softplus(before))


GATED_DELTA_GATES = Operator(
    reference=gated_delta_gates,
    signature="(n),(n),(n),(n)->(n),(n)",
    inputs={"a": preactivations, "b": logits, "A_log": log_rates, "dt_bias": biases},
    outputs=("log_g", "beta"),
    batch="b, b, , ",
    citation="yang2024gated, §3.1",
    tags=("fused_gdn_gating", "gated DeltaNet gates A_log dt_bias", "Qwen3-Next gates"),
)
gated_delta_gates = GATED_DELTA_GATES.checked(gated_delta_gates)
gated_delta_gates_vjp = GATED_DELTA_GATES.checked_vjp(gated_delta_gates_vjp)


def kimi_gates(a, A_log, dt_bias):
    """log_g_n = −e^{A_log} softplus(a_n + dt_bias_n): one head, a decay for each of `n` keys.

    Signature ``(n),(),(n)->(n)``: `a` of one step, `A_log` the logarithm of the head's rate,
    `dt_bias` the biases of the steps; leading axes broadcast: time, batch and heads, of which
    `A_log` and `dt_bias` have the heads only. float32, float64 or longdouble; the result has their
    ``np.result_type``. All arguments are real and have no unit. log_g ≤ 0.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [kimi2025linear].

    >>> import refssm
    >>> refssm.kimi_gates([0.0, 100.0], 0.0, [0.0, 0.0]).round(4).tolist()
    [-0.6931, -100.0]
    """
    return _decays(a, A_log[..., None], dt_bias)


def kimi_gates_vjp(dlog_g, a, A_log, dt_bias):
    """∂log_g_n/∂a_n = ∂log_g_n/∂dt_bias_n = −e^{A_log} σ(a_n + dt_bias_n),
    ∂log_g_n/∂A_log = log_g_n.

    Returns `(da, dA_log, ddt_bias)`, shaped like the arguments.
    """
    through, of_rate = _through_decays(dlog_g, a, A_log[..., None], dt_bias)
    return unbroadcast_each((through, of_rate.sum(-1), through.copy()), (a, A_log, dt_bias))


KIMI_GATES = Operator(
    reference=kimi_gates,
    signature="(n),(),(n)->(n)",
    inputs={"a": preactivations, "A_log": log_rates, "dt_bias": biases},
    outputs=("log_g",),
    batch="b h, h, h",
    citation="kimi2025linear",
    tags=("fused_kda_gate", "naive_kda_gate", "Kimi Linear gates"),
)
kimi_gates = KIMI_GATES.checked(kimi_gates)
kimi_gates_vjp = KIMI_GATES.checked_vjp(kimi_gates_vjp)


def kimi_gates_bounded(a, A_log, dt_bias, *, c=-5.0):
    """log_g_n = c σ(e^{A_log} (a_n + dt_bias_n)): decays between e^c and 1.

    Signature ``(n),(),(n)->(n)`` and the keyword `c`, a number below 0: −5 if it is not given. Here
    e^{A_log} is the slope of σ and no rate. Arguments, types, units and errors are those of
    `kimi_gates`; ValueError if `c` is not a number below 0, too. A chunk of q steps then
    has decays of at least e^{cq}. Source: [kimi2025linear].

    >>> import refssm
    >>> refssm.kimi_gates_bounded([0.0, 100.0], 0.0, [0.0, 0.0]).tolist()
    [-2.5, -5.0]
    """
    return c * sigmoid(np.exp(A_log)[..., None] * (a + dt_bias))


def kimi_gates_bounded_vjp(dlog_g, a, A_log, dt_bias, *, c=-5.0):
    """z = e^{A_log} (a + dt_bias):  ∂log_g/∂z = c σ(z) σ(−z),  ∂z/∂a = ∂z/∂dt_bias = e^{A_log},
    ∂z/∂A_log = z.

    Returns `(da, dA_log, ddt_bias)`, shaped like the arguments.
    """
    slope = np.exp(A_log)[..., None]
    z = slope * (a + dt_bias)
    dz = c * sigmoid_vjp(dlog_g, z)
    through, dA_log = slope * dz, (z * dz).sum(-1)
    return unbroadcast_each((through, dA_log, through.copy()), (a, A_log, dt_bias))


KIMI_GATES_BOUNDED = Operator(
    reference=kimi_gates_bounded,
    signature="(n),(),(n)->(n)",
    inputs={"a": preactivations, "A_log": log_rates, "dt_bias": biases},
    parameters={"c": gate_floors},
    outputs=("log_g",),
    batch="b h, h, h",
    citation="kimi2025linear",
    tags=("naive_kda_lowerbound_gate", "fused_kda_gate lower_bound", "Kimi gates safe"),
)
kimi_gates_bounded = KIMI_GATES_BOUNDED.checked(kimi_gates_bounded)
kimi_gates_bounded_vjp = KIMI_GATES_BOUNDED.checked_vjp(kimi_gates_bounded_vjp)
