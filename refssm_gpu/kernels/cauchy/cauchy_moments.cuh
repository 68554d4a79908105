// Σ_l d_l R* and Σ_l d_l (R²)*, R = 1/(z_l − w_n): the gradients of residues and poles.
//
// A thread has one pole, and goes through its share of the nodes, which all threads read from shared
// memory in chunks of 256. `across` threads side by side have different poles, the groups of them
// different nodes. Sums over a chunk are added in double precision, then the groups' in order, and
// the sums of the blocks of a row by another launch. A chunk that is not safe (resolvent.cuh) is
// added again with a division that is safe for all numbers.
//
// ROOTS: z_l = e^(2πil/l), and d_l z_l in place of d_l*; then zR = 1/(1 − w ω_l).
//
// Bound by flops: 17 operations, a comparison and a reciprocal for a term. 256 rows, n = 32, l =
// 16384: 134 million terms, 2.4 G instructions, 34 MB read. 64 rows, n = 64: 1.2 G, 8 MB.
#ifndef REFSSM_CAUCHY_MOMENTS_CUH
#define REFSSM_CAUCHY_MOMENTS_CUH
#include "resolvent.cuh"
#include "../common/votes.cuh"

struct cauchy_moments_sizes {
    long long l, n;
    long long span, pieces;  // nodes of a block, a multiple of 256; blocks along the nodes
    long long across;        // poles of a block: a power of two, at most 32
    long long step_z;        // from the nodes of a row to the next row's: l, or 0
};

template <class E> struct alignas(2 * sizeof(E) < 16 ? 2 * sizeof(E) : 16) node_of {
    E z, d;
};

template <class E, int ROOTS> struct cauchy_chunk {
    static constexpr int THREADS = 128, NODES = 256;
    using T = real_of<E>;
    using W = wide_of<E>;

    // e^(2πij/l), exact at quarters of the circle.
    static DEVICE E root(long long j, long long l) {
        double s = 0, c = 1;
        sincospi(2.0 * static_cast<double>(j) / static_cast<double>(l), &s, &c);
        if constexpr (is_complex<E>) return rounded_to<E>(complex128{c, s});
        else return static_cast<E>(c);  // never asked for
    }
    // The nodes from `start` on into shared memory; whether one of this thread's is too large.
    static DEVICE bool fetch(const E* d, const E* z, long long start, long long end, long long l,
                             node_of<E>* nodes) {
        bool far = false;
        for (int i = threadIdx.x; i < NODES && start + i < end; i += THREADS) {
            const long long at = start + i;
            const E node = ROOTS ? root(at, l) : z[at], own = conj(d[at]);
            nodes[i] = {node, ROOTS ? own * node : own};
            far |= is_huge(node);
        }
        return far;
    }
    static DEVICE void add(const node_of<E>* nodes, int first, int step, int count, E w, bool far,
                           W& one, W& two) {
        E sum = from_real<E>(0), square = from_real<E>(0);
        int worst = 0;
        for (int i = first; i < count; i += step) {
            const node_of<E> node = nodes[i];
            const E R = resolvent(node.z, w, worst), t = node.d * R;
            sum = sum + t;
            add_product(square, t, R);
        }
        if (!far && is_safe<T>(worst)) {
            one = one + widest(sum);
            two = two + widest(square);
        } else {
            carefully(nodes, first, step, count, w, one, two);
        }
    }
    static DEVICE void carefully(const node_of<E>* nodes, int first, int step, int count, E w,
                                 W& one, W& two) {
        for (int i = first; i < count; i += step) {
            const W R = quotient(from_real<E>(1), nodes[i].z, w), t = widest(nodes[i].d) * R;
            one = one + t;
            two = two + t * R;
        }
    }
};

template <class E, int ROOTS>
__global__ void __launch_bounds__(128, 4)
    cauchy_moments(const E* __restrict__ d, const E* __restrict__ w, const E* __restrict__ z,
                   wide_of<E>* __restrict__ sums,  // (rows, pieces, 2, n)
                   cauchy_moments_sizes size) {
    using chunk = cauchy_chunk<E, ROOTS>;
    using W = wide_of<E>;
    SHARED(node_of<E>, nodes, chunk::NODES);
    SHARED(unsigned, votes, chunk::THREADS / 32);
    SHARED(W, totals, 2 * chunk::THREADS);
    const long long slices = (size.n + size.across - 1) / size.across;
    const long long piece = blockIdx.x / slices, row = piece / size.pieces;
    const int across = static_cast<int>(size.across), group = threadIdx.x / across;
    const long long mode = blockIdx.x % slices * across + threadIdx.x % across;
    const long long begin = piece % size.pieces * size.span;
    const long long end = min(begin + size.span, size.l);
    const E own = mode < size.n ? w[row * size.n + mode] : from_real<E>(0);
    W one = from_real<W>(0), two = from_real<W>(0);
    for (long long start = begin; start < end; start += chunk::NODES) {
        __syncthreads();  // nobody reads the last chunk any more
        note(chunk::fetch(d + row * size.l, ROOTS ? nullptr : z + row * size.step_z, start, end,
                          size.l, nodes), votes);
        __syncthreads();
        const int count = static_cast<int>(min(end - start, (long long)chunk::NODES));
        const bool far = any<chunk::THREADS>(votes) || is_huge(own);
        if (mode < size.n)
            chunk::add(nodes, group, chunk::THREADS / across, count, own, far, one, two);
    }
    totals[threadIdx.x] = one;
    totals[chunk::THREADS + threadIdx.x] = two;
    __syncthreads();
    if (group > 0 || mode >= size.n) return;
    for (int i = threadIdx.x + across; i < chunk::THREADS; i += across) {
        one = one + totals[i];
        two = two + totals[chunk::THREADS + i];
    }
    sums += piece * 2 * size.n + mode;
    sums[0] = conj(one);
    sums[size.n] = conj(two);
}

#endif
