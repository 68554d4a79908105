// Σ_j d_j e^{x_n j}* and Σ_j j d_j e^{x_n j}*, the gradients of a Vandermonde kernel.
//
// j = start + COLUMNS r + q. A block of 128 threads has 64 × COLUMNS times of one row, all modes in
// slices of 16, and a thread 4 r × 2 modes: with c_q = d_rq e^{x q} it goes from the last q to the
// first and adds c_q to a sum S, and S to a sum M of these sums, which becomes Σ q c_q: 6
// instructions where two products need 8. Then the sums are multiplied by the heads e^{x (start +
// COLUMNS r)} and added over r, in double precision and in an order that does not vary. The sums of
// a row's blocks are added by another launch.
//
// Bound by flops in single precision: 256 rows, n = 32, l = 16384, complex64: 1.6 GFLOP and 28 or 32
// exponentials a mode for 4096 times, 34 MB read. 64 rows, n = 64: 0.8 GFLOP, 8 MB.
#ifndef REFSSM_VANDERMONDE_MOMENTS_CUH
#define REFSSM_VANDERMONDE_MOMENTS_CUH
#include "powers.cuh"
#include "../common/votes.cuh"

struct moments_sizes {
    long long l, n, pieces;  // l: times that are summed; pieces: blocks along time
    long long stride, skip;  // from a row of d to the next; time 0 of the sums in a row
    long long backwards;     // from the last time to the first, for rows that want it
};

template <class E, class D> struct moments_tile {
    static constexpr int THREADS = 128, DOWN = 16, ROWS = 4, HEADS = DOWN * ROWS;
    static constexpr int MODES = 2, SLICE = THREADS / DOWN * MODES;
    static constexpr int COLUMNS = 256 / static_cast<int>(sizeof(real_of<E>));  // 64 or 32
    static constexpr int TIMES = HEADS * COLUMNS;
    using W = wide_of<E>;
    using digits = digits_of<W, COLUMNS, HEADS>;

    // Where d at (r, q) is in shared memory: four r side by side, groups of them turned with q, so
    // that reading (along r) and writing (along q) meet few conflicts of banks.
    static DEVICE int place(int r, int q) { return q * HEADS + (r ^ q % DOWN * ROWS); }

    static DEVICE void fetch(const D* d, long long start, const moments_sizes& size,
                             Pack16<D>* times) {
        for (int i = threadIdx.x; i < TIMES; i += THREADS) {
            const long long j = start + i;
            const D own = j < size.l ? d[size.backwards ? size.l - 1 - j : j] : from_real<D>(0);
            put(times, place(i / COLUMNS, i % COLUMNS), conj(own));
        }
    }

    static DEVICE void fill(const digits& powers, const unsigned char* turned, int modes,
                            long long l, Pack16<E>* columns) {
        for (int i = threadIdx.x; i < SLICE * COLUMNS; i += THREADS) {
            const int n = i % SLICE, q = i / SLICE;
            const bool inside = n < modes && q < l;  // outside a power may be infinite
            W e = inside ? powers.column(n, q) : from_real<W>(0);
            if (inside && turned && turned[n] && q % 2) e = -e;
            put(columns, i, rounded_to<E>(e));
        }
    }

    // S and M of this thread's rows and modes.
    static DEVICE void multiply(const Pack16<D>* times, const Pack16<E>* columns, E (&sum)[ROWS][MODES],
                                E (&moment)[ROWS][MODES]) {
        const int down = threadIdx.x % DOWN, across = threadIdx.x / DOWN;
        for (int q = COLUMNS - 1; q >= 0; --q) {
            E column[MODES];
            D d[ROWS];
            get(columns, q * SLICE + across * MODES, column);
            get(times, place(down * ROWS, q), d);
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int m = 0; m < MODES; ++m) {
                    add_product(sum[i][m], d[i], column[m]);
                    if (q > 0) moment[i][m] = moment[i][m] + sum[i][m];
                }
        }
    }
};

template <class E, class D>
__global__ void __launch_bounds__(128, 3)
    vandermonde_moments(const D* __restrict__ d, const wide_of<E>* __restrict__ x,
                        const unsigned char* __restrict__ turned,
                        const unsigned char* __restrict__ wanted,
                        wide_of<E>* __restrict__ sums,  // (rows, pieces, 2, n)
                        moments_sizes size) {
    using tile = moments_tile<E, D>;
    using W = wide_of<E>;
    SHARED(Pack16<D>, times, (tile::TIMES) / PER_16<D>);
    SHARED(W, powers, tile::SLICE * tile::digits::COUNT);
    SHARED(Pack16<E>, columns, (tile::SLICE * tile::COLUMNS) / PER_16<E>);
    const long long row = blockIdx.x / size.pieces;
    const long long start = blockIdx.x % size.pieces * tile::TIMES;
    const int down = threadIdx.x % tile::DOWN, across = threadIdx.x / tile::DOWN;
    x += row * size.n;
    if (turned) turned += row * size.n;
    sums += blockIdx.x * 2 * size.n;
    if (wanted && none<tile::THREADS>(wanted + row * size.n, size.n, powers)) {
        for (long long i = threadIdx.x; i < 2 * size.n; i += tile::THREADS)
            sums[i] = from_real<W>(0);
        return;
    }
    tile::fetch(d + row * size.stride + size.skip, start, size, times);
    for (long long first = 0; first < size.n; first += tile::SLICE) {
        const int modes = static_cast<int>(min(size.n - first, (long long)tile::SLICE));
        __syncthreads();  // nobody reads the exponentials of the last slice any more
        tile::digits::fill(powers, x + first, modes, start);
        __syncthreads();
        const typename tile::digits table{powers};
        tile::fill(table, turned ? turned + first : nullptr, modes, size.l, columns);
        __syncthreads();
        E sum[tile::ROWS][tile::MODES] = {}, moment[tile::ROWS][tile::MODES] = {};
        if (start + down * tile::ROWS * tile::COLUMNS < size.l)
            tile::multiply(times, columns, sum, moment);
#pragma unroll
        for (int m = 0; m < tile::MODES; ++m) {
            const int mode = across * tile::MODES + m;
            W one = from_real<W>(0), two = from_real<W>(0);
#pragma unroll
            for (int i = 0; i < tile::ROWS; ++i) {
                const int r = down * tile::ROWS + i;
                const long long j = start + r * tile::COLUMNS;
                if (j >= size.l || mode >= modes) continue;
                const W head = table.head(mode, r), part = head * widest(sum[i][m]);
                one = one + part;
                two = two + head * widest(moment[i][m]);
                if (j > 0) two = two + static_cast<double>(j) * part;  // 0 · ∞
            }
#pragma unroll
            for (int distance = tile::DOWN / 2; distance > 0; distance /= 2) {
                one = one + shuffle_xor(WHOLE_WARP, one, distance);
                two = two + shuffle_xor(WHOLE_WARP, two, distance);
            }
            if (down == 0 && mode < modes) {
                sums[first + mode] = conj(one);
                sums[size.n + first + mode] = conj(two);
            }
        }
    }
}

#endif
