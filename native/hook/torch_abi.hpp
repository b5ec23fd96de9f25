// The part of libtorch's C++ interface that the hook calls, written by hand so that it links nothing of
// torch.
//
// Source: ATen/record_function.h of PyTorch 1.13 to 2.14, whose layouts agree. The symbols below are looked
// up at run time; kGuardSymbol is missing from the older releases whose RecordScope has fewer members.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iprof::torch_abi {

constexpr const char* kAddGlobalCallback = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
constexpr const char* kName = "_ZNK2at14RecordFunction4nameEv";
constexpr const char* kOverloadName = "_ZNK2at14RecordFunction13overload_nameEv";  // since 2.7
constexpr const char* kGuardSymbol = "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE";

enum Scope : uint8_t { kFunction = 0, kBackwardFunction = 1, kUserScope = 7, kScopeCount = 10 };

class RecordFunction;  // opaque: reached through the functions below

// at::ObserverContext: a polymorphic base whose virtual destructor torch calls through std::unique_ptr.
class ObserverContext {
public:
    virtual ~ObserverContext() = default;
    static void operator delete(void*) {}
};

// std::unique_ptr<at::ObserverContext> as a return value: one pointer, returned in memory because its
// destructor is not trivial.
class ObserverContextPtr {
public:
    explicit ObserverContextPtr(ObserverContext* context) : context_(context) {}
    ObserverContextPtr(const ObserverContextPtr&) = delete;
    ObserverContextPtr& operator=(const ObserverContextPtr&) = delete;
    ~ObserverContextPtr() {}

private:
    ObserverContext* context_;
};

using StartCallback = ObserverContextPtr (*)(const RecordFunction&);
using EndCallback = void (*)(const RecordFunction&, ObserverContext*);

// at::RecordFunctionCallback, trivially copyable and passed by value on the stack.
struct RecordFunctionCallback {
    StartCallback start;
    EndCallback end;
    double sampling_probability;
    bool scopes[kScopeCount];
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
};
static_assert(sizeof(RecordFunctionCallback) == 40, "layout of at::RecordFunctionCallback");
static_assert(offsetof(RecordFunctionCallback, scopes) == 24, "layout of at::RecordFunctionCallback");

using AddGlobalCallback = uint64_t (*)(RecordFunctionCallback);
using StringGetter = const char* (*)(const RecordFunction*);

}  // namespace iprof::torch_abi
