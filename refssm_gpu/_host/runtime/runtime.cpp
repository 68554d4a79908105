// The engine of the host build: runs the blocks of a launch one after another, each CUDA thread as
// a fiber, and says what a kernel did that no GPU would forgive.
#include "../engine.h"
#include "faults.h"
#include "workers.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cuda_on_host {

Thread* current = nullptr;
uint3 block_index;
dim3 block_size, grid_size;

namespace {

bool complete(const Warp& warp, unsigned mask) {
    unsigned wanted = mask & warp.alive;
    return (warp.arrived & wanted) == wanted;
}

// The lanes of this mask are all there: the work is done, and they may go on.
void open_warp(unsigned number, unsigned mask) {
    Warp& warp = warps[number];
    unsigned wanted = mask & warp.alive;
    Worker* lane = &workers[32 * number];
    Worker& first = lane[__builtin_ctz(wanted)];
    void* lanes[32] = {};
    for (unsigned rest = wanted; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        if (lane[i].mask != mask)
            fail_as(lane[i].place, "%s with the mask 0x%08x, which thread %u waits for with 0x%08x",
                    lane[i].function, lane[i].mask, first.number, first.mask);
        if (lane[i].work != first.work || strcmp(lane[i].function, first.function))
            fail_as(lane[i].place, "%s, while thread %u of the same warp calls %s (line %d)",
                    lane[i].function, first.number, first.function, first.place.line);
        lanes[i] = lane[i].mine;
        lane[i].state = Worker::RUNS;
    }
    if (first.work) first.work(lanes);
    warp.arrived &= ~wanted;
    if (wanted == order.lanes(number)) return order.whole_warp_ready(number);
    for (unsigned rest = wanted; rest; rest &= rest - 1)
        order.ready(32 * number + static_cast<unsigned>(__builtin_ctz(rest)));
}

// A lane comes with another mask than those that wait: wrong if each waits for the other.
void compare_masks(const Warp& warp, const Worker* lane, unsigned number) {
    Worker& mine = me();
    for (unsigned rest = warp.arrived & mine.mask; rest; rest &= rest - 1) {
        const Worker& other = lane[__builtin_ctz(rest)];
        if (other.mask >> number & 1 && other.mask != mine.mask)
            fail_as(mine.place, "%s with the mask 0x%08x, while thread %u waits for it with the "
                    "mask 0x%08x (line %d)",
                    mine.function, mine.mask, other.number, other.mask, other.place.line);
    }
}

void entry() {
    arrived(nullptr);
    edges.thread_begins();
    launched->body(launched->arguments);
    edges.thread_ends();
    Worker& mine = me();
    mine.state = Worker::DONE;
    if (waiting) {
        const Worker& other = workers[first_waiting];
        fail_as(other.place, "leaves the kernel, while thread %u waits at __syncthreads",
                other.number);
    }
    Warp& warp = warps[mine.number / 32];
    warp.alive &= ~(1u << mine.number % 32);
    while (warp.arrived) {  // who waited for this one only may go on
        unsigned open = 0;
        for (unsigned rest = warp.arrived; rest && !open; rest &= rest - 1) {
            unsigned mask = workers[(mine.number & ~31u) + __builtin_ctz(rest)].mask;
            if (complete(warp, mask)) open = mask;
        }
        if (!open) break;
        open_warp(mine.number / 32, open);
    }
    if (++left == workers.size()) switch_fiber(mine.fiber, scheduler);
    else pass_on();
    __builtin_unreachable();
}

// ---- A launch, as the scheduler sees it.

Stacks stacks;
size_t blocks_of_batch = 0;

#ifdef CUDA_ON_HOST_TSAN
// Blocks are not ordered among themselves: each block of a batch has fibers of its own. A fiber
// takes ThreadSanitizer milliseconds to make, so the next batch, ordered after this one, has the
// same ones.
constexpr size_t FIBERS = 1024;  // or two blocks
std::vector<void*> fibers;

void* fiber_of(size_t i) {
    while (fibers.size() <= i) fibers.push_back(__tsan_create_fiber(0));
    return fibers[i];
}
#endif

void end_batch() {
    edges.batch_ends();
    blocks_of_batch = 0;
}

bool begin_block() {
    bool own_memory = false;
    size_t first = 0;
#ifdef CUDA_ON_HOST_TSAN
    if (blocks_of_batch >= 2 && (blocks_of_batch + 1) * workers.size() > FIBERS) end_batch();
    own_memory = true;
    first = blocks_of_batch * workers.size();
#endif
    ++blocks_of_batch;
    shared.fresh_block(own_memory);
    for (auto& w : warps) w = Warp{};
    for (unsigned i = 0; i < workers.size(); ++i) {
        char* stack = stacks.at(first + i);
        if (!stack) return false;
        workers[i].state = Worker::RUNS;
        prepare(workers[i].fiber, stack, i, entry);
#ifdef CUDA_ON_HOST_TSAN
        workers[i].fiber.tsan = fiber_of(first + i);
#endif
        warps[i / 32].alive |= 1u << i % 32;
    }
    waiting = left = 0;
    edges.block_begins();
    order.begin(static_cast<unsigned>(workers.size()));
    return true;
}

void run_block(unsigned long long number) {
    const unsigned* only = launched->only;
    block_index.x = only ? only[3 * number] : static_cast<unsigned>(number % grid_size.x);
    block_index.y = only ? only[3 * number + 1]
                         : static_cast<unsigned>(number / grid_size.x % grid_size.y);
    block_index.z = only ? only[3 * number + 2]
                         : static_cast<unsigned>(number / grid_size.x / grid_size.y);
    if (!begin_block()) return say("%s", "no memory for the stacks of the threads");
    current = &workers[order.next()];
    switch_fiber(scheduler, me().fiber);
    ++outcome->blocks;
    if (shared.bytes > outcome->shared) outcome->shared = shared.bytes;
    long long offset = 0;
    size_t size = 0;
    if (outcome->message[0] || !shared.margin_written(offset, size)) return;
    say_block();
    say(": writes byte %lld of a shared array of %zu bytes", offset, size);
}

void fault(int signal, void* instruction) {
    outcome->fault = instruction;
    say_block();
    say(", thread %u: ", current->number);
    say("%s", signal == SIGFPE   ? "integer division by zero"
              : signal == SIGILL ? "stopped at a point that must not be reached"
                                 : "touches memory that belongs to nobody, or is misaligned");
    give_up();
}

char* stack_of_current() { return me().fiber.stack + STACK; }

}  // namespace

void fail(const char* message, Place place) { fail_as(place, "%s", message); }

void wait_for_block(Place place) {
    Worker& mine = me();
    ++outcome->barriers;
    mine.place = place;
    if (left) fail_as(place, "waits at __syncthreads, but %u threads have left the kernel", left);
    const Worker& first = workers[waiting ? first_waiting : mine.number];
    if (!same(first.place, place))
        fail_as(place, "waits at this __syncthreads, while thread %u waits at another (%s:%d)",
                first.number, base(first.place.file), first.place.line);
    if (!waiting++) first_waiting = mine.number;
    mine.state = Worker::AT_BARRIER;
    void* edge = edges.before_barrier();
    if (waiting == workers.size()) {
        waiting = 0;
        edges.barrier_opens();
        for (auto& w : workers) w.state = Worker::RUNS;
        order.all_ready();
    }
    pass_on();
    edges.after(edge);
}

void together(Work work, void* mine_, unsigned mask, const char* function, Place place) {
    Worker& mine = me();
    ++outcome->warp_calls;
    unsigned lane = mine.number % 32, number = mine.number / 32;
    Warp& warp = warps[number];
    mine.work = work, mine.mine = mine_, mine.mask = mask;
    mine.function = function, mine.place = place;
    if (!(mask >> lane & 1))
        fail_as(place, "%s with the mask 0x%08x, which lacks its own lane %u", function, mask,
                lane);
    if (!warp.arrived) warp.mask = mask;
    else if (warp.mask != mask) warp.mask = 0, compare_masks(warp, &workers[32 * number], lane);
    warp.arrived |= 1u << lane;
    mine.state = Worker::IN_WARP;
    if (complete(warp, mask)) open_warp(number, mask);
    pass_on();
}

void wait_for_warp(unsigned mask, Place place) {
    void* edge = edges.before_warp(current->number, mask);
    together(nullptr, nullptr, mask, "__syncwarp", place);
    edges.after(edge);
}

void* shared_array(const void* key, size_t bytes, size_t alignment, Place place) {
    void* found = shared.array(key, bytes, alignment, true);
    if (!found || shared.fixed > STATIC_LIMIT)
        fail_as(place, "more than %zu bytes of shared memory in arrays of a fixed size",
                STATIC_LIMIT);
    return found;
}

void* dynamic_shared_array(size_t alignment, Place place) {
    static const char key = 0;
    void* found = shared.array(&key, launched->shared, alignment, false);
    if (!found) fail_as(place, "more than %zu bytes of shared memory", LIMIT);
    return found;
}

}  // namespace cuda_on_host

// 0 if every block ran to its end; else the outcome has a message.
extern "C" int cuda_on_host_launch(const cuda_on_host::Launch* launch,
                                   cuda_on_host::Outcome* result) {
    using namespace cuda_on_host;
    launched = launch;
    outcome = result;
    *outcome = Outcome{};
    workers.assign(launch->block, Worker{});
    for (unsigned i = 0; i < launch->block; ++i) workers[i].index.x = workers[i].number = i;
    block_size = {launch->block, 1, 1};
    grid_size = {launch->grid[0], launch->grid[1], launch->grid[2]};
    unsigned long long blocks = launch->only_count;
    if (!launch->only) blocks = 1ull * grid_size.x * grid_size.y * grid_size.z;
    order.seed(launch->order);
#ifdef CUDA_ON_HOST_TSAN
    scheduler.tsan = __tsan_get_current_fiber();
#endif
    Faults faults(fault, stack_of_current);
#if defined(__SSE2__)
    unsigned control = _mm_getcsr();
    if (launch->flush) _mm_setcsr(control | 0x8040);  // results and operands
#endif
    for (unsigned long long i = 0; i < blocks && !outcome->message[0]; ++i)
        run_block(order.block(i, blocks));
#if defined(__SSE2__)
    _mm_setcsr(control);
#endif
    end_batch();
    outcome->threads = outcome->blocks * launch->block;
    return outcome->message[0] != 0;
}
