// Around the adjoint of a selective scan: what a thread moves between memory and the tiles,
// softplus, skip and gate with their gradients, and the sums over time and channels.
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
