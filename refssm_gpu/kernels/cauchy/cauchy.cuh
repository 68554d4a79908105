// k_l = Σ_n v_n / (z_l − w_n), and the gradient of z: −dk_l Σ_n (v_n / (z_l − w_n)²)*.
//
// A thread has a few nodes z in registers; poles and residues come through shared memory, 64 at a
// time, each read by all threads at once. Sums of 64 terms are added to each other, so the error does
// not grow with the number of poles. A node where 1/|z − w|² leaves the safe range is computed again
// with a division that is safe for all numbers.
//
// Bound by flops. A term of complex64 is 11 operations, a comparison and a reciprocal, which has a
// pipe of its own at an eighth of the rate: 256 rows, n = 32, l = 16384: 134 million terms, 1.6 G
// instructions, 34 MB written. 64 rows, n = 64: 67 million terms, 0.8 G instructions, 8 MB.
#ifndef REFSSM_CAUCHY_CUH
#define REFSSM_CAUCHY_CUH
#include "resolvent.cuh"
#include "../common/votes.cuh"

struct cauchy_sizes {
    long long l, n, tiles;  // tiles: blocks along the nodes
    long long rows, group;  // a block adds the gradients of z of so many rows
    long long step_z;       // from the nodes of a row to the next row's: l, or 0
};

template <class E> struct alignas(2 * sizeof(E) < 16 ? 2 * sizeof(E) : 16) pole_of {
    E w, v;
};

template <class E> struct cauchy_tile {
    static constexpr int THREADS = 128, SLICE = 64;
    static constexpr int NODES = sizeof(E) > 8 ? 2 : 4;  // of a thread
    using T = real_of<E>;
    E z[NODES];
    long long first;  // node of this thread; the others are THREADS apart

    DEVICE cauchy_tile(const E* nodes, long long l, long long tile) {
        first = tile * THREADS * NODES + threadIdx.x;
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            const long long at = first + i * THREADS;
            z[i] = nodes[at < l ? at : l - 1];
        }
    }

    // Σ_n v_n R^POWER at this thread's nodes.
    template <int POWER> DEVICE void sums(const E* v, const E* w, long long n, E (&total)[NODES]) {
        SHARED(pole_of<E>, poles, SLICE);
        SHARED(unsigned, votes, THREADS / 32);
        int worst[NODES];
        bool far[NODES];
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            total[i] = from_real<E>(0);
            worst[i] = 0;
            far[i] = is_huge(z[i]);
        }
        for (long long start = 0; start < n; start += SLICE) {
            const int count = static_cast<int>(min(n - start, (long long)SLICE));
            __syncthreads();  // nobody reads the last poles any more
            const bool mine = static_cast<int>(threadIdx.x) < count;
            pole_of<E> pole{};
            if (mine) poles[threadIdx.x] = pole = {w[start + threadIdx.x], v[start + threadIdx.x]};
            note(is_huge(pole.w), votes);
            __syncthreads();
            E part[NODES] = {};
            for (int j = 0; j < count; ++j) {
                const pole_of<E> p = poles[j];
#pragma unroll
                for (int i = 0; i < NODES; ++i) add<POWER>(p, z[i], worst[i], part[i]);
            }
            const bool all = any<THREADS>(votes);
#pragma unroll
            for (int i = 0; i < NODES; ++i) total[i] = total[i] + part[i], far[i] |= all;
        }
        for (int i = 0; i < NODES; ++i) {  // not unrolled: it is rare, and long
            bool again = false;
#pragma unroll
            for (int j = 0; j < NODES; ++j)
                if (j == i) again = far[j] || !is_safe<T>(worst[j]);
            if (!again) continue;
#pragma unroll
            for (int j = 0; j < NODES; ++j)
                if (j == i) total[j] = carefully<POWER>(v, w, n, z[j]);
        }
    }

    template <int POWER> static DEVICE void add(const pole_of<E>& p, E z, int& worst, E& sum) {
        const E R = resolvent(z, p.w, worst);
        if constexpr (is_complex<E>) add_product(sum, p.v, POWER == 2 ? R * R : R);
        else if constexpr (POWER == 1) sum = sum + p.v / (z - p.w);
        else sum = sum + p.v * (R * R);
    }

    template <int POWER>
    static DEVICE E carefully(const E* v, const E* w, long long n, E z) {
        using W = wide_of<E>;
        W sum = from_real<W>(0);
        for (long long j = 0; j < n; ++j) {
            if constexpr (POWER == 1) {
                sum = sum + quotient(v[j], z, w[j]);
            } else {
                const W R = quotient(from_real<E>(1), z, w[j]);
                sum = sum + widest(v[j]) * (R * R);
            }
        }
        return rounded_to<E>(sum);
    }
};

template <class E>
__global__ void __launch_bounds__(128, 4)
    cauchy(const E* __restrict__ v, const E* __restrict__ w, const E* __restrict__ z,
           E* __restrict__ k, cauchy_sizes size) {
    const long long row = blockIdx.x / size.tiles;
    cauchy_tile<E> tile(z + row * size.step_z, size.l, blockIdx.x % size.tiles);
    E total[cauchy_tile<E>::NODES];
    tile.template sums<1>(v + row * size.n, w + row * size.n, size.n, total);
#pragma unroll
    for (int i = 0; i < cauchy_tile<E>::NODES; ++i) {
        const long long at = tile.first + i * cauchy_tile<E>::THREADS;
        if (at < size.l) k[row * size.l + at] = total[i];
    }
}

// dz is (groups of rows, l); where the rows have nodes of their own a group is one row.
template <class E>
__global__ void __launch_bounds__(128, 4)
    cauchy_nodes_back(const E* __restrict__ dk, const E* __restrict__ v, const E* __restrict__ w,
                      const E* __restrict__ z, E* __restrict__ dz, cauchy_sizes size) {
    constexpr int NODES = cauchy_tile<E>::NODES;
    const long long group = blockIdx.x / size.tiles, begin = group * size.group;
    const long long end = min(begin + size.group, size.rows);
    cauchy_tile<E> tile(z + begin * size.step_z, size.l, blockIdx.x % size.tiles);
    E total[NODES] = {};
    for (long long row = begin; row < end; ++row) {
        E sum[NODES];
        tile.template sums<2>(v + row * size.n, w + row * size.n, size.n, sum);
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
            const long long at = tile.first + i * cauchy_tile<E>::THREADS;
            if (at < size.l) total[i] = total[i] - dk[row * size.l + at] * conj(sum[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        const long long at = tile.first + i * cauchy_tile<E>::THREADS;
        if (at < size.l) dz[group * size.l + at] = total[i];
    }
}

#endif
