// CUDA's vector types with their alignment, and the functions on bits.
#pragma once

#define VECTOR_2(name, T, n)                                                                     \
    struct alignas(n) name { T x, y; };                                                          \
    inline name make_##name(T x, T y) { return {x, y}; }
#define VECTOR_4(name, T, n)                                                                     \
    struct alignas(n) name { T x, y, z, w; };                                                    \
    inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR_2(float2, float, 8)
VECTOR_2(double2, double, 16)
VECTOR_2(int2, int, 8)
VECTOR_2(uint2, unsigned, 8)
VECTOR_2(longlong2, long long, 16)
VECTOR_2(ulonglong2, unsigned long long, 16)
VECTOR_4(float4, float, 16)
VECTOR_4(int4, int, 16)
VECTOR_4(uint4, unsigned, 16)
VECTOR_4(ushort4, unsigned short, 8)
VECTOR_4(uchar4, unsigned char, 4)
#undef VECTOR_2
#undef VECTOR_4

inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) {
    return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

// The pairs of types that CUDA declares; others are ambiguous there and here.
#define OF_ORDER(T)                                                                              \
    inline T min(T a, T b) { return b < a ? b : a; }                                             \
    inline T max(T a, T b) { return a < b ? b : a; }
OF_ORDER(int)
OF_ORDER(unsigned)
OF_ORDER(long)
OF_ORDER(unsigned long)
OF_ORDER(long long)
OF_ORDER(unsigned long long)
#undef OF_ORDER
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline int abs(int a) { return a < 0 ? -a : a; }
inline long long abs(long long a) { return a < 0 ? -a : a; }
inline long long llabs(long long a) { return a < 0 ? -a : a; }
