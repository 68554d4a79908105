// @NAME@ in C++17: @FORMULA@
//
//     @BUILD@
//     @VERIFY@
//
// The judge runs the program once for each case: it reads .npy files and writes .npy files.
// Exit code 77 declines a case. Arrays are in C order: the last index runs fastest.
#include <complex>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

template <class T> struct Array {
    std::vector<std::size_t> shape;
    std::vector<T> data;
};
template <class T> struct RealOf { using type = T; };
template <class T> struct RealOf<std::complex<T>> { using type = T; };
template <class T> using Real = typename RealOf<T>::type;
using Flag = std::uint8_t;
using Offset = std::int64_t;

template <class T> const char* descr() {  // how .npy calls a type; this machine is little-endian
    if (std::is_same<T, float>::value) return "<f4";
    if (std::is_same<T, double>::value) return "<f8";
    if (std::is_same<T, std::complex<float>>::value) return "<c8";
    if (std::is_same<T, std::complex<double>>::value) return "<c16";
    if (std::is_same<T, Offset>::value) return "<i8";
    return "|b1";
}

// A case: the folder, and case.txt with lines as "input a.npy float32 b=2 l=16 n=5", "static l 64".
class Case {
  public:
    std::string dtype, call;

    explicit Case(const std::string& folder) : folder_(folder) {
        std::ifstream file(folder + "/case.txt");
        if (!file) throw std::runtime_error("cannot open " + folder + "/case.txt");
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string kind, name, word;
            words >> kind >> name;
            if (kind == "dtype") dtype = name;
            if (kind == "call") call = name;
            if (kind == "static") words >> statics_[name];
            if (kind == "size") words >> sizes_[name];
            if (kind != "input" && kind != "output") continue;
            words >> word;  // its type
            while (words >> word) {
                const auto cut = word.find('=');
                sizes_[word.substr(0, cut)] = std::stoul(word.substr(cut + 1));
                if (kind == "output") shapes_[name].push_back(std::stoul(word.substr(cut + 1)));
            }
        }
    }

    std::size_t size(const std::string& axis) const { return sizes_.at(axis); }
    double parameter(const std::string& name) const { return statics_.at(name); }

    template <class T> Array<T> read(const std::string& name) const {
        const std::string path = folder_ + "/" + name + ".npy";
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot open " + path);
        unsigned char magic[10];
        file.read(reinterpret_cast<char*>(magic), 10);
        std::string header(magic[8] + 256u * magic[9], ' ');
        file.read(&header[0], static_cast<std::streamsize>(header.size()));
        if (header.find(std::string("'") + descr<T>() + "'") == std::string::npos)
            throw std::runtime_error(path + " is not of type " + descr<T>() + ": " + header);
        Array<T> array;
        std::size_t count = 1;
        std::istringstream shape(header.substr(header.find("'shape': (") + 10));
        for (std::size_t n; shape >> n; shape.ignore(1)) {
            array.shape.push_back(n);
            count *= n;
        }
        array.data.resize(count);
        file.read(reinterpret_cast<char*>(array.data.data()), std::streamsize(count * sizeof(T)));
        if (!file) throw std::runtime_error(path + " is truncated");
        return array;
    }

    template <class T> Array<T> zeros(const std::string& name) const {
        Array<T> array;
        const auto found = shapes_.find(name + ".npy");
        if (found != shapes_.end()) array.shape = found->second;
        std::size_t count = 1;
        for (std::size_t n : array.shape) count *= n;
        array.data.resize(count);
        return array;
    }

    template <class T> void write(const std::string& name, const Array<T>& array) const {
        std::string shape;
        for (std::size_t n : array.shape) shape += std::to_string(n) + ",";
        std::string header = std::string("{'descr': '") + descr<T>() +
                             "', 'fortran_order': False, 'shape': (" + shape + "), }";
        header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
        header += '\n';
        std::ofstream file(folder_ + "/" + name + ".npy", std::ios::binary);
        file.write("\x93NUMPY\x01\x00", 8);
        file.put(char(header.size() % 256)).put(char(header.size() / 256));
        file << header;
        file.write(reinterpret_cast<const char*>(array.data.data()),
                   std::streamsize(array.data.size() * sizeof(T)));
        if (!file.flush()) throw std::runtime_error("cannot write " + name + ".npy");
    }

  private:
    std::string folder_;
    std::map<std::string, std::size_t> sizes_;
    std::map<std::string, double> statics_;
    std::map<std::string, std::vector<std::size_t>> shapes_;
};

// @FORMULA@
template <class T> bool kernel(const Case& judged) {
@READ@
    // put your kernel here: fill the outputs and let `done` be true; false declines the case
    const bool done = false;

@WRITE@
    return done;
}

int main(int count, char** arguments) {
    if (count != 2) return 2;
    try {
        const Case judged(arguments[1]);
        if (judged.call != "@NAME@") return 77;  // such as its gradient, @NAME@_vjp
@DISPATCH@
        return 77;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
