#include "histogram.hpp"

#include <algorithm>

namespace iprof {

unsigned Histogram::index_of(uint64_t duration_ns) {
    if (duration_ns < (1U << kLinearBits)) return static_cast<unsigned>(duration_ns);
    const unsigned shift = 63 - static_cast<unsigned>(__builtin_clzll(duration_ns)) - kStepBits;
    const auto step = static_cast<unsigned>(duration_ns >> shift);  // from 32 to 63
    return (shift << kStepBits) + step;
}

int64_t Histogram::low_of(unsigned index) {
    if (index < (1U << kLinearBits)) return index;
    const unsigned shift = (index >> kStepBits) - 1;
    return static_cast<int64_t>(index - (shift << kStepBits)) << shift;
}

void Histogram::add(int64_t duration_ns) {
    const unsigned index = index_of(static_cast<uint64_t>(std::max<int64_t>(duration_ns, 0)));
    if (counts_.empty()) first_ = index;
    if (index < first_) {
        counts_.insert(counts_.begin(), first_ - index, 0);
        first_ = index;
    }
    if (index - first_ >= counts_.size()) counts_.resize(index - first_ + 1);
    ++counts_[index - first_];
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
    std::vector<Bucket> result;
    for (unsigned i = 0; i < counts_.size(); ++i) {
        if (counts_[i] == 0) continue;
        result.push_back({low_of(first_ + i), low_of(first_ + i + 1) - 1, counts_[i]});
    }
    return result;
}

}  // namespace iprof
