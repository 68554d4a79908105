"""Mirrors of refssm.discretize in plain array code: matrix products and elementwise formulas.

Nothing is read back from the card. Diagonal rules are a pass over n numbers; a rule of a matrix is
a solve, or about 40 matrix products for an exponential.
"""

from refssm.discretize import (
    DISCRETIZE_BACKWARD,
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_BACKWARD,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_EULER,
    DISCRETIZE_DIAGONAL_FOH,
    DISCRETIZE_DIAGONAL_GBT,
    DISCRETIZE_DIAGONAL_IMPULSE,
    DISCRETIZE_DIAGONAL_MAMBA,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_EULER,
    DISCRETIZE_FOH,
    DISCRETIZE_GBT,
    DISCRETIZE_IMPULSE,
    DISCRETIZE_MAMBA,
    DISCRETIZE_ZOH,
)
from refssm_gpu._algebra.exponential import (
    exponential,
    exponential_derivative,
    exponential_held,
    exponentials,
)
from refssm_gpu._algebra.parts import above, adjoint, conj, for_every, identity, joined, solve
from refssm_gpu._launching.arrays import Array, is_complex, namespace, real_type, unbroadcast
from refssm_gpu._launching.checked import mirror

# Holds: e^{dt A}, and φ₁ and φ₂ applied to dt B only, not to I
#
# The reference exponentiates a block matrix of twice or three times the size; here H = dt B has m
# columns, and a squaring is one product of n × n matrices and a thin one, two for the first-order
# hold. See `exponentials` for the number of products and the largest norm, 2³¹.


@mirror(DISCRETIZE_ZOH)
def discretize_zoh(A, B, dt):
    return for_every(*exponential_held(scaled(A, dt), scaled(B, dt)))


@mirror(DISCRETIZE_ZOH)
def discretize_zoh_vjp(dA_bar, dB_bar, A, B, dt):
    n, G = A.shape[-1], adjoint(above(scaled(A, dt), scaled(B, dt)))
    dG = exponential_derivative(G, joined(dA_bar, dB_bar, axis=-1))
    return _through_steps(dG[..., :n], dG[..., n:], A, B, dt)


@mirror(DISCRETIZE_FOH)
def discretize_foh(A, B, dt):
    A_bar, held, ramp = exponentials(scaled(A, dt), scaled(B, dt))
    return for_every(A_bar, ramp, held - ramp)


@mirror(DISCRETIZE_FOH)
def discretize_foh_vjp(dA_bar, dB0_bar, dB1_bar, A, B, dt):
    n, m = B.shape[-2:]
    G = adjoint(_held_twice(scaled(A, dt), scaled(B, dt)))
    dG = exponential_derivative(G, joined(dA_bar, dB1_bar, dB0_bar - dB1_bar, axis=-1))
    return _through_steps(dG[..., :n], dG[..., n : n + m], A, B, dt)


def _held_twice(F: Array, H: Array) -> Array:
    """[[F, H, 0], [0, 0, I], [0, 0, 0]]; leading axes broadcast."""
    xp, (n, m) = namespace(F, H), H.shape[-2:]
    place = xp.arange(n + 2 * m)
    held = (place >= n) & (place < n + m)
    ahead = xp.eye(n + 2 * m, k=m, dtype=real_type(F.dtype, xp))
    return above(F, H, xp.zeros_like(H)) + xp.where(held[:, None], ahead, 0.0)


@mirror(DISCRETIZE_IMPULSE)
def discretize_impulse(A, B, dt):
    return for_every(exponential(scaled(A, dt)), namespace(B).asarray(B, copy=True))


@mirror(DISCRETIZE_IMPULSE)
def discretize_impulse_vjp(dA_bar, dB_bar, A, B, dt):
    xp = namespace(A)
    dF = exponential_derivative(adjoint(scaled(A, dt)), dA_bar)
    ddt = xp.sum(conj(A) * dF, axis=(-2, -1))
    dB = unbroadcast(xp.asarray(dB_bar, copy=True), B)
    return unbroadcast(scaled(dF, dt), A), dB, unbroadcast(ddt, dt)


@mirror(DISCRETIZE_MAMBA)
def discretize_mamba(A, B, dt):
    return for_every(exponential(scaled(A, dt)), scaled(B, dt))


@mirror(DISCRETIZE_MAMBA)
def discretize_mamba_vjp(dA_bar, dB_bar, A, B, dt):
    dF = exponential_derivative(adjoint(scaled(A, dt)), dA_bar)
    return _through_steps(dF, dB_bar, A, B, dt)


# Rational rules: batches of solves by cuBLAS
#
# A singular matrix gives infinity or NaN instead of an error: the card is not asked for its
# verdict.


@mirror(DISCRETIZE_GBT)
def discretize_gbt(A, B, dt, *, alpha):
    """Infinity or NaN where 1/(α dt) is an eigenvalue of A."""
    return _solved(A, B, dt, alpha)


@mirror(DISCRETIZE_GBT)
def discretize_gbt_vjp(dA_bar, dB_bar, A, B, dt, *, alpha):
    return _solved_back(dA_bar, dB_bar, A, B, dt, alpha)


def _solved(A, B, dt, alpha):
    """Ā and B̄ for weight `alpha`."""
    M, N, H = _systems(A, B, dt, alpha)
    return for_every(solve(M, N), solve(M, H))


def _systems(A: Array, B: Array, dt: Array, alpha: float) -> tuple[Array, Array, Array]:
    """M = I − α dt A, M Ā = I + (1 − α) dt A, and M B̄ = dt B."""
    F, I = scaled(A, dt), identity(A)
    return I - alpha * F, _weighted(I, 1 - alpha, F), scaled(B, dt)


def _weighted(I: Array, weight: float, F: Array) -> Array:
    """I + weight·F; I alone for the weight 0, though F may be infinite."""
    return I + weight * F if weight else I + namespace(F).zeros_like(F)


def _solved_back(dA_bar, dB_bar, A, B, dt, alpha):
    """The gradients of `_solved`."""
    M, N, H = _systems(A, B, dt, alpha)
    A_bar, B_bar = solve(M, N), solve(M, H)
    S, T = solve(adjoint(M), dA_bar), solve(adjoint(M), dB_bar)
    shares = (1 - alpha) * identity(A) + alpha * A_bar
    return _through_steps(S @ adjoint(shares) + alpha * (T @ adjoint(B_bar)), T, A, B, dt)


@mirror(DISCRETIZE_EULER)
def discretize_euler(A, B, dt):
    return for_every(identity(A) + scaled(A, dt), scaled(B, dt))


@mirror(DISCRETIZE_EULER)
def discretize_euler_vjp(dA_bar, dB_bar, A, B, dt):
    return _through_steps(dA_bar, dB_bar, A, B, dt)


@mirror(DISCRETIZE_BILINEAR)
def discretize_bilinear(A, B, dt):
    """Infinity or NaN where 2/dt is an eigenvalue of A."""
    return _solved(A, B, dt, 0.5)


@mirror(DISCRETIZE_BILINEAR)
def discretize_bilinear_vjp(dA_bar, dB_bar, A, B, dt):
    return _solved_back(dA_bar, dB_bar, A, B, dt, 0.5)


@mirror(DISCRETIZE_BACKWARD)
def discretize_backward(A, B, dt):
    """Infinity or NaN where 1/dt is an eigenvalue of A."""
    return _solved(A, B, dt, 1)


@mirror(DISCRETIZE_BACKWARD)
def discretize_backward_vjp(dA_bar, dB_bar, A, B, dt):
    return _solved_back(dA_bar, dB_bar, A, B, dt, 1)


def scaled(A: Array, dt: Array) -> Array:
    """dt A."""
    return dt[..., None, None] * A


def _through_steps(dF: Array, dH: Array, A: Array, B: Array, dt: Array) -> tuple[Array, ...]:
    """The gradients of A, B and dt from those of F = dt A and H = dt B."""
    xp, h = namespace(dF), dt[..., None, None]
    ddt = xp.sum(conj(A) * dF, axis=(-2, -1)) + xp.sum(conj(B) * dH, axis=(-2, -1))
    return unbroadcast(h * dF, A), unbroadcast(h * dH, B), unbroadcast(ddt, dt)


# Diagonal systems, holds


def _exp(z: Array) -> Array:
    return namespace(z).exp(z)


def _through(B: Array, dB_bar: Array) -> Array:
    """Σ_m B_nm* dB̄_nm."""
    return namespace(dB_bar).sum(conj(B) * dB_bar, axis=-1)


@mirror(DISCRETIZE_DIAGONAL_ZOH)
def discretize_diagonal_zoh(w, B, dt):
    z = dt * w
    return for_every(_exp(z), (dt * _phi1(z))[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_ZOH)
def discretize_diagonal_zoh_vjp(dA_bar, dB_bar, w, B, dt):
    z = dt * w
    A_bar, through_B = _exp(z), _through(B, dB_bar)
    dw = conj(dt * A_bar) * dA_bar + conj(dt * dt * _moment(1, z)) * through_B
    dB = conj(dt * _phi1(z))[..., None] * dB_bar
    ddt = conj(w * A_bar) * dA_bar + conj(A_bar) * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_FOH)
def discretize_diagonal_foh(w, B, dt):
    z = dt * w
    shares = (dt * _phi2(z))[..., None], (dt * _moment(1, z))[..., None]
    return for_every(_exp(z), *(share * B for share in shares), rank=1)


@mirror(DISCRETIZE_DIAGONAL_FOH)
def discretize_diagonal_foh_vjp(dA_bar, dB0_bar, dB1_bar, w, B, dt):
    z = dt * w
    A_bar, slope = _exp(z), _moment(1, z)
    through_0, through_1 = _through(B, dB0_bar), _through(B, dB1_bar)
    bent = conj(_phi2_derivative(z)) * through_0 + conj(_moment(2, z)) * through_1
    dw = conj(dt * A_bar) * dA_bar + dt * dt * bent
    dB = conj(dt * _phi2(z))[..., None] * dB0_bar + conj(dt * slope)[..., None] * dB1_bar
    ddt = conj(w * A_bar) * dA_bar + conj(slope) * through_0
    ddt = ddt + conj(A_bar - slope) * through_1
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_IMPULSE)
def discretize_diagonal_impulse(w, B, dt):
    return for_every(_exp(dt * w), namespace(B).asarray(B, copy=True), rank=1)


@mirror(DISCRETIZE_DIAGONAL_IMPULSE)
def discretize_diagonal_impulse_vjp(dA_bar, dB_bar, w, B, dt):
    dz = conj(_exp(dt * w)) * dA_bar
    dB = unbroadcast(namespace(dB_bar).asarray(dB_bar, copy=True), B)
    return unbroadcast(dt * dz, w), dB, unbroadcast(conj(w) * dz, dt)


@mirror(DISCRETIZE_DIAGONAL_MAMBA)
def discretize_diagonal_mamba(w, B, dt):
    return for_every(_exp(dt * w), dt[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_MAMBA)
def discretize_diagonal_mamba_vjp(dA_bar, dB_bar, w, B, dt):
    dz = conj(_exp(dt * w)) * dA_bar
    ddt = conj(w) * dz + _through(B, dB_bar)
    return unbroadcast(dt * dz, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)


# Diagonal systems, rational rules


def _mapped(w, B, dt, alpha):
    """Ā = (1 + (1 − α)z) / (1 − αz) and B̄ = dt B / (1 − αz), z = dt w."""
    z = dt * w
    R = 1 - alpha * z
    numerator = 1 + (1 - alpha) * z if alpha != 1 else 1.0
    return for_every(numerator / R, dt[..., None] * B / R[..., None], rank=1)


def _mapped_back(dA_bar, dB_bar, w, B, dt, alpha):
    """R = 1/(1 − αz): ∂Ā/∂z = R², ∂B̄/∂dt = R² B, ∂B̄/∂w = α dt² R² B, ∂B̄/∂B = dt R."""
    R = 1 / (1 - alpha * (dt * w))
    R2, through_B = conj(R * R), _through(B, dB_bar)
    dw = dt * R2 * dA_bar + alpha * dt * dt * R2 * through_B
    dB = conj(dt * R)[..., None] * dB_bar
    ddt = conj(w) * R2 * dA_bar + R2 * through_B
    return unbroadcast(dw, w), unbroadcast(dB, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_GBT)
def discretize_diagonal_gbt(w, B, dt, *, alpha):
    return _mapped(w, B, dt, alpha)


@mirror(DISCRETIZE_DIAGONAL_GBT)
def discretize_diagonal_gbt_vjp(dA_bar, dB_bar, w, B, dt, *, alpha):
    return _mapped_back(dA_bar, dB_bar, w, B, dt, alpha)


@mirror(DISCRETIZE_DIAGONAL_EULER)
def discretize_diagonal_euler(w, B, dt):
    return for_every(1 + dt * w, dt[..., None] * B, rank=1)


@mirror(DISCRETIZE_DIAGONAL_EULER)
def discretize_diagonal_euler_vjp(dA_bar, dB_bar, w, B, dt):
    ddt = conj(w) * dA_bar + _through(B, dB_bar)
    return unbroadcast(dt * dA_bar, w), unbroadcast(dt[..., None] * dB_bar, B), unbroadcast(ddt, dt)


@mirror(DISCRETIZE_DIAGONAL_BILINEAR)
def discretize_diagonal_bilinear(w, B, dt):
    return _mapped(w, B, dt, 0.5)


@mirror(DISCRETIZE_DIAGONAL_BILINEAR)
def discretize_diagonal_bilinear_vjp(dA_bar, dB_bar, w, B, dt):
    return _mapped_back(dA_bar, dB_bar, w, B, dt, 0.5)


@mirror(DISCRETIZE_DIAGONAL_BACKWARD)
def discretize_diagonal_backward(w, B, dt):
    return _mapped(w, B, dt, 1)


@mirror(DISCRETIZE_DIAGONAL_BACKWARD)
def discretize_diagonal_backward_vjp(dA_bar, dB_bar, w, B, dt):
    return _mapped_back(dA_bar, dB_bar, w, B, dt, 1)


# φ₁, φ₂ and their derivatives for scalars
#
# Fewer terms than in refssm.discretize.phi, for there is no long double on a card. e^z − 1 of
# complex z is written out: CuPy's `expm1` is relied on for real numbers only.


TERMS = 18  # for |z| < 1 the remainder, 1/18!/19 of the sum, is below u of double precision


def _phi1(z: Array) -> Array:
    """(e^z − 1)/z, 1 at z = 0."""
    xp = namespace(z)
    return xp.where(z == 0, 1.0, _expm1(z) / xp.where(z == 0, 1.0, z))


def _expm1(z: Array) -> Array:
    """e^{x+iy} − 1 = (e^x − 1) cos y − 2 sin² y/2 + i e^x sin y."""
    xp = namespace(z)
    if not is_complex(z):
        return xp.expm1(z)
    x, y = xp.real(z), xp.imag(z)
    half = xp.sin(y / 2)
    return xp.expm1(x) * xp.cos(y) - 2 * half * half + 1j * xp.imag(xp.exp(z))


def _moment(j: int, z: Array) -> Array:
    """φ₁⁽ʲ⁾(z) = ∫₀¹ r^j e^{rz} dr = Σ_k z^k/(k! (k + j + 1)),  j ≥ 1."""
    xp = namespace(z)
    near, inner, outer = _split(z)
    series = xp.full_like(inner, 1 / (TERMS + j + 1))
    for k in range(TERMS - 1, -1, -1):
        series = 1 / (k + j + 1) + inner / (k + 1) * series
    quotient, power = _phi1(outer), xp.exp(outer)
    for i in range(1, j + 1):  # integration by parts; for |z| ≥ 1 it loses few digits
        quotient = (power - i * quotient) / outer
    return xp.where(near, series, quotient)


def _phi2(z: Array) -> Array:
    """(φ₁(z) − 1)/z = Σ_k z^k/(k + 2)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner / (k + 2) * series
    return namespace(z).where(near, series / 2, (_phi1(outer) - 1) / outer)


def _phi2_derivative(z: Array) -> Array:
    """(φ₁'(z) − φ₂(z))/z = Σ_k (k + 1) z^k/(k + 3)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner * ((k + 1) / (k * (k + 3))) * series
    return namespace(z).where(near, series / 6, (_moment(1, outer) - _phi2(outer)) / outer)


def _split(z: Array) -> tuple[Array, Array, Array]:
    """A mask of |z| < 1; z with 0 where the mask is false; z with 1 where it is true."""
    xp = namespace(z)
    near = xp.abs(z) < 1
    return near, xp.where(near, z, 0.0), xp.where(near, 1.0, z)
