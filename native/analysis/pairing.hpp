// Turns entries and exits into intervals: which call an exit ends, how long it took, and how much of that was
// its own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model.hpp"

namespace iprof {

// Where a call was made.
struct CallContext {
    static constexpr uint32_t kNoScope = UINT32_MAX;

    uint32_t scope = kNoScope;  // operator id of the innermost record_function scope open on the thread
    Phase phase = Phase::kForward;
};

// A finished call of an operator.
struct OperatorInterval {
    uint32_t operator_id;
    int64_t begin_ns;
    int64_t end_ns;
    int64_t self_ns;  // duration less that of the operators called from within
    uint32_t depth;   // operators open on the thread below this one
    CallContext context;

    int64_t duration_ns() const { return end_ns - begin_ns; }
};

// A finished record_function scope.
struct ScopeInterval {
    uint32_t operator_id;  // of kind kScope
    int64_t begin_ns;
    int64_t end_ns;
    int64_t self_ns;  // duration less that of the operators and scopes directly inside
    bool nested;      // ended on its thread, and within the same calls and scopes as it began

    int64_t duration_ns() const { return end_ns - begin_ns; }
};

class IntervalListener {
public:
    virtual ~IntervalListener() = default;
    // A call or a scope begins; its end, or its loss, is told by one of the functions below.
    virtual void on_operator_begin(const Thread&, uint32_t /*operator_id*/, int64_t /*begin_ns*/) {}
    virtual void on_scope_begin(const Thread&, uint32_t /*operator_id*/, int64_t /*begin_ns*/) {}
    virtual void on_operator(const Thread&, const OperatorInterval&) = 0;
    virtual void on_scope(const Thread&, const ScopeInterval&) = 0;
    // An exit whose entry the trace does not have; at the time of the exit.
    virtual void on_unpaired_exit(const Thread&, uint32_t operator_id, int64_t timestamp_ns) = 0;
    // An entry whose exit the trace does not have: the program was killed, or events were lost.
    virtual void on_unpaired_entry(const Thread&, uint32_t operator_id, int64_t begin_ns) = 0;
};

// Operators are kept on a stack for each thread: an exit ends the innermost call of its name, and calls above
// that are unpaired entries. record_function scopes have a stack of their own, for they may end in any order
// and on any thread.
class Pairing {
public:
    Pairing(OperatorTable& operators, IntervalListener& listener) : operators_(operators), listener_(listener) {}

    // The next event, in time order. After a process event what was open in that process stays unpaired: its
    // program was replaced (exec), or its pid is used again.
    void feed(const Event& event);
    // End of the trace: what is open stays unpaired.
    void finish();

private:
    struct OpenOperator {
        uint32_t operator_id;
        int64_t begin_ns;
        int64_t child_ns;
        CallContext context;
    };
    struct OpenScope {
        uint32_t operator_id;
        uint64_t id;
        int64_t begin_ns;
        int64_t child_ns;
        size_t operator_depth;
        int64_t outer_begin_ns;  // of the innermost call around it
        Phase phase;
        bool closed;
    };
    struct ThreadState {
        const Thread* thread = nullptr;
        std::vector<OpenOperator> operators;
        std::vector<uint32_t> open_calls;  // by operator id, so that a stray exit costs no search
        std::vector<OpenScope> scopes;
    };

    void operator_entry(const Event& event);
    void operator_exit(const Event& event);
    void scope_entry(const Event& event);
    void scope_exit(const Event& event);
    void restart(const Process& process);
    ThreadState& state_of(const Thread& thread);
    CallContext context_of(const ThreadState& state, uint32_t operator_id) const;
    static int64_t innermost_begin_ns(const ThreadState& state);
    static Phase phase_around(const ThreadState& state);
    void drop_operators_above(ThreadState& state, size_t size);
    void add_child_time(ThreadState& state, int64_t duration_ns);
    OpenScope* find_scope(ThreadState& state, const Event& event, uint32_t operator_id);
    void close_scope(ThreadState& state, OpenScope& scope, int64_t end_ns, bool other_thread);
    void abandon(ThreadState& state);

    OperatorTable& operators_;
    IntervalListener& listener_;
    std::vector<ThreadState> states_;                                        // by thread index
    std::vector<std::unordered_map<uint64_t, const Thread*>> scope_owners_;  // by process index; by scope id
};

}  // namespace iprof
