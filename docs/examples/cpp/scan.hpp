// x_k = a_k x_{k-1} + b_k along the middle axis of arrays (b, l, n), and its gradient.
#pragma once

#include <algorithm>

#include "npy.hpp"

template <class T> T conjugate(T x) { return x; }
template <class T> std::complex<T> conjugate(std::complex<T> x) { return std::conj(x); }

// In blocks of `block` steps. `carry` says whether a block begins with the state of the last one.
template <class T>
npy::Array<T> linear_scan(const npy::Array<T>& a, const npy::Array<T>& b, std::size_t block,
                          bool carry) {
    npy::Array<T> x{b.shape, std::vector<T>(b.data.size())};
    const std::size_t length = b.shape[1], width = b.shape[2];
    for (std::size_t member = 0; member < b.shape[0]; ++member)
        for (std::size_t n = 0; n < width; ++n) {
            T state{};
            for (std::size_t start = 0; start < length; start += block) {
                if (!carry) state = T{};
                for (std::size_t k = start; k < std::min(start + block, length); ++k) {
                    const std::size_t i = (member * length + k) * width + n;
                    state = k ? a.data[i] * state + b.data[i] : b.data[i];
                    x.data[i] = state;
                }
            }
        }
    return x;
}

// λ_k = dx_k + conj(a_{k+1}) λ_{k+1}:  db_k = λ_k,  da_k = λ_k conj(x_{k-1}).
template <class T>
void linear_scan_vjp(const npy::Array<T>& dx, const npy::Array<T>& a, const npy::Array<T>& b,
                     npy::Array<T>& da, npy::Array<T>& db) {
    const npy::Array<T> x = linear_scan(a, b, b.shape[1] + 1, true);
    da = db = npy::Array<T>{b.shape, std::vector<T>(b.data.size())};
    const std::size_t length = b.shape[1], width = b.shape[2];
    for (std::size_t member = 0; member < b.shape[0]; ++member)
        for (std::size_t n = 0; n < width; ++n) {
            T adjoint{};
            for (std::size_t k = length; k-- > 0;) {
                const std::size_t i = (member * length + k) * width + n;
                adjoint = k + 1 < length ? dx.data[i] + conjugate(a.data[i + width]) * adjoint
                                         : dx.data[i];
                db.data[i] = adjoint;
                da.data[i] = k ? adjoint * conjugate(x.data[i - width]) : T{};
            }
        }
}

// Reads the folder of a case, writes the answer beside the arguments.
template <class T> void answer(const std::string& folder, bool gradient, bool carry) {
    const auto a = npy::read<T>(folder + "/a.npy"), b = npy::read<T>(folder + "/b.npy");
    if (!gradient) return npy::write(folder + "/x.npy", linear_scan(a, b, 64, carry));
    npy::Array<T> da, db;
    linear_scan_vjp(npy::read<T>(folder + "/dx.npy"), a, b, da, db);
    npy::write(folder + "/da.npy", da);
    npy::write(folder + "/db.npy", db);
}

inline int run(int count, char** arguments, bool carry) {
    if (count != 2) return 2;
    try {
        const std::string folder = arguments[1];
        auto about = npy::about(folder);
        const bool gradient = about["call"] == "linear_scan_vjp";
        if (!gradient && about["call"] != "linear_scan") return 77;  // 77: declined
        if (about["dtype"] == "float32") answer<float>(folder, gradient, carry);
        else if (about["dtype"] == "float64") answer<double>(folder, gradient, carry);
        else if (about["dtype"] == "complex64") answer<std::complex<float>>(folder, gradient, carry);
        else if (about["dtype"] == "complex128") answer<std::complex<double>>(folder, gradient, carry);
        else return 77;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
