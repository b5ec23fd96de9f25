// Chrome's JSON trace format, as Chrome, Perfetto, TensorBoard, HTA and speedscope read it.
//
// Source: the document "Trace Event Format". Times are microseconds with three decimals, from the first event on: those
// since the epoch would not fit a double. "baseTimeNanoseconds" has the rest, as in torch.profiler's files.
#include <cinttypes>
#include <cstdio>
#include <unordered_map>

#include "timeline.hpp"

namespace iprof {

namespace {

void append_number(std::string& text, int64_t value) {
    text += std::to_string(value);
}

void append_string(std::string& text, std::string_view value) {
    text += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class ChromeWriter : public TimelineWriter {
public:
    explicit ChromeWriter(Output& output) : output_(output) {}

    void begin(const Thread&, const Operator&, uint32_t, int64_t at_ns) override { start(at_ns); }

    void end(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool unpaired) override {
        write_complete(thread, op, begin_ns, end_ns, unpaired);
    }

    void scope(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool nested,
               bool unpaired) override {
        start(begin_ns);
        if (nested) return write_complete(thread, op, begin_ns, end_ns, unpaired);
        ++async_id_;
        write_async(thread, op, 'b', begin_ns, unpaired);
        write_async(thread, op, 'e', end_ns, false);
    }

    void log(const Event& event) override {
        start(event.timestamp_ns);
        open_event('i', *event.thread, event.timestamp_ns);
        line_ += ",\"s\":\"t\",\"cat\":\"log\",\"name\":";
        append_string(line_, event.name);
        line_ += ",\"args\":{\"logger\":";
        append_string(line_, event.overload_name);
        line_ += ",\"level\":";
        append_string(line_, log_level_name(event.log_level));
        line_ += "}}";
        output_.write(line_);
    }

    void finish(const Registry& registry) override {
        start(0);
        for (const Process& process : registry.processes()) {
            if (process.recorded) write_name("process_name", process, process.pid, process_name(process));
        }
        for (const Thread& thread : registry.threads()) {
            if (thread.process->recorded) write_name("thread_name", *thread.process, thread.tid, thread_name(thread));
        }
        output_.write("\n]}\n");
    }

private:
    void start(int64_t at_ns) {
        if (started_) return;
        started_ = true;
        base_ns_ = at_ns;
        output_.write("{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":" + std::to_string(at_ns) +
                      ",\"traceEvents\":[");
    }

    // Processes are known by their pid alone: those of further hosts are moved out of the way.
    int64_t unique_id(const Process& process, int64_t id) {
        constexpr int64_t kPidLimit = 1 << 22;
        return id + hosts_.emplace(process.host, static_cast<int64_t>(hosts_.size())).first->second * kPidLimit;
    }

    void append_time(int64_t time_ns) {
        char text[32];
        const int64_t size_ns = time_ns < 0 ? -time_ns : time_ns;
        snprintf(text, sizeof text, "%s%" PRId64 ".%03d", time_ns < 0 ? "-" : "", size_ns / 1000,
                 static_cast<int>(size_ns % 1000));
        line_ += text;
    }

    void open_line() {
        line_ = first_ ? "\n" : ",\n";
        first_ = false;
    }

    void open_event(char phase, const Thread& thread, int64_t at_ns) {
        open_line();
        line_ += "{\"ph\":\"";
        line_ += phase;
        line_ += "\",\"pid\":";
        append_number(line_, unique_id(*thread.process, thread.process->pid));
        line_ += ",\"tid\":";
        append_number(line_, unique_id(*thread.process, thread.tid));
        line_ += ",\"ts\":";
        append_time(at_ns - base_ns_);
    }

    // The name and category of a slice, the same for all of its calls.
    const std::string& identity(const Operator& op) {
        std::string& text = identities_[&op];
        if (text.empty()) {
            text += ",\"cat\":";
            append_string(text, category(op));
            text += ",\"name\":";
            append_string(text, slice_name(op));
        }
        return text;
    }

    void close_slice(const Operator& op, bool unpaired) {
        line_ += identity(op);
        if (!op.overload_name.empty()) {
            line_ += ",\"args\":{\"overload\":";
            append_string(line_, op.overload_name);
            line_ += unpaired ? ",\"unpaired\":true}" : "}";
        } else if (unpaired) {
            line_ += ",\"args\":{\"unpaired\":true}";
        }
        line_ += '}';
        output_.write(line_);
    }

    void write_complete(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool unpaired) {
        open_event('X', thread, begin_ns);
        line_ += ",\"dur\":";
        append_time(end_ns - begin_ns);
        close_slice(op, unpaired);
    }

    void write_async(const Thread& thread, const Operator& op, char phase, int64_t at_ns, bool unpaired) {
        open_event(phase, thread, at_ns);
        line_ += ",\"id\":";
        append_number(line_, async_id_);
        close_slice(op, unpaired);
    }

    void write_name(const char* what, const Process& process, int64_t tid, const std::string& name) {
        open_line();
        line_ += "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":";
        append_number(line_, unique_id(process, process.pid));
        line_ += ",\"tid\":";
        append_number(line_, unique_id(process, tid));
        line_ += ",\"args\":{\"name\":";
        append_string(line_, name);
        line_ += "}}";
        output_.write(line_);
    }

    Output& output_;
    std::string line_;
    bool started_ = false;
    bool first_ = true;
    int64_t base_ns_ = 0;
    int64_t async_id_ = 0;
    std::unordered_map<std::string, int64_t> hosts_;
    std::unordered_map<const Operator*, std::string> identities_;
};

}  // namespace

std::unique_ptr<TimelineWriter> chrome_writer(Output& output) {
    return std::make_unique<ChromeWriter>(output);
}

}  // namespace iprof
