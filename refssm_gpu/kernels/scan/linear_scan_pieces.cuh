// Each piece of time of a scan as one affine map: what a scan needs where rows are too few.
// A piece is read here once more than the scan itself reads it.
#include "linear_scan.cuh"

// The map of `count` steps; every thread of a column returns it.
template <int LANES, class E, int VECTOR, int ITEMS, class Steps>
DEVICE affine<E, VECTOR> composed_piece(const Steps& steps, long long count) {
    using map = affine<E, VECTOR>;
    SHARED(map, totals, 2 * WARPS * LANES);
    map whole = identity<E, VECTOR>();
    int parity = 0;
    for (long long first = 0; first < count; first += BLOCK / LANES * ITEMS, parity ^= 1) {
        steps_of<E, VECTOR, ITEMS> s;
        steps.load(first + (threadIdx.x / LANES) * ITEMS, s);
        const chunk_scan<E, VECTOR, LANES> scan(composed(s), totals, parity);
#pragma unroll
        for (int w = 0; w < WARPS; ++w) whole = then(whole, scan.totals[w * LANES]);
    }
    return whole;
}

// One thread of each column writes (rows, pieces, n) and whether a sequence begins: (rows, pieces).
template <class E, int VECTOR, int LANES>
DEVICE void put(const affine<E, VECTOR>& f, const place<VECTOR, LANES>& at, long long n,
                           E* a, E* b, unsigned char* begins) {
    if (threadIdx.x >= LANES || !at.inside) return;
    const long long piece = at.row * gridDim.y + blockIdx.y;
    store(a + piece * n + at.column, f.a);
    store(b + piece * n + at.column, f.b);
    if (at.column == 0) begins[piece] = f.begins != 0;
}

template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 4)
    linear_scan_totals(const S* __restrict__ a, const S* __restrict__ b,
                       const unsigned char* __restrict__ resets, accumulate_of<S>* total_a,
                       accumulate_of<S>* total_b, unsigned char* begins, scan_sizes size) {
    using E = accumulate_of<S>;
    const place<VECTOR, LANES> at(size);
    const auto row = [&](int argument) { return row_of(size.mask, argument, at.row, size.inner); };
    const long long times = size.step_a ? size.l : 1;
    const forwards<S, E, VECTOR, LANES, ITEMS> steps{
        a + row(A_BITS) * times * size.n, b + row(B_BITS) * size.l * size.n, resets,
        row(RESET_BITS), size, at};
    put(composed_piece<LANES, E, VECTOR, ITEMS>(steps, at.count()), at, size.n, total_a, total_b,
        begins);
}

template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 4)
    linear_scan_back_totals(const S* __restrict__ dx, const S* __restrict__ a,
                            const unsigned char* __restrict__ resets, accumulate_of<S>* total_a,
                            accumulate_of<S>* total_b, unsigned char* begins, scan_sizes size) {
    using E = accumulate_of<S>;
    const place<VECTOR, LANES> at(size);
    const auto row = [&](int argument) { return row_of(size.mask, argument, at.row, size.inner); };
    const S* own = a + row(A_BITS) * (size.step_a ? size.l : 1) * size.n;
    const backwards<S, E, VECTOR, LANES, ITEMS> steps{
        own, dx + at.row * size.l * size.n, resets, row(RESET_BITS), size, at};
    put(composed_piece<LANES, E, VECTOR, ITEMS>(steps, at.count()), at, size.n, total_a, total_b,
        begins);
}
