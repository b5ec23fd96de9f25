"""The shared memory that LTTng keeps a run's buffers in, and how large those may be."""

from __future__ import annotations

import os
import shutil
from typing import Final

DIRECTORY: Final = "/dev/shm"  # noqa: S108 - LTTng's place, not ours
COUNT: Final = 4  # sub-buffers of each CPU, for each user whose programs are recorded
_LARGEST_BYTES: Final = 512 * 1024
_SMALLEST_BYTES: Final = 16 * 1024
# What a session daemon keeps there for itself, for each CPU: 1.8 MiB were seen.
_DAEMON_BYTES: Final = 2 * 1024 * 1024


def sub_buffer_bytes() -> int | None:
    """The size of a sub-buffer, a power of two: LTTng's own, or less where it would not fit; None without any room."""
    room = (_free_bytes() // _cpus() - _DAEMON_BYTES) // COUNT
    size = _LARGEST_BYTES
    while size > max(room, _SMALLEST_BYTES):
        size //= 2
    return size if size <= room else None


def shortage() -> str:
    """What is missing when there is no room, in one line."""
    needed = (_DAEMON_BYTES + COUNT * _SMALLEST_BYTES) * _cpus()
    return f"{DIRECTORY} has {_free_bytes() >> 10} KiB free, and LTTng needs at least {needed >> 10}"


def _cpus() -> int:
    return os.sysconf("SC_NPROCESSORS_CONF")


def _free_bytes() -> int:
    try:
        return shutil.disk_usage(DIRECTORY).free
    except OSError:
        return 0
