// HOPE's transfer function, G_j = Σ_i h_i p_j^{i+1}, and its adjoint, in double precision.
//
// p = e^{iφ}, cos φ and sin φ from s/(dt c) or its inverse, whichever is below 1, where c and s are
// cos and sin of πj/l: no square over- or underflows. Only half of the nodes are computed: p at
// node l − j is the conjugate. Real and imaginary part of a complex h are two real sums.
//
//     Σ_i h_i p^{i+1} = p⁸ Σ_a p^{16a} Σ_b h_{16a+7+b} p^b,   b = −7 … 8
//     Σ_b h_b p^b = h_0 + Σ_{b>0} (h_b + h_{−b}) cos bφ + i (h_b − h_{−b}) sin bφ
//
// A thread has NODES nodes and keeps their 17 cosines and sines in registers; the sums and
// differences of a group of 16 parameters are in shared memory, read by all threads at once. So a
// parameter costs 17/16 + 4/16 multiply-adds at half of the nodes, in place of Horner's 4 at all.
// 64 rows, n = 64, l = 16384: 44 million multiply-adds in double precision, 17 MB written.
// A nonuniform FFT would cost less only for many thousands of parameters.
//
// The adjoint, Σ_j d_j p_j*^{i+1}: a thread has nodes, too, and adds up the 17 sums of one or two
// groups in registers; the parts of its row are added by shuffles, those of blocks by the caller.
#ifndef REFSSM_HOPE_TRANSFER_CUH
#define REFSSM_HOPE_TRANSFER_CUH
#include "../common/number.cuh"
#include "../vandermonde/powers.cuh"
#include "../common/rows.cuh"

inline constexpr int THREADS = 128, WARPS = THREADS / 32;
inline constexpr int GROUP = 16, HALF = 8;             // parameters; the middle power of a group
inline constexpr int TERMS = 2 * HALF + 1;             // cosines 0 … 8, then sines 1 … 8
template <class H> constexpr int PARTS = is_complex<H> ? 2 : 1;

struct hope_sizes {
    long long l, n;
    long long nodes, out;   // l/2 + 1, or 0; numbers of a row: l, or `nodes` without the conjugates
    long long pieces, span; // blocks along the nodes, and the nodes of each (adjoint)
    long long inner;
    long long warped;       // i sin θ'/dt Σ_i (i+1) h_i p^{i+1}: the derivative by dt
    unsigned mask;          // two bits for h or d, and for dt: see row_of
};

// p at node j <= l/2, and sin θ'/dt.
DEVICE complex128 all_pass(double dt, long long j, long long l, double& slope) {
    double s, c;
    if (4 * j <= l) {
        sincospi(static_cast<double>(j) / static_cast<double>(l), &s, &c);
    } else {  // so that c keeps its digits near the quarter, where it is 0
        sincospi(static_cast<double>(l - 2 * j) / static_cast<double>(2 * l), &c, &s);
    }
    const double x = dt * c;
    const bool wide = fabs(x) >= fabs(s);
    const double r = wide ? s / x : x / s, even = 1 / (1 + r * r), odd = (1 - r * r) * even;
    slope = 2 * (wide ? r : c) * even / (wide ? dt : s);
    return {wide ? odd : -odd, -2 * r * even};
}

// cos bφ for b = 0 … 8, then sin bφ for b = 1 … 8.
DEVICE void waves_of(complex128 p, double (&waves)[TERMS]) {
    complex128 power[HALF + 1];
    power[0] = {1, 0};
    power[1] = p;
#pragma unroll
    for (int b = 2; b <= HALF; ++b) power[b] = power[b / 2] * power[b - b / 2];
#pragma unroll
    for (int b = 0; b <= HALF; ++b) {
        waves[b] = power[b].re;
        if (b > 0) waves[HALF + b] = power[b].im;
    }
}
DEVICE complex128 eighth_of(const double (&waves)[TERMS]) {
    return {waves[HALF], waves[2 * HALF]};
}

// Part 0 or 1 of a number.
DEVICE double part_of(double x, int) { return x; }
DEVICE double part_of(complex128 x, int part) { return part ? x.im : x.re; }

// Sums and differences of the groups from `first` on, [group][part][term].
template <class H>
DEVICE void gather(const H* h, const hope_sizes& size, long long first, int groups, double* sums) {
    for (int i = threadIdx.x; i < groups * PARTS<H> * TERMS; i += THREADS) {
        const int term = i % TERMS, part = i / TERMS % PARTS<H>, b = term - (term > HALF) * HALF;
        const long long middle = (first + i / TERMS / PARTS<H>) * GROUP + HALF - 1;
        const long long up = middle + b, down = middle - b;
        double plus = up < size.n ? part_of(h[up], part) : 0.0;
        double minus = b > 0 && b < HALF && down < size.n ? part_of(h[down], part) : 0.0;
        if (size.warped) {
            plus *= static_cast<double>(up + 1);
            minus *= static_cast<double>(down + 1);
        }
        sums[i] = term > HALF ? plus - minus : plus + minus;
    }
}

template <class H, class O, int NODES>
__global__ void __launch_bounds__(128, 3)
    hope_transfer(const H* __restrict__ h, const double* __restrict__ dt, O* __restrict__ G,
                  hope_sizes size) {
    constexpr int CHUNK = 16;  // groups in shared memory
    SHARED(double, sums, CHUNK * PARTS<H> * TERMS);
    const long long row = blockIdx.x / size.pieces;
    const long long start = blockIdx.x % size.pieces * THREADS * NODES + threadIdx.x;
    h += row_of(size, 0, row) * size.n;
    const double step = dt[row_of(size, 1, row)];
    double waves[NODES][TERMS], slope[NODES];
    complex128 total[NODES][PARTS<H>];
#pragma unroll
    for (int m = 0; m < NODES; ++m) {  // beyond the last node: node 0, not written
        const long long j = start + m * THREADS;
        waves_of(all_pass(step, j < size.nodes ? j : 0, size.l, slope[m]), waves[m]);
#pragma unroll
        for (int part = 0; part < PARTS<H>; ++part) total[m][part] = {0, 0};
    }
    const long long groups = (size.n + GROUP - 1) / GROUP;
    for (long long end = groups; end > 0; end -= CHUNK) {
        const long long first = end > CHUNK ? end - CHUNK : 0;
        __syncthreads();  // nobody reads the last chunk any more
        gather(h, size, first, static_cast<int>(end - first), sums);
        __syncthreads();
        for (int a = static_cast<int>(end - first) - 1; a >= 0; --a) {
#pragma unroll
            for (int part = 0; part < PARTS<H>; ++part) {
                const double* own = sums + (a * PARTS<H> + part) * TERMS;
                double even[NODES] = {}, odd[NODES] = {};
#pragma unroll
                for (int term = 0; term < TERMS; ++term) {
                    const double x = own[term];
#pragma unroll
                    for (int m = 0; m < NODES; ++m)
                        (term > HALF ? odd : even)[m] += x * waves[m][term];
                }
#pragma unroll
                for (int m = 0; m < NODES; ++m) {
                    const complex128 p8 = eighth_of(waves[m]);
                    total[m][part] = total[m][part] * (p8 * p8) + complex128{even[m], odd[m]};
                }
            }
        }
    }
    G += row * size.out;
#pragma unroll
    for (int m = 0; m < NODES; ++m) {
        const long long j = start + m * THREADS;
        if (j >= size.nodes) continue;
        complex128 turn = size.n ? eighth_of(waves[m]) : complex128{1, 0};
        if (size.warped) turn = {-slope[m] * turn.im, slope[m] * turn.re};
        const complex128 x = total[m][0] * turn;
        complex128 y = {0, 0};
        if constexpr (is_complex<H>) y = total[m][1] * turn;
        G[j] = rounded_to<O>(complex128{x.re - y.im, x.im + y.re});
        const long long mirrored = size.l - j;
        if (mirrored >= size.nodes && mirrored < size.out)
            G[mirrored] = rounded_to<O>(complex128{x.re + y.im, y.re - x.im});
    }
}

// What d_j and d_{l−j} add to Re Σ d p*^{i+1} (part 0) and to its imaginary part (1).
template <class D>
DEVICE complex128 folded(const D* d, long long j, const hope_sizes& size, int part) {
    complex128 own = widest(d[j]), other = {0, 0};
    const long long mirrored = size.l - j;
    if (mirrored >= size.nodes && mirrored < size.l) other = widest(d[mirrored]);
    if (part == 0) return {own.re + other.re, own.im - other.im};
    return {own.im + other.im, other.re - own.re};
}

DEVICE complex128 power_of(complex128 x, long long exponent) {
    complex128 found = {1, 0};
    for (; exponent; exponent >>= 1, x = x * x)
        if (exponent & 1) found = found * x;
    return found;
}

// Sums of two groups of a real gradient, or of one of a complex one.
template <class H, class D>
__global__ void __launch_bounds__(128, 3)
    hope_adjoint(const D* __restrict__ d, const double* __restrict__ dt, H* __restrict__ found,
                 hope_sizes size) {
    constexpr int GROUPS = 2 / PARTS<H>, PARAMETERS = GROUPS * GROUP;
    SHARED(double, sums, WARPS * 2 * TERMS);
    const long long slices = (size.n + PARAMETERS - 1) / PARAMETERS;
    const long long piece = blockIdx.x / slices, row = piece / size.pieces;
    const long long first = blockIdx.x % slices * GROUPS;
    const long long begin = piece % size.pieces * size.span;
    const long long end = least(begin + size.span, size.nodes);
    d += row_of(size, 0, row) * size.l;
    const double step = dt[row_of(size, 1, row)];
    double total[2][TERMS] = {};
    for (long long j = begin + threadIdx.x; j < end; j += THREADS) {
        double waves[TERMS], slope;
        waves_of(all_pass(step, j, size.l, slope), waves);
        const complex128 p8 = conj(eighth_of(waves)), p16 = p8 * p8;
        complex128 turn = power_of(p16, first) * p8;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const complex128 u = folded(d, j, size, is_complex<H> ? i : 0) * turn;
#pragma unroll
            for (int term = 0; term < TERMS; ++term)
                total[i][term] += (term > HALF ? u.im : u.re) * waves[term];
            if (!is_complex<H>) turn = turn * p16;
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * TERMS; ++i) {
        double sum = total[i / TERMS][i % TERMS];
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sum += shuffle_xor(WHOLE_WARP, sum, distance);
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32 * 2 * TERMS + i] = sum;
    }
    __syncthreads();
    const int i = threadIdx.x, b = i % GROUP - (HALF - 1);
    const long long at = first * GROUP + i;
    if (i >= PARAMETERS || at >= size.n) return;
    double parts[2] = {0, 0};
#pragma unroll
    for (int part = 0; part < PARTS<H>; ++part)
        for (int warp = 0; warp < WARPS; ++warp) {
            const double* own = sums + (warp * 2 + (is_complex<H> ? part : i / GROUP)) * TERMS;
            parts[part] += own[b < 0 ? -b : b];
            if (b != 0) parts[part] += b > 0 ? own[HALF + b] : -own[HALF - b];
        }
    if constexpr (is_complex<H>) found[piece * size.n + at] = {parts[0], parts[1]};
    else found[piece * size.n + at] = parts[0];
}

#endif
