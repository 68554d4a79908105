// DPLR systems of rank 1 or 2 at the roots of unity: K̂ = 2 C (diag D + s P Qᴴ)⁻¹ B, s = 1 + z, and
// for the gradients the solutions of rank R at each node.
//
// D = s T with T_n = 2/dt i tan θ/2 − w_n at z = e^(−iθ); then K̂ = (1 + i tan θ/2) Cᵀ X. A thread has
// a node. Modes come through shared memory, 64 at a time, as w and the (R + 1)² products of [C, Q*]
// and [B, P]; one reciprocal serves them all, and their sums stay in registers, so that nothing as
// large as nodes times modes touches memory. A mode with T = 0 is left out of the sums: its X is one
// more unknown of the small system (two such modes at a node give NaN). At z = −1, where T is
// infinite, 1 in its place makes S_00 the Σ C B of which K̂ is a multiple.
//
// Bound by flops, in double precision for every type: 10 + 4 (R + 1)² fused operations for a node and
// a mode. 64 systems, n = 64, l = 16384, R = 1: 67 million pairs, 1.7 G of them; 17 MB written, where
// array code passes about twenty times over 1 GB. More nodes for a thread would save nothing: a mode
// is 1 + (R + 1)² loads from shared memory, the same for all threads.
#ifndef REFSSM_DPLR_NODES_CUH
#define REFSSM_DPLR_NODES_CUH
#include "capacitance.cuh"

struct dplr_sizes {
    long long l, n;
    long long tiles;  // blocks along the nodes
    long long inner;
    unsigned mask;    // two bits for each of w, P, Q, B, C, dt: see row_of
};

inline constexpr int DPLR_THREADS = 128, DPLR_SLICE = 64;  // nodes of a block; modes at a time

// What the gradients need of a node. c and c_back end with X and Y of the mode with T = 0.
template <int R> struct alignas(16) dplr_record {
    double height, tangent;  // T = i height − w
    complex128 turned;       // the gradient of Cᵀ X, conjugated; without a meaning at z = −1
    complex128 c[R + 1], c_back[R + 1];
};

template <int R> struct weights_of {
    complex128 w, product[R + 1][R + 1];
};

template <int R> struct dplr_node {
    node_sums<R> sums;
    double height, tangent;
    bool infinite;

    // tan θ/2 = tan πj/l from an angle of at most π/4, where it is 1 on every card; 0 in place of ∞.
    DEVICE dplr_node(long long j, long long l, double dt) {
        const long long folded = least(j, l - j);
        const bool near = 4 * folded <= l;  // of z = 1
        const long long quarter = near ? 2 * folded : l - 2 * folded;
        double s, c;
        sincospi(static_cast<double>(quarter) / static_cast<double>(2 * l), &s, &c);
        if (4 * folded == l) s = c;
        const double above = near ? s : c, below = near ? c : s;
        infinite = below == 0;
        tangent = infinite ? 0.0 : (2 * j > l ? -above : above) / below;
        height = __dmul_rn(2 / dt, tangent);  // never fused with w: T = 0 is the same everywhere
    }

    // The sums over all modes, by all threads of the block.
    DEVICE void add_up(const system_of<R>& system, long long n) {
        SHARED(weights_of<R>, modes, DPLR_SLICE);
        const double keep = infinite ? 0.0 : 1.0;
        long long met = -1;
#pragma unroll
        for (int i = 0; i <= R; ++i)
#pragma unroll
            for (int j = 0; j <= R; ++j) sums.S[i][j] = {0, 0};
        for (long long start = 0; start < n; start += DPLR_SLICE) {
            const int count = static_cast<int>(least(n - start, DPLR_SLICE));
            __syncthreads();  // nobody reads the last modes any more
            if (static_cast<int>(threadIdx.x) < count)
                modes[threadIdx.x] = weighted(system[start + threadIdx.x]);
            __syncthreads();
            for (int m = 0; m < count; ++m) {
                const weights_of<R>& mode = modes[m];
                const complex128 T = {(1 - keep) - keep * mode.w.re, height - keep * mode.w.im};
                complex128 own;
                if (!inverted(T, own)) {
                    const bool first = is_zero(T) && met < 0;
                    met = first ? start + m : met;
                    own = first ? complex128{0, 0} : infinite ? complex128{1, 0} : 1.0 / T;
                }
#pragma unroll
                for (int i = 0; i <= R; ++i)
#pragma unroll
                    for (int j = 0; j <= R; ++j) add_product(sums.S[i][j], own, mode.product[i][j]);
            }
        }
        sums.met = met >= 0;
        const mode_of<R> border = sums.met ? system[met] : mode_of<R>{};
#pragma unroll
        for (int i = 0; i <= R; ++i) {
            sums.left[i] = border.left[i];
            sums.right[i] = border.right[i];
        }
    }

    static DEVICE weights_of<R> weighted(const mode_of<R>& mode) {
        weights_of<R> made;
        made.w = mode.w;
#pragma unroll
        for (int i = 0; i <= R; ++i)
#pragma unroll
            for (int j = 0; j <= R; ++j) made.product[i][j] = mode.left[i] * mode.right[j];
        return made;
    }
};

template <int R>
__global__ void __launch_bounds__(128, 4)
    dplr_spectrum(const complex128* __restrict__ w, const complex128* __restrict__ P,
                  const complex128* __restrict__ Q, const complex128* __restrict__ B,
                  const complex128* __restrict__ C, const double* __restrict__ dt,
                  complex128* __restrict__ K, dplr_sizes size) {
    const long long row = blockIdx.x / size.tiles;
    const long long j = blockIdx.x % size.tiles * DPLR_THREADS + threadIdx.x;
    system_of<R> system{w, P, Q, B, C, 0};
    system.move_to(row, size, dt);
    dplr_node<R> node(j < size.l ? j : 0, size.l, system.dt);
    node.add_up(system, size.n);
    if (j >= size.l) return;
    const node_sums<R>& sums = node.sums;
    if (node.infinite) {
        K[row * size.l + j] = sums.S[0][0] * (system.dt / 2);
        return;
    }
    complex128 c[R + 1], total = sums.S[0][0];
    sums.solve(false, c);
#pragma unroll
    for (int r = 0; r < R; ++r) total -= sums.S[0][r + 1] * c[r];
    if (sums.met) total += sums.left[0] * c[R];
    K[row * size.l + j] = total * complex128{1, node.tangent};
}

// `d` is the transform of the kernel's cotangent.
template <int R>
__global__ void __launch_bounds__(128, 3)
    dplr_solutions(const complex128* __restrict__ w, const complex128* __restrict__ P,
                   const complex128* __restrict__ Q, const complex128* __restrict__ B,
                   const complex128* __restrict__ C, const double* __restrict__ dt,
                   const complex128* __restrict__ d,
                   complex128* __restrict__ found,  // (rows, l) records
                   dplr_sizes size) {
    const long long row = blockIdx.x / size.tiles;
    const long long j = blockIdx.x % size.tiles * DPLR_THREADS + threadIdx.x;
    system_of<R> system{w, P, Q, B, C, 0};
    system.move_to(row, size, dt);
    dplr_node<R> node(j < size.l ? j : 0, size.l, system.dt);
    node.add_up(system, size.n);
    if (j >= size.l) return;
    const long long at = row * size.l + j;
    dplr_record<R>& record = reinterpret_cast<dplr_record<R>*>(found)[at];
    record.height = node.height;
    record.tangent = node.tangent;
    record.turned = conj(d[at]) * (1 / static_cast<double>(size.l)) * complex128{1, node.tangent};
#pragma unroll 1
    for (int side = 0; side < 2; ++side) {
        complex128 c[R + 1];
        node.sums.solve(side, c);
        complex128* const to = side ? record.c_back : record.c;
#pragma unroll
        for (int r = 0; r <= R; ++r) to[r] = c[r];
    }
}

#endif
