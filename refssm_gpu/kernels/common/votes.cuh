// Whether any thread of a block says yes: each warp notes its vote, and after a barrier all threads
// read the votes of all warps.
#ifndef REFSSM_VOTES_CUH
#define REFSSM_VOTES_CUH
#include "number.cuh"

DEVICE void note(bool yes, unsigned* votes) {
    const unsigned vote = __ballot_sync(WHOLE_WARP, yes);
    if (threadIdx.x % 32 == 0) votes[threadIdx.x / 32] = vote;
}
template <int THREADS> DEVICE bool any(const unsigned* votes) {
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; ++i) found |= votes[i];
    return found != 0;
}

// Whether all numbers of a row are zero. `scratch` is shared memory for a word of each warp; a barrier
// must come before it is used for something else.
template <int THREADS, class E> DEVICE bool none(const E* x, long long n, void* scratch) {
    unsigned* votes = static_cast<unsigned*>(scratch);
    bool some = false;
    for (long long i = threadIdx.x; i < n; i += THREADS) some |= !is_zero(x[i]);
    note(some, votes);
    __syncthreads();
    return !any<THREADS>(votes);
}

#endif
