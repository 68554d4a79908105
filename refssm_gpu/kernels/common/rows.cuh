// Where the row of an argument lies that lacks some of the batch's axes.
#ifndef REFSSM_ROWS_CUH
#define REFSSM_ROWS_CUH
#include "prelude.cuh"

// The row of an argument for member r of the batch outer × inner. Bit 0 of its two bits in
// `size.mask` says that it has the outer axis, bit 1 the inner one.
template <class Sizes> DEVICE long long row_of(const Sizes& size, int argument, long long r) {
    const unsigned bits = size.mask >> 2 * argument & 3u;
    if (bits == 3u) return r;
    return bits == 1u ? r / size.inner : bits == 2u ? r % size.inner : 0;
}

#endif
