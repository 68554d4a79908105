// x_k = e^{Δ_k A} x_{k-1} + Δ_k u_k B_k and y_k = C_k · x_k, with or without Mamba's softplus, skip
// and gate: each number of u, dt, z and y is read or written once, 16 bytes a load; the states stay
// in registers (selective.cuh says how lanes divide the work).
//
// While a block walks through one chunk, the loads of the next are on their way into registers; B
// and C have two places in shared memory in turn, so a chunk costs one barrier. Softplus and gate
// are computed once per number, by the lane that moves it.
//
// What bounds it, as a model for 16 × 512 channels, l = 2048, n = 16, float32 on an H100: 268 M
// exponentials at 16 per clock and multiprocessor need 73 µs, the 201 MB of u, dt and y 67 µs. Four
// steps of a warp are 114 instructions in a straight piece (nvdisasm, sm_90) beside 16 exponentials
// of 8 clocks each, so the issue slots are at 89 % of them. The exponential is the bound.
//
// One body for three kernels: outputs; states before each chunk (what the adjoint starts from);
// and, for time in pieces, the map of each piece (selective_pieces.cuh). More states than a tile
// has are worked off tile by tile within a chunk, and wait in `carry`.
#include "selective.cuh"

enum { OUTPUTS, STATES_BEFORE, TOTALS };  // what a pass over time is for

// The lane's states, from one chunk to the next.
template <class S> struct running {
    using D = division<S>;
    using E = typename D::E;
    E x[D::STATES], rate[D::STATES];

    // From `from`, (rows, n), or from zeros.
    DEVICE void open(const E* A, long long A_row, const E* from, long long row, long long state,
                     long long n) {
        fetch_states(A, A_row, state, n, rate);
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) rate[j] = rate_of(rate[j]), x[j] = zero<E>();
        if (from) fetch_states(from, row, state, n, x);
    }

    // One step; B is the row of its time in the tile.
    template <bool CAREFUL>
    DEVICE void step(real_of<S> step, E drive, bool begins, const E (&B)[D::STATES]) {
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) {
            const E kept = decay(step, rate[j]) * x[j];
            x[j] = CAREFUL && begins ? drive * B[j] : kept + drive * B[j];
        }
    }
};

// `count` steps of a chunk from the tiles in shared memory; C_k · x_k is added up over lanes, BATCH
// steps at a time, which are one straight piece of code unless they need a look. Returns the sum of
// the steps.
template <int WHAT, bool CAREFUL, class S>
DEVICE real_of<S> walk_chunk(running<S>& run, const selective_place<S>& at, long long tile,
                             int count, unsigned begins, const real_of<S>* steps,
                             const accumulate_of<S>* drives, const accumulate_of<S>* B,
                             const accumulate_of<S>* C, accumulate_of<S>* sums) {
    using D = division<S>;
    using E = typename D::E;
    const int own = at.own() * D::ROW, column = at.group * D::STATES;
    const long long left = at.size.n - at.state(tile);
    real_of<S> whole = 0;
#pragma unroll 1
    for (int k = 0; k < (CAREFUL ? count : D::CHUNK); k += BATCH) {
        real_of<S> step[BATCH];
        E drive[BATCH], sum[BATCH], by[D::STATES];
        fetch_batch<S>(steps + own + k, step);
        fetch_batch<S>(drives + own + k, drive);
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            sum[i] = zero<E>();
            if (CAREFUL && k + i >= count) continue;
            fetch(B + (k + i) * D::TILE + column, by);
            run.template step<CAREFUL>(step[i], drive[i], begins >> (k + i) & 1, by);
            if constexpr (WHAT == TOTALS) whole += step[i];
            if constexpr (WHAT != OUTPUTS) continue;
            fetch(C + (k + i) * D::TILE + column, by);
#pragma unroll
            for (int j = 0; j < D::STATES; ++j)
                if (!CAREFUL || j < left) sum[i] = sum[i] + by[j] * run.x[j];
        }
        if constexpr (WHAT == OUTPUTS) {
            constexpr int ALIKE = D::GROUPS / BATCH;  // lanes that get the same sum
            const E total = summed<BATCH, D::GROUPS, 1>(sum);
            E* place = sums + own + k + at.group / ALIKE;
            if (at.group % ALIKE == 0) *place = tile ? *place + total : total;
        }
    }
    return whole;
}

// (C·x + D u) silu(z), in the place of C·x.
template <class S>
DEVICE void gate(moved_times<S, accumulate_of<S>>& y, const moved_times<S, accumulate_of<S>>& u,
                 const moved_times<S, real_of<S>>& z, const accumulate_of<S>* D_skip,
                 const selective_place<S>& at) {
    using D = division<S>;
#pragma unroll
    for (int m = 0; m < D::MOVES; ++m) {
        const accumulate_of<S> skip = D_skip[at.row(D_BITS, at.member(at.moved_row(m)))];
#pragma unroll
        for (int i = 0; i < D::TIMES; ++i) {
            const real_of<S> open = z.v[m][i] * sigmoid(z.v[m][i]);
            y.v[m][i] = (y.v[m][i] + skip * u.v[m][i]) * open;
        }
    }
}

// dt becomes softplus(dt + bias), and `drive` Δ u.
template <class S>
DEVICE void discretize(moved_times<S, real_of<S>>& dt,
                       moved_times<S, accumulate_of<S>>& drive, const real_of<S>* bias,
                       const selective_place<S>& at) {
    using D = division<S>;
#pragma unroll
    for (int m = 0; m < D::MOVES; ++m) {
        real_of<S> shift = 0;
        if (bias) shift = bias[at.row(BIAS_BITS, at.member(at.moved_row(m)))];
#pragma unroll
        for (int i = 0; i < D::TIMES; ++i) {
            if (bias) dt.v[m][i] = softplus(dt.v[m][i] + shift);
            drive.v[m][i] = dt.v[m][i] * drive.v[m][i];
        }
    }
}

// Where the kernels read from. A, D, bias and starts have the type of the computation.
template <class S> struct selective_inputs {
    using E = accumulate_of<S>;
    const S* u;
    const stored_real_of<S>* dt;
    const E* A;
    const S *B, *C;
    const E* D;
    const stored_real_of<S>* z;
    const real_of<S>* bias;
    const E* starts;  // states before pieces, (rows, pieces, n); null: zeros
    const unsigned char* resets;
};

// What a block keeps from chunk to chunk: the lane's states, and the numbers on their way.
template <class S, int WHAT> struct selective_block {
    using D = division<S>;
    using E = typename D::E;
    using R = real_of<S>;
    static constexpr int BUFFER = D::CHUNK * D::TILE;

    const selective_inputs<S>& in;
    const selective_place<S>& at;
    E *B_tiles, *C_tiles, *drives, *sums;
    R* steps;
    long long own, piece;  // the thread's channel in the batch, and its row of states per piece
    bool stays;            // it is one of the batch
    running<S> run;
    moved_times<S, E> u, held;  // of the next chunk, of this one
    moved_times<S, R> dt, z;
    moved_states<S> B_next, C_next;

    DEVICE void load_tile(long long t, long long tile) {
        const long long core = at.size.l * at.size.n;
        B_next.load(in.B + at.row(B_BITS, at.member(0)) * core, at, t, tile);
        if constexpr (WHAT == OUTPUTS)
            C_next.load(in.C + at.row(C_BITS, at.member(0)) * core, at, t, tile);
    }
    DEVICE void load_times(long long t) {
        u.load(in.u, at, U_BITS, t);
        dt.load(in.dt, at, DT_BITS, t);
    }
    DEVICE void begin_chunk() {
        held = u;
        discretize(dt, u, in.bias, at);
        dt.put(steps, at);
        u.put(drives, at);
    }
    // What has arrived goes into shared memory, and the loads of the next tile begin.
    DEVICE void turn(long long t, long long tile, int buffer) {
        B_next.put(B_tiles + buffer);
        if constexpr (WHAT == OUTPUTS) C_next.put(C_tiles + buffer);
        __syncthreads();
        const bool last = tile + 1 == at.tiles();
        load_tile(last ? t + D::CHUNK : t, last ? 0 : tile + 1);
        if (last) load_times(t + D::CHUNK);
        if (WHAT == OUTPUTS && last && in.z) z.load(in.z, at, Z_BITS, t);
    }
    DEVICE void open(long long t, long long state, const E* carry) {
        const long long A_row = at.row(A_BITS, own);
        if (t == at.first) {
            const long long start = at.row(START_BITS, own) * gridDim.y + blockIdx.y;
            run.open(in.A, A_row, in.starts, start, state, at.size.n);
        } else if (at.tiles() > 1) {
            run.open(in.A, A_row, stays ? carry : nullptr, piece, state, at.size.n);
        }
    }
    DEVICE void close(long long t, long long state, E* after, E* carry) const {
        if (!stays) return;
        const bool ends = t + D::CHUNK >= at.end;
        if (!ends && at.tiles() > 1) store_states(carry, piece, state, at.size.n, run.x);
        if (ends && after && (WHAT == TOTALS || at.end == at.size.l))
            store_states(after, WHAT == TOTALS ? piece : own, state, at.size.n, run.x);
    }
    DEVICE void put_outputs(S* y, long long t) {
        __syncwarp();
        if constexpr (WHAT != OUTPUTS) return;
        moved_times<S, E> out;
        out.get(sums, at);
        if (in.z) gate(out, held, z, in.D, at);
        out.save(y, at, t);
    }
};

// The block's place and arrays in shared memory.
template <class S, int WHAT>
DEVICE selective_block<S, WHAT> selective_room(const selective_inputs<S>& in,
                                               const selective_place<S>& at) {
    using D = division<S>;
    using E = typename D::E;
    constexpr int OUT = WHAT == OUTPUTS;
    SHARED(E, B_tiles, 2 * D::CHUNK * D::TILE);
    SHARED(E, C_tiles, (OUT ? 2 * D::CHUNK * D::TILE : 1));
    SHARED(E, drives, D::CHANNELS * D::ROW);
    SHARED(E, sums, (OUT ? D::CHANNELS * D::ROW : 1));
    SHARED(real_of<S>, steps, D::CHANNELS * D::ROW);
    const long long own = at.member(at.own()), piece = own * gridDim.y + blockIdx.y;
    return {in,  at,    B_tiles, C_tiles, drives, sums, steps,
            own, piece, at.inside(at.own()), {}, {}, {}, {}, {}, {}, {}};
}

// One pass over a piece of time. `before`: states before each chunk (rows, chunks, n); `after`:
// states after the piece, (rows, n) for outputs and (rows, pieces, n) for totals; null if unwanted.
// `whole` becomes the sum of the steps; `ever` has a bit if a sequence begins.
template <class S, int WHAT>
DEVICE void run_selective(const selective_inputs<S>& in, S* y, accumulate_of<S>* before,
                          accumulate_of<S>* after, accumulate_of<S>* carry, real_of<S>& whole,
                          unsigned& ever, const selective_place<S>& at) {
    using D = division<S>;
    auto b = selective_room<S, WHAT>(in, at);
    b.load_tile(at.first, 0);
    b.load_times(at.first);
    int buffer = 0;
    for (long long t = at.first; t < at.end; t += D::CHUNK) {
        const unsigned begins = at.begins(in.resets, t);
        ever |= begins;
        b.begin_chunk();
        for (long long tile = 0; tile < at.tiles(); ++tile, buffer ^= b.BUFFER) {
            b.turn(t, tile, buffer);
            const long long state = at.state(tile);
            b.open(t, state, carry);
            if (WHAT == STATES_BEFORE && b.stays)
                store_states(before, b.own * at.chunks() + t / D::CHUNK, state, at.size.n, b.run.x);
            const auto *B = b.B_tiles + buffer, *C = b.C_tiles + (WHAT == OUTPUTS ? buffer : 0);
            const int count = at.steps(t);
            const auto part =
                at.careful(begins, t, tile)
                    ? walk_chunk<WHAT, true>(b.run, at, tile, count, begins, b.steps, b.drives, B,
                                             C, b.sums)
                    : walk_chunk<WHAT, false>(b.run, at, tile, count, begins, b.steps, b.drives, B,
                                              C, b.sums);
            if (tile == 0) whole += part;
            b.close(t, state, after, carry);
        }
        b.put_outputs(y, t);
    }
}

template <class S>
__global__ void __launch_bounds__(BLOCK, 3)
    selective_scan(const S* __restrict__ u, const stored_real_of<S>* __restrict__ dt,
                   const accumulate_of<S>* __restrict__ A, const S* __restrict__ B,
                   const S* __restrict__ C, const accumulate_of<S>* __restrict__ D,
                   const stored_real_of<S>* __restrict__ z, const real_of<S>* __restrict__ bias,
                   const accumulate_of<S>* __restrict__ starts,
                   const unsigned char* __restrict__ resets, S* __restrict__ y,
                   accumulate_of<S>* last, accumulate_of<S>* carry, selective_sizes size) {
    const selective_place<S> at(size);
    real_of<S> whole = 0;
    unsigned ever = 0;
    run_selective<S, OUTPUTS>({u, dt, A, B, C, D, z, bias, starts, resets}, y, nullptr, last, carry,
                              whole, ever, at);
}

// The states before each chunk, (rows, chunks, n).
template <class S>
__global__ void __launch_bounds__(BLOCK, 3)
    selective_states(const S* __restrict__ u, const stored_real_of<S>* __restrict__ dt,
                     const accumulate_of<S>* __restrict__ A, const S* __restrict__ B,
                     const real_of<S>* __restrict__ bias,
                     const accumulate_of<S>* __restrict__ starts,
                     const unsigned char* __restrict__ resets, accumulate_of<S>* before,
                     accumulate_of<S>* carry, selective_sizes size) {
    const selective_place<S> at(size);
    real_of<S> whole = 0;
    unsigned ever = 0;
    run_selective<S, STATES_BEFORE>({u, dt, A, B, B, nullptr, nullptr, bias, starts, resets},
                                    nullptr, before, nullptr, carry, whole, ever, at);
}
