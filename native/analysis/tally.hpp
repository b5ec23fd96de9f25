// The tally: calls, time and self time of each operator of each thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis.hpp"
#include "histogram.hpp"
#include "pairing.hpp"

namespace iprof {

// What calls of one operator are kept apart by, beside the thread.
enum class Grouping { kOperator, kScope, kPhase };
// The grouping of a name: "op", "scope" or "phase"; throws std::invalid_argument for any other.
Grouping grouping(const std::string& name);

// Durations of the calls of one operator on one thread. Calls without an entry count as calls and as errors,
// and have no duration.
struct CallStatistics {
    uint64_t calls = 0;
    uint64_t errors = 0;
    int64_t time_ns = 0;
    int64_t self_ns = 0;
    int64_t min_ns = INT64_MAX;
    int64_t max_ns = 0;
    unsigned __int128 squares_ns2 = 0;  // exact, so that parts of a trace can be added up in any order
    Histogram histogram;                // empty unless wanted

    void add(int64_t duration_ns, int64_t own_ns, bool with_histogram) {
        ++calls;
        time_ns += duration_ns;
        self_ns += own_ns;
        min_ns = std::min(min_ns, duration_ns);
        max_ns = std::max(max_ns, duration_ns);
        squares_ns2 += static_cast<unsigned __int128>(duration_ns) * static_cast<unsigned __int128>(duration_ns);
        if (with_histogram) histogram.add(duration_ns);
    }
    void add_error() {
        ++calls;
        ++errors;
    }
};

class Tally : public Analysis, private IntervalListener {
public:
    Tally(Grouping grouping, bool with_histograms) : grouping_(grouping), with_histograms_(with_histograms) {}

    void on_event(const Event& event) override;
    void finish(const Registry& registry, nlohmann::json& document) override;

private:
    // Statistics of a group of a thread, in the order its operators first ended; memory grows with the
    // operators it really used.
    struct Rows {
        std::vector<uint32_t> place;  // by operator id: index in statistics + 1, or 0
        std::vector<uint32_t> operator_ids;
        std::vector<CallStatistics> statistics;
    };
    static constexpr uint32_t kNoGroup = UINT32_MAX;
    // The groups of a thread, in the order they first came up.
    struct ThreadRows {
        std::vector<uint32_t> groups;
        std::vector<Rows> rows;
        std::unordered_map<uint32_t, uint32_t> place;  // by group: index in rows
        uint32_t last_group = kNoGroup - 1;
        uint32_t last_place = 0;
    };

    void on_operator(const Thread& thread, const OperatorInterval& interval) override;
    void on_scope(const Thread& thread, const ScopeInterval& interval) override;
    void on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t timestamp_ns) override;
    void on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;
    CallStatistics& statistics_of(const Thread& thread, uint32_t group, uint32_t operator_id);
    static Rows& rows_of(ThreadRows& thread, uint32_t group);
    uint32_t group_of(const CallContext& context) const;
    std::string group_name(uint32_t group) const;
    nlohmann::json describe(const Thread& thread, uint32_t group, uint32_t operator_id,
                            const CallStatistics& statistics) const;

    Grouping grouping_;
    bool with_histograms_;

    OperatorTable operators_;
    Pairing pairing_{operators_, *this};
    std::vector<ThreadRows> threads_;
    uint64_t unpaired_entries_ = 0;
    uint64_t unpaired_exits_ = 0;
};

}  // namespace iprof
