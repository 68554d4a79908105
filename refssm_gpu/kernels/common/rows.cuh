// Where the row of an argument lies that lacks some of the batch's axes.
#ifndef REFSSM_ROWS_CUH
#define REFSSM_ROWS_CUH
#include "prelude.cuh"

// The row of an argument for member r of the batch outer × inner: bit 0 of its two bits says that
// it has the outer axis, bit 1 the inner one.
DEVICE long long row_of(unsigned mask, int argument, long long r, long long inner) {
    const unsigned bits = mask >> 2 * argument & 3u;
    if (bits == 3u) return r;
    return bits == 1u ? r / inner : bits == 2u ? r % inner : 0;
}

DEVICE long long least(long long a, long long b) { return a < b ? a : b; }

#endif
