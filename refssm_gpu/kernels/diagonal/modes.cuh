// Coefficients v and logarithms x of the diagonal kernels, K_k = Σ_n v_n e^{x_n k}, and the way back.
//
// One thread a mode, everything in double precision: as array code this would be twenty launches and
// more, each longer than the work. Bound by the launch: 256 × 32 modes are 0.7 MB.
#ifndef REFSSM_MODES_CUH
#define REFSSM_MODES_CUH
#include "modes_functions.cuh"
#include "../common/rows.cuh"

struct modes_sizes {
    long long count, n, inner, l;  // count: modes of all rows; inner: see row_of
    unsigned mask;                 // two bits for each of w, B, C, dt: see row_of
};

enum { HOLD, BILINEAR, SOFTMAX, RESOLVENT };

// One mode's arguments.
template <class E> struct mode_of {
    using W = wide_of<E>;
    W w, B, C;
    double dt;
    DEVICE mode_of(const E* w_, const E* B_, const E* C_, const real_of<E>* dt_, long long i,
                   const modes_sizes& size) {
        const long long row = i / size.n, n = i % size.n;
        const auto of = [&](int k) { return row_of(size, k, row); };
        w = widest(w_[of(0) * size.n + n]);
        B = B_ ? widest(B_[of(1) * size.n + n]) : from_real<W>(1);
        C = widest(C_[of(2) * size.n + n]);
        dt = dt_ ? widest(dt_[of(3)]) : 1;
    }
};

// `flags`: modes with a negative root (BILINEAR), or that are summed from the last time back.
template <class E, int METHOD>
__global__ void __launch_bounds__(128)
    diagonal_modes(const E* __restrict__ w, const E* __restrict__ B, const E* __restrict__ C,
                   const real_of<E>* __restrict__ dt, wide_of<E>* __restrict__ v,
                   wide_of<E>* __restrict__ x, unsigned char* __restrict__ flags,
                   modes_sizes size) {
    using W = wide_of<E>;
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= size.count) return;
    const mode_of<E> m(w, B, C, dt, i, size);
    const double terms = static_cast<double>(size.l > 1 ? size.l : 1);
    bool flag = false;
    if constexpr (METHOD == HOLD) {
        x[i] = m.dt * m.w;
        v[i] = m.C * (m.dt * phi1(x[i])) * m.B;
    } else if constexpr (METHOD == BILINEAR) {
        const W h = m.dt * m.w * 0.5;
        x[i] = bilinear_logarithm(h, flag);
        v[i] = m.C * (m.dt / (1.0 - h)) * m.B;
    } else if constexpr (METHOD == SOFTMAX) {
        const W z = m.dt * m.w;
        flag = real(z) > 0;
        const W fallen = flag ? -z : z;
        x[i] = fallen;
        v[i] = m.C / m.w *
               (exponential_minus_one(fallen) / exponential_minus_one(terms * fallen));
    } else {  // Σ C/(1 − w ω): see refssm_gpu/cauchy.py
        const complex128 log = logarithm(complex_from(m.w.re, m.w.im));
        flag = modulus(m.w) > 1;
        const complex128 fallen = flag ? -log : log;
        x[i] = fallen;
        v[i] = m.C * ((flag ? exponential(fallen) : complex_from(-1, 0)) /
                      exponential_minus_one(terms * fallen));
    }
    if (flags) flags[i] = flag;
}

// Gradients of a mode from S = Σ_k dk_k E* and T = Σ_k k dk_k E*, E = e^{xk}, side by side in
// `moments`, (rows, 2, n); with BILINEAR both without time 0, which has the cotangent `start`, and
// E counts from time 1. The gradient of dt still has to be summed over the modes of a row.
template <class E, int METHOD>
__global__ void __launch_bounds__(128)
    diagonal_modes_back(const E* __restrict__ w, const E* __restrict__ B, const E* __restrict__ C,
                        const real_of<E>* __restrict__ dt,
                        const wide_of<E>* __restrict__ moments,
                        const wide_of<E>* __restrict__ start, wide_of<E>* __restrict__ dw,
                        wide_of<E>* __restrict__ dB, wide_of<E>* __restrict__ dC,
                        wide_of<E>* __restrict__ ddt, modes_sizes size) {
    using W = wide_of<E>;
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= size.count) return;
    const mode_of<E> m(w, B, C, dt, i, size);
    const long long row = i / size.n, at = row * 2 * size.n + i % size.n;
    W S = moments[at], T = moments[at + size.n];
    const W z = m.dt * m.w;
    if constexpr (METHOD == HOLD) {
        const W H = m.dt * phi1(z), CB = conj(m.C * m.B);
        dw[i] = CB * (conj(m.dt * m.dt * phi1_slope(z)) * S + conj(m.dt * H) * T);
        ddt[i] = CB * (conj(exponential(z)) * S + conj(m.w * H) * T);
        dB[i] = conj(m.C * H) * S;
        dC[i] = conj(H * m.B) * S;
    } else if constexpr (METHOD == BILINEAR) {
        const W h = z * 0.5, R = 1.0 / (1.0 - h), H = m.dt * R;
        T = S + T;
        S = start[row] + conj((1.0 + h) * R) * S;
        const W through = conj(m.C * m.B * (R * R));
        dw[i] = m.dt * m.dt * through * (S * 0.5 + conj(R) * T);
        ddt[i] = through * (S + conj(z * R) * T);
        dB[i] = conj(m.C * H) * S;
        dC[i] = conj(H * m.B) * S;
    } else {
        const double terms = static_cast<double>(size.l > 1 ? size.l : 1);
        const bool rising = real(z) > 0;
        const W x = rising ? -z : z, one = exponential_minus_one(x);
        const W whole = exponential_minus_one(terms * x), r = one / whole;
        const W mean = terms * (exponential(terms * x) / whole) - exponential(x) / one;
        const W v = conj(m.C / m.w * r), centred = v * (T - conj(mean) * S);
        const W dz = rising ? -centred : centred;
        dw[i] = m.dt * dz - v * S / conj(m.w);
        ddt[i] = conj(m.w) * dz;
        dC[i] = conj(r / m.w) * S;
    }
}

#endif
