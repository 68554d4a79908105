// Linear attention step by step, and its adjoint: a warp for each column of the state, its lanes
// along the keys. With Z_t = a_t S_{t-1} (0 where a sequence begins), a = e^{log_g}:
//
//     S_t = Z_t + k_t u_tᵀ,  y_t = S_tᵀ q_t,   u_t = v_t, or with the delta rule β_t (v_t − Z_tᵀ k_t),
//     H_t = q_t dy_tᵀ + a_{t+1} D_{t+1},       D_t = H_t, or with the delta rule (I − β_t k_t k_tᵀ) H_t.
//
// A column depends on no other one. It stays in memory, in cache lines of its warp. For gradients
// Z_t and H_t of all steps of a piece are written; their products are matrix products elsewhere.
#ifndef REFSSM_LINEAR_ATTENTION_CUH
#define REFSSM_LINEAR_ATTENTION_CUH
#include "../common/number.cuh"
#include "../common/rows.cuh"

constexpr int COLUMNS = 4;  // warps of a block

struct attention_sizes {
    long long l, n, p, gates, inner;  // gates: of a step, 1 or n
    unsigned mask;                    // two bits for each argument, in the order below
    int at_rest;                      // a sequence begins at time 0
};
enum { OF_Q, OF_K, OF_V, OF_LOG_G, OF_BETA, OF_S0, OF_RESETS };

template <class E> DEVICE E lanes_total(E x) {
#pragma unroll
    for (int d = 16; d; d /= 2) x += shuffle_xor(WHOLE_WARP, x, d);
    return x;
}

DEVICE bool sequence_begins(const unsigned char* resets, const attention_sizes& size,
                            long long row, long long t) {
    if (size.at_rest && t == 0) return true;
    return resets && resets[row_of(size, OF_RESETS, row) * size.l + t];
}

// One column of one row: where its arguments begin.
template <class S> struct column_of {
    using E = accumulate_of<S>;
    const S *q, *k, *log_g, *beta;
    attention_sizes size;
    long long row, p;

    DEVICE column_of(const S* q_, const S* k_, const S* log_g_, const S* beta_,
                     const attention_sizes& size_) {
        size = size_;
        const long long groups = (size.p + COLUMNS - 1) / COLUMNS;
        row = blockIdx.x / groups;
        p = blockIdx.x % groups * COLUMNS + threadIdx.x / 32;
        q = q_ + row_of(size, OF_Q, row) * size.l * size.n;
        k = k_ + row_of(size, OF_K, row) * size.l * size.n;
        log_g = log_g_ ? log_g_ + row_of(size, OF_LOG_G, row) * size.l * size.gates : nullptr;
        beta = beta_ ? beta_ + row_of(size, OF_BETA, row) * size.l : nullptr;
    }
    DEVICE E gate(long long t, long long n) const {
        if (!log_g) return one<E>();
        return exp(widen(log_g[t * size.gates + (size.gates > 1 ? n : 0)]));
    }
};

// Outputs and the last state; or, with `before` and `missing`, Z_t and v_t − Z_tᵀ k_t of all steps.
template <class S, int RULE>
__global__ void __launch_bounds__(128, 4)
    attention_states(const S* __restrict__ q, const S* __restrict__ k, const S* __restrict__ v,
                     const S* __restrict__ log_g, const S* __restrict__ beta,
                     const accumulate_of<S>* __restrict__ start,
                     const unsigned char* __restrict__ resets, S* __restrict__ y,
                     accumulate_of<S>* now, accumulate_of<S>* __restrict__ before,
                     accumulate_of<S>* __restrict__ missing, attention_sizes size) {
    using E = accumulate_of<S>;
    const column_of<S> at(q, k, log_g, beta, size);
    if (at.p >= size.p) return;
    const int lane = threadIdx.x % 32;
    const long long column = at.row * size.p + at.p;
    v += row_of(size, OF_V, at.row) * size.l * size.p + at.p;
    now += column * size.n;
    if (start) start += (row_of(size, OF_S0, at.row) * size.p + at.p) * size.n;
    for (long long n = lane; n < size.n; n += 32) now[n] = start ? start[n] : zero<E>();
    for (long long t = 0; t < size.l; ++t) {
        const bool begins = sequence_begins(resets, size, at.row, t);
        const long long place = (at.row * size.l + t) * size.p + at.p;
        E recalled = zero<E>(), total = zero<E>(), u = widen(v[t * size.p]);
        for (long long n = lane; n < size.n; n += 32) {
            const E z = begins ? zero<E>() : at.gate(t, n) * now[n];
            now[n] = z;
            if (before) before[place * size.n + n] = z;
            recalled += z * widen(at.k[t * size.n + n]);
        }
        if constexpr (RULE) u -= lanes_total(recalled);
        if (missing && lane == 0) missing[place] = u;
        if constexpr (RULE) u *= widen(at.beta[t]);
        for (long long n = lane; n < size.n; n += 32) {
            const E s = now[n] + widen(at.k[t * size.n + n]) * u;
            now[n] = s;
            total += s * widen(at.q[t * size.n + n]);
        }
        total = lanes_total(total);
        if (y && lane == 0) y[place] = narrow<S>(total);
    }
}

// H_t of all steps, and the cotangent of the state before the first one.
template <class S, int RULE>
__global__ void __launch_bounds__(128, 4)
    attention_cotangents(const S* __restrict__ dy, const accumulate_of<S>* __restrict__ dlast,
                         const S* __restrict__ q, const S* __restrict__ k,
                         const S* __restrict__ log_g, const S* __restrict__ beta,
                         const unsigned char* __restrict__ resets, accumulate_of<S>* now,
                         accumulate_of<S>* __restrict__ H, attention_sizes size) {
    using E = accumulate_of<S>;
    const column_of<S> at(q, k, log_g, beta, size);
    if (at.p >= size.p) return;
    const int lane = threadIdx.x % 32;
    const long long column = at.row * size.p + at.p;
    now += column * size.n;
    for (long long n = lane; n < size.n; n += 32)
        now[n] = dlast ? dlast[column * size.n + n] : zero<E>();
    for (long long t = size.l - 1; t >= 0; --t) {
        const bool begins = sequence_begins(resets, size, at.row, t);
        const long long place = (at.row * size.l + t) * size.p + at.p;
        const E dy_t = widen(dy[place]);
        E along = zero<E>();
        for (long long n = lane; n < size.n; n += 32) {
            const E h = now[n] + widen(at.q[t * size.n + n]) * dy_t;
            now[n] = h;
            H[place * size.n + n] = h;
            along += h * widen(at.k[t * size.n + n]);
        }
        if constexpr (RULE) along = lanes_total(along) * widen(at.beta[t]);
        for (long long n = lane; n < size.n; n += 32) {
            E d = now[n];
            if constexpr (RULE) d -= widen(at.k[t * size.n + n]) * along;
            now[n] = begins ? zero<E>() : at.gate(t, n) * d;
        }
    }
}
#endif
