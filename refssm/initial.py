"""What models start from: named systems and steps, with a source for each number.

Each function draws from a NumPy generator in double precision and returns arrays under the names
that the operators use: `w` poles, `P` the low-rank part, `B` and `C` input and output, `dt` steps.
Poles come from the constructors of `refssm.hippo` and `refssm.nplr`. Layers start from them.
"""

import numpy as np

from refssm.discretize import discretize_bilinear
from refssm.hippo import (
    hippo_lagt,
    hippo_legs,
    hippo_legt,
    lru_ring,
    s4d_inv,
    s4d_legs,
    s4d_lin,
    s4d_quad,
    s4d_real,
)
from refssm.nplr import block_diagonal, nplr_fourier, nplr_lagt, nplr_legs, nplr_legt

DT_MIN, DT_MAX = 1e-3, 1e-1  # published code of S4D, S5 and Mamba: dt_min, dt_max
DT_RECURRENT = 1e-2  # chosen: the middle of DT_MIN and DT_MAX in logarithms
DT_FLOOR = 1e-4  # published code of Mamba: dt_init_floor
HEAD_MIN, HEAD_MAX = 1.0, 16.0  # published code of Mamba-2: A_init_range
GATE_MIN, GATE_MAX = 0.9, 0.999  # RG-LRU: the range of a^c, the decay where the gate is open
CHUNK, CHUNK_SUM = 256, 6e4  # chosen: at the start a chunk sums to −0.5 … −600
RATE_FLOOR = 1e-4  # published code of S4: the clamp of −Re w, which is 0 for LegT and Fourier
NPLR = {"legs": nplr_legs, "legt": nplr_legt, "lagt": nplr_lagt, "fourier": nplr_fourier}
DENSE = {"legs": hippo_legs, "legt": hippo_legt, "lagt": hippo_lagt}
DIAGONAL = {
    "lin": s4d_lin, "inv": s4d_inv, "quad": s4d_quad, "real": s4d_real, "legs": s4d_legs,
}  # fmt: skip

MATRICES = ("hippo-n", "antisymmetric", "random")


def steps(rng, shape, *, dt_min=DT_MIN, dt_max=DT_MAX):
    """dt = dt_min (dt_max/dt_min)^u with u uniform, so log dt is uniform [gu2022s4d]."""
    if not 0 < dt_min <= dt_max < np.inf:
        bounds = f"got dt_min={dt_min}, dt_max={dt_max}"
        raise ValueError(f"steps: wanted 0 < dt_min ≤ dt_max, {bounds}")
    return np.exp(rng.uniform(np.log(dt_min), np.log(dt_max), shape))


_steps = steps  # the name of an argument, too


def log_steps(rng, n, *, steps="vector", dt_min=DT_MIN, dt_max=DT_MAX):
    """log dt of n states or channels: as `steps`, one for each, or with `scalar` one for all."""
    count = {"vector": n, "scalar": ()}[_known("steps", steps, ("vector", "scalar"))]
    return np.log(_steps(rng, count, dt_min=dt_min, dt_max=dt_max)) + np.zeros(n)


def step_biases(rng, shape, *, dt_min=DT_MIN, dt_max=DT_MAX):
    """log(e^dt − 1), the inverse softplus of `steps` [gu2023mamba].

    Written dt + log(1 − e^{−dt}), which does not cancel for small steps. Steps are at least 1e-4.
    """
    dt = np.maximum(steps(rng, shape, dt_min=dt_min, dt_max=dt_max), DT_FLOOR)
    return dt + np.log(-np.expm1(-dt))


def normal(rng, shape):
    """Standard normal numbers."""
    return rng.standard_normal(shape)


def complex_normal(rng, shape):
    """z = (x + iy)/√2 with standard normal x, y: E|z|² = 1."""
    x, y = rng.standard_normal((2, *shape))
    return (x + 1j * y) * np.sqrt(0.5)


def state(rng, shape):
    """The state before the first step: in one draw of two zeros, as at the start, else normal."""
    return rng.integers(2) * normal(rng, shape)


def dplr(measure, *, n):
    """Poles `w`, low rank `P`, input `B` and basis `V` of a HiPPO measure [gu2022s4, Theorem 1].

    A = V (diag w − P Pᴴ) Vᴴ and b = V B. `measure` is legs, legt, lagt or fourier. All n modes are
    there, both of each conjugate pair.
    """
    w, P, B, V = NPLR[_known("measure", measure, NPLR)](n=n)
    return {"w": w, "P": P, "B": B, "V": V}


def dense(measure, *, n):
    """`A` and `B` of a HiPPO measure, real and dense: legs, legt or lagt [gu2020hippo]."""
    A, B = DENSE[_known("measure", measure, DENSE)](n=n)
    return {"A": A, "B": B}


def stepped(A, B, dt):
    """Ā and B̄ of one input after the bilinear map, as S4 discretizes [gu2022s4]."""
    A, B = discretize_bilinear(A, B[:, None], dt)
    return A, B[:, 0]


def recurrence(name, *, uniform):
    """W_x of a recurrent network, a matrix for rows: `uniform` itself, or with hippo Āᵀ, the
    transposed A of LegS after the bilinear map with the step `DT_RECURRENT`."""
    if _known("recurrence", name, ("uniform", "hippo")) == "uniform":
        return uniform
    return stepped(**dense("legs", n=len(uniform)), dt=DT_RECURRENT)[0].T.copy()


def real_outputs(rng, V, p):
    """C = C₀ V, with normal C₀ (p, n): the output of the real system C₀, in the basis `V`.

    C x is real where x is the state of a real system in this basis. E|C|² = 1, as V is unitary.
    """
    return rng.standard_normal((p, len(V))) @ V


def rates_of(w):
    """−Re w, at least 1e-4: a rate e^ρ cannot be 0, so poles on the imaginary axis move left.

    The published code of S4 does the same. The kernel of A − εI is that of A times e^{−εt}.
    """
    return np.maximum(-w.real, RATE_FLOOR)


def diagonal(name, *, n):
    """Poles `w` of S4D, n modes, one of each conjugate pair; and B = 1 [gu2022s4d].

    `name` is lin, inv, quad, real or legs.
    """
    w = DIAGONAL[_known("poles", name, DIAGONAL)](n=n)
    return {"w": w, "B": np.ones(n, w.dtype)}


def modes(rng, name, *, n, blocks=1):
    """Poles w (n), one of each conjugate pair of a real matrix A (2n, 2n) in equal blocks, with the
    columns V (2n, n) of its eigenvectors and the rows (n, 2n) of their inverse [smith2023s5].

    `name` is hippo-n, the normal part of LegS; antisymmetric, (G − Gᵀ)/√2 − ½ with a normal G of
    the block's size; random, G itself, whose poles move to −|Re w|, at least 1e-4, as an unstable
    pole would overflow; or the name of a system of S4D, each of whose poles a + ib is a block
    (a −b, b a). A real pole of G has no partner, so every second one of them is taken. The paper
    compares the first three and gives no scale of G.
    """
    _known("poles", name, (*MATRICES, *DIAGONAL))
    if n % blocks:
        raise ValueError(f"s5: `blocks` must divide n={n}, got {blocks}")
    if name == "hippo-n":
        w, V = block_diagonal(n=2 * n, blocks=blocks)
        upper = np.flatnonzero(np.imag(w) > 0)
        return w[upper], V[:, upper], V[:, upper].conj().T
    size = n // blocks
    found = [_modes_of_block(rng, name, size) for _ in range(blocks)]
    w, V, inverse = (np.stack(part) for part in zip(*found, strict=True))
    block, wide = np.arange(blocks), np.zeros((blocks, 2 * size, blocks, size), complex)
    rows = np.zeros((blocks, size, blocks, 2 * size), complex)
    wide[block, :, block, :], rows[block, :, block, :] = V, inverse
    return w.reshape(n), wide.reshape(2 * n, n), rows.reshape(n, 2 * n)


def _modes_of_block(rng, name, n):
    """w, V and the rows of V⁻¹ of a block with n pairs."""
    if name in DIAGONAL:
        w, one = DIAGONAL[name](n=n) + 0j, np.eye(n)
        V = np.stack([one, -1j * one], 1).reshape(2 * n, n) * np.sqrt(0.5)
        return w, V, V.conj().T
    G = rng.standard_normal((2 * n, 2 * n))
    if name == "antisymmetric":
        y, V = np.linalg.eigh(1j * (G.T - G) * np.sqrt(0.5))  # ascending: pairs ∓y
        return -0.5 + 1j * y[n:], V[:, n:], V[:, n:].conj().T
    w, V = (x + 0j for x in np.linalg.eig(G))  # of a real matrix: pairs are exact
    inverse, order = np.linalg.inv(V), np.argsort(-w.imag, kind="stable")[:n]
    return -rates_of(-np.abs(w.real[order])) + 1j * w.imag[order], V[:, order], inverse[order]


def s5(rng, *, n, m, p, blocks=1, system=None):
    """Poles `w`, input `B` and output `C` of S5: `n` pairs of HiPPO-N modes in blocks, or those of
    a `system`, the result of `modes`.

    B = Vᴴ B₀ and C = C₀ V, where V has the eigenvectors of the matrix of 2n states, B₀ is real with
    variance 1/m and C₀ with variance 1/(2n). Of each pair the mode with Im w > 0 is kept. The paper
    says Lecun's normal distribution, whose variance is one over the number of inputs; the published
    code gives B₀ the variance 1/(2n) [smith2023s5]. So that every mode has a partner, `blocks` must
    divide n.
    """
    w, V, inverse = system or modes(rng, "hippo-n", n=n, blocks=blocks)
    B = rng.standard_normal((2 * n, m)) / np.sqrt(m)
    C = rng.standard_normal((p, 2 * n)) / np.sqrt(2 * n)
    return {"w": w, "B": inverse @ B, "C": C @ V}


def lru(rng, *, n, m, p, r_min=0.0, r_max=1.0, max_phase=2 * np.pi):
    """Decays `a` on a ring, their factor `gamma`, `B` and `C` of the linear recurrent unit.

    E|B_ij|² = 1/m. E|C_ij|² = 2/n, so that Re(C x) of n states with E|x_i|² = 1 has the variance 1
    [orvieto2023lru, App. A].
    """
    a, gamma = lru_ring(*rng.random((2, n)), r_min=r_min, r_max=r_max, max_phase=max_phase)
    B, C = complex_normal(rng, (n, m)) / np.sqrt(m), complex_normal(rng, (p, n)) * np.sqrt(2 / n)
    return {"a": a, "gamma": gamma, "B": B, "C": C}


def rates(*, n):
    """A = −(1, 2, …, n), the rates of every channel of Mamba [gu2023mamba]."""
    return s4d_real(n=n)


def heads(rng, shape):
    """Logarithms of decays −a dt of one head of Mamba-2, and its steps dt [dao2024mamba2].

    a is uniform between 1 and 16, dt = softplus(x + bias) with a normal x at every step.
    """
    rate, bias = rng.uniform(HEAD_MIN, HEAD_MAX), step_biases(rng, ())
    dt = np.logaddexp(0, bias + rng.standard_normal(shape))
    return -rate * dt, dt


def trained_heads(rng, shape):
    """As `heads`, with a wider range, as training bounds no rate: 256 steps sum to −1e-3 … −6e4.

    The sum is log-uniform. Programs that are tried on `heads` only never see its ends.
    """
    total = np.exp(rng.uniform(np.log(1e-3), np.log(CHUNK_SUM)))
    dt = steps(rng, ()) * rng.standard_exponential(shape)
    return -total / CHUNK * rng.standard_exponential(shape), dt


def gated_decays(rng, *, l, n):
    """a_t = (a^c)^{r_t} of Griffin's RG-LRU, (l, n), with r_t = σ(x_t) [de2024griffin, 2.4].

    a^c is uniform between 0.9 and 0.999, x_t normal.
    """
    gate = 1 / (1 + np.exp(-rng.standard_normal((l, n))))
    return rng.uniform(GATE_MIN, GATE_MAX, n) ** gate


def packed(rng, shape):
    """True where one of several sequences in a row begins: at three steps of ten.

    From 1024 steps on there are more than 256 sequences: numbers of one byte do not count them.
    """
    return rng.random(shape) < 0.3


def averages(rng, *, n):
    """Arguments of `ema_kernel` with decays q uniform between 0.4 and 0.95 [ma2023mega].

    p = s = √(1 − q), so q = 1 − p s. `beta` and `gamma` are normal. Decays like these overflow in
    closed forms that divide by q^k on long inputs.
    """
    rng.random()  # not used: `slow_averages` has it, and a seed means the cases that it meant
    return _averages(rng, rng.uniform(0.05, 0.6, n))


def slow_averages(rng, *, n):
    """Arguments of `ema_kernel` with all 1 − q about one number [ma2023mega].

    That is log-uniform between 1e-6 and 1e-2: errors of q grow with k there.
    """
    rate = np.exp(rng.uniform(np.log(1e-6), np.log(1e-2)))
    return _averages(rng, rate * rng.uniform(0.5, 2, n))


def _averages(rng, rates):
    """Arguments of `ema_kernel` with these 1 − q."""
    p = np.sqrt(rates)
    logit = np.log(p) - np.log1p(-p)
    beta, gamma = rng.standard_normal((2, len(rates)))
    return {"delta": logit, "alpha": logit, "beta": beta, "gamma": gamma}


def markov(rng, shape):
    """Markov parameters h of HOPE: independent normal numbers [yu2024hope].

    Their variance is 1/n, so that E Σ h_j² = 1: the filter has the norm 1. The paper says random
    numbers and gives no variance. They are real, as a kernel of real signals needs.
    """
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def alibi_slopes(heads):
    """2^{−8i/m}, i = 1 … m, for m heads if m is a power of 2; else those of the next lower power,
    then every other one of twice that power [press2022alibi]."""
    power = 2 ** (max(1, heads).bit_length() - 1)
    slopes, finer = (2.0 ** (-8 * np.arange(1, m + 1) / m) for m in (power, 2 * power))
    return np.concatenate([slopes, finer[::2]])[:heads]


def score_biases(name, *, heads, t):
    """What attention adds to the scores of distances 0 … t − 1: zero, or alibi."""
    _known("bias", name, ("zero", "alibi"))
    return -alibi_slopes(heads)[:, None] * np.arange(t) * (name == "alibi")


def linear(rng, m, p):
    """W (m, p) and b (p), uniform between ±1/√m: what PyTorch's `Linear` starts from."""
    bound = 1 / np.sqrt(m)
    return rng.uniform(-bound, bound, (m, p)), rng.uniform(-bound, bound, p)


def _known(argument, name, known):
    """`name`, if it is one of the known ones."""
    if name not in known:
        raise ValueError(f"initial: `{argument}` must be one of {', '.join(known)}, got {name!r}")
    return name
