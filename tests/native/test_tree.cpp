#include <catch2/catch.hpp>

#include "script.hpp"
#include "tree.hpp"

using namespace iprof;

TEST_CASE("the tree has a node for each path, parents first") {
    Tree tree;
    test::Script script([&](const Event& event) { tree.on_event(event); });
    for (const int64_t start : {0, 100}) {
        script.entry("a", start);
        script.scope_entry("s", 1 + start, start + 10);
        script.entry("b", start + 20);
        script.exit("b", start + 25);
        script.scope_exit("s", 1 + start, start + 30);
        script.entry("b", start + 40);
        script.exit("b", start + 41);
        script.exit("a", start + 50);
    }
    script.entry("lost", 200);
    script.entry("b", 201);
    script.exit("b", 202);
    nlohmann::json document;
    tree.finish(script.registry, document);
    const auto& nodes = document["trees"][0]["nodes"];
    const auto expect = [&](size_t number, int parent, const char* name, int calls, int time_ns) {
        CHECK(nodes[number]["parent"] == parent);
        CHECK(nodes[number]["name"] == name);
        CHECK(nodes[number]["calls"] == calls);
        CHECK(nodes[number]["time_ns"] == time_ns);
    };
    REQUIRE(nodes.size() == 6);
    expect(0, 0, "a", 2, 100);
    expect(1, 1, "s", 2, 40);
    expect(2, 2, "b", 2, 10);
    expect(3, 1, "b", 2, 2);
    expect(4, 0, "lost", 0, 0);
    expect(5, 5, "b", 1, 1);
    CHECK(document["unpaired_entries"] == 1);
}
