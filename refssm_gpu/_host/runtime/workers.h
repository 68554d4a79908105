// The state of the engine, and the messages about it.
#pragma once
#include <stdio.h>
#include <string.h>

#include <vector>

#include "edges.h"
#include "../engine.h"
#include "fibers.h"
#include "order.h"
#include "shared.h"

namespace cuda_on_host {

struct Worker : Thread {
    enum State { RUNS, AT_BARRIER, IN_WARP, DONE } state;
    Fiber fiber;
    Work work;
    void* mine;
    unsigned mask;
    const char* function;
    Place place;
};

struct Warp {
    unsigned arrived = 0, alive = 0;
    unsigned mask = 0;  // of the waiting lanes, while they all have the same
};

inline const Launch* launched = nullptr;
inline Outcome* outcome = nullptr;
inline std::vector<Worker> workers;
inline Warp warps[32];
inline Shared shared;
inline Order order;
inline Edges edges;
inline Fiber scheduler;
inline unsigned waiting, left, first_waiting;  // threads at the barrier; that left the kernel

inline Worker& me() { return *static_cast<Worker*>(current); }

inline const char* base(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

inline bool same(Place a, Place b) { return a.line == b.line && !strcmp(a.file, b.file); }

[[noreturn]] inline void give_up() {
    edges.thread_ends();
    switch_fiber(me().fiber, scheduler);
    __builtin_unreachable();
}

template <class... A>
void say(const char* format, A... values) {
    size_t used = strlen(outcome->message);
    snprintf(outcome->message + used, sizeof outcome->message - used, format, values...);
}

inline void say_block() {
    auto b = block_index;
    say("%s: block (%u, %u, %u)", launched->kernel, b.x, b.y, b.z);
}

// What the running thread did wrong, with its place: for "thread 5: <what> (file:line)".
template <class... A>
[[noreturn]] void fail_as(Place place, const char* format, A... values) {
    say_block();
    say(", thread %u: ", current->number);
    say(format, values...);
    say(" (%s:%d)", base(place.file), place.line);
    give_up();
}

// Nobody can go on: where do they wait? A thread that waits where the one before it does is
// left out.
inline void deadlock() {
    say_block();
    say("%s", ": deadlock");
    const Worker* last = nullptr;
    for (auto& w : workers) {
        if (w.state != Worker::AT_BARRIER && w.state != Worker::IN_WARP) continue;
        if (last && same(last->place, w.place) && last->mask == w.mask) continue;
        last = &w;
        const char* function = w.state == Worker::IN_WARP ? w.function : "__syncthreads";
        say("; thread %u waits in %s", w.number, function);
        if (w.state == Worker::IN_WARP) say(" for the lanes 0x%08x of its warp", w.mask);
        say(" (%s:%d)", base(w.place.file), w.place.line);
    }
}

// The running thread stops here; another one, or the same, goes on.
inline void pass_on() {
    Worker& from = me();
    if (!order.any()) {
        deadlock();
        give_up();
    }
    Worker& next = workers[order.next()];
    if (&next == &from) return;
    ++outcome->switches;
    current = &next;
    switch_fiber(from.fiber, next.fiber);
}

}  // namespace cuda_on_host
