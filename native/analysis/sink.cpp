#include "sink.hpp"

#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace iprof {

namespace {

// Batches of messages handled by one call of consume: long enough to cost nothing, short enough that the
// caller can look after a Ctrl-C or a progress bar in between.
constexpr int kBatches = 256;

void write_all(int fd, const std::string& text) {
    for (size_t written = 0; written < text.size();) {
        const ssize_t count = write(fd, text.data() + written, text.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw std::system_error(errno, std::generic_category(), "cannot write the document");
        written += static_cast<size_t>(count);
    }
}

nlohmann::json describe(const Process& process) {
    return {{"host", process.host},
            {"pid", process.pid},
            {"parent_pid", process.info.parent_pid},
            {"executable", process.info.executable},
            {"command", process.info.command},
            {"rank", process.info.rank},
            {"local_rank", process.info.local_rank},
            {"world_size", process.info.world_size},
            {"libtorch", process.info.libtorch},
            {"has_overloads", process.info.has_overloads}};
}

}  // namespace

Sink::Sink(const Parameters& parameters, std::unique_ptr<Analysis> analysis)
    : registry_(parameters.string("run-id")),
      analysis_(std::move(analysis)),
      document_fd_(static_cast<int>(parameters.integer("document-fd"))),
      progress_fd_(static_cast<int>(parameters.integer("progress-fd"))) {}

Sink::~Sink() {
    bt_message_iterator_put_ref(iterator_);
}

void Sink::connect(bt_self_component_sink* component) {
    bt_self_component_port_input* port = bt_self_component_sink_borrow_input_port_by_index(component, 0);
    if (bt_message_iterator_create_from_sink_component(component, port, &iterator_) !=
        BT_MESSAGE_ITERATOR_CREATE_FROM_SINK_COMPONENT_STATUS_OK) {
        throw std::runtime_error("cannot create the message iterator");
    }
}

bt_component_class_sink_consume_method_status Sink::consume() {
    for (int batch = 0; batch < kBatches; ++batch) {
        if (!analysis_->wants_more()) {
            write_document();
            return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
        }
        bt_message_array_const messages = nullptr;
        uint64_t count = 0;
        const auto status = bt_message_iterator_next(iterator_, &messages, &count);
        if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_AGAIN) return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN;
        if (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_OK) {
            write_document();  // also after an error upstream: what was read until then counts
            return static_cast<bt_component_class_sink_consume_method_status>(status);
        }
        for (uint64_t i = 0; i < count; ++i) {
            handle(messages[i]);
            bt_message_put_ref(messages[i]);
        }
    }
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}

void Sink::handle(const bt_message* message) {
    uint64_t count = 0;
    switch (bt_message_get_type(message)) {
        case BT_MESSAGE_TYPE_EVENT:
            handle_event(message);
            break;
        case BT_MESSAGE_TYPE_PACKET_END:
            count_packet();
            break;
        case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
            if (bt_message_discarded_events_get_count(message, &count) == BT_PROPERTY_AVAILABILITY_AVAILABLE) {
                discarded_events_ += count;
            } else {
                discarded_uncounted_ = true;
            }
            break;
        case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
            if (bt_message_discarded_packets_get_count(message, &count) == BT_PROPERTY_AVAILABILITY_AVAILABLE) {
                discarded_packets_ += count;
            } else {
                discarded_uncounted_ = true;
            }
            break;
        default:
            break;
    }
}

void Sink::count_packet() {
    ++packets_;
    if (progress_fd_ < 0) return;
    // A bar that stands still is no reason to fail.
    [[maybe_unused]] const ssize_t written = pwrite(progress_fd_, &packets_, sizeof packets_, 0);
}

void Sink::handle_event(const bt_message* message) {
    const Event event = decoder_.decode(message);
    if (event.kind == EventKind::kUnknown) {
        ++unknown_events_;
        return;
    }
    if (event.kind == EventKind::kProcess) registry_.announce(*event.thread->process, *event.process_info);
    if (!event.thread->process->recorded) {
        ++foreign_events_;
        return;
    }
    if (event.kind == EventKind::kThread) event.thread->name = event.name;
    if (events_ == 0) begin_ns_ = event.timestamp_ns;
    end_ns_ = event.timestamp_ns;
    ++events_;
    analysis_->on_event(event);
}

void Sink::write_document() {
    nlohmann::json document;
    analysis_->finish(registry_, document);
    document["events"] = events_;
    document["foreign_events"] = foreign_events_;
    document["unknown_events"] = unknown_events_;
    document["discarded_events"] = discarded_events_;
    document["discarded_packets"] = discarded_packets_;
    document["discarded_uncounted"] = discarded_uncounted_;
    document["begin_ns"] = begin_ns_;
    document["end_ns"] = end_ns_;
    nlohmann::json& processes = document["processes"] = nlohmann::json::array();
    for (const Process& process : registry_.processes()) {
        if (process.recorded) processes.push_back(describe(process));
    }
    nlohmann::json& threads = document["threads"] = nlohmann::json::array();
    for (const Thread& thread : registry_.threads()) {
        if (!thread.process->recorded) continue;
        threads.push_back(
            {{"host", thread.process->host}, {"pid", thread.process->pid}, {"tid", thread.tid}, {"name", thread.name}});
    }
    write_all(document_fd_, document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace iprof
