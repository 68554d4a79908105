// Tensor cores by mma.sync: one warp adds the product of 16 × 8 and 8 × 8 numbers to 16 × 8 sums.
//
// Operands are TF32: eleven bits, as float16 has, and the exponents of float32. So float16 and
// bfloat16 are exact in it, and so are neither overflow nor flushed what a float16 operand would
// lose when decays or states in single precision are multiplied. Sums are single precision.
// Which number a lane holds (PTX ISA, "mma.m16n8k8"), with g = lane / 4, t = lane % 4:
//     a[0…3] = A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4)
//     b[0…1] = B(t, g), B(t + 4, g)
//     c[0…3] = C(g, 2t), C(g, 2t + 1), C(g + 8, 2t), C(g + 8, 2t + 1)
#ifndef REFSSM_TENSOR_CUH
#define REFSSM_TENSOR_CUH
#include "../common/number.cuh"

struct mma_part {
    float32 a[4], b[2], c[4];
};

#ifdef __CUDACC__
DEVICE unsigned to_tf32(float32 x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

DEVICE void multiply_add(mma_part& m) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(m.c[0]), "+f"(m.c[1]), "+f"(m.c[2]), "+f"(m.c[3])
        : "r"(to_tf32(m.a[0])), "r"(to_tf32(m.a[1])), "r"(to_tf32(m.a[2])),
          "r"(to_tf32(m.a[3])), "r"(to_tf32(m.b[0])), "r"(to_tf32(m.b[1])));
}
#else
// To the nearest of eleven bits, ties away from zero; NaN and infinity stay.
inline float32 to_tf32(float32 x) {
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u) return x;
    return __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}

LANES_WORK inline void mma_work(void* const* lanes) {
    mma_part* part[32];
    for (int i = 0; i < 32; ++i) part[i] = static_cast<mma_part*>(lanes[i]);
    float32 A[16][8], B[8][8];
    for (int i = 0; i < 32; ++i) {
        const int g = i / 4, t = i % 4;
        for (int h = 0; h < 4; ++h) A[g + h % 2 * 8][t + h / 2 * 4] = to_tf32(part[i]->a[h]);
        for (int h = 0; h < 2; ++h) B[t + 4 * h][g] = to_tf32(part[i]->b[h]);
    }
    for (int i = 0; i < 32; ++i)
        for (int h = 0; h < 4; ++h) {
            const int row = i / 4 + h / 2 * 8, column = i % 4 * 2 + h % 2;
            for (int k = 0; k < 8; ++k) part[i]->c[h] += A[row][k] * B[k][column];
        }
}

inline void multiply_add(mma_part& m, HERE_) {
    cuda_on_host::meet<mma_work>(WHOLE_WARP, m, "multiply_add", file_line);
}
#endif

#endif
