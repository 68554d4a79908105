// CUDA C++ on the CPU, for tests: what a kernel finds declared when g++ or clang++ compiles it.
//
// Each CUDA thread is a fiber of one thread of the process; the blocks run one after another. See
// runtime.cpp. Stricter than the hardware on purpose: shared memory starts as NaN in each block,
// the threads of a block must meet at one and the same __syncthreads, the lanes of a warp must
// name the same mask and call the same function, and a shuffle from a lane that takes no part
// gives NaN.
//
// `meet` (below) is what a new function of a warp is made of, for instance a product of matrices:
//
//     struct Part { float a[4], b[2], c[4]; };          // what a lane gives, and what it gets
//     LANES_WORK void multiply(void* const* lanes) {     // runs once, when all lanes are there
//         Part* lane[32]; for (int i = 0; i < 32; ++i) lane[i] = static_cast<Part*>(lanes[i]);
//         …                                              // writes the results into lane[i]->c
//     }
//     Part part = …; cuda_on_host::meet<multiply>(0xffffffffu, part, "mma", HERE);
#pragma once
#include "engine.h"
#include "host_math.h"
#include "host_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#define HERE (cuda_on_host::Place{__FILE__, __LINE__})
#define LANES_WORK __attribute__((no_sanitize("thread", "address"), noinline))

#define SHARED(T, name, count)                                                                   \
    T* const name = static_cast<T*>(cuda_on_host::shared_array(                                  \
        [] { static char key; return &key; }(), sizeof(T) * (count), alignof(T), HERE))
#define DYNAMIC_SHARED(T, name)                                                                  \
    T* const name = static_cast<T*>(cuda_on_host::dynamic_shared_array(alignof(T), HERE))

#define threadIdx (cuda_on_host::current->index)
#define blockIdx (cuda_on_host::block_index)
#define blockDim (cuda_on_host::block_size)
#define gridDim (cuda_on_host::grid_size)
#define warpSize 32

namespace cuda_on_host {

inline int lane() { return static_cast<int>(current->number % 32); }

// All lanes of the mask call this with the same `work`; it runs once, before any goes on.
template <Work work, class Part>
void meet(unsigned mask, Part& part, const char* function, Place place) {
    together(work, &part, mask, function, place);
}

template <class V>
struct Exchange {
    V given, got;
    int source;  // the lane whose value this one wants; outside 0…31: its own
};

template <class V>
LANES_WORK void exchange_work(void* const* lanes) {
    for (int i = 0; i < 32; ++i) {
        if (!lanes[i]) continue;
        auto* mine = static_cast<Exchange<V>*>(lanes[i]);
        bool own = mine->source < 0 || mine->source > 31;
        void* from = own ? lanes[i] : lanes[mine->source];
        if (from) mine->got = static_cast<Exchange<V>*>(from)->given;
        else __builtin_memset(static_cast<void*>(&mine->got), 0xff, sizeof(V));
    }
}

template <class V>
V exchange(unsigned mask, V value, int source, const char* function, Place place) {
    static_assert(__is_trivially_copyable(V), "a shuffle copies bytes");
    Exchange<V> part{value, value, source};
    meet<exchange_work<V>>(mask, part, function, place);
    return part.got;
}

struct Vote {
    unsigned yes, result;
};

LANES_WORK inline void vote_work(void* const* lanes) {
    unsigned result = 0;
    for (int i = 0; i < 32; ++i)
        if (lanes[i] && static_cast<Vote*>(lanes[i])->yes) result |= 1u << i;
    for (int i = 0; i < 32; ++i)
        if (lanes[i]) static_cast<Vote*>(lanes[i])->result = result;
}

inline void check_width(int width, Place place) {
    bool right = width > 0 && width <= 32 && (width & (width - 1)) == 0;
    if (!right) fail("the width of a shuffle must be 1, 2, 4, 8, 16 or 32", place);
}

}  // namespace cuda_on_host

inline void __syncthreads(HERE_) { cuda_on_host::wait_for_block(file_line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, HERE_) {
    cuda_on_host::wait_for_warp(mask, file_line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap(HERE_) { cuda_on_host::fail("__trap()", file_line); }

template <class V>
V __shfl_sync(unsigned mask, V value, int source, int width = 32, HERE_) {
    cuda_on_host::check_width(width, file_line);
    int first = cuda_on_host::lane() & ~(width - 1);
    return cuda_on_host::exchange(
        mask, value, first | (source & (width - 1)), "__shfl_sync", file_line);
}

template <class V>
V __shfl_up_sync(unsigned mask, V value, unsigned distance, int width = 32, HERE_) {
    cuda_on_host::check_width(width, file_line);
    int lane = cuda_on_host::lane(), source = lane - static_cast<int>(distance);
    if (source < (lane & ~(width - 1))) source = -1;
    return cuda_on_host::exchange(mask, value, source, "__shfl_up_sync", file_line);
}

template <class V>
V __shfl_down_sync(unsigned mask, V value, unsigned distance, int width = 32, HERE_) {
    cuda_on_host::check_width(width, file_line);
    int lane = cuda_on_host::lane(), source = lane + static_cast<int>(distance);
    if (source > (lane | (width - 1))) source = -1;
    return cuda_on_host::exchange(mask, value, source, "__shfl_down_sync", file_line);
}

template <class V>
V __shfl_xor_sync(unsigned mask, V value, int bits, int width = 32, HERE_) {
    cuda_on_host::check_width(width, file_line);
    int lane = cuda_on_host::lane(), source = lane ^ bits;
    if (source > (lane | (width - 1))) source = -1;
    return cuda_on_host::exchange(mask, value, source, "__shfl_xor_sync", file_line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, HERE_) {
    cuda_on_host::Vote part{predicate != 0, 0};
    cuda_on_host::meet<cuda_on_host::vote_work>(mask, part, "__ballot_sync", file_line);
    return part.result;
}
inline int __any_sync(unsigned mask, int predicate, HERE_) {
    cuda_on_host::Vote part{predicate != 0, 0};
    cuda_on_host::meet<cuda_on_host::vote_work>(mask, part, "__any_sync", file_line);
    return part.result != 0;
}
inline int __all_sync(unsigned mask, int predicate, HERE_) {
    cuda_on_host::Vote part{predicate == 0, 0};  // who says no?
    cuda_on_host::meet<cuda_on_host::vote_work>(mask, part, "__all_sync", file_line);
    return part.result == 0;
}

template <class V>
V __ldg(const V* place) {
    return *place;
}

// Atomic for ThreadSanitizer, too; a sum of floats by it depends on the order of threads.
template <class V>
V atomicAdd(V* place, V value) {
    if constexpr (V(0.5f) != V(0)) {
        V old, sum;
        __atomic_load(place, &old, __ATOMIC_RELAXED);
        do sum = old + value;
        while (!__atomic_compare_exchange(place, &old, &sum, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
        return old;
    } else {
        return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
    }
}

// ---- What Python sees of a kernel: `CUDA_ON_HOST_EXPORT(linear_scan<float32, 8>)`.
namespace cuda_on_host {

// The name of an element type; number.cuh adds its own. A type without a name is a struct.
template <class T>
constexpr const char* type_name = nullptr;
template <> inline constexpr const char* type_name<void> = "any";
template <> inline constexpr const char* type_name<float> = "float32";
template <> inline constexpr const char* type_name<double> = "float64";
template <> inline constexpr const char* type_name<bool> = "bool";
template <> inline constexpr const char* type_name<signed char> = "int8";
template <> inline constexpr const char* type_name<unsigned char> = "uint8";
template <> inline constexpr const char* type_name<short> = "int16";
template <> inline constexpr const char* type_name<unsigned short> = "uint16";
template <> inline constexpr const char* type_name<int> = "int32";
template <> inline constexpr const char* type_name<unsigned> = "uint32";
template <> inline constexpr const char* type_name<long> = "int64";
template <> inline constexpr const char* type_name<unsigned long> = "uint64";
template <> inline constexpr const char* type_name<long long> = "int64";
template <> inline constexpr const char* type_name<unsigned long long> = "uint64";

template <class T> struct Bare { using type = T; static constexpr bool constant = false; };
template <class T> struct Bare<const T> { using type = T; static constexpr bool constant = true; };

template <class T> constexpr size_t size_of = sizeof(T);
template <> inline constexpr size_t size_of<void> = 1;

struct Described {
    const char* type;  // null: a struct
    size_t bytes;
    int pointer, constant;
};
template <class T> struct Description {
    static constexpr Described value{type_name<T>, sizeof(T), 0, 0};
};
template <class T> struct Description<T*> {
    using B = Bare<T>;
    static constexpr Described value{
        type_name<typename B::type>, size_of<typename B::type>, 1, B::constant};
};

template <class... A> struct Kernel {
    static constexpr Described described[sizeof...(A) + 1] = {
        Description<typename Bare<A>::type>::value..., {nullptr, 0, 0, 0}};
    template <size_t... I> struct Numbers {};
    template <size_t n, size_t... I> struct Count : Count<n - 1, n - 1, I...> {};
    template <size_t... I> struct Count<0, I...> { using type = Numbers<I...>; };
    template <size_t... I>
    static void call(void (*kernel)(A...), void** arguments, Numbers<I...>) {
        kernel(*static_cast<typename Bare<A>::type*>(arguments[I])...);
    }
    static void call(void (*kernel)(A...), [[maybe_unused]] void** arguments) {
        call(kernel, arguments, typename Count<sizeof...(A)>::type{});
    }
};
template <class... A>
const Described* described(void (*)(A...)) {
    return Kernel<A...>::described;
}
template <class... A>
void call(void (*kernel)(A...), void** arguments) {
    Kernel<A...>::call(kernel, arguments);
}

}  // namespace cuda_on_host

#define CUDA_ON_HOST_EXPORT(...)                                                                 \
    extern "C" __attribute__((visibility("default"))) void kernel_body(void** arguments) {       \
        cuda_on_host::call(__VA_ARGS__, arguments);                                              \
    }                                                                                            \
    extern "C" __attribute__((visibility("default"))) const cuda_on_host::Described*             \
    kernel_parameters() {                                                                        \
        return cuda_on_host::described(__VA_ARGS__);                                             \
    }
