// Whether any thread of a block says yes: each warp notes its vote, and after a barrier all threads
// read the votes of all warps.
#ifndef REFSSM_VOTES_CUH
#define REFSSM_VOTES_CUH
#include "prelude.cuh"

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

#endif
