// Gradients of all chunks at once, from the states S before and the cotangents G after each chunk.
// With W and w of ssd.cuh, s_ij = C_i · B_j, M = W ∘ s, D_ij = W_ij (dy_i · x_j), all conjugated
// but dy and G:
//
//     dx_j = W_qj G B_j + Σ_{i≥j} M_ij dy_i,
//     dB_j = W_qj Gᵀ x_j + Σ_{i≥j} D_ij C_i,      dC_i = w_i Sᵀ dy_i + Σ_{j≤i} D_ij B_j,
//     dlog_a_t = w_q Σ S G + Σ_{i≥t} C_i · (w_i Sᵀ dy_i) + Σ_{j<t} B_j · (W_qj Gᵀ x_j)
//                + Σ_{j<t≤i} D_ij s_ij.
//
// No difference of two sums occurs in dlog_a. A block has one chunk of several heads that share B
// and C: nine products a head, M and D in shared memory. It adds up dB and dC of its heads in
// memory, each number by one thread, in the order of heads; the launcher adds those of blocks.
#include "ssd.cuh"

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

// One chunk's pointers, at its first step; the states may be null: zeros.
template <class S, class E> struct chunk_back {
    const S *dy, *x, *B, *C;
    const E *before, *after;
};

template <class S>
__global__ void __launch_bounds__(THREADS, 2)
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
    const long long group = blockIdx.x / size.chunks, chunk = blockIdx.x % size.chunks;
    const int p = static_cast<int>(size.p), n = static_cast<int>(size.n);
#pragma unroll 1
    for (int h = 0; h < static_cast<int>(size.heads); ++h) {
        const chunk_of<S> at(size, group * size.heads + h, chunk);
        const auto row = [&](int argument) {
            return row_of(size, argument, at.row) * size.l + at.first;
        };
        const int count = at.count;
        const long long state = (at.row * size.chunks + chunk) * size.p * n;
        const long long own = at.row * size.l + at.first, shared = group * size.l + at.first;
        const chunk_back<S, E> of{dy + own * p,
                                  x + row(OF_X) * p,
                                  B + row(OF_B) * n,
                                  C + row(OF_C) * n,
                                  before ? before + state : nullptr,
                                  after ? after + state : nullptr};
        decay.template load<true>(log_a, resets, size, at);
        decay.between(M);
        if (threadIdx.x < SIDES * Q) alpha[threadIdx.x] = beta[threadIdx.x] = zero<E>();

        {
            T scores, products;
            scores.clear();
            products.clear();
            add_product(scores, n, along<conjugated>(of.C, n, count),
                        along<conjugated>(of.B, n, count), slices);
            add_product(products, p, along(of.dy, p, count), along<conjugated>(of.x, p, count),
                        slices);
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

#pragma unroll 1
        for (int p0 = 0; p0 < p; p0 += Q) {  // dx
            const int width = inside(p, p0, Q);
            T sums;
            sums.clear();
            if (of.after) {
                add_product(sums, n, along<conjugated>(of.B, n, count),
                            along(of.after + static_cast<long long>(p0) * n, n, width), slices);
                sums.each([&](int j, int, E& sum) { sum = decay.rest[j] * sum; });
            }
            add_product(sums, count, across(M, LINE, Q), across(of.dy + p0, p, width), slices);
            S* dxs = dx + own * p + p0;
            sums.each([&](int i, int j, E sum) {
                if (i >= count || j >= width) return;
                dxs[static_cast<long long>(i) * p + j] = narrow<S>(sum);
                bad = bad || !finite(sum);
            });
        }

#pragma unroll 1
        for (int n0 = 0; n0 < n; n0 += Q) {  // dB and dC
            const int width = inside(n, n0, Q);
            T sums;
            const auto put = [&](E* to) {
                sums.each([&](int i, int j, E sum) {
                    if (i >= count || j >= width) return;
                    E& total = to[static_cast<long long>(i) * n + j];
                    total = h ? total + sum : sum;
                    bad = bad || !finite(sum);
                });
            };
            const auto met = [&](const S* with) {
                return [=](int i, int j, E sum) {
                    if (i >= count || j >= width) return zero<E>();
                    return conj(widen(with[static_cast<long long>(i) * n + n0 + j])) * sum;
                };
            };
            sums.clear();
            if (of.after) {
                add_product(sums, p, along<conjugated>(of.x, p, count),
                            across(of.after + n0, n, width), slices);
                sums.each([&](int j, int, E& sum) { sum = decay.rest[j] * sum; });
                sums.add_rows(beta, met(of.B));
            }
            add_product(sums, count, across(D, LINE, Q), across<conjugated>(of.C + n0, n, width),
                        slices);
            put(dB + shared * n + n0);
            sums.clear();
            if (of.before) {
                add_product(sums, p, along(of.dy, p, count),
                            across<conjugated>(of.before + n0, n, width), slices);
                sums.each([&](int i, int, E& sum) { sum = decay.own[i] * sum; });
                sums.add_rows(alpha, met(of.C));
            }
            add_product(sums, count, along(D, LINE, Q), across<conjugated>(of.B + n0, n, width),
                        slices);
            put(dC + shared * n + n0);
        }

        E both = zero<E>();
        if (of.before && of.after)
            both = decay.own[Q - 1] * meeting(of.before, of.after, size.p * n, warps);
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
}
