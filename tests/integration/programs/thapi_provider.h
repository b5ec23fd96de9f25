// The two events of THAPI's PyTorch backend, with their two fields.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lttng_ust_pytorch
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "thapi_provider.h"
#if !defined(THAPI_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define THAPI_PROVIDER_H
#include <lttng/tracepoint.h>
// clang-format off
LTTNG_UST_TRACEPOINT_EVENT_CLASS(lttng_ust_pytorch, op,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(name, name)
        lttng_ust_field_string(overload_name, overload_name)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, op, lttng_ust_pytorch, op_entry,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, op, lttng_ust_pytorch, op_exit,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name))
// clang-format on
#endif
#include <lttng/tracepoint-event.h>
