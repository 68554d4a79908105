// What orders memory, for ThreadSanitizer: the start and the end of a batch of blocks,
// __syncthreads, __syncwarp. Each of them has an address, which those who come release and those
// who go on acquire. A barrier has two, in turn: who runs ahead to the next one must not order
// what he wrote since for those that still leave this one. Without ThreadSanitizer: nothing.
#pragma once
#ifdef CUDA_ON_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#include <stdint.h>

#include <memory>
#include <vector>
#endif

namespace cuda_on_host {

class Edges {
  public:
#ifdef CUDA_ON_HOST_TSAN
    void block_begins() {
        blocks_.push_back(std::make_unique<Block>());
        here_ = blocks_.back().get();
        for (auto& p : parity_) p = 0;
        __tsan_release(&here_->start);
    }
    void thread_begins() { __tsan_acquire(&here_->start); }
    void thread_ends() { __tsan_release(&here_->end); }
    void batch_ends() {
        for (auto& b : blocks_) __tsan_acquire(&b->end);
        blocks_.clear();
    }
    void* before_barrier() {
        void* edge = &here_->barrier[here_->turn];
        __tsan_release(edge);
        return edge;
    }
    void barrier_opens() { here_->turn ^= 1; }
    void* before_warp(unsigned thread, unsigned mask) {
        if (!mask) return nullptr;
        auto first = static_cast<unsigned>(__builtin_ctz(mask));
        unsigned turn = (parity_[thread] ^= 1u << first) >> first & 1;
        void* edge = &here_->warp[thread / 32][first][turn];
        __tsan_release(edge);
        return edge;
    }
    void after(void* edge) { __tsan_acquire(edge); }

  private:
    struct Block {
        uint64_t start = 0, end = 0, barrier[2] = {}, warp[32][32][2] = {};
        unsigned turn = 0;
    };
    std::vector<std::unique_ptr<Block>> blocks_;
    Block* here_ = nullptr;
    unsigned parity_[1024] = {};
#else
    void block_begins() {}
    void thread_begins() {}
    void thread_ends() {}
    void batch_ends() {}
    void* before_barrier() { return nullptr; }
    void barrier_opens() {}
    void* before_warp(unsigned, unsigned) { return nullptr; }
    void after(void*) {}
#endif
};

}  // namespace cuda_on_host
