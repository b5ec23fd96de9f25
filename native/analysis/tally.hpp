// The tally: calls, time and self time of each operator of each thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis.hpp"
#include "pairing.hpp"

namespace iprof {

// Durations of the calls of one operator on one thread. Calls without an entry count as calls and as errors, and have
// no duration.
struct CallStatistics {
    uint64_t calls = 0;
    uint64_t errors = 0;
    int64_t time_ns = 0;
    int64_t self_ns = 0;
    int64_t min_ns = INT64_MAX;
    int64_t max_ns = 0;

    void add(int64_t duration_ns, int64_t own_ns) {
        ++calls;
        time_ns += duration_ns;
        self_ns += own_ns;
        min_ns = std::min(min_ns, duration_ns);
        max_ns = std::max(max_ns, duration_ns);
    }
    void add_error() {
        ++calls;
        ++errors;
    }
};

class Tally : public Analysis, private IntervalListener {
public:
    void on_event(const Event& event) override;
    void finish(const Registry& registry, nlohmann::json& document) override;

private:
    // Statistics of a thread, in the order its operators first ended; memory grows with the operators it really used.
    struct ThreadRows {
        std::vector<uint32_t> place;  // by operator id: index in rows + 1, or 0
        std::vector<uint32_t> operator_ids;
        std::vector<CallStatistics> statistics;
    };

    void on_operator(const Thread& thread, const OperatorInterval& interval) override;
    void on_scope(const Thread& thread, const ScopeInterval& interval) override;
    void on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t timestamp_ns) override;
    void on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;
    CallStatistics& row(const Thread& thread, uint32_t operator_id);

    OperatorTable operators_;
    Pairing pairing_{operators_, *this};
    std::vector<ThreadRows> threads_;
    uint64_t unpaired_entries_ = 0;
    uint64_t unpaired_exits_ = 0;
};

}  // namespace iprof
