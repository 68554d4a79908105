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
template <template <class, int, int, int> class Steps, class S, int VECTOR, int LANES, int ITEMS>
DEVICE void put_map(const Steps<S, VECTOR, LANES, ITEMS>& steps, accumulate_of<S>* a,
                    accumulate_of<S>* b, unsigned char* begins) {
    using E = accumulate_of<S>;
    const auto& at = steps.at;
    const affine<E, VECTOR> f = composed_piece<LANES, E, VECTOR, ITEMS>(steps, at.count());
    if (threadIdx.x >= LANES || !at.inside) return;
    const long long piece = at.row * gridDim.y + blockIdx.y;
    store(a + piece * steps.size.n + at.column, f.a);
    store(b + piece * steps.size.n + at.column, f.b);
    if (at.column == 0) begins[piece] = f.begins != 0;
}

template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 4)
    linear_scan_totals(const S* __restrict__ a, const S* __restrict__ b,
                       const unsigned char* __restrict__ resets, accumulate_of<S>* total_a,
                       accumulate_of<S>* total_b, unsigned char* begins, scan_sizes size) {
    const forwards<S, VECTOR, LANES, ITEMS> steps(a, b, resets, size);
    put_map(steps, total_a, total_b, begins);
}

template <class S, int VECTOR, int LANES, int ITEMS>
__global__ void __launch_bounds__(BLOCK, 4)
    linear_scan_back_totals(const S* __restrict__ dx, const S* __restrict__ a,
                            const unsigned char* __restrict__ resets, accumulate_of<S>* total_a,
                            accumulate_of<S>* total_b, unsigned char* begins, scan_sizes size) {
    const backwards<S, VECTOR, LANES, ITEMS> steps(a, dx, resets, size);
    put_map(steps, total_a, total_b, begins);
}
