// Shared memory: an arena that each block finds fresh. All bytes of an array are 0xff when the
// first thread of a block asks for it: NaN as a float, a double or a half, −1 as an integer.
// Around each array lies a margin that nobody may write; AddressSanitizer watches over it, and
// without it a look at the end of each block does.
#pragma once
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifdef CUDA_ON_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_on_host {

// What a block may have: the static arrays, and all with a launch that asks for it.
constexpr size_t STATIC_LIMIT = 48 << 10, LIMIT = 227 << 10;
constexpr size_t MARGIN = 128, ARENA = 320 << 10;
constexpr int ARRAYS = 64;

class Shared {
  public:
    size_t bytes = 0, fixed = 0;  // in use; of them in arrays with a size of their own

    // An arena no other block had. Under ThreadSanitizer all stay until the end of a batch of
    // blocks: memory that another block wrote would look like a race.
    void fresh_block([[maybe_unused]] bool own_memory) {
        count_ = 0;
        used_ = bytes = fixed = 0;
        if (arena_ && !own_memory) return poison();
        void* place = mmap(nullptr, ARENA, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena_ = static_cast<unsigned char*>(place);
        poison();
    }

    // The array of this key, or null for one that has no room.
    void* array(const void* key, size_t size, size_t alignment, bool of_own_size) {
        for (int i = 0; i < count_; ++i)
            if (keys_[i] == key) return arena_ + starts_[i];
        if (alignment < 16) alignment = 16;
        size_t start = (used_ + MARGIN + alignment - 1) & ~(alignment - 1);
        if (start + size + MARGIN > ARENA || count_ == ARRAYS) return nullptr;
        unpoison(start, size);
        fill(start, size, 0xff);
#ifndef CUDA_ON_HOST_ASAN
        fill(used_, start - used_, MARK);
        fill(start + size, MARGIN, MARK);
#endif
        keys_[count_] = key;
        starts_[count_] = start;
        sizes_[count_++] = size;
        used_ = start + size + MARGIN;
        bytes += size;
        if (of_own_size) fixed += size;
        return arena_ + start;
    }

    // Bytes from the array's start to the first written byte of a margin; false if there is none.
    bool margin_written(long long& offset, size_t& size) const {
#ifndef CUDA_ON_HOST_ASAN
        for (int i = 0; i < count_; ++i) {
            size_t end = starts_[i] + sizes_[i];
            size_t before = starts_[i] < MARGIN ? starts_[i] : MARGIN;
            for (size_t k = starts_[i] - before; k < end + MARGIN; ++k) {
                if (k == starts_[i]) k = end;
                if (arena_[k] == MARK) continue;
                offset = static_cast<long long>(k) - static_cast<long long>(starts_[i]);
                size = sizes_[i];
                return true;
            }
        }
#endif
        return (void)offset, (void)size, false;
    }

  private:
    static constexpr unsigned char MARK = 0xa5;
    unsigned char* arena_ = nullptr;
    size_t used_ = 0, starts_[ARRAYS], sizes_[ARRAYS];
    const void* keys_[ARRAYS];
    int count_ = 0;

    void fill(size_t first, size_t size, unsigned char value) {
#ifdef CUDA_ON_HOST_TSAN
        // ThreadSanitizer watches memset; it would be a write by one thread of the block
        volatile unsigned char* bytes = arena_ + first;
        for (size_t i = 0; i < size; ++i) bytes[i] = value;
#else
        memset(arena_ + first, value, size);
#endif
    }
    void poison() {
#ifdef CUDA_ON_HOST_ASAN
        __asan_poison_memory_region(arena_, ARENA);
#endif
    }
    void unpoison([[maybe_unused]] size_t start, [[maybe_unused]] size_t size) {
#ifdef CUDA_ON_HOST_ASAN
        __asan_unpoison_memory_region(arena_ + start, size);
#endif
    }
};

}  // namespace cuda_on_host
