"""Oracles for refssm.hope."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def hope_transfer(h, dt, *, l):
    """Σ_i h_i z'_j^{−(i+1)}, z'_j = ((1 + dt) ω_j + dt − 1)/((dt − 1) ω_j + dt + 1)."""
    omega = [mp.expjpi(mp.mpf(2 * j) / l) for j in range(l)]
    inverses = [((dt - 1) * z + dt + 1) / ((1 + dt) * z + dt - 1) for z in omega]
    return [_horner(h, p) for p in inverses]


def _horner(h, p):
    """Σ_i h_i p^{i+1}."""
    total = mp.zero
    for h_i in reversed(h):
        total = (total + h_i) * p
    return total


def hope_kernel(h, dt, *, l):
    """The first l coefficients in x of Σ_j h_j ((x − ρ)/(1 − ρ x))^{j+1}, ρ = (1 − dt)/(1 + dt)."""
    return _cascade(h, (1 - dt) / (1 + dt), l, lambda x, rho: (mp.zero, mp.zero))


def hope_kernel_aliased(h, dt, *, l):
    """The same modulo x^l − 1: each stage starts with its periodic input and output."""

    def last(x, rho):
        given = mp.zero
        for k, x_k in enumerate(x):  # sum of one period; each earlier period counts ρ^l times
            given = rho * given + x[k - 1] - rho * x_k
        return x[-1], given / (1 - rho**l)

    return _cascade(h, (1 - dt) / (1 + dt), l, last)


def _cascade(h, rho, l, before):
    """Σ_j h_j s_{j+1}: a stage with input s has output s'_k = ρ s'_{k−1} + s_{k−1} − ρ s_k."""
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


def hope_stream(h, dt, u):
    """Σ_j h_j s_{j+1}, s_0 = u, s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k}."""
    rho, s, y = (1 - dt) / (1 + dt), u, [mp.mpf(0)] * len(u)
    for h_j in h:
        delayed, last_in, last_out = [], mp.mpf(0), mp.mpf(0)
        for into in s:
            last_in, last_out = into, rho * last_out + last_in - rho * into
            delayed.append(last_out)
        s = delayed
        y = [y_k + h_j * s_k for y_k, s_k in zip(y, s, strict=True)]
    return y


def hope_stream_stateful(h, dt, u, x0):
    """Step by step; and the last states."""
    y, x = [], x0
    for u_k in u:
        y_k, x = hope_step(h, dt, u_k, x)
        y.append(y_k)
    return y, x


def hope_step(h, dt, u, x):
    """Rotations of (x_j, s_j) by ρ = cos φ, c = sin φ, tan φ/2 = √dt; y = Σ_j h_j s_{j+1}."""
    rho, c = (1 - dt) / (1 + dt), 2 * mp.sqrt(dt) / (1 + dt)
    s, turned, y = u, [], mp.mpf(0)
    for h_j, x_j in zip(h, x, strict=True):
        turned.append(rho * x_j + c * s)
        s = c * x_j - rho * s
        y += h_j * s
    return y, turned


def hope_recency_power(h, gamma):
    """h_j (j + 1)^γ."""
    return [h_j * mp.mpf(j + 1) ** gamma for j, h_j in enumerate(h)]


def hope_recency_exponential(h, beta):
    """h_j e^{−βj}."""
    return [h_j * mp.exp(-beta * j) for j, h_j in enumerate(h)]
