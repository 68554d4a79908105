// Small parts of the DPLR kernels: 1/T, a mode's numbers, and the equations of rank R at one node.
//
//     X = (B − P c)/T,   (I_R + Σ_n Q*_n P_nᵀ/T_n) c = Σ_n Q*_n B_n/T_n
//
// and Y, c' the same with C and B, Q* and P exchanged, so with the transposed matrix. The sums over
// the modes are S_ij = Σ_n left_ni right_nj / T_n, left = [C, Q*], right = [B, P].
#ifndef REFSSM_DPLR_CAPACITANCE_CUH
#define REFSSM_DPLR_CAPACITANCE_CUH
#include "../cauchy/resolvent.cuh"
#include "../common/rows.cuh"

// R = 1/T without a branch; false where |T|² leaves the range in which it keeps its digits, or is NaN.
DEVICE bool inverted(complex128 T, complex128& R) {
    const double size = T.re * T.re + T.im * T.im, rough = rough_reciprocal(size);
    const double r = refined(size, rough);
    R = {T.re * r, -T.im * r};
    const int least = ordered(1 / largest<double>()), most = ordered(largest<double>());
    return static_cast<unsigned>(ordered(rough) - least) <= static_cast<unsigned>(most - least);
}

template <int R> struct mode_of {
    complex128 w, left[R + 1], right[R + 1];
};

// The arguments of one row.
template <int R> struct system_of {
    const complex128 *w, *P, *Q, *B, *C;
    double dt;

    template <class Sizes>
    DEVICE void move_to(long long row, const Sizes& size, const double* steps) {
        w += row_of(size, 0, row) * size.n;
        P += row_of(size, 1, row) * size.n * R;
        Q += row_of(size, 2, row) * size.n * R;
        B += row_of(size, 3, row) * size.n;
        C += row_of(size, 4, row) * size.n;
        dt = steps[row_of(size, 5, row)];
    }
    DEVICE mode_of<R> operator[](long long i) const {
        mode_of<R> mode;
        mode.w = w[i];
        mode.left[0] = C[i];
        mode.right[0] = B[i];
#pragma unroll
        for (int r = 0; r < R; ++r) {
            mode.left[r + 1] = conj(Q[i * R + r]);
            mode.right[r + 1] = P[i * R + r];
        }
        return mode;
    }
};

// The size by which a pivot is chosen: it does not overflow where the number does not.
DEVICE double pivot_size(complex128 x) { return fabs(x.re) + fabs(x.im); }

// M x = N by elimination with partial pivoting; N is the last column, and x replaces it. All indices
// are known to the compiler, so that M stays in registers: rows are exchanged by selects.
template <int N> DEVICE void eliminate(complex128 (&M)[N][N + 1]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = i + 1; j < N; ++j) {
            const bool larger = pivot_size(M[j][i]) > pivot_size(M[i][i]);
#pragma unroll
            for (int k = i; k <= N; ++k) {
                const complex128 above = M[i][k], below = M[j][k];
                M[i][k] = larger ? below : above;
                M[j][k] = larger ? above : below;
            }
        }
        complex128 pivot;
        if (!inverted(M[i][i], pivot)) pivot = 1.0 / M[i][i];
#pragma unroll
        for (int k = i + 1; k <= N; ++k) M[i][k] = M[i][k] * pivot;
#pragma unroll
        for (int j = i + 1; j < N; ++j)
#pragma unroll
            for (int k = i + 1; k <= N; ++k) M[j][k] -= M[j][i] * M[i][k];
    }
#pragma unroll
    for (int i = N - 2; i >= 0; --i)
#pragma unroll
        for (int k = i + 1; k < N; ++k) M[i][N] -= M[i][k] * M[k][N];
}

// What one node knows: S, and left and right of the mode with T = 0, which is left out of S.
template <int R> struct node_sums {
    complex128 S[R + 1][R + 1], left[R + 1], right[R + 1];
    bool met;

    // c and X at the mode with T = 0, (I + S) c − q x = S_·0 and p·c = b; `turned`: c' and Y. Without
    // such a mode the last equation is x = 0.
    DEVICE void solve(bool turned, complex128 (&c)[R + 1]) const {
        complex128 M[R + 1][R + 2];
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < R; ++j)
                M[i][j] = (turned ? S[j + 1][i + 1] : S[i + 1][j + 1]) + (i == j ? 1.0 : 0.0);
            M[i][R] = -(turned ? right[i + 1] : left[i + 1]);
            M[i][R + 1] = turned ? S[0][i + 1] : S[i + 1][0];
            M[R][i] = turned ? left[i + 1] : right[i + 1];
        }
        M[R][R] = {met ? 0.0 : 1.0, 0.0};
        M[R][R + 1] = turned ? left[0] : right[0];
        eliminate<R + 1>(M);
#pragma unroll
        for (int i = 0; i <= R; ++i) c[i] = M[i][R + 1];
    }
};

#endif
