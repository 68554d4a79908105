// R = 1/(z − w) as d*/|d|², d = z − w, without a branch, and when that is not safe.
//
// |d|² must neither overflow nor lose digits: all parts are at most HUGE, and no 1/|d|² is above
// LARGEST. Otherwise the caller computes its sum again by `quotient`, which is safe for all numbers.
#ifndef REFSSM_RESOLVENT_CUH
#define REFSSM_RESOLVENT_CUH
#include "../vandermonde/powers.cuh"

// The first digits of 1/x, x ≥ 0: of float32 all but the last, of float64 20 bits. Their range ends
// at 2^126 and 2^1022, far above the squares of HUGE.
DEVICE float rough_reciprocal(float x) {
#ifdef __CUDACC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}
DEVICE double rough_reciprocal(double x) {
#ifdef __CUDACC__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
#else
    return __longlong_as_double(__double_as_longlong(1.0 / x) >> 32 << 32);
#endif
}
// 1/x to the last digit or two: each step of Newton's method doubles the digits. A division would
// take more steps and a branch.
DEVICE float refined(float, float y) { return y; }
DEVICE double refined(double x, double y) {
    y = fma(y, fma(-x, y, 1.0), y);
    return fma(y, fma(-x, y, 1.0), y);
}
// Positive numbers in order as integers, above all of them NaN.
DEVICE int ordered(float x) { return __float_as_int(x); }
DEVICE int ordered(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }

template <class T> DEVICE T huge();
template <> DEVICE float huge<float>() { return 1e18f; }
template <> DEVICE double huge<double>() { return 1e140; }
template <class T> DEVICE T largest();
template <> DEVICE float largest<float>() { return 1e30f; }
template <> DEVICE double largest<double>() { return 1e280; }

// Real numbers are divided as they are.
template <class T> DEVICE bool is_huge(T) { return false; }
template <class T> DEVICE bool is_huge(complex_of<T> x) {
    return !(fabs(x.re) <= huge<T>() && fabs(x.im) <= huge<T>());
}
// `worst` becomes the largest 1/|d|², as an integer.
template <class T> DEVICE T resolvent(T z, T w, int&) { return 1 / (z - w); }
template <class T> DEVICE complex_of<T> resolvent(complex_of<T> z, complex_of<T> w, int& worst) {
    const T a = z.re - w.re, b = z.im - w.im, size = a * a + b * b;
    const T rough = rough_reciprocal(size), r = refined(size, rough);
    worst = max(worst, ordered(rough));
    return {a * r, -b * r};  // v R comes later: v d* may underflow where v/d does not
}
template <class T> DEVICE bool is_safe(int worst) { return worst <= ordered(largest<T>()); }

// v/(z − w) for all numbers; ∞ or NaN at a pole.
template <class E> DEVICE wide_of<E> quotient(E v, E z, E w) {
    return widest(v) / (widest(z) - widest(w));
}

#endif
