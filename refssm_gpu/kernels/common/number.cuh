// The element types: float32 float64 complex64 complex128 float16 bfloat16, and what a kernel does
// with an element of any of them. A half type is only stored: `widen` makes the float32 to compute
// with, `narrow<E>` rounds it to the nearest, ties to even. Complex numbers are two reals side by
// side, aligned to their size, as CuPy and NumPy store them.
#ifndef REFSSM_NUMBER_CUH
#define REFSSM_NUMBER_CUH
#include "prelude.cuh"
#include "half.cuh"
#include "complex.cuh"

template <class E> struct real_of_ { using type = E; };
template <class T> struct real_of_<complex_of<T>> { using type = T; };
template <class E> struct accumulate_of_ { using type = E; };
template <> struct accumulate_of_<float16> { using type = float32; };
template <> struct accumulate_of_<bfloat16> { using type = float32; };

template <class E> using accumulate_of = typename accumulate_of_<E>::type;
template <class E> using real_of = typename real_of_<accumulate_of<E>>::type;

template <class E> constexpr bool is_complex = false;
template <class T> constexpr bool is_complex<complex_of<T>> = true;
template <class E> constexpr bool is_half = sizeof(E) == 2;

template <class A, class B> constexpr bool same_type = false;
template <class A> constexpr bool same_type<A, A> = true;

// An accumulator from a real number: `from_real<complex64>(2.0f)`.
template <class A> DEVICE A from_real(real_of<A> x) {
    if constexpr (is_complex<A>) return A{x, 0};
    else return x;
}
template <class A> DEVICE A zero() { return from_real<A>(0); }
template <class A> DEVICE A one() { return from_real<A>(1); }

template <class E> DEVICE accumulate_of<E> widen(E x) {
    if constexpr (is_half<E>) return to_float32(x);
    else return x;
}
template <class E> DEVICE E narrow(accumulate_of<E> x) {
    if constexpr (same_type<E, float16>) return to_float16(x);
    else if constexpr (same_type<E, bfloat16>) return to_bfloat16(x);
    else return x;
}

// ---- 16 bytes at once: the widest load and store of a thread. The place must be a multiple of 16.
template <class E> constexpr int PER_16 = 16 / static_cast<int>(sizeof(E));

template <class E> union Pack16 {
    uint4 bits;
    E at[16 / sizeof(E)];
};

#ifdef __CUDACC__
#define CHECK_16(place) static_cast<void>(0)
#else
#define CHECK_16(place)                                                                          \
    if (reinterpret_cast<unsigned long long>(place) % 16 != 0)                                   \
    cuda_on_host::fail("16 bytes at a place that is not a multiple of 16", file_line)
#endif

#ifdef __CUDACC__
template <class E> DEVICE Pack16<E> load16(const E* place) {
#else
template <class E> DEVICE Pack16<E> load16(const E* place, HERE_) {
#endif
    CHECK_16(place);
    Pack16<E> pack;
    pack.bits = *reinterpret_cast<const uint4*>(place);
    return pack;
}

#ifdef __CUDACC__
template <class E> DEVICE void store16(E* place, Pack16<E> pack) {
#else
template <class E> DEVICE void store16(E* place, Pack16<E> pack, HERE_) {
#endif
    CHECK_16(place);
    *reinterpret_cast<uint4*>(place) = pack.bits;
}

// ---- Shuffles of any element, in words of 32 bits on the card. On the host a shuffle takes any
// type, and HERE_ passes on the caller's line for messages.
#ifdef __CUDACC__
template <class V> union Words {
    V value;
    unsigned word[(sizeof(V) + 3) / 4];
    DEVICE Words() {}
};
#define SHUFFLE(name, cuda, type)                                                                \
    template <class V> DEVICE V name(unsigned mask, V value, type which, int width = 32) {       \
        Words<V> words;                                                                          \
        words.word[0] = 0;                                                                       \
        words.value = value;                                                                     \
        _Pragma("unroll") for (int i = 0; i < static_cast<int>((sizeof(V) + 3) / 4); ++i)        \
            words.word[i] = cuda(mask, words.word[i], which, width);                             \
        return words.value;                                                                      \
    }
#else
#define SHUFFLE(name, cuda, type)                                                                \
    template <class V>                                                                           \
    DEVICE V name(unsigned mask, V value, type which, int width = 32, HERE_) {                   \
        return cuda(mask, value, which, width, file_line);                                       \
    }
#endif
SHUFFLE(shuffle, __shfl_sync, int)
SHUFFLE(shuffle_up, __shfl_up_sync, unsigned)
SHUFFLE(shuffle_down, __shfl_down_sync, unsigned)
SHUFFLE(shuffle_xor, __shfl_xor_sync, int)
#undef SHUFFLE

#ifndef __CUDACC__
template <> inline constexpr const char* cuda_on_host::type_name<complex64> = "complex64";
template <> inline constexpr const char* cuda_on_host::type_name<complex128> = "complex128";
template <> inline constexpr const char* cuda_on_host::type_name<float16> = "float16";
template <> inline constexpr const char* cuda_on_host::type_name<bfloat16> = "bfloat16";
#endif

#endif
