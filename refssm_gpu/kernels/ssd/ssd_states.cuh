// The states before all chunks: each chunk's own state as one product of matrices, then one pass
// over the chunks, a thread for each entry of the state, the next numbers loaded ahead. In reverse
// the same gives the cotangents of the states after all chunks.
#include "ssd.cuh"

// states[row, chunk] = Σ_j W_qj x_j B_jᵀ, a tile of it a block; totals[row, chunk] = w_q.
// BACK: Σ_i w_i* x_i B_iᴴ, where x are cotangents of the outputs and B is the argument C.
template <class S, int BACK>
__global__ void __launch_bounds__(THREADS, RESIDENT<S>)
    ssd_states(const S* __restrict__ x, const S* __restrict__ log_a, const S* __restrict__ B,
               const unsigned char* __restrict__ resets, accumulate_of<S>* __restrict__ states,
               accumulate_of<S>* __restrict__ totals, ssd_sizes size) {
    using E = accumulate_of<S>;
    constexpr int Q = tile<S>::Q;
    SHARED(Pack16<E>, slices, tile<S>::PACKS);
    SHARED(E, memory, 3 * Q);
    const long long p_tiles = (size.p + Q - 1) / Q, n_tiles = (size.n + Q - 1) / Q;
    const long long member = blockIdx.x / (p_tiles * n_tiles);
    const long long which = blockIdx.x % (p_tiles * n_tiles);
    const long long p0 = which / n_tiles * Q, n0 = which % n_tiles * Q;
    const chunk_of<S> at(size, member / size.chunks, member % size.chunks);
    const decays<S> decay{memory, memory + Q, memory + 2 * Q};
    decay.template load<BACK>(log_a, resets, size, at);
    if (which == 0 && threadIdx.x == 0) totals[member] = decay.own[Q - 1];

    const S* xs = x + (row_of(size, OF_X, at.row) * size.l + at.first) * size.p + p0;
    const S* Bs = B + (row_of(size, BACK ? OF_C : OF_B, at.row) * size.l + at.first) * size.n + n0;
    const E* weights = BACK ? decay.own : decay.rest;
    const auto weighted = [=](S number, int k) { return weights[k] * widen(number); };
    const auto plain = [](S number, int) { return conj_if<BACK>(widen(number)); };
    const int p_in = inside(size.p, p0, Q), n_in = inside(size.n, n0, Q);
    tile<S> sums;
    sums.clear();
    add_product(sums, at.count, across(xs, size.p, p_in, weighted),
                across(Bs, size.n, n_in, plain), slices);
    E* own = states + (member * size.p + p0) * size.n + n0;
    sums.each([&](int i, int j, E sum) {
        if (i < p_in && j < n_in) own[i * size.n + j] = sum;
    });
}

// states[row, chunk] = the state before that chunk, and `last` the one after the last chunk, from
// `start` (null: zeros). BACK: the same from the last chunk to the first. Both may be null.
template <class E, int BACK>
__global__ void __launch_bounds__(THREADS)
    ssd_pass(E* states, const E* __restrict__ totals, const E* __restrict__ start, E* last,
             unsigned* marks, ssd_sizes size) {
    constexpr int AHEAD = sizeof(E) == 16 ? 4 : 8;
    const long long entries = size.p * size.n, tiles = (entries + THREADS - 1) / THREADS;
    const long long row = blockIdx.x / tiles, e = blockIdx.x % tiles * THREADS + threadIdx.x;
    const bool inside = e < entries;
    E S = zero<E>();
    if (start && inside) S = start[row_of(size, OF_S0, row) * entries + e];
    E* own = states + row * size.chunks * entries + e;
    const E* decay = totals + row * size.chunks;
    for (long long c0 = 0; inside && c0 < size.chunks; c0 += AHEAD) {
        E added[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            const long long c = BACK ? size.chunks - 1 - c0 - k : c0 + k;
            if (c0 + k < size.chunks) added[k] = own[c * entries];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (c0 + k >= size.chunks) break;
            const long long c = BACK ? size.chunks - 1 - c0 - k : c0 + k;
            own[c * entries] = S;
            S = decay[c] * S + added[k];
        }
    }
    if (last && inside) last[row * entries + e] = S;
    mark(marks, row, inside && !finite(S));
}
