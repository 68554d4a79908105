// What a compiled kernel and the engine (runtime.cpp) know of each other. No standard header but
// stddef.h: every instance of every kernel compiles this file.
#pragma once
#include <stddef.h>

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace cuda_on_host {

struct Place {
    const char* file;
    int line;
};

// What a kernel reads of its thread; the engine's own record starts with this.
struct Thread {
    uint3 index;
    unsigned number;
};

extern Thread* current;
extern uint3 block_index;
extern dim3 block_size, grid_size;

// The work of a warp function, done once for all lanes that take part, by the lane that arrives
// last. `lanes[i]` is what lane i gave, null for a lane that takes no part.
using Work = void (*)(void* const* lanes);

void wait_for_block(Place place);
void wait_for_warp(unsigned mask, Place place);  // __syncwarp: the only one that orders memory
void together(Work work, void* mine, unsigned mask, const char* function, Place place);
void* shared_array(const void* key, size_t bytes, size_t alignment, Place place);
void* dynamic_shared_array(size_t alignment, Place place);
[[noreturn]] void fail(const char* message, Place place);

struct Launch {
    const char* kernel;
    void (*body)(void** arguments);
    void** arguments;
    const unsigned* only;  // triples: the blocks to run; null for all
    unsigned long long only_count;
    unsigned long long shared;  // bytes of dynamic shared memory
    unsigned grid[3];
    unsigned block;
    unsigned order;  // 0: thread 0 first; 1: the last first; above: a seed
    int flush;       // flush subnormals: for kernels without float64
};

struct Outcome {
    unsigned long long blocks, threads, barriers, warp_calls, switches, shared;
    void* fault;  // the instruction that was no allowed access to memory, or null
    char message[1000];
};

}  // namespace cuda_on_host

#define HERE_ cuda_on_host::Place file_line = {__builtin_FILE(), __builtin_LINE()}
