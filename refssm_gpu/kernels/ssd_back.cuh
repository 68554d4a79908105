// Gradients of all chunks at once, from the states S before and the cotangents G after each chunk.
// With W and w of ssd.cuh, s_ij = C_i · B_j, M = W ∘ s, D_ij = W_ij (dy_i · x_j), all conjugated:
//
//     dx_j = W_qj G B_j + Σ_{i≥j} M_ij dy_i,
//     dB_j = W_qj Gᵀ x_j + Σ_{i≥j} D_ij C_i,      dC_i = w_i Sᵀ dy_i + Σ_{j≤i} D_ij B_j,
//     dlog_a_t = w_q Σ S G + Σ_{i≥t} C_i · (w_i Sᵀ dy_i) + Σ_{j<t} B_j · (W_qj Gᵀ x_j)
//                + Σ_{j<t≤i} D_ij s_ij.
//
// No difference of two sums occurs in dlog_a. A block has one chunk of one row: nine products, M and
// D in shared memory. dB and dC are those of the row; the launcher adds up the heads that share them.
#include "ssd_forward.cuh"

// crossing[t] = Σ_{j<t≤i} X_ij: first sums over i in place, a thread a column, then over j.
template <class E, int Q> DEVICE void add_crossing(E* X, E* crossing) {
    __syncthreads();
    if (threadIdx.x < Q) {
        E below = zero<E>();
        for (int i = Q - 1; i >= 0; --i)
            X[i * (Q + 1) + threadIdx.x] = below = below + X[i * (Q + 1) + threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x < Q) {
        const int t = threadIdx.x;
        E total = zero<E>();
        for (int j = 0; j < t; ++j) total += X[t * (Q + 1) + j];
        crossing[t] = total;
    }
    __syncthreads();
}

// Σ S* G by the whole block, in the first thread.
template <class E>
DEVICE E meeting(const E* S, const E* G, long long entries, E* warps) {
    E total = zero<E>();
    for (long long e = threadIdx.x; e < entries; e += THREADS) total += conj(S[e]) * G[e];
#pragma unroll
    for (int d = 16; d; d /= 2) total += shuffle_xor(WHOLE_WARP, total, d);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    total = warps[0];
    for (int w = 1; w < THREADS / 32; ++w) total += warps[w];
    return total;
}

// One chunk's pointers, at its first step; S and G may be null: zeros.
template <class S, class E> struct chunk_back {
    const S *dy, *x, *B, *C;
    const E *before, *after;
    long long p, n;
    int count;
    // Operands with conjugated numbers, along the summed index or across it.
    DEVICE auto rows_of(const S* from, long long width) const {
        const int end = count;
        return along_depth([=](int i, int k) {
            return i < end ? conj(widen(from[i * width + k])) : zero<E>();
        });
    }
    DEVICE auto columns_of(const S* from, long long width, long long first) const {
        return along_rows([=](int j, int k) {
            return first + j < width ? conj(widen(from[k * width + first + j])) : zero<E>();
        });
    }
    DEVICE auto dy_rows() const {
        const int end = count;
        const S* from = dy;
        const long long width = p;
        return along_depth([=](int i, int k) {
            return i < end ? widen(from[i * width + k]) : zero<E>();
        });
    }
};

template <class S>
__global__ void __launch_bounds__(THREADS)
    ssd_gradients(const S* __restrict__ dy, const S* __restrict__ x, const S* __restrict__ log_a,
                  const S* __restrict__ B, const S* __restrict__ C,
                  const unsigned char* __restrict__ resets,
                  const accumulate_of<S>* __restrict__ before,
                  const accumulate_of<S>* __restrict__ after, S* __restrict__ dx,
                  S* __restrict__ dlog_a, accumulate_of<S>* __restrict__ dB,
                  accumulate_of<S>* __restrict__ dC, unsigned* marks, ssd_sizes size) {
    using E = accumulate_of<S>;
    using T = tile<S>;
    constexpr int Q = T::Q, LINE = Q + 1, SIDES = T::SIDES;
    SHARED(Pack16<E>, slices, T::PACKS);
    SHARED(E, memory, 4 * Q);
    SHARED(E, alpha, SIDES * Q);
    SHARED(E, beta, SIDES * Q);
    SHARED(E, warps, THREADS / 32);
    SHARED(E, M, Q * LINE);
    SHARED(E, D, Q * LINE);
    const decays<S> decay{memory, memory + Q, memory + 2 * Q};
    E* crossing = memory + 3 * Q;
    const chunk_of<S> at(size, blockIdx.x / size.chunks, blockIdx.x % size.chunks);
    const auto row = [&](int argument) { return row_in(size, argument, at.row) * size.l + at.first; };
    const long long p = size.p, n = size.n, state = blockIdx.x * p * n, own = at.row * size.l + at.first;
    const chunk_back<S, E> of{dy + own * p, x + row(OF_X) * p, B + row(OF_B) * n, C + row(OF_C) * n,
                              before ? before + state : nullptr, after ? after + state : nullptr,
                              p, n, at.count};
    const int count = at.count;
    decay.template load<true>(log_a, resets, size, at);
    decay.between(M);
    if (threadIdx.x < SIDES * Q) alpha[threadIdx.x] = beta[threadIdx.x] = zero<E>();

    {
        T scores, products;
        scores.clear();
        products.clear();
        add_scores<true>(scores, of.B, of.C, count, n, slices);
        add_product(products, p, of.dy_rows(), of.rows_of(of.x, p), slices);
        products.each([&](int i, int j, E& sum) { sum = M[i * LINE + j] * sum; });
        scores.each([&](int i, int j, E score) { M[i * LINE + j] = M[i * LINE + j] * score; });
#pragma unroll
        for (int r = 0; r < T::ROWS; ++r)
#pragma unroll
            for (int c = 0; c < T::COLUMNS; ++c)
                D[T::row(r) * LINE + T::column(c)] = products.sum[r][c] * scores.sum[r][c];
        add_crossing<E, Q>(D, crossing);
        products.each([&](int i, int j, E sum) { D[i * LINE + j] = sum; });
    }
    __syncthreads();
    bool bad = false;

    for (long long p0 = 0; p0 < p; p0 += Q) {  // dx
        T sums;
        sums.clear();
        if (of.after) {
            const E* G = of.after + p0 * n;
            add_product(sums, n, of.rows_of(of.B, n), along_depth([&](int j, int k) {
                            return p0 + j < p ? G[j * n + k] : zero<E>();
                        }),
                        slices);
            sums.each([&](int j, int, E& sum) { sum = decay.rest[j] * sum; });
        }
        add_product(sums, count, along_rows([&](int j, int k) { return M[k * LINE + j]; }),
                    along_rows([&](int j, int k) {
                        return p0 + j < p ? widen(of.dy[k * p + p0 + j]) : zero<E>();
                    }),
                    slices);
        S* dxs = dx + own * p + p0;
        sums.each([&](int i, int j, E sum) {
            if (i >= count || p0 + j >= p) return;
            dxs[i * p + j] = narrow<S>(sum);
            bad = bad || !finite(sum);
        });
    }

    for (long long n0 = 0; n0 < n; n0 += Q) {  // dB and dC
        T sums;
        const auto put = [&](E* to) {
            sums.each([&](int i, int j, E sum) {
                if (i >= count || n0 + j >= n) return;
                to[i * n + n0 + j] = sum;
                bad = bad || !finite(sum);
            });
        };
        const auto met = [&](const S* with) {
            return [&, with](int i, int j, E sum) {
                return i < count && n0 + j < n ? conj(widen(with[i * n + n0 + j])) * sum
                                               : zero<E>();
            };
        };
        sums.clear();
        if (of.after) {
            add_product(sums, p, of.rows_of(of.x, p), along_rows([&](int j, int k) {
                            return n0 + j < n ? of.after[k * n + n0 + j] : zero<E>();
                        }),
                        slices);
            sums.each([&](int j, int, E& sum) { sum = decay.rest[j] * sum; });
            sums.add_rows(beta, met(of.B));
        }
        add_product(sums, count, along_rows([&](int j, int k) { return D[k * LINE + j]; }),
                    of.columns_of(of.C, n, n0), slices);
        put(dB + own * n);
        sums.clear();
        if (of.before) {
            add_product(sums, p, of.dy_rows(), along_rows([&](int j, int k) {
                            return n0 + j < n ? conj(of.before[k * n + n0 + j]) : zero<E>();
                        }),
                        slices);
            sums.each([&](int i, int, E& sum) { sum = decay.own[i] * sum; });
            sums.add_rows(alpha, met(of.C));
        }
        add_product(sums, count, along_depth([&](int i, int k) { return D[i * LINE + k]; }),
                    of.columns_of(of.B, n, n0), slices);
        put(dC + own * n);
    }

    E both = zero<E>();
    if (of.before && of.after)
        both = decay.own[Q - 1] * meeting(of.before, of.after, p * n, warps);
    __syncthreads();  // alpha and beta are complete
    if (const int t = threadIdx.x; t < count) {
        E total = both + crossing[t];
        for (int s = 0; s < SIDES; ++s) {
            for (int i = t; i < count; ++i) total += alpha[s * Q + i];
            for (int j = 0; j < t; ++j) total += beta[s * Q + j];
        }
        dlog_a[own + t] = narrow<S>(total);
        bad = bad || !finite(total);
    }
    mark(marks, at.row, bad);
}
