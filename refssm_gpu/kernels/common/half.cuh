// float16 and bfloat16: 16 bits in memory, and the conversions from and to float32. Those to a half
// round to the nearest, ties to even; a number too large becomes infinity, subnormal halves are
// kept, every NaN becomes 0x7fff, as on the card.
#ifndef REFSSM_HALF_CUH
#define REFSSM_HALF_CUH
#include "prelude.cuh"

using float32 = float;
using float64 = double;

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

DEVICE float32 to_float32(bfloat16 x) {
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

DEVICE bfloat16 to_bfloat16(float32 x) {
    unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
    return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

#ifdef __CUDACC__
DEVICE float32 to_float32(float16 x) {
    float32 y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

DEVICE float16 to_float16(float32 x) {
    float16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#else
DEVICE float32 to_float32(float16 x) {
    unsigned sign = (x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31u;
    unsigned fraction = x.bits & 0x3ffu;
    if (exponent == 0) {  // 2⁻²⁴ is the least subnormal; as float32 it is a normal number
        float32 size = static_cast<float32>(fraction) * 0x1p-24f;
        return sign ? -size : size;
    }
    exponent = exponent == 31 ? 255u : exponent + 112u;
    return __uint_as_float(sign | exponent << 23 | fraction << 13);
}

DEVICE float16 to_float16(float32 x) {
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return {0x7fff};
    if (size >= 0x477ff000u) return {static_cast<unsigned short>(sign | 0x7c00u)};  // ≥ 65520
    unsigned half, rest, tie;
    if (size >= 0x38800000u) {  // normal: 13 bits less, another bias
        half = (size - (112u << 23)) >> 13;
        rest = size & 0x1fffu;
        tie = 0x1000u;
    } else {  // below 2⁻¹⁴: units of 2⁻²⁴
        unsigned exponent = size >> 23, shift = 126u - exponent;
        if (exponent < 102u) return {static_cast<unsigned short>(sign)};  // below half a unit
        unsigned whole = (size & 0x7fffffu) | 0x800000u;
        half = whole >> shift;
        rest = whole & ((1u << shift) - 1u);
        tie = 1u << (shift - 1u);
    }
    half += rest > tie || (rest == tie && (half & 1u));
    return {static_cast<unsigned short>(sign | half)};
}
#endif

#endif
