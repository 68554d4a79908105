// A kernel that the gate lets pass: a copy, 16 bytes a thread.
#include "../../../refssm_gpu/kernels/common/number.cuh"

template <class E>
__global__ void __launch_bounds__(128)
    copied(const E* __restrict__ a, E* __restrict__ b, long long packs) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i < packs) store16(b + i * PER_16<E>, load16(a + i * PER_16<E>));
}

// Four loads under way, then four stores.
template <class E>
__global__ void __launch_bounds__(128)
    copied_by_four(const E* __restrict__ a, E* __restrict__ b, long long packs) {
    const long long i = blockIdx.x * 512LL + threadIdx.x;
    Pack16<E> held[4];
    if (i + 384 >= packs) return;
#pragma unroll
    for (int k = 0; k < 4; ++k) held[k] = load16(a + (i + 128 * k) * PER_16<E>);
#pragma unroll
    for (int k = 0; k < 4; ++k) store16(b + (i + 128 * k) * PER_16<E>, held[k]);
}

// sin of any size: its branch for large arguments has double precision, and local memory.
template <class E>
__global__ void __launch_bounds__(128) sines(const E* __restrict__ a, E* __restrict__ b) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    b[i] = sin(a[i]);
}
