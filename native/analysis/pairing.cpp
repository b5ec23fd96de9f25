#include "pairing.hpp"

#include <algorithm>

namespace iprof {

Pairing::ThreadState& Pairing::state_of(const Thread& thread) {
    if (thread.index >= states_.size()) states_.resize(thread.index + 1);
    ThreadState& state = states_[thread.index];
    state.thread = &thread;
    return state;
}

void Pairing::operator_entry(const Event& event) {
    ThreadState& state = state_of(*event.thread);
    const uint32_t id = operators_.intern(event.name, event.overload_name, event.operator_kind);
    if (id >= state.open_calls.size()) state.open_calls.resize(id + 1);
    ++state.open_calls[id];
    state.operators.push_back({id, event.timestamp_ns, 0, context_of(state, id)});
    listener_.on_operator_begin(*event.thread, id, event.timestamp_ns);
}

// When the innermost open call of a thread began: its identity, as long as it is open.
int64_t Pairing::innermost_begin_ns(const ThreadState& state) {
    return state.operators.empty() ? INT64_MIN : state.operators.back().begin_ns;
}

// The phase of what is called next on a thread: backward within a backward operator, else that of the scope.
Phase Pairing::phase_around(const ThreadState& state) {
    if (!state.operators.empty() && state.operators.back().context.phase == Phase::kBackward) return Phase::kBackward;
    return state.scopes.empty() ? Phase::kForward : state.scopes.back().phase;
}

CallContext Pairing::context_of(const ThreadState& state, uint32_t operator_id) const {
    const bool begins_backward = operators_[operator_id].phase == Phase::kBackward;
    return {state.scopes.empty() ? CallContext::kNoScope : state.scopes.back().operator_id,
            begins_backward ? Phase::kBackward : phase_around(state)};
}

void Pairing::operator_exit(const Event& event) {
    ThreadState& state = state_of(*event.thread);
    std::vector<OpenOperator>& stack = state.operators;
    const bool ends_innermost =
        !stack.empty() && operators_.is(stack.back().operator_id, event.name, event.overload_name, event.operator_kind);
    if (!ends_innermost) {
        const uint32_t id = operators_.intern(event.name, event.overload_name, event.operator_kind);
        if (id >= state.open_calls.size() || state.open_calls[id] == 0) {
            listener_.on_unpaired_exit(*event.thread, id, event.timestamp_ns);
            return;
        }
        size_t size = stack.size();
        while (stack[size - 1].operator_id != id) --size;
        drop_operators_above(state, size);
    }
    const OpenOperator call = stack.back();
    stack.pop_back();
    --state.open_calls[call.operator_id];
    const int64_t duration_ns = event.timestamp_ns - call.begin_ns;
    add_child_time(state, duration_ns);
    listener_.on_operator(*event.thread,
                          {call.operator_id, call.begin_ns, event.timestamp_ns, duration_ns - call.child_ns,
                           static_cast<uint32_t>(stack.size()), call.context});
}

// Gives up the innermost calls until `size` are left; the time of what they called goes to the call that
// stays.
void Pairing::drop_operators_above(ThreadState& state, size_t size) {
    while (state.operators.size() > size) {
        const OpenOperator call = state.operators.back();
        state.operators.pop_back();
        --state.open_calls[call.operator_id];
        if (!state.operators.empty()) state.operators.back().child_ns += call.child_ns;
        listener_.on_unpaired_entry(*state.thread, call.operator_id, call.begin_ns);
    }
}

// Accounts a finished call to the operator around it, and to the innermost scope when no operator lies
// between.
void Pairing::add_child_time(ThreadState& state, int64_t duration_ns) {
    if (!state.operators.empty()) state.operators.back().child_ns += duration_ns;
    if (!state.scopes.empty() && state.scopes.back().operator_depth == state.operators.size()) {
        state.scopes.back().child_ns += duration_ns;
    }
}

void Pairing::scope_entry(const Event& event) {
    ThreadState& state = state_of(*event.thread);
    const uint32_t id = operators_.intern(event.name, {}, OperatorKind::kScope);
    const Phase begun = operators_[id].phase;
    const Phase phase = begun == Phase::kForward ? phase_around(state) : begun;
    state.scopes.push_back(
        {id, event.scope_id, event.timestamp_ns, 0, state.operators.size(), innermost_begin_ns(state), phase, false});
    listener_.on_scope_begin(*event.thread, id, event.timestamp_ns);
    if (event.scope_id == 0) return;
    const uint32_t process = event.thread->process->index;
    if (process >= scope_owners_.size()) scope_owners_.resize(process + 1);
    scope_owners_[process][event.scope_id] = event.thread;
}

// The open scope of this thread that the exit ends, or null. A scope without an id is known by its name.
Pairing::OpenScope* Pairing::find_scope(ThreadState& state, const Event& event, uint32_t operator_id) {
    const auto matches = [&](const OpenScope& scope) {
        return !scope.closed && scope.operator_id == operator_id && scope.id == event.scope_id;
    };
    const auto found = std::find_if(state.scopes.rbegin(), state.scopes.rend(), matches);
    return found == state.scopes.rend() ? nullptr : &*found;
}

void Pairing::scope_exit(const Event& event) {
    const uint32_t operator_id = operators_.intern(event.name, {}, OperatorKind::kScope);
    const Thread* owner = event.thread;
    const uint32_t process = event.thread->process->index;
    if (event.scope_id != 0 && process < scope_owners_.size()) {
        const auto known = scope_owners_[process].find(event.scope_id);
        if (known != scope_owners_[process].end()) {
            owner = known->second;
            scope_owners_[process].erase(known);
        }
    }
    ThreadState& state = state_of(*owner);
    OpenScope* scope = find_scope(state, event, operator_id);
    if (!scope) {
        listener_.on_unpaired_exit(*event.thread, operator_id, event.timestamp_ns);
        return;
    }
    close_scope(state, *scope, event.timestamp_ns, owner != event.thread);
}

void Pairing::close_scope(ThreadState& state, OpenScope& scope, int64_t end_ns, bool other_thread) {
    std::vector<OpenScope>& scopes = state.scopes;
    const bool innermost = &scope == &scopes.back();
    const bool same_calls =
        scope.operator_depth == state.operators.size() && scope.outer_begin_ns == innermost_begin_ns(state);
    const int64_t duration_ns = end_ns - scope.begin_ns;
    const ScopeInterval interval{scope.operator_id, scope.begin_ns, end_ns, duration_ns - scope.child_ns,
                                 innermost && !other_thread && same_calls};
    scope.closed = true;
    if (innermost && scopes.size() > 1 && !other_thread) {
        OpenScope& outer = scopes[scopes.size() - 2];
        if (outer.operator_depth == scope.operator_depth) outer.child_ns += duration_ns;
    }
    while (!scopes.empty() && scopes.back().closed) scopes.pop_back();
    listener_.on_scope(*state.thread, interval);
}

void Pairing::abandon(ThreadState& state) {
    if (!state.thread) return;
    drop_operators_above(state, 0);
    for (const OpenScope& scope : state.scopes) {
        if (!scope.closed) listener_.on_unpaired_entry(*state.thread, scope.operator_id, scope.begin_ns);
    }
    state.scopes.clear();
}

void Pairing::restart(const Process& process) {
    for (ThreadState& state : states_) {
        if (state.thread && state.thread->process == &process) abandon(state);
    }
    if (process.index < scope_owners_.size()) scope_owners_[process.index].clear();
}

void Pairing::feed(const Event& event) {
    switch (event.kind) {
        case EventKind::kOperatorEntry:
            return operator_entry(event);
        case EventKind::kOperatorExit:
            return operator_exit(event);
        case EventKind::kScopeEntry:
            return scope_entry(event);
        case EventKind::kScopeExit:
            return scope_exit(event);
        case EventKind::kProcess:
            return restart(*event.thread->process);
        default:
            return;
    }
}

void Pairing::finish() {
    for (ThreadState& state : states_) abandon(state);
}

}  // namespace iprof
