#include "timeline.hpp"

namespace iprof {

std::string slice_name(const Operator& op) {
    return op.overload_name.empty() ? op.name : op.name + "." + op.overload_name;
}

const char* category(const Operator& op) {
    return op.kind == OperatorKind::kFunction ? "operator" : kind_name(op.kind);
}

std::string process_name(const Process& process) {
    std::string name = process.info.command.empty() ? "Process " + std::to_string(process.pid) : process.info.command;
    if (process.info.rank >= 0) name = "rank " + std::to_string(process.info.rank) + ": " + name;
    return name + " on " + process.host;
}

std::string thread_name(const Thread& thread) {
    return thread.name.empty() ? "Thread " + std::to_string(thread.tid) : thread.name;
}

const char* log_level_name(int64_t level) {
    if (level >= 50) return "CRITICAL";
    if (level >= 40) return "ERROR";
    if (level >= 30) return "WARNING";
    return level >= 20 ? "INFO" : "DEBUG";
}

Timeline::Timeline(Format format, std::unique_ptr<Output> output)
    : output_(std::move(output)),
      writer_(format == Format::kPerfetto ? perfetto_writer(*output_) : chrome_writer(*output_)) {}

void Timeline::on_event(const Event& event) {
    now_ns_ = event.timestamp_ns;
    if (event.kind == EventKind::kLog) return writer_->log(event);
    pairing_.feed(event);
}

void Timeline::on_operator_begin(const Thread& thread, uint32_t operator_id, int64_t begin_ns) {
    writer_->begin(thread, operators_[operator_id], operator_id, begin_ns);
}

void Timeline::on_operator(const Thread& thread, const OperatorInterval& interval) {
    writer_->end(thread, operators_[interval.operator_id], interval.begin_ns, interval.end_ns, false);
}

void Timeline::on_scope(const Thread& thread, const ScopeInterval& interval) {
    writer_->scope(thread, operators_[interval.operator_id], interval.begin_ns, interval.end_ns, interval.nested,
                   false);
}

void Timeline::on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t timestamp_ns) {
    const Operator& op = operators_[operator_id];
    if (op.kind == OperatorKind::kScope) return writer_->scope(thread, op, timestamp_ns, timestamp_ns, false, true);
    writer_->begin(thread, op, operator_id, timestamp_ns);
    writer_->end(thread, op, timestamp_ns, timestamp_ns, true);
}

// The slice ends where its loss is noticed: at the end of the call around it, or of the trace.
void Timeline::on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t begin_ns) {
    const Operator& op = operators_[operator_id];
    if (op.kind == OperatorKind::kScope) return writer_->scope(thread, op, begin_ns, now_ns_, false, true);
    writer_->end(thread, op, begin_ns, now_ns_, true);
}

void Timeline::finish(const Registry& registry, nlohmann::json& document) {
    pairing_.finish();
    writer_->finish(registry);
    output_->finish();
    document["output_error"] = output_->error();
}

}  // namespace iprof
