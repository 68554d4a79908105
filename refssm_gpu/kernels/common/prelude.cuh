// What every kernel starts from. NVRTC compiles the kernels for a card; a C++ compiler compiles the
// same text for the tests on the CPU, with refssm_gpu/_host/cuda_on_host.h in place of CUDA.
//
//     SHARED(float32, tile, 256);      an array of the block, its size known to the compiler
//     DYNAMIC_SHARED(float32, rows);   the one whose size in bytes the launch gives
//
// Both are pointers in one of the two compilers: `sizeof tile` means nothing.
#ifndef REFSSM_PRELUDE_CUH
#define REFSSM_PRELUDE_CUH

#ifdef __CUDACC__
#define SHARED(T, name, count) __shared__ __align__(16) T name[count]
#define DYNAMIC_SHARED(T, name)                                                                  \
    extern __shared__ __align__(16) unsigned char refssm_dynamic_shared[];                       \
    T* const name = reinterpret_cast<T*>(refssm_dynamic_shared)
#else
#include <cuda_on_host.h>
#endif

#define DEVICE __device__ __forceinline__

inline constexpr unsigned WHOLE_WARP = 0xffffffffu;

DEVICE long long least(long long a, long long b) { return a < b ? a : b; }

#endif
