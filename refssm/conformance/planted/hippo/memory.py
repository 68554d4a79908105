"""Planted bugs in projections onto a memory, for any system and for LegS."""

import numpy as np

from refssm.conformance.planted.hippo.making import without
from refssm.conformance.planted.planting import Planting, of_result
from refssm.discretize import DISCRETIZE_BACKWARD, DISCRETIZE_BILINEAR, DISCRETIZE_EULER
from refssm.discretize import DISCRETIZE_ZOH as ZOH
from refssm.hippo import HIPPO_LEGS, HIPPO_PROJECT, HIPPO_PROJECT_LEGS
from refssm.scan import DENSE_SCAN

ANY, LEGS = PLANTINGS = [Planting(op, "float32") for op in (HIPPO_PROJECT, HIPPO_PROJECT_LEGS)]
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
