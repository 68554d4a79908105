// y_i = Σ_j k_j u_{i-j} for rows of any length with any number of taps, and its adjoint.
//
// Bound by memory for few taps: each input is read once and each output written once. A block takes
// TILE outputs of one row; inputs and taps lie in shared memory, taps in groups of GROUP, and each
// thread computes ITEMS outputs that are BLOCK apart, so that neighbours read neighbours.
#ifndef REFSSM_SHORT_CONVOLUTION_CUH
#define REFSSM_SHORT_CONVOLUTION_CUH
#include "../common/number.cuh"
#include "../common/rows.cuh"

inline constexpr int BLOCK = 128, WARPS = BLOCK / 32, ITEMS = 8, TILE = BLOCK * ITEMS, GROUP = 64;
inline constexpr int LOADS = (TILE + GROUP + BLOCK - 1) / BLOCK;  // of a thread, for a tile

struct convolution_sizes {
    long long l, taps, past, inner;  // past: how many inputs before the first are given
    unsigned mask;                   // two bits for each of u, k, s0: see row_of
};

enum { U_BITS, K_BITS, S0_BITS };

// The input at time i: of the signal, or of those before it, the newest at their end.
template <class S>
DEVICE accumulate_of<S> input(const S* u, const S* s0, const convolution_sizes& size, long long i) {
    if (i >= size.l) return zero<accumulate_of<S>>();
    if (i >= 0) return widen(u[i]);
    return i >= -size.past ? widen(s0[size.past + i]) : zero<accumulate_of<S>>();
}

// Fill a tile of shared memory: each thread asks for all its numbers before it stores the first.
template <int COUNT, class E, class From> DEVICE void fill(E* tile, const From& from) {
    E fresh[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int at = threadIdx.x + i * BLOCK;
        fresh[i] = at < TILE + GROUP ? from(at) : zero<E>();
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int at = threadIdx.x + i * BLOCK;
        if (at < TILE + GROUP) tile[at] = fresh[i];
    }
}

template <class S>
__global__ void __launch_bounds__(BLOCK, 4)
    short_convolution(const S* __restrict__ u, const S* __restrict__ k, const S* __restrict__ s0,
                      S* __restrict__ y, convolution_sizes size) {
    using E = accumulate_of<S>;
    SHARED(E, inputs, TILE + GROUP);
    SHARED(E, taps, GROUP);
    const long long tiles = (size.l + TILE - 1) / TILE, row = blockIdx.x / tiles;
    const long long first = blockIdx.x % tiles * TILE;
    u += row_of(size, U_BITS, row) * size.l;
    k += row_of(size, K_BITS, row) * size.taps;
    s0 += row_of(size, S0_BITS, row) * size.past;
    E sums[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) sums[i] = zero<E>();
    // taps that reach before all inputs contribute nothing, whatever they are
    const long long reach = least(size.taps, least(first + TILE, size.l) + size.past);
    for (long long j = 0; j < reach; j += GROUP) {
        const int count = int(least(GROUP, size.taps - j));
        const long long oldest = first - j - (GROUP - 1);
        fill<LOADS>(inputs, [&](int i) { return input(u, s0, size, oldest + i); });
        if (threadIdx.x < GROUP)
            taps[threadIdx.x] = int(threadIdx.x) < count ? widen(k[j + threadIdx.x]) : zero<E>();
        __syncthreads();
        const bool whole = oldest >= -size.past;  // no tap of the group reaches before all inputs
        for (int p = 0; p < count; ++p) {
            const E tap = taps[p];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = threadIdx.x + i * BLOCK + (GROUP - 1) - p;
                if (whole || oldest + at >= -size.past) sums[i] = tap * inputs[at] + sums[i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const long long at = first + threadIdx.x + i * BLOCK;
        if (at < size.l) y[row * size.l + at] = narrow<S>(sums[i]);
    }
}

// du_i = Σ_j conj(k_j) dy_{i+j} for i = -past … l-1, the first `past` of them as ds0; and for each
// tile of these i its part of dk_j = Σ_i conj(u_i) dy_{i+j}: (rows, tiles, taps), added afterwards.
template <class S>
__global__ void __launch_bounds__(BLOCK, 4)
    short_convolution_back(const S* __restrict__ dy, const S* __restrict__ u,
                           const S* __restrict__ k, const S* __restrict__ s0, S* __restrict__ du,
                           accumulate_of<S>* __restrict__ dk, S* __restrict__ ds0,
                           convolution_sizes size) {
    using E = accumulate_of<S>;
    SHARED(E, later, TILE + GROUP);  // dy
    SHARED(E, taps, GROUP);
    SHARED(E, parts, WARPS * GROUP);
    const long long tiles = (size.l + size.past + TILE - 1) / TILE, row = blockIdx.x / tiles;
    const long long first = blockIdx.x % tiles * TILE - size.past;
    dy += row * size.l;
    u += row_of(size, U_BITS, row) * size.l;
    k += row_of(size, K_BITS, row) * size.taps;
    s0 += row_of(size, S0_BITS, row) * size.past;
    E sums[ITEMS], own[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        sums[i] = zero<E>();
        own[i] = conj(input(u, s0, size, first + threadIdx.x + i * BLOCK));
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (long long j = 0; j < size.taps; j += GROUP) {
        const int count = int(least(GROUP, size.taps - j));
        fill<LOADS>(later, [&](int i) {
            const long long at = first + j + i;
            return at >= 0 && at < size.l ? widen(dy[at]) : zero<E>();
        });
        if (threadIdx.x < GROUP)
            taps[threadIdx.x] =
                int(threadIdx.x) < count ? conj(widen(k[j + threadIdx.x])) : zero<E>();
        __syncthreads();
        for (int p = 0; p < count; ++p) {
            const E tap = taps[p];
            E part = zero<E>();
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) {
                const int at = threadIdx.x + i * BLOCK + p;
                const long long time = first + j + at;
                // outside, the product of an infinity and a zero would be NaN
                if (time < 0 || time >= size.l || first + at - p >= size.l) continue;
                sums[i] = tap * later[at] + sums[i];
                part = own[i] * later[at] + part;
            }
#pragma unroll
            for (int d = 16; d; d /= 2) part = part + shuffle_xor(WHOLE_WARP, part, d);
            if (lane == 0) parts[warp * GROUP + p] = part;
        }
        __syncthreads();
        if (int(threadIdx.x) < count) {
            E part = parts[threadIdx.x];
            for (int w = 1; w < WARPS; ++w) part = part + parts[w * GROUP + threadIdx.x];
            dk[blockIdx.x * size.taps + j + threadIdx.x] = part;
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const long long at = first + threadIdx.x + i * BLOCK;
        if (at >= size.l) continue;
        if (at >= 0)
            du[row * size.l + at] = narrow<S>(sums[i]);
        else
            ds0[row * size.past + size.past + at] = narrow<S>(sums[i]);
    }
}
#endif
