// e^{x k} for many k: powers in double precision from a few exponentials, rounded once.
//
// k = start + r·COLUMNS + q, and both r and q have two digits in base 8, so a power is a product of
// four exponentials e^{x·digit·place}. A table of the q and one of the r (with the start) needs
// 8 + COLUMNS/8 + 8 + HEADS/8 exponentials a mode; the errors |x|·digit·place add up to |x| k, that
// of one exponential. A digit 0 is e^{x·0}: 1, and NaN for a mode that is infinite or NaN.
#ifndef REFSSM_POWERS_CUH
#define REFSSM_POWERS_CUH
#include "../common/number.cuh"

template <class E> struct wide_of_ { using type = double; };
template <class T> struct wide_of_<complex_of<T>> { using type = complex128; };
template <class E> using wide_of = typename wide_of_<E>::type;

DEVICE double widest(float x) { return x; }
DEVICE double widest(double x) { return x; }
template <class T> DEVICE complex128 widest(complex_of<T> x) { return {x.re, x.im}; }

// A number of double precision in the type E.
template <class E> DEVICE E rounded_to(double x) { return static_cast<E>(x); }
template <class E> DEVICE E rounded_to(complex128 x) {
    return {static_cast<real_of<E>>(x.re), static_cast<real_of<E>>(x.im)};
}

template <class T> DEVICE void add_product(T& sum, T a, T b) { sum = a * b + sum; }
template <class T> DEVICE void add_product(complex_of<T>& sum, complex_of<T> a, complex_of<T> b) {
    sum.re = a.re * b.re + sum.re;
    sum.im = a.re * b.im + sum.im;
    sum.re = sum.re - a.im * b.im;
    sum.im = a.im * b.re + sum.im;
}
template <class T> DEVICE void add_product(complex_of<T>& sum, T a, complex_of<T> b) {
    sum.re = a * b.re + sum.re;
    sum.im = a * b.im + sum.im;
}

DEVICE double power(double x, long long k) { return exp(x * static_cast<double>(k)); }

inline constexpr double ONE_OVER_PI = 0.31830988618379067154;

// The angle in half turns: sincospi reduces it exactly, sincos needs a stack for that.
DEVICE complex128 power(complex128 x, long long k) {
    const double size = exp(x.re * static_cast<double>(k));
    double s, c;
    sincospi(x.im * static_cast<double>(k) * ONE_OVER_PI, &s, &c);
    return {size * c, size * s};
}

// Tables in shared memory are packs of 16 bytes, so that one load reads several neighbours.
template <class E> DEVICE void put(Pack16<E>* table, int i, E x) {
    table[i / PER_16<E>].at[i % PER_16<E>] = x;
}
template <class E> DEVICE E get(const Pack16<E>* table, int i) {
    return table[i / PER_16<E>].at[i % PER_16<E>];
}
// COUNT neighbours from a place that is a multiple of COUNT.
template <class E, int COUNT> DEVICE void get(const Pack16<E>* table, int i, E (&x)[COUNT]) {
    if constexpr (COUNT % PER_16<E> == 0) {
#pragma unroll
        for (int j = 0; j < COUNT; j += PER_16<E>) {
            const Pack16<E> pack = table[(i + j) / PER_16<E>];
#pragma unroll
            for (int p = 0; p < PER_16<E>; ++p) x[j + p] = pack.at[p];
        }
    } else {
#pragma unroll
        for (int j = 0; j < COUNT; ++j) x[j] = get(table, i + j);
    }
}

// The exponentials of a slice of modes, in shared memory.
template <class W, int COLUMNS, int HEADS> struct digits_of {
    static constexpr int HIGH = 8, HEAD = HIGH + COLUMNS / 8, HIGH_HEAD = HEAD + 8;
    static constexpr int COUNT = HIGH_HEAD + HEADS / 8;  // of a mode
    const W* table;

    static DEVICE long long exponent(int i, long long start) {
        if (i < HIGH) return i;
        if (i < HEAD) return (i - HIGH) * 8;
        if (i < HIGH_HEAD) return (i - HEAD) * COLUMNS;
        return start + static_cast<long long>(i - HIGH_HEAD) * 8 * COLUMNS;
    }
    // By all threads of the block; a barrier must follow.
    static DEVICE void fill(W* table, const W* x, int modes, long long start) {
        for (int i = threadIdx.x; i < modes * COUNT; i += blockDim.x)
            table[i] = power(x[i / COUNT], exponent(i % COUNT, start));
    }
    DEVICE W column(int mode, int q) const {  // e^{x q}
        const W* own = table + mode * COUNT;
        return own[q % 8] * own[HIGH + q / 8];
    }
    DEVICE W head(int mode, int r) const {  // e^{x (start + r COLUMNS)}
        const W* own = table + mode * COUNT;
        return own[HEAD + r % 8] * own[HIGH_HEAD + r / 8];
    }
};

#endif
