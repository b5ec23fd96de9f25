// The calling-context tree: calls and time of each path of operators and scopes, for each thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis.hpp"
#include "pairing.hpp"

namespace iprof {

class Tree : public Analysis, private IntervalListener {
public:
    void on_event(const Event& event) override;
    void finish(const Registry& registry, nlohmann::json& document) override;

private:
    static constexpr uint32_t kRoot = 0;
    struct Node {
        uint32_t parent;
        uint32_t operator_id;
        uint64_t calls;
        int64_t time_ns;
    };
    struct ThreadTree {
        std::vector<Node> nodes{{kRoot, 0, 0, 0}};
        std::unordered_map<uint64_t, uint32_t> children;  // by parent and operator id
        std::vector<uint32_t> open;                       // nodes of the open calls and scopes, innermost last
    };

    void on_operator_begin(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;
    void on_scope_begin(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;
    void on_operator(const Thread& thread, const OperatorInterval& interval) override;
    void on_scope(const Thread& thread, const ScopeInterval& interval) override;
    void on_unpaired_exit(const Thread& thread, uint32_t operator_id, int64_t timestamp_ns) override;
    void on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t begin_ns) override;

    ThreadTree& tree_of(const Thread& thread);
    void enter(const Thread& thread, uint32_t operator_id);
    // Closes the innermost open call of an operator, and adds its time to its node; a negative time means
    // that it has none.
    void leave(const Thread& thread, uint32_t operator_id, int64_t duration_ns);

    OperatorTable operators_;
    Pairing pairing_{operators_, *this};
    std::vector<ThreadTree> threads_;
    uint64_t unpaired_entries_ = 0;
    uint64_t unpaired_exits_ = 0;
};

}  // namespace iprof
