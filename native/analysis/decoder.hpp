// Reads the events of lttng_ust_pytorch and lttng_python out of babeltrace's messages.
#pragma once

#include <babeltrace2/babeltrace.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model.hpp"

namespace iprof {

class Decoder {
public:
    explicit Decoder(Registry& registry) : registry_(registry) {}

    // The event of a message of type BT_MESSAGE_TYPE_EVENT; of kind kUnknown, without a thread, when it is
    // none of ours. The views in it last until the message is put.
    Event decode(const bt_message* message);

private:
    // Where an event class keeps what we read; worked out once a class.
    struct Layout {
        EventKind kind = EventKind::kUnknown;
        uint32_t host = 0;
        uint64_t pid = 0;
        uint64_t tid = 0;
        uint64_t name = 0;
        std::optional<uint64_t> overload_name;
        std::optional<uint64_t> scope;
        std::optional<uint64_t> scope_id;
        std::optional<uint64_t> log_level;
    };

    const Layout& layout_of(const bt_event* event);
    Layout read_layout(const bt_event* event);
    void read_process(const bt_field* payload);

    Registry& registry_;
    std::unordered_map<const bt_event_class*, Layout> layouts_;
    const bt_event_class* last_class_ = nullptr;
    const Layout* last_layout_ = nullptr;
    ProcessInfo process_info_;
};

}  // namespace iprof
