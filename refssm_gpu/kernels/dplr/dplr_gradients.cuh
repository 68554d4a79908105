// Gradients of a DPLR kernel of rank 1 or 2, as sums over the nodes that dplr_nodes.cuh has solved:
// with τ the gradient of Cᵀ X at a node, X = (B − P c)/T and Y = (C − Q* c')/T,
//
//     dw = Σ τ X Y,  dB = Σ τ Y,  dC = Σ τ X,  ddt ∝ Σ tan θ/2 τ X Y,  dP = −Σ τ Y c,  dQ = −Σ τ X c'
//
// A thread has one mode and goes through its share of the nodes, which all threads read from shared
// memory in chunks of 64. `across` threads side by side have different modes, the groups of them
// different nodes. The groups' sums are added in order, and the blocks' of a row by another launch.
// X and Y are made for each pair: moments of 1/T and 1/T² would be fewer operations, but dw loses the
// digits that X and Y have where a mode is near a node.
//
// Bound by flops: 37 + 16 R fused operations for a node and a mode. 64 systems, n = 64, l = 16384,
// R = 1: 67 million pairs, 3.6 G of them, and 100 MB of records, read twice.
#ifndef REFSSM_DPLR_GRADIENTS_CUH
#define REFSSM_DPLR_GRADIENTS_CUH
#include "dplr_nodes.cuh"

struct dplr_gradients_sizes {
    long long l, n;
    long long span, pieces;  // nodes of a block, a multiple of 64; blocks along the nodes
    long long across;        // modes of a block: a power of two, at most 32
    long long inner;
    unsigned mask;           // two bits for each of w, P, Q, B, C, dt: see row_of
};

template <int R> struct dplr_totals {
    static constexpr int DW = 0, DB = 1, DC = 2, DDT = 3, DP = 4, DQ = 4 + R, COUNT = 4 + 2 * R;
    complex128 sum[COUNT];

    DEVICE void add(const mode_of<R>& mode, const dplr_record<R>& node) {
        complex128 X = mode.right[0], Y = mode.left[0], own;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            X -= mode.right[r + 1] * node.c[r];
            Y -= mode.left[r + 1] * node.c_back[r];
        }
        const complex128 T = {-mode.w.re, node.height - mode.w.im};
        if (!inverted(T, own)) own = 1.0 / T;
        const bool met = is_zero(T);
        X = met ? node.c[R] : X * own;
        Y = met ? node.c_back[R] : Y * own;
        const complex128 tX = node.turned * X, tY = node.turned * Y, tXY = tX * Y;
        sum[DW] += tXY;
        sum[DB] += tY;
        sum[DC] += tX;
        sum[DDT] += tXY * node.tangent;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            sum[DP + r] -= tY * node.c[r];
            sum[DQ + r] -= tX * node.c_back[r];
        }
    }
};

template <int R>
__global__ void __launch_bounds__(128, 3)
    dplr_gradients(const complex128* __restrict__ w, const complex128* __restrict__ P,
                   const complex128* __restrict__ Q, const complex128* __restrict__ B,
                   const complex128* __restrict__ C, const double* __restrict__ dt,
                   const complex128* __restrict__ records,  // (rows, l)
                   complex128* __restrict__ found,          // (rows, pieces, COUNT, n)
                   dplr_gradients_sizes size) {
    using totals = dplr_totals<R>;
    constexpr int CHUNK = 64, THREADS = DPLR_THREADS;
    SHARED(dplr_record<R>, nodes, CHUNK);
    SHARED(complex128, scratch, THREADS);
    const long long slices = (size.n + size.across - 1) / size.across;
    const long long piece = blockIdx.x / slices, row = piece / size.pieces;
    const int across = static_cast<int>(size.across), group = threadIdx.x / across;
    const long long at = blockIdx.x % slices * across + threadIdx.x % across;
    const long long begin = piece % size.pieces * size.span;
    const long long end = least(begin + size.span, size.l);
    const dplr_record<R>* own = reinterpret_cast<const dplr_record<R>*>(records) + row * size.l;
    system_of<R> system{w, P, Q, B, C, 0};
    system.move_to(row, size, dt);
    const mode_of<R> mode = at < size.n ? system[at] : mode_of<R>{};
    totals total{};
    for (long long start = begin; start < end; start += CHUNK) {
        const int count = static_cast<int>(least(end - start, CHUNK));
        __syncthreads();  // nobody reads the last chunk any more
        if (static_cast<int>(threadIdx.x) < count) nodes[threadIdx.x] = own[start + threadIdx.x];
        __syncthreads();
        for (int i = group; i < count; i += THREADS / across)
            if (2 * (start + i) != size.l) total.add(mode, nodes[i]);  // z = −1: see the launcher
    }
#pragma unroll
    for (int q = 0; q < totals::COUNT; ++q) {
        __syncthreads();  // nobody reads the last sums any more
        scratch[threadIdx.x] = total.sum[q];
        __syncthreads();
        if (group > 0 || at >= size.n) continue;
        complex128 whole = total.sum[q];
        for (int i = threadIdx.x + across; i < THREADS; i += across) whole += scratch[i];
        found[(piece * totals::COUNT + q) * size.n + at] = whole;
    }
}

#endif
