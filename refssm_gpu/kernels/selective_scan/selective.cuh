// What the kernels of selective scans share: how lanes divide states and channels, the tiles of a
// chunk of time, and the elementwise functions around the scan.
//
// A warp holds 32 / GROUPS channels; GROUPS lanes share a channel, each with STATES neighbouring
// states in registers. Lanes walk through time one step after another, so nothing is composed, a
// sequence begins by a selection, and infinity stays infinity. A chunk of time lies in shared
// memory: numbers of a channel (channel, time), in rows that begin in different banks, B and C
// (time, state), one tile for the block's channels. A lane reads four steps of its channel, or the
// states of its group, at once.
#ifndef REFSSM_SELECTIVE_CUH
#define REFSSM_SELECTIVE_CUH
#include "../scan/affine.cuh"

struct selective_sizes {
    long long l, n, inner;  // inner: channels that share B and C; see row_of
    long long span;         // steps of a piece of time, whole chunks; blockIdx.y counts the pieces
    unsigned mask;          // two bits for each argument: see row_of
    int at_rest;            // a sequence begins at time 0
};

enum { U_BITS, DT_BITS, A_BITS, B_BITS, C_BITS, D_BITS, Z_BITS, BIAS_BITS, START_BITS, RESET_BITS,
       DY_BITS };

// The real type in which dt, z and their gradients are stored beside an element S.
template <class S> struct stored_real_of_ { using type = real_of<S>; };
template <> struct stored_real_of_<float16> { using type = float16; };
template <> struct stored_real_of_<bfloat16> { using type = bfloat16; };
template <class S> using stored_real_of = typename stored_real_of_<S>::type;

template <class S> struct division {
    using E = accumulate_of<S>;
    static constexpr int WORDS = sizeof(E) / 4;
    static constexpr int TILE = 16;              // states of a tile
    static constexpr int STATES = 4 / WORDS;     // of a lane: 16 bytes
    static constexpr int GROUPS = TILE / STATES; // lanes of a channel
    static constexpr int PER_WARP = WARP / GROUPS, CHANNELS = WARPS * PER_WARP;
    static constexpr int CHUNK = WORDS == 1 ? 32 : 16;  // steps
    static constexpr int TIMES = 16 / sizeof(E);        // neighbouring times that a lane moves
    static constexpr int ROW = CHUNK + TIMES;           // rows of a tile begin in different banks
    static constexpr int ALONG = CHUNK / TIMES;         // lanes that move a row
    static constexpr int MOVES = PER_WARP * ALONG / WARP;
    static constexpr int ACROSS = TILE / STATES;        // threads that move B at one time
    static constexpr int SHARED_MOVES = CHUNK * ACROSS / BLOCK;
};
constexpr int BATCH = 4;  // steps whose sums over states are added up together

// Numbers of BATCH steps from a row of a tile.
template <class S, class T> DEVICE void fetch_batch(const T* p, T (&x)[BATCH]) {
    constexpr int TIMES = division<S>::TIMES;
#pragma unroll
    for (int i = 0; i < BATCH; i += TIMES) {
        T part[TIMES];
        fetch(p + i, part);
#pragma unroll
        for (int j = 0; j < TIMES; ++j) x[i + j] = part[j];
    }
}

// Up to COUNT neighbours, of which `left` exist; zero for the others.
template <int COUNT, class S, class E>
DEVICE void fetch_some(const S* p, long long left, bool aligned, E (&x)[COUNT]) {
    if (aligned && left >= COUNT) {
        fetch(p, x);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) x[i] = i < left ? widen(p[i]) : zero<E>();
    }
}

template <int COUNT, class S, class E>
DEVICE void store_some(S* p, long long left, bool aligned, const E (&x)[COUNT]) {
    if (aligned && left >= COUNT) {
        store(p, x);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (i < left) p[i] = narrow<S>(x[i]);
    }
}

// Sums of COUNT values over LANES lanes, STRIDE apart; a lane gets the sum of value number
// (lane / STRIDE % LANES) / (LANES / COUNT): lanes give away the half that another one keeps.
template <int COUNT, int LANES, int STRIDE, class E> DEVICE E summed(E (&v)[COUNT]) {
    if constexpr (LANES == 1) {
        return v[0];
    } else if constexpr (COUNT == 1) {
        v[0] = v[0] + shuffle_xor(WHOLE_WARP, v[0], LANES / 2 * STRIDE);
        return summed<1, LANES / 2, STRIDE>(v);
    } else {
        const bool upper = threadIdx.x % WARP / STRIDE & LANES / 2;
        E half[COUNT / 2];
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i) {
            const E given = upper ? v[i] : v[i + COUNT / 2];
            half[i] = upper ? v[i + COUNT / 2] : v[i];
            half[i] = half[i] + shuffle_xor(WHOLE_WARP, given, LANES / 2 * STRIDE);
        }
        return summed<COUNT / 2, LANES / 2, STRIDE>(half);
    }
}

// ---- e^{Δ A} from rates that are brought to powers of two and half turns once: one instruction
// of the card for a real number, and a reduction of the angle without a slow path.
DEVICE float rate_of(float a) { return a * 1.4426950408889634f; }
DEVICE double rate_of(double a) { return a * 1.4426950408889634; }
DEVICE complex64 rate_of(complex64 a) { return {rate_of(a.re), a.im * 0.3183098861837907f}; }
DEVICE complex128 rate_of(complex128 a) { return {rate_of(a.re), a.im * 0.3183098861837907}; }

DEVICE float decay(float step, float rate) { return exp2f(step * rate); }
DEVICE double decay(double step, double rate) { return exp2(step * rate); }
template <class T> DEVICE complex_of<T> decay(T step, complex_of<T> rate) {
    T sine, cosine;
    if constexpr (sizeof(T) == 4) sincospif(step * rate.im, &sine, &cosine);
    else sincospi(step * rate.im, &sine, &cosine);
    const T size = decay(step, rate.re);
    return {size * cosine, size * sine};
}

template <class R> DEVICE R softplus(R v) { return fmax(v, R(0)) + log1p(exp(-fabs(v))); }
template <class R> DEVICE R sigmoid(R v) {
    const R e = exp(-fabs(v));
    return (v >= 0 ? R(1) : e) / (1 + e);
}

// Where a block works, and which channel a thread computes.
template <class S> struct selective_place {
    using D = division<S>;
    long long outer, channel, first, end;  // the block's first channel, its piece of time
    int warp, lane, group;
    const selective_sizes& size;

    DEVICE explicit selective_place(const selective_sizes& sizes) : size(sizes) {
        outer = blockIdx.x / groups();
        channel = blockIdx.x % groups() * D::CHANNELS;
        first = blockIdx.y * size.span;
        end = first + size.span < size.l ? first + size.span : size.l;
        warp = threadIdx.x / WARP;
        lane = threadIdx.x % WARP;
        group = lane % D::GROUPS;
    }
    DEVICE long long groups() const {  // blocks for the channels of one outer member
        return (size.inner + D::CHANNELS - 1) / D::CHANNELS;
    }
    // At least one, which is empty if there are no states.
    DEVICE long long tiles() const {
        return size.n > D::TILE ? (size.n + D::TILE - 1) / D::TILE : 1;
    }
    DEVICE long long chunks() const { return (size.l + D::CHUNK - 1) / D::CHUNK; }
    DEVICE int own() const { return warp * D::PER_WARP + lane / D::GROUPS; }
    DEVICE bool inside(int c) const { return channel + c < size.inner; }
    // The member of the batch of the block's channel c; one beyond the last computes the last
    // once more and stores nothing.
    DEVICE long long member(int c) const {
        const long long i = channel + c < size.inner ? channel + c : size.inner - 1;
        return outer * size.inner + i;
    }
    DEVICE long long row(int argument, long long member) const {
        return row_of(size, argument, member);
    }
    DEVICE long long state(long long tile) const { return tile * D::TILE + group * D::STATES; }
    DEVICE int steps(long long t) const {
        return end - t < D::CHUNK ? static_cast<int>(end - t) : D::CHUNK;
    }
    // What a thread moves: the row of a tile and its first time.
    DEVICE int moved_row(int move) const {
        return warp * D::PER_WARP + (move * WARP + lane) / D::ALONG;
    }
    DEVICE int moved_time() const { return lane % D::ALONG * D::TIMES; }
    // Place of the moved times in an argument (rows, l).
    DEVICE long long moved(int argument, int move, long long t) const {
        return row(argument, member(moved_row(move))) * size.l + t + moved_time();
    }
    // Whether steps of this chunk need a look: a sequence begins in it, or not all of its steps, of
    // the tile's states or of the warp's channels exist. All lanes of a warp agree.
    DEVICE bool careful(unsigned begins, long long t, long long tile) const {
        const bool full = steps(t) == D::CHUNK && (tile + 1) * D::TILE <= size.n &&
                          channel + (warp + 1) * D::PER_WARP <= size.inner;
        return __any_sync(WHOLE_WARP, begins != 0) || !full;
    }
    DEVICE bool aligned() const { return size.l % D::TIMES == 0; }

    // Bit k: a sequence of the thread's channel begins at step k of the chunk.
    DEVICE unsigned begins(const unsigned char* resets, long long t) const {
        unsigned bits = size.at_rest && t == 0;
        if (!resets) return bits;
        const unsigned char* p = resets + row(RESET_BITS, member(own())) * size.l + t;
        for (int k = group; k < steps(t); k += D::GROUPS) bits |= unsigned(p[k] != 0) << k;
#pragma unroll
        for (int d = 1; d < D::GROUPS; d *= 2) bits |= shuffle_xor(WHOLE_WARP, bits, d);
        return bits;
    }
};

// A chunk of numbers (rows, l) on its way into shared memory: what a thread moves.
template <class S, class E> struct moved_times {
    using D = division<S>;
    E v[D::MOVES][D::TIMES];

    template <class T>
    DEVICE void load(const T* source, const selective_place<S>& at, int argument, long long t) {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m)
            fetch_some(source + at.moved(argument, m, t), at.end - t - at.moved_time(),
                       at.aligned(), v[m]);
    }
    DEVICE void put(E* tile, const selective_place<S>& at) const {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m)
            store(tile + at.moved_row(m) * D::ROW + at.moved_time(), v[m]);
    }
    DEVICE void get(const E* tile, const selective_place<S>& at) {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m)
            fetch(tile + at.moved_row(m) * D::ROW + at.moved_time(), v[m]);
    }
    // Into an array (members, l).
    template <class T>
    DEVICE void save(T* target, const selective_place<S>& at, long long t) const {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m) {
            if (!at.inside(at.moved_row(m))) continue;
            const long long k = t + at.moved_time();
            store_some(target + at.member(at.moved_row(m)) * at.size.l + k, at.end - k,
                       at.aligned(), v[m]);
        }
    }
};

// A tile of B or C, (times, states), likewise; zero beyond the last state and time.
template <class S> struct moved_states {
    using D = division<S>;
    using E = accumulate_of<S>;
    E v[D::SHARED_MOVES][D::STATES];

    DEVICE void load(const S* source, const selective_place<S>& at, long long t, long long tile) {
#pragma unroll
        for (int m = 0; m < D::SHARED_MOVES; ++m) {
            const int i = m * BLOCK + static_cast<int>(threadIdx.x), k = i / D::ACROSS;
            const long long state = tile * D::TILE + i % D::ACROSS * D::STATES;
            const long long left = t + k < at.end ? at.size.n - state : 0;
            const bool aligned = at.size.n % D::STATES == 0;
            fetch_some(source + (t + k) * at.size.n + state, left, aligned, v[m]);
        }
    }
    DEVICE void put(E* tile) const {
#pragma unroll
        for (int m = 0; m < D::SHARED_MOVES; ++m)
            store(tile + (m * BLOCK + static_cast<int>(threadIdx.x)) * D::STATES, v[m]);
    }
};

// The thread's numbers of an array (rows, n), from state `state` of `row`.
template <class E, int STATES>
DEVICE void fetch_states(const E* p, long long row, long long state, long long n, E (&x)[STATES]) {
    fetch_some(p + row * n + state, n - state, n % STATES == 0, x);
}
template <class E, int STATES>
DEVICE void store_states(E* p, long long row, long long state, long long n,
                         const E (&x)[STATES]) {
    store_some(p + row * n + state, n - state, n % STATES == 0, x);
}

#endif
