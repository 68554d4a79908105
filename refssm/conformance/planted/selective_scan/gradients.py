"""Planted bugs in the VJPs of selective scans."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import of_each_result
from refssm.conformance.planted.recurrences import shifted
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.adjoint import RIGHT, changed, sigmoid, star, vjp_as
from refssm.conformance.planted.selective_scan.programs import Bugs, real

GRADIENTS = Bugs(vjp_as)
plant = GRADIENTS.plant


def _input_part(p):
    return (star(p, "u") * star(p, "B") * p.g).sum(-1)


def _rate_part(p):
    return (star(p, "A") * p.e).sum(-1)


def _by_total(p):
    """ddt with Σ_{i≥k} e_i = e_k − Σ_{i≤k} e_i + Σ e, for what each step adds to sums of decays."""
    e = star(p, "x") * star(p, "C") * p.dy - p.dt * star(p, "u") * star(p, "B") * p.g
    later = e - np.cumsum(e, axis=-2) + e.sum(-2, keepdims=True)
    return _input_part(p) + (star(p, "A") * later).sum(-1)


def _first_only(name):
    """The gradient of a shared argument from its first user only, instead of the sum."""

    def formula(p):
        g, shape = RIGHT[name](p), p.shapes[name]
        shape = (1,) * (g.ndim - len(shape)) + shape
        first = tuple(slice(1) if n == 1 else slice(None) for n in shape)
        alone = np.zeros_like(g)
        alone[first] = g[first]
        return alone

    return formula


def _mean(name):
    """The gradient of a shared argument as a mean instead of a sum."""

    def formula(p):
        g = RIGHT[name](p)
        return g / g.real.dtype.type(max(g.size // max(np.prod(p.shapes[name]), 1), 1))

    return formula


plant(on.EACH,
      ("dt_by_input_only", "ddt without the decay's part, A e", changed(dt=_input_part)),
      ("dt_by_decay_only", "ddt without the input's part, u B g", changed(dt=_rate_part)),
      ("sign_of_B", "dB with the other sign", {"B": np.negative}), by="gradient")  # fmt: skip
plant(on.LONG, ("rate_of_last_step", "dA of the last step only, not their sum",
                changed(A=lambda p: (p.dt * p.e)[..., -1, :])), by="gradient")  # fmt: skip
plant(("selective_scan", "mamba_scan_stateful", "selective_step"),
      ("u_without_step", "du = Σ B g", changed(u=lambda p: (star(p, "B") * p.g).sum(-1))),
      ("u_by_own_output", "du from the output of its own step only",
       changed(u=lambda p: (p.dt * star(p, "B") * star(p, "C") * p.dy).sum(-1))),
      ("rate_without_step", "dA = Σ e", changed(A=lambda p: p.e.sum(-2))),
      ("rate_by_new_state", "dA with x_k for x_(k−1)",
       changed(A=lambda p: (p.dt * star(p, "a") * star(p, "x") * p.g).sum(-2))),
      ("rate_undecayed", "dA with x_(k−1) for a x_(k−1)",
       changed(A=lambda p: (p.dt * p.past * p.g).sum(-2))),
      ("C_by_old_state", "dC = x_(k−1)* dy", changed(C=lambda p: p.past * p.dy)),
      ("B_without_step", "dB = u* g", changed(B=lambda p: star(p, "u") * p.g)),
      ("C_mean_of_channels", "dC the mean over the channels", changed(C=_mean("C"))),
      ("rate_of_first_batch", "dA of the first member of the batch only",
       changed(A=_first_only("A"))), by="gradient")  # fmt: skip
plant(on.SCAN,
      ("rate_one_late", "dA with e_(k+1)",
       changed(A=lambda p: (p.dt[..., :-1, :] * p.e[..., 1:, :]).sum(-2))),
      ("carry_lost_64", "no gradient passes the borders of chunks of 64: a detached carry",
       changed(forget=64)),
      ("decay_one_late", "a_(k+2) for a_(k+1) in the adjoint", changed(after=1)),
      ("in_bfloat16", "the adjoint carried in bfloat16", changed(cast=bfloat16)),
      by="gradient")  # fmt: skip
plant(("mamba_scan",),  # of a selective scan this is right in norm
      ("dt_by_total", "sums from the end as e − cumsum(e) + sum(e): their digits cancel in ddt",
       changed(dt=_by_total)), by="gradient")  # fmt: skip
for _on, _x, _dx in ((on.STATEFUL, "x0", "dx"), (on.STEP, "x", "dx_next")):
    plant(_on,
          ("state_dropped", "the cotangent of the last state dropped", {_dx: lambda dx: 0 * dx}),
          ("start_missing", "dx0 = 0", {_x: lambda g: 0 * g}),
          ("start_undecayed", "dx0 = g_0", changed(x0=lambda p: p.g[..., 0, :])),
          by="gradient")  # fmt: skip
plant(on.STATEFUL,
      ("in_float16", "the adjoint carried in float16", changed(cast=float16)),
      ("start_detached", "dx0 without the last state's part",
       changed(x0=lambda p: p.first - np.prod(star(p, "a"), axis=-2) * p.dx)),
      ("state_at_every_step", "the last state's cotangent at every step",
       changed(B=lambda p: p.dt * star(p, "u") * (p.g + p.dx[..., None, :] * p.not_last))),
      ("start_ignored_in_rate", "dA as if x0 were 0",
       changed(A=lambda p: (p.dt * p.e)[..., 1:, :].sum(-2))), by="gradient")  # fmt: skip
plant(("selective_scan", "mamba_scan_packed", "selective_step"),
      ("decay_not_conjugated", "a for a* in the adjoint", changed(plain=("a",))),
      ("C_not_conjugated", "C for C* in the adjoint", changed(plain=("C",))),
      ("B_not_conjugated", "B for B* in du and ddt", changed(plain=("B",))),
      ("u_not_conjugated", "u for u* in dB and ddt", changed(plain=("u",))),
      ("A_not_conjugated", "A for A* in ddt", changed(plain=("A",))),
      ("state_not_conjugated", "x for x* in dC and dA", changed(plain=("x",))),
      by="gradient[complex64]")  # fmt: skip
plant(("selective_scan", "mamba_step"),
      ("as_jax", "the conjugate convention", of_each_result(np.conj)),
      ("real_parts", "dB and dC real", {"B": real, "C": real}),
      by="gradient[complex64]")  # fmt: skip
plant(("selective_scan_stateful",),
      ("imaginary_dt", "|·| for Re in ddt",
       changed(dt=lambda p: np.abs(_input_part(p) + _rate_part(p)))),
      by="gradient[complex64]")  # fmt: skip


def _through_resets(p):
    """The decay's gradient at a reset as if the state were not dropped."""
    e = np.exp(p.dt * p.A).conj() * p.past * p.g
    return _input_part(p) + (star(p, "A") * e).sum(-1)


def _slope(v):
    """e^v/(1 + e^v) by a reciprocal; ∞ · 0 is 0 on some devices."""
    e = np.exp(v)
    return np.where(np.isinf(e), 0, e * (1 / (1 + e))).astype(v.dtype)


plant(on.PACKED,
      ("leaks", "the gradient of one sequence in the one before",
       lambda right, *args: right(*args[:-1], np.zeros_like(args[-1]))),
      ("reset_late", "the adjoint cut one step late",
       lambda right, *args: right(*args[:-1], shifted(args[-1], 1))),
      ("decay_at_reset", "ddt of the decay at a reset too", changed(dt=_through_resets)),
      by="gradient")  # fmt: skip
plant(on.GATED,
      ("softplus_forgotten", "ddt without the softplus' derivative",
       changed(slope=lambda q: 1 + 0 * q.v)),
      ("softplus_of_step", "the softplus' derivative σ(Δ), at its value",
       changed(slope=lambda q: sigmoid(q.step))),
      ("slope_overflows", "the softplus' slope e^v/(1 + e^v): 0 where e^v overflows",
       changed(slope=lambda q: _slope(q.v))),
      ("D_ungated", "dD without the gate", changed(D=lambda q: (q.u.conj() * q.dy).sum(-1))),
      ("skip_ungated", "du = D* dy beside the scan",
       changed(skip=lambda q: q.D[..., None].conj() * q.dy)),
      ("gate_without_skip", "dz from C x alone, without D u",
       changed(dz=lambda q: q.y.conj() * q.dy * (q.open + q.gate * (1 - q.open)))),
      ("gate_as_sigmoid", "dz = s dy z σ(1 − σ)",
       changed(dz=lambda q: q.s.conj() * q.dy * q.gate * (1 - q.open))), by="gradient")  # fmt: skip
plant(on.GATED[:3],
      ("bias_not_summed", "ddt_bias of the last step only", changed(bias=lambda q: q.ddt[..., -1])),
      ("D_not_summed", "dD of the last step only",
       changed(D=lambda q: (q.u.conj() * q.ds)[..., -1])), by="gradient")  # fmt: skip
plant(on.ONE,
      ("softplus_relu", "1 for v > 0, else 0", changed(slope=lambda q: (q.v > 0) + 0 * q.v)),
      ("bias_missing", "ddt_bias = 0", {"dt_bias": lambda g: 0 * g}),
      ("gate_constant", "dz = s dy σ(z)", changed(dz=lambda q: q.s.conj() * q.dy * q.open)),
      ("gate_ignored", "ds = dy", changed(ds=lambda q: q.dy)), by="gradient")  # fmt: skip
plant(on.OTHER,
      ("softplus_twice", "σ(v)²", changed(slope=lambda q: sigmoid(q.v) ** 2)),
      ("skip_missing", "du without D*", changed(skip=lambda q: 0 * q.ds)),
      ("gate_by_sigmoid", "ds = σ(z) dy", changed(ds=lambda q: q.open * q.dy)),
      by="gradient")  # fmt: skip
plant(on.OTHER,
      ("gate_not_conjugated", "dz = Re s dy …, without the conjugate",
       changed(dz=lambda q: q.s * q.dy * (q.open + q.gate * (1 - q.open)))),
      by="gradient[complex64]")  # fmt: skip
