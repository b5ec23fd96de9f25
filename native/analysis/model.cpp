#include "model.hpp"

#include <functional>

namespace iprof {

namespace {

size_t hash_of(std::string_view name, std::string_view overload_name, OperatorKind kind) {
    const std::hash<std::string_view> hash;
    size_t value = hash(name) + static_cast<size_t>(kind);
    if (!overload_name.empty()) value = value * 31 + hash(overload_name);
    return value;
}

bool starts_with(std::string_view text, std::string_view beginning) {
    return text.substr(0, beginning.size()) == beginning;
}

// PyTorch's own names: the engine's operators and the nodes of the graph run backward; optimizers and data
// loaders open a scope around what they do.
Phase phase_begun(std::string_view name, OperatorKind kind) {
    if (kind == OperatorKind::kScope) {
        const bool other = starts_with(name, "Optimizer.") || starts_with(name, "enumerate(DataLoader)");
        return other ? Phase::kOther : Phase::kForward;
    }
    const bool backward = kind == OperatorKind::kBackward || starts_with(name, "autograd::engine::");
    return backward ? Phase::kBackward : Phase::kForward;
}

}  // namespace

const char* phase_name(Phase phase) {
    switch (phase) {
        case Phase::kBackward:
            return "backward";
        case Phase::kOther:
            return "other";
        default:
            return "forward";
    }
}

const char* kind_name(OperatorKind kind) {
    switch (kind) {
        case OperatorKind::kBackward:
            return "backward";
        case OperatorKind::kScope:
            return "scope";
        default:
            return "function";
    }
}

bool OperatorTable::is(uint32_t id, std::string_view name, std::string_view overload_name, OperatorKind kind) const {
    const Operator& candidate = operators_[id];
    return candidate.kind == kind && candidate.name == name && candidate.overload_name == overload_name;
}

uint32_t OperatorTable::intern(std::string_view name, std::string_view overload_name, OperatorKind kind) {
    const size_t hash = hash_of(name, overload_name, kind);
    size_t place = hash & (slots_.size() - 1);
    while (slots_[place].id != kFree) {
        const Slot& slot = slots_[place];
        if (slot.hash == hash && is(slot.id, name, overload_name, kind)) return slot.id;
        place = (place + 1) & (slots_.size() - 1);
    }
    const uint32_t id = size();
    operators_.push_back({std::string(name), std::string(overload_name), kind, phase_begun(name, kind)});
    slots_[place] = {hash, id};
    if (operators_.size() * 2 > slots_.size()) grow();
    return id;
}

void OperatorTable::grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    for (const Slot& slot : slots_) {
        if (slot.id == kFree) continue;
        size_t place = slot.hash & (larger.size() - 1);
        while (larger[place].id != kFree) place = (place + 1) & (larger.size() - 1);
        larger[place] = slot;
    }
    slots_ = std::move(larger);
}

uint32_t Registry::host(std::string_view name) {
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i] == name) return i;
    }
    hosts_.emplace_back(name);
    return static_cast<uint32_t>(hosts_.size() - 1);
}

Process& Registry::process(uint32_t host, int64_t pid) {
    Process*& known = process_index_[{host, pid, 0}];
    if (!known) {
        const auto index = static_cast<uint32_t>(processes_.size());
        processes_.push_back({index, hosts_[host], pid, run_id_.empty(), {}});
        known = &processes_.back();
    }
    return *known;
}

Thread& Registry::find_or_add(const Key& key) {
    Thread*& known = thread_index_[key];
    if (!known) {
        const auto index = static_cast<uint32_t>(threads_.size());
        threads_.push_back({index, &process(key.host, key.pid), key.tid, {}});
        known = &threads_.back();
    }
    return *known;
}

Thread& Registry::thread(uint32_t host, int64_t pid, int64_t tid) {
    const Key key{host, pid, tid};
    Cached& cached = cache_[static_cast<size_t>(tid) % kCacheSize];
    if (!(cached.key == key)) cached = {key, &find_or_add(key)};
    return *cached.thread;
}

void Registry::announce(Process& process, const ProcessInfo& info) {
    process.info = info;
    process.recorded = run_id_.empty() || info.run_id == run_id_;
}

}  // namespace iprof
