#include "decoder.hpp"

#include <cstring>

namespace iprof {

namespace {

// Babeltrace 2.0.4 leaves the previous text in an empty string field: the length alone is right.
std::string_view string_of(const bt_field* field) {
    return {bt_field_string_get_value(field), bt_field_string_get_length(field)};
}

bool is_signed(const bt_field* field) {
    return bt_field_class_type_is(bt_field_get_class_type(field), BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
}

int64_t integer_of(const bt_field* field) {
    return is_signed(field) ? bt_field_integer_signed_get_value(field)
                            : static_cast<int64_t>(bt_field_integer_unsigned_get_value(field));
}

const bt_field* member(const bt_field* structure, uint64_t index) {
    return bt_field_structure_borrow_member_field_by_index_const(structure, index);
}

// The index of a member of a structure that has the wanted type, or nothing.
std::optional<uint64_t> find_member(const bt_field* structure, const char* name, bt_field_class_type type) {
    if (!structure || bt_field_get_class_type(structure) != BT_FIELD_CLASS_TYPE_STRUCTURE) return std::nullopt;
    const bt_field_class* structure_class = bt_field_borrow_class_const(structure);
    const uint64_t count = bt_field_class_structure_get_member_count(structure_class);
    for (uint64_t i = 0; i < count; ++i) {
        const auto* candidate = bt_field_class_structure_borrow_member_by_index_const(structure_class, i);
        if (strcmp(bt_field_class_structure_member_get_name(candidate), name) != 0) continue;
        const bt_field_class* member_class = bt_field_class_structure_member_borrow_field_class_const(candidate);
        if (bt_field_class_type_is(bt_field_class_get_type(member_class), type)) return i;
    }
    return std::nullopt;
}

std::optional<uint64_t> find_string(const bt_field* structure, const char* name) {
    return find_member(structure, name, BT_FIELD_CLASS_TYPE_STRING);
}

std::optional<uint64_t> find_integer(const bt_field* structure, const char* name) {
    return find_member(structure, name, BT_FIELD_CLASS_TYPE_INTEGER);
}

EventKind kind_of(const char* event_name) {
    if (!event_name) return EventKind::kUnknown;
    if (strcmp(event_name, "lttng_python:event") == 0) return EventKind::kLog;
    constexpr const char* kProvider = "lttng_ust_pytorch:";
    if (strncmp(event_name, kProvider, strlen(kProvider)) != 0) return EventKind::kUnknown;
    const std::string_view name = event_name + strlen(kProvider);
    if (name == "op_entry") return EventKind::kOperatorEntry;
    if (name == "op_exit") return EventKind::kOperatorExit;
    if (name == "scope_entry") return EventKind::kScopeEntry;
    if (name == "scope_exit") return EventKind::kScopeExit;
    if (name == "process") return EventKind::kProcess;
    if (name == "thread") return EventKind::kThread;
    return EventKind::kUnknown;
}

// The field of an event that it cannot do without.
const char* name_field(EventKind kind) {
    if (kind == EventKind::kProcess) return "run_id";
    return kind == EventKind::kLog ? "msg" : "name";
}

std::string_view host_of(const bt_event* event) {
    const bt_trace* trace = bt_stream_borrow_trace_const(bt_event_borrow_stream_const(event));
    const bt_value* host = bt_trace_borrow_environment_entry_value_by_name_const(trace, "hostname");
    return host && bt_value_is_string(host) ? bt_value_string_get(host) : "";
}

OperatorKind operator_kind(int64_t scope) {
    return scope == static_cast<int64_t>(OperatorKind::kBackward) ? OperatorKind::kBackward : OperatorKind::kFunction;
}

}  // namespace

Decoder::Layout Decoder::read_layout(const bt_event* event) {
    const EventKind kind = kind_of(bt_event_class_get_name(bt_event_borrow_class_const(event)));
    const bt_field* context = bt_event_borrow_common_context_field_const(event);
    const bt_field* payload = bt_event_borrow_payload_field_const(event);
    const auto pid = find_integer(context, "vpid");
    const auto tid = find_integer(context, "vtid");
    const auto name = find_string(payload, name_field(kind));
    if (kind == EventKind::kUnknown || !pid || !tid || !name) return {};
    Layout layout;
    layout.kind = kind;
    layout.host = registry_.host(host_of(event));
    layout.pid = *pid;
    layout.tid = *tid;
    layout.name = *name;
    layout.overload_name = find_string(payload, kind == EventKind::kLog ? "logger_name" : "overload_name");
    layout.scope = find_integer(payload, "scope");
    layout.scope_id = find_integer(payload, "id");
    layout.log_level = find_integer(payload, "int_loglevel");
    return layout;
}

const Decoder::Layout& Decoder::layout_of(const bt_event* event) {
    const bt_event_class* event_class = bt_event_borrow_class_const(event);
    if (event_class == last_class_) return *last_layout_;
    auto known = layouts_.find(event_class);
    if (known == layouts_.end()) known = layouts_.emplace(event_class, read_layout(event)).first;
    last_class_ = event_class;
    last_layout_ = &known->second;
    return known->second;
}

void Decoder::read_process(const bt_field* payload) {
    const auto text = [payload](const char* name) {
        const auto index = find_string(payload, name);
        return index ? std::string(string_of(member(payload, *index))) : std::string();
    };
    const auto number = [payload](const char* name, int64_t otherwise) {
        const auto index = find_integer(payload, name);
        return index ? integer_of(member(payload, *index)) : otherwise;
    };
    process_info_.run_id = text("run_id");
    process_info_.parent_pid = number("parent_pid", -1);
    process_info_.executable = text("executable");
    process_info_.command = text("command");
    process_info_.rank = number("rank", -1);
    process_info_.local_rank = number("local_rank", -1);
    process_info_.world_size = number("world_size", -1);
    process_info_.libtorch = text("libtorch");
    process_info_.has_overloads = number("has_overloads", 1) != 0;
}

Event Decoder::decode(const bt_message* message) {
    Event decoded;
    const bt_event* event = bt_message_event_borrow_event_const(message);
    const Layout& layout = layout_of(event);
    if (layout.kind == EventKind::kUnknown) return decoded;
    const bt_clock_snapshot* clock = bt_message_event_borrow_default_clock_snapshot_const(message);
    if (bt_clock_snapshot_get_ns_from_origin(clock, &decoded.timestamp_ns) != 0) {
        bt_current_thread_clear_error();  // beyond what 64 bits hold: no error that anybody else should find
        return decoded;
    }
    const bt_field* context = bt_event_borrow_common_context_field_const(event);
    const bt_field* payload = bt_event_borrow_payload_field_const(event);
    decoded.kind = layout.kind;
    decoded.thread = &registry_.thread(layout.host, integer_of(member(context, layout.pid)),
                                       integer_of(member(context, layout.tid)));
    if (layout.kind == EventKind::kProcess) {
        read_process(payload);
        decoded.process_info = &process_info_;
        return decoded;
    }
    decoded.name = string_of(member(payload, layout.name));
    if (layout.overload_name) decoded.overload_name = string_of(member(payload, *layout.overload_name));
    if (layout.scope) decoded.operator_kind = operator_kind(integer_of(member(payload, *layout.scope)));
    if (layout.scope_id) decoded.scope_id = static_cast<uint64_t>(integer_of(member(payload, *layout.scope_id)));
    if (layout.log_level) decoded.log_level = integer_of(member(payload, *layout.log_level));
    return decoded;
}

}  // namespace iprof
