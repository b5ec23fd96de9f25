// What the parts of the hook know of each other.
#pragma once

#include "torch_abi.hpp"

namespace iprof {

// The functions of the libtorch_cpu in this process; set once, before the first callback is registered.
struct Torch {
    torch_abi::AddGlobalCallback add_global_callback = nullptr;
    torch_abi::StringGetter name = nullptr;
    torch_abi::StringGetter overload_name = nullptr;  // null before torch 2.7
    char path[4096] = "";
};
extern Torch torch;

// Looks for libtorch_cpu among the loaded libraries and registers the callbacks, the first time it is there.
void attach_if_loaded() noexcept;

// Registers one callback pair for each recorded scope.
void register_callbacks() noexcept;

// What the process event says of this process; copied at start-up, since getenv is not safe beside setenv.
struct Environment {
    char run_id[64] = "";
    char executable[4096] = "";
    char command[4096] = "";
    int rank = -1;
    int local_rank = -1;
    int world_size = -1;
    bool debug = false;
};
extern Environment environment;
void read_environment() noexcept;

// Writes one line to stderr, when IPROF_HOOK_DEBUG=1.
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...) noexcept;

// The dlopen that the program would have called without the hook.
using Dlopen = void* (*)(const char*, int);
Dlopen next_dlopen() noexcept;

}  // namespace iprof
