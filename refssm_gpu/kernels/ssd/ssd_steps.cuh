// State-space duality step by step: S_t = a_t S_{t-1} + x_t B_tᵀ, y_t = S_t C_t, and its adjoint.
// For one step of decoding, which reads and writes each state once; and for rows whose results by
// chunks are not finite, where the order of operations decides what is NaN, what infinite.
// The state stays in memory, where a row's cache lines are; an entry belongs to one thread.
#include "ssd.cuh"

template <class E> DEVICE E warp_total(E x) {
#pragma unroll
    for (int d = 16; d; d /= 2) x += shuffle_xor(WHOLE_WARP, x, d);
    return x;
}

// A warp for each p of a row, its lanes along n. `marks` tells the rows to compute; null: all.
template <class S>
__global__ void __launch_bounds__(THREADS, 2)
    ssd_steps(const S* __restrict__ x, const S* __restrict__ log_a, const S* __restrict__ B,
              const S* __restrict__ C, const accumulate_of<S>* __restrict__ start,
              const unsigned char* __restrict__ resets, const unsigned* __restrict__ marks,
              S* __restrict__ y, accumulate_of<S>* state, ssd_sizes size) {
    using E = accumulate_of<S>;
    const long long groups = (size.p + THREADS / 32 - 1) / (THREADS / 32);
    const long long row = blockIdx.x / groups;
    const long long p = blockIdx.x % groups * (THREADS / 32) + threadIdx.x / 32;
    if (p >= size.p || (marks && !marks[row])) return;
    constexpr int EACH = 4;
    const int lane = threadIdx.x % 32;
    const S* xs = x + row_of(size, OF_X, row) * size.l * size.p + p;
    const S* logs = log_a + row_of(size, OF_LOG_A, row) * size.l;
    const S* Bs = B + row_of(size, OF_B, row) * size.l * size.n;
    const S* Cs = C + row_of(size, OF_C, row) * size.l * size.n;
    E* now = state + (row * size.p + p) * size.n;
    const E* first = start ? start + (row_of(size, OF_S0, row) * size.p + p) * size.n : nullptr;
    if (size.l == 0)
        for (long long n = lane; n < size.n; n += 32) now[n] = first ? first[n] : zero<E>();
    for (long long t = 0; t < size.l; ++t) {
        const bool begins = begins_at(resets, size, row, t);
        const E a = exp(widen(logs[t])), x_t = widen(xs[t * size.p]);
        const E* before = t ? now : first;
        E total = zero<E>();
        for (long long n0 = lane; n0 < size.n; n0 += 32 * EACH) {
            E s[EACH];  // all loads are under way before the first store
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                s[e] = zero<E>();
                if (before && n0 + 32 * e < size.n) s[e] = before[n0 + 32 * e];
            }
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const long long n = n0 + 32 * e;
                if (n >= size.n) break;
                const E added = x_t * widen(Bs[t * size.n + n]);
                s[e] = begins ? added : a * s[e] + added;
                now[n] = s[e];
                total += s[e] * widen(Cs[t * size.n + n]);
            }
        }
        total = warp_total(total);
        if (lane == 0) y[(row * size.l + t) * size.p + p] = narrow<S>(total);
    }
}

// One row of the adjoint: what its threads read and write. Step t of a chunk has the place t % Q.
template <class S> struct row_back {
    using E = accumulate_of<S>;
    static constexpr int Q = tile<S>::Q;
    const S *dy, *x, *log_a, *B, *C;
    const E* first;  // the state before the first step; null: zeros
    const unsigned char* resets;
    E *starts, *now, *G;  // the states before chunks, the one after a step, its cotangent
    E* a;                 // shared: the decays of a chunk and of the next step
    int* begins;          // shared: whether a sequence begins there
    ssd_sizes size;
    long long row;

    // By all threads, before steps of another chunk.
    DEVICE void load(long long chunk) const {
        __syncthreads();
        for (int i = threadIdx.x; i <= Q; i += THREADS) {
            const long long t = chunk * Q + i;
            if (t >= size.l) continue;
            a[i] = exp(widen(log_a[t]));
            begins[i] = begins_at(resets, size, row, t);
        }
        __syncthreads();
    }
    DEVICE E start(long long chunk, long long e) const {
        if (chunk) return starts[chunk * size.p * size.n + e];
        return first ? first[e] : zero<E>();
    }
    // The state after step t from the one before it.
    DEVICE E step(E s, long long t, long long p, long long n) const {
        const E added = widen(x[t * size.p + p]) * widen(B[t * size.n + n]);
        return begins[t % Q] ? added : a[t % Q] * s + added;
    }
    // The state before step t, from that before its chunk.
    DEVICE E before(long long t, long long p, long long n) const {
        E s = start(t / Q, p * size.n + n);
#pragma unroll 1
        for (long long k = t / Q * Q; k < t; ++k) s = step(s, k, p, n);
        return s;
    }
    // Call f(p, n) for each entry of this thread: a warp for each p, its lanes along n.
    template <class F> DEVICE void each(const F& f) const {
        for (long long p = threadIdx.x / 32; p < size.p; p += THREADS / 32)
            for (long long n = threadIdx.x % 32; n < size.n; n += 32) f(p, n);
    }
    // Keep the states before chunks; G, the cotangent after the last step, from `dlast`.
    DEVICE void begin(const E* dlast) const {
        each([&](long long p, long long n) {
            const long long e = p * size.n + n;
            G[e] = dlast ? dlast[e] : zero<E>();
        });
        for (long long c = 0; c + 1 < size.chunks; ++c) {
            load(c);
            each([&](long long p, long long n) {
                const E s = before((c + 1) * Q - 1, p, n);
                starts[(c + 1) * size.p * size.n + p * size.n + n] =
                    step(s, (c + 1) * Q - 1, p, n);
            });
        }
    }
    // One entry at step t: G_t and S_t are kept; adds to dx_t and dlog_a_t.
    DEVICE void entry(long long t, long long p, long long n, E& dx, E& dlog_a) const {
        const long long e = p * size.n + n;
        const int i = t % Q;
        E g = G[e];
        if (t + 1 < size.l) g = begins[i + 1] ? zero<E>() : conj(a[i + 1]) * g;
        g += widen(dy[t * size.p + p]) * conj(widen(C[t * size.n + n]));
        const E s = before(t, p, n);
        dx += g * conj(widen(B[t * size.n + n]));
        if (!begins[i]) dlog_a += conj(a[i] * s) * g;
        now[e] = step(s, t, p, n);
        G[e] = g;
    }
};

// All of step t but dB and dC: a warp for each p, its lanes along n.
template <class S>
DEVICE void state_back(const row_back<S>& r, long long t, S* dx, S* dlog_a,
                       accumulate_of<S>* warps) {
    using E = accumulate_of<S>;
    const int lane = threadIdx.x % 32;
    E by_a = zero<E>();
    for (long long p = threadIdx.x / 32; p < r.size.p; p += THREADS / 32) {
        E total = zero<E>();
        for (long long n = lane; n < r.size.n; n += 32) r.entry(t, p, n, total, by_a);
        total = warp_total(total);
        if (lane == 0) dx[t * r.size.p + p] = narrow<S>(total);
    }
    by_a = warp_total(by_a);
    if (lane == 0) warps[threadIdx.x / 32] = by_a;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; ++w) by_a += warps[w];
        dlog_a[t] = narrow<S>(by_a);
    }
}

// A block for the heads that share B and C: it adds up their dB and dC. Marked: one of them is.
template <class S>
__global__ void __launch_bounds__(THREADS, 2)
    ssd_steps_back(const S* __restrict__ dy, const accumulate_of<S>* __restrict__ dlast,
                   const S* __restrict__ x, const S* __restrict__ log_a, const S* __restrict__ B,
                   const S* __restrict__ C, const accumulate_of<S>* __restrict__ start,
                   const unsigned char* __restrict__ resets, const unsigned* __restrict__ marks,
                   accumulate_of<S>* starts, accumulate_of<S>* now, S* __restrict__ dx,
                   S* __restrict__ dlog_a, accumulate_of<S>* __restrict__ dB,
                   accumulate_of<S>* __restrict__ dC, accumulate_of<S>* dS0, ssd_sizes size) {
    using E = accumulate_of<S>;
    SHARED(E, warps, THREADS / 32);
    SHARED(E, a, tile<S>::Q + 1);
    SHARED(int, begins, tile<S>::Q + 1);
    const long long l = size.l, entries = size.p * size.n, group = blockIdx.x * l;
    bool wanted = !marks;
    for (long long h = 0; marks && h < size.heads; ++h)
        wanted = wanted || marks[blockIdx.x * size.heads + h];
    if (!wanted) return;
    for (long long h = 0; h < size.heads; ++h) {
        const long long row = blockIdx.x * size.heads + h;
        const row_back<S> r{dy + row * l * size.p,
                            x + row_of(size, OF_X, row) * l * size.p,
                            log_a + row_of(size, OF_LOG_A, row) * l,
                            B + row_of(size, OF_B, row) * l * size.n,
                            C + row_of(size, OF_C, row) * l * size.n,
                            start ? start + row_of(size, OF_S0, row) * entries : nullptr,
                            resets, starts + row * size.chunks * entries, now + row * entries,
                            dS0 + row * entries, a, begins, size, row};
        r.begin(dlast ? dlast + row * entries : nullptr);
        for (long long t = l - 1; t >= 0; --t) {
            if (t == l - 1 || t % tile<S>::Q == tile<S>::Q - 1) r.load(t / tile<S>::Q);
            state_back(r, t, dx + row * l * size.p, dlog_a + row * l, warps);
            __syncthreads();
            for (long long n = threadIdx.x; n < size.n; n += THREADS) {
                E by_B = zero<E>(), by_C = zero<E>();
                for (long long p = 0; p < size.p; ++p) {
                    by_B += r.G[p * size.n + n] * conj(widen(r.x[t * size.p + p]));
                    by_C += conj(r.now[p * size.n + n]) * widen(r.dy[t * size.p + p]);
                }
                E& of_B = dB[(group + t) * size.n + n];
                E& of_C = dC[(group + t) * size.n + n];
                of_B = h ? of_B + by_B : by_B;
                of_C = h ? of_C + by_C : by_C;
            }
            __syncthreads();
        }
        if (l) r.each([&](long long p, long long n) {
            E& g = r.G[p * size.n + n];
            g = begins[0] ? zero<E>() : conj(a[0]) * g;
        });
    }
}
