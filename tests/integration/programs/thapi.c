// Writes what THAPI's backend would of three calls of aten::abs, the last of which never ends.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "thapi_provider.h"

int main(void) {
    for (int call = 0; call < 3; ++call) {
        lttng_ust_tracepoint(lttng_ust_pytorch, op_entry, "aten::abs", "");
        lttng_ust_tracepoint(lttng_ust_pytorch, op_entry, "aten::abs", "out");
        lttng_ust_tracepoint(lttng_ust_pytorch, op_exit, "aten::abs", "out");
        if (call < 2) lttng_ust_tracepoint(lttng_ust_pytorch, op_exit, "aten::abs", "");
    }
    return 0;
}
