// One small kernel for each thing that the host build must do; used by test_host_*.py.
#include "common/number.cuh"

// Each thread says who it is: (thread, block x, y, z, block size, grid x, y, z).
template <class E> __global__ void who(E* out) {
    long long block = blockIdx.x + gridDim.x * (blockIdx.y + 1ll * gridDim.y * blockIdx.z);
    E* row = out + (block * blockDim.x + threadIdx.x) * 8;
    row[0] = threadIdx.x, row[1] = blockIdx.x, row[2] = blockIdx.y, row[3] = blockIdx.z;
    row[4] = blockDim.x, row[5] = gridDim.x, row[6] = gridDim.y, row[7] = gridDim.z;
}

// KIND 0: from a lane, 1: up, 2: down, 3: exclusive or.
template <class E, int KIND> __global__ void exchange(const E* x, E* out, int n, int width) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if constexpr (KIND == 0) out[i] = shuffle(WHOLE_WARP, x[i], n, width);
    if constexpr (KIND == 1) out[i] = shuffle_up(WHOLE_WARP, x[i], n, width);
    if constexpr (KIND == 2) out[i] = shuffle_down(WHOLE_WARP, x[i], n, width);
    if constexpr (KIND == 3) out[i] = shuffle_xor(WHOLE_WARP, x[i], n, width);
}

template <class E> __global__ void votes(const E* x, E* out) {
    const unsigned yes = __ballot_sync(WHOLE_WARP, x[threadIdx.x] != 0);
    out[threadIdx.x] = yes + 1000 * (__any_sync(WHOLE_WARP, x[threadIdx.x] == 7) ? 1 : 0) +
                       2000 * (__all_sync(WHOLE_WARP, x[threadIdx.x] < 9) ? 1 : 0);
}

// The value that shared memory starts with; the block then writes it for the next one to see.
template <class E> __global__ void first_sight(E* out) {
    SHARED(E, fixed, 64);
    DYNAMIC_SHARED(E, dynamic);
    const int i = threadIdx.x;
    out[2 * (blockIdx.x * 64 + i)] = fixed[i];
    out[2 * (blockIdx.x * 64 + i) + 1] = dynamic[i];
    fixed[i] = dynamic[i] = E(1);
}

// The place of each thread in the order of their starts.
template <class E> __global__ void started(E* counter, E* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, E(1));
}

// PLANTED 0 is right; each other number breaks a rule of a block or a warp.
template <int PLANTED> __global__ void rules(float* out) {
    const int i = threadIdx.x, lane = i % 32;
    float x = i;
    if constexpr (PLANTED == 1) {  // two barriers, one for each half
        if (i < 32) __syncthreads();
        else __syncthreads();
    }
    if constexpr (PLANTED == 2) {  // a thread leaves
        if (i == 5) return;
        __syncthreads();
    }
    if constexpr (PLANTED == 3)  // a lane stays away
        if (lane != 7) x = __shfl_xor_sync(WHOLE_WARP, x, 1);
    if constexpr (PLANTED == 3)
        if (lane == 7) __syncthreads();
    if constexpr (PLANTED == 4) x = __shfl_xor_sync(lane < 16 ? 0xffffffffu : 0xfffffff0u, x, 1);
    if constexpr (PLANTED == 5) x = __shfl_xor_sync(0xfffffffeu, x, 1);
    if constexpr (PLANTED == 6) {
        if (lane < 16) x = __shfl_up_sync(WHOLE_WARP, x, 1);
        else __syncwarp();
    }
    if constexpr (PLANTED == 10)
        x = lane < 16 ? __shfl_up_sync(WHOLE_WARP, x, 1) : __shfl_down_sync(WHOLE_WARP, x, 1);
    if constexpr (PLANTED == 7) x = __shfl_up_sync(WHOLE_WARP, x, 1, 12);
    if constexpr (PLANTED == 8)
        if (i == 33) __trap();
    if constexpr (PLANTED == 9)
        if (i >= 32) __syncthreads();
    __syncthreads();
    out[blockIdx.x * blockDim.x + i] = x;
}

// The first half of a warp asks the second half, which takes no part.
template <class E> __global__ void half_warp(E* out) {
    const int lane = threadIdx.x;
    out[lane] = E(lane);
    if (lane < 16) out[lane] = shuffle_down(0xffffu, E(lane), lane < 8 ? 4 : 16);
}

template <class E> __global__ void twice(const E* x, E* out, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i < n) out[i] = narrow<E>(widen(x[i]) + widen(x[i]));
}

struct sizes {
    long long n;
    int step, shift;
};
template <class E> __global__ void of_record(E* out, sizes s) {
    for (long long i = threadIdx.x; i < s.n; i += blockDim.x) out[i] = E(i * s.step + s.shift);
}

template <class E> __global__ void half(const E* x, E* out) {
    out[threadIdx.x] = x[threadIdx.x] * E(0.5);
}

// A block whose row lies 2³³ elements away.
template <class E, int WRONG> __global__ void far(E* out, long long l) {
    if constexpr (WRONG) out[static_cast<int>(blockIdx.x * l) + threadIdx.x] = E(3);
    else out[blockIdx.x * l + threadIdx.x] = E(3);
}

template <class E> __global__ void divide(const E* x, E* out) { out[0] = x[0] / x[1]; }

template <class E, int FIRST> __global__ void beside_shared(E* out) {
    SHARED(E, tile, 16);
    const int i = threadIdx.x;
    tile[i + FIRST] = E(1);
    __syncthreads();
    out[i] = tile[i];
}

template <class E> __global__ void without_a_value(E* out, int n) {
    E sum;
    for (int i = 0; i < n; ++i) sum = E(i);
    out[threadIdx.x] = sum;
}

template <class E> __global__ void sixteen_bytes(const E* x, E* out) {
    store16(out + PER_16<E> * threadIdx.x, load16(x + PER_16<E> * threadIdx.x));
}

// A product of 4 × 4 matrices by a warp: lane i has row i of each, and gets row i of the product.
template <class E> struct Rows {
    E a[4], b[4], c[4];
};
#ifndef __CUDACC__
template <class E> LANES_WORK void multiply(void* const* lanes) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 4; ++k) {
                auto* mine = static_cast<Rows<E>*>(lanes[i]);
                auto* other = static_cast<Rows<E>*>(lanes[k]);
                mine->c[j] = mine->a[k] * other->b[j] + (k ? mine->c[j] : E(0));
            }
}
template <class E> __global__ void product(const E* a, const E* b, E* c) {
    Rows<E> rows{};
    const int i = threadIdx.x % 4;
    for (int k = 0; k < 4; ++k) rows.a[k] = a[4 * i + k], rows.b[k] = b[4 * i + k];
    cuda_on_host::meet<multiply<E>>(WHOLE_WARP, rows, "product", HERE);
    if (threadIdx.x < 4)
        for (int k = 0; k < 4; ++k) c[4 * i + k] = rows.c[k];
}
#endif
