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
    return _cascade(h, (1 - dt) / (1 + dt), l, lambda x, rho: (mp.zero, mp.zero))


def hope_kernel_aliased(h, dt, *, l):
    """The same modulo x^l − 1: what a stage takes and gives last is there before its first step."""

    def last(x, rho):
        given = mp.zero
        for k, x_k in enumerate(x):  # of one turn, and every turn before leaves ρ^l of it
            given = rho * given + x[k - 1] - rho * x_k
        return x[-1], given / (1 - rho**l)

    return _cascade(h, (1 - dt) / (1 + dt), l, last)


def _cascade(h, rho, l, before):
    """Σ_j h_j s_{j+1}: each stage takes in s and gives ρ s'_{k−1} + s_{k−1} − ρ s_k."""
    K, s = [mp.zero] * l, [mp.one, *[mp.zero] * (l - 1)][:l]
    for h_j in h if l else []:
        late, given = before(s, rho)
        stage = []
        for x in s:
            given, late = rho * given + late - rho * x, x
            stage.append(given)
        s = stage
        K = [k + h_j * x for k, x in zip(K, s, strict=True)]
    return K
