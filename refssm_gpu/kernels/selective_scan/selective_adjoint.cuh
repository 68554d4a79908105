// The kernel of the adjoint of selective scans (selective_back.cuh has its idea and its steps):
// chunks from the last, tiles of states within a chunk, sections of steps within a tile.
#include "selective_sums.cuh"

// A lane's states and their cotangents.
template <class S> struct adjoint_states {
    using D = adjoint_division<S>;
    using E = typename D::E;
    E A[D::STATES], rate[D::STATES], g[D::STATES], dA[D::STATES];

    DEVICE void open(const adjoint_inputs<S>& in, const gradients<S>& out,
                     const selective_place<S>& at, long long state, bool starts) {
        const long long own = at.member(at.own()), piece = own * gridDim.y + blockIdx.y;
        const long long n = at.size.n;
        if (!starts && at.tiles() == 1) return;  // still in registers
        fetch_states(in.A, at.row(A_BITS, own), state, n, A);
#pragma unroll
        for (int j = 0; j < D::STATES; ++j)
            rate[j] = rate_of(A[j]), g[j] = zero<E>(), dA[j] = zero<E>();
        if (!at.inside(at.own())) return;
        if (starts && in.ends) fetch_states(in.ends, piece, state, n, g);
        if (starts) return;
        fetch_states(out.dx, piece, state, n, g);
        fetch_states(out.dA, piece, state, n, dA);
    }
    DEVICE void close(const gradients<S>& out, const selective_place<S>& at, long long state,
                      bool ends) const {
        if ((!ends && at.tiles() == 1) || !at.inside(at.own())) return;
        const long long piece = at.member(at.own()) * gridDim.y + blockIdx.y;
        store_states(out.dx, piece, state, at.size.n, g);
        store_states(out.dA, piece, state, at.size.n, dA);
    }
};

// The states before all sections but the first, which starts[0] has.
template <class S, bool GATED>
DEVICE void states_before(const section<S, GATED, true>& run,
                          const accumulate_of<S> (&rate)[division<S>::STATES],
                          accumulate_of<S> (&starts)[adjoint_division<S>::SECTIONS]
                                                    [division<S>::STATES]) {
    using D = adjoint_division<S>;
    accumulate_of<S> x[D::STATES], a[D::STATES];
#pragma unroll
    for (int j = 0; j < D::STATES; ++j) x[j] = starts[0][j];
#pragma unroll 1
    for (int s = 1; s < D::SECTIONS && s * D::HELD < run.count; ++s) {
#pragma unroll 2
        for (int k = (s - 1) * D::HELD; k < s * D::HELD; ++k)
            run.decays(rate, k, a), run.advance(x, a, k);
#pragma unroll
        for (int q = 1; q < D::SECTIONS; ++q)  // registers have no index
#pragma unroll
            for (int j = 0; j < D::STATES; ++j) starts[q][j] = q == s ? x[j] : starts[q][j];
    }
}

// Steps first … of one section, forwards and back; `start` is the state before it.
template <class S, bool GATED, bool CAREFUL>
DEVICE void adjoint_section(const section<S, GATED, CAREFUL>& part, adjoint_states<S>& own,
                            const accumulate_of<S> (&start)[division<S>::STATES],
                            accumulate_of<S>* sums) {
    using D = adjoint_division<S>;
    using E = typename D::E;
    E x[D::HELD + 1][D::STATES], a[D::HELD][D::STATES];
#pragma unroll
    for (int j = 0; j < D::STATES; ++j) x[0][j] = start[j];
    part.replay(own.rate, x, a);
    part.back(own.A, x, a, own.g, own.dA, sums);
}

// One tile of states of the chunk from time t: its sections, the last first.
template <class S, bool GATED>
DEVICE void adjoint_tile(adjoint_states<S>& own, const selective_place<S>& at,
                         const adjoint_tiles<S>& tiles, const gradients<S>& out,
                         const accumulate_of<S>* before, long long t, long long tile,
                         unsigned begins, int& parity) {
    using D = adjoint_division<S>;
    using E = typename D::E;
    const int count = at.steps(t), warp_part = at.warp * D::PART;
    const bool careful = at.careful(begins, t, tile), later = tile > 0;
    const long long state = at.state(tile), left = at.size.n - state;
    E starts[D::SECTIONS][D::STATES] = {};  // states before sections
    const long long chunk = at.member(at.own()) * at.chunks() + t / D::CHUNK;
    fetch_states(before, chunk, state, at.size.n, starts[0]);
    states_before<S, GATED>({at, tiles, 0, count, begins, left, later}, own.rate, starts);
#pragma unroll 1
    for (int s = D::SECTIONS - 1; s >= 0; --s) {
        if (s * D::HELD >= count) continue;
        E* parts = tiles.parts + parity * WARPS * D::PART;
        E start[D::STATES];
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) start[j] = starts[0][j];
#pragma unroll
        for (int q = 1; q < D::SECTIONS; ++q)  // registers have no index
#pragma unroll
            for (int j = 0; j < D::STATES; ++j) start[j] = q == s ? starts[q][j] : start[j];
        if (careful)
            adjoint_section<S, GATED, true>({at, tiles, s * D::HELD, count, begins, left, later},
                                            own, start, parts + warp_part);
        else
            adjoint_section<S, GATED, false>({at, tiles, s * D::HELD, count, 0, left, later}, own,
                                             start, parts + warp_part);
        __syncthreads();
        put_parts(out, parts, at, t + s * D::HELD, tile);
        parity ^= 1;  // the next section writes elsewhere: one barrier a section
    }
}

template <class S, bool GATED> DEVICE adjoint_tiles<S> adjoint_room() {
    using D = adjoint_division<S>;
    using E = typename D::E;
    using R = real_of<S>;
    SHARED(E, B, D::TILE_SIZE);
    SHARED(E, C, D::TILE_SIZE);
    SHARED(E, u, D::TIMES_SIZE);
    SHARED(E, ds, D::TIMES_SIZE);
    SHARED(E, by_u, D::TIMES_SIZE);
    SHARED(E, s, (GATED ? D::TIMES_SIZE : 1));
    SHARED(E, by_z, (GATED ? D::TIMES_SIZE : 1));
    SHARED(R, steps, D::TIMES_SIZE);
    SHARED(R, by_dt, D::TIMES_SIZE);
    SHARED(E, parts, 2 * WARPS * D::PART);
    return {steps, by_dt, u, ds, by_z, by_u, s, B, C, parts};
}

template <class S, bool GATED>
DEVICE void run_adjoint(const adjoint_inputs<S>& in, const gradients<S>& out,
                        const selective_sizes& size) {
    using D = adjoint_division<S>;
    const selective_place<S> at(size);
    const adjoint_tiles<S> tiles = adjoint_room<S, GATED>();
    adjoint_moves<S, GATED> moves{in, at, tiles, {}, {}, {}, {}, {}, {}};
    adjoint_states<S> own;
    moved_states<S> B_next, C_next;
    const long long core = size.l * size.n;
    const auto load_tile = [&](long long t, long long tile) {
        B_next.load(in.B + at.row(B_BITS, at.member(0)) * core, at, t, tile);
        C_next.load(in.C + at.row(C_BITS, at.member(0)) * core, at, t, tile);
    };
    const long long last = at.first + (at.end - 1 - at.first) / D::CHUNK * D::CHUNK;
    moves.load(last);
    if constexpr (D::AHEAD) load_tile(last, 0);
    int parity = 0;
    for (long long t = last; t >= at.first; t -= D::CHUNK) {
        const unsigned begins = at.begins(in.resets, t);
        moves.put();
        for (long long tile = 0; tile < at.tiles(); ++tile) {
            if constexpr (!D::AHEAD) load_tile(t, tile);
            B_next.put(tiles.B);  // nobody reads them after the barrier of the last section
            C_next.put(tiles.C);
            __syncthreads();
            const bool more = tile + 1 < at.tiles(), next = t > at.first;
            if (D::AHEAD && (more || next))
                load_tile(more ? t : t - D::CHUNK, more ? tile + 1 : 0);
            if (!more && next) moves.load(t - D::CHUNK);
            own.open(in, out, at, at.state(tile), t == last);
            adjoint_tile<S, GATED>(own, at, tiles, out, in.before, t, tile, begins, parity);
            own.close(out, at, at.state(tile), !next);
        }
        __syncwarp();
        moves.finish(out, t);
        __syncwarp();
    }
    if constexpr (GATED) moves.put_totals(out);
}

template <class S>
__global__ void __launch_bounds__(BLOCK, 1)
    selective_back(const S* __restrict__ dy, const S* __restrict__ u,
                   const stored_real_of<S>* __restrict__ dt,
                   const accumulate_of<S>* __restrict__ A, const S* __restrict__ B,
                   const S* __restrict__ C, const accumulate_of<S>* __restrict__ before,
                   const accumulate_of<S>* __restrict__ ends,
                   const unsigned char* __restrict__ resets, S* __restrict__ du,
                   stored_real_of<S>* __restrict__ ddt, accumulate_of<S>* dA,
                   accumulate_of<S>* __restrict__ dB, accumulate_of<S>* __restrict__ dC,
                   accumulate_of<S>* dx, selective_sizes size) {
    run_adjoint<S, false>(
        {dy, u, dt, A, B, C, nullptr, nullptr, nullptr, before, ends, resets},
        {du, ddt, dA, dB, dC, nullptr, nullptr, nullptr, dx}, size);
}

template <class S>
__global__ void __launch_bounds__(BLOCK, 1)
    mamba_back(const S* __restrict__ dy, const S* __restrict__ u,
               const stored_real_of<S>* __restrict__ dt, const accumulate_of<S>* __restrict__ A,
               const S* __restrict__ B, const S* __restrict__ C,
               const accumulate_of<S>* __restrict__ D, const stored_real_of<S>* __restrict__ z,
               const real_of<S>* __restrict__ bias, const accumulate_of<S>* __restrict__ before,
               const accumulate_of<S>* __restrict__ ends,
               const unsigned char* __restrict__ resets, S* __restrict__ du,
               stored_real_of<S>* __restrict__ ddt, accumulate_of<S>* dA,
               accumulate_of<S>* __restrict__ dB, accumulate_of<S>* __restrict__ dC,
               accumulate_of<S>* __restrict__ dD, stored_real_of<S>* __restrict__ dz,
               real_of<S>* __restrict__ dbias, accumulate_of<S>* dx, selective_sizes size) {
    run_adjoint<S, true>({dy, u, dt, A, B, C, D, z, bias, before, ends, resets},
                         {du, ddt, dA, dB, dC, dD, dz, dbias, dx}, size);
}
