// The timeline: every call as a slice on the track of its thread.
#pragma once

#include <cstdint>
#include <memory>

#include "analysis.hpp"
#include "output.hpp"
#include "pairing.hpp"

namespace iprof {

// A format of timelines. Operators of a thread nest; they begin and end in time order.
class TimelineWriter {
public:
    virtual ~TimelineWriter() = default;
    virtual void begin(const Thread& thread, const Operator& op, uint32_t operator_id, int64_t at_ns) = 0;
    virtual void end(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool unpaired) = 0;
    // A scope, told at its end: `nested` on the thread's track, else on a track of its own.
    virtual void scope(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool nested,
                       bool unpaired) = 0;
    virtual void log(const Event& event) = 0;
    // Nothing follows; the names of all threads are known now.
    virtual void finish(const Registry& registry) = 0;
};

std::unique_ptr<TimelineWriter> perfetto_writer(Output& output);
std::unique_ptr<TimelineWriter> chrome_writer(Output& output);

// The name that a slice bears: the overload joined to it.
std::string slice_name(const Operator& op);
// What an outputs calls a process: its rank and its command, on which host.
std::string process_name(const Process& process);
std::string thread_name(const Thread& thread);
// The category of a slice: "operator", "backward" or "scope".
const char* category(const Operator& op);
// The name of a level of Python's logging.
const char* log_level_name(int64_t level);

class Timeline : public Analysis, private IntervalListener {
public:
    enum class Format { kPerfetto, kChrome };
    Timeline(Format format, std::unique_ptr<Output> output);

    void on_event(const Event& event) override;
    bool wants_more() const override { return output_->error() == 0; }
    void finish(const Registry& registry, nlohmann::json& document) override;

private:
    void on_operator_begin(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;
    void on_operator(const Thread& thread, const OperatorInterval& interval) override;
    void on_scope(const Thread& thread, const ScopeInterval& interval) override;
    void on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t timestamp_ns) override;
    void on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;

    std::unique_ptr<Output> output_;
    std::unique_ptr<TimelineWriter> writer_;
    OperatorTable operators_;
    Pairing pairing_{operators_, *this};
    int64_t now_ns_ = 0;
};

}  // namespace iprof
