// Coefficients and logarithms of Mega's moving average, and the way back; one thread a dimension, as
// in modes.cuh:
//
//     p = σ(δ),  s = σ(α),  q = 1 − p s,  v = n^{−½} p β γ,  x = log q
//
// Bound by the launch: 256 × 32 dimensions are 0.4 MB.
#ifndef REFSSM_AVERAGES_CUH
#define REFSSM_AVERAGES_CUH
#include "modes_functions.cuh"
#include "../common/rows.cuh"

struct averages_sizes {
    long long count, n, inner;  // count: dimensions of all rows; inner: see row_of
    unsigned mask;              // two bits for each of delta, alpha, beta, gamma: see row_of
};

DEVICE double logistic(double x) {
    const double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

template <class E> struct average_of {
    using W = wide_of<E>;
    double delta, alpha, p, s, scale;
    W beta, gamma;
    DEVICE average_of(const real_of<E>* delta_, const real_of<E>* alpha_, const E* beta_,
                      const E* gamma_, long long i, const averages_sizes& size) {
        const long long row = i / size.n, n = i % size.n;
        const auto at = [&](int k) { return row_of(size, k, row) * size.n + n; };
        delta = widest(delta_[at(0)]);
        alpha = widest(alpha_[at(1)]);
        beta = widest(beta_[at(2)]);
        gamma = widest(gamma_[at(3)]);
        p = logistic(delta);
        s = logistic(alpha);
        scale = 1 / sqrt(static_cast<double>(size.n));
    }
};

template <class E>
__global__ void __launch_bounds__(128)
    average_modes(const real_of<E>* __restrict__ delta, const real_of<E>* __restrict__ alpha,
                  const E* __restrict__ beta, const E* __restrict__ gamma,
                  wide_of<E>* __restrict__ v, wide_of<E>* __restrict__ x, averages_sizes size) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= size.count) return;
    const average_of<E> m(delta, alpha, beta, gamma, i, size);
    const double loss = m.p * m.s;
    x[i] = from_real<wide_of<E>>(loss == 1 ? NOTHING : log1p(-loss));
    v[i] = m.scale * m.p * m.beta * m.gamma;
}

// `moments` and `start` as in diagonal_modes_back with BILINEAR.
template <class E>
__global__ void __launch_bounds__(128)
    average_modes_back(const real_of<E>* __restrict__ delta, const real_of<E>* __restrict__ alpha,
                       const E* __restrict__ beta, const E* __restrict__ gamma,
                       const wide_of<E>* __restrict__ moments,
                       const wide_of<E>* __restrict__ start, wide_of<E>* __restrict__ ddelta,
                       wide_of<E>* __restrict__ dalpha, wide_of<E>* __restrict__ dbeta,
                       wide_of<E>* __restrict__ dgamma, averages_sizes size) {
    using W = wide_of<E>;
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= size.count) return;
    const average_of<E> m(delta, alpha, beta, gamma, i, size);
    const long long row = i / size.n, at = row * 2 * size.n + i % size.n;
    const W one = moments[at];
    const W T = m.scale * (one + moments[at + size.n]);
    const W S = m.scale * (start[row] + (1 - m.p * m.s) * one);
    const W both = conj(m.beta * m.gamma);
    ddelta[i] = both * (m.p * logistic(-m.delta)) * (S - m.p * m.s * T);
    dalpha[i] = -(both * (m.p * m.p * (m.s * logistic(-m.alpha))) * T);
    dbeta[i] = m.p * conj(m.gamma) * S;
    dgamma[i] = m.p * conj(m.beta) * S;
}

#endif
