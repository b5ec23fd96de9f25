// A histogram of durations whose memory depends on their range, not on their number, and which merges
// exactly.
#pragma once

#include <cstdint>
#include <vector>

namespace iprof {

// Durations below 64 ns have a bucket each; above, every power of two is divided into 32 buckets, so that a
// bucket's middle is at most 1.6 % from any duration in it.
class Histogram {
public:
    struct Bucket {
        int64_t low_ns;
        int64_t high_ns;  // included
        uint64_t count;
    };

    void add(int64_t duration_ns);
    std::vector<Bucket> buckets() const;  // those that are not empty, in order

private:
    static constexpr unsigned kLinearBits = 6;
    static constexpr unsigned kStepBits = kLinearBits - 1;

    static unsigned index_of(uint64_t duration_ns);
    static int64_t low_of(unsigned index);

    unsigned first_ = 0;  // the index of counts_[0]
    std::vector<uint64_t> counts_;
};

}  // namespace iprof
