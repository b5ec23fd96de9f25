"""Watches what a run's recording depends on: its daemons, and room on the disk.

Without them a program that fills the buffers would wait for nobody.
"""

from __future__ import annotations

import os
import select
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

_PERIOD_S: Final = 0.5
_LEAST_FREE_BYTES: Final = 1 << 20


@contextmanager
def watching(daemon_pid: int | None, output: Path, on_failure: Callable[[str], None]) -> Iterator[None]:
    """Call ``on_failure`` once, in another thread, when recording into ``output`` fails while the block runs.

    It is told what happened: a daemon died, or the disk is full.
    """
    with ExitStack() as stack:
        handles = {handle: name for pid, name in _daemons(daemon_pid) for handle in _open(pid, stack)}
        end, wake = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, end)
        thread = threading.Thread(target=_watch, args=(handles, end, output, on_failure), daemon=True)
        thread.start()
        try:
            yield
        finally:
            os.close(wake)
            thread.join()


def _watch(handles: dict[int, str], end: int, output: Path, on_failure: Callable[[str], None]) -> None:
    while True:
        ready, _, _ = select.select([*handles, end], [], [], _PERIOD_S)
        if end in ready:
            return
        if ready:
            return on_failure(f"LTTng's {handles[ready[0]]} died")
        if _is_full(output):
            return on_failure(f"the disk of {output} is full")


def _is_full(directory: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(directory).free < _LEAST_FREE_BYTES
    return False


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
