"""Planted bugs in the memories of HiPPO and in reconstructions from them, with their VJPs."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.hippo.constructors import of_keywords, without
from refssm.conformance.planted.planting import Planting, of_result
from refssm.discretize import DISCRETIZE_BACKWARD, DISCRETIZE_BILINEAR, DISCRETIZE_EULER
from refssm.discretize import DISCRETIZE_ZOH as ZOH
from refssm.hippo import HIPPO_LEGS, HIPPO_PROJECT, HIPPO_PROJECT_LEGS, HIPPO_RESCALE
from refssm.scan import DENSE_SCAN

ANY, LEGS = OF_MEMORIES = [Planting(op, "float32") for op in (HIPPO_PROJECT, HIPPO_PROJECT_LEGS)]
ANY.usual()
LEGS.usual()
# its result is larger than its only argument, whose memory cannot hold it
LEGS.bugs = [bug for bug in LEGS.bugs if bug.name != "returns_input"]


def counted(c):
    """0 … n − 1, in the precision of c."""
    return np.arange(c.shape[-1], dtype=np.finfo(c.dtype).dtype)


def roots(c):
    """√(2i + 1)."""
    return np.sqrt(2 * counted(c) + 1)


def _late(u):
    return np.concatenate([0 * u[..., :1], u[..., :-1]], -1)


def _run(A_bar, B_bar, u):
    return DENSE_SCAN.reference(A_bar, B_bar[..., None, :, 0] * u[..., None])


def _by(rule):
    """The projection with another rule of discretization."""
    return lambda right, A, B, u, dt: _run(*rule.reference(A, B[..., None], dt), u)


def _with_input(B_bar):
    """The projection by zero-order hold with another B̄."""
    return lambda right, A, B, u, dt: _run(
        ZOH.reference(A, B[..., None], dt)[0], B_bar(B, dt)[..., None], u
    )


ANY.plant(
    ("transposed", "Aᵀ for A", {"A": lambda A: A.mT}),
    ("sign", "−A for A", {"A": np.negative}),
    ("half_step", "dt/2 for dt", {"dt": lambda dt: dt / 2}),
    ("step_forgotten", "dt = 1", {"dt": np.ones_like}),
    ("reversed", "the signal from its end", {"u": lambda u: u[..., ::-1]}),
    ("late", "u_{k−1} for u_k: the shifted recurrence", {"u": _late}),
    ("first_twice", "x_0 = B̄ u_0 + Ā B̄ u_0", lambda right, A, B, u, dt:
     right(A, B, np.concatenate([u[..., :1], u], -1), dt)[..., 1:, :].copy()),
    ("last_state", "the last state not written", of_result(lambda x: without(x, np.s_[..., -1:]))),
    ("beyond_64", "nothing written after 64 steps",
     of_result(lambda x: without(x, np.s_[..., 64:, :]))),
    ("restarted", "the state lost every 32 steps", lambda right, A, B, u, dt: np.concatenate(
     [right(A, B, u[..., j : j + 32], dt) for j in range(0, u.shape[-1], 32)], -2)),
    ("euler", "the rule euler for zero-order hold", _by(DISCRETIZE_EULER)),
    ("bilinear", "the rule bilinear for zero-order hold", _by(DISCRETIZE_BILINEAR)),
    ("backward", "the rule backward for zero-order hold", _by(DISCRETIZE_BACKWARD)),
    ("mamba", "B̄ = dt B", _with_input(lambda B, dt: dt[..., None] * B)),
    ("input_unscaled", "B̄ = B", _with_input(lambda B, dt: B)),
)  # fmt: skip
ANY.plant(
    ("conjugate", "A* for A", {"A": np.conj}),
    ("input_conjugate", "u* for u", {"u": np.conj}),
    by="value[complex64]",
)
ANY.plant(
    ("type_of_system", "states in the type of A and B: i of a complex signal lost",
     lambda right, A, B, u, dt: (right(A, B, u, dt) if np.iscomplexobj(A) or np.iscomplexobj(B)
                                 else right(A, B, u, dt) * 0 + right(A, B, u, dt).real)),
    by="value[complex128]",
)  # fmt: skip
ANY.plant(
    ("transposed", "dAᵀ for dA", {"A": lambda g: g.mT.copy()}),
    ("step_missing", "no gradient of dt", {"dt": lambda g: 0 * g}),
    ("input_missing", "no gradient of B", {"B": lambda g: 0 * g}),
    ("reversed", "du from its end", {"u": lambda g: g[..., ::-1].copy()}),
    ("not_adjoint", "A for Aᴴ in the backward pass", lambda right, dx, A, B, u, dt:
     right(dx, A.mT.conj().copy(), B, u, dt)),
    ("truncated", "the adjoint forgets what is more than 16 steps ahead",
     {"dx": lambda dx: without(dx, np.s_[..., :-16, :])}),
    by="gradient",
)  # fmt: skip
ANY.plant(("as_jax", "dA* for dA", {"A": np.conj}), by="gradient[complex64]")


def by_rule(op, shift=0):
    """LegS's ODE by a rule of discretization with dt = 1/(k + 1 + shift)."""

    def project(right, u, *, n):
        A, B = (x.astype(np.finfo(u.dtype).dtype) for x in HIPPO_LEGS.reference(n=n))
        c, state = np.zeros((*u.shape, n), u.dtype), np.zeros((*u.shape[:-1], n), u.dtype)
        for k in range(u.shape[-1]):
            dt = np.asarray(1 / (k + 1 + shift), B.dtype)
            A_bar, B_bar = op.reference(A, B[:, None], dt)
            state = state @ A_bar.T + u[..., k, None] * B_bar[:, 0]
            c[..., k, :] = state
        return c

    return project


def _sampled(right, u, *, n):
    c = np.zeros((*u.shape, n), u.dtype)
    for k in range(u.shape[-1]):
        x = 2 * (np.arange(k + 1) + 1) / (k + 1) - 1
        P = np.polynomial.legendre.legvander(x, max(n - 1, 0))[:, :n] * roots(c)
        c[..., k, :] = u[..., : k + 1] @ (P / (k + 1)).astype(roots(c).dtype)
    return c


LEGS.plant(
    ("held_at_next", "A/(k+1) held over a step: dt = 1/(k + 1)", by_rule(ZOH)),
    ("bilinear", "the bilinear map with dt = 1/(k + 1)", by_rule(DISCRETIZE_BILINEAR)),
    ("euler", "Euler with dt = 1/(k + 1)", by_rule(DISCRETIZE_EULER)),
    ("backward", "backward Euler with dt = 1/(k + 1)", by_rule(DISCRETIZE_BACKWARD)),
    ("one_later", "t = k + 2 for t = k + 1", by_rule(ZOH, 1)),
    ("unscaled", "the factor √(2i+1) left out", of_result(lambda c: c / roots(c))),
    ("squared", "(2i+1) for √(2i+1)", of_result(lambda c: c * roots(c))),
    ("alternating", "the signs of LMU", of_result(lambda c: c * (-1) ** counted(c))),
    ("reversed", "the signal from its end", {"u": lambda u: u[..., ::-1]}),
    ("late", "u_{k−1} for u_k", {"u": _late}),
    ("started_by_b", "c_0 = B u_0: the start taken for a step", lambda right, u, *, n:
     without(c := right(u, n=n), np.s_[..., 0, :], instead=u[..., :1] * roots(c))),
    ("summed", "the integral not divided by the time",
     of_result(lambda c: c * (counted(c[..., 0]) + 1)[:, None])),
    ("sampled", "a sum over samples for the integral", _sampled),
    ("only_last", "the whole signal's coefficients at every step",
     of_result(lambda c: np.broadcast_to(c[..., -1:, :], c.shape).copy())),
    ("last_coefficient", "the last coefficient not written",
     of_result(lambda c: without(c, np.s_[..., -1:]))),
    ("beyond_32", "nothing written after 32 steps",
     of_result(lambda c: without(c, np.s_[..., 32:, :]))),
)  # fmt: skip
LEGS.plant(("conjugate", "u* for u", {"u": np.conj}), by="value[complex64]")
LEGS.plant(
    ("sign", "−du for du", {"u": np.negative}),
    ("last_only", "only the last state's cotangent",
     {"dc": lambda dc: without(dc, np.s_[..., :-1, :])}),
    ("shifted", "du a step late", {"u": lambda g: np.roll(g, 1, axis=-1)}),
    ("unscaled", "the factor √(2i+1) left out", {"dc": lambda dc: dc / roots(dc)}),
    by="gradient",
)  # fmt: skip
LEGS.plant(("as_jax", "the conjugate convention", {"u": np.conj}), by="gradient[complex64]")


RECONSTRUCT_LEGS, LEGT, LMU, LAGT, FOURIER = MEMORIES = [
    Planting(operator_named(f"hippo_reconstruct_{basis}"), "float32")
    for basis in ("legs", "legt", "lmu", "lagt", "fourier")
]
RESCALE = Planting(HIPPO_RESCALE, "float32")
OF_RECONSTRUCTIONS = [*MEMORIES, RESCALE]
for _p in MEMORIES:
    _p.plant(
        ("last_coefficient", "the last coefficient left out",
         {"c": lambda c: without(c, np.s_[..., -1:])}),
        ("doubled", "twice the signal: pairs", of_result(lambda y: 2 * y)),
        ("rolled", "the coefficients rolled", {"c": lambda c: np.roll(c, 1, axis=-1)}),
        ("later", "times rolled", {"s": lambda s: np.roll(s, 1, axis=-1)}),
        ("half_time", "s/2 for s", {"s": lambda s: s / 2}),
        ("beyond_64", "coefficients beyond 64 left out",
         {"c": lambda c: without(c, np.s_[..., 64:])}),
    )  # fmt: skip
    _p.plant(
        ("conjugate", "c* for c", {"c": np.conj}),
        ("real_part", "Re c for c", {"c": lambda c: c.real.astype(c.dtype)}),
        by="value[complex64]",
    )
    _p.plant(
        ("times_missing", "no gradient of s", {"s": np.zeros_like}),
        ("times_sign", "−ds for ds", {"s": np.negative}),
        ("coefficients_rolled", "dc rolled", {"c": lambda g: np.roll(g, 1, -1)}),
        by="gradient",
    )
    _p.plant(("as_jax", "the conjugate convention", {"c": np.conj}), by="gradient[complex64]")
for _p in OF_RECONSTRUCTIONS:
    _p.usual()


def _chebyshev(orthonormal):
    """T_i(x) instead of P_i(x); in LMU, which is not orthonormal, x has the other sign."""

    def cosines(right, c, s, *, window=1.0):
        sign = 1 if orthonormal else -1
        x = sign * (1 - 2 * np.clip(s / s.dtype.type(window), 0, 1))
        T = np.cos(counted(c) * np.arccos(x)[..., None])
        c = c * (roots(c) if orthonormal else 1)
        return (T @ c[..., None])[..., 0].astype(np.result_type(c, s))

    return cosines


for _p in (RECONSTRUCT_LEGS, LEGT, LMU):
    _p.plant(
        ("unscaled", "√(2i+1) forgotten, or put where there is none",
         {"c": lambda c: c / roots(c)}),
        ("scaled_twice", "√(2i+1) once more", {"c": lambda c: c * roots(c)}),
        ("backwards", "P_i(−x): the oldest taken for the newest",
         {"c": lambda c: c * (-1) ** counted(c)}),
        ("chebyshev", "Chebyshev polynomials", _chebyshev(orthonormal=_p is not LMU)),
    )  # fmt: skip
for _p in (LEGT, LMU, FOURIER):
    _p.plant(
        ("window_ignored", "window = 1", of_keywords(window=lambda w: 1.0)),
        ("window_squared", "s/w² for s/w", of_keywords(window=lambda w: w**2)),
        ("window_inverted", "s w for s/w", of_keywords(window=lambda w: 1 / w)),
    )
LAGT.plant(
    ("alpha_ignored", "α = 0", of_keywords(alpha=lambda alpha: 0.0)),
    ("beta_ignored", "β = 1", of_keywords(beta=lambda beta: 1.0)),
    ("alpha_sign", "−α for α", of_keywords(alpha=lambda alpha: -alpha)),
    ("weight_forgotten", "without s^α e^{−(1−β)s/2}", lambda right, c, s, *, alpha, beta:
     right(c, s, alpha=alpha, beta=beta)
     / (s**alpha * np.exp((beta - 1) / 2 * s)).astype(s.dtype)),
    ("weight_doubled", "e^{−(1−β)s} for e^{−(1−β)s/2}", lambda right, c, s, *, alpha, beta:
     right(c, s, alpha=alpha, beta=beta) * np.exp((beta - 1) / 2 * s).astype(s.dtype)),
    ("clipped", "s at most 10", {"s": lambda s: np.minimum(s, 10)}),
    ("alternating", "the signs of the other convention", {"c": lambda c: c * (-1) ** counted(c)}),
)  # fmt: skip
FOURIER.plant(
    ("unscaled", "without √2", {"c": lambda c: np.where(counted(c) > 1, c / 2**0.5, c)}),
    ("backwards", "−sin for sin: time forward",
     {"c": lambda c: c * np.where(counted(c) % 2, -1, 1)}),
    ("swapped", "sines before cosines", {"c": lambda c:
     c[..., np.minimum(np.arange(c.shape[-1]) ^ 1, c.shape[-1] - 1)]}),
    ("halves", "πk for 2πk", of_keywords(window=lambda w: 2 * w)),
    ("constant_scaled", "√2 c_0", {"c": lambda c: np.where(counted(c) == 0, c * 2**0.5, c)}),
    ("blocks", "all cosines, then all sines", {"c": lambda c:
     c[..., np.argsort(np.argsort(np.arange(c.shape[-1]) % 2, kind="stable"))]}),
)  # fmt: skip
FOURIER.plant(
    ("pi", "3.1416 for π", of_keywords(window=lambda w: w * (np.pi / 3.1416))), by="value[float64]"
)


def _of_rescaled(change):
    """The right A' and B', changed by a function of them and s."""
    return lambda right, A, B, s: change(*right(A, B, s), s)


def _rows_only(right, dA, dB, A, B, s):
    gA, gB, _ = right(dA, dB, A, B, s)
    ds = (dA * A.conj() / s[..., None, :].conj()).sum(-1) + dB * B.conj()
    return gA, gB, unbroadcast(ds, s)


RESCALE.plant(
    ("transposed", "A'ᵀ", of_result(lambda A, B: (A.mT.copy(), B))),
    ("input_forgotten", "B as it was", _of_rescaled(lambda A, B, s: (A, B / s))),
    ("input_inverted", "B/s", _of_rescaled(lambda A, B, s: (A, B / (s * s)))),
    ("rows_only", "diag(s) A", _of_rescaled(lambda A, B, s: (A * s[..., None, :], B))),
    ("columns_only", "A diag(s)⁻¹", _of_rescaled(lambda A, B, s: (A / s[..., :, None], B))),
    ("diagonal_scaled", "the diagonal too", _of_rescaled(lambda A, B, s:
     (np.where(np.eye(s.shape[-1], dtype=bool), A * s[..., None, :], A), B))),
    ("last_row", "the last row not written",
     of_result(lambda A, B: (without(A, np.s_[..., -1, :]), B))),
    ("inverse", "1/s for s", {"s": lambda s: 1 / s}),
    ("moduli", "|s| for s", {"s": lambda s: np.abs(s).astype(s.dtype)}),
    ("squared", "s² for s", {"s": lambda s: s * s}),
    ("beyond_32", "states beyond 32 not scaled",
     {"s": lambda s: np.where(np.arange(s.shape[-1]) < 32, s, 1).astype(s.dtype)}),
)  # fmt: skip
RESCALE.plant(
    ("conjugate", "s* for s", {"s": np.conj}),
    ("adjoint", "s_k* for 1/s_k: right for phases", lambda right, A, B, s:
     (s[..., :, None] * A * s.conj()[..., None, :], right(A, B, s)[1])),
    by="value[complex64]",
)  # fmt: skip
RESCALE.plant(
    ("transposed", "dAᵀ for dA", {"A": lambda g: g.mT.copy()}),
    ("sign", "−ds for ds", {"s": np.negative}),
    ("input_forgotten", "dB without s", lambda right, dA, dB, A, B, s:
     of_result(lambda gA, gB, gs: (gA, gB / s.conj(), gs))(right, dA, dB, A, B, s)),
    ("columns_ignored", "ds of the rows only", _rows_only),
    by="gradient",
)  # fmt: skip
RESCALE.plant(("as_jax", "dA* for dA", {"A": np.conj}), by="gradient[complex64]")
