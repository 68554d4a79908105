// Functions of one mode in double precision, real or complex: e^z − 1, φ₁ and its derivative, and
// logarithms that keep their digits near the unit circle.
#ifndef REFSSM_MODES_FUNCTIONS_CUH
#define REFSSM_MODES_FUNCTIONS_CUH
#include "../vandermonde/powers.cuh"

DEVICE complex128 complex_from(double re, double im) { return {re, im}; }

DEVICE double exponential(double z) { return exp(z); }
DEVICE complex128 exponential(complex128 z) { return power(z, 1); }

DEVICE double exponential_minus_one(double z) { return expm1(z); }
// (e^x − 1) cos y − 2 sin² y/2 + i e^x sin y
DEVICE complex128 exponential_minus_one(complex128 z) {
    const complex128 turn = power(complex_from(0, z.im), 1);
    const double half = sinpi(0.5 * ONE_OVER_PI * z.im);
    return {expm1(z.re) * turn.re - 2 * half * half, exp(z.re) * turn.im};
}

// (e^z − 1)/z, 1 at z = 0
template <class W> DEVICE W phi1(W z) {
    return is_zero(z) ? from_real<W>(1) : exponential_minus_one(z) / z;
}

DEVICE double modulus(double z) { return fabs(z); }
DEVICE double modulus(complex128 z) { return hypot(z.re, z.im); }

// φ₁' = Σ_k z^k / (k! (k + 2)); for |z| ≥ 1 (e^z − φ₁)/z loses few digits.
template <class W> DEVICE W phi1_slope(W z) {
    constexpr int TERMS = 18;  // for |z| < 1 the remainder, 1/18!/19 of the sum, is below u
    if (!(modulus(z) < 1)) return (exponential(z) - phi1(z)) / z;
    W sum = from_real<W>(1.0 / (TERMS + 2));
    for (int k = TERMS - 1; k >= 0; --k) sum = 1.0 / (k + 2) + z * (1.0 / (k + 1)) * sum;
    return sum;
}

inline constexpr double NOTHING = -1e4;  // stands for log 0: e^{−1e4} is 0, and −1e4·0 = 0

DEVICE complex128 logarithm(complex128 a) {
    const double x = fmax(fabs(a.re), fabs(a.im)), y = fmin(fabs(a.re), fabs(a.im));
    if (is_zero(a)) return {NOTHING, 0};
    const bool near_circle = x > 0.5 && x < 2;  // there log |a| cancels
    const double size =
        near_circle ? 0.5 * log1p((x - 1) * (x + 1) + y * y) : log(hypot(a.re, a.im));
    return {size, atan2(a.im, a.re)};
}

// log ±Ā, Ā = (1 + h)/(1 − h); `negative`: a real Ā < 0. A slow mode needs artanh h, because a
// rounded Ā loses digits; a fast one 1 + h.
DEVICE double bilinear_logarithm(double h, bool& negative) {
    const double root = (1 + h) / (1 - h), size = fabs(root);
    negative = root < 0;
    if (size < 0.5) return size == 0 ? NOTHING : log(size);
    return 2 * atanh(fabs(h) > 1 ? 1 / h : h);
}
DEVICE complex128 bilinear_logarithm(complex128 h, bool& negative) {
    negative = false;
    const complex128 root = (1.0 + h) / (1.0 - h);
    if (modulus(root) < 0.5) return logarithm(root);
    const double beyond = 1 - h.re, size = beyond * beyond + h.im * h.im;
    return {0.5 * log1p(4 * h.re / size),
            atan2(2 * h.im, beyond * (1 + h.re) - h.im * h.im)};
}

#endif
