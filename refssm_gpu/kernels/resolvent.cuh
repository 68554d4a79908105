// R = 1/(z − w) as d*/|d|², d = z − w, without a branch, and when that is not safe.
//
// |d|² must neither overflow nor lose digits: all parts are at most HUGE, and no 1/|d|² is above
// LARGEST. Otherwise the caller computes its sum again by `quotient`, which is safe for all numbers.
#ifndef REFSSM_RESOLVENT_CUH
#define REFSSM_RESOLVENT_CUH
#include "powers.cuh"

// 1/x to the last digit or two. In single precision the approximation of the card has one unit in
// the last place; its range ends at 2^126, far above the squares of HUGE.
DEVICE double reciprocal(double x) { return 1.0 / x; }
DEVICE float reciprocal(float x) {
#ifdef __CUDACC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

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
template <class T> DEVICE T resolvent(T z, T w, T&) { return 1 / (z - w); }
template <class T> DEVICE complex_of<T> resolvent(complex_of<T> z, complex_of<T> w, T& worst) {
    const T a = z.re - w.re, b = z.im - w.im;
    const T r = reciprocal(a * a + b * b);
    worst = fmax(worst, r);
    return {a * r, -b * r};  // v R comes later: v d* may underflow where v/d does not
}
template <class T> DEVICE bool is_safe(T worst) { return worst <= largest<T>(); }

// v/(z − w) for all numbers; ∞ or NaN at a pole.
template <class E> DEVICE wide_of<E> quotient(E v, E z, E w) {
    return widest(v) / (widest(z) - widest(w));
}

#endif
