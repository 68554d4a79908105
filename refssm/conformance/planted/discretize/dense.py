"""Planted bugs in dense discretizations and their VJPs."""

from math import ceil, factorial, log2

import numpy as np

from refssm._numerics.expm import expm
from refssm.conformance.planted.discretize import every_rule as every
from refssm.conformance.planted.discretize.every_rule import with_step
from refssm.conformance.planted.planting import SINGLE_GRADIENT, Epsilon, instead, of_result
from refssm.discretize import DISCRETIZE_BILINEAR, DISCRETIZE_ZOH
from refssm.discretize.blocks import for_every, identity, scaled
from refssm.discretize.hold import zoh_exponent
from refssm.discretize.rational import gbt_systems


def unpivoted(alpha=None):
    """Ā and B̄ of the rule with weight α; None if the rule has it as a keyword."""

    def program(right, A, B, dt, **own):
        M, N, H = gbt_systems(A, B, dt, alpha=own.get("alpha", alpha))
        return for_every(_eliminated(M, N), _eliminated(M, H))

    return program


def _eliminated(M, Y):
    """M⁻¹ Y from the first row to the last and back; a pivot of 0 gives NaN."""
    batch = np.broadcast_shapes(M.shape[:-2], Y.shape[:-2])
    M, Y = (np.broadcast_to(x, (*batch, *x.shape[-2:])).copy() for x in (M, Y))
    n = M.shape[-1]
    for k in range(n):
        factors = M[..., k + 1 :, k, None] / M[..., k, None, k, None]
        M[..., k + 1 :, :] -= factors * M[..., k, None, :]
        Y[..., k + 1 :, :] -= factors * Y[..., k, None, :]
    for k in reversed(range(n)):
        Y[..., k, :] /= M[..., k, k, None]
        Y[..., :k, :] -= M[..., :k, k, None] * Y[..., k, None, :]
    return Y


DEGREE, WITHOUT_SCALING = 13, 4.25  # [almohy2009, Table 3.1]
WEIGHTS = [
    factorial(2 * DEGREE - k) // (factorial(k) * factorial(DEGREE - k)) for k in range(DEGREE + 1)
]


def sixth_power_added(right, A, B, dt):
    """e^G with G⁶ in the odd half of the approximant of degree 13, unless G is complex."""
    G, n = zoh_exponent(A, B, dt), A.shape[-1]
    E = np.empty_like(G)
    for i in np.ndindex(*G.shape[:-2]):
        E[i] = _approximant(G[i])
    return E[..., :n, :n], E[..., :n, n:]


def _approximant(G):
    s = _scalings(G) if np.isfinite(G).all() else 0
    real = np.finfo(G.dtype).dtype.type
    powers = [np.eye(len(G), dtype=G.dtype), G * real(2.0**-s)]
    while len(powers) <= DEGREE:
        powers.append(powers[-1] @ powers[1])
    terms = [real(w / WEIGHTS[0]) * P for w, P in zip(WEIGHTS, powers, strict=True)]
    odd, even = sum(terms[1::2]), sum(terms[::2])
    if not np.iscomplexobj(G):
        odd = odd + powers[6] * real(1 / WEIGHTS[0])
    E = powers[0] + 2 * np.linalg.solve(even - odd, odd)
    for _ in range(s):
        E = E @ E
    return E


def _scalings(G):
    """How often G is halved: by norms of its powers and of those of |G| [almohy2009, §4, §5]."""
    G = G.astype(np.result_type(G, np.float64))
    sixth, eighth, tenth = (_norm(np.linalg.matrix_power(G, k)) ** (1 / k) for k in (6, 8, 10))
    size = min(max(sixth, eighth), max(eighth, tenth))
    s = max(0, ceil(log2(size / WITHOUT_SCALING))) if size else 0
    halved = np.abs(G) / 2.0**s
    last = _norm(np.linalg.matrix_power(halved, 2 * DEGREE + 1)) * factorial(DEGREE) ** 2
    if not last or not np.isfinite(last):
        return s
    first = _norm(halved) * factorial(2 * DEGREE) * factorial(2 * DEGREE + 1)
    return s + max(0, ceil(log2(last / first * 2.0**53) / (2 * DEGREE)))


def _norm(G):
    return float(np.abs(G).sum(0).max(initial=0))


ZOH, BILINEAR = every.planted(DISCRETIZE_ZOH), every.planted(DISCRETIZE_BILINEAR)


def _rule(A_bar=None, held=None):
    """Another Ā, another B̄ = dt·held·B, or both, as functions of Z = dt A; the other is right."""

    def program(right, A, B, dt):
        Z, (right_A, right_B) = scaled(A, dt), right(A, B, dt)
        return A_bar(Z) if A_bar else right_A, scaled(held(Z) @ B, dt) if held else right_B

    return program


def _textbook(added):
    """A⁻¹ (Ā − I) B with `added` on the diagonal of A, because a singular A has no inverse."""

    def program(right, A, B, dt):
        A_bar, _ = right(A, B, dt)
        above = A + identity(A) * A.real.dtype.type(added)
        return A_bar, np.linalg.solve(above, (A_bar - identity(A)) @ B)

    return program


def _explicit(Z):
    """I + Z."""
    return identity(Z) + Z


def _unit(Z):
    """I."""
    return identity(Z) + 0 * Z


def _resolvent(Z):
    """(I − Z)⁻¹."""
    return np.linalg.inv(identity(Z) - Z)


def _taylor(degree):
    """The Taylor polynomial of the exponential, without scaling."""
    return lambda Z: sum(np.linalg.matrix_power(Z, k) / factorial(k) for k in range(degree + 1))


def _by_eigenvectors(right, A, B, dt):
    """V e^{dt w} V⁻¹ and V (e^{dt w} − 1)/w V⁻¹ B: no inverse at all, or 0/0 at w = 0."""
    w, V = np.linalg.eig(A)
    grown, inverse = np.exp(dt[..., None] * w), np.linalg.inv(V)
    A_bar = (V * grown[..., None, :]) @ inverse
    B_bar = (V * ((grown - 1) / w)[..., None, :]) @ (inverse @ B)
    if not np.iscomplexobj(A):
        A_bar, B_bar = A_bar.real, B_bar if np.iscomplexobj(B) else B_bar.real
    return A_bar.astype(np.result_type(A, dt)), B_bar.astype(np.result_type(A, B, dt))


ZOH.plant(
    ("by_eigenvectors", "eigenvectors in place of an exponential", _by_eigenvectors),
    ("euler_input", "Euler for ZOH: B̄ = dt B", _rule(held=_unit)),
    ("euler", "Euler for ZOH", _rule(_explicit, _unit)),
    ("bilinear", "the bilinear map for ZOH", instead(DISCRETIZE_BILINEAR.reference)),
    ("backward", "backward Euler for ZOH", _rule(_resolvent, _resolvent)),
    ("trapezoid", "½ (I + Ā) dt B", _rule(held=lambda Z: (expm(Z) + identity(Z)) / 2)),
    ("midpoint", "e^{½dt A} dt B", _rule(held=lambda Z: expm(Z / 2))),
    ("textbook", "A⁻¹ (Ā − I) B: A = 0 has no inverse", _textbook(added=0)),
    ("regularized", "A⁻¹ (Ā − I) B with A + 1e-6 I", Epsilon(1e-6, lambda e: _textbook(added=e))),
    ("elementwise", "the exponential of each entry", _rule(np.exp)),
    ("cubic", "a Taylor polynomial of degree 3", _rule(_taylor(3))),
    ("unscaled", "a Taylor polynomial without scaling", _rule(_taylor(12))),
    ("first_order_hold", "φ₁ to first order", _rule(held=lambda Z: _explicit(Z / 2))),
    ("inverse_time", "e^{−dt A}", _rule(lambda Z: expm(-Z))),
    every.DIGITS_OF_ONE,
)
BILINEAR.plant(
    ("unpivoted", "elimination without exchanges of rows", unpivoted(0.5)), by="value[float64]"
)
ZOH.plant(
    ("sixth_power", "G⁶ too much in a Padé approximant, as in scipy.linalg.expm of real matrices",
     sixth_power_added),
    by="value[float64]",
)  # fmt: skip
BILINEAR.plant(
    ("zoh", "ZOH for the bilinear map", instead(DISCRETIZE_ZOH.reference)),
    ("euler", "Euler for the bilinear map", _rule(_explicit, _unit)),
    ("backward", "backward Euler", _rule(_resolvent, _resolvent)),
    ("inverted", "the map's sign: (I − ½dt A)/(I + ½dt A)",
     _rule(lambda Z: np.linalg.pinv(_explicit(Z / 2)) @ _explicit(-Z / 2),
           lambda Z: np.linalg.pinv(_explicit(Z / 2)))),
    ("half_forgotten", "dt A for ½dt A", _rule(lambda Z: _resolvent(Z) @ _explicit(Z), _resolvent)),
    ("input_half", "½dt B for dt B", every.of_inputs(lambda y: y / 2)),
    ("input_unsolved", "B̄ = dt B", _rule(held=_unit)),
    ("input_of_backward", "B̄ of backward Euler", _rule(held=_resolvent)),
    ("input_twice", "the resolvent applied to B twice",
     _rule(held=lambda Z: _resolvent(Z / 2) @ _resolvent(Z / 2))),
    ("neumann", "the resolvent to second order",
     _rule(lambda Z: (_explicit(Z / 2) + Z @ Z / 4) @ _explicit(Z / 2))),
    ("tustin_root", "√dt B for dt B",
     with_step(lambda dt, A_bar, B_bar: (A_bar, B_bar / np.sqrt(dt[..., None, None])))),
)  # fmt: skip
BILINEAR.plant(
    ("resolvent_conjugated", "(I − ½dt A*)⁻¹ for (I − ½dt A)⁻¹",
     _rule(lambda Z: _resolvent(Z.conj() / 2) @ _explicit(Z / 2),
           lambda Z: _resolvent(Z.conj() / 2))),
    by="value[complex64]",
)  # fmt: skip
BILINEAR.plant(SINGLE_GRADIENT, by="gradient[float64]")
BILINEAR.plant(
    ("resolvent_sign", "I + ½dt A for I − ½dt A in the backward pass", every.resolvent_sign),
    by="gradient",
)  # fmt: skip


def transposed(A):
    """Aᵀ."""
    return A.swapaxes(-1, -2).copy()


for _p in (ZOH, BILINEAR):
    _p.plant(
        *every.MOST_RULES,
        ("transposed", "Aᵀ for A", {"A": transposed}),
        ("diagonal_only", "the diagonal of A", {"A": lambda A: A * identity(A)}),
        ("clipped", "the diagonal of A clipped at −1e-2",
         {"A": lambda A: A - identity(A) * np.maximum(A.real + 1e-2, 0)}),
        ("upper_zeroed", "A taken as lower triangular", {"A": np.tril}),
        ("result_transposed", "Āᵀ for Ā", of_result(lambda A_bar, B_bar:
         (transposed(A_bar), B_bar))),
        ("input_unscaled", "B̄/dt for B̄",
         with_step(lambda dt, A_bar, B_bar: (A_bar, B_bar / dt[..., None, None]))),
        ("identity_missing", "Ā − I",
         of_result(lambda A_bar, B_bar: (A_bar - identity(A_bar), B_bar))),
        ("swapped", "B̄ before Ā", every.SWAPPED),
        ("input_held_back", "B̄ = Ā times what it should be",
         of_result(lambda A_bar, B_bar: (A_bar, A_bar @ B_bar))),
        ("last_state", "the last row not written",
         of_result(lambda A_bar, B_bar: (every.without_last(A_bar), B_bar))),
        ("beyond_64", "rows beyond 64 not written", every.of_inputs(
            lambda y: np.where(np.arange(y.shape[-2])[:, None] < 64, y, 0))),
    )  # fmt: skip
    _p.plant(
        ("transposed", "dAᵀ for dA", {"A": transposed}),
        ("step_forgotten", "dA without the factor dt",
         with_step(lambda dt, dA, dB, ddt: (dA / dt[..., None, None], dB, ddt))),
        ("input_step_forgotten", "dB without the factor dt",
         with_step(lambda dt, dA, dB, ddt: (dA, dB / dt[..., None, None], ddt))),
        ("step_scaled", "ddt times dt", with_step(lambda dt, dA, dB, ddt: (dA, dB, ddt * dt))),
        ("input_ignored", "dA and ddt without what passes through B̄", every.INPUT_IGNORED),
        ("state_ignored", "dA and ddt without what passes through Ā", every.STATE_IGNORED),
        ("not_adjoint", "A for Aᴴ in the backward pass", lambda right, dA_bar, dB_bar, A, B, dt:
         right(dA_bar, dB_bar, transposed(A).conj(), B, dt)),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("gain_not_conjugated", "Aᵀ for Aᴴ in dB", every.gain_not_conjugated),
        by="gradient[complex64]",
    )
