"""Planted bugs in diagonal systems: states, matrices, conjugate pairs, both directions."""

from functools import partial

import numpy as np

from refssm import scan
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import of_each_result, of_result
from refssm.conformance.planted.scan import programs
from refssm.conformance.planted.scan.diagonal_parts import back, by_halves, made_for, with_parts
from refssm.conformance.planted.scan.programs import carry_lost, decay_at, same, zero


def _turned_if_square(M):
    return M.mT if M.shape[-1] == M.shape[-2] else M


def _imaginary_kept(right, a, B, C, D, u, *x0):
    turned = right(a, B, -1j * C, 0 * D, u, *x0)
    if not x0:
        return right(a, B, C, D, u) + 1j * turned
    y, x = right(a, B, C, D, u, *x0)
    return y + 1j * turned[0], x


def _later(x):
    return np.concatenate([x[..., 1:, :], 0 * x[..., :1, :]], axis=-2)


def _dB_of_first(op):
    """The VJP with dB from the first sequence only."""
    batched = [*("b" for _ in op.outputs), *op.batch_axes]

    def program(right, *args):
        first = (x[:1] if "b" in axes else x for x, axes in zip(args, batched, strict=True))
        da, _, *others = right(*args)
        return da, right(*first)[1], *others

    return program


ALL = {
    "value": [
        ("exclusive", "x_{k-1} read for x_k", with_parts(states=programs.exclusive)),
        ("input_decays", "a (x_{k-1} + B u_k): the input decays too",
         with_parts(states=lambda right, a, b, x0: right(a, a * b, x0))),
        ("carry_lost_64", "the carry lost at chunks of 64", with_parts(states=carry_lost(64))),
        ("carry_lost_256", "the carry lost at chunks of 256", with_parts(states=carry_lost(256))),
        ("carry_undecayed", "the carry of a chunk of 64 added without its decay",
         with_parts(states=decay_at(lambda k, l: (k > 0) & (k % 64 == 0), 1))),
        ("ragged_tail", "the tail beyond a multiple of 32 scanned from rest",
         with_parts(states=decay_at(lambda k, l: (k > 0) & (k == l // 32 * 32)))),
        ("decay_inverted", "1/a in place of a", {"a": lambda a: 1 / a}),
        ("decay_clipped", "|a| clipped to 1 − 1e-4", {"a": programs.clipped}),
        ("decay_reversed", "the modes' decays in reverse order", {"a": lambda a: a[..., ::-1]}),
        ("state_in_bfloat16", "the state kept in bfloat16",
         with_parts(states=programs.by_step(lambda k, a_k, x, b_k: bfloat16(a_k * x + b_k)))),
        ("state_forgotten", "x_k = B u_k", {"a": zero}),
        ("skip_forgotten", "D taken as zero", {"D": zero}),
        ("skip_diagonal", "D taken as diagonal",
         {"D": lambda D: D * np.eye(*D.shape[-2:], dtype="f4")}),
        ("skip_transposed", "Dᵀ where D is square", {"D": _turned_if_square}),
        ("input_transposed", "Bᵀ where B is square", {"B": _turned_if_square}),
        ("one_output_row", "the first row of C for all outputs",
         {"C": lambda C: 0 * C + C[..., :1, :]}),
        ("channels_reversed", "the input channels in reverse order", {"B": lambda B: B[..., ::-1]}),
    ],
    "value[complex64]": [
        ("a_conjugated", "the decay conjugated", {"a": np.conj}),
        ("B_conjugated", "the input matrix conjugated", {"B": np.conj}),
        ("C_conjugated", "the output matrix conjugated", {"C": np.conj}),
    ],
    "gradient": [
        ("sign", "da with the other sign", {"a": np.negative}),
        ("skip_missing", "dD = 0", {"D": zero}),
        ("one_row", "dC of the first output for all", {"C": lambda g: 0 * g + g[:1]}),
        ("skip_forgotten", "du without Dᴴ dy", back(skipped=False)),
        ("state_one_late", "da with x_k for x_{k-1}", back(late=True)),
        ("read_one_early", "dC with x_{k-1} for x_k", back(read_early=True)),
        ("carry_lost_64", "the adjoint's carry lost at chunks of 64", back(forget=64)),
        ("carry_lost_16", "the adjoint's carry lost at chunks of 16", back(forget=16)),
        ("recurrence_forgotten", "g_k = Cᴴ dy_k", back(forget=1)),
        ("float16", "the adjoint carried in float16", back(cast=float16)),
        ("first_of_batch", "dB of the first sequence only, though B is shared by all",
         partial(_dB_of_first)),
    ],
    "gradient[complex64]": [
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("decay_not_conjugated", "a for a* in the adjoint", back(conj_a=same)),
        ("state_not_conjugated", "x for x* in da", back(conj_x=same)),
        ("read_not_conjugated", "x for x* in dC", back(conj_read=same)),
        ("input_matrix_not_conjugated", "B for B* in du", back(conj_B=same)),
        ("output_matrix_not_conjugated", "C for C* in the adjoint", back(conj_C=same)),
    ],
}  # fmt: skip
VARYING = {
    "value": [
        ("decay_late", "a_{k-1} in place of a_k", {"a": lambda a: np.roll(a, 1, -2)}),
        ("decay_early", "a_{k+1} in place of a_k", {"a": lambda a: np.roll(a, -1, -2)}),
        ("decay_of_first_step", "the first step's decay at every step",
         {"a": lambda a: np.broadcast_to(a[..., :1, :], a.shape)}),
    ],
    "gradient": [("decay_one_early", "a_k for a_{k+1} in the adjoint", back(shift=0))],
}  # fmt: skip
CONSTANT = {
    "gradient": [
        ("last_step_only", "da of the last step", back(over_time=lambda da: da[..., -1, :])),
        ("mean_over_time", "da averaged over time", back(over_time=lambda da: da.mean(-2))),
    ],
}
STATEFUL = {  # the first state, and the last
    "value": [
        *programs.START,
        ("start_undecayed", "x_0 = x0 + B u_0",
         with_parts(states=decay_at(lambda k, l: k == 0, 1))),
        ("start_every_step", "x0 added at every step",
         with_parts(states=lambda right, a, b, x0: right(a, b + x0[..., None, :], 0 * x0))),
    ],
    "value[complex64]": [
        ("start_real", "the imaginary part of x0 dropped",
         {"x0": lambda x0: x0.real.astype(x0.dtype)}),
        ("start_conjugated", "x0* for x0", {"x0": np.conj}),
    ],
    "state": [
        ("state_one_early", "the state before the last step returned",
         with_parts(last=lambda x, a, b, x0: programs.before(x, x0)[..., -1, :])),
        ("state_without_last_input", "the last input left out of the state",
         with_parts(last=lambda x, a, b, x0: x[..., -1, :] - b[..., -1, :])),
        ("state_one_late", "the state decayed once more",
         with_parts(last=lambda x, a, b, x0: x[..., -1, :] * a[..., -1, :])),
        ("state_of_first_step", "the state after the first step returned",
         with_parts(last=lambda x, a, b, x0: x[..., 0, :].copy())),
        # the state after the last full chunk of 64 steps; right where there is none
        ("state_of_whole_chunks", "the state at the last multiple of 64",
         with_parts(last=lambda x, a, b, x0: x[..., x.shape[-2] // 64 * 64 - 1, :].copy())),
        ("state_from_rest", "the last state without what x0 left in it",
         lambda right, *args: (right(*args)[0], right(*args[:-1], 0 * args[-1])[1])),
        ("state_in_half", "the last state rounded to float16",
         of_result(lambda y, x: (y, float16(x)))),
        ("state_not_updated", "x0 returned as the last state", with_parts(
            last=lambda x, a, b, x0: np.broadcast_to(x0, x[..., 0, :].shape).astype(x.dtype))),
    ],
    "state[complex64]": [
        ("state_conjugated", "the last state conjugated", of_result(lambda y, x: (y, x.conj()))),
        ("state_real", "the imaginary part of the last state dropped",
         of_result(lambda y, x: (y, x.real.astype(x.dtype)))),
    ],
    "gradient": [
        ("start_missing", "dx0 = 0", {"x0": zero}),
        ("last_state_dropped", "the last state's cotangent dropped", {"dx": zero}),
        ("start_undecayed", "dx0 = g_0", back(start_decays=False)),
        ("last_state_at_first_step", "the last state's cotangent at the first step",
         back(dx_at=0)),
        ("start_ignored", "the states of da and dC from rest", back(rest=True)),
    ],
}  # fmt: skip
NOT_REAL = {"gradient[complex64]": [("input_not_conjugated", "u for u* in dB", back(conj_u=same))]}
REAL = {  # the factor 2 of conjugate pairs
    "value": [
        ("pairs_once", "Re(C x), without the factor 2", {"C": lambda C: C / 2}),
        ("pairs_twice", "4 Re(C x)", {"C": lambda C: 2 * C}),
        ("skip_doubled", "2 (Re(C x) + D u)", {"D": lambda D: 2 * D}),
        ("modulus", "2 |C x|", with_parts(read=lambda C, x: 2 * np.abs(x @ C.mT))),
        ("real_modes_once", "no factor 2 for modes on the real axis", lambda right, a, B, C, *rest:
         right(a, B, C * np.where(a.imag == 0, 0.5, 1).astype(a.real.dtype)[..., None, :], *rest)),
    ],
    "value[complex64]": [
        ("imaginary", "2 Im(C x)", {"C": lambda C: -1j * C}),
        ("imaginary_kept", "2 C x + D u, complex", _imaginary_kept),
    ],
    "gradient": [
        ("pairs_once", "no factor 2", back(factors=(1, 1, 1))),
        ("skip_doubled", "the factor 2 in dD and its part of du", back(factors=(2, 2, 1))),
    ],
}  # fmt: skip
REAL_STATEFUL = {
    "state": [("state_doubled", "the last state doubled as y is",
               of_result(lambda y, x: (y, 2 * x)))],
    "gradient": [("state_doubled", "the factor 2 on the last state", back(factors=(2, 1, 2)))],
}  # fmt: skip


def _sides_exchanged(right, a, B, C, D, u):
    """The later part composed after the earlier one: z_k = Σ_j≥k a^{l−1−j} b_j."""
    b = u @ B.mT
    left = np.arange(b.shape[-2])[::-1, None].astype(a.real.dtype)
    z = np.cumsum((a[..., None, :] ** left * b)[..., ::-1, :], -2)[..., ::-1, :]
    x = programs.scan(a[..., None, :], b, np.zeros_like(b[..., 0, :]))
    return np.concatenate([x, z], axis=-1) @ C.mT + u @ D.mT


BIDIRECTIONAL = {  # the backward scan at the wrong lag, half or place
    "value": [
        ("backward_from_next", "the backward scan one step late: z_{k+1} read for z_k",
         by_halves(lambda C, E, x, z: x @ C.mT + _later(z) @ E.mT)),
        ("halves_exchanged", "the halves of C exchanged",
         by_halves(lambda C, E, x, z: x @ E.mT + z @ C.mT)),
        ("not_turned_back", "the backward half not reversed back in time",
         by_halves(lambda C, E, x, z: x @ C.mT + z[..., ::-1, :] @ E.mT)),
        ("forward_only", "the backward half left out",
         by_halves(lambda C, E, x, z: x @ C.mT + 0 * z[..., :1])),
        ("past_twice", "the past read by both halves",
         by_halves(lambda C, E, x, z: x @ (C + E).mT)),
        ("sides_exchanged", "the backward scan's operator with its sides exchanged",
         _sides_exchanged),
        ("averaged", "the mean of both directions",
         by_halves(lambda C, E, x, z: (x @ C.mT + z @ E.mT) / 2)),
    ],
    "gradient": [
        ("backward_half_dropped", "only the forward half sends gradients to a, B and u",
         back(joined=lambda p, q: (p, q._replace(a=0 * q.a, B=0 * q.B, u=0 * q.u)))),
        ("not_turned_back", "du of the backward half not reversed back in time",
         back(joined=lambda p, q: (p, q._replace(u=q.u[..., ::-1, :])))),
        ("halves_exchanged", "the halves of dC exchanged",
         back(joined=lambda p, q: (p._replace(C=q.C), q._replace(C=p.C)))),
    ],
}  # fmt: skip
ONE_DIRECTION = {  # in both, C has two halves, and NaN does reach everything
    "value": [("output_transposed", "Cᵀ where C is square", {"C": _turned_if_square})],
    "nan": [("nan_spread", "masked by multiplication: 0 · NaN reaches the past",
             {"u": programs.masked_by_product})],
}  # fmt: skip
TABLES = {
    scan.DIAGONAL_SSM: [CONSTANT, NOT_REAL, ONE_DIRECTION],
    scan.DIAGONAL_SSM_STATEFUL: [CONSTANT, NOT_REAL, ONE_DIRECTION, STATEFUL],
    scan.DIAGONAL_SSM_VARYING: [VARYING, NOT_REAL, ONE_DIRECTION],
    scan.DIAGONAL_SSM_VARYING_STATEFUL: [VARYING, NOT_REAL, ONE_DIRECTION, STATEFUL],
    scan.DIAGONAL_SSM_REAL: [CONSTANT, REAL, ONE_DIRECTION],
    scan.DIAGONAL_SSM_REAL_STATEFUL: [CONSTANT, REAL, ONE_DIRECTION, STATEFUL, REAL_STATEFUL],
    scan.DIAGONAL_SSM_BIDIRECTIONAL: [CONSTANT, NOT_REAL, BIDIRECTIONAL],
}
DIAGONAL = [
    programs.planting(op, ALL, *tables, adapt=made_for(op)) for op, tables in TABLES.items()
]
