# pyright: reportMissingImports=false
"""s4: kernels and sums of models/s4, and HiPPO matrices and convolutions of src/models.

Sums are those that it uses without its CUDA extension and without PyKeOps. LegT and Fourier have a
window of 2 there, LMU one of 1.
"""

from types import MethodType, SimpleNamespace

import torch
from torch.nn import Identity

from refssm.adapters import halves, log_dt, neg_exp
from refssm.subjects import some
from refssm.subjects.clones import module
from refssm.testing import implements

s4 = module("s4", "models.s4.s4")
S4DKernel = module("s4", "models.s4.s4d").S4DKernel
by_toeplitz = module("s4", "src.models.functional.toeplitz").causal_convolution
powers = module("s4", "src.models.functional.krylov")
hippo = module("s4", "src.models.hippo.hippo")

COMPLEX = {"framework": "torch", "dtypes": ("complex64", "complex128")}
REAL = {"framework": "torch", "vjp": True, "dtypes": ("float32", "float64")}


@implements(
    "cauchy_kernel_pairs", layout="d n, d n, l -> d l", kinds="complex", vjp=True, **COMPLEX
)
def cauchy_kernel_pairs(v, w, z):
    """cauchy_naive(v, z, w)."""
    return s4.cauchy_naive(v, z, w)


@implements("vandermonde_kernel_real", layout="d n, d n -> d l", vjp=True, **COMPLEX)
def vandermonde_kernel_real(v, x, *, l):
    """log_vandermonde_naive(v, x, L)."""
    return s4.log_vandermonde_naive(v, x, l)


DIAGONAL = {
    **COMPLEX,
    "vjp": True,
    "only": some,
    "adapters": (log_dt(), neg_exp("w")),
    "layout": "d n, d n, d n, d -> d l",
}


def kernel(theta, B, C, dt, l, disc):
    """SSMKernelDiag.forward of one channel, with the defaults of its options."""
    rows = max(map(len, (theta, B, C, dt)))
    theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
    held = SimpleNamespace(H=rows, N=B.shape[1], channels=1, disc=disc, backend="naive", repeat=1)
    held.is_real = held.dt_fast = held.bandlimit = None
    held.dt_transform, held.real_transform, held.imag_transform = "exp", "exp", "none"
    held.inv_dt, held.A_real, held.A_imag = dt[:, None].expand(rows, 1), theta.real, -theta.imag
    held.B, held.C = torch.view_as_real(B)[None], torch.view_as_real(C)[None]
    held._get_params = MethodType(s4.SSMKernelDiag._get_params, held)
    return s4.SSMKernelDiag.forward(held, l)[0][0]


@implements("diagonal_kernel_zoh_real", **DIAGONAL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """SSMKernelDiag(disc="zoh"), its default; w holds log(−Re w) and Im w, dt its logarithm."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", **DIAGONAL)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """SSMKernelDiag(disc="bilinear")."""
    return kernel(w, B, C, dt, l, "bilinear")


class ParametersDPLR(s4.SSMKernelDPLR):
    """SSMKernelDPLR with tensors for its parameters, and Q of its own in place of P*."""

    def __init__(self, theta, P, Q, B, C, dt, l_kernel, l_max):
        torch.nn.Module.__init__(self)
        rows = max(map(len, (theta, P, Q, B, C, dt)))
        theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
        P, Q = (x.expand(rows, -1, -1).permute(2, 0, 1) for x in (P, Q))
        self.H, self.N, self.rank, self.channels = rows, B.shape[1], len(P), 1
        self.repeat, self.backend, self.verbose = 1, "naive", False
        self.is_real = self.dt_fast = self.bandlimit = None
        self.dt_transform, self.real_transform, self.imag_transform = "exp", "exp", "none"
        self.inv_dt, self.A_real, self.A_imag = dt[:, None].expand(rows, 1), theta.real, -theta.imag
        self.B, self.P = torch.view_as_real(B)[None], torch.view_as_real(P)
        self.C, self.Q = torch.view_as_real(C)[None].clone(), Q.conj()
        self.l_kernel, self.l_max = torch.tensor(l_kernel), l_max

    def _get_params(self, rate=1.0):
        return *super()._get_params(rate)[:5], self.Q


def of_rank(x):
    """The case if it has a step and a low-rank part."""
    return x if x["l"] and x["P"].shape[-1] else None


DPLR = {
    **COMPLEX,
    "only": of_rank,
    "adapters": (log_dt(), neg_exp("w"), halves()),
    "layout": "d n, d n r, d n r, d n, d n, d -> d l",
}


@implements("dplr_kernel", **DPLR)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """SSMKernelDPLR's first call, which replaces C by C̃ = C (I − Ā^l) without a gradient."""
    return ParametersDPLR(w, P, Q, B, C, dt, 0, l)(L=l)[0][0]


@implements("dplr_kernel_aliased", vjp=True, **DPLR)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """SSMKernelDPLR's every other call, where C is C̃, as it trains."""
    return ParametersDPLR(w, P, Q, B, C, dt, l, l)(L=l)[0][0]


@implements(
    "dss_exp_kernel",
    layout="d n, d n, d -> d l",
    adapters=(log_dt(), neg_exp("w"), halves()),
    vjp=True,
    **COMPLEX,
)
def dss_exp_kernel(w, C, dt, *, l):
    """S4DKernel.forward; w holds log(−Re w) and Im w, dt its logarithm.

    It has no B and one mode of each conjugate pair.
    """
    held = SimpleNamespace(log_dt=dt, log_A_real=w.real, A_imag=w.imag)
    held.C = torch.view_as_real(C)
    return S4DKernel.forward(held, l)


def convolved(u, kernels, **options):
    """FFTConv.forward around kernels (c, d, l), with D = 0 and no activation."""
    layer = SimpleNamespace(transposed=True, L=None, swap_channels=False, **options)
    layer.drop = layer.drop_kernel = layer.activation = Identity()
    layer.kernel = lambda **_: (kernels, None)
    layer.D = torch.zeros_like(kernels[:1, :, 0])
    return s4.FFTConv.forward(layer, u)[0]


@implements("causal_convolution", layout="b d l, d l -> b d l", **REAL)
def fftconv(u, k):
    """FFTConv in one direction."""
    return convolved(u, k[None], bidirectional=False)


@implements("bidirectional_convolution_shifted", layout="b d l, d l, d l -> b d l", **REAL)
def bidirectional_convolution_shifted(u, k, k_back):
    """FFTConv in both directions, the other kernel one step late."""
    return convolved(u, torch.stack([k, k_back]), bidirectional=True)


@implements("causal_convolution", layout="b d l, d l -> b d l", **REAL)
def toeplitz_fast(u, k):
    """TriangularToeplitzMultFast: a product with a lower triangular Toeplitz matrix, by FFT."""
    return by_toeplitz(u, k)


@implements("causal_convolution", layout="b d l, d l -> b d l", **REAL)
def toeplitz(u, k):
    """TriangularToeplitzMult."""
    return by_toeplitz(u, k, fast=False)


KRYLOV = {
    "framework": "torch",
    "vjp": True,
    "only": some,
    "layout": "d n n, d n, d n -> d l",
}


@implements("krylov_kernel", **KRYLOV)
def krylov(A, B, C, *, l):
    """krylov(L, A, b, c), by squaring, in one type."""
    kind = (A[:1] * B[:1, None] * C[:1, None]).dtype
    return powers.krylov(l, A.to(kind), B.to(kind), C.to(kind))


@implements("krylov_kernel", **KRYLOV)
def krylov_sequential(A, B, C, *, l):
    """krylov_sequential(L, A, b, c), one product with A after another, in one type."""
    kind = (A[:1] * B[:1, None] * C[:1, None]).dtype
    return powers.krylov_sequential(l, A.to(kind), B.to(kind), C.to(kind))


def matrices(measure, n, **options):
    """A and B of transition."""
    A, B = hippo.transition(measure, n, **options)
    return A, B[:, 0]


def completed(measure, rank, n):
    """w, P, B and V of nplr in double precision without clipping, and their conjugates."""
    found = hippo.nplr(measure, n, rank, dtype=torch.double, B_clip=None)
    w, P, B, V = (torch.cat([x, x.conj()], -1).resolve_conj().numpy() for x in found)
    return w, P.T, B, V


def of_window_1(x):
    """The case with a window of 1."""
    return {**x, "window": 1.0}


def of_window_2(x):
    """The case with a window of 2."""
    return {**x, "window": 2.0}


def with_pairs(x):
    """The case if it has pairs of modes: an even number, 4 at least; with a window of 2."""
    x = {**x, "window": 2.0} if "window" in x else x
    return x if x["n"] > 3 and x["n"] % 2 == 0 else None


@implements("hippo_legs")
def hippo_legs(*, n):
    """transition("legs", N)."""
    return matrices("legs", n)


@implements("hippo_legt", only=of_window_2)
def hippo_legt(*, n, window):
    """transition("legt", N)."""
    return matrices("legt", n)


@implements("hippo_lmu", only=of_window_1)
def hippo_lmu(*, n, window):
    """transition("lmu", N)."""
    return matrices("lmu", n)


@implements("hippo_lagt")
def hippo_lagt(*, n, alpha, beta):
    """transition("glagt", N)."""
    return matrices("glagt", n, alpha=alpha, beta=beta)


@implements("hippo_fourier", only=of_window_2)
def hippo_fourier(*, n, window):
    """transition("fourier", N)."""
    return matrices("fourier", n)


@implements("nplr_legs", only=with_pairs)
def nplr_legs(*, n):
    """nplr("legs", N)."""
    return completed("legs", 1, n)


@implements("nplr_legt", only=with_pairs)
def nplr_legt(*, n, window):
    """nplr("legt", N, 2)."""
    return completed("legt", 2, n)


@implements("nplr_fourier", only=with_pairs)
def nplr_fourier(*, n, window):
    """nplr("fourier", N)."""
    return completed("fourier", 1, n)
