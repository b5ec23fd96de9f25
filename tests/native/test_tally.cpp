#include <catch2/catch.hpp>

#include "script.hpp"
#include "tally.hpp"

using namespace iprof;

namespace {

nlohmann::json run(Tally& tally, const std::function<void(test::Script&)>& write) {
    test::Script script([&](const Event& event) { tally.on_event(event); });
    write(script);
    nlohmann::json document;
    tally.finish(script.registry, document);
    return document;
}

}  // namespace

TEST_CASE("the tally has a row for each operator of each thread") {
    Tally tally(Grouping::kOperator, true);
    const auto document = run(tally, [](test::Script& script) {
        script.entry("a", 0);
        script.exit("a", 10);
        script.entry("a", 20);
        script.exit("a", 50);
        script.entry("a", 0, 2);
        script.exit("a", 5, 2);
        script.exit("b", 60);
        script.entry("c", 70);
    });
    const auto& rows = document["rows"];
    REQUIRE(rows.size() == 3);
    CHECK(rows[0]["tid"] == 1);
    CHECK(rows[0]["calls"] == 2);
    CHECK(rows[0]["time_ns"] == 40);
    CHECK(rows[0]["min_ns"] == 10);
    CHECK(rows[0]["max_ns"] == 30);
    CHECK(rows[0]["squares_ns2"] == "1000");
    CHECK(rows[0]["histogram"] == nlohmann::json({{10, 10, 1}, {30, 30, 1}}));
    CHECK(rows[1]["name"] == "b");
    CHECK(rows[1]["errors"] == 1);
    CHECK(rows[1]["min_ns"] == 0);
    CHECK(rows[2]["tid"] == 2);
    CHECK(document["unpaired_entries"] == 1);
    CHECK(document["unpaired_exits"] == 1);
}

TEST_CASE("sums of squares beyond 64 bits are exact") {
    Tally tally(Grouping::kOperator, false);
    const auto document = run(tally, [](test::Script& script) {
        script.entry("a", 0);
        script.exit("a", 10'000'000'000'000);
    });
    CHECK(document["rows"][0]["squares_ns2"] == "100000000000000000000000000");
}

TEST_CASE("calls are kept apart by scope") {
    Tally tally(Grouping::kScope, false);
    const auto document = run(tally, [](test::Script& script) {
        script.entry("a", 0);
        script.exit("a", 1);
        script.scope_entry("s", 1, 2);
        script.entry("a", 3);
        script.exit("a", 4);
        script.scope_exit("s", 1, 5);
    });
    const auto& rows = document["rows"];
    REQUIRE(rows.size() == 3);
    CHECK(rows[0]["group"] == "");
    CHECK(rows[1]["kind"] == "scope");
    CHECK(rows[2]["group"] == "s");
}

TEST_CASE("an unknown grouping is refused") {
    CHECK_THROWS_AS(grouping("nosuch"), std::invalid_argument);
}
