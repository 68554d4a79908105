"""Oracles for refssm.hope."""

# pyright: reportAttributeAccessIssue=false
# (mpmath attaches its functions to the context at import)

from mpmath import mp


def hope_transfer(h, dt, *, l):
    """Σ_i h_i z'_j^{−(i+1)}, z'_j = ((1 + dt) ω_j + dt − 1)/((dt − 1) ω_j + dt + 1)."""
    omega = [mp.expjpi(mp.mpf(2 * j) / l) for j in range(l)]
    inverses = [((dt - 1) * z + dt + 1) / ((1 + dt) * z + dt - 1) for z in omega]
    return [mp.polyval([*h[::-1], 0], p) for p in inverses]


def hope_kernel(h, dt, *, l):
    """The first l coefficients in x of Σ_j h_j ((x − ρ)/(1 − ρ x))^{j+1}, ρ = (1 − dt)/(1 + dt)."""
    rho = (1 - dt) / (1 + dt)
    K, series = [mp.zero] * l, [mp.one] + [mp.zero] * (l - 1)
    for h_j in h:
        times = [late - rho * x for late, x in zip([0, *series], series, strict=False)]
        series, carried = [], mp.zero
        for x in times:  # divided by 1 − ρ x
            carried = x + rho * carried
            series.append(carried)
        K = [k + h_j * s for k, s in zip(K, series, strict=False)]
    return K


def hope_kernel_aliased(h, dt, *, l):
    """1/l Σ_j G_j e^{2πijk/l}."""
    G, omega = hope_transfer(h, dt, l=l), [mp.expjpi(mp.mpf(2 * j) / l) for j in range(l)]
    return [mp.fsum(g * omega[j * k % l] for j, g in enumerate(G)) / l for k in range(l)]
