// HOPE's cascade of all-passes as a pipeline of one warp per row:
//
//     x_j <- rho x_j + c s_j,   s_{j+1} = c x_j - rho s_j (the old x_j),   y_k = Σ_j h_j s_{j+1}
//
// Lane i holds STAGES neighbouring stages and works at time t - i: at each tick it takes the signal
// that the lane before it put out one tick earlier. So a tick costs a shuffle and STAGES rotations,
// whatever n is, and nothing but inputs and outputs touches memory (32 of them at once).
// More than 32 STAGES stages are several launches; each takes the signals of the one before.
#ifndef REFSSM_HOPE_STREAM_CUH
#define REFSSM_HOPE_STREAM_CUH
#include "../common/number.cuh"
#include "../common/rows.cuh"

inline constexpr int BLOCK = 128, WARP = 32;

struct cascade_sizes {
    long long l, n, rows, inner;
    long long first;  // stage of this launch
    unsigned mask;    // two bits for each of h, rho and c, u, x0: see row_of
};

enum { H_BITS, RHO_BITS, U_BITS, X0_BITS };

// One row of a launch: which one, and the rotation of its stages.
template <class E> struct cascade_row {
    using R = real_of<E>;
    long long row;
    int lane;
    R rho, c;
    bool inside;
    DEVICE cascade_row(const R* rhos, const R* cs, const cascade_sizes& size) {
        row = static_cast<long long>(blockIdx.x) * (BLOCK / WARP) + threadIdx.x / WARP;
        lane = threadIdx.x % WARP;
        inside = row < size.rows;
        const long long at = inside ? row_of(size, RHO_BITS, row) : 0;
        rho = rhos[at], c = cs[at];
    }
    DEVICE long long of(const cascade_sizes& size, int argument) const {
        return row_of(size, argument, row);
    }
};

// 32 values of a row from `time` on, one in each lane; zeros outside. No array: zeros.
template <class E>
DEVICE E window(const E* signal, long long row, long long l, long long time) {
    return signal && time >= 0 && time < l ? signal[row * l + time] : zero<E>();
}

template <class E, int STAGES>
__global__ void __launch_bounds__(BLOCK, 2)
    hope_stream(const E* __restrict__ h, const real_of<E>* __restrict__ rho,
                const real_of<E>* __restrict__ c, const E* __restrict__ u,
                const E* __restrict__ x0, const E* __restrict__ sums, E* __restrict__ y,
                E* __restrict__ x, E* __restrict__ beyond, cascade_sizes size) {
    const cascade_row<E> at(rho, c, size);
    if (!at.inside) return;
    const long long stage = size.first + at.lane * STAGES, l = size.l;
    const long long of_u = at.of(size, U_BITS), of_x0 = at.of(size, X0_BITS);
    E weight[STAGES], state[STAGES];
#pragma unroll
    for (int q = 0; q < STAGES; ++q) {
        const bool real = stage + q < size.n;
        weight[q] = real ? h[at.of(size, H_BITS) * size.n + stage + q] : zero<E>();
        state[q] = real && x0 ? x0[of_x0 * size.n + stage + q] : zero<E>();
    }
    E out = zero<E>(), total = zero<E>();
    for (long long base = 0; base < l + WARP - 1; base += WARP) {
        const E fresh = window(u, of_u, l, base + at.lane);
        const E before = window(sums, at.row, l, base + at.lane);
        E kept = zero<E>(), passed = zero<E>();
        for (int i = 0; i < WARP; ++i) {
            E s = shuffle_up(WHOLE_WARP, out, 1), sum = shuffle_up(WHOLE_WARP, total, 1);
            const E first = shuffle(WHOLE_WARP, fresh, i), had = shuffle(WHOLE_WARP, before, i);
            if (at.lane == 0) s = first, sum = had;
            const long long k = base + i - at.lane;
            if (k >= 0 && k < l) {
#pragma unroll
                for (int q = 0; q < STAGES; ++q) {
                    if (stage + q >= size.n) break;
                    const E old = state[q];
                    state[q] = at.rho * old + at.c * s;
                    s = at.c * old - at.rho * s;
                    sum = weight[q] * s + sum;
                }
            }
            out = s, total = sum;
            const E done = shuffle(WHOLE_WARP, total, WARP - 1);
            const E left = shuffle(WHOLE_WARP, out, WARP - 1);
            if (at.lane == (i + 1) % WARP) kept = done, passed = left;
        }
        const long long time = at.lane ? base + at.lane - WARP : base;
        if (time >= 0 && time < l) {
            y[at.row * l + time] = kept;
            if (beyond) beyond[at.row * l + time] = passed;
        }
    }
#pragma unroll
    for (int q = 0; q < STAGES; ++q)
        if (stage + q < size.n) x[at.row * size.n + stage + q] = state[q];
}

// Over the same cascade of n = size.n stages, with cotangents dy: dh_j = Σ_k conj(s_{j+1}) dy, and
// each launch's part of Σ_k conj(dy) Σ_j (j + 1) h_j (s_j - s_{j+2}); h has n - 1 entries.
template <class E, int STAGES>
__global__ void __launch_bounds__(BLOCK, 2)
    hope_stream_back(const E* __restrict__ dy, const E* __restrict__ h,
                     const real_of<E>* __restrict__ rho, const real_of<E>* __restrict__ c,
                     const E* __restrict__ u, const E* __restrict__ earlier,
                     const E* __restrict__ x0, E* __restrict__ dh, E* __restrict__ slope,
                     E* __restrict__ x, E* __restrict__ beyond, E* __restrict__ beyond_earlier,
                     cascade_sizes size) {
    const cascade_row<E> at(rho, c, size);
    if (!at.inside) return;
    const long long stage = size.first + at.lane * STAGES, l = size.l;
    const long long of_u = at.of(size, U_BITS), of_x0 = at.of(size, X0_BITS);
    E weight[STAGES], state[STAGES], gathered[STAGES];
#pragma unroll
    for (int q = 0; q < STAGES; ++q) {
        const long long j = stage + q;  // weighs s_{j-1} - s_{j+1}
        weight[q] = j > 0 && j < size.n ? h[at.of(size, H_BITS) * (size.n - 1) + j - 1] : zero<E>();
        weight[q] = real_of<E>(j) * weight[q];
        state[q] = j < size.n && x0 ? x0[of_x0 * size.n + j] : zero<E>();
        gathered[q] = zero<E>();
    }
    E out = zero<E>(), out_earlier = zero<E>(), beside = zero<E>(), sum = zero<E>();
    for (long long base = 0; base < l + WARP - 1; base += WARP) {
        const E fresh = window(u, of_u, l, base + at.lane);
        const E fresh_earlier = window(earlier, at.row, l, base + at.lane);
        const E cotangent = window(dy, at.row, l, base + at.lane);
        E passed = zero<E>(), passed_earlier = zero<E>();
        for (int i = 0; i < WARP; ++i) {
            E s = shuffle_up(WHOLE_WARP, out, 1), old_s = shuffle_up(WHOLE_WARP, out_earlier, 1);
            E g = shuffle_up(WHOLE_WARP, beside, 1);
            const E first = shuffle(WHOLE_WARP, fresh, i), g_k = shuffle(WHOLE_WARP, cotangent, i);
            const E first_earlier = shuffle(WHOLE_WARP, fresh_earlier, i);
            if (at.lane == 0) s = first, old_s = first_earlier, g = g_k;
            const long long k = base + i - at.lane;
            if (k >= 0 && k < l) {
                E here = zero<E>();
#pragma unroll
                for (int q = 0; q < STAGES; ++q) {
                    if (stage + q >= size.n) break;
                    const E old = state[q];
                    state[q] = at.rho * old + at.c * s;
                    const E next = at.c * old - at.rho * s;
                    gathered[q] = conj(next) * g + gathered[q];
                    if (stage + q > 0) here = weight[q] * (old_s - next) + here;
                    old_s = s, s = next;
                }
                sum = conj(g) * here + sum;
            }
            out = s, out_earlier = old_s, beside = g;
            const E left = shuffle(WHOLE_WARP, out, WARP - 1);
            const E left_earlier = shuffle(WHOLE_WARP, out_earlier, WARP - 1);
            if (at.lane == (i + 1) % WARP) passed = left, passed_earlier = left_earlier;
        }
        const long long time = at.lane ? base + at.lane - WARP : base;
        if (beyond && time >= 0 && time < l) {
            beyond[at.row * l + time] = passed;
            beyond_earlier[at.row * l + time] = passed_earlier;
        }
    }
#pragma unroll
    for (int d = WARP / 2; d; d /= 2) sum = sum + shuffle_xor(WHOLE_WARP, sum, d);
    if (at.lane == 0) slope[at.row] = slope[at.row] + sum;
#pragma unroll
    for (int q = 0; q < STAGES; ++q) {
        if (stage + q >= size.n) break;
        x[at.row * size.n + stage + q] = state[q];
        if (stage + q < size.n - 1) dh[at.row * (size.n - 1) + stage + q] = gathered[q];
    }
}
#endif
