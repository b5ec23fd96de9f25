#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "hook.hpp"

namespace iprof {

Torch torch;

namespace {

std::atomic<bool> environment_read{false};
std::atomic<bool> attached{false};
std::atomic<unsigned long long> libraries_seen{0};

struct Search {
    char path[sizeof Torch::path] = "";
    unsigned long long libraries_added = 0;
};

// dl_iterate_phdr callback: stops at the first object whose file is libtorch_cpu.
int find_libtorch(dl_phdr_info* info, size_t, void* data) {
    auto* search = static_cast<Search*>(data);
    search->libraries_added = info->dlpi_adds;
    if (info->dlpi_adds == libraries_seen.load(std::memory_order_relaxed)) return 1;
    const char* slash = strrchr(info->dlpi_name, '/');
    const char* file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libtorch_cpu", strlen("libtorch_cpu")) != 0) return 0;
    snprintf(search->path, sizeof search->path, "%s", info->dlpi_name);
    return 1;
}

template <typename Function>
bool lookup(void* library, const char* symbol, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, symbol));
    return *function != nullptr;
}

}  // namespace

void attach_if_loaded() noexcept {
    // A library's constructor may call dlopen before ours has run.
    if (!environment_read.exchange(true, std::memory_order_acq_rel)) read_environment();
    if (attached.load(std::memory_order_acquire)) return;
    Search search;
    dl_iterate_phdr(find_libtorch, &search);
    if (!search.path[0]) {
        libraries_seen.store(search.libraries_added, std::memory_order_relaxed);
        return;
    }
    // The handle is kept: the callbacks call into the library for the rest of the process.
    void* library = next_dlopen()(search.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!library || attached.exchange(true, std::memory_order_acq_rel)) return;
    void* guard = nullptr;
    const bool usable = lookup(library, torch_abi::kGuardSymbol, &guard) &&
                        lookup(library, torch_abi::kName, &torch.name) &&
                        lookup(library, torch_abi::kAddGlobalCallback, &torch.add_global_callback);
    if (!usable) {
        dlerror();  // the program must not find our failed lookup
        debug("%s: not recorded, it lacks a function that the hook needs", search.path);
        return;
    }
    if (!lookup(library, torch_abi::kOverloadName, &torch.overload_name)) dlerror();
    memcpy(torch.path, search.path, sizeof torch.path);
    register_callbacks();
    debug("%s: attached, overload names %s", torch.path, torch.overload_name ? "known" : "not known");
}

namespace {

[[gnu::constructor]] void initialize() {
    attach_if_loaded();
}

}  // namespace

}  // namespace iprof
