// Each piece of time of a selective scan, or of its adjoint, as one affine map: what is needed
// where channels are too few for the card. e^{A Δ_1} e^{A Δ_2} … = e^{A ΣΔ}, so a piece has as decay
// one exponential. A piece is read here once more than the scan itself reads it, without C and y.
#include "selective_scan.cuh"

// e^{A ΣΔ} of a piece, and whether a sequence begins in it.
template <class S>
DEVICE void put_decays(const accumulate_of<S>* A, accumulate_of<S>* decays,
                       unsigned char* any_begins, real_of<S> whole, unsigned ever,
                       const selective_place<S>& at, bool conjugate = false) {
    using D = division<S>;
    if (!at.inside(at.own())) return;
    const long long own = at.member(at.own()), piece = own * gridDim.y + blockIdx.y;
    for (long long tile = 0; tile < at.tiles(); ++tile) {
        typename D::E a[D::STATES];
        fetch_states(A, at.row(A_BITS, own), at.state(tile), at.size.n, a);
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) {
            a[j] = decay(whole, rate_of(a[j]));
            if (conjugate) a[j] = conj(a[j]);
        }
        store_states(decays, piece, at.state(tile), at.size.n, a);
    }
    if (at.group == 0) any_begins[piece] = ever != 0;
}

// The map of each piece: e^{A ΣΔ}, the state after it from zeros, (rows, pieces, n), and whether a
// sequence begins in it, (rows, pieces).
template <class S>
__global__ void __launch_bounds__(BLOCK, 3)
    selective_totals(const S* __restrict__ u, const stored_real_of<S>* __restrict__ dt,
                     const accumulate_of<S>* __restrict__ A, const S* __restrict__ B,
                     const real_of<S>* __restrict__ bias,
                     const unsigned char* __restrict__ resets, accumulate_of<S>* decays,
                     accumulate_of<S>* after, unsigned char* any_begins, accumulate_of<S>* carry,
                     selective_sizes size) {
    const selective_place<S> at(size);
    real_of<S> whole = 0;
    unsigned ever = 0;
    run_selective<S, TOTALS>({u, dt, A, B, B, nullptr, nullptr, bias, nullptr, resets}, nullptr,
                             nullptr, after, carry, whole, ever, at);
    put_decays(A, decays, any_begins, whole, ever, at);
}

// One chunk of g ← a_k* (g + C_k* ds_k), from its last step; returns the sum of the steps.
template <class S>
DEVICE real_of<S> walk_back(const running<S>& run, accumulate_of<S> (&g)[division<S>::STATES],
                            const selective_place<S>& at, int count, unsigned begins,
                            const real_of<S>* steps, const accumulate_of<S>* ds,
                            const accumulate_of<S>* C) {
    using D = division<S>;
    using E = typename D::E;
    const int own = at.own() * D::ROW;
    real_of<S> whole = 0;
    for (int k = count - 1; k >= 0; --k) {
        E to[D::STATES];
        fetch(C + k * D::TILE + at.group * D::STATES, to);
        const bool first = begins >> k & 1;  // nothing flows back from the first of a sequence
#pragma unroll
        for (int j = 0; j < D::STATES; ++j) {
            const E carried = conj(decay(steps[own + k], run.rate[j])) *
                              (g[j] + conj(to[j]) * ds[own + k]);
            g[j] = first ? zero<E>() : carried;
        }
        whole += steps[own + k];
    }
    return whole;
}

// Δ = softplus(dt + bias) and ds = dy silu(z) of a chunk, into shared memory.
template <class S>
DEVICE void put_cotangents(moved_times<S, real_of<S>>& dt, moved_times<S, accumulate_of<S>>& dy,
                           const moved_times<S, real_of<S>>& z, const real_of<S>* bias,
                           const selective_place<S>& at, real_of<S>* steps,
                           accumulate_of<S>* ds) {
    using D = division<S>;
    if (bias) {
#pragma unroll
        for (int m = 0; m < D::MOVES; ++m) {
            const real_of<S> shift = bias[at.row(BIAS_BITS, at.member(at.moved_row(m)))];
#pragma unroll
            for (int i = 0; i < D::TIMES; ++i) {
                dt.v[m][i] = softplus(dt.v[m][i] + shift);
                dy.v[m][i] = dy.v[m][i] * (z.v[m][i] * sigmoid(z.v[m][i]));
            }
        }
    }
    dt.put(steps, at);
    dy.put(ds, at);
}

// The map of each piece backwards: from the cotangent of the state after it to that of the state
// before it. `after` also keeps g of other tiles of states.
template <class S>
__global__ void __launch_bounds__(BLOCK, 1)
    selective_back_totals(const S* __restrict__ dy, const stored_real_of<S>* __restrict__ dt,
                          const accumulate_of<S>* __restrict__ A, const S* __restrict__ C,
                          const stored_real_of<S>* __restrict__ z,
                          const real_of<S>* __restrict__ bias,
                          const unsigned char* __restrict__ resets, accumulate_of<S>* decays,
                          accumulate_of<S>* after, unsigned char* any_begins,
                          selective_sizes size) {
    using D = division<S>;
    using E = accumulate_of<S>;
    using R = real_of<S>;
    SHARED(E, C_tile, D::CHUNK * D::TILE);
    SHARED(E, ds, D::CHANNELS * D::ROW);
    SHARED(R, steps, D::CHANNELS * D::ROW);
    const selective_place<S> at(size);
    const long long own = at.member(at.own()), piece = own * gridDim.y + blockIdx.y;
    const long long last = at.first + (at.end - 1 - at.first) / D::CHUNK * D::CHUNK;
    const S* C_row = C + at.row(C_BITS, at.member(0)) * size.l * size.n;
    running<S> run;
    E g[D::STATES];
    R whole = 0;
    unsigned ever = 0;
    for (long long t = last; t >= at.first; t -= D::CHUNK) {
        moved_times<S, E> dy_next;
        moved_times<S, R> dt_next, z_next;
        dy_next.load(dy, at, DY_BITS, t);
        dt_next.load(dt, at, DT_BITS, t);
        if (z) z_next.load(z, at, Z_BITS, t);
        const unsigned begins = at.begins(resets, t);
        ever |= begins;
        put_cotangents(dt_next, dy_next, z_next, bias, at, steps, ds);
        for (long long tile = 0; tile < at.tiles(); ++tile) {
            moved_states<S> C_next;
            C_next.load(C_row, at, t, tile);
            C_next.put(C_tile);
            __syncthreads();
            const long long state = at.state(tile);
            const bool kept = at.tiles() > 1 && at.inside(at.own()), begun = t != last;
            if (!begun || kept) {
                run.open(A, at.row(A_BITS, own), begun ? after : nullptr, piece, state, size.n);
#pragma unroll
                for (int j = 0; j < D::STATES; ++j) g[j] = run.x[j];
            }
            const R part = walk_back(run, g, at, at.steps(t), begins, steps, ds, C_tile);
            if (tile == 0) whole += part;
            if (at.inside(at.own()) && (kept || t == at.first))
                store_states(after, piece, state, size.n, g);
            __syncthreads();
        }
    }
    put_decays(A, decays, any_begins, whole, ever, at, true);
}
