// The adjoint of a selective scan: g_k = C_k* dy_k + a_{k+1}* g_{k+1} with a = e^{Δ A}, and all
// gradients from it, in one pass from the last chunk of time to the first.
//
// Nothing of size (channels, l, n) is stored. The states before each chunk come from a pass of
// `selective_states`; a lane runs through the chunk once to have the states before every HELD
// steps, then, HELD steps at a time from the last, again with states and decays kept in registers,
// and walks back. du, dΔ and C·x are sums over states: shuffles. dB and dC are sums over channels:
// shuffles within a warp, shared memory over warps, and partial sums (blocks of channels, …, l, n)
// that the launcher adds: no atomics, the same result in every run.
//
// What bounds it, as a model for 16 × 512 channels, l = 2048, n = 16, float32 on an H100: a warp
// issues about 900 instructions for 8 steps of its 128 states, a quarter of them for the sums over
// lanes: 260 µs. The 1.75 exponentials per state and step would need 130 µs, memory 160 µs (u, dt
// and dy read, du and ddt written, states read, dB and dC in parts; each about 67 MB). The pass for
// the states before adds 75 µs.
#include "selective.cuh"

template <class S> struct adjoint_division : division<S> {
    using D = division<S>;
    static constexpr int HELD = D::WORDS == 4 ? 4 : 8;  // steps kept in registers
    static constexpr int SECTIONS = D::CHUNK / HELD;
    static constexpr bool AHEAD = D::WORDS < 4;  // registers for B and C of the next tile
    static constexpr int PART = HELD * 2 * D::TILE;  // what a warp adds to dB and dC
    static constexpr int TILE_SIZE = D::CHUNK * D::TILE, TIMES_SIZE = D::CHANNELS * D::ROW;
};

// Tiles in shared memory. By channel and time: Δ, u, ds and dy silu'(z); and sums over states:
// B*·g, A*·e, C·x.
template <class S> struct adjoint_tiles {
    using E = accumulate_of<S>;
    using R = real_of<S>;
    R *steps, *by_dt;
    E *u, *ds, *by_z, *by_u, *s;
    E *B, *C;   // of this tile of states
    E* parts;   // of dB and dC, by warp
};

template <class S, bool GATED, bool CAREFUL> struct section {
    using D = adjoint_division<S>;
    using E = typename D::E;
    using R = real_of<S>;
    const selective_place<S>& at;
    const adjoint_tiles<S>& in;
    int first, count;  // of the chunk's steps: this section begins at `first`, ends before `count`
    unsigned begins;
    long long left;  // states from the thread's first one on
    bool later;      // a tile before this one has written the sums

    DEVICE int row() const { return at.own() * D::ROW; }
    DEVICE bool begins_at(int k) const { return CAREFUL && begins >> k & 1; }
    DEVICE void advance(E (&x)[D::STATES], const E (&a)[D::STATES], int k) const {
        E B[D::STATES];
        fetch(in.B + k * D::TILE + at.group * D::STATES, B);
        const E drive = in.steps[row() + k] * in.u[row() + k];
#pragma unroll
        for (int j = 0; j < D::STATES; ++j)
            x[j] = begins_at(k) ? drive * B[j] : a[j] * x[j] + drive * B[j];
    }
    DEVICE void decays(const E (&rate)[D::STATES], int k, E (&a)[D::STATES]) const {
        const R step = in.steps[row() + k];
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) a[j] = decay(step, rate[j]);
    }
    // Add the lanes' sums of BATCH steps over states; the tile's rows get them.
    template <class T> DEVICE void put_sums(T (&v)[BATCH], T* rows, int k) const {
        constexpr int ALIKE = D::GROUPS / BATCH;
        const T total = summed<BATCH, D::GROUPS, 1>(v);
        T* place = rows + row() + k + at.group / ALIKE;
        if (at.group % ALIKE == 0) *place = later ? *place + total : total;
    }

    // Forwards: x[i] is the state before step first + i, a[i] its decay; C·x is added up.
    DEVICE void replay(const E (&rate)[D::STATES], E (&x)[D::HELD + 1][D::STATES],
                       E (&a)[D::HELD][D::STATES]) const {
#pragma unroll
        for (int base = 0; base < D::HELD; base += BATCH) {
            E sum[BATCH];
#pragma unroll
            for (int i = base; i < base + BATCH; ++i) {
                sum[i - base] = zero<E>();
#pragma unroll
                for (int j = 0; j < D::STATES; ++j) x[i + 1][j] = x[i][j], a[i][j] = one<E>();
                if (CAREFUL && first + i >= count) continue;
                decays(rate, first + i, a[i]);
                advance(x[i + 1], a[i], first + i);
                if constexpr (!GATED) continue;
                E C[D::STATES];
                fetch(in.C + (first + i) * D::TILE + at.group * D::STATES, C);
#pragma unroll
                for (int j = 0; j < D::STATES; ++j)
                    if (!CAREFUL || j < left) sum[i - base] = sum[i - base] + C[j] * x[i + 1][j];
            }
            if constexpr (GATED) put_sums(sum, in.s, first + base);
        }
    }

    // Back again: g comes from the step after and goes to the one before, already times a*.
    DEVICE void back(const E (&A)[D::STATES], const E (&x)[D::HELD + 1][D::STATES],
                     const E (&a)[D::HELD][D::STATES], E (&g)[D::STATES], E (&dA)[D::STATES],
                     E* part) const {
#pragma unroll
        for (int base = D::HELD - BATCH; base >= 0; base -= BATCH) {
            E by_u[BATCH];
            R by_dt[BATCH];
#pragma unroll
            for (int i = base + BATCH - 1; i >= base; --i) {
                by_u[i - base] = zero<E>(), by_dt[i - base] = 0;
                if (CAREFUL && first + i >= count) continue;
                E dBC[2 * D::STATES];
                one_step(A, x[i], x[i + 1], a[i], g, dA, first + i, by_u[i - base],
                         by_dt[i - base], dBC);
                put_part(dBC, part + i * 2 * D::TILE);
            }
            put_sums(by_u, in.by_u, first + base);
            put_sums(by_dt, in.by_dt, first + base);
        }
    }
    DEVICE void one_step(const E (&A)[D::STATES], const E (&before)[D::STATES],
                         const E (&after)[D::STATES], const E (&a)[D::STATES], E (&g)[D::STATES],
                         E (&dA)[D::STATES], int k, E& by_u, R& by_dt,
                         E (&dBC)[2 * D::STATES]) const {
        E B[D::STATES], C[D::STATES];
        fetch(in.B + k * D::TILE + at.group * D::STATES, B);
        fetch(in.C + k * D::TILE + at.group * D::STATES, C);
        const R step = in.steps[row() + k];
        const E drive = conj(step * in.u[row() + k]), ds = in.ds[row() + k];
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) {
            const E g_k = g[j] + conj(C[j]) * ds;
            g[j] = begins_at(k) ? zero<E>() : conj(a[j]) * g_k;
            const E e = begins_at(k) ? zero<E>() : conj(before[j]) * g[j];  // 0·NaN is NaN
            if (!CAREFUL || j < left) by_u = by_u + conj(B[j]) * g_k, by_dt += real(conj(A[j]) * e);
            dA[j] = dA[j] + step * e;
            dBC[j] = drive * g_k;
            dBC[D::STATES + j] = conj(after[j]) * ds;
        }
    }
    // Sums over the warp's channels; one lane for each of 2 × TILE numbers.
    DEVICE void put_part(E (&dBC)[2 * D::STATES], E* part) const {
        static_assert(2 * D::STATES == D::PER_WARP, "one sum for each lane");
        if (CAREFUL && !at.inside(at.own())) {  // computes the last channel once more
#pragma unroll
            for (int j = 0; j < 2 * D::STATES; ++j) dBC[j] = zero<E>();
        }
        const E total = summed<2 * D::STATES, D::PER_WARP, D::GROUPS>(dBC);
        const int number = at.lane / D::GROUPS;  // dB of states first, then dC
        part[number / D::STATES * D::TILE + at.group * D::STATES + number % D::STATES] = total;
    }
};
