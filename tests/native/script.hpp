// A made-up trace of one process, event by event.
#pragma once

#include <functional>
#include <string_view>

#include "model.hpp"

namespace iprof::test {

class Script {
public:
    using Feed = std::function<void(const Event&)>;

    explicit Script(Feed feed) : feed_(std::move(feed)) {}

    void entry(std::string_view name, int64_t at_ns, int64_t tid = 1, OperatorKind kind = OperatorKind::kFunction) {
        op(EventKind::kOperatorEntry, name, at_ns, tid, kind);
    }
    void exit(std::string_view name, int64_t at_ns, int64_t tid = 1, OperatorKind kind = OperatorKind::kFunction) {
        op(EventKind::kOperatorExit, name, at_ns, tid, kind);
    }
    void scope_entry(std::string_view name, uint64_t id, int64_t at_ns, int64_t tid = 1) {
        scope(EventKind::kScopeEntry, name, id, at_ns, tid);
    }
    void scope_exit(std::string_view name, uint64_t id, int64_t at_ns, int64_t tid = 1) {
        scope(EventKind::kScopeExit, name, id, at_ns, tid);
    }
    void restart(int64_t at_ns) {
        Event event;
        event.kind = EventKind::kProcess;
        send(event, at_ns, 1);
    }

    Registry registry{""};

private:
    void op(EventKind kind, std::string_view name, int64_t at_ns, int64_t tid, OperatorKind operator_kind) {
        Event event;
        event.kind = kind;
        event.name = name;
        event.operator_kind = operator_kind;
        send(event, at_ns, tid);
    }
    void scope(EventKind kind, std::string_view name, uint64_t id, int64_t at_ns, int64_t tid) {
        Event event;
        event.kind = kind;
        event.name = name;
        event.scope_id = id;
        send(event, at_ns, tid);
    }
    void send(Event& event, int64_t at_ns, int64_t tid) {
        event.timestamp_ns = at_ns;
        event.thread = &registry.thread(registry.host("host"), 10, tid);
        feed_(event);
    }

    Feed feed_;
};

}  // namespace iprof::test
