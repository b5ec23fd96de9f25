"""Watches the daemons of a run: without its consumer daemon, a program that fills the buffers would wait for nobody."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def watching(daemon_pid: int | None, on_death: Callable[[str], None]) -> Iterator[None]:
    """Call ``on_death`` once, with the daemon's name and in another thread, when one dies while the block runs."""
    with ExitStack() as stack:
        handles = {handle: name for pid, name in _daemons(daemon_pid) for handle in _open(pid, stack)}
        if not handles:
            yield
            return
        end, wake = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, end)
        thread = threading.Thread(target=_watch, args=(handles, end, on_death), daemon=True)
        thread.start()
        try:
            yield
        finally:
            os.close(wake)
            thread.join()


def _watch(handles: dict[int, str], end: int, on_death: Callable[[str], None]) -> None:
    ready, _, _ = select.select([*handles, end], [], [])
    if end not in ready:
        on_death(handles[ready[0]])


def _daemons(daemon_pid: int | None) -> Iterator[tuple[int, str]]:
    """The session daemon and the consumer daemons that it started."""
    if daemon_pid is None:
        return
    yield daemon_pid, "session daemon"
    for children in Path(f"/proc/{daemon_pid}/task").glob("*/children"):
        with suppress(OSError):
            for pid in map(int, children.read_text().split()):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "lttng-consumerd":
                    yield pid, "consumer daemon"


def _open(pid: int, stack: ExitStack) -> list[int]:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return []
    stack.callback(os.close, handle)
    return [handle]
