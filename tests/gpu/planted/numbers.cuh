// Every operation on numbers, elementwise; used by test_host_numbers.py and test_host_functions.py.
#include "common/number.cuh"

template <class S> __global__ void widened(const S* x, accumulate_of<S>* out, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i < n) out[i] = widen(x[i]);
}
template <class S> __global__ void narrowed(const accumulate_of<S>* x, S* out, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i < n) out[i] = narrow<S>(x[i]);
}

template <class E> __global__ void quotient(const E* x, const E* y, E* out, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i < n) out[i] = x[i] / y[i];
}

// exp x, and the quotient of a real number by x.
template <class E> __global__ void exponential(const E* x, E* out, E* inverse, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i < n) out[i] = exp(x[i]), inverse[i] = one<real_of<E>>() / x[i];
}

// Rows of results: a + b, a - b, -a, a b, conj a, r a, a r, a + r, r - a, a / r, |a|², re a.
template <class E> __global__ void algebra(const E* x, const E* y, E* out, long long n) {
    const long long i = threadIdx.x + 1ll * blockIdx.x * blockDim.x;
    if (i >= n) return;
    const E a = x[i], b = y[i];
    const real_of<E> r = real(b);
    E row[] = {a + b, a - b, -a,    a * b,
               conj(a), r * a, a * r, a + r,
               r - a, a / r, from_real<E>(abs2(a)), from_real<E>(real(a))};
    row[0] -= b, row[0] += b, row[0] *= one<E>();
    for (int k = 0; k < 12; ++k) out[k * n + i] = row[k] + zero<E>();
}

// One function of one number, by its number in the test's table.
template <class T> DEVICE T function(int which, T x) {
    T s = 0, c = 0;
    switch (which) {
        case 0: return exp(x);
        case 1: return expm1(x);
        case 2: return log1p(x);
        case 3: return log(x);
        case 4: return sqrt(x);
        case 5: return rsqrt(x);
        case 6: return tanh(x);
        case 7: return sin(x);
        case 8: return cos(x);
        case 9: return exp2(x);
        case 10: return log2(x);
        case 11: return cbrt(x);
        case 12: return floor(x);
        case 13: return trunc(x);
        case 14: return rint(x);
        case 15: return fabs(x);
        case 16: return atan2(x, T(2));
        case 17: return pow(T(2), x);
        case 18: return hypot(x, T(3));
        case 19: return fma(x, x, T(-1));
        case 20: return min(x, T(1));
        case 21: return max(x, T(1));
        case 22: sincospi(x, &s, &c); return s;
        case 23: sincospi(x, &s, &c); return c;
        case 24: sincos(x, &s, &c); return s + c;
        case 25: return ldexp(x, 3);
        case 26: return copysign(T(2), x);
        case 27: return T(isnan(x) + 2 * isinf(x) + 4 * isfinite(x));
        case 28: return sinpi(x) + cospi(x);
    }
    return 0;
}
template <class T> __global__ void functions(const T* x, T* out, int which) {
    out[threadIdx.x] = function(which, x[threadIdx.x]);
}

__host__ __device__ constexpr bool alignments() {
    return alignof(float2) == 8 && alignof(float4) == 16 && alignof(double2) == 16 &&
           alignof(int4) == 16 && alignof(complex64) == 8 && alignof(complex128) == 16 &&
           sizeof(Pack16<float16>) == 16 && PER_16<float16> == 8 && PER_16<complex128> == 1;
}
template <class T> __global__ void bits(T* out) {
    static_assert(alignments(), "as CUDA has them");
    out[0] = __float_as_int(1.0f);
    out[1] = static_cast<T>(__float_as_uint(-2.0f));
    out[2] = __double_as_longlong(1.0) >> 32;
    out[3] = __int_as_float(0x40400000) == 3.0f && __longlong_as_double(0x4008000000000000) == 3.0;
    out[4] = __popc(0xf0f0u) + 100 * __clz(1) + 10000 * __ffs(8);
    out[5] = min(3ll, 5ll) + max(2, 9);
    const int4 four = make_int4(1, 2, 3, 4);
    out[6] = four.x + four.y + four.z + four.w;
    T old = atomicAdd(&out[7], T(5));
    out[8] = old;
}
