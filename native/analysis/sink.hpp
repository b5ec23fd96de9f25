// The babeltrace2 sink component around an analysis.
//
// Parameters of every sink: "document-fd" (integer, where the JSON document goes), "run-id" (string, empty
// for all processes).
#pragma once

#include <babeltrace2/babeltrace.h>

#include <cstdint>
#include <memory>

#include "analysis.hpp"
#include "decoder.hpp"
#include "parameters.hpp"

namespace iprof {

class Sink {
public:
    Sink(const Parameters& parameters, std::unique_ptr<Analysis> analysis);
    ~Sink();
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    void connect(bt_self_component_sink* component);
    bt_component_class_sink_consume_method_status consume();

private:
    void handle(const bt_message* message);
    void handle_event(const bt_message* message);
    void count_packet();
    void write_document();

    Registry registry_;
    Decoder decoder_{registry_};
    std::unique_ptr<Analysis> analysis_;
    bt_message_iterator* iterator_ = nullptr;
    int document_fd_;
    int progress_fd_;
    uint64_t packets_ = 0;
    uint64_t events_ = 0;
    uint64_t foreign_events_ = 0;
    uint64_t unknown_events_ = 0;
    uint64_t discarded_events_ = 0;
    uint64_t discarded_packets_ = 0;
    bool discarded_uncounted_ = false;
    int64_t begin_ns_ = 0;
    int64_t end_ns_ = 0;
};

}  // namespace iprof
