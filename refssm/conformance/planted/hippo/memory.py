"""Planted bugs in what a memory holds: projections of any system and of LegS."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.discretize import DISCRETIZE_BACKWARD, DISCRETIZE_BILINEAR, DISCRETIZE_EULER
from refssm.discretize import DISCRETIZE_ZOH as ZOH
from refssm.hippo import HIPPO_PROJECT, HIPPO_PROJECT_LEGS
from refssm.scan import DENSE_SCAN


def legs(n, real):
    """LegS's A and B."""
    i = np.arange(n)
    B = np.sqrt(2 * i + 1.0)
    return (-np.tril(np.outer(B, B), -1) - np.diag(i + 1.0)).astype(real), B.astype(real)


def by_rule(op, shift=0):
    """LegS's ODE by a rule of discretization with dt = 1/(k + 1 + shift)."""

    def project(u, *, n):
        A, B = legs(n, np.finfo(u.dtype).dtype)
        c, state = np.zeros((*u.shape, n), u.dtype), np.zeros((*u.shape[:-1], n), u.dtype)
        for k in range(u.shape[-1]):
            dt = np.asarray(1 / (k + 1 + shift), B.dtype)
            A_bar, B_bar = op.reference(A, B[:, None], dt)
            state = state @ A_bar.T + u[..., k, None] * B_bar[:, 0]
            c[..., k, :] = state
        return c

    return project


def _plant_any(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("transposed", "Aᵀ for A")(lambda A, B, u, dt: right(A.mT, B, u, dt))
    wrong("sign", "−A for A")(lambda A, B, u, dt: right(-A, B, u, dt))
    wrong("half_step", "dt/2 for dt")(lambda A, B, u, dt: right(A, B, u, dt / 2))
    wrong("step_forgotten", "dt = 1")(lambda A, B, u, dt: right(A, B, u, 0 * dt + 1))
    wrong("reversed", "the signal from its end")(lambda A, B, u, dt: right(A, B, u[..., ::-1], dt))
    wrong("conjugate", "A* for A", dtype="complex64")(lambda A, B, u, dt: right(A.conj(), B, u, dt))
    wrong("input_conjugate", "u* for u", dtype="complex64")(
        lambda A, B, u, dt: right(A, B, u.conj(), dt)
    )
    wrong("late", "u_{k−1} for u_k: the shifted recurrence")(
        lambda A, B, u, dt: right(A, B, np.concatenate([0 * u[..., :1], u[..., :-1]], -1), dt)
    )
    wrong("first_twice", "x_0 = B̄ u_0 + Ā B̄ u_0")(
        lambda A, B, u, dt: _doubled_start(right, A, B, u, dt)
    )
    wrong("last_state", "the last state not written")(
        lambda A, B, u, dt: _without(right(A, B, u, dt), (..., slice(-1, None)))
    )
    wrong("beyond_64", "nothing written after 64 steps")(
        lambda A, B, u, dt: _without(right(A, B, u, dt), (..., slice(64, None), slice(None)))
    )
    wrong("restarted", "the state lost every 32 steps")(
        lambda A, B, u, dt: np.concatenate(
            [right(A, B, u[..., j : j + 32], dt) for j in range(0, u.shape[-1], 32)], -2
        )
    )
    rules = {
        "euler": DISCRETIZE_EULER,
        "bilinear": DISCRETIZE_BILINEAR,
        "backward": DISCRETIZE_BACKWARD,
    }
    for name, op in rules.items():
        wrong(name, f"the rule {name} for zero-order hold")(
            lambda A, B, u, dt, op=op: _run(*op.reference(A, B[..., None], dt), u)
        )

    @wrong("mamba", "B̄ = dt B")
    def _(A, B, u, dt):
        A_bar = ZOH.reference(A, B[..., None], dt)[0]
        return _run(A_bar, (dt[..., None] * B)[..., None], u)

    @wrong("input_unscaled", "B̄ = B")
    def _(A, B, u, dt):
        return _run(ZOH.reference(A, B[..., None], dt)[0], B[..., None], u)


def _run(A_bar, B_bar, u):
    return DENSE_SCAN.reference(A_bar, B_bar[..., None, :, 0] * u[..., None])


def _doubled_start(right, A, B, u, dt):
    before = right(A, B, np.concatenate([u[..., :1], u], -1), dt)
    return before[..., 1:, :].copy()


def _without(y, place):
    y = y.copy()
    y[place] = 0
    return y


def _plant_any_gradients(p: Planting) -> None:
    vjp, changed = p.right_vjp, p.changed_gradient
    changed("transposed", "dAᵀ for dA", A=lambda g, dt: g.mT.copy())
    changed("step_missing", "no gradient of dt", dt=lambda g, dt: 0 * g)
    changed("input_missing", "no gradient of B", B=lambda g, dt: 0 * g)
    changed("reversed", "du from its end", u=lambda g, dt: g[..., ::-1].copy())
    changed("as_jax", "dA* for dA", "complex64", A=lambda g, dt: g.conj())

    @p.gradient("not_adjoint", "A for Aᴴ in the backward pass")
    def _(dx, A, B, u, dt):
        return vjp(dx, A.mT.conj().copy(), B, u, dt)

    @p.gradient("truncated", "the adjoint forgets what is more than 16 steps ahead")
    def _(dx, A, B, u, dt):
        near = dx.copy()
        near[..., :-16, :] = 0
        return vjp(near, A, B, u, dt)


def _plant_legs(p: Planting) -> None:
    right, wrong = p.right, p.forward
    wrong("held_at_next", "A/(k+1) held over a step: dt = 1/(k + 1)")(by_rule(ZOH))
    wrong("bilinear", "the bilinear map with dt = 1/(k + 1)")(by_rule(DISCRETIZE_BILINEAR))
    wrong("euler", "Euler with dt = 1/(k + 1)")(by_rule(DISCRETIZE_EULER))
    wrong("backward", "backward Euler with dt = 1/(k + 1)")(by_rule(DISCRETIZE_BACKWARD))
    wrong("one_later", "t = k + 2 for t = k + 1")(by_rule(ZOH, 1))
    wrong("unscaled", "the factor √(2i+1) left out")(lambda u, *, n: right(u, n=n) / _roots(u, n))
    wrong("squared", "(2i+1) for √(2i+1)")(lambda u, *, n: right(u, n=n) * _roots(u, n))
    wrong("alternating", "the signs of LMU")(
        lambda u, *, n: right(u, n=n) * (-1.0) ** np.arange(n).astype(_real(u))
    )
    wrong("reversed", "the signal from its end")(lambda u, *, n: right(u[..., ::-1], n=n))
    wrong("late", "u_{k−1} for u_k")(
        lambda u, *, n: right(np.concatenate([0 * u[..., :1], u[..., :-1]], -1), n=n)
    )
    wrong("started_by_b", "c_0 = B u_0: the start taken for a step")(
        lambda u, *, n: _started_by_b(right, u, n)
    )
    wrong("summed", "the integral not divided by the time")(
        lambda u, *, n: right(u, n=n) * np.arange(1, u.shape[-1] + 1, dtype=_real(u))[:, None]
    )
    wrong("sampled", "a sum over samples for the integral")(_sampled)
    wrong("only_last", "the whole signal's coefficients at every step")(
        lambda u, *, n: np.broadcast_to(right(u, n=n)[..., -1:, :], (*u.shape, n)).copy()
    )
    wrong("last_coefficient", "the last coefficient not written")(
        lambda u, *, n: _without(right(u, n=n), (..., slice(-1, None)))
    )
    wrong("conjugate", "u* for u", dtype="complex64")(lambda u, *, n: right(u.conj(), n=n))
    wrong("beyond_32", "nothing written after 32 steps")(
        lambda u, *, n: _without(right(u, n=n), (..., slice(32, None), slice(None)))
    )
    vjp = p.right_vjp
    p.gradient("sign", "−du for du")(lambda dc, u, *, n: (-vjp(dc, u, n=n)[0],))
    p.gradient("last_only", "only the last state's cotangent")(
        lambda dc, u, *, n: vjp(_without(dc, (..., slice(0, -1), slice(None))), u, n=n)
    )
    p.gradient("shifted", "du a step late")(
        lambda dc, u, *, n: (np.roll(vjp(dc, u, n=n)[0], 1, axis=-1),)
    )
    p.gradient("unscaled", "the factor √(2i+1) left out")(
        lambda dc, u, *, n: vjp(dc / _roots(u, n), u, n=n)
    )
    p.gradient("as_jax", "the conjugate convention", "complex64")(
        lambda dc, u, *, n: (vjp(dc, u, n=n)[0].conj(),)
    )


def _real(u):
    return np.finfo(u.dtype).dtype


def _roots(u, n):
    return np.sqrt(2 * np.arange(n, dtype=_real(u)) + 1)


def _started_by_b(right, u, n):
    c = right(u, n=n)
    c[..., 0, :] = u[..., :1] * _roots(u, n)
    return c


def _sampled(u, *, n):
    c = np.zeros((*u.shape, n), u.dtype)
    for k in range(u.shape[-1]):
        x = 2 * (np.arange(k + 1) + 1) / (k + 1) - 1
        P = np.polynomial.legendre.legvander(x, max(n - 1, 0))[:, :n] * _roots(u, n)
        c[..., k, :] = u[..., : k + 1] @ (P / (k + 1)).astype(_real(u))
    return c


ANY, LEGS = Planting(HIPPO_PROJECT, "float32"), Planting(HIPPO_PROJECT_LEGS, "float32")
for _p in (ANY, LEGS):
    _p.usual()
_plant_any(ANY)
_plant_any_gradients(ANY)
_plant_legs(LEGS)
# its result is larger than its only argument, whose memory cannot hold it
DEVIATIONS = [*ANY.bugs, *(bug for bug in LEGS.bugs if bug.name != "returns_input")]
