// Outputs of all chunks at once: y = (w ∘ C) Sᵀ + (W ∘ C Bᵀ) x. A block has one chunk and Q columns
// of several heads that share B and C: C Bᵀ stays in registers while it goes from head to head.
// The masked matrix exists in shared memory only.
#include "ssd.cuh"

template <class S>
__global__ void __launch_bounds__(THREADS, RESIDENT<S>)
    ssd_outputs(const S* __restrict__ x, const S* __restrict__ log_a, const S* __restrict__ B,
                const S* __restrict__ C, const unsigned char* __restrict__ resets,
                const accumulate_of<S>* __restrict__ states, S* __restrict__ y, unsigned* marks,
                ssd_sizes size) {
    using E = accumulate_of<S>;
    constexpr int Q = tile<S>::Q;
    SHARED(Pack16<E>, slices, tile<S>::PACKS);
    SHARED(E, memory, 3 * Q);
    SHARED(E, M, Q * (Q + 1));
    const decays<S> decay{memory, memory + Q, memory + 2 * Q};
    const long long tiles = (size.p + Q - 1) / Q, p0 = blockIdx.x % tiles * Q;
    const long long member = blockIdx.x / tiles, chunk = member % size.chunks;
    const long long first_row = member / size.chunks * size.heads;
    const chunk_of<S> of_group(size, first_row, chunk);
    const int count = of_group.count;
    const S* Bs = B + (row_of(size, OF_B, first_row) * size.l + of_group.first) * size.n;
    const S* Cs = C + (row_of(size, OF_C, first_row) * size.l + of_group.first) * size.n;
    tile<S> scores, sums;
    scores.clear();
    const int n = static_cast<int>(size.n), p_in = inside(size.p, p0, Q);
    add_product(scores, n, along(Cs, n, count), along(Bs, n, count), slices);

    for (long long h = 0; h < size.heads; ++h) {
        const chunk_of<S> at(size, first_row + h, chunk);
        const S* xs = x + (row_of(size, OF_X, at.row) * size.l + at.first) * size.p + p0;
        decay.template load<false>(log_a, resets, size, at);
        decay.between(M);
        scores.each([&](int i, int j, E score) {
            E* weight = M + i * (Q + 1) + j;
            *weight = *weight * score;
        });
        sums.clear();
        if (states) {
            const E* S0 = states + ((at.row * size.chunks + chunk) * size.p + p0) * size.n;
            add_product(sums, n, along(Cs, n, count), along(S0, n, p_in), slices);
            sums.each([&](int i, int, E& sum) { sum = decay.own[i] * sum; });
        }
        __syncthreads();  // M is complete
        add_product(sums, count, along(M, Q + 1, Q), across(xs, size.p, p_in), slices);
        S* ys = y + (at.row * size.l + at.first) * size.p + p0;
        bool bad = false;
        sums.each([&](int i, int j, E sum) {
            if (i >= count || j >= p_in) return;
            ys[i * size.p + j] = narrow<S>(sum);
            bad = bad || !finite(sum);
        });
        mark(marks, at.row, bad);
    }
}
