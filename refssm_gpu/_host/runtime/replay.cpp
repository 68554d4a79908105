// Runs one recorded launch, for the sanitizers: the arrays lie in memory of exactly their size.
//
//     replay FILE NAME    exit code 0: it ran; 97: the engine found a mistake; else: a sanitizer
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "../engine.h"

extern "C" void kernel_body(void** arguments);
extern "C" int cuda_on_host_launch(const cuda_on_host::Launch*, cuda_on_host::Outcome*);

namespace {

FILE* file;

void read_bytes(void* place, size_t size) {
    if (size && fread(place, 1, size, file) != size) {
        fprintf(stderr, "replay: the record ends too early\n");
        exit(98);
    }
}

uint64_t number() {
    uint64_t value;
    read_bytes(&value, sizeof value);
    return value;
}

// Memory of exactly this size, filled from the record.
char* filled(uint64_t size) {
    auto* place = static_cast<char*>(malloc(size));
    read_bytes(place, size);
    return place;
}

}  // namespace

int main(int count, char** words) {
    if (count != 3 || !(file = fopen(words[1], "rb"))) return 98;
    cuda_on_host::Launch launch{};
    launch.kernel = words[2];
    launch.body = kernel_body;
    for (unsigned& n : launch.grid) n = static_cast<unsigned>(number());
    launch.block = static_cast<unsigned>(number());
    launch.shared = number();
    launch.order = static_cast<unsigned>(number());
    launch.flush = static_cast<int>(number());
    launch.only_count = number();
    if (launch.only_count)
        launch.only = reinterpret_cast<unsigned*>(filled(12 * launch.only_count));
    std::vector<char*> arrays(number());
    for (char*& array : arrays) array = filled(number());
    std::vector<void*> values(number());  // each: the address of an argument
    for (void*& value : values) {
        bool pointer = number();
        uint64_t first = number(), offset = pointer ? number() : 0;
        if (!pointer) value = filled(first);
        else value = new void*(first < arrays.size() ? arrays[first] + offset : nullptr);
    }
    launch.arguments = values.data();
    fclose(file);
    auto* outcome = new cuda_on_host::Outcome;
    if (cuda_on_host_launch(&launch, outcome)) {
        fprintf(stderr, "%s\n", outcome->message);
        _Exit(97);  // threads that stopped half-way are not ordered before what would be freed
    }
    _Exit(0);
}
