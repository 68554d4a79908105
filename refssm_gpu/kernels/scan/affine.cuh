// Recurrences x_k = a_k x_{k-1} + b_k by one block: affine maps compose, so time splits among threads.
//
// A block takes LANES threads side by side, each with VECTOR neighbouring columns, and 128 / LANES
// segments of time. It goes through time in chunks. In a chunk each thread holds ITEMS steps of its
// columns in registers and composes them to one map; shuffles compose the maps of a warp, four maps
// in shared memory those of the block; then each thread knows the state before its steps and walks
// through them. The state after a chunk stays in registers, in every thread of the column.
#ifndef REFSSM_AFFINE_CUH
#define REFSSM_AFFINE_CUH
#include "../common/number.cuh"
#include "../common/rows.cuh"

inline constexpr int BLOCK = 128, WARP = 32, WARPS = BLOCK / WARP;

// The map x -> a x + b; if a sequence begins in it, x -> b, whatever x is (NaN and infinity too).
template <class E, int VECTOR> struct affine {
    E a[VECTOR], b[VECTOR];
    int begins;
};

template <class E, int VECTOR> DEVICE affine<E, VECTOR> identity() {
    affine<E, VECTOR> f;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) f.a[v] = one<E>(), f.b[v] = zero<E>();
    f.begins = 0;
    return f;
}

// First f, then g.
template <class E, int VECTOR>
DEVICE affine<E, VECTOR> then(const affine<E, VECTOR>& f, const affine<E, VECTOR>& g) {
    affine<E, VECTOR> h;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        h.a[v] = g.a[v] * f.a[v];
        h.b[v] = g.begins ? g.b[v] : g.a[v] * f.b[v] + g.b[v];
    }
    h.begins = f.begins | g.begins;
    return h;
}

template <class E, int VECTOR>
DEVICE void apply(const affine<E, VECTOR>& f, E (&x)[VECTOR]) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) x[v] = f.begins ? f.b[v] : f.a[v] * x[v] + f.b[v];
}

template <class E, int VECTOR>
DEVICE affine<E, VECTOR> shuffled_up(const affine<E, VECTOR>& f, int distance) {
    affine<E, VECTOR> g;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        g.a[v] = shuffle_up(WHOLE_WARP, f.a[v], distance);
        g.b[v] = shuffle_up(WHOLE_WARP, f.b[v], distance);
    }
    g.begins = shuffle_up(WHOLE_WARP, f.begins, distance);
    return g;
}

// ITEMS steps of one thread.
template <class E, int VECTOR, int ITEMS> struct steps_of {
    E a[ITEMS][VECTOR], b[ITEMS][VECTOR];
    unsigned begins;  // bit i: a sequence begins at step i
    DEVICE affine<E, VECTOR> step(int i) const {
        affine<E, VECTOR> f;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) f.a[v] = a[i][v], f.b[v] = b[i][v];
        f.begins = begins >> i & 1;
        return f;
    }
};

// The maps of all segments before this thread's, of the block, and of the whole chunk.
template <class E, int VECTOR, int LANES> struct chunk_scan {
    affine<E, VECTOR> before;                  // the segments of this warp before this thread's
    const affine<E, VECTOR>* totals;           // of the block's warps, for this thread's columns
    int warp;

    // `shared` holds two sets of totals, used in turn: a block is never more than one chunk apart
    // between two barriers, so one barrier a chunk suffices.
    DEVICE chunk_scan(affine<E, VECTOR> own, affine<E, VECTOR>* shared, int parity) {
        const int lane = threadIdx.x % WARP;
        warp = threadIdx.x / WARP;
#pragma unroll
        for (int d = LANES; d < WARP; d *= 2) {
            const affine<E, VECTOR> earlier = shuffled_up(own, d);
            if (lane >= d) own = then(earlier, own);
        }
        before = shuffled_up(own, LANES);
        if (lane < LANES) before = identity<E, VECTOR>();
        affine<E, VECTOR>* set = shared + parity * WARPS * LANES;
        if (lane >= WARP - LANES) set[warp * LANES + lane % LANES] = own;
        totals = set + lane % LANES;
        __syncthreads();
    }

    // `mine` becomes the state before this thread's steps, `state` the one after the chunk.
    DEVICE void advance(E (&state)[VECTOR], E (&mine)[VECTOR]) const {
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) mine[v] = state[v];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) apply(totals[w * LANES], mine);
            apply(totals[w * LANES], state);
        }
        apply(before, mine);
    }
};

// Read VECTOR neighbours in one load and widen them: halves are computed in single precision.
template <class S, int VECTOR> struct alignas(sizeof(S) * VECTOR) vector_of {
    S v[VECTOR];
};

template <int VECTOR, class S> DEVICE vector_of<S, VECTOR> loaded(const S* p) {
    return *reinterpret_cast<const vector_of<S, VECTOR>*>(p);
}

template <class S, class E, int VECTOR>
DEVICE void widen_all(const vector_of<S, VECTOR>& packed, E (&x)[VECTOR]) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) x[v] = widen(packed.v[v]);
}

template <class S, class E, int VECTOR> DEVICE void fetch(const S* p, E (&x)[VECTOR]) {
    widen_all(loaded<VECTOR>(p), x);
}

template <class S, class E, int VECTOR> DEVICE void store(S* p, const E (&x)[VECTOR]) {
    vector_of<S, VECTOR> packed;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) packed.v[v] = narrow<S>(x[v]);
    *reinterpret_cast<vector_of<S, VECTOR>*>(p) = packed;
}

#endif
