"""Opens record_function scopes with odd names, one that ends on another thread, and nested operators."""

import threading

import torch
from torch.profiler import record_function

NAMES = ['quote " and \\ backslash', "new\nline", "[bracket]", "é", "", "x" * 10_000, "semi;colon|pipe,comma"]

for name in NAMES:
    with record_function(name):
        torch.ones(2)

outer = record_function("outer")
outer.__enter__()
future: torch.futures.Future[int] = torch.futures.Future()
with record_function("async") as scope:
    scope._call_end_callbacks_on_future(future)
outer.__exit__(None, None, None)
thread = threading.Thread(target=lambda: (torch.ones(1), future.set_result(1)))
thread.start()
thread.join()
