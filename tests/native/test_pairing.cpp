#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "pairing.hpp"
#include "script.hpp"

using namespace iprof;

namespace {

struct Interval {
    std::string name;
    int64_t duration_ns;
    int64_t self_ns;
    bool operator==(const Interval& other) const {
        return name == other.name && duration_ns == other.duration_ns && self_ns == other.self_ns;
    }
};

std::ostream& operator<<(std::ostream& stream, const Interval& interval) {
    return stream << interval.name << " " << interval.duration_ns << " " << interval.self_ns;
}

class Recorder : public IntervalListener {
public:
    void on_operator(const Thread&, const OperatorInterval& interval) override {
        operators.push_back({table[interval.operator_id].name, interval.duration_ns(), interval.self_ns});
        contexts.push_back(interval.context);
        depths.push_back(interval.depth);
    }
    void on_scope(const Thread& thread, const ScopeInterval& interval) override {
        scopes.push_back({table[interval.operator_id].name, interval.duration_ns(), interval.self_ns});
        nested.push_back(interval.nested);
        scope_threads.push_back(thread.tid);
    }
    void on_unpaired_exit(const Thread&, uint32_t id, int64_t) override { exits.push_back(table[id].name); }
    void on_unpaired_entry(const Thread&, uint32_t id, int64_t) override { entries.push_back(table[id].name); }

    OperatorTable table;
    Pairing pairing{table, *this};
    test::Script script{[this](const Event& event) { pairing.feed(event); }};
    std::vector<Interval> operators, scopes;
    std::vector<CallContext> contexts;
    std::vector<uint32_t> depths;
    std::vector<bool> nested;
    std::vector<int64_t> scope_threads;
    std::vector<std::string> entries, exits;
};

using Intervals = std::vector<Interval>;
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("nested and re-entrant calls") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.entry("a", 10);
    r.script.entry("b", 20);
    r.script.exit("b", 25);
    r.script.exit("a", 40);
    r.script.exit("a", 100);
    CHECK(r.operators == Intervals{{"b", 5, 5}, {"a", 30, 25}, {"a", 100, 70}});
    CHECK(r.depths == std::vector<uint32_t>{2, 1, 0});
    r.pairing.finish();
    CHECK(r.entries.empty());
    CHECK(r.exits.empty());
}

TEST_CASE("threads do not touch each other") {
    Recorder r;
    r.script.entry("a", 0, 1);
    r.script.entry("a", 1, 2);
    r.script.exit("a", 10, 1);
    r.script.exit("a", 21, 2);
    CHECK(r.operators == Intervals{{"a", 10, 10}, {"a", 20, 20}});
}

TEST_CASE("an exit without entry disturbs nothing") {
    Recorder r;
    r.script.exit("stray", 0);
    r.script.entry("a", 0);
    r.script.entry("b", 10);
    r.script.exit("stray", 15);
    r.script.exit("b", 20);
    r.script.exit("a", 30);
    CHECK(r.operators == Intervals{{"b", 10, 10}, {"a", 30, 20}});
    CHECK(r.exits == Names{"stray", "stray"});
}

TEST_CASE("an entry without exit in the middle disturbs nothing") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.entry("lost", 10);
    r.script.entry("b", 20);
    r.script.exit("b", 25);
    r.script.exit("a", 100);
    r.pairing.finish();
    CHECK(r.operators == Intervals{{"b", 5, 5}, {"a", 100, 95}});
    CHECK(r.entries == Names{"lost"});
}

TEST_CASE("what is open at the end is unpaired") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.scope_entry("s", 1, 1);
    r.script.entry("b", 2);
    r.pairing.finish();
    CHECK(r.operators.empty());
    CHECK(r.entries == Names{"b", "a", "s"});
}

TEST_CASE("a process that begins anew leaves its open calls unpaired") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.restart(5);
    r.script.exit("a", 10);
    CHECK(r.operators.empty());
    CHECK(r.entries == Names{"a"});
    CHECK(r.exits == Names{"a"});
}

TEST_CASE("scopes are transparent to the self time of operators") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.scope_entry("s", 1, 10);
    r.script.entry("b", 20);
    r.script.exit("b", 30);
    r.script.scope_exit("s", 1, 50);
    r.script.exit("a", 100);
    CHECK(r.operators == Intervals{{"b", 10, 10}, {"a", 100, 90}});
    CHECK(r.scopes == Intervals{{"s", 40, 30}});
}

TEST_CASE("a scope's self time leaves out the scopes and outermost operators in it") {
    Recorder r;
    r.script.scope_entry("outer", 1, 0);
    r.script.entry("a", 10);
    r.script.entry("b", 12);
    r.script.exit("b", 14);
    r.script.exit("a", 20);
    r.script.scope_entry("inner", 2, 30);
    r.script.scope_exit("inner", 2, 40);
    r.script.scope_exit("outer", 1, 100);
    CHECK(r.scopes == Intervals{{"inner", 10, 10}, {"outer", 100, 80}});
    CHECK(r.nested == std::vector<bool>{true, true});
}

TEST_CASE("an operator around a scope does not count as time within it") {
    Recorder r;
    r.script.entry("a", 0);
    r.script.scope_entry("s", 1, 10);
    r.script.exit("a", 20);
    r.script.scope_exit("s", 1, 30);
    CHECK(r.scopes == Intervals{{"s", 20, 20}});
    CHECK(r.nested == std::vector<bool>{false});
}

TEST_CASE("scopes end in any order") {
    Recorder r;
    r.script.scope_entry("s", 1, 0);
    r.script.scope_entry("s", 2, 10);
    r.script.scope_exit("s", 1, 100);
    r.script.scope_exit("s", 2, 200);
    CHECK(r.scopes == Intervals{{"s", 100, 100}, {"s", 190, 190}});
    CHECK(r.nested == std::vector<bool>{false, true});
}

TEST_CASE("a scope may end on another thread and belongs to the one it began on") {
    Recorder r;
    r.script.scope_entry("s", 1, 0, 1);
    r.script.scope_exit("s", 1, 50, 2);
    r.script.scope_exit("s", 1, 60, 2);
    CHECK(r.scopes == Intervals{{"s", 50, 50}});
    CHECK(r.scope_threads == std::vector<int64_t>{1});
    CHECK(r.exits == Names{"s"});
}

TEST_CASE("scopes without an id are paired by their names") {
    Recorder r;
    r.script.scope_entry("s", 0, 0);
    r.script.scope_entry("t", 0, 10);
    r.script.scope_exit("s", 0, 20);
    r.script.scope_exit("t", 0, 30);
    CHECK(r.scopes == Intervals{{"s", 20, 20}, {"t", 20, 20}});
}

TEST_CASE("a call knows its scope and phase") {
    Recorder r;
    r.script.scope_entry("Optimizer.step#SGD.step", 1, 0);
    r.script.entry("aten::add", 1);
    r.script.exit("aten::add", 2);
    r.script.scope_exit("Optimizer.step#SGD.step", 1, 3);
    r.script.entry("MmBackward0", 4, 1, OperatorKind::kBackward);
    r.script.entry("aten::mm", 5);
    r.script.exit("aten::mm", 6);
    r.script.exit("MmBackward0", 7, 1, OperatorKind::kBackward);
    r.script.entry("aten::mm", 8);
    r.script.exit("aten::mm", 9);
    REQUIRE(r.contexts.size() == 4);
    CHECK(r.table[r.contexts[0].scope].name == "Optimizer.step#SGD.step");
    CHECK(r.contexts[0].phase == Phase::kOther);
    CHECK(r.contexts[1].phase == Phase::kBackward);
    CHECK(r.contexts[1].scope == CallContext::kNoScope);
    CHECK(r.contexts[2].phase == Phase::kBackward);
    CHECK(r.contexts[3].phase == Phase::kForward);
}

TEST_CASE("self times add up to the outermost calls, however deep") {
    Recorder r;
    constexpr int64_t kDepth = 100000;
    for (int64_t i = 0; i < kDepth; ++i) r.script.entry(i % 2 ? "a" : "b", i);
    for (int64_t i = kDepth; i-- > 0;) r.script.exit(i % 2 ? "a" : "b", 3 * kDepth - i);
    int64_t self_ns = 0;
    for (const Interval& interval : r.operators) self_ns += interval.self_ns;
    REQUIRE(r.operators.size() == kDepth);
    CHECK(self_ns == r.operators.back().duration_ns);
}
