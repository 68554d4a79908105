// Kernels that the host build runs without a word, and a card should not get.
#include "../../../refssm_gpu/kernels/common/number.cuh"

// More values than fit: two blocks of 1024 threads leave 32 registers for each.
template <class E>
__global__ void __launch_bounds__(1024, 2) spilling(const E* __restrict__ a, E* __restrict__ b) {
    E v[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = a[i * 1024 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[i * 7 % 64] + v[(i + 1) % 64];
#pragma unroll
    for (int i = 0; i < 64; ++i) b[i * 1024 + threadIdx.x] = v[i];
}

// An index that only the launch knows: the array cannot be in registers.
template <class E>
__global__ void __launch_bounds__(128)
    indexed(const E* __restrict__ a, E* __restrict__ b, int which) {
    E v[64];
    for (int i = 0; i < 64; ++i) v[i] = a[i * 128 + threadIdx.x] * b[i];
    for (int i = 1; i < 64; ++i) v[(i * which) & 63] = v[i - 1] * v[(which + i) & 63];
    b[threadIdx.x] = v[which & 63];
}

template <class E>
__global__ void __launch_bounds__(128) doubling(const E* __restrict__ a, E* __restrict__ b) {
    b[threadIdx.x] = a[threadIdx.x] * 0.1;
}

template <class E>
__global__ void __launch_bounds__(128) approximate(const E* __restrict__ a, E* __restrict__ b) {
    b[threadIdx.x] = __fdividef(1, a[threadIdx.x]);
}

template <class E>
__global__ void __launch_bounds__(128) greedy(const E* __restrict__ a, E* __restrict__ b) {
    E v[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) v[i] = a[i * 128 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; ++i) b[i * 128 + threadIdx.x] = v[47 - i] + v[i] * v[i * 5 % 48];
}

template <class E>
__global__ void __launch_bounds__(128) sharing(const E* __restrict__ a, E* __restrict__ b) {
    SHARED(E, tile, 65536 / sizeof(E));
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = tile[threadIdx.x ^ 1];
}

template <class E> __global__ void unbound(const E* __restrict__ a, E* __restrict__ b) {
    b[threadIdx.x] = a[threadIdx.x];
}
