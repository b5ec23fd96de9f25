#include "tree.hpp"

#include <algorithm>

namespace iprof {

void Tree::on_event(const Event& event) {
    pairing_.feed(event);
}

Tree::ThreadTree& Tree::tree_of(const Thread& thread) {
    if (thread.index >= threads_.size()) threads_.resize(thread.index + 1);
    return threads_[thread.index];
}

void Tree::enter(const Thread& thread, uint32_t operator_id) {
    ThreadTree& tree = tree_of(thread);
    const uint32_t parent = tree.open.empty() ? kRoot : tree.open.back();
    const uint64_t key = uint64_t{parent} << 32 | operator_id;
    const auto [known, added] = tree.children.emplace(key, static_cast<uint32_t>(tree.nodes.size()));
    if (added) tree.nodes.push_back({parent, operator_id, 0, 0});
    tree.open.push_back(known->second);
}

void Tree::leave(const Thread& thread, uint32_t operator_id, int64_t duration_ns) {
    ThreadTree& tree = tree_of(thread);
    const auto is_of_operator = [&](uint32_t node) { return tree.nodes[node].operator_id == operator_id; };
    // Scopes may end in any order, so that it need not be the innermost call.
    const auto found = std::find_if(tree.open.rbegin(), tree.open.rend(), is_of_operator);
    if (found == tree.open.rend()) return;
    Node& node = tree.nodes[*found];
    if (duration_ns >= 0) {
        ++node.calls;
        node.time_ns += duration_ns;
    }
    tree.open.erase(std::next(found).base());
}

void Tree::on_operator_begin(const Thread& thread, uint32_t operator_id, int64_t) {
    enter(thread, operator_id);
}

void Tree::on_scope_begin(const Thread& thread, uint32_t operator_id, int64_t) {
    enter(thread, operator_id);
}

void Tree::on_operator(const Thread& thread, const OperatorInterval& interval) {
    leave(thread, interval.operator_id, interval.duration_ns());
}

void Tree::on_scope(const Thread& thread, const ScopeInterval& interval) {
    leave(thread, interval.operator_id, interval.duration_ns());
}

void Tree::on_unpaired_exit(const Thread&, uint32_t, int64_t) {
    ++unpaired_exits_;
}

void Tree::on_unpaired_entry(const Thread& thread, uint32_t operator_id, int64_t) {
    ++unpaired_entries_;
    leave(thread, operator_id, -1);
}

void Tree::finish(const Registry& registry, nlohmann::json& document) {
    pairing_.finish();
    document["unpaired_entries"] = unpaired_entries_;
    document["unpaired_exits"] = unpaired_exits_;
    nlohmann::json& trees = document["trees"] = nlohmann::json::array();
    for (const Thread& thread : registry.threads()) {
        if (thread.index >= threads_.size() || threads_[thread.index].nodes.size() == 1) continue;
        nlohmann::json nodes = nlohmann::json::array();
        for (const Node& node : threads_[thread.index].nodes) {
            if (&node == &threads_[thread.index].nodes[kRoot]) continue;
            const Operator& op = operators_[node.operator_id];
            nodes.push_back({{"parent", node.parent},
                             {"kind", kind_name(op.kind)},
                             {"name", op.name},
                             {"overload", op.overload_name},
                             {"calls", node.calls},
                             {"time_ns", node.time_ns}});
        }
        trees.push_back({{"host", thread.process->host},
                         {"pid", thread.process->pid},
                         {"tid", thread.tid},
                         {"nodes", std::move(nodes)}});
    }
}

}  // namespace iprof
