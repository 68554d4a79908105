// k_j = Σ_n v_n e^{x_n j}: with j = start + 64 r + q a product of two small tables, the heads
// v_n e^{x_n (start + 64 r)} and the columns e^{x_n q}.
//
// A block of 256 threads has 32 ROWS × 64 outputs of one row of the batch. It goes through the modes
// in slices, makes both tables of a slice in shared memory, and each thread adds the products to its
// ROWS × 8 outputs in registers. An output is written once; neighbours in a warp write neighbours.
//
// Bound by flops in single precision. 256 rows, n = 32, l = 16384, complex64: 1.07 GFLOP of products
// (and as much time again in part for the tables: 40 exponentials in double precision a mode for
// 8192 outputs), 34 MB written. 64 rows, n = 64: 0.54 GFLOP, 8 MB. The real part only: half the
// flops and half the bytes.
#ifndef REFSSM_VANDERMONDE_CUH
#define REFSSM_VANDERMONDE_CUH
#include "powers.cuh"
#include "../common/votes.cuh"

struct vandermonde_sizes {
    long long l, n, tiles;  // tiles: blocks along time
    long long backwards;    // add to what is there, from the last time to the first
};

template <class E, int REAL_PART> struct entry_of_ { using type = E; };
template <class E> struct entry_of_<E, 1> { using type = real_of<E>; };
template <class E, int REAL_PART> using entry_of = typename entry_of_<E, REAL_PART>::type;

// Only the real part.
template <class T> DEVICE void add_product(T& sum, complex_of<T> a, complex_of<T> b) {
    sum = a.re * b.re + sum;
    sum = sum - a.im * b.im;
}

template <class E, int REAL_PART, int ROWS> struct vandermonde_tile {
    static constexpr int THREADS = 256, ACROSS = 8, EACH = 8, COLUMNS = ACROSS * EACH;
    static constexpr int HEADS = THREADS / ACROSS * ROWS, TIMES = HEADS * COLUMNS;
    static constexpr int SLICE = 64 / static_cast<int>(sizeof(real_of<E>));  // modes
    using W = wide_of<E>;
    using digits = digits_of<W, COLUMNS, HEADS>;

    // `turned`: modes with a power of −1 as a factor.
    static DEVICE void fill_columns(const digits& powers, const unsigned char* turned, int modes,
                                    E* columns) {
        for (int i = threadIdx.x; i < modes * COLUMNS; i += THREADS) {
            const int n = i / COLUMNS, q = i % COLUMNS;
            const W e = powers.column(n, q);
            columns[i] = rounded_to<E>(turned && turned[n] && q % 2 ? -e : e);
        }
    }
    // `rising`: modes that are summed from the last time to the first, the others are not.
    static DEVICE void fill_heads(const digits& powers, const W* v, const unsigned char* rising,
                                  bool backwards, int modes, Pack16<E>* heads) {
        for (int i = threadIdx.x; i < modes * HEADS; i += THREADS) {
            const int n = i / HEADS;
            const bool out = rising && (rising[n] != 0) != backwards;
            const W own = out ? from_real<W>(0) : v[n] * powers.head(n, i % HEADS);
            put(heads, i, rounded_to<E>(own));
        }
    }

    static DEVICE void multiply(const E* columns, const Pack16<E>* heads, int modes,
                                entry_of<E, REAL_PART> (&sums)[ROWS][EACH]) {
        const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
        for (int n = 0; n < modes; ++n) {
            E head[ROWS], column[EACH];
            get(heads, n * HEADS + down * ROWS, head);
#pragma unroll
            for (int j = 0; j < EACH; ++j) column[j] = columns[n * COLUMNS + across + ACROSS * j];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < EACH; ++j) add_product(sums[i][j], head[i], column[j]);
        }
    }
};

template <class E, int REAL_PART, int ROWS>
__global__ void __launch_bounds__(256, 2)
    vandermonde(const wide_of<E>* __restrict__ v, const wide_of<E>* __restrict__ x,
                const unsigned char* __restrict__ turned,
                const unsigned char* __restrict__ rising, entry_of<E, REAL_PART>* __restrict__ k,
                vandermonde_sizes size) {
    using tile = vandermonde_tile<E, REAL_PART, ROWS>;
    using O = entry_of<E, REAL_PART>;
    SHARED(wide_of<E>, powers, tile::SLICE * tile::digits::COUNT);
    SHARED(E, columns, tile::SLICE * tile::COLUMNS);
    SHARED(Pack16<E>, heads, (tile::SLICE * tile::HEADS) / PER_16<E>);
    const long long row = blockIdx.x / size.tiles;
    const long long start = blockIdx.x % size.tiles * tile::TIMES;
    v += row * size.n;
    x += row * size.n;
    if (turned) turned += row * size.n;
    if (rising) rising += row * size.n;
    if (size.backwards && none<tile::THREADS>(rising, size.n, heads)) return;
    O sums[ROWS][tile::EACH];
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < tile::EACH; ++j) sums[i][j] = zero<O>();
    for (long long first = 0; first < size.n; first += tile::SLICE) {
        const int modes = static_cast<int>(min(size.n - first, (long long)tile::SLICE));
        tile::digits::fill(powers, x + first, modes, start);
        __syncthreads();  // and nobody reads the tables of the last slice any more
        tile::fill_columns({powers}, turned ? turned + first : nullptr, modes, columns);
        tile::fill_heads({powers}, v + first, rising ? rising + first : nullptr, size.backwards != 0,
                         modes, heads);
        __syncthreads();
        tile::multiply(columns, heads, modes, sums);
    }
    const int across = threadIdx.x % tile::ACROSS, down = threadIdx.x / tile::ACROSS;
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
#pragma unroll
        for (int j = 0; j < tile::EACH; ++j) {
            const int q = across + tile::ACROSS * j;
            const long long at = start + (down * ROWS + i) * tile::COLUMNS + q;
            if (at >= size.l) continue;
            O* place = k + row * size.l + (size.backwards ? size.l - 1 - at : at);
            *place = size.backwards ? *place + sums[i][j] : sums[i][j];
        }
}

#endif
