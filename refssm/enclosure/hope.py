"""Enclosures for refssm.hope: the allpass (x − ρ)/(1 − ρ x) as a power series, and its powers."""

from flint import acb, arb, fmpq

from refssm.enclosure.algebra import dot, product


def hope_transfer(h, dt, *, l):
    """Σ_i h_i p_j^{i+1}, p = (x − ρ)/(1 − ρ x) at x = e^{−2πij/l}."""
    turns = [arb.sin_cos_pi_fmpq(fmpq(2 * j, l)) for j in range(l)]
    return [_at(h, dt, acb(cosine, -sine)) for sine, cosine in turns]


def _at(h, dt, x):
    """Σ_i h_i p^{i+1}, with numerator and denominator of p multiplied by 1 + dt."""
    p = ((1 + dt) * x - (1 - dt)) / ((1 + dt) - (1 - dt) * x)
    return sum((h_i * p ** (i + 1) for i, h_i in enumerate(h)), acb(0))


def hope_kernel(h, dt, *, l):
    """The first l coefficients of Σ_j h_j s(x)^{j+1}, s = −ρ + (1 − ρ²) (x + ρ x² + ρ² x³ + …)."""
    rho = (1 - dt) / (1 + dt)
    s = [-rho, *((1 - rho**2) * rho**k for k in range(l))][:l]
    power, K = [1, *[0] * l][:l], [acb(0)] * l
    for h_j in h:
        power = product(power, s, l)
        K = [k + h_j * p for k, p in zip(K, power, strict=True)]
    return K


def hope_kernel_aliased(h, dt, *, l):
    """The inverse transform of the transfer function at the roots of unity."""
    spectrum = hope_transfer(h, dt, l=l)
    turns = [arb.sin_cos_pi_fmpq(fmpq(2 * j, l)) for j in range(l)]
    roots = [acb(cosine, sine) for sine, cosine in turns]
    return [sum((v * roots[j * k % l] for j, v in enumerate(spectrum)), acb(0)) / l
            for k in range(l)]  # fmt: skip


def hope_stream(h, dt, u):
    """The product of u with the kernel, as power series."""
    return product(u, hope_kernel(h, dt, l=len(u)), len(u))


def hope_stream_stateful(h, dt, u, x0):
    """Step by step: y, and the last states."""
    y, x = [], x0
    for u_k in u:
        y_k, x = hope_step(h, dt, u_k, x)
        y.append(y_k)
    return y, x


def hope_step(h, dt, u, x):
    """(x'_j, s_{j+1}) is the reflection of (x_j, s_j): [[ρ, c], [c, −ρ]], c = √(1 − ρ²)."""
    rho = (1 - dt) / (1 + dt)
    c = (1 - rho**2).sqrt()
    s, turned = [u], []
    for x_j in x:
        turned.append(rho * x_j + c * s[-1])
        s.append(c * x_j - rho * s[-1])
    return dot(h, s[1:]), turned


def hope_recency_power(h, gamma):
    """h_j e^{γ log(j + 1)}."""
    return [h_j * (gamma * arb(j + 1).log()).exp() for j, h_j in enumerate(h)]


def hope_recency_exponential(h, beta):
    """h_j (e^{−β})^j."""
    rate = (-beta).exp()
    return [h_j * rate**j for j, h_j in enumerate(h)]
