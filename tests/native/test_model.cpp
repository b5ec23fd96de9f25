#include <catch2/catch.hpp>
#include <string>

#include "model.hpp"

using namespace iprof;

TEST_CASE("an operator keeps its id, and name, overload and kind tell operators apart") {
    OperatorTable table;
    const uint32_t abs = table.intern("aten::abs", "", OperatorKind::kFunction);
    CHECK(table.intern("aten::abs", "", OperatorKind::kFunction) == abs);
    CHECK(table.intern("aten::abs", "out", OperatorKind::kFunction) != abs);
    CHECK(table.intern("aten::abs", "", OperatorKind::kBackward) != abs);
    CHECK(table.intern("", "aten::abs", OperatorKind::kFunction) != abs);
    CHECK(table[abs].name == "aten::abs");
}

TEST_CASE("ids survive growth") {
    OperatorTable table;
    constexpr uint32_t kCount = 10000;
    for (uint32_t i = 0; i < kCount; ++i) REQUIRE(table.intern(std::to_string(i), "", OperatorKind::kFunction) == i);
    for (uint32_t i = 0; i < kCount; ++i) REQUIRE(table.intern(std::to_string(i), "", OperatorKind::kFunction) == i);
}

TEST_CASE("threads are told apart by host, process and thread") {
    Registry registry("");
    const uint32_t first = registry.host("first");
    const uint32_t second = registry.host("second");
    Thread& thread = registry.thread(first, 1, 65);
    CHECK(&registry.thread(first, 1, 65) == &thread);
    CHECK(&registry.thread(first, 1, 1) != &thread);  // shares its place in the cache
    CHECK(&registry.thread(first, 1, 65) == &thread);
    CHECK(registry.thread(first, 1, 1).process == thread.process);
    CHECK(registry.thread(second, 1, 65).process != thread.process);
}

TEST_CASE("only processes with the run's id are recorded") {
    Registry registry("mine");
    Process& own = *registry.thread(registry.host("host"), 1, 1).process;
    Process& foreign = *registry.thread(registry.host("host"), 2, 2).process;
    CHECK_FALSE(own.recorded);
    ProcessInfo info;
    info.run_id = "mine";
    registry.announce(own, info);
    info.run_id = "another";
    registry.announce(foreign, info);
    CHECK(own.recorded);
    CHECK_FALSE(foreign.recorded);
}

TEST_CASE("phases are known by PyTorch's own names") {
    OperatorTable table;
    const auto phase = [&](const char* name, OperatorKind kind) { return table[table.intern(name, "", kind)].phase; };
    CHECK(phase("aten::mm", OperatorKind::kFunction) == Phase::kForward);
    CHECK(phase("MmBackward0", OperatorKind::kBackward) == Phase::kBackward);
    CHECK(phase("autograd::engine::evaluate_function: MmBackward0", OperatorKind::kFunction) == Phase::kBackward);
    CHECK(phase("Optimizer.step#SGD.step", OperatorKind::kScope) == Phase::kOther);
    CHECK(phase("my step", OperatorKind::kScope) == Phase::kForward);
}
