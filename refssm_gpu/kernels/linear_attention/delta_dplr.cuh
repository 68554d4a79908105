// The rule with a low-rank transition step by step, and its adjoint: a warp for each column of the
// state, its lanes along the keys. With S_{t-1} = 0 where a sequence begins and e = e^{log_g}:
//
//     z_t = a_t · S_{t-1},  S_t = e_t S_{t-1} + b_t z_t + k_t v_t,   y_t = q_t · S_t,
//     H_t = q_t dy_t + G_{t+1},  w_t = b_t · H_t,  G_t = e_t H_t + a_t w_t, 0 where a sequence begins.
//
// A column depends on no other one. It stays in memory, in cache lines of its warp; the pass that writes
// it reads it for q_t and for a_{t+1}. For gradients S_{t-1} and H_t of all steps of a piece are
// written; their products are matrix products elsewhere.
#ifndef REFSSM_DELTA_DPLR_CUH
#define REFSSM_DELTA_DPLR_CUH
#include "linear_attention.cuh"

struct low_rank_sizes {
    long long l, n, p, inner;
    unsigned mask;  // two bits for each argument, in the order below
    int at_rest;    // a sequence begins at time 0
};
enum { LOW_RANK_Q, LOW_RANK_K, LOW_RANK_V, LOW_RANK_LOG_G, LOW_RANK_A, LOW_RANK_B, LOW_RANK_S0, LOW_RANK_RESETS };

DEVICE bool low_rank_begins(const unsigned char* resets, const low_rank_sizes& size, long long row,
                        long long t) {
    if (size.at_rest && t == 0) return true;
    return resets && resets[row_of(size, LOW_RANK_RESETS, row) * size.l + t];
}

// Outputs and the last state; or, with `before` and `read`, S_{t-1} and z_t of all steps.
template <class S>
__global__ void __launch_bounds__(128, 4)
    low_rank_states(const S* __restrict__ q, const S* __restrict__ k, const S* __restrict__ v,
                const S* __restrict__ log_g, const S* __restrict__ a, const S* __restrict__ b,
                const accumulate_of<S>* __restrict__ start,
                const unsigned char* __restrict__ resets, S* __restrict__ y, accumulate_of<S>* now,
                accumulate_of<S>* __restrict__ before, accumulate_of<S>* __restrict__ read,
                low_rank_sizes size) {
    using E = accumulate_of<S>;
    const long long groups = (size.p + COLUMNS - 1) / COLUMNS, row = blockIdx.x / groups;
    const long long p = blockIdx.x % groups * COLUMNS + threadIdx.x / 32;
    if (p >= size.p) return;
    const int lane = threadIdx.x % 32;
    const long long steps = size.l * size.n;
    q += row_of(size, LOW_RANK_Q, row) * steps;
    k += row_of(size, LOW_RANK_K, row) * steps;
    v += row_of(size, LOW_RANK_V, row) * size.l * size.p + p;
    log_g += row_of(size, LOW_RANK_LOG_G, row) * steps;
    a += row_of(size, LOW_RANK_A, row) * steps;
    b += row_of(size, LOW_RANK_B, row) * steps;
    now += (row * size.p + p) * size.n;
    if (start) start += (row_of(size, LOW_RANK_S0, row) * size.p + p) * size.n;
    E recalled = zero<E>();
    for (long long n = lane; n < size.n; n += 32) {
        const E s = start ? start[n] : zero<E>();
        now[n] = s;
        if (size.l) recalled += s * widen(a[n]);
    }
    for (long long t = 0; t < size.l; ++t) {
        const bool begins = low_rank_begins(resets, size, row, t);
        const long long place = (row * size.l + t) * size.p + p, later = t + 1 < size.l ? t + 1 : t;
        const E u = widen(v[t * size.p]);
        E z = lanes_total(recalled), total = zero<E>();
        if (begins) z = zero<E>();
        if (read && lane == 0) read[place] = z;
        recalled = zero<E>();
        for (long long n = lane; n < size.n; n += 32) {
            const long long at = t * size.n + n;
            E s = begins ? zero<E>() : now[n];
            if (before) before[place * size.n + n] = s;
            s = begins ? zero<E>() : exp(widen(log_g[at])) * s;
            s += widen(b[at]) * z + widen(k[at]) * u;
            now[n] = s;
            total += s * widen(q[at]);
            recalled += s * widen(a[later * size.n + n]);
        }
        total = lanes_total(total);
        if (y && lane == 0) y[place] = narrow<S>(total);
    }
}

// H_t of all steps, and the cotangent of the state before the first one.
template <class S>
__global__ void __launch_bounds__(128, 4)
    low_rank_cotangents(const S* __restrict__ dy, const accumulate_of<S>* __restrict__ dlast,
                    const S* __restrict__ q, const S* __restrict__ log_g, const S* __restrict__ a,
                    const S* __restrict__ b, const unsigned char* __restrict__ resets,
                    accumulate_of<S>* now, accumulate_of<S>* __restrict__ H, low_rank_sizes size) {
    using E = accumulate_of<S>;
    const long long groups = (size.p + COLUMNS - 1) / COLUMNS, row = blockIdx.x / groups;
    const long long p = blockIdx.x % groups * COLUMNS + threadIdx.x / 32;
    if (p >= size.p) return;
    const int lane = threadIdx.x % 32;
    const long long steps = size.l * size.n, column = row * size.p + p;
    q += row_of(size, LOW_RANK_Q, row) * steps;
    log_g += row_of(size, LOW_RANK_LOG_G, row) * steps;
    a += row_of(size, LOW_RANK_A, row) * steps;
    b += row_of(size, LOW_RANK_B, row) * steps;
    now += column * size.n;
    for (long long n = lane; n < size.n; n += 32)
        now[n] = dlast ? dlast[column * size.n + n] : zero<E>();
    for (long long t = size.l - 1; t >= 0; --t) {
        const bool begins = low_rank_begins(resets, size, row, t);
        const long long place = (row * size.l + t) * size.p + p;
        const E dy_t = widen(dy[place]);
        E w = zero<E>();
        for (long long n = lane; n < size.n; n += 32) {
            const E h = now[n] + widen(q[t * size.n + n]) * dy_t;
            now[n] = h;
            H[place * size.n + n] = h;
            w += h * widen(b[t * size.n + n]);
        }
        w = lanes_total(w);
        for (long long n = lane; n < size.n; n += 32) {
            const long long at = t * size.n + n;
            now[n] = begins ? zero<E>() : exp(widen(log_g[at])) * now[n] + widen(a[at]) * w;
        }
    }
}
#endif
