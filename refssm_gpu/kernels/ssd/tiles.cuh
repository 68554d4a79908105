// Products of matrices by one block: a square tile of sums in registers, operands in slices.
//
// 128 threads hold the Q × Q sums of a tile. The operands come in slices of K of the summed index,
// by functions that read global or shared memory; while one slice is multiplied in shared memory,
// the next is on its way in registers. Single and double precision add their products one by one
// (8 × 4 or 4 × 2 sums a thread); halves go to the tensor cores (tensor.cuh), a warp with 32 × 32
// sums. Single precision does not: TF32 has half of its digits, and of three TF32 products for one
// the remainders of small numbers would be flushed to zero.
#ifndef REFSSM_TILES_CUH
#define REFSSM_TILES_CUH
#include "tensor.cuh"

constexpr int THREADS = 128;

template <class S> struct tile {
    using E = accumulate_of<S>;
    static constexpr bool TENSOR = is_half<S>;
    static constexpr int Q = sizeof(E) == 4 ? 64 : 32;     // rows and columns
    static constexpr int K = sizeof(E) == 16 ? 8 : 16;     // of a slice
    static constexpr int ROWS = TENSOR ? 4 : Q / 8;        // sums of a thread: ROWS × COLUMNS
    static constexpr int COLUMNS = TENSOR ? 8 : Q / 16;
    static constexpr int STRIDE = Q + PER_16<E>;           // of a slice's line in shared memory
    static constexpr int SIDES = TENSOR ? 2 : 1;           // threads' groups that share a row
    static constexpr int PACKS = 2 * K * STRIDE / PER_16<E>;  // of 16 bytes, for both slices

    E sum[ROWS][COLUMNS];

    DEVICE static int row(int r) {
        if constexpr (TENSOR) return threadIdx.x / 64 * 32 + threadIdx.x % 32 / 4 + 8 * r;
        else return threadIdx.x / 16 * ROWS + r;
    }
    DEVICE static int column(int c) {
        if constexpr (TENSOR)
            return threadIdx.x / 32 % 2 * 32 + c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2;
        else return threadIdx.x % 16 + 16 * c;
    }
    // Which of the SIDES groups this thread is in, and whether it speaks for its row there.
    DEVICE static int side() { return TENSOR ? threadIdx.x / 32 % 2 : 0; }
    DEVICE static bool speaks() { return threadIdx.x % (TENSOR ? 4 : 16) == 0; }

    DEVICE void clear() {
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) sum[r][c] = zero<E>();
    }
    // Call f(row, column, sum) for each.
    template <class F> DEVICE void each(const F& f) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) f(row(r), column(c), sum[r][c]);
    }
    // totals[side][row] += the sum of f over this thread's group; each place has one writer.
    template <class F> DEVICE void add_rows(E* totals, const F& f) const {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            E total = zero<E>();
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) total += f(row(r), column(c), sum[r][c]);
#pragma unroll
            for (int d = TENSOR ? 2 : 8; d; d /= 2) total += shuffle_xor(WHOLE_WARP, total, d);
            if (speaks()) totals[side() * Q + row(r)] += total;
        }
    }

    DEVICE void multiply(const E* left, const E* right) {
        if constexpr (TENSOR) multiply_on_tensor_cores(left, right);
        else {
#pragma unroll 4
            for (int k = 0; k < K; ++k) {
                Pack16<E> a[ROWS / PER_16<E>];
#pragma unroll
                for (int r = 0; r < ROWS / PER_16<E>; ++r)
                    a[r] = load16(left + k * STRIDE + row(0) + r * PER_16<E>);
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    const E b = right[k * STRIDE + column(c)];
#pragma unroll
                    for (int r = 0; r < ROWS; ++r)
                        sum[r][c] += a[r / PER_16<E>].at[r % PER_16<E>] * b;
                }
            }
        }
    }
    DEVICE void multiply_on_tensor_cores(const float32* left, const float32* right) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const int first = threadIdx.x / 64 * 32 + g, second = threadIdx.x / 32 % 2 * 32 + g;
#pragma unroll 1
        for (int k = 0; k < K; k += 8)
#pragma unroll
            for (int r = 0; r < ROWS; r += 2)
#pragma unroll
                for (int c = 0; c < COLUMNS; c += 2) {
                    const float32* a = left + (k + t) * STRIDE + first + 8 * r;
                    const float32* b = right + (k + t) * STRIDE + second + 4 * c;
                    mma_part m{{a[0], a[8], a[4 * STRIDE], a[4 * STRIDE + 8]},
                               {b[0], b[4 * STRIDE]},
                               {sum[r][c], sum[r][c + 1], sum[r + 1][c], sum[r + 1][c + 1]}};
                    multiply_add(m);
                    sum[r][c] = m.c[0], sum[r][c + 1] = m.c[1];
                    sum[r + 1][c] = m.c[2], sum[r + 1][c + 1] = m.c[3];
                }
    }
};

// An operand: the number of row (or column) i at the summed index k is f(at[i line + k], k) if
// ALONG the lines of memory, else f(at[k line + i], k); i < rows, and zero from there on.
template <bool ALONG, class T, class F> struct operand {
    const T* at;
    long long line;
    int rows;
    F f;
};

struct as_it_is {
    template <class T> DEVICE accumulate_of<T> operator()(T x, int) const { return widen(x); }
};
struct conjugated {
    template <class T> DEVICE accumulate_of<T> operator()(T x, int) const {
        return conj(widen(x));
    }
};

template <class F = as_it_is, class T>
DEVICE operand<true, T, F> along(const T* at, long long line, int rows, F f = {}) {
    return {at, line, rows, f};
}
template <class F = as_it_is, class T>
DEVICE operand<false, T, F> across(const T* at, long long line, int rows, F f = {}) {
    return {at, line, rows, f};
}

// A slice on its way from memory to shared memory, in registers. Neighbouring threads read
// neighbouring numbers, and each thread goes from line to line.
template <class S> struct slice {
    using E = accumulate_of<S>;
    static constexpr int Q = tile<S>::Q, K = tile<S>::K, COUNT = Q * K / THREADS;
    E held[COUNT];

    template <bool ALONG> DEVICE static int row(int e) {
        return ALONG ? threadIdx.x / K + e * (THREADS / K) : threadIdx.x % Q;
    }
    template <bool ALONG> DEVICE static int depth(int e) {
        return ALONG ? threadIdx.x % K : threadIdx.x / Q + e * (THREADS / Q);
    }
    template <bool ALONG, class T, class F>
    DEVICE void fetch(const operand<ALONG, T, F>& from, int first, int end) {
        const long long step = from.line * (ALONG ? THREADS / K : THREADS / Q);
        const T* place = ALONG ? from.at + row<true>(0) * from.line + first + depth<true>(0)
                               : from.at + (first + depth<false>(0)) * from.line + row<false>(0);
        T numbers[COUNT];  // all loads are under way before the first number is used
#pragma unroll
        for (int e = 0; e < COUNT; ++e, place += step) {
            numbers[e] = T{};
            if (row<ALONG>(e) < from.rows && first + depth<ALONG>(e) < end) numbers[e] = *place;
        }
#pragma unroll
        for (int e = 0; e < COUNT; ++e) {
            const int i = row<ALONG>(e), k = first + depth<ALONG>(e);
            held[e] = i < from.rows && k < end ? from.f(numbers[e], k) : zero<E>();
        }
    }
    template <bool ALONG> DEVICE void put(E* lines) const {
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            lines[depth<ALONG>(e) * tile<S>::STRIDE + row<ALONG>(e)] = held[e];
    }
};

// sums(i, j) += Σ_k a(i, k) b(j, k) for k < depth; `slices` has room for both. All threads of the
// block call it; a barrier must stand between writing what operands read and this call.
template <class S, bool A, class TA, class FA, bool B, class TB, class FB>
DEVICE void add_product(tile<S>& sums, int depth, const operand<A, TA, FA>& a,
                        const operand<B, TB, FB>& b, Pack16<accumulate_of<S>>* slices) {
    auto* left = reinterpret_cast<accumulate_of<S>*>(slices);
    auto* right = left + tile<S>::K * tile<S>::STRIDE;
    slice<S> of_a, of_b;
    of_a.fetch(a, 0, depth);
    of_b.fetch(b, 0, depth);
#pragma unroll 1
    for (int k = 0; k < depth; k += tile<S>::K) {
        of_a.template put<A>(left);
        of_b.template put<B>(right);
        __syncthreads();
        of_a.fetch(a, k + tile<S>::K, depth);
        of_b.fetch(b, k + tile<S>::K, depth);
        sums.multiply(left, right);
        __syncthreads();
    }
}

#endif
