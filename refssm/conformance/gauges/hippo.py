"""Error rules of polynomials from a recurrence and of states of a matrix exponential.

Operation by operation, the bounds of a recurrence with alternating signs grow exponentially, though
its errors do not: moduli ignore the signs that keep it bounded. Here an error of step j reaches
step m times G_mj, the solution of the recurrence that starts at step j with 1. Importing this
module registers the rules.
"""

import numpy as np

from refssm._numerics.expm import expm
from refssm._numerics.polynomials import legendre, legendre_slopes, recurrence
from refssm.conformance.gauges.linalg import CHARGE, condition, frobenius, spectral_norm, two_norm
from refssm.conformance.gauges.rules import product_charge, rule, tree
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met, modulus
from refssm.hippo.memory import exponential_states, held_input, held_states


@rule(FUNCTIONS, legendre)
def _legendre(x, n):
    """|G_mj| ≤ 1 + m/e, and ≤ √(2j)/(√(m + ½) sin θ) inside the interval, with x = cos θ.

    G_mj = j (P_m Q_{j−1} − P_{j−1} Q_m); at x = 1 it is 1 + Σ_{i=j+1..m} j/i. Inside,
    P_m² + 4/π² Q_m² ≤ 2/(π (m + ½) sin θ). For x outside [−1, 1], G is computed by `_recurrence`.
    """
    x = lifted(x)
    if np.any(np.abs(x.value) > 1):
        i = np.arange(n, dtype=float)
        return _recurrence(x, (2 * i + 1) / (i + 1), 0 * i, i / (i + 1))
    P = legendre(x.value, n)
    m = np.arange(n, dtype=float)
    i = m[:-1]
    made = np.zeros(P.shape)  # roundings of step m: (2i+1)/(i+1), times x, times P_i, …
    before = np.concatenate([0 * P[..., :1], P[..., :-2]], axis=-1)
    products = 3 * np.abs((2 * i + 1) / (i + 1) * x.value[..., None] * P[..., :-1])
    made[..., 1:] = products + 2 * np.abs(i / (i + 1) * before) + np.abs(P[..., 1:])
    sine = np.sqrt(np.maximum(1 - x.value**2, 0))[..., None]
    with np.errstate(divide="ignore"):
        inside = np.cumsum(np.sqrt(2 * m) * made, -1) / (np.sqrt(m + 0.5) * sine)
    errors = np.minimum((1 + m / np.e) * np.cumsum(made, -1), inside)
    return _carried(x, P, errors, legendre_slopes(P))


@rule(FUNCTIONS, recurrence)
def _recurrence(x, a, b, c):
    """Σ_j |G_mj| · (roundings of step j); G_mj comes from running the recurrence from each j."""
    x = lifted(x)
    p, n = recurrence(x.value, a, b, c), len(a)
    errors, slopes = np.zeros(p.shape), np.zeros(p.shape)
    made, started = np.zeros(p.shape), np.zeros(p.shape)  # roundings of step j; a_{j−1} p_{j−1}
    now, before = np.zeros(p.shape), np.zeros(p.shape)  # G_mj and G_{m−1,j}; j is the last axis
    for i in range(n - 1):
        factor = (a[i] * x.value + b[i])[..., None]
        earlier = p[..., i - 1] if i else 0 * p[..., 0]
        terms = 4 * np.abs(a[i] * x.value * p[..., i]) + 3 * np.abs(b[i] * p[..., i])
        made[..., i + 1] = terms + 2 * np.abs(c[i] * earlier) + np.abs(p[..., i + 1])
        started[..., i + 1] = a[i] * p[..., i]
        now, before = factor * now - c[i] * before, now
        now[..., i + 1] = 1
        errors[..., i + 1] = (np.abs(now) * made)[..., : i + 2].sum(-1)
        slopes[..., i + 1] = (now * started)[..., : i + 2].sum(-1)
    return _carried(x, p, errors, slopes)


def _carried(x: Tracked, p, errors, slopes) -> Tracked:
    """The tracked value p: `errors` of the recurrence, plus |slopes| times the errors of x."""
    met(np.abs(p))
    errors = np.where(errors > 0, np.maximum(errors, modulus(p)), 0)[..., None]
    return Tracked(p, errors + np.abs(slopes)[..., None] * x.errors[..., None, :])


@rule(FUNCTIONS, exponential_states)
def _exponential_states(F, b):
    F, b = lifted(F), lifted(b)
    x = exponential_states(F.value, b.value)
    return _of_steps(F, x, [two_norm(b.errors[..., gauge])[..., 0] for gauge in (0, 1)])


@rule(FUNCTIONS, held_states)
def _held_states(F, H, u):
    """x_k = e^F x_{k−1} + B̄ u_k, B̄ = φ₁(F) H: e^F carries the error of each B̄ u_k onwards."""
    F, H, u = lifted(F), lifted(H), lifted(u)
    x, size = held_states(F.value, H.value, u.value), np.abs(u.value)
    B_bar_norm = two_norm(held_input(F.value, H.value))
    input_errors = []
    for kind, B_bar_error in enumerate(_held_errors(F, H)):  # k0, then k1
        u_error = product_charge(H.value, u.value) * size + u.errors[..., kind]
        input_errors.append(B_bar_error[..., None] * size + B_bar_norm * u_error)
    return _of_steps(F, x, input_errors)


@rule(FUNCTIONS, held_input)
def _held_input(F, H):
    F, H = lifted(F), lifted(H)
    B_bar = held_input(F.value, H.value)
    met(np.abs(B_bar))
    errors = np.stack(_held_errors(F, H), axis=-1)[..., None, :]
    return Tracked(B_bar, np.broadcast_to(errors, (*B_bar.shape, 2)).copy())


def _of_steps(F: Tracked, x, driven) -> Tracked:
    """Bound x_k in norm by Σ_j ‖e^{(k−j)F}‖₂ · (error of step j).

    The error of a step is that of e^F, of the product with it, and `driven`, that of the input.
    e^F itself has the error of a few roundings of F and of the identity that it starts from.
    """
    E, size = expm(F.value), two_norm(x)[..., 0]
    met(size)
    n, norm = E.shape[-1], frobenius(E)
    slope = condition(F.value) * norm
    products = (tree(n) + product_charge(E, x)) * norm + CHARGE * np.maximum(1, norm)
    norms, power = [np.ones(E.shape[:-2])], E
    for _ in range(x.shape[-2] - 1):
        norms.append(spectral_norm(power))
        power = power @ E
    least, both = modulus(np.zeros(())) * np.sqrt(n), []
    for b, carried in zip(driven, _relative_errors(F), strict=True):
        step = ((CHARGE + carried) * slope + products)[..., None]
        both.append(sum_over_past(norms, np.maximum(size, least) + b, step, size))
    errors = np.stack(both, axis=-1)[..., None, :]
    return Tracked(x, np.broadcast_to(errors, (*x.shape, 2)).copy())


def _held_errors(F: Tracked, H: Tracked):
    """‖error of φ₁(F) H‖₂ for k0 and for k1.

    φ₁(F) = ½ (e^{F/2} + I) φ₁(F/2), so the error of repeated squaring is that of the largest of
    2^−j φ₁(F/2^j), times the condition number of e^[[F, I], [0, 0]], whose upper right block is φ₁.
    """
    n, G = F.shape[-1], _beside_identity(F.value)
    kappa, largest, power = condition(G), 0.0, 1.0
    for _ in range(LEVELS):
        phi = expm(_beside_identity(F.value * power))[..., :n, n:]
        largest, power = np.maximum(largest, frobenius(phi) * power), power / 2
    size = two_norm(H.value)[..., 0]
    made = largest * kappa * size + tree(n) * largest * size
    inputs = (two_norm(H.errors[..., gauge])[..., 0] for gauge in (0, 1))
    both = zip(_relative_errors(F), inputs, strict=True)
    return [CHARGE * made + carried * largest * kappa * size + largest * h for carried, h in both]


LEVELS = 8


def _beside_identity(F):
    """[[F, I], [0, 0]]."""
    n = F.shape[-1]
    above = np.concatenate([F, np.broadcast_to(np.eye(n), F.shape)], axis=-1)
    return np.concatenate([above, np.zeros_like(above)], axis=-2)


def _relative_errors(F: Tracked):
    """‖errors‖_F/‖F‖_F for k0 and for k1."""
    size = frobenius(F.value)
    unit = np.where(size > 0, size, 1)
    return [frobenius(F.errors[..., gauge]) / unit for gauge in (0, 1)]


def sum_over_past(norms, made, step, size):
    """Σ_j norms_{k−j} (made_j + step (size + u total)_{j−1}), where total_{j−1} is the sum so far.

    u total matters where the state is smaller than its error. To first order only, two steps of a
    decay below u² would have no error, though a computed e^F = 0 differs from e^F.
    """
    total, u = np.zeros(made.shape), np.finfo(size.dtype).eps
    used = norms[: made.shape[-1]]
    along = np.stack(used, axis=-1) if used else total
    for j in range(made.shape[-1]):
        here = made[..., j : j + 1]
        if j:
            here = here + step * (size + u * total)[..., j - 1 : j]
        total[..., j:] += along[..., : made.shape[-1] - j] * here
    return total
