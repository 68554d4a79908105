// Three right kernels, and the bugs of kernels planted in them, one for each value of PLANTED.
// test_host_planted.py says which checker must report which.
#include "common/number.cuh"

#ifndef PLANTED
#define PLANTED 0
#endif
DEVICE constexpr bool planted(int number) { return PLANTED == number; }

// x_k = x_{k-1} + b_k in each row: a block takes a row, 128 steps at a time. Shuffles add within a
// warp, four totals in shared memory between warps; the last state stays in registers.
// `steps` of them; l lie between two rows.
template <class E> DEVICE void scan_row(const E* b, E* x, long long l, long long steps) {
    SHARED(E, totals, 4);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long first = blockIdx.x * l;
    if constexpr (planted(1)) first = static_cast<int>(first);  // 32 bits
    E carry = zero<E>();
    if constexpr (planted(2))  // the state of another row
        if (blockIdx.x > 0) carry = x[first - 1];
    if constexpr (planted(3)) carry = b[first - 1];  // there is no row before the first one
    for (long long start = 0; start < steps; start += 128) {
        const long long k = start + threadIdx.x;
        E sum = k < steps || planted(4) ? b[first + k] : zero<E>();
        unsigned mask = WHOLE_WARP;
        if constexpr (planted(5)) mask = 0x7fffffffu;
        if constexpr (planted(6)) mask = lane < 16 ? 0xffffu : 0xffff0000u;
        if constexpr (planted(7)) mask = lane < 16 ? WHOLE_WARP : 0xfffffff0u;
        for (int d = 1; d < 32; d *= 2) {
            const E earlier = shuffle_up(mask, sum, static_cast<unsigned>(d));
            if (lane >= d) sum += earlier;
        }
        if (lane == 31) totals[warp] = sum;
        if constexpr (planted(8)) {  // only where there is something to do
            if (k < steps) __syncthreads();
        } else if constexpr (!planted(9)) {
            __syncthreads();
        }
        E before = carry;
        for (int w = 0; w < warp; ++w) before += totals[w];
        for (int w = 0; w < 4; ++w) carry += totals[w];
        if (k < steps || planted(10)) x[(planted(11) ? 0 : first) + k] = before + sum;
        if constexpr (!planted(12)) __syncthreads();  // the totals are written again
    }
}

template <class E>
__global__ void __launch_bounds__(128) chunked_scan(const E* b, E* x, long long l) {
    scan_row(b, x, l, l);
}
template <class E>
__global__ void __launch_bounds__(128)
    chunked_scan_head(const E* b, E* x, long long l, long long steps) {
    scan_row(b, x, l, steps);
}

// The sum of 128 numbers by each block, in a tree; `blocks` counts the blocks.
template <class E>
__global__ void __launch_bounds__(128) tiled_sum(const E* x, E* out, int* blocks, long long n) {
    SHARED(E, tile, planted(13) ? 127 : 128);
    const int t = threadIdx.x;
    const long long k = t + 128ll * blockIdx.x;
    if constexpr (planted(14))
        if (k >= n) return;  // and the others wait
    if (!planted(15) || k < n) tile[t] = k < n ? x[k] : zero<E>();
    __syncthreads();
    if constexpr (planted(16)) tile[t] += 0 * tile[t - 1];
    for (int d = 64; d >= 32; d /= 2) {
        if (t < d) tile[t] += tile[t + d];
        if constexpr (!planted(17)) __syncthreads();
    }
    for (int d = 16; d > 0 && t < 32; d /= 2) {
        const E other = tile[t + d];
        __syncwarp();
        tile[t] += other;
        if constexpr (!planted(18)) __syncwarp();
    }
    if (t != 0) return;
    out[planted(19) ? 0 : blockIdx.x] = tile[0];
    if constexpr (planted(20)) *blocks += 1;
    else atomicAdd(blocks, 1);
    if constexpr (planted(21)) *blocks = 1 << (n / 4);  // 4 n > 128: a shift by more than 31
}

// Columns become rows, in tiles of 16 × 16 with one column more, so that neither side of the tile
// meets itself in a bank; 16 bytes a load.
template <class E>
__global__ void __launch_bounds__(64)
    transposed(const E* x, E* out, long long rows, long long columns) {
    SHARED(E, tile, 16 * 17);
    const int i = threadIdx.x / 4, j = threadIdx.x % 4 * 4;
    const long long row = 16ll * blockIdx.y + i, column = 16ll * blockIdx.x + j;
    if ((row < rows || planted(22)) && column < columns) {
        const E* place = x + row * columns + column;
        if constexpr (planted(23)) place = x + row * (columns - 1) + column;
        const float4 four = *reinterpret_cast<const float4*>(place);
        const E values[] = {four.x, four.y, four.z, four.w};
        for (int c = 0; c < 4; ++c) tile[(j + c) * (planted(24) ? 16 : 17) + i] = values[c];
    }
    if constexpr (!planted(25)) __syncthreads();
    const long long out_row = 16ll * blockIdx.x + i, out_column = 16ll * blockIdx.y + j;
    for (int c = 0; c < 4; ++c)
        if (out_row < columns && out_column + c < rows) {
            const int offset = planted(26) ? 1 << 30 : 0;
            if constexpr (planted(26)) out[0] = offset + 2 * (offset * (1 + c % 2));  // overflows
            out[out_row * rows + out_column + c] = tile[i * 17 + j + c];
        }
}
