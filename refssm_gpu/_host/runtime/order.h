// Who goes on next: the ready thread of the highest rank, found in two steps (a warp, a lane), so
// that one warp runs as far as it can before the next one starts.
//
// order 0: thread 0 first; 1: the last thread first; above: a seed. Then warps and lanes have
// random ranks, and now and then two warps change places and one of them shuffles its lanes.
#pragma once
#include <stdint.h>

namespace cuda_on_host {

class Order {
  public:
    void seed(unsigned order) {
        order_ = order;
        state_ = 0x9e3779b97f4a7c15ull * (order + 1ull);
    }

    // A block of `threads` threads begins: all are ready.
    void begin(unsigned threads) {
        warps_ = (threads + 31) / 32;
        for (unsigned w = 0; w < warps_; ++w) {
            lanes_[w] = threads - 32 * w < 32 ? threads - 32 * w : 32;
            place_warp(w, order_ == 1 ? warps_ - 1 - w : w);
            for (unsigned i = 0; i < lanes_[w]; ++i)
                place_lane(w, i, order_ == 1 ? lanes_[w] - 1 - i : i);
        }
        ready_warps_ = 0;
        for (unsigned w = 0; w < warps_; ++w) ready_[w] = 0;
        if (order_ > 1) {
            for (unsigned w = warps_; w > 1; --w) swap_warps(w - 1, random() % w);
            for (unsigned w = 0; w < warps_; ++w) shuffle_lanes(w);
        }
        all_ready();
    }

    void all_ready() {
        for (unsigned w = 0; w < warps_; ++w) whole_warp_ready(w);
    }
    void whole_warp_ready(unsigned warp) {
        unsigned place = place_of_warp_[warp];
        ready_[place] = 0xffffffffu >> (32 - lanes_[warp]);
        ready_warps_ |= 1u << place;
    }
    void ready(unsigned thread) {
        unsigned place = place_of_warp_[thread / 32];
        ready_[place] |= 1u << place_of_lane_[thread / 32][thread % 32];
        ready_warps_ |= 1u << place;
    }
    bool any() const { return ready_warps_ != 0; }
    unsigned lanes(unsigned warp) const { return 0xffffffffu >> (32 - lanes_[warp]); }

    // Takes the next thread off the ready ones.
    unsigned next() {
        if (order_ > 1 && random() % 64 == 0) change();
        auto place = static_cast<unsigned>(__builtin_ctz(ready_warps_));
        auto rank = static_cast<unsigned>(__builtin_ctz(ready_[place]));
        ready_[place] &= ready_[place] - 1;
        if (!ready_[place]) ready_warps_ &= ready_warps_ - 1;
        unsigned warp = warp_at_[place];
        return 32 * warp + lane_at_[warp][rank];
    }

    // The block that runs as number i of n.
    uint64_t block(uint64_t i, uint64_t n) {
        if (order_ == 0) return i;
        if (order_ == 1) return n - 1 - i;
        if (i == 0) draw_stride(n);
        return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * stride_ + first_) % n);
    }

  private:
    unsigned order_ = 0, warps_ = 0, ready_warps_ = 0;
    unsigned ready_[32], lanes_[32], warp_at_[32], place_of_warp_[32];
    unsigned lane_at_[32][32], place_of_lane_[32][32];
    uint64_t state_ = 1, stride_ = 1, first_ = 0;

    uint64_t random() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ >> 11;
    }
    void place_warp(unsigned warp, unsigned place) {
        warp_at_[place] = warp;
        place_of_warp_[warp] = place;
    }
    void place_lane(unsigned warp, unsigned lane, unsigned place) {
        lane_at_[warp][place] = lane;
        place_of_lane_[warp][lane] = place;
    }
    void swap_warps(unsigned a, unsigned b) {
        unsigned warp_a = warp_at_[a], warp_b = warp_at_[b], bits = ready_[a];
        place_warp(warp_a, b);
        place_warp(warp_b, a);
        ready_[a] = ready_[b];
        ready_[b] = bits;
        ready_warps_ &= ~(1u << a | 1u << b);
        if (ready_[a]) ready_warps_ |= 1u << a;
        if (ready_[b]) ready_warps_ |= 1u << b;
    }
    void shuffle_lanes(unsigned warp) {
        unsigned& bits = ready_[place_of_warp_[warp]];
        for (unsigned i = lanes_[warp]; i > 1; --i) {
            unsigned a = i - 1, b = static_cast<unsigned>(random() % i);
            unsigned lane_a = lane_at_[warp][a], lane_b = lane_at_[warp][b];
            place_lane(warp, lane_a, b);
            place_lane(warp, lane_b, a);
            unsigned differ = (bits >> a ^ bits >> b) & (a != b);
            bits ^= differ << a | differ << b;
        }
    }
    void change() {
        auto a = static_cast<unsigned>(random() % warps_);
        auto b = static_cast<unsigned>(random() % warps_);
        if (a != b) swap_warps(a, b);
        shuffle_lanes(warp_at_[a]);
    }
    void draw_stride(uint64_t n) {
        do stride_ = random() % n;
        while (n > 1 && divisor(stride_, n) != 1);
        first_ = random() % n;
    }
    static uint64_t divisor(uint64_t a, uint64_t b) {
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        return a;
    }
};

}  // namespace cuda_on_host
