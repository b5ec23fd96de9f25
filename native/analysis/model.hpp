// What a trace is made of, free of babeltrace: hosts, processes, threads, operators and events.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace iprof {

// The values of the field "scope", those of at::RecordScope; a trace of THAPI has no such field and means
// kFunction.
enum class OperatorKind : uint8_t { kFunction = 0, kBackward = 1, kScope = 7 };

// The name that an output shows for a kind: "function", "backward" or "scope".
const char* kind_name(OperatorKind kind);

// What a training program does in a call: the phases by which its time is told apart.
enum class Phase : uint8_t { kForward, kBackward, kOther };
const char* phase_name(Phase phase);

struct Operator {
    std::string name;
    std::string overload_name;
    OperatorKind kind;
    Phase phase;  // that it begins for what it calls; kForward: none
};

// The distinct operators of a trace, each with an id from 0 on.
class OperatorTable {
public:
    uint32_t intern(std::string_view name, std::string_view overload_name, OperatorKind kind);
    const Operator& operator[](uint32_t id) const { return operators_[id]; }
    bool is(uint32_t id, std::string_view name, std::string_view overload_name, OperatorKind kind) const;
    uint32_t size() const { return static_cast<uint32_t>(operators_.size()); }

private:
    static constexpr uint32_t kFree = UINT32_MAX;
    struct Slot {
        size_t hash = 0;
        uint32_t id = kFree;
    };
    void grow();

    std::deque<Operator> operators_;
    std::vector<Slot> slots_ = std::vector<Slot>(1024);  // open addressing; the size is a power of two
};

// What a process event says; unset where the trace has none (THAPI's traces).
struct ProcessInfo {
    std::string run_id;
    int64_t parent_pid = -1;
    std::string executable;
    std::string command;
    int64_t rank = -1;
    int64_t local_rank = -1;
    int64_t world_size = -1;
    std::string libtorch;
    bool has_overloads = true;
};

struct Process {
    uint32_t index;
    std::string host;
    int64_t pid;
    bool recorded;  // belongs to the run that is analysed
    ProcessInfo info;
};

struct Thread {
    uint32_t index;
    Process* process;
    int64_t tid;
    std::string name;
};

enum class EventKind : uint8_t {
    kUnknown,
    kOperatorEntry,
    kOperatorExit,
    kScopeEntry,
    kScopeExit,
    kProcess,
    kThread,
    kLog,
};

// One event. The views last until the next event is decoded.
struct Event {
    EventKind kind = EventKind::kUnknown;
    int64_t timestamp_ns = 0;  // since the epoch
    Thread* thread = nullptr;
    std::string_view name;           // of a log record: its message
    std::string_view overload_name;  // of a log record: its logger
    int64_t log_level = 0;
    OperatorKind operator_kind = OperatorKind::kFunction;
    uint64_t scope_id = 0;
    const ProcessInfo* process_info = nullptr;
};

// The processes and threads of a trace, told apart by host, pid and tid.
class Registry {
public:
    // run_id: only processes that announce themselves with it are recorded; empty: all are.
    explicit Registry(std::string run_id) : run_id_(std::move(run_id)) {}

    uint32_t host(std::string_view name);
    Thread& thread(uint32_t host, int64_t pid, int64_t tid);
    void announce(Process& process, const ProcessInfo& info);

    const std::deque<Process>& processes() const { return processes_; }
    const std::deque<Thread>& threads() const { return threads_; }

private:
    struct Key {
        uint32_t host;
        int64_t pid;
        int64_t tid;
        bool operator==(const Key& other) const { return tid == other.tid && pid == other.pid && host == other.host; }
    };
    struct Hash {
        size_t operator()(const Key& key) const {
            return static_cast<size_t>(key.tid) * 0x9E3779B97F4A7C15U ^
                   static_cast<size_t>(key.pid) * 0xC2B2AE3D27D4EB4FU ^ key.host;
        }
    };
    struct Cached {
        Key key{UINT32_MAX, 0, 0};
        Thread* thread = nullptr;
    };
    static constexpr size_t kCacheSize = 64;

    Process& process(uint32_t host, int64_t pid);
    Thread& find_or_add(const Key& key);

    std::string run_id_;
    std::deque<std::string> hosts_;
    std::deque<Process> processes_;
    std::deque<Thread> threads_;
    std::unordered_map<Key, Process*, Hash> process_index_;
    std::unordered_map<Key, Thread*, Hash> thread_index_;
    Cached cache_[kCacheSize];
};

}  // namespace iprof
