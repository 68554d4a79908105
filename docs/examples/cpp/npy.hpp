// .npy files and case.txt in C++17: what a program needs to be judged by `refssm verify --exec`.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace npy {

template <class T> const char* descr() {  // how .npy calls a type; this machine is little-endian
    if (std::is_same<T, float>::value) return "<f4";
    if (std::is_same<T, double>::value) return "<f8";
    if (std::is_same<T, std::complex<float>>::value) return "<c8";
    if (std::is_same<T, std::complex<double>>::value) return "<c16";
    if (std::is_same<T, std::uint16_t>::value) return "<f2";  // float16 as its bits
    return "|b1";                                             // flags, as std::uint8_t
}

template <class T> struct Array {
    std::vector<std::size_t> shape;
    std::vector<T> data;  // C order: the last index runs fastest
};

template <class T> Array<T> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + path);
    unsigned char magic[10];
    file.read(reinterpret_cast<char*>(magic), 10);
    std::string header(magic[8] + 256u * magic[9], ' ');
    file.read(&header[0], static_cast<std::streamsize>(header.size()));
    if (header.find(std::string("'") + descr<T>() + "'") == std::string::npos)
        throw std::runtime_error(path + " is not of type " + descr<T>() + ": " + header);
    Array<T> array;
    std::size_t size = 1;
    std::istringstream shape(header.substr(header.find("'shape': (") + 10));
    for (std::size_t n; shape >> n; shape.ignore(1)) {  // "1, 65, 3)", "4,)" or ")"
        array.shape.push_back(n);
        size *= n;
    }
    array.data.resize(size);
    file.read(reinterpret_cast<char*>(array.data.data()), std::streamsize(size * sizeof(T)));
    if (!file) throw std::runtime_error(path + " is truncated");
    return array;
}

template <class T> void write(const std::string& path, const Array<T>& array) {
    std::string shape;
    for (std::size_t n : array.shape) shape += std::to_string(n) + ",";
    std::string header = std::string("{'descr': '") + descr<T>() +
                         "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(header.size() % 256)).put(static_cast<char>(header.size() / 256));
    file << header;
    file.write(reinterpret_cast<const char*>(array.data.data()),
               std::streamsize(array.data.size() * sizeof(T)));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// case.txt: "call linear_scan", "dtype float32", "static l 64"; words, and last a value.
inline std::map<std::string, std::string> about(const std::string& folder) {
    std::ifstream file(folder + "/case.txt");
    std::map<std::string, std::string> words;
    for (std::string line; std::getline(file, line);) {
        std::size_t cut = line.rfind(' ');
        if (cut != std::string::npos) words[line.substr(0, cut)] = line.substr(cut + 1);
    }
    return words;
}

}  // namespace npy
