// State-space duality on the card: what its kernels share. Time is cut into chunks of Q steps. With
// i, j counted from the start of a chunk, S the state before it and q its last step,
//
//     y_i = w_i S C_i + Σ_{j≤i} W_ij (C_i · B_j) x_j,     w_i = a_0 … a_i,   W_ij = a_{j+1} … a_i,
//     S'  = w_q S + Σ_j W_qj x_j B_jᵀ,                    a = e^{log_a}, 0 where a sequence begins.
//
// ssd_states.cuh makes the sums of the second line for all chunks at once and then passes the state
// from chunk to chunk; ssd_forward.cuh makes the outputs, ssd_back.cuh the gradients, all chunks at
// once. Decays are products in the order of time, as in the recurrence: differences of cumulative
// sums would lose digits, and −∞ would become NaN in them.
//
// Zero times infinity is NaN in these products, also where a later step, another sequence or a
// decay that vanished must not be seen. So a row whose results are not all finite is marked, and
// the recurrence step by step (ssd_steps.cuh) computes it again; nobody waits to ask.
#ifndef REFSSM_SSD_CUH
#define REFSSM_SSD_CUH
#include "../common/rows.cuh"
#include "tiles.cuh"

// Blocks that a multiprocessor shall hold, which bounds registers: with fewer of them ptxas spills
// around calls of exp and sincos.
template <class S> constexpr int RESIDENT = sizeof(accumulate_of<S>) == 16 ? 2 : 3;

struct ssd_sizes {
    long long l, p, n, inner, chunks;  // inner: the members of the batch's second axis (heads)
    long long heads;                   // rows of a block, where they have the same B and C
    unsigned mask;                     // two bits for each argument, in the order below
    int at_rest;                       // a sequence begins at time 0
};
enum { OF_X, OF_LOG_A, OF_B, OF_C, OF_S0, OF_RESETS };

DEVICE bool begins_at(const unsigned char* resets, const ssd_sizes& size, long long r,
                      long long t) {
    if (size.at_rest && t == 0) return true;
    return resets && resets[row_of(size, OF_RESETS, r) * size.l + t];
}

template <bool CONJ, class E> DEVICE E conj_if(E x) {
    if constexpr (CONJ) return conj(x);
    else return x;
}

DEVICE bool finite(float x) { return isfinite(x); }
DEVICE bool finite(double x) { return isfinite(x); }
template <class T> DEVICE bool finite(complex_of<T> x) { return is_finite(x); }

// How much of a tile's width lies inside, from `first` on.
DEVICE int inside(long long size, long long first, int width) {
    return size - first < width ? static_cast<int>(size - first) : width;
}

// Mark a row if any lane of the warp asks for it.
DEVICE void mark(unsigned* marks, long long row, bool bad) {
    if (__any_sync(WHOLE_WARP, bad) && threadIdx.x % 32 == 0) atomicAdd(marks + row, 1u);
}

// The steps of one chunk of one row.
template <class S> struct chunk_of {
    static constexpr int Q = tile<S>::Q;
    long long row, first;  // the row, and the first step's time
    int count;             // steps, Q but in the last chunk
    DEVICE chunk_of(const ssd_sizes& size, long long row_, long long chunk) {
        row = row_, first = chunk * Q;
        count = inside(size.l, first, Q);
    }
};

// The decays of a chunk in shared memory: a_i, w_i and W_qi; 1 after the chunk's end.
template <class S> struct decays {
    using E = accumulate_of<S>;
    static constexpr int Q = tile<S>::Q, EACH = Q / 32;
    E *a, *own, *rest;  // Q each

    template <bool CONJ>
    DEVICE void load(const S* log_a, const unsigned char* resets, const ssd_sizes& size,
                     const chunk_of<S>& at) const {
        const S* logs = log_a + row_of(size, OF_LOG_A, at.row) * size.l + at.first;
        if (threadIdx.x < Q) {
            const int i = threadIdx.x;
            E decay = one<E>();
            if (i < at.count) {
                const bool begins = begins_at(resets, size, at.row, at.first + i);
                decay = begins ? zero<E>() : conj_if<CONJ>(exp(widen(logs[i])));
            }
            a[i] = decay;
        }
        __syncthreads();
        if (threadIdx.x < 32) before();
        else if (threadIdx.x < 64) after();
        __syncthreads();
    }

    // w_i by the first warp: each lane multiplies EACH steps, shuffles multiply those of the lanes.
    DEVICE void before() const {
        const int lane = threadIdx.x % 32;
        E mine = a[lane * EACH];
#pragma unroll
        for (int e = 1; e < EACH; ++e) mine = a[lane * EACH + e] * mine;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const E earlier = shuffle_up(WHOLE_WARP, mine, d);
            if (lane >= d) mine = mine * earlier;
        }
        E w = shuffle_up(WHOLE_WARP, mine, 1);
        if (lane == 0) w = one<E>();
#pragma unroll
        for (int e = 0; e < EACH; ++e) own[lane * EACH + e] = w = a[lane * EACH + e] * w;
    }
    // W_qi = a_{i+1} … a_q by the second warp, in the same way from the end.
    DEVICE void after() const {
        const int lane = threadIdx.x % 32;
        E mine = a[lane * EACH];
#pragma unroll
        for (int e = 1; e < EACH; ++e) mine = a[lane * EACH + e] * mine;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const E later = shuffle_down(WHOLE_WARP, mine, d);
            if (lane + d < 32) mine = later * mine;
        }
        E w = shuffle_down(WHOLE_WARP, mine, 1);
        if (lane == 31) w = one<E>();
#pragma unroll
        for (int e = EACH - 1; e >= 0; --e) {
            rest[lane * EACH + e] = w;
            w = w * a[lane * EACH + e];
        }
    }

    // W_ij at weights[i (Q + 1) + j]: thread j walks down its column, zeros above the diagonal.
    DEVICE void between(E* weights) const {
        if (threadIdx.x < Q) {
            const int j = threadIdx.x;
            E w = zero<E>();
            for (int i = 0; i < Q; ++i) {
                w = i == j ? one<E>() : a[i] * w;
                weights[i * (Q + 1) + j] = w;
            }
        }
        __syncthreads();
    }
};

#endif
