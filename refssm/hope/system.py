"""The system that a HOPE layer samples, and the length of its memory.

The Markov parameters are those of a filter of n taps, x ← N x + e_1 u, y = h x, N the shift. The
inverse bilinear map with step size 2 makes it continuous; the bilinear map with step size 2dt makes
it discrete again: `hope_stream`. The continuous system G(s) = Σ_j h_j ((1 − s)/(1 + s))^{j+1} has
all poles at −1, for every h and dt: its response decays like t^{n−1} e^{−t} [yu2024hope].

Discrete systems here are those of SciPy and of control theory, x_{k+1} = A x_k + B u_k,
y_k = C x_k + D u_k (docs/conventions.md): at dt = 1 the first output is one step late.
"""

import numpy as np

from refssm.hope.allpass import rotation
from refssm.hope.stream import HOPE_STREAM_STATEFUL, hankel_product


def hope_system(h):
    """(A, B, C, D) of x' = A x + B u, y = C x + D u, whose transfer function is G(s).

    A_jj = −1, A_ij = −2(−1)^{i−j} below the diagonal, B_i = √2 (−1)^i, C_i = √2 Σ_{j≥i} h_j
    (−1)^{j−i}, D = −Σ_j h_j (−1)^j. `h` (…, n) real or complex; shapes (n, n), (n), (…, n), (…).
    The time unit is such that one step of the stream is 2dt.

    >>> import refssm
    >>> A, B, C, D = refssm.hope_system([3.0, 5.0])
    >>> A
    array([[-1.,  0.],
           [ 2., -1.]])
    >>> B / B[0], C / B[0], D
    (array([ 1., -1.]), array([-2.,  5.]), np.float64(2.0))
    """
    h = _inexact(h)
    signs, lag = _signs(h.shape[-1], np.finfo(h.dtype).dtype)
    root = np.sqrt(signs.dtype.type(2)) if signs.size else 1.0
    A = np.where(lag > 0, -2 * signs[np.abs(lag)], np.where(lag == 0, -1, 0)).astype(signs.dtype)
    C = root * _weighed(h, np.where(lag >= 0, signs[np.abs(lag)], 0))
    return A, root * signs, C, -(h * signs).sum(-1)


def _inexact(h):
    h = np.asarray(h)
    return h if h.dtype.kind in "fc" else h.astype(float)


def _positive(name, dt):
    """ValueError from `name` unless `dt` is above 0."""
    if not np.all(np.asarray(dt) > 0):
        raise ValueError(f"{name}: `dt` must be above 0, got {dt}")


def _signs(n, kind):
    """(−1)^i, and i − j."""
    i = np.arange(n)
    return np.where(i % 2 == 0, 1, -1).astype(kind), i[:, None] - i


def _weighed(h, lower):
    """Σ_{j≥i} h_j lower_ji."""
    return (h[..., :, None] * lower).sum(-2)


def hope_system_discrete(h, dt):
    """(A, B, C, D) of x_{k+1} = A x_k + B u_k, y_k = C x_k + D u_k: `hope_stream` as one system.

    A_jj = ρ, A_ij = c² (−ρ)^{i−j−1} below the diagonal, B_i = c (−ρ)^i, C_i = c Σ_{j≥i} h_j
    (−ρ)^{j−i}, D = Σ_j h_j (−ρ)^{j+1}. The states are those of `hope_stream_stateful`; A Aᵀ + B Bᵀ
    = I, so the states are uncorrelated for white inputs. `h` (…, n), `dt` is a number.

    >>> import refssm
    >>> A, B, C, D = refssm.hope_system_discrete([3.0, 5.0], 1.0)  # the shift
    >>> A
    array([[0., 0.],
           [1., 0.]])
    >>> C, abs(D)
    (array([3., 5.]), np.float64(0.0))
    """
    _positive("hope_system_discrete", dt)
    h = _inexact(h)
    kind = np.finfo(h.dtype).dtype
    rho, c = rotation(kind.type(dt))
    i = np.arange(h.shape[-1])
    lag = i[:, None] - i
    below = np.where(lag > 0, (-rho) ** np.maximum(lag - 1, 0), 0)
    lower = np.where(lag >= 0, (-rho) ** np.maximum(lag, 0), 0)
    A = (c**2 * below + rho * np.eye(len(i))).astype(kind)
    D = (h * (-rho) ** (i + 1)).sum(-1)
    return A, (c * (-rho) ** i).astype(kind), (c * _weighed(h, lower)).astype(h.dtype), D


def inverse_bilinear(A, B, C, D, dt):
    """The continuous system whose bilinear map with step size dt is x_{k+1} = A x_k + B u_k.

    (2/dt)(A − I)(A + I)⁻¹, (2/√dt)(A + I)⁻¹ B, (2/√dt) C (A + I)⁻¹, D − C (A + I)⁻¹ B, for A (n, n)
    without an eigenvalue −1, B and C (n), D a number: the same transfer function at z = (1 + s
    dt/2)/(1 − s dt/2), for a system from any source. Raises LinAlgError if −1 is an eigenvalue.

    >>> import numpy as np
    >>> import refssm
    >>> refssm.inverse_bilinear(np.array([[0.5]]), np.ones(1), np.ones(1), 0.0, 1.0)[0].round(6)
    array([[-0.666667]])
    """
    _positive("inverse_bilinear", dt)
    A, B, C = (_inexact(a) for a in (A, B, C))
    I, scale = np.eye(len(A)), 2 / np.sqrt(dt)
    into = np.linalg.solve(A + I, B)
    out = np.linalg.solve((A + I).T, C)
    return 2 / dt * np.linalg.solve((A + I).T, (A - I).T).T, scale * into, scale * out, D - C @ into


def hope_delay(dt, angle):
    """The delay of e^{ik·angle} by one stage, in steps: dt/(sin² ½angle + dt² cos² ½angle).

    1/dt for slow signals, dt for signals that alternate, 1 as the mean over the circle: a small dt
    gives slow signals more delay and fast signals less. Arrays broadcast.

    >>> import numpy as np
    >>> import refssm
    >>> refssm.hope_delay(0.1, np.array([0.0, np.pi])).round(6)
    array([10. ,  0.1])
    """
    _positive("hope_delay", dt)
    return dt / (np.sin(angle / 2) ** 2 + (dt * np.cos(angle / 2)) ** 2)


def hope_window(n, dt):
    """The delay of slow signals by n stages, in steps: n/dt.

    >>> import refssm
    >>> refssm.hope_window(64, 0.125)
    512.0
    """
    _positive("hope_window", dt)
    return n / dt


def hope_step_bounds(n, l):
    """The range of dt whose window is at least n and at most l steps: (n/l, 1).

    Below n/l, some parameters belong to a past before the start of a sequence of length l; above 1,
    one stage delays slow signals by less than one step. Both are 1 if l ≤ n.

    >>> import refssm
    >>> refssm.hope_step_bounds(64, 1024)
    (0.0625, 1.0)
    """
    return min(1.0, n / max(l, 1)), 1.0


def hope_tail(h, dt, *, l):
    """‖K_l, K_{l+1}, …‖₂ of the impulse response: the part of the memory older than l ≥ 1 steps.

    Computed as the Hankel matrix of h times the states l steps after an impulse (an orthonormal
    basis), without an infinite sum. `h` (…, n), `dt` (…). Raises ValueError if l < 1.

    >>> import refssm
    >>> refssm.hope_tail([3.0, 4.0], 1.0, l=1), refssm.hope_tail([3.0, 4.0], 1.0, l=3)
    (np.float64(5.0), np.float64(0.0))
    """
    if l < 1:
        raise ValueError(f"hope_tail: `l` must be an integer >= 1, got {l!r}")
    _positive("hope_tail", dt)
    h = _inexact(h)
    kind = np.finfo(h.dtype).dtype
    impulse, rest = (np.arange(l) == 0).astype(kind), np.zeros(h.shape[-1], kind)
    _, x = HOPE_STREAM_STATEFUL.reference(h, np.asarray(dt, kind), impulse, rest)
    return np.sqrt((np.abs(hankel_product(h, x)) ** 2).sum(-1))
