// The events of the provider lttng_ust_pytorch; docs/trace-format.md describes them.
//
// The first two fields of op_entry and op_exit are those of THAPI's PyTorch backend, so that its readers accept our
// traces; fields of ours come after.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lttng_ust_pytorch

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracepoints.h"

#if !defined(IPROF_HOOK_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define IPROF_HOOK_TRACEPOINTS_H

#ifndef LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#endif

#include <lttng/tracepoint.h>
#include <stdint.h>

// clang-format off

LTTNG_UST_TRACEPOINT_EVENT_CLASS(lttng_ust_pytorch, op,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name, uint8_t, scope),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(name, name)
        lttng_ust_field_string(overload_name, overload_name)
        lttng_ust_field_integer(uint8_t, scope, scope)))

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, op, lttng_ust_pytorch, op_entry,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name, uint8_t, scope))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, op, lttng_ust_pytorch, op_exit,
    LTTNG_UST_TP_ARGS(const char*, name, const char*, overload_name, uint8_t, scope))

LTTNG_UST_TRACEPOINT_EVENT_CLASS(lttng_ust_pytorch, user_scope,
    LTTNG_UST_TP_ARGS(const char*, name, uint64_t, id),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(name, name)
        lttng_ust_field_integer(uint64_t, id, id)))

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, user_scope, lttng_ust_pytorch, scope_entry,
    LTTNG_UST_TP_ARGS(const char*, name, uint64_t, id))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lttng_ust_pytorch, user_scope, lttng_ust_pytorch, scope_exit,
    LTTNG_UST_TP_ARGS(const char*, name, uint64_t, id))

LTTNG_UST_TRACEPOINT_EVENT(lttng_ust_pytorch, process,
    LTTNG_UST_TP_ARGS(const char*, run_id, int32_t, parent_pid, const char*, executable, const char*, command,
                      int32_t, rank, int32_t, local_rank, int32_t, world_size,
                      const char*, libtorch, uint8_t, has_overloads),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(run_id, run_id)
        lttng_ust_field_integer(int32_t, parent_pid, parent_pid)
        lttng_ust_field_string(executable, executable)
        lttng_ust_field_string(command, command)
        lttng_ust_field_integer(int32_t, rank, rank)
        lttng_ust_field_integer(int32_t, local_rank, local_rank)
        lttng_ust_field_integer(int32_t, world_size, world_size)
        lttng_ust_field_string(libtorch, libtorch)
        lttng_ust_field_integer(uint8_t, has_overloads, has_overloads)))

LTTNG_UST_TRACEPOINT_EVENT(lttng_ust_pytorch, thread,
    LTTNG_UST_TP_ARGS(const char*, name),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))

// clang-format on

#endif

#include <lttng/tracepoint-event.h>
