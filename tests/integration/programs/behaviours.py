"""Programs that are hard on a tracer, chosen by the first argument. Each adds 100 times in every place it works in."""

import atexit
import ctypes
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch


def add(count: int = 100) -> None:
    ones = torch.ones(3)
    for _ in range(count):
        torch.add(ones, ones)


def in_thread() -> threading.Thread:
    thread = threading.Thread(target=add)
    thread.start()
    return thread


def pool(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as workers:
        workers.map(add, [100, 100], chunksize=1)
        workers.close()
        workers.join()


def spawn() -> None:
    pool("spawn")


def forkserver() -> None:
    pool("forkserver")


def fork_beside_threads() -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            torch.neg(torch.ones(3))

    thread = threading.Thread(target=busy)
    thread.start()
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            add()
            os._exit(0)
        os.waitpid(pid, 0)
    stop.set()
    thread.join()


def backward_on_threads() -> None:
    def train() -> None:
        weight = torch.ones(3, requires_grad=True)
        for _ in range(20):
            torch.add(weight, weight).sum().backward()

    threads = [threading.Thread(target=train) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def jit_fork() -> None:
    futures = [torch.jit.fork(torch.add, torch.ones(3), torch.ones(3)) for _ in range(100)]
    for future in futures:
        torch.jit.wait(future)


def at_exit() -> None:
    atexit.register(add)


def daemon_thread_at_exit() -> None:
    started = threading.Event()

    def forever() -> None:
        started.set()
        while True:
            torch.neg(torch.ones(3))

    threading.Thread(target=forever, daemon=True).start()
    started.wait()
    add()


def hard_exit() -> None:
    add()
    os._exit(3)


def abort() -> None:
    add()
    os.abort()


def segfault() -> None:
    add()
    ctypes.string_at(0)


def exception() -> None:
    add()
    raise RuntimeError("on purpose")


def exec_itself() -> None:
    add()
    os.execv(sys.executable, [sys.executable, __file__, "plain"])


def plain() -> None:
    add()


def three_deep() -> None:
    inner = shlex.join([sys.executable, __file__, "plain"])
    middle = shlex.join(["sh", "-c", f"{inner}; true"])
    subprocess.run(["sh", "-c", f"{middle}; true"], check=True)


def profiling_timer() -> None:
    ticks = []
    signal.signal(signal.SIGPROF, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    add(5000)
    deadline = time.monotonic() + 5
    while not ticks and time.monotonic() < deadline:
        add(0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print("ticks" if ticks else "none")


def own_profiler() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        add()
    print(sum(event.name == "aten::add" for event in profiler.events()))


def late_fork_without_exec() -> None:
    add()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            add()
            Path(sys.argv[2]).write_text("done")
        os._exit(0)
    os.wait()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
