// Complex numbers: two reals side by side, as CuPy and NumPy have them. There is no operator
// for what has two right forms (abs, sqrt). NVRTC fuses a product and the sum after it into one
// rounding, the host build does not; a test of the long run lets g++ fuse them, too.
#ifndef REFSSM_COMPLEX_CUH
#define REFSSM_COMPLEX_CUH
#include "prelude.cuh"

template <class T> struct alignas(2 * sizeof(T)) complex_of {
    T re, im;
};
using complex64 = complex_of<float>;
using complex128 = complex_of<double>;

#define OF_COMPLEX template <class T> DEVICE complex_of<T>

OF_COMPLEX operator+(complex_of<T> a, complex_of<T> b) { return {a.re + b.re, a.im + b.im}; }
OF_COMPLEX operator-(complex_of<T> a, complex_of<T> b) { return {a.re - b.re, a.im - b.im}; }
OF_COMPLEX operator-(complex_of<T> a) { return {-a.re, -a.im}; }
OF_COMPLEX operator*(complex_of<T> a, complex_of<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
OF_COMPLEX operator+(complex_of<T> a, T b) { return {a.re + b, a.im}; }
OF_COMPLEX operator+(T a, complex_of<T> b) { return {a + b.re, b.im}; }
OF_COMPLEX operator-(complex_of<T> a, T b) { return {a.re - b, a.im}; }
OF_COMPLEX operator-(T a, complex_of<T> b) { return {a - b.re, -b.im}; }
OF_COMPLEX operator*(complex_of<T> a, T b) { return {a.re * b, a.im * b}; }
OF_COMPLEX operator*(T a, complex_of<T> b) { return {a * b.re, a * b.im}; }
OF_COMPLEX operator/(complex_of<T> a, T b) { return {a.re / b, a.im / b}; }

template <class T, class B> DEVICE complex_of<T>& operator+=(complex_of<T>& a, B b) {
    return a = a + b;
}
template <class T, class B> DEVICE complex_of<T>& operator-=(complex_of<T>& a, B b) {
    return a = a - b;
}
template <class T, class B> DEVICE complex_of<T>& operator*=(complex_of<T>& a, B b) {
    return a = a * b;
}

// The same words for real numbers, so that one kernel serves both.
OF_COMPLEX conj(complex_of<T> a) { return {a.re, -a.im}; }
DEVICE float conj(float a) { return a; }
DEVICE double conj(double a) { return a; }
template <class T> DEVICE T real(complex_of<T> a) { return a.re; }
DEVICE float real(float a) { return a; }
DEVICE double real(double a) { return a; }
template <class T> DEVICE T abs2(complex_of<T> a) { return a.re * a.re + a.im * a.im; }
DEVICE float abs2(float a) { return a * a; }
DEVICE double abs2(double a) { return a * a; }
template <class T> DEVICE bool is_zero(complex_of<T> a) { return a.re == 0 && a.im == 0; }
template <class T> DEVICE bool is_zero(T a) { return a == 0; }
template <class T> DEVICE bool is_finite(complex_of<T> a) {
    return isfinite(a.re) && isfinite(a.im);
}

// ---- The quotient. Both numbers are brought to a size between 1 and 2 (exactly, by a power of
// two), so that no square overflows or vanishes, and the quotient back to its own at the end.
// Where a part is zero, infinite or NaN: Smith's formula, which NumPy has, too.

DEVICE int exponent_of(float x) {
    int e = static_cast<int>(__float_as_uint(x) >> 23 & 255u) - 127;
    return max(-126, min(126, e));
}
DEVICE int exponent_of(double x) {
    int e = static_cast<int>(__double_as_longlong(x) >> 52 & 2047) - 1023;
    return max(-1022, min(1022, e));
}
DEVICE void power_of_two(int e, float& x) {
    x = __uint_as_float(static_cast<unsigned>(e + 127) << 23);
}
DEVICE void power_of_two(int e, double& x) {
    x = __longlong_as_double(static_cast<long long>(e + 1023) << 52);
}
template <class T> DEVICE T scaled(T x, int e) {  // |e| at most twice the largest exponent
    T one_half, other;
    power_of_two(e / 2, one_half);
    power_of_two(e - e / 2, other);
    return x * one_half * other;
}

OF_COMPLEX smith_quotient(complex_of<T> a, complex_of<T> b) {
    T c = fabs(b.re), d = fabs(b.im);
    if (c == 0 && d == 0) return {a.re / c, a.im / c};
    if (c >= d) {
        T r = b.im / b.re, s = 1 / (b.re + b.im * r);
        return {(a.re + a.im * r) * s, (a.im - a.re * r) * s};
    }
    T r = b.re / b.im, s = 1 / (b.im + b.re * r);
    return {(a.re * r + a.im) * s, (a.im * r - a.re) * s};
}

OF_COMPLEX operator/(complex_of<T> a, complex_of<T> b) {
    T above = fmax(fabs(a.re), fabs(a.im)), below = fmax(fabs(b.re), fabs(b.im));
    if (!(is_finite(a) && is_finite(b)) || above == 0 || below == 0) return smith_quotient(a, b);
    int ea = exponent_of(above), eb = exponent_of(below);
    T pa, pb;
    power_of_two(-ea, pa);
    power_of_two(-eb, pb);
    a = a * pa;
    b = b * pb;
    T size = abs2(b);
    complex_of<T> q = a * conj(b);
    return {scaled(q.re / size, ea - eb), scaled(q.im / size, ea - eb)};
}
OF_COMPLEX operator/(T a, complex_of<T> b) { return complex_of<T>{a, 0} / b; }

OF_COMPLEX exp(complex_of<T> a) {
    T s, c;
    sincos(a.im, &s, &c);
    T size = exp(a.re);
    return {size * c, size * s};
}

#undef OF_COMPLEX
#endif
