#include "tally.hpp"

#include <stdexcept>

namespace iprof {

namespace {

// JSON has no integers of this size: as decimal text.
std::string to_decimal(unsigned __int128 value) {
    std::string digits;
    do {
        digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    return digits;
}

}  // namespace

Grouping grouping(const std::string& name) {
    if (name == "op") return Grouping::kOperator;
    if (name == "scope") return Grouping::kScope;
    if (name == "phase") return Grouping::kPhase;
    throw std::invalid_argument("unknown grouping " + name);
}

void Tally::on_event(const Event& event) {
    pairing_.feed(event);
}

uint32_t Tally::group_of(const CallContext& context) const {
    switch (grouping_) {
        case Grouping::kScope:
            return context.scope;
        case Grouping::kPhase:
            return static_cast<uint32_t>(context.phase);
        default:
            return kNoGroup;
    }
}

std::string Tally::group_name(uint32_t group) const {
    if (group == kNoGroup) return "";
    return grouping_ == Grouping::kScope ? operators_[group].name : phase_name(static_cast<Phase>(group));
}

Tally::Rows& Tally::rows_of(ThreadRows& thread, uint32_t group) {
    if (group != thread.last_group) {
        const auto [known, added] = thread.place.emplace(group, static_cast<uint32_t>(thread.rows.size()));
        if (added) {
            thread.groups.push_back(group);
            thread.rows.emplace_back();
        }
        thread.last_group = group;
        thread.last_place = known->second;
    }
    return thread.rows[thread.last_place];
}

CallStatistics& Tally::statistics_of(const Thread& thread, uint32_t group, uint32_t operator_id) {
    if (thread.index >= threads_.size()) threads_.resize(thread.index + 1);
    Rows& rows = rows_of(threads_[thread.index], group);
    if (operator_id >= rows.place.size()) rows.place.resize(operator_id + 1);
    uint32_t& place = rows.place[operator_id];
    if (place == 0) {
        rows.operator_ids.push_back(operator_id);
        rows.statistics.emplace_back();
        place = static_cast<uint32_t>(rows.statistics.size());
    }
    return rows.statistics[place - 1];
}

void Tally::on_operator(const Thread& thread, const OperatorInterval& interval) {
    statistics_of(thread, group_of(interval.context), interval.operator_id)
        .add(interval.duration_ns(), interval.self_ns, with_histograms_);
}

void Tally::on_scope(const Thread& thread, const ScopeInterval& interval) {
    statistics_of(thread, kNoGroup, interval.operator_id)
        .add(interval.duration_ns(), interval.self_ns, with_histograms_);
}

void Tally::on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t) {
    ++unpaired_exits_;
    statistics_of(thread, kNoGroup, operator_id).add_error();
}

void Tally::on_unpaired_entry(const Thread&, uint32_t, int64_t) {
    ++unpaired_entries_;
}

nlohmann::json Tally::describe(const Thread& thread, uint32_t group, uint32_t operator_id,
                               const CallStatistics& statistics) const {
    const Operator& op = operators_[operator_id];
    const bool timed = statistics.calls > statistics.errors;
    nlohmann::json row = {{"host", thread.process->host},
                          {"pid", thread.process->pid},
                          {"tid", thread.tid},
                          {"kind", kind_name(op.kind)},
                          {"name", op.name},
                          {"overload", op.overload_name},
                          {"group", group_name(group)},
                          {"calls", statistics.calls},
                          {"errors", statistics.errors},
                          {"time_ns", statistics.time_ns},
                          {"self_ns", statistics.self_ns},
                          {"min_ns", timed ? statistics.min_ns : 0},
                          {"max_ns", statistics.max_ns},
                          {"squares_ns2", to_decimal(statistics.squares_ns2)}};
    if (with_histograms_) {
        nlohmann::json& buckets = row["histogram"] = nlohmann::json::array();
        for (const Histogram::Bucket& bucket : statistics.histogram.buckets()) {
            buckets.push_back({bucket.low_ns, bucket.high_ns, bucket.count});
        }
    }
    return row;
}

void Tally::finish(const Registry& registry, nlohmann::json& document) {
    pairing_.finish();
    document["unpaired_entries"] = unpaired_entries_;
    document["unpaired_exits"] = unpaired_exits_;
    nlohmann::json& rows = document["rows"] = nlohmann::json::array();
    for (const Thread& thread : registry.threads()) {
        if (thread.index >= threads_.size()) break;
        const ThreadRows& own = threads_[thread.index];
        for (size_t i = 0; i < own.rows.size(); ++i) {
            const Rows& group = own.rows[i];
            for (size_t j = 0; j < group.statistics.size(); ++j) {
                rows.push_back(describe(thread, own.groups[i], group.operator_ids[j], group.statistics[j]));
            }
        }
    }
}

}  // namespace iprof
