"""Planted bugs in dense discretizations and their gradients."""

import numpy as np

from refssm._expm import expm
from refssm.conformance.planted.discretize import diagonal as discretize_diagonal
from refssm.conformance.planted.discretize import rules as discretize_rules
from refssm.conformance.planted.planting_old import Planting
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_ZOH


def step(dt):
    """dt as a factor of matrices."""
    return dt[..., None, None]


def identity(A):
    """I of A's size and precision."""
    return np.eye(A.shape[-1], dtype=np.finfo(A.dtype).dtype)


def transposed(A):
    """Aᵀ."""
    return A.swapaxes(-1, -2)


def resolvent(A, dt, share):
    """(I − share dt A)⁻¹."""
    return np.linalg.inv(identity(A) - A.dtype.type(share) * step(dt) * A)


def explicit(A, dt, share=1.0):
    """I + share dt A."""
    return identity(A) + A.dtype.type(share) * step(dt) * A


def taylor(A, dt, degree):
    """The exponential's polynomial, not scaled."""
    E = term = identity(A) + 0 * step(dt) * A
    for k in range(1, degree + 1):
        term = term @ (step(dt) * A) / A.real.dtype.type(k)
        E = E + term
    return E


def _plant_arguments(p: Planting) -> None:
    """Right formulas of wrong arguments, wrong in either rule."""
    right, wrong = p.right, p.forward
    wrong("transposed", "Aᵀ for A")(lambda A, B, dt: right(transposed(A), B, dt))
    wrong("sign", "−A for A")(lambda A, B, dt: right(-A, B, dt))
    wrong("half_step", "dt/2 for dt")(lambda A, B, dt: right(A, B, dt / 2))
    wrong("step_squared", "dt² for dt")(lambda A, B, dt: right(A, B, dt * dt))
    wrong("step_forgotten", "dt = 1")(lambda A, B, dt: right(A, B, 0 * dt + 1))
    wrong("first_step", "the first step for all")(
        lambda A, B, dt: right(A, B, np.broadcast_to(dt.ravel()[0], dt.shape))
    )
    wrong("conjugate", "A* for A", dtype="complex64")(lambda A, B, dt: right(A.conj(), B, dt))
    wrong("input_conjugate", "B* for B", dtype="complex64")(lambda A, B, dt: right(A, B.conj(), dt))
    wrong("real_part", "Re A for A", dtype="complex64")(
        lambda A, B, dt: right(A.real.astype(A.dtype), B, dt)
    )
    wrong("diagonal_only", "the diagonal of A")(lambda A, B, dt: right(A * identity(A), B, dt))
    wrong("clipped", "the diagonal of A clipped at −1e-2")(
        lambda A, B, dt: right(A - identity(A) * np.maximum(A.real + 1e-2, 0), B, dt)
    )
    wrong("upper_zeroed", "A taken as lower triangular")(lambda A, B, dt: right(np.tril(A), B, dt))


def _plant_results(p: Planting) -> None:
    """Wrong results of the right formula."""
    right, wrong = p.right, p.forward

    def of_result(name, what, first=lambda x: x, second=lambda x, dt: x):
        def result(A, B, dt):
            A_bar, B_bar = right(A, B, dt)
            return first(A_bar), second(B_bar, dt)

        wrong(name, what)(result)

    of_result("result_transposed", "Āᵀ for Ā", lambda x: transposed(x).copy())
    of_result("input_unscaled", "B̄/dt for B̄", second=lambda x, dt: x / step(dt))
    of_result("inputs_rolled", "the columns of B̄ rolled", second=lambda x, dt: np.roll(x, 1, -1))
    of_result("input_doubled", "2 B̄", second=lambda x, dt: 2 * x)
    of_result("identity_missing", "Ā − I", lambda x: x - np.eye(x.shape[-1], dtype=x.dtype))

    @wrong("swapped", "B̄ before Ā")
    def _(A, B, dt):
        return right(A, B, dt)[::-1]

    @wrong("input_held_back", "B̄ = Ā times what it should be")
    def _(A, B, dt):
        A_bar, B_bar = right(A, B, dt)
        return A_bar, A_bar @ B_bar

    @wrong("last_state", "the last row not written")
    def _(A, B, dt):
        A_bar, B_bar = (x.copy() for x in right(A, B, dt))
        A_bar[..., -1, :] = 0
        return A_bar, B_bar

    @wrong("beyond_64", "rows beyond 64 not written")
    def _(A, B, dt):
        A_bar, B_bar = (x.copy() for x in right(A, B, dt))
        B_bar[..., 64:, :] = 0
        return A_bar, B_bar


def _plant_rules(p: Planting, rules) -> None:
    """Other rules of discretization in place of this one: (Ā, B̄) from A, B and dt."""
    for name, (what, A_bar, held) in rules.items():
        p.forward(name, what)(
            lambda A, B, dt, A_bar=A_bar, held=held: (A_bar(A, dt), step(dt) * (held(A, dt) @ B))
        )


def exact(A, dt):
    """e^{dt A}."""
    return expm(step(dt) * A)


def averaged(A, dt):
    """φ₁(dt A)."""
    return DISCRETIZE_ZOH.reference(A, identity(A), dt)[1] / step(dt)


def mapped(A, dt):
    """(I − ½dt A)⁻¹ (I + ½dt A)."""
    return resolvent(A, dt, 0.5) @ explicit(A, dt, 0.5)


def textbook(A, dt):
    """A⁻¹ (e^{dt A} − I)/dt: no inverse where A is singular."""
    return np.linalg.solve(A, exact(A, dt) - identity(A)) / step(dt)


def regularized(A, dt):
    """The same with 1e-6 added to the diagonal of A."""
    return np.linalg.solve(
        A + identity(A) * A.real.dtype.type(1e-6), exact(A, dt) - identity(A)
    ) / step(dt)


ZOH_RULES = {
    "euler_input": ("Euler for ZOH: B̄ = dt B", exact, lambda A, dt: explicit(A, 0 * dt)),
    "euler": ("Euler for ZOH", explicit, lambda A, dt: explicit(A, 0 * dt)),
    "bilinear": ("the bilinear map for ZOH", mapped, lambda A, dt: resolvent(A, dt, 0.5)),
    "backward": ("backward Euler for ZOH", *([lambda A, dt: resolvent(A, dt, 1)] * 2)),
    "trapezoid": ("½ (I + Ā) dt B", exact, lambda A, dt: (exact(A, dt) + identity(A)) / 2),
    "midpoint": ("e^{½dt A} dt B", exact, lambda A, dt: exact(A, dt / 2)),
    "textbook": ("A⁻¹ (Ā − I) B: A = 0 has no inverse", exact, textbook),
    "regularized": ("A⁻¹ (Ā − I) B with A + 1e-6 I", exact, regularized),
    "elementwise": ("the exponential of each entry", lambda A, dt: np.exp(step(dt) * A), averaged),
    "cubic": ("a Taylor polynomial of degree 3", lambda A, dt: taylor(A, dt, 3), averaged),
    "unscaled": ("a Taylor polynomial without scaling", lambda A, dt: taylor(A, dt, 12), averaged),
    "first_order_hold": ("φ₁ to first order", exact, lambda A, dt: explicit(A, dt, 0.5)),
    "inverse_time": ("e^{−dt A}", lambda A, dt: exact(-A, dt), averaged),
}
BILINEAR_RULES = {
    "zoh": ("ZOH for the bilinear map", exact, averaged),
    "euler": ("Euler for the bilinear map", explicit, lambda A, dt: explicit(A, 0 * dt)),
    "backward": ("backward Euler", *([lambda A, dt: resolvent(A, dt, 1)] * 2)),
    "inverted": (
        "the map's sign: (I − ½dt A)/(I + ½dt A)",
        lambda A, dt: np.linalg.pinv(explicit(A, dt, 0.5)) @ explicit(A, dt, -0.5),
        lambda A, dt: np.linalg.pinv(explicit(A, dt, 0.5)),
    ),
    "half_forgotten": (
        "dt A for ½dt A",
        lambda A, dt: resolvent(A, dt, 1) @ explicit(A, dt),
        lambda A, dt: resolvent(A, dt, 1),
    ),
    "input_half": ("½dt B for dt B", mapped, lambda A, dt: resolvent(A, dt, 0.5) / 2),
    "input_unsolved": ("B̄ = dt B", mapped, lambda A, dt: explicit(A, 0 * dt)),
    "input_of_backward": ("B̄ of backward Euler", mapped, lambda A, dt: resolvent(A, dt, 1)),
    "input_twice": (
        "the resolvent applied to B twice",
        mapped,
        lambda A, dt: resolvent(A, dt, 0.5) @ resolvent(A, dt, 0.5),
    ),
    "neumann": (
        "the resolvent to second order",
        lambda A, dt: (explicit(A, dt, 0.5) + _square(A, dt)) @ explicit(A, dt, 0.5),
        lambda A, dt: resolvent(A, dt, 0.5),
    ),
    "tustin_root": (
        "√dt B for dt B",
        mapped,
        lambda A, dt: resolvent(A, dt, 0.5) / np.sqrt(step(dt)),
    ),
}


def _square(A, dt):
    return (step(dt) * A / 2) @ (step(dt) * A / 2)


def _plant_gradients(p: Planting) -> None:
    vjp = p.right_vjp

    changed = p.changed_gradient
    changed("transposed", "dAᵀ for dA", A=lambda g, dt: transposed(g).copy())
    changed("step_forgotten", "dA without the factor dt", A=lambda g, dt: g / step(dt))
    changed("input_step_forgotten", "dB without the factor dt", B=lambda g, dt: g / step(dt))
    changed("step_scaled", "ddt times dt", dt=lambda g, dt: g * dt)
    changed("step_missing", "no gradient of dt", dt=lambda g, dt: 0 * g)
    changed("conjugate", "dA* for dA", "complex64", A=lambda g, dt: g.conj())

    @p.gradient("input_ignored", "dA and ddt without what passes through B̄")
    def _(dA_bar, dB_bar, A, B, dt):
        a, _, t = vjp(dA_bar, 0 * dB_bar, A, B, dt)
        return a, vjp(dA_bar, dB_bar, A, B, dt)[1], t

    @p.gradient("state_ignored", "dA and ddt without what passes through Ā")
    def _(dA_bar, dB_bar, A, B, dt):
        return vjp(0 * dA_bar, dB_bar, A, B, dt)

    @p.gradient("not_adjoint", "A for Aᴴ in the backward pass")
    def _(dA_bar, dB_bar, A, B, dt):
        return vjp(dA_bar, dB_bar, transposed(A).conj(), B, dt)

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(dA_bar, dB_bar, A, B, dt):
        a, b, t = vjp(dA_bar, dB_bar, A, B, dt)
        return a.conj(), b.conj(), t


ZOH, BILINEAR = Planting(DISCRETIZE_ZOH, "float32"), Planting(DISCRETIZE_BILINEAR, "float32")
for _p, _rules in ((ZOH, ZOH_RULES), (BILINEAR, BILINEAR_RULES)):
    _p.usual()
    _plant_arguments(_p)
    _plant_results(_p)
    _plant_rules(_p, _rules)
    _plant_gradients(_p)

DEVIATIONS = [
    *ZOH.bugs,
    *BILINEAR.bugs,
    *discretize_diagonal.DEVIATIONS,
    *discretize_rules.DEVIATIONS,
]
