// CUDA's mathematical functions by the compiler's built-in ones, without <cmath>, which costs a
// quarter of a second per instance. Each name exists for float and double, and with an f for float.
#pragma once

#define UNARY(name)                                                                              \
    extern "C" double name(double) noexcept;                                                     \
    inline float name(float x) { return __builtin_##name##f(x); }                                \
    inline float name##f(float x) { return __builtin_##name##f(x); }
#define BINARY(name)                                                                             \
    extern "C" double name(double, double) noexcept;                                             \
    inline float name(float x, float y) { return __builtin_##name##f(x, y); }                    \
    inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
#define TERNARY(name)                                                                            \
    extern "C" double name(double, double, double) noexcept;                                     \
    inline float name(float x, float y, float z) { return __builtin_##name##f(x, y, z); }        \
    inline float name##f(float x, float y, float z) { return __builtin_##name##f(x, y, z); }

UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p)
UNARY(sqrt) UNARY(cbrt) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan)
UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh) UNARY(atanh)
UNARY(fabs) UNARY(floor) UNARY(ceil) UNARY(trunc) UNARY(round) UNARY(rint) UNARY(erf) UNARY(erfc)
UNARY(lgamma) UNARY(tgamma) UNARY(logb)
BINARY(atan2) BINARY(pow) BINARY(fmod) BINARY(fmin) BINARY(fmax) BINARY(copysign) BINARY(hypot)
BINARY(fdim) BINARY(nextafter)
TERNARY(fma)
#undef UNARY
#undef BINARY
#undef TERNARY

inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
inline double exp10(double x) { return __builtin_pow(10.0, x); }
inline float exp10(float x) { return static_cast<float>(__builtin_pow(10.0, x)); }
inline float exp10f(float x) { return exp10(x); }
inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
inline float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
inline double scalbn(double x, int n) { return __builtin_ldexp(x, n); }
inline float scalbn(float x, int n) { return __builtin_ldexpf(x, n); }
inline float scalbnf(float x, int n) { return __builtin_ldexpf(x, n); }
inline double frexp(double x, int* n) { return __builtin_frexp(x, n); }
inline float frexp(float x, int* n) { return __builtin_frexpf(x, n); }
inline float frexpf(float x, int* n) { return __builtin_frexpf(x, n); }
inline int ilogb(double x) { return __builtin_ilogb(x); }
inline int ilogb(float x) { return __builtin_ilogbf(x); }
inline int ilogbf(float x) { return __builtin_ilogbf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(x)); }
inline float rsqrtf(float x) { return rsqrt(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

inline void sincos(double x, double* s, double* c) {
    *s = __builtin_sin(x);
    *c = __builtin_cos(x);
}
inline void sincos(float x, float* s, float* c) {
    *s = __builtin_sinf(x);
    *c = __builtin_cosf(x);
}
inline void sincosf(float x, float* s, float* c) { sincos(x, s, c); }

// sin(πx) and cos(πx). The whole quarters are taken off first, which is exact; of the rest, at most
// π/4, long double (where it is wider) gives every bit.
inline void sincospi(double x, double* s, double* c) {
    double turn = __builtin_fmod(x, 2.0), quarters = __builtin_rint(2.0 * turn);
    long double angle = 3.14159265358979323846264338327950288L * (turn - 0.5 * quarters);
    auto sine = static_cast<double>(__builtin_sinl(angle));
    auto cosine = static_cast<double>(__builtin_cosl(angle));
    if (!__builtin_isfinite(x)) quarters = 0;
    switch (static_cast<int>(quarters) & 3) {
        case 0: *s = sine, *c = cosine; break;
        case 1: *s = cosine, *c = -sine; break;
        case 2: *s = -sine, *c = -cosine; break;
        default: *s = -cosine, *c = sine;
    }
}
inline void sincospi(float x, float* s, float* c) {
    double sine, cosine;
    sincospi(static_cast<double>(x), &sine, &cosine);
    *s = static_cast<float>(sine);
    *c = static_cast<float>(cosine);
}
inline void sincospif(float x, float* s, float* c) { sincospi(x, s, c); }
template <class T> T sinpi(T x) {
    T s, c;
    sincospi(x, &s, &c);
    return s;
}
template <class T> T cospi(T x) {
    T s, c;
    sincospi(x, &s, &c);
    return c;
}
inline float sinpif(float x) { return sinpi(x); }
inline float cospif(float x) { return cospi(x); }

// The fast forms of the card are as exact as the others here.
inline float __expf(float x) { return __builtin_expf(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __powf(float x, float y) { return __builtin_powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
