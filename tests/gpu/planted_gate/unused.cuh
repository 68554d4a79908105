// A variable that nothing uses: a forgotten piece of work, or a guard that was lost.
#include "../../../refssm_gpu/kernels/common/number.cuh"

template <class E>
__global__ void __launch_bounds__(128) forgetful(const E* __restrict__ a, E* __restrict__ b) {
    int last;
    b[threadIdx.x] = a[threadIdx.x];
}
