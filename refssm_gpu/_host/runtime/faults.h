// A kernel that touches memory it does not own must not end the process: during a launch, the
// signal of such a fault goes on in a function of ours, on the stack of the fiber that did it.
#pragma once
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

namespace cuda_on_host {

class Faults {
  public:
    // `resume` runs instead of the rest of the thread, on the stack that `stack` says.
    using Resume = void (*)(int signal, void* instruction);
    using Stack = char* (*)();

#if defined(__x86_64__) && !defined(CUDA_ON_HOST_ASAN) && !defined(CUDA_ON_HOST_TSAN)
    Faults(Resume resume, Stack stack) {
        resume_ = resume;
        stack_ = stack;
        stack_t own = {};
        static char space[64 << 10];
        own.ss_sp = space;
        own.ss_size = sizeof space;
        sigaltstack(&own, &old_stack_);
        struct sigaction action = {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &action, &old_[i]);
    }
    ~Faults() {
        for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &old_[i], nullptr);
        sigaltstack(&old_stack_, nullptr);
    }

  private:
    static constexpr int SIGNALS[4] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction old_[4];
    stack_t old_stack_;
    static inline Resume resume_;
    static inline Stack stack_;

    static void handle(int signal, siginfo_t*, void* context) {
        auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
        auto instruction = registers[REG_RIP];
        registers[REG_RSP] = reinterpret_cast<greg_t>(stack_()) - 8;  // as after a call
        registers[REG_RDI] = signal;
        registers[REG_RSI] = instruction;
        registers[REG_RIP] = reinterpret_cast<greg_t>(resume_);
    }
#else
    Faults(Resume, Stack) {}  // a sanitizer says more about it; elsewhere the process ends
#endif
};

}  // namespace cuda_on_host
