// A dlopen that attaches to libtorch_cpu when a call has brought it in.
//
// What dlopen does can depend on who calls it: a name without a slash is looked for along the caller's
// RUNPATH, $ORIGIN is the caller's folder, a null name means the caller's namespace. Such calls are forwarded
// by a tail call, compiled to a jump, so that libc sees the original caller; whether they brought libtorch in
// is found at the next dlopen.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "hook.hpp"

namespace iprof {

namespace {

std::atomic<Dlopen> real_dlopen{nullptr};

// Whether an object's dynamic section has search paths of its own.
bool has_search_path(const link_map* object) {
    for (const ElfW(Dyn)* entry = object->l_ld; entry && entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) return true;
        if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODEFLIB)) return true;
    }
    return false;
}

// Whether libc would look in places for this caller where it would not look for the hook. DT_RPATH of the
// program counts for every caller, so that the hook gets it too.
bool caller_has_search_path(const void* return_address) {
    Dl_info info;
    link_map* object = nullptr;
    const bool known = dladdr1(return_address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0;
    return !known || !object || has_search_path(object);
}

bool depends_on_caller(const char* name, const void* return_address) {
    if (!name || !*name || strchr(name, '$')) return true;
    if (strchr(name, '/')) return false;
    return caller_has_search_path(return_address);
}

}  // namespace

Dlopen next_dlopen() noexcept {
    Dlopen next = real_dlopen.load(std::memory_order_relaxed);
    if (!next) {
        next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
        real_dlopen.store(next, std::memory_order_relaxed);
    }
    return next;
}

namespace {

void* dlopen_and_attach(Dlopen next, const char* name, int flags) {
    void* library = next(name, flags);
    if (library) attach_if_loaded();
    return library;
}

bool mentions_torch(const char* name) {
    return name && strstr(name, "torch");
}

}  // namespace

}  // namespace iprof

extern "C" [[gnu::visibility("default")]] void* dlopen(const char* name, int flags) noexcept {
    const iprof::Dlopen next = iprof::next_dlopen();
    if (!iprof::depends_on_caller(name, __builtin_return_address(0))) {
        return iprof::dlopen_and_attach(next, name, flags);
    }
    if (iprof::mentions_torch(name)) {
        // Often the program's only dlopen, so worth a try of our own; a failure is left to the caller's
        // search.
        if (void* library = iprof::dlopen_and_attach(next, name, flags)) return library;
    }
    iprof::attach_if_loaded();
    return next(name, flags);
}
