#include "trace_text.hpp"

#include <cstdio>

namespace iprof {

namespace {

const char* escape_of(char letter) {
    switch (letter) {
        case '"':
            return "\\\"";
        case '\\':
            return "\\\\";
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        case '\x1b':
            return "\\e";
        default:
            return nullptr;
    }
}

bool is_control(char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
}

void append_padded(std::string& line, int64_t value, size_t digits) {
    const std::string text = std::to_string(value);
    line.append(digits - text.size(), '0') += text;
}

}  // namespace

void append_quoted(std::string& line, std::string_view text) {
    line += '"';
    for (const char letter : text) {
        if (const char* escape = escape_of(letter)) {
            line += escape;
        } else if (is_control(letter)) {
            char hexadecimal[8];
            snprintf(hexadecimal, sizeof hexadecimal, "\\x%02X", static_cast<unsigned char>(letter));
            line += hexadecimal;
        } else {
            line += letter;
        }
    }
    line += '"';
}

void TraceText::append_time(int64_t timestamp_ns) {
    constexpr int64_t kSecond_ns = 1'000'000'000;
    const int64_t second = timestamp_ns / kSecond_ns;
    if (second != second_) {
        second_ = second;
        const time_t time = second;
        tm local{};
        localtime_r(&time, &local);
        strftime(clock_, sizeof clock_, "%H:%M:%S.", &local);
    }
    line_ += clock_;
    append_padded(line_, timestamp_ns % kSecond_ns, 9);
}

void TraceText::on_event(const Event& event) {
    line_.clear();
    append_time(event.timestamp_ns);
    line_ += " - ";
    line_ += event.thread->process->host;
    line_ += " - vpid: ";
    line_ += std::to_string(event.thread->process->pid);
    line_ += ", vtid: ";
    line_ += std::to_string(event.thread->tid);
    line_ += " - ";
    append_fields(event);
    line_ += " }\n";
    output_->write(line_);
}

void TraceText::append_fields(const Event& event) {
    switch (event.kind) {
        case EventKind::kOperatorEntry:
        case EventKind::kOperatorExit:
            open(event.kind == EventKind::kOperatorEntry ? "lttng_ust_pytorch:op_entry" : "lttng_ust_pytorch:op_exit");
            field("name", event.name);
            field("overload_name", event.overload_name);
            return field("scope", static_cast<int64_t>(event.operator_kind));
        case EventKind::kScopeEntry:
        case EventKind::kScopeExit:
            open(event.kind == EventKind::kScopeEntry ? "lttng_ust_pytorch:scope_entry"
                                                      : "lttng_ust_pytorch:scope_exit");
            field("name", event.name);
            return field("id", static_cast<int64_t>(event.scope_id));
        case EventKind::kProcess: {
            const ProcessInfo& info = *event.process_info;
            open("lttng_ust_pytorch:process");
            field("run_id", info.run_id);
            field("parent_pid", info.parent_pid);
            field("executable", info.executable);
            field("command", info.command);
            field("rank", info.rank);
            field("local_rank", info.local_rank);
            field("world_size", info.world_size);
            field("libtorch", info.libtorch);
            return field("has_overloads", int64_t{info.has_overloads});
        }
        case EventKind::kThread:
            open("lttng_ust_pytorch:thread");
            return field("name", event.name);
        case EventKind::kLog:
            open("lttng_python:event");
            field("msg", event.name);
            field("logger_name", event.overload_name);
            return field("int_loglevel", event.log_level);
        case EventKind::kUnknown:
            return;
    }
}

void TraceText::open(const char* event_name) {
    line_ += event_name;
    line_ += ": {";
    first_field_ = true;
}

void TraceText::field(const char* name, std::string_view value) {
    line_ += first_field_ ? " " : ", ";
    first_field_ = false;
    line_ += name;
    line_ += ": ";
    append_quoted(line_, value);
}

void TraceText::field(const char* name, int64_t value) {
    line_ += first_field_ ? " " : ", ";
    first_field_ = false;
    line_ += name;
    line_ += ": ";
    line_ += std::to_string(value);
}

void TraceText::finish(const Registry&, nlohmann::json& document) {
    output_->finish();
    document["output_error"] = output_->error();
}

}  // namespace iprof
