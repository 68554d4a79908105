// x_k = a_k x_{k-1} + b_k for rows × columns, and its adjoint: each number is read once and written
// once, 16 bytes a load where the columns allow it (affine.cuh says how time is split).
// Where there are too few rows to fill the card, time is cut into pieces, one block each: the
// launcher first asks for each piece's map (`*_totals`), scans those, and gives each piece its state.
#ifndef REFSSM_LINEAR_SCAN_CUH
#define REFSSM_LINEAR_SCAN_CUH
#include "affine.cuh"

// What a block of a scan over (rows, l, n) works on; passed by value.
struct scan_sizes {
    long long l, n, inner;  // inner: see row_of
    long long span;         // steps of a piece of time; blockIdx.y counts the pieces
    long long step_a;       // from one time of `a` to the next: n, or 0 if it is constant in time
    unsigned mask;          // two bits for each of a, b, x0, resets: see row_of
    int at_rest;            // a sequence begins at time 0
};

template <int VECTOR, int LANES> struct place {
    long long row, column, first, end;
    bool inside;
    DEVICE explicit place(const scan_sizes& size) {
        const long long tiles = (size.n + LANES * VECTOR - 1) / (LANES * VECTOR);
        row = blockIdx.x / tiles;
        column = (blockIdx.x % tiles * LANES + threadIdx.x % LANES) * VECTOR;
        inside = column < size.n;
        first = blockIdx.y * size.span;
        end = first + size.span < size.l ? first + size.span : size.l;
    }
    DEVICE long long count() const { return end - first; }
};

enum { A_BITS, B_BITS, X0_BITS, RESET_BITS };  // order of the arguments in scan_sizes::mask

// The first decay of a row: `a` has one for each time, or one for all.
template <class S> DEVICE const S* decays_of(const S* a, const scan_sizes& size, long long row) {
    return a + row_of(size, A_BITS, row) * (size.step_a ? size.l : 1) * size.n;
}

DEVICE bool begins_at(const unsigned char* resets, const scan_sizes& size, long long row,
                                 long long k) {
    return (size.at_rest && k == 0) || (resets && resets[row * size.l + k]);
}

// A step outside: it changes nothing.
template <class E, int VECTOR, int ITEMS>
DEVICE void idle(steps_of<E, VECTOR, ITEMS>& s, int i) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) s.a[i][v] = one<E>(), s.b[i][v] = zero<E>();
}

// Steps q, q + 1, … of a piece, forwards: x_k = a_k x_{k-1} + b_k with k = first + q.
template <class S, int VECTOR, int LANES, int ITEMS> struct forwards {
    using E = accumulate_of<S>;
    scan_sizes size;
    place<VECTOR, LANES> at;
    const S *a, *b;  // of this row
    const unsigned char* resets;
    long long reset_row;

    DEVICE forwards(const S* a, const S* b, const unsigned char* resets, const scan_sizes& size)
        : size(size), at(size), a(decays_of(a, size, at.row)),
          b(b + row_of(size, B_BITS, at.row) * size.l * size.n), resets(resets),
          reset_row(row_of(size, RESET_BITS, at.row)) {}

    DEVICE void load(long long q, steps_of<E, VECTOR, ITEMS>& s) const {
        s.begins = 0;
        vector_of<S, VECTOR> raw_a[ITEMS], raw_b[ITEMS];  // all loads before the first use
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.first + q + i;
            if (!at.inside || k >= at.end) continue;
            raw_a[i] = loaded<VECTOR>(a + k * size.step_a + at.column);
            raw_b[i] = loaded<VECTOR>(b + k * size.n + at.column);
            s.begins |= unsigned(begins_at(resets, size, reset_row, k)) << i;
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            idle(s, i);
            if (!at.inside || at.first + q + i >= at.end) continue;
            widen_all(raw_a[i], s.a[i]);
            widen_all(raw_b[i], s.b[i]);
        }
    }
};

// The same in reverse time: g_k = conj(a_{k+1}) g_{k+1} + dx_k with k = end - 1 - q. The state that
// comes in at the last step of all is the cotangent of the last state, with the coefficient 1.
template <class S, int VECTOR, int LANES, int ITEMS> struct backwards {
    using E = accumulate_of<S>;
    scan_sizes size;
    place<VECTOR, LANES> at;
    const S *a, *dx;  // of this row
    const unsigned char* resets;
    long long reset_row;

    DEVICE backwards(const S* a, const S* dx, const unsigned char* resets, const scan_sizes& size)
        : size(size), at(size), a(decays_of(a, size, at.row)), dx(dx + at.row * size.l * size.n),
          resets(resets), reset_row(row_of(size, RESET_BITS, at.row)) {}

    DEVICE void load(long long q, steps_of<E, VECTOR, ITEMS>& s) const {
        s.begins = 0;
        vector_of<S, VECTOR> raw_a[ITEMS], raw_dx[ITEMS];  // all loads before the first use
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.end - 1 - q - i;
            if (!at.inside || k < at.first) continue;
            raw_dx[i] = loaded<VECTOR>(dx + k * size.n + at.column);
            if (k + 1 == size.l) continue;
            raw_a[i] = loaded<VECTOR>(a + (k + 1) * size.step_a + at.column);
            s.begins |= unsigned(begins_at(resets, size, reset_row, k + 1)) << i;
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.end - 1 - q - i;
            idle(s, i);
            if (!at.inside || k < at.first) continue;
            widen_all(raw_dx[i], s.b[i]);
            if (k + 1 == size.l) continue;
            widen_all(raw_a[i], s.a[i]);
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) s.a[i][v] = conj(s.a[i][v]);
        }
    }
};

template <class E, int VECTOR, int ITEMS>
DEVICE affine<E, VECTOR> composed(const steps_of<E, VECTOR, ITEMS>& s) {
    affine<E, VECTOR> own = s.step(0);
#pragma unroll
    for (int i = 1; i < ITEMS; ++i) own = then(own, s.step(i));
    return own;
}

// Walk through `count` steps from `state`; `sink` gets the state after each step, ITEMS at a time.
template <int LANES, int ITEMS, class E, int VECTOR, class Steps, class Sink>
DEVICE void walk(const Steps& steps, Sink& sink, E (&state)[VECTOR], long long count) {
    using map = affine<E, VECTOR>;
    SHARED(map, totals, 2 * WARPS * LANES);
    constexpr int SEGMENTS = BLOCK / LANES;
    int parity = 0;
    for (long long start = 0; start < count; start += SEGMENTS * ITEMS, parity ^= 1) {
        const long long q = start + (threadIdx.x / LANES) * ITEMS;
        steps_of<E, VECTOR, ITEMS> s;
        steps.load(q, s);
        sink.prefetch(q);
        const chunk_scan<E, VECTOR, LANES> scan(composed(s), totals, parity);
        E mine[VECTOR];
        scan.advance(state, mine);
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            apply(s.step(i), mine);
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) s.b[i][v] = mine[v];
        }
        sink.take(q, s.b);
    }
}

// States before the pieces (rows, pieces, n), in the type of the computation; null: zeros.
template <class E, int VECTOR, int LANES>
DEVICE void start(const E* states, long long row, const place<VECTOR, LANES>& at,
                             long long n, E (&state)[VECTOR]) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) state[v] = zero<E>();
    if (states && at.inside)
        fetch(states + (row * gridDim.y + blockIdx.y) * n + at.column, state);
}

template <class S, int VECTOR, int LANES, int ITEMS> struct states_out {
    using E = accumulate_of<S>;
    S* x;
    scan_sizes size;
    place<VECTOR, LANES> at;
    DEVICE void prefetch(long long) const {}
    DEVICE void take(long long q, const E (&states)[ITEMS][VECTOR]) const {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.first + q + i;
            if (at.inside && k < at.end)
                store(x + (at.row * size.l + k) * size.n + at.column, states[i]);
        }
    }
};

// g, and da_k = conj(x_{k-1}) g_k, which is zero where a sequence begins; dx0 = conj(a_0) g_0.
template <class S, int VECTOR, int LANES, int ITEMS> struct gradients_out {
    using E = accumulate_of<S>;
    const S *a, *x;
    const E* x0;
    S *da, *g;
    E* dx0;
    const unsigned char* resets;
    long long reset_row, x0_row;
    scan_sizes size;
    place<VECTOR, LANES> at;
    E before[ITEMS][VECTOR];  // x_{k-1}

    DEVICE void prefetch(long long q) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.end - 1 - q - i;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) before[i][v] = zero<E>();
            if (!at.inside || k < at.first) continue;
            if (k > 0)
                fetch(x + (at.row * size.l + k - 1) * size.n + at.column, before[i]);
            else if (x0)
                fetch(x0 + x0_row * size.n + at.column, before[i]);
        }
    }
    DEVICE void take(long long q, const E (&states)[ITEMS][VECTOR]) const {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const long long k = at.end - 1 - q - i;
            if (!at.inside || k < at.first) continue;
            const long long here = (at.row * size.l + k) * size.n + at.column;
            const bool begins = begins_at(resets, size, reset_row, k);
            E product[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                product[v] = begins ? zero<E>() : conj(before[i][v]) * states[i][v];
            store(da + here, product);
            store(g + here, states[i]);
            if (k == 0 && dx0) first_state(states[i], begins);
        }
    }
    DEVICE void first_state(const E (&state)[VECTOR], bool begins) const {
        E a_0[VECTOR], product[VECTOR];
        fetch(a + at.column, a_0);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            product[v] = begins ? zero<E>() : conj(a_0[v]) * state[v];
        store(dx0 + at.row * size.n + at.column, product);
    }
};

template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 3)
    linear_scan(const S* __restrict__ a, const S* __restrict__ b,
                const accumulate_of<S>* __restrict__ starts,
                const unsigned char* __restrict__ resets, S* __restrict__ x, scan_sizes size) {
    const forwards<S, VECTOR, LANES, ITEMS> steps(a, b, resets, size);
    states_out<S, VECTOR, LANES, ITEMS> sink{x, size, steps.at};
    accumulate_of<S> state[VECTOR];
    start(starts, row_of(size, X0_BITS, steps.at.row), steps.at, size.n, state);
    walk<LANES, ITEMS>(steps, sink, state, steps.at.count());
}

// `ends`: the cotangent that comes in after each piece, (rows, pieces, n); null: zeros.
template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 3)
    linear_scan_back(const S* __restrict__ dx, const accumulate_of<S>* __restrict__ ends,
                     const S* __restrict__ a, const S* __restrict__ x,
                     const accumulate_of<S>* __restrict__ x0,
                     const unsigned char* __restrict__ resets, S* __restrict__ da,
                     S* __restrict__ g, accumulate_of<S>* __restrict__ dx0, scan_sizes size) {
    const backwards<S, VECTOR, LANES, ITEMS> steps(a, dx, resets, size);
    const auto& at = steps.at;
    gradients_out<S, VECTOR, LANES, ITEMS> sink{
        steps.a, x, x0, da, g, dx0, resets, steps.reset_row, row_of(size, X0_BITS, at.row), size,
        at, {}};
    accumulate_of<S> state[VECTOR];
    start(ends, at.row, at, size.n, state);
    walk<LANES, ITEMS>(steps, sink, state, at.count());
}

#endif
