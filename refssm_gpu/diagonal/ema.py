"""CuPy mirror of refssm.diagonal.ema: every power by its logarithm."""

from refssm.diagonal import EMA_KERNEL
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._launching.powers import each_wide, later_moments, rounded, sums
from refssm_gpu.diagonal.discretized import NOTHING


def _logistic(x):
    """1/(1 + e^{−x}), computed from e^{−|x|}."""
    xp = namespace(x)
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1.0, e) / (1 + e)


def _averaged(delta, alpha, beta):
    """p, σ(α), log q and n^{−½}."""
    xp = namespace(delta)
    p, s = _logistic(delta), _logistic(alpha)
    loss = p * s
    log = xp.where(loss < 1, xp.log1p(-xp.where(loss < 1, loss, 0.0)), NOTHING)
    return p, s, xp.where(xp.isnan(loss), loss, log), max(1, beta.shape[-1]) ** -0.5


def ema_kernel(delta, alpha, beta, gamma, *, l):
    """Mirror of refssm.ema_kernel."""
    kind = common(delta, alpha, beta, gamma)
    delta, alpha, beta, gamma = each_wide(delta, alpha, beta, gamma)
    p, _, log, scale = _averaged(delta, alpha, beta)
    return sums(scale * (p * beta * gamma), log, l=l, kind=kind)


def ema_kernel_vjp(dk, delta, alpha, beta, gamma, *, l):
    """Mirror of refssm.ema_kernel_vjp."""
    del l  # dk has it
    primals, kind = (delta, alpha, beta, gamma), common(dk, delta, alpha, beta, gamma)
    delta, alpha, beta, gamma = each_wide(delta, alpha, beta, gamma)
    p, s, log, scale = _averaged(delta, alpha, beta)
    S, T = (scale * total for total in later_moments(dk, log))
    both = conj(beta * gamma)
    ddelta = both * (p * _logistic(-delta)) * (S - p * s * T)
    dalpha = -(both * (p * p * (s * _logistic(-alpha))) * T)
    gradients = ddelta, dalpha, p * conj(gamma) * S, p * conj(beta) * S
    return rounded(unbroadcast_each(gradients, primals), kind)


ema_kernel_vjp = checked_vjp(EMA_KERNEL, ema_kernel_vjp)
ema_kernel = checked(EMA_KERNEL, ema_kernel)
