// Fibers: a stack each, kept from launch to launch, and the switch from one to another.
//
// The sanitizers must know of each switch. ThreadSanitizer sees every fiber as a thread of its own;
// a switch orders no memory, so only __syncthreads and __syncwarp do.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#ifdef CUDA_ON_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef CUDA_ON_HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_on_host {

constexpr size_t STACK = 256 << 10, GUARD = 4096;

struct Fiber {
#if defined(__x86_64__)
    void* stack_pointer = nullptr;
#else
    ucontext_t context;
#endif
    char* stack = nullptr;
#ifdef CUDA_ON_HOST_TSAN
    void* tsan = nullptr;
#endif
};

#if defined(__x86_64__)
// swapcontext() makes two calls of the system; this makes none. The registers that a function must
// leave as they are go onto the stack; the control words of floating point stay.
extern "C" void cuda_on_host_switch(void** save, void* load);
asm(R"(
.text
.type cuda_on_host_switch,@function
cuda_on_host_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.size cuda_on_host_switch, .-cuda_on_host_switch
)");
#endif

#ifdef CUDA_ON_HOST_ASAN
// The scheduler's stack is the thread's own: where it is, the first switch away from it tells.
inline const void* own_stack = nullptr;
inline size_t own_size = 0;
#endif

// Called where a fiber goes on after a switch.
inline void arrived([[maybe_unused]] void* left) {
#ifdef CUDA_ON_HOST_ASAN
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(left, &bottom, &size);
    if (!own_size) own_stack = bottom, own_size = size;
#endif
}

inline void switch_fiber(Fiber& from, Fiber& to) {
    void* left = nullptr;
#ifdef CUDA_ON_HOST_TSAN
    __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef CUDA_ON_HOST_ASAN
    __sanitizer_start_switch_fiber(&left, to.stack ? to.stack : own_stack,
                                   to.stack ? STACK : own_size);
#endif
#if defined(__x86_64__)
    cuda_on_host_switch(&from.stack_pointer, to.stack_pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
    arrived(left);
}

// The stacks: one above the other, with a page between that may not be touched.
class Stacks {
  public:
    char* at(size_t i) {
        while (stacks_.size() <= i) {
            void* place = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (place == MAP_FAILED) return nullptr;
            mprotect(place, GUARD, PROT_NONE);
            stacks_.push_back(static_cast<char*>(place) + GUARD);
        }
        return stacks_[i];
    }

  private:
    std::vector<char*> stacks_;
};

// Makes the fiber start with `entry` when it is switched to.
inline void prepare(Fiber& fiber, char* stack, [[maybe_unused]] size_t number, void (*entry)()) {
    fiber.stack = stack;
#ifdef CUDA_ON_HOST_ASAN
    __asan_unpoison_memory_region(stack, STACK);
#endif
#if defined(__x86_64__)
    // tops at different places of their pages: else all lie in the same few lines of the cache
    size_t top = STACK - number % 32 * 128;
    auto** words = reinterpret_cast<void**>(stack + top) - 3;  // as after a call
    words[0] = nullptr;  // where a debugger's walk up the stack ends
    *--words = reinterpret_cast<void*>(entry);
    fiber.stack_pointer = words - 6;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#endif
}

}  // namespace cuda_on_host
