// The callbacks that RecordFunction runs around each operator: the hot path. They allocate nothing and print
// nothing.
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "hook.hpp"
#include "tracepoints.h"

namespace iprof {

namespace {

using torch_abi::ObserverContext;
using torch_abi::ObserverContextPtr;
using torch_abi::RecordFunction;
using torch_abi::Scope;

const char* name_of(const RecordFunction& function) {
    const char* name = torch.name(&function);
    return name ? name : "";
}

const char* overload_of(const RecordFunction& function) {
    const char* overload = torch.overload_name ? torch.overload_name(&function) : nullptr;
    return overload ? overload : "";
}

// Announcements: one process event a process, before its first operator, and one thread event a thread. A
// generation counts the processes along a chain of forks, so that a forked child announces itself anew.
std::atomic<unsigned> generation{1};
std::atomic<unsigned> process_announced{0};
std::atomic<bool> process_announcing{false};
thread_local unsigned thread_announced = 0;

void announce_process(unsigned current) {
    while (process_announced.load(std::memory_order_acquire) != current) {
        if (process_announcing.exchange(true, std::memory_order_acquire)) continue;
        if (process_announced.load(std::memory_order_relaxed) != current) {
            lttng_ust_tracepoint(lttng_ust_pytorch, process, environment.run_id, getppid(), environment.executable,
                                 environment.command, environment.rank, environment.local_rank, environment.world_size,
                                 torch.path, torch.overload_name != nullptr);
            process_announced.store(current, std::memory_order_release);
        }
        process_announcing.store(false, std::memory_order_release);
    }
}

[[gnu::noinline, gnu::cold]] void announce(unsigned current) {
    announce_process(current);
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    lttng_ust_tracepoint(lttng_ust_pytorch, thread, name);
    thread_announced = current;
}

void announce_once() {
    const unsigned current = generation.load(std::memory_order_relaxed);
    if (__builtin_expect(thread_announced != current, 0)) announce(current);
}

// For the agent of --python-log: its events come before the first operator, or without any.
extern "C" [[gnu::visibility("default")]] void iprof_announce() {
    if (lttng_ust_tracepoint_enabled(lttng_ust_pytorch, process)) announce_once();
}

// The event itself waits for the child's next operator: lttng-ust is not yet ready here.
void renew_generation() {
    process_announcing.store(false, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_relaxed);
}

template <Scope scope>
ObserverContextPtr operator_start(const RecordFunction& function) {
    if (lttng_ust_tracepoint_enabled(lttng_ust_pytorch, op_entry)) {
        announce_once();
        lttng_ust_do_tracepoint(lttng_ust_pytorch, op_entry, name_of(function), overload_of(function), scope);
    }
    return ObserverContextPtr(nullptr);
}

template <Scope scope>
void operator_end(const RecordFunction& function, ObserverContext*) {
    if (lttng_ust_tracepoint_enabled(lttng_ust_pytorch, op_exit)) {
        lttng_ust_do_tracepoint(lttng_ust_pytorch, op_exit, name_of(function), overload_of(function), scope);
    }
}

// A record_function scope may end on another thread than it began on: its id travels in the ObserverContext.
// Contexts come from a fixed pool; when that is empty, the scope has id 0 and is paired by its name.
class UserScopeContext : public ObserverContext {
public:
    explicit UserScopeContext(uint64_t id) : id(id) {}
    static void* operator new(size_t, void* place) { return place; }
    static void operator delete(void* context);

    const uint64_t id;
};

constexpr unsigned kPoolSize = 4096;
struct alignas(UserScopeContext) PoolSlot {
    unsigned char bytes[sizeof(UserScopeContext)];
};
PoolSlot pool[kPoolSize];
std::atomic<bool> pool_used[kPoolSize];
std::atomic<unsigned> pool_hint{0};
std::atomic<uint64_t> next_scope_id{1};

void UserScopeContext::operator delete(void* context) {
    const auto index = static_cast<PoolSlot*>(context) - pool;
    pool_used[index].store(false, std::memory_order_release);
    pool_hint.store(static_cast<unsigned>(index), std::memory_order_relaxed);
}

UserScopeContext* make_context() {
    const unsigned first = pool_hint.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < kPoolSize; ++i) {
        const unsigned index = (first + i) % kPoolSize;
        if (pool_used[index].load(std::memory_order_relaxed)) continue;
        if (pool_used[index].exchange(true, std::memory_order_acquire)) continue;
        pool_hint.store(index + 1, std::memory_order_relaxed);
        return new (pool[index].bytes) UserScopeContext(next_scope_id.fetch_add(1, std::memory_order_relaxed));
    }
    return nullptr;
}

ObserverContextPtr user_scope_start(const RecordFunction& function) {
    if (!lttng_ust_tracepoint_enabled(lttng_ust_pytorch, scope_entry)) return ObserverContextPtr(nullptr);
    announce_once();
    UserScopeContext* context = make_context();
    lttng_ust_do_tracepoint(lttng_ust_pytorch, scope_entry, name_of(function), context ? context->id : 0);
    return ObserverContextPtr(context);
}

void user_scope_end(const RecordFunction& function, ObserverContext* context) {
    if (!lttng_ust_tracepoint_enabled(lttng_ust_pytorch, scope_exit)) return;
    announce_once();
    const uint64_t id = context ? static_cast<UserScopeContext*>(context)->id : 0;
    lttng_ust_do_tracepoint(lttng_ust_pytorch, scope_exit, name_of(function), id);
}

void register_pair(Scope scope, torch_abi::StartCallback start, torch_abi::EndCallback end) {
    torch_abi::RecordFunctionCallback callback{};
    callback.start = start;
    callback.end = end;
    callback.sampling_probability = 1.0;
    callback.scopes[scope] = true;
    torch.add_global_callback(callback);
}

}  // namespace

void register_callbacks() noexcept {
    renew_generation();  // a process that was announced before tells of its libtorch now
    pthread_atfork(nullptr, nullptr, renew_generation);
    register_pair(torch_abi::kFunction, operator_start<torch_abi::kFunction>, operator_end<torch_abi::kFunction>);
    register_pair(torch_abi::kBackwardFunction, operator_start<torch_abi::kBackwardFunction>,
                  operator_end<torch_abi::kBackwardFunction>);
    register_pair(torch_abi::kUserScope, user_scope_start, user_scope_end);
}

}  // namespace iprof
