#include "tally.hpp"

namespace iprof {

void Tally::on_event(const Event& event) {
    switch (event.kind) {
        case EventKind::kOperatorEntry:
            return pairing_.operator_entry(event);
        case EventKind::kOperatorExit:
            return pairing_.operator_exit(event);
        case EventKind::kScopeEntry:
            return pairing_.scope_entry(event);
        case EventKind::kScopeExit:
            return pairing_.scope_exit(event);
        case EventKind::kProcess:
            return pairing_.restart(*event.thread->process);
        default:
            return;
    }
}

CallStatistics& Tally::row(const Thread& thread, uint32_t operator_id) {
    if (thread.index >= threads_.size()) threads_.resize(thread.index + 1);
    ThreadRows& rows = threads_[thread.index];
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
    row(thread, interval.operator_id).add(interval.duration_ns(), interval.self_ns);
}

void Tally::on_scope(const Thread& thread, const ScopeInterval& interval) {
    row(thread, interval.operator_id).add(interval.duration_ns(), interval.self_ns);
}

void Tally::on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t) {
    ++unpaired_exits_;
    row(thread, operator_id).add_error();
}

void Tally::on_unpaired_entry(const Thread&, uint32_t, int64_t) { ++unpaired_entries_; }

void Tally::finish(const Registry& registry, nlohmann::json& document) {
    pairing_.finish();
    document["unpaired_entries"] = unpaired_entries_;
    document["unpaired_exits"] = unpaired_exits_;
    nlohmann::json& rows = document["rows"] = nlohmann::json::array();
    for (const Thread& thread : registry.threads()) {
        if (thread.index >= threads_.size()) break;
        const ThreadRows& own = threads_[thread.index];
        for (size_t i = 0; i < own.statistics.size(); ++i) {
            const Operator& op = operators_[own.operator_ids[i]];
            const CallStatistics& statistics = own.statistics[i];
            const bool timed = statistics.calls > statistics.errors;
            rows.push_back({{"host", thread.process->host},
                            {"pid", thread.process->pid},
                            {"tid", thread.tid},
                            {"kind", kind_name(op.kind)},
                            {"name", op.name},
                            {"overload", op.overload_name},
                            {"calls", statistics.calls},
                            {"errors", statistics.errors},
                            {"time_ns", statistics.time_ns},
                            {"self_ns", statistics.self_ns},
                            {"min_ns", timed ? statistics.min_ns : 0},
                            {"max_ns", statistics.max_ns}});
        }
    }
}

}  // namespace iprof
