// The trace as text: a line for each event.
#pragma once

#include <ctime>
#include <memory>
#include <string>

#include "analysis.hpp"
#include "output.hpp"

namespace iprof {

// Lines in the format of THAPI's `iprof -t`: local time of day, host, contexts, event, fields.
class TraceText : public Analysis {
public:
    explicit TraceText(std::unique_ptr<Output> output) : output_(std::move(output)) {}

    void on_event(const Event& event) override;
    bool wants_more() const override { return output_->error() == 0; }
    void finish(const Registry& registry, nlohmann::json& document) override;

private:
    void append_time(int64_t timestamp_ns);
    void append_fields(const Event& event);
    void open(const char* event_name);
    void field(const char* name, std::string_view value);
    void field(const char* name, int64_t value);

    std::unique_ptr<Output> output_;
    std::string line_;
    bool first_field_ = true;
    int64_t second_ = -1;  // that clock_ shows
    char clock_[16] = "";
};

// A text in double quotes, on one line: quotes, backslashes and control characters escaped as in Ruby and C.
void append_quoted(std::string& line, std::string_view text);

}  // namespace iprof
