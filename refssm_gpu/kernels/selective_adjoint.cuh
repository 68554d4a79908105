// The kernel of the adjoint of selective scans (selective_back.cuh has its idea and its steps):
// chunks from the last, tiles of states within a chunk, sections of steps within a tile.
#include "selective_back.cuh"

// By member: du, ddt and dz (members, l); dA and the cotangent before each piece (members, pieces,
// n); dD and dbias (members, pieces). dB and dC: (blocks of channels, outer, l, n).
template <class S> struct gradients {
    using E = accumulate_of<S>;
    S* du;
    stored_real_of<S>* ddt;
    E *dA, *dB, *dC, *dD;
    stored_real_of<S>* dz;
    real_of<S>* dbias;
    E* dx;
};

template <class S> struct adjoint_inputs {
    using E = accumulate_of<S>;
    const S *dy, *u;
    const stored_real_of<S>* dt;
    const E* A;
    const S *B, *C;
    const E* D;
    const stored_real_of<S>* z;
    const real_of<S>* bias;
    const E *before, *ends;  // states before chunks; cotangents after pieces, null: zeros
    const unsigned char* resets;
};

// What a thread moves: the numbers of the next chunk on their way, and sums over time.
template <class S, bool GATED> struct adjoint_moves {
    using D = adjoint_division<S>;
    using E = typename D::E;
    using R = real_of<S>;
    const adjoint_inputs<S>& in;
    const selective_place<S>& at;
    const adjoint_tiles<S>& tiles;
    moved_times<S, E> u, dy;
    moved_times<S, R> dt, z;
    E dD[D::MOVES];
    R dbias[D::MOVES];

    DEVICE void load(long long t) {
        u.load(in.u, at, U_BITS, t);
        dt.load(in.dt, at, DT_BITS, t);
        dy.load(in.dy, at, DY_BITS, t);
        if constexpr (GATED) z.load(in.z, at, Z_BITS, t);
    }
    // Δ = softplus(dt + bias), ds = dy silu(z), and dy silu'(z).
    DEVICE void put() {
        if constexpr (GATED) {
            moved_times<S, E> by_z;
#pragma unroll
            for (int m = 0; m < D::MOVES; ++m) {
                const R shift = in.bias[at.row(BIAS_BITS, at.member(at.moved_row(m)))];
#pragma unroll
                for (int i = 0; i < D::TIMES; ++i) {
                    dt.v[m][i] = softplus(dt.v[m][i] + shift);
                    const R z_k = z.v[m][i], open = sigmoid(z_k);
                    by_z.v[m][i] = dy.v[m][i] * (open * (1 + z_k * sigmoid(-z_k)));
                    dy.v[m][i] = dy.v[m][i] * (z_k * open);
                }
            }
            by_z.put(tiles.by_z, at);
        }
        dt.put(tiles.steps, at);
        u.put(tiles.u, at);
        dy.put(tiles.ds, at);
    }
    // The gradients of a chunk, from the sums over states.
    DEVICE void finish(const gradients<S>& out, long long t) {
        moved_times<S, E> u_k, ds, by_z, by_u, s, du;
        moved_times<S, R> step, by_dt, dz;
        u_k.get(tiles.u, at), ds.get(tiles.ds, at), by_u.get(tiles.by_u, at);
        step.get(tiles.steps, at), by_dt.get(tiles.by_dt, at);
        if constexpr (GATED) s.get(tiles.s, at), by_z.get(tiles.by_z, at);
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m) {
            E skip = zero<E>();
            if constexpr (GATED) skip = in.D[at.row(D_BITS, at.member(at.moved_row(m)))];
#pragma unroll
            for (int i = 0; i < D::TIMES; ++i) {
                du.v[m][i] = step.v[m][i] * by_u.v[m][i];
                by_dt.v[m][i] += real(conj(u_k.v[m][i]) * by_u.v[m][i]);
                if constexpr (!GATED) continue;
                du.v[m][i] = du.v[m][i] + conj(skip) * ds.v[m][i];
                // σ(v) = 1 − e^{−softplus(v)}
                by_dt.v[m][i] *= -expm1(-step.v[m][i]);
                const E s_k = s.v[m][i] + skip * u_k.v[m][i];
                dz.v[m][i] = real(conj(s_k) * by_z.v[m][i]);
                if (t + at.moved_time() + i >= at.end) continue;
                dD[m] = dD[m] + conj(u_k.v[m][i]) * ds.v[m][i];
                dbias[m] += by_dt.v[m][i];
            }
        }
        du.save(out.du, at, t);
        by_dt.save(out.ddt, at, t);
        if constexpr (GATED) dz.save(out.dz, at, t);
    }
    DEVICE void put_totals(const gradients<S>& out) {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m) {
            E by_D[1] = {dD[m]};
            R by_bias[1] = {dbias[m]};
            const E total_D = summed<1, D::ALONG, 1>(by_D);
            const R total_bias = summed<1, D::ALONG, 1>(by_bias);
            if (at.lane % D::ALONG != 0 || !at.inside(at.moved_row(m))) continue;
            const long long piece = at.member(at.moved_row(m)) * gridDim.y + blockIdx.y;
            out.dD[piece] = total_D;
            out.dbias[piece] = total_bias;
        }
    }
};

// dB and dC of a section from time t: sums over warps, one thread for each number.
template <class S>
DEVICE void put_parts(const gradients<S>& out, const accumulate_of<S>* parts,
                      const selective_place<S>& at, long long t, long long tile) {
    using D = adjoint_division<S>;
    for (int i = threadIdx.x; i < D::PART; i += BLOCK) {
        accumulate_of<S> total = parts[i];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) total = total + parts[w * D::PART + i];
        const long long k = t + i / (2 * D::TILE), state = tile * D::TILE + i % D::TILE;
        if (k >= at.end || state >= at.size.n) continue;
        const long long groups = at.groups(), outers = gridDim.x / groups;
        const long long row = (blockIdx.x % groups * outers + at.outer) * at.size.l + k;
        (i / D::TILE % 2 ? out.dC : out.dB)[row * at.size.n + state] = total;
    }
}

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

// One tile of states of the chunk from time t; x is the state before it.
template <class S, bool GATED, bool BEGINS>
DEVICE void adjoint_section(const section<S, GATED, BEGINS>& part, adjoint_states<S>& own,
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

template <class S, bool GATED>
DEVICE void adjoint_tile(adjoint_states<S>& own, const selective_place<S>& at,
                         const adjoint_tiles<S>& tiles, const gradients<S>& out,
                         const accumulate_of<S>* before, long long t, long long tile,
                         unsigned begins, int& parity) {
    using D = adjoint_division<S>;
    using E = typename D::E;
    const int count = at.steps(t), warp_part = at.warp * D::PART;
    const bool careful = __any_sync(WHOLE_WARP, begins != 0), later = tile > 0;
    const long long state = at.state(tile), left = at.size.n - state;
    E starts[D::SECTIONS][D::STATES];  // states before sections
    const long long chunk = at.member(at.own()) * at.chunks() + t / D::CHUNK;
    fetch_states(before, chunk, state, at.size.n, starts[0]);
#pragma unroll
    for (int s = 1; s < D::SECTIONS; ++s) {
        const section<S, GATED, true> run{at, tiles, 0, count, begins, left, later};
        E a[D::STATES];
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) starts[s][j] = starts[s - 1][j];
        if (s * D::HELD >= count) continue;  // no steps that need it
#pragma unroll
        for (int k = (s - 1) * D::HELD; k < s * D::HELD; ++k)
            run.decays(own.rate, k, a), run.advance(starts[s], a, k);
    }
#pragma unroll
    for (int s = D::SECTIONS - 1; s >= 0; --s) {
        if (s * D::HELD >= count) continue;
        E* parts = tiles.parts + parity * WARPS * D::PART;
        if (careful)
            adjoint_section<S, GATED, true>({at, tiles, s * D::HELD, count, begins, left, later},
                                            own, starts[s], parts + warp_part);
        else
            adjoint_section<S, GATED, false>({at, tiles, s * D::HELD, count, 0, left, later}, own,
                                             starts[s], parts + warp_part);
        __syncthreads();
        put_parts(out, parts, at, t + s * D::HELD, tile);
        parity ^= 1;  // the next section writes elsewhere: one barrier a section
    }
}

template <class S, bool GATED>
DEVICE void run_adjoint(const adjoint_inputs<S>& in, const gradients<S>& out,
                        const selective_sizes& size) {
    using D = adjoint_division<S>;
    using E = typename D::E;
    using R = real_of<S>;
    SHARED(E, B_tile, D::TILE_SIZE);
    SHARED(E, C_tile, D::TILE_SIZE);
    SHARED(E, u, D::TIMES_SIZE);
    SHARED(E, ds, D::TIMES_SIZE);
    SHARED(E, by_u, D::TIMES_SIZE);
    SHARED(E, s, (GATED ? D::TIMES_SIZE : 1));
    SHARED(E, by_z, (GATED ? D::TIMES_SIZE : 1));
    SHARED(R, steps, D::TIMES_SIZE);
    SHARED(R, by_dt, D::TIMES_SIZE);
    SHARED(E, parts, 2 * WARPS * D::PART);
    const selective_place<S> at(size);
    const adjoint_tiles<S> tiles{steps, by_dt, u, ds, by_z, by_u, s, B_tile, C_tile, parts};
    adjoint_moves<S, GATED> moves{in, at, tiles, {}, {}, {}, {}, {}, {}};
    adjoint_states<S> own;
    moved_states<S> B_next, C_next;
    const S* B = in.B + at.row(B_BITS, at.member(0)) * size.l * size.n;
    const S* C = in.C + at.row(C_BITS, at.member(0)) * size.l * size.n;
    const long long last = at.first + (at.end - 1 - at.first) / D::CHUNK * D::CHUNK;
    moves.load(last);
    B_next.load(B, at, last, 0);
    C_next.load(C, at, last, 0);
    int parity = 0;
    for (long long t = last; t >= at.first; t -= D::CHUNK) {
        const unsigned begins = at.begins(in.resets, t);
        moves.put();
        for (long long tile = 0; tile < at.tiles(); ++tile) {
            B_next.put(B_tile);  // nobody reads them after the barrier of the last section
            C_next.put(C_tile);
            __syncthreads();
            const bool more = tile + 1 < at.tiles(), next = t > at.first;
            if (more || next) {
                B_next.load(B, at, more ? t : t - D::CHUNK, more ? tile + 1 : 0);
                C_next.load(C, at, more ? t : t - D::CHUNK, more ? tile + 1 : 0);
            }
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
__global__ void __launch_bounds__(BLOCK)
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
__global__ void __launch_bounds__(BLOCK)
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
